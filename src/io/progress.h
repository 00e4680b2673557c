/* How far a call is, for its caller: see att_progress_fn. */
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

/* n more units are done: reports their share, 1 where there are none in all. Called by the thread that called the
 * library. Errors: the callback returned false; cancelled. */
att_status att_progress_add(att_progress *p, int64_t n);

#endif
