/* attend train classify: a vision Transformer from labeled images, or a classifier on the embeddings of a model. */
#include "cli/base/read_file.h"
#include "cli/base/signals.h"
#include "cli/sentence/pairs.h"
#include "cli/train/train.h"
#include "cli/vision/image_overlap.h"
#include "cli/vision/vision.h"
#include "probes.h"

#include <attend_probe.h>

#include <attend_metric.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum preset { TINY, SMALL, HYBRID };

typedef struct classify_training {
    cli_training common;
    att_image_set *images, *valid; /* valid NULL: no validation */
    att_image_set_info info;
    char *names; /* --labels, zero-terminated each */
    const char **label;
    int64_t n_labels;
    cli_whole_text config;
} classify_training;

static const char *data, *valid_path, *labels, *model_name, *config, *background, *group;
static int preset = -1, head = -1, format = CLI_PAIRS_BY_NAME;
static int64_t size, crop, cutout, neighbors, skip_bad_lines;
static double valid_share = 0.05, strength, mixup, smoothing = 0.1, dropout;
static bool flip, balance;
static classify_training classify = {.common.options = {.epochs = 20,
                                                        .batch = 128,
                                                        .beta2 = 0.999,
                                                        .rate = 1e-3,
                                                        .schedule = ATT_SCHEDULE_COSINE,
                                                        .warmup = 0.05,
                                                        .decay = 0.05,
                                                        .clip = 1,
                                                        CLI_TRAINING_DEFAULTS}};

static const cli_option options[] = {
    {"data", 'd', "FOLDER", .text = &data, .required = true,
     .help =
         "training images: a folder for each class; IDX files, as MNIST has them; or CIFAR-10's binary batches. With "
         "--head and a sentence model: a table of texts and their labels, which may end in .gz"},
    {"labels", 0, "NAMES", .text = &labels,
     .help = "names of the classes in their order, with commas between them; default: what the data states"},
    {"valid", 'v', "FOLDER", .text = &valid_path,
     .help = "images for validation, in a folder like that of --data; default: a share of the training images"},
    {"valid-share", 0, "SHARE", .number = &valid_share, .max = 0.9,
     .help = "share of each class's training images that are held out for validation, one at least; 0: no validation. "
             "With --head 0.2 is the default, and the final classifier is trained on these, too"},
    {"group", 0, "folder|REGEX", .text = &group,
     .help =
         "keep images together that are not independent, such as those of one animal, either in training or in "
         "validation: those in one folder; or those whose path, as toad/2021/toad_A014_0056.jpg, has the same match "
         "of a regular expression, or of its first parenthesis, as _(A\\d+)_"},
    CLI_SKIP_BROKEN(&classify.common.images.skip_broken),
    CLI_BACKGROUND(&background),
    CLI_TRAINING_FOLDER(classify.common.options),
    {"preset", 'p', "tiny|small|hybrid", .choice = &preset,
     .help = "model size: 6 layers of 128, 9 of 192, or 6 of 128 after two convolutions; default: tiny"},
    {"config", 0, "FILE", .text = &config,
     .help = "model configuration in the format of config.json; missing settings have their defaults"},
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "fine-tune this model; its classifier is new if its classes have other names. With --head: a vision model "
             "or a "
             "sentence model, which stays as it is"},
    {"head", 0, "linear|knn", .choice = &head,
     .help =
         "train only a classifier on the model's embeddings, in minutes: a linear probe (logistic regression), or the "
         "votes of the nearest neighbors"},
    {"c", 0, "C", .number = &strength, .max = 1e12, .quiet = true,
     .help = "linear: inverse strength of regularization, as in scikit-learn; default: the best on validation"},
    {"neighbors", 0, "N", .integer = &neighbors, .max = 1 << 20, .quiet = true,
     .help = "knn: number of neighbors that vote; default: 20"},
    {"format", 0, "tsv|csv", .choice = &format,
     .help = "format of a table of texts: tab-separated, or comma-separated with quotes (RFC 4180); default: by the "
             "file's extension"},
    CLI_SKIP_OPTION(&skip_bad_lines, "a table of texts"),
    {"size", 0, "N", .integer = &size, .max = 4096, .quiet = true,
     .help = "height and width of the model's images, to which others are resized; default: those of the data, 32 for "
             "folders of images"},
    {"crop", 0, "PIXELS", .integer = &crop, .max = 1 << 12,
     .help = "shift images at random, by this many pixels at most"},
    {"flip", 0, NULL, .flag = &flip, .help = "flip half of the images, left and right"},
    {"mixup", 0, "ALPHA", .number = &mixup, .max = 100,
     .help = "mix pairs of images, by shares from the beta distribution (ALPHA, ALPHA); 0: off, else at least 0.001"},
    {"cutout", 0, "PIXELS", .integer = &cutout, .max = 1 << 12,
     .help = "erase a square of this side from each image; 0: off"},
    {"balance", 0, NULL, .flag = &balance,
     .help = "for classes of unequal sizes: show images of each class equally often, those of small classes several "
             "times an epoch, and keep the model with the best balanced accuracy, the mean recall of all classes; with "
             "--head linear, give the images or texts of each class equal weight"},
    {"label-smoothing", 0, "X", .number = &smoothing, .max = 0.99, .help = "label smoothing"},
    {"dropout", 0, "P", .number = &dropout, .max = 0.99, .help = "dropout probability"},
    CLI_TRAINING_EPOCHS(classify.common.options, "images", ""),
    CLI_TRAINING_OPTIONS(classify.common.options),
    {0},
};

