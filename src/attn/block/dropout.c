/* Dropout of weights, between softmax and values: a weight becomes 0, or 1 / (1 - p) times as much, so that the
 * expected output does not change. Sums and log-sum-exp are those before dropout. In the backward, the gradient of a
 * weight is dropped and scaled as the weight was. delta = rowsum(dO O) stays valid: it is the sum of P dP with this
 * dP. */
#include "attn/block/block.h"

void att_dropout_mask_block(const att_block *b, uint64_t *keep)
{
    const att_head_view *at = b->head;
    for (int r = 0; at->dropout.threshold && r < b->mask_tile->n_ranges; r++) {
        const int64_t first = b->mask_tile->range[r].first; /* a multiple of ATT_SUB_TILE, as k0 is */
        b->plan->kernels->dropout.mask(&at->dropout, b->queries, (uint32_t)(at->head.position + b->q0),
                                       (uint32_t)(b->k0 + first), b->mask_tile->range[r].last - first, keep + first);
    }
}

void att_dropout_apply_block(const att_block *b, const uint64_t *keep, float *x)
{
    const float scale = att_dropout_scale(b->plan);
    for (int r = 0; b->head->dropout.threshold && r < b->mask_tile->n_ranges; r++) {
        const int64_t first = b->mask_tile->range[r].first;
        b->plan->kernels->dropout.apply(b->mask_tile->range[r].last - first, keep + first, scale, x + first * b->stride,
                                        b->stride);
    }
}
