/* Causal language models of any architecture: finds the one of a folder, and computes logits. */
#include "stack/language_model.h"
#include "util/shape.h"
#include "util/util.h"

const att_model_kind *const att_language_kinds[] = {&att_gpt2.kind, &att_llama.kind, NULL};

/* ---- open */

att_var *att_language_model_prepare(att_tape *t, const void *model)
{
    return att_language_model_apply(t, model, (const int32_t[]){0}, (const int64_t[]){0, 1}, 1, NULL, NULL);
}

att_status att_language_model_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                   att_language_model **out)
{
    return att_model_open_as(ctx, __func__, att_language_kinds, folder, options, out);
}

void att_language_model_free(att_language_model *m) { att_model_free(m); }

att_status att_language_model_describe(const att_language_model *m, att_language_model_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &m->info, sizeof m->info, "att_language_model_info");
}

att_status att_language_model_weights(const att_language_model *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? &m->model : NULL, weights);
}

const att_nn_params *att_language_model_params(const att_language_model *m)
{
    return att_model_params(m ? &m->model : NULL);
}

/* ---- apply */

/* Checks that the sequences, with the tokens that the state has, fit into the model's positions. */
static bool check_lengths(att_tape *t, const att_language_model *m, const int64_t *offsets, int64_t n,
                          const att_language_state *state, bool last_only)
{
    if (state && !att_language_state_fits(state, m))
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "language model: the state belongs to another model") != NULL;
    if (state && att_language_state_sequences(state) != n)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "language model: n is %lld, but the state has %lld sequences",
                             (long long)n, (long long)att_language_state_sequences(state)) != NULL;
    for (int64_t b = 0; b < n; b++) {
        const int64_t before = state ? att_language_state_length(state, b) : 0, more = offsets[b + 1] - offsets[b];
        if (before + more > m->info.max_positions)
            return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                 "language model: sequence %lld has %lld tokens, %lld of them in the state, but the "
                                 "model has %lld positions",
                                 (long long)b, (long long)(before + more), (long long)before,
                                 (long long)m->info.max_positions) != NULL;
        if (last_only && more == 0)
            return att_tape_fail(t, ATT_ERR_ARGUMENT, "language model: sequence %lld is empty, and has no last token",
                                 (long long)b) != NULL;
    }
    return true;
}

/* Returns the rows of the last tokens of n sequences, [rows, hidden], of x [tokens, hidden]: last[b] tokens of each or,
 * if last is NULL, one. */
static att_var *last_rows(att_tape *t, const att_language_model *m, att_var *x, const int64_t *offsets, int64_t n,
                          const int64_t *last)
{
    int32_t *row = att_alloc(m->model.ctx, (size_t)att_max(offsets[n], n) + 1, sizeof *row);
    int64_t rows = 0;
    if (!row)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t b = 0; b < n; b++)
        for (int64_t i = offsets[b + 1] - (last ? last[b] : 1); i < offsets[b + 1]; i++)
            row[rows++] = (int32_t)i;
    att_var *y = att_gather(t, x, row, rows);
    att_free(m->model.ctx, row);
    return y;
}

att_var *att_language_model_layers_apply(att_tape *t, att_scope s, const att_language_model *m, const int32_t *ids,
                                         const int64_t *offsets, int64_t n, att_language_state *state)
{
    const att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    att_scope embeddings = att_scope_begin(t, "embeddings");
    att_var *x = att_scope_end(t, embeddings, att_language_architecture_of(m)->embed(t, m, ids, offsets, n, state));
    for (int64_t i = 0; i < m->info.layers; i++) {
        const att_nn_layer_call call = att_language_state_call(state, i, &args);
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_encoder_layer_apply(t, m->layer[i], x, &call));
        x = att_scope_reset(t, s, x);
    }
    return x;
}

/* Returns the logits of the rows x of a pass. */
static att_var *logits(att_tape *t, att_scope s, const att_language_model *m, att_var *x)
{
    x = att_scope_reset(t, s, att_nn_norm_apply(t, m->norm, x));
    return att_scope_end(t, s, att_linear(t, x, m->head, NULL, ATT_ACTIVATION_IDENTITY, NULL));
}

att_var *att_language_model_head(att_tape *t, const att_language_model *m, att_var *x)
{
    att_tensor v;
    if (!att_tape_require(t, "language_model_head", ATT_NAMED({"m", m})) || !x || att_var_value(t, x, &v))
        return NULL;
    if (v.rank != 2 || v.dim[1] != m->info.hidden)
        return att_tape_fail(t, ATT_ERR_SHAPE, "language_model_head: x is %s, not [rows, %lld]", att_shape_of(&v).text,
                             (long long)m->info.hidden);
    return logits(t, att_scope_begin(t, "output"), m, x);
}

att_var *att_language_model_apply(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                  int64_t n, att_language_state *state, const att_language_model_options *options)
{
    att_language_model_options o;
    if (!att_tape_require(t, "language model", ATT_NAMED({"m", m})) ||
        !att_tape_options_read(t, "language model", &o, sizeof o, options, "att_language_model_options") ||
        !att_sequences_fit(t, "language model", ids, offsets, n, m->info.max_positions) ||
        !check_lengths(t, m, offsets, n, state, o.last_only))
        return NULL;
    att_scope s = att_scope_begin(t, "decoder");
    att_var *x = att_language_model_layers_apply(t, s, m, ids, offsets, n, state);
    return logits(t, s, m, o.last_only ? last_rows(t, m, x, offsets, n, NULL) : x);
}

att_var *att_language_model_rows(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                 int64_t n, att_language_state *state, const int64_t *last)
{
    if (!att_sequences_fit(t, "language model", ids, offsets, n, m->info.max_positions) ||
        !check_lengths(t, m, offsets, n, state, false))
        return NULL;
    att_scope s = att_scope_begin(t, "decoder");
    att_var *x = att_language_model_layers_apply(t, s, m, ids, offsets, n, state);
    return logits(t, s, m, last_rows(t, m, x, offsets, n, last));
}

att_var *att_language_model_loss(att_tape *t, const att_language_model *m, const int32_t *ids, const int64_t *offsets,
                                 int64_t n, const int32_t *targets, const att_cross_entropy_options *options)
{
    if (!att_tape_require(t, "language model", ATT_NAMED({"m", m}, {"targets", targets})) ||
        !att_sequences_fit(t, "language model", ids, offsets, n, m->info.max_positions))
        return NULL;
    att_scope s = att_scope_begin(t, "decoder");
    att_var *x = att_language_model_layers_apply(t, s, m, ids, offsets, n, NULL);
    x = att_scope_reset(t, s, att_nn_norm_apply(t, m->norm, x));
    return att_scope_end(t, s, att_linear_cross_entropy(t, x, m->head, NULL, targets, options));
}