/* ---- images */

/* Splits --labels at its commas. */
static int read_labels(classify_training *t)
{
    if (!labels)
        return CLI_DONE;
    t->names = strdup(labels);
    t->label = malloc((strlen(labels) + 1) * sizeof *t->label);
    if (!t->names || !t->label)
        return cli_fail_memory();
    char *rest = t->names;
    for (char *name; (name = strsep(&rest, ","));) {
        if (!*name)
            return cli_misuse("--labels \"%s\" has an empty name", labels);
        t->label[t->n_labels++] = name;
    }
    return CLI_DONE;
}

/* Returns whether the names of the classes are only their numbers, as in IDX files. */
static bool is_numbered(const classify_training *t)
{
    bool numbered = true;
    for (int64_t i = 0; numbered && i < t->info.classes; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        numbered = !strcmp(att_image_set_label(t->images, i), number);
    }
    return numbered;
}

static int open_set(classify_training *t, const char *const *names, int64_t n)
{
    att_ctx *ctx = t->common.ctx;
    att_image_set_free(t->images);
    t->info.size = sizeof t->info;
    int code = cli_status(ctx, att_image_set_open(ctx, data, ATT_IMAGE_SPLIT_TRAIN, names, n, &t->images));
    if (!code)
        code = cli_set_background(background, t->images);
    return code ? code : cli_status(ctx, att_image_set_describe(t->images, &t->info));
}

static const char *path_of(const void *set, int64_t i) { return att_image_set_path(set, i); }
static att_status leave_out(void *set, const bool *broken) { return att_image_set_leave_out(set, broken); }

/* Checks images in files, and leaves out broken ones, if that is wanted. */
static int check_files(classify_training *t, att_image_set *set, att_image_set_info *info)
{
    if (!att_image_set_path(set, 0))
        return CLI_DONE;
    const int code = cli_training_images_check(&t->common.images, info->images, path_of, leave_out, set);
    return code ? code : cli_status(t->common.ctx, att_image_set_describe(set, info));
}

/* Classes that the data only numbers have the names of those of --model, if it has as many. */
static int name_as_model(classify_training *t)
{
    const int64_t n = t->info.classes;
    att_image_model *m;
    int code = cli_status(t->common.ctx, att_image_model_open(t->common.ctx, model_name, NULL, &m));
    const bool fits = !code && att_image_model_classes(m) == n;
    const char **names = fits ? malloc((size_t)n * sizeof *names) : NULL;
    for (int64_t i = 0; names && i < n; i++)
        names[i] = att_image_model_label(m, i);
    if (names)
        code = open_set(t, names, n);
    else if (fits)
        code = cli_fail_memory();
    free(names);
    att_image_model_free(m);
    return code;
}

