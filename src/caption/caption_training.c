/* Training of a captioner (Vinyals et al. 2015; Xu et al. 2015): mean cross entropy per word, after epochs in which the
 * encoder alone is trained, by word prediction. */
#include "util/util.h"
#include "model/checksum.h"
#include "caption/caption_batches.h"
#include "caption/caption_validation.h"
#include "caption/caption_images.h"
#include "train/shuffle.h"
#include "train/training.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MAX_CROP = 1 << 14, MAX_BATCH = 1 << 16, MIN_POSITIONS = 64 };

typedef struct caption_data {
    att_training_base base;
    att_captioner *model;
    att_caption_training_options options;
    att_caption_set_info set, valid_set; /* of options.captions and .valid */
    att_words words;
    att_caption_batches *captions, *valid;
    att_caption_images images;
    uint32_t *order;               /* [images]: of the current epoch */
    int64_t epoch;                 /* its number */
    int64_t word_prediction_steps; /* the first steps, which train word prediction alone */
    uint64_t start;                /* a checksum of the settings; the weights follow from them and the seed */
} caption_data;

/* ---- words */

static att_status make_words(caption_data *t)
{
    const att_caption_training_options *o = &t->options;
    att_word_counts counts;
    att_status e = ATT_OK;
    att_word_counts_init(&counts, t->base.ctx);
    for (int64_t i = 0; !e && i < t->set.images; i++)
        for (int64_t k = 0; !e && k < att_caption_set_count(o->captions, i); k++)
            e = att_word_counts_add(&counts, att_caption_set_caption(o->captions, i, k));
    e = e ? e : att_words_make(&t->words, &counts, o->min_count, o->max_words);
    att_word_counts_free(&counts);
    return e;
}

static att_status open_captions(caption_data *t, const att_caption_set *set, const char *name,
                                att_caption_batches **out)
{
    const att_captioner_config *c = &t->model->config;
    const att_caption_source source = {.set = set,
                                       .name = name,
                                       .words = &t->words,
                                       .max_positions = c->max_positions,
                                       .presence = c->presence,
                                       .max = t->options.batch,
                                       .per_image = out == &t->valid ? 0 : t->options.captions_per_image,
                                       .seed = t->base.common.seed};
    return att_caption_batches_new(t->base.ctx, &source, out);
}

/* ---- the model */

/* Sets what follows from the captions or the encoder; settings that state something else are refused. Numbers are real,
 * as att_settings_parse makes them. */
