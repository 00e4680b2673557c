/* Small helpers of all rooms of the models library: hashes, arrays that grow; numbers are in util/util.h. */
#ifndef ATT_IO_UTIL_H
#define ATT_IO_UTIL_H

#include "util/util.h"

#include "attend_util.h"

/* FNV-1a (Fowler, Noll, Vo), of 64 and of 32 bits: a step by one byte, or by a word. A hash begins with the offset. */
#define ATT_FNV64_OFFSET UINT64_C(0xcbf29ce484222325)
#define ATT_FNV32_OFFSET UINT32_C(0x811c9dc5)
static inline uint64_t att_fnv64(uint64_t hash, uint32_t x) { return (hash ^ x) * UINT64_C(0x100000001b3); }
static inline uint32_t att_fnv32(uint32_t hash, uint32_t x) { return (hash ^ x) * UINT32_C(0x1000193); }
static inline uint32_t att_fnv32_bytes(uint32_t hash, const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = att_fnv32(hash, (unsigned char)s[i]);
    return hash;
}

/* Makes room for `more` items of `size` bytes behind the `count` of an array that has room for *room, which at least
 * doubles. array: a pointer to the pointer to its first item, which changes when they move. Error: memory; nothing has
 * changed then. */
att_status att_grow_array(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room);
static inline att_status att_grow(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room)
{
    return more <= *room - count ? ATT_OK : att_grow_array(ctx, array, size, count, more, room);
}

#endif
