/* DistilBERT (Sanh et al. 2019): BERT without token types, with different names.
 *
 * x = LayerNorm(word(ids) + position) each layer: x = LayerNorm(x + Attention(x)), x = LayerNorm(x + f(x W_inner + b)
 * W_outer + b) */
#include "stack/bert_config.h"

typedef struct distilbert {
    att_encoder base;
    att_bert_config config;
    att_param *word, *position; /* tables */
    const att_nn_norm *norm;
} distilbert;

/* The names of parameters, in attend and in the class DistilBertModel. */
#define LINEAR ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name names[] = {
    {"embeddings.word.weight", "embeddings.word_embeddings.weight"},
    {"embeddings.position.weight", "embeddings.position_embeddings.weight"},
    LINEAR("embeddings.norm", "embeddings.LayerNorm"),
    LINEAR("layer.*.attention.query", "transformer.layer.*.attention.q_lin"),
    LINEAR("layer.*.attention.key", "transformer.layer.*.attention.k_lin"),
    LINEAR("layer.*.attention.value", "transformer.layer.*.attention.v_lin"),
    LINEAR("layer.*.attention.output", "transformer.layer.*.attention.out_lin"),
    LINEAR("layer.*.attention_norm", "transformer.layer.*.sa_layer_norm"),
    LINEAR("layer.*.feed_forward.inner", "transformer.layer.*.ffn.lin1"),
    LINEAR("layer.*.feed_forward.outer", "transformer.layer.*.ffn.lin2"),
    LINEAR("layer.*.feed_forward_norm", "transformer.layer.*.output_layer_norm"),
    {0},
};
/* Tensors of many checkpoints that are not used for hidden states. */
static const char *const unused[] = {"embeddings.position_ids", "vocab_transform.", "vocab_layer_norm.",
                                     "vocab_projector.", NULL};

/* Reads the settings. "sinusoidal_pos_embds" has no effect: the class also uses the table of positions in the file. */
static void configure(att_model *base, att_settings *s)
{
    static const att_bert_keys keys = {.hidden = "dim",
                                       .layers = "n_layers",
                                       .heads = "n_heads",
                                       .intermediate = "hidden_dim",
                                       .hidden_dropout = "dropout",
                                       .attention_dropout = "attention_dropout",
                                       .activation = "activation"};
    distilbert *m = (distilbert *)base;
    att_bert_config_read(s, &keys, &m->config);
    m->base.info.type = att_encoder_type(base, s);
}

static att_status build(att_model *base)
{
    distilbert *m = (distilbert *)base;
    const att_bert_config *c = &m->config;
    m->word = att_model_embedding(base, "embeddings.word", c->vocabulary, c->hidden, -1);
    m->position = att_model_embedding(base, "embeddings.position", c->positions, c->hidden, -1);
    m->norm = att_nn_norm_new(base->params, "embeddings.norm", ATT_NN_NORM_LAYER, c->hidden, c->eps);
    att_bert_layers(&m->base, c, NULL);
    return ATT_OK;
}

static att_var *embed(att_tape *t, const att_encoder *base, const att_encoder_input *in)
{
    const distilbert *m = (const distilbert *)base;
    att_var *word = att_embedding(t, m->word, in->ids, in->tokens);
    return att_nn_norm_apply(t, m->norm, att_learned_positions(t, word, m->position, &in->at));
}

static const char *const types[] = {"distilbert"};
static const att_model_types distilbert_types = ATT_MODEL_TYPES(types);
const att_encoder_architecture att_distilbert = {.kind = {.bytes = sizeof(distilbert),
                                                          .types = &distilbert_types,
                                                          .configure = configure,
                                                          .build = build,
                                                          .prepare = att_encoder_prepare,
                                                          .names = names,
                                                          .prefix = "distilbert.",
                                                          .unused = unused},
                                                 .embed = embed};
