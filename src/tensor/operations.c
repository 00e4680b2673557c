/* Operations on tensors: matrix product, softmax, cosine. */
#include "gemm/gemm.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"

#include <float.h>

/* ---- rows, in parallel */

/* `count` rows in `n` ranges of `each` rows; the last may be shorter. */
typedef struct split {
    int n;
    int64_t each, count;
} split;

enum { SHORTEST_PORTION = 16, MOST_PORTIONS = 1 << 16 };

static split split_rows(int64_t count)
{
    const int64_t each = (count + MOST_PORTIONS - 1) / MOST_PORTIONS;
    split s = {.each = each > SHORTEST_PORTION ? each : SHORTEST_PORTION, .count = count};
    s.n = (int)((count + s.each - 1) / s.each);
    return s;
}

static int64_t first_of(const split *s, int i) { return i * s->each; }
static int64_t end_of(const split *s, int i) { return i == s->n - 1 ? s->count : (i + 1) * s->each; }

/* Returns ATT_ERR_CANCELLED if the call was cancelled: the output is undefined then. */
static att_status finish(att_ctx *ctx, const char *call)
{
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "%s was cancelled", call) : ATT_OK;
}

/* ---- copying a matrix with any strides */

typedef struct matrix {
    float *data; /* element (r, c) at data[r * row + c * column] */
    int64_t row, column;
} matrix;

static matrix matrix_of(const att_tensor *t) { return (matrix){t->data, t->stride[0], t->stride[1]}; }

typedef struct copy_job {
    split rows;
    int64_t columns;
    matrix from, to;
} copy_job;

static void copy_rows(void *arg, int i)
{
    const copy_job *j = arg;
    for (int64_t r = first_of(&j->rows, i); r < end_of(&j->rows, i); r++)
        for (int64_t c = 0; c < j->columns; c++)
            j->to.data[r * j->to.row + c * j->to.column] = j->from.data[r * j->from.row + c * j->from.column];
}

static void copy(att_ctx *ctx, int64_t rows, int64_t columns, matrix from, matrix to)
{
    copy_job j = {split_rows(rows), columns, from, to};
    att_parallel_for(ctx, j.rows.n, copy_rows, &j);
}

/* ---- product */

/* out [m, n] = a [m, k] b^T, where element (j, p) of b [n, k] is at b.data[j * b.row + p * b.column]. */
static att_status product(att_ctx *ctx, int64_t m, int64_t n, int64_t k, matrix a, matrix b, matrix out)
{
    const bool copy_a = a.column != 1 && k > 1, copy_out = out.column != 1 && n > 1;
    float *packed = att_alloc(ctx, att_gemm_packed_count(ctx, n, k), sizeof *packed);
    float *rows = copy_a ? att_alloc(ctx, att_size_mul((size_t)m, (size_t)k), sizeof *rows) : NULL;
    float *result = copy_out ? att_alloc(ctx, att_size_mul((size_t)m, (size_t)n), sizeof *result) : NULL;
    att_status s = packed && !rows == !copy_a && !result == !copy_out ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        const matrix dense = {result, n, 1};
        if (copy_a)
            copy(ctx, m, k, a, (matrix){rows, k, 1});
        att_gemm_pack(ctx, n, k, b.data, b.row, b.column, packed);
        att_gemm(ctx, m, n, k, copy_a ? rows : a.data, copy_a ? k : a.row, packed, copy_out ? result : out.data,
                 copy_out ? n : out.row, NULL);
        if (copy_out)
            copy(ctx, m, n, dense, out);
    }
    att_free(ctx, result);
    att_free(ctx, rows);
    att_free(ctx, packed);
    return s;
}

