#include "io/bytes.h"

#include <string.h>

bool att_bytes_reserve(att_bytes *b, size_t more)
{
    if (more <= b->capacity - b->count)
        return true;
    size_t capacity = b->capacity ? b->capacity : 64;
    while (capacity - b->count < more && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    char *grown = capacity - b->count < more ? NULL : att_alloc(b->ctx, capacity, 1);
    if (!grown) {
        b->status = ATT_ERR_MEMORY;
        return false;
    }
    if (b->count > 0)
        memcpy(grown, b->data, b->count);
    att_free(b->ctx, b->data);
    b->data = grown;
    b->capacity = capacity;
    return true;
}

void att_bytes_add(att_bytes *b, const void *data, size_t bytes)
{
    if (b->status || bytes == 0 || !att_bytes_reserve(b, bytes))
        return;
    memcpy(b->data + b->count, data, bytes);
    b->count += bytes;
}

void att_bytes_free(att_bytes *b)
{
    att_free(b->ctx, b->data);
    *b = (att_bytes){.ctx = b->ctx};
}