/* Puts images into groups, and reports those that are alone because their names do not match. */
static int make_groups(const classify_training *t, att_image_set *set, const char *folder)
{
    int64_t alone = 0;
    att_image_set_info info = {.size = sizeof info};
    const att_status s = group ? att_image_set_group(set, group, &alone) : ATT_OK;
    if (s == ATT_ERR_ARGUMENT)
        return cli_misuse("--group: %s", att_error(t->common.ctx));
    int code = cli_status(t->common.ctx, s);
    if (!code)
        code = cli_status(t->common.ctx, att_image_set_describe(set, &info));
    if (!code && alone)
        cli_note("--group: %lld of %lld images in %s do not match, and each is a group of its own", (long long)alone,
                 (long long)info.images, folder);
    return code;
}

/* For validation, some of the images */
static int hold_out(classify_training *t)
{
    const att_status s = att_image_set_hold_out(t->images, valid_share, (uint64_t)t->common.options.seed, &t->valid);
    if (s == ATT_ERR_ARGUMENT)
        return cli_fail("%s: %s; use --valid FOLDER, or --valid-share 0 for no validation", data,
                        att_error(t->common.ctx));
    return s ? cli_status(t->common.ctx, s) : cli_status(t->common.ctx, att_image_set_describe(t->images, &t->info));
}

static int open_images(classify_training *t)
{
    att_ctx *ctx = t->common.ctx;
    int code = read_labels(t);
    if (!code)
        code = open_set(t, t->label, t->n_labels);
    if (!code && t->info.classes < 2)
        code = cli_fail("%s has only one class, \"%s\"; a training needs two", data, att_image_set_label(t->images, 0));
    if (!code && model_name && !labels && is_numbered(t))
        code = name_as_model(t);
    if (!code)
        code = check_files(t, t->images, &t->info);
    if (!code)
        code = make_groups(t, t->images, data);
    if (!code && !valid_path && valid_share > 0)
        code = hold_out(t);
    if (code || !valid_path)
        return code;
    const int64_t n = t->info.classes;
    const char **names = malloc((size_t)n * sizeof *names);
    if (!names)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        names[i] = att_image_set_label(t->images, i);
    att_image_set_info info = {.size = sizeof info};
    code = cli_status(ctx, att_image_set_open(ctx, valid_path, ATT_IMAGE_SPLIT_TEST, names, n, &t->valid));
    if (!code)
        code = cli_set_background(background, t->valid);
    if (!code)
        code = cli_status(ctx, att_image_set_describe(t->valid, &info));
    if (!code)
        code = check_files(t, t->valid, &info);
    if (!code)
        code = make_groups(t, t->valid, valid_path);
    free(names);
    return code;
}

static int read_images(void *training)
{
    classify_training *t = training;
    int code = open_images(t);
    if (!code && t->valid)
        code = cli_groups_refuse_shared(t->images, t->valid);
    t->common.validates = t->valid != NULL;
    t->common.batches = (t->info.images + t->common.options.batch - 1) / t->common.options.batch;
    t->common.seconds_waiting = att_training_image_seconds_waiting;
    return code;
}

static void report(const void *training, const att_training_info *info)
{
    const classify_training *t = training;
    const att_image_set_info *i = &t->info;
    att_image_set_info v = {.size = sizeof v};
    (void)info;
    fprintf(stderr, "%lld images of %lld classes", (long long)i->images, (long long)i->classes);
    if (i->ignored)
        fprintf(stderr, "; %s passed over", i->passed_over);
    if (t->valid && !att_image_set_describe(t->valid, &v))
        fprintf(stderr, "; %lld for validation", (long long)v.images);
    fputc('\n', stderr);
    if (t->valid && att_image_set_path(t->images, 0) && att_image_set_path(t->valid, 0))
        cli_images_note_twice(&t->common.images, t->images, t->valid);
}

/* Returns the balanced accuracy of the confusion matrix, which the training made. */
static int balanced_accuracy(const classify_training *t, const int64_t *confusion, att_interval *out)
{
    const int64_t classes = t->info.classes;
    int64_t *n = calloc(2 * (size_t)classes, sizeof *n), *right = n + classes;
    if (!n)
        return cli_fail_memory();
    for (int64_t c = 0; c < classes; c++) {
        right[c] = confusion[c * classes + c];
        for (int64_t k = 0; k < classes; k++)
            n[c] += confusion[c * classes + k];
    }
    const int code = cli_status(NULL, att_balanced_accuracy(right, n, classes, out));
    free(n);
    return code;
}

