/* attend evaluate classify: accuracy, calibration and confusions of a classifier of images. */
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/utf8.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/picture.h"
#include "cli/vision/vision.h"

#include <attend_metric.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRAIN, TEST }; /* words of --split */
enum { MAX_BLOCK = 128, SMALL = 1 << 17, TOP = 5, BINS = 15, MAX_TABLE = 20, MAX_DRAWN = 100, MAX_JSON = 1000 };

static const char *model_name = CLI_VISION_SHIPPED, *data, *confusion_path, *wrong_path, *background;
static int split = TEST, dtype;
static int64_t threads;
static bool skip_broken, json;

static const cli_option options[] = {
    CLI_VISION_MODEL_OPTION(&model_name),
    {"data", 'd', "FOLDER", .text = &data, .required = true,
     .help = "images: a folder for each class; IDX files, as MNIST has them; or CIFAR-10's binary batches"},
    {"split", 0, "train|test", .choice = &split, .help = "part of the images"},
    {"confusion", 0, "FILE", .text = &confusion_path, .writes = true, .quiet = true,
     .help = "draw the confusion matrix to this file: " PICTURE_FORMATS},
    {"wrong", 0, "FILE", .text = &wrong_path, .writes = true, .quiet = true,
     .help =
         "write the images that were classified wrongly to this file, the most confident answers first: tab-separated "
         "path, class, answer and its probability"},
    CLI_BACKGROUND(&background),
    CLI_SKIP_BROKEN(&skip_broken),
    CLI_DTYPE(&dtype),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* Counts of a class: its images, the images that were classified as it, and those classified rightly */
typedef struct class_count {
    int64_t images, answers, right;
} class_count;

/* An image that was classified wrongly. */
typedef struct wrong_answer {
    int64_t image, class, answer;
    float probability; /* of the answer */
} wrong_answer;

/* The counts. */
typedef struct counts {
    cli_vision m;
    att_image_set *set;
    att_image_set_info set_info;
    int64_t classes, images; /* of the model; of the set, finally only those that could be read */
    int64_t broken;          /* the others */
    class_count *of;         /* [classes] */
    int64_t *confusion;      /* [classes, classes]: class, answer; NULL: it is not shown */
    int64_t counted, right, right_top;
    float *confidence;   /* [images]: the probability of the answer, of those that are counted */
    bool *is_right;      /* [images] */
    wrong_answer *wrong; /* [images]: the first `counted - right` ones, for --wrong; or NULL */
    att_interval accuracy, balanced;
    double calibration_error, seconds;
    /* The current block: */
    int64_t room, first; /* its number of images; the first of them */
    cli_image *read;     /* [room] */
    att_image *image;    /* [room]: those of them that could be read */
    int64_t *expected;   /* [room]: of these */
    int64_t *number;     /* [room]: of these, in the set */
    float *probability;  /* [room, classes] */
} counts;

/* ---- Counting ------------------------------------------------------------ */

static void count_image(counts *c, int64_t image, int64_t class, const float *p)
{
    int64_t answer = 0, above = 0; /* classes that are more probable than the right one */
    for (int64_t k = 0; k < c->classes; k++) {
        answer = p[k] > p[answer] ? k : answer;
        above += p[k] > p[class] || (p[k] == p[class] && k < class);
    }
    if (c->confusion)
        c->confusion[class * c->classes + answer]++;
    if (c->wrong && answer != class)
        c->wrong[c->counted - c->right] = (wrong_answer){image, class, answer, p[answer]};
    c->of[class].images++;
    c->of[answer].answers++;
    c->of[class].right += answer == class;
    c->right += answer == class;
    c->right_top += above < TOP;
    c->confidence[c->counted] = p[answer];
    c->is_right[c->counted++] = answer == class;
}

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
    c->broken += n - good;
    code = code == CLI_INTERRUPTED ? code : CLI_DONE;
    if (!code && good)
        code = cli_vision_classify(&c->m, good, c->image, NULL, c->probability);
    for (int64_t i = 0; !code && i < good; i++)
        count_image(c, c->number[i], c->expected[i], c->probability + i * c->classes);
    cli_images_free(c->m.base.ctx, n, c->read);
    return code;
}

