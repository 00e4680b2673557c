/* Trains a captioner (Vinyals et al. 2015; Xu et al. 2015) by the mean cross entropy per word. In the first epochs only
 * the encoder is trained, by word prediction. */
#include "caption/caption_training.h"
#include "caption/caption_validation.h"
#include "model/checksum.h"
#include "util/util.h"

#include <stddef.h>
#include <string.h>

static att_status open_captions(att_caption_training *t, const att_caption_set *set, const char *name,
                                att_caption_batches **out)
{
    const att_captioner_config *c = &t->model->captioner->config;
    const att_caption_source source = {.set = set,
                                       .name = name,
                                       .words = &t->model->words,
                                       .max_positions = c->max_positions,
                                       .presence = c->presence,
                                       .max = t->options.batch,
                                       .per_image = out == &t->valid ? 0 : t->options.captions_per_image,
                                       .seed = t->base.common.seed};
    return att_caption_batches_new(t->base.ctx, &source, out);
}

/* ---- opening */

static att_status open_data(void *self, const char *folder, bool resume)
{
    att_caption_training *t = self;
    att_caption_training_options *o = &t->options;
    att_ctx *ctx = t->base.ctx;
    const att_augmentation how = {.crop = o->crop, .flip = o->flip, .seed = t->base.common.seed};
    att_status e = o->encoder && !resume ? att_training_other_folder(ctx, folder, o->encoder) : ATT_OK;
    e = e ? e : att_caption_training_model(t);
    e = e ? e : open_captions(t, o->captions, "captions", &t->captions);
    if (!e && o->valid)
        e = open_captions(t, o->valid, "valid", &t->valid);
    t->images.model = e ? NULL : t->model->captioner;
    e = e ? e : att_caption_images_open(&t->images, &how, o->encoder_memory);
    e = e ? e : att_settings_checksum(ctx, att_captioner_config_json(&t->model->captioner->config), &t->start);
    e = e ? e : att_image_order_make(ctx, t->set.images, o->batch, t->base.common.seed, &t->order);
    if (!e && o->encoder && !resume)
        e = att_caption_encoder_copy(ctx, o->encoder, folder);
    o->settings = o->encoder = NULL; /* they belong to the caller and are not used any more */
    return e;
}

static void free_data(void *self)
{
    att_caption_training *t = self;
    att_caption_images_free(&t->images);
    att_caption_batches_free(t->captions);
    att_caption_batches_free(t->valid);
    att_image_order_free(&t->order);
    if (!t->base.in_memory)
        att_caption_model_free(t->model);
}

/* ---- training */

static att_param *param(const void *self, int64_t i, const char **name)
{
    return att_nn_params_at(att_model_params(&((const att_caption_training *)self)->model->captioner->model), i, name);
}

static att_status begin_epoch(void *self, int64_t number, int64_t *batches)
{
    att_caption_training *t = self;
    *batches = att_image_order_begin(&t->order, number);
    return ATT_OK;
}

static att_var *word_prediction_loss(const att_caption_training *t, att_tape *tape, att_var *grids,
                                     const att_caption_examples *e, bool sum)
{
    const int64_t n = e->captions.images;
    return att_binary_cross_entropy(tape, att_captioner_predict_words(tape, t->model->captioner, grids, n), e->present,
                                    ATT_OPTIONS(att_binary_cross_entropy_options, .sum = sum));
}

/* Returns how a CNN, a new one or the caller's, couples the rows of a batch. */
static const att_training_coupling *coupling(const void *self)
{
    static const att_training_coupling norm = {
        .what = "batch normalization, which a captioner's network of convolutions has, takes the mean and variance of "
                "the whole batch",
        .instead = "train with a vision Transformer as the encoder",
        .moves = true};
    const att_caption_training *t = self;
    const bool couples = t->base.in_memory ? !t->model->encoder : !t->options.encoder;
    return couples ? &norm : NULL;
}

static int64_t rows(const void *self, int64_t batch)
{
    return att_image_order_batch(&((const att_caption_training *)self)->order, batch, 0, 0).n;
}

