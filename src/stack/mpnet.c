/* MPNet (Song et al. 2020): BERT without token types, whose scores have a bias for the distance of query and key, from
 * a table that all layers share (Raffel et al. 2020).
 *
 * x = LayerNorm(word(ids) + position), where positions begin after the id of padding, 1
 * each layer: x = LayerNorm(x + Attention(x)), x = LayerNorm(x + f(x W_inner + b) W_outer + b)
 * scores: q k / sqrt(d) + table[bucket of key - query] */
#include "stack/bert_config.h"

#include <string.h>

enum { BUCKETS = 32, FARTHEST = 128, FIRST_POSITION = 2 }; /* of the class: no settings change them */

typedef struct mpnet {
    att_encoder base;
    att_bert_config config;
    att_param *word, *position; /* tables */
    att_param *distance;        /* [heads, BUCKETS] */
    const att_nn_norm *norm;
    att_plan *plan, *training_plan; /* of the scores; the second with dropout, or NULL */
} mpnet;

/* The names of parameters, in attend and in the class MPNetModel. */
#define LINEAR ATT_CHECKPOINT_LINEAR
static const char distance[] = "distance.weight";
static const att_checkpoint_name names[] = {
    {"embeddings.word.weight", "embeddings.word_embeddings.weight"},
    {"embeddings.position.weight", "embeddings.position_embeddings.weight"},
    LINEAR("embeddings.norm", "embeddings.LayerNorm"),
    {distance, "encoder.relative_attention_bias.weight"},
    LINEAR("layer.*.attention.query", "encoder.layer.*.attention.attn.q"),
    LINEAR("layer.*.attention.key", "encoder.layer.*.attention.attn.k"),
    LINEAR("layer.*.attention.value", "encoder.layer.*.attention.attn.v"),
    LINEAR("layer.*.attention.output", "encoder.layer.*.attention.attn.o"),
    LINEAR("layer.*.attention_norm", "encoder.layer.*.attention.LayerNorm"),
    LINEAR("layer.*.feed_forward.inner", "encoder.layer.*.intermediate.dense"),
    LINEAR("layer.*.feed_forward.outer", "encoder.layer.*.output.dense"),
    LINEAR("layer.*.feed_forward_norm", "encoder.layer.*.output.LayerNorm"),
    LINEAR("pooler", "pooler.dense"),
    {0},
};
/* Tensors of many checkpoints that are not used for hidden states. */
static const char *const unused[] = {"embeddings.position_ids", "pooler.", "lm_head.", NULL};

static void configure(att_model *base, att_settings *s)
{
    mpnet *m = (mpnet *)base;
    att_bert_keys keys = att_bert_keys_of_class;
    keys.types = NULL;
    att_bert_config_read(s, &keys, &m->config);
    att_settings_only_number(s, "relative_attention_num_buckets", BUCKETS);
    m->base.info.type = att_encoder_type(base, s);
    m->base.info.first_position = FIRST_POSITION;
    att_bert_check_positions(s, &m->config, FIRST_POSITION);
}

/* ---- the table of distances, [BUCKETS, heads] in the file */

static void transpose(att_tensor *x)
{
    const int64_t dim = x->dim[0], stride = x->stride[0];
    x->dim[0] = x->dim[1], x->stride[0] = x->stride[1];
    x->dim[1] = dim, x->stride[1] = stride;
}

static att_status load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    att_checkpoint *file = ((att_model *)model)->checkpoint;
    if (strcmp(name, distance) != 0)
        return att_checkpoint_load(file, name, rank, dim, out);
    const att_status s = att_checkpoint_load(file, name, rank, (const int64_t[]){dim[1], dim[0]}, out);
    if (!s)
        transpose(out);
    return s;
}

static void change(const char *ours, att_file_tensor *out)
{
    if (!strcmp(ours, distance))
        transpose(&out->value);
}

/* ---- */

static att_status make_plan(const mpnet *m, float dropout, att_plan **out)
{
    const att_bert_config *c = &m->config;
    const att_stage bias = {.modifier = att_modifier_relative, .value = {FARTHEST}};
    const att_attention_spec spec = {.size = sizeof spec,
                                     .heads = c->heads,
                                     .head_dim = c->hidden / c->heads,
                                     .stage = &bias,
                                     .n_stages = 1,
                                     .align = ATT_ALIGN_TOP_LEFT,
                                     .dropout = dropout};
    return att_plan_new(m->base.model.ctx, &spec, out);
}

static att_status build(att_model *base)
{
    mpnet *m = (mpnet *)base;
    const att_bert_config *c = &m->config;
    att_status s = make_plan(m, 0, &m->plan);
    if (!s && base->trainable && c->attention_dropout > 0)
        s = make_plan(m, c->attention_dropout, &m->training_plan);
    if (s)
        return s;
    m->word = att_model_embedding(base, "embeddings.word", c->vocabulary, c->hidden, -1);
    m->position = att_model_embedding(base, "embeddings.position", c->positions, c->hidden, -1);
    m->norm = att_nn_norm_new(base->params, "embeddings.norm", ATT_NN_NORM_LAYER, c->hidden, c->eps);
    m->distance =
        att_nn_params_request(base->params, "distance", "weight", 2, (const int64_t[]){c->heads, BUCKETS}, NULL);
    att_param_set_weight_decay(m->distance, false);
    const att_nn_attention_config attention = {.size = sizeof attention,
                                               .width = c->hidden,
                                               .plan = m->plan,
                                               .training_plan = m->training_plan,
                                               .shared = &m->distance,
                                               .n_shared = 1};
    att_bert_layers(&m->base, c, &attention);
    return ATT_OK;
}

static void free_mpnet(att_model *base)
{
    mpnet *m = (mpnet *)base;
    att_plan_free(m->plan);
    att_plan_free(m->training_plan);
}

static att_var *embed(att_tape *t, const att_encoder *base, const att_encoder_input *in)
{
    const mpnet *m = (const mpnet *)base;
    att_var *word = att_embedding(t, m->word, in->ids, in->tokens);
    return att_nn_norm_apply(t, m->norm, att_learned_positions(t, word, m->position, &in->at));
}

static const char *const types[] = {"mpnet"};
static const att_model_types mpnet_types = ATT_MODEL_TYPES(types);
const att_encoder_architecture att_mpnet = {.kind = {.bytes = sizeof(mpnet),
                                                     .types = &mpnet_types,
                                                     .configure = configure,
                                                     .build = build,
                                                     .prepare = att_encoder_prepare,
                                                     .load_parameter = load,
                                                     .names = names,
                                                     .prefix = "mpnet.",
                                                     .unused = unused,
                                                     .unconverted = distance,
                                                     .free = free_mpnet},
                                            .embed = embed,
                                            .change = change,
                                            .beside = {"pooler.dense.weight", "pooler.dense.bias"}};
