#include "io/check_texts.h"

att_status att_check_texts(att_ctx *ctx, const char *name, const char *const *texts, int64_t n)
{
    if (n > 0 && !texts)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is NULL, but should be %lld texts", name, (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!texts[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%lld] is NULL", name, (long long)i);
    return ATT_OK;
}
