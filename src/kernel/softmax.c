/* Softmax of one row. */
#include "kernel/kernel.h"
#include "kernel/reduce.h"
#include "simd/math.h"

#include <math.h> /* INFINITY */

/* The largest of x [n], -inf where n = 0. Does not tell of NaN. */
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

/* e^d, but 0 where that is no normal number */
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

void ATT_ISA(att_kernel_softmax)(att_kernels *k);
void ATT_ISA(att_kernel_softmax)(att_kernels *k) { k->softmax = softmax; }
