/* s(q, k) = q . k / (|q| |k|), or 0 if either is 0; tiles see the product of normalized rows. */
#include "attn/stage/score/dot.h"

#include <math.h>

/* The lengths of two rows, and their product. */
typedef struct lengths {
    double q, k, both, dot;
} lengths;

static lengths lengths_of(const att_pair *p)
{
    lengths l = {0};
    for (int64_t d = 0; d < p->dim; d++) {
        l.q += (double)p->query[d] * p->query[d];
        l.k += (double)p->key[d] * p->key[d];
        l.dot += (double)p->query[d] * p->key[d];
    }
    l.q = sqrt(l.q);
    l.k = sqrt(l.k);
    l.both = l.q * l.k;
    return l;
}

static double formula(const att_pair *p)
{
    const lengths l = lengths_of(p);
    return l.both == 0 ? 0 : l.dot / l.both;
}

/* Adds (k/|k| - s q/|q|) / |q|, and the same with q and k exchanged. The gradients are 0 if either row is 0. */
static void derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    const lengths l = lengths_of(p);
    (void)dparam;
    for (int64_t d = 0; l.both != 0 && d < p->dim; d++) {
        dq[d] += ds * (p->key[d] / l.both - l.dot / l.both * p->query[d] / (l.q * l.q));
        dk[d] += ds * (p->query[d] / l.both - l.dot / l.both * p->key[d] / (l.k * l.k));
    }
}

static const att_row_transforms transforms = {.q = {.kind = ATT_TRANSFORM_NORMALIZE},
                                              .k = {.kind = ATT_TRANSFORM_NORMALIZE}};

extern const att_builtin_score ATTEND_ISA(att_score_cosine);
const att_builtin_score ATTEND_ISA(att_score_cosine) = {.score = {.size = sizeof(att_score),
                                                                  .name = "cosine",
                                                                  .flags = ATT_STAGE_BILINEAR,
                                                                  .formula = formula,
                                                                  .derivative = derivative,
                                                                  .tile = ATTEND_ISA(att_dot_tile)},
                                                        .is_dot = true,
                                                        .transforms = &transforms};
