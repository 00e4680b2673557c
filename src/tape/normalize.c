/* L2 normalisation: each row divided by max(its norm, eps) */
#include "tape/tape.h"

#include <math.h>

typedef struct normalize_job {
    const att_kernels *k;
    const float *x;
    float *y; /* both [rows, features] */
    int64_t features;
    float eps;
} normalize_job;

static void normalize(const void *arg, int64_t first, int64_t last)
{
    const normalize_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->normalize(j->features, j->x + i, j->eps, j->y + i);
}

/* ---- backward: y = x / |x| has dx = (dy - y (y . dy)) / |x|; below eps, dx = dy / eps */

typedef struct normalize_backward_job {
    const float *x, *dy;
    float *dx; /* all [rows, features] */
    int64_t features;
    float eps;
} normalize_backward_job;

static void normalize_back(const void *arg, int64_t first, int64_t last)
{
    const normalize_backward_job *j = arg;
    for (int64_t i = first; i < last; i++) {
        const float *x = j->x + i * j->features, *dy = j->dy + i * j->features;
        float *dx = j->dx + i * j->features;
        double squares = 0, along = 0; /* in double: squares of floats may overflow or underflow */
        for (int64_t d = 0; d < j->features; d++) {
            squares += (double)x[d] * x[d];
            along += (double)x[d] * dy[d];
        }
        const double length = sqrt(squares);
        const bool below_eps = length < (double)j->eps;
        const double divisor = below_eps ? (double)j->eps : length, share = below_eps ? 0 : along / squares;
        for (int64_t d = 0; d < j->features; d++)
            dx[d] += (float)((dy[d] - share * x[d]) / divisor);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *x = &s->in[0]->value;
    const float *eps = s->saved;
    const normalize_backward_job j = {x->data, s->y->grad, att_tape_grad(s->in[0]), x->dim[x->rank - 1], *eps};
    att_tape_for_rows(t->ctx, att_tape_rows(x), j.features, normalize_back, &j);
    return ATT_OK;
}

const att_operation att_operation_normalize = {.name = "normalize", .backward = backward};

/* ---- forward */

att_var *att_normalize(att_tape *t, att_var *x, float eps)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    if (!y)
        return NULL;
    const int64_t features = x->value.dim[x->value.rank - 1];
    const normalize_job j = {att_kernels_of(t->ctx->isa), x->value.data, y->value.data, features, eps};
    att_tape_for_rows(t->ctx, att_tape_rows(&x->value), features, normalize, &j);
    const att_step step = {
        .op = &att_operation_normalize, .y = y, .in = &x, .n_in = 1, .saved = &eps, .saved_bytes = sizeof eps};
    return att_tape_done(t, &step, NULL, NULL);
}
