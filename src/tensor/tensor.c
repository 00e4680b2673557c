/* Tensor views: construction, description, checks. */
#include "tensor/tensor.h"
#include "kernel/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    size_t size;   /* of an element; of a block, if there are blocks */
    int64_t block; /* numbers of a block; 1: there are none */
} dtypes[] = {
    [ATT_F32] = {"f32", 4, 1},
    [ATT_F16] = {"f16", 2, 1},
    [ATT_BF16] = {"bf16", 2, 1},
    [ATT_I32] = {"i32", 4, 1},
    [ATT_I64] = {"i64", 8, 1},
    [ATT_BOOL] = {"bool", 1, 1},
    [ATT_I8] = {"i8", 1, 1},
    [ATT_Q8_0] = {"Q8_0", ATT_Q8_0_BYTES, ATT_QUANTIZED_BLOCK},
    [ATT_Q4_0] = {"Q4_0", ATT_Q4_0_BYTES, ATT_QUANTIZED_BLOCK},
    [ATT_Q4_1] = {"Q4_1", ATT_Q4_1_BYTES, ATT_QUANTIZED_BLOCK},
    [ATT_Q5_0] = {"Q5_0", ATT_Q5_0_BYTES, ATT_QUANTIZED_BLOCK},
    [ATT_Q5_1] = {"Q5_1", ATT_Q5_1_BYTES, ATT_QUANTIZED_BLOCK},
    [ATT_Q2_K] = {"Q2_K", ATT_Q2_K_BYTES, ATT_SUPER_BLOCK},
    [ATT_Q3_K] = {"Q3_K", ATT_Q3_K_BYTES, ATT_SUPER_BLOCK},
    [ATT_Q4_K] = {"Q4_K", ATT_Q4_K_BYTES, ATT_SUPER_BLOCK},
    [ATT_Q5_K] = {"Q5_K", ATT_Q5_K_BYTES, ATT_SUPER_BLOCK},
    [ATT_Q6_K] = {"Q6_K", ATT_Q6_K_BYTES, ATT_SUPER_BLOCK},
    [ATT_IQ4_NL] = {"IQ4_NL", ATT_IQ4_NL_BYTES, ATT_QUANTIZED_BLOCK},
    [ATT_IQ4_XS] = {"IQ4_XS", ATT_IQ4_XS_BYTES, ATT_SUPER_BLOCK},
};

static bool known(att_dtype t) { return (unsigned)t < sizeof dtypes / sizeof dtypes[0]; }

const char *att_dtype_name(att_dtype t) { return known(t) ? dtypes[t].name : "unknown"; }
size_t att_dtype_size(att_dtype t) { return known(t) && dtypes[t].block == 1 ? dtypes[t].size : 0; }
int64_t att_dtype_block(att_dtype t) { return known(t) ? dtypes[t].block : 0; }
bool att_is_quantized(att_dtype t) { return att_dtype_block(t) > 1; }

bool att_is_real(att_dtype t)
{
    return t == ATT_F32 || t == ATT_F16 || t == ATT_BF16 || t == ATT_I8 || att_is_quantized(t);
}

int64_t att_dtype_bytes(att_dtype t, int64_t n) { return known(t) ? n / dtypes[t].block * (int64_t)dtypes[t].size : 0; }

/* Finds the byte range [low, high) of a view, relative to data; [0, 0) if it is empty. False if a count or an offset
 * overflows. Rank and dimensions have been checked. */
static bool range_of(const att_tensor *t, int64_t *low, int64_t *high)
{
    const bool quantized = att_is_quantized(t->dtype); /* counted in elements first, with two bytes for each */
    const int64_t size = quantized ? 2 : (int64_t)att_dtype_size(t->dtype);
    int64_t bytes = size;
    bool fits = true, empty = false;
    *low = 0;
    *high = size;
    for (int i = 0; i < t->rank; i++) {
        const int64_t dim = t->dim[i] ? t->dim[i] : 1; /* an empty view needs valid other dimensions, too */
        int64_t reach, *end = t->stride[i] < 0 ? low : high;
        empty = empty || t->dim[i] == 0;
        fits = fits && !__builtin_mul_overflow(bytes, dim, &bytes) &&
               !__builtin_mul_overflow(dim - 1, t->stride[i], &reach) && !__builtin_mul_overflow(reach, size, &reach) &&
               !__builtin_add_overflow(*end, reach, end);
    }
    if (empty)
        *low = *high = 0;
    if (quantized && fits) {
        *low = att_dtype_bytes(t->dtype, *low / size);
        *high = att_dtype_bytes(t->dtype, att_round_up(*high / size, att_dtype_block(t->dtype)));
    }
    return fits && *low >= -PTRDIFF_MAX / 2 && *high <= PTRDIFF_MAX / 2;
}

