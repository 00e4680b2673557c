/* Stages pair by pair, in double: slow, but all that a new idea needs. */
#include "attn/block/block.h"

#include <string.h>

/* What a pair's formula is told of the stage and the heads. */
static att_pair pair_of(const att_tile *t)
{
    return (att_pair){
        .at = t->at, .user = t->user, .value = t->value, .dim = t->dim, .key_dim = t->key_dim, .param = t->param};
}

/* Moves p to query i and key j of the tile; false if that pair does not attend. */
static bool move(const att_block *b, const att_tile *t, int i, int j, att_pair *p)
{
    p->q = t->q + i;
    p->k = t->k + j;
    p->query = t->query ? b->query.at + (p->q - b->q0) * b->query.stride : NULL; /* of a score */
    p->key = t->key ? b->key.at + (p->k - b->k0) * b->key.stride : NULL;
    return att_mask_tile_bits(b->mask_tile, p->k - b->k0) >> i & 1;
}

void att_score_pairs(const att_block *b, const att_tile *t)
{
    att_pair p = pair_of(t);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++)
            t->s[j * t->stride + i] = move(b, t, i, j, &p) ? (float)b->plan->score->formula(&p) : 0;
}

void att_modifier_pairs(const att_block *b, const att_modifier *m, const att_tile *t)
{
    att_pair p = pair_of(t);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++) {
            float *s = &t->s[j * t->stride + i];
            if (move(b, t, i, j, &p))
                *s = (float)m->formula(&p, *s);
        }
}

size_t att_pair_scratch(const att_call *call)
{
    const att_plan *p = call->plan;
    int64_t count = 0;
    if (!p->score->tile_back && !(p->score->flags & ATT_DOT))
        count = p->spec.head_dim + p->spec.key_dim;
    for (int i = 0; count && i < ATT_MAX_PARAMS; i++)
        count += att_param_count(&call->args.score_param[i]);
    for (int i = 0; i < p->n_modifiers; i++)
        if (!p->modifier[i]->tile_back)
            count += att_param_count(&call->args.modifier_param[i]);
    return (size_t)count;
}

/* x [n] is added to y, rows of which are `step` apart, and cleared */
static void flush(int64_t n, double *x, float *y, int64_t step)
{
    for (int64_t i = 0; y && i < n; i++)
        y[i * step] += (float)x[i];
    memset(x, 0, (size_t)n * sizeof *x);
}

/* Folded queries are c q, so what arrives at them is dq / c: the driver multiplies with c again. */
void att_score_pairs_back(const att_block *b, const att_tile *t)
{
    const att_attention_spec *s = &b->plan->spec;
    const double factor = att_query_scale(b->plan); /* otherwise ds has it */
    att_pair p = pair_of(t);
    double *dq = b->pair, *dk = dq + s->head_dim, *dparam[ATT_MAX_PARAMS] = {NULL}, *end = dk + s->key_dim;
    for (int n = 0; n < ATT_MAX_PARAMS; end += t->param[n++].count)
        dparam[n] = t->param[n].grad ? end : NULL;
    memset(b->pair, 0, (size_t)(end - b->pair) * sizeof *dq);
    for (int i = 0; i < t->queries; i++) {
        for (int j = 0; j < t->keys; j++) {
            const float ds = t->ds[j * t->stride + i];
            if (!move(b, t, i, j, &p) || ds == 0)
                continue;
            b->plan->score->derivative(&p, factor * ds, dq, dk, dparam);
            flush(s->key_dim, dk, t->dkey + j * t->dkey_stride, 1);
        }
        for (int64_t d = 0; d < s->head_dim; d++)
            dq[d] /= factor;
        flush(s->head_dim, dq, t->dquery + i, t->columns);
    }
    for (int n = 0; n < ATT_MAX_PARAMS; n++)
        if (dparam[n])
            flush(t->param[n].count, dparam[n], t->param[n].grad, 1);
}

void att_modifier_pairs_back(const att_block *b, const att_modifier *m, const att_tile *t)
{
    att_pair p = pair_of(t);
    double *dparam = t->param->grad ? b->pair : NULL;
    memset(b->pair, 0, (size_t)t->param->count * sizeof *b->pair);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++) {
            const int64_t at = j * t->stride + i;
            if (move(b, t, i, j, &p) && t->ds[at] != 0)
                t->ds[at] *= (float)m->derivative(&p, m->flags & ATT_ADDITIVE ? 0 : t->s[at], t->ds[at], dparam);
        }
    if (dparam)
        flush(t->param->count, dparam, t->param->grad, 1);
}
