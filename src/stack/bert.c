/* BERT: the encoder of the Transformer (Devlin et al. 2018). */
#include "stack/bert.h"
#include "io/file.h"
#include "stack/bert_config.h"
#include "model/model.h"

#include <string.h>

struct att_bert {
    att_model model;
    att_bert_config config;
    att_param *word, *position, *type; /* tables */
    const att_nn_norm *norm;
    const att_nn_encoder_layer **layer; /* [config.layers] */
};

/* Our parameter names and those of the class BertModel; the oldest checkpoints have gamma and beta. */
#define LINEAR ATT_CHECKPOINT_LINEAR
#define NORM(ours, theirs)                                                                                             \
    {ours ".weight", theirs ".weight"}, {ours ".weight", theirs ".gamma"}, {ours ".bias", theirs ".bias"},             \
    {                                                                                                                  \
        ours ".bias", theirs ".beta"                                                                                   \
    }
static const att_checkpoint_name names[] = {
    {"embeddings.word.weight", "embeddings.word_embeddings.weight"},
    {"embeddings.position.weight", "embeddings.position_embeddings.weight"},
    {"embeddings.type.weight", "embeddings.token_type_embeddings.weight"},
    NORM("embeddings.norm", "embeddings.LayerNorm"),
    LINEAR("layer.*.attention.query", "encoder.layer.*.attention.self.query"),
    LINEAR("layer.*.attention.key", "encoder.layer.*.attention.self.key"),
    LINEAR("layer.*.attention.value", "encoder.layer.*.attention.self.value"),
    LINEAR("layer.*.attention.output", "encoder.layer.*.attention.output.dense"),
    NORM("layer.*.attention_norm", "encoder.layer.*.attention.output.LayerNorm"),
    LINEAR("layer.*.feed_forward.inner", "encoder.layer.*.intermediate.dense"),
    LINEAR("layer.*.feed_forward.outer", "encoder.layer.*.output.dense"),
    NORM("layer.*.feed_forward_norm", "encoder.layer.*.output.LayerNorm"),
    {0},
};
/* Present in many checkpoints, but not used for hidden states. */
static const char *const unused[] = {"embeddings.position_ids", "pooler.", "cls.", NULL};

/* ---- open */

static void configure(att_model *m, att_settings *s) { att_bert_config_read(s, &((att_bert *)m)->config); }

static att_status build(att_model *base)
{
    att_bert *m = (att_bert *)base;
    const att_bert_config *c = &m->config;
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .heads = c->heads,
                                       .intermediate = c->intermediate,
                                       .activation = c->activation,
                                       .attention_dropout = base->trainable ? c->attention_dropout : 0,
                                       .eps = c->eps};
    m->word = att_model_embedding(base, "embeddings.word", c->vocabulary, c->hidden, -1);
    m->position = att_model_embedding(base, "embeddings.position", c->max_positions, c->hidden, -1);
    m->type = att_model_embedding(base, "embeddings.type", c->types, c->hidden, -1);
    m->norm = att_nn_norm_new(base->params, "embeddings.norm", ATT_NN_NORM_LAYER, c->hidden, c->eps);
    m->layer = att_nn_params_alloc(base->params, (size_t)c->layers * sizeof *m->layer);
    for (int64_t i = 0; m->layer && i < c->layers; i++)
        m->layer[i] = att_nn_encoder_layer_new(base->params, att_nn_number("layer", i).text, &layer);
    return ATT_OK;
}

static const char *const types[] = {"bert"};
static const att_model_types bert_types = ATT_MODEL_TYPES(types);
const att_model_kind att_bert_kind = {.bytes = sizeof(att_bert),
                                      .types = &bert_types,
                                      .configure = configure,
                                      .build = build,
                                      .names = names,
                                      .prefix = "bert.",
                                      .unused = unused};

att_status att_bert_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_bert **out)
{
    return att_model_open(ctx, __func__, &att_bert_kind, folder, options, out);
}

att_status att_bert_open_for_training(att_ctx *ctx, const char *folder, att_bert **out)
{
    return att_model_open_for_training(ctx, __func__, &att_bert_kind, folder, out);
}

void att_bert_free(att_bert *m) { att_model_free(m); }

int64_t att_bert_params(const att_bert *m) { return att_nn_params_count(att_model_params(m ? &m->model : NULL)); }

att_param *att_bert_param(const att_bert *m, int64_t i, const char **name)
{
    return att_nn_params_at(att_model_params(m ? &m->model : NULL), i, name);
}

