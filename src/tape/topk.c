/* The n largest entries of each row of x weight^T + bias, and the log-sum-exp of each row: beam search selects tokens
 * from a vocabulary with them, a recommender items.
 *
 * A task computes some columns of all rows and selects from them while they are in the cache; logits are never stored
 * as a whole. Sums are over columns [i SEGMENT, (i + 1) SEGMENT), then over segments in ascending order. */
#include "tape/tape.h"
#include "base/math.h"
#include "gemm/gemm.h"
#include "util/best.h"

#include <math.h>

enum {
    ROWS = 256,         /* at a time, fewer where many of each are selected: */
    SELECTED = 1 << 22, /* of all threads and rows */
    SEGMENT = 256       /* a multiple of all panel widths */
};

typedef struct topk_job {
    const att_kernels *kernels;
    int64_t m, n, k, count; /* the `count` largest of n */
    int64_t row;            /* the first of all */
    const float *x;         /* [m, k] */
    att_gemm_args product;  /* x and the weights, in f32 or in pairs of bf16 */
    void (*run)(const att_gemm_args *args);
    att_quantized_args blocks; /* instead, quantized; or b NULL */
    att_quantized_run *run_blocks;
    const float *bias;                  /* [n] or NULL */
    const att_excluded_columns *except; /* or NULL */
    int64_t segments, threads;
    float *numbers;       /* [threads][ROWS][SEGMENT] */
    att_top_column *best; /* [threads][m][count] the best of each thread, heaps */
    float *top, *sum;     /* [segments][m], for log_sum */
    att_top_column *out;  /* [m][count] */
    double *log_sum;      /* [m] or NULL: neither it nor top and sum are computed */
} topk_job;

static const att_top_column no_number = {-1, NAN};

/* Returns the first of excluded columns [from, to), ascending, that is not below `column`, or to. */
static int64_t first_from(const att_excluded_columns *e, int64_t from, int64_t to, int64_t column)
{
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (e->column[middle] < column)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Excludes columns of row i from x, columns [first, first + columns). */
static void leave_out(const topk_job *j, int64_t i, int64_t first, int64_t columns, float *x)
{
    const att_excluded_columns *e = j->except;
    const int64_t *offsets = e->offsets ? e->offsets + j->row + i : NULL, end = offsets ? offsets[1] : e->n;
    for (int64_t at = offsets ? first_from(e, offsets[0], end, first) : 0; at < end; at++)
        if (e->column[at] >= first && e->column[at] < first + columns)
            x[e->column[at] - first] = -INFINITY;
        else if (offsets)
            break;
}

/* Selects from columns [first, first + columns) of a row: x. If one is NaN, best[0] is, and stays so. */
static void rank(const topk_job *j, int64_t first, int64_t columns, const float *x, att_top_column *best)
{
    for (int64_t i = 0; (i = j->kernels->layer.next_at_least(columns, x, best->value, i)) < columns; i++)
        if (x[i] >= best->value)
            att_best_add(best, j->count, (att_top_column){first + i, x[i]});
        else
            *best = no_number;
}

/* Sums segment s of row i, x [columns]; whether there may be one of the best or a NaN */
static bool sum_segment(const topk_job *j, int64_t s, int64_t i, int64_t columns, const float *x, float min)
{
    float *top = &j->top[s * j->m + i], *sum = &j->sum[s * j->m + i];
    j->kernels->layer.sum_exp(columns, x, top, sum);
    return !(*top < min) || isnan(*sum);
}

/* Logits of columns [first, first + columns) -> y [m, SEGMENT] */
static void compute(const topk_job *j, int64_t first, int64_t columns, float *y)
{
    const att_epilogue epilogue = {.bias = j->bias ? j->bias + first : NULL};
    const int64_t panels = att_ceil_div(columns, j->kernels->nr);
    if (j->blocks.b) {
        att_quantized_args p = j->blocks;
        p.b = (const char *)p.b + first * p.row_bytes;
        p.n = columns;
        p.last = panels;
        p.c = y;
        p.ldc = SEGMENT;
        j->run_blocks(&p);
        j->kernels->gemm.finish(j->m, columns, y, SEGMENT, &epilogue, 0, 0);
        return;
    }
    /* n is not limited to the segment: the panels after it are prefetched for the next task. */
    att_gemm_args p = j->product;
    p.n = j->n - first;
    p.packed = p.packed ? p.packed + first * p.k : NULL;
    p.codes = p.codes ? p.codes + first * p.k : NULL;
    p.last = panels;
    p.c = y;
    p.ldc = SEGMENT;
    p.epilogue = &epilogue;
    j->run(&p);
}

static void segment_task(void *arg, int64_t s, int thread)
{
    const topk_job *j = arg;
    const int64_t first = s * SEGMENT, columns = att_min(j->n - first, SEGMENT);
    float *numbers = j->numbers + (int64_t)thread * ROWS * SEGMENT;
    compute(j, first, columns, numbers);
    for (int64_t i = 0; i < j->m; i++) {
        float *x = numbers + i * SEGMENT;
        att_top_column *best = j->best + (thread * j->m + i) * j->count;
        if (j->except && !j->except->in_log_sum)
            leave_out(j, i, first, columns, x);
        if (j->log_sum && !sum_segment(j, s, i, columns, x, best->value))
            continue;
        if (j->except && j->except->in_log_sum)
            leave_out(j, i, first, columns, x);
        rank(j, first, columns, x, best);
    }
}

static double merge_sums(const topk_job *j, int64_t i)
{
    double top = (double)-INFINITY, sum = 0;
    for (int64_t s = 0; s < j->segments; s++)
        top = att_fmax(top, (double)j->top[s * j->m + i]);
    for (int64_t s = 0; s < j->segments; s++) {
        const float x = j->top[s * j->m + i], part = j->sum[s * j->m + i];
        sum += x == -INFINITY ? (double)part : (double)part * att_f64_exp((double)x - top);
    }
    return top + att_f64_log(sum);
}

/* Merges the results of all threads and segments for row i */
static void row_task(void *arg, int i, int thread)
{
    (void)thread;
    const topk_job *j = arg;
    att_top_column *best = j->out + i * j->count;
    bool numbers = true;
    att_best_begin(best, j->count);
    for (int64_t th = 0; numbers && th < j->threads; th++) {
        const att_top_column *found = j->best + (th * j->m + i) * j->count;
        numbers = !isnan(found->value);
        for (int64_t r = 0; numbers && r < j->count; r++)
            att_best_add(best, j->count, found[r]);
    }
    if (numbers) {
        att_best_sort(best, j->count);
    } else {
        att_best_begin(best, j->count);
        *best = no_number;
    }
    if (j->log_sum)
        j->log_sum[i] = merge_sums(j, i);
}

/* Checks that offsets of `rows` rows ascend, and the columns of each. */
static bool check_offsets(att_tape *t, const char *op, int64_t rows, const att_excluded_columns *e)
{
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = e->offsets[r], end = e->offsets[r + 1];
        if (first < 0 || first > end || end > e->n)
            return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                 "%s: except.offsets of row %lld are %lld and %lld, expected ascending ones from 0 to "
                                 "except.n, %lld",
                                 op, (long long)r, (long long)first, (long long)end, (long long)e->n);
        for (int64_t i = first + 1; i < end; i++)
            if (e->column[i] < e->column[i - 1])
                return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                     "%s: except.column[%lld] is %d, below the one before it in row %lld, %d", op,
                                     (long long)i, e->column[i], (long long)r, e->column[i - 1]);
    }
    return true;
}

