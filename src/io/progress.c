#include "io/progress.h"
#include "io/cancelled.h"

att_status att_progress_of(att_progress *p, att_ctx *ctx, const char *call, const att_call_options *options,
                           int64_t all)
{
    att_call_options o = {0};
    const att_status s = att_options_read(&o, sizeof o, options, "att_call_options");
    *p = (att_progress){.ctx = ctx, .call = call, .report = o.progress, .user = o.user, .all = all};
    return s;
}

att_status att_progress_add(att_progress *p, int64_t n)
{
    p->done += n;
    const att_status s = att_check_cancelled(p->ctx, p->call);
    if (s)
        return s;
    if (p->report && !p->report(p->user, p->done < p->all ? (double)p->done / (double)p->all : 1))
        return att_fail(p->ctx, ATT_ERR_CANCELLED, "%s: options.progress returned false", p->call);
    return ATT_OK;
}

att_status att_progress_end(att_progress *p)
{
    return p->all > 0 && p->done >= p->all ? ATT_OK : att_progress_add(p, p->all - p->done);
}

bool att_progress_of_unit(void *progress, double share)
{
    att_progress *p = progress;
    p->done += share >= 1;
    return !p->report || p->report(p->user, ((double)p->done + (share < 1 ? share : 0)) / (double)p->all);
}
