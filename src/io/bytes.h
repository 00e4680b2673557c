/* Bytes that grow. After the first failure nothing is added, so that writing has no checks. */
#ifndef ATT_IO_BYTES_H
#define ATT_IO_BYTES_H

#include "attend_util.h"

/* Bytes of someone else's. */
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
/* Sees to it that so many bytes more are added without moving those that there are; false: memory, as status says. */
bool att_bytes_reserve(att_bytes *b, size_t more);
void att_bytes_free(att_bytes *b);

#endif
