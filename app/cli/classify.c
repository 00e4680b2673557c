/* attend classify: classifies images or texts. */
#include "cli/base/progress.h"
#include "cli/base/shard.h"
#include "cli/base/utf8.h"
#include "cli/classifier/classify_texts.h"
#include "cli/draw/classes.h"
#include "cli/draw/picture.h"
#include "cli/vision/image_attention.h"
#include "cli/vision/vision.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *model_name = CLI_VISION_SHIPPED, *attention_path, *background_name, *output_path;
static cli_texts_to_classify of_texts = {.format = CLI_PAIRS_BY_NAME};
static int64_t top = 5, layer = -1, head = -1, threads;
static cli_types types;
static bool json, skip_broken;

static const cli_option options[] = {
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "model folder, OWNER/NAME in the cache of the Hugging Face Hub, or name of a vision model or text "
             "classifier in the models folder or of the one that comes "
             "with attend"},
    {"top", 'k', "N", .integer = &top, .min = 1, .max = INT32_MAX,
     .help = "number of classes to print for each image or text"},
    CLI_FILE(&of_texts.file),
    {"text", 0, "TEXT", .texts = &of_texts.texts, .help = "text, instead of lines of files; may be given repeatedly"},
    {"pair", 0, "TEXT", .texts = &of_texts.pairs,
     .help = "second text of a pair, whose first one is the --text of the same number"},
    {"pairs", 'p', "FILE", .text = &of_texts.pairs_path,
     .help =
         "pairs of texts, one per line; a heading may name the columns, as sentence1 and sentence2; \"-\": standard "
         "input"},
    {"format", 0, "tsv|csv", .choice = &of_texts.format,
     .help = "format of --pairs: tab-separated, or comma-separated with quotes (RFC 4180); default: by the file's "
             "extension"},
    CLI_SKIP_OPTION(&of_texts.skip, "--pairs"),
    {"attention", 'a', "FILE", .text = &attention_path, .writes = true, .quiet = true,
     .help = "draw what the model attends to in the first image, to this file: " PICTURE_FORMATS},
    {"layer", 'l', "N", .integer = &layer, .max = 1000, .quiet = true,
     .help = "layer of --attention, from 0; default: rollout, the product of the attention of all layers"},
    {"head", 'H', "N", .integer = &head, .max = 1000, .quiet = true,
     .help = "head of --attention, from 0; default: the mean of all"},
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

static const char *label_of(const void *model, int64_t i) { return att_image_model_label(model, i); }

static cli_classes classes_of(const cli_vision *m)
{
    return (cli_classes){.model = m->model, .label = label_of, .n = m->info.classes, .top = top};
}

static void print_json(const cli_classes *c, FILE *f, const char *path, const float *probability, const int64_t *best)
{
    cli_json j = cli_json_begin(f);
    cli_json_string(&j, "image", path);
    cli_classes_json(c, &j, probability, best);
    cli_json_close(&j);
}

/* A line, to be cut at its tabs. */
static void print_line(const cli_classes *c, FILE *f, const char *path, const float *probability, const int64_t *best)
{
    cli_classes_field(f, path, strlen(path));
    cli_classes_line(c, f, probability, best);
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
        bars = cli_output_is_terminal(&w->in.out);
    path = strcmp(path, "-") ? path : "standard input";
    const cli_classes c = classes_of(&w->m);
    cli_classes_choose(&c, probability, w->best);
    if (!json && bars)
        cli_classes_bars(&c, path, probability, w->best);
    else
        (json ? print_json : print_line)(&c, w->in.out.file, path, probability, w->best);
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

/* Returns the first option given that is for texts; NULL: none. */
static const char *text_option(void)
{
    const struct {
        const char *name;
        bool given;
    } rules[] = {{"file", of_texts.file},
                 {"text", of_texts.texts.n > 0},
                 {"pair", of_texts.pairs.n > 0},
                 {"pairs", of_texts.pairs_path}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].given)
            return rules[i].name;
    return NULL;
}

static int run_images(int n, char **arguments)
{
    work w = {.in = {.options.size = sizeof w.in.options, .skip_broken = skip_broken, .output = output_path}};
    uint8_t background[3];
    if (!attention_path && (layer >= 0 || head >= 0))
        return cli_misuse("--%s needs --attention FILE", layer >= 0 ? "layer" : "head");
    if (attention_path && !strcmp(attention_path, "-"))
        return cli_misuse("--attention - would be mixed with the classes: name a file");
    int code = n == 0 ? cli_misuse("IMAGE... is needed") : CLI_DONE;
    if (!code)
        code = cli_read_background(background_name, background, &w.in.options);
    if (!code)
        code = cli_image_stream_open(&w.in, n, arguments);
    if (!code)
        code = cli_model_open(&w.m.base, &cli_vision_kind, model_name, types, threads);
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

static int run(int n, char **arguments)
{
    const char *given = text_option();
    if (given && cli_model_is(ATT_SUBJECT_VISION, model_name))
        return cli_misuse("--%s is of texts, but %s is not a text classifier; give one by -m", given, model_name);
    if (!given && !cli_model_is(ATT_SUBJECT_CLASSIFIER, model_name))
        return run_images(n, arguments);
    if (attention_path || background_name || skip_broken || layer >= 0 || head >= 0)
        return cli_misuse("--%s is of images, but %s classifies texts",
                          attention_path    ? "attention"
                          : background_name ? "background"
                          : skip_broken     ? "skip-broken"
                          : layer >= 0      ? "layer"
                                            : "head",
                          model_name);
    of_texts.model = model_name;
    of_texts.types = types;
    of_texts.threads = threads;
    of_texts.top = top;
    of_texts.json = json;
    of_texts.output = output_path;
    return cli_classify_texts(&of_texts, n, arguments);
}

const cli_command cli_classify = {
    .name = "classify",
    .summary = "classify images or texts, the most probable classes first",
    .arguments = "[IMAGE|FILE...]",
    .max_arguments = -1,
    .details =
        "Prints for each image (JPEG, PNG, WebP, TIFF; \"-\": standard input) its most probable classes with their "
        "probabilities; a folder stands for the images in it and in its folders. On a terminal they are bars, else "
        "each image "
        "is a line, separated by tabs: path, then label and probability of each class. An image that cannot be read "
        "is an error, but the others are classified; with --skip-broken the command succeeds.\n\n"
        "With a text classifier, as one of BertForSequenceClassification, the arguments are files whose lines are "
        "classified (default: standard input); or it classifies each --text, or pairs: those of --text and --pair, or "
        "of "
        "--pairs. Probabilities are those of the pipeline of transformers: the softmax, or a sigmoid of each label "
        "where "
        "the model has one label or \"problem_type\" multi_label_classification. A text that is too long is "
        "truncated, of a pair the longer text first.\n\n"
        "--attention draws the image as the model sees it, and once more under colors that show the "
        "attention of the token [CLS] to each patch; for a model without [CLS], the mean over all patches that attend.",
    .examples = "attend classify shoe.png\n"
                "attend classify -m emotions --text \"What a day!\"\n"
                "attend classify -m nli --json --text \"A cat sleeps.\" --pair \"An animal rests.\"\n"
                "attend classify -m vit-base-patch16-224 --top 3 photos/\n"
                "attend classify -m vit-base-patch16-224 --attention cat.png --layer 11 --head 0 cat.jpg",
    .options = options,
    .see = "attention|embed|rerank|search",
    .run = run,
};
