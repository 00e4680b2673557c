/* Parallel tasks that may fail. */
#ifndef ATT_IO_PARALLEL_STATUS_H
#define ATT_IO_PARALLEL_STATUS_H

#include "attend_util.h"

/* Calls body(arg, i) for i = 0 .. n - 1 by the context's threads. Error sentences belong to threads; the sentence of
 * the smallest i that failed becomes the caller's, and its status the result. */
att_status att_parallel_all(att_ctx *ctx, int n, att_status (*body)(void *arg, int i), void *arg);

#endif
