/* Opens, applies and writes text encoders of any architecture. */
#include "stack/encoder.h"

#include <string.h>

const att_model_kind *const att_encoder_kinds[] = {
    &att_bert.kind,       &att_roberta.kind,    &att_distilbert.kind,  &att_mpnet.kind,
    &att_modernbert.kind, &att_nomic_bert.kind, &att_gemma3_text.kind, NULL};

/* ---- open */

att_var *att_encoder_prepare(att_tape *t, const void *model)
{
    return att_encoder_apply(t, model, (const int32_t[]){0}, (const int64_t[]){0, 1}, 1, NULL);
}

att_status att_encoder_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_encoder **out)
{
    return att_model_open_as(ctx, __func__, att_encoder_kinds, folder, options, out);
}

att_status att_encoder_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                         att_encoder **out)
{
    const att_model_kind *kind = NULL;
    const att_status s = att_model_kind_find(ctx, __func__, folder, att_encoder_kinds, &kind, out);
    return s ? s : att_model_open_for_training(ctx, __func__, kind, folder, options, out);
}

att_status att_encoder_open_inside(const att_model *outer, const char *folder, const att_model_extension *extension,
                                   att_encoder **out)
{
    const att_model_kind *kind = NULL;
    const att_status s = att_model_kind_find(outer->ctx, outer->progress.call, folder, att_encoder_kinds, &kind, out);
    return s ? s : att_model_open_inside(outer, kind, folder, extension, out);
}

void att_encoder_free(att_encoder *m) { att_model_free(m); }

att_status att_encoder_describe(const att_encoder *m, att_encoder_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &m->info, sizeof m->info, "att_encoder_info");
}

att_status att_encoder_weights(const att_encoder *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? &m->model : NULL, weights);
}

const att_nn_params *att_encoder_params(const att_encoder *m) { return att_model_params(m ? &m->model : NULL); }

/* ---- build */

const char *att_encoder_type(const att_model *m, att_settings *s)
{
    const void *row = att_model_type_find(m->kind->types, att_settings_text(s, "model_type", NULL));
    return row ? *(const char *const *)row : "";
}

void att_encoder_layer(att_encoder *m, int64_t i, const att_nn_layer_config *layer)
{
    att_nn_params *p = m->model.params;
    const int64_t window = layer->attention ? layer->attention->window : 0;
    if (!m->layer) {
        m->layer = att_nn_params_alloc(p, (size_t)m->info.layers * sizeof *m->layer);
        m->window = att_nn_params_alloc(p, (size_t)m->info.layers * sizeof *m->window);
    }
    if (att_nn_params_status(p))
        return;
    m->layer[i] = att_nn_encoder_layer_new(p, att_nn_number("layer", i).text, layer);
    m->window[i] = window ? 2 * window + 1 : 0;
}

void att_encoder_layers(att_encoder *m, const att_nn_layer_config *layer)
{
    for (int64_t i = 0; i < m->info.layers; i++)
        att_encoder_layer(m, i, layer);
}

/* ---- apply */

static bool check_type_ids(att_tape *t, const att_encoder *m, const int32_t *ids, int64_t tokens)
{
    const int64_t types = m->info.types ? m->info.types : 1;
    for (int64_t i = 0; ids && i < tokens; i++)
        if (ids[i] < 0 || ids[i] >= types)
            return att_tape_fail(t, ATT_ERR_ARGUMENT, "encoder: type_ids[%lld] = %d but the model has %lld token types",
                                 (long long)i, (int)ids[i], (long long)m->info.types) != NULL;
    return true;
}

static bool check_position_ids(att_tape *t, const att_encoder *m, const int64_t *ids, int64_t tokens)
{
    const int64_t positions = att_encoder_positions(m);
    for (int64_t i = 0; ids && i < tokens; i++)
        if (ids[i] < 0 || ids[i] >= positions)
            return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                 "encoder: position_ids[%lld] = %lld but the model has %lld positions", (long long)i,
                                 (long long)ids[i], (long long)positions) != NULL;
    return true;
}

static bool read_options(att_tape *t, const att_encoder *m, const att_encoder_options *options, int64_t tokens,
                         att_encoder_options *o)
{
    if (!att_tape_options_read(t, "encoder", o, sizeof *o, options, "att_encoder_options"))
        return false;
    if (o->dropout && !m->model.trainable)
        return att_tape_fail(t, ATT_ERR_ARGUMENT,
                             "encoder: dropout is true, but the model is not trainable: it comes from "
                             "att_encoder_open") != NULL;
    return check_type_ids(t, m, o->type_ids, tokens) && check_position_ids(t, m, o->position_ids, tokens);
}

/* Counts positions [tokens] of a model whose first position is after the id of padding, as fairseq does: a padding
 * token does not count. */
static void count_positions(const att_encoder *m, const int32_t *ids, const int64_t *offsets, int64_t n, int64_t *at)
{
    const int64_t padding = m->info.first_position - 1;
    for (int64_t b = 0; b < n; b++) {
        int64_t last = padding;
        for (int64_t i = offsets[b]; i < offsets[b + 1]; i++)
            at[i] = ids[i] == padding ? padding : ++last;
    }
}

