/* The register tile that all products are made of: linear layers, scores, weighted values.
 *
 *   c[r][j] = start + sum over p of a(r, p) b[p][j]
 *
 * One element of A is broadcast, the columns of B are vectors, and all of C stays in registers. Each element of C is
 * one ascending chain over p, whatever the tile's size: this is what makes results independent of blocking. */
#ifndef ATT_KERNEL_TILE_H
#define ATT_KERNEL_TILE_H

#include "kernel/kernel.h"
#include "simd/simd.h"

#include <string.h>

enum {
    PANEL = ATT_PANEL_VECTORS * ATT_LANES, /* columns that lie together in B */
    ROWS = ATT_TILE_ROWS,
    TALL_ROWS = ATT_TALL_ROWS,
    MAX_ROWS = 12, /* of any set */
    MAX_VECTORS = 4 * ATT_PANEL_VECTORS
};

typedef enum tile_start {
    START_ZERO,
    START_PRODUCT, /* the first product, k > 0: as from 0, but that -0 stays; and faster, as clearing takes time */
    START_C,
    START_SCALED
} tile_start;

typedef struct tile_args {
    int64_t k;
    const float *a; /* a(r, p) = a[r * lda + p], or a[p * lda + r] where transposed */
    int64_t lda;
    const float *b; /* panels [k][PANEL], ldb apart, their rows b_step apart (0: PANEL) */
    int64_t ldb, b_step;
    float *c; /* [rows, vectors * LANES] */
    int64_t ldc;
    const float *scale;     /* START_SCALED: start = c[r][j] scale[j] */
    const float *row_scale; /* transposed, START_PRODUCT: c[r][j] = the sum times row_scale[r] + 0; or NULL */
    att_prefetch *prefetch; /* or NULL: by whole transposed tiles, and by tiles across two panels */
} tile_args;

/* A file that multiplies something else than floats says so before (bf16_products.c: pairs). */
#ifndef TILE_MULTIPLY_ADD
#define TILE_MULTIPLY_ADD v_fma_onto
#define TILE_MULTIPLY(a, b) v_mul(a, b)
#else
#define TILE_MULTIPLY(a, b) TILE_MULTIPLY_ADD(a, b, v_set(0))
#endif

ATT_INLINE vf tile_scale(const bool scaled, vf x, vf factor) { return scaled ? v_mul(x, factor) : x; }

/* One panel: x [rows, n] -> y [n][PANEL] = x^T, scaled or just moved; columns behind the rows are 0, up to a whole
 * vector. */
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

/* Where a tile reads on. Rows of A lie at (r % 3) times a stride from one of few addresses: so they need few registers,
 * as an address may have a stride or its double added. */
enum { NEAR = 3, MAX_NEAR = (MAX_ROWS + NEAR - 1) / NEAR };
typedef struct tile_at {
    const float *a[MAX_NEAR], *b[MAX_VECTORS / ATT_PANEL_VECTORS];
    int64_t row_step, a_step, b_step; /* from row to row of A, and from product to product */
} tile_at;

/* An address as it is, whatever it was computed from. */
ATT_INLINE const float *tile_keep(const float *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* acc += the column of A times the row of B that `at` is at, and on to the next ones; first: acc is that product */
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

/* Up to k products, across two panels, while a share of a list is prefetched evenly. Gives how many are left. */
ATT_INLINE int64_t tile_prefetching_share(const int rows, const int vectors, int64_t k, att_prefetch *list, tile_at *at,
                                          vf acc[MAX_ROWS][MAX_VECTORS])
{
    enum { STEPS = 4 };
    const att_prefetch_lines lines = att_prefetch_take(list, 2 * k);
    const int64_t turns = lines.left ? k / STEPS : 0; /* and bytes from product to product: */
    const uintptr_t step = turns ? (uintptr_t)(lines.left * ATT_CACHE_LINE / (turns * STEPS)) : 0;
    uintptr_t line = lines.line;
    for (int64_t turn = 0; turn < turns; turn++)
        ATT_UNROLL (u, STEPS) {
            att_prefetch_line(line);
            if (rows <= 4) /* there is room */
                att_prefetch_line(line + step / 2);
            line += step;
            tile_step(rows, vectors, false, at, acc);
        }
    return k - turns * STEPS;
}

/* The same of a tile of attention, one line in each turn, as long as the list has any. */
ATT_INLINE int64_t tile_prefetching_rows(const int rows, const int vectors, int64_t k, att_prefetch *list, tile_at *at,
                                         vf acc[MAX_ROWS][MAX_VECTORS])
{
    enum { STEPS = 4 };
    att_prefetch_lines lines = {0, 0};
    for (; k >= STEPS; k -= STEPS) {
        if (lines.left == 0)
            lines = att_prefetch_take(list, k / STEPS);
        if (lines.left == 0)
            break;
        att_prefetch_some(&lines, 1);
        ATT_UNROLL (u, STEPS)
            tile_step(rows, vectors, false, at, acc);
    }
    return k;
}

/* rows and vectors are constants where this is inlined. */
ATT_INLINE void tile_of(const int rows, const int vectors, const bool transposed, const tile_start start,
                        const tile_args *t)
{
    const bool wide = vectors == 2 * ATT_PANEL_VECTORS && rows > 2; /* else reading is all there is to do */
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
    if (wide)
        left = tile_prefetching_share(rows, vectors, left, t->prefetch, &at, acc);
    if (whole)
        left = tile_prefetching_rows(rows, vectors, left, t->prefetch, &at, acc);
#pragma GCC unroll 1 /* it would take registers */
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

/* One tile, and on to what is below it. */
ATT_INLINE void tile_next(const int rows, const int vectors, const bool transposed, const tile_start start,
                          tile_args *t)
{
    tile_of(rows, vectors, transposed, start, t);
    t->a += rows * (transposed ? 1 : t->lda);
    t->c += rows * t->ldc;
    t->row_scale += t->row_scale ? rows : 0;
}

/* All m rows: whole tiles, and what is left in halves of them. Each further size would be compiled as often as this. */
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

/* c [m, vectors] = 0: a sum over nothing */
ATT_INLINE void tile_clear(int64_t m, const int vectors, const tile_args *t)
{
    for (int64_t i = 0; i < m; i++)
        memset(t->c + i * t->ldc, 0, (size_t)vectors * ATT_LANES * sizeof *t->c);
}

/* c [m][PANEL] = a b, the columns in use, or just the first half of a panel. Short rows side by side are taken by tall
 * tiles, as each costs some time to begin and end; rows apart may share too few sets of the first-level cache for so
 * many at once. */
ATT_INLINE void tile_columns(int columns, int64_t m, tile_args t)
{
    enum { SHORT = 64, HALF = ATT_PANEL_VECTORS / 2 };
    const bool few = columns <= HALF * ATT_LANES;
    if (t.k == 0) {
        tile_clear(m, few ? HALF : ATT_PANEL_VECTORS, &t);
        return;
    }
    if (few) {
        tile_all(m, HALF, false, START_PRODUCT, t);
        return;
    }
    for (; TALL_ROWS > ROWS && m >= TALL_ROWS && t.k <= SHORT && t.lda == t.k; m -= TALL_ROWS)
        tile_next(TALL_ROWS, ATT_PANEL_VECTORS, false, START_PRODUCT, &t);
    tile_all(m, ATT_PANEL_VECTORS, false, START_PRODUCT, t);
}

/* c = start + a^T b: start is c where that has been begun, or else c times its scale where it has one, or else 0. A sum
 * that was begun as a product may be -0; who writes it out adds 0 (attention.c, unpack). */
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
