/* Parameters: a view of the caller's data, and copies in other layouts, made at first use. */
#include "tape/tape.h"
#include "tape/int8_bounds.h"
#include "gemm/gemm.h"

#include <stdatomic.h>
#include <string.h>

/* A copy in another layout; valid if its generation is the parameter's. */
typedef struct copy {
    float *data;
    atomic_size_t generation;
} copy;

struct att_param {
    att_ctx *ctx;
    att_tensor value;
    bool no_weight_decay;
    size_t generation; /* incremented by att_param_invalidate; from 1, so a new copy (0) is out of date */
    att_lock lock;     /* held while a copy is made */
    copy packed, codes, pairs, floats, bytes;
    atomic_size_t copies; /* bytes of the copies */
    bool mapped, frozen;
    /* The gradient, in the shape of value. A backward accumulates into `grad` if it is empty, otherwise into `more`, so
     * that a backward that fails changes nothing. */
    float *grad, *more;
    bool grad_lent;       /* `grad` is memory of another owner, with zeros while there is no gradient */
    float *partial;       /* `grad` or `more`, into which the backward accumulates; NULL between backwards */
    bool grad_written;    /* `partial` has been written */
    att_param *next;      /* list of the parameters of this backward */
    att_tensor grad_view; /* data NULL: no gradient */
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
    if (!att_is_real(value->dtype))
        return att_fail(ctx, ATT_ERR_DTYPE, "value is %s, not f32, f16, bf16, i8 or quantized",
                        att_dtype_name(value->dtype));
    if (value->rank < 1)
        return att_fail(ctx, ATT_ERR_SHAPE, "value is of rank %d, expected 1 to %d", value->rank, ATT_MAX_RANK);
    att_param *p = att_calloc(ctx, 1, sizeof *p);
    if (!p)
        return ATT_ERR_MEMORY;
    p->ctx = ctx;
    p->value = *value;
    p->generation = 1;
    att_wrap(&p->grad_view, NULL, ATT_F32, value->rank, value->dim, NULL); /* cannot fail: the sizes of value */
    *out = p;
    return ATT_OK;
}

