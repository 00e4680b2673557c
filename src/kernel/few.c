/* Attention of a few queries, which is as fast as memory gives keys and values: a decoded token against a cache.
 *
 * A panel would be almost empty, so here lanes are keys while scores are made, and numbers of a value while they are
 * weighted. Every score, weight, sum and output is the same chain of operations as in attention.c: the same bits.
 * Scores lie in rows, s [queries][keys]. Keys and values are f32, f16 or bf16; keys are rows, or packed in panels,
 * [ceil(keys / PANEL)][dim][PANEL].
 *
 * Memory must never be idle. So what is read next is prefetched at the rate at which memory is read: values while keys
 * are, the next keys while values are. */
#include "attend.h"
#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <float.h>
#include <string.h>

enum {
    QUERIES = 4,             /* whose scores are made together */
    PAIR = 2,                /* or one, whose o is in registers while values are weighted: */
    WIDE = ROWS > 6 ? 8 : 4, /* vectors of it */
    MOST = 8,                /* queries whose scores are softened together */
    KEYS = 4,                /* that QUERIES weight together, or, of values that are read once: */
    KEYS_ONCE = 2,           /* as processors foresee few streams */
    PIECE = 8192,            /* bytes of values that stay in the first-level cache for all queries and columns */
    LINE = ATT_CACHE_LINE,
    CHUNK = 128 /* numbers of rows of another type, of PANEL keys, that are converted together */
};

/* n numbers, at most a vector of them; 0 behind. */
ATT_INLINE vf load(const float *x, int n) { return n == ATT_LANES ? v_load(x) : v_load_n(x, n); }

/* What is not f32 is converted piece by piece, into memory that stays in the first-level cache. */
static int64_t bytes_of(int type, int64_t n) { return n * (type == ATT_F32 ? 4 : 2); }
ATT_INLINE void convert_as(const int type, int64_t n, const uint16_t *x, att_prefetch *next, float *y)
{
    att_prefetch_lines lines = att_prefetch_take(next, n * (int64_t)sizeof *x / LINE);
    int64_t i = 0;
    for (; i + 2 * ATT_LANES <= n; i += 2 * ATT_LANES) {
        if (i * (int64_t)sizeof *x % LINE == 0)
            att_prefetch_some(&lines, 1);
        v_store(y + i, type == ATT_F16 ? v_from_f16(x + i) : v_from_bf16(x + i));
        v_store(y + i + ATT_LANES, type == ATT_F16 ? v_from_f16(x + i + ATT_LANES) : v_from_bf16(x + i + ATT_LANES));
    }
    for (; i < n; i += ATT_LANES) {
        uint16_t rest[ATT_LANES] = {0};
        const int count = n - i < ATT_LANES ? (int)(n - i) : ATT_LANES;
        memcpy(rest, x + i, (size_t)count * sizeof *x);
        v_store_n(y + i, type == ATT_F16 ? v_from_f16(rest) : v_from_bf16(rest), count);
    }
}
/* rows [rows, n] of x, a stride apart, to y [rows][y_stride] */
static void convert(int type, int64_t rows, int64_t n, const void *x, int64_t stride, att_prefetch *next, float *y,
                    int64_t y_stride)
{
    if (stride == n && y_stride == n) {
        n *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++)
        if (type == ATT_F16)
            convert_as(ATT_F16, n, (const uint16_t *)x + i * stride, next, y + i * y_stride);
        else
            convert_as(ATT_BF16, n, (const uint16_t *)x + i * stride, next, y + i * y_stride);
}

/* ---- scores */

/* A vector of keys, [rows, dim], by n queries: squares of keys are turned on the way. n is a constant where this is
 * inlined. more: s has the sums of earlier numbers. */
