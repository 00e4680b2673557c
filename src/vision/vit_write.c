/* Writes a vision Transformer, and opens a pre-trained one for other classes. */
#include "io/atomic_write.h"
#include "io/check_texts.h"
#include "vision/vit.h"
#include "text/utf8.h"

#include <string.h>

static att_status check_type(const att_vit *m)
{
    return att_vit_naming(m) ? ATT_OK
                             : att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED,
                                        "a model of type \"%s\" that has more than a ViT (other tokens, norms or "
                                        "positions, layer scale, SwiGLU) cannot be written",
                                        m->config.info.type);
}

static att_status check_labels(const att_vit *m, const char *const *labels)
{
    att_ctx *ctx = m->model.ctx;
    const int64_t n = labels ? m->config.info.classes : 0;
    att_status s = n ? att_check_texts(ctx, "labels", labels, n) : ATT_OK;
    for (int64_t i = 0; !s && i < n; i++)
        if (!att_utf8_valid(labels[i], strlen(labels[i])))
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "the name of class %lld is not UTF-8: config.json cannot have it",
                         (long long)i);
    return s;
}

att_status att_vit_check_written(const att_vit *m, const char *const *labels)
{
    const att_status s = check_type(m);
    return s ? s : check_labels(m, labels);
}

att_status att_vit_write(const att_vit *m, const char *folder, const char *const *labels, att_dtype dtype)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    if (!m->model.trainable)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "%s: the model is not trainable: it comes from att_vit_open",
                        __func__);
    att_status s = att_vit_check_written(m, labels);
    s = s ? s : att_make_folder(m->model.ctx, folder);
    s = s ? s : att_settings_write(m->model.ctx, folder, "config.json", att_vit_config_json(&m->config, labels));
    return s ? s : att_model_write(&m->model, folder, dtype, att_vit_naming(m), m, 0, NULL, NULL);
}

/* ---- other classes */

static bool is_head(const att_model *m, const char *name, const void *config)
{
    (void)m, (void)config;
    return !strncmp(name, "head.", 5);
}

/* Writes all parameters but those of the classifier, whose shapes differ. */
static att_status copy_parameters(const att_vit *to, const att_vit *from)
{
    const char *name;
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < att_nn_params_count(att_vit_params(from)); i++) {
        const att_param *p = att_nn_params_at(att_vit_params(from), i, &name);
        if (!is_head(&from->model, name, NULL))
            e = att_tensor_convert(from->model.ctx, att_param_value(p),
                                   att_param_value(att_nn_params_find(to->model.params, name)));
    }
    return e;
}

/* Makes a model with a new classifier and the other parameters of m. */
static att_status replace_classifier(const att_vit *m, const char *folder, int64_t classes, uint64_t seed,
                                     att_vit **out)
{
    att_settings s;
    att_vit_config c = m->config;
    c.info.classes = classes;
    att_settings_from_json(&s, m->model.ctx, folder, att_vit_config_json(&c, NULL));
    att_status e = att_vit_make(m->model.ctx, &s, seed, out);
    att_settings_close(&s);
    e = e ? e : copy_parameters(*out, m);
    if (e) {
        att_vit_free(*out);
        *out = NULL;
    }
    return e;
}

static void set_config(att_model *m, att_settings *s, const void *config)
{
    (void)s;
    ((att_vit *)m)->config = *(const att_vit_config *)config;
}

/* Makes the model for other classes if some parameters are frozen, which are views of the folder's file: opens the
 * folder again with a new classifier. */
static att_status open_again(const att_vit *m, const char *folder, int64_t classes,
                             const att_trainable_options *options, uint64_t seed, att_vit **out)
{
    att_vit_config c = m->config;
    c.info.classes = classes;
    return att_model_open_changed(
        m->model.ctx, "att_vit_open_for_classes", m->model.kind, folder, options,
        &(const att_model_change){.configured = set_config, .user = &c, .fresh = is_head, .seed = seed}, out);
}

att_status att_vit_open_for_classes(att_ctx *ctx, const char *folder, const char *const *labels, int64_t classes,
                                    const att_trainable_options *options, uint64_t seed, att_vit **out)
{
    att_vit *m;
    bool same = false;
    *out = NULL;
    att_status e = att_vit_open_for_training(ctx, folder, options, &m);
    e = e ? e : check_type(m);
    if (!e)
        m->config.info.multi_label = false; /* each image has one class */
    if (!e && m->config.info.classes == classes)
        e = att_vit_order_classes(m, folder, labels, &same);
    if (!e && same) {
        *out = m;
        return ATT_OK;
    }
    const bool frozen = options && options->n_freeze > 0;
    if (!e)
        e = frozen ? open_again(m, folder, classes, options, seed, out)
                   : replace_classifier(m, folder, classes, seed, out);
    att_vit_free(m);
    return e;
}
