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
 * with such an fma. If each 16 numbers have integers sc and mn of their own, w = d sc q + m mn, p . q is the sum of
 * both sc (p . q) and sum(p) that of both mn sum(p), which are exact, too: below 2^24.
 *
 * Four integers of a byte are one 32-bit word, and words are loaded as floats are (tile.h). Some blocks of a panel of
 * columns at a time are unpacked to words [words][PANEL], with which all rows are multiplied (quantized_blocks.h). A
 * few rows are multiplied with the blocks as they are stored, if the type is a common one. */
// also: avx512bf16
#include "kernel/quantized_blocks.h"

enum { TILE = ATT_LANES < 16 ? 4 : 6 }; /* rows of a register tile */

/* Adds the products of words w and x to the words of sum. */
ATT_INLINE vf dot_words(const sums of, vf left, vf w, vf x, vf sum)
{
    return of == SIGNED ? v_signed4(left, w, x, sum) : v_dot4_onto(w, x, sum);
}

/* ---- products */

/* Rows of A, from the blocks that a panel has. */
typedef struct tile_of_rows {
    const float *words, *step;
    int64_t words_stride, stride;
    float start[TILE][DEPTH], second_start[TILE][DEPTH]; /* of sums, as integers; of SIXTEENS those of both halves */
    float sum[TILE][DEPTH]; /* s sum(p), if the type has m; of SIXTEENS sum(p) of the first */
    float second_sum[TILE][DEPTH];
} tile_of_rows;

/* Which words of a block a sum has */
typedef enum part { WHOLE, FIRST_HALF, SECOND_HALF } part;

/* Sets dot to its start and adds the products of words of block b. */
ATT_INLINE void dot_block(const int rows, const sums of, const part which, const tile_of_rows *a, int64_t b,
                          const panel *p, vf dot[TILE][ATT_PANEL_VECTORS])
{
    const int first = which == SECOND_HALF ? WORDS / 2 : 0, end = which == FIRST_HALF ? WORDS / 2 : WORDS;
    const float *words = p->words + b * WORDS * PANEL;
    ATT_UNROLL (r, rows) {
        const float start = which == SECOND_HALF ? a->second_start[r][b] : a->start[r][b];
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            dot[r][v] = v_set(of != SIGNED || SIGNED_START != 0 ? start : 0);
    }
    for (int w = first; w < end; w++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            const vf q = v_keep(v_load(words + w * PANEL + v * ATT_LANES)), left = v_signed4_left(q);
            ATT_UNROLL (r, rows)
                dot[r][v] =
                    dot_words(of, left, q, v_keep(v_set(a->words[r * a->words_stride + b * WORDS + w])), dot[r][v]);
        }
}

/* Adds the product of rows and the panel to acc. */
ATT_INLINE void multiply(const int rows, const sums of, bool has_m, const tile_of_rows *a, const panel *p,
                         vf acc[TILE][ATT_PANEL_VECTORS])
{
    for (int64_t b = 0; b < p->blocks; b++) {
        const float *d = p->d + b * PANEL, *m = p->m + b * PANEL;
        vf dot[TILE][ATT_PANEL_VECTORS];
        dot_block(rows, of, WHOLE, a, b, p, dot);
        ATT_UNROLL (r, rows) {
            const vf s = v_set(a->step[r * a->stride + b]);
            ATT_UNROLL (v, ATT_PANEL_VECTORS)
                acc[r][v] = v_fma_onto(v_from_whole(dot[r][v]), v_mul(s, v_load(d + v * ATT_LANES)), acc[r][v]);
        }
        if (has_m)
            ATT_UNROLL (r, rows)
                ATT_UNROLL (v, ATT_PANEL_VECTORS)
                    acc[r][v] = v_fma_onto(v_load(m + v * ATT_LANES), v_set(a->sum[r][b]), acc[r][v]);
    }
}

/* Returns first sc[0] + second sc[1], for vector v of block b of a panel: integers below 2^24. */
ATT_INLINE vf scale_halves(vf first, vf second, const float *sc, int64_t b, int v)
{
    const float *at = sc + 2 * b * PANEL + v * ATT_LANES;
    return v_fma(first, v_load(at), v_mul(second, v_load(at + PANEL)));
}

