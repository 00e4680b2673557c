#include "recommend/list_call.h"
#include "util/array.h"
#include "util/best.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

static att_status read_options(att_list_call *c, const att_recommend_options *options)
{
    const att_recommender *m = c->m;
    att_recommend_options *o = &c->o;
    att_status e = att_options_read(o, sizeof *o, options, "att_recommend_options");
    if (!e && o->k < 0)
        e = att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.k is %lld, less than 0", (long long)o->k);
    e = e ? e : att_rerank_check_items(m, "allow", o->allow, o->n_allow);
    e = e ? e : att_rerank_check_items(m, "deny", o->deny, o->n_deny);
    o->k = att_min(o->k ? o->k : 10, m->config.info.items);
    return e ? e : att_rerank_new(m, o, &c->rerank);
}

/* Makes c->allowed from allow and deny lists, and from items without a vector. */
static att_status make_allowed(att_list_call *c)
{
    const att_recommend_options *o = &c->o;
    const att_items_without *without = &c->table.without;
    const int64_t all = c->m->config.info.items;
    att_tensor v;
    if (!o->n_allow && !o->n_deny && !without->n)
        return ATT_OK;
    c->allowed = att_alloc(c->m->model.ctx, (size_t)all, sizeof *c->allowed);
    if (!c->allowed)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++)
        c->allowed[i] = o->n_allow ? -INFINITY : 0;
    for (int64_t i = 0; i < o->n_allow; i++)
        c->allowed[o->allow[i]] = 0;
    for (int64_t i = 0; i < o->n_deny; i++)
        c->allowed[o->deny[i]] = -INFINITY;
    for (int64_t i = 0; i < without->n; i++)
        c->allowed[without->items[i]] = -INFINITY;
    att_wrap(&v, c->allowed, ATT_F32, 1, &all, NULL);
    return att_param_new(c->m->model.ctx, &v, &c->allowed_as);
}

static att_status make_lists(const att_recommender *m, int64_t n, int64_t k, att_recommendation *out)
{
    *out = (att_recommendation){.n = n,
                                .k = k,
                                .items = att_alloc(m->model.ctx, (size_t)(n * k), sizeof *out->items),
                                .scores = att_alloc(m->model.ctx, (size_t)(n * k), sizeof *out->scores),
                                .by_popular = att_calloc(m->model.ctx, (size_t)n, sizeof *out->by_popular)};
    return out->items && out->scores && out->by_popular ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_list_call_begin(att_list_call *c, const att_recommender *m, const att_recommend_options *options,
                               int64_t n, att_recommendation *out)
{
    *c = (att_list_call){.m = m, .out = out};
    att_status e = read_options(c, options);
    e = e ? e : att_item_table_open(m, &c->table);
    e = e ? e : make_allowed(c);
    return e ? e : make_lists(m, n, c->o.k, out);
}

void att_list_call_end(att_list_call *c, att_status e)
{
    att_ctx *ctx = c->m->model.ctx;
    att_item_table_close(c->m, &c->table);
    att_param_free(c->allowed_as);
    att_free(ctx, c->allowed);
    att_rerank_free(c->rerank);
    att_free(ctx, c->scores);
    att_free(ctx, c->best);
    if (e)
        att_recommendation_free(ctx, c->out);
}

void att_recommendation_free(att_ctx *ctx, att_recommendation *r)
{
    if (!ctx || !r)
        return;
    att_free(ctx, r->items);
    att_free(ctx, r->scores);
    att_free(ctx, r->by_popular);
    *r = (att_recommendation){0};
}

att_status att_list_call_need(att_list_call *c, int64_t n)
{
    return att_grow(c->m->model.ctx, &c->best, sizeof *c->best, 0, (size_t)n, &c->best_room);
}

void att_list_call_write(att_list_call *c, int64_t b, const att_top_column *best)
{
    const int64_t k = c->o.k;
    for (int64_t i = 0; i < k; i++) {
        c->out->items[b * k + i] = (int32_t)best[i].column;
        c->out->scores[b * k + i] = best[i].value;
    }
}

att_status att_list_call_not_finite(const att_list_call *c, int64_t b, int64_t item)
{
    return att_fail(c->m->model.ctx, ATT_ERR_ARGUMENT,
                    "history %lld: the score of item %lld is not finite: the weights are damaged, or too large",
                    (long long)b, (long long)item);
}

/* Copies the scores of the items that may be listed to c->scores; those of others are -INFINITY. */
static att_status copy_scores(att_list_call *c, int64_t b, const float *scores, att_left_out without)
{
    const int64_t all = c->m->config.info.items;
    if (!c->scores)
        c->scores = att_alloc(c->m->model.ctx, (size_t)all, sizeof *c->scores);
    if (!c->scores)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++) {
        const bool may = !c->allowed || c->allowed[i] >= 0;
        if (may && (isnan(scores[i]) || scores[i] == INFINITY))
            return att_list_call_not_finite(c, b, i);
        c->scores[i] = may ? scores[i] : -INFINITY;
    }
    for (int64_t i = 0; i < without.n; i++)
        c->scores[without.items[i]] = -INFINITY;
    return ATT_OK;
}

att_status att_list_call_select(att_list_call *c, int64_t b, const float *scores, att_left_out without)
{
    const int64_t all = c->m->config.info.items, k = c->o.k;
    att_status e = att_list_call_need(c, k);
    e = e ? e : copy_scores(c, b, scores, without);
    if (!e && c->rerank)
        e = att_rerank_list(c->rerank, c->scores, c->best);
    if (!e && !c->rerank) {
        att_best_begin(c->best, k);
        for (int64_t i = 0; i < all; i++)
            att_best_add(c->best, k, (att_top_column){.column = i, .value = c->scores[i]});
        att_best_sort(c->best, k);
    }
    if (!e)
        att_list_call_write(c, b, c->best);
    return e;
}
