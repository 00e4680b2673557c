/* Computes classes and embeddings of images: a vision Transformer with its preprocessing. */
#include "attend_util.h"
#include "vision/image_run.h"
#include "model/class_names.h"
#include "model/composite.h"
#include "model/model.h"
#include "probe/probe.h"
#include "vision/vit.h"
#include "util/util.h"

#include <string.h>

/* Limits of the images that are computed together. */
enum { BATCH_TOKENS = 4096, MAX_BATCH = 256 };

struct att_image_model {
    att_ctx *ctx;
    att_vit *vit;
    att_image_processor *processor;
    att_image_processor_info input;
    att_vit_info info;
    att_probe *probe; /* the classifier instead of the one of vit; or NULL */
    char **label;     /* [info.classes] without a probe, which has its own */
};

/* ---- open */

att_status att_vit_check_input(const att_vit *m, const att_image_processor_info *p, const char *folder)
{
    const att_vit_info *v = &m->config.info;
    const bool fits = m->config.resampled ? p->height >= v->patch[0] && p->width >= v->patch[1]
                                          : p->height == v->image[0] && p->width == v->image[1];
    return fits && p->channels == v->channels
               ? ATT_OK
               : att_fail(m->model.ctx, ATT_ERR_FORMAT,
                          "%s: preprocessing makes images of %lld x %lld x %lld (height, width, channels), but the "
                          "model has %lld x %lld x %lld",
                          folder, (long long)p->height, (long long)p->width, (long long)p->channels,
                          (long long)v->image[0], (long long)v->image[1], (long long)v->channels);
}

static att_status open_all(void *self, const char *folder, const att_model_options *options)
{
    att_image_model *m = self;
    m->input.size = sizeof m->input;
    m->info.size = sizeof m->info;
    att_status s = att_vit_open(m->ctx, folder, options, &m->vit);
    s = s ? s : att_image_processor_open(m->ctx, folder, &m->processor);
    s = s ? s : att_vit_describe(m->vit, &m->info);
    s = s ? s : att_image_processor_describe(m->processor, &m->input);
    s = s ? s : att_vit_check_input(m->vit, &m->input, folder);
    s = s ? s : att_probe_read(m->ctx, folder, ATT_PROBE_IMAGES, att_image_model_dim(m), &m->probe);
    return s || m->probe ? s : att_vit_read_labels(m->ctx, folder, m->info.classes, &m->label);
}

static void free_all(void *self) { att_image_model_free(self); }

att_status att_image_model_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                att_image_model **out)
{
    static const att_composite kind = {sizeof(att_image_model), open_all, free_all};
    return att_composite_open(ctx, __func__, &kind, folder, options, out);
}

void att_image_model_free(att_image_model *m)
{
    if (!m)
        return;
    att_class_names_free(m->ctx, m->info.classes, m->label);
    att_probe_free(m->probe);
    att_image_processor_free(m->processor);
    att_vit_free(m->vit);
    att_free(m->ctx, m);
}

att_status att_image_model_weights(const att_image_model *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? &m->vit->model : NULL, weights);
}

const att_vit *att_image_model_vit(const att_image_model *m) { return m ? m->vit : NULL; }

const att_nn_params *att_image_model_params(const att_image_model *m) { return att_vit_params(att_image_model_vit(m)); }

const att_image_processor *att_image_model_processor(const att_image_model *m) { return m ? m->processor : NULL; }

int64_t att_image_model_dim(const att_image_model *m)
{
    return m ? m->info.hidden * (m->info.pooling == ATT_VIT_POOLING_CLS_AND_MEAN ? 2 : 1) : 0;
}

const att_probe *att_image_model_probe(const att_image_model *m) { return m ? m->probe : NULL; }

int64_t att_image_model_classes(const att_image_model *m)
{
    return !m ? 0 : m->probe ? m->probe->info.classes : m->info.classes;
}

const char *att_image_model_label(const att_image_model *m, int64_t i)
{
    if (i < 0 || i >= att_image_model_classes(m))
        return NULL;
    return m->probe ? m->probe->name[i] : m->label[i];
}

/* ---- batches */

typedef att_var *(*model_function)(att_tape *t, const att_image_model *m, att_var *images);

typedef struct model_call {
    const att_image_model *model;
    model_function function;
} model_call;

static att_var *call(att_tape *t, const void *user, att_var *images)
{
    const model_call *c = user;
    return c->function(t, c->model, images);
}

int64_t att_vit_batch(const att_vit_info *v, const att_image_processor_info *p)
{
    const int64_t tokens = v->prefix + p->height / v->patch[0] * (p->width / v->patch[1]);
    return att_max(1, att_min(MAX_BATCH, BATCH_TOKENS / tokens));
}

/* Applies f to all images, and writes the results to out [n, width]. */
static att_status run(const att_image_model *m, int64_t n, const att_image *images, model_function f, att_progress *p,
                      float *out, int64_t width)
{
    const model_call c = {m, f};
    const att_image_run r = {.model = &m->vit->model,
                             .processor = m->processor,
                             .batch = att_vit_batch(&m->info, &m->input),
                             .width = width,
                             .apply = call,
                             .user = &c,
                             .progress = p};
    const att_status s = att_image_run_all(&r, n, images, out);
    return s ? s : att_progress_end(p);
}

static att_status check(const char *function, const att_image_model *m, int64_t n, const att_image *images,
                        const float *out)
{
    if (att_require(function, ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    if (n < 0)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "%s: n is %lld, expected 0 or more", function, (long long)n);
    return n > 0 ? att_require(function, ATT_NAMED({"images", images}, {"out", out})) : ATT_OK;
}

static att_var *features(att_tape *t, const att_image_model *m, att_var *images)
{
    return att_vit_features(t, m->vit, images, NULL);
}

static att_var *probabilities(att_tape *t, const att_image_model *m, att_var *images)
{
    if (m->probe)
        return att_softmax(t, att_probe_apply(t, m->probe, features(t, m, images)));
    att_var *logits = att_vit_logits(t, m->vit, images, NULL);
    return m->info.multi_label ? att_activate(t, logits, ATT_ACTIVATION_SIGMOID) : att_softmax(t, logits);
}

att_status att_image_classify(const att_image_model *m, int64_t n, const att_image *images,
                              const att_call_options *options, float *out)
{
    att_progress p;
    const int64_t classes = att_image_model_classes(m);
    att_status s = check(__func__, m, n, images, out);
    if (!s && !classes)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "%s: the model has no classifier", __func__);
    s = s ? s : att_progress_of(&p, m->ctx, __func__, options, n);
    s = s ? s : run(m, n, images, probabilities, &p, out, classes);
    return s ? s : att_check_finite(m->ctx, "the probabilities of image", n, classes, out);
}

att_status att_image_embed(const att_image_model *m, int64_t n, const att_image *images,
                           const att_call_options *options, float *out)
{
    att_progress p;
    const int64_t dim = att_image_model_dim(m);
    att_status s = check(__func__, m, n, images, out);
    s = s ? s : att_progress_of(&p, m->ctx, __func__, options, n);
    s = s ? s : run(m, n, images, features, &p, out, dim);
    return s ? s : att_check_finite(m->ctx, "the numbers of the vector of image", n, dim, out);
}
