/* Computes losses of sentence embeddings u, v, ... (Reimers, Gurevych 2019, 3.1; Henderson et al. 2017, 4.4). */
#include "sentence/sentence_loss.h"

/* Returns the embeddings of column i. */
static att_var *column(att_tape *t, const att_sentence_batch *b, int64_t i)
{
    return att_slice(t, b->x, 0, i * b->n, b->n);
}

/* Computes (cos(u, v) - score)^2. */
static att_var *cosine_similarity(att_tape *t, const att_sentence_batch *b)
{
    att_tensor score;
    att_wrap(&score, (void *)b->negative_score, ATT_F32, ATT_DIMS(b->n), NULL);
    att_var *cosine = att_dot(t, column(t, b, 0), column(t, b, 1));
    att_var *error = att_add(t, cosine, att_constant(t, &score));
    return att_dot(t, error, error);
}

/* Computes the cross entropy of softmax(scale cos(u_i, v_j)) over all texts j of the other columns. Text i is the
 * correct one; the others are in-batch negatives and, from the third column on, hard negatives. */
static att_var *multiple_negatives_ranking(att_tape *t, const att_sentence_loss_config *c, const att_sentence_batch *b)
{
    att_var *candidates = att_slice(t, b->x, 0, b->n, (b->columns - 1) * b->n);
    att_var *cosines = att_matmul(t, column(t, b, 0), candidates,
                                  ATT_OPTIONS(att_matmul_options, .transpose_b = true)); /* [n, (columns - 1) n] */
    return att_cross_entropy(t, att_scale(t, cosines, c->scale), b->counting,
                             ATT_OPTIONS(att_cross_entropy_options, .sum = true));
}

/* Returns |u - v| = (u - v) . (u - v) / |u - v|, [n]. */
static att_var *euclidean(att_tape *t, att_var *u, att_var *v)
{
    att_var *difference = att_sub(t, u, v);
    return att_dot(t, difference, att_normalize(t, difference, 1e-12f));
}

/* Computes max(0, d(anchor, positive) - d(anchor, negative) + margin). The cosine distance is 1 - cos. */
static att_var *triplet(att_tape *t, const att_sentence_loss_config *c, const att_sentence_batch *b)
{
    att_tensor margin;
    att_wrap(&margin, (void *)&c->margin, ATT_F32, ATT_DIMS(1), NULL);
    att_var *anchor = column(t, b, 0), *positive = column(t, b, 1), *negative = column(t, b, 2);
    att_var *difference = c->distance == ATT_SENTENCE_DISTANCE_COSINE
                              ? att_sub(t, att_dot(t, anchor, negative), att_dot(t, anchor, positive))
                              : att_sub(t, euclidean(t, anchor, positive), euclidean(t, anchor, negative));
    return att_sum(t, att_activate(t, att_add(t, difference, att_constant(t, &margin)), ATT_ACTIVATION_RELU),
                   ATT_ALL_DIMS);
}

/* Computes the cross entropy of softmax(W (u, v, |u - v|) + b). |x| = relu(x) + relu(-x). */
static att_var *softmax(att_tape *t, const att_sentence_loss_config *c, const att_sentence_batch *b)
{
    att_var *u = column(t, b, 0), *v = column(t, b, 1);
    att_var *absolute = att_add(t, att_activate(t, att_sub(t, u, v), ATT_ACTIVATION_RELU),
                                att_activate(t, att_sub(t, v, u), ATT_ACTIVATION_RELU));
    att_var *features = att_concat(t, 3, (att_var *[]){u, v, absolute}, 1);
    return att_linear_cross_entropy(t, features, c->classifier->weight, c->classifier->bias, b->labels,
                                    ATT_OPTIONS(att_cross_entropy_options, .sum = true));
}

bool att_sentence_loss_is_cosine(const att_sentence_loss_config *c)
{
    return c->loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY || c->loss == ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING ||
           (c->loss == ATT_SENTENCE_LOSS_TRIPLET && c->distance == ATT_SENTENCE_DISTANCE_COSINE);
}

att_var *att_sentence_loss_apply(att_tape *t, const att_sentence_loss_config *c, const att_sentence_batch *b)
{
    switch (c->loss) {
    case ATT_SENTENCE_LOSS_COSINE_SIMILARITY:
        return cosine_similarity(t, b);
    case ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING:
        return multiple_negatives_ranking(t, c, b);
    case ATT_SENTENCE_LOSS_TRIPLET:
        return triplet(t, c, b);
    default:
        return softmax(t, c, b);
    }
}
