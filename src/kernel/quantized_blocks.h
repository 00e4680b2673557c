/* Blocks of quantized rows as products need them (quantized.c, quantized_tiles.h): the numbers of ATT_LANES columns as
 * words, and their scales; and panels of columns, unpacked. A file whose products are of tiles defines TILES as true
 * before: its signed words stay as they are stored.
 *
 * A number is d q + m. In blocks of 256, d and m of each 32 numbers are integers times factors of the block; in Q6_K,
 * Q3_K and Q2_K these are of each 16 numbers. */
#ifndef ATT_KERNEL_QUANTIZED_BLOCKS_H
#define ATT_KERNEL_QUANTIZED_BLOCKS_H

#include "attend.h"
#include "kernel/kernel.h"
#include "kernel/prefetch.h"
#include "kernel/tile.h"
#include "simd/simd.h"
#include "util/util.h"

#ifndef TILES
#define TILES false
#endif

enum {
    BLOCK = ATT_QUANTIZED_BLOCK,
    DEPTH = 512 / PANEL, /* blocks that are unpacked at a time: their words stay in a near cache */
    SIGNED_START = TILES ? 0 : ATT_SIGNED4_START,
    WORDS = BLOCK / 4,                                 /* words of a block of 32 */
    MAX_BLOCKS = ATT_SUPER_BLOCK / BLOCK,              /* of 32 numbers, in a stored block */
    HALVES = ATT_LANES < WORDS ? 2 : 1,                /* vectors of a block */
    GROUP = ATT_LANES > WORDS ? ATT_LANES / WORDS : 1, /* blocks of a vector */
    MAX_BYTES = ATT_Q8_0_BYTES                         /* the most for 32 numbers */
};

/* How the sums of products of a type are made: from signed bytes, from unsigned ones, or for each 16 numbers. */
typedef enum sums { SIGNED, UNSIGNED, SIXTEENS } sums;

/* How stored blocks of a type are made. */
typedef struct layout {
    att_dtype type;
    sums sums;
    int bytes, blocks; /* of a stored block; blocks of 32 in it */
    int start;         /* a sum of products begins with this times the sum of the row's numbers */
    bool has_m;
} layout;

static const layout layouts[] = {
    [ATT_Q8_0] = {ATT_Q8_0, SIGNED, ATT_Q8_0_BYTES, 1, SIGNED_START, false},
    [ATT_Q4_0] = {ATT_Q4_0, UNSIGNED, ATT_Q4_0_BYTES, 1, -8, false},
    [ATT_Q4_1] = {ATT_Q4_1, UNSIGNED, ATT_Q4_1_BYTES, 1, 0, true},
    [ATT_Q5_0] = {ATT_Q5_0, UNSIGNED, ATT_Q5_0_BYTES, 1, -16, false},
    [ATT_Q5_1] = {ATT_Q5_1, UNSIGNED, ATT_Q5_1_BYTES, 1, 0, true},
    [ATT_IQ4_NL] = {ATT_IQ4_NL, SIGNED, ATT_IQ4_NL_BYTES, 1, SIGNED_START, false},
    [ATT_IQ4_XS] = {ATT_IQ4_XS, SIGNED, ATT_IQ4_XS_BYTES, MAX_BLOCKS, SIGNED_START, false},
    [ATT_Q4_K] = {ATT_Q4_K, UNSIGNED, ATT_Q4_K_BYTES, MAX_BLOCKS, 0, true},
    [ATT_Q5_K] = {ATT_Q5_K, UNSIGNED, ATT_Q5_K_BYTES, MAX_BLOCKS, 0, true},
    [ATT_Q6_K] = {ATT_Q6_K, SIXTEENS, ATT_Q6_K_BYTES, MAX_BLOCKS, -32, false},
    [ATT_Q3_K] = {ATT_Q3_K, SIXTEENS, ATT_Q3_K_BYTES, MAX_BLOCKS, -4, false},
    [ATT_Q2_K] = {ATT_Q2_K, SIXTEENS, ATT_Q2_K_BYTES, MAX_BLOCKS, 0, true},
};

/* ---- columns */

/* A stored block of each of ATT_LANES columns. Column r is base[r / NEAR] + r % NEAR * stride, which one x86 addressing
 * mode covers (tile.h). */
