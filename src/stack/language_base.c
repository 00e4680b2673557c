/* Causal language models without their output layer, for embeddings of texts: hidden states after the last norm. */
#include "stack/language_model.h"

#include <stdio.h>
#include <string.h>

const att_model_kind *const att_language_base_kinds[] = {&att_gpt2_base.kind, &att_llama_base.kind, NULL};

att_var *att_language_base_prepare(att_tape *t, const void *model)
{
    return att_language_base_apply(t, model, (const int32_t[]){0}, (const int64_t[]){0, 1}, 1);
}

att_status att_language_base_open_inside(const att_model *outer, const char *folder,
                                         const att_model_extension *extension, att_language_model **out)
{
    const att_model_kind *kind = NULL;
    const att_status s =
        att_model_kind_find(outer->ctx, outer->progress.call, folder, att_language_base_kinds, &kind, out);
    return s ? s : att_model_open_inside(outer, kind, folder, extension, out);
}

att_var *att_language_base_apply(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                 int64_t n)
{
    if (!att_sequences_fit(t, "language model", ids, offsets, n, m->info.max_positions))
        return NULL;
    att_scope s = att_scope_begin(t, "decoder");
    att_var *x = att_language_model_layers_apply(t, s, m, ids, offsets, n, NULL);
    return att_scope_end(t, s, att_nn_norm_apply(t, m->norm, x));
}

/* ---- trace */

att_trace_part att_language_trace_part(const att_language_model *m, int64_t n)
{
    const att_language_model_info *i = &m->info;
    return (att_trace_part){.side = ATT_TRACE_SIDE_DECODER,
                            .layers = i->layers,
                            .heads = i->heads,
                            .kv_heads = i->kv_heads,
                            .head_dim = i->head_dim,
                            .queries = n,
                            .keys = n,
                            .causal = m->causal,
                            .window = i->window,
                            .hidden = i->hidden};
}

/* ---- write */

att_status att_language_base_write(const att_language_model *m, const char *folder, att_dtype dtype)
{
    const char *type = m->info.type;
    if (m->model.kind != &att_llama_base.kind || !strcmp(type, "phi3"))
        return att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED,
                        "%s: models of the type \"%s\", whose matrices are parts of others, cannot be written", folder,
                        type);
    return att_model_write(&m->model, folder, dtype, NULL, NULL, 0, NULL, NULL);
}