static int count_all(counts *c)
{
    cli_progress line;
    int code = CLI_DONE;
    const double begin = cli_seconds();
    cli_progress_begin(&line);
    for (c->first = 0; !code && c->first < c->images; c->first += c->room) {
        cli_progress_show(&line, c->first, "images", (double)c->first / (double)c->images);
        const int64_t rest = c->images - c->first;
        code = count_block(c, rest < c->room ? rest : c->room);
    }
    cli_progress_end(&line);
    c->seconds = cli_seconds() - begin;
    if (!code && c->broken == c->images)
        return cli_fail("%s: no image can be read", data);
    c->images -= c->broken;
    if (!code && c->set_info.ignored)
        cli_note("%s: %s passed over", data, c->set_info.passed_over);
    if (!code && c->broken)
        cli_note("%lld of %lld images cannot be read, and %s not counted", (long long)c->broken,
                 (long long)(c->images + c->broken), c->broken == 1 ? "is" : "are");
    return code;
}

/* ---- Figures --------------------------------------------------------------- */

static double share(int64_t part, int64_t all) { return all ? (double)part / (double)all : NAN; }

/* Return precision and recall. Both are NAN if there are no images for them. */
static double precision(const class_count *n) { return share(n->right, n->answers); }
static double recall(const class_count *n) { return share(n->right, n->images); }

/* Computes the accuracy of all images, and the mean recall of the classes that have images. */
static int measure(counts *c)
{
    int64_t *n = malloc(2 * (size_t)c->classes * sizeof *n), *right = n + c->classes;
    if (!n)
        return cli_fail_memory();
    for (int64_t k = 0; k < c->classes; k++) {
        n[k] = c->of[k].images;
        right[k] = c->of[k].right;
    }
    int code = cli_status(NULL, att_share_interval(c->right, c->images, &c->accuracy));
    if (!code)
        code = cli_status(NULL, att_balanced_accuracy(right, n, c->classes, &c->balanced));
    free(n);
    return code;
}

/* Returns the interval of a recall; NAN if the class has no image. */
static att_interval recall_interval(const class_count *n)
{
    att_interval a = {NAN, NAN, NAN};
    if (n->images)
        att_share_interval(n->right, n->images, &a);
    return a;
}

/* ---- Wrong answers --------------------------------------------------------- */

static int by_confidence(const void *a, const void *b)
{
    const wrong_answer *x = a, *y = b;
    return x->probability != y->probability ? (x->probability < y->probability) - (x->probability > y->probability)
                                            : (x->image > y->image) - (x->image < y->image);
}

static void put_field(FILE *f, const char *text)
{
    for (; *text; text++)
        putc((unsigned char)*text < ' ' ? ' ' : *text, f);
}

static int write_wrong(const counts *c)
{
    cli_output out;
    const int64_t n = c->counted - c->right;
    int code = cli_output_open(&out, wrong_path);
    if (code)
        return code;
    qsort(c->wrong, (size_t)n, sizeof *c->wrong, by_confidence);
    fputs("image\tclass\tanswer\tprobability\n", out.file);
    for (int64_t i = 0; i < n; i++) {
        const wrong_answer *w = &c->wrong[i];
        const char *path = att_image_set_path(c->set, w->image);
        if (path)
            put_field(out.file, path);
        else
            fprintf(out.file, "%lld", (long long)w->image); /* of a file that has all images, from 0 */
        putc('\t', out.file);
        put_field(out.file, att_image_model_label(c->m.model, w->class));
        putc('\t', out.file);
        put_field(out.file, att_image_model_label(c->m.model, w->answer));
        fprintf(out.file, "\t%.4f\n", (double)w->probability);
    }
    return cli_output_close(&out, code);
}

/* ---- Printing --------------------------------------------------------------- */

static void put_percent(double x)
{
    if (isnan(x))
        fputs("         -", stdout);
    else
        printf("  %6.2f %%", 100 * x);
}

