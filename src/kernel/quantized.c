/* Products with a matrix of quantized blocks, in integers.
 *
 * A block of 32 numbers of a row of B is w = d q + m, with integers q, and m = 0 in most types. A block of a row of A
 * becomes x = s p, with integers p in [-127, 127]. Then
 *
 *   x . w = s d (p . q) + m s sum(p),
 *
 * where p . q and sum(p) are exact. An element of C is one ascending chain over the blocks,
 *
 * c = fma(p . q, s d, c), and if the type has m, c = fma(m, s sum(p), c),
 *
 * so its bits depend neither on other rows nor on the number of threads, and they are the same for all instruction sets
 * with such an fma.
 *
 * Four integers of a byte are one 32-bit word, and words are loaded as floats are (tile.h). Some blocks of a panel of
 * columns at a time are unpacked to words [words][PANEL], with which all rows are multiplied. Up to three rows are
 * multiplied with the blocks as they are stored. */
// also: avx512bf16
#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/simd.h"
#include "util/util.h"
#include "attend.h"

enum {
    BLOCK = ATT_QUANTIZED_BLOCK,
    WORDS = BLOCK / 4,                  /* words of a block */
    DEPTH = 512 / PANEL,                /* blocks that are unpacked at a time: their words stay in a near cache */
    TILE = 4,                           /* rows of a register tile */
    DIRECT_ROWS = 3,                    /* maximum number of rows for which a panel is not unpacked */
    HALVES = ATT_LANES < WORDS ? 2 : 1, /* vectors of a block */
    GROUP = ATT_LANES > WORDS ? ATT_LANES / WORDS : 1 /* blocks of a vector */
};
static const float levels = 127;
/* If a block's largest number is below this, all its numbers count as 0; 127 divided by it is finite. */
static const float smallest = 0x1p-118f;

/* ---- rows of A */

/* Returns the largest |x| of a block, at least 0, or NaN if one of its numbers is not finite. */
static float largest(const float *x)
{
    vf max = v_set(0), zero = v_set(0);
    for (int i = 0; i < BLOCK; i += ATT_LANES) {
        const vf y = v_load(x + i);
        max = v_max(v_abs(y), max);
        zero = v_fma(y, v_set(0), zero);
    }
    return v_top(max) + v_sum(zero);
}

static void quantize(int64_t k, const float *x, float *words, float *step, float *sum)
{
    for (int64_t b = 0; b < k / BLOCK; b++, x += BLOCK, words += WORDS) {
        const float max = largest(x), scale = max >= smallest ? levels / max : 0;
        vf total = v_set(0); /* exact: at most 32 * 127 */
        if (scale == 0)
            memset(words, 0, BLOCK);
        for (int i = 0; scale > 0 && i < BLOCK; i += ATT_LANES) {
            const vf whole = v_round(v_mul(v_load(x + i), v_set(scale)));
            v_store_int8((int8_t *)words + i, whole);
            total = v_add(total, whole);
        }
        step[b] = scale > 0 ? max / levels : max * 0; /* NaN stays */
        sum[b] = v_sum(total);
    }
}

/* ---- panels of B */

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* Unpacks the low halves of 16 bytes as the first 16 numbers, and the high halves as the others. */
ATT_INLINE void unpack_halves(const uint8_t *q, int8_t *y)
{
    bytes16 x;
    memcpy(&x, q, sizeof x);
    const bytes16 low = x & 15, high = x >> 4;
    memcpy(y, &low, sizeof low);
    memcpy(y + BLOCK / 2, &high, sizeof high);
}

/* Some blocks of a panel, unpacked. */
typedef struct panel {
    int64_t blocks;
    float words[DEPTH * WORDS * PANEL]; /* [blocks][WORDS][PANEL] */
    float d[DEPTH * PANEL], m[DEPTH * PANEL];
} panel;

