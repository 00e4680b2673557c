/* Quantized blocks of a panel of columns, unpacked for products (quantized.c, quantized_tiles.h). A file whose products
 * are of tiles defines TILES as true before: their words stay as they are stored. */
#ifndef ATT_KERNEL_QUANTIZED_BLOCKS_H
#define ATT_KERNEL_QUANTIZED_BLOCKS_H

#include "kernel/kernel.h"
#include "kernel/prefetch.h"
#include "kernel/tile.h"
#include "simd/simd.h"
#include "util/util.h"
#include "attend.h"

#ifndef TILES
#define TILES false
#endif

enum {
    BLOCK = ATT_QUANTIZED_BLOCK,
    WORDS = BLOCK / 4,                  /* words of a block */
    DEPTH = 512 / PANEL,                /* blocks that are unpacked at a time: their words stay in a near cache */
    HALVES = ATT_LANES < WORDS ? 2 : 1, /* vectors of a block */
    GROUP = ATT_LANES > WORDS ? ATT_LANES / WORDS : 1 /* blocks of a vector */
};

/* How blocks of a type are laid out and unpacked. */
typedef struct layout {
    int bytes, header; /* bytes of a block; header: bytes of the scales before the numbers */
    bool halves;       /* a byte has two numbers */
    bool word;         /* words become v_signed4_word */
    int start;         /* a sum of products begins with this times the sum of the row's numbers */
} layout;
static const layout layouts[] = {[ATT_Q8_0] = {34, 2, false, !TILES, TILES ? 0 : ATT_SIGNED4_START},
                                 [ATT_Q4_0] = {18, 2, true, false, -8}, /* d (q - 8) */
                                 [ATT_Q4_1] = {20, 4, true, false, 0}};

/* Some blocks of a panel, unpacked; GROUP of them more than are used may be written. */
typedef struct panel {
    int64_t blocks;
    _Alignas(ATT_CACHE_LINE) float words[DEPTH * WORDS * PANEL]; /* [blocks][WORDS][PANEL] */
    float d[DEPTH * PANEL], m[DEPTH * PANEL];
} panel;

/* Returns words of the numbers of GROUP blocks, or of half a block, as products need them. */
ATT_INLINE vf words_at(const layout t, const uint8_t *q, int half, int64_t next)
{
    const vf w = t.halves ? v_block_of_halves(q, half, next) : v_block(q, half, next);
    return t.word ? v_signed4_word(w) : w;
}

/* A block of each of ATT_LANES columns. Column r is base[r / NEAR] + r % NEAR * stride, which one x86 addressing mode
 * covers (tile.h). */
enum { BASES = (ATT_LANES + NEAR - 1) / NEAR, MAX_BYTES = 34 };
typedef struct columns {
    const uint8_t *base[BASES];
    int64_t stride;
} columns;
typedef uint8_t columns_copy[ATT_LANES * DEPTH * MAX_BYTES];

/* Returns block `from` of columns from j on. If there are fewer than ATT_LANES, they are copied, `blocks` of each, and
 * the others are zeros. */
ATT_INLINE columns find_columns(const layout t, const att_quantized_args *g, int64_t j, int64_t from, int64_t blocks,
                                columns_copy copy)
{
    const uint8_t *block = (const uint8_t *)g->b + j * g->row_bytes + from * t.bytes;
    columns c = {.stride = g->row_bytes};
    if (g->n - j < ATT_LANES) {
        memset(copy, 0, sizeof(columns_copy));
        c.stride = blocks * t.bytes;
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

ATT_INLINE const uint8_t *column(const columns *c, int r) { return c->base[r / NEAR] + r % NEAR * c->stride; }

ATT_INLINE void next_block(columns *c, int bytes)
{
    ATT_UNROLL (i, BASES)
        c->base[i] += bytes;
}

/* Loads the scales of the block of each column that is `skip` bytes from c. */
ATT_INLINE void load_scales(const layout t, const columns *c, int skip, vf *d, vf *m)
{
    const uint8_t *p[ATT_LANES];
    ATT_UNROLL (r, ATT_LANES)
        p[r] = column(c, r) + skip;
    if (t.header > 2)
        v_from_f16_pairs_at(p, d, m);
    else
        *d = v_from_f16_at(p);
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
    for (int line = 0; soon && line < n * ATT_LANES * t.bytes; line += ATT_CACHE_LINE)
        __builtin_prefetch(soon + b * ATT_LANES * t.bytes + line);
}

/* Unpacks n <= GROUP blocks of c, b of panel p, to its columns from i on. */
ATT_INLINE void unpack_blocks(const int n, const layout t, const columns *c, int64_t b, int64_t i, panel *p)
{
    ATT_UNROLL (k, n) {
        vf d, m;
        load_scales(t, c, k * t.bytes, &d, &m);
        v_store(p->d + (b + k) * PANEL + i, d);
        if (t.header > 2)
            v_store(p->m + (b + k) * PANEL + i, m);
    }
    ATT_UNROLL (h, HALVES) {
        vf w[ATT_LANES];
        ATT_UNROLL (r, ATT_LANES)
            w[r] = words_at(t, column(c, r) + t.header, h, (n - 1) * t.bytes);
        v_transpose(w);
        ATT_UNROLL (r, ATT_LANES)
            v_store(p->words + (b * WORDS + h * ATT_LANES + r) * PANEL + i, w[r]);
    }
}

/* Unpacks blocks [from, from + p->blocks) of columns [j, j + PANEL) of B -> p */
ATT_INLINE void unpack(const layout t, const att_quantized_args *g, int64_t j, int64_t from, panel *p)
{
    for (int64_t i = 0; i < PANEL && j + i < g->n; i += ATT_LANES) {
        const uint8_t *soon = columns_after(g, j + i, PANEL);
        columns_copy copy;
        columns c = find_columns(t, g, j + i, from, p->blocks, copy);
        int64_t b = 0;
        for (; b + GROUP <= p->blocks; b += GROUP, next_block(&c, GROUP * t.bytes)) {
            prefetch_part(t, soon, from + b, GROUP);
            unpack_blocks(GROUP, t, &c, b, i, p);
        }
        if (b < p->blocks) {
            prefetch_part(t, soon, from + b, 1);
            unpack_blocks(1, t, &c, b, i, p);
        }
    }
}

/* Returns how many lanes of vector v are among `used` columns of a panel. */
ATT_INLINE int lanes_of(int64_t used, int v) { return (int)att_max(0, att_min(used - v * ATT_LANES, ATT_LANES)); }

#endif
