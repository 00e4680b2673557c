/* Each row divided by its length, or by eps where that is less */
#include "tape/tape.h"

typedef struct job {
    const att_kernels *k;
    const float *x;
    float *y; /* both [rows, features] */
    int64_t features;
    float eps;
} job;

static void normalize(const void *arg, int64_t first, int64_t last)
{
    const job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->normalize(j->features, j->x + i, j->eps, j->y + i);
}

/* ---- forward */

att_var *att_normalize(att_tape *t, att_var *x, float eps)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    if (!y)
        return NULL;
    const int64_t features = x->value.dim[x->value.rank - 1];
    const job j = {att_kernels_of(t->ctx->isa), x->value.data, y->value.data, features, eps};
    att_tape_for_rows(t->ctx, att_tape_rows(&x->value), features, normalize, &j);
    return att_tape_done(t, "normalize", y, NULL, NULL);
}