/* Transposes scales [PANEL][blocks] in f16 -> y [blocks][PANEL] */
static void spread_scales(int64_t blocks, const uint16_t *codes, float *y)
{
    float x[DEPTH * PANEL];
    for (int64_t i = 0; i < blocks * PANEL; i += ATT_LANES)
        v_store(x + i, v_from_f16(codes + i));
    tile_pack_as(false, PANEL, blocks, x, blocks, 1, y);
}

/* How blocks of a type are laid out and unpacked. */
typedef struct layout {
    int bytes, header; /* bytes of a block; header: bytes of the scales before the numbers */
    bool halves;       /* a byte has two numbers */
    int zero;          /* is subtracted from the numbers of halves */
} layout;
static const layout layouts[] = {
    [ATT_Q8_0] = {34, 2, false, 0}, [ATT_Q4_0] = {18, 2, true, 8}, [ATT_Q4_1] = {20, 4, true, 0}};

/* Unpacks the scales of blocks [from, from + p->blocks) of columns [j, j + PANEL) of B -> p; for columns that do not
 * exist they are 0. */
ATT_INLINE void unpack_scales(const layout t, const att_quantized_args *g, int64_t j, int64_t from, panel *p)
{
    const bool has_m = t.header > 2;
    const int64_t used = att_min(PANEL, g->n - j), all = p->blocks * PANEL;
    uint16_t codes[2][DEPTH * PANEL];
    for (int64_t r = 0, i = 0; r < used; r++) {
        const uint8_t *block = (const uint8_t *)g->b + (j + r) * g->row_bytes + from * t.bytes;
        for (int64_t b = 0; b < p->blocks; b++, i++, block += t.bytes) {
            memcpy(&codes[0][i], block, sizeof codes[0][0]);
            if (has_m)
                memcpy(&codes[1][i], block + 2, sizeof codes[1][0]);
        }
    }
    for (int64_t i = used * p->blocks; i < all; i++)
        codes[0][i] = codes[1][i] = 0;
    spread_scales(p->blocks, codes[0], p->d);
    if (has_m)
        spread_scales(p->blocks, codes[1], p->m);
}

/* Unpacks the numbers of these blocks -> p; for columns that do not exist they are 0. */
ATT_INLINE void unpack_numbers(const layout t, const att_quantized_args *g, int64_t j, int64_t from, panel *p)
{
    const int64_t used = att_min(PANEL, g->n - j), all = p->blocks * PANEL;
    float whole[DEPTH * PANEL * WORDS], *words = whole; /* [PANEL][blocks][WORDS] */
    for (int64_t r = 0; r < used; r++) {
        const uint8_t *block = (const uint8_t *)g->b + (j + r) * g->row_bytes + from * t.bytes + t.header;
        for (int64_t b = 0; b < p->blocks; b++, block += t.bytes, words += WORDS)
            if (t.halves)
                unpack_halves(block, (int8_t *)words);
            else
                memcpy(words, block, BLOCK);
    }
    memset(words, 0, (size_t)(whole + all * WORDS - words) * sizeof *words);
    tile_pack_as(false, PANEL, p->blocks * WORDS, whole, p->blocks * WORDS, 1, p->words);
}

/* ---- products */

/* Rows of A, from the blocks that a panel has. */
typedef struct tile_of_rows {
    const float *words, *step, *sum;
    int64_t words_stride, stride;
} tile_of_rows;

/* Returns p . q of a block, from the sum of the words' products and the sum of the row's numbers. */
ATT_INLINE vf exact_dot(const layout t, vf sum, float total)
{
    return t.zero ? v_sub(v_from_whole(sum), v_set((float)t.zero * total)) : v_from_whole(sum);
}

