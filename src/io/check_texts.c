#include "io/check_texts.h"

#include <stdio.h>

att_status att_check_texts(att_ctx *ctx, const char *name, const char *const *texts, int64_t n)
{
    if (n > 0 && !texts)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is NULL, but should be %lld texts", name, (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!texts[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%lld] is NULL", name, (long long)i);
    return ATT_OK;
}

att_status att_check_text_offsets(att_ctx *ctx, const char *name, const int64_t *offsets, int64_t n)
{
    if (!offsets)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is NULL, but should be %lld offsets", name, (long long)n + 1);
    if (offsets[0] != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[0] is %lld, not 0", name, (long long)offsets[0]);
    for (int64_t i = 0; i < n; i++)
        if (offsets[i] > offsets[i + 1])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%lld] is %lld, less than %lld before it", name, (long long)i + 1,
                            (long long)offsets[i + 1], (long long)offsets[i]);
    return ATT_OK;
}

att_status att_check_ids(att_ctx *ctx, const char *name, const int32_t *ids, int64_t first, int64_t last,
                         int64_t vocabulary)
{
    for (int64_t i = first; i < last; i++)
        if (ids[i] < 0 || ids[i] >= vocabulary)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%lld] is %lld, not in [0, %lld)", name, (long long)i,
                            (long long)ids[i], (long long)vocabulary);
    return ATT_OK;
}

att_status att_check_given_ids(att_ctx *ctx, const char *caller, const att_given_ids *given, int64_t n)
{
    char ids[64], offsets[64];
    snprintf(ids, sizeof ids, "%s: options.ids", caller);
    snprintf(offsets, sizeof offsets, "%s: options.offsets", caller);
    att_status s = att_check_text_offsets(ctx, offsets, given->offsets, n);
    s = s || given->offsets[n] == 0 ? s : att_require(caller, ATT_NAMED({"options.ids", given->ids}));
    for (int64_t i = 0; !s && i < n; i++) {
        const int64_t count = given->offsets[i + 1] - given->offsets[i];
        if (count < given->min || count > given->max)
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s: text %lld has %lld tokens, not %lld to %lld", offsets,
                         (long long)i, (long long)count, (long long)given->min, (long long)given->max);
    }
    return s ? s : att_check_ids(ctx, ids, given->ids, 0, given->offsets[n], given->vocabulary);
}
