/* SASRec (Kang, McAuley 2018, "Self-Attentive Sequential Recommendation"):
 *
 * x = sqrt(hidden) E[items] + P, positions being counted from the end of a history each layer, causal, as their code
 * has it ("block": "sasrec"):
 *     q = LayerNorm(x), x = q + Attention(q, x, x), where the heads' results are not projected
 *     h = LayerNorm(x), x = h + ReLU(h W_inner + b) W_outer + b
 * score of item i as the next one: LayerNorm(x) E[i]
 *
 * Instead it may have the blocks of later Transformers: pre-norm, x = x + Sublayer(LayerNorm(x)), or post-norm, x =
 * LayerNorm(x + Sublayer(x)), which is not followed by another norm. */
#include "recommend/recommender.h"

#include <math.h>

static void build(att_recommender *m)
{
    const att_recommender_info *i = &m->config.info;
    att_recommender_build_items(m, ATT_OPTIONS(att_init, .kind = ATT_INIT_XAVIER_UNIFORM));
    att_recommender_build_layers(m, true);
    if (i->block != ATT_RECOMMENDER_BLOCK_POST_NORM)
        m->norm = att_nn_norm_new(m->model.params, "norm", ATT_NN_NORM_LAYER, i->hidden, (float)m->config.eps);
}

static att_var *apply(att_tape *t, const att_recommender *m, const att_recommender_input *in)
{
    const float scale = sqrtf((float)m->config.info.hidden);
    att_scope s = att_scope_begin(t, "embeddings");
    att_var *x = att_scale(t, att_recommender_embedding(t, m, in->items, in->at.offsets[in->at.n]), scale);
    x = att_learned_positions(t, x, m->position, &in->at);
    x = att_nn_dropout_apply(t, in->layer.dropout, att_nn_dropout_id("embeddings", ""), x, NULL);
    x = att_scope_end(t, s, x);
    return att_recommender_layers(t, m, x, in);
}

static att_var *result(att_tape *t, const att_recommender *m, att_var *x)
{
    return m->norm ? att_nn_norm_apply(t, m->norm, x) : x;
}

const att_recommender_architecture att_sasrec = {
    .block = ATT_RECOMMENDER_BLOCK_PRE_NORM, .eps = 1e-8, .build = build, .apply = apply, .result = result};