att_status att_tensor_matmul(att_ctx *ctx, const att_tensor *a, const att_tensor *b, bool transpose_b,
                             const att_tensor *out)
{
    const int n_of_b = transpose_b ? 0 : 1, k_of_b = 1 - n_of_b;
    att_status s = att_require(__func__, ATT_NAMED({"ctx", ctx}));
    s = s ? s : att_check(ctx, "a", a, ATT_F32, 2);
    s = s ? s : att_check(ctx, "b", b, ATT_F32, 2);
    s = s ? s : att_check_output(ctx, "out", out, ATT_F32, 2);
    s = s ? s : att_check_dim(ctx, "b", b, k_of_b, "a.dim[1]", a->dim[1]);
    s = s ? s : att_check_dim(ctx, "out", out, 0, "a.dim[0]", a->dim[0]);
    s = s ? s : att_check_dim(ctx, "out", out, 1, transpose_b ? "b.dim[0]" : "b.dim[1]", b->dim[n_of_b]);
    s = s ? s : att_check_apart(ctx, "out", out, "a", a);
    s = s ? s : att_check_apart(ctx, "out", out, "b", b);
    if (s || att_count(out) == 0)
        return s;
    const matrix by_n = {b->data, b->stride[n_of_b], b->stride[k_of_b]};
    s = product(ctx, out->dim[0], out->dim[1], a->dim[1], matrix_of(a), by_n, matrix_of(out));
    return s ? s : finish(ctx, "att_tensor_matmul");
}

/* ---- softmax */

enum { GROUP = 16 }; /* adjacent slices copied together: a cache line of each row */

typedef struct softmax_job {
    att_ctx *ctx;
    const att_kernels *kernels;
    const att_tensor *x, *out;
    int dim;
    split slices;   /* all dimensions but one, flattened */
    float *scratch; /* [threads, GROUP, x->dim[dim]]; NULL: the slices are contiguous */
} softmax_job;

/* The address of slice i. */
static float *slice_of(const att_tensor *t, int dim, int64_t i)
{
    int64_t offset = 0;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != dim) {
            offset += i % t->dim[d] * t->stride[d];
            i /= t->dim[d];
        }
    return (float *)t->data + offset;
}

/* Softmax of `count` <= GROUP slices from `first`, gathered into scratch rows [GROUP, n]. */
static void softmax_group(const softmax_job *j, int64_t first, int count, float *rows)
{
    const int64_t n = j->x->dim[j->dim], from = j->x->stride[j->dim], to = j->out->stride[j->dim];
    const float *x[GROUP];
    float *y[GROUP];
    for (int s = 0; s < count; s++) {
        x[s] = slice_of(j->x, j->dim, first + s);
        y[s] = slice_of(j->out, j->dim, first + s);
    }
    for (int64_t i = 0; i < n; i++)
        for (int s = 0; s < count; s++)
            rows[s * n + i] = x[s][i * from];
    for (int s = 0; s < count; s++)
        j->kernels->softmax(n, rows + s * n, rows + s * n);
    for (int64_t i = 0; i < n; i++)
        for (int s = 0; s < count; s++)
            y[s][i * to] = rows[s * n + i];
}

static void softmax_slices(void *arg, int i, int thread)
{
    const softmax_job *j = arg;
    const int64_t n = j->x->dim[j->dim], end = end_of(&j->slices, i);
    if (att_cancelled(j->ctx))
        return;
    for (int64_t s = first_of(&j->slices, i); s < end; s += GROUP) {
        const int count = (int)(end - s < GROUP ? end - s : GROUP);
        if (j->scratch)
            softmax_group(j, s, count, j->scratch + thread * GROUP * n);
        for (int k = 0; k < count && !j->scratch; k++)
            j->kernels->softmax(n, slice_of(j->x, j->dim, s + k), slice_of(j->out, j->dim, s + k));
    }
}

/* Do both views have the same address, shape and strides? */
static bool same_view(const att_tensor *a, const att_tensor *b)
{
    bool same = a->data == b->data;
    for (int i = 0; i < a->rank; i++)
        same = same && (a->stride[i] == b->stride[i] || a->dim[i] <= 1);
    return same;
}

