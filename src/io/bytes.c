#include "io/bytes.h"
#include "util/array.h"

#include <string.h>

bool att_bytes_reserve(att_bytes *b, size_t more)
{
    const att_status s = att_grow(b->ctx, &b->data, 1, b->count, more, &b->capacity);
    b->status = s ? s : b->status;
    return !s;
}

void att_bytes_add(att_bytes *b, const void *data, size_t bytes)
{
    if (b->status || bytes == 0 || !att_bytes_reserve(b, bytes))
        return;
    memcpy(b->data + b->count, data, bytes);
    b->count += bytes;
}

void att_bytes_add_number(att_bytes *b, uint64_t x, size_t bytes)
{
    unsigned char data[sizeof x];
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(x >> 8 * i);
    att_bytes_add(b, data, bytes);
}

void att_bytes_free(att_bytes *b)
{
    att_free(b->ctx, b->data);
    *b = (att_bytes){.ctx = b->ctx};
}
