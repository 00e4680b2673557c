/* attend evaluate classify: accuracy, calibration and confusions of a classifier of images or of texts. */
#include "answers.h"
#include "cli/base/progress.h"
#include "cli/draw/picture.h"
#include "cli/sentence/pairs.h"
#include "cli/vision/vision.h"
#include "text_answers.h"

#include <stdlib.h>
#include <string.h>

enum { TRAIN, TEST }; /* words of --split */
enum { MAX_BLOCK = 128, SMALL = 1 << 17 };

static const char *model_name = CLI_VISION_SHIPPED, *data, *confusion_path, *wrong_path, *background;
static int split = TEST, format = CLI_PAIRS_BY_NAME;
static cli_types types;
static int64_t threads, skip_bad_lines;
static bool skip_broken, json;

static const cli_option options[] = {
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "model folder, or name of a vision model or text classifier in the models folder or of the one that comes "
             "with attend"},
    {"data", 'd', "FOLDER|FILE", .text = &data, .required = true,
     .help = "images: a folder for each class; IDX files, as MNIST has them; or CIFAR-10's binary batches. Of a text "
             "classifier: a table of texts and their labels, which may end in .gz"},
    {"split", 0, "train|test", .choice = &split, .help = "part of the images"},
    {"confusion", 0, "FILE", .text = &confusion_path, .writes = true, .quiet = true,
     .help = "draw the confusion matrix to this file: " PICTURE_FORMATS},
    {"wrong", 0, "FILE", .text = &wrong_path, .writes = true, .quiet = true,
     .help = "write the images or texts that were classified wrongly to this file, the most confident answers first: "
             "tab-separated path or text, class, answer and its probability"},
    {"format", 0, "tsv|csv", .choice = &format,
     .help = "format of a table of texts: tab-separated, or comma-separated with quotes (RFC 4180); default: by the "
             "file's extension"},
    CLI_SKIP_OPTION(&skip_bad_lines, "a table of texts"),
    CLI_BACKGROUND(&background),
    CLI_SKIP_BROKEN(&skip_broken),
    CLI_TYPES(types),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* The images and what they are classified as. */
typedef struct counts {
    cli_vision m;
    att_image_set *set;
    att_image_set_info set_info;
    cli_answers answers;
    /* The current block: */
    int64_t room, first; /* its number of images; the first of them */
    cli_image *read;     /* [room] */
    att_image *image;    /* [room]: those of them that could be read */
    int64_t *expected;   /* [room]: of these */
    int64_t *number;     /* [room]: of these, in the set */
    float *probability;  /* [room, classes] */
} counts;

/* ---- Counting ------------------------------------------------------------ */

static int count_block(counts *c, int64_t n)
{
    int64_t good = 0;
    int code = CLI_DONE;
    cli_images_read_set(c->m.base.ctx, c->set, c->first, n, c->read);
    for (int64_t i = 0; code != CLI_INTERRUPTED && i < n; i++) {
        code = cli_image_code(&c->read[i]);
        if (code)
            continue;
        c->image[good] = c->read[i].image;
        c->number[good] = c->first + i;
        c->expected[good++] = att_image_set_class(c->set, c->first + i);
    }
    c->answers.broken += n - good;
    code = code == CLI_INTERRUPTED ? code : CLI_DONE;
    if (!code && good)
        code = cli_vision_classify(&c->m, good, c->image, NULL, c->probability);
    for (int64_t i = 0; !code && i < good; i++)
        cli_answers_add(&c->answers, c->number[i], c->expected[i], c->probability + i * c->answers.classes);
    cli_images_free(c->m.base.ctx, n, c->read);
    return code;
}

static int count_all(counts *c)
{
    cli_progress line;
    cli_answers *a = &c->answers;
    int code = CLI_DONE;
    const double begin = cli_seconds();
    cli_progress_begin(&line);
    for (c->first = 0; !code && c->first < a->n; c->first += c->room) {
        cli_progress_show(&line, c->first, "images", (double)c->first / (double)a->n);
        const int64_t rest = a->n - c->first;
        code = count_block(c, rest < c->room ? rest : c->room);
    }
    cli_progress_end(&line);
    a->seconds = cli_seconds() - begin;
    if (!code && a->broken == a->n)
        return cli_fail("%s: no image can be read", data);
    if (!code && c->set_info.ignored)
        cli_note("%s: %s passed over", data, c->set_info.passed_over);
    if (!code && a->broken)
        cli_note("%lld of %lld images cannot be read, and %s not counted", (long long)a->broken, (long long)a->n,
                 a->broken == 1 ? "is" : "are");
    return code;
}

/* ---- The work ---------------------------------------------------------------- */

/* Returns whether the model's classes have names, not only numbers. */
static bool has_names(const cli_answers *a)
{
    bool names = false;
    for (int64_t i = 0; i < a->classes; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        names = names || strcmp(a->label[i], number) != 0;
    }
    return names;
}

