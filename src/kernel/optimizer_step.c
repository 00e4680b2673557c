/* A step of an optimizer on n numbers x, from their gradients g. */
#include "kernel/kernel.h"
#include "simd/simd.h"

/* ---- Adam (Kingma, Ba 2015), AdamW (Loshchilov, Hutter 2019) */

ATT_INLINE void adam_vector(const att_adam *a, int used, const float *g, float *x, float *m, float *v)
{
    const vf old = v_load_n(x, used);
    const vf slope = v_fma(v_set(a->l2), old, v_mul(v_set(a->scale), v_load_n(g, used)));
    const vf mean = v_fma(v_set(a->beta1), v_load_n(m, used), v_mul(v_set(a->rest1), slope));
    const vf square = v_fma(v_set(a->beta2), v_load_n(v, used), v_mul(v_mul(v_set(a->rest2), slope), slope));
    const vf divisor = v_fma(v_sqrt(square), v_set(a->unbias), v_set(a->eps));
    v_store_n(m, mean, used);
    v_store_n(v, square, used);
    const vf step = v_fma(v_set(a->decay), old, v_mul(v_set(a->rate), v_div(mean, divisor)));
    v_store_n(x, v_sub(old, step), used); /* a single rounding of x, however small the step is */
}

static void adam(int64_t n, const att_adam *a, const float *g, float *x, float *m, float *v)
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        adam_vector(a, ATT_LANES, g + i, x + i, m + i, v + i);
    if (i < n) /* numbers after the end divide 0 by eps */
        adam_vector(a, (int)(n - i), g + i, x + i, m + i, v + i);
}

/* ---- SGD with momentum (Polyak 1964, as Sutskever et al. 2013 but for the rate, which does not enter m) */

ATT_INLINE void sgd_vector(const att_sgd *s, int used, const float *g, float *x, float *m)
{
    const vf old = v_load_n(x, used);
    vf slope = v_fma(v_set(s->l2), old, v_mul(v_set(s->scale), v_load_n(g, used)));
    if (m) {
        slope = v_fma(v_set(s->momentum), v_load_n(m, used), slope);
        v_store_n(m, slope, used);
    }
    v_store_n(x, v_fma(v_set(-s->rate), slope, old), used);
}

static void sgd(int64_t n, const att_sgd *s, const float *g, float *x, float *m)
{
    int64_t i = 0;
    for (; i + ATT_LANES <= n; i += ATT_LANES)
        sgd_vector(s, ATT_LANES, g + i, x + i, m ? m + i : NULL);
    if (i < n)
        sgd_vector(s, (int)(n - i), g + i, x + i, m ? m + i : NULL);
}

void ATTEND_ISA(att_kernel_optimizer_step)(att_kernels *k);
void ATTEND_ISA(att_kernel_optimizer_step)(att_kernels *k)
{
    k->layer.adam = adam;
    k->layer.sgd = sgd;
}
