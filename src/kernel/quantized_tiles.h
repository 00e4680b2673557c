/* The product of quantized rows and columns (quantized.c) in AMX tiles: the sums of int8 are exact, so it has the bits
 * of the other instruction sets.
 *
 * A tile of sums is 16 rows by half a panel, from one block of 32 numbers. Memory is the only way from a tile to
 * vectors, which convert the sums, scale them and add them to those of the blocks before. So four tiles take turns, and
 * vectors use each result two blocks later. Fewer than 16 rows are a tile of fewer rows. */
#ifndef ATT_KERNEL_QUANTIZED_TILES_H
#define ATT_KERNEL_QUANTIZED_TILES_H

#define TILES true
#include "kernel/quantized_blocks.h"

enum {
    EDGE = ATT_TILE_EDGE,
    COLUMNS = PANEL / 2,           /* of a tile */
    VECTORS = COLUMNS / ATT_LANES, /* of a row of it */
    SLOTS = 4,
    LATE = 2,
    TILE_ROW = COLUMNS * 4 /* bytes */
};

/* Configures tiles 0 to 3 for sums of this number of rows, 4 and 5 for A, and 6 and 7 for B. */
#define ROWS_OF(n) n, n, n, n, n, n, WORDS, WORDS
#define CONFIG(n)                                                                                                      \
    {                                                                                                                  \
        .palette = 1, .row_bytes = {TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, BLOCK, BLOCK, TILE_ROW, TILE_ROW},         \
        .rows = {                                                                                                      \
            ROWS_OF(n)                                                                                                 \
        }                                                                                                              \
    }
static const att_tile_config configs[EDGE] = {CONFIG(1),  CONFIG(2),  CONFIG(3),  CONFIG(4),  CONFIG(5),  CONFIG(6),
                                              CONFIG(7),  CONFIG(8),  CONFIG(9),  CONFIG(10), CONFIG(11), CONFIG(12),
                                              CONFIG(13), CONFIG(14), CONFIG(15), CONFIG(16)};

/* What products have beside sums */
typedef struct kind {
    bool has_start, has_m;
} kind;

/* Rows of A by half a panel, from some block on. */
typedef struct square {
    const float *words, *step, *sum;
    int64_t words_stride, stride;
    float start;            /* times the sum of a row's numbers is added to a sum of products */
    const float *b, *d, *m; /* words, and scales [blocks][PANEL] */
    _Alignas(64) float sums[SLOTS][EDGE * COLUMNS];
} square;

/* Computes the sums of block b -> sums[slot], with tiles of their own for neighboring blocks. */
ATT_INLINE void sum_block(const int slot, int64_t b, square *s)
{
    const float *x = s->words + b * WORDS, *y = s->b + b * WORDS * PANEL;
    const size_t x_row = (size_t)s->words_stride * sizeof *x, y_row = PANEL * sizeof *y;
    if (slot % 2) {
        _tile_loadd(5, x, x_row);
        _tile_loadd(7, y, y_row);
    } else {
        _tile_loadd(4, x, x_row);
        _tile_loadd(6, y, y_row);
    }
    if (slot == 0) {
        _tile_zero(0);
        _tile_dpbssd(0, 4, 6);
        _tile_stored(0, s->sums[0], TILE_ROW);
    } else if (slot == 1) {
        _tile_zero(1);
        _tile_dpbssd(1, 5, 7);
        _tile_stored(1, s->sums[1], TILE_ROW);
    } else if (slot == 2) {
        _tile_zero(2);
        _tile_dpbssd(2, 4, 6);
        _tile_stored(2, s->sums[2], TILE_ROW);
    } else {
        _tile_zero(3);
        _tile_dpbssd(3, 5, 7);
        _tile_stored(3, s->sums[3], TILE_ROW);
    }
}

