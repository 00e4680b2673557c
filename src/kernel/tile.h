/* The register tile of all products: linear layers, scores, weighted values.
 *
 *   c[r][j] = start + sum over p of a(r, p) b[p][j]
 *
 * One element of A is broadcast, the columns of B are vectors, and all of C stays in registers. Each element of C is
 * one ascending chain over p, whatever the tile's size: so results do not depend on blocking. */
#ifndef ATT_KERNEL_TILE_H
#define ATT_KERNEL_TILE_H

#include "kernel/kernel.h"
#include "simd/simd.h"

#include <string.h>

enum {
    PANEL = ATT_PANEL_VECTORS * ATT_LANES, /* columns that are together in B */
    ROWS = ATT_TILE_ROWS,
    TALL_ROWS = ATT_TALL_ROWS,
    MAX_ROWS = 12, /* maximum of all sets */
    MAX_VECTORS = 4 * ATT_PANEL_VECTORS
};

typedef enum tile_start {
    START_ZERO,
    START_PRODUCT, /* the first product, k > 0: as from 0, but -0 stays; faster, because nothing is cleared */
    START_C,
    START_SCALED
} tile_start;

typedef struct tile_args {
    int64_t k;
    const float *a; /* a(r, p) = a[r * lda + p], or a[p * lda + r] if transposed */
    int64_t lda;
    const float *b; /* panels [k][PANEL], ldb apart, their rows b_step apart (0: PANEL) */
    int64_t ldb, b_step;
    float *c; /* [rows, vectors * LANES] */
    int64_t ldc;
    const float *scale;     /* START_SCALED: start = c[r][j] scale[j] */
    const float *row_scale; /* transposed, START_PRODUCT: c[r][j] = the sum times row_scale[r] + 0; or NULL */
    att_prefetch *prefetch; /* or NULL: by whole transposed tiles, by tiles across two panels, and by those that
                             * tile_is_of_panel has */
} tile_args;

/* A file whose products are not of floats defines these before (bf16_products.c: pairs of bf16). */
#ifndef TILE_MULTIPLY_ADD
#define TILE_MULTIPLY_ADD v_fma_onto
#define TILE_MULTIPLY(a, b) v_mul(a, b)
#else
#define TILE_MULTIPLY(a, b) TILE_MULTIPLY_ADD(a, b, v_set(0))
#endif

ATT_INLINE vf tile_scale(const bool scaled, vf x, vf factor) { return scaled ? v_mul(x, factor) : x; }

/* Packs one panel: x [rows, n] -> y [n][PANEL] = x^T, times scale if `scaled`. Columns after the rows are 0, up to a
 * whole vector. */
ATT_INLINE void tile_pack_as(const bool scaled, int64_t rows, int64_t n, const float *x, int64_t stride, float scale,
                             float *y)
{
    const vf factor = v_set(scale);
    for (int64_t i = 0; i < rows; i += ATT_LANES)
        for (int64_t j = 0; j < n; j += ATT_LANES) {
            const int columns = n - j < ATT_LANES ? (int)(n - j) : ATT_LANES;
            vf t[ATT_LANES];
            if (rows - i >= ATT_LANES && columns == ATT_LANES) { /* all of it stays in registers */
                ATT_UNROLL (r, ATT_LANES)
                    t[r] = tile_scale(scaled, v_load(x + (i + r) * stride + j), factor);
                v_transpose(t);
                ATT_UNROLL (c, ATT_LANES)
                    v_store(y + (j + c) * PANEL + i, t[c]);
                continue;
            }
            for (int r = 0; r < ATT_LANES; r++)
                t[r] =
                    i + r < rows ? tile_scale(scaled, v_load_n(x + (i + r) * stride + j, columns), factor) : v_set(0);
            v_transpose(t);
            for (int c = 0; c < columns; c++)
                v_store(y + (j + c) * PANEL + i, t[c]);
        }
}

static inline void tile_pack(int64_t rows, int64_t n, const float *x, int64_t stride, float scale, float *y)
{
    tile_pack_as(true, rows, n, x, stride, scale, y);
}

/* The addresses from which a tile reads. Row r of A is base[r / 3] + (r % 3) * stride, which one x86 addressing mode
 * covers, so 4 base registers suffice instead of 12. */
enum { NEAR = 3, MAX_NEAR = (MAX_ROWS + NEAR - 1) / NEAR };
typedef struct tile_at {
    const float *a[MAX_NEAR], *b[MAX_VECTORS / ATT_PANEL_VECTORS];
    int64_t row_step, a_step, b_step; /* steps from row to row of A, and from product to product */
} tile_at;

