/* s(q, k) = q . k, scaled: "dot-product attention" of Luong et al. 2015 and Vaswani et al. 2017. */
#include "attn/stage.h"
#include "kernel/tile.h"

static double formula(const float *q, const float *k, int64_t dim)
{
    double s = 0;
    for (int64_t d = 0; d < dim; d++)
        s += (double)q[d] * k[d];
    return s;
}

static void derivative(const float *q, const float *k, int64_t dim, double ds, double *dq, double *dk)
{
    for (int64_t d = 0; d < dim; d++) {
        dq[d] += ds * k[d];
        dk[d] += ds * q[d];
    }
}

/* S^T = K (scale Q)^T */
static void tile(const att_block *b)
{
    const att_site *at = b->site;
    const tile_args t = {.k = b->head_dim,
                         .a = at->k + b->k0 * at->k_stride,
                         .lda = at->k_stride,
                         .b = b->q,
                         .c = b->s,
                         .ldc = b->s_stride};
    if (b->queries <= ATT_LANES)
        tile_all(b->keys, 1, false, START_ZERO, t);
    else
        tile_all(b->keys, ATT_PANEL_VECTORS, false, START_ZERO, t);
}

extern const att_score_set ATT_ISA(att_score_dot);
const att_score_set ATT_ISA(att_score_dot) = {formula, derivative, tile};
