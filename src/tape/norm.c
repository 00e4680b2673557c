/* layer_norm: (x - mean) / sqrt(variance + eps) * gamma + beta, with or without beta; rms_norm: without mean and beta
 */
#include "tape/tape.h"

#include <string.h>

typedef struct norm_job {
    const att_kernels *k;
    const float *x, *gamma, *beta;
    float *y; /* x and y [rows, features], gamma and beta [features]; beta or NULL */
    int64_t features;
    float eps;
    bool centered; /* layer_norm */
} norm_job;

static void norm(const void *arg, int64_t first, int64_t last)
{
    const norm_job *j = arg;
    for (int64_t i = first * j->features; i < last * j->features; i += j->features)
        if (j->centered)
            j->k->layer.layer_norm(j->features, j->x + i, j->gamma, j->beta, j->eps, j->y + i);
        else
            j->k->layer.rms_norm(j->features, j->x + i, j->gamma, j->eps, j->y + i);
}

static bool check(att_tape *t, const char *op, const att_tensor *x, const char *name, const att_param *p)
{
    const int64_t features = x->dim[x->rank - 1];
    const att_tensor *v = p ? att_param_value(p) : NULL;
    if (!v)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: %s is NULL", op, name);
    else if (v->rank != 1 || v->dim[0] != features)
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: x has %lld features but %s is %s", op, (long long)features, name,
                      att_shape_of(v).text);
    return !t->status;
}

/* ---- backward: dgamma and dbeta are summed over blocks of rows, then over blocks in ascending order */

enum { BLOCK = 64 };

typedef struct norm_backward_job {
    const att_kernels *k;
    const float *x, *gamma, *dy;
    /* dx as x; part [blocks][2][features]; dgamma and dbeta [features] */
    float *dx, *part, *dgamma, *dbeta; /* dgamma, dbeta NULL: frozen, or there is no beta */
    int64_t rows, blocks, features;
    float eps;
    bool centered; /* layer_norm */
} norm_backward_job;

static void back_blocks(const void *arg, int64_t first, int64_t last)
{
    const norm_backward_job *j = arg;
    const int64_t f = j->features;
    for (int64_t b = first; b < last; b++) {
        float *dgamma = j->part + 2 * b * f, *dbeta = dgamma + f;
        memset(dgamma, 0, (size_t)(2 * f) * sizeof *dgamma);
        const int64_t end = att_min((b + 1) * BLOCK, j->rows);
        for (int64_t i = b * BLOCK * f; i < end * f; i += f)
            if (j->centered)
                j->k->layer.layer_norm_back(f, j->x + i, j->gamma, j->eps, j->dy + i, j->dx + i, dgamma, dbeta);
            else
                j->k->layer.rms_norm_back(f, j->x + i, j->gamma, j->eps, j->dy + i, j->dx + i, dgamma);
    }
}

static void sum_blocks(const void *arg, int64_t first, int64_t last)
{
    const norm_backward_job *j = arg;
    const int64_t n = last - first;
    for (int64_t b = 0; b < j->blocks; b++) {
        const float *dgamma = j->part + 2 * b * j->features, *dbeta = dgamma + j->features;
        if (j->dgamma)
            j->k->vector.add(n, j->dgamma + first, dgamma + first, j->dgamma + first);
        if (j->dbeta)
            j->k->vector.add(n, j->dbeta + first, dbeta + first, j->dbeta + first);
    }
}

/* Returns the gradient of x, or scratch memory if x requires none. */
static float *dx_of(att_tape *t, att_var *x)
{
    if (x->grad)
        return att_tape_grad(x);
    const size_t count = (size_t)att_count(&x->value);
    float *dx = att_tape_scratch(t, count);
    if (dx)
        memset(dx, 0, count * sizeof *dx);
    return dx;
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *x = &s->in[0]->value;
    const int64_t features = x->dim[x->rank - 1], rows = att_tape_rows(x), blocks = att_ceil_div(rows, BLOCK);
    const float *eps = s->saved;
    const norm_backward_job j = {.k = att_kernels_of(t->ctx->isa),
                                 .x = x->data,
                                 .gamma = att_param_floats(s->param[0]),
                                 .dy = s->y->grad,
                                 .dx = dx_of(t, s->in[0]),
                                 .part = att_tape_scratch(t, (size_t)(2 * blocks * features)),
                                 .dgamma = att_param_partial(s->param[0]),
                                 .dbeta = att_param_partial(s->param[1]),
                                 .centered = s->op == &att_operation_layer_norm,
                                 .rows = rows,
                                 .blocks = blocks,
                                 .features = features,
                                 .eps = *eps};
    if (!j.gamma || !j.part || !j.dx)
        return ATT_ERR_MEMORY;
    att_tape_for_rows(t->ctx, blocks, BLOCK * features, back_blocks, &j);
    if (j.dgamma || j.dbeta)
        att_tape_for_columns(t->ctx, features, sum_blocks, &j);
    return ATT_OK;
}

const att_operation att_operation_layer_norm = {.name = "layer_norm", .backward = backward};
const att_operation att_operation_rms_norm = {.name = "rms_norm", .backward = backward};

/* ---- forward; beta or NULL */

static att_var *apply(att_tape *t, const att_operation *op, att_var *x, att_param *gamma, att_param *beta, float eps)
{
    const float *g = att_param_floats(gamma), *b = beta ? att_param_floats(beta) : NULL;
    if (!g || (beta && !b))
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s: %s", op->name, att_error(t->ctx));
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    if (!y)
        return NULL;
    const int64_t features = x->value.dim[x->value.rank - 1];
    const norm_job j = {.k = att_kernels_of(t->ctx->isa),
                        .x = x->value.data,
                        .gamma = g,
                        .beta = b,
                        .y = y->value.data,
                        .features = features,
                        .eps = eps,
                        .centered = op == &att_operation_layer_norm};
    att_tape_for_rows(t->ctx, att_tape_rows(&x->value), features, norm, &j);
    const att_step step = {.op = op,
                           .y = y,
                           .in = &x,
                           .n_in = 1,
                           .param = (att_param *[]){gamma, beta},
                           .n_param = 2,
                           .saved = &eps,
                           .saved_bytes = sizeof eps};
    return att_tape_done(t, &step, NULL, NULL);
}

att_var *att_layer_norm(att_tape *t, att_var *x, att_param *gamma, att_param *beta, float eps)
{
    if (!x || !att_tape_ready(t) || !check(t, "layer_norm", &x->value, "gamma", gamma) ||
        (beta && !check(t, "layer_norm", &x->value, "beta", beta)))
        return NULL;
    return apply(t, &att_operation_layer_norm, x, gamma, beta, eps);
}

att_var *att_rms_norm(att_tape *t, att_var *x, att_param *gamma, float eps)
{
    if (!x || !att_tape_ready(t) || !check(t, "rms_norm", &x->value, "gamma", gamma))
        return NULL;
    return apply(t, &att_operation_rms_norm, x, gamma, NULL, eps);
}
