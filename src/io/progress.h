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

/* Begins that of a call with these options, or NULL. Errors: those of att_options_read. */
att_status att_progress_of(att_progress *p, att_ctx *ctx, const char *call, const att_call_options *options,
                           int64_t all);
/* n more units are done: reports their share, 1 where there are none in all. Called by the thread that called the
 * library. Errors: the callback returned false; cancelled. */
att_status att_progress_add(att_progress *p, int64_t n);
/* All is done: reports 1, unless the last call has. */
att_status att_progress_end(att_progress *p);
/* The callback of a call that is one unit of another, with that one's att_progress as its user. */
bool att_progress_of_unit(void *progress, double share);

#endif
