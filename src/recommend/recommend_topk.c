/* Makes lists of the items that come next after histories. */
#include "io/progress.h"
#include "recommend/counting.h"
#include "recommend/histories.h"
#include "recommend/list_call.h"
#include "recommend/recommend_score.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a call */

/* The items that may be listed, if they are few. Scores of others are not computed. */
typedef struct listed_items {
    int64_t n;
    int32_t *items;   /* [n], ascending */
    char *rows;       /* their vectors */
    att_param *table; /* the rows as a parameter; or NULL: too many items may be listed */
} listed_items;

typedef struct call {
    att_list_call list;
    const int32_t *items;
    const int64_t *offsets;
    listed_items listed;
    int32_t *seen;         /* [seen_offsets[n]]: the table's rows of each history's items, ascending; or NULL: items of
                            * histories may be listed */
    int64_t *seen_offsets; /* [n + 1] */
    int64_t popular;       /* the first history without items; or -1 */
    float *counted;        /* scores of a block of histories, of a model that counts; or NULL */
} call;

/* Returns whether lists are made from the scores of all items. */
static bool uses_scores(const call *c) { return c->list.rerank || c->list.m->architecture->counting; }

static void end(call *c, att_status e)
{
    att_ctx *ctx = c->list.m->model.ctx;
    att_param_free(c->listed.table);
    att_free(ctx, c->listed.items);
    att_free(ctx, c->listed.rows);
    att_free(ctx, c->seen);
    att_free(ctx, c->seen_offsets);
    att_free(ctx, c->counted);
    att_list_call_end(&c->list, e);
}

static int64_t history_length(const call *c, int64_t b) { return c->offsets[b + 1] - c->offsets[b]; }

/* ---- histories without items */

/* Fills the list of history b, which has no items. */
static att_status popular_list(call *c, int64_t b)
{
    const att_recommender *m = c->list.m;
    att_recommendation *out = c->list.out;
    const int64_t all = m->config.info.items, k = c->list.o.k;
    out->by_popular[b] = true;
    if (!m->counts)
        return att_no_counts(m, b);
    if (c->popular >= 0) {
        memcpy(out->items + b * k, out->items + c->popular * k, (size_t)k * sizeof *out->items);
        memcpy(out->scores + b * k, out->scores + c->popular * k, (size_t)k * sizeof *out->scores);
        return ATT_OK;
    }
    float *scores = att_alloc(m->model.ctx, (size_t)all, sizeof *scores);
    if (!scores)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++)
        scores[i] = (float)m->counts[i];
    const att_status e = att_list_call_select(&c->list, b, scores, (att_left_out){NULL, 0});
    att_free(m->model.ctx, scores);
    c->popular = b;
    return e;
}

/* ---- few items, and those that are left out */

/* Sets c->listed, if at most half of the items may be listed. */
static att_status gather_listed(call *c)
{
    if (uses_scores(c))
        return ATT_OK;
    att_ctx *ctx = c->list.m->model.ctx;
    const att_tensor *from = att_param_value(c->list.table.param);
    const int64_t all = c->list.m->config.info.items, hidden = from->dim[1];
    const size_t bytes = att_dtype_size(from->dtype), row = (size_t)hidden * bytes;
    listed_items *listed = &c->listed;
    att_tensor v;
    for (int64_t i = 0; c->list.allowed && i < all; i++)
        listed->n += c->list.allowed[i] == 0;
    if (listed->n == 0 || 2 * listed->n > all)
        return ATT_OK;
    listed->items = att_alloc(ctx, (size_t)listed->n, sizeof *listed->items);
    listed->rows = att_alloc(ctx, (size_t)listed->n, row);
    if (!listed->items || !listed->rows)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0, n = 0; i < all; i++)
        if (c->list.allowed[i] == 0) {
            memcpy(listed->rows + (size_t)n * row, (const char *)from->data + (size_t)(i * from->stride[0]) * bytes,
                   row);
            listed->items[n++] = (int32_t)i;
        }
    att_wrap(&v, listed->rows, from->dtype, 2, (const int64_t[]){listed->n, hidden}, NULL);
    return att_param_new(ctx, &v, &listed->table);
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Returns the row of an item in the table; -1: it has none. */
static int32_t row_of(const listed_items *listed, int32_t item)
{
    if (!listed->table)
        return item;
    const int32_t *found = bsearch(&item, listed->items, (size_t)listed->n, sizeof *listed->items, by_number);
    return found ? (int32_t)(found - listed->items) : -1;
}

/* Sets c->seen, if items of histories must not be listed. */
static att_status list_seen(call *c, int64_t n)
{
    att_ctx *ctx = c->list.m->model.ctx;
    if (!c->list.o.exclude_seen)
        return ATT_OK;
    c->seen = att_alloc(ctx, (size_t)c->offsets[n], sizeof *c->seen);
    c->seen_offsets = att_alloc(ctx, (size_t)n + 1, sizeof *c->seen_offsets);
    if (!c->seen || !c->seen_offsets)
        return ATT_ERR_MEMORY;
    int64_t at = c->seen_offsets[0] = 0;
    for (int64_t b = 0; b < n; b++) {
        const int64_t first = at;
        for (int64_t i = c->offsets[b]; i < c->offsets[b + 1]; i++) {
            c->seen[at] = row_of(&c->listed, c->items[i]);
            at += c->seen[at] >= 0;
        }
        qsort(c->seen + first, (size_t)(at - first), sizeof *c->seen, by_number);
        c->seen_offsets[b + 1] = at;
    }
    return ATT_OK;
}

