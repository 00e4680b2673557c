/* The references: each kernel's formula in double, in plain loops. */
#include "kernel/kernel.h"
#include "kernel/philox.h"
#include "attend_learn.h"

#include <math.h>

void att_ref_gemm(const att_ref_gemm_args *x, double *c, int64_t ldc)
{
    const att_epilogue nothing = {.activation = ATT_ACTIVATION_IDENTITY}, *e = x->epilogue ? x->epilogue : &nothing;
    for (int64_t i = 0; i < x->m; i++) {
        for (int64_t j = 0; j < x->n; j++) {
            double sum = (e->add ? c[i * ldc + j] : 0) + (e->bias ? e->bias[j] : 0);
            for (int64_t p = 0; p < x->k; p++)
                sum += (double)x->a[i * x->lda + p] * x->b[j * x->stride_n + p * x->stride_k];
            c[i * ldc + j] = att_ref_activate(e->activation, sum);
            if (e->residual)
                c[i * ldc + j] += e->residual[i * e->residual_stride + j];
        }
    }
}

bool att_dropout_keep(const att_dropout_mask *d, uint32_t q, uint32_t k)
{
    uint32_t words[4];
    att_philox(d->seed, (const uint32_t[]){q, k / 4, d->head, d->sequence}, words);
    return words[k % 4] >= d->threshold;
}

double att_ref_activate(int activation, double x)
{
    static const double pi = 3.14159265358979323846;
    switch (activation) {
    case ATT_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case ATT_ACTIVATION_GELU_ERF: /* x Phi(x), whose limit at -inf is 0 */
        return x == -INFINITY ? 0 : x * erfc(-x / sqrt(2)) / 2;
    case ATT_ACTIVATION_GELU_TANH: /* (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)) */
        return x == -INFINITY ? 0 : x / (1 + exp(-2 * sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    case ATT_ACTIVATION_TANH:
        return tanh(x);
    case ATT_ACTIVATION_SILU:
        return x == -INFINITY ? 0 : x / (1 + exp(-x));
    case ATT_ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case ATT_ACTIVATION_QUICK_GELU:
        return x == -INFINITY ? 0 : x / (1 + exp(-1.702 * x));
    default:
        return x;
    }
}

double att_ref_activate_slope(int activation, double x)
{
    static const double pi = 3.14159265358979323846;
    const double s = 1 / (1 + exp(-x)), t = tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x));
    switch (activation) {
    case ATT_ACTIVATION_RELU:
        return x != x ? x : x > 0;
    case ATT_ACTIVATION_GELU_ERF: /* Phi(x) + x phi(x) */
        return isinf(x) ? x > 0 : erfc(-x / sqrt(2)) / 2 + x * exp(-x * x / 2) / sqrt(2 * pi);
    case ATT_ACTIVATION_GELU_TANH:
        return isinf(x) ? x > 0 : (1 + t) / 2 + x / 2 * (1 - t * t) * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x);
    case ATT_ACTIVATION_TANH:
        return 1 / (cosh(x) * cosh(x));
    case ATT_ACTIVATION_SILU:
        return isinf(x) ? x > 0 : s + x * s * (1 - s);
    case ATT_ACTIVATION_SIGMOID:
        return s * (1 - s);
    case ATT_ACTIVATION_QUICK_GELU:
        return att_ref_activate_slope(ATT_ACTIVATION_SILU, 1.702 * x);
    default:
        return 1;
    }
}

double att_ref_logistic(double x, double t) { return t < 0 ? 0 : fmax(x, 0) - x * t + log1p(exp(-fabs(x))); }

void att_ref_softmax(int64_t n, const float *x, double *y)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += y[i] = x[i] == -INFINITY ? 0 : exp(x[i] - top);
    for (int64_t i = 0; i < n; i++)
        y[i] = sum == 0 ? 0 : y[i] / sum;
}

double att_ref_log_sum_exp(int64_t n, const float *x)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, x[i]);
    for (int64_t i = 0; i < n && top != -INFINITY; i++)
        sum += exp(x[i] - top);
    return top == -INFINITY ? top : top + log(sum);
}

