/* The product of bf16_gemm.c in AMX tiles. Its sums have another order:
 *
 *   c[i][j] = sum over groups of 32 numbers of (sum over even p of a[i][p] b[j][p]) + (sum over odd p of the same)
 *
 * Both inner sums are chains over ascending p from 0, and the groups are added in ascending order. Groups begin at
 * multiples of 32 numbers, and the last one is padded with zeros in A and in B. All additions round to f32 and count
 * denormals as 0. A single row is a row of a tile, as any other is, so a row's bits do not depend on the batch.
 *
 * A block of C is 32 rows by one panel, or at most 16 rows by two panels, in four tiles. Rows of A after the last one
 * are multiplied as well, and their results are not used. */
#ifndef ATT_KERNEL_BF16_GEMM_TILES_H
#define ATT_KERNEL_BF16_GEMM_TILES_H

#include "kernel/kernel.h"
#include "util/util.h"

#include <string.h>

enum { EDGE = ATT_TILE_EDGE, BLOCK = 2 * EDGE /* rows, and columns of a panel */ };

/* c [row_tiles EDGE][panels BLOCK] += a [row_tiles EDGE, depth] b, of panels [depth][BLOCK] */
typedef struct tiles_block {
    int64_t depth; /* words, a multiple of EDGE */
    const float *a;
    int64_t lda;
    const float *b; /* panels ldb apart */
    int64_t ldb;
    float *c;
    bool add; /* to c; false: to 0 */
} tiles_block;

/* Multiplies a block: tiles 0 to 3 are c, 4 and 5 a, 6 and 7 b. */
ATT_INLINE void multiply_block(const int row_tiles, const int panels, const tiles_block *t)
{
    const size_t a_row = (size_t)t->lda * sizeof(float), b_row = BLOCK * sizeof(float);
    const size_t c_row = (size_t)panels * BLOCK * sizeof(float);
    float *const second = t->c + (row_tiles == 2 ? EDGE * BLOCK : BLOCK); /* rows, or panel */
    const float *a = t->a, *b = t->b;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (t->add) {
        _tile_loadd(0, t->c, c_row);
        _tile_loadd(1, t->c + EDGE, c_row);
        if (row_tiles * panels == 2) {
            _tile_loadd(2, second, c_row);
            _tile_loadd(3, second + EDGE, c_row);
        }
    }
    for (int64_t p = 0; p < t->depth; p += EDGE, a += EDGE, b += EDGE * BLOCK) {
        _tile_loadd(4, a, a_row);
        _tile_loadd(6, b, b_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + EDGE, b_row);
        _tile_dpbf16ps(1, 4, 7);
        if (row_tiles == 2) {
            _tile_loadd(5, a + EDGE * t->lda, a_row);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        } else if (panels == 2) {
            _tile_loadd(6, b + t->ldb, b_row);
            _tile_dpbf16ps(2, 4, 6);
            _tile_loadd(7, b + t->ldb + EDGE, b_row);
            _tile_dpbf16ps(3, 4, 7);
        }
    }
    _tile_stored(0, t->c, c_row);
    _tile_stored(1, t->c + EDGE, c_row);
    if (row_tiles * panels == 2) {
        _tile_stored(2, second, c_row);
        _tile_stored(3, second + EDGE, c_row);
    }
}

static void copy_rows(int64_t rows, int64_t columns, const float *from, int64_t from_row, float *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
}

/* Computes at most BLOCK rows from row i on by panels from q on, over the words [k0, end). The sums pass through memory
 * of one block, where the epilogue is applied, because tiles can be read in no other way. */
static void product_block(const att_gemm_args *g, int64_t i, int64_t q, int panels, int64_t k0, int64_t end)
{
    _Alignas(ATT_CACHE_LINE) float c[BLOCK * BLOCK];
    const int64_t rows = att_min(g->m - i, BLOCK), columns = att_min(panels * BLOCK, g->n - q * BLOCK);
    const int64_t width = panels * BLOCK;
    float *const out = g->c + i * g->ldc + q * BLOCK;
    const tiles_block t = {.depth = end - k0,
                           .a = g->a + i * g->lda + k0,
                           .lda = g->lda,
                           .b = g->packed + (q * g->k + k0) * BLOCK,
                           .ldb = g->k * BLOCK,
                           .c = c,
                           .add = k0 > 0 || (g->epilogue && g->epilogue->add)};
    for (int64_t r = 0; r < rows; r++) /* while the block is multiplied; writing C is what limits a product */
        for (int64_t j = 0; j < columns; j += ATT_CACHE_LINE / (int64_t)sizeof *out)
            __builtin_prefetch(out + r * g->ldc + j, 1);
    if (t.add && rows * columns < BLOCK * BLOCK)
        memset(c, 0, sizeof c);
    if (t.add)
        copy_rows(rows, columns, out, g->ldc, c, width);
    v_tiles_written();
    if (rows > EDGE)
        multiply_block(2, 1, &t);
    else if (panels == 2)
        multiply_block(1, 2, &t);
    else
        multiply_block(1, 1, &t);
    if (g->epilogue && end == g->k)
        g->finish(rows, columns, c, width, g->epilogue, i, q * BLOCK);
    copy_rows(rows, columns, c, width, out, g->ldc);
}

/* Returns the panels of a block: two share a tile of A. */
static int panels_for(int64_t rows) { return rows <= EDGE ? 2 : 1; }

static void multiply(const att_gemm_args *g)
{
    v_tiles_begin();
    for (int64_t k0 = 0; g->m > 0 && (k0 == 0 || k0 < g->k); k0 += ATT_GEMM_DEPTH)
        for (int64_t q = g->first, panels; q < g->last; q += panels) {
            panels = att_min(panels_for(g->m), g->last - q);
            for (int64_t i = 0; i < g->m; i += BLOCK)
                product_block(g, i, q, (int)panels, k0, att_min(g->k, k0 + ATT_GEMM_DEPTH));
        }
    v_tiles_end();
}

#endif
