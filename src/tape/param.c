/* Parameters: the caller's numbers, and the copies that the kernels want, made at first use. */
#include "tape/tape.h"
#include "gemm/bytes.h"
#include "gemm/gemm.h"

#include <stdatomic.h>
#include <string.h>

/* Good for the generation of the parameter that it was made of. */
typedef struct copy {
    float *data;
    atomic_size_t generation;
} copy;

struct att_param {
    att_ctx *ctx;
    att_tensor value;
    size_t generation; /* from 1: copies start at 0, older than any value */
    att_lock lock;     /* of those who make a copy */
    copy packed, floats, bytes;
    /* The gradient, as value. What a backward adds to it is made in the first of these where that has none yet, else in
     * the second: a backward that fails changes nothing. */
    float *grad, *more;
    float *part;          /* that of them which a backward adds to, NULL between backwards */
    bool begun;           /* something has been written there */
    att_param *next;      /* in the list of those that the backward adds to */
    att_tensor grad_view; /* data NULL: none yet */
};

att_status att_param_new(att_ctx *ctx, const att_tensor *value, att_param **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"value", value}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status s = att_check_view(ctx, "value", value);
    if (s)
        return s;
    if (value->dtype != ATT_F32 && value->dtype != ATT_F16 && value->dtype != ATT_BF16)
        return att_fail(ctx, ATT_ERR_DTYPE, "value is %s, not f32, f16 or bf16", att_dtype_name(value->dtype));
    if (value->rank < 1)
        return att_fail(ctx, ATT_ERR_SHAPE, "value is of rank %d, expected 1 to %d", value->rank, ATT_MAX_RANK);
    att_param *p = att_calloc(ctx, 1, sizeof *p);
    if (!p)
        return ATT_ERR_MEMORY;
    p->ctx = ctx;
    p->value = *value;
    p->generation = 1;
    att_wrap(&p->grad_view, NULL, ATT_F32, value->rank, value->dim, NULL); /* sizes that value has, too */
    *out = p;
    return ATT_OK;
}

void att_param_free(att_param *p)
{
    if (!p)
        return;
    att_free(p->ctx, p->packed.data);
    att_free(p->ctx, p->floats.data);
    att_free(p->ctx, p->bytes.data);
    att_free(p->ctx, p->grad);
    att_free(p->ctx, p->more);
    att_free(p->ctx, p);
}

const att_tensor *att_param_value(const att_param *p) { return p ? &p->value : NULL; }

void att_param_invalidate(att_param *p)
{
    if (p)
        p->generation++;
}

/* n numbers of x from element `at` on, next to each other, as f32. */
static void convert(const att_param *p, int64_t at, int64_t n, float *y)
{
    const att_kernels *k = att_kernels_of(p->ctx->isa);
    if (p->value.dtype == ATT_F32)
        memcpy(y, (const float *)p->value.data + at, (size_t)n * sizeof *y);
    else if (p->value.dtype == ATT_F16)
        k->from_f16(n, (const uint16_t *)p->value.data + at, y);
    else
        k->from_bf16(n, (const uint16_t *)p->value.data + at, y);
}

void att_param_row(const att_param *p, int64_t row, float *y)
{
    const att_tensor *x = &p->value;
    const int last = x->rank - 1;
    int64_t at = 0;
    for (int i = last - 1; i >= 0; row /= x->dim[i--])
        at += row % x->dim[i] * x->stride[i];
    if (x->stride[last] == 1)
        convert(p, at, x->dim[last], y);
    else
        for (int64_t i = 0; i < x->dim[last]; i++)
            convert(p, at + i * x->stride[last], 1, y + i);
}

static bool make_floats(const att_param *p, float *y)
{
    const att_tensor *x = &p->value;
    const int64_t rows = att_tape_rows(x), features = x->dim[x->rank - 1];
    for (int64_t i = 0; i < rows; i++)
        att_param_row(p, i, y + i * features);
    return true;
}

/* All dimensions but the first, as one. */
static int64_t columns_of(const att_tensor *x)
{
    int64_t n = 1;
    for (int i = 1; i < x->rank; i++)
        n *= x->dim[i];
    return n;
}

