/* Trains a classifier on the embeddings of a vision Transformer that stays as it is. */
#include "io/new_folder.h"
#include "probe/probe_training.h"
#include "util/clock.h"
#include "util/util.h"
#include "vision/image_input.h"
#include "vision/image_set.h"
#include "vision/vit.h"

#include <string.h>

typedef struct image_probe {
    att_ctx *ctx;
    const char *folder; /* of the model */
    att_image_probe_options options;
    att_probe_examples examples;
    att_opened_files files;
    att_image_model *model;
    att_vit *trained;      /* the model with a classifier of these classes, which the probe becomes; or NULL */
    att_image_input input; /* of `trained` */
    att_progress progress; /* in images */
} image_probe;

/* ---- the model */

static att_status open_model(image_probe *p)
{
    const att_model_options *how =
        ATT_OPTIONS(att_model_options, .read = att_opened_files_read, .read_user = &p->files);
    const att_probe_options *o = p->options.probe;
    att_status s = att_image_model_open(p->ctx, p->folder, how, &p->model);
    if (s || (o && o->kind != ATT_PROBE_KIND_LINEAR) || !att_vit_naming(att_image_model_vit(p->model)))
        return s;
    att_image_model_free(p->model);
    p->model = NULL;
    s = att_vit_open_for_classes(p->ctx, p->folder, p->examples.names, p->examples.classes, NULL, 0, &p->trained);
    return s ? s : att_image_input_make(p->ctx, p->trained, p->folder, &p->input);
}

/* ---- embeddings */

typedef struct embedding {
    const att_vit *vit;
    att_image_input input;
    int64_t batch;
    att_tape *tape;
    float *pixels; /* [batch, height, width, channels] */
} embedding;

/* Embeds images [first, first + n) of a source. */
static att_status embed_batch(const embedding *e, const att_image_source *from, int64_t first, int64_t n, float *out)
{
    const att_image_processor_info *p = &e->input.info;
    att_tensor images, y;
    att_status s = att_image_input_pixels(&e->input, from, first, n, e->pixels);
    att_wrap(&images, e->pixels, ATT_F32, 4, (const int64_t[]){n, p->height, p->width, p->channels}, NULL);
    s = s ? s : att_var_value(e->tape, att_vit_features(e->tape, e->vit, att_constant(e->tape, &images), NULL), &y);
    if (!s)
        memcpy(out, y.data, (size_t)(y.dim[0] * y.dim[1]) * sizeof *out);
    att_tape_reset(e->tape);
    return s;
}

static att_status embed_set(image_probe *p, const embedding *e, const att_image_set *set, int64_t at)
{
    const att_image_source from = att_image_source_of_set(set);
    const int64_t dim = p->examples.dim;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < set->info.images; i += e->batch) {
        const int64_t n = att_min(e->batch, set->info.images - i);
        s = embed_batch(e, &from, i, n, p->examples.vectors + (at + i) * dim);
        s = s ? s
              : att_check_finite_from(p->ctx, "the numbers of the vector of image", at + i, n, dim,
                                      p->examples.vectors + (at + i) * dim);
        s = s ? s : att_progress_add(&p->progress, n);
    }
    return s;
}

/* Returns the numbers of an embedding, which is the input of the classifier. */
static int64_t dim_of(const image_probe *p)
{
    if (!p->trained)
        return att_image_model_dim(p->model);
    const att_vit_info *i = &p->trained->config.info;
    return i->hidden * (i->pooling == ATT_VIT_POOLING_CLS_AND_MEAN ? 2 : 1);
}

static att_status embed(image_probe *p)
{
    const att_image_processor *own = att_image_model_processor(p->model); /* NULL: there is p->input */
    embedding e = {.vit = p->trained ? p->trained : att_image_model_vit(p->model), .input = p->input};
    if (own) {
        e.input = (att_image_input){.ctx = p->ctx, .processor = (att_image_processor *)(uintptr_t)own};
        e.input.info.size = sizeof e.input.info;
    }
    att_status s = own ? att_image_processor_describe(own, &e.input.info) : ATT_OK;
    s = s ? s : att_probe_examples_embed(&p->examples, dim_of(p));
    e.batch = att_vit_batch(&e.vit->config.info, &e.input.info);
    if (!s)
        e.pixels = att_alloc(p->ctx, (size_t)e.batch, (size_t)att_image_input_values(&e.input) * sizeof *e.pixels);
    if (!s)
        s = e.pixels ? att_model_tape(&e.vit->model, &e.tape) : ATT_ERR_MEMORY;
    s = s ? s : embed_set(p, &e, p->options.images, 0);
    if (!s && p->options.valid)
        s = embed_set(p, &e, p->options.valid, p->examples.n);
    att_tape_free(e.tape);
    att_free(p->ctx, e.pixels);
    return s ? s : att_progress_end(&p->progress);
}