/* Adds the product of rows and the panel to acc. */
ATT_INLINE void multiply(const int rows, const layout t, const tile_of_rows *a, const panel *p,
                         vf acc[TILE][ATT_PANEL_VECTORS])
{
    for (int64_t b = 0; b < p->blocks; b++) {
        const float *words = p->words + b * WORDS * PANEL, *d = p->d + b * PANEL, *m = p->m + b * PANEL;
        vf dot[TILE][ATT_PANEL_VECTORS];
        ATT_UNROLL (r, rows)
            ATT_UNROLL (v, ATT_PANEL_VECTORS)
                dot[r][v] = t.halves ? v_set(0) : v_signed4_start(a->sum[r * a->stride + b]);
        for (int w = 0; w < WORDS; w++)
            ATT_UNROLL (v, ATT_PANEL_VECTORS) {
                const vf q = v_keep(v_load(words + w * PANEL + v * ATT_LANES)), left = v_signed4_left(q);
                ATT_UNROLL (r, rows) {
                    const vf x = v_keep(v_set(a->words[r * a->words_stride + b * WORDS + w]));
                    dot[r][v] = t.halves ? v_dot4(q, x, dot[r][v]) : v_signed4(left, q, x, dot[r][v]);
                }
            }
        ATT_UNROLL (r, rows) {
            const float total = a->sum[r * a->stride + b];
            const vf s = v_set(a->step[r * a->stride + b]);
            ATT_UNROLL (v, ATT_PANEL_VECTORS) {
                acc[r][v] = v_fma(exact_dot(t, dot[r][v], total), v_mul(s, v_load(d + v * ATT_LANES)), acc[r][v]);
                if (t.header > 2)
                    acc[r][v] = v_fma(v_load(m + v * ATT_LANES), v_mul(s, v_set(total)), acc[r][v]);
            }
        }
    }
}

/* Returns how many lanes of vector v are among `used` columns of a panel. */
ATT_INLINE int lanes_of(int64_t used, int v) { return (int)att_max(0, att_min(used - v * ATT_LANES, ATT_LANES)); }

/* Computes rows [i, i + rows) of C by a panel, from block `from` on; columns from j on. */
ATT_INLINE void product_as(const int rows, const layout t, const att_quantized_args *g, int64_t i, int64_t j,
                           int64_t from, const panel *p)
{
    const int64_t blocks = g->k / BLOCK, used = att_min(PANEL, g->n - j);
    const tile_of_rows a = {.words = g->words + i * blocks * WORDS + from * WORDS,
                            .step = g->step + i * blocks + from,
                            .sum = g->sum + i * blocks + from,
                            .words_stride = blocks * WORDS,
                            .stride = blocks};
    float *c = g->c + i * g->ldc + j;
    vf acc[TILE][ATT_PANEL_VECTORS];
    ATT_UNROLL (r, rows)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            acc[r][v] = from > 0 ? v_load_n(c + r * g->ldc + v * ATT_LANES, lanes_of(used, v)) : v_set(0);
    multiply(rows, t, &a, p, acc);
    ATT_UNROLL (r, rows)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            v_store_n(c + r * g->ldc + v * ATT_LANES, acc[r][v], lanes_of(used, v));
}

ATT_INLINE void product_rows(const layout t, const att_quantized_args *g, int64_t j, int64_t from, const panel *p)
{
    int64_t i = 0;
    for (; i + TILE <= g->m; i += TILE)
        product_as(TILE, t, g, i, j, from, p);
    for (; i < g->m; i++)
        product_as(1, t, g, i, j, from, p);
}

/* ---- products with blocks as they are stored */

/* Computes p . q of GROUP blocks from `block` on, for ATT_LANES columns at[] bytes from it, with a row's words x -> y:
 * exact, except for `zero` and the initial values of sums. next: bytes from a block to the next, 0 if there is none. */
ATT_INLINE void dots(const layout t, const uint8_t *block, const int64_t at[ATT_LANES], int64_t next,
                     const vf x[HALVES], vf y[GROUP])
{
    vf sum[ATT_LANES];
    ATT_UNROLL (r, ATT_LANES) {
        const uint8_t *q = block + at[r] + t.header;
        sum[r] = v_set(0);
        ATT_UNROLL (h, HALVES) {
            const vf w = t.halves ? v_block_of_halves(q, h, next) : v_block(q, h, next);
            sum[r] = t.halves ? v_dot4(w, x[h], sum[r]) : v_signed4(v_signed4_left(w), w, x[h], sum[r]);
        }
    }
    v_sum_words(sum, y);
}

