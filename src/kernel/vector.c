/* Arithmetic on n numbers, and reading the short formats. */
#include "kernel/kernel.h"
#include "kernel/reduce.h"

#include <string.h>

/* y [n] = f(a [n], b [n]) */
ATT_INLINE void map2(int64_t n, const float *a, const float *b, float *y, vf (*f)(vf, vf))
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(y + i, f(v_load(a + i), v_load(b + i)));
    if (i < n) {
        const int rest = (int)(n - i);
        v_store_n(y + i, f(v_load_n(a + i, rest), v_load_n(b + i, rest)), rest);
    }
}

/* Returns the larger; NaN if either is NaN. */
ATT_INLINE vf larger(vf a, vf b) { return v_select(v_is_nan(a), a, v_max(a, b)); }

static void add(int64_t n, const float *a, const float *b, float *y) { map2(n, a, b, y, v_add); }
static void sub(int64_t n, const float *a, const float *b, float *y) { map2(n, a, b, y, v_sub); }
static void mul(int64_t n, const float *a, const float *b, float *y) { map2(n, a, b, y, v_mul); }
static void div_n(int64_t n, const float *a, const float *b, float *y) { map2(n, a, b, y, v_div); }
static void max(int64_t n, const float *a, const float *b, float *y) { map2(n, a, b, y, larger); }

/* Returns a if x is the maximum y = larger(x, ...), otherwise b. */
ATT_INLINE vf where_max(vf x, vf y, vf a, vf b)
{
    return v_select(v_is_nan(x), a, v_select(v_is_nan(y), b, v_select(v_lt(x, y), b, a)));
}

static void max_back(int64_t n, const float *x, const float *y, float *dy, float *dx)
{
    for (int64_t i = 0; i < n; i += ATT_LANES) {
        const int some = n - i < ATT_LANES ? (int)(n - i) : ATT_LANES;
        const vf a = v_load_n(x + i, some), b = v_load_n(y + i, some), d = v_load_n(dy + i, some);
        v_store_n(dx + i, v_add(v_load_n(dx + i, some), where_max(a, b, d, v_set(0))), some);
        v_store_n(dy + i, where_max(a, b, v_set(0), d), some);
    }
}

static void scale(int64_t n, float s, const float *x, float *y)
{
    const vf factor = v_set(s);
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(y + i, v_mul(v_load(x + i), factor));
    if (i < n)
        v_store_n(y + i, v_mul(v_load_n(x + i, (int)(n - i)), factor), (int)(n - i));
}

static float dot(int64_t n, const float *a, const float *b) { return v_sum_over(n, a, b, v_set(0), v_term_product); }

/* ---- rows of a table that are chosen by ids */

/* Returns where the i-th row begins, with i counted over rows and ids. Rows are anywhere in memory, so it prefetches
 * the beginning of a later one. */
static int64_t chosen_row(const att_chosen_args *a, int64_t i)
{
    enum { AHEAD = 8, NUMBERS = 64 }; /* rows; of a longer row the processor recognizes the rest */
    const int64_t later = i + AHEAD < a->rows * a->count ? i + AHEAD : i;
    const float *next = a->table + (a->ids ? a->ids[later] : later) * a->stride;
    for (int64_t d = 0; d < a->n && d < NUMBERS; d += ATT_CACHE_LINE / (int64_t)sizeof *next)
        att_prefetch_line((uintptr_t)(next + d));
    return (a->ids ? a->ids[i] : i) * a->stride;
}

static void chosen_dots(const att_chosen_args *a)
{
    for (int64_t r = 0, i = 0; r < a->rows; r++)
        for (int64_t last = i + a->count; i < last; i++)
            a->y[i] = dot(a->n, a->x + r * a->stride, a->table + chosen_row(a, i));
}

/* Adds factor x [n] to y [n]. */
static void add_scaled(int64_t n, float factor, const float *x, float *y)
{
    const vf times = v_set(factor);
    int64_t d = 0;
    for (; d + ATT_LANES <= n; d += ATT_LANES)
        v_store(y + d, v_fma(v_load(x + d), times, v_load(y + d)));
    if (d < n) {
        const int rest = (int)(n - d);
        v_store_n(y + d, v_fma(v_load_n(x + d, rest), times, v_load_n(y + d, rest)), rest);
    }
}

