/* The largest of each row of x weight^T + bias: what greedy search asks of a vocabulary.
 *
 * Bounds of all (kernel/int8_bounds.c) leave few columns that may be the largest; those are computed as att_linear
 * does. */
#include "tape/tape.h"
#include "tape/int8_bounds.h"
#include "gemm/gemm.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 64,      /* rows at a time */
    MAX_PANEL = 64, /* widest panel of any instruction set */
    ONE_IN = 16     /* with candidates in more than one of ONE_IN columns, all are computed */
};

typedef struct argmax_job {
    att_ctx *ctx;
    const att_kernels *kernels;
    int64_t m, n, k;
    const float *x; /* [m, k] */
    const att_param *weight;
    const float *bias;  /* [n] or NULL */
    const float *from;  /* [n] the bias, or -inf for an excluded column; or NULL */
    const float *upper; /* [m, n] upper bounds */
    const float *lower; /* [m] the best lower bound */
    float *scratch;     /* [threads][scratch_floats] */
    size_t scratch_floats;
    bool *all; /* [m] too many candidates: compute all columns */
    att_top_column *out;
} argmax_job;

/* Updates the best entry; columns come in ascending order; NaN stays. */
static void update_best(att_top_column *best, int64_t column, float value)
{
    if (!isnan(best->value) && !(value <= best->value))
        *best = (att_top_column){column, value};
}

static bool left_out(const argmax_job *j, int64_t column) { return j->from && j->from[column] == -INFINITY; }

/* Computes columns [count] of row i exactly, at most a panel of them. Lanes beyond the last column are undefined. */
static void compute(const argmax_job *j, int64_t i, const int64_t *column, int64_t count, float *scratch)
{
    const int64_t k = j->k, panel = j->kernels->nr;
    float *rows = scratch, *packed = rows + panel * k, *bias = packed + panel * k, *z = bias + panel;
    for (int64_t c = 0; c < count; c++) {
        att_param_row(j->weight, column[c], rows + c * k);
        bias[c] = j->bias ? j->bias[column[c]] : 0;
    }
    j->kernels->gemm.pack(panel, k, rows, k, 1, 0, 1, packed);
    j->kernels->gemm.run(&(const att_gemm_args){.m = 1,
                                                .n = panel,
                                                .k = k,
                                                .a = j->x + i * k,
                                                .lda = k,
                                                .packed = packed,
                                                .last = 1,
                                                .c = z,
                                                .ldc = panel,
                                                .epilogue = &(const att_epilogue){.bias = j->bias ? bias : NULL}});
    for (int64_t c = 0; c < count; c++)
        update_best(&j->out[i], column[c], z[c]);
}

static void row_task(void *arg, int i, int thread)
{
    const argmax_job *j = arg;
    const float *upper = j->upper + i * j->n, lower = j->lower[i];
    float *scratch = j->scratch + (size_t)thread * j->scratch_floats;
    int64_t column[MAX_PANEL], count = 0, found = 0;
    for (int64_t c = 0; (c = j->kernels->layer.next_at_least(j->n, upper, lower, c)) < j->n && found * ONE_IN <= j->n;
         c++) {
        if (left_out(j, c))
            continue;
        column[count++] = c;
        found++;
        if (count == j->kernels->nr) {
            compute(j, i, column, count, scratch);
            count = 0;
        }
    }
    if (count > 0)
        compute(j, i, column, count, scratch);
    j->all[i] = found * ONE_IN > j->n;
}

/* All columns of row i */
static att_status compute_all(const argmax_job *j, att_param *weight, int64_t i, float *z)
{
    const float *packed = att_param_packed(weight);
    if (!packed)
        return ATT_ERR_MEMORY;
    att_gemm(j->ctx, &(const att_gemm_args){.m = 1,
                                            .n = j->n,
                                            .k = j->k,
                                            .a = j->x + i * j->k,
                                            .lda = j->k,
                                            .packed = packed,
                                            .c = z,
                                            .ldc = j->n,
                                            .epilogue = &(const att_epilogue){.bias = j->bias}});
    j->out[i] = (att_top_column){-1, -INFINITY};
    for (int64_t c = 0; c < j->n; c++)
        if (!left_out(j, c))
            update_best(&j->out[i], c, z[c]);
    return ATT_OK;
}

