/* Helpers of the models library: hashes and growing arrays. */
#ifndef ATT_IO_UTIL_H
#define ATT_IO_UTIL_H

#include "util/util.h"

#include "attend_util.h"

#include <stdarg.h>

/* FNV-1a of 32 bits; that of 64 is in util/util.h. */
#define ATT_FNV32_OFFSET UINT32_C(0x811c9dc5)
static inline uint32_t att_fnv32(uint32_t hash, uint32_t x) { return (hash ^ x) * UINT32_C(0x1000193); }
static inline uint32_t att_fnv32_bytes(uint32_t hash, const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = att_fnv32(hash, (unsigned char)s[i]);
    return hash;
}

/* att_fail with "PATH: message" (settings.c, proto.c, gguf.c). */
att_status att_fail_in(att_ctx *ctx, const char *path, att_status status, const char *format, va_list args);

/* Grows an array of `count` items of `size` bytes, with capacity *room, to hold `more` items; the capacity at least
 * doubles. array: the address of the pointer to the first item, which may change. After an error (memory) nothing has
 * changed. */
att_status att_grow_array(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room);
static inline att_status att_grow(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room)
{
    return more <= *room - count ? ATT_OK : att_grow_array(ctx, array, size, count, more, room);
}

#endif
