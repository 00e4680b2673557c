/* A growing byte buffer. After an error nothing is added, so writing code needs no checks. */
#ifndef ATT_IO_BYTES_H
#define ATT_IO_BYTES_H

#include "attend_text.h"
#include "attend_util.h"

typedef struct att_bytes {
    att_ctx *ctx;
    char *data; /* [count] */
    size_t count, capacity;
    att_status status;
} att_bytes;

void att_bytes_add(att_bytes *b, const void *data, size_t bytes);
/* Adds the lowest `bytes` bytes of x, least significant first. */
void att_bytes_add_number(att_bytes *b, uint64_t x, size_t bytes);
/* Reserves room for `more` bytes; false: out of memory, see status. */
bool att_bytes_reserve(att_bytes *b, size_t more);
void att_bytes_free(att_bytes *b);

/* Returns the number in data [bytes], least significant byte first. */
static inline uint64_t att_read_number(const void *data, size_t bytes)
{
    uint64_t x = 0;
    while (bytes > 0)
        x = x << 8 | ((const unsigned char *)data)[--bytes];
    return x;
}

#endif
