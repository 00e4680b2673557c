#include "recommend/histories.h"

att_status att_histories_check(att_ctx *ctx, const char *owner, int64_t n_items, int64_t n, const int32_t *items,
                               const int64_t *offsets)
{
    if (n < 0 || n > INT32_MAX || offsets[0] != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "n is %lld and offsets[0] %lld, expected histories from 0", (long long)n,
                        (long long)offsets[0]);
    for (int64_t b = 0; b < n; b++)
        if (offsets[b] > offsets[b + 1])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "offsets[%lld] is %lld, above offsets[%lld], %lld", (long long)b,
                            (long long)offsets[b], (long long)b + 1, (long long)offsets[b + 1]);
    if (offsets[n] > 0 && !items)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "items is NULL, but histories have %lld", (long long)offsets[n]);
    for (int64_t i = 0; i < offsets[n]; i++)
        if (items[i] < 0 || items[i] >= n_items)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "items[%lld] is %d, but %s has items 0 to %lld", (long long)i,
                            items[i], owner, (long long)n_items - 1);
    return ATT_OK;
}
