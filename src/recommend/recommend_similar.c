/* Makes lists of items that are similar to an item. */
#include "io/progress.h"
#include "recommend/counting.h"
#include "recommend/list_call.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

typedef struct unit_vectors {
    float *data;      /* [items, hidden]: of length 1, or zeros */
    att_param *param; /* the same */
    bool *zero;       /* [items] */
    float *listed;    /* [items]: 0, or -INFINITY for an item that must not be listed or is zeros; NULL: all may be */
    att_param *bias;  /* `listed`; or NULL */
} unit_vectors;

static void close_vectors(const att_recommender *m, unit_vectors *u)
{
    att_param_free(u->bias);
    att_param_free(u->param);
    att_free(m->model.ctx, u->listed);
    att_free(m->model.ctx, u->data);
    att_free(m->model.ctx, u->zero);
}

/* Copies the result of the tape. */
static att_status copy_vectors(const att_recommender *m, att_var *x, att_tape *t, unit_vectors *u)
{
    const int64_t all = m->config.info.items, hidden = m->config.info.hidden;
    att_tensor v;
    const att_status e = att_var_value(t, x, &v);
    if (e)
        return e;
    u->data = att_alloc(m->model.ctx, (size_t)(all * hidden), sizeof *u->data);
    u->zero = att_alloc(m->model.ctx, (size_t)all, sizeof *u->zero);
    if (!u->data || !u->zero)
        return ATT_ERR_MEMORY;
    memcpy(u->data, v.data, (size_t)(all * hidden) * sizeof *u->data);
    for (int64_t i = 0; i < all; i++)
        u->zero[i] = att_recommender_is_zero(u->data + i * hidden, hidden);
    v.data = u->data;
    return att_param_new(m->model.ctx, &v, &u->param);
}

/* Makes u->bias. allowed: that of the call. */
static att_status make_bias(const att_recommender *m, const float *allowed, unit_vectors *u)
{
    const int64_t all = m->config.info.items;
    int64_t zeros = 0;
    att_tensor v;
    for (int64_t i = 0; i < all; i++)
        zeros += u->zero[i];
    if (!allowed && zeros == 0)
        return ATT_OK;
    u->listed = att_alloc(m->model.ctx, (size_t)all, sizeof *u->listed);
    if (!u->listed)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++)
        u->listed[i] = u->zero[i] ? -INFINITY : allowed ? allowed[i] : 0;
    att_wrap(&v, u->listed, ATT_F32, 1, &all, NULL);
    return att_param_new(m->model.ctx, &v, &u->bias);
}

static att_status open_vectors(const att_recommender *m, const float *allowed, unit_vectors *u)
{
    att_tape *t;
    *u = (unit_vectors){0};
    att_status e = att_model_tape(&m->model, &t);
    if (e)
        return e;
    e = copy_vectors(m, att_normalize(t, att_recommender_table(t, m), 1e-12f), t, u);
    att_tape_free(t);
    return e ? e : make_bias(m, allowed, u);
}

enum { AT_ONCE = 128 }; /* items whose lists are made together */

/* Makes the lists of items [first, first + n) of a model that counts. */
static att_status counted_lists(att_list_call *c, const int32_t *items, int64_t first, int64_t n)
{
    const int64_t all = c->m->config.info.items;
    float *scores = att_alloc(c->m->model.ctx, (size_t)(n * all), sizeof *scores);
    att_status e = scores ? att_counting_similar(c->m, n, items + first, scores) : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++)
        e = att_list_call_select(c, first + i, scores + i * all, (att_left_out){items + first + i, 1});
    att_free(c->m->model.ctx, scores);
    return e;
}

/* Makes the lists of items [first, first + n) of the call. */
static att_status lists(att_list_call *c, att_tape *t, const unit_vectors *u, const int32_t *items, int64_t first,
                        int64_t n)
{
    const int64_t k = c->o.k;
    int64_t offsets[AT_ONCE + 1];
    const att_excluded_columns itself = {.size = sizeof itself, .column = items + first, .n = n, .offsets = offsets};
    for (int64_t i = 0; i <= n; i++)
        offsets[i] = i;
    att_var *x = att_embedding(t, u->param, items + first, n);
    att_status e = att_list_call_need(c, n * k);
    e = e ? e : att_linear_topk(t, x, u->param, u->bias, &itself, k, c->best, NULL);
    for (int64_t i = 0; !e && i < n * k; i++) {
        if (u->zero[items[first + i / k]])
            c->best[i] = (att_top_column){.column = -1, .value = -INFINITY};
        else if (isnan(c->best[i].value))
            e = att_list_call_not_finite(c, first + i / k, items[first + i / k]);
    }
    for (int64_t i = 0; !e && i < n; i++)
        att_list_call_write(c, first + i, c->best + i * k);
    att_tape_reset(t);
    return e;
}