/* The parts of a call's input that the options leave out, in memory that belongs to the call; NULL: not needed. */
typedef struct defaults {
    int32_t *type_ids;
    int64_t *position_ids;
} defaults;

static bool fill_in(const att_encoder *m, const int64_t *offsets, int64_t n, att_encoder_input *in, defaults *d)
{
    att_ctx *ctx = m->model.ctx;
    const size_t tokens = (size_t)in->tokens + 1;
    *d = (defaults){NULL, NULL};
    if (!in->type_ids)
        in->type_ids = d->type_ids = att_calloc(ctx, tokens, sizeof *d->type_ids);
    if (!in->at.position_ids && !m->info.first_position) {
        in->at.offsets = offsets;
        in->at.n = n;
    } else if (!in->at.position_ids) {
        in->at.position_ids = d->position_ids = att_alloc(ctx, tokens, sizeof *d->position_ids);
        if (d->position_ids)
            count_positions(m, in->ids, offsets, n, d->position_ids);
    }
    return in->type_ids && (in->at.position_ids || in->at.offsets);
}

/* Applies the layers to x, the embeddings, in scope s. */
static att_var *layers(att_tape *t, att_scope s, const att_encoder *m, att_var *x, const att_nn_layer_call *call)
{
    for (int64_t i = 0; i < m->info.layers; i++) {
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_encoder_layer_apply(t, m->layer[i], x, call));
        x = att_scope_reset(t, s, x);
    }
    return x;
}

att_var *att_encoder_output(att_tape *t, const att_encoder *m, att_var *x)
{
    return m->norm ? att_nn_norm_apply(t, m->norm, x) : x;
}

static att_var *apply(att_tape *t, const att_encoder *m, const att_encoder_input *in, const int64_t *offsets, int64_t n,
                      const att_encoder_options *o)
{
    const att_positions rows = {.size = sizeof rows, .offsets = offsets, .n = n};
    const att_nn_dropout dropout = {sizeof dropout, m->hidden_dropout, o->seed, &rows, o->sequence_ids};
    const att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    const att_nn_layer_call call = {
        .size = sizeof call, .args = &args, .positions = &in->at, .dropout = o->dropout ? &dropout : NULL};
    att_scope s = att_scope_begin(t, "encoder");
    att_scope embeddings = att_scope_begin(t, "embeddings");
    att_var *x = att_encoder_architecture_of(m)->embed(t, m, in);
    x = att_nn_dropout_apply(t, call.dropout, att_nn_dropout_id("embeddings", ""), x, NULL);
    x = layers(t, s, m, att_scope_end(t, embeddings, x), &call);
    return att_scope_end(t, s, att_encoder_output(t, m, x));
}

att_var *att_encoder_apply(att_tape *t, const att_encoder *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                           const att_encoder_options *options)
{
    att_encoder_options o;
    if (!att_tape_require(t, "encoder", ATT_NAMED({"m", m})) ||
        !att_sequences_fit(t, "encoder", ids, offsets, n, m->info.max_positions) ||
        !read_options(t, m, options, offsets[n], &o))
        return NULL;
    att_encoder_input in = {.tokens = offsets[n],
                            .ids = ids,
                            .type_ids = o.type_ids,
                            .at = {.size = sizeof in.at, .position_ids = o.position_ids}};
    defaults d;
    att_var *x = fill_in(m, offsets, n, &in, &d) ? apply(t, m, &in, offsets, n, &o)
                                                 : att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    att_free(m->model.ctx, d.type_ids);
    att_free(m->model.ctx, d.position_ids);
    return x;
}

/* ---- write */

/* The tensor of the class with this name in the file, or with the prefix of the kind before it; -1: there is none. */
static int64_t find_tensor(const att_checkpoint *file, const char *prefix, const char *name)
{
    const size_t n = strlen(prefix);
    int64_t i = 0;
    while (i < file->count) {
        const char *is = file->entry[i].name;
        if (!strcmp(is, name) || (!strncmp(is, prefix, n) && !strcmp(is + n, name)))
            return i;
        i++;
    }
    return -1;
}

att_status att_encoder_write_weights(const att_encoder *m, const char *from, const char *folder, att_dtype dtype)
{
    const att_encoder_architecture *a = att_encoder_architecture_of(m);
    att_checkpoint *file = NULL;
    const char *name[ATT_ENCODER_BESIDE];
    att_tensor beside[ATT_ENCODER_BESIDE];
    int64_t n = 0;
    att_status s = a->beside[0] ? att_checkpoint_open(m->model.ctx, from, NULL, "", &file) : ATT_OK;
    for (int i = 0; !s && i < ATT_ENCODER_BESIDE && a->beside[i]; i++) {
        const int64_t found = find_tensor(file, a->kind.prefix, a->beside[i]);
        if (found >= 0) {
            name[n] = a->beside[i];
            s = att_checkpoint_get(file, found, &beside[n++]);
        }
    }
    s = s ? s : att_model_write(&m->model, folder, dtype, att_encoder_in_file, m, n, name, beside);
    att_checkpoint_close(file);
    return s;
}