void att_ref_layer_norm(int64_t n, const float *x, const float *gamma, const float *beta, float eps, double *y)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(variance + eps) * gamma[i] + (beta ? beta[i] : 0);
}

void att_ref_rms_norm(int64_t n, const float *x, const float *gamma, float eps, double *y)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (double)x[i] * x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / sqrt(squares + eps) * gamma[i];
}

void att_ref_norm_back(bool centered, int64_t n, const float *x, const float *gamma, float eps, const float *dy,
                       double *dx, double *dgamma)
{
    double mean = 0, variance = 0, sum = 0, along = 0;
    for (int64_t i = 0; i < n; i++)
        mean += centered ? x[i] / (double)n : 0;
    for (int64_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    const double sigma = sqrt(variance + eps);
    for (int64_t i = 0; i < n; i++) {
        sum += centered ? (double)dy[i] * gamma[i] / (double)n : 0;
        along += (double)dy[i] * gamma[i] * (x[i] - mean) / sigma / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        dx[i] = ((double)dy[i] * gamma[i] - sum - (x[i] - mean) / sigma * along) / sigma;
        dgamma[i] = dy[i] * (x[i] - mean) / sigma;
    }
}

void att_ref_normalize(int64_t n, const float *x, float eps, double *y)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (double)x[i] * x[i];
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / fmax(sqrt(squares), eps);
}

void att_ref_rotate(int64_t pairs, const int64_t step[2], float direction, const float *x, const float *sine,
                    const float *cosine, double *y)
{
    for (int64_t i = 0; i < pairs; i++) {
        const int64_t at = i * step[0];
        const double a = x[at], b = x[at + step[1]], s = (double)direction * sine[i], c = cosine[i];
        y[at] = a * c - b * s;
        y[at + step[1]] = a * s + b * c;
    }
}

void att_ref_gru(int64_t n, const double *in, const double *product, const double *h, double *y)
{
    for (int64_t i = 0; i < n; i++) {
        const double r = att_ref_activate(ATT_ACTIVATION_SIGMOID, in[i] + product[i]),
                     z = att_ref_activate(ATT_ACTIVATION_SIGMOID, in[n + i] + product[n + i]);
        y[i] = (1 - z) * tanh(in[2 * n + i] + r * product[2 * n + i]) + z * h[i];
    }
}

void att_ref_lstm(int64_t n, const double *in, const double *product, const double *c, double *y, double *c_new)
{
    for (int64_t i = 0; i < n; i++) {
        double a[4];
        for (int64_t g = 0; g < 4; g++)
            a[g] = in[g * n + i] + product[g * n + i];
        c_new[i] = att_ref_activate(ATT_ACTIVATION_SIGMOID, a[1]) * c[i] +
                   att_ref_activate(ATT_ACTIVATION_SIGMOID, a[0]) * tanh(a[2]);
        y[i] = att_ref_activate(ATT_ACTIVATION_SIGMOID, a[3]) * tanh(c_new[i]);
    }
}

void att_ref_adam(int64_t n, const att_adam *a, const float *g, double *x, double *m, double *v)
{
    for (int64_t i = 0; i < n; i++) {
        const double slope = (double)a->scale * g[i] + a->l2 * x[i];
        m[i] = a->beta1 * m[i] + a->rest1 * slope;
        v[i] = a->beta2 * v[i] + a->rest2 * slope * slope;
        x[i] -= a->rate * m[i] / (a->unbias * sqrt(v[i]) + a->eps) + a->decay * x[i];
    }
}

void att_ref_sgd(int64_t n, const att_sgd *s, const float *g, double *x, double *m)
{
    for (int64_t i = 0; i < n; i++) {
        const double slope = (double)s->scale * g[i] + s->l2 * x[i];
        const double step = m ? m[i] = s->momentum * m[i] + slope : slope;
        x[i] -= s->rate * step;
    }
}
