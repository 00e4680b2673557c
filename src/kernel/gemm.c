/* The matrix product on packed weights.
 *
 *   c[i][j] = sum over p of a[i][p] b[j][p]
 *
 * B lies in panels: [panel of columns][k][PANEL]. A register tile is some rows of A, read where they lie, each
 * element broadcast, by the vectors of one panel. Each element of C is one ascending chain over p, whatever the tile
 * and the blocking: a row's bits depend on that row and on B alone. */
#include "kernel/activation.h"
#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "attend.h"

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static void pack(int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k, int64_t first, int64_t last,
                 float *packed)
{
    for (int64_t q = first; q < last; q++) {
        float *out = packed + q * k * PANEL;
        const float *in = b + q * PANEL * stride_n;
        const int64_t used = min(n - q * PANEL, PANEL);
        if (stride_k == 1 && used == PANEL) {
            tile_turn(PANEL, k, in, stride_n, 1, out);
            continue;
        }
        for (int64_t p = 0; p < k && stride_n == 1; p++)
            for (int64_t j = 0; j < PANEL; j += ATT_LANES)
                v_store(out + p * PANEL + j, v_load_n(in + p * stride_k + j, (int)max(0, min(used - j, ATT_LANES))));
        for (int64_t p = 0; p < k && stride_n != 1; p++)
            for (int64_t j = 0; j < PANEL; j++)
                out[p * PANEL + j] = j < used ? in[j * stride_n + p * stride_k] : 0.0f;
    }
}

/* Panels that one tile takes. Of few rows several: there must be enough chains to hide the latency of an addition. Of
 * more as many as need the fewest loads; but panels are read only once where the rows are those of one tile. */
static int panels_for(int64_t rows)
{
    const bool once = rows > ATT_WIDE_ROWS && rows <= ROWS;
    return rows == 1 ? 4 : rows == 2 || (ATT_WIDE_ROWS > 2 && !once) ? 2 : 1;
}

ATT_INLINE void tile_from(const tile_start start, int rows, int panels, const tile_args *t)
{
    if (panels == 1)
        tile_rows(rows, ATT_PANEL_VECTORS, false, start, t);
    else if (panels == 2)
        tile_rows(rows, 2 * ATT_PANEL_VECTORS, false, start, t);
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

/* activation(c + bias) + residual on a finished tile, n columns from column j on. */
ATT_INLINE void finish_as(const int activation, int rows, int64_t n, float *c, int64_t ldc, const att_epilogue *e,
                          int64_t i, int64_t j)
{
    for (int r = 0; r < rows; r++)
        for (int64_t v = 0; v < n; v += ATT_LANES) {
            const int used = (int)min(n - v, ATT_LANES);
            vf x = v_load_n(c + r * ldc + v, used);
            if (e->bias)
                x = v_add(x, v_load_n(e->bias + j + v, used));
            x = activation_of(activation, x);
            if (e->residual)
                x = v_add(x, v_load_n(e->residual + (i + r) * e->residual_stride + j + v, used));
            v_store_n(c + r * ldc + v, x, used);
        }
}

static void finish(int rows, int64_t n, float *c, int64_t ldc, const att_epilogue *e, int64_t i, int64_t j)
{
    switch (e->activation) {
    case ATT_IDENTITY:
        if (e->bias || e->residual)
            finish_as(ATT_IDENTITY, rows, n, c, ldc, e, i, j);
        break;
    case ATT_RELU:
        finish_as(ATT_RELU, rows, n, c, ldc, e, i, j);
        break;
    case ATT_GELU_ERF:
        finish_as(ATT_GELU_ERF, rows, n, c, ldc, e, i, j);
        break;
    case ATT_GELU_TANH:
        finish_as(ATT_GELU_TANH, rows, n, c, ldc, e, i, j);
        break;
    case ATT_TANH:
        finish_as(ATT_TANH, rows, n, c, ldc, e, i, j);
        break;
    case ATT_SILU:
        finish_as(ATT_SILU, rows, n, c, ldc, e, i, j);
        break;
    case ATT_SIGMOID:
        finish_as(ATT_SIGMOID, rows, n, c, ldc, e, i, j);
        break;
    }
}

/* A tile whose columns end within its panel: computed beside C, then the used columns are copied. */
static void edge_tile(int rows, int64_t used, bool add, const tile_args *t)
{
    float whole[MAX_ROWS * PANEL] = {0};
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

/* What one call works on. */
typedef struct product {
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *packed;
    float *c;
    int64_t ldc;
    const att_epilogue *e;
} product;

/* What tile number `tile` of two panels fetches for the next two: of the first four, each half a panel. */
static const float *soon_of(const product *g, int64_t tile, int64_t q, int64_t k0, int64_t depth)
{
    const int64_t panel = q + 2 + tile / 2, at = k0 + tile % 2 * (depth / 2);
    return tile < 4 && panel * PANEL < g->n ? g->packed + (panel * g->k + at) * PANEL : NULL;
}

/* Rows [i, i + rows) by panels from q on, over [k0, k0 + depth). */
static void product_tile(const product *g, int64_t i, int rows, int64_t q, int panels, int64_t k0, int64_t depth,
                         const float *soon)
{
    const int64_t columns = min(panels * PANEL, g->n - q * PANEL);
    const bool add = k0 > 0 || (g->e && g->e->add);
    const tile_args t = {.k = depth,
                         .a = g->a + i * g->lda + k0,
                         .lda = g->lda,
                         .b = g->packed + (q * g->k + k0) * PANEL,
                         .ldb = g->k * PANEL,
                         .c = g->c + i * g->ldc + q * PANEL,
                         .ldc = g->ldc,
                         .soon = soon};
    if (columns < panels * PANEL)
        edge_tile(rows, columns, add, &t);
    else
        tile(rows, panels, add, &t);
    if (g->e && k0 + depth >= g->k)
        finish(rows, columns, t.c, t.ldc, g->e, i, q * PANEL);
}

static void gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *packed, int64_t first,
                 int64_t last, float *c, int64_t ldc, const att_epilogue *e)
{
    const product g = {m, n, k, a, lda, packed, c, ldc, e};
    const int64_t whole = min(last, n / PANEL); /* panels without unused columns */
    for (int64_t k0 = 0; k0 == 0 || k0 < k; k0 += ATT_GEMM_DEPTH)
        for (int64_t q = first, panels; q < last; q += panels) {
            panels = q + panels_for(m) <= whole ? panels_for(m) : 1;
            const int64_t most = panels == 2 ? ATT_WIDE_ROWS : ROWS;
            const int64_t tiles = (m + most - 1) / most, depth = min(ATT_GEMM_DEPTH, k - k0);
            for (int64_t tile = 0, i = 0, rows; tile < tiles; tile++, i += rows) {
                rows = tile_share(m - i, tiles - tile);
                product_tile(&g, i, (int)rows, q, (int)panels, k0, depth,
                             panels == 2 ? soon_of(&g, tile, q, k0, depth) : NULL);
            }
        }
}

void ATT_ISA(att_kernel_gemm)(att_kernels *k);
void ATT_ISA(att_kernel_gemm)(att_kernels *k)
{
    k->lanes = ATT_LANES;
    k->panel = PANEL;
    k->rows = ROWS;
    k->gemm_panels = panels_for;
    k->gemm_pack = pack;
    k->gemm = gemm;
}
