/* BERT4Rec (Sun et al. 2019, "BERT4Rec: Sequential Recommendation with Bidirectional Encoder Representations from
 * Transformer"), as in its code:
 *
 * x = LayerNorm(E[items] + P), positions being counted from the end of a history, whose last item is the mask each
 * layer: x = LayerNorm(x + Attention(x)), x = LayerNorm(x + GELU(x W_inner + b) W_outer + b) score of item i in place
 * of the mask: LayerNorm(GELU(x W + b)) E[i]
 *
 * It lacks the bias of each item in the scores. In training any items are masked, and each is predicted from all
 * others. */
#include "recommend/recommender.h"

static void build(att_recommender *m)
{
    const att_recommender_info *i = &m->config.info;
    att_nn_params *p = m->model.params;
    const float eps = (float)m->config.eps;
    att_recommender_build_items(m, ATT_OPTIONS(att_init, .kind = ATT_INIT_TRUNCATED_NORMAL, .value = 0.02));
    m->embedding_norm = att_nn_norm_new(p, "embedding_norm", ATT_NN_NORM_LAYER, i->hidden, eps);
    att_recommender_build_layers(m, false);
    m->transform = att_nn_linear_new(p, "transform", i->hidden, i->hidden, NULL);
    m->norm = att_nn_norm_new(p, "norm", ATT_NN_NORM_LAYER, i->hidden, eps);
}

static att_var *apply(att_tape *t, const att_recommender *m, const att_recommender_input *in)
{
    att_scope s = att_scope_begin(t, "embeddings");
    att_var *x = att_recommender_embedding(t, m, in->items, in->at.offsets[in->at.n]);
    x = att_nn_norm_apply(t, m->embedding_norm, att_learned_positions(t, x, m->position, &in->at));
    x = att_nn_dropout_apply(t, in->layer.dropout, att_nn_dropout_id("embeddings", ""), x, NULL);
    x = att_scope_end(t, s, x);
    return att_recommender_layers(t, m, x, in);
}

static att_var *result(att_tape *t, const att_recommender *m, att_var *x)
{
    return att_nn_norm_apply(t, m->norm, att_nn_linear_apply(t, m->transform, x, m->config.activation, NULL));
}

const att_recommender_architecture att_bert4rec = {.mask = true,
                                                   .block = ATT_RECOMMENDER_BLOCK_POST_NORM,
                                                   .eps = 1e-12,
                                                   .build = build,
                                                   .apply = apply,
                                                   .result = result};
