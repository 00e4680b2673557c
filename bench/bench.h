/* Shared by the benchmark programs. */
#ifndef BENCH_H
#define BENCH_H

#include "attend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ends the program after an error. */
static inline void check(att_ctx *ctx, att_status s)
{
    if (s == ATT_OK)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, att_error(ctx));
    exit(1);
}

#endif