/* Computes row i of C for `used` columns from j on. */
ATT_INLINE void row_as(const layout t, const att_quantized_args *g, int64_t i, int64_t j, int used)
{
    const int64_t blocks = g->k / BLOCK;
    const float *words = g->words + i * blocks * WORDS, *step = g->step + i * blocks, *total = g->sum + i * blocks;
    const uint8_t *block = (const uint8_t *)g->b + j * g->row_bytes;
    /* Prefetch the columns after these, part by part: a processor does not recognize that many short runs are one long
     * run. */
    const uint8_t *soon = j + 2 * ATT_LANES <= g->n ? block + ATT_LANES * g->row_bytes : NULL;
    int64_t at[ATT_LANES];
    for (int r = 0; r < ATT_LANES; r++)
        at[r] = att_min(r, used - 1) * g->row_bytes;
    vf acc = v_set(0);
    for (int64_t b = 0; b < blocks; b += GROUP, block += GROUP * t.bytes) {
        const bool pair = b + GROUP <= blocks;
        vf x[HALVES], y[GROUP];
        ATT_UNROLL (h, HALVES)
            x[h] = pair ? v_load(words + b * WORDS + h * ATT_LANES) : v_load_n(words + b * WORDS, WORDS);
        dots(t, block, at, pair ? t.bytes : 0, x, y);
        for (int64_t line = 0; soon && line < (pair ? GROUP : 1) * ATT_LANES * t.bytes; line += 64)
            __builtin_prefetch(soon + b * ATT_LANES * t.bytes + line);
        for (int64_t k = b; k < b + GROUP && k < blocks; k++) {
            const uint8_t *scales = block + (k - b) * t.bytes;
            const vf s = v_set(step[k]);
            const vf sum = t.halves ? y[k - b] : v_add_whole(y[k - b], v_signed4_start(total[k]));
            vf d, m = v_set(0);
            if (t.header > 2)
                v_from_f16_pairs_at(scales, at, &d, &m);
            else
                d = v_from_f16_at(scales, at);
            acc = v_fma(exact_dot(t, sum, total[k]), v_mul(s, d), acc);
            if (t.header > 2)
                acc = v_fma(m, v_mul(s, v_set(total[k])), acc);
        }
    }
    v_store_n(g->c + i * g->ldc + j, acc, used);
}

ATT_INLINE void direct_rows(const layout t, const att_quantized_args *g)
{
    const int64_t end = att_min(g->last * PANEL, g->n);
    for (int64_t j = g->first * PANEL; j < end; j += ATT_LANES)
        for (int64_t i = 0; i < g->m; i++)
            row_as(t, g, i, j, (int)att_min(end - j, ATT_LANES));
}

ATT_INLINE void panels(const layout t, const att_quantized_args *g)
{
    const int64_t blocks = g->k / BLOCK, parts = att_max(1, att_ceil_div(blocks, DEPTH));
    panel p;
    for (int64_t q = g->first; q < g->last; q++)
        for (int64_t part = 0; part < parts; part++) {
            const int64_t from = blocks * part / parts;
            p.blocks = blocks * (part + 1) / parts - from;
            unpack_scales(t, g, q * PANEL, from, &p);
            unpack_numbers(t, g, q * PANEL, from, &p);
            product_rows(t, g, q * PANEL, from, &p);
        }
}

ATT_INLINE void run_as(const layout t, const att_quantized_args *g)
{
    if (g->m <= DIRECT_ROWS)
        direct_rows(t, g);
    else
        panels(t, g);
}

static void run(const att_quantized_args *g)
{
    if (g->type == ATT_Q8_0)
        run_as(layouts[ATT_Q8_0], g);
    else if (g->type == ATT_Q4_0)
        run_as(layouts[ATT_Q4_0], g);
    else
        run_as(layouts[ATT_Q4_1], g);
}

void ATTEND_ISA(att_kernel_quantized)(att_kernels *k);
void ATTEND_ISA(att_kernel_quantized)(att_kernels *k)
{
    k->quantized.quantize = quantize;
    k->quantized.run = run;
}