void att_release_mapped(const att_tensor *x)
{
    int64_t first = 0, last = 0; /* elements from x->data */
    if (!x || !x->data || x->rank < 0 || x->rank > ATT_MAX_RANK)
        return;
    for (int d = 0; d < x->rank; d++) {
        const int64_t reach = x->dim[d] > 0 ? (x->dim[d] - 1) * x->stride[d] : 0;
        first += reach < 0 ? reach : 0;
        last += reach > 0 ? reach : 0;
    }
    const char *begin = (const char *)x->data + att_dtype_bytes(x->dtype, first);
    att_os_release(begin, (size_t)att_dtype_bytes(x->dtype, last - first + 1));
}

int64_t att_count(const att_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i];
    return count;
}

bool att_is_dense(const att_tensor *t)
{
    int64_t stride = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->dim[i] > 1 && t->stride[i] != stride)
            return false;
        stride *= att_max(t->dim[i], 1); /* as att_wrap sets strides of empty tensors */
    }
    return true;
}

static bool has_rank(const att_tensor *t) { return t->rank >= 0 && t->rank <= ATT_MAX_RANK; }

/* Returns whether two views overlap. An invalid view has no range; its own check refuses it. */
bool att_overlap(const att_tensor *a, const att_tensor *b)
{
    int64_t a_low, a_high, b_low, b_high;
    if (!has_rank(a) || !has_rank(b) || !range_of(a, &a_low, &a_high) || !range_of(b, &b_low, &b_high) ||
        a_low == a_high || b_low == b_high)
        return false;
    const uintptr_t pa = (uintptr_t)a->data, pb = (uintptr_t)b->data;
    return pa + (uintptr_t)a_low < pb + (uintptr_t)b_high && pb + (uintptr_t)b_low < pa + (uintptr_t)a_high;
}

/* Checks that a quantized view consists of whole blocks. */
static att_status check_blocks(att_ctx *ctx, const char *name, const att_tensor *t)
{
    const int last = t->rank - 1, block = (int)att_dtype_block(t->dtype);
    if (last < 0 || t->dim[last] % block)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s is %s of %s, whose last dimension must be a multiple of %d", name,
                        att_shape_of(t).text, att_dtype_name(t->dtype), block);
    for (int i = 0; i <= last && t->dim[last] > 0; i++)
        if (t->dim[i] > 1 && (i == last ? t->stride[i] != 1 : t->stride[i] % block != 0))
            return att_fail(ctx, ATT_ERR_SHAPE, "%s.stride[%d] = %" PRId64 ", but rows of %s are in whole blocks of %d",
                            name, i, t->stride[i], att_dtype_name(t->dtype), block);
    return ATT_OK;
}

/* Checks everything but the data pointer. */
static att_status check_form(att_ctx *ctx, const char *name, const att_tensor *t)
{
    int64_t low, high;
    if (!known(t->dtype))
        return att_fail(ctx, ATT_ERR_DTYPE, "%s.dtype = %d is not an att_dtype", name, (int)t->dtype);
    if (t->rank < 0 || t->rank > ATT_MAX_RANK)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s.rank = %d is not from 0 to %d", name, t->rank, ATT_MAX_RANK);
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 0)
            return att_fail(ctx, ATT_ERR_SHAPE, "%s.dim[%d] = %" PRId64 " is negative", name, i, t->dim[i]);
    const att_status s = att_is_quantized(t->dtype) ? check_blocks(ctx, name, t) : ATT_OK;
    if (s)
        return s;
    if (!range_of(t, &low, &high))
        return att_fail(ctx, ATT_ERR_SHAPE, "%s %s reaches further than any memory", name, att_shape_of(t).text);
    return ATT_OK;
}

