/* Normalization of one row. Sums are in float, or in double if the squares leave the range of float. RMS norm is layer
 * norm with a mean of 0 and without beta: `centered` and `shifted` state whether the mean is subtracted and whether
 * there is a beta, and are constants where functions are inlined. */
#include "kernel/kernel.h"
#include "kernel/reduce.h"

#include <float.h>
#include <math.h>

/* If the sum of squares is less, squares of single numbers may have underflowed. */
#define MIN_SQUARES 0x1p-100f

static bool in_range(float squares) { return squares >= MIN_SQUARES && squares <= FLT_MAX; } /* false for NaN */

static void norm_wide(bool centered, int64_t n, const float *x, const float *gamma, const float *beta, float eps,
                      float *y)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n && centered; i++)
        mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean);
    const double sigma = sqrt(variance / (double)n + (double)eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((x[i] - mean) / sigma * gamma[i] + (beta ? beta[i] : 0));
}

/* Normalizes in two passes: the mean, then the mean square of the differences, which cannot cancel. */
ATT_INLINE void norm(const bool centered, const bool shifted, int64_t n, const float *x, const float *gamma,
                     const float *beta, float eps, float *y)
{
    const vf mean = v_set(centered ? v_sum_over(n, x, x, v_set(0), v_term_value) / (float)n : 0);
    const float variance = v_sum_over(n, x, x, mean, v_term_squared_deviation) / (float)n;
    if (!in_range(variance + eps)) {
        norm_wide(centered, n, x, gamma, beta, eps, y);
        return;
    }
    const vf scale = v_div(v_set(1), v_sqrt(v_set(variance + eps)));
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES) {
        const vf z = v_mul(v_sub(v_load(x + i), mean), scale);
        v_store(y + i, v_fma(z, v_load(gamma + i), shifted ? v_load(beta + i) : v_set(0)));
    }
    if (i < n) {
        const int rest = (int)(n - i);
        const vf z = v_mul(v_sub(v_load_n(x + i, rest), mean), scale);
        v_store_n(y + i, v_fma(z, v_load_n(gamma + i, rest), shifted ? v_load_n(beta + i, rest) : v_set(0)), rest);
    }
}

static void layer_norm(int64_t n, const float *x, const float *gamma, const float *beta, float eps, float *y)
{
    if (beta)
        norm(true, true, n, x, gamma, beta, eps, y);
    else
        norm(true, false, n, x, gamma, NULL, eps, y);
}
static void rms_norm(int64_t n, const float *x, const float *gamma, float eps, float *y)
{
    norm(false, false, n, x, gamma, NULL, eps, y);
}

/* The gradients of a row, to which the backward adds; dbeta is NULL if there is no beta. */
typedef struct norm_grads {
    float *dx, *dgamma, *dbeta;
} norm_grads;

static void norm_back_wide(bool centered, int64_t n, const float *x, const float *gamma, float eps, const float *dy,
                           const norm_grads *to)
{
    double mean = 0, variance = 0, sum = 0, along = 0;
    for (int64_t i = 0; i < n && centered; i++)
        mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / sqrt(variance / (double)n + (double)eps);
    for (int64_t i = 0; i < n; i++) {
        sum += centered ? (double)dy[i] * gamma[i] : 0;
        along += (double)dy[i] * gamma[i] * ((x[i] - mean) * scale);
    }
    for (int64_t i = 0; i < n; i++) {
        const double z = (x[i] - mean) * scale;
        to->dx[i] += (float)(scale * ((double)dy[i] * gamma[i] - (sum + z * along) / (double)n));
        to->dgamma[i] += (float)(dy[i] * z);
        if (centered)
            to->dbeta[i] += dy[i];
    }
}

/* The sums of a row that its vectors need. */
typedef struct norm_back {
    vf mean, scale;
    vf sum, along; /* means of dy gamma and of dy gamma z, z = (x - mean) scale */
} norm_back;

/* Adds g = dy gamma and g z to two chains. */
ATT_INLINE void gather_back(norm_back *r, vf x, vf gamma, vf dy)
{
    const vf g = v_mul(dy, gamma);
    r->sum = v_add(r->sum, g);
    r->along = v_fma(g, v_mul(v_sub(x, r->mean), r->scale), r->along);
}

/* Adds dx = scale (g - sum - z along), dgamma = dy z and dbeta = dy, for `used` numbers from i on. */
ATT_INLINE void spread_back(const bool centered, const norm_back *r, int64_t i, int used, const float *x,
                            const float *gamma, const float *dy, const norm_grads *to)
{
    const vf y = v_load_n(dy + i, used), z = v_mul(v_sub(v_load_n(x + i, used), r->mean), r->scale);
    const vf rest = v_sub(v_sub(v_mul(y, v_load_n(gamma + i, used)), r->sum), v_mul(z, r->along));
    v_store_n(to->dx + i, v_fma(r->scale, rest, v_load_n(to->dx + i, used)), used);
    v_store_n(to->dgamma + i, v_fma(y, z, v_load_n(to->dgamma + i, used)), used);
    if (centered)
        v_store_n(to->dbeta + i, v_add(y, v_load_n(to->dbeta + i, used)), used);
}

ATT_INLINE void back(const bool centered, int64_t n, const float *x, const float *gamma, float eps, const float *dy,
                     const norm_grads *to)
{
    const vf mean = v_set(centered ? v_sum_over(n, x, x, v_set(0), v_term_value) / (float)n : 0);
    const float variance = v_sum_over(n, x, x, mean, v_term_squared_deviation) / (float)n;
    if (!in_range(variance + eps)) {
        norm_back_wide(centered, n, x, gamma, eps, dy, to);
        return;
    }
    norm_back r = {mean, v_div(v_set(1), v_sqrt(v_set(variance + eps))), v_set(0), v_set(0)};
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        gather_back(&r, v_load(x + i), v_load(gamma + i), v_load(dy + i));
    if (i < n) { /* numbers after the end are 0 and add 0 */
        const int rest = (int)(n - i);
        gather_back(&r, v_load_n(x + i, rest), v_load_n(gamma + i, rest), v_load_n(dy + i, rest));
    }
    r.sum = v_set(centered ? v_sum(r.sum) / (float)n : 0);
    r.along = v_set(v_sum(r.along) / (float)n);
    for (i = 0; i < n; i += ATT_LANES)
        spread_back(centered, &r, i, n - i < ATT_LANES ? (int)(n - i) : ATT_LANES, x, gamma, dy, to);
}

static void layer_norm_back(int64_t n, const float *x, const float *gamma, float eps, const float *dy, float *dx,
                            float *dgamma, float *dbeta)
{
    back(true, n, x, gamma, eps, dy, &(const norm_grads){dx, dgamma, dbeta});
}
static void rms_norm_back(int64_t n, const float *x, const float *gamma, float eps, const float *dy, float *dx,
                          float *dgamma)
{
    back(false, n, x, gamma, eps, dy, &(const norm_grads){dx, dgamma, NULL});
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
    if (!in_range(squares) && !(squares < MIN_SQUARES && eps >= sqrtf(MIN_SQUARES))) { /* eps dominates there */
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

void ATTEND_ISA(att_kernel_norm)(att_kernels *k);
void ATTEND_ISA(att_kernel_norm)(att_kernels *k)
{
    k->layer.layer_norm = layer_norm;
    k->layer.layer_norm_back = layer_norm_back;
    k->layer.rms_norm = rms_norm;
    k->layer.rms_norm_back = rms_norm_back;
    k->layer.normalize = normalize;
}