void att_param_free(att_param *p)
{
    if (!p)
        return;
    att_free(p->ctx, p->packed.data);
    att_free(p->ctx, p->codes.data);
    att_free(p->ctx, p->pairs.data);
    att_free(p->ctx, p->floats.data);
    att_free(p->ctx, p->bytes.data);
    if (!p->grad_lent)
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

bool att_param_weight_decay(const att_param *p) { return p && !p->no_weight_decay; }

void att_param_set_weight_decay(att_param *p, bool decay)
{
    if (p)
        p->no_weight_decay = !decay;
}

void att_param_set_mapped(att_param *p, bool mapped)
{
    if (p)
        p->mapped = mapped;
}

bool att_param_frozen(const att_param *p) { return p && p->frozen; }

void att_param_set_frozen(att_param *p, bool frozen)
{
    if (p)
        p->frozen = frozen;
}

size_t att_param_copies(const att_param *p)
{
    return p ? atomic_load_explicit(&((att_param *)p)->copies, memory_order_relaxed) : 0;
}

/* Converts elements [at, at + n) to f32. */
static void convert(const att_param *p, int64_t at, int64_t n, float *y)
{
    const att_kernels *k = att_kernels_of(p->ctx->isa);
    if (att_is_quantized(p->value.dtype))
        att_dequantize(p->value.dtype, n, (const char *)p->value.data + att_dtype_bytes(p->value.dtype, at), y);
    else if (p->value.dtype == ATT_I8)
        att_from_i8(n, (const int8_t *)p->value.data + at, y);
    else if (p->value.dtype == ATT_F32)
        memcpy(y, (const float *)p->value.data + at, (size_t)n * sizeof *y);
    else if (p->value.dtype == ATT_F16)
        k->vector.from_f16(n, (const uint16_t *)p->value.data + at, y);
    else
        k->vector.from_bf16(n, (const uint16_t *)p->value.data + at, y);
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

/* Returns whether a copy was completed; if the call was cancelled meanwhile, sets its error. */
static bool is_made(const att_param *p, bool all)
{
    if (!all)
        att_fail(p->ctx, ATT_ERR_CANCELLED, "cancelled");
    return all;
}

static bool make_floats(const att_param *p, float *y)
{
    const att_tensor *x = &p->value;
    const int64_t rows = att_tape_rows(x), features = x->dim[x->rank - 1];
    int64_t i = 0;
    for (; i < rows && !att_cancelled(p->ctx); i++)
        att_param_row(p, i, y + i * features);
    return is_made(p, i == rows);
}

/* Returns the product of all dimensions but the first. */
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

void att_tape_reorder(att_ctx *ctx, int64_t n, int64_t channels, int64_t area, const float *x, float *y)
{
    for (int64_t i = 0; i < n; i++, x += channels * area, y += channels * area)
        att_kernels_of(ctx->isa)->vector.transpose(channels, area, x, area, y, channels);
}

/* Packs weights of a convolution, [n, channels, height, width], in the order of its patches: [n, height, width,
 * channels]. */
static bool pack_kernels(const att_param *p, float *y)
{
    const att_tensor *x = &p->value;
    const int64_t n = x->dim[0], channels = x->dim[1], area = x->dim[2] * x->dim[3], k = channels * area;
    const bool dense = x->dtype == ATT_F32 && att_is_dense(x);
    float *made = att_alloc(p->ctx, (size_t)(dense ? att_count(x) : 2 * att_count(x)), sizeof *made);
    if (!made)
        return false;
    const float *from = dense ? x->data : made + att_count(x);
    bool all = dense || make_floats(p, made + att_count(x));
    if (all) {
        att_tape_reorder(p->ctx, n, channels, area, from, made);
        all = is_made(p, att_gemm_pack_weights(p->ctx, n, k, made, k, 1, y));
    }
    att_free(p->ctx, made);
    return all;
}

bool att_param_pack(const att_param *p, float *y)
{
    const att_tensor *x = &p->value;
    if (x->rank == 4)
        return pack_kernels(p, y);
    const int64_t n = x->dim[0], k = columns_of(x);
    if (x->dtype == ATT_F32 && (x->rank == 2 || att_is_dense(x)))
        return is_made(p, att_gemm_pack_weights(p->ctx, n, k, x->data, x->rank == 2 ? x->stride[0] : k,
                                                x->rank == 2 ? x->stride[1] : 1, y));
    float *floats = att_alloc(p->ctx, (size_t)att_count(x), sizeof *floats);
    if (!floats)
        return false;
    bool all;
    if (x->rank == 2 && x->stride[0] == 1 && x->stride[1] != 1) { /* a transpose: its columns are contiguous */
        int64_t i = 0;
        for (; i < k && !att_cancelled(p->ctx); i++)
            convert(p, i * x->stride[1], n, floats + i * n);
        all = is_made(p, i == k && att_gemm_pack_weights(p->ctx, n, k, floats, 1, n, y));
    } else {
        all = make_floats(p, floats) && is_made(p, att_gemm_pack_weights(p->ctx, n, k, floats, k, 1, y));
    }
    att_free(p->ctx, floats);
    return all;
}

/* Returns a copy; the first thread that needs it makes it, others wait. */
static const float *get(att_param *p, copy *c, size_t count, bool (*make)(const att_param *p, float *y))
{
    if (atomic_load_explicit(&c->generation, memory_order_acquire) == p->generation)
        return c->data;
    att_lock_acquire(&p->lock);
    bool good = atomic_load_explicit(&c->generation, memory_order_relaxed) == p->generation;
    if (!good) {
        if (!c->data) {
            c->data = att_alloc(p->ctx, count ? count : 1, sizeof(float));
            atomic_fetch_add_explicit(&p->copies, c->data ? count * sizeof(float) : 0, memory_order_relaxed);
        }
        good = c->data && make(p, c->data);
        if (good)
            atomic_store_explicit(&c->generation, p->generation, memory_order_release);
        if (good && p->mapped)
            att_release_mapped(&p->value);
    }
    att_lock_release(&p->lock);
    return good ? c->data : NULL;
}

const float *att_param_packed(att_param *p) { return get(p, &p->packed, att_param_packed_count(p), att_param_pack); }

static bool pack_codes(const att_param *p, float *y)
{
    const att_tensor *x = &p->value;
    return is_made(
        p, att_gemm_pack_codes(p->ctx, x->dim[0], x->dim[1], x->data, x->stride[0], x->stride[1], (uint16_t *)y));
}

const uint16_t *att_param_packed_codes(att_param *p)
{
    return (const uint16_t *)get(p, &p->codes, (att_param_packed_count(p) + 1) / 2, pack_codes);
}

size_t att_param_pairs_count(const att_param *p)
{
    return att_bf16_packed_count(p->ctx, p->value.dim[0], p->value.dim[1]);
}

bool att_param_pack_pairs(const att_param *p, float *y)
{
    const att_tensor *x = &p->value;
    const int64_t n = x->dim[0], k = x->dim[1], block = att_param_block(p);
    if (x->dtype == ATT_F32)
        return is_made(p, att_bf16_pack(p->ctx, n, k, (att_matrix){x->data, x->stride[0], x->stride[1]}, true, y));
    float *rows = att_alloc(p->ctx, att_param_block_count(p), sizeof *rows);
    bool all = rows;
    for (int64_t first = 0; all && first < n; first += block) {
        const att_matrix b = {att_param_read_block(p, first, att_min(block, n - first), rows), k, 1};
        all = is_made(p, att_bf16_pack(p->ctx, att_min(block, n - first), k, b, true,
                                       y + att_bf16_packed_count(p->ctx, first, k)));
    }
    att_free(p->ctx, rows);
    return all;
}

const float *att_param_packed_pairs(att_param *p)
{
    return get(p, &p->pairs, att_param_pairs_count(p), att_param_pack_pairs);
}

static bool is_floats(const att_param *p) { return p->value.dtype == ATT_F32 && att_is_dense(&p->value); }

const float *att_param_floats(att_param *p)
{
    if (is_floats(p))
        return p->value.data;
    return get(p, &p->floats, (size_t)att_count(&p->value), make_floats);
}

int64_t att_param_block(const att_param *p)
{
    enum { NUMBERS = 1 << 18, WHOLE = 64 /* rows: whole panels, and groups of a product's sums */ };
    const int64_t rows = p->value.dim[0], columns = att_max(columns_of(&p->value), 1);
    return is_floats(p) ? rows : att_min(rows, att_max(NUMBERS / columns / WHOLE, 1) * WHOLE);
}

size_t att_param_block_count(const att_param *p)
{
    return is_floats(p) ? 0 : (size_t)(att_param_block(p) * columns_of(&p->value));
}

typedef struct read_job {
    const att_param *p;
    int64_t first, features; /* first row; size of the last dimension */
    float *y;
} read_job;

static void read_rows(const void *arg, int64_t first, int64_t last)
{
    const read_job *j = arg;
    for (int64_t i = first; i < last; i++)
        att_param_row(j->p, j->first + i, j->y + i * j->features);
}

const float *att_param_read_block(const att_param *p, int64_t first, int64_t n, float *scratch)
{
    const int64_t columns = columns_of(&p->value), features = p->value.dim[p->value.rank - 1];
    const int64_t rows = features ? columns / features : 0;
    if (is_floats(p))
        return (const float *)p->value.data + first * columns;
    att_tape_for_rows(p->ctx, n * rows, features, read_rows,
                      &(const read_job){.p = p, .first = first * rows, .features = features, .y = scratch});
    return scratch;
}

static void read_row(const void *p, int64_t i, float *y) { att_param_row(p, i, y); }

static bool make_int8(const att_param *p, float *y)
{
    return att_int8_pack(p->ctx, p->value.dim[0], p->value.dim[1], read_row, p, y);
}

const float *att_param_int8(att_param *p)
{
    return get(p, &p->bytes, att_int8_count(p->ctx, p->value.dim[0], p->value.dim[1]), make_int8);
}

/* ---- the gradient */

const att_tensor *att_param_grad(const att_param *p) { return p ? &p->grad_view : NULL; }

static void set_zeros(att_param *p) { memset(p->grad, 0, (size_t)att_count(&p->value) * sizeof *p->grad); }

void att_param_zero_grad(att_param *p)
{
    if (p && p->grad_lent)
        set_zeros(p);
    if (p)
        p->grad_view.data = NULL;
}

void att_param_set_grad_memory(att_param *p, float *memory)
{
    if (p->grad_lent && p->grad == memory)
        return;
    float *const before = p->grad_view.data;
    if (memory && before)
        memcpy(memory, before, (size_t)att_count(&p->value) * sizeof *memory);
    if (!p->grad_lent)
        att_free(p->ctx, p->grad);
    p->grad = memory;
    p->grad_lent = memory != NULL;
    p->grad_view.data = before ? memory : NULL;
    if (memory && !before)
        set_zeros(p);
}

const float *att_param_grad_memory(const att_param *p) { return p->grad_lent ? p->grad : NULL; }

void att_param_set_grad(att_param *p) { p->grad_view.data = p->grad; }

att_status att_param_grad_begin(att_param *p, att_param **list)
{
    if (p->partial || p->frozen)
        return ATT_OK;
    const size_t count = (size_t)att_count(&p->value);
    float **part = p->grad_view.data ? &p->more : &p->grad;
    if (!*part)
        *part = att_alloc(p->ctx, count, sizeof **part);
    if (!*part)
        return ATT_ERR_MEMORY;
    p->partial = *part;
    p->grad_written = false;
    p->next = *list;
    *list = p;
    return ATT_OK;
}

float *att_param_partial_for_write(att_param *p, bool *add)
{
    *add = false;
    if (!p || !p->partial)
        return NULL;
    *add = p->grad_written;
    p->grad_written = true;
    return p->partial;
}

float *att_param_partial(att_param *p)
{
    bool add;
    float *part = att_param_partial_for_write(p, &add);
    if (part && !add)
        memset(part, 0, (size_t)att_count(&p->value) * sizeof *part);
    return part;
}

void att_param_grads_end(att_param *list, bool good)
{
    for (att_param *p = list; p; p = p->next) {
        if (good)
            att_param_partial(p); /* zeros if no step has written it */
        if (good && p->partial == p->more)
            att_tape_sum(p->ctx, att_count(&p->value), p->more, p->grad);
        else if (good)
            p->grad_view.data = p->grad;
        else if (p->partial == p->grad && p->grad_lent)
            set_zeros(p);
        p->partial = NULL;
    }
}
