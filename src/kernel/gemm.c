/* The matrix product on packed weights.
 *
 *   c[i][j] = sum over p of a[i][p] b[j][p]
 *
 * B is in panels: [panel of columns][k][PANEL]. A register tile multiplies some rows of A, read in place and broadcast
 * element by element, by the vectors of one panel. Each element of C is one ascending chain over p, whatever the tile
 * and the blocking, so a row's bits depend only on that row and on B. */
#include "kernel/activation.h"
#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/isa.h"
#include "util/util.h"
#include "attend.h"

static void pack(int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k, int64_t first, int64_t last,
                 float *packed)
{
    for (int64_t q = first; q < last; q++) {
        float *out = packed + q * k * PANEL;
        const float *in = b + q * PANEL * stride_n;
        const int64_t used = att_min(n - q * PANEL, PANEL);
        if (stride_k == 1 && used == PANEL) {
            tile_pack(PANEL, k, in, stride_n, 1, out);
            continue;
        }
        for (int64_t p = 0; p < k && stride_n == 1; p++)
            for (int64_t j = 0; j < PANEL; j += ATT_LANES)
                v_store(out + p * PANEL + j,
                        v_load_n(in + p * stride_k + j, (int)att_max(0, att_min(used - j, ATT_LANES))));
        for (int64_t p = 0; p < k && stride_n != 1; p++)
            for (int64_t j = 0; j < PANEL; j++)
                out[p * PANEL + j] = j < used ? in[j * stride_n + p * stride_k] : 0.0f;
    }
}

/* Packs codes: reads as many columns of k at once as a cache line has codes, and writes rows of a panel. */
static void pack_codes(int64_t n, int64_t k, const uint16_t *b, int64_t stride_n, int64_t stride_k, int64_t first,
                       int64_t last, uint16_t *packed)
{
    enum { DEPTH = ATT_CACHE_LINE / sizeof(uint16_t) };
    for (int64_t q = first; q < last; q++)
        for (int64_t p0 = 0; p0 < k; p0 += DEPTH) {
            const int64_t used = att_min(n - q * PANEL, PANEL), end = att_min(p0 + DEPTH, k);
            for (int64_t p = p0; p < end; p++)
                for (int64_t j = 0; j < PANEL; j++)
                    packed[(q * k + p) * PANEL + j] =
                        j < used ? b[(q * PANEL + j) * stride_n + p * stride_k] : (uint16_t)0;
        }
}

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

/* Applies activation(c + bias) + residual to a finished tile, n columns from column j on. */
ATT_INLINE void finish_as(const int activation, int64_t rows, int64_t n, float *c, int64_t ldc, const att_epilogue *e,
                          int64_t i, int64_t j)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < n; v += ATT_LANES) {
            const int used = (int)att_min(n - v, ATT_LANES);
            vf x = v_load_n(c + r * ldc + v, used);
            if (e->bias)
                x = v_add(x, v_load_n(e->bias + j + v, used));
            x = activation_of(activation, x);
            if (e->residual)
                x = v_add(x, v_load_n(e->residual + (i + r) * e->residual_stride + j + v, used));
            v_store_n(c + r * ldc + v, x, used);
        }
}

