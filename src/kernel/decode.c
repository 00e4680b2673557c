/* Attention of a few queries: decoding, whose time is that of reading keys and values.
 *
 * A query tile would be almost empty, so here lanes are keys (scores) or dimensions of a value (P V). Every score,
 * weight, sum and output is the same chain of operations as in attention.c: the same bits. Scores are rows, s
 * [queries][keys]. Keys and values are f32, f16 or bf16; keys are rows, or packed in panels, [ceil(keys /
 * PANEL)][dim][PANEL].
 *
 * What is read next is prefetched at the rate at which memory is read: values while scores are computed, the next keys
 * while values are added up. */
#include "attend.h"
#include "kernel/softmax_step.h"

#include <string.h>

enum {
    QUERIES = 4,             /* queries of one score tile */
    PAIR = 2,                /* queries (or one) whose o is in registers while P V is added up, */
    WIDE = ROWS > 6 ? 8 : 4, /* in this number of vectors */
    MAX_QUERIES = 8,         /* queries of a softmax step together */
    KEYS = 4,                /* keys by QUERIES together, or, if values are read once: */
    KEYS_ONCE = 2,           /* because hardware prefetchers follow few streams */
    PIECE = 8192,            /* bytes of values that stay in the first-level cache for all queries and columns */
    LINE = ATT_CACHE_LINE,
    CHUNK = 128 /* dimensions of PANEL keys that are converted together */
};

/* Loads n numbers, at most a vector, followed by 0. */
ATT_INLINE vf load(const float *x, int n) { return n == ATT_LANES ? v_load(x) : v_load_n(x, n); }

/* Returns the bytes of n numbers. f16 and bf16 are converted piece by piece, into memory that stays in the first-level
 * cache. */
