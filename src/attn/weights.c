/* Attention weights on demand, recomputed: looking never costs the forward pass anything. */
#include "attn/attn.h"

#include <math.h>

/* Weights of up to a panel of queries, [queries, tk]; q and s as in scratch of the forward pass. */
static void weights_of_block(const att_plan *plan, const att_site *at, int64_t q0, int queries, float *q, float *s,
                             float *weights)
{
    const att_kernels *kernels = plan->kernels;
    const int panel = kernels->panel;
    att_cut cut;
    kernels->turn_in(queries, plan->spec.head_dim, at->q + q0 * at->q_stride, at->q_stride,
                     (float)(plan->spec.scale * ATT_LOG2_E), q);
    for (int64_t i = 0; i < queries * at->tk; i++)
        weights[i] = -INFINITY;
    for (int64_t k0 = 0; k0 < at->tk; k0 += ATT_KEY_BLOCK) {
        const int keys = (int)(at->tk - k0 < ATT_KEY_BLOCK ? at->tk - k0 : ATT_KEY_BLOCK);
        att_cut_block(plan, at, q0, queries, k0, keys, &cut);
        att_score_block(plan, at, q0, queries, k0, &cut, q, s, panel);
        for (int r = 0; r < cut.n_runs; r++)
            for (int64_t k = cut.run[r].first; k < cut.run[r].last; k++)
                for (int i = 0; i < queries; i++)
                    weights[i * at->tk + k0 + k] = s[k * panel + i] / (float)ATT_LOG2_E;
    }
    for (int i = 0; i < queries; i++)
        kernels->softmax(at->tk, weights + i * at->tk, weights + i * at->tk);
}

att_status att_weights(const att_plan *plan, const att_attention_args *args, int64_t sequence, int64_t head,
                       int64_t q_first, int64_t q_count, float *weights)
{
    att_ctx *ctx = plan->ctx;
    att_call call;
    const att_status e = att_call_check(plan, args, false, &call);
    if (e)
        return e;
    if (sequence < 0 || sequence >= call.sequences)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "sequence is %lld, but there are %lld", (long long)sequence,
                        (long long)call.sequences);
    if (head < 0 || head >= plan->spec.heads)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "head is %lld, but there are %lld", (long long)head,
                        (long long)plan->spec.heads);
    att_site at;
    att_call_site(&call, sequence, head, &at);
    if (q_first < 0 || q_count < 0 || q_count > at.tq || q_first > at.tq - q_count)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "queries from %lld, %lld of them, but the sequence has %lld",
                        (long long)q_first, (long long)q_count, (long long)at.tq);
    const int64_t panel = plan->kernels->panel;
    float *q = att_alloc(ctx, (size_t)((plan->spec.head_dim + ATT_KEY_BLOCK) * panel), sizeof *q);
    if (!q)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < q_count; i += panel)
        weights_of_block(plan, &at, q_first + i, (int)(q_count - i < panel ? q_count - i : panel), q,
                         q + plan->spec.head_dim * panel, weights + i * at.tk);
    att_free(ctx, q);
    return ATT_OK;
}