/* ---- all lists */

/* Fills the lists of histories [first, first + n), none empty. */
static att_status lists(call *c, att_tape *t, int64_t first, int64_t n)
{
    const int64_t k = c->list.o.k;
    const listed_items *listed = &c->listed;
    const att_excluded_columns seen = {.size = sizeof seen,
                                       .column = c->seen,
                                       .n = c->seen ? c->seen_offsets[first + n] : 0,
                                       .offsets = c->seen ? c->seen_offsets + first : NULL};
    att_var *x = att_histories_apply(t, c->list.m, n, c->items, c->offsets + first);
    att_status e = att_list_call_need(&c->list, n * k);
    e = e ? e
          : att_linear_topk(t, x, listed->table ? listed->table : c->list.table.param,
                            listed->table ? NULL : c->list.allowed_as, c->seen ? &seen : NULL, k, c->list.best, NULL);
    for (int64_t i = 0; !e && listed->table && i < n * k; i++)
        if (c->list.best[i].column >= 0)
            c->list.best[i].column = listed->items[c->list.best[i].column];
    for (int64_t i = 0; !e && i < n * k; i++) /* a NaN is first; an element without an item ends the list */
        if (isnan(c->list.best[i].value) || (c->list.best[i].column >= 0 && isinf(c->list.best[i].value)))
            e = att_list_call_not_finite(&c->list, first + i / k, c->list.best[i].column);
    for (int64_t i = 0; !e && i < n; i++)
        att_list_call_write(&c->list, first + i, c->list.best + i * k);
    att_tape_reset(t);
    return e;
}

/* Computes the scores of all items for these histories -> *scores [n, items], valid until the tape is reset or the next
 * call. */
static att_status compute_scores(call *c, att_tape *t, int64_t first, int64_t n, const float **scores)
{
    const att_recommender *m = c->list.m;
    att_tensor v;
    if (m->architecture->counting) {
        att_free(m->model.ctx, c->counted);
        *scores = c->counted = att_alloc(m->model.ctx, (size_t)(n * m->config.info.items), sizeof *c->counted);
        return c->counted ? att_counting_scores(m, n, c->items, c->offsets + first, m->config.info.items, c->counted)
                          : ATT_ERR_MEMORY;
    }
    att_var *x = att_histories_apply(t, m, n, c->items, c->offsets + first);
    const att_status e =
        att_var_value(t, att_linear(t, x, c->list.table.param, NULL, ATT_ACTIVATION_IDENTITY, NULL), &v);
    *scores = e ? NULL : v.data;
    return e;
}

/* Fills these lists from the scores of all items. */
static att_status lists_of_scores(call *c, att_tape *t, int64_t first, int64_t n)
{
    const int64_t all = c->list.m->config.info.items;
    const float *scores;
    att_status e = compute_scores(c, t, first, n, &scores);
    for (int64_t i = 0; !e && i < n; i++) {
        const int64_t *at = c->seen ? c->seen_offsets + first + i : NULL;
        const att_left_out seen = {at ? c->seen + at[0] : NULL, at ? at[1] - at[0] : 0};
        e = att_list_call_select(&c->list, first + i, scores + i * all, seen);
    }
    att_tape_reset(t);
    return e;
}

static att_status all_lists(call *c, int64_t n)
{
    att_tape *t;
    att_progress p = {.ctx = c->list.m->model.ctx,
                      .call = "att_recommend",
                      .report = c->list.o.progress,
                      .user = c->list.o.user,
                      .all = n};
    att_status e = att_model_tape(&c->list.m->model, &t);
    if (e)
        return e;
    const int64_t numbers = uses_scores(c) ? c->list.m->config.info.items : c->list.o.k;
    const int64_t max = att_max(1, att_min(ATT_HISTORIES, ATT_LISTED_AT_ONCE / numbers)); /* histories at a time */
    for (int64_t b = 0, next; !e && b < n; b = next) {
        for (next = b; next < n && next - b < max && history_length(c, next) > 0; next++)
            ;
        e = next == b        ? popular_list(c, b)
            : uses_scores(c) ? lists_of_scores(c, t, b, next - b)
                             : lists(c, t, b, next - b);
        next += next == b;
        e = e ? e : att_progress_add(&p, next - b);
    }
    att_tape_free(t);
    return e ? e : att_progress_end(&p);
}

att_status att_recommend(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                         const att_recommend_options *options, att_recommendation *out)
{
    if (out)
        *out = (att_recommendation){0};
    if (att_require(__func__, ATT_NAMED({"m", m}, {"offsets", offsets}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    call c = {.items = items, .offsets = offsets, .popular = -1};
    att_status e = att_histories_check(m->model.ctx, "the model", m->config.info.items, n, items, offsets);
    if (e)
        return e;
    e = att_list_call_begin(&c.list, m, options, n, out);
    e = e ? e : gather_listed(&c);
    e = e ? e : list_seen(&c, n);
    e = e ? e : all_lists(&c, n);
    end(&c, e);
    return e;
}