enum { BASES = (ATT_LANES + NEAR - 1) / NEAR };
typedef struct columns {
    const uint8_t *base[BASES];
    int64_t stride;
} columns;

ATT_INLINE const uint8_t *column(const columns *c, int r) { return c->base[r / NEAR] + r % NEAR * c->stride; }

ATT_INLINE void next_block(columns *c, int bytes)
{
    ATT_UNROLL (i, BASES)
        c->base[i] += bytes;
}

/* ---- numbers */

typedef uint32_t bits __attribute__((vector_size(4 * ATT_LANES)));

ATT_INLINE bits all(uint32_t x) { return (bits)v_set(0) + x; }

/* Returns a in the words of a vector's first block, and b in those of its second one, if it has two. */
ATT_INLINE bits of_blocks(uint32_t a, uint32_t b)
{
    static const uint32_t order[16] = {0, 0, 0, 0, 0, 0, 0, 0, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    bits second;
    memcpy(&second, order, sizeof second);
    return GROUP == 1 ? all(a) : (all(a) & ~second) | (all(b) & second);
}

/* Returns, as bytes of words, `mask` of the bits of 32 bytes q from `shift` on, and for a second block from `step` more
 * on. */
ATT_INLINE bits plane(const uint8_t *q, int half, uint32_t mask, int shift, int step)
{
    return (bits)v_block(q, half, 0) >> of_blocks((uint32_t)shift, (uint32_t)(shift + step)) & all(mask * 0x01010101);
}

/* Returns bit i of four bytes q as the fifth bit of byte i of a block, and those at q + next for a second block. */
ATT_INLINE bits fifth_bits(const uint8_t *q, int half, int64_t next)
{
    static const uint32_t shifts[16] = {0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28};
    uint32_t a, b;
    bits shift;
    memcpy(&a, q, sizeof a);
    memcpy(&b, q + next, sizeof b);
    memcpy(&shift, shifts + half * ATT_LANES, sizeof shift);
    const bits four = of_blocks(a, b) >> shift & 15;
    return (four * 0x00204081 & 0x01010101) << 4; /* bit i to byte i */
}

ATT_INLINE vf signed_word(vf w) { return TILES ? w : v_signed4_word(w); }

/* Returns words of the numbers of GROUP blocks, or of half a block, as products need them: those from block k of the
 * stored block q on. next: bytes to the next stored block, 0 if it is not used. */
ATT_INLINE vf words_at(const att_dtype type, const uint8_t *q, int k, int half, int64_t next)
{
    switch (type) {
    case ATT_Q8_0:
        return signed_word(v_block(q + 2, half, next));
    case ATT_Q4_0:
        return v_block_of_halves(q + 2, half, next);
    case ATT_Q4_1:
        return v_block_of_halves(q + 4, half, next);
    case ATT_Q5_0:
        return (vf)((bits)v_block_of_halves(q + 6, half, next) | fifth_bits(q + 2, half, next));
    case ATT_Q5_1:
        return (vf)((bits)v_block_of_halves(q + 8, half, next) | fifth_bits(q + 4, half, next));
    case ATT_IQ4_NL:
        return signed_word(v_steps(v_block_of_halves(q + 2, half, next)));
    case ATT_IQ4_XS:
        return signed_word(v_steps(v_block_of_halves(q + 8 + 16 * k, half, 16)));
    case ATT_Q4_K:
        return (vf)plane(q + 16 + k / 2 * 32, half, 15, k % 2 * 4, 4);
    case ATT_Q5_K:
        return (vf)(plane(q + 48 + k / 2 * 32, half, 15, k % 2 * 4, 4) | plane(q + 16, half, 1, k, 1) << 4);
    case ATT_Q6_K: {
        const bits low = (bits)v_block(q + k / 4 * 64 + k % 2 * 32, half, 32) >> (uint32_t)(k % 4 / 2 * 4) & 0x0f0f0f0f;
        return (vf)(low | plane(q + 128 + k / 4 * 32, half, 3, k % 4 * 2, 2) << 4);
    }
    case ATT_Q3_K:
        return (vf)(plane(q + 32 + k / 4 * 32, half, 3, k % 4 * 2, 2) | plane(q, half, 1, k, 1) << 2);
    default: /* ATT_Q2_K */
        return (vf)plane(q + 16 + k / 4 * 32, half, 3, k % 4 * 2, 2);
    }
}

#define SHARED static __attribute__((noinline)) /* a function that types share, so that there is one copy of it */

/* Loads words_at of each column -> w [ATT_LANES] */
ATT_INLINE void load_as(const att_dtype type, const columns *c, int k, int half, int64_t next, vf *w)
{
    for (int r = 0; r < ATT_LANES; r++)
        w[r] = words_at(type, column(c, r), k, half, next);
}
SHARED void load_columns(att_dtype type, const columns *c, int k, int half, int64_t next, vf *w)
{
    switch (type) {
    case ATT_Q8_0:
        load_as(ATT_Q8_0, c, k, half, next, w);
        break;
    case ATT_Q4_0:
        load_as(ATT_Q4_0, c, k, half, next, w);
        break;
    case ATT_Q4_1:
        load_as(ATT_Q4_1, c, k, half, next, w);
        break;
    case ATT_Q5_0:
        load_as(ATT_Q5_0, c, k, half, next, w);
        break;
    case ATT_Q5_1:
        load_as(ATT_Q5_1, c, k, half, next, w);
        break;
    case ATT_IQ4_NL:
        load_as(ATT_IQ4_NL, c, k, half, next, w);
        break;
    case ATT_IQ4_XS:
        load_as(ATT_IQ4_XS, c, k, half, next, w);
        break;
    case ATT_Q4_K:
        load_as(ATT_Q4_K, c, k, half, next, w);
        break;
    case ATT_Q5_K:
        load_as(ATT_Q5_K, c, k, half, next, w);
        break;
    case ATT_Q6_K:
        load_as(ATT_Q6_K, c, k, half, next, w);
        break;
    case ATT_Q3_K:
        load_as(ATT_Q3_K, c, k, half, next, w);
        break;
    default:
        load_as(ATT_Q2_K, c, k, half, next, w);
    }
}

/* ---- scales */

/* The scales of a stored block of each of ATT_LANES columns. If sums are SIXTEENS, numbers are d (sc q) + m mn, with
 * the integers sc and mn of each 16. */
typedef struct scales {
    vf d[MAX_BLOCKS], m[MAX_BLOCKS];           /* of each block of 32; of SIXTEENS the first ones alone */
    vf sc[2 * MAX_BLOCKS], mn[2 * MAX_BLOCKS]; /* of SIXTEENS */
} scales;

/* Returns the words that are `skip` bytes from c. */
ATT_INLINE bits load_words(const columns *c, int skip)
{
    const uint8_t *p[ATT_LANES];
    ATT_UNROLL (r, ATT_LANES)
        p[r] = column(c, r) + skip;
    return (bits)v_words_at(p);
}

ATT_INLINE void load_factors(const columns *c, int skip, bool pair, vf *d, vf *m)
{
    const uint8_t *p[ATT_LANES];
    ATT_UNROLL (r, ATT_LANES)
        p[r] = column(c, r) + skip;
    if (pair)
        v_from_f16_pairs_at(p, d, m);
    else
        *d = v_from_f16_at(p);
}

/* Sets d and m of eight blocks from integers of 6 bits, in 12 bytes. */
SHARED void load_six_bits(const columns *c, scales *s)
{
    const bits a = load_words(c, 4), b = load_words(c, 8), e = load_words(c, 12);
    vf d, m;
    load_factors(c, 0, true, &d, &m);
    m = v_sub(v_set(0), m);
    ATT_UNROLL (g, 4) {
        const uint32_t at = 8 * (uint32_t)g;
        s->d[g] = v_mul(d, v_from_whole((vf)(a >> at & 63)));
        s->m[g] = v_mul(m, v_from_whole((vf)(b >> at & 63)));
        s->d[4 + g] = v_mul(d, v_from_whole((vf)((e >> at & 15) | (a >> at >> 6 & 3) << 4)));
        s->m[4 + g] = v_mul(m, v_from_whole((vf)((e >> at >> 4 & 15) | (b >> at >> 6 & 3) << 4)));
    }
}

/* Sets sc of 16 groups from signed bytes. */
SHARED void load_signed_bytes(const columns *c, int skip, scales *s)
{
    typedef int32_t words __attribute__((vector_size(4 * ATT_LANES)));
    for (int w = 0; w < 4; w++) {
        const bits four = load_words(c, skip + 4 * w);
        ATT_UNROLL (k, 4)
            s->sc[4 * w + k] = v_from_whole((vf)((words)(four << (uint32_t)(24 - 8 * k)) >> 24));
    }
}

/* Sets sc of 16 groups from 6 bits less 32: the low four in 8 bytes, the others in 4. */
SHARED void load_split_bits(const columns *c, int skip, scales *s)
{
    const bits low[2] = {load_words(c, skip), load_words(c, skip + 4)}, high = load_words(c, skip + 8);
    ATT_UNROLL (g, 16) {
        const uint32_t byte = 8 * (uint32_t)(g % 4), shift = byte + 4 * (uint32_t)(g / 8);
        const bits six = (low[g / 4 % 2] >> shift & 15) | (high >> (byte + 2 * (uint32_t)(g / 4)) & 3) << 4;
        s->sc[g] = v_from_whole((vf)(six - 32));
    }
}

/* Sets sc and mn of 16 groups from the halves of 16 bytes. */
SHARED void load_halves(const columns *c, scales *s)
{
    for (int w = 0; w < 4; w++) {
        const bits four = load_words(c, 4 * w);
        ATT_UNROLL (k, 4) {
            s->sc[4 * w + k] = v_from_whole((vf)(four >> (uint32_t)(8 * k) & 15));
            s->mn[4 * w + k] = v_from_whole((vf)(four >> (uint32_t)(8 * k + 4) & 15));
        }
    }
}

/* Sets d of eight blocks from 6 bits less 32: the low four in 4 bytes, the others in 2. */
SHARED void load_xs(const columns *c, scales *s)
{
    const bits high = load_words(c, 0) >> 16, low = load_words(c, 4);
    vf d;
    load_factors(c, 0, false, &d, NULL);
    ATT_UNROLL (g, 8) {
        const bits six = (low >> (uint32_t)(4 * g) & 15) | (high >> (uint32_t)(2 * g) & 3) << 4;
        s->d[g] = v_mul(d, v_from_whole((vf)(six - 32)));
    }
}

/* Loads the scales of n stored blocks of one block of 32, or of one of eight. */
ATT_INLINE void load_scales(const int n, const layout t, const columns *c, scales *s)
{
    if (t.type == ATT_Q4_K || t.type == ATT_Q5_K)
        load_six_bits(c, s);
    else if (t.type == ATT_IQ4_XS)
        load_xs(c, s);
    else if (t.type == ATT_Q6_K) {
        load_signed_bytes(c, 192, s);
        load_factors(c, 208, false, s->d, NULL);
    } else if (t.type == ATT_Q3_K) {
        load_split_bits(c, 96, s);
        load_factors(c, 108, false, s->d, NULL);
    } else if (t.type == ATT_Q2_K) {
        load_halves(c, s);
        load_factors(c, 80, true, s->d, s->m);
        s->m[0] = v_sub(v_set(0), s->m[0]);
    } else
        ATT_UNROLL (k, GROUP)
            if (k < n)
                load_factors(c, k * t.bytes, t.has_m, &s->d[k], &s->m[k]);
}

/* ---- panels of B */

/* Some blocks of a panel, unpacked; GROUP of them more than are used may be written. */
typedef struct panel {
    int64_t blocks;
    _Alignas(ATT_CACHE_LINE) float words[DEPTH * WORDS * PANEL]; /* [blocks][WORDS][PANEL] */
    float d[DEPTH * PANEL], m[DEPTH * PANEL];
    float sc[2 * DEPTH * PANEL], mn[2 * DEPTH * PANEL]; /* of SIXTEENS */
} panel;

typedef uint8_t columns_copy[ATT_LANES * DEPTH * MAX_BYTES];

/* Returns block `from` of columns from j on. If there are fewer than ATT_LANES, they are copied, `blocks` of each, and
 * the others are zeros. */
SHARED columns find_columns(const layout t, const att_quantized_args *g, int64_t j, int64_t from, int64_t blocks,
                            columns_copy copy)
{
    const uint8_t *block = (const uint8_t *)g->b + j * g->row_bytes + from / t.blocks * t.bytes;
    columns c = {.stride = g->row_bytes};
    if (g->n - j < ATT_LANES) {
        memset(copy, 0, sizeof(columns_copy));
        c.stride = blocks / t.blocks * t.bytes;
        for (int64_t r = 0; r < g->n - j; r++)
            memcpy(copy + r * c.stride, block + r * g->row_bytes, (size_t)c.stride);
        block = copy;
    }
    ATT_UNROLL (i, BASES) {
        c.base[i] = block + i * NEAR * c.stride;
        __asm__("" : "+r"(c.base[i])); /* the compiler would compute the address of each column otherwise */
    }
    return c;
}

/* Returns the columns `distance` after j, to be prefetched, or NULL if there are fewer than ATT_LANES. */
ATT_INLINE const uint8_t *columns_after(const att_quantized_args *g, int64_t j, int64_t distance)
{
    j += distance;
    return j + ATT_LANES <= g->n ? (const uint8_t *)g->b + j * g->row_bytes : NULL;
}

/* Prefetches part b, as large as n blocks of ATT_LANES columns, of these columns: a processor does not recognize that
 * many short runs are one long run. */
ATT_INLINE void prefetch_part(const layout t, const uint8_t *soon, int64_t b, int n)
{
    for (int line = 0; soon && line < n * ATT_LANES * t.bytes / t.blocks; line += ATT_CACHE_LINE)
        __builtin_prefetch(soon + b * ATT_LANES * t.bytes / t.blocks + line);
}

/* Stores the scales of n blocks as those of blocks from b on of panel p, in its columns from i on. */
ATT_INLINE void unpack_scales(const int n, const layout t, const scales *s, int64_t b, int64_t i, panel *p)
{
    for (int k = 0; k < n; k++) {
        const int at = t.sums == SIXTEENS ? 0 : k;
        v_store(p->d + (b + k) * PANEL + i, s->d[at]);
        if (t.has_m)
            v_store(p->m + (b + k) * PANEL + i, s->m[at]);
    }
    for (int g = 0; t.sums == SIXTEENS && g < 2 * n; g++) {
        v_store(p->sc + (2 * b + g) * PANEL + i, s->sc[g]);
        if (t.has_m)
            v_store(p->mn + (2 * b + g) * PANEL + i, s->mn[g]);
    }
}

/* Unpacks n blocks of c, which are at most GROUP stored ones or one, b of panel p, to its columns from i on. */
ATT_INLINE void unpack_blocks(int n, const layout t, const columns *c, int64_t b, int64_t i, panel *p)
{
    scales s;
    load_scales(n, t, c, &s);
    unpack_scales(n, t, &s, b, i, p);
    for (int k = 0; k < n; k += GROUP)
        for (int h = 0; h < HALVES; h++) {
            vf w[ATT_LANES];
            load_columns(t.type, c, k, h, n < GROUP ? 0 : t.bytes, w);
            v_transpose(w);
            ATT_UNROLL (r, ATT_LANES)
                v_store(p->words + ((b + k) * WORDS + h * ATT_LANES + r) * PANEL + i, w[r]);
        }
}

/* Unpacks blocks [from, from + p->blocks) of columns [j, j + PANEL) of B -> p */
static void unpack(const layout t, const att_quantized_args *g, int64_t j, int64_t from, panel *p)
{
    const int step = t.blocks > 1 ? t.blocks : GROUP;
    for (int64_t i = 0; i < PANEL && j + i < g->n; i += ATT_LANES) {
        const uint8_t *soon = columns_after(g, j + i, PANEL);
        columns_copy copy;
        columns c = find_columns(t, g, j + i, from, p->blocks, copy);
        for (int64_t b = 0; b < p->blocks; b += step, next_block(&c, step / t.blocks * t.bytes)) {
            const int n = (int)att_min(step, p->blocks - b);
            prefetch_part(t, soon, from + b, n);
            unpack_blocks(n, t, &c, b, i, p);
        }
    }
}

/* Returns how many lanes of vector v are among `used` columns of a panel. */
ATT_INLINE int lanes_of(int64_t used, int v) { return (int)att_max(0, att_min(used - v * ATT_LANES, ATT_LANES)); }

#endif