/* Adds the sums of block b, which are in sums[slot], to acc. */
ATT_INLINE void add_block(const kind of, int rows, const int slot, int64_t b, const square *s, vf acc[EDGE][VECTORS])
{
    ATT_UNROLL (v, VECTORS) {
        const int64_t at = b * PANEL + v * ATT_LANES;
        const vf d = v_load(s->d + at), m = of.has_m ? v_load(s->m + at) : v_set(0);
        ATT_UNROLL (r, EDGE)
            if (r < rows) {
                const float total = s->sum[r * s->stride + b];
                const vf step = v_set(s->step[r * s->stride + b]);
                vf sum = v_from_whole(v_load(s->sums[slot] + r * COLUMNS + v * ATT_LANES));
                if (of.has_start)
                    sum = v_add(sum, v_set(s->start * total));
                acc[r][v] = v_fma_onto(sum, v_mul(step, d), acc[r][v]);
                if (of.has_m)
                    acc[r][v] = v_fma_onto(m, v_mul(step, v_set(total)), acc[r][v]);
            }
    }
}

/* Computes rows [i, i + rows) of half a panel, columns from j on, from block `from` on. */
ATT_INLINE void square_as(const kind of, const att_quantized_args *g, int64_t i, int rows, int64_t j, int64_t from,
                          const panel *p)
{
    const int64_t all = g->k / BLOCK, at = i * all + from, half = j % PANEL;
    square s = {.words = g->words + at * WORDS,
                .step = g->step + at,
                .sum = g->sum + at,
                .words_stride = all * WORDS,
                .stride = all,
                .start = (float)layouts[g->type].start,
                .b = p->words + half,
                .d = p->d + half,
                .m = p->m + half};
    float *c = g->c + i * g->ldc + j;
    vf acc[EDGE][VECTORS];
    ATT_UNROLL (r, EDGE)
        ATT_UNROLL (v, VECTORS)
            acc[r][v] =
                from > 0 && r < rows ? v_load_n(c + r * g->ldc + v * ATT_LANES, lanes_of(g->n - j, v)) : v_set(0);
    for (int64_t b = 0; b < p->blocks + LATE; b += SLOTS)
        ATT_UNROLL (slot, SLOTS) {
            if (b + slot < p->blocks)
                sum_block(slot, b + slot, &s);
            if (b + slot >= LATE && b + slot < p->blocks + LATE)
                add_block(of, rows, (slot + SLOTS - LATE) % SLOTS, b + slot - LATE, &s, acc);
        }
    ATT_UNROLL (r, EDGE)
        ATT_UNROLL (v, VECTORS)
            if (r < rows)
                v_store_n(c + r * g->ldc + v * ATT_LANES, acc[r][v], lanes_of(g->n - j, v));
}

/* Rows that are not a whole tile; one copy of it for all types. */
SHARED void part_of_square(kind of, const att_quantized_args *g, int64_t i, int rows, int64_t j, int64_t from,
                           const panel *p)
{
    square_as(of, g, i, rows, j, from, p);
}

/* Computes all rows of a panel; *configured is the number of rows of the tiles. */
ATT_INLINE void square_rows(const kind of, const att_quantized_args *g, int64_t j, int64_t from, const panel *p,
                            int *configured)
{
    for (int64_t i = 0; i < g->m; i += EDGE) {
        const int rows = (int)att_min(g->m - i, EDGE);
        if (rows != *configured)
            v_tiles_configure(&configs[rows - 1]);
        *configured = rows;
        for (int64_t half = 0; half < PANEL && j + half < g->n; half += COLUMNS)
            if (rows == EDGE)
                square_as(of, g, i, EDGE, j + half, from, p);
            else
                part_of_square(of, g, i, rows, j + half, from, p);
    }
}

ATT_INLINE void multiply_as(const kind of, const att_quantized_args *g)
{
    const layout t = layouts[g->type];
    const int64_t stored = g->k / BLOCK / t.blocks, parts = att_max(1, att_ceil_div(stored * t.blocks, DEPTH));
    int configured = 0;
    panel p;
    for (int64_t q = g->first; q < g->last; q++)
        for (int64_t part = 0; part < parts; part++) {
            const int64_t from = stored * part / parts * t.blocks;
            p.blocks = stored * (part + 1) / parts * t.blocks - from;
            unpack(t, g, q * PANEL, from, &p);
            v_tiles_written();
            square_rows(of, g, q * PANEL, from, &p, &configured);
        }
    if (configured)
        v_tiles_end();
}

static void multiply(const att_quantized_args *g)
{
    const layout t = layouts[g->type];
    if (t.has_m)
        multiply_as((kind){.has_m = true}, g);
    else if (t.start)
        multiply_as((kind){.has_start = true}, g);
    else
        multiply_as((kind){0}, g);
}

#endif
