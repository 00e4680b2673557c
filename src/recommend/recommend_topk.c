/* Makes lists of the items with the highest scores. */
#include "util/util.h"
#include "io/progress.h"
#include "recommend/recommend_score.h"
#include "recommend/histories.h"
#include "util/best.h"
#include "util/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a call */

enum { MAX_SELECTED = 1 << 22 }; /* items in all lists that are made together: 64 MiB */

/* The items that may be listed, if they are few. Scores of others are not computed. */
typedef struct listed_items {
    int64_t n;
    int32_t *items;   /* [n], ascending */
    char *rows;       /* their vectors */
    att_param *table; /* the rows as a parameter; or NULL: too many items may be listed */
} listed_items;

typedef struct call {
    const att_recommender *m;
    att_recommend_options o;
    const int32_t *items;
    const int64_t *offsets;
    att_recommendation *out;
    att_item_table table;
    float *allowed;        /* [items]: 0, or -INFINITY for an item that must not be listed; NULL: all may be */
    att_param *allowed_as; /* `allowed` as a bias of the scores; or NULL */
    listed_items listed;
    int32_t *seen;         /* [seen_offsets[n]]: the table's rows of each history's items, ascending; or NULL: items of
                            * histories may be listed */
    int64_t *seen_offsets; /* [n + 1] */
    att_top_column *best;
    size_t best_room;
    int64_t popular; /* the first history without items; or -1 */
} call;

static att_status check_list(const att_recommender *m, const char *name, const int32_t *items, int64_t n)
{
    const int64_t all = m->config.info.items;
    if (n < 0 || (n > 0 && !items))
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.n_%s is %lld with %s options.%s", name, (long long)n,
                        items ? "this" : "no", name);
    for (int64_t i = 0; i < n; i++)
        if (items[i] < 0 || items[i] >= all)
            return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.%s[%lld] is %d, but the model has items 0 to %lld",
                            name, (long long)i, items[i], (long long)all - 1);
    return ATT_OK;
}

static att_status read_options(call *c, const att_recommend_options *options)
{
    const att_recommender *m = c->m;
    att_recommend_options *o = &c->o;
    att_status e = att_options_read(o, sizeof *o, options, "att_recommend_options");
    if (!e && o->k < 0)
        e = att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.k is %lld, less than 0", (long long)o->k);
    e = e ? e : check_list(m, "allow", o->allow, o->n_allow);
    e = e ? e : check_list(m, "deny", o->deny, o->n_deny);
    o->k = att_min(o->k ? o->k : 10, m->config.info.items);
    return e;
}

/* Makes c->allowed from allow and deny lists, and from items without a vector. */
static att_status make_allowed(call *c)
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

static att_status begin(call *c, const att_recommend_options *options, int64_t n)
{
    att_status e = read_options(c, options);
    e = e ? e : att_item_table_open(c->m, &c->table);
    e = e ? e : make_allowed(c);
    return e ? e : make_lists(c->m, n, c->o.k, c->out);
}

