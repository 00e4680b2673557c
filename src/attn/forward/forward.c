/* The forward call: by tiles if there are many queries, as decoding if there are few. */
#include "attn/call/transform.h"
#include "attn/forward/forward.h"

/* Splits a call: with pairs of bf16, tiles round their weights and decoding does not. Otherwise the bits are the same,
 * and the split is worth its time if a cache is read. */
bool att_forward_split(const att_call *call, att_call *decoded, att_call *tiled)
{
    const att_plan *plan = call->plan;
    const int64_t max = ATT_DECODE_QUERIES / (plan->spec.heads / plan->spec.kv_heads);
    bool any = false;
    if ((!call->args.cache && !plan->bf16_pairs) || call->max_tq <= max)
        return false;
    for (int64_t b = 0; b < call->sequences && !any; b++) {
        att_head_view at;
        att_call_head(call, b, 0, &at);
        any = at.head.tq > 0 && at.head.tq <= max;
    }
    *decoded = *tiled = *call;
    decoded->max_tq = max;
    tiled->min_tq = max + 1;
    return any;
}

static att_status compute(const att_call *call)
{
    att_call decoded, tiled;
    if (!att_forward_split(call, &decoded, &tiled))
        return att_decode_suits(call) ? att_decode(call) : att_attend_tiles(call);
    const att_status e = att_decode(&decoded);
    return e ? e : att_attend_tiles(&tiled);
}

att_status att_forward(const att_plan *plan, const att_attention_args *args)
{
    att_call call;
    att_status e = att_call_check(plan, args, true, &call);
    e = e ? e : att_transform_begin(&call);
    if (e)
        return e;
    e = compute(&call);
    att_transform_end(&call);
    if (!e && att_cancelled(plan->ctx))
        e = att_fail(plan->ctx, ATT_ERR_CANCELLED, "attention was cancelled");
    return e;
}
