/* attend train caption: captions of images, from images with captions. */
#include "captioner.h"
#include "cli/base/progress.h"
#include "cli/base/skipped.h"
#include "cli/train/train.h"

#include <attend_nn.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum decoder { GRU, LSTM, TRANSFORMER };
enum attention { ADDITIVE, NONE };
enum { CIDER_IMAGES = 500, MAX_CHANNELS = 1 << 16 };

typedef struct caption_training {
    cli_training common;
    att_caption_set *train, *valid; /* valid NULL: no validation */
    att_caption_set_info info, valid_info;
    double first, begin; /* step of this process, and the share of --minutes after it */
    bool estimated;      /* the number of epochs in --minutes */
} caption_training;

static cli_captions captions;
static const char *train_list, *valid_list, *encoder, *channels;
static int decoder, attention = -1;
static int64_t image_size, hidden = 320, embedding, layers = 1, heads, intermediate, min_count = 5, max_words,
                           presence = -1, presence_epochs = -1, captions_per_image, crop;
static double doubly_stochastic, presence_weight, encoder_memory = 4, smoothing, dropout = 0.3;
static bool gate, flip;
static caption_training caption = {.common.options = {.epochs = 25,
                                                      .batch = 32,
                                                      .beta2 = 0.999,
                                                      .rate = 1e-3,
                                                      .schedule = ATT_SCHEDULE_COSINE,
                                                      .warmup = 0.05,
                                                      .decay = 0.01,
                                                      .clip = 5,
                                                      CLI_TRAINING_DEFAULTS}};

static const cli_option options[] = {
    CLI_CAPTIONS(captions),
    {"train-list", 0, "FILE", .text = &train_list,
     .help = "learn from the images that this file names, one a line; default: all that have captions"},
    {"valid-list", 0, "FILE", .text = &valid_list,
     .help = "validate by the images that this file names, and write the best model; default: no validation"},
    CLI_SKIP_BROKEN(&caption.common.images.skip_broken),
    CLI_BACKGROUND(&captions.background),
    CLI_TRAINING_FOLDER(caption.common.options),
    {"decoder", 0, "gru|lstm|transformer", .choice = &decoder, .help = "what writes the words"},
    {"attention", 0, "additive|none", .choice = &attention,
     .help =
         "gru, lstm: each word attends to the locations of the picture by an MLP, or all have its mean, one context "
         "vector; default: additive"},
    {"gate", 0, NULL, .flag = &gate,
     .help = "additive attention: a gate on the context of each word (beta in Show, Attend and Tell)"},
    {"doubly-stochastic", 0, "X", .number = &doubly_stochastic, .max = 1000,
     .help =
         "additive attention: weight of the term that makes all words together attend to each location as much (lambda "
         "in Show, Attend and Tell); 0: off"},
    {"hidden", 0, "N", .integer = &hidden, .min = 1, .max = 1 << 14, .help = "units of the decoder"},
    {"embedding", 0, "N", .integer = &embedding, .min = 1, .max = 1 << 14, .quiet = true,
     .help = "gru, lstm: features of a word; default: as many as --hidden"},
    {"layers", 0, "N", .integer = &layers, .min = 1, .max = 64, .help = "layers of the decoder"},
    {"heads", 0, "N", .integer = &heads, .min = 1, .max = 1 << 14, .quiet = true,
     .help = "transformer: attention heads of a layer; default: 4"},
    {"intermediate", 0, "N", .integer = &intermediate, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "transformer: features inside the feed-forward network; default: 4 times --hidden"},
    {"encoder", 'e', "MODEL", .text = &encoder,
     .help = "encode the images, each once, by this pre-trained vision Transformer, which is not trained; default: a "
             "new network of convolutions, which is trained"},
    {"encoder-memory", 0, "GB", .number = &encoder_memory, .max = 1e6, .above_min = true,
     .help = "--encoder: memory for the features of all images"},
    {"channels", 0, "LIST", .text = &channels,
     .help = "channels of the network of convolutions; each of its stages has half the rows and columns of the one "
             "before; default: 32,64,128,256"},
    {"image-size", 0, "N", .integer = &image_size, .min = 1, .max = 4096, .quiet = true,
     .help = "height and width to which images are resized, whatever their aspect is; default: 96"},
    {"min-count", 0, "N", .integer = &min_count, .min = 1, .max = 1 << 30,
     .help = "learn the words that occur N times or more; others are left out"},
    {"max-words", 0, "N", .integer = &max_words, .max = 1 << 24, .quiet = true,
     .help = "learn only the N most frequent words; 0, the default: all"},
    {"presence", 0, "N", .integer = &presence, .max = 1 << 24, .quiet = true,
     .help = "pre-training: predict from the image alone which of the N most frequent content words its captions have; "
             "0: off; default: 300, with --encoder 0"},
    {"presence-epochs", 0, "N", .integer = &presence_epochs, .max = 1 << 20, .quiet = true,
     .help = "number of epochs of this pre-training, which are the first ones; default: 40 % of --epochs, with "
             "--encoder 0"},
    {"presence-weight", 0, "X", .number = &presence_weight, .max = 1000,
     .help = "weight of the loss of word prediction in all other epochs, relative to that of captions; 0: off"},
    {"captions-per-image", 0, "N", .integer = &captions_per_image, .max = 1 << 16, .quiet = true,
     .help = "learn N captions of an image in each epoch, at random; 0, the default: all"},
    {"crop", 0, "PIXELS", .integer = &crop, .max = 1 << 12,
     .help = "shift images at random, by this many pixels at most"},
    {"flip", 0, NULL, .flag = &flip, .help = "flip half of the images, left and right"},
    {"label-smoothing", 0, "X", .number = &smoothing, .max = 0.99, .help = "label smoothing"},
    {"dropout", 0, "P", .number = &dropout, .max = 0.99, .help = "dropout probability"},
    CLI_SKIP_OPTION(&captions.skip_bad_lines, "--data"),
    CLI_TRAINING_EPOCHS(caption.common.options, "images", ""),
    CLI_TRAINING_OPTIONS(caption.common.options),
    {0},
};

