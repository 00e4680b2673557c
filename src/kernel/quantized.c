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
 * columns at a time are unpacked to words [words][PANEL], with which all rows are multiplied (quantized_blocks.h). A
 * few rows are multiplied with the blocks as they are stored. */
// also: avx512bf16
#include "kernel/quantized_blocks.h"

#include <math.h>

enum { TILE = ATT_LANES < 16 ? 4 : 6 }; /* rows of a register tile */
static const float levels = 127;
/* If a block's largest number is below this, all its numbers count as 0; 127 divided by it is finite. */
static const float smallest = 0x1p-118f;

/* ---- rows of A */

/* Returns the maxima or the sums of the lanes of t[0], t[1], ... */
ATT_INLINE vf across(const bool maxima, const vf t[ATT_LANES])
{
    vf y[2 * ATT_LANES]; /* number LANES + i is made of numbers 2 i and 2 i + 1 */
    ATT_UNROLL (i, ATT_LANES)
        y[i] = t[i];
    v_transpose(y);
    ATT_UNROLL (i, ATT_LANES - 1)
        y[ATT_LANES + i] = maxima ? v_max(y[2 * i], y[2 * i + 1]) : v_add(y[2 * i], y[2 * i + 1]);
    return y[2 * ATT_LANES - 2];
}

/* Returns the largest |x| of each of n blocks, at least 0, or infinity if one of its numbers is not finite. */
ATT_INLINE vf largest(int n, const float *x)
{
    vf t[ATT_LANES];
    for (int b = 0; b < n; b++, x += BLOCK) {
        vf max = v_set(0), zero = v_set(0);
        ATT_UNROLL (i, BLOCK / ATT_LANES) {
            const vf y = v_load(x + i * ATT_LANES);
            max = v_max(v_abs(y), max);
            zero = v_fma(y, v_set(0), zero);
        }
        t[b] = v_select(v_is_nan(zero), v_set(INFINITY), max);
    }
    for (int b = n; b < ATT_LANES; b++)
        t[b] = v_set(0);
    return across(true, t);
}

/* Rounds n blocks times scale to words; those of a block of scale 0 are 0. Returns the sums of their numbers: exact, at
 * most 32 * 127. */
ATT_INLINE vf round_blocks(int n, const float *x, const float scale[ATT_LANES], float *words)
{
    vf t[ATT_LANES];
    for (int b = 0; b < n; b++, x += BLOCK, words += WORDS) {
        t[b] = v_set(0);
        if (!(scale[b] > 0)) {
            memset(words, 0, BLOCK);
            continue;
        }
        ATT_UNROLL (i, BLOCK / ATT_LANES) {
            const vf whole = v_round(v_mul(v_load(x + i * ATT_LANES), v_set(scale[b])));
            v_store_int8((int8_t *)words + i * ATT_LANES, whole);
            t[b] = v_add(t[b], whole);
        }
    }
    for (int b = n; b < ATT_LANES; b++)
        t[b] = v_set(0);
    return across(false, t);
}

static void quantize(int64_t k, const float *x, float *words, float *step, float *sum)
{
    for (int64_t left = k / BLOCK; left > 0; left -= ATT_LANES) {
        const int n = (int)att_min(left, ATT_LANES);
        const vf max = largest(n, x), zero = v_set(0), finite = v_select(v_lt(max, v_set(INFINITY)), max, zero);
        const vf scales = v_select(v_lt(finite, v_set(smallest)), zero, v_div(v_set(levels), max));
        float scale[ATT_LANES];
        v_store(scale, scales);
        /* Infinity times 0 is NaN. */
        v_store_n(step, v_select(v_lt(zero, scales), v_div(max, v_set(levels)), v_mul(max, zero)), n);
        v_store_n(sum, round_blocks(n, x, scale, words), n);
        x += n * BLOCK;
        words += n * WORDS;
        step += n;
        sum += n;
    }
}

/* ---- products */

/* Adds the products of words w and x to the words of sum. */
ATT_INLINE vf dot_words(const layout t, vf left, vf w, vf x, vf sum)
{
    return t.halves ? v_dot4_onto(w, x, sum) : v_signed4(left, w, x, sum);
}

/* Rows of A, from the blocks that a panel has. */
typedef struct tile_of_rows {
    const float *words, *step;
    int64_t words_stride, stride;
    float start[TILE][DEPTH]; /* of sums, as integers */
    float sum[TILE][DEPTH];   /* s sum(p), if the type has m */
} tile_of_rows;