static att_status imply(const caption_data *t, json_t *root, const char *key, json_t *value, const char *of)
{
    const json_t *given = json_object_get(root, key);
    att_status e = ATT_OK;
    if (!value)
        e = att_fail(t->base.ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
    else if (given && !json_equal(given, value))
        e = att_fail(t->base.ctx, ATT_ERR_FORMAT, "the model's settings: \"%s\" is %s, but %s %s", key,
                     att_json_show(given).text, of, att_json_show(value).text);
    else if (!given && json_object_set(root, key, value))
        e = att_fail(t->base.ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
    json_decref(value);
    return e;
}

static att_status imply_encoder(const caption_data *t, json_t *root)
{
    const att_caption_encoder *v = &t->images.encoder;
    if (!v->model)
        return imply(t, root, "encoder", json_string("cnn"), "without options.encoder it is");
    att_status e = imply(t, root, "encoder", json_string("vit"), "with options.encoder it is");
    e = e ? e : imply(t, root, "grid", json_pack("[f, f]", (double)v->grid[0], (double)v->grid[1]), "the encoder has");
    return e ? e : imply(t, root, "encoder_hidden_size", json_real((double)v->info.hidden), "the encoder has");
}

/* Of no more words than there are. */
static att_status limit_predicted_words(const caption_data *t, json_t *root)
{
    const double wanted = json_number_value(json_object_get(root, "presence"));
    const int64_t all = att_words_size(&t->words);
    int32_t *ids = wanted >= 1 ? att_alloc(t->base.ctx, (size_t)all, sizeof *ids) : NULL;
    if (!(wanted >= 1))
        return ATT_OK;
    if (!ids)
        return ATT_ERR_MEMORY;
    const int64_t n = att_words_content(&t->words, ids, wanted < (double)all ? (int64_t)wanted : all);
    att_free(t->base.ctx, ids);
    if (n == 0)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "\"presence\" is %g, but of the %lld words that the captions have often enough none has a "
                        "meaning of its own: expected 0",
                        wanted, (long long)all);
    return json_object_set_new(root, "presence", json_real((double)n))
               ? att_fail(t->base.ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model")
               : ATT_OK;
}

static att_status complete_settings(const void *self, json_t *root)
{
    const caption_data *t = self;
    const int64_t longest = att_max(t->set.max_words, t->valid_set.max_words) + 1;
    const struct {
        const char *key;
        int64_t value;
    } words[] = {{"vocab_size", att_words_size(&t->words)},
                 {"unk_token_id", att_words_unknown(&t->words)},
                 {"eos_token_id", att_words_end(&t->words)}};
    att_status e = imply(t, root, "model_type", json_string(ATT_CAPTIONER_TYPE), "a captioner's is");
    e = e ? e : imply_encoder(t, root);
    for (int i = 0; !e && i < 3; i++)
        e = imply(t, root, words[i].key, json_real((double)words[i].value), "the words of the captions make it");
    e = e ? e : limit_predicted_words(t, root);
    if (!e && !json_object_get(root, "max_positions"))
        e = imply(t, root, "max_positions", json_real((double)att_max(longest, MIN_POSITIONS)), "");
    if (!e && !t->images.encoder.model && !json_object_get(root, "num_channels"))
        e = imply(t, root, "num_channels", json_real(3), "");
    return e;
}

static att_status make_model(caption_data *t)
{
    att_settings s;
    att_status e = att_settings_complete(&s, t->base.ctx, t->options.settings, complete_settings, t);
    e = e ? e : att_captioner_make(t->base.ctx, &s, t->base.common.seed, &t->model);
    att_settings_close(&s);
    return e;
}

/* ---- options that depend on the model */

static att_status check_model(const caption_data *t)
{
    const att_caption_training_options *o = &t->options;
    const att_captioner_config *c = &t->model->config;
    if ((o->presence_epochs || o->presence_weight > 0) && !c->presence)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "options.presence_%s is %g, but \"presence\", the number of words of word prediction, is "
                        "0",
                        o->presence_epochs ? "epochs" : "weight",
                        o->presence_epochs ? (double)o->presence_epochs : (double)o->presence_weight);
    if (o->doubly_stochastic > 0 && (!c->attention || c->decoder == ATT_CAPTIONER_TRANSFORMER))
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "options.doubly_stochastic is %g, but only a decoder with additive attention has such weights",
                        (double)o->doubly_stochastic);
    if (!t->images.encoder.model && c->grid[0] * c->grid[1] == 1 && t->set.images % o->batch == 1 % o->batch)
        return att_fail(
            t->base.ctx, ATT_ERR_ARGUMENT,
            "options.batch is %lld: of %lld images the last would be alone in its batch, and with a grid of "
            "one location has no variance to learn from",
            (long long)o->batch, (long long)t->set.images);
    if (!t->images.encoder.model && o->crop >= att_min(c->image[0], c->image[1]))
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.crop is %lld, but the model's images have %lld x %lld",
                        (long long)o->crop, (long long)c->image[0], (long long)c->image[1]);
    return ATT_OK;
}

/* ---- opening */

static att_status open_data(void *self, const char *folder, bool resume)
{
    caption_data *t = self;
    att_caption_training_options *o = &t->options;
    const att_augmentation how = {.crop = o->crop, .flip = o->flip, .seed = t->base.common.seed};
    att_status e = o->encoder && !resume ? att_training_other_folder(t->base.ctx, folder, o->encoder) : ATT_OK;
    e = e ? e : make_words(t);
    if (!e && o->encoder)
        e = att_caption_encoder_open(t->base.ctx, o->encoder, &t->images.encoder);
    e = e ? e : make_model(t);
    e = e ? e : check_model(t);
    e = e ? e : open_captions(t, o->captions, "captions", &t->captions);
    if (!e && o->valid)
        e = open_captions(t, o->valid, "valid", &t->valid);
    t->images.model = t->model;
    e = e ? e : att_caption_images_open(&t->images, &how, o->encoder_memory);
    e = e ? e : att_settings_checksum(t->base.ctx, att_captioner_config_json(&t->model->config), &t->start);
    t->order = e ? NULL : att_alloc(t->base.ctx, (size_t)t->set.images, sizeof *t->order);
    if (!e && !t->order)
        e = ATT_ERR_MEMORY;
    if (!e && o->encoder && !resume)
        e = att_caption_encoder_copy(t->base.ctx, o->encoder, folder);
    o->settings = o->encoder = NULL; /* the caller's, not used any more */
    return e;
}