static void end(call *c, att_status e)
{
    att_ctx *ctx = c->m->model.ctx;
    att_item_table_close(c->m, &c->table);
    att_param_free(c->allowed_as);
    att_free(ctx, c->allowed);
    att_param_free(c->listed.table);
    att_free(ctx, c->listed.items);
    att_free(ctx, c->listed.rows);
    att_free(ctx, c->seen);
    att_free(ctx, c->seen_offsets);
    att_free(ctx, c->best);
    if (e)
        att_recommendation_free(c->m->model.ctx, c->out);
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

/* Allocates memory for n elements of c->best. */
static att_status need_best(call *c, int64_t n)
{
    return att_grow(c->m->model.ctx, &c->best, sizeof *c->best, 0, (size_t)n, &c->best_room);
}

/* ---- one list */

static int64_t history_length(const call *c, int64_t b) { return c->offsets[b + 1] - c->offsets[b]; }

/* Writes the list of history b from `best`, best first. */
static void write_list(call *c, int64_t b, const att_top_column *best)
{
    const int64_t k = c->o.k;
    for (int64_t i = 0; i < k; i++) {
        c->out->items[b * k + i] = (int32_t)best[i].column;
        c->out->scores[b * k + i] = best[i].value;
    }
}

static att_status not_finite(const call *c, int64_t b, int64_t item)
{
    return att_fail(c->m->model.ctx, ATT_ERR_ARGUMENT,
                    "history %lld: the score of item %lld is not finite: the weights are damaged, or too large",
                    (long long)b, (long long)item);
}

/* Fills the list of history b from the scores of all items, without `except`, an item or -1. */
static att_status select_list(call *c, int64_t b, const float *scores, int64_t except)
{
    const int64_t all = c->m->config.info.items;
    const att_status e = need_best(c, c->o.k);
    if (e)
        return e;
    att_best_begin(c->best, c->o.k);
    for (int64_t i = 0; i < all; i++) {
        if (i == except || (c->allowed && c->allowed[i] < 0)) /* also skips an item without a vector: its score is
                                                               * -inf */
            continue;
        if (!isfinite(scores[i]))
            return not_finite(c, b, i);
        att_best_add(c->best, c->o.k, (att_top_column){.column = i, .value = scores[i]});
    }
    att_best_sort(c->best, c->o.k);
    write_list(c, b, c->best);
    return ATT_OK;
}

/* Fills the list of history b, which has no items. */
static att_status popular_list(call *c, int64_t b)
{
    const att_recommender *m = c->m;
    const int64_t all = m->config.info.items, k = c->o.k;
    c->out->by_popular[b] = true;
    if (!m->counts)
        return att_no_counts(m, b);
    if (c->popular >= 0) {
        memcpy(c->out->items + b * k, c->out->items + c->popular * k, (size_t)k * sizeof *c->out->items);
        memcpy(c->out->scores + b * k, c->out->scores + c->popular * k, (size_t)k * sizeof *c->out->scores);
        return ATT_OK;
    }
    float *scores = att_alloc(m->model.ctx, (size_t)all, sizeof *scores);
    if (!scores)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < all; i++)
        scores[i] = (float)m->counts[i];
    const att_status e = select_list(c, b, scores, -1);
    att_free(m->model.ctx, scores);
    c->popular = b;
    return e;
}

/* ---- few items, and those that are left out */

/* Sets c->listed, if at most half of the items may be listed. */
static att_status gather_listed(call *c)
{
    att_ctx *ctx = c->m->model.ctx;
    const att_tensor *from = att_param_value(c->table.param);
    const int64_t all = c->m->config.info.items, hidden = from->dim[1];
    const size_t bytes = att_dtype_size(from->dtype), row = (size_t)hidden * bytes;
    listed_items *listed = &c->listed;
    att_tensor v;
    for (int64_t i = 0; c->allowed && i < all; i++)
        listed->n += c->allowed[i] == 0;
    if (listed->n == 0 || 2 * listed->n > all)
        return ATT_OK;
    listed->items = att_alloc(ctx, (size_t)listed->n, sizeof *listed->items);
    listed->rows = att_alloc(ctx, (size_t)listed->n, row);
    if (!listed->items || !listed->rows)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0, n = 0; i < all; i++)
        if (c->allowed[i] == 0) {
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
    att_ctx *ctx = c->m->model.ctx;
    if (!c->o.exclude_seen)
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
    const int64_t k = c->o.k;
    const listed_items *listed = &c->listed;
    const att_excluded_columns seen = {.size = sizeof seen,
                                       .column = c->seen,
                                       .n = c->seen ? c->seen_offsets[first + n] : 0,
                                       .offsets = c->seen ? c->seen_offsets + first : NULL};
    att_var *x = att_histories_apply(t, c->m, n, c->items, c->offsets + first);
    att_status e = need_best(c, n * k);
    e = e ? e
          : att_linear_topk(t, x, listed->table ? listed->table : c->table.param, listed->table ? NULL : c->allowed_as,
                            c->seen ? &seen : NULL, k, c->best, NULL);
    for (int64_t i = 0; !e && listed->table && i < n * k; i++)
        if (c->best[i].column >= 0)
            c->best[i].column = listed->items[c->best[i].column];
    for (int64_t i = 0; !e && i < n * k; i++) /* a NaN is first; an element without an item ends the list */
        if (isnan(c->best[i].value) || (c->best[i].column >= 0 && isinf(c->best[i].value)))
            e = not_finite(c, first + i / k, c->best[i].column);
    for (int64_t i = 0; !e && i < n; i++)
        write_list(c, first + i, c->best + i * k);
    att_tape_reset(t);
    return e;
}

