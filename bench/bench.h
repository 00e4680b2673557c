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

/* Returns the index of a name, of n bytes, in a list that ends with NULL. Ends the program if there is none. */
static inline int index_of(const char *const *names, const char *name, size_t n)
{
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == n && !strncmp(names[i], name, n))
            return i;
    fprintf(stderr, "%s: %.*s is not a type that it knows\n", program_invocation_short_name, (int)n, name);
    exit(1);
}

/* Returns what an argument of the program computes: "f32", "bf16" or "auto"; NULL: f32. */
static inline att_compute compute_of(const char *name)
{
    static const char *const names[] = {"f32", "bf16", "auto", NULL};
    return name ? (att_compute)index_of(names, name, strlen(name)) : ATT_COMPUTE_F32;
}

/* Returns options of a model from an argument of the program, TYPE or TYPE/COMPUTE: the type of weights, "stored",
 * "f32", "f16", "bf16", "int8" or "int4", and what products compute; NULL: "stored/f32". */
static inline att_model_options types_of(const char *name)
{
    static const char *const names[] = {"stored", "f32", "f16", "bf16", "int8", "int4", NULL};
    const char *slash = name ? strchr(name, '/') : NULL;
    att_model_options o = {.size = sizeof o, .compute = compute_of(slash ? slash + 1 : NULL)};
    if (name)
        o.weights = (att_weight_type)index_of(names, name, strcspn(name, "/"));
    return o;
}

#endif