/* Adds a measure in percent to the line of the log and to what is shown. */
static void add_measure(cli_validation *v, const char *name, const char *shown, const att_interval *a)
{
    const size_t log = strlen(v->log), text = strlen(v->shown);
    snprintf(v->log + log, sizeof v->log - log, ", \"%s\": %.4f, \"%s_low\": %.4f, \"%s_high\": %.4f", name,
             100 * a->mean, name, 100 * a->low, name, 100 * a->high);
    snprintf(v->shown + text, sizeof v->shown - text, ", %s %.2f %% (%.2f to %.2f)", shown, 100 * a->mean, 100 * a->low,
             100 * a->high);
}

static int validate(void *training, cli_validation *v)
{
    const classify_training *t = training;
    att_ctx *ctx = t->common.ctx;
    const size_t classes = (size_t)t->info.classes;
    int64_t *confusion = balance ? malloc(classes * classes * sizeof *confusion) : NULL;
    att_image_set_info info = {.size = sizeof info};
    att_interval all = {0}, balanced = {0};
    int64_t correct = 0;
    if (balance && !confusion)
        return cli_fail_memory();
    int code = cli_status(ctx, att_training_image_correct(t->common.training, t->valid, &correct, confusion));
    if (!code)
        code = cli_status(ctx, att_image_set_describe(t->valid, &info));
    if (!code)
        code = cli_status(NULL, att_share_interval(correct, info.images, &all));
    if (!code && balance)
        code = balanced_accuracy(t, confusion, &balanced);
    free(confusion);
    if (code)
        return code;
    const att_interval *a = balance ? &balanced : &all;
    v->score = 100 * a->mean;
    v->low = 100 * a->low;
    v->high = 100 * a->high;
    add_measure(v, "accuracy", "on validation accuracy", &all);
    if (balance)
        add_measure(v, "balanced_accuracy", "balanced accuracy", &balanced);
    return CLI_DONE;
}

/* ---- the model */

enum { SETTINGS = 512 };
static const char *const presets[] = {
    [TINY] = "\"model_type\": \"vit\", \"hidden_size\": 128, \"num_hidden_layers\": 6, \"num_attention_heads\": 4, "
             "\"intermediate_size\": 256, \"patch_size\": 4",
    [SMALL] = "\"model_type\": \"vit\", \"hidden_size\": 192, \"num_hidden_layers\": 9, \"num_attention_heads\": 3, "
              "\"intermediate_size\": 384, \"patch_size\": 4",
    [HYBRID] = "\"model_type\": \"attend-vit\", \"stem\": [64, 128], \"pooling\": \"mean\", \"hidden_size\": 128, "
               "\"num_hidden_layers\": 6, \"num_attention_heads\": 4, \"intermediate_size\": 256",
};

enum { PRESET_PATCH = 4 }; /* the hybrid's convolutions halve twice */

/* Writes the settings of a new model as JSON: those of --config or of --preset. */
static int choose_settings(classify_training *t, char text[SETTINGS], const char **settings)
{
    const int64_t side = size ? size : t->info.height ? 0 : 32;
    const char *other = preset >= 0 ? "preset" : size ? "size" : NULL;
    if (config && model_name)
        return cli_misuse("--config does not go with --model, which has its own");
    if ((config || model_name) && other)
        return cli_misuse("--%s does not go with --%s, which has the sizes", other, config ? "config" : "model");
    if (config) {
        const int code = cli_whole_text_read(config, &t->config);
        *settings = t->config.text;
        return code;
    }
    if (side % PRESET_PATCH)
        return cli_misuse("--size %lld is not a multiple of %d, the side of a patch", (long long)side, PRESET_PATCH);
    int n = snprintf(text, SETTINGS, "{%s", presets[preset < 0 ? TINY : preset]);
    if (side)
        n += snprintf(text + n, (size_t)(SETTINGS - n), ", \"image_size\": %lld", (long long)side);
    snprintf(text + n, (size_t)(SETTINGS - n), "}");
    *settings = model_name ? NULL : text;
    return CLI_DONE;
}

static const cli_trainer by_accuracy;