static att_status all_lists(call *c, int64_t n)
{
    att_tape *t;
    att_progress p = {
        .ctx = c->m->model.ctx, .call = "att_recommend", .report = c->o.progress, .user = c->o.user, .all = n};
    att_status e = att_tape_new(c->m->model.ctx, NULL, &t);
    if (e)
        return e;
    const int64_t max = att_max(1, att_min(ATT_HISTORIES, MAX_SELECTED / c->o.k)); /* histories at a time */
    for (int64_t b = 0, next; !e && b < n; b = next) {
        for (next = b; next < n && next - b < max && history_length(c, next) > 0; next++)
            ;
        e = next > b ? lists(c, t, b, next - b) : popular_list(c, b);
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
    call c = {.m = m, .items = items, .offsets = offsets, .out = out, .popular = -1};
    att_status e = att_histories_check(m->model.ctx, "the model", m->config.info.items, n, items, offsets);
    if (e)
        return e;
    e = begin(&c, options, n);
    e = e ? e : gather_listed(&c);
    e = e ? e : list_seen(&c, n);
    e = e ? e : all_lists(&c, n);
    end(&c, e);
    return e;
}

/* ---- similar items */

/* Returns the error that the vector of an item is zero, so that no other one is similar. */
static att_status no_vector(const att_recommender *m, int64_t item)
{
    return att_fail(
        m->model.ctx, ATT_ERR_ARGUMENT,
        "item \"%.80s\" has no vector: it had neither content, as that of a text, nor an action in training",
        att_recommender_item(m, item));
}

/* Computes the cosines of all items with one item: scores [items]. Those of items without a vector are -INFINITY. */
static att_status cosines(const att_recommender *m, int64_t item, float *scores)
{
    const int64_t all = m->config.info.items, hidden = m->config.info.hidden;
    att_tape *t;
    att_tensor v, vectors;
    att_status e = att_tape_new(m->model.ctx, NULL, &t);
    if (e)
        return e;
    att_var *x = att_normalize(t, att_recommender_table(t, m), 1e-12f);
    e = att_var_value(t, x, &vectors);
    if (!e && att_recommender_is_zero((const float *)vectors.data + item * hidden, hidden))
        e = no_vector(m, item);
    e = e ? e
          : att_var_value(
                t, att_matmul(t, att_slice(t, x, 0, item, 1), x, ATT_OPTIONS(att_matmul_options, .transpose_b = true)),
                &v);
    for (int64_t i = 0; !e && i < all; i++)
        scores[i] = att_recommender_is_zero((const float *)vectors.data + i * hidden, hidden)
                        ? -INFINITY
                        : ((const float *)v.data)[i];
    att_tape_free(t);
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
    call c = {.m = m, .offsets = (const int64_t[]){0, 0}, .out = out};
    att_status e = begin(&c, options, 1);
    float *scores = e ? NULL : att_alloc(m->model.ctx, (size_t)all, sizeof *scores);
    e = e || scores ? e : ATT_ERR_MEMORY;
    e = e ? e : cosines(m, item, scores);
    e = e ? e : select_list(&c, 0, scores, item);
    att_progress p = {.ctx = m->model.ctx, .call = __func__, .report = c.o.progress, .user = c.o.user};
    e = e ? e : att_progress_end(&p);
    att_free(m->model.ctx, scores);
    end(&c, e);
    return e;
}
