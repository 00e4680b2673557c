/* For tests of the tape: contexts, variables and parameters of numbers that are the same every time. */
#ifndef TAPE_HELP_H
#define TAPE_HELP_H

#include "check.h"
#include "kernel/kernel.h"
#include "tape/tape.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline att_tape *new_tape(att_ctx *ctx)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    return t;
}

static inline att_tape *recording_tape(att_ctx *ctx)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t), ATT_OK);
    return t;
}

static inline att_tensor view(void *data, att_dtype dtype, int rank, const int64_t *dim)
{
    att_tensor x;
    assert_int_equal(att_wrap(&x, data, dtype, rank, dim, NULL), ATT_OK);
    return x;
}

static inline att_var *input(att_tape *t, float *x, int rank, const int64_t *dim)
{
    const att_tensor v = view(x, ATT_F32, rank, dim);
    return att_input(t, &v);
}

static inline att_param *param(att_ctx *ctx, void *x, att_dtype dtype, int rank, const int64_t *dim)
{
    const att_tensor v = view(x, dtype, rank, dim);
    att_param *p;
    assert_int_equal(att_param_new(ctx, &v, &p), ATT_OK);
    return p;
}

static inline const float *read_floats(att_tape *t, att_var *v)
{
    att_tensor x;
    const att_status s = att_var_value(t, v, &x);
    if (s)
        fail_msg("%s", att_error(t->ctx));
    return x.data;
}

static inline void assert_error(att_tape *t, att_var *v, att_status expected, const char *sentence)
{
    att_tensor x;
    assert_null(v);
    assert_int_equal(att_var_value(t, v, &x), expected);
    assert_string_equal(att_error(t->ctx), sentence);
}

static inline void assert_near(const float *x, const double *expected, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - expected[i]) <= tolerance))
            fail_msg("[%lld] is %.9g, not %.9g within %.3g", (long long)i, (double)x[i], expected[i], tolerance);
}

#endif
