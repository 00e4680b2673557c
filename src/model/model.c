#include "model/model.h"

#include <math.h>
#include <string.h>

/* In a new model matrices are uniform in +-sqrt(6 / (in + out)) (Glorot, Bengio 2010), convolutions normal by their
 * inputs (He et al. 2015), and biases are 0. */
static att_status initialize(void *user, const char *name, const att_init *init, const att_tensor *value)
{
    const att_model *m = user;
    const int last = value->rank - 1;
    att_init ours = {.size = sizeof ours};
    if (value->rank == 4)
        ours.kind = ATT_INIT_KAIMING_NORMAL;
    else if (last > 0) {
        ours.kind = ATT_INIT_XAVIER_UNIFORM;
        ours.fan_in = value->dim[last];
        ours.fan_out = value->dim[last - 1];
    }
    const bool chosen =
        init->kind == ATT_INIT_CONSTANT || init->kind == ATT_INIT_NORMAL || init->kind == ATT_INIT_TRUNCATED_NORMAL;
    return att_initialize(m->ctx, value, chosen ? init : &ours, m->seed, name);
}

/* Builds a configured model from its checkpoint, or with random initialisation if there is none. */
static att_status build(att_model *m)
{
    const att_model_kind *k = m->kind;
    const att_nn_params_config c = {.size = sizeof c,
                                    .load = !m->checkpoint      ? NULL
                                            : k->load_parameter ? k->load_parameter
                                                                : att_checkpoint_load,
                                    .initialize = initialize,
                                    .user = m->checkpoint && !k->load_parameter ? (void *)m->checkpoint : m,
                                    .trainable = m->trainable};
    att_status s = att_nn_params_new(m->ctx, &c, &m->params);
    s = s ? s : k->build(m);
    s = s ? s : att_nn_params_status(m->params);
    if (!s && m->checkpoint)
        s = att_checkpoint_all_used(m->checkpoint, k->unused);
    if (!s && m->trainable) { /* it has copies */
        att_checkpoint_close(m->checkpoint);
        m->checkpoint = NULL;
    }
    return s;
}

static att_status load_folder(att_model *m, const char *folder)
{
    const att_model_kind *k = m->kind;
    att_settings settings;
    att_settings_read(&settings, m->ctx, folder, "config.json", true);
    k->configure(m, &settings);
    att_settings_close(&settings);
    att_status s = settings.status;
    s = s ? s : att_checkpoint_open(m->ctx, folder, k->names, k->prefix, &m->checkpoint);
    return s ? s : build(m);
}

static att_status load_gguf(att_model *m, const char *path)
{
    const att_model_kind *k = m->kind;
    att_gguf *g;
    json_t *config;
    att_settings settings = {0};
    att_status s = att_gguf_open(m->ctx, path, &g);
    s = s ? s : att_gguf_config(g, &config);
    if (!s) {
        att_settings_from_json(&settings, m->ctx, path, config);
        k->configure(m, &settings);
        att_settings_close(&settings);
        s = settings.status;
    }
    if (s)
        att_gguf_free(g);
    else
        s = att_checkpoint_open_gguf(m->ctx, g, k->names, k->prefix, &m->checkpoint);
    return s ? s : build(m);
}

static att_status load(att_model *m, const char *folder)
{
    char gguf[ATT_MAX_PATH];
    if (m->kind->load)
        return m->kind->load(m, folder);
    const att_status s = att_gguf_path(m->ctx, folder, "config.json", gguf);
    if (s)
        return s;
    return *gguf ? load_gguf(m, gguf) : load_folder(m, folder);
}

static att_model *begin(att_ctx *ctx, const att_model_kind *kind, bool trainable)
{
    att_model *m = att_calloc(ctx, 1, kind->bytes);
    if (m)
        *m = (att_model){.kind = kind, .ctx = ctx, .trainable = trainable};
    return m;
}

/* All pointers to structs have the same representation. */
static void set_out(att_model *m, void *out) { memcpy(out, &m, sizeof m); }

att_status att_model_open(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                          bool trainable, void *out)
{
    if (out)
        set_out(NULL, out);
    if (att_require(caller, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_model *m = begin(ctx, kind, trainable);
    const att_status s = m ? load(m, folder) : ATT_ERR_MEMORY;
    if (s)
        att_model_free(m);
    else
        set_out(m, out);
    return s;
}

att_status att_model_new(att_ctx *ctx, const att_model_kind *kind, att_settings *settings, uint64_t seed, void *out)
{
    if (out)
        set_out(NULL, out);
    att_model *m = begin(ctx, kind, true);
    if (!m)
        return ATT_ERR_MEMORY;
    m->seed = seed;
    kind->configure(m, settings);
    att_status s = settings->status;
    if (!s && out)
        s = build(m);
    if (s || !out)
        att_model_free(m);
    else
        set_out(m, out);
    return s;
}

void att_model_free(void *model)
{
    att_model *m = model;
    if (!m)
        return;
    if (m->kind->free)
        m->kind->free(m);
    att_nn_params_free(m->params);
    att_checkpoint_close(m->checkpoint);
    att_free(m->ctx, m);
}

bool att_model_has(const att_model *m, const char *name)
{
    return !m->checkpoint || att_checkpoint_has(m->checkpoint, name);
}

att_param *att_model_embedding(att_model *m, const char *name, int64_t n, int64_t features, int64_t pad)
{
    const att_init init = {.size = sizeof init, .kind = ATT_INIT_NORMAL, .value = 1 / sqrt((double)features)};
    att_param *p = att_nn_params_request(m->params, name, "weight", 2, (const int64_t[]){n, features}, &init);
    if (p && !m->checkpoint && pad >= 0 && pad < n)
        memset((float *)att_param_value(p)->data + pad * features, 0, (size_t)features * sizeof(float));
    return p;
}

const att_nn_params *att_model_params(const att_model *m) { return m && m->trainable ? m->params : NULL; }
