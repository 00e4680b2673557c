/* Computes stages pair by pair, in double: slow, but sufficient to try a new stage. */
#include "attn/block/block.h"

#include <string.h>

/* Returns the argument of a pair's formula, with the fields of the stage and the head. */
static att_pair score_pair(const att_score_tile *t)
{
    return (att_pair){.size = sizeof(att_pair),
                      .head = t->head,
                      .user = t->user,
                      .dim = t->dim,
                      .key_dim = t->key_dim,
                      .param = t->param};
}

static att_pair modifier_pair(const att_modifier_tile *t)
{
    return (att_pair){.size = sizeof(att_pair), .head = t->head, .user = t->user, .value = t->value, .param = t->param};
}

/* Moves p to query q and key k; false if that pair does not attend. */
static bool move(const att_block *b, int64_t q, int64_t k, att_pair *p)
{
    p->q = q;
    p->k = k;
    p->query = p->dim ? b->query.at + (q - b->q0) * b->query.stride : NULL; /* for a score */
    p->key = p->dim ? b->key.at + (k - b->k0) * b->key.stride : NULL;
    return att_mask_tile_bits(b->mask_tile, k - b->k0) >> (q - b->q0) & 1;
}

void att_score_pairs(const att_block *b, const att_score_tile *t)
{
    att_pair p = score_pair(t);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++)
            t->s[j * t->stride + i] = move(b, t->q + i, t->k + j, &p) ? (float)b->plan->score.formula(&p) : 0;
}

void att_modifier_pairs(const att_block *b, const att_modifier *m, const att_modifier_tile *t)
{
    att_pair p = modifier_pair(t);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++) {
            float *s = &t->s[j * t->stride + i];
            if (move(b, t->q + i, t->k + j, &p))
                *s = (float)m->formula(&p, *s);
        }
}

/* Returns how many numbers the parameters of a stage have, from the plan's `first` on; parameters per pair count as
 * 0. */
static int64_t param_count(const att_call *call, int first, int n)
{
    int64_t count = 0;
    for (int i = first; i < first + n; i++)
        if (call->plan->params.list[i].shape->kind == ATT_PARAM_PER_HEAD)
            count += att_param_count(&call->param[i]);
    return count;
}

size_t att_pair_scratch(const att_call *call)
{
    const att_plan *p = call->plan;
    int64_t count = 0;
    if (!p->score.tile_back && !p->builtin->is_dot)
        count = p->spec.head_dim + p->spec.key_dim + param_count(call, 0, p->score.n_params);
    for (int i = 0; i < p->modifiers.n; i++)
        if (!p->modifiers.list[i].stage.tile_back)
            count += param_count(call, p->modifiers.list[i].param, p->modifiers.list[i].stage.n_params);
    return (size_t)count;
}

/* Lays out the gradients of n parameters from `at` on; returns their end. */
static double *lay_out(int n, const att_param_view *param, double *at, double **dparam)
{
    for (int i = 0; i < n; at += param[i++].count)
        dparam[i] = param[i].grad && param[i].count ? at : NULL;
    return at;
}

/* Adds x [n] to y, whose rows are `step` apart, and clears x. */
static void flush(int64_t n, double *x, float *y, int64_t step)
{
    for (int64_t i = 0; y && i < n; i++)
        y[i * step] += (float)x[i];
    memset(x, 0, (size_t)n * sizeof *x);
}

static void flush_params(int n, const att_param_view *param, double *const *dparam)
{
    for (int i = 0; i < n; i++)
        if (dparam[i])
            flush(param[i].count, dparam[i], param[i].grad, 1);
}

/* Computes the backward of a score. Queries that include the scale are c q, so their gradient is dq / c: the driver
 * multiplies it by c. */
void att_score_pairs_back(const att_block *b, const att_score_tile *t)
{
    const att_attention_spec *s = &b->plan->spec;
    const att_score *score = &b->plan->score;
    const double factor = att_query_scale(b->plan); /* otherwise ds includes the scale */
    att_pair p = score_pair(t);
    double *dq = b->back.pair, *dk = dq + s->head_dim, *dparam[ATT_MAX_PARAMS];
    const double *end = lay_out(score->n_params, t->param, dk + s->key_dim, dparam);
    memset(b->back.pair, 0, (size_t)(end - b->back.pair) * sizeof *dq);
    for (int i = 0; i < t->queries; i++) {
        for (int j = 0; j < t->keys; j++) {
            const float ds = t->ds[j * t->stride + i];
            if (!move(b, t->q + i, t->k + j, &p) || ds == 0)
                continue;
            score->derivative(&p, factor * ds, dq, dk, dparam);
            flush(s->key_dim, dk, t->dkey + j * t->dkey_stride, 1);
        }
        for (int64_t d = 0; d < s->head_dim; d++)
            dq[d] /= factor;
        flush(s->head_dim, dq, t->dquery + i, t->columns);
    }
    flush_params(score->n_params, t->param, dparam);
}

void att_modifier_pairs_back(const att_block *b, const att_modifier *m, const att_modifier_tile *t)
{
    att_pair p = modifier_pair(t);
    double *dparam[ATT_MAX_PARAMS];
    const double *end = lay_out(m->n_params, t->param, b->back.pair, dparam);
    if (end > b->back.pair)
        memset(b->back.pair, 0, (size_t)(end - b->back.pair) * sizeof *b->back.pair);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++) {
            const int64_t at = j * t->stride + i;
            if (move(b, t->q + i, t->k + j, &p) && t->ds[at] != 0)
                t->ds[at] *= (float)m->derivative(&p, m->flags & ATT_STAGE_ADDITIVE ? 0 : t->s[at], t->ds[at], dparam);
        }
    flush_params(m->n_params, t->param, dparam);
}
