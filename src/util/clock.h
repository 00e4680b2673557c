/* The time of a clock that is never set back, for durations. */
#ifndef ATT_UTIL_CLOCK_H
#define ATT_UTIL_CLOCK_H

#include <time.h>

static inline double att_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
