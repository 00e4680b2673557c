/* attend classify: the classes of images. */
#include "cli/base/json.h"
#include "cli/base/progress.h"
#include "cli/base/utf8.h"
#include "cli/draw/color.h"
#include "cli/draw/picture.h"
#include "cli/vision/image_attention.h"
#include "cli/vision/vision.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *model_name = CLI_VISION_SHIPPED, *attention_path, *background_name;
static int64_t top = 5, layer = -1, head = -1, threads;
static int dtype;
static bool json;

static const cli_option options[] = {
    CLI_VISION_MODEL_OPTION(&model_name),
    {"top", 'k', "N", .integer = &top, .min = 1, .max = INT32_MAX, .help = "number of classes to print for each image"},
    {"attention", 'a', "FILE", .text = &attention_path, .writes = true, .quiet = true,
     .help = "draw what the model attends to in the first image, to this file: " PICTURE_FORMATS},
    {"layer", 'l', "N", .integer = &layer, .max = 1000, .quiet = true,
     .help = "layer of --attention, from 0; default: rollout, the product of the attention of all layers"},
    {"head", 'H', "N", .integer = &head, .max = 1000, .quiet = true,
     .help = "head of --attention, from 0; default: the mean of all"},
    CLI_BACKGROUND(&background_name),
    CLI_DTYPE(&dtype),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* ---- What is printed ---------------------------------------------------------- */

/* The classes of largest probability [top], those of the same by their number. */
static void choose(const float *probability, int64_t classes, int64_t *best)
{
    int64_t count = 0;
    for (int64_t i = 0; i < classes; i++) {
        int64_t at = count;
        for (; at > 0 && probability[i] > probability[best[at - 1]]; at--)
            if (at < top)
                best[at] = best[at - 1];
        if (at < top)
            best[at] = i;
        count += count < top;
    }
}

static void print_json(const cli_vision *m, const char *path, const float *probability, const int64_t *best)
{
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "image", path);
    cli_json_array(&j, "classes");
    for (int64_t i = 0; i < top; i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "label", att_image_model_label(m->model, best[i]));
        cli_json_integer(&j, "class", best[i]);
        cli_json_float(&j, "probability", probability[best[i]]);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

/* Tabs and line ends are spaces. */
static void print_field(const char *text)
{
    for (; *text; text++)
        putchar(*text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text);
}

/* A line, to be cut at its tabs. */
static void print_line(const cli_vision *m, const char *path, const float *probability, const int64_t *best)
{
    print_field(path);
    for (int64_t i = 0; i < top; i++) {
        putchar('\t');
        print_field(att_image_model_label(m->model, best[i]));
        printf("\t%.4f", (double)probability[best[i]]);
    }
    putchar('\n');
}

/* For people: a line for each class, with a bar. */
static void print_bars(const cli_vision *m, const char *path, const float *probability, const int64_t *best)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    enum { BAR = 24 };
    static bool again;
    int widest = 0;
    for (int64_t i = 0; i < top; i++) {
        const int width = utf8_width(att_image_model_label(m->model, best[i]));
        widest = width > widest ? width : widest;
    }
    int room = terminal_columns(stdout) - 14;
    room = room < 4 ? 4 : room;
    const int bar = room / 2 < BAR ? room / 2 : BAR;
    widest = widest < room - bar ? widest : room - bar;
    fputs(again ? "\n" : "", stdout);
    again = true;
    utf8_field(stdout, path, utf8_width(path), 0);
    putchar('\n');
    for (int64_t i = 0; i < top; i++) {
        const double p = (double)probability[best[i]];
        const int length = (int)(p * 8 * bar + 0.5);
        printf("  %6.2f %%  ", 100 * p);
        utf8_field(stdout, att_image_model_label(m->model, best[i]), widest, 0);
        fputs("  ", stdout);
        for (int k = 0; k < length / 8; k++)
            fputs("█", stdout);
        puts(eighths[length % 8]);
    }
}

/* ---- The work ------------------------------------------------------------------ */