/* The trainer with --balance */
static cli_trainer by_balanced_accuracy;

static int check_options(void *training)
{
    classify_training *t = training;
    if (balance) {
        by_balanced_accuracy = by_accuracy;
        by_balanced_accuracy.score = "balanced_accuracy";
        by_balanced_accuracy.measure = "balanced accuracy";
        t->common.kind = &by_balanced_accuracy;
    }
    return model_name ? cli_training_find_model(&t->common, ATT_SUBJECT_VISION, &model_name) : CLI_DONE;
}

static int open_training(void *training, const att_training_options *common)
{
    classify_training *t = training;
    const cli_training_options *o = &t->common.options;
    char text[SETTINGS];
    const char *settings = NULL;
    const int code = choose_settings(t, text, &settings);
    if (code)
        return code;
    const att_image_training_options *all =
        ATT_OPTIONS(att_image_training_options, .images = t->images, .batch = o->batch,
                    .label_smoothing = (float)smoothing, .dropout = (float)dropout, .crop = crop, .flip = flip,
                    .mixup = mixup, .cutout = cutout, .settings = settings, .model = model_name, .balance = balance);
    return cli_training_status(t->common.ctx,
                               att_image_training_open(t->common.ctx, o->folder, common, all, &t->common.training));
}

static void close_training(void *training)
{
    classify_training *t = training;
    att_image_set_free(t->valid);
    att_image_set_free(t->images);
    cli_whole_text_free(&t->config);
    free(t->label);
    free(t->names);
}

static const char *const same_files[] = {"data", "valid", "config", "model", NULL};
static const cli_trainer by_accuracy = {
    .command = "classify",
    .unit = "images",
    .validation = "images for validation: --valid FOLDER or --valid-share",
    .score = "accuracy",
    .measure = "accuracy",
    .digits = 2,
    .keeps_best = true,
    .options = options,
    .same_files = same_files,
    .check = check_options,
    .read = read_images,
    .open = open_training,
    .report = report,
    .validate = validate,
    .close = close_training,
};

/* ---- a classifier on embeddings */

