#include "model/model.h"

#include <string.h>

/* Builds a configured model from FOLDER/model.safetensors, or with random initialisation if folder is NULL. */
static att_status build(att_model *m, const char *folder, uint64_t seed)
{
    const att_model_kind *k = m->kind;
    att_checkpoint *c = NULL;
    att_status s = folder ? att_checkpoint_open(m->ctx, folder, k->names, k->prefix, &c) : ATT_OK;
    if (!s && m->trainable)
        s = att_parameter_store_new(m->ctx, seed, c, &m->store);
    m->checkpoint = m->store ? NULL : c; /* else the store owns it */
    s = s ? s : k->build(m, m->store ? &m->store->loader : &c->loader);
    if (!s && c)
        s = att_checkpoint_all_used(c, k->unused);
    if (!s && m->store)
        att_parameter_store_close_checkpoint(m->store);
    return s;
}

static att_status load(att_model *m, const char *folder)
{
    att_settings s;
    if (m->kind->load)
        return m->kind->load(m, folder);
    att_settings_read(&s, m->ctx, folder, "config.json", true);
    m->kind->configure(m, &s);
    att_settings_close(&s);
    return s.status ? s.status : build(m, folder, 0);
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
    kind->configure(m, settings);
    att_status s = settings->status;
    if (!s && out)
        s = build(m, NULL, seed);
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
    m->kind->free(m);
    att_checkpoint_close(m->checkpoint);
    att_parameter_store_free(m->store);
    att_free(m->ctx, m);
}

bool att_model_has(const att_model *m, const char *name)
{
    const att_checkpoint *c = m->store ? m->store->from : m->checkpoint;
    return !c || att_checkpoint_has(c, name);
}
