/* Labeled vectors from a text file: one a line, an optional label, then numbers; spaces, tabs, commas or semicolons
 * between them; # begins a comment. A first line of several words without a number is a heading, which is skipped. */
#ifndef EXPLAIN_VECTORS_H
#define EXPLAIN_VECTORS_H

#include "cli/explain.h"

#include <stdint.h>

enum { VECTORS_MAX = EXPLAIN_MAX_VECTORS, VECTORS_MAX_DIM = 4096 };

typedef struct vectors {
    int64_t n, dim;
    const char *const *labels; /* [n] */
    const float *x;            /* [n, dim] */
} vectors;

/* "-" reads standard input. Errors name file, line and both values; *out is unchanged then. */
att_status vectors_read(att_ctx *ctx, const char *path, vectors *out);
/* Frees vectors that vectors_read made. */
void vectors_free(vectors *v);

#endif
