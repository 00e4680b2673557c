/* Converts a view into another, of any strides and type. */
#include "kernel/kernel.h"
#include "tensor/tensor.h"

#include <string.h>

enum { RUN = 1024, MAX_TASKS = 1 << 16 }; /* elements converted at once */

typedef struct convert_job {
    const att_kernels *k;
    att_tensor x, out; /* of the same shape */
    size_t x_size, out_size;
    int64_t length, runs; /* of a row: elements, and runs of at most RUN */
    int64_t units, each;  /* runs of all rows; runs per task */
} convert_job;

/* ---- a run: n <= RUN elements */

/* Returns n elements as a contiguous array: at `from`, or copied into `room`. */
static const void *gather(int64_t n, const char *from, int64_t stride, size_t size, char *room)
{
    if (stride == 1)
        return from;
    for (int64_t i = 0; i < n; i++)
        memcpy(room + (size_t)i * size, from + i * stride * (int64_t)size, size);
    return room;
}

static void scatter(int64_t n, const char *x, char *to, int64_t stride, size_t size)
{
    if (stride == 1)
        memcpy(to, x, (size_t)n * size);
    for (int64_t i = 0; stride != 1 && i < n; i++)
        memcpy(to + i * stride * (int64_t)size, x + (size_t)i * size, size);
}

void att_from_i8(int64_t n, const int8_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)x[i];
}

static void convert_run(const convert_job *j, int64_t n, const char *from, int64_t from_stride, char *to,
                        int64_t to_stride)
{
    _Alignas(8) char room[8 * RUN];
    float numbers[RUN];
    uint16_t codes[RUN];
    const bool same = j->x.dtype == j->out.dtype;
    if (same && att_is_quantized(j->x.dtype)) {
        memcpy(to, from, (size_t)att_dtype_bytes(j->x.dtype, n));
        return;
    }
    const void *x = gather(n, from, from_stride, j->x_size, room);
    if (same) {
        scatter(n, x, to, to_stride, j->out_size);
        return;
    }
    if (att_is_quantized(j->x.dtype)) {
        att_dequantize(j->x.dtype, n, from, numbers);
        x = numbers;
    } else if (j->x.dtype == ATT_I8) {
        att_from_i8(n, x, numbers);
        x = numbers;
    } else if (j->x.dtype != ATT_F32) {
        (j->x.dtype == ATT_F16 ? j->k->vector.from_f16 : j->k->vector.from_bf16)(n, x, numbers);
        x = numbers;
    }
    if (att_is_quantized(j->out.dtype)) {
        att_quantize(j->out.dtype, n, x, to);
        return;
    }
    if (j->out.dtype != ATT_F32) {
        (j->out.dtype == ATT_F16 ? j->k->vector.to_f16 : j->k->vector.to_bf16)(n, x, codes);
        x = codes;
    }
    scatter(n, x, to, to_stride, j->out_size);
}

/* ---- rows: all dimensions but the last, flattened */

static char *row_of(const att_tensor *t, int64_t row)
{
    int64_t offset = 0;
    for (int d = t->rank - 2; d >= 0; d--) {
        offset += row % t->dim[d] * t->stride[d];
        row /= t->dim[d];
    }
    return (char *)t->data + att_dtype_bytes(t->dtype, offset);
}

static void convert_units(void *arg, int task)
{
    const convert_job *j = arg;
    const int last = j->x.rank - 1;
    const int64_t first = task * j->each, end = att_min(first + j->each, j->units);
    for (int64_t u = first; u < end; u++) {
        const int64_t row = u / j->runs, at = u % j->runs * RUN, n = att_min(j->length - at, RUN);
        const int64_t from = j->x.stride[last], to = j->out.stride[last];
        convert_run(j, n, row_of(&j->x, row) + att_dtype_bytes(j->x.dtype, at * from), from,
                    row_of(&j->out, row) + att_dtype_bytes(j->out.dtype, at * to), to);
    }
}

/* Makes a dense tensor (or a scalar) one row. */
static void flatten(att_tensor *t)
{
    t->dim[0] = att_count(t);
    t->stride[0] = t->rank = 1;
}

att_status att_tensor_convert(att_ctx *ctx, const att_tensor *x, const att_tensor *out)
{
    att_status s = att_require(__func__, ATT_NAMED({"ctx", ctx}));
    s = s ? s : att_check_view(ctx, "x", x);
    s = s ? s : att_check_view(ctx, "out", out);
    s = s ? s : att_check_output(ctx, "out", out, out->dtype, out->rank);
    s = s ? s : att_check_same_shape(ctx, "out", out, "x", x);
    if (!s && x->dtype != out->dtype && (!att_is_real(x->dtype) || !att_is_real(out->dtype) || out->dtype == ATT_I8))
        s = att_fail(ctx, ATT_ERR_DTYPE,
                     "x is %s and out is %s: only f32, f16, bf16 and quantized types can be converted to each other, "
                     "and i8 to them",
                     att_dtype_name(x->dtype), att_dtype_name(out->dtype));
    if (!s && x->dtype != out->dtype && att_is_quantized(out->dtype) && !att_can_quantize(out->dtype))
        s = att_fail(
            ctx, ATT_ERR_DTYPE,
            "out is %s, to which nothing is converted: Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1 and Q4_0 are the "
            "quantized types for that",
            att_dtype_name(out->dtype));
    s = s ? s : att_check_apart(ctx, "out", out, "x", x);
    if (s || att_count(x) == 0)
        return s;
    convert_job j = {.k = att_kernels_of(ctx->isa), .x = *x, .out = *out};
    if (att_is_dense(x) && att_is_dense(out)) {
        flatten(&j.x);
        flatten(&j.out);
    }
    j.x_size = att_dtype_size(x->dtype);
    j.out_size = att_dtype_size(out->dtype);
    j.length = j.x.dim[j.x.rank - 1];
    j.runs = att_ceil_div(j.length, RUN);
    j.units = att_count(&j.x) / j.length * j.runs;
    j.each = att_ceil_div(j.units, MAX_TASKS);
    att_parallel_for(ctx, (int)att_ceil_div(j.units, j.each), convert_units, &j);
    return ATT_OK;
}
