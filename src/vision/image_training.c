/* Trains a classifier of images (Dosovitskiy et al. 2021) by the mean cross entropy per image. */
#include "vision/image_set.h"
#include "image/processor.h"
#include "util/util.h"
#include "model/checksum.h"
#include "vision/vit.h"
#include "vision/image_batches.h"
#include "train/training.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MAX_CROP = 1 << 14 };

typedef struct image_data {
    att_training_base base;
    att_vit *model;
    att_image_training_options options;
    att_image_set_info set;
    att_vit_info info;
    const char **labels; /* [set.classes], the set's */
    att_image_input input;
    att_image_batches *batches;
    att_image_order order;
    uint64_t start, images; /* checksums of the initial model and of the data */
    double waited;          /* seconds that all steps have waited for images */
} image_data;

/* ---- the model */

static att_status set_missing(att_ctx *ctx, json_t *root, const char *key, json_t *value)
{
    const int failed = !value || (!json_object_get(root, key) ? json_object_set(root, key, value) : 0);
    json_decref(value);
    return failed ? att_fail(ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model") : ATT_OK;
}

/* Completes the settings. Those that the images imply may be left out. */
static att_status complete_settings(const void *self, json_t *root)
{
    const image_data *t = self;
    const att_image_set_info *s = &t->set;
    att_status e = ATT_OK;
    if (!json_object_get(root, "id2label"))
        e = set_missing(t->base.ctx, root, "num_labels", json_integer(s->classes));
    if (!e && s->channels)
        e = set_missing(t->base.ctx, root, "num_channels", json_integer(s->channels));
    if (!e && s->height)
        return set_missing(t->base.ctx, root, "image_size",
                           json_pack("[I, I]", (json_int_t)s->height, (json_int_t)s->width));
    if (!e && !json_object_get(root, "image_size")) /* the default, 224, would cost hours on small images */
        return att_fail(t->base.ctx, ATT_ERR_FORMAT,
                        "the model's settings have no \"image_size\", and images in folders have "
                        "different ones");
    return e;
}

static att_status make_model(image_data *t)
{
    att_settings s;
    att_status e = att_settings_complete(&s, t->base.ctx, t->options.settings, complete_settings, t);
    e = e ? e : att_vit_make(t->base.ctx, &s, t->base.common.seed, &t->model);
    att_settings_close(&s);
    if (!e)
        t->model->model.options.compute = t->base.common.compute;
    return e;
}

static att_status open_model(image_data *t)
{
    const att_image_training_options *o = &t->options;
    const att_trainable_options how = att_training_trainable(&t->base);
    const att_status e = o->settings ? make_model(t)
                                     : att_vit_open_for_classes(t->base.ctx, o->model, t->labels, t->set.classes, &how,
                                                                t->base.common.seed, &t->model);
    return e ? e : att_vit_check_written(t->model, t->labels); /* fails now, not after hours of training */
}

static att_status sum_model(image_data *t)
{
    const att_status e = att_settings_checksum(t->base.ctx, att_vit_config_json(&t->model->config, NULL), &t->start);
    t->start = att_model_checksum(t->start, &t->model->model);
    return e;
}

/* ---- opening */

static att_status name_classes(image_data *t)
{
    t->labels = att_alloc(t->base.ctx, (size_t)t->set.classes, sizeof *t->labels);
    for (int64_t i = 0; t->labels && i < t->set.classes; i++)
        t->labels[i] = att_image_set_label(t->options.images, i);
    return t->labels ? ATT_OK : ATT_ERR_MEMORY;
}

/* Computes a checksum of labels, classes, and pixels or names of files. */
static void sum_images(image_data *t)
{
    const att_image_set *s = t->options.images;
    const int64_t bytes = s->pixels ? t->set.images * t->set.height * t->set.width * t->set.channels : 0;
    uint64_t sum = ATT_FNV64_OFFSET;
    for (int64_t c = 0; c < t->set.classes; c++)
        sum = att_fnv64_text(sum, att_image_set_label(s, c));
    for (int64_t i = 0; i < t->set.images; i++) {
        const char *path = att_image_set_path(s, i);
        sum = att_fnv64(sum, (uint32_t)s->classes[i]);
        sum = path ? att_fnv64_text(sum, strrchr(path, '/')) : sum;
    }
    for (int64_t i = 0; i < bytes; i++)
        sum = att_fnv64(sum, s->pixels[i]);
    t->images = sum;
}

/* Checks and sets the options that depend on the model's input. */
static att_status check_sizes(const image_data *t)
{
    const att_image_processor_info *in = &t->input.info;
    const int64_t side = att_min(in->height, in->width);
    const struct {
        const char *name;
        int64_t value;
    } pixels[] = {{"crop", t->options.crop}, {"cutout", t->options.cutout}};
    if (t->info.classes != t->set.classes)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "the model has %lld classes, but the images have %lld",
                        (long long)t->info.classes, (long long)t->set.classes);
    for (int i = 0; i < 2; i++)
        if (pixels[i].value >= side)
            return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                            "options.%s is %lld, but the model's images have %lld x %lld", pixels[i].name,
                            (long long)pixels[i].value, (long long)in->height, (long long)in->width);
    return ATT_OK;
}