/* Adds the product of rows and a panel of SIXTEENS to acc. */
ATT_INLINE void multiply_sixteens(const int rows, bool has_m, const tile_of_rows *a, const panel *p,
                                  vf acc[TILE][ATT_PANEL_VECTORS])
{
    for (int64_t b = 0; b < p->blocks; b++) {
        vf first[TILE][ATT_PANEL_VECTORS], second[TILE][ATT_PANEL_VECTORS];
        dot_block(rows, SIXTEENS, FIRST_HALF, a, b, p, first);
        dot_block(rows, SIXTEENS, SECOND_HALF, a, b, p, second);
        ATT_UNROLL (r, rows) {
            const vf s = v_set(a->step[r * a->stride + b]);
            ATT_UNROLL (v, ATT_PANEL_VECTORS) {
                const int64_t at = b * PANEL + v * ATT_LANES;
                const vf dot = scale_halves(v_from_whole(first[r][v]), v_from_whole(second[r][v]), p->sc, b, v);
                acc[r][v] = v_fma(dot, v_mul(s, v_load(p->d + at)), acc[r][v]);
                if (has_m) {
                    const vf sum = scale_halves(v_set(a->sum[r][b]), v_set(a->second_sum[r][b]), p->mn, b, v);
                    acc[r][v] = v_fma(v_load(p->m + at), v_mul(s, sum), acc[r][v]);
                }
            }
        }
    }
}

/* Sets what sums begin with, and the sums of rows, for each block of the panel. */
ATT_INLINE void begin_rows(const int rows, const sums of, const layout *t, const att_quantized_args *g, int64_t at,
                           int64_t n_blocks, tile_of_rows *a)
{
    const vf start = v_set((float)t->start);
    for (int r = 0; r < rows; r++)
        for (int64_t b = 0; b < n_blocks; b += ATT_LANES) {
            const int n = (int)att_min(ATT_LANES, n_blocks - b);
            const int64_t i = at + r * a->stride + b;
            const vf whole = v_load_n(g->sum + i, n), s = v_load_n(g->step + i, n);
            const vf half = of == SIXTEENS ? v_load_n(g->half + i, n) : whole, rest = v_sub(whole, half);
            v_store(a->start[r] + b, v_to_whole(v_mul(half, start)));
            v_store(a->sum[r] + b, of == SIXTEENS ? half : v_mul(s, whole));
            if (of == SIXTEENS) {
                v_store(a->second_start[r] + b, v_to_whole(v_mul(rest, start)));
                v_store(a->second_sum[r] + b, rest);
            }
        }
}

/* Computes rows [i, i + rows) of C by a panel, from block `from` on; columns from j on. */
ATT_INLINE void product_as(const int rows, const sums of, const layout *t, const att_quantized_args *g, int64_t i,
                           int64_t j, int64_t from, const panel *p)
{
    const int64_t blocks = g->k / BLOCK, used = att_min(PANEL, g->n - j), at = i * blocks + from;
    tile_of_rows a = {
        .words = g->words + at * WORDS, .step = g->step + at, .words_stride = blocks * WORDS, .stride = blocks};
    begin_rows(rows, of, t, g, at, p->blocks, &a);
    float *c = g->c + i * g->ldc + j;
    vf acc[TILE][ATT_PANEL_VECTORS];
    ATT_UNROLL (r, rows)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            acc[r][v] = from > 0 ? v_load_n(c + r * g->ldc + v * ATT_LANES, lanes_of(used, v)) : v_set(0);
    if (of == SIXTEENS)
        multiply_sixteens(rows, t->has_m, &a, p, acc);
    else
        multiply(rows, of, of == UNSIGNED && t->has_m, &a, p, acc);
    ATT_UNROLL (r, rows)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            v_store_n(c + r * g->ldc + v * ATT_LANES, acc[r][v], lanes_of(used, v));
}

ATT_INLINE void product_rows(const sums of, const layout *t, const att_quantized_args *g, int64_t j, int64_t from,
                             const panel *p)
{
    const int tile = of == SIXTEENS ? TILE / 2 : TILE; /* which has twice as many sums */
    int64_t i = 0;
    for (; i + tile <= g->m; i += tile)
        product_as(tile, of, t, g, i, j, from, p);
    if (tile > 4 && g->m - i >= 4) {
        product_as(4, of, t, g, i, j, from, p);
        i += 4;
    }
#ifndef ATT_BRIEF
    if (tile > 3 && g->m - i >= 2) {
        product_as(2, of, t, g, i, j, from, p);
        i += 2;
    }
#endif
    for (; i < g->m; i++)
        product_as(1, of, t, g, i, j, from, p);
}