/* Returns p in a way that the compiler cannot fold into other addresses. */
ATT_INLINE const float *tile_keep(const float *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* Adds column of A times row of B to acc, at the addresses in `at`, which then advance; first: acc is set to that
 * product. */
ATT_INLINE void tile_step(const int rows, const int vectors, const bool first, tile_at *at,
                          vf acc[MAX_ROWS][MAX_VECTORS])
{
    vf x[MAX_VECTORS];
    ATT_UNROLL (v, vectors)
        x[v] = v_keep(v_load(at->b[v / ATT_PANEL_VECTORS] + v % ATT_PANEL_VECTORS * ATT_LANES));
    ATT_UNROLL (r, rows) {
        const vf y = v_keep(v_set(at->a[r / NEAR][r % NEAR * at->row_step]));
        ATT_UNROLL (v, vectors)
            acc[r][v] = first ? TILE_MULTIPLY(y, x[v]) : TILE_MULTIPLY_ADD(y, x[v], acc[r][v]);
    }
    ATT_UNROLL (i, (rows + NEAR - 1) / NEAR)
        at->a[i] += at->a_step;
    ATT_UNROLL (i, (vectors + ATT_PANEL_VECTORS - 1) / ATT_PANEL_VECTORS)
        at->b[i] += at->b_step;
}

/* Computes up to k products, while it prefetches a share of a list evenly. Returns how many products
 * are left. */
ATT_INLINE int64_t tile_prefetching_share(const int rows, const int vectors, int64_t k, att_prefetch *list, tile_at *at,
                                          vf acc[MAX_ROWS][MAX_VECTORS])
{
    enum { STEPS = 4 };
    const att_prefetch_lines lines = att_prefetch_next(list, 2 * k);
    const int64_t rounds = lines.left ? k / STEPS : 0;
    const uintptr_t step = rounds ? (uintptr_t)(lines.left * ATT_CACHE_LINE / (rounds * STEPS)) : 0; /* bytes */
    uintptr_t line = lines.line;
    for (int64_t r = 0; r < rounds; r++)
        ATT_UNROLL (u, STEPS) {
            att_prefetch_line(line);
            if (rows <= 4) /* registers are free */
                att_prefetch_line(line + step / 2);
            line += step;
            tile_step(rows, vectors, false, at, acc);
        }
    return k - rounds * STEPS;
}

/* Multiplies and prefetches for a tile of attention: one line every 4 products, as long as the list has any. */
ATT_INLINE int64_t tile_prefetching_rows(const int rows, const int vectors, int64_t k, att_prefetch *list, tile_at *at,
                                         vf acc[MAX_ROWS][MAX_VECTORS])
{
    enum { STEPS = 4 };
    att_prefetch_lines lines = {0, 0};
    for (; k >= STEPS; k -= STEPS) {
        if (lines.left == 0)
            lines = att_prefetch_next(list, k / STEPS);
        if (lines.left == 0)
            break;
        att_prefetch_some(&lines, 1);
        ATT_UNROLL (u, STEPS)
            tile_step(rows, vectors, false, at, acc);
    }
    return k;
}

/* Whether tiles prefetch */
#ifdef ATT_BRIEF
enum { TILE_PREFETCHES = 0 };
#else
enum { TILE_PREFETCHES = 1 };
#endif

/* Returns whether a tile is one of a product of packed weights, on a set whose tiles have one panel; it prefetches as
 * those across two panels do. */
ATT_INLINE bool tile_is_of_panel(const int vectors, const bool transposed, const tile_start start)
{
    return ATT_WIDE_ROWS <= 2 && vectors == ATT_PANEL_VECTORS && !transposed &&
           (start == START_ZERO || start == START_C);
}

/* Computes a tile; rows and vectors are constants where this is inlined. */
ATT_INLINE void tile_of(const int rows, const int vectors, const bool transposed, const tile_start start,
                        const tile_args *t)
{
    const bool shares = TILE_PREFETCHES && rows > 2 && /* otherwise loads are the bottleneck */
                        (vectors == 2 * ATT_PANEL_VECTORS || tile_is_of_panel(vectors, transposed, start));
    const bool whole = transposed && rows == ROWS;
    const int64_t ldc = t->ldc;
    float *const c = t->c;
    tile_at at = {.row_step = transposed ? 1 : t->lda,
                  .a_step = transposed ? t->lda : 1,
                  .b_step = vectors <= ATT_PANEL_VECTORS && t->b_step ? t->b_step : PANEL};
    vf acc[MAX_ROWS][MAX_VECTORS];

    ATT_UNROLL (r, rows)
        ATT_UNROLL (v, vectors) {
            acc[r][v] = start <= START_PRODUCT ? v_set(0) : v_load(c + r * ldc + v * ATT_LANES);
            if (start == START_SCALED)
                acc[r][v] = v_mul(acc[r][v], v_load(t->scale + v * ATT_LANES));
        }
    ATT_UNROLL (i, (rows + NEAR - 1) / NEAR)
        at.a[i] = tile_keep(t->a + i * NEAR * at.row_step);
    ATT_UNROLL (i, (vectors + ATT_PANEL_VECTORS - 1) / ATT_PANEL_VECTORS)
        at.b[i] = tile_keep(t->b + i * t->ldb);

    int64_t left = t->k;
    if (start == START_PRODUCT)
        tile_step(rows, vectors, true, &at, acc);
    left -= start == START_PRODUCT;
    if (shares)
        left = tile_prefetching_share(rows, vectors, left, t->prefetch, &at, acc);
    if (whole && TILE_PREFETCHES)
        left = tile_prefetching_rows(rows, vectors, left, t->prefetch, &at, acc);
#pragma GCC unroll 1 /* unrolling would need more registers */
    for (; whole && left > 0; left--)
        tile_step(rows, vectors, false, &at, acc);
#pragma GCC unroll 4
    for (; left > 0; left--)
        tile_step(rows, vectors, false, &at, acc);

    if (start == START_PRODUCT && transposed && t->row_scale)
        ATT_UNROLL (r, rows)
            ATT_UNROLL (v, vectors)
                acc[r][v] = v_fma(acc[r][v], v_set(t->row_scale[r]), v_set(0)); /* -0 becomes 0 */
    ATT_UNROLL (r, rows)
        ATT_UNROLL (v, vectors)
            v_store(c + r * ldc + v * ATT_LANES, acc[r][v]);
}

/* Computes one tile; t advances to the rows below it. */
ATT_INLINE void tile_next(const int rows, const int vectors, const bool transposed, const tile_start start,
                          tile_args *t)
{
    tile_of(rows, vectors, transposed, start, t);
    t->a += rows * (transposed ? 1 : t->lda);
    t->c += rows * t->ldc;
    t->row_scale += t->row_scale ? rows : 0;
}

/* Computes all m rows: whole tiles, then smaller ones. There are only three smaller sizes, because each is compiled for
 * every use. */
ATT_INLINE void tile_all(int64_t m, const int vectors, const bool transposed, const tile_start start, tile_args t)
{
    for (; m >= ROWS; m -= ROWS)
        tile_next(ROWS, vectors, transposed, start, &t);
    if (ROWS > 4 && m & 4)
        tile_next(4, vectors, transposed, start, &t);
    if (m & 2)
        tile_next(2, vectors, transposed, start, &t);
    if (m & 1)
        tile_next(1, vectors, transposed, start, &t);
}

/* Sets c [m, vectors] = 0, the sum over nothing. */
ATT_INLINE void tile_clear(int64_t m, const int vectors, const tile_args *t)
{
    for (int64_t i = 0; i < m; i++)
        memset(t->c + i * t->ldc, 0, (size_t)vectors * ATT_LANES * sizeof *t->c);
}

/* Computes c [m][PANEL] = a b, all columns, or only the first half of a panel if that is enough. Short contiguous rows
 * use taller tiles, because beginning and ending a tile takes time; rows with gaps may map to too few sets of the
 * first-level cache for that. */
ATT_INLINE void tile_columns(int columns, int64_t m, tile_args t)
{
    enum { SHORT = 64, HALF = ATT_PANEL_VECTORS / 2 };
    const bool half = columns <= HALF * ATT_LANES;
    if (t.k == 0) {
        tile_clear(m, half ? HALF : ATT_PANEL_VECTORS, &t);
        return;
    }
    if (half) {
        tile_all(m, HALF, false, START_PRODUCT, t);
        return;
    }
    for (; TALL_ROWS > ROWS && m >= TALL_ROWS && t.k <= SHORT && t.lda == t.k; m -= TALL_ROWS)
        tile_next(TALL_ROWS, ATT_PANEL_VECTORS, false, START_PRODUCT, &t);
    tile_all(m, ATT_PANEL_VECTORS, false, START_PRODUCT, t);
}

/* Computes c = start + a^T b, where start is c if begun, otherwise c times t.scale if given, otherwise 0. A sum that
 * begins as a product may be -0; attention.c's unpack adds 0 to it. */
ATT_INLINE void tile_onto(bool begun, int64_t m, const int vectors, tile_args t)
{
    if (begun)
        tile_all(m, vectors, true, START_C, t);
    else if (t.scale)
        tile_all(m, vectors, true, START_SCALED, t);
    else if (t.k > 0)
        tile_all(m, vectors, true, START_PRODUCT, t);
    else
        tile_clear(m, vectors, &t);
}

#endif