att_status att_tensor_softmax(att_ctx *ctx, const att_tensor *x, int dim, const att_tensor *out)
{
    att_status s = att_require(__func__, ATT_NAMED({"ctx", ctx}));
    s = s ? s : att_check_view(ctx, "x", x);
    s = s ? s : att_check(ctx, "x", x, ATT_F32, x->rank);
    s = s ? s : att_check_output(ctx, "out", out, ATT_F32, x->rank);
    s = s ? s : att_check_same_shape(ctx, "out", out, "x", x);
    if (!s && !same_view(x, out))
        s = att_check_apart(ctx, "out", out, "x", x);
    if (!s && (dim < -x->rank || dim >= x->rank))
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "dim = %d but x has %d dimensions", dim, x->rank);
    if (s || att_count(x) == 0)
        return s;
    dim += dim < 0 ? x->rank : 0;
    const int64_t n = x->dim[dim];
    softmax_job j = {ctx, att_kernels_of(ctx->isa), x, out, dim, split_rows(att_count(x) / n), NULL};
    if (n > 1 && (x->stride[dim] != 1 || out->stride[dim] != 1)) {
        j.scratch = att_alloc(ctx, att_size_mul((size_t)att_threads(ctx) * GROUP, (size_t)n), sizeof(float));
        if (!j.scratch)
            return ATT_ERR_MEMORY;
    }
    att_parallel(ctx, j.slices.n, softmax_slices, &j);
    att_free(ctx, j.scratch);
    return finish(ctx, "att_tensor_softmax");
}

/* ---- cosine */

typedef struct unit_job {
    const att_kernels *kernels;
    split rows;
    int64_t n;
    matrix from;
    float *to; /* [rows, n] */
} unit_job;

/* Divides each row by its norm; a zero row stays zero. */
static void unit_rows(void *arg, int i)
{
    const unit_job *j = arg;
    for (int64_t r = first_of(&j->rows, i); r < end_of(&j->rows, i); r++) {
        const float *x = j->from.data + r * j->from.row;
        float *y = j->to + r * j->n;
        for (int64_t c = 0; c < j->n; c++)
            y[c] = x[c * j->from.column];
        j->kernels->normalize(j->n, y, FLT_TRUE_MIN, y);
    }
}

static void to_unit_rows(att_ctx *ctx, const att_tensor *t, float *to)
{
    unit_job j = {att_kernels_of(ctx->isa), split_rows(t->dim[0]), t->dim[1], matrix_of(t), to};
    att_parallel_for(ctx, j.rows.n, unit_rows, &j);
}

att_status att_tensor_cosine(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    att_status s = att_require(__func__, ATT_NAMED({"ctx", ctx}));
    s = s ? s : att_check(ctx, "a", a, ATT_F32, 2);
    s = s ? s : att_check(ctx, "b", b, ATT_F32, 2);
    s = s ? s : att_check_output(ctx, "out", out, ATT_F32, 2);
    s = s ? s : att_check_dim(ctx, "b", b, 1, "a.dim[1]", a->dim[1]);
    s = s ? s : att_check_dim(ctx, "out", out, 0, "a.dim[0]", a->dim[0]);
    s = s ? s : att_check_dim(ctx, "out", out, 1, "b.dim[0]", b->dim[0]);
    s = s ? s : att_check_apart(ctx, "out", out, "a", a);
    s = s ? s : att_check_apart(ctx, "out", out, "b", b);
    if (s || att_count(out) == 0)
        return s;
    const int64_t m = a->dim[0], n = b->dim[0], d = a->dim[1];
    float *rows_a = att_alloc(ctx, att_size_mul((size_t)m, (size_t)d), sizeof(float));
    float *rows_b = att_alloc(ctx, att_size_mul((size_t)n, (size_t)d), sizeof(float));
    s = rows_a && rows_b ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        to_unit_rows(ctx, a, rows_a);
        to_unit_rows(ctx, b, rows_b);
        s = product(ctx, m, n, d, (matrix){rows_a, d, 1}, (matrix){rows_b, d, 1}, matrix_of(out));
    }
    att_free(ctx, rows_b);
    att_free(ctx, rows_a);
    return s ? s : finish(ctx, "att_tensor_cosine");
}