static int open_set(counts *c)
{
    cli_answers *a = &c->answers;
    const bool named = has_names(a);
    int code =
        cli_status(c->m.base.ctx, att_image_set_open(c->m.base.ctx, data,
                                                     split == TRAIN ? ATT_IMAGE_SPLIT_TRAIN : ATT_IMAGE_SPLIT_TEST,
                                                     named ? a->label : NULL, named ? a->classes : 0, &c->set));
    if (!code)
        code = cli_set_background(background, c->set);
    if (!code)
        code = cli_status(c->m.base.ctx, att_image_set_describe(c->set, &c->set_info));
    if (!code && c->set_info.classes > a->classes)
        code = cli_fail("%s has %lld classes, but the model has %lld", data, (long long)c->set_info.classes,
                        (long long)a->classes);
    a->n = c->set_info.images;
    return code;
}

static int allocate(counts *c)
{
    const att_image_set_info *i = &c->set_info;
    const bool small = i->height && i->height * i->width * i->channels <= SMALL; /* bytes; 0: of any size */
    c->room = small ? MAX_BLOCK : cli_images_at_once(c->m.base.ctx);
    c->read = malloc((size_t)c->room * sizeof *c->read);
    c->number = malloc((size_t)c->room * sizeof *c->number);
    c->image = malloc((size_t)c->room * sizeof *c->image);
    c->expected = malloc((size_t)c->room * sizeof *c->expected);
    c->probability = malloc((size_t)(c->room * c->answers.classes) * sizeof *c->probability);
    return c->read && c->image && c->expected && c->number && c->probability ? CLI_DONE : cli_fail_memory();
}

static const char *path_of(const void *set, int64_t i) { return att_image_set_path(set, i); }

static int evaluate(counts *c, const cli_answers_options *o)
{
    cli_answers *a = &c->answers;
    a->ctx = c->m.base.ctx;
    a->unit = "images";
    a->compute = cli_model_compute(&c->m.base);
    a->classes = c->m.info.classes;
    if (!a->classes)
        return cli_fail("%s has no classifier", model_name);
    if (c->m.info.multi_label)
        return cli_fail("%s: its classes have probabilities of their own (\"problem_type\" of its config.json, or one "
                        "class); the accuracy of one class an image is not defined for it",
                        model_name);
    a->label = malloc((size_t)a->classes * sizeof *a->label);
    int code = a->label ? cli_answers_check(a, o) : cli_fail_memory();
    for (int64_t i = 0; !code && i < a->classes; i++)
        a->label[i] = att_image_model_label(c->m.model, i);
    if (!code)
        code = open_set(c);
    if (!code)
        code = allocate(c);
    if (!code)
        code = cli_answers_open(a, o);
    if (!code)
        code = count_all(c);
    if (!code)
        code = cli_answers_finish(a, o, path_of, c->set);
    return code ? code : a->broken && !skip_broken ? CLI_FAILED : CLI_DONE;
}

static int run_images(const cli_answers_options *o)
{
    counts c = {.set_info.size = sizeof c.set_info};
    int code = cli_model_open(&c.m.base, &cli_vision_kind, model_name, types, threads);
    if (!code)
        code = evaluate(&c, o);
    att_image_set_free(c.set);
    cli_answers_close(&c.answers);
    free(c.read);
    free(c.number);
    free(c.image);
    free(c.expected);
    free(c.probability);
    cli_model_close(&c.m.base);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    const cli_answers_options o = {.confusion = confusion_path, .wrong = wrong_path, .json = json};
    if (!cli_model_is(ATT_SUBJECT_CLASSIFIER, model_name))
        return run_images(&o);
    if (background || skip_broken)
        return cli_misuse("--%s is for images, but %s classifies texts", background ? "background" : "skip-broken",
                          model_name);
    const cli_texts_to_evaluate of = {.model = model_name,
                                      .data = data,
                                      .format = format,
                                      .skip = skip_bad_lines,
                                      .types = types,
                                      .threads = threads,
                                      .answers = &o};
    return cli_evaluate_texts(&of);
}

const cli_command cli_evaluate_classify = {
    .name = "classify",
    .summary = "measure how often a classifier names the right class of images or texts",
    .details = "Prints the accuracy with its 95 % interval (Wilson 1927), the balanced accuracy, how\n"
               "often the right class is among the first five, and the expected calibration error: how far\n"
               "probabilities are from frequencies (Guo et al. 2017). Then, for each class,\n"
               "precision (how many of the answers are right), recall (how many of its\n"
               "images are found), and which answers its images got, by their numbers, where the\n"
               "classes are not too many: at most 20, with --json 1000.\n\n"
               "An image that cannot be read is reported and not counted, and the command fails\n"
               "at the end; with --skip-broken it succeeds.\n\n"
               "--data is as in attend train classify; --split states which part is read. Where\n"
               "it names classes, the model must have the same names.\n\n"
               "With a text classifier, rows of --data are a text, for a classifier of pairs two, and\n"
               "the label, or a heading names the columns text and label.",
    .examples = "attend evaluate classify -m fashion-mnist --data /usr/share/datasets/fashion-mnist\n"
                "attend evaluate classify -m photos-vit --data photos --confusion photos.svg\n"
                "attend evaluate classify -m topics --data topics-test.tsv --wrong wrong.tsv",
    .options = options,
    .see = "classify|train classify",
    .run = run,
};
