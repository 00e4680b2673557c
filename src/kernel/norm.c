/* Normalisation of one row. */
#include "kernel/kernel.h"
#include "kernel/reduce.h"

/* Two passes: the mean, then the mean square of the differences, which cannot cancel. */
static void layer_norm(int64_t n, const float *x, const float *gamma, const float *beta, float eps, float *y)
{
    const vf mean = v_set(v_sum_over(n, x, x, v_set(0), v_term_value) / (float)n);
    const float variance = v_sum_over(n, x, x, mean, v_term_squared_deviation) / (float)n;
    const vf scale = v_div(v_set(1), v_sqrt(v_set(variance + eps)));
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES) {
        const vf z = v_mul(v_sub(v_load(x + i), mean), scale);
        v_store(y + i, v_fma(z, v_load(gamma + i), v_load(beta + i)));
    }
    if (i < n) {
        const int rest = (int)(n - i);
        const vf z = v_mul(v_sub(v_load_n(x + i, rest), mean), scale);
        v_store_n(y + i, v_fma(z, v_load_n(gamma + i, rest), v_load_n(beta + i, rest)), rest);
    }
}

static void normalize(int64_t n, const float *x, float eps, float *y)
{
    const vf length = v_sqrt(v_set(v_sum_over(n, x, x, v_set(0), v_term_product)));
    const vf divisor = v_max(v_set(eps), length); /* NaN stays */
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        v_store(y + i, v_div(v_load(x + i), divisor));
    if (i < n)
        v_store_n(y + i, v_div(v_load_n(x + i, (int)(n - i)), divisor), (int)(n - i));
}

void ATT_ISA(att_kernel_norm)(att_kernels *k);
void ATT_ISA(att_kernel_norm)(att_kernels *k)
{
    k->layer_norm = layer_norm;
    k->normalize = normalize;
}
