/* BERT (Devlin et al. 2018):
 *
 * x = LayerNorm(word(ids) + type(type_ids) + position)
 * each layer: x = LayerNorm(x + Attention(x)), x = LayerNorm(x + f(x W_inner + b) W_outer + b)
 *
 * RoBERTa (Liu et al. 2019), XLM-R (Conneau et al. 2020) and CamemBERT (Martin et al. 2020) are the same, but positions
 * begin after the id of padding. */
#include "stack/bert_config.h"

typedef struct bert {
    att_encoder base;
    att_bert_config config;
    att_param *word, *position, *type; /* tables */
    const att_nn_norm *norm;
} bert;

/* The names of parameters, in attend and in the class BertModel. The oldest checkpoints have gamma and beta. */
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
    LINEAR("pooler", "pooler.dense"),
    {0},
};
/* Tensors of many checkpoints that are not used for hidden states. */
static const char *const unused[] = {"embeddings.position_ids", "pooler.", "cls.", "lm_head.", NULL};

static void configure(att_model *m, att_settings *s)
{
    att_bert_config_read(s, &att_bert_keys_of_class, &((bert *)m)->config);
    ((bert *)m)->base.info.type = att_encoder_type(m, s);
}

static void configure_roberta(att_model *m, att_settings *s)
{
    bert *r = (bert *)m;
    configure(m, s);
    if (att_settings_has_key(s, "pad_token_id") && !att_settings_has(s, "pad_token_id"))
        att_settings_unsupported(s, "pad_token_id", "an id, after which positions begin,");
    r->base.info.first_position = att_settings_int_or(s, "pad_token_id", 0, r->config.vocabulary - 1, 1) + 1;
    att_bert_check_positions(s, &r->config, r->base.info.first_position);
}

static att_status build(att_model *base)
{
    bert *m = (bert *)base;
    const att_bert_config *c = &m->config;
    m->word = att_model_embedding(base, "embeddings.word", c->vocabulary, c->hidden, -1);
    m->position = att_model_embedding(base, "embeddings.position", c->positions, c->hidden, -1);
    m->type = att_model_embedding(base, "embeddings.type", c->types, c->hidden, -1);
    m->norm = att_nn_norm_new(base->params, "embeddings.norm", ATT_NN_NORM_LAYER, c->hidden, c->eps);
    att_bert_layers(&m->base, c, NULL);
    return ATT_OK;
}

static att_var *embed(att_tape *t, const att_encoder *base, const att_encoder_input *in)
{
    const bert *m = (const bert *)base;
    att_var *word = att_embedding(t, m->word, in->ids, in->tokens);
    att_var *type = att_embedding(t, m->type, in->type_ids, in->tokens);
    return att_nn_norm_apply(t, m->norm, att_learned_positions(t, att_add(t, word, type), m->position, &in->at));
}

static const char *const types[] = {"bert"}, *const roberta_types[] = {"roberta", "xlm-roberta", "camembert"};
static const att_model_types bert_types = ATT_MODEL_TYPES(types), all_roberta_types = ATT_MODEL_TYPES(roberta_types);
const att_encoder_architecture att_bert = {.kind = {.bytes = sizeof(bert),
                                                    .types = &bert_types,
                                                    .configure = configure,
                                                    .build = build,
                                                    .prepare = att_encoder_prepare,
                                                    .names = names,
                                                    .prefix = "bert.",
                                                    .unused = unused},
                                           .embed = embed,
                                           .beside = {"pooler.dense.weight", "pooler.dense.bias"}};
const att_encoder_architecture att_roberta = {.kind = {.bytes = sizeof(bert),
                                                       .types = &all_roberta_types,
                                                       .configure = configure_roberta,
                                                       .build = build,
                                                       .prepare = att_encoder_prepare,
                                                       .names = names,
                                                       .prefix = "roberta.",
                                                       .unused = unused},
                                              .embed = embed,
                                              .beside = {"pooler.dense.weight", "pooler.dense.bias"}};