static bool check_excluded(att_tape *t, const char *op, int64_t rows, const att_tensor *w,
                           const att_excluded_columns *e)
{
    if (e->n < 0 || (e->n > 0 && !e->column))
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: except.n is %lld with %s except.column", op, (long long)e->n,
                             e->column ? "this" : "no");
    if (e->offsets && !check_offsets(t, op, rows, e))
        return false;
    const int64_t first = e->offsets ? e->offsets[0] : 0, end = e->offsets ? e->offsets[rows] : e->n;
    for (int64_t i = first; i < end; i++)
        if (e->column[i] < 0 || e->column[i] >= w->dim[0])
            return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: except.column[%lld] is %d, but weight is %s", op,
                                 (long long)i, e->column[i], att_shape_of(w).text);
    return true;
}

bool att_tape_read_excluded(att_tape *t, const char *op, const att_excluded_columns **except,
                            att_excluded_columns *copy)
{
    if (!*except)
        return true;
    const bool read = att_tape_options_read(t, op, copy, sizeof *copy, *except, "att_excluded_columns");
    *except = copy;
    return read;
}

bool att_tape_check_topk(att_tape *t, const char *op, att_var *x, const att_param *weight, const att_param *bias,
                         const att_excluded_columns *except, const att_top_column *out, att_tensor *value)
{
    const att_tensor *w = weight ? att_param_value(weight) : NULL, *b = bias ? att_param_value(bias) : NULL;
    if (!x || !att_tape_ready(t))
        return false;
    *value = x->value;
    if (!w || !out)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: %s is NULL", op, w ? "out" : "weight");
    if (w->rank != 2 || value->rank != 2 || value->dim[1] != w->dim[1])
        return att_tape_fail(t, ATT_ERR_SHAPE, "%s: x is %s but weight is %s", op, att_shape_of(value).text,
                             att_shape_of(w).text);
    if (b && (b->rank != 1 || b->dim[0] != w->dim[0]))
        return att_tape_fail(t, ATT_ERR_SHAPE, "%s: bias is %s but weight is %s: expected [%lld]", op,
                             att_shape_of(b).text, att_shape_of(w).text, (long long)w->dim[0]);
    return !except || check_excluded(t, op, value->dim[0], w, except);
}

static void set_rows(topk_job *j)
{
    j->product.m = j->m;
    j->product.k = j->product.lda = j->k;
    j->product.a = j->x;
}