static void free_data(void *self)
{
    caption_data *t = self;
    att_caption_images_free(&t->images);
    att_caption_batches_free(t->captions);
    att_caption_batches_free(t->valid);
    att_free(t->base.ctx, t->order);
    att_model_free(t->model);
    att_words_free(&t->words);
}

/* ---- training */

static att_param *param(const void *self, int64_t i, const char **name)
{
    return att_nn_params_at(att_model_params(&((const caption_data *)self)->model->model), i, name);
}

static att_param_options param_options(const void *self, const char *name, const att_tensor *value)
{
    (void)self, (void)value;
    return (att_param_options){.size = sizeof(att_param_options),
                               .frozen = strstr(name, ".running_") != NULL}; /* the forward pass moves these */
}

static int64_t batches_of(const caption_data *t) { return att_ceil_div(t->set.images, t->options.batch); }

/* A checkpoint may have any number. */
static int64_t word_prediction_steps(const caption_data *t)
{
    return att_min(t->word_prediction_steps,
                   att_ceil_div(t->options.presence_epochs * batches_of(t), t->base.common.accumulate));
}

static att_status begin_epoch(void *self, int64_t number, int64_t *batches)
{
    caption_data *t = self;
    att_permutation(t->base.common.seed, 0, number, t->set.images, t->order);
    t->epoch = number;
    *batches = batches_of(t);
    return ATT_OK;
}

static att_image_choice choice(const caption_data *t, int64_t batch)
{
    return att_image_choose(t->order, t->set.images, t->options.batch, t->epoch, batch);
}

static att_var *word_prediction_loss(const caption_data *t, att_tape *tape, att_var *grids,
                                     const att_caption_examples *e, bool sum)
{
    const int64_t n = e->captions.images;
    return att_binary_cross_entropy(tape, att_captioner_predict_words(tape, t->model, grids, n), e->present, sum, NULL);
}

static att_var *loss(void *self, att_tape *tape, int64_t batch, uint64_t seed, att_training_report *r, int64_t *count)
{
    caption_data *t = self;
    const att_caption_training_options *o = &t->options;
    const att_image_choice now = choice(t, batch), next = choice(t, batch + 1);
    att_var *grids = att_caption_images_get(&t->images, tape, &now, &next);
    att_caption_examples e = att_caption_batches_get(t->captions, t->epoch, now.images, now.n);
    const int64_t step = (t->epoch * batches_of(t) + batch) / t->base.common.accumulate;
    r->examples += now.n;
    r->sources += now.n;
    if (step < word_prediction_steps(t)) {
        *count = now.n * t->model->config.presence;
        return word_prediction_loss(t, tape, grids, &e, true);
    }
    e.captions.dropout = o->dropout;
    e.captions.seed = seed;
    e.captions.label_smoothing = o->label_smoothing;
    e.captions.doubly_stochastic = o->doubly_stochastic;
    *count = e.targets;
    att_var *y = att_captioner_loss(tape, t->model, grids, &e.captions);
    if (o->presence_weight > 0)
        y = att_add(tape, y, att_scale(tape, word_prediction_loss(t, tape, grids, &e, false), o->presence_weight));
    return att_scale(tape, y, (float)e.targets);
}

/* The decoder begins to learn when the schedule has long warmed up: it warms up once more. */
static double rate(const void *self, int64_t step, double rate)
{
    const caption_data *t = self;
    const int64_t first = word_prediction_steps(t), words = step - first, warmup = t->base.schedule.warmup;
    return first > 0 && words > 0 && words < warmup ? rate * (double)words / (double)warmup : rate;
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    caption_data *t = (caption_data *)(uintptr_t)self; /* a checkpoint's steps are loaded to it */
    const att_caption_training_options *o = &t->options;
    if (o->presence_epochs)
        att_fields_add(fields, "presence_steps", ATT_FIELD_INT, &t->word_prediction_steps)->optional = true;
    att_fields_int(fields, "images", t->set.images);
    att_fields_int(fields, "batch_images", o->batch);
    att_fields_int(fields, "captions_per_image", o->captions_per_image);
    att_fields_int(fields, "data", (int64_t)att_caption_batches_sum(t->captions))->sum_of =
        "captions or names of images";
    att_fields_int(fields, "valid", t->valid ? (int64_t)att_caption_batches_sum(t->valid) : 0)->sum_of =
        "captions or names of images for validation";
    att_fields_int(fields, "features", (int64_t)t->images.sum)->sum_of = "features of the encoder";
    att_fields_int(fields, "model", (int64_t)t->start)->sum_of = "settings of the model";
    att_fields_double(fields, "smoothing", (double)o->label_smoothing);
    att_fields_double(fields, "dropout", (double)o->dropout);
    att_fields_double(fields, "doubly_stochastic", (double)o->doubly_stochastic);
    att_fields_int(fields, "crop", o->crop);
    att_fields_int(fields, "flip", o->flip);
    att_fields_int(fields, "presence_epochs", o->presence_epochs);
    att_fields_double(fields, "presence_weight", (double)o->presence_weight);
}

