/* Gradients of a function of the caller's own: part of gradients.c. */
#ifndef GRADIENTS_FUNCTION_H
#define GRADIENTS_FUNCTION_H

#include "gradients.h"

/* y [rows] = factor sum of a [rows, features]^2 b [features]; user: the factor */

static inline att_status weighted_squares_forward(const void *user, const att_tensor *x, const att_tensor *y)
{
    const float *a = x[0].data, *b = x[1].data, *factor = user;
    float *out = y->data;
    for (int64_t i = 0, n = x[1].dim[0]; i < x[0].dim[0]; i++) {
        out[i] = 0;
        for (int64_t d = 0; d < n; d++)
            out[i] += *factor * a[i * n + d] * a[i * n + d] * b[d];
    }
    return ATT_OK;
}

static inline att_status weighted_squares_backward(const void *user, const att_tensor *x, const att_tensor *y,
                                                   const att_tensor *dy, const att_tensor *dx)
{
    (void)y;
    const float *a = x[0].data, *b = x[1].data, *slope = dy->data, *factor = user;
    float *da = dx[0].data, *db = dx[1].data;
    for (int64_t n = x[1].dim[0], i = 0; i < x[0].dim[0] * n; i++) {
        if (da)
            da[i] += *factor * 2 * a[i] * b[i % n] * slope[i / n];
        if (db)
            db[i % n] += *factor * a[i] * a[i] * slope[i / n];
    }
    return ATT_OK;
}

static const att_function weighted_squares = {.size = sizeof weighted_squares,
                                              .name = "weighted_squares",
                                              .forward = weighted_squares_forward,
                                              .backward = weighted_squares_backward};

static inline att_var *apply(att_tape *t, const problem *p)
{
    att_var *const x[] = {p->var[0], p->leaf[1].param ? att_parameter(t, p->weight[1]) : p->var[1]};
    return att_apply(t, &weighted_squares, &p->eps, sizeof p->eps, x, 2, 1, p->leaf[0].dim);
}

static inline void apply_reference(const problem *p, double *y)
{
    const leaf *a = &p->leaf[0], *b = &p->leaf[1];
    for (int64_t i = 0, n = b->dim[0]; i < a->dim[0]; i++) {
        y[i] = 0;
        for (int64_t d = 0; d < n; d++)
            y[i] += (double)p->eps * (double)a->x[i * n + d] * (double)a->x[i * n + d] * (double)b->x[d];
    }
}

static inline void gradients_of_apply(void **state)
{
    (void)state;
    for (int param = 0; param < 2; param++) {
        const problem p = {.build = apply,
                           .reference = apply_reference,
                           .leaf = {{.rank = 2, .dim = {9, 4}}, {.rank = 1, .dim = {4}, .param = param}},
                           .tolerance = 3 * 12 * FLT_EPSILON, /* sums of 9, and three products */
                           .y_tolerance = 3 * 7 * FLT_EPSILON,
                           .eps = 1.5f};
        check_problem(p, "apply");
    }
}

#endif
