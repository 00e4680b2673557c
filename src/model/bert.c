/* BERT: the encoder of the Transformer (Devlin et al. 2018). */
#include "attend_model.h"
#include "model/bert_config.h"
#include "model/checkpoint.h"
#include "nn/nn.h"

#include <string.h>

struct att_bert {
    att_ctx *ctx;
    att_bert_config config;
    att_checkpoint *checkpoint; /* owns all parameters */
    att_plan *plan;             /* attention of one layer */
    att_nn_embedding word, position, type;
    att_nn_layer_norm norm;
    att_nn_encoder_layer *layer; /* [config.layers] */
};

/* Our names, and those of the class BertModel; the oldest checkpoints say gamma and beta. */
static const att_checkpoint_name names[] = {
    {"embeddings.word.weight", "embeddings.word_embeddings.weight"},
    {"embeddings.position.weight", "embeddings.position_embeddings.weight"},
    {"embeddings.type.weight", "embeddings.token_type_embeddings.weight"},
    {"embeddings.norm.gamma", "embeddings.LayerNorm.weight"},
    {"embeddings.norm.gamma", "embeddings.LayerNorm.gamma"},
    {"embeddings.norm.beta", "embeddings.LayerNorm.bias"},
    {"embeddings.norm.beta", "embeddings.LayerNorm.beta"},
    {"layer.*.attention.query.weight", "encoder.layer.*.attention.self.query.weight"},
    {"layer.*.attention.query.bias", "encoder.layer.*.attention.self.query.bias"},
    {"layer.*.attention.key.weight", "encoder.layer.*.attention.self.key.weight"},
    {"layer.*.attention.key.bias", "encoder.layer.*.attention.self.key.bias"},
    {"layer.*.attention.value.weight", "encoder.layer.*.attention.self.value.weight"},
    {"layer.*.attention.value.bias", "encoder.layer.*.attention.self.value.bias"},
    {"layer.*.attention.output.weight", "encoder.layer.*.attention.output.dense.weight"},
    {"layer.*.attention.output.bias", "encoder.layer.*.attention.output.dense.bias"},
    {"layer.*.attention_norm.gamma", "encoder.layer.*.attention.output.LayerNorm.weight"},
    {"layer.*.attention_norm.gamma", "encoder.layer.*.attention.output.LayerNorm.gamma"},
    {"layer.*.attention_norm.beta", "encoder.layer.*.attention.output.LayerNorm.bias"},
    {"layer.*.attention_norm.beta", "encoder.layer.*.attention.output.LayerNorm.beta"},
    {"layer.*.feed_forward.inner.weight", "encoder.layer.*.intermediate.dense.weight"},
    {"layer.*.feed_forward.inner.bias", "encoder.layer.*.intermediate.dense.bias"},
    {"layer.*.feed_forward.outer.weight", "encoder.layer.*.output.dense.weight"},
    {"layer.*.feed_forward.outer.bias", "encoder.layer.*.output.dense.bias"},
    {"layer.*.feed_forward_norm.gamma", "encoder.layer.*.output.LayerNorm.weight"},
    {"layer.*.feed_forward_norm.gamma", "encoder.layer.*.output.LayerNorm.gamma"},
    {"layer.*.feed_forward_norm.beta", "encoder.layer.*.output.LayerNorm.bias"},
    {"layer.*.feed_forward_norm.beta", "encoder.layer.*.output.LayerNorm.beta"},
    {0},
};
/* In many checkpoints, and not needed for hidden states. */
static const char *const unused[] = {"embeddings.position_ids", "pooler.", "cls.", NULL};

/* ---- load */

static void load_embeddings(att_bert *m, att_nn_source *s)
{
    const att_bert_config *c = &m->config;
    m->word = att_nn_embedding_load(s, "embeddings.word", c->vocabulary, c->hidden);
    m->position = att_nn_embedding_load(s, "embeddings.position", c->max_positions, c->hidden);
    m->type = att_nn_embedding_load(s, "embeddings.type", c->types, c->hidden);
    m->norm = att_nn_layer_norm_load(s, "embeddings.norm", c->hidden, c->eps);
}

