/* Reports a call's progress to its caller: see att_progress_fn. */
#ifndef ATT_IO_PROGRESS_H
#define ATT_IO_PROGRESS_H

#include "attend_util.h"

typedef struct att_progress {
    att_ctx *ctx;
    const char *call;       /* "att_rank": its name in errors */
    att_progress_fn report; /* options.progress, or NULL */
    void *user;
    int64_t done, all; /* units of work */
} att_progress;

/* Begins the progress of a call with these options, or NULL. Errors: those of att_options_read. */
att_status att_progress_of(att_progress *p, att_ctx *ctx, const char *call, const att_call_options *options,
                           int64_t all);
/* Adds n units that are done and reports the share, 1 if there are no units. The thread that called the library must
 * call it. Errors: the callback returned false; cancelled. */
att_status att_progress_add(att_progress *p, int64_t n);
/* Reports 1 at the end, unless the last call has done so. */
att_status att_progress_end(att_progress *p);
/* Serves as the callback of a call that is one unit of another call, whose att_progress is its user. */
bool att_progress_of_unit(void *progress, double share);

#endif
