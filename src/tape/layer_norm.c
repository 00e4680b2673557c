/* (x - mean) / sqrt(variance + eps) * gamma + beta over the last dimension */
#include "tape/tape.h"

typedef struct job {
    const att_kernels *k;
    const float *x, *gamma, *beta;
    float *y; /* x and y [rows, features], gamma and beta [features] */
    int64_t features;
    float eps;
} job;

static void layer_norm(const void *arg, int64_t first, int64_t last)
{
    const job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        j->k->layer_norm(j->features, j->x + i, j->gamma, j->beta, j->eps, j->y + i);
}

static bool check(att_tape *t, const att_tensor *x, const char *name, const att_param *p)
{
    const int64_t features = x->dim[x->rank - 1];
    const att_tensor *v = p ? att_param_value(p) : NULL;
    if (!v)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "layer_norm: %s is NULL", name);
    else if (v->rank != 1 || v->dim[0] != features)
        att_tape_fail(t, ATT_ERR_SHAPE, "layer_norm: x has %lld features but %s is %s", (long long)features, name,
                      att_shape_of(v).text);
    return !t->status;
}

/* ---- forward */

att_var *att_layer_norm(att_tape *t, att_var *x, att_param *gamma, att_param *beta, float eps)
{
    if (!x || !att_tape_ready(t) || !check(t, &x->value, "gamma", gamma) || !check(t, &x->value, "beta", beta))
        return NULL;
    const float *g = att_param_floats(gamma), *b = att_param_floats(beta);
    if (!g || !b)
        return att_tape_fail(t, ATT_ERR_MEMORY, "layer_norm: %s", att_error(t->ctx));
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    if (!y)
        return NULL;
    const int64_t features = x->value.dim[x->value.rank - 1];
    const job j = {.k = att_kernels_of(t->ctx->isa),
                   .x = x->value.data,
                   .gamma = g,
                   .beta = b,
                   .y = y->value.data,
                   .features = features,
                   .eps = eps};
    att_tape_for_rows(t->ctx, att_tape_rows(&x->value), features, layer_norm, &j);
    return att_tape_done(t, "layer_norm", y, NULL, NULL);
}