/* Adds the product of rows and the panel to acc. */
ATT_INLINE void multiply(const int rows, const layout t, const tile_of_rows *a, const panel *p,
                         vf acc[TILE][ATT_PANEL_VECTORS])
{
    for (int64_t b = 0; b < p->blocks; b++) {
        const float *words = p->words + b * WORDS * PANEL, *d = p->d + b * PANEL, *m = p->m + b * PANEL;
        vf dot[TILE][ATT_PANEL_VECTORS];
        ATT_UNROLL (r, rows)
            ATT_UNROLL (v, ATT_PANEL_VECTORS)
                dot[r][v] = v_set(t.start ? a->start[r][b] : 0);
        for (int w = 0; w < WORDS; w++)
            ATT_UNROLL (v, ATT_PANEL_VECTORS) {
                const vf q = v_keep(v_load(words + w * PANEL + v * ATT_LANES)), left = v_signed4_left(q);
                ATT_UNROLL (r, rows)
                    dot[r][v] =
                        dot_words(t, left, q, v_keep(v_set(a->words[r * a->words_stride + b * WORDS + w])), dot[r][v]);
            }
        ATT_UNROLL (r, rows) {
            const vf s = v_set(a->step[r * a->stride + b]);
            ATT_UNROLL (v, ATT_PANEL_VECTORS) {
                acc[r][v] = v_fma_onto(v_from_whole(dot[r][v]), v_mul(s, v_load(d + v * ATT_LANES)), acc[r][v]);
                if (t.header > 2)
                    acc[r][v] = v_fma_onto(v_load(m + v * ATT_LANES), v_set(a->sum[r][b]), acc[r][v]);
            }
        }
    }
}

/* Computes rows [i, i + rows) of C by a panel, from block `from` on; columns from j on. */
ATT_INLINE void product_as(const int rows, const layout t, const att_quantized_args *g, int64_t i, int64_t j,
                           int64_t from, const panel *p)
{
    const int64_t blocks = g->k / BLOCK, used = att_min(PANEL, g->n - j);
    tile_of_rows a = {.words = g->words + i * blocks * WORDS + from * WORDS,
                      .step = g->step + i * blocks + from,
                      .words_stride = blocks * WORDS,
                      .stride = blocks};
    const float *sum = g->sum + i * blocks + from;
    for (int r = 0; r < rows; r++)
        for (int64_t b = 0; b < p->blocks; b += ATT_LANES) {
            const int n = (int)att_min(ATT_LANES, p->blocks - b);
            const vf whole = v_load_n(sum + r * blocks + b, n), s = v_load_n(a.step + r * blocks + b, n);
            if (t.start)
                v_store(a.start[r] + b, v_to_whole(v_mul(whole, v_set((float)t.start))));
            if (t.header > 2)
                v_store(a.sum[r] + b, v_mul(s, whole));
        }
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
    if (TILE > 4 && g->m - i >= 4) {
        product_as(4, t, g, i, j, from, p);
        i += 4;
    }
    if (g->m - i >= 2) {
        product_as(2, t, g, i, j, from, p);
        i += 2;
    }
    if (i < g->m)
        product_as(1, t, g, i, j, from, p);
}

/* ---- products with blocks as they are stored */

/* A row of A and its sums with ATT_LANES columns. */
typedef struct row {
    const float *words, *step, *sum;
    vf acc;
} row;

/* Adds the products of the row's next n <= GROUP blocks with those of c. */
ATT_INLINE void add_blocks(const int n, const layout t, const columns *c, row *a)
{
    vf x[HALVES], sum[ATT_LANES], y[GROUP];
    ATT_UNROLL (h, HALVES)
        x[h] = n == GROUP ? v_load(a->words + h * ATT_LANES) : v_load_n(a->words, WORDS);
    ATT_UNROLL (r, ATT_LANES) {
        sum[r] = v_set(0);
        ATT_UNROLL (h, HALVES) {
            const vf w = words_at(t, column(c, r) + t.header, h, (n - 1) * t.bytes);
            sum[r] = dot_words(t, v_signed4_left(w), w, x[h], sum[r]);
        }
    }
    v_sum_words(sum, y);
    ATT_UNROLL (k, n) {
        const vf s = v_set(a->step[k]), whole = v_from_whole(y[k]);
        vf d, m;
        load_scales(t, c, k * t.bytes, &d, &m);
        a->acc = v_fma(t.start ? v_add(whole, v_set((float)t.start * a->sum[k])) : whole, v_mul(s, d), a->acc);
        if (t.header > 2)
            a->acc = v_fma(m, v_mul(s, v_set(a->sum[k])), a->acc);
    }
    a->words += n * WORDS;
    a->step += n;
    a->sum += n;
}

/* Computes row i of C for `used` columns from j on. */
ATT_INLINE void row_as(const layout t, const att_quantized_args *g, int64_t i, int64_t j, int used)
{
    const int64_t blocks = g->k / BLOCK, depth = g->n - j < ATT_LANES ? DEPTH : blocks;
    const uint8_t *soon = columns_after(g, j, ATT_LANES);
    row a = {.words = g->words + i * blocks * WORDS,
             .step = g->step + i * blocks,
             .sum = g->sum + i * blocks,
             .acc = v_set(0)};
    for (int64_t b = 0, end; b < blocks; b = end) {
        columns_copy copy;
        end = att_min(b + depth, blocks);
        columns c = find_columns(t, g, j, b, end - b, copy);
        for (; b + GROUP <= end; b += GROUP, next_block(&c, GROUP * t.bytes)) {
            prefetch_part(t, soon, b, GROUP);
            add_blocks(GROUP, t, &c, &a);
        }
        if (b < end) {
            prefetch_part(t, soon, b, 1);
            add_blocks(1, t, &c, &a);
        }
    }
    v_store_n(g->c + i * g->ldc + j, a.acc, used);
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
            unpack(t, g, q * PANEL, from, &p);
            product_rows(t, g, q * PANEL, from, &p);
        }
}

ATT_INLINE void run_as(const layout t, const att_quantized_args *g)
{
    if (g->m <= ATT_QUANTIZED_SMALL)
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