size_t att_param_packed_count(const att_param *p)
{
    return att_gemm_packed_count(p->ctx, p->value.dim[0], columns_of(&p->value));
}

bool att_param_pack(const att_param *p, float *y)
{
    const att_tensor *x = &p->value;
    const int64_t n = x->dim[0], k = columns_of(x);
    if (x->dtype == ATT_F32 && (x->rank == 2 || att_is_dense(x))) {
        att_gemm_pack(p->ctx, n, k, x->data, x->rank == 2 ? x->stride[0] : k, x->rank == 2 ? x->stride[1] : 1, y);
        return true;
    }
    float *floats = att_alloc(p->ctx, (size_t)att_count(x), sizeof *floats);
    if (!floats)
        return false;
    make_floats(p, floats);
    att_gemm_pack(p->ctx, n, k, floats, k, 1, y);
    att_free(p->ctx, floats);
    return true;
}

/* The copy, made by the first thread that asks; the others wait for it. */
static const float *get(att_param *p, copy *c, size_t count, bool (*make)(const att_param *p, float *y))
{
    if (atomic_load_explicit(&c->generation, memory_order_acquire) == p->generation)
        return c->data;
    att_lock_take(&p->lock);
    bool good = atomic_load_explicit(&c->generation, memory_order_relaxed) == p->generation;
    if (!good) {
        if (!c->data)
            c->data = att_alloc(p->ctx, count ? count : 1, sizeof(float));
        good = c->data && make(p, c->data);
        if (good)
            atomic_store_explicit(&c->generation, p->generation, memory_order_release);
    }
    att_lock_give(&p->lock);
    return good ? c->data : NULL;
}

const float *att_param_packed(att_param *p) { return get(p, &p->packed, att_param_packed_count(p), att_param_pack); }

const float *att_param_floats(att_param *p)
{
    if (p->value.dtype == ATT_F32 && att_is_dense(&p->value))
        return p->value.data;
    return get(p, &p->floats, (size_t)att_count(&p->value), make_floats);
}

static void give_row(const void *p, int64_t i, float *y) { att_param_row(p, i, y); }

static bool make_bytes(const att_param *p, float *y)
{
    return att_bytes_pack(p->ctx, p->value.dim[0], p->value.dim[1], give_row, p, y);
}

const float *att_param_bytes(att_param *p)
{
    return get(p, &p->bytes, att_bytes_count(p->ctx, p->value.dim[0], p->value.dim[1]), make_bytes);
}

/* ---- the gradient */

const att_tensor *att_param_grad(const att_param *p) { return p ? &p->grad_view : NULL; }

void att_param_zero_grad(att_param *p)
{
    if (p)
        p->grad_view.data = NULL;
}

att_status att_param_grad_begin(att_param *p, att_param **list)
{
    if (p->part)
        return ATT_OK;
    const size_t count = (size_t)att_count(&p->value);
    float **part = p->grad_view.data ? &p->more : &p->grad;
    if (!*part)
        *part = att_alloc(p->ctx, count, sizeof **part);
    if (!*part)
        return ATT_ERR_MEMORY;
    p->part = *part;
    p->begun = false;
    p->next = *list;
    *list = p;
    return ATT_OK;
}

float *att_param_part_put(att_param *p, bool *add)
{
    *add = p->begun;
    p->begun = true;
    return p->part;
}

float *att_param_part(att_param *p)
{
    bool add;
    float *part = att_param_part_put(p, &add);
    if (!add)
        memset(part, 0, (size_t)att_count(&p->value) * sizeof *part);
    return part;
}

void att_param_grads_end(att_param *list, bool good)
{
    for (att_param *p = list; p; p = p->next) {
        if (good)
            att_param_part(p); /* zeros, if no step wrote */
        if (good && p->part == p->more)
            att_tape_sum(p->ctx, att_count(&p->value), p->more, p->grad);
        else if (good)
            p->grad_view.data = p->grad;
        p->part = NULL;
    }
}