static void describe(const void *self, att_training_info *info)
{
    const caption_data *t = self;
    info->examples = t->set.images;
    info->vocabulary = att_words_size(&t->words);
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    const caption_data *t = self;
    att_status e = att_captioner_save(t->model, folder, dtype);
    e = e ? e : att_words_write(&t->words, folder);
    return e || t->images.encoder.model ? e : att_image_processor_write(t->base.ctx, folder, &t->images.input.config);
}

/* ---- validation */

/* Sums of losses of a batch of n images from `first` on; presence NULL: it is not asked for, and words likewise. */
static att_status validate_batch(caption_data *t, att_tape *tape, int64_t first, uint32_t *images, double *words,
                                 double *presence, int64_t *targets)
{
    const int64_t n = att_min(t->options.batch, t->valid_set.images - first);
    att_tensor y;
    att_status e = ATT_OK;
    for (int64_t i = 0; i < n; i++)
        images[i] = (uint32_t)(first + i);
    const att_caption_examples x = att_caption_batches_get(t->valid, 0, images, n);
    att_var *grids = att_caption_images_valid(&t->images, tape, first, n);
    if (presence)
        e = att_var_value(tape, word_prediction_loss(t, tape, grids, &x, true), &y);
    if (!e && presence)
        *presence += (double)*(const float *)y.data;
    if (!e && words)
        e = att_var_value(tape, att_captioner_loss(tape, t->model, grids, &x.captions), &y);
    if (!e && words)
        *words += (double)*(const float *)y.data * (double)x.targets;
    *targets += x.targets;
    att_tape_reset(tape);
    return e;
}

static att_status validate_all(caption_data *t, double *words, double *presence)
{
    att_tape *tape = NULL;
    double sum[2] = {0, 0};
    int64_t targets = 0;
    uint32_t *images = att_alloc(t->base.ctx, (size_t)t->options.batch, sizeof *images);
    att_status e = images ? att_tape_new(t->base.ctx, NULL, &tape) : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < t->valid_set.images; i += t->options.batch)
        e = validate_batch(t, tape, i, images, words ? &sum[0] : NULL, presence ? &sum[1] : NULL, &targets);
    att_tape_free(tape);
    att_free(t->base.ctx, images);
    if (!e && words)
        *words = sum[0] / (double)targets;
    if (!e && presence)
        *presence = sum[1] / ((double)t->valid_set.images * (double)t->model->config.presence);
    return e;
}

static att_status validate(const void *self, double *loss)
{
    caption_data *t = (caption_data *)(uintptr_t)self; /* its scratch memory */
    if (!t->valid)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "the training has nothing to validate by: options.valid was NULL");
    return validate_all(t, loss, NULL);
}

/* ---- options */

static att_status check_encoder(const caption_data *t)
{
    const att_caption_training_options *o = &t->options;
    const char *const wrong = !o->encoder          ? NULL
                              : o->crop            ? "crop"
                              : o->flip            ? "flip"
                              : o->presence_epochs ? "presence_epochs"
                                                   : NULL;
    return wrong ? att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                            "options.%s does not go with options.encoder, whose features are computed once", wrong)
                 : ATT_OK;
}

static att_status check(const caption_data *t)
{
    const att_caption_training_options *o = &t->options;
    const att_training_option numbers[] = {{"batch", (double)o->batch, MAX_BATCH},
                                           {"captions_per_image", (double)o->captions_per_image, MAX_BATCH},
                                           {"doubly_stochastic", (double)o->doubly_stochastic, 1e6},
                                           {"crop", (double)o->crop, MAX_CROP},
                                           {"presence_epochs", (double)o->presence_epochs, INT32_MAX},
                                           {"presence_weight", (double)o->presence_weight, 1e6},
                                           {"min_count", (double)o->min_count, INT32_MAX},
                                           {"max_words", (double)o->max_words, 1 << 24},
                                           {"encoder_memory", (double)o->encoder_memory, 0x1p62},
                                           {"label_smoothing", (double)o->label_smoothing, ATT_BELOW_1},
                                           {"dropout", (double)o->dropout, ATT_BELOW_1}};
    if (!o->captions || !o->settings)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.%s is NULL", o->captions ? "settings" : "captions");
    const att_status e = att_training_check_options(t->base.ctx, numbers, sizeof numbers / sizeof numbers[0]);
    return e ? e : check_encoder(t);
}