/* Returns whether the name is in a list that ends with NULL. */
static bool is_in(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

/* Refuses options that are not for --head, or only for it; sets its defaults. */
static int complete_head(const bool *given)
{
    static const char *const shared[] = {"data",  "valid",  "valid-share", "output",  "model",
                                         "dtype", "labels", "skip-broken", "seed",    "threads",
                                         "json",  "group",  "background",  "balance", NULL},
                             *const own[] = {"head", "c", "neighbors", "format", "skip-bad-lines", NULL};
    for (int i = 0; options[i].name; i++) {
        const char *name = options[i].name;
        if (given[i] && head < 0 && is_in(own, name))
            return cli_misuse("--%s needs --head linear or knn", name);
        if (given[i] && head >= 0 && !is_in(own, name) && !is_in(shared, name))
            return cli_misuse("--%s does not go with --head, which trains no weights of the model", name);
        if (!given[i] && head >= 0 && !strcmp(name, "valid-share"))
            valid_share = 0.2;
    }
    if (head < 0)
        return CLI_DONE;
    if (head == ATT_PROBE_KIND_LINEAR && neighbors)
        return cli_misuse("--neighbors is for --head knn");
    if (head == ATT_PROBE_KIND_NEIGHBORS && (strength > 0 || balance))
        return cli_misuse("--%s is for --head linear", balance ? "balance" : "c");
    if (head == ATT_PROBE_KIND_LINEAR && strength == 0 && !valid_path && valid_share == 0)
        return cli_misuse("--valid-share 0 needs --c: without validation nothing chooses it");
    return CLI_DONE;
}

/* Options that are for images only. */
static int refuse_image_options(void)
{
    const char *other = labels                               ? "labels"
                        : group                              ? "group"
                        : background                         ? "background"
                        : classify.common.images.skip_broken ? "skip-broken"
                                                             : NULL;
    return other ? cli_misuse("--%s is for images, but %s is a sentence model", other, model_name) : CLI_DONE;
}

static int run_head(void)
{
    classify_training *t = &classify;
    const cli_training_options *o = &t->common.options;
    char command[4200];
    if (!model_name)
        return cli_misuse("--head needs --model, a vision model or a sentence model");
    const bool texts = cli_model_is(ATT_SUBJECT_SENTENCE, model_name);
    int code = texts ? refuse_image_options() : CLI_DONE;
    if (!code)
        code = cli_training_find_model(&t->common, texts ? ATT_SUBJECT_SENTENCE : ATT_SUBJECT_VISION, &model_name);
    if (!code)
        code = cli_open(&t->common.ctx, o->threads);
    t->common.images.ctx = t->common.ctx;
    cli_end_later(); /* a signal cancels, and leaves no folder */
    snprintf(command, sizeof command, "attend classify -m %s %s", cli_quoted(o->folder).text, texts ? "FILE" : "IMAGE");
    const cli_probe p = {.ctx = t->common.ctx,
                         .options = {.size = sizeof p.options,
                                     .kind = (att_probe_kind)head,
                                     .c = strength,
                                     .balanced = balance,
                                     .neighbors = neighbors},
                         .model = model_name,
                         .folder = o->folder,
                         .command = command,
                         .f16 = o->dtype,
                         .json = o->json};
    const cli_probe_texts from = {.path = data,
                                  .valid = valid_path,
                                  .share = valid_share,
                                  .seed = (uint64_t)o->seed,
                                  .format = format,
                                  .skip = skip_bad_lines};
    if (!code && texts)
        code = cli_probe_of_texts(&p, &from);
    if (!code && !texts)
        code = open_images(t);
    if (!code && !texts && t->valid)
        code = cli_groups_refuse_shared(t->images, t->valid);
    if (!code && !texts)
        code = cli_probe_images(&p, t->images, t->valid, !valid_path);
    cli_training_images_free(&t->common.images);
    close_training(t);
    att_close(t->common.ctx);
    return code;
}

/* ---- the command */

static int complete(bool *given)
{
    const int code = complete_head(given);
    return code || head >= 0 ? code : cli_training_complete(&classify.common, &by_accuracy, given);
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    return head >= 0 ? run_head() : cli_training_run(&classify.common);
}

const cli_command cli_train_classify = {
    .name = "classify",
    .summary = "train a classifier of images, or on embeddings of images or texts",
    .details = "Trains a vision Transformer (Dosovitskiy et al. 2021) with AdamW, in the format of\n"
               "ViTForImageClassification, which transformers opens, too. --preset hybrid has\n"
               "convolutions instead of patches (Hassani et al. 2021) and learns more from few\n"
               "images. With -m, a pre-trained model is fine-tuned.\n\n"
               "--data is a folder with a folder of images for each class, or with folders\n"
               "train and test (or val, valid, validation) that have these; or one with the\n"
               "IDX files of MNIST or Fashion-MNIST, which may be packed by gzip; or one with\n"
               "CIFAR-10's binary batches. Only the training part is read. For validation,\n"
               "a share of it is held out, the same with the same --seed.\n\n"
               "All images in files are decoded before the start, with all threads, and those\n"
               "that cannot be read are listed. --resume notices images that have changed.\n\n"
               "--head keeps the model as it is, embeds each image or text once and trains a\n"
               "classifier on the embeddings (linear probe, k-NN): the way for few images, and\n"
               "minutes instead of hours. linear is multinomial logistic regression by L-BFGS.\n"
               "knn stores the embeddings; the nearest ones by cosine vote, weighted by\n"
               "exp(cosine / 0.07), as in the evaluation of DINO (Caron et al. 2021). With a\n"
               "sentence model, rows of --data are a text and its label, or a heading names the\n"
               "columns text and label. Interrupted, --head leaves nothing.\n\n" CLI_TRAINING_DETAILS,
    .examples = "attend train classify --data /usr/share/datasets/fashion-mnist --crop 2 --flip -o fashion\n"
                "attend train classify --data photos --preset hybrid --size 64 --crop 6 --flip -o photos-vit\n"
                "attend train classify --head linear -m dinov2-small --data photos -o my-photos\n"
                "attend train classify --head knn -m all-MiniLM-L6-v2 --data topics.tsv -o topics\n"
                "attend train classify --resume -o fashion",
    .options = options,
    .see = "evaluate classify|train embed|plot",
    .complete = complete,
    .run = run,
};
