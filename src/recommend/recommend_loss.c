#include "recommend/recommend_loss.h"
#include "attend_util.h"

double att_gbce_beta(double calibration, int64_t negatives, int64_t items)
{
    const double share = (double)negatives / (double)(items - 1);
    return share * (calibration * (1 - 1 / share) + 1 / share);
}

/* Computes the softmax loss of scores [n, items of the training data]. */
static att_var *softmax_of_classes(att_tape *t, att_ctx *ctx, const att_item_softmax_classes *classes, att_var *scores,
                                   const att_item_targets *targets)
{
    int32_t *indexes = att_alloc(ctx, (size_t)targets->n, sizeof *indexes);
    if (!indexes)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    for (int64_t i = 0; i < targets->n; i++)
        indexes[i] = classes->index[targets->items[i]];
    att_var *y = att_cross_entropy(t, scores, indexes, ATT_OPTIONS(att_cross_entropy_options, .sum = true));
    att_free(ctx, indexes);
    return y;
}

/* Computes the cross entropy of the softmax over all items of the training data. If content is added to their vectors,
 * all scores are in memory at once. */
static att_var *softmax(att_tape *t, const att_recommender *m, const att_item_softmax_classes *classes, att_var *x,
                        const att_item_targets *targets)
{
    const att_cross_entropy_options sum = {.size = sizeof sum, .classes = m->config.info.items, .sum = true};
    if (!m->content)
        return att_linear_cross_entropy(t, x, m->item, classes->bias, targets->items, &sum);
    att_var *table =
        classes->items ? att_recommender_embedding(t, m, classes->items, classes->n) : att_recommender_table(t, m);
    att_var *scores = att_matmul(t, x, table, ATT_OPTIONS(att_matmul_options, .transpose_b = true));
    return classes->items ? softmax_of_classes(t, m->model.ctx, classes, scores, targets)
                          : att_cross_entropy(t, scores, targets->items, &sum);
}

/* Returns the scores of candidates, [n, count]. If content is added to their vectors, vectors and states are copied for
 * each candidate. */
static att_var *scores(att_tape *t, const att_recommender *m, att_var *x, const att_item_targets *targets,
                       int64_t count)
{
    const int64_t n = targets->n;
    att_ctx *ctx = m->model.ctx;
    if (!m->content)
        return att_embedding_dot(t, x, m->item, targets->candidates, count);
    int32_t *rows = att_alloc(ctx, (size_t)(n * count), sizeof *rows);
    if (!rows)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    for (int64_t i = 0; i < n * count; i++)
        rows[i] = (int32_t)(i / count);
    att_var *vectors = att_recommender_embedding(t, m, targets->candidates, n * count);
    att_var *y = att_dot(t, att_gather(t, x, rows, n * count), vectors);
    att_free(ctx, rows);
    return att_reshape(t, y, 2, (const int64_t[]){n, count});
}

/* Returns -log sigmoid(x) if label is 1, or -log(1 - sigmoid(x)), summed over all n elements of x. */
static att_var *binary(att_tape *t, att_ctx *ctx, att_var *x, int64_t n, float label)
{
    float *labels = att_alloc(ctx, (size_t)n, sizeof *labels);
    if (!labels)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    for (int64_t i = 0; i < n; i++)
        labels[i] = label;
    att_var *y = att_binary_cross_entropy(t, x, labels, ATT_OPTIONS(att_binary_cross_entropy_options, .sum = true));
    att_free(ctx, labels);
    return y;
}

/* Computes the cross entropy of the softmax over the candidates. The first candidate is the item. */
static att_var *sampled_softmax(att_tape *t, att_ctx *ctx, att_var *x, int64_t n)
{
    int32_t *first = att_calloc(ctx, (size_t)n, sizeof *first);
    if (!first)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    att_var *y = att_cross_entropy(t, x, first, ATT_OPTIONS(att_cross_entropy_options, .sum = true));
    att_free(ctx, first);
    return y;
}

att_var *att_item_loss_apply(att_tape *t, const att_recommender *m, const att_item_loss_config *c, att_var *x,
                             const att_item_targets *targets)
{
    const int64_t n = targets->n, negatives = c->negatives;
    att_ctx *ctx = m->model.ctx;
    if (c->loss == ATT_ITEM_LOSS_SOFTMAX)
        return softmax(t, m, &c->classes, x, targets);
    att_var *s = scores(t, m, x, targets, 1 + negatives);
    if (c->loss == ATT_ITEM_LOSS_SAMPLED_SOFTMAX)
        return sampled_softmax(t, ctx, s, n);
    att_var *item = binary(t, ctx, att_slice(t, s, 1, 0, 1), n, 1);
    att_var *others = binary(t, ctx, att_slice(t, s, 1, 1, negatives), n * negatives, 0);
    return att_add(t, c->loss == ATT_ITEM_LOSS_GBCE ? att_scale(t, item, (float)c->beta) : item, others);
}
