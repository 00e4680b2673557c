/* Shared by the benchmark programs. */
#ifndef BENCH_H
#define BENCH_H

#include "attend_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Options of a model from an argument of the program: "stored", "f32", "f16", "bf16", "int8" or "int4"; NULL: stored */
static inline att_model_options weights_of(const char *name)
{
    static const char *const names[] = {"stored", "f32", "f16", "bf16", "int8", "int4"};
    att_model_options o = {.size = sizeof o};
    for (int i = 0; name && i < 6; i++)
        if (!strcmp(name, names[i])) {
            o.weights = (att_weight_type)i;
            return o;
        }
    if (name) {
        fprintf(stderr, "%s: %s is not a type of weights\n", program_invocation_short_name, name);
        exit(1);
    }
    return o;
}

#endif
