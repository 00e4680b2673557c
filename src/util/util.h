/* Integer functions and hashes that all rooms use. */
#ifndef ATT_UTIL_H
#define ATT_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline int64_t att_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t att_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* Returns n / size, rounded up. n >= 0, size > 0. */
static inline int64_t att_ceil_div(int64_t n, int64_t size) { return n / size + (n % size > 0); }
/* Returns n, rounded up to a multiple of size. */
static inline int64_t att_round_up(int64_t n, int64_t size) { return att_ceil_div(n, size) * size; }

/* FNV-1a (Fowler, Noll, Vo) of 64 bits: one step with a byte or a word; a hash begins with the offset. */
#define ATT_FNV64_OFFSET UINT64_C(0xcbf29ce484222325)
static inline uint64_t att_fnv64(uint64_t hash, uint32_t x) { return (hash ^ x) * UINT64_C(0x100000001b3); }
static inline uint64_t att_fnv64_text(uint64_t hash, const char *s)
{
    while (*s)
        hash = att_fnv64(hash, (unsigned char)*s++);
    return hash;
}
/* Returns the hash, continued with n words of 32 bits. */
static inline uint64_t att_fnv64_words(uint64_t hash, const void *words, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, (const char *)words + 4 * i, sizeof word);
        hash = att_fnv64(hash, word);
    }
    return hash;
}
/* FNV-1a with 32 bits, for tables in memory. */
#define ATT_FNV32_OFFSET UINT32_C(0x811c9dc5)
static inline uint32_t att_fnv32(uint32_t hash, uint32_t x) { return (hash ^ x) * UINT32_C(0x1000193); }
static inline uint32_t att_fnv32_bytes(uint32_t hash, const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = att_fnv32(hash, (unsigned char)s[i]);
    return hash;
}

#endif