static void load_layers(att_bert *m, att_nn_source *s)
{
    const att_bert_config *c = &m->config;
    const att_nn_layer_config layer = {.hidden = c->hidden,
                                       .heads = c->heads,
                                       .intermediate = c->intermediate,
                                       .activation = c->activation,
                                       .eps = c->eps,
                                       .plan = m->plan};
    for (int64_t i = 0; i < c->layers; i++)
        m->layer[i] = att_nn_encoder_layer_load(s, att_nn_number("layer", i).text, &layer);
}

static att_status load(att_bert *m, const char *folder)
{
    att_status s = att_bert_config_read(m->ctx, folder, &m->config);
    const att_bert_config *c = &m->config;
    if (!s)
        s = att_plan_new(m->ctx, ATT_OPTIONS(att_attention_spec, .heads = c->heads, .head_dim = c->hidden / c->heads),
                         &m->plan);
    if (!s)
        s = att_checkpoint_open(m->ctx, folder, names, "bert.", &m->checkpoint);
    if (!s && !(m->layer = att_alloc(m->ctx, (size_t)c->layers, sizeof *m->layer)))
        s = ATT_ERR_MEMORY;
    if (s)
        return s;
    load_embeddings(m, &m->checkpoint->source);
    load_layers(m, &m->checkpoint->source);
    s = m->checkpoint->source.status;
    return s ? s : att_checkpoint_all_used(m->checkpoint, unused);
}

att_status att_bert_open(att_ctx *ctx, const char *folder, att_bert **out)
{
    if (!folder || !out)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_bert_open: %s is NULL", folder ? "out" : "folder");
    *out = NULL;
    att_bert *m = att_alloc(ctx, 1, sizeof *m);
    if (!m)
        return ATT_ERR_MEMORY;
    *m = (att_bert){.ctx = ctx};
    const att_status s = load(m, folder);
    if (s)
        att_bert_free(m);
    else
        *out = m;
    return s;
}

void att_bert_free(att_bert *m)
{
    if (!m)
        return;
    att_checkpoint_close(m->checkpoint);
    att_plan_free(m->plan);
    att_free(m->ctx, m->layer);
    att_free(m->ctx, m);
}

att_status att_bert_describe(const att_bert *m, att_bert_info *info)
{
    const att_bert_config *c = &m->config;
    const att_bert_info all = {.vocabulary = c->vocabulary,
                               .hidden = c->hidden,
                               .layers = c->layers,
                               .heads = c->heads,
                               .intermediate = c->intermediate,
                               .max_positions = c->max_positions};
    return att_give_info(info, &all, sizeof all, "att_bert_info");
}

/* ---- apply */

/* LayerNorm(word + position + type), all tokens of type 0 */
static att_var *embed(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    const int64_t tokens = offsets[n];
    int32_t *positions = att_alloc(m->ctx, (size_t)tokens + 1, sizeof *positions);
    int32_t *types = att_alloc(m->ctx, (size_t)tokens + 1, sizeof *types);
    if (!positions || !types) {
        att_free(m->ctx, positions);
        att_free(m->ctx, types);
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->ctx));
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = offsets[i]; j < offsets[i + 1]; j++) {
            positions[j] = (int32_t)(j - offsets[i]);
            types[j] = 0;
        }
    att_scope s = att_scope_begin(t, "embeddings");
    att_var *word = att_nn_embedding_apply(t, &m->word, ids, tokens);
    att_var *position = att_nn_embedding_apply(t, &m->position, positions, tokens);
    att_var *type = att_nn_embedding_apply(t, &m->type, types, tokens);
    att_var *x = att_nn_layer_norm_apply(t, &m->norm, att_add(t, att_add(t, word, type), position));
    att_free(m->ctx, positions);
    att_free(m->ctx, types);
    return att_scope_end(t, s, x);
}

att_var *att_bert_apply(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    if (!att_nn_sequences_fit(t, "bert", ids, offsets, n, m->config.max_positions))
        return NULL;
    att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    att_scope s = att_scope_begin(t, "bert");
    att_var *x = embed(t, m, ids, offsets, n);
    for (int64_t i = 0; i < m->config.layers; i++) {
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_encoder_layer_apply(t, &m->layer[i], x, &args, NULL));
        x = att_scope_keep(t, s, x);
    }
    return att_scope_end(t, s, x);
}
