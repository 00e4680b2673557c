/* The mean of tensors, for checkpoint averaging (Vaswani et al. 2017, section 6.1). */
#include "attend_optimizer.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

enum { RUN = 1024 }; /* elements summed at once */

typedef struct average_job {
    const att_kernels *k;
    const att_tensor *x;
    int64_t n, count;
    float *out; /* [count] */
} average_job;

/* Converts elements [first, first + n) of x to f32. */
static void read(const att_kernels *k, const att_tensor *x, int64_t first, int64_t n, float *y)
{
    if (x->dtype == ATT_F32)
        memcpy(y, (const float *)x->data + first, (size_t)n * sizeof *y);
    else if (x->dtype == ATT_F16)
        k->vector.from_f16(n, (const uint16_t *)x->data + first, y);
    else
        k->vector.from_bf16(n, (const uint16_t *)x->data + first, y);
}

static void average(void *arg, int i)
{
    const average_job *j = arg;
    const int64_t first = (int64_t)i * RUN, n = att_min(j->count - first, RUN);
    double sum[RUN] = {0};
    float x[RUN];
    for (int64_t t = 0; t < j->n; t++) {
        read(j->k, &j->x[t], first, n, x);
        for (int64_t d = 0; d < n; d++)
            sum[d] += (double)x[d];
    }
    for (int64_t d = 0; d < n; d++)
        j->out[first + d] = (float)(sum[d] / (double)j->n);
}

static att_status check(att_ctx *ctx, const att_tensor *x, int64_t n, const att_tensor *out)
{
    if (n < 1)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "average: n = %lld, less than 1", (long long)n);
    att_status s = att_check_view(ctx, "average: out", out);
    s = s ? s : att_check_output(ctx, "average: out", out, ATT_F32, out->rank);
    if (!s && !att_is_dense(out))
        s = att_fail(ctx, ATT_ERR_SHAPE, "average: out is not dense");
    for (int64_t t = 0; !s && t < n; t++) {
        char name[40];
        snprintf(name, sizeof name, "average: x[%lld]", (long long)t);
        s = att_check_view(ctx, name, &x[t]);
        if (!s && x[t].dtype != ATT_F32 && x[t].dtype != ATT_F16 && x[t].dtype != ATT_BF16)
            s = att_fail(ctx, ATT_ERR_DTYPE, "%s is %s, not f32, f16 or bf16", name, att_dtype_name(x[t].dtype));
        s = s ? s : att_check_same_shape(ctx, name, &x[t], "out", out);
        if (!s && !att_is_dense(&x[t]))
            s = att_fail(ctx, ATT_ERR_SHAPE, "%s is not dense", name);
        if (!s && (x[t].data != out->data || x[t].dtype != ATT_F32))
            s = att_check_apart(ctx, "average: out", out, name, &x[t]);
    }
    return s;
}

att_status att_average(att_ctx *ctx, const att_tensor *x, int64_t n, const att_tensor *out)
{
    att_status s = att_require(__func__, ATT_NAMED({"ctx", ctx}, {"x", x}));
    s = s ? s : check(ctx, x, n, out);
    if (s)
        return s;
    average_job j = {att_kernels_of(ctx->isa), x, n, att_count(out), out->data};
    att_parallel_for(ctx, (int)att_ceil_div(j.count, RUN), average, &j);
    return ATT_OK;
}
