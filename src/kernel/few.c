/* Attention of a few queries, which is as fast as memory gives keys and values: a decoded token against a cache.
 *
 * A panel would be almost empty, so here lanes are keys while scores are made, and numbers of a value while they are
 * weighted. Every score, weight, sum and output is the same chain of operations as in attention.c: the same bits.
 * Scores lie in rows, s [queries][keys]. Keys and values are f32, f16 or bf16; keys are rows, or packed in panels,
 * [ceil(keys / PANEL)][dim][PANEL].
 *
 * What the processor fetches ahead by itself suffices where memory is read line after line. Elsewhere lines are fetched
 * long before, into the second-level cache: in the order in which they lie, even if they are not used in that order. */
#include "attend.h"
#include "kernel/kernel.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <float.h>
#include <string.h>

enum {
    QUERIES = 4,             /* whose scores are made together */
    PAIR = 2,                /* whose values are weighted together, over: */
    WIDE = ROWS > 6 ? 8 : 4, /* vectors */
    PIECE = 16,              /* keys that stay in the first-level cache while other queries and columns use them */
    FAR = 64,                /* keys: how long before they are fetched */
    NEAR = 8,                /* and, into the first-level cache */
    AHEAD = 32,              /* the same for rows that are converted, from memory to the first-level cache */
    LINE = 64,               /* bytes */
    CHUNK = 128              /* numbers of rows of another type, of PANEL keys, that are converted together */
};

/* n numbers, at most a vector of them; 0 behind. */
ATT_INLINE vf load(const float *x, int n) { return n == ATT_LANES ? v_load(x) : v_load_n(x, n); }

