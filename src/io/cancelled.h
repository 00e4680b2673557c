/* For loops that may take long. */
#ifndef ATT_IO_CANCELLED_H
#define ATT_IO_CANCELLED_H

#include "attend_util.h"

/* Returns ATT_ERR_CANCELLED if the thread's call was cancelled; what: "att_cider", or a file. */
static inline att_status att_check_cancelled(att_ctx *ctx, const char *what)
{
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "%s: cancelled", what) : ATT_OK;
}

#endif
