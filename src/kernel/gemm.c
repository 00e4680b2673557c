/* The matrix product on packed weights.
 *
 *   c[i][j] = sum over p of a[i][p] b[j][p]
 *
 * B is in panels: [panel of columns][k][PANEL]. A register tile multiplies some rows of A, read in place and broadcast
 * element by element, by the vectors of one panel. Each element of C is one ascending chain over p, whatever the tile
 * and the blocking, so a row's bits depend only on that row and on B. */
#include "kernel/activation.h"
#include "kernel/gemm_panels.h"
#include "simd/isa.h"
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

static void finish_tile(const att_gemm_args *g, int64_t rows, int64_t n, float *c, int64_t i, int64_t j)
{
    finish(rows, n, c, g->ldc, g->epilogue, i, j);
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

static void gemm(const att_gemm_args *g) { multiply_panels(g, g->packed ? product_panels : product_codes); }

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