static int draw(const cli_vision *m, const char *path, const att_image *image, const char *label, double probability)
{
    image_attention a;
    picture file;
    char title[512];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int code = image_attention_open(&a, m, image, layer, head);
    if (code)
        return code;
    snprintf(title, sizeof title, "%.*s: %.*s, %.1f %%", utf8_prefix(name, 200), name, utf8_prefix(label, 200), label,
             100 * probability);
    code = picture_open(&file, attention_path);
    if (!code)
        code = picture_close(&file, image_attention_svg(file.svg, title, &a));
    image_attention_free(&a);
    return code;
}

typedef struct work {
    cli_vision m;
    cli_image_stream in;
    float *probability; /* [in.room, classes] */
    int64_t *best;      /* [top] */
    bool drawn;
} work;

static int work_open(work *w)
{
    top = top < w->m.info.classes ? top : w->m.info.classes;
    w->probability = malloc((size_t)(w->in.room * w->m.info.classes) * sizeof *w->probability);
    w->best = malloc((size_t)top * sizeof *w->best);
    return w->probability && w->best ? CLI_DONE : cli_fail_memory();
}

static int print(work *w, const char *path, const att_image *image, const float *probability)
{
    static int bars = -1;
    if (bars < 0)
        bars = isatty(STDOUT_FILENO);
    path = strcmp(path, "-") ? path : "standard input";
    choose(probability, w->m.info.classes, w->best);
    (json ? print_json : bars ? print_bars : print_line)(&w->m, path, probability, w->best);
    if (!attention_path || w->drawn)
        return CLI_DONE;
    w->drawn = true;
    return draw(&w->m, path, image, att_image_model_label(w->m.model, w->best[0]), (double)probability[w->best[0]]);
}

static int classify(void *user)
{
    work *w = user;
    int code = cli_vision_classify(&w->m, w->in.count, w->in.image, w->in.path, w->probability);
    cli_progress_clear();
    for (int64_t i = 0; !code && i < w->in.count; i++)
        code = print(w, w->in.path[i], &w->in.image[i], w->probability + i * w->m.info.classes);
    return code;
}

static int run(int n, char **arguments)
{
    work w = {.in = {.options.size = sizeof w.in.options}};
    uint8_t background[3];
    if (!attention_path && (layer >= 0 || head >= 0))
        return cli_misuse("--%s needs --attention FILE", layer >= 0 ? "layer" : "head");
    if (attention_path && !strcmp(attention_path, "-"))
        return cli_misuse("--attention - would be mixed with the classes: name a file");
    int code = cli_read_background(background_name, background, &w.in.options);
    if (!code)
        code = cli_image_stream_open(&w.in, n, arguments);
    if (!code)
        code = cli_model_open(&w.m.base, &cli_vision_kind, model_name, dtype, threads);
    if (!code && w.m.info.classes == 0)
        code = cli_fail("%s has no classifier; attend embed makes vectors of images by it", w.m.base.name);
    if (!code && attention_path)
        code = image_attention_check(&w.m, layer, head);
    if (!code)
        code = cli_image_stream_start(&w.in, w.m.base.ctx);
    if (!code)
        code = work_open(&w);
    if (!code)
        code = cli_image_stream_run(&w.in, classify, &w, attention_path);
    free(w.probability);
    free(w.best);
    cli_image_stream_close(&w.in);
    cli_model_close(&w.m.base);
    return code;
}

const cli_command cli_classify = {
    .name = "classify",
    .summary = "classify images, the most probable classes first",
    .arguments = "IMAGE...",
    .min_arguments = 1,
    .max_arguments = -1,
    .details =
        "Prints for each image (JPEG, PNG, WebP; \"-\": standard input) its most probable classes with their "
        "probabilities; a folder stands for the images in it. On a terminal they are bars, else each image "
        "is a line, separated by tabs: path, then label and probability of each class. An image that cannot be read "
        "is an error, but the others are classified.\n\n"
        "--attention draws the image as the model sees it, and once more under colors that show the "
        "attention of the token [CLS] to each patch; for a model without [CLS], the mean over all patches that attend.",
    .examples = "attend classify shoe.png\n"
                "attend classify -m vit-base-patch16-224 --top 3 photos/\n"
                "attend classify -m vit-base-patch16-224 --attention cat.png --layer 11 --head 0 cat.jpg",
    .options = options,
    .see = "attention|embed|search",
    .run = run,
};