static att_status open_data(void *self, const char *folder, bool resume)
{
    image_data *t = self;
    const att_image_training_options *o = &t->options;
    const att_augmentation how = {.crop = o->crop,
                                  .cutout = o->cutout,
                                  .flip = o->flip,
                                  .mixup = o->mixup,
                                  .seed = t->base.common.seed,
                                  .repeats = o->balance ? o->batch : 0};
    const att_image_source from = att_image_source_of_set(o->images);
    (void)resume;
    att_status e = folder && o->model ? att_training_other_folder(t->base.ctx, folder, o->model) : ATT_OK;
    e = e ? e : name_classes(t);
    if (!e && folder)
        e = open_model(t);
    t->info.size = sizeof t->info;
    e = e ? e : att_vit_describe(t->model, &t->info);
    e = e ? e : att_image_input_make(t->base.ctx, t->model, o->model, &t->input);
    e = e ? e : check_sizes(t);
    e = e ? e : sum_model(t);
    e = e ? e : att_image_batches_new(t->base.ctx, &t->input, &from, &how, o->batch, &t->batches);
    e = e ? e : att_image_order_make(t->base.ctx, t->set.images, o->batch, t->base.common.seed, &t->order);
    if (!e && o->balance)
        e = att_image_order_balance(&t->order, o->images->classes, t->set.classes);
    t->options.settings = t->options.model = NULL; /* they belong to the caller and are not used any more */
    if (!e)
        sum_images(t);
    return e;
}

static void free_data(void *self)
{
    image_data *t = self;
    att_image_batches_free(t->batches);
    att_image_input_free(&t->input);
    att_image_order_free(&t->order);
    att_free(t->base.ctx, t->labels);
    if (!t->base.in_memory)
        att_vit_free(t->model);
    att_image_set_count_training(t->options.images, -1);
}

/* ---- training */

static att_param *param(const void *self, int64_t i, const char **name)
{
    return att_nn_params_at(att_vit_params(((const image_data *)self)->model), i, name);
}

static att_status begin_epoch(void *self, int64_t number, int64_t *batches)
{
    image_data *t = self;
    *batches = att_image_order_begin(&t->order, number);
    return ATT_OK;
}

/* Computes the loss of a mixture of images: the losses of both classes, weighted by their shares (Zhang et al.
 * 2018). */
static att_var *mixture_loss(att_tape *tape, const image_data *t, const att_image_batch *b, att_var *logits)
{
    const att_cross_entropy_options sum = {
        .size = sizeof sum, .label_smoothing = t->options.label_smoothing, .sum = true};
    att_var *own = att_cross_entropy(tape, logits, b->classes, &sum);
    if (b->share == 1)
        return own;
    att_var *others = att_cross_entropy(tape, logits, b->partners, &sum);
    return att_add(tape, att_scale(tape, own, b->share), att_scale(tape, others, 1 - b->share));
}

static int64_t rows(const void *self, int64_t batch)
{
    return att_image_order_batch(&((const image_data *)self)->order, batch, 0, 0).n;
}

