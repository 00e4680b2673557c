/* Operations on tensors: product, softmax, cosine. */
#include "gemm/gemm.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"

#include <float.h>

/* ---- rows, in parallel */

/* Divides `count` rows into `n` ranges of `each` rows; the last may be shorter. */
typedef struct split {
    int n;
    int64_t each, count;
} split;

enum { SHORTEST_PORTION = 16, MAX_PORTIONS = 1 << 16 };

static split split_rows(int64_t count)
{
    split s = {.each = att_max(att_ceil_div(count, MAX_PORTIONS), SHORTEST_PORTION), .count = count};
    s.n = (int)att_ceil_div(count, s.each);
    return s;
}

static int64_t first_of(const split *s, int i) { return i * s->each; }
static int64_t end_of(const split *s, int i) { return i == s->n - 1 ? s->count : (i + 1) * s->each; }

/* Returns ATT_ERR_CANCELLED if the call was cancelled: the output is undefined then. */
static att_status finish(att_ctx *ctx, const char *call)
{
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "%s was cancelled", call) : ATT_OK;
}

/* ---- product */

static att_tensor dense(float *data, int64_t rows, int64_t columns)
{
    att_tensor t;
    att_wrap(&t, data, ATT_F32, ATT_DIMS(rows, columns), NULL); /* sizes that another tensor has, too */
    return t;
}

/* Computes out [m, n] = a [m, k] times the transpose of b [n, k]; an out without contiguous rows is written through a
 * copy. */
static att_status product(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    const int64_t m = a->dim[0], n = b->dim[0];
    const bool copied = out->stride[1] != 1 && n > 1;
    float *result = copied ? att_alloc(ctx, att_size_mul((size_t)m, (size_t)n), sizeof *result) : out->data;
    const att_matmul_args args = {.m = m,
                                  .n = n,
                                  .k = a->dim[1],
                                  .a = {a->data, a->stride[0], a->stride[1]},
                                  .b = {b->data, b->stride[1], b->stride[0]},
                                  .c = result,
                                  .ldc = copied ? n : out->stride[0]};
    float *scratch = result ? att_alloc(ctx, att_matmul_scratch(ctx, &args), sizeof *scratch) : NULL;
    att_status s = scratch ? ATT_OK : ATT_ERR_MEMORY;
    if (!s)
        att_matmul_strided(ctx, &args, scratch);
    if (!s && copied) {
        const att_tensor from = dense(result, m, n);
        s = att_tensor_convert(ctx, &from, out);
    }
    if (copied)
        att_free(ctx, result);
    att_free(ctx, scratch);
    return s;
}

static att_tensor transposed(const att_tensor *t)
{
    att_tensor y = *t;
    y.dim[0] = t->dim[1], y.dim[1] = t->dim[0];
    y.stride[0] = t->stride[1], y.stride[1] = t->stride[0];
    return y;
}

static att_status check_product(att_ctx *ctx, const char *call, const att_tensor *a, const att_tensor *b,
                                const att_matmul_options *o, const att_tensor *out)
{
    const int n_of_b = o->transpose_b ? 0 : 1, k_of_a = o->transpose_a ? 0 : 1;
    att_status s = att_require(call, ATT_NAMED({"ctx", ctx}));
    s = s ? s : att_check(ctx, "a", a, ATT_F32, 2);
    s = s ? s : att_check(ctx, "b", b, ATT_F32, 2);
    s = s ? s : att_check_output(ctx, "out", out, ATT_F32, 2);
    s = s ? s : att_check_dim(ctx, "b", b, 1 - n_of_b, o->transpose_a ? "a.dim[0]" : "a.dim[1]", a->dim[k_of_a]);
    s = s ? s : att_check_dim(ctx, "out", out, 0, o->transpose_a ? "a.dim[1]" : "a.dim[0]", a->dim[1 - k_of_a]);
    s = s ? s : att_check_dim(ctx, "out", out, 1, o->transpose_b ? "b.dim[0]" : "b.dim[1]", b->dim[n_of_b]);
    s = s ? s : att_check_apart(ctx, "out", out, "a", a);
    return s ? s : att_check_apart(ctx, "out", out, "b", b);
}

att_status att_tensor_matmul(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_matmul_options *options,
                             const att_tensor *out)
{
    att_matmul_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_matmul_options");
    s = s ? s : check_product(ctx, __func__, a, b, &o, out);
    if (s || att_count(out) == 0)
        return s;
    const att_tensor left = o.transpose_a ? transposed(a) : *a, by_n = o.transpose_b ? *b : transposed(b);
    s = product(ctx, &left, &by_n, out);
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

/* Returns the address of slice i. */
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

/* Computes the softmax of `count` <= GROUP slices from `first`, gathered into scratch rows [GROUP, n]. */
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
        j->kernels->layer.softmax(n, rows + s * n, rows + s * n);
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
            j->kernels->layer.softmax(n, slice_of(j->x, j->dim, s + k), slice_of(j->out, j->dim, s + k));
    }
}

/* Returns whether both views have the same address, shape and strides. */
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
        j.scratch = att_alloc(ctx, att_size_mul((size_t)ctx->n_threads * GROUP, (size_t)n), sizeof(float));
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
    const att_tensor *x; /* [rows, n], dense */
} unit_job;

/* Divides each row by its norm; a zero row stays zero. */
static void unit_rows(void *arg, int i)
{
    const unit_job *j = arg;
    for (int64_t r = first_of(&j->rows, i); r < end_of(&j->rows, i); r++) {
        float *x = (float *)j->x->data + r * j->x->dim[1];
        j->kernels->layer.normalize(j->x->dim[1], x, FLT_TRUE_MIN, x);
    }
}

/* Returns a copy of t whose rows have length 1, to be freed; data NULL: error set. */
static att_tensor to_unit_rows(att_ctx *ctx, const att_tensor *t)
{
    float *data = att_alloc(ctx, att_size_mul((size_t)t->dim[0], (size_t)t->dim[1]), sizeof *data);
    const att_tensor y = dense(data, t->dim[0], t->dim[1]);
    unit_job j = {att_kernels_of(ctx->isa), split_rows(t->dim[0]), &y};
    if (data && !att_tensor_convert(ctx, t, &y))
        att_parallel_for(ctx, j.rows.n, unit_rows, &j);
    return y;
}

att_status att_tensor_cosine(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    const att_matmul_options rows = {.size = sizeof rows, .transpose_b = true};
    att_status s = check_product(ctx, __func__, a, b, &rows, out);
    if (s || att_count(out) == 0)
        return s;
    const att_tensor unit_a = to_unit_rows(ctx, a), unit_b = to_unit_rows(ctx, b);
    s = unit_a.data && unit_b.data ? product(ctx, &unit_a, &unit_b, out) : ATT_ERR_MEMORY;
    att_free(ctx, unit_b.data);
    att_free(ctx, unit_a.data);
    return s ? s : finish(ctx, "att_tensor_cosine");
}