/* Returns whether a parameter is idle: those of word prediction are, unless it is learned together with the words. */
static bool idle(const void *self, const char *name)
{
    return !(((const att_caption_training *)self)->options.presence_weight > 0) &&
           !strncmp(name, "presence.", strlen("presence."));
}

/* Computes the mean over words, times their number. The terms that are added to it are means over captions or images of
 * the whole batch, times the words of the whole batch; each part of the batch adds its share. */
static att_var *words_loss(att_caption_training *t, att_tape *tape, att_var *grids, const att_training_rows *rows,
                           att_caption_examples *e, const att_caption_examples *all)
{
    const att_caption_training_options *o = &t->options;
    const double words = (double)att_max(e->targets, 1), of_all = (double)all->targets / words,
                 captions = (double)e->captions.captions / (double)all->captions.captions,
                 images = (double)e->captions.images / (double)all->captions.images;
    e->captions.dropout = o->dropout;
    e->captions.seed = rows->seed;
    e->captions.label_smoothing = o->label_smoothing;
    e->captions.doubly_stochastic = (float)((double)o->doubly_stochastic * of_all * captions);
    att_var *y = att_captioner_loss(tape, t->model->captioner, grids, &e->captions);
    if (o->presence_weight > 0)
        y = att_add(tape, y,
                    att_scale(tape, word_prediction_loss(t, tape, grids, e, false),
                              (float)((double)o->presence_weight * of_all * images)));
    return att_scale(tape, y, (float)words);
}

static att_var *loss(void *self, att_tape *tape, const att_training_rows *rows, att_training_part *sum)
{
    att_caption_training *t = self;
    const att_image_choice now = att_image_order_batch(&t->order, rows->batch, rows->first, rows->last),
                           next = att_image_order_batch(&t->order, rows->next, rows->next_first, rows->next_last);
    const int64_t n = now.last - now.first;
    att_var *grids = att_caption_images_get(&t->images, tape, &now, &next);
    const att_caption_examples all = att_caption_batches_get(t->captions, now.epoch, now.images, now.n);
    att_caption_examples e = att_caption_batches_get(t->captions, now.epoch, now.images + now.first, n);
    sum->examples += n;
    sum->sources += n;
    if (rows->step < att_caption_word_prediction_steps(t)) {
        sum->targets += n * t->model->captioner->config.presence;
        return word_prediction_loss(t, tape, grids, &e, true);
    }
    sum->targets += e.targets;
    return words_loss(t, tape, grids, rows, &e, &all);
}

/* Scales the learning rate. The decoder's training begins long after the schedule has warmed up, so the rate warms up
 * again. */
static double rate(const void *self, int64_t step, double rate)
{
    const att_caption_training *t = self;
    const int64_t first = att_caption_word_prediction_steps(t), words = step - first, warmup = t->base.schedule.warmup;
    return first > 0 && words > 0 && words < warmup ? rate * (double)words / (double)warmup : rate;
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    /* Is written to: the steps of a checkpoint are loaded into it. */
    att_caption_training *t = (att_caption_training *)(uintptr_t)self;
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
    const att_caption_training *t = self;
    info->examples = t->set.images;
    info->vocabulary = att_words_size(&t->model->words);
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    const att_caption_training *t = self;
    att_status e = att_captioner_save(t->model->captioner, folder, dtype);
    e = e ? e : att_words_write(&t->model->words, folder);
    return e || t->images.encoder.model ? e : att_image_processor_write(t->base.ctx, folder, &t->images.input.config);
}

/* ---- validation */

/* Adds up the losses of a batch of images from `first` on. words or presence NULL: this loss is not computed. */
static att_status validate_batch(att_caption_training *t, att_tape *tape, int64_t first, uint32_t *images,
                                 double *words, double *presence, int64_t *targets)
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
        e = att_var_value(tape, att_captioner_loss(tape, t->model->captioner, grids, &x.captions), &y);
    if (!e && words)
        *words += (double)*(const float *)y.data * (double)x.targets;
    *targets += x.targets;
    att_tape_reset(tape);
    return e;
}

