/* Log-sum-exps that a float does not hold. Weights are e^(s - lse), so an error of lse is a relative error of all of a
 * row's weights: half a unit in the last place, which is 0.0005 at 10^4, and more than the sum's logarithm itself at
 * 10^9, where masks are numbers that are added. If it is large it is therefore computed anew, from the scores as the
 * backward sees them, as a sum of two floats. */
#include "attn/backward/backward.h"
#include "base/math.h"

#include <math.h>

/* The softmax of some rows so far. */
typedef struct row_sums {
    bool large[ATT_MAX_Q_TILE]; /* the others are not computed */
    double top[ATT_MAX_Q_TILE]; /* largest score */
    double sum[ATT_MAX_Q_TILE]; /* of e^(score - top) */
} row_sums;

static void add_score(row_sums *r, int i, double score)
{
    if (score == -INFINITY)
        return;
    if (score > r->top[i]) {
        r->sum[i] *= att_f64_exp(r->top[i] - score);
        r->top[i] = score;
    }
    r->sum[i] += att_f64_exp(score - r->top[i]);
}

/* Finds the large rows of [q0, q0 + queries); returns whether there are any. */
static bool begin(const att_backward_work *x, int64_t q0, int queries, row_sums *r)
{
    const att_plan *plan = x->plan;
    bool any = false;
    for (int i = 0; i < queries; i++) {
        r->large[i] = att_lse_is_large(x->head.view.lse[(q0 + i) * x->head.view.lse_stride]);
        r->top[i] = -INFINITY;
        r->sum[i] = 0;
        if (plan->modifiers.sink >= 0)
            add_score(r, i, (double)att_sink_of(plan, x->head.view.param)->data[0]);
        any = any || r->large[i];
    }
    return any;
}

static void add_block(const att_block *b, row_sums *r)
{
    const double scale = b->plan->scale.in_softmax ? (double)b->plan->spec.scale : 1;
    for (int n = 0; n < b->mask_tile->n_ranges; n++)
        for (int64_t k = b->mask_tile->range[n].first; k < b->mask_tile->range[n].last; k++)
            for (int i = 0; i < b->queries; i++)
                if (r->large[i])
                    add_score(r, i, scale * (double)b->s[k * b->stride + i]);
}

/* Reads and packs queries from b->q0 on. */
static void read_queries(const att_backward_work *x, att_block *b)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const att_rows *rows = &x->head.view.q_row;
    float *packed = x->w.q.q_packed;
    b->q = packed;
    if (plan->bf16_pairs) {
        b->query = att_bf16_pack_rows(k, rows, b->q0, b->queries, plan->q_dim, x->w.q.pairs[0]);
        k->bf16.pack(b->queries, att_bf16_pairs_in(plan->q_dim), b->query.at, b->query.stride, packed);
    } else {
        b->query = att_rows_read(k, rows, b->q0, b->queries, plan->q_dim, x->w.q.query);
        att_pack_queries(plan, b->query, b->queries, packed);
        att_row_terms(plan, b->query, b->queries, x->w.q.terms);
    }
}

static void read_keys(const att_backward_work *x, int keys, att_block *b)
{
    const att_plan *plan = x->plan;
    const att_rows *rows = &x->head.view.k_row;
    if (plan->bf16_pairs) {
        b->key = att_bf16_pack_rows(plan->kernels, rows, b->k0, keys, plan->k_dim, x->w.packed_keys);
    } else {
        b->key = att_rows_read(plan->kernels, rows, b->k0, keys, plan->k_dim, x->w.key);
        att_precompute(plan, b->key, keys, x->w.precomputed);
    }
}

/* Adds up the scores of one tile of queries and all keys. */
static void add_tile(const att_backward_work *x, int64_t q0, int queries, row_sums *r)
{
    const att_plan *plan = x->plan;
    int64_t last;
    att_mask_tile mask_tile;
    att_block b = {.plan = plan,
                   .head = &x->head.view,
                   .mask_tile = &mask_tile,
                   .q0 = q0,
                   .queries = queries,
                   .query_term = x->w.q.terms,
                   .precomputed = att_precomputed_count(plan) ? x->w.precomputed : NULL,
                   .bf16_pairs = plan->bf16_pairs,
                   .s = x->w.p,
                   .stride = plan->kernels->q_tile,
                   .param = x->head.view.param};
    read_queries(x, &b);
    att_span(plan, b.head, q0, queries, &b.k0, &last);
    for (; b.k0 < last; b.k0 += ATT_KEY_BLOCK) {
        const int keys = (int)att_min(last - b.k0, ATT_KEY_BLOCK);
        att_mask_tile_make(plan, b.head, q0, queries, b.k0, keys, &mask_tile);
        if (mask_tile.n_ranges == 0)
            continue;
        read_keys(x, keys, &b);
        att_score_block(&b);
        add_block(&b, r);
    }
}

/* It is rare, so it is compiled for size. */
__attribute__((cold)) void att_backward_split_head(const att_backward_work *x)
{
    const int64_t panel = x->plan->kernels->q_tile, tq = x->head.view.head.tq;
    row_sums r;
    for (int64_t q0 = 0; q0 < tq; q0 += panel) {
        const int queries = (int)att_min(tq - q0, panel);
        if (!begin(x, q0, queries, &r))
            continue;
        add_tile(x, q0, queries, &r);
        for (int i = 0; i < queries; i++) {
            att_split_lse *to = att_split_lse_at(x->job, &x->head.view, q0 + i);
            to->origin = (float)r.top[i];
            to->rest = (float)(r.top[i] - (double)to->origin + att_f64_log(r.sum[i]));
        }
    }
}

bool att_backward_any_large(const att_call *call)
{
    att_head_view at;
    for (int64_t i = 0; i < call->sequences * call->plan->spec.heads; i++) {
        att_call_head(call, i / call->plan->spec.heads, i % call->plan->spec.heads, &at);
        for (int64_t q = 0; q < at.head.tq; q++)
            if (att_lse_is_large(at.lse[q * at.lse_stride]))
                return true;
    }
    return false;
}