static void chosen_add(const att_chosen_args *a, bool to_table)
{
    for (int64_t r = 0, i = 0; r < a->rows; r++)
        for (int64_t last = i + a->count; i < last; i++) {
            float *x = a->x + r * a->stride, *row = a->table + chosen_row(a, i);
            add_scaled(a->n, a->y[i], to_table ? x : row, to_table ? row : x);
        }
}

/* ---- layouts and types */

/* Transposes squares of vectors, down the columns of x, so that rows are written. */
static void transpose(int64_t rows, int64_t columns, const float *x, int64_t x_stride, float *y, int64_t y_stride)
{
    for (int64_t j = 0; j < columns; j += ATT_LANES)
        for (int64_t i = 0; i < rows; i += ATT_LANES) {
            const int wide = columns - j < ATT_LANES ? (int)(columns - j) : ATT_LANES;
            const int high = rows - i < ATT_LANES ? (int)(rows - i) : ATT_LANES;
            vf t[ATT_LANES];
            if (wide == ATT_LANES && high == ATT_LANES) { /* all of it stays in registers */
                ATT_UNROLL (r, ATT_LANES)
                    t[r] = v_load(x + (i + r) * x_stride + j);
                v_transpose(t);
                ATT_UNROLL (c, ATT_LANES)
                    v_store(y + (j + c) * y_stride + i, t[c]);
                continue;
            }
            for (int r = 0; r < ATT_LANES; r++)
                t[r] = r < high ? v_load_n(x + (i + r) * x_stride + j, wide) : v_set(0);
            v_transpose(t);
            for (int c = 0; c < wide; c++)
                v_store_n(y + (j + c) * y_stride + i, t[c], high);
        }
}

/* Adds 0 times a, which is NaN for Inf and NaN, so that the sum is NaN. */
ATT_INLINE vf term_times_0(vf sum, vf a, vf b, vf zero)
{
    (void)b;
    return v_fma(a, zero, sum);
}
static bool all_finite(int64_t n, const float *x) { return v_sum_over(n, x, x, v_set(0), term_times_0) == 0; }

/* y [n] = the numbers that x [n] encodes */
ATT_INLINE void decode(int64_t n, const uint16_t *x, float *y, vf (*f)(const uint16_t *))
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(y + i, f(x + i));
    if (i < n) {
        uint16_t rest[ATT_LANES] = {0};
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        v_store_n(y + i, f(rest), (int)(n - i));
    }
}

static void from_f16(int64_t n, const uint16_t *x, float *y) { decode(n, x, y, v_from_f16); }
static void from_bf16(int64_t n, const uint16_t *x, float *y) { decode(n, x, y, v_from_bf16); }

/* y [n] = codes of x [n] */
ATT_INLINE void encode(int64_t n, const float *x, uint16_t *y, void (*f)(uint16_t *, vf))
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        f(y + i, v_load(x + i));
    if (i < n) {
        uint16_t rest[ATT_LANES];
        f(rest, v_load_n(x + i, (int)(n - i)));
        memcpy(y + i, rest, (size_t)(n - i) * sizeof *y);
    }
}

static void to_f16(int64_t n, const float *x, uint16_t *y) { encode(n, x, y, v_to_f16); }
static void to_bf16(int64_t n, const float *x, uint16_t *y) { encode(n, x, y, v_to_bf16); }

void ATTEND_ISA(att_kernel_vector)(att_kernels *k);
void ATTEND_ISA(att_kernel_vector)(att_kernels *k)
{
    k->vector.add = add;
    k->vector.sub = sub;
    k->vector.mul = mul;
    k->vector.div = div_n;
    k->vector.max = max;
    k->vector.max_back = max_back;
    k->vector.scale = scale;
    k->vector.dot = dot;
    k->vector.chosen_dots = chosen_dots;
    k->vector.chosen_add = chosen_add;
    k->vector.transpose = transpose;
    k->vector.all_finite = all_finite;
    k->vector.from_f16 = from_f16;
    k->vector.from_bf16 = from_bf16;
    k->vector.to_f16 = to_f16;
    k->vector.to_bf16 = to_bf16;
}