/* ---- options --------------------------------------------------------------------- */

/* Refuses options that have no effect together with others. */
static int check_combinations(void)
{
    const bool transformer = decoder == TRANSFORMER, convolves = !encoder;
    const struct {
        bool wrong;
        const char *name, *why;
    } cases[] = {
        {transformer && attention >= 0, "attention", "is for --decoder gru and lstm: a Transformer has its own"},
        {transformer && gate, "gate", "is for --decoder gru and lstm"},
        {transformer && embedding, "embedding", "is for --decoder gru and lstm"},
        {transformer && doubly_stochastic > 0, "doubly-stochastic", "is for --decoder gru and lstm"},
        {!transformer && heads, "heads", "is for --decoder transformer"},
        {!transformer && intermediate, "intermediate", "is for --decoder transformer"},
        {attention == NONE && gate, "gate", "does not go with --attention none"},
        {attention == NONE && doubly_stochastic > 0, "doubly-stochastic", "does not go with --attention none"},
        {!convolves && channels, "channels", "does not go with --encoder, which has its own"},
        {!convolves && image_size, "image-size", "does not go with --encoder, which has its own"},
        {!convolves && crop, "crop", "does not go with --encoder, which encodes each image once"},
        {!convolves && flip, "flip", "does not go with --encoder, which encodes each image once"},
        {!convolves && presence_epochs > 0, "presence-epochs", "does not go with --encoder, which is not trained"},
        {valid_list && !train_list, "valid-list", "needs --train-list, or its images would be trained on"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (cases[i].wrong)
            return cli_misuse("--%s %s", cases[i].name, cases[i].why);
    if (presence == 0 && (presence_epochs > 0 || presence_weight > 0))
        return cli_misuse("--presence-%s does not go with --presence 0", presence_epochs > 0 ? "epochs" : "weight");
    return CLI_DONE;
}

/* Sets defaults that depend on other options; training.json gets them, too. */
static void complete_options(void)
{
    if (decoder == TRANSFORMER) {
        heads = heads ? heads : 4;
        intermediate = intermediate ? intermediate : 4 * hidden;
    } else {
        attention = attention < 0 ? ADDITIVE : attention;
        embedding = embedding ? embedding : hidden;
    }
    if (!encoder) {
        channels = channels ? channels : "32,64,128,256";
        image_size = image_size ? image_size : 96;
    }
    presence = presence >= 0 ? presence : encoder ? 0 : 300;
}

/* Sets the first epochs, of all, in which only presence is trained; it leaves some for captions. */
static int complete_presence(double epochs)
{
    if (presence_epochs < 0)
        presence_epochs = presence && !encoder ? (int64_t)(epochs * 2 / 5) : 0;
    return (double)presence_epochs < epochs
               ? CLI_DONE
               : cli_misuse("--presence-epochs %lld of --epochs %g leave none in which captions are trained",
                            (long long)presence_epochs, epochs);
}

/* Checks that sizes, including defaults, fit together. */
static int check_sizes(void)
{
    int stages = 1;
    for (const char *comma = channels; comma && (comma = strchr(comma, ',')); comma++)
        stages++;
    if (!encoder && stages < 16 && image_size % (1 << stages))
        return cli_misuse("--image-size %lld is not a multiple of %d, as %d stages (--channels) need it",
                          (long long)image_size, 1 << stages, stages);
    if (decoder == TRANSFORMER && hidden % heads)
        return cli_misuse("--hidden %lld cannot be shared by %lld heads (--heads)", (long long)hidden,
                          (long long)heads);
    if (decoder != TRANSFORMER && layers > ATT_NN_MAX_RECURRENT)
        return cli_misuse("--layers %lld is more than the %d that a GRU or an LSTM may have", (long long)layers,
                          ATT_NN_MAX_RECURRENT);
    return CLI_DONE;
}

/* --channels as a JSON list */
static int add_channels(json_t *root)
{
    json_t *list = json_array();
    const char *at = channels;
    do {
        char *end;
        const long long n = strtoll(at, &end, 10);
        if (end == at || n < 1 || n > MAX_CHANNELS || (*end && (*end != ',' || !end[1]))) {
            json_decref(list);
            return cli_misuse("--channels \"%s\" is not a list of numbers, 1 to %d, with commas between them", channels,
                              MAX_CHANNELS);
        }
        json_array_append_new(list, json_integer(n));
        at = *end ? end + 1 : end;
    } while (*at);
    return json_object_set_new(root, "channels", list) ? cli_fail_memory() : CLI_DONE;
}

static json_t *decoder_json(void)
{
    static const char *const names[] = {[GRU] = "gru", [LSTM] = "lstm", [TRANSFORMER] = "transformer"};
    return decoder == TRANSFORMER
               ? json_pack("{s:s, s:I, s:I, s:I, s:I}", "decoder", names[decoder], "hidden_size", (json_int_t)hidden,
                           "num_layers", (json_int_t)layers, "num_attention_heads", (json_int_t)heads,
                           "intermediate_size", (json_int_t)intermediate)
               : json_pack("{s:s, s:s, s:b, s:I, s:I, s:I}", "decoder", names[decoder], "attention",
                           attention == NONE ? "none" : "additive", "gate", gate, "hidden_size", (json_int_t)hidden,
                           "embedding_size", (json_int_t)embedding, "num_layers", (json_int_t)layers);
}

/* Writes the model's settings, malloc'd. */
static int write_settings(char **text)
{
    json_t *root = decoder_json();
    int code = root ? CLI_DONE : cli_fail_memory();
    if (!code && presence)
        code = json_object_set_new(root, "presence", json_integer(presence)) ? cli_fail_memory() : CLI_DONE;
    if (!code && !encoder)
        code =
            json_object_set_new(root, "image_size", json_integer(image_size)) ? cli_fail_memory() : add_channels(root);
    *text = code ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return code || *text ? code : cli_fail_memory();
}

/* ---- images and captions --------------------------------------------------------- */

static const char *path_of(const void *set, int64_t i) { return att_caption_set_path(set, i); }
static att_status leave_out(void *set, const bool *broken) { return att_caption_set_leave_out(set, broken); }

static int open_set(caption_training *t, const char *list, att_caption_set **out, att_caption_set_info *info)
{
    info->size = sizeof *info;
    int code = cli_captions_open(&captions, t->common.ctx, list, out);
    if (!code)
        code = cli_status(t->common.ctx, att_caption_set_describe(*out, info));
    if (!code)
        code = cli_training_images_check(&t->common.images, info->images, path_of, leave_out, *out);
    return code ? code : cli_status(t->common.ctx, att_caption_set_describe(*out, info));
}

static int by_name(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

/* Checks that no image is in both the training and the validation set. */
static int check_overlap(const caption_training *t)
{
    const int64_t n = t->info.images;
    int code = CLI_DONE;
    const char **paths = malloc((size_t)n * sizeof *paths);
    if (!paths)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        paths[i] = att_caption_set_path(t->train, i);
    qsort(paths, (size_t)n, sizeof *paths, by_name);
    for (int64_t i = 0; !code && i < t->valid_info.images; i++) {
        const char *path = att_caption_set_path(t->valid, i);
        if (bsearch(&path, paths, (size_t)n, sizeof *paths, by_name))
            code = cli_fail("%s is in both lists, %s and %s", path, train_list, valid_list);
    }
    free(paths);
    return code;
}

static int read_captions(void *training)
{
    caption_training *t = training;
    int code = open_set(t, train_list, &t->train, &t->info);
    if (!code && valid_list)
        code = open_set(t, valid_list, &t->valid, &t->valid_info);
    const int64_t n = t->info.images, of = t->common.options.batch < n ? t->common.options.batch : n;
    t->common.batches = of ? (n + of - 1) / of : 0;
    t->common.validates = t->valid != NULL;
    t->common.seconds_waiting = encoder ? NULL : att_training_caption_seconds_waiting;
    return code || !valid_list ? code : check_overlap(t);
}

static void report(const void *training, const att_training_info *info)
{
    const caption_training *t = training;
    (void)info;
    const att_caption_set_info *i = &t->info;
    fprintf(stderr, "%lld image%s with %lld caption%s (%s)", (long long)i->images, i->images == 1 ? "" : "s",
            (long long)i->captions, i->captions == 1 ? "" : "s", i->format);
    if (t->valid)
        fprintf(stderr, "; %lld with %lld for validation", (long long)t->valid_info.images,
                (long long)t->valid_info.captions);
    fputc('\n', stderr);
    if (i->empty)
        cli_note("%s: %lld caption%s without a word, left out", captions.data, (long long)i->empty,
                 i->empty == 1 ? "" : "s");
    cli_skipped_report(i->skipped, i->bad);
    if (!train_list && i->missing)
        cli_note("%lld image%s with captions %s not in %s, and left out", (long long)i->missing,
                 i->missing == 1 ? "" : "s", i->missing == 1 ? "is" : "are", captions.images);
    if (!train_list && i->uncaptioned)
        cli_note("%lld image%s in %s without a caption, and left out", (long long)i->uncaptioned,
                 i->uncaptioned == 1 ? " is" : "s are", captions.images);
    if (!t->valid)
        cli_note("there is no --valid-list for validation, so the model of the last step is written");
}

/* ---- validation ------------------------------------------------------------------- */

/* Returns whether the last step trained only word prediction. */
static bool trains_word_prediction(const caption_training *t)
{
    return att_training_steps(t->common.training) <= att_training_caption_word_prediction_steps(t->common.training);
}

static double epochs_of(const caption_training *t) { return cli_training_epochs(&t->common, (double)t->common.steps); }

/* Reports once how far the training will get in --minutes, after a twentieth of the remaining time. */
static void estimate(caption_training *t, double time, double step)
{
    if (t->first == 0) {
        t->first = step;
        t->begin = time;
    }
    const double share = time - t->begin, left = 1 - t->begin, steps = step - t->first;
    if (t->estimated || share < 0.05 * left || steps < 3)
        return;
    const double all = t->first + steps * left / share;
    t->estimated = true;
    if (all < 0.9 * (double)t->common.steps)
        cli_note("at this speed, --minutes %g ends after about %.2g of %g epochs", t->common.options.minutes,
                 cli_training_epochs(&t->common, all), epochs_of(t));
}

/* Limits word prediction, with --minutes, to its share of the time, so that the rest is left for captions. */
static int share_time(void *training)
{
    caption_training *t = training;
    if (t->common.options.minutes == 0)
        return CLI_DONE;
    const double time = cli_training_time(&t->common), step = (double)att_training_steps(t->common.training);
    estimate(t, time, step);
    if (!trains_word_prediction(t) || presence_epochs == 0 || time < (double)presence_epochs / epochs_of(t))
        return CLI_DONE;
    cli_note("word prediction has had its share of --minutes: from step %.0f on, captions are trained", step + 1);
    cli_training_forget(&t->common);
    return cli_status(t->common.ctx, att_training_caption_train_words(t->common.training));
}

/* Returns the quantity that the loss measures. */
static const char *quantity(const void *training)
{
    const caption_training *t = training;
    return presence_epochs > 0 && trains_word_prediction(t) ? "presence" : "loss";
}

static int validate_word_prediction(const caption_training *t, cli_validation *v)
{
    double loss = 0;
    v->unscored = true;
    const int code = cli_status(t->common.ctx, att_training_caption_losses(t->common.training, NULL, &loss));
    snprintf(v->log, sizeof v->log, ", \"valid_presence\": %.6f", loss);
    snprintf(v->shown, sizeof v->shown, ", on validation %.4f", loss);
    return code;
}

static int validate_words(const caption_training *t, cli_validation *v)
{
    att_ctx *ctx = t->common.ctx;
    att_training *training = t->common.training;
    double loss = 0, cider = 0;
    int code = cli_status(ctx, att_training_validate(training, &loss));
    if (!code)
        code = cli_status(ctx, att_training_caption_cider(training, CIDER_IMAGES, &cider));
    v->score = -loss;
    snprintf(v->log, sizeof v->log, ", \"valid_loss\": %.6f, \"cider\": %.4f", loss, cider);
    snprintf(v->shown, sizeof v->shown, ", on validation %.4f, CIDEr-D of greedy captions %.3f", loss, cider);
    return code;
}

static int validate(void *training, cli_validation *v)
{
    return (trains_word_prediction(training) ? validate_word_prediction : validate_words)(training, v);
}

/* ---- the run ---------------------------------------------------------------------- */

/* Refuses options that do not go together. Sets the encoder to its folder; with --resume to the training's copy,
 * because the original may have moved. */
static int check_options(void *training)
{
    cli_training *t = training;
    int code = check_combinations();
    if (code)
        return code;
    complete_options();
    code = check_sizes();
    if (!code && !t->options.steps)
        code = complete_presence(t->options.epochs);
    if (code || !encoder)
        return code;
    if (!t->options.resume)
        return cli_training_find_model(t, ATT_SUBJECT_VISION, &encoder);
    return (size_t)snprintf(t->model.text, sizeof t->model.text, "%s/encoder", t->options.folder) < sizeof t->model.text
               ? CLI_DONE
               : cli_fail("%s: the path is too long", t->options.folder);
}

static int open_training(void *training, const att_training_options *common)
{
    caption_training *t = training;
    const cli_training_options *o = &t->common.options;
    cli_share f = cli_share_of_call("images encoded", t->info.images + t->valid_info.images);
    char *settings;
    int code = complete_presence(epochs_of(t));
    if (!code)
        code = write_settings(&settings);
    if (code)
        return code;
    const att_caption_training_options *all = ATT_OPTIONS(
        att_caption_training_options, .captions = t->train, .valid = t->valid, .batch = o->batch,
        .captions_per_image = captions_per_image, .label_smoothing = (float)smoothing, .dropout = (float)dropout,
        .doubly_stochastic = (float)doubly_stochastic, .crop = crop, .flip = flip, .presence_epochs = presence_epochs,
        .presence_weight = (float)presence_weight, .settings = settings, .min_count = min_count, .max_words = max_words,
        .encoder = encoder ? t->common.model.text : NULL, .encoder_memory = (int64_t)(1e9 * encoder_memory),
        .progress = cli_share_report, .user = &f);
    const att_status s = att_caption_training_open(t->common.ctx, o->folder, common, all, &t->common.training);
    cli_share_end(&f);
    code = cli_training_status(t->common.ctx, s);
    free(settings);
    return code;
}

/* Returns whether there is no model yet, because only word prediction was trained and captions would have no
 * meaning. */
static bool has_no_model(void *training, bool stopped)
{
    const cli_training *t = training;
    const double minutes = t->options.minutes;
    const long long step = att_training_steps(t->training);
    const cli_shell_word name = cli_quoted(t->options.folder);
    if (presence_epochs == 0 || !trains_word_prediction(training))
        return false;
    if (stopped)
        cli_note("stopped after step %lld; only word prediction has been trained, so there is no model yet; attend "
                 "train caption --resume -o %s continues",
                 step, name.text);
    else
        cli_note("--minutes %g ended after step %lld; only word prediction has been trained, so there is no model "
                 "yet; attend train caption --resume -o %s --minutes %g continues",
                 minutes, step, name.text, 2 * minutes);
    return true;
}

static void close_training(void *training)
{
    caption_training *t = training;
    att_caption_set_free(t->valid);
    att_caption_set_free(t->train);
}

static const char *const same_files[] = {"data", "images", "train-list", "valid-list", "encoder", NULL};
static const cli_trainer trainer = {
    .command = "caption",
    .unit = "images",
    .sources = true,
    .validation = "--valid-list FILE",
    .score = "valid_loss",
    .measure = "loss per word",
    .digits = 4,
    .negative = true,
    .keeps_best = true,
    .options = options,
    .same_files = same_files,
    .check = check_options,
    .read = read_captions,
    .open = open_training,
    .report = report,
    .validate = validate,
    .quantity = quantity,
    .after_step = share_time,
    .has_no_model = has_no_model,
    .close = close_training,
};

static int complete(bool *given) { return cli_training_complete(&caption.common, &trainer, given); }

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    return cli_training_run(&caption.common);
}

const cli_command cli_train_caption = {
    .name = "caption",
    .summary = "train a model that describes pictures, on images with captions",
    .details = "Trains an image captioner (Show and Tell: Vinyals et al. 2015; Show, Attend and\n"
               "Tell: Xu et al. 2015) with AdamW. A network of convolutions makes a grid of\n"
               "vectors of a picture; a GRU, an LSTM or a Transformer writes the words. With\n"
               "--attention none it has one context vector for the whole picture; with\n"
               "additive attention each word attends to locations of its own, as a Transformer's\n"
               "do. In the first epochs only the convolutions are trained, to predict which words\n"
               "the captions of a picture have; then the whole model is trained to write\n"
               "captions. With --encoder, a pre-trained vision Transformer encodes the pictures\n"
               "instead.\n\n"
               "Captions are trained in lower case and without punctuation. Images are resized\n"
               "to a square, whatever their aspect is; the model's folder states it, and attend\n"
               "caption does the same.\n\n"
               "All images are decoded before the start, with all threads, and those that cannot\n"
               "be read are listed. --resume notices images that have changed. With --minutes\n"
               "the first epochs have no more than their share of the time; a model is written\n"
               "only once captions have been trained.\n\n"
               "With --valid-list, the model with the least loss per word is written.\n\n" CLI_TRAINING_DETAILS,
    .examples =
        "attend train caption --data Flickr8k.token.txt --images Images --train-list "
        "Flickr_8k.trainImages.txt --valid-list Flickr_8k.devImages.txt --gate -o captions\n"
        "attend train caption --data captions.txt --images photos --decoder transformer --layers 2 -o photos-tr\n"
        "attend train caption --resume -o captions",
    .options = options,
    .see = "caption|evaluate caption|train classify|plot",
    .complete = complete,
    .run = run,
};
