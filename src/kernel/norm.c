/* Normalisation of one row. Sums are in float, but in double where the squares leave its range. */
#include "kernel/kernel.h"
#include "kernel/reduce.h"

#include <float.h>
#include <math.h>

/* Squares that sum to less are of numbers whose squares may have been rounded to nothing. */
#define LEAST 0x1p-100f

static bool in_range(float squares) { return squares >= LEAST && squares <= FLT_MAX; } /* false for NaN */

static void layer_norm_wide(int64_t n, const float *x, const float *gamma, const float *beta, float eps, float *y)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean);
    const double sigma = sqrt(variance / (double)n + (double)eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((x[i] - mean) / sigma * gamma[i] + beta[i]);
}

/* Two passes: the mean, then the mean square of the differences, which cannot cancel. */
static void layer_norm(int64_t n, const float *x, const float *gamma, const float *beta, float eps, float *y)
{
    const vf mean = v_set(v_sum_over(n, x, x, v_set(0), v_term_value) / (float)n);
    const float variance = v_sum_over(n, x, x, mean, v_term_squared_deviation) / (float)n;
    if (!in_range(variance + eps)) {
        layer_norm_wide(n, x, gamma, beta, eps, y);
        return;
    }
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

static void normalize_wide(int64_t n, const float *x, float eps, float *y)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (double)x[i] * x[i];
    const double length = sqrt(squares), divisor = length < (double)eps ? (double)eps : length; /* NaN stays */
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(x[i] / divisor);
}

static void normalize(int64_t n, const float *x, float eps, float *y)
{
    const float squares = v_sum_over(n, x, x, v_set(0), v_term_product);
    if (!in_range(squares) && !(squares < LEAST && eps >= sqrtf(LEAST))) { /* there it is eps that counts */
        normalize_wide(n, x, eps, y);
        return;
    }
    const vf divisor = v_max(v_set(eps), v_sqrt(v_set(squares)));
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