/* ---- the result */

static void set_value(const att_nn_params *params, const char *name, const float *x)
{
    const att_param *p = att_nn_params_find(params, name);
    const att_tensor *v = att_param_value(p);
    memcpy(v->data, x, (size_t)(v->dim[0] * (v->rank > 1 ? v->dim[1] : 1)) * sizeof *x);
}

/* Writes the model with the probe as its classifier. */
static att_status write_plain(const image_probe *p, const att_probe *probe, const char *folder)
{
    set_value(att_vit_params(p->trained), "head.weight", probe->w);
    set_value(att_vit_params(p->trained), "head.bias", probe->b);
    const att_status s = att_vit_write(p->trained, folder, p->examples.names, p->options.dtype);
    return s ? s : att_image_processor_write(p->ctx, folder, &p->input.config);
}

static att_status train(image_probe *p, const char *folder, att_probe_result *result)
{
    att_probe *probe = NULL;
    const double begin = att_seconds();
    att_status s = open_model(p);
    s = s ? s : embed(p);
    result->embedding_seconds = att_seconds() - begin;
    result->plain = p->trained;
    s = s ? s : att_probe_train(&p->examples, p->options.probe, p->options.refit, &probe, result);
    if (!s)
        s = p->trained ? write_plain(p, probe, folder)
                       : att_probe_write_model(probe, &p->files, folder, ATT_PROBE_IMAGES, p->examples.names,
                                               p->options.dtype);
    att_probe_free(probe);
    return s;
}

/* Reads the classes of all images, those of `valid` last. */
static att_status begin(image_probe *p, const char **names)
{
    const att_image_set *images = p->options.images, *valid = p->options.valid;
    att_probe_examples *e = &p->examples;
    if (valid && valid->info.classes != images->info.classes)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "options.images has %lld classes, but options.valid %lld",
                        (long long)images->info.classes, (long long)valid->info.classes);
    for (int64_t k = 0; k < images->info.classes; k++)
        names[k] = att_image_set_label(images, k);
    *e = (att_probe_examples){.ctx = p->ctx,
                              .what = "image",
                              .names = names,
                              .n = images->info.images,
                              .n_valid = valid ? valid->info.images : 0,
                              .classes = images->info.classes};
    const att_status s = att_probe_examples_begin(e);
    if (s)
        return s;
    memcpy(e->labels, images->classes, (size_t)e->n * sizeof *e->labels);
    if (valid)
        memcpy(e->labels + e->n, valid->classes, (size_t)e->n_valid * sizeof *e->labels);
    return att_progress_of(&p->progress, p->ctx, "att_image_probe_train",
                           ATT_OPTIONS(att_call_options, .progress = p->options.progress, .user = p->options.user),
                           e->n + e->n_valid);
}

static void close_all(image_probe *p)
{
    if (p->trained)
        att_image_input_free(&p->input);
    att_vit_free(p->trained);
    att_image_model_free(p->model);
    att_opened_files_free(&p->files);
    att_probe_examples_free(&p->examples);
}

att_status att_image_probe_train(att_ctx *ctx, const char *model, const char *folder,
                                 const att_image_probe_options *options, att_probe_result *result)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"model", model}, {"folder", folder}, {"options", options})))
        return ATT_ERR_ARGUMENT;
    image_probe p = {.ctx = ctx, .folder = model, .examples.ctx = ctx, .files = {.ctx = ctx, .folder = model}};
    att_probe_result r = {.size = sizeof r};
    att_new_folder to = {.fd = -1};
    att_status s = att_options_read(&p.options, sizeof p.options, options, "att_image_probe_options");
    if (!s && !p.options.images)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.images is NULL", __func__);
    if (s)
        return s;
    const char **names = att_alloc(ctx, (size_t)p.options.images->info.classes, sizeof *names);
    s = names ? begin(&p, names) : ATT_ERR_MEMORY;
    s = s ? s : att_new_folder_begin(&to, ctx, folder);
    s = s ? s : train(&p, to.path, &r);
    s = att_new_folder_end(&to, s);
    close_all(&p);
    att_free(ctx, names);
    return s || !result ? s : att_info_write(result, &r, sizeof r, "att_probe_result");
}