static att_var *loss(void *self, att_tape *tape, const att_training_rows *rows, att_training_part *sum)
{
    image_data *t = self;
    const att_image_choice now = att_image_order_batch(&t->order, rows->batch, rows->first, rows->last),
                           next = att_image_order_batch(&t->order, rows->next, rows->next_first, rows->next_last);
    const att_image_batch *b;
    double waited;
    const att_status e = att_image_batches_get(t->batches, &now, &next, &b, &waited);
    t->waited += waited;
    if (e)
        return att_tape_fail(tape, e, "%s", att_error(t->base.ctx));
    const att_image_processor_info *in = &t->input.info;
    att_tensor images;
    att_wrap(&images, b->pixels, ATT_F32, ATT_DIMS(b->n, in->height, in->width, in->channels), NULL);
    const att_vit_options o = {
        .size = sizeof o, .dropout = t->options.dropout, .seed = rows->seed, .sequence_ids = b->images};
    sum->targets += b->n;
    sum->examples += b->n;
    sum->sources += b->n;
    return mixture_loss(tape, t, b, att_vit_logits(tape, t->model, att_constant(tape, &images), &o));
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    const image_data *t = self;
    const att_image_training_options *o = &t->options;
    att_fields_int(fields, "images", t->set.images);
    att_fields_int(fields, "batch_images", o->batch);
    att_fields_int(fields, "data", (int64_t)t->images)->sum_of = "images or labels";
    att_fields_int(fields, "model", (int64_t)t->start)->sum_of = "settings or weights at the start";
    att_fields_double(fields, "smoothing", (double)o->label_smoothing);
    att_fields_double(fields, "dropout", (double)o->dropout);
    att_fields_int(fields, "crop", o->crop);
    att_fields_int(fields, "flip", o->flip);
    att_fields_double(fields, "mixup", o->mixup);
    att_fields_int(fields, "cutout", o->cutout);
    att_fields_int(fields, "balance", o->balance);
}

static void describe(const void *self, att_training_info *info)
{
    info->examples = ((const image_data *)self)->set.images;
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    const image_data *t = self;
    const att_status e = att_vit_write(t->model, folder, t->labels, dtype);
    return e ? e : att_image_processor_write(t->base.ctx, folder, &t->input.config);
}

/* ---- options */

static att_status check(const image_data *t)
{
    const att_image_training_options *o = &t->options;
    const att_training_option numbers[] = {{"mixup", o->mixup, 1e6},
                                           {"crop", (double)o->crop, MAX_CROP},
                                           {"cutout", (double)o->cutout, MAX_CROP},
                                           {"batch", (double)o->batch, INT32_MAX},
                                           {"label_smoothing", (double)o->label_smoothing, ATT_BELOW_1},
                                           {"dropout", (double)o->dropout, ATT_BELOW_1}};
    if (!o->images)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.images is NULL");
    att_status e = att_training_check_start(&t->base, o->settings, o->model);
    e = e ? e : att_training_check_options(t->base.ctx, numbers, sizeof numbers / sizeof numbers[0]);
    if (!e && o->mixup > 0 && o->mixup < ATT_MIN_MIXUP)
        e = att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.mixup is %g, expected 0 or at least %g", o->mixup,
                     ATT_MIN_MIXUP);
    return e;
}

static att_status configure(void *self)
{
    image_data *t = self;
    att_image_training_options *o = &t->options;
    att_status e = check(t);
    t->set.size = sizeof t->set;
    e = e ? e : att_image_set_describe(o->images, &t->set);
    if (!e && t->set.images > UINT32_MAX)
        e = att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.images has %lld images, more than 2^32",
                     (long long)t->set.images);
    if (!e && t->set.classes < 2)
        e = att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.images has only one class, \"%s\"; a classifier needs two",
                     att_image_set_label(o->images, 0));
    if (e)
        return e;
    o->batch = att_min(o->batch ? o->batch : 128, t->set.images);
    att_image_set_count_training(o->images, 1); /* until free_data */
    return ATT_OK;
}