ATT_INLINE void score_rows(const int n, bool more, int rows, int64_t dim, const float *k, int64_t stride,
                           att_prefetch *next, const float *q, int64_t q_stride, float *s, int64_t s_stride)
{
    vf acc[QUERIES];
    float square[ATT_LANES * ATT_LANES]; /* where rows or columns are missing */
    att_prefetch_lines lines = att_prefetch_take(next, ATT_LANES * dim * (int64_t)sizeof *k / LINE);
    ATT_UNROLL (i, n)
        acc[i] = more ? v_load(s + i * s_stride) : v_set(0);
    for (int64_t d = 0; d < dim; d += ATT_LANES) {
        const int columns = dim - d < ATT_LANES ? (int)(dim - d) : ATT_LANES;
        const bool whole = rows == ATT_LANES && columns == ATT_LANES;
        const float *from = whole ? k + d : square;
        const int64_t step = whole ? stride : ATT_LANES;
        vf x[ATT_LANES];
        for (int r = 0; !whole && r < ATT_LANES; r++)
            v_store(square + r * ATT_LANES, r < rows ? load(k + r * stride + d, columns) : v_set(0));
        ATT_UNROLL (r, ATT_LANES) {
            x[r] = v_load(from + r * step);
            if ((r + 1) * ATT_LANES * (int)sizeof *k % (4 * LINE) == 0)
                att_prefetch_some(&lines, 4);
        }
        v_transpose(x);
        ATT_UNROLL (c, ATT_LANES)
            ATT_UNROLL (i, n)
                if (c < columns)
                    acc[i] = v_fma(x[c], v_set(q[i * q_stride + d + c]), acc[i]);
    }
    ATT_UNROLL (i, n)
        v_store(s + i * s_stride, acc[i]);
}

/* A panel of keys by n queries. */
ATT_INLINE void score_panel(const int n, bool more, int64_t dim, const float *k, att_prefetch *next, const float *q,
                            int64_t q_stride, float *s, int64_t s_stride)
{
    enum { PANEL_LINES = PANEL * sizeof *k / LINE };
    att_prefetch_lines lines = att_prefetch_take(next, dim * PANEL_LINES);
    vf acc[QUERIES][ATT_PANEL_VECTORS];
    ATT_UNROLL (i, n)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            acc[i][v] = more ? v_load(s + i * s_stride + v * ATT_LANES) : v_set(0);
    for (int64_t d = 0; d < dim; d++) {
        vf x[ATT_PANEL_VECTORS];
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            x[v] = v_keep(v_load(k + d * PANEL + v * ATT_LANES));
        att_prefetch_some(&lines, PANEL_LINES);
        ATT_UNROLL (i, n) {
            const vf y = v_set(q[i * q_stride + d]);
            ATT_UNROLL (v, ATT_PANEL_VECTORS)
                acc[i][v] = v_fma(x[v], y, acc[i][v]);
        }
    }
    ATT_UNROLL (i, n)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            v_store(s + i * s_stride + v * ATT_LANES, acc[i][v]);
}

/* A panel of keys, packed or `rows` of them a stride apart, by n queries. */
ATT_INLINE void score_queries(const int n, bool packed, bool more, int rows, int64_t dim, const float *k,
                              int64_t stride, att_prefetch *next, const float *q, int64_t q_stride, float *s,
                              int64_t s_stride)
{
    if (packed)
        score_panel(n, more, dim, k, next, q, q_stride, s, s_stride);
    else
        for (int j = 0; j < rows; j += ATT_LANES)
            score_rows(n, more, rows - j < ATT_LANES ? rows - j : ATT_LANES, dim, k + j * stride, stride, next, q,
                       q_stride, s + j, s_stride);
}

static void score_floats(int n, bool packed, bool more, int rows, int64_t dim, const float *k, int64_t stride,
                         att_prefetch *next, const float *q, int64_t q_stride, float *s, int64_t s_stride)
{
    for (; n >= QUERIES; n -= QUERIES, q += QUERIES * q_stride, s += QUERIES * s_stride)
        score_queries(QUERIES, packed, more, rows, dim, k, stride, next, q, q_stride, s, s_stride);
    if (n == 3)
        score_queries(3, packed, more, rows, dim, k, stride, next, q, q_stride, s, s_stride);
    else if (n == 2)
        score_queries(2, packed, more, rows, dim, k, stride, next, q, q_stride, s, s_stride);
    else if (n == 1)
        score_queries(1, packed, more, rows, dim, k, stride, next, q, q_stride, s, s_stride);
}