/* Prints a line for each class of the data, followed by the last part of its row of the confusion matrix if all rows
 * fit. */
static void print_classes(const counts *c)
{
    const bool matrix = c->classes <= MAX_TABLE;
    int width = 5, cell = 2;
    for (int64_t i = 0; i < c->classes; i++)
        width = (int)fmax(width, utf8_width(att_image_model_label(c->m.model, i)));
    width = (int)fmin(width, 24);
    for (int64_t n = c->images; n >= 10; n /= 10)
        cell++;
    printf("\n  #  %-*s  images  precision    recall    (95 %%)       ", width, "class");
    for (int64_t k = 0; matrix && k < c->classes; k++)
        printf("%*lld", cell, (long long)k);
    printf("%s\n", matrix ? "  (answers)" : "");
    for (int64_t i = 0; i < c->classes; i++) {
        const class_count *n = &c->of[i];
        if (!n->images && !n->answers)
            continue;
        printf("%3lld  ", (long long)i);
        utf8_field(stdout, att_image_model_label(c->m.model, i), width, 0);
        printf("  %6lld ", (long long)n->images);
        put_percent(precision(n));
        put_percent(recall(n));
        const att_interval a = recall_interval(n);
        if (isnan(a.mean))
            printf("%18s", "");
        else
            printf("  (%5.1f to %5.1f)", 100 * a.low, 100 * a.high);
        for (int64_t k = 0; matrix && k < c->classes; k++)
            printf("%*lld", cell, (long long)c->confusion[i * c->classes + k]);
        putchar('\n');
    }
}

static void print_top(const counts *c)
{
    att_interval a = {0};
    att_share_interval(c->right_top, c->images, &a);
    printf("top %d        %6.2f %%  from %.2f to %.2f (95 %%)\n", TOP, 100 * a.mean, 100 * a.low, 100 * a.high);
}

static void print_text(const counts *c)
{
    const att_interval *a = &c->accuracy, *b = &c->balanced;
    printf("accuracy     %6.2f %%  from %.2f to %.2f (95 %%): %lld of %lld images\n", 100 * a->mean, 100 * a->low,
           100 * a->high, (long long)c->right, (long long)c->images);
    printf("balanced     %6.2f %%  from %.2f to %.2f (95 %%): the mean recall of the classes\n", 100 * b->mean,
           100 * b->low, 100 * b->high);
    if (c->classes > TOP)
        print_top(c);
    printf("calibration  %6.2f %%  expected error of the probabilities, %d bins\n", 100 * c->calibration_error, BINS);
    printf("%.0f images/s\n", (double)c->images / c->seconds);
    print_classes(c);
}

