/* attend caption: captions of images. */
#include "cli/base/json.h"
#include "cli/base/progress.h"
#include "cli/base/shard.h"
#include "cli/base/utf8.h"
#include "cli/caption/caption_maps.h"
#include "cli/caption/captioner.h"
#include "cli/draw/picture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *model_name = CLI_CAPTIONER_SHIPPED, *attention_path, *background_name, *output_path;
static cli_caption_search search = {CLI_CAPTION_SEARCH_DEFAULTS};
static int64_t n_best = 1, threads;
static cli_types types;
static bool json, skip_broken;

static const cli_option options[] = {
    CLI_CAPTIONER_OPTION(&model_name),
    CLI_CAPTION_SEARCH(search),
    {"nbest", 'n', "N", .integer = &n_best, .min = 1, .max = 1024,
     .help = "print the N best captions of each image; at most --beam"},
    {"attention", 'a', "FILE", .text = &attention_path, .writes = true, .quiet = true,
     .help = "draw where in the first image each word of its caption comes from, to this file: " PICTURE_FORMATS},
    CLI_OUTPUT(&output_path),
    CLI_SHARD,
    CLI_BACKGROUND(&background_name),
    CLI_SKIP_BROKEN(&skip_broken),
    CLI_TYPES(types),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* ---- What is printed ---------------------------------------------------------- */

static void print_json(const cli_captioner *m, FILE *f, const char *path, const att_image_caption *c)
{
    cli_json j = cli_json_begin(f);
    cli_json_string(&j, "image", path);
    cli_json_array(&j, "captions");
    for (int64_t k = 0; k < n_best && c[k].text; k++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "text", c[k].text);
        cli_json_float(&j, "score", c[k].score);
        cli_json_array(&j, "words");
        for (int64_t i = 0; i < c[k].count; i++)
            cli_json_string(&j, NULL, att_caption_model_word(m->model, c[k].ids[i]));
        cli_json_end(&j);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

/* Prints a line for each caption, which can be cut at its tab. Tabs and line ends in a path become spaces. */
static void print_lines(const cli_captioner *m, FILE *f, const char *path, const att_image_caption *c)
{
    (void)m;
    for (int64_t k = 0; k < n_best && c[k].text; k++) {
        for (const char *p = path; *p; p++)
            putc(*p == '\t' || *p == '\n' || *p == '\r' ? ' ' : *p, f);
        fprintf(f, "\t%s\n", c[k].text);
    }
}

/* Prints the captions of an image for people. */
static void print_terminal(const cli_captioner *m, FILE *f, const char *path, const att_image_caption *c)
{
    (void)m;
    utf8_field(f, path, utf8_width(path), 0);
    putc('\n', f);
    for (int64_t k = 0; k < n_best && c[k].text; k++)
        fprintf(f, "  %s\n", c[k].text);
}

/* ---- The work ------------------------------------------------------------------ */

typedef struct work {
    cli_captioner m;
    cli_image_stream in;
    att_caption_options options;
    att_image_caption *caption; /* [in.room, n_best] */
    bool drawn;
} work;

static int draw(const work *w, const char *path, const att_image *image, const att_image_caption *c)
{
    picture file;
    caption_maps maps;
    const char *slash = strrchr(path, '/');
    int code = caption_maps_open(&maps, &w->m, image, c);
    if (code)
        return code;
    code = picture_open(&file, attention_path);
    if (!code)
        code = picture_close(&file, caption_maps_svg(file.svg, slash ? slash + 1 : path, &maps));
    caption_maps_free(&maps);
    return code;
}

static int print(work *w, const char *path, const att_image *image, const att_image_caption *c)
{
    static int terminal = -1;
    if (terminal < 0)
        terminal = cli_output_is_terminal(&w->in.out);
    path = strcmp(path, "-") ? path : "standard input";
    (json ? print_json : terminal ? print_terminal : print_lines)(&w->m, w->in.out.file, path, c);
    if (!attention_path || w->drawn)
        return CLI_DONE;
    w->drawn = true;
    return draw(w, path, image, c);
}

static int caption(void *user)
{
    work *w = user;
    int code = cli_captioner_caption(&w->m, w->in.count, w->in.image, &w->options, w->caption);
    if (code)
        return code;
    cli_progress_clear();
    for (int64_t i = 0; i < w->in.count; i++) {
        if (!code)
            code = print(w, w->in.path[i], &w->in.image[i], w->caption + i * n_best);
        for (int64_t k = 0; k < n_best; k++)
            att_image_caption_free(w->m.base.ctx, &w->caption[i * n_best + k]);
    }
    return code;
}

static int check(void)
{
    if (n_best > search.beam)
        return cli_misuse("--nbest: %lld captions need --beam %lld or more, not %lld", (long long)n_best,
                          (long long)n_best, (long long)search.beam);
    if (attention_path && !strcmp(attention_path, "-"))
        return cli_misuse("--attention - would be mixed with the captions: name a file");
    return CLI_DONE;
}

static int run(int n, char **arguments)
{
    work w = {.in = {.options.size = sizeof w.in.options, .skip_broken = skip_broken, .output = output_path}};
    uint8_t background[3];
    int code = check();
    if (!code)
        code = cli_read_background(background_name, background, &w.in.options);
    if (!code)
        code = cli_image_stream_open(&w.in, n, arguments);
    if (!code)
        code = cli_model_open(&w.m.base, &cli_captioner_kind, model_name, types, threads);
    if (!code)
        code = cli_caption_search_options(&search, &w.m, n_best, &w.options);
    if (!code && attention_path && !strcmp(w.m.info.attention, "none"))
        code =
            cli_fail("%s has no attention to draw: all words come from one context vector of the image", w.m.base.name);
    if (!code)
        code = cli_image_stream_start(&w.in, w.m.base.ctx);
    if (!code) {
        w.caption = malloc((size_t)(w.in.room * n_best) * sizeof *w.caption);
        code = w.caption ? CLI_DONE : cli_fail_memory();
    }
    if (!code)
        code = cli_image_stream_run(&w.in, caption, &w, attention_path);
    free(w.caption);
    cli_image_stream_close(&w.in);
    cli_model_close(&w.m.base);
    return code;
}

const cli_command cli_caption = {
    .name = "caption",
    .summary = "describe images by a sentence each",
    .arguments = "IMAGE...",
    .min_arguments = 1,
    .max_arguments = -1,
    .details =
        "Prints for each image (JPEG, PNG, WebP, TIFF; \"-\": standard input) the most probable caption that beam "
        "search finds, in the words of the captions that the model was trained on: lower case, without "
        "punctuation. A folder stands for the images in it and in its folders. Where the output is not a terminal, a "
        "line for each "
        "caption: path, tab, caption. An image that cannot be read is an error, but the others get their "
        "captions; with --skip-broken the command succeeds.\n\n"
        "--attention draws the first image as the model sees it, and once for each word of its caption, under "
        "colors that show what the locations of its grid get of the attention: of a recurrent decoder the weights "
        "that the word comes from, of a Transformer the mean of all heads of its last layer.",
    .examples = "attend caption dog.jpg\n"
                "attend caption --nbest 3 --json photos/\n"
                "attend caption --attention dog.svg dog.jpg",
    .options = options,
    .see = "classify|evaluate caption",
    .run = run,
};