/* s [n][keys] = q [n, dim] k^T, written to a whole panel; k [keys, dim], or packed and stride is not used. */
static void few_scores(int type, int n, bool packed, int64_t keys, int64_t dim, const void *k, int64_t stride,
                       const float *q, int64_t q_stride, float *s, int64_t s_stride, att_prefetch *next)
{
    float piece[PANEL * CHUNK];
    const bool floats = type == ATT_F32;
    for (int64_t j = 0; j < keys; j += PANEL) {
        const int rows = keys - j < PANEL ? (int)(keys - j) : PANEL;
        const char *from = (const char *)k + bytes_of(type, j * (packed ? dim : stride));
        if (floats)
            score_floats(n, packed, false, rows, dim, (const float *)(const void *)from, stride, next, q, q_stride,
                         s + j, s_stride);
        for (int64_t d = 0; !floats && d < dim; d += CHUNK) {
            const int64_t numbers = dim - d < CHUNK ? dim - d : CHUNK;
            if (packed)
                convert(type, numbers, PANEL, from + bytes_of(type, d * PANEL), PANEL, next, piece, PANEL);
            else
                convert(type, rows, numbers, from + bytes_of(type, d), stride, next, piece, CHUNK);
            score_floats(n, packed, d > 0, rows, numbers, piece, CHUNK, NULL, q + d, q_stride, s + j, s_stride);
        }
    }
}

/* ---- softmax */

static float first_lane(vf x)
{
    float y[ATT_LANES];
    v_store(y, x);
    return y[0];
}

/* soften of attention.c for one query, whose scores are a row, but for their sum. */
static void soften_row(int n_runs, const att_range *run, float *s, float *max, vf *factor)
{
    const vf log2e = v_set((float)ATT_LOG2_E), nothing = v_set(-__builtin_inff()), before = v_set(*max);
    const unsigned flushed = v_flush_begin();
    vf top = nothing;
    for (int r = 0; r < n_runs; r++)
        for (int64_t k = run[r].first; k < run[r].last; k += ATT_LANES) {
            const int64_t left = run[r].last - k;
            const vf x = v_load(s + k);
            top = v_max(left < ATT_LANES ? v_select(v_first((int)left), x, nothing) : x, top);
        }
    *max = v_top(v_max(v_mul(top, log2e), before));
    const vf base = v_set(*max < -FLT_MAX ? 0 : *max);
    *factor = v_exp2(v_sub(before, base));
    for (int r = 0; r < n_runs; r++)
        for (int64_t k = run[r].first; k < run[r].last; k += ATT_LANES) {
            const vf p = v_exp2(v_fma(v_load(s + k), log2e, v_sub(v_set(0), base)));
            if (run[r].last - k < ATT_LANES)
                v_store_n(s + k, p, (int)(run[r].last - k));
            else
                v_store(s + k, p);
        }
    v_flush_end(flushed);
}

/* total [n]: chains of single numbers, which go side by side. */
ATT_INLINE void sum_rows(const int n, int n_runs, const att_range *run, const float *s, int64_t stride, float *total)
{
    float sum[MOST] = {0};
    for (int r = 0; r < n_runs; r++)
        for (int64_t k = run[r].first; k < run[r].last; k++)
            ATT_UNROLL (i, n)
                sum[i] += s[i * stride + k];
    ATT_UNROLL (i, n)
        total[i] = sum[i];
}

/* Scores s [n][keys] to weights, with the running maximum and sum of each row; rescale [n] is what everything from
 * earlier blocks must be multiplied with. */
static void few_soften(int n, int n_runs, const att_range *run, float *s, int64_t stride, float *max, float *sum,
                       float *rescale)
{
    for (int done = 0, some; done < n; done += some) {
        float total[MOST], *rows = s + done * stride;
        vf factor[MOST];
        some = n - done < MOST ? n - done : MOST;
        for (int i = 0; i < some; i++)
            soften_row(n_runs, run, rows + i * stride, max + done + i, &factor[i]);
        int i = 0;
        for (; i + MOST <= some; i += MOST)
            sum_rows(MOST, n_runs, run, rows + i * stride, stride, total + i);
        for (; i + QUERIES <= some; i += QUERIES)
            sum_rows(QUERIES, n_runs, run, rows + i * stride, stride, total + i);
        for (; i < some; i++)
            sum_rows(1, n_runs, run, rows + i * stride, stride, total + i);
        for (i = 0; i < some; i++) {
            sum[done + i] = first_lane(v_fma(v_set(sum[done + i]), factor[i], v_set(total[i])));
            rescale[done + i] = first_lane(factor[i]);
        }
    }
}

/* ---- weighted values */

