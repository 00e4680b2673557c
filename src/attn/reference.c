/* Attention by its formulas, in double, without tiles. */
#include "attn/reference.h"

#include <math.h>
#include <string.h>

int att_ref_masked_by(const att_plan *plan, const att_head_view *at, int64_t q, int64_t k)
{
    for (int i = 0; i < plan->masks.n; i++) {
        const att_mask_block pair = att_mask_block_of(plan, i, at, (att_range){q, q + 1}, (att_range){k, k + 1});
        if (!plan->masks.list[i].stage.keep(&pair))
            return i;
    }
    return -1;
}

/* Returns the pair as the score sees it, for a call whose rows have not been transformed. */
static att_pair pair_of(const att_plan *plan, const att_head_view *at, int64_t q, int64_t k)
{
    return (att_pair){.size = sizeof(att_pair),
                      .head = &at->head,
                      .user = plan->score.user,
                      .param = at->param,
                      .q = q,
                      .k = k,
                      .query = (const float *)at->q_row.at + q * at->q_row.stride,
                      .key = (const float *)at->k_row.at + k * at->k_row.stride,
                      .dim = plan->spec.head_dim,
                      .key_dim = plan->spec.key_dim};
}

/* Returns the pair as modifier m sees it: its position, without its query and key. */
static att_pair seen_by(const att_plan *plan, const att_head_view *at, int m, int64_t q, int64_t k)
{
    return (att_pair){.size = sizeof(att_pair),
                      .head = &at->head,
                      .user = plan->modifiers.list[m].stage.user,
                      .value = plan->modifiers.list[m].value,
                      .q = q,
                      .k = k,
                      .param = at->param + plan->modifiers.list[m].param};
}

void att_ref_scores(const att_plan *plan, const att_head_view *at, int64_t q, int64_t k, double *s)
{
    const att_pair p = pair_of(plan, at, q, k);
    s[0] = plan->spec.scale * plan->score.formula(&p);
    for (int m = 0; m < plan->modifiers.n; m++) {
        const att_pair seen = seen_by(plan, at, m, q, k);
        s[m + 1] = plan->modifiers.list[m].stage.formula ? plan->modifiers.list[m].stage.formula(&seen, s[m]) : s[m];
    }
}

static double score(const att_plan *plan, const att_head_view *at, int64_t q, int64_t k)
{
    if (att_ref_masked_by(plan, at, q, k) >= 0)
        return -INFINITY;
    double s[ATT_MAX_STAGES + 1];
    att_ref_scores(plan, at, q, k, s);
    return s[plan->modifiers.n];
}

/* Returns dropout's factor of a weight. */
static double dropout(const att_plan *plan, const att_head_view *at, int64_t q, int64_t k)
{
    if (at->dropout.threshold == 0)
        return 1;
    const bool keep = att_dropout_keep(&at->dropout, (uint32_t)(at->head.position + q), (uint32_t)k);
    return keep ? 1 / (1 - (double)plan->spec.dropout) : 0;
}

double att_ref_attention_row(const att_plan *plan, const att_head_view *at, int64_t q, double *weights, double *out)
{
    const int64_t tk = at->head.tk;
    const float *value = at->v.at;
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < tk; k++)
        max = fmax(max, score(plan, at, q, k));
    const bool any = max > -INFINITY;
    if (any && plan->modifiers.sink >= 0) {
        const double sink = att_sink_of(plan, at->param)->data[0];
        max = fmax(max, sink);
        sum = exp(sink - max);
    }
    for (int64_t k = 0; any && k < tk; k++)
        sum += exp(score(plan, at, q, k) - max);
    for (int64_t d = 0; out && d < plan->spec.value_dim; d++)
        out[d] = 0;
    for (int64_t k = 0; k < tk; k++) {
        const double w = any ? exp(score(plan, at, q, k) - max) / sum : 0;
        if (weights)
            weights[k] = w;
        for (int64_t d = 0; out && w > 0 && d < plan->spec.value_dim; d++)
            out[d] += dropout(plan, at, q, k) * w * value[k * at->v.stride + d];
    }
    return any ? max + log(sum) : -INFINITY;
}

/* Computes the backward of the stages from ds, the gradient of a pair's modified score. */
static void pair_backward(const att_plan *plan, const att_head_view *at, int64_t q, int64_t k, double ds,
                          const att_ref_grads *g)
{
    double s[ATT_MAX_STAGES + 1];
    const att_pair p = pair_of(plan, at, q, k);
    att_ref_scores(plan, at, q, k, s);
    for (int m = plan->modifiers.n - 1; m >= 0; m--) {
        const att_pair seen = seen_by(plan, at, m, q, k);
        if (plan->modifiers.list[m].stage.derivative)
            ds *= plan->modifiers.list[m].stage.derivative(&seen, s[m], ds, g->dparam + plan->modifiers.list[m].param);
    }
    plan->score.derivative(&p, plan->spec.scale * ds, g->dq, g->dk + k * plan->spec.key_dim, g->dparam);
}

void att_ref_attention_row_backward(const att_plan *plan, const att_head_view *at, int64_t q, const double *weights,
                                    const double *out, const float *dout, float dlse, const att_ref_grads *g)
{
    const int64_t value_dim = plan->spec.value_dim;
    const float *value = at->v.at;
    double delta = -dlse;
    for (int64_t d = 0; d < value_dim; d++)
        delta += dout[d] * out[d];
    for (int64_t k = 0; k < at->head.tk; k++) {
        const double factor = dropout(plan, at, q, k);
        double dp = 0;
        for (int64_t d = 0; d < value_dim && weights[k] > 0; d++) {
            dp += factor * dout[d] * value[k * at->v.stride + d];
            g->dv[k * value_dim + d] += factor * weights[k] * dout[d];
        }
        if (weights[k] > 0)
            pair_backward(plan, at, q, k, weights[k] * (dp - delta), g);
    }
    const int sink = plan->modifiers.sink >= 0 ? plan->modifiers.list[plan->modifiers.sink].param : 0;
    if (plan->modifiers.sink >= 0 && g->dparam[sink]) { /* it has a weight but no value */
        const double lse = att_ref_attention_row(plan, at, q, NULL, NULL);
        if (lse > -INFINITY)
            g->dparam[sink][0] -= exp(att_sink_of(plan, at->param)->data[0] - lse) * delta;
    }
}