static att_status describe_sets(caption_data *t)
{
    const att_caption_training_options *o = &t->options;
    t->set.size = t->valid_set.size = sizeof t->set;
    att_status e = att_caption_set_describe(o->captions, &t->set);
    if (!e && o->valid)
        e = att_caption_set_describe(o->valid, &t->valid_set);
    if (!e && t->set.captions > UINT32_MAX)
        e = att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.captions has %lld captions, more than 2^32",
                     (long long)t->set.captions);
    return e;
}

static att_status configure(void *self)
{
    caption_data *t = self;
    att_caption_training_options *o = &t->options;
    att_status e = check(t);
    e = e ? e : describe_sets(t);
    if (e)
        return e;
    o->batch = att_min(o->batch ? o->batch : 32, t->set.images);
    o->min_count = o->min_count ? o->min_count : 5;
    o->encoder_memory = o->encoder_memory ? o->encoder_memory : INT64_C(4) << 30;
    t->word_prediction_steps = INT64_MAX;
    t->word_prediction_steps = word_prediction_steps(t);
    t->images = (att_caption_images){.ctx = t->base.ctx,
                                     .set = {o->captions, o->valid},
                                     .n = {t->set.images, t->valid_set.images},
                                     .batch = o->batch,
                                     .progress = o->progress,
                                     .user = o->user};
    att_ids_init(&t->words.words, t->base.ctx);
    return ATT_OK;
}

static const att_training_kind kind = {.name = "captioners",
                                       .bytes = sizeof(caption_data),
                                       .options = "att_caption_training_options",
                                       .options_bytes = sizeof(att_caption_training_options),
                                       .options_at = offsetof(caption_data, options),
                                       .keep = 2,
                                       .beta2 = 0.999,
                                       .eps = 1e-8,
                                       .configure = configure,
                                       .files = att_caption_encoder_files,
                                       .open = open_data,
                                       .param = param,
                                       .param_options = param_options,
                                       .begin_epoch = begin_epoch,
                                       .loss = loss,
                                       .rate = rate,
                                       .validate = validate,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_data};

att_status att_caption_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                     const att_caption_training_options *options, att_training **out)
{
    return att_training_open(__func__, &kind, ctx, folder, common, options, out);
}

att_status att_training_caption_losses(att_training *t, double *words, double *presence)
{
    if (att_training_of_kind(__func__, t, &kind))
        return ATT_ERR_ARGUMENT;
    caption_data *self = t->self;
    if (!self->valid)
        return validate(self, NULL);
    if (presence && !self->model->config.presence)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the model predicts no words", __func__);
    return validate_all(self, words, presence);
}

att_status att_training_caption_cider(att_training *t, int64_t max_images, double *cider)
{
    if (att_training_of_kind(__func__, t, &kind) || att_require(__func__, ATT_NAMED({"cider", cider})))
        return ATT_ERR_ARGUMENT;
    caption_data *self = t->self;
    if (!self->valid || max_images < 1)
        return self->valid ? att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: max_images is %lld, expected 1 or more", __func__,
                                      (long long)max_images)
                           : validate(self, cider);
    return att_caption_greedy_cider(&self->images, &self->words, att_min(max_images, self->valid_set.images), cider);
}

int64_t att_training_caption_word_prediction_steps(const att_training *t)
{
    const caption_data *self = att_training_self(t, &kind);
    return self ? word_prediction_steps(self) : 0;
}

att_status att_training_caption_train_words(att_training *t)
{
    if (att_training_of_kind(__func__, t, &kind))
        return ATT_ERR_ARGUMENT;
    caption_data *self = t->self;
    self->word_prediction_steps = att_min(word_prediction_steps(self), t->step);
    return ATT_OK;
}

double att_training_caption_seconds_waiting(const att_training *t)
{
    const caption_data *self = att_training_self(t, &kind);
    return self ? self->images.waited : 0;
}