static void finish(int64_t rows, int64_t n, float *c, int64_t ldc, const att_epilogue *e, int64_t i, int64_t j)
{
    switch (e->activation) {
    case ATT_ACTIVATION_IDENTITY:
        if (e->bias || e->residual)
            finish_as(ATT_ACTIVATION_IDENTITY, rows, n, c, ldc, e, i, j);
        break;
    case ATT_ACTIVATION_RELU:
        finish_as(ATT_ACTIVATION_RELU, rows, n, c, ldc, e, i, j);
        break;
    case ATT_ACTIVATION_GELU_ERF:
        finish_as(ATT_ACTIVATION_GELU_ERF, rows, n, c, ldc, e, i, j);
        break;
    case ATT_ACTIVATION_GELU_TANH:
        finish_as(ATT_ACTIVATION_GELU_TANH, rows, n, c, ldc, e, i, j);
        break;
    case ATT_ACTIVATION_TANH:
        finish_as(ATT_ACTIVATION_TANH, rows, n, c, ldc, e, i, j);
        break;
    case ATT_ACTIVATION_SILU:
        finish_as(ATT_ACTIVATION_SILU, rows, n, c, ldc, e, i, j);
        break;
    case ATT_ACTIVATION_SIGMOID:
        finish_as(ATT_ACTIVATION_SIGMOID, rows, n, c, ldc, e, i, j);
        break;
    case ATT_ACTIVATION_QUICK_GELU:
        finish_as(ATT_ACTIVATION_QUICK_GELU, rows, n, c, ldc, e, i, j);
        break;
    }
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

/* Returns whether k is divided into blocks: only if several tiles read a block, because prefetching the next block
 * needs that much arithmetic. */
static bool in_blocks(const att_gemm_args *g, int64_t panels) { return panels == 2 && g->m > ATT_WIDE_ROWS; }

/* Returns the depth of the blocks into which k is divided. With few rows blocks are short: only the first is read
 * without having been prefetched, and the others come from the first-level cache. Otherwise k is one block, so that
 * sums stay in registers, if the second-level cache has room for it and the next one. If not, blocks have equal depth,
 * because a short block leaves no time to prefetch a long one. */
static int64_t depth_for(const att_gemm_args *g, int64_t panels, int64_t k)
{
    enum { SHORT = 128, LONG = 512, WHOLE = 1024 };
    if (!in_blocks(g, panels))
        return ATT_GEMM_DEPTH;
    const int64_t max_depth = g->m <= 2 * ATT_WIDE_ROWS ? SHORT : k > WHOLE ? LONG : WHOLE;
    const int64_t parts = att_max(1, att_ceil_div(k, max_depth));
    return att_ceil_div(k, parts);
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
    if (columns < b->panels * PANEL)
        edge_tile(rows, columns, add, &t);
    else
        tile(rows, (int)b->panels, add, &t);
    if (g->epilogue && b->k0 + b->depth >= g->k)
        finish(rows, columns, t.c, t.ldc, g->epilogue, i, b->q * PANEL);
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

/* ---- 16-bit codes */

/* Multiplies one row by four panels of codes, which become f32 in registers: as fast as memory is read. */
ATT_INLINE void code_row_as(const bool bf16, const att_gemm_args *g, const block *b)
{
    enum { PANELS = 4 };
    float *c = g->c + b->q * PANEL;
    const uint16_t *codes = g->codes + (b->q * g->k + b->k0) * PANEL;
    const bool add = b->k0 > 0 || (g->epilogue && g->epilogue->add);
    vf acc[PANELS * ATT_PANEL_VECTORS];
    ATT_UNROLL (v, PANELS * ATT_PANEL_VECTORS)
        acc[v] = add ? v_load(c + v * ATT_LANES) : v_set(0);
    for (int64_t p = 0; p < b->depth; p++, codes += PANEL) {
        const vf x = v_set(g->a[b->k0 + p]);
        ATT_UNROLL (v, PANELS * ATT_PANEL_VECTORS) {
            const uint16_t *at = codes + v / ATT_PANEL_VECTORS * g->k * PANEL + v % ATT_PANEL_VECTORS * ATT_LANES;
            acc[v] = v_fma_onto(x, bf16 ? v_from_bf16(at) : v_from_f16(at), acc[v]);
        }
    }
    ATT_UNROLL (v, PANELS * ATT_PANEL_VECTORS)
        v_store(c + v * ATT_LANES, acc[v]);
    if (g->epilogue && b->k0 + b->depth >= g->k)
        finish(1, PANELS * PANEL, c, g->ldc, g->epilogue, 0, b->q * PANEL);
}

static void code_row(const att_gemm_args *g, const block *b)
{
    if (g->bf16)
        code_row_as(true, g, b);
    else
        code_row_as(false, g, b);
}

/* Expands codes [count] to f32 -> out */
static void expand(const att_gemm_args *g, int64_t count, const uint16_t *codes, float *out)
{
    for (int64_t j = 0; j < count && g->bf16; j += ATT_LANES)
        v_store(out + j, v_from_bf16(codes + j));
    for (int64_t j = 0; j < count && !g->bf16; j += ATT_LANES)
        v_store(out + j, v_from_f16(codes + j));
}

/* Multiplies by panels of codes from q on over [k0, end): a block is expanded to f32 once for all rows, and stays in
 * the cache. */
static void product_codes(const att_gemm_args *g, int64_t q, int64_t panels, int64_t k0, int64_t end)
{
    enum { FLOATS = 8192 };
    _Alignas(ATT_CACHE_LINE) float b[FLOATS];
    const int64_t max_depth = FLOATS / (PANEL * panels);
    if (g->m == 1 && panels == 4) {
        code_row(g, &(const block){.q = q, .panels = panels, .k0 = k0, .depth = end - k0});
        return;
    }
    int64_t p = k0;
    do {
        const int64_t depth = att_min(max_depth, end - p), count = depth * PANEL;
        for (int64_t i = 0; i < panels; i++)
            expand(g, count, g->codes + ((q + i) * g->k + p) * PANEL, b + i * count);
        product_rows(g, &(const block){q, panels, p, depth, b, count}, NULL);
        p += depth;
    } while (p < end);
}

/* ---- all */

static void gemm(const att_gemm_args *g)
{
    void (*const product)(const att_gemm_args *, int64_t, int64_t, int64_t, int64_t) =
        g->packed ? product_panels : product_codes;
    const int64_t whole = att_min(g->last, g->n / PANEL); /* panels without unused columns */
    for (int64_t k0 = 0; g->m > 0 && (k0 == 0 || k0 < g->k); k0 += ATT_GEMM_DEPTH)
        for (int64_t q = g->first, panels; q < g->last; q += panels) {
            panels = q + panels_for(g->m) <= whole ? panels_for(g->m) : 1;
            product(g, q, panels, k0, att_min(g->k, k0 + ATT_GEMM_DEPTH));
        }
}

void ATTEND_ISA(att_kernel_gemm)(att_kernels *k);
void ATTEND_ISA(att_kernel_gemm)(att_kernels *k)
{
    k->lanes = ATT_LANES;
    k->nr = PANEL;
    k->mr = MAX_TILE_ROWS;
    k->gemm.panels_per_tile = panels_for;
    k->gemm.pack = pack;
    k->gemm.pack_codes = pack_codes;
    k->gemm.run = gemm;
    k->gemm.finish = finish;
}
