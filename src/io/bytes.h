/* A growing byte buffer. After an error nothing is added, so writing code needs no checks. */
#ifndef ATT_IO_BYTES_H
#define ATT_IO_BYTES_H

#include "attend_util.h"

/* Bytes owned by someone else. */
typedef struct att_byte_view {
    const char *data;
    size_t bytes;
} att_byte_view;

typedef struct att_bytes {
    att_ctx *ctx;
    char *data; /* [count] */
    size_t count, capacity;
    att_status status;
} att_bytes;

void att_bytes_add(att_bytes *b, const void *data, size_t bytes);
/* Reserves room for `more` bytes; false: out of memory, see status. */
bool att_bytes_reserve(att_bytes *b, size_t more);
void att_bytes_free(att_bytes *b);

#endif