att_status att_bert_describe(const att_bert *m, att_bert_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_bert_config *c = &m->config;
    const att_bert_info all = {.vocabulary = c->vocabulary,
                               .hidden = c->hidden,
                               .layers = c->layers,
                               .heads = c->heads,
                               .intermediate = c->intermediate,
                               .max_positions = c->max_positions};
    return att_info_write(info, &all, sizeof all, "att_bert_info");
}

/* ---- apply */

/* Dropout(LayerNorm(word + position + type)); all tokens have type 0 */
static att_var *embed(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                      const att_nn_dropout *dropout)
{
    const int64_t tokens = offsets[n];
    int32_t *positions = att_alloc(m->model.ctx, (size_t)tokens + 1, sizeof *positions);
    int32_t *types = att_alloc(m->model.ctx, (size_t)tokens + 1, sizeof *types);
    if (!positions || !types) {
        att_free(m->model.ctx, positions);
        att_free(m->model.ctx, types);
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = offsets[i]; j < offsets[i + 1]; j++) {
            positions[j] = (int32_t)(j - offsets[i]);
            types[j] = 0;
        }
    att_scope s = att_scope_begin(t, "embeddings");
    att_var *word = att_embedding(t, m->word, ids, tokens);
    att_var *position = att_embedding(t, m->position, positions, tokens);
    att_var *type = att_embedding(t, m->type, types, tokens);
    att_var *x = att_nn_norm_apply(t, m->norm, att_add(t, att_add(t, word, type), position));
    att_free(m->model.ctx, positions);
    att_free(m->model.ctx, types);
    return att_scope_end(t, s, att_nn_dropout_apply(t, dropout, att_nn_dropout_id("embeddings", ""), x, NULL));
}

static att_var *apply(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                      const att_nn_dropout *dropout)
{
    if (!att_sequences_fit(t, "bert", ids, offsets, n, m->config.max_positions))
        return NULL;
    const att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    const att_nn_layer_call call = {.size = sizeof call, .args = &args, .dropout = dropout};
    att_scope s = att_scope_begin(t, "bert");
    att_var *x = embed(t, m, ids, offsets, n, dropout);
    for (int64_t i = 0; i < m->config.layers; i++) {
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_encoder_layer_apply(t, m->layer[i], x, &call));
        x = att_scope_reset(t, s, x);
    }
    return att_scope_end(t, s, x);
}

att_var *att_bert_apply(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    return att_tape_require(t, "bert", ATT_NAMED({"m", m})) ? apply(t, m, ids, offsets, n, NULL) : NULL;
}

att_var *att_bert_apply_with_dropout(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets,
                                     int64_t n, uint64_t seed, const uint32_t *sequence_ids)
{
    if (!att_tape_require(t, "bert", ATT_NAMED({"m", m})))
        return NULL;
    if (!m->model.trainable)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "bert: the model is not trainable: it comes from att_bert_open");
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = n};
    const att_nn_dropout dropout = {sizeof dropout, m->config.hidden_dropout, seed, &at, sequence_ids};
    return apply(t, m, ids, offsets, n, &dropout);
}

/* ---- write */

static void name_tensor(const char *ours, char theirs[ATT_CHECKPOINT_NAME], att_tensor *value)
{
    (void)value;
    att_checkpoint_translate(names, "", ours, theirs);
}

att_status att_bert_write_weights(const att_bert *m, const char *from, const char *folder, att_dtype dtype)
{
    static const char *const pooler[][2] = {{"pooler.dense.weight", "bert.pooler.dense.weight"},
                                            {"pooler.dense.bias", "bert.pooler.dense.bias"}};
    char path[ATT_MAX_PATH];
    att_safetensors *file = NULL;
    const char *name[2];
    att_tensor beside[2];
    int64_t n = 0;
    att_status s = att_join_path(m->model.ctx, from, "model.safetensors", path);
    s = s ? s : att_safetensors_open(m->model.ctx, path, &file);
    for (int i = 0; !s && i < 4; i++) {
        if (att_safetensors_find(file, pooler[i / 2][i % 2]) < 0)
            continue;
        name[n] = pooler[i / 2][0];
        s = att_safetensors_get(file, pooler[i / 2][i % 2], &beside[n++]);
    }
    s = s ? s : att_model_write(&m->model, folder, dtype, name_tensor, n, name, beside);
    att_safetensors_free(file);
    return s;
}