/* Selects from all rows of j; false: error set */
static bool search(att_tape *t, topk_job *j)
{
    const size_t m = (size_t)j->m, found = att_size_mul((size_t)j->threads * m, (size_t)j->count);
    const size_t mark = att_arena_mark(&t->arena);
    j->best = att_arena_alloc(&t->arena, att_size_mul(found, sizeof *j->best));
    j->top = att_tape_scratch(t, (size_t)j->segments * m);
    j->sum = att_tape_scratch(t, (size_t)j->segments * m);
    const bool pairs = j->run != j->kernels->gemm.run, rounded = pairs || j->blocks.b;
    float *words =
        rounded ? att_tape_scratch(t, pairs ? att_bf16_scratch(t->ctx, j->m, j->k) : att_quantized_scratch(j->m, j->k))
                : NULL;
    const bool good = j->best && j->top && j->sum && (words || !rounded);
    j->run_blocks = j->blocks.b ? att_quantized_run_of(t->ctx, j->m, j->blocks.type) : NULL;
    if (good) {
        if (j->blocks.b)
            att_quantize_rows(t->ctx, j->m, j->k, j->x, words, &j->blocks);
        else if (pairs)
            att_bf16_round(t->ctx, j->m, j->k, (att_matrix){j->x, j->k, 1}, words, &j->product);
        else
            set_rows(j);
        att_best_begin(j->best, (int64_t)found);
        att_parallel_partition(t->ctx, j->segments, segment_task, j);
        att_parallel(t->ctx, (int)j->m, row_task, j);
    }
    att_arena_release(&t->arena, mark);
    return good;
}

/* Sets the weights of j, in the type that they have; false: error set */
static bool set_weights(const att_tape *t, att_param *weight, topk_job *j)
{
    const att_tensor *w = att_param_value(weight);
    if (att_is_quantized(w->dtype)) {
        j->blocks = (att_quantized_args){
            .type = (int)w->dtype, .b = w->data, .row_bytes = att_dtype_bytes(w->dtype, w->stride[0])};
        return true;
    }
    if (att_tape_in_bf16(t, weight)) {
        j->run = att_bf16_gemm_of(t->ctx)->run;
        j->product.packed = att_param_packed_pairs(weight);
    } else if (w->dtype == ATT_F16 || w->dtype == ATT_BF16) {
        j->product.codes = att_param_packed_codes(weight);
    } else {
        j->product.packed = att_param_packed(weight);
    }
    j->product.bf16 = w->dtype == ATT_BF16;
    return j->product.packed || j->product.codes;
}

bool att_tape_topk(att_tape *t, int64_t m, const float *x, att_param *weight, const att_top_columns *what)
{
    const size_t mark = att_arena_mark(&t->arena);
    topk_job j = {.kernels = att_kernels_of(t->ctx->isa),
                  .n = att_param_value(weight)->dim[0],
                  .k = att_param_value(weight)->dim[1],
                  .count = what->count,
                  .bias = what->bias,
                  .except = what->except,
                  .threads = t->ctx->n_threads};
    j.run = j.kernels->gemm.run;
    j.segments = att_ceil_div(j.n, SEGMENT);
    j.numbers = att_tape_scratch(t, att_size_mul((size_t)j.threads, (size_t)ROWS * SEGMENT));
    bool good = set_weights(t, weight, &j) && j.numbers;
    const int64_t rows = att_max(1, att_min(ROWS, SELECTED / j.threads / j.count));
    for (int64_t first = 0; good && first < m; first += rows) {
        j.m = att_min(m - first, rows);
        j.row = first;
        j.x = x + first * j.k;
        j.out = what->out + first * j.count;
        j.log_sum = what->log_sum ? what->log_sum + first : NULL;
        good = search(t, &j);
    }
    att_arena_release(&t->arena, mark);
    return good;
}

att_status att_linear_topk(att_tape *t, att_var *x, att_param *weight, att_param *bias,
                           const att_excluded_columns *except, int64_t n, att_top_column *out, double *log_sum)
{
    att_tensor value;
    att_excluded_columns excluded;
    if (!att_tape_read_excluded(t, "topk", &except, &excluded) ||
        !att_tape_check_topk(t, "topk", x, weight, bias, except, out, &value))
        return att_var_value(t, NULL, &value);
    if (n < 1) {
        att_tape_fail(t, ATT_ERR_ARGUMENT, "topk: n is %lld, expected at least 1", (long long)n);
        return att_var_value(t, NULL, &value);
    }
    const att_top_columns what = {bias ? att_param_floats(bias) : NULL, except, n, out, log_sum};
    if ((bias && !what.bias) || !att_tape_topk(t, value.dim[0], value.data, weight, &what))
        att_tape_fail(t, ATT_ERR_MEMORY, "topk: %s", att_error(t->ctx));
    return t->status ? att_var_value(t, NULL, &value) : ATT_OK;
}
