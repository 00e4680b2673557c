/* The blocking of products on packed weights, which gemm.c has for floats and bf16_gemm.c for pairs of bf16.
 *
 * A file that includes this defines finish_tile. */
#ifndef ATT_KERNEL_GEMM_PANELS_H
#define ATT_KERNEL_GEMM_PANELS_H

#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "util/util.h"

/* Applies the epilogue of a product to its tile c [rows, n] at (i, j). */
static void finish_tile(const att_gemm_args *g, int64_t rows, int64_t n, float *c, int64_t i, int64_t j);

/* Returns the panels of one tile. With one or two rows there are several: enough independent chains to hide the latency
 * of an addition. With more rows it is the number that needs the fewest loads. */
static int panels_for(int64_t rows) { return rows == 1 ? 4 : rows == 2 || ATT_WIDE_ROWS > 2 ? 2 : 1; }

/* The largest number of rows of a tile: that of a tile across two panels, if that one is better. */
enum { MAX_TILE_ROWS = ATT_WIDE_ROWS > 2 ? ATT_WIDE_ROWS : ROWS };

/* Computes a tile with a number of rows that is known only at run time. */
ATT_INLINE void tile_rows(int rows, const int vectors, const tile_start start, const tile_args *t)
{
    if (rows > (vectors > ATT_PANEL_VECTORS ? ATT_WIDE_ROWS : MAX_TILE_ROWS))
        __builtin_unreachable(); /* not to be compiled */
    switch (rows) {
    case 1:
        tile_of(1, vectors, false, start, t);
        break;
    case 2:
        tile_of(2, vectors, false, start, t);
        break;
    case 3:
        tile_of(3, vectors, false, start, t);
        break;
    case 4:
        tile_of(4, vectors, false, start, t);
        break;
#if ATT_TILE_ROWS > 4
    case 5:
        tile_of(5, vectors, false, start, t);
        break;
    case 6:
        tile_of(6, vectors, false, start, t);
        break;
#endif
    }
}

ATT_INLINE void tile_from(const tile_start start, int rows, int panels, const tile_args *t)
{
    if (panels == 1)
        tile_rows(rows, ATT_PANEL_VECTORS, start, t);
    else if (panels == 2)
        tile_rows(rows, 2 * ATT_PANEL_VECTORS, start, t);
    else
        tile_of(1, 4 * ATT_PANEL_VECTORS, false, start, t);
}

static void tile(int rows, int panels, bool add, const tile_args *t)
{
    if (add)
        tile_from(START_C, rows, panels, t);
    else
        tile_from(START_ZERO, rows, panels, t);
}

/* Computes a tile whose columns end within its panel in memory beside C, then copies the used columns. */
static void edge_tile(int rows, int64_t used, bool add, const tile_args *t)
{
    float whole[MAX_TILE_ROWS * PANEL] = {0};
    tile_args inner = *t;
    inner.c = whole;
    inner.ldc = PANEL;
    for (int r = 0; add && r < rows; r++)
        for (int64_t j = 0; j < used; j++)
            whole[r * PANEL + j] = t->c[r * t->ldc + j];
    tile(rows, 1, add, &inner);
    for (int r = 0; r < rows; r++)
        for (int64_t j = 0; j < used; j++)
            t->c[r * t->ldc + j] = whole[r * PANEL + j];
}

/* A block, some panels over a part of k: all rows are multiplied with a block before the next one. */
typedef struct block {
    int64_t q, panels, k0, depth;
    const float *b; /* [panels][depth][PANEL], panels ldb apart */
    int64_t ldb;
} block;

static block packed_block(const att_gemm_args *g, int64_t q, int64_t panels, int64_t k0, int64_t depth)
{
    return (block){q, panels, k0, depth, g->packed + (q * g->k + k0) * PANEL, g->k * PANEL};
}

/* Returns whether k is divided into blocks, and the next block is prefetched. Across two panels it is only if several
 * tiles read a block, because prefetching needs that much arithmetic. Where tiles have one panel, it is up to some
 * rows: memory would be idle while all tiles after the first read the cache. With more rows that no longer counts. */
static bool in_blocks(const att_gemm_args *g, int64_t panels)
{
    enum { MANY_ROWS = 48 };
    return ATT_WIDE_ROWS > 2 ? panels == 2 && g->m > ATT_WIDE_ROWS : panels == 1 && g->m > 2 && g->m <= MANY_ROWS;
}

/* Returns the depth of the blocks into which k is divided. With few rows blocks are short: only the first is read
 * without having been prefetched, and the others come from the first-level cache. Otherwise k is one block, so that
 * sums stay in registers, if the second-level cache has room for it and the next one. If not, blocks have equal depth,
 * because a short block leaves no time to prefetch a long one. */