static att_status validate_all(att_caption_training *t, double *words, double *presence)
{
    att_tape *tape = NULL;
    double sum[2] = {0, 0};
    int64_t targets = 0;
    uint32_t *images = att_alloc(t->base.ctx, (size_t)t->options.batch, sizeof *images);
    att_status e = images ? att_model_tape(&t->model->captioner->model, &tape) : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < t->valid_set.images; i += t->options.batch)
        e = validate_batch(t, tape, i, images, words ? &sum[0] : NULL, presence ? &sum[1] : NULL, &targets);
    att_tape_free(tape);
    att_free(t->base.ctx, images);
    if (!e && words)
        *words = sum[0] / (double)targets;
    if (!e && presence)
        *presence = sum[1] / ((double)t->valid_set.images * (double)t->model->captioner->config.presence);
    return e;
}

static att_status validate(const void *self, double *loss)
{
    att_caption_training *t = (att_caption_training *)(uintptr_t)self; /* written to: its scratch memory */
    if (!t->valid)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "the training has nothing to validate by: options.valid was NULL");
    return validate_all(t, loss, NULL);
}

static const att_training_kind kind = {.name = "captioners",
                                       .bytes = sizeof(att_caption_training),
                                       .options = "att_caption_training_options",
                                       .options_bytes = sizeof(att_caption_training_options),
                                       .options_at = offsetof(att_caption_training, options),
                                       .configure = att_caption_training_configure,
                                       .files = att_caption_encoder_files,
                                       .open = open_data,
                                       .param = param,
                                       .buffers = ".running_",
                                       .begin_epoch = begin_epoch,
                                       .coupling = coupling,
                                       .rows = rows,
                                       .idle = idle,
                                       .loss = loss,
                                       .rate = rate,
                                       .validate = validate,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_data};

att_status att_caption_training_new(att_caption_model *m, const att_training_options *common,
                                    const att_caption_training_options *options, att_training **out)
{
    return att_training_new(__func__, &kind, m ? &m->captioner->model : NULL, &(const att_caption_training){.model = m},
                            common, options, out);
}

att_status att_caption_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                     const att_caption_training_options *options, att_training **out)
{
    return att_training_open(__func__, &kind, ctx, folder, common, options, out);
}

const att_caption_model *att_training_captioner(const att_training *t)
{
    const att_caption_training *self = att_training_self(t, &kind);
    return self ? self->model : NULL;
}

att_status att_training_caption_losses(att_training *t, double *words, double *presence)
{
    if (att_training_of_kind(__func__, t, &kind))
        return ATT_ERR_ARGUMENT;
    att_caption_training *self = t->self;
    if (!self->valid)
        return validate(self, NULL);
    if (presence && !self->model->captioner->config.presence)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the model predicts no words", __func__);
    return validate_all(self, words, presence);
}

att_status att_training_caption_cider(att_training *t, int64_t max_images, double *cider)
{
    if (att_training_of_kind(__func__, t, &kind) || att_require(__func__, ATT_NAMED({"cider", cider})))
        return ATT_ERR_ARGUMENT;
    att_caption_training *self = t->self;
    if (!self->valid || max_images < 1)
        return self->valid ? att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: max_images is %lld, expected 1 or more", __func__,
                                      (long long)max_images)
                           : validate(self, cider);
    return att_caption_greedy_cider(&self->images, &self->model->words, att_min(max_images, self->valid_set.images),
                                    cider);
}

int64_t att_training_caption_word_prediction_steps(const att_training *t)
{
    const att_caption_training *self = att_training_self(t, &kind);
    return self ? att_caption_word_prediction_steps(self) : 0;
}

att_status att_training_caption_train_words(att_training *t)
{
    if (att_training_of_kind(__func__, t, &kind))
        return ATT_ERR_ARGUMENT;
    att_caption_training *self = t->self;
    self->word_prediction_steps = att_min(att_caption_word_prediction_steps(self), t->step);
    return ATT_OK;
}

double att_training_caption_seconds_waiting(const att_training *t)
{
    const att_caption_training *self = att_training_self(t, &kind);
    return self ? self->images.waited : 0;
}
