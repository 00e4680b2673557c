/* The largest entry of each row of x weight^T + bias, which greedy search needs of a vocabulary.
 *
 * Bounds of all entries (kernel/int8_bounds.c) leave few columns that may be the largest; only these are computed, as
 * att_linear does. */
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

/* Updates the best entry. Columns come in ascending order; a NaN stays. */
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

/* Searches the m rows of j; rows with too many candidates are searched without bounds. upper [m, n], lower [m]; false:
 * error set. */
static bool search(att_tape *t, argmax_job *j, att_param *weight, att_top_columns what, float *upper, float *lower)
{
    const float *bytes = att_param_int8(weight);
    const att_int8_product product = {.m = j->m, .n = j->n, .k = j->k, .a = j->x, .packed = bytes, .bias = j->from};
    for (int64_t i = 0; i < j->m; i++)
        j->out[i] = (att_top_column){-1, -INFINITY};
    if (!bytes || !att_int8_bounds(j->ctx, &product, upper, lower))
        return false;
    att_parallel(j->ctx, (int)j->m, row_task, j);
    bool good = true;
    for (int64_t i = 0; good && i < j->m; i++)
        if (j->all[i]) {
            what.out = &j->out[i];
            good = att_tape_topk(t, 1, j->x + i * j->k, weight, &what);
        }
    return good;
}

/* Writes y [n]: the bias, or -inf for excluded columns. */
static void bias_without(int64_t n, const float *bias, const att_excluded_columns *except, float *y)
{
    if (bias)
        memcpy(y, bias, (size_t)n * sizeof *y);
    else
        memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < except->n; i++)
        y[except->column[i]] = -INFINITY;
}

/* Computes all m rows of x, ROWS at a time; false: error set. */
static bool search_with_bounds(att_tape *t, int64_t m, const float *x, att_param *weight, const att_top_columns *what)
{
    const int64_t n = att_param_value(weight)->dim[0], k = att_param_value(weight)->dim[1], max_rows = att_min(m, ROWS);
    bool all[ROWS];
    float lower[ROWS];
    const size_t mark = att_arena_mark(&t->arena);
    float *without = what->except ? att_tape_scratch(t, (size_t)n) : NULL;
    argmax_job j = {.ctx = t->ctx,
                    .kernels = att_kernels_of(t->ctx->isa),
                    .n = n,
                    .k = k,
                    .weight = weight,
                    .bias = what->bias,
                    .from = without ? without : what->bias};
    j.scratch_floats = (size_t)j.kernels->nr * (size_t)(2 * k + 2);
    j.scratch = att_tape_scratch(t, att_size_mul((size_t)t->ctx->n_threads, j.scratch_floats));
    float *upper = att_tape_scratch(t, att_size_mul((size_t)max_rows, (size_t)n));
    j.upper = upper;
    j.lower = lower;
    j.all = all;
    bool good = j.scratch && upper && (without || !what->except);
    if (good && without)
        bias_without(n, what->bias, what->except, without);
    for (int64_t first = 0; good && first < m; first += ROWS) {
        j.m = att_min(m - first, ROWS);
        j.x = x + first * k;
        j.out = what->out + first;
        good = search(t, &j, weight, *what, upper, lower);
    }
    att_arena_release(&t->arena, mark);
    return good;
}

att_status att_linear_argmax(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                             const att_excluded_columns *except, att_top_column *out)
{
    att_tensor value;
    att_excluded_columns excluded;
    if (!att_tape_read_excluded(t, "argmax", &except, &excluded) ||
        !att_tape_check_topk(t, "argmax", x, weight, bias, except, out, &value))
        return att_var_value(t, NULL, &value);
    if (except && except->offsets) {
        att_tape_fail(t, ATT_ERR_ARGUMENT, "argmax: except.offsets is for att_linear_topk, expected NULL");
        return att_var_value(t, NULL, &value);
    }
    const att_tensor *w = att_param_value(weight);
    const att_top_columns what = {bias ? att_param_floats(bias) : NULL, except, 1, out, NULL};
    /* Bounds are not used for quantized weights, which are not larger than the int8 copy would be, nor in bf16, whose
     * rounding they do not bound. */
    const bool bounds = !att_is_quantized(w->dtype) && !att_tape_in_bf16(t, weight) && w->dim[1] <= ATT_INT8_MAX;
    if ((bias && !what.bias) ||
        !(bounds ? search_with_bounds : att_tape_topk)(t, value.dim[0], value.data, weight, &what))
        att_tape_fail(t, ATT_ERR_MEMORY, "argmax: %s", att_error(t->ctx));
    return t->status ? att_var_value(t, NULL, &value) : ATT_OK;
}
