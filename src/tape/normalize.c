/* L2 normalization: each row divided by max(its norm, eps) */
#include "tape/tape.h"

#include <math.h>

static void normalize(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->layer.normalize(j->features, j->a + i, j->number, j->y + i);
}

/* ---- backward: y = x / |x| has dx = (dy - y (y . dy)) / |x|; below eps, dx = dy / eps */

static void normalize_back(const void *arg, int64_t first, int64_t last)
{
    const att_row_job *j = arg;
    for (int64_t i = first; i < last; i++) {
        const float *x = j->a + i * j->features, *dy = j->b + i * j->features;
        float *dx = j->y + i * j->features;
        double squares = 0, along = 0; /* in double: squares of floats may overflow or underflow */
        for (int64_t d = 0; d < j->features; d++) {
            squares += (double)x[d] * x[d];
            along += (double)x[d] * dy[d];
        }
        const double length = sqrt(squares);
        const bool below_eps = length < (double)j->number;
        const double divisor = below_eps ? (double)j->number : length, share = below_eps ? 0 : along / squares;
        for (int64_t d = 0; d < j->features; d++)
            dx[d] += (float)((dy[d] - share * x[d]) / divisor);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *x = &s->in[0]->value;
    const float *eps = s->saved;
    const att_row_job j = {
        .features = x->dim[x->rank - 1], .a = x->data, .b = s->y->grad, .y = att_tape_grad(s->in[0]), .number = *eps};
    att_tape_for_rows(t->ctx, att_tape_rows(x), j.features, normalize_back, &j);
    return ATT_OK;
}

const att_operation att_operation_normalize = {.name = "normalize", .backward = backward};

/* ---- forward */

att_var *att_normalize(att_tape *t, att_var *x, float eps)
{
    att_var *y = att_tape_like(t, x);
    if (!y)
        return NULL;
    const att_row_job j = {.k = att_kernels_of(t->ctx->isa),
                           .features = x->value.dim[x->value.rank - 1],
                           .a = x->value.data,
                           .y = y->value.data,
                           .number = eps};
    att_tape_for_rows(t->ctx, att_tape_rows(&x->value), j.features, normalize, &j);
    return att_tape_end(t, &att_operation_normalize, y, &x, 1, &eps, sizeof eps);
}