att_status att_check_view(att_ctx *ctx, const char *name, const att_tensor *t)
{
    if (!t)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is NULL", name);
    if (!t->data && t->rank == 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is not set: it has no data and no dimensions", name);
    const att_status s = check_form(ctx, name, t);
    if (!s && !t->data && att_count(t) > 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s %s has no memory: its data is NULL", name, att_shape_of(t).text);
    return s;
}

att_status att_check(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank)
{
    const att_status s = att_check_view(ctx, name, t);
    if (s)
        return s;
    if (t->dtype != dtype)
        return att_fail(ctx, ATT_ERR_DTYPE, "%s is %s but must be %s", name, att_dtype_name(t->dtype),
                        att_dtype_name(dtype));
    if (t->rank != rank)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s %s has %d dimensions but must have %d", name, att_shape_of(t).text,
                        t->rank, rank);
    return ATT_OK;
}

/* Checks that elements are distinct: they are if each stride is larger than the extent of all smaller strides. Other
 * interleaved layouts are refused, too. */
static att_status check_no_overlap(att_ctx *ctx, const char *name, const att_tensor *t)
{
    int64_t reach = 0; /* extent of the smaller strides */
    bool done[ATT_MAX_RANK] = {false};
    for (int n = 0; n < t->rank; n++) {
        int next = -1;
        for (int i = 0; i < t->rank; i++)
            if (!done[i] && t->dim[i] > 1 && (next < 0 || llabs(t->stride[i]) < llabs(t->stride[next])))
                next = i;
        if (next < 0)
            return ATT_OK;
        if (llabs(t->stride[next]) <= reach)
            return att_fail(ctx, ATT_ERR_SHAPE,
                            "%s is written, so its elements must not overlap: %s.stride[%d] = %" PRId64
                            ", but the smaller strides reach %" PRId64 " elements",
                            name, name, next, t->stride[next], reach);
        reach += (t->dim[next] - 1) * llabs(t->stride[next]);
        done[next] = true;
    }
    return ATT_OK;
}

att_status att_check_output(att_ctx *ctx, const char *name, const att_tensor *t, att_dtype dtype, int rank)
{
    const att_status s = att_check(ctx, name, t, dtype, rank);
    if (s || att_count(t) == 0)
        return s;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] > 1 && t->stride[i] == 0)
            return att_fail(ctx, ATT_ERR_SHAPE, "%s is written, so %s.stride[%d] = 0 must not repeat %" PRId64 " times",
                            name, name, i, t->dim[i]);
    return check_no_overlap(ctx, name, t);
}

att_status att_check_dim(att_ctx *ctx, const char *name, const att_tensor *t, int i, const char *what, int64_t value)
{
    if (t->dim[i] == value)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_SHAPE, "%s.dim[%d] = %" PRId64 " but %s = %" PRId64, name, i, t->dim[i], what, value);
}

att_status att_check_contiguous(att_ctx *ctx, const char *name, const att_tensor *t)
{
    const int last = t->rank - 1;
    if (last < 0 || t->dim[last] <= 1 || t->stride[last] == 1)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s.stride[%d] = %" PRId64 ", but the last dimension must be contiguous (1)",
                    name, last, t->stride[last]);
}

att_status att_check_same_shape(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                                const att_tensor *other)
{
    bool same = t->rank == other->rank;
    for (int i = 0; same && i < t->rank; i++)
        same = t->dim[i] == other->dim[i];
    if (same)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_SHAPE, "%s is %s but %s is %s", name, att_shape_of(t).text, other_name,
                    att_shape_of(other).text);
}

att_status att_check_apart(att_ctx *ctx, const char *name, const att_tensor *t, const char *other_name,
                           const att_tensor *other)
{
    if (!att_overlap(t, other))
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s (at %p) and %s (at %p) overlap in memory", name, t->data, other_name,
                    other->data);
}

att_status att_wrap(att_tensor *out, void *data, att_dtype dtype, int rank, const int64_t *dim, const int64_t *stride)
{
    if (att_require(__func__, ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    if (rank > 0 && !dim)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "att_wrap: dim is NULL but rank = %d", rank);
    att_tensor t = {.data = data, .dtype = dtype, .rank = rank};
    int64_t dense = 1;
    for (int i = has_rank(&t) ? rank - 1 : -1; i >= 0; i--) {
        t.dim[i] = dim[i];
        t.stride[i] = stride ? stride[i] : dense;
        if (__builtin_mul_overflow(dense, dim[i] > 1 ? dim[i] : 1, &dense))
            dense = INT64_MAX; /* the check refuses it */
    }
    const att_status s = check_form(NULL, "att_wrap: out", &t);
    *out = s ? (att_tensor){0} : t;
    return s;
}