/* Keys [first, last): n queries by some vectors of the values, or by one vector of `columns` numbers. */
ATT_INLINE void weigh_tile(const int n, const int vectors, int columns, att_prefetch *next, int64_t first, int64_t last,
                           const float *v, int64_t stride, const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    const int64_t each = (vectors * ATT_LANES * (int)sizeof *v + LINE - 1) / LINE;
    att_prefetch_lines lines = att_prefetch_take(next, (last - first) * each);
    vf acc[PAIR][WIDE];
    ATT_UNROLL (i, n)
        ATT_UNROLL (c, vectors)
            acc[i][c] = v_load(o + i * o_stride + c * ATT_LANES);
    for (int64_t k = first; k < last; k++) {
        const float *row = v + k * stride;
        vf x[WIDE];
        ATT_UNROLL (c, vectors)
            x[c] = v_keep(load(row + c * ATT_LANES, columns));
        att_prefetch_some(&lines, each);
        ATT_UNROLL (i, n) {
            const vf y = v_set(p[i * p_stride + k]);
            ATT_UNROLL (c, vectors)
                acc[i][c] = v_fma(x[c], y, acc[i][c]);
        }
    }
    ATT_UNROLL (i, n)
        ATT_UNROLL (c, vectors)
            v_store(o + i * o_stride + c * ATT_LANES, acc[i][c]);
}

/* QUERIES over whole values: what is in registers are the weights of some keys. So values are read once, as they lie,
 * which processors foresee; o stays in the first-level cache. */
ATT_INLINE void weigh_keys(const int keys, att_prefetch *next, int64_t first, int64_t last, int64_t dim, const float *v,
                           int64_t stride, const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    const int64_t each = (keys * ATT_LANES * (int)sizeof *v + LINE - 1) / LINE;
    att_prefetch_lines lines = att_prefetch_take(next, (last - first) * dim * (int64_t)sizeof *v / LINE);
    for (int64_t k = first; k < last; k += keys) {
        vf y[QUERIES][KEYS];
        ATT_UNROLL (i, QUERIES)
            ATT_UNROLL (j, keys)
                y[i][j] = v_set(p[i * p_stride + k + j]);
        for (int64_t d = 0; d < dim; d += ATT_LANES) {
            const int columns = dim - d < ATT_LANES ? (int)(dim - d) : ATT_LANES;
            vf x[KEYS];
            ATT_UNROLL (j, keys)
                x[j] = load(v + (k + j) * stride + d, columns);
            att_prefetch_some(&lines, each);
            ATT_UNROLL (i, QUERIES) {
                float *to = o + i * o_stride + d;
                vf acc = v_load(to);
                ATT_UNROLL (j, keys)
                    acc = v_fma(x[j], y[i][j], acc);
                v_store(to, acc);
            }
        }
    }
}

ATT_INLINE void weigh_queries(const int n, att_prefetch *next, int64_t first, int64_t last, int64_t dim, const float *v,
                              int64_t stride, const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    const int wide = WIDE * ATT_LANES, half = WIDE / 2 * ATT_LANES;
    int64_t d = 0;
    for (; d + wide <= dim; d += wide)
        weigh_tile(n, WIDE, ATT_LANES, next, first, last, v + d, stride, p, p_stride, o + d, o_stride);
    for (; d + half <= dim; d += half)
        weigh_tile(n, WIDE / 2, ATT_LANES, next, first, last, v + d, stride, p, p_stride, o + d, o_stride);
    for (; d < dim; d += ATT_LANES)
        weigh_tile(n, 1, dim - d < ATT_LANES ? (int)(dim - d) : ATT_LANES, next, first, last, v + d, stride, p,
                   p_stride, o + d, o_stride);
}

/* How often n queries go over a row. */
static int64_t passes_for(int64_t n, int64_t dim)
{
    const int64_t wide = WIDE * ATT_LANES, half = WIDE / 2 * ATT_LANES, rest = dim % wide;
    const int64_t narrow = dim / wide + rest / half + (rest % half + ATT_LANES - 1) / ATT_LANES;
    return n / QUERIES + (n % QUERIES / PAIR + n % PAIR) * narrow;
}