static int64_t bytes_of(int type, int64_t n) { return n * (type == ATT_F32 ? 4 : 2); }
ATT_INLINE void convert_as(const int type, int64_t n, const uint16_t *x, att_prefetch *next, float *y)
{
    att_prefetch_lines lines = att_prefetch_next(next, n * (int64_t)sizeof *x / LINE);
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
/* Converts rows [rows, n] of x, a stride apart, to y [rows][y_stride]. */
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

/* Some keys by queries: k [rows, dim], or a packed panel of keys; `more`: s has the sums of earlier dimensions. */
typedef struct score_tile {
    bool packed, more;
    int rows;
    int64_t dim;
    const float *k;
    int64_t k_stride;
    const float *q;
    int64_t q_stride;
    float *s;
    int64_t s_stride;
    att_prefetch *prefetch;
} score_tile;

/* Scores a vector of keys from `first` on by n queries: squares of keys are transposed. n is a constant where this is
 * inlined. */
ATT_INLINE void score_rows(const int n, const score_tile *t, int first)
{
    const int rows = t->rows - first < ATT_LANES ? t->rows - first : ATT_LANES;
    const float *k = t->k + first * t->k_stride;
    float *s = t->s + first;
    vf acc[QUERIES];
    float square[ATT_LANES * ATT_LANES]; /* where rows or columns are missing */
    att_prefetch_lines lines = att_prefetch_next(t->prefetch, ATT_LANES * t->dim * (int64_t)sizeof *k / LINE);
    ATT_UNROLL (i, n)
        acc[i] = t->more ? v_load(s + i * t->s_stride) : v_set(0);
    for (int64_t d = 0; d < t->dim; d += ATT_LANES) {
        const int columns = t->dim - d < ATT_LANES ? (int)(t->dim - d) : ATT_LANES;
        const bool whole = rows == ATT_LANES && columns == ATT_LANES;
        const float *from = whole ? k + d : square;
        const int64_t step = whole ? t->k_stride : ATT_LANES;
        vf x[ATT_LANES];
        for (int r = 0; !whole && r < ATT_LANES; r++)
            v_store(square + r * ATT_LANES, r < rows ? load(k + r * t->k_stride + d, columns) : v_set(0));
        ATT_UNROLL (r, ATT_LANES) {
            x[r] = v_load(from + r * step);
            if ((r + 1) * ATT_LANES * (int)sizeof *k % (4 * LINE) == 0)
                att_prefetch_some(&lines, 4);
        }
        v_transpose(x);
        ATT_UNROLL (c, ATT_LANES)
            ATT_UNROLL (i, n)
                if (c < columns)
                    acc[i] = v_fma(x[c], v_set(t->q[i * t->q_stride + d + c]), acc[i]);
    }
    ATT_UNROLL (i, n)
        v_store(s + i * t->s_stride, acc[i]);
}

/* Scores a packed panel of keys by n queries. */
ATT_INLINE void score_panel(const int n, const score_tile *t)
{
    enum { PANEL_LINES = PANEL * sizeof *t->k / LINE };
    const float *const k = t->k, *const q = t->q;
    att_prefetch_lines lines = att_prefetch_next(t->prefetch, t->dim * PANEL_LINES);
    vf acc[QUERIES][ATT_PANEL_VECTORS];
    ATT_UNROLL (i, n)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            acc[i][v] = t->more ? v_load(t->s + i * t->s_stride + v * ATT_LANES) : v_set(0);
    for (int64_t d = 0; d < t->dim; d++) {
        vf x[ATT_PANEL_VECTORS];
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            x[v] = v_keep(v_load(k + d * PANEL + v * ATT_LANES));
        att_prefetch_some(&lines, PANEL_LINES);
        ATT_UNROLL (i, n) {
            const vf y = v_set(q[i * t->q_stride + d]);
            ATT_UNROLL (v, ATT_PANEL_VECTORS)
                acc[i][v] = v_fma(x[v], y, acc[i][v]);
        }
    }
    ATT_UNROLL (i, n)
        ATT_UNROLL (v, ATT_PANEL_VECTORS)
            v_store(t->s + i * t->s_stride + v * ATT_LANES, acc[i][v]);
}

ATT_INLINE void score_queries(const int n, const score_tile *t)
{
    if (t->packed)
        score_panel(n, t);
    else
        for (int j = 0; j < t->rows; j += ATT_LANES)
            score_rows(n, t, j);
}

static void score_floats(int queries, score_tile t)
{
    for (; queries >= QUERIES; queries -= QUERIES, t.q += QUERIES * t.q_stride, t.s += QUERIES * t.s_stride)
        score_queries(QUERIES, &t);
    if (queries == 3)
        score_queries(3, &t);
    else if (queries == 2)
        score_queries(2, &t);
    else if (queries == 1)
        score_queries(1, &t);
}

/* Scores one panel of keys of another type than f32, some dimensions at a time. */
static void score_converted(const att_decode_scores *x, const char *k, score_tile t)
{
    float piece[PANEL * CHUNK];
    for (int64_t d = 0; d < x->dim; d += CHUNK) {
        const int64_t numbers = x->dim - d < CHUNK ? x->dim - d : CHUNK;
        if (x->packed)
            convert(x->type, numbers, PANEL, k + bytes_of(x->type, d * PANEL), PANEL, x->prefetch, piece, PANEL);
        else
            convert(x->type, t.rows, numbers, k + bytes_of(x->type, d), x->k_stride, x->prefetch, piece, CHUNK);
        t.more = d > 0;
        t.dim = numbers;
        t.k = piece;
        t.k_stride = CHUNK;
        t.q = x->q + d;
        t.prefetch = NULL;
        score_floats(x->queries, t);
    }
}

static void scores(const att_decode_scores *x)
{
    for (int64_t j = 0; j < x->keys; j += PANEL) {
        const char *k = (const char *)x->k + bytes_of(x->type, j * (x->packed ? x->dim : x->k_stride));
        const score_tile t = {.packed = x->packed,
                              .rows = x->keys - j < PANEL ? (int)(x->keys - j) : PANEL,
                              .dim = x->dim,
                              .k = (const float *)(const void *)k,
                              .k_stride = x->k_stride,
                              .q = x->q,
                              .q_stride = x->q_stride,
                              .s = x->s + j,
                              .s_stride = x->s_stride,
                              .prefetch = x->prefetch};
        if (x->type == ATT_F32)
            score_floats(x->queries, t);
        else
            score_converted(x, k, t);
    }
}

/* ---- softmax */

static float first_lane(vf x)
{
    float y[ATT_LANES];
    v_store(y, x);
    return y[0];
}

/* Makes the softmax step of one query, whose scores are a row, except for the sum of its weights. */
static void softmax_row(int n_ranges, const att_range *range, float *s, float *max, vf *factor)
{
    const vf log2e = v_set((float)ATT_LOG2_E), before = v_set(*max);
    const unsigned flushed = v_flush_begin();
    vf top = nothing();
    for (int r = 0; r < n_ranges; r++)
        for (int64_t k = range[r].first; k < range[r].last; k += ATT_LANES) {
            const int64_t left = range[r].last - k;
            const vf x = v_load(s + k);
            top = v_max(left < ATT_LANES ? v_select(v_first((int)left), x, nothing()) : x, top);
        }
    *max = v_top(v_max(top, before));
    const vf origin = softmax_origin(v_set(*max));
    *factor = softmax_rescale(before, origin);
    const vm large = softmax_is_large(origin);
    const vf shift = v_select(large, origin, v_set(0)), base = v_select(large, v_set(0), softmax_log2(origin));
    for (int r = 0; r < n_ranges; r++)
        for (int64_t k = range[r].first; k < range[r].last; k += ATT_LANES) {
            const vf p = v_exp2(v_fma(v_sub(v_load(s + k), shift), log2e, v_sub(v_set(0), base)));
            if (range[r].last - k < ATT_LANES)
                v_store_n(s + k, p, (int)(range[r].last - k));
            else
                v_store(s + k, p);
        }
    v_flush_end(flushed);
}

/* Computes total [n], the sum of each row, by n chains of additions side by side. */
ATT_INLINE void sum_rows(const int n, int n_ranges, const att_range *range, const float *s, int64_t stride,
                         float *total)
{
    float sum[MAX_QUERIES] = {0};
    for (int r = 0; r < n_ranges; r++)
        for (int64_t k = range[r].first; k < range[r].last; k++)
            ATT_UNROLL (i, n)
                sum[i] += s[i * stride + k];
    ATT_UNROLL (i, n)
        total[i] = sum[i];
}

/* Makes the softmax step of attention.c on rows of scores [queries][keys]. */
static void softmax_step(const att_softmax_step *t)
{
    for (int done = 0, some; done < t->columns; done += some) {
        float total[MAX_QUERIES], *rows = t->s + done * t->stride;
        vf factor[MAX_QUERIES];
        some = t->columns - done < MAX_QUERIES ? t->columns - done : MAX_QUERIES;
        for (int i = 0; i < some; i++)
            softmax_row(t->n_ranges, t->range, rows + i * t->stride, t->max + done + i, &factor[i]);
        int i = 0;
        for (; i + MAX_QUERIES <= some; i += MAX_QUERIES)
            sum_rows(MAX_QUERIES, t->n_ranges, t->range, rows + i * t->stride, t->stride, total + i);
        for (; i + QUERIES <= some; i += QUERIES)
            sum_rows(QUERIES, t->n_ranges, t->range, rows + i * t->stride, t->stride, total + i);
        for (; i < some; i++)
            sum_rows(1, t->n_ranges, t->range, rows + i * t->stride, t->stride, total + i);
        for (i = 0; i < some; i++) {
            float *sum = t->sum + done + i;
            *sum = first_lane(v_fma(v_set(*sum), factor[i], v_set(total[i])));
            t->rescale[done + i] = first_lane(factor[i]);
        }
    }
}

/* ---- weighted values */

/* Keys [first, last) of values in f32 by queries. */
typedef struct pv_tile {
    int64_t first, last, dim;
    const float *v;
    int64_t v_stride;
    const float *p;
    int64_t p_stride;
    float *o;
    int64_t o_stride;
    att_prefetch *prefetch;
} pv_tile;

/* Accumulates n queries by some vectors of the values from dimension d on, or by one vector of `columns` numbers. */
ATT_INLINE void pv_vectors(const int n, const int vectors, int columns, int64_t d, const pv_tile *t)
{
    const int64_t each = (vectors * ATT_LANES * (int)sizeof *t->v + LINE - 1) / LINE;
    const float *const v = t->v + d, *const p = t->p;
    float *const o = t->o + d;
    att_prefetch_lines lines = att_prefetch_next(t->prefetch, (t->last - t->first) * each);
    vf acc[PAIR][WIDE];
    ATT_UNROLL (i, n)
        ATT_UNROLL (c, vectors)
            acc[i][c] = v_load(o + i * t->o_stride + c * ATT_LANES);
    for (int64_t k = t->first; k < t->last; k++) {
        const float *row = v + k * t->v_stride;
        vf x[WIDE];
        ATT_UNROLL (c, vectors)
            x[c] = v_keep(load(row + c * ATT_LANES, columns));
        att_prefetch_some(&lines, each);
        ATT_UNROLL (i, n) {
            const vf y = v_set(p[i * t->p_stride + k]);
            ATT_UNROLL (c, vectors)
                acc[i][c] = v_fma(x[c], y, acc[i][c]);
        }
    }
    ATT_UNROLL (i, n)
        ATT_UNROLL (c, vectors)
            v_store(o + i * t->o_stride + c * ATT_LANES, acc[i][c]);
}

/* Accumulates QUERIES queries over whole values, keys [first, last) some at a time. Weights stay in registers, o in the
 * first-level cache, and each value is read once, in order, as hardware prefetchers expect. */
ATT_INLINE void pv_keys(const int keys, int64_t first, int64_t last, const pv_tile *t)
{
    const int64_t each = (keys * ATT_LANES * (int)sizeof *t->v + LINE - 1) / LINE;
    const float *const v = t->v, *const p = t->p;
    att_prefetch_lines lines = att_prefetch_next(t->prefetch, (last - first) * t->dim * (int64_t)sizeof *v / LINE);
    for (int64_t k = first; k < last; k += keys) {
        vf y[QUERIES][KEYS];
        ATT_UNROLL (i, QUERIES)
            ATT_UNROLL (j, keys)
                y[i][j] = v_set(p[i * t->p_stride + k + j]);
        for (int64_t d = 0; d < t->dim; d += ATT_LANES) {
            const int columns = t->dim - d < ATT_LANES ? (int)(t->dim - d) : ATT_LANES;
            vf x[KEYS];
            ATT_UNROLL (j, keys)
                x[j] = load(v + (k + j) * t->v_stride + d, columns);
            att_prefetch_some(&lines, each);
            ATT_UNROLL (i, QUERIES) {
                float *to = t->o + i * t->o_stride + d;
                vf acc = v_load(to);
                ATT_UNROLL (j, keys)
                    acc = v_fma(x[j], y[i][j], acc);
                v_store(to, acc);
            }
        }
    }
}

ATT_INLINE void pv_queries(const int n, const pv_tile *t)
{
    const int wide = WIDE * ATT_LANES, half = WIDE / 2 * ATT_LANES;
    int64_t d = 0;
    for (; d + wide <= t->dim; d += wide)
        pv_vectors(n, WIDE, ATT_LANES, d, t);
    for (; d + half <= t->dim; d += half)
        pv_vectors(n, WIDE / 2, ATT_LANES, d, t);
    for (; d < t->dim; d += ATT_LANES)
        pv_vectors(n, 1, t->dim - d < ATT_LANES ? (int)(t->dim - d) : ATT_LANES, d, t);
}

/* Returns how often n queries read a row of values. */
static int64_t passes_for(int64_t n, int64_t dim)
{
    const int64_t wide = WIDE * ATT_LANES, half = WIDE / 2 * ATT_LANES, rest = dim % wide;
    const int64_t narrow = dim / wide + rest / half + att_ceil_div(rest % half, ATT_LANES);
    return n / QUERIES + (n % QUERIES / PAIR + n % PAIR) * narrow;
}

/* Accumulates P V of all queries. once: no other call reads these values. */
static void pv_floats(int queries, bool once, pv_tile t)
{
    const int64_t some = once ? KEYS_ONCE : KEYS, whole = t.first + (t.last - t.first) / some * some;
    for (; queries >= QUERIES; queries -= QUERIES, t.p += QUERIES * t.p_stride, t.o += QUERIES * t.o_stride) {
        if (once)
            pv_keys(KEYS_ONCE, t.first, whole, &t);
        else
            pv_keys(KEYS, t.first, whole, &t);
        pv_keys(1, whole, t.last, &t);
    }
    for (; queries >= PAIR; queries -= PAIR, t.p += PAIR * t.p_stride, t.o += PAIR * t.o_stride)
        pv_queries(PAIR, &t);
    if (queries)
        pv_queries(1, &t);
}

/* Accumulates keys [first, last) of another type than f32, some dimensions at a time. */
static void pv_converted(const att_pv *x, int64_t first, int64_t last)
{
    float piece[PANEL * CHUNK];
    for (int64_t d = 0; d < x->dim; d += CHUNK) {
        const int64_t numbers = x->dim - d < CHUNK ? x->dim - d : CHUNK;
        convert(x->type, last - first, numbers, (const char *)x->v + bytes_of(x->type, first * x->v_stride + d),
                x->v_stride, x->prefetch, piece, CHUNK);
        const pv_tile t = {.last = last - first,
                           .dim = numbers,
                           .v = piece,
                           .v_stride = CHUNK,
                           .p = x->p + first,
                           .p_stride = x->p_stride,
                           .o = x->o + d,
                           .o_stride = x->o_stride};
        pv_floats(x->columns, false, t);
    }
}

/* Computes o [queries, dim] = rescale o + p [queries][keys] v [keys, dim]. Rows of o are written up to a whole
 * vector. */
static void accumulate_pv(const att_pv *x)
{
    const int n = x->columns;
    const int64_t begin = x->n_ranges ? x->range[0].first : 0, end = x->n_ranges ? x->range[x->n_ranges - 1].last : 0;
    const int64_t passes = passes_for(n, x->dim), fit = (PIECE / bytes_of(x->type, x->dim) / KEYS + 1) * KEYS;
    const int64_t some = x->type != ATT_F32 ? PANEL : passes == 1 ? end - begin : fit;
    for (int i = 0; i < n; i++)
        for (int64_t d = 0; d < x->dim; d += ATT_LANES) {
            float *o = x->o + i * x->o_stride + d;
            v_store(o, x->rescale ? v_mul(v_load(o), v_set(x->rescale[i])) : v_set(0));
        }
    for (int r = 0; r < x->n_ranges; r++)
        for (int64_t k = x->range[r].first, last; k < x->range[r].last; k = last) {
            last = x->range[r].last - k < some ? x->range[r].last : k + some;
            if (x->type == ATT_F32)
                pv_floats(
                    n, passes == 1,
                    (pv_tile){k, last, x->dim, x->v, x->v_stride, x->p, x->p_stride, x->o, x->o_stride, x->prefetch});
            else
                pv_converted(x, k, last);
        }
}

/* ---- partial results */

/* Merges the second accumulator, maximum, sum and o [dim] of one query, into the first, as attention.c does. */
static void merge(int64_t dim, float *max, float *sum, float *o, float max2, float sum2, const float *o2)
{
    const unsigned flushed = v_flush_begin();
    const vf first = v_set(*max), second = v_set(max2), m = v_max(first, second);
    const vf origin = softmax_origin(m), w = softmax_rescale(first, origin), w2 = softmax_rescale(second, origin);
    *max = first_lane(m);
    *sum = first_lane(v_fma(v_set(*sum), w, v_mul(v_set(sum2), w2)));
    for (int64_t d = 0; d < dim; d += ATT_LANES)
        v_store(o + d, v_fma(v_load(o + d), w, v_mul(v_load(o2 + d), w2)));
    v_flush_end(flushed);
}

/* Multiplies o [dim] by 1 / sum, up to a whole vector, as attention.c's unpack does. */
static void normalize(int64_t dim, float inverse, float *o)
{
    for (int64_t d = 0; d < dim; d += ATT_LANES)
        v_store(o + d, v_fma(v_load(o + d), v_set(inverse), v_set(0)));
}

void ATTEND_ISA(att_kernel_decode)(att_kernels *k);
void ATTEND_ISA(att_kernel_decode)(att_kernels *k)
{
    k->decode.scores = scores;
    k->decode.softmax_step = softmax_step;
    k->decode.accumulate_pv = accumulate_pv;
    k->decode.merge = merge;
    k->decode.normalize = normalize;
}