/* Searches the m rows of j; upper [m, n], lower [m] */
static att_status search(argmax_job *j, att_param *weight, float *upper, float *lower)
{
    const float *bytes = j->k <= ATT_INT8_MOST ? att_param_int8(weight) : NULL;
    for (int64_t i = 0; i < j->m; i++) {
        j->out[i] = (att_top_column){-1, -INFINITY};
        j->all[i] = true;
    }
    if (j->k <= ATT_INT8_MOST) {
        const att_int8_product product = {.m = j->m, .n = j->n, .k = j->k, .a = j->x, .packed = bytes, .bias = j->from};
        if (!bytes || !att_int8_bounds(j->ctx, &product, upper, lower))
            return ATT_ERR_MEMORY;
        att_parallel(j->ctx, (int)j->m, row_task, j);
    }
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < j->m; i++)
        e = j->all[i] ? compute_all(j, weight, i, upper) : ATT_OK;
    return e;
}

/* y [n]: the bias, or -inf for excluded columns */
static void bias_without(int64_t n, const float *bias, const att_excluded_columns *except, float *y)
{
    if (bias)
        memcpy(y, bias, (size_t)n * sizeof *y);
    else
        memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < except->n; i++)
        y[except->column[i]] = -INFINITY;
}

/* All rows of x, ROWS at a time */
static void largest(att_tape *t, const att_tensor *x, att_param *weight, const float *bias, const float *from,
                    att_top_column *out)
{
    const int64_t m = x->dim[0], n = att_param_value(weight)->dim[0], k = x->dim[1], max_rows = m < ROWS ? m : ROWS;
    bool all[ROWS];
    float lower[ROWS];
    argmax_job j = {.ctx = t->ctx,
                    .kernels = att_kernels_of(t->ctx->isa),
                    .n = n,
                    .k = k,
                    .weight = weight,
                    .bias = bias,
                    .from = from};
    j.scratch_floats = (size_t)j.kernels->nr * (size_t)(2 * k + 2);
    j.scratch = att_tape_scratch(t, att_size_mul((size_t)att_threads(t->ctx), j.scratch_floats));
    float *upper = att_tape_scratch(t, att_size_mul((size_t)max_rows, (size_t)n));
    j.upper = upper;
    j.lower = lower;
    j.all = all;
    att_status e = j.scratch && upper ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t first = 0; !e && first < m; first += ROWS) {
        j.m = m - first < ROWS ? m - first : ROWS;
        j.x = (const float *)x->data + first * k;
        j.out = out + first;
        e = search(&j, weight, upper, lower);
    }
    if (e)
        att_tape_fail(t, e, "argmax: %s", att_error(t->ctx));
}

att_status att_linear_argmax(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                             const att_excluded_columns *except, att_top_column *out)
{
    att_tensor value;
    if (!att_tape_check_topk(t, "argmax", x, weight, bias, except, out, &value))
        return att_var_value(t, NULL, &value);
    if (except && except->offsets) {
        att_tape_fail(t, ATT_ERR_ARGUMENT, "argmax: except.offsets is for att_linear_topk, expected NULL");
        return att_var_value(t, NULL, &value);
    }
    const size_t mark = att_arena_mark(&t->arena);
    const int64_t n = att_param_value(weight)->dim[0];
    const float *b = bias ? att_param_floats(bias) : NULL;
    float *without = except ? att_tape_scratch(t, (size_t)n) : NULL;
    if ((bias && !b) || (except && !without)) {
        att_tape_fail(t, ATT_ERR_MEMORY, "argmax: %s", att_error(t->ctx));
    } else {
        if (except)
            bias_without(n, b, except, without);
        largest(t, &value, weight, b, except ? without : b, out);
    }
    att_arena_release(&t->arena, mark);
    return t->status ? att_var_value(t, NULL, &value) : ATT_OK;
}