static int64_t depth_for(const att_gemm_args *g, int64_t panels, int64_t k)
{
    enum { SHORT = 128, LONG = 512, WHOLE = 1024 };
    if (!in_blocks(g, panels))
        return ATT_GEMM_DEPTH;
    const int64_t max_depth = g->m <= 2 * MAX_TILE_ROWS ? SHORT : k > WHOLE ? LONG : WHOLE;
    const int64_t parts = att_max(1, att_ceil_div(k, max_depth));
    return att_ceil_div(k, parts);
}

/* Fetches the lines of c [rows, columns] while the tile is multiplied: otherwise its stores wait for memory. */
static void fetch_results(int rows, int64_t columns, const float *c, int64_t ldc)
{
    for (int r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j += ATT_CACHE_LINE / (int64_t)sizeof *c)
            __builtin_prefetch(c + r * ldc + j, 1);
}

/* Multiplies rows [i, i + rows) by a block. */
static void product_tile(const att_gemm_args *g, int64_t i, int rows, const block *b, att_prefetch *prefetch)
{
    const int64_t columns = att_min(b->panels * PANEL, g->n - b->q * PANEL);
    const bool add = b->k0 > 0 || (g->epilogue && g->epilogue->add);
    const tile_args t = {.k = b->depth,
                         .a = g->a + i * g->lda + b->k0,
                         .lda = g->lda,
                         .b = b->b,
                         .ldb = b->ldb,
                         .c = g->c + i * g->ldc + b->q * PANEL,
                         .ldc = g->ldc,
                         .prefetch = prefetch};
    if (b->k0 == 0 && g->m > 2 * MAX_TILE_ROWS)
        fetch_results(rows, columns, t.c, t.ldc);
    if (columns < b->panels * PANEL)
        edge_tile(rows, columns, add, &t);
    else
        tile(rows, (int)b->panels, add, &t);
    if (g->epilogue && b->k0 + b->depth >= g->k)
        finish_tile(g, rows, columns, t.c, i, b->q * PANEL);
}

/* Multiplies all rows by a block, while the next one is prefetched; next NULL: there is none. */
static void product_rows(const att_gemm_args *g, const block *b, const block *next)
{
    const int64_t tiles = att_ceil_div(g->m, b->panels == 2 ? ATT_WIDE_ROWS : MAX_TILE_ROWS);
    att_prefetch list;
    att_prefetch_clear(&list);
    if (next) {
        const int64_t panel = next->depth * PANEL * (int64_t)sizeof(float);
        att_prefetch_add(&list, next->b, panel, next->ldb * (int64_t)sizeof(float), next->panels);
        list.share = att_ceil_div(next->panels * panel, ATT_CACHE_LINE * tiles);
    }
    for (int64_t tile = 0, i = 0, rows; tile < tiles; tile++, i += rows) {
        rows = (g->m - i + tiles - tile - 1) / (tiles - tile); /* as even as they can be */
        product_tile(g, i, (int)rows, b, &list);
    }
}

/* Multiplies by panels from q on over [k0, end), block by block. */
static void product_panels(const att_gemm_args *g, int64_t q, int64_t panels, int64_t k0, int64_t end)
{
    const int64_t max_depth = depth_for(g, panels, end - k0);
    int64_t p = k0;
    do {
        const block b = packed_block(g, q, panels, p, att_min(max_depth, end - p));
        p += b.depth;
        const block next = p < end ? packed_block(g, q, panels, p, att_min(max_depth, end - p))
                                   : packed_block(g, q + panels, panels, k0, att_min(max_depth, end - k0));
        const bool fetch = in_blocks(g, panels) && b.depth > 0 && (next.q + panels) * PANEL <= g->n;
        product_rows(g, &b, fetch ? &next : NULL);
    } while (p < end);
}

/* Multiplies by panels from q on over [k0, end). */
typedef void panels_product(const att_gemm_args *g, int64_t q, int64_t panels, int64_t k0, int64_t end);

/* Computes a product by a function for some panels. */
static void multiply_panels(const att_gemm_args *g, panels_product *product)
{
    const int64_t whole = att_min(g->last, g->n / PANEL); /* panels without unused columns */
    for (int64_t k0 = 0; g->m > 0 && (k0 == 0 || k0 < g->k); k0 += ATT_GEMM_DEPTH)
        for (int64_t q = g->first, panels; q < g->last; q += panels) {
            panels = q + panels_for(g->m) <= whole ? panels_for(g->m) : 1;
            product(g, q, panels, k0, att_min(g->k, k0 + ATT_GEMM_DEPTH));
        }
}

#endif