/* Makes them from the cosines of all items. */
static att_status lists_of_scores(att_list_call *c, att_tape *t, const unit_vectors *u, const int32_t *items,
                                  int64_t first, int64_t n)
{
    const int64_t all = c->m->config.info.items;
    att_tensor v;
    att_var *x = att_embedding(t, u->param, items + first, n);
    att_status e = att_var_value(t, att_linear(t, x, u->param, NULL, ATT_ACTIVATION_IDENTITY, NULL), &v);
    for (int64_t i = 0; !e && i < n; i++) {
        float *cosine = (float *)v.data + i * all;
        for (int64_t k = 0; k < all; k++)
            cosine[k] = u->zero[k] || u->zero[items[first + i]] ? -INFINITY : cosine[k];
        e = att_list_call_select(c, first + i, cosine, (att_left_out){items + first + i, 1});
    }
    att_tape_reset(t);
    return e;
}

static att_status all_lists(att_list_call *c, const unit_vectors *u, const char *name, int64_t n, const int32_t *items)
{
    att_tape *t;
    att_progress p = {.ctx = c->m->model.ctx, .call = name, .report = c->o.progress, .user = c->o.user, .all = n};
    att_status e = att_tape_new(c->m->model.ctx, NULL, &t);
    if (e)
        return e;
    const int64_t numbers = c->rerank || c->m->architecture->counting ? c->m->config.info.items : c->o.k;
    const int64_t max = att_max(1, att_min(AT_ONCE, ATT_LISTED_AT_ONCE / numbers));
    for (int64_t i = 0, count; !e && i < n; i += count) {
        count = att_min(max, n - i);
        e = c->m->architecture->counting ? counted_lists(c, items, i, count)
            : c->rerank                  ? lists_of_scores(c, t, u, items, i, count)
                                         : lists(c, t, u, items, i, count);
        e = e ? e : att_progress_add(&p, count);
    }
    att_tape_free(t);
    return e ? e : att_progress_end(&p);
}

/* Opens the vectors, if the model has some. */
static att_status open_items(const att_recommender *m, int32_t item, bool alone, const float *allowed, unit_vectors *u)
{
    const bool counts = m->architecture->counting != NULL;
    const att_status e = counts ? ATT_OK : open_vectors(m, allowed, u);
    if (e || !alone || (counts ? m->counts[item] > 0 : !u->zero[item]))
        return e;
    return att_fail(m->model.ctx, ATT_ERR_ARGUMENT,
                    counts
                        ? "item \"%.80s\" had no action in training: no item is near it"
                        : "item \"%.80s\" has no vector: it had neither content, as that of a text, nor an action in "
                          "training",
                    att_recommender_item(m, item));
}

/* alone: a list that must not be empty */
static att_status similar(const char *name, const att_recommender *m, int64_t n, const int32_t *items, bool alone,
                          const att_recommend_options *options, att_recommendation *out)
{
    att_list_call c;
    unit_vectors u = {0};
    att_status e = att_list_call_begin(&c, m, options, n, out);
    e = e ? e : open_items(m, alone ? items[0] : 0, alone, c.allowed, &u);
    e = e ? e : all_lists(&c, &u, name, n, items);
    close_vectors(m, &u);
    att_list_call_end(&c, e);
    return e;
}

att_status att_recommender_similar(const att_recommender *m, int64_t item, const att_recommend_options *options,
                                   att_recommendation *out)
{
    if (out)
        *out = (att_recommendation){0};
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const int64_t all = m->config.info.items;
    if (item < 0 || item >= all)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "item is %lld, but the model has items 0 to %lld",
                        (long long)item, (long long)all - 1);
    return similar(__func__, m, 1, (const int32_t[]){(int32_t)item}, true, options, out);
}

att_status att_recommender_similar_items(const att_recommender *m, int64_t n, const int32_t *items,
                                         const att_recommend_options *options, att_recommendation *out)
{
    if (out)
        *out = (att_recommendation){0};
    if (att_require(__func__, ATT_NAMED({"m", m}, {"items", items}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const int64_t all = m->config.info.items;
    if (n < 0)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "n is %lld, less than 0", (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (items[i] < 0 || items[i] >= all)
            return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "items[%lld] is %d, but the model has items 0 to %lld",
                            (long long)i, items[i], (long long)all - 1);
    return similar(__func__, m, n, items, false, options, out);
}