static const att_training_kind kind = {.name = "image classifiers",
                                       .bytes = sizeof(image_data),
                                       .options = "att_image_training_options",
                                       .options_bytes = sizeof(att_image_training_options),
                                       .options_at = offsetof(image_data, options),
                                       .configure = configure,
                                       .open = open_data,
                                       .param = param,
                                       .begin_epoch = begin_epoch,
                                       .rows = rows,
                                       .loss = loss,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_data};

/* ---- construction */

att_status att_image_training_new(att_vit *m, const att_training_options *common,
                                  const att_image_training_options *options, att_training **out)
{
    return att_training_new(__func__, &kind, m ? &m->model : NULL, &(const image_data){.model = m}, common, options,
                            out);
}

att_status att_image_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                   const att_image_training_options *options, att_training **out)
{
    return att_training_open(__func__, &kind, ctx, folder, common, options, out);
}

const att_vit *att_training_vit(const att_training *t)
{
    const image_data *self = att_training_self(t, &kind);
    return self ? self->model : NULL;
}

double att_training_image_seconds_waiting(const att_training *t)
{
    const image_data *self = att_training_self(t, &kind);
    return self ? self->waited : 0;
}

/* ---- evaluation */

typedef struct correct {
    const att_image_input *in;
    att_image_source from;
    int64_t first, n; /* images of the batch */
    float *pixels;    /* [batch, height, width, channels] */
} correct;

/* Returns the index of the largest of x [n]; -1: they are not finite. */
static int64_t answer(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t c = 0; c < n; c++) {
        if (!isfinite(x[c]))
            return -1;
        best = x[c] > x[best] ? c : best;
    }
    return best;
}

static att_status count_batch(const image_data *t, att_tape *tape, correct *h, int64_t *right, int64_t *confusion)
{
    const int64_t classes = t->set.classes;
    const att_image_processor_info *in = &h->in->info;
    att_tensor logits, images;
    att_wrap(&images, h->pixels, ATT_F32, ATT_DIMS(h->n, in->height, in->width, in->channels), NULL);
    att_status e = att_image_input_pixels(h->in, &h->from, h->first, h->n, h->pixels);
    e = e ? e : att_var_value(tape, att_vit_logits(tape, t->model, att_constant(tape, &images), NULL), &logits);
    for (int64_t i = 0; !e && i < h->n; i++) {
        const int64_t class = h->from.classes[h->first + i],
                      answered = answer((const float *)logits.data + i * classes, classes);
        if (answered < 0)
            e = att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "the logits of image %lld are not finite",
                         (long long)(h->first + i));
        *right += answered == class;
        if (!e && confusion)
            confusion[class * classes + answered]++;
    }
    att_tape_reset(tape);
    return e;
}

static att_status count_correct(const image_data *t, const att_image_set *set, int64_t *right, int64_t *confusion)
{
    const int64_t batch = t->options.batch, n = set->info.images;
    att_tape *tape = NULL;
    correct h = {.in = &t->input, .from = att_image_source_of_set(set)};
    h.pixels = att_alloc(t->base.ctx, (size_t)batch, (size_t)att_image_input_values(h.in) * sizeof *h.pixels);
    att_status e = h.pixels ? att_model_tape(&t->model->model, &tape) : ATT_ERR_MEMORY;
    for (; !e && h.first < n; h.first += batch) {
        h.n = att_min(batch, n - h.first);
        e = count_batch(t, tape, &h, right, confusion);
    }
    att_tape_free(tape);
    att_free(t->base.ctx, h.pixels);
    return e;
}

att_status att_training_image_correct(att_training *t, const att_image_set *images, int64_t *right, int64_t *confusion)
{
    if (att_training_of_kind(__func__, t, &kind) ||
        att_require(__func__, ATT_NAMED({"images", images}, {"correct", right})))
        return ATT_ERR_ARGUMENT;
    const image_data *self = t->self;
    const int64_t classes = self->set.classes;
    if (images->info.classes != classes)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "the model has %lld classes, but the images have %lld",
                        (long long)classes, (long long)images->info.classes);
    *right = 0;
    if (confusion)
        memset(confusion, 0, (size_t)(classes * classes) * sizeof *confusion);
    return count_correct(self, images, right, confusion);
}
