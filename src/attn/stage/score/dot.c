/* s(q, k) = q . k, scaled: "dot-product attention" of Luong et al. 2015 and Vaswani et al. 2017. */
#include "attn/stage/score/dot.h"
#include "kernel/tile.h"

static double formula(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim; d++)
        s += (double)p->query[d] * p->key[d];
    return s;
}

static void derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    (void)dparam;
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] += ds * p->key[d];
        dk[d] += ds * p->query[d];
    }
}

/* Computes S^T = K (scale Q)^T. */
void ATTEND_ISA(att_dot_tile)(const att_score_tile *t)
{
    const tile_args a = {.k = t->dim, .a = t->key, .lda = t->key_stride, .b = t->query, .c = t->s, .ldc = t->stride};
    tile_columns(t->queries, t->keys, a);
}

extern const att_builtin_score ATTEND_ISA(att_score_dot);
const att_builtin_score ATTEND_ISA(att_score_dot) = {.score = {.size = sizeof(att_score),
                                                               .name = "dot",
                                                               .flags = ATT_STAGE_BILINEAR,
                                                               .formula = formula,
                                                               .derivative = derivative,
                                                               .tile = ATTEND_ISA(att_dot_tile)},
                                                     .is_dot = true};