static void json_classes(cli_json *j, const counts *c)
{
    cli_json_array(j, "classes");
    for (int64_t i = 0; i < c->classes; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "label", att_image_model_label(c->m.model, i));
        cli_json_integer(j, "images", c->of[i].images);
        cli_json_number(j, "precision", precision(&c->of[i]), 8);
        const att_interval a = recall_interval(&c->of[i]);
        cli_json_number(j, "recall", a.mean, 8);
        cli_json_number(j, "recall_low", a.low, 8);
        cli_json_number(j, "recall_high", a.high, 8);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void json_confusion(cli_json *j, const counts *c)
{
    cli_json_array(j, "confusion");
    for (int64_t i = 0; i < c->classes; i++) {
        cli_json_array(j, NULL);
        for (int64_t k = 0; k < c->classes; k++)
            cli_json_integer(j, NULL, c->confusion[i * c->classes + k]);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_json(const counts *c)
{
    const att_interval *a = &c->accuracy, *b = &c->balanced;
    att_interval top = {0};
    att_share_interval(c->right_top, c->images, &top);
    cli_json j = cli_json_begin(stdout);
    cli_json_integer(&j, "images", c->images);
    cli_json_integer(&j, "right", c->right);
    if (c->broken)
        cli_json_integer(&j, "broken", c->broken);
    cli_json_number(&j, "accuracy", a->mean, 8);
    cli_json_number(&j, "low", a->low, 8);
    cli_json_number(&j, "high", a->high, 8);
    cli_json_number(&j, "balanced_accuracy", b->mean, 8);
    cli_json_number(&j, "balanced_low", b->low, 8);
    cli_json_number(&j, "balanced_high", b->high, 8);
    if (c->classes > TOP) {
        cli_json_number(&j, "top5", top.mean, 8);
        cli_json_number(&j, "top5_low", top.low, 8);
        cli_json_number(&j, "top5_high", top.high, 8);
    }
    cli_json_number(&j, "calibration_error", c->calibration_error, 8);
    cli_json_fixed(&j, "seconds", c->seconds, 3);
    json_classes(&j, c);
    if (c->classes <= MAX_JSON)
        json_confusion(&j, c);
    cli_json_end(&j);
}

static int print(const counts *c)
{
    cli_output out;
    const int code = cli_output_open(&out, NULL);
    if (code)
        return code;
    if (json)
        print_json(c);
    else
        print_text(c);
    return cli_output_close(&out, code);
}

/* Draws the confusion matrix. Rows sum to 1, so the diagonal has the recall. */
static int draw(const counts *c)
{
    const int64_t n = c->classes;
    float *weights = calloc((size_t)(n * n), sizeof *weights);
    const char **labels = malloc((size_t)n * sizeof *labels);
    picture p;
    char title[256];
    int code = weights && labels ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < n; i++) {
        const int64_t images = c->of[i].images;
        labels[i] = att_image_model_label(c->m.model, i);
        for (int64_t k = 0; images && k < n; k++)
            weights[i * n + k] = (float)share(c->confusion[i * n + k], images);
    }
    snprintf(title, sizeof title, "Confusions of %lld images, %.2f %% right (%.2f to %.2f)", (long long)c->images,
             100 * c->accuracy.mean, 100 * c->accuracy.low, 100 * c->accuracy.high);
    if (!code)
        code = picture_open(&p, confusion_path);
    if (!code) {
        const heatmap h = {labels, labels, n, n, weights, "class (row)", "answer (column)", ""};
        heatmap_svg(p.svg, title, &h);
        code = picture_close(&p, CLI_DONE);
    }
    free(labels);
    free(weights);
    return code;
}

/* ---- The work ---------------------------------------------------------------- */

/* Returns whether the model's classes have names, not only numbers. */
static bool has_names(const counts *c)
{
    bool names = false;
    for (int64_t i = 0; i < c->classes; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        names = names || strcmp(att_image_model_label(c->m.model, i), number) != 0;
    }
    return names;
}

static int open_set(counts *c)
{
    const char **labels = malloc((size_t)c->classes * sizeof *labels);
    const bool named = has_names(c);
    if (!labels)
        return cli_fail_memory();
    for (int64_t i = 0; i < c->classes; i++)
        labels[i] = att_image_model_label(c->m.model, i);
    int code =
        cli_status(c->m.base.ctx, att_image_set_open(c->m.base.ctx, data,
                                                     split == TRAIN ? ATT_IMAGE_SPLIT_TRAIN : ATT_IMAGE_SPLIT_TEST,
                                                     named ? labels : NULL, named ? c->classes : 0, &c->set));
    free(labels);
    if (!code)
        code = cli_set_background(background, c->set);
    if (!code)
        code = cli_status(c->m.base.ctx, att_image_set_describe(c->set, &c->set_info));
    if (!code && c->set_info.classes > c->classes)
        code = cli_fail("%s has %lld classes, but the model has %lld", data, (long long)c->set_info.classes,
                        (long long)c->classes);
    c->images = c->set_info.images;
    return code;
}

static int allocate(counts *c)
{
    const att_image_set_info *i = &c->set_info;
    const bool small = i->height && i->height * i->width * i->channels <= SMALL; /* bytes; 0: of any size */
    const bool matrix = confusion_path || c->classes <= (json ? MAX_JSON : MAX_TABLE);
    c->room = small ? MAX_BLOCK : cli_images_at_once(c->m.base.ctx);
    c->of = calloc((size_t)c->classes, sizeof *c->of);
    c->confusion = matrix ? calloc((size_t)(c->classes * c->classes), sizeof *c->confusion) : NULL;
    c->confidence = malloc((size_t)c->images * sizeof *c->confidence);
    c->is_right = malloc((size_t)c->images * sizeof *c->is_right);
    c->wrong = wrong_path ? malloc((size_t)c->images * sizeof *c->wrong) : NULL;
    c->read = malloc((size_t)c->room * sizeof *c->read);
    c->number = malloc((size_t)c->room * sizeof *c->number);
    c->image = malloc((size_t)c->room * sizeof *c->image);
    c->expected = malloc((size_t)c->room * sizeof *c->expected);
    c->probability = malloc((size_t)(c->room * c->classes) * sizeof *c->probability);
    return c->of && !matrix == !c->confusion && !wrong_path == !c->wrong && c->confidence && c->is_right && c->read &&
                   c->image && c->expected && c->number && c->probability
               ? CLI_DONE
               : cli_fail_memory();
}

static int evaluate(counts *c)
{
    c->classes = c->m.info.classes;
    if (!c->classes)
        return cli_fail("%s has no classifier", model_name);
    if (c->m.info.multi_label)
        return cli_fail("%s: its classes have probabilities of their own (\"problem_type\" of its config.json, or one "
                        "class); the accuracy of one class an image is not defined for it",
                        model_name);
    if (confusion_path && c->classes > MAX_DRAWN)
        return cli_misuse("--confusion: the model has %lld classes, at most %d can be drawn", (long long)c->classes,
                          MAX_DRAWN);
    int code = open_set(c);
    if (!code)
        code = allocate(c);
    if (!code)
        code = count_all(c);
    if (!code)
        code = cli_status(c->m.base.ctx, att_calibration_error(c->m.base.ctx, c->confidence, c->is_right, c->images,
                                                               BINS, &c->calibration_error));
    if (!code)
        code = measure(c);
    if (!code && wrong_path)
        code = write_wrong(c);
    if (code)
        return code;
    const int drawn = confusion_path ? draw(c) : CLI_DONE; /* first: | head ends the output below */
    code = print(c);
    return code ? code : drawn ? drawn : c->broken && !skip_broken ? CLI_FAILED : CLI_DONE;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    counts c = {.set_info.size = sizeof c.set_info};
    int code = cli_model_open(&c.m.base, &cli_vision_kind, model_name, dtype, threads);
    if (!code)
        code = evaluate(&c);
    att_image_set_free(c.set);
    free(c.of);
    free(c.confusion);
    free(c.confidence);
    free(c.is_right);
    free(c.read);
    free(c.wrong);
    free(c.number);
    free(c.image);
    free(c.expected);
    free(c.probability);
    cli_model_close(&c.m.base);
    return code;
}

const cli_command cli_evaluate_classify = {
    .name = "classify",
    .summary = "measure how often a vision model names the right class of images",
    .details = "Prints the accuracy with its 95 % interval (Wilson 1927), the balanced accuracy, how\n"
               "often the right class is among the first five, and the expected calibration error: how far\n"
               "probabilities are from frequencies (Guo et al. 2017). Then, for each class,\n"
               "precision (how many of the answers are right), recall (how many of its\n"
               "images are found), and which answers its images got, by their numbers, where the\n"
               "classes are not too many: at most 20, with --json 1000.\n\n"
               "An image that cannot be read is reported and not counted, and the command fails\n"
               "at the end; with --skip-broken it succeeds.\n\n"
               "--data is as in attend train classify; --split states which part is read. Where\n"
               "it names classes, the model must have the same names.",
    .examples = "attend evaluate classify -m fashion-mnist --data /usr/share/datasets/fashion-mnist\n"
                "attend evaluate classify -m photos-vit --data photos --confusion photos.svg",
    .options = options,
    .see = "classify|train classify",
    .run = run,
};
