/* Recomputes attention weights on demand, so that the forward pass does not store them. */
#include "attn/block/block.h"
#include "attn/call/transform.h"

#include <math.h>
#include <string.h>

/* Computes the softmax of one row of scores [tk], with the sink if there is one; row [tk + 1] is scratch memory. */
static void softmax_row(const att_plan *plan, const att_head_view *at, float *row, float *scores)
{
    const int64_t tk = at->head.tk;
    bool any = false;
    for (int64_t k = 0; k < tk; k++)
        any = any || scores[k] != -INFINITY;
    memcpy(row, scores, (size_t)tk * sizeof *row);
    if (any && plan->modifiers.sink >= 0)
        row[tk] = att_sink_of(plan, at->param)->data[0];
    plan->kernels->layer.softmax(any && plan->modifiers.sink >= 0 ? tk + 1 : tk, row, row);
    memcpy(scores, row, (size_t)tk * sizeof *row);
}

typedef struct weights_scratch {
    float *q, *s;        /* [q_dim][panel] [ATT_KEY_BLOCK][panel] */
    float *query, *keys; /* [panel, q_dim] [ATT_KEY_BLOCK, k_dim], converted */
    float *terms;        /* [panel + ATT_KEY_BLOCK], if the score has a term of each row, queries before keys */
    float *row;          /* [tk + 1] */
} weights_scratch;

/* Computes weights of up to a panel of queries, [queries, tk]. */
static void weights_of_block(const att_plan *plan, const att_head_view *at, int64_t q0, int queries,
                             const weights_scratch *w, float *weights)
{
    const att_kernels *kernels = plan->kernels;
    const int panel = kernels->q_tile;
    const int64_t tk = at->head.tk;
    int64_t last;
    att_mask_tile mask_tile;
    att_block b = {.plan = plan,
                   .head = at,
                   .mask_tile = &mask_tile,
                   .q0 = q0,
                   .queries = queries,
                   .q = w->q,
                   .s = w->s,
                   .query = att_rows_read(kernels, &at->q_row, q0, queries, plan->q_dim, w->query),
                   .query_term = w->terms,
                   .precomputed = plan->score.term ? w->terms + panel : NULL,
                   .stride = panel,
                   .param = at->param};
    att_pack_queries(plan, b.query, queries, w->q);
    att_row_terms(plan, b.query, queries, w->terms);
    for (int64_t i = 0; i < queries * tk; i++)
        weights[i] = -INFINITY;
    att_span(plan, at, q0, queries, &b.k0, &last);
    for (; b.k0 < last; b.k0 += ATT_KEY_BLOCK) {
        const int keys = (int)(tk - b.k0 < ATT_KEY_BLOCK ? tk - b.k0 : ATT_KEY_BLOCK);
        b.key = att_rows_read(kernels, &at->k_row, b.k0, keys, plan->k_dim, w->keys);
        att_row_terms(plan, b.key, keys, w->terms + panel);
        att_mask_tile_make(plan, at, q0, queries, b.k0, keys, &mask_tile);
        att_score_block(&b);
        for (int r = 0; r < mask_tile.n_ranges; r++)
            for (int64_t k = mask_tile.range[r].first; k < mask_tile.range[r].last; k++)
                for (int i = 0; i < queries; i++)
                    weights[i * tk + b.k0 + k] = w->s[k * panel + i];
    }
    for (int i = 0; i < queries; i++)
        softmax_row(plan, at, w->row, weights + i * tk);
}

typedef struct weights_job {
    const att_plan *plan;
    const att_head_view *at;
    const weights_scratch *w;
    int64_t q_first, q_count;
    float *weights; /* [q_count, tk] */
} weights_job;

static void weights_of_queries(void *arg, int task)
{
    const weights_job *j = arg;
    const int64_t panel = j->plan->kernels->q_tile;
    (void)task;
    for (int64_t i = 0; i < j->q_count; i += panel)
        weights_of_block(j->plan, j->at, j->q_first + i, (int)(j->q_count - i < panel ? j->q_count - i : panel), j->w,
                         j->weights + i * j->at->head.tk);
}

att_status att_weights(const att_plan *plan, const att_attention_args *args, int64_t sequence, int64_t head,
                       int64_t q_first, int64_t q_count, float *weights)
{
    if (att_require(__func__, ATT_NAMED({"plan", plan})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = plan->ctx;
    att_call call;
    att_head_view at;
    att_status e = att_call_check(plan, args, false, &call);
    e = e ? e : att_call_find_head(&call, sequence, head, &at);
    if (e)
        return e;
    call.heads = (att_range){head, head + 1};
    if (q_first < 0 || q_count < 0 || q_count > at.head.tq || q_first > at.head.tq - q_count)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "queries from %lld, %lld of them, but the sequence has %lld",
                        (long long)q_first, (long long)q_count, (long long)at.head.tq);
    if (!weights && q_count > 0 && at.head.tk > 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "weights is NULL");
    const int64_t panel = plan->kernels->q_tile;
    const int64_t dim = plan->q_dim, key_dim = plan->k_dim;
    weights_scratch w = {
        .q = att_alloc(ctx,
                       (size_t)((2 * dim + 1 + ATT_KEY_BLOCK) * panel + ATT_KEY_BLOCK * (key_dim + 1) + at.head.tk + 1),
                       sizeof *w.q)};
    if (!w.q || att_transform_begin(&call)) {
        att_free(ctx, w.q);
        return ATT_ERR_MEMORY;
    }
    att_call_head(&call, sequence, head, &at); /* with transformed rows */
    w.s = w.q + dim * panel;
    w.query = w.s + ATT_KEY_BLOCK * panel;
    w.keys = w.query + dim * panel;
    w.terms = w.keys + ATT_KEY_BLOCK * key_dim;
    w.row = w.terms + panel + ATT_KEY_BLOCK;
    /* a task, so that the host's floating-point settings do not matter */
    att_parallel_for(ctx, 1, weights_of_queries, &(weights_job){plan, &at, &w, q_first, q_count, weights});
    att_transform_end(&call);
    att_free(ctx, w.q);
    return ATT_OK;
}
