/* Attention as its formulas say, in double: no tiles, no tricks. */
#include "attn/attn.h"

#include <math.h>

static bool keep(const att_plan *plan, const att_site *at, int64_t q, int64_t k)
{
    for (int m = 0; m < plan->n_masks; m++)
        if (!plan->spec.mask[m]->keep(at, q, k))
            return false;
    return true;
}

static double score(const att_plan *plan, const att_site *at, int64_t q, int64_t k)
{
    double s = plan->score->formula(at->q + q * at->q_stride, at->k + k * at->k_stride, plan->spec.head_dim);
    s *= plan->spec.scale;
    for (int m = 0; m < plan->n_modifiers; m++)
        s = plan->modifier[m]->formula(at, q, k, s);
    return keep(plan, at, q, k) ? s : -INFINITY;
}

double att_ref_attention_row(const att_plan *plan, const att_site *at, int64_t q, double *weights, double *out)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < at->tk; k++)
        max = fmax(max, score(plan, at, q, k));
    for (int64_t k = 0; k < at->tk && max > -INFINITY; k++)
        sum += exp(score(plan, at, q, k) - max);
    for (int64_t d = 0; out && d < plan->spec.value_dim; d++)
        out[d] = 0;
    for (int64_t k = 0; k < at->tk; k++) {
        const double w = sum > 0 ? exp(score(plan, at, q, k) - max) / sum : 0;
        if (weights)
            weights[k] = w;
        for (int64_t d = 0; out && w > 0 && d < plan->spec.value_dim; d++)
            out[d] += w * at->v[k * at->v_stride + d];
    }
    return sum > 0 ? max + log(sum) : -INFINITY;
}

void att_ref_attention_row_backward(const att_plan *plan, const att_site *at, int64_t q, const double *weights,
                                    const double *out, const float *dout, double *dq, double *dk, double *dv)
{
    const int64_t dim = plan->spec.head_dim, value_dim = plan->spec.value_dim;
    double delta = 0;
    for (int64_t d = 0; d < value_dim; d++)
        delta += dout[d] * out[d];
    for (int64_t k = 0; k < at->tk; k++) {
        double dp = 0;
        for (int64_t d = 0; d < value_dim && weights[k] > 0; d++) {
            dp += (double)dout[d] * at->v[k * at->v_stride + d];
            dv[k * value_dim + d] += weights[k] * dout[d];
        }
        if (weights[k] > 0)
            plan->score->derivative(at->q + q * at->q_stride, at->k + k * at->k_stride, dim,
                                    plan->spec.scale * weights[k] * (dp - delta), dq, dk + k * dim);
    }
}
