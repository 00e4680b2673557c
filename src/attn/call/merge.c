/* Attention over keys in pieces: two partial results, put together by their log-sum-exp. */
#include "attn/call/plan.h"
#include "base/math.h"
#include "tensor/tensor.h"

#include <math.h>

typedef struct merge_job {
    const att_kernels *kernels;
    const att_tensor *out, *lse, *out2, *lse2;
} merge_job;

/* Returns where element 0 of row `row` of the first `rank` dimensions lies. */
static float *at_row(const att_tensor *t, int rank, int64_t row)
{
    float *p = t->data;
    for (int i = rank - 1; i >= 0; row /= t->dim[i--])
        p += row % t->dim[i] * t->stride[i];
    return p;
}

/* Merges a row with weights e^(lse - total). A side that attends to nothing is left out, whatever its output is. */
static void merge_row(void *arg, int row)
{
    const merge_job *j = arg;
    const int rank = j->lse->rank;
    const int64_t dim = j->out->dim[rank], step = j->out->stride[rank], step2 = j->out2->stride[rank];
    float *lse = at_row(j->lse, rank, row), *out = at_row(j->out, rank, row);
    const float lse2 = *at_row(j->lse2, rank, row), *out2 = at_row(j->out2, rank, row);
    if (lse2 == -INFINITY)
        return;
    const float top = *lse > lse2 ? *lse : lse2;
    float w[2] = {*lse - top, lse2 - top};
    j->kernels->vector.exp(2, w, w);
    const float sum = w[0] + w[1];
    for (int64_t d = 0; d < dim; d++) {
        const float mine = w[0] > 0 ? w[0] / sum * out[d * step] : 0;
        out[d * step] = mine + w[1] / sum * out2[d * step2];
    }
    *lse = top + (float)att_f64_log((double)sum);
}

static att_status check_pair(att_ctx *ctx, const char *out_name, const att_tensor *out, const char *lse_name,
                             const att_tensor *lse, bool written)
{
    att_status (*const check)(att_ctx *, const char *, const att_tensor *, att_dtype, int) =
        written ? att_check_output : att_check;
    if (!out || !lse)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is NULL", out ? lse_name : out_name);
    if (lse->rank < 1 || lse->rank >= ATT_MAX_RANK)
        return att_fail(ctx, ATT_ERR_SHAPE, "%s.rank = %d, expected 1..%d", lse_name, lse->rank, ATT_MAX_RANK - 1);
    att_status e = check(ctx, lse_name, lse, ATT_F32, lse->rank);
    e = e ? e : check(ctx, out_name, out, ATT_F32, lse->rank + 1);
    for (int i = 0; !e && i < lse->rank; i++)
        e = att_check_dim(ctx, out_name, out, i, "that of its log-sum-exp", lse->dim[i]);
    return e;
}

att_status att_merge(att_ctx *ctx, const att_tensor *out, const att_tensor *lse, const att_tensor *out2,
                     const att_tensor *lse2)
{
    att_status e = att_require(__func__, ATT_NAMED({"ctx", ctx}));
    e = e ? e : check_pair(ctx, "out", out, "lse", lse, true);
    e = e ? e : check_pair(ctx, "out2", out2, "lse2", lse2, false);
    e = e ? e : att_check_same_shape(ctx, "out2", out2, "out", out);
    e = e ? e : att_check_apart(ctx, "out", out, "out2", out2);
    e = e ? e : att_check_apart(ctx, "out", out, "lse", lse);
    e = e ? e : att_check_apart(ctx, "out", out, "lse2", lse2);
    e = e ? e : att_check_apart(ctx, "lse", lse, "out2", out2);
    e = e ? e : att_check_apart(ctx, "lse", lse, "lse2", lse2);
    const int64_t rows = e ? 0 : att_count(lse);
    if (rows > INT32_MAX)
        e = att_fail(ctx, ATT_ERR_SHAPE, "lse has %lld rows, at most %d", (long long)rows, INT32_MAX);
    if (e)
        return e;
    merge_job j = {att_kernels_of(ctx->isa), out, lse, out2, lse2};
    att_parallel_for(ctx, (int)rows, merge_row, &j);
    return ATT_OK;
}