/* Types share these products. */
typedef void product_fn(const layout *t, const att_quantized_args *g, int64_t j, int64_t from, const panel *p);
SHARED void signed_product(const layout *t, const att_quantized_args *g, int64_t j, int64_t from, const panel *p)
{
    product_rows(SIGNED, t, g, j, from, p);
}
SHARED void unsigned_product(const layout *t, const att_quantized_args *g, int64_t j, int64_t from, const panel *p)
{
    product_rows(UNSIGNED, t, g, j, from, p);
}
SHARED void sixteens_product(const layout *t, const att_quantized_args *g, int64_t j, int64_t from, const panel *p)
{
    product_rows(SIXTEENS, t, g, j, from, p);
}
static product_fn *const products[] = {
    [SIGNED] = signed_product, [UNSIGNED] = unsigned_product, [SIXTEENS] = sixteens_product};

static void panels(const layout t, const att_quantized_args *g)
{
    const int64_t stored = g->k / BLOCK / t.blocks, parts = att_max(1, att_ceil_div(stored * t.blocks, DEPTH));
    panel p;
    for (int64_t q = g->first; q < g->last; q++)
        for (int64_t part = 0; part < parts; part++) {
            const int64_t from = stored * part / parts * t.blocks;
            p.blocks = stored * (part + 1) / parts * t.blocks - from;
            unpack(t, g, q * PANEL, from, &p);
            products[t.sums](&layouts[t.type], g, q * PANEL, from, &p);
        }
}

#ifndef ATT_BRIEF
/* ---- products with blocks as they are stored */

/* A row of A and its sums with ATT_LANES columns. */
typedef struct row {
    const float *words, *step, *sum;
    vf acc;
} row;

/* Computes the sums of products of n <= GROUP blocks of c, from its block k on, with words x -> y: without the start.
 */
ATT_INLINE void dot_stored(const int n, const layout t, const columns *c, int k, const vf x[HALVES], vf y[GROUP])
{
    vf sum[ATT_LANES];
    ATT_UNROLL (r, ATT_LANES) {
        sum[r] = v_set(0);
        ATT_UNROLL (h, HALVES) {
            const vf w = words_at(t.type, column(c, r), k, h, n < GROUP ? 0 : t.bytes);
            sum[r] = dot_words(t.sums, v_signed4_left(w), w, x[h], sum[r]);
        }
    }
    v_sum_words(sum, y);
}

/* Computes these sums for each 16 numbers -> y, with the start. */
ATT_INLINE void dot_sixteens(const layout t, const columns *c, int k, const vf x[HALVES], vf y[2 * GROUP])
{
    enum { WORDS_OF_16 = 4, OF_VECTOR = ATT_LANES / WORDS_OF_16 };
    ATT_UNROLL (h, HALVES) {
        const vf total = v_dot4((vf)all(0x01010101), x[h], v_set(0)), start = (vf)((bits)total * (uint32_t)t.start);
        vf sum[ATT_LANES];
        ATT_UNROLL (r, ATT_LANES)
            sum[r] = v_dot4_onto(words_at(t.type, column(c, r), k, h, 0), x[h], start);
        v_transpose(sum);
        ATT_UNROLL (i, OF_VECTOR) {
            const vf *four = sum + i * WORDS_OF_16;
            y[h * OF_VECTOR + i] = v_add_whole(v_add_whole(four[0], four[1]), v_add_whole(four[2], four[3]));
        }
    }
}

/* Adds the products y of n blocks, from block k of c on, to the row's sums, and moves the row past them. */
ATT_INLINE void add_products(const int n, const layout t, int k, const scales *of, const vf *y, row *a)
{
    ATT_UNROLL (i, n) {
        const vf s = v_set(a->step[i]), sum = v_set(a->sum[i]);
        const vf *sc = of->sc + 2 * (k + i);
        if (t.sums == SIXTEENS) {
            const vf dot = v_fma(v_from_whole(y[2 * i]), sc[0], v_mul(v_from_whole(y[2 * i + 1]), sc[1]));
            a->acc = v_fma(dot, v_mul(s, of->d[0]), a->acc);
        } else {
            const vf dot = t.start ? v_add(v_from_whole(y[i]), v_mul(v_set((float)t.start), sum)) : v_from_whole(y[i]);
            a->acc = v_fma(dot, v_mul(s, of->d[k + i]), a->acc);
            if (t.has_m)
                a->acc = v_fma(of->m[k + i], v_mul(s, sum), a->acc);
        }
    }
    a->words += n * WORDS;
    a->step += n;
    a->sum += n;
}

