#include "io/progress.h"

att_status att_progress_add(att_progress *p, int64_t n)
{
    p->done += n;
    if (att_cancelled(p->ctx))
        return att_fail(p->ctx, ATT_ERR_CANCELLED, "%s: cancelled", p->call);
    if (p->report && !p->report(p->user, p->done < p->all ? (double)p->done / (double)p->all : 1))
        return att_fail(p->ctx, ATT_ERR_CANCELLED, "%s: options.progress returned false", p->call);
    return ATT_OK;
}