/* What is not f32 is converted piece by piece, into memory that stays in the first-level cache. */
static int64_t bytes_of(int type, int64_t n) { return n * (type == ATT_F32 ? 4 : 2); }
ATT_INLINE void convert_as(const int type, int64_t n, const uint16_t *x, int64_t ahead, float *y)
{
    int64_t i = 0;
    for (; i + 2 * ATT_LANES <= n; i += 2 * ATT_LANES) {
        __builtin_prefetch((const void *)((uintptr_t)(x + i) + (uintptr_t)ahead * sizeof *x), 0, 3);
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
/* y [n] = x [n]; what lies `ahead` numbers behind x is fetched */
static void convert(int type, int64_t n, const void *x, int64_t ahead, float *y)
{
    if (type == ATT_F16)
        convert_as(ATT_F16, n, x, ahead, y);
    else
        convert_as(ATT_BF16, n, x, ahead, y);
}
/* rows [rows, n] of x, a stride apart, to y [rows][y_stride] */
static void convert_rows(int type, int64_t rows, int64_t n, const void *x, int64_t stride, float *y, int64_t y_stride)
{
    for (int64_t i = 0; i < rows; i++)
        convert(type, n, (const char *)x + bytes_of(type, i * stride), AHEAD * stride, y + i * y_stride);
}

/* What will be read, line after line: rows of `bytes`, a stride apart. Addresses behind the memory do no harm. */
typedef struct feed {
    uintptr_t row, line, near;
    uintptr_t bytes, stride;
} feed;

ATT_INLINE feed feed_of(int64_t dim, const float *k, int64_t stride)
{
    const uintptr_t step = (uintptr_t)stride * sizeof *k, row = (uintptr_t)k + FAR * step;
    return (feed){row, row, (FAR - NEAR) * step, (uintptr_t)dim * sizeof *k, step};
}

ATT_INLINE void feed_line(feed *f)
{
    __builtin_prefetch((const void *)f->line, 0, 2);
    __builtin_prefetch((const void *)(f->line - f->near), 0, 3);
    f->line += LINE;
    if (f->line >= f->row + f->bytes)
        f->line = f->row += f->stride;
}

/* ---- scores */

/* A vector of keys, [rows, dim], by n queries: squares of keys are turned on the way. n is a constant where this is
 * inlined. more: s has the sums of earlier numbers. */
ATT_INLINE void score_rows(const int n, bool more, int rows, int64_t dim, const float *k, int64_t stride, feed *f,
                           const float *q, int64_t q_stride, float *s, int64_t s_stride)
{
    vf acc[QUERIES];
    ATT_UNROLL (i, n)
        acc[i] = more ? v_load(s + i * s_stride) : v_set(0);
    for (int64_t d = 0; d < dim; d += ATT_LANES) {
        const int columns = dim - d < ATT_LANES ? (int)(dim - d) : ATT_LANES;
        vf x[ATT_LANES];
        if (rows == ATT_LANES && columns == ATT_LANES) {
            ATT_UNROLL (r, ATT_LANES) {
                x[r] = v_load(k + r * stride + d);
                if ((r + 1) * ATT_LANES * (int)sizeof *k % LINE == 0)
                    feed_line(f);
            }
        } else {
            ATT_UNROLL (r, ATT_LANES)
                x[r] = r < rows ? load(k + r * stride + d, columns) : v_set(0);
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
ATT_INLINE void score_panel(const int n, bool more, int64_t dim, const float *k, const float *q, int64_t q_stride,
                            float *s, int64_t s_stride)
{
    vf acc[QUERIES][ATT_PANEL_VECTORS];
    ATT_UNROLL (i, n)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            acc[i][v] = more ? v_load(s + i * s_stride + v * ATT_LANES) : v_set(0);
    for (int64_t d = 0; d < dim; d++) {
        vf x[ATT_PANEL_VECTORS];
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            x[v] = v_keep(v_load(k + d * PANEL + v * ATT_LANES));
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

ATT_INLINE void score_queries(const int n, bool packed, bool more, int64_t keys, int64_t dim, const float *k,
                              int64_t stride, const float *q, int64_t q_stride, float *s, int64_t s_stride)
{
    feed f = feed_of(dim, k, stride);
    if (packed)
        for (int64_t j = 0; j < keys; j += PANEL)
            score_panel(n, more, dim, k + j * dim, q, q_stride, s + j, s_stride);
    else
        for (int64_t j = 0; j < keys; j += ATT_LANES)
            score_rows(n, more, keys - j < ATT_LANES ? (int)(keys - j) : ATT_LANES, dim, k + j * stride, stride, &f, q,
                       q_stride, s + j, s_stride);
}

static void score_floats(int n, bool packed, bool more, int64_t keys, int64_t dim, const float *k, int64_t stride,
                         const float *q, int64_t q_stride, float *s, int64_t s_stride)
{
    for (; n >= QUERIES; n -= QUERIES, q += QUERIES * q_stride, s += QUERIES * s_stride)
        score_queries(QUERIES, packed, more, keys, dim, k, stride, q, q_stride, s, s_stride);
    if (n == 3)
        score_queries(3, packed, more, keys, dim, k, stride, q, q_stride, s, s_stride);
    else if (n == 2)
        score_queries(2, packed, more, keys, dim, k, stride, q, q_stride, s, s_stride);
    else if (n == 1)
        score_queries(1, packed, more, keys, dim, k, stride, q, q_stride, s, s_stride);
}

/* s [n][keys] = q [n, dim] k^T, written to a whole panel; k [keys, dim], or packed and stride is not used. */
static void few_scores(int type, int n, bool packed, int64_t keys, int64_t dim, const void *k, int64_t stride,
                       const float *q, int64_t q_stride, float *s, int64_t s_stride)
{
    float piece[PANEL * CHUNK];
    if (type == ATT_F32) {
        score_floats(n, packed, false, keys, dim, k, stride, q, q_stride, s, s_stride);
        return;
    }
    for (int64_t j = 0; j < keys; j += PANEL)
        for (int64_t d = 0; d < dim; d += CHUNK) {
            const int64_t rows = keys - j < PANEL ? keys - j : PANEL, numbers = dim - d < CHUNK ? dim - d : CHUNK;
            const char *from = (const char *)k + bytes_of(type, packed ? j * dim + d * PANEL : j * stride + d);
            if (packed)
                convert(type, numbers * PANEL, from, AHEAD * dim, piece);
            else
                convert_rows(type, rows, numbers, from, stride, piece, CHUNK);
            score_floats(n, packed, d > 0, rows, numbers, piece, CHUNK, q + d, q_stride, s + j, s_stride);
        }
}

/* ---- softmax */

static float first_lane(vf x)
{
    float y[ATT_LANES];
    v_store(y, x);
    return y[0];
}

/* soften of attention.c for one query, whose scores are a row. */
static void soften_row(int n_runs, const att_run *run, float *s, float *max, float *sum, float *rescale)
{
    const vf log2e = v_set((float)ATT_LOG2_E), nothing = v_set(-__builtin_inff()), before = v_set(*max);
    vf top = nothing;
    for (int r = 0; r < n_runs; r++)
        for (int64_t k = run[r].first; k < run[r].last; k += ATT_LANES) {
            const int64_t left = run[r].last - k;
            const vf x = v_load(s + k);
            top = v_max(left < ATT_LANES ? v_select(v_first((int)left), x, nothing) : x, top);
        }
    *max = v_top(v_max(v_mul(top, log2e), before));
    const vf base = v_set(*max < -FLT_MAX ? 0 : *max), factor = v_exp2(v_sub(before, base));
    float total = 0;
    for (int r = 0; r < n_runs; r++) {
        for (int64_t k = run[r].first; k < run[r].last; k += ATT_LANES) {
            const vf x = v_load(s + k), e = v_exp2(v_fma(x, log2e, v_sub(v_set(0), base)));
            const vf p = v_select(v_lt(x, v_set(-FLT_MAX)), v_set(0), e);
            if (run[r].last - k < ATT_LANES)
                v_store_n(s + k, p, (int)(run[r].last - k));
            else
                v_store(s + k, p);
        }
        for (int64_t k = run[r].first; k < run[r].last; k++)
            total += s[k];
    }
    *sum = first_lane(v_fma(v_set(*sum), factor, v_set(total)));
    *rescale = first_lane(factor);
}

/* Scores s [n][keys] to weights, with the running maximum and sum of each row; rescale [n] is what everything from
 * earlier blocks must be multiplied with. */
static void few_soften(int n, int n_runs, const att_run *run, float *s, int64_t stride, float *max, float *sum,
                       float *rescale)
{
    for (int i = 0; i < n; i++)
        soften_row(n_runs, run, s + i * stride, max + i, sum + i, rescale + i);
}

/* ---- weighted values */

/* Keys [first, last): n queries by some vectors of the values, or by one vector of `columns` numbers. */
ATT_INLINE void weigh_tile(const int n, const int vectors, int columns, bool far, int64_t first, int64_t last,
                           const float *v, int64_t stride, const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    vf acc[PAIR][WIDE];
    ATT_UNROLL (i, n)
        ATT_UNROLL (c, vectors)
            acc[i][c] = v_load(o + i * o_stride + c * ATT_LANES);
    for (int64_t k = first; k < last; k++) {
        const float *row = v + k * stride;
        vf x[WIDE];
        ATT_UNROLL (c, vectors)
            x[c] = v_keep(load(row + c * ATT_LANES, columns));
        if (far)
            for (int64_t b = 0; b < vectors * ATT_LANES; b += LINE / (int64_t)sizeof *row)
                __builtin_prefetch((const void *)((uintptr_t)row + (uintptr_t)(FAR * stride + b) * sizeof *row), 0, 2);
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

ATT_INLINE void weigh_queries(const int n, bool far, int64_t first, int64_t last, int64_t dim, const float *v,
                              int64_t stride, const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    int64_t d = 0;
    for (; d + WIDE * ATT_LANES <= dim; d += WIDE * ATT_LANES)
        weigh_tile(n, WIDE, ATT_LANES, far, first, last, v + d, stride, p, p_stride, o + d, o_stride);
    for (; d + WIDE / 2 * ATT_LANES <= dim; d += WIDE / 2 * ATT_LANES)
        weigh_tile(n, WIDE / 2, ATT_LANES, far, first, last, v + d, stride, p, p_stride, o + d, o_stride);
    for (; d < dim; d += ATT_LANES)
        weigh_tile(n, 1, dim - d < ATT_LANES ? (int)(dim - d) : ATT_LANES, far, first, last, v + d, stride, p, p_stride,
                   o + d, o_stride);
}

/* Keys [first, last), pieces of them by all queries. */
static void weigh_floats(int n, bool far, int64_t first, int64_t last, int64_t dim, const float *v, int64_t stride,
                         const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    for (int64_t k = first; k < last; k += PIECE) {
        const int64_t end = last - k < PIECE ? last : k + PIECE;
        int i = 0;
        for (; i + PAIR <= n; i += PAIR)
            weigh_queries(PAIR, far, k, end, dim, v, stride, p + i * p_stride, p_stride, o + i * o_stride, o_stride);
        if (i < n)
            weigh_queries(1, far, k, end, dim, v, stride, p + i * p_stride, p_stride, o + i * o_stride, o_stride);
    }
}

/* Keys [first, last) of another type. */
static void weigh_short(int type, int n, int64_t first, int64_t last, int64_t dim, const void *v, int64_t stride,
                        const float *p, int64_t p_stride, float *o, int64_t o_stride)
{
    float piece[PANEL * CHUNK];
    for (int64_t k = first; k < last; k += PANEL)
        for (int64_t d = 0; d < dim; d += CHUNK) {
            const int64_t rows = last - k < PANEL ? last - k : PANEL, numbers = dim - d < CHUNK ? dim - d : CHUNK;
            convert_rows(type, rows, numbers, (const char *)v + bytes_of(type, k * stride + d), stride, piece, CHUNK);
            weigh_floats(n, false, 0, rows, numbers, piece, CHUNK, p + k, p_stride, o + d, o_stride);
        }
}

/* o [n, dim] = rescale o + p [n][keys] v [keys, dim], over the runs of keys; rescale NULL: o starts at 0. Rows of o are
 * written to a whole vector. */
static void few_weigh(int type, int n, int n_runs, const att_run *run, int64_t dim, const void *v, int64_t stride,
                      const float *p, int64_t p_stride, const float *rescale, float *o, int64_t o_stride)
{
    /* more than one pass: not line after line */
    const bool far = n > PAIR || (dim != WIDE * ATT_LANES && dim != WIDE / 2 * ATT_LANES);
    for (int i = 0; i < n; i++)
        for (int64_t d = 0; d < dim; d += ATT_LANES) {
            float *x = o + i * o_stride + d;
            v_store(x, rescale ? v_mul(v_load(x), v_set(rescale[i])) : v_set(0));
        }
    for (int r = 0; r < n_runs; r++)
        if (type == ATT_F32)
            weigh_floats(n, far, run[r].first, run[r].last, dim, v, stride, p, p_stride, o, o_stride);
        else
            weigh_short(type, n, run[r].first, run[r].last, dim, v, stride, p, p_stride, o, o_stride);
}

/* ---- partial results */

/* merge of attention.c for one query: adds the second partial result, maximum, sum and o [dim], to the first. */
static void few_merge(int64_t dim, float *max, float *sum, float *o, float max2, float sum2, const float *o2)
{
    const vf first = v_set(*max), second = v_set(max2), m = v_max(first, second);
    const vf base = v_select(v_lt(m, v_set(-FLT_MAX)), v_set(0), m);
    const vf w = v_exp2(v_sub(first, base)), w2 = v_exp2(v_sub(second, base));
    *max = first_lane(m);
    *sum = first_lane(v_fma(v_set(*sum), w, v_mul(v_set(sum2), w2)));
    for (int64_t d = 0; d < dim; d += ATT_LANES)
        v_store(o + d, v_fma(v_load(o + d), w, v_mul(v_load(o2 + d), w2)));
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
