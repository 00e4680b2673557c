/* Softmax of one row, and the cross entropy of its result. */
#include "kernel/kernel.h"
#include "kernel/reduce.h"
#include "simd/math.h"

#include <math.h> /* INFINITY */

/* Returns the largest of x [n], -inf if n = 0. It ignores NaN. */
static float largest(int64_t n, const float *x)
{
    vf top = v_set(-INFINITY);
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        top = v_max(v_load(x + i), top);
    if (i < n) {
        const int rest = (int)(n - i);
        top = v_select(v_first(rest), v_max(v_load_n(x + i, rest), top), top);
    }
    return v_top(top);
}

/* Returns e^d, or 0 if that is not a normal number. */
ATT_INLINE vf weight(vf d) { return v_select(v_lt(d, v_set(-87)), v_set(0), v_exp(d)); }

static void softmax(int64_t n, const float *x, float *y)
{
    const float top = largest(n, x);
    const vf origin = v_set(top == -INFINITY ? 0 : top); /* all -inf: weights 0, and no -inf - -inf */
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(y + i, weight(v_sub(v_load(x + i), origin)));
    if (i < n)
        v_store_n(y + i, weight(v_sub(v_load_n(x + i, (int)(n - i)), origin)), (int)(n - i));

    const float sum = v_sum_over(n, y, y, v_set(0), v_term_value);
    const vf factor = v_set(sum == 0 ? 0 : 1 / sum);
    for (i = 0; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(y + i, v_mul(v_load(y + i), factor));
    if (i < n)
        v_store_n(y + i, v_mul(v_load_n(y + i, (int)(n - i)), factor), (int)(n - i));
}

/* Returns y (dy - s), where s is the sum of y dy. */
ATT_INLINE vf slope(vf y, vf dy, vf s) { return v_mul(y, v_sub(dy, s)); }

static void softmax_back(int64_t n, const float *y, const float *dy, float *dx)
{
    const vf s = v_set(v_sum_over(n, y, dy, v_set(0), v_term_product));
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(dx + i, v_add(v_load(dx + i), slope(v_load(y + i), v_load(dy + i), s)));
    if (i < n) {
        const int rest = (int)(n - i);
        const vf dz = slope(v_load_n(y + i, rest), v_load_n(dy + i, rest), s);
        v_store_n(dx + i, v_add(v_load_n(dx + i, rest), dz), rest);
    }
}

/* ---- the loss of classes */

ATT_INLINE vf v_term_weight(vf sum, vf a, vf b, vf s)
{
    (void)b;
    return v_add(sum, weight(v_sub(a, s)));
}

static void sum_exp(int64_t n, const float *x, float *top, float *sum)
{
    *top = largest(n, x);
    *sum = v_sum_over(n, x, x, v_set(*top == -INFINITY ? 0 : *top), v_term_weight);
}

static float log_sum_exp(int64_t n, const float *x)
{
    float top, sum; /* 1 or more, or NaN */
    sum_exp(n, x, &top, &sum);
    if (top == -INFINITY)
        return top;
    float log2_sum[ATT_LANES];
    v_store(log2_sum, v_log2(v_set(sum)));
    return sum >= 1 ? top + 0.693147181f * log2_sum[0] : sum;
}

static int64_t next_of(int64_t n, const float *x, float min, int64_t from)
{
    enum { STRIDE = 4 * ATT_LANES };
    for (; from + STRIDE <= n; from += STRIDE) {
        vf any = v_set(0);
        ATT_UNROLL (v, 4)
            any = v_max(any, v_select(v_lt(v_load(x + from + v * ATT_LANES), v_set(min)), v_set(0), v_set(1)));
        if (v_top(any) > 0)
            break;
    }
    while (from < n && x[from] < min)
        from++;
    return from;
}

static float sum(int64_t n, const float *x) { return v_sum_over(n, x, x, v_set(0), v_term_value); }

static void cross_entropy_back(int64_t n, const float *x, float lse, float share, float factor, float *dx)
{
    const vf origin = v_set(lse), less = v_set(share), times = v_set(factor);
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(dx + i, v_mul(times, v_sub(weight(v_sub(v_load(x + i), origin)), less)));
    if (i < n) {
        const int rest = (int)(n - i);
        v_store_n(dx + i, v_mul(times, v_sub(weight(v_sub(v_load_n(x + i, rest), origin)), less)), rest);
    }
}

void ATTEND_ISA(att_kernel_softmax)(att_kernels *k);
void ATTEND_ISA(att_kernel_softmax)(att_kernels *k)
{
    k->layer.softmax = softmax;
    k->layer.softmax_back = softmax_back;
    k->layer.log_sum_exp = log_sum_exp;
    k->layer.sum_exp = sum_exp;
    k->layer.next_at_least = next_of;
    k->vector.sum = sum;
    k->layer.cross_entropy_back = cross_entropy_back;
}