/* Keys [first, last) by all queries. once: nobody has read these values before, nor will again. */
static void weigh_floats(int n, bool once, att_prefetch *next, int64_t first, int64_t last, int64_t dim, const float *v,
                         int64_t stride, const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    const int64_t some = once ? KEYS_ONCE : KEYS, whole = first + (last - first) / some * some;
    for (; n >= QUERIES; n -= QUERIES, p += QUERIES * p_stride, o += QUERIES * o_stride) {
        if (once)
            weigh_keys(KEYS_ONCE, next, first, whole, dim, v, stride, p, p_stride, o, o_stride);
        else
            weigh_keys(KEYS, next, first, whole, dim, v, stride, p, p_stride, o, o_stride);
        weigh_keys(1, next, whole, last, dim, v, stride, p, p_stride, o, o_stride);
    }
    for (; n >= PAIR; n -= PAIR, p += PAIR * p_stride, o += PAIR * o_stride)
        weigh_queries(PAIR, next, first, last, dim, v, stride, p, p_stride, o, o_stride);
    if (n)
        weigh_queries(1, next, first, last, dim, v, stride, p, p_stride, o, o_stride);
}

/* Keys [first, last) of another type. */
static void weigh_short(int type, int n, att_prefetch *next, int64_t first, int64_t last, int64_t dim, const void *v,
                        int64_t stride, const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    float piece[PANEL * CHUNK];
    for (int64_t d = 0; d < dim; d += CHUNK) {
        const int64_t numbers = dim - d < CHUNK ? dim - d : CHUNK;
        convert(type, last - first, numbers, (const char *)v + bytes_of(type, first * stride + d), stride, next, piece,
                CHUNK);
        weigh_floats(n, false, NULL, 0, last - first, numbers, piece, CHUNK, p + first, p_stride, o + d, o_stride);
    }
}

/* o [n, dim] = rescale o + p [n][keys] v [keys, dim], over the runs of keys; rescale NULL: o starts at 0. Rows of o are
 * written to a whole vector. */
static void few_weigh(int type, int n, int n_runs, const att_range *run, int64_t dim, const void *v, int64_t stride,
                      const float *p, int64_t p_stride, const float *rescale, float *o, int64_t o_stride,
                      att_prefetch *next)
{
    const bool floats = type == ATT_F32;
    const int64_t row = bytes_of(type, dim), begin = n_runs ? run[0].first : 0, end = n_runs ? run[n_runs - 1].last : 0;
    const int64_t passes = passes_for(n, dim);
    const int64_t some = !floats ? PANEL : passes == 1 ? end - begin : (PIECE / row / KEYS + 1) * KEYS;
    for (int i = 0; i < n; i++)
        for (int64_t d = 0; d < dim; d += ATT_LANES) {
            float *x = o + i * o_stride + d;
            v_store(x, rescale ? v_mul(v_load(x), v_set(rescale[i])) : v_set(0));
        }
    for (int r = 0; r < n_runs; r++)
        for (int64_t k = run[r].first, last; k < run[r].last; k = last) {
            last = run[r].last - k < some ? run[r].last : k + some;
            if (floats)
                weigh_floats(n, passes == 1, next, k, last, dim, v, stride, p, p_stride, o, o_stride);
            else
                weigh_short(type, n, next, k, last, dim, v, stride, p, p_stride, o, o_stride);
        }
}

/* ---- partial results */

/* merge of attention.c for one query: adds the second partial result, maximum, sum and o [dim], to the first. */
static void few_merge(int64_t dim, float *max, float *sum, float *o, float max2, float sum2, const float *o2)
{
    const unsigned flushed = v_flush_begin();
    const vf first = v_set(*max), second = v_set(max2), m = v_max(first, second);
    const vf base = v_select(v_lt(m, v_set(-FLT_MAX)), v_set(0), m);
    const vf w = v_exp2(v_sub(first, base)), w2 = v_exp2(v_sub(second, base));
    *max = first_lane(m);
    *sum = first_lane(v_fma(v_set(*sum), w, v_mul(v_set(sum2), w2)));
    for (int64_t d = 0; d < dim; d += ATT_LANES)
        v_store(o + d, v_fma(v_load(o + d), w, v_mul(v_load(o2 + d), w2)));
    v_flush_end(flushed);
}

/* o [dim] times 1 / sum, to a whole vector; as turn_out does it. */
static void few_close(int64_t dim, float inverse, float *o)
{
    for (int64_t d = 0; d < dim; d += ATT_LANES)
        v_store(o + d, v_fma(v_load(o + d), v_set(inverse), v_set(0)));
}

void ATT_ISA(att_kernel_few)(att_kernels *k);
void ATT_ISA(att_kernel_few)(att_kernels *k)
{
    k->few_scores = few_scores;
    k->few_soften = few_soften;
    k->few_weigh = few_weigh;
    k->few_merge = few_merge;
    k->few_close = few_close;
}