/* Adds the products of the row's next n <= GROUP blocks with those of c, from its block k on. */
ATT_INLINE void add_group(const int n, const layout t, const columns *c, int k, const scales *of, row *a)
{
    vf x[HALVES], y[2 * GROUP];
    ATT_UNROLL (h, HALVES)
        x[h] = v_load(a->words + h * ATT_LANES);
    if (t.sums == SIXTEENS)
        dot_sixteens(t, c, k, x, y);
    else
        dot_stored(n, t, c, k, x, y);
    add_products(n, t, k, of, y, a);
}

/* Adds the products of the row's last block if it is half of a vector; one copy of it for all types. */
SHARED void add_last(const layout t, const columns *c, row *a)
{
    vf w[ATT_LANES], y[2 * GROUP];
    const vf x = v_load_n(a->words, WORDS);
    scales s;
    load_scales(1, t, c, &s);
    load_columns(t.type, c, 0, 0, 0, w);
    ATT_UNROLL (r, ATT_LANES)
        w[r] = t.sums == SIGNED ? v_signed4(v_signed4_left(w[r]), w[r], x, v_set(0)) : v_dot4(w[r], x, v_set(0));
    v_sum_words(w, y);
    add_products(1, t, 0, &s, y, a);
}

/* Adds the products of the row's next n blocks with those of c, which are at most GROUP stored ones or one. */
ATT_INLINE void add_blocks(const int n, const layout t, const columns *c, row *a)
{
    scales s;
    load_scales(n, t, c, &s);
    for (int k = 0; k < n; k += GROUP)
        add_group(n < GROUP ? n : GROUP, t, c, k, &s, a);
}

/* Computes row i of C for `used` columns from j on. */
ATT_INLINE void row_as(const layout t, const att_quantized_args *g, int64_t i, int64_t j, int used)
{
    const int64_t blocks = g->k / BLOCK, depth = g->n - j < ATT_LANES ? DEPTH : blocks;
    const int step = t.blocks > 1 ? t.blocks : GROUP;
    const uint8_t *soon = columns_after(g, j, ATT_LANES);
    row a = {.words = g->words + i * blocks * WORDS,
             .step = g->step + i * blocks,
             .sum = g->sum + i * blocks,
             .acc = v_set(0)};
    for (int64_t b = 0, end; b < blocks; b = end) {
        columns_copy copy;
        end = att_min(b + depth, blocks);
        columns c = find_columns(t, g, j, b, end - b, copy);
        for (; b + step <= end; b += step, next_block(&c, step / t.blocks * t.bytes)) {
            prefetch_part(t, soon, b, step);
            add_blocks(step, t, &c, &a);
        }
        if (GROUP > 1 && t.blocks == 1 && b < end) {
            prefetch_part(t, soon, b, 1);
            add_last(t, &c, &a);
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

/* Common types have products with blocks as they are stored. */
static bool run_direct(const att_quantized_args *g)
{
    switch ((att_dtype)g->type) {
    case ATT_Q8_0:
        direct_rows(layouts[ATT_Q8_0], g);
        return true;
    case ATT_Q4_0:
        direct_rows(layouts[ATT_Q4_0], g);
        return true;
    case ATT_Q4_1:
        direct_rows(layouts[ATT_Q4_1], g);
        return true;
    case ATT_Q5_0:
        direct_rows(layouts[ATT_Q5_0], g);
        return true;
    case ATT_Q4_K:
        direct_rows(layouts[ATT_Q4_K], g);
        return true;
    case ATT_Q5_K:
        direct_rows(layouts[ATT_Q5_K], g);
        return true;
    case ATT_Q6_K:
        direct_rows(layouts[ATT_Q6_K], g);
        return true;
    default:
        return false;
    }
}
#endif

static void run(const att_quantized_args *g)
{
#ifndef ATT_BRIEF
    if (g->m <= ATT_QUANTIZED_SMALL && run_direct(g))
        return;
#endif
    panels(layouts[g->type], g);
}

void ATTEND_ISA(att_kernel_quantized)(att_kernels *k);
void ATTEND_ISA(att_kernel_quantized)(att_kernels *k) { k->quantized.run = run; }
