#include "recommend/rerank.h"
#include "util/array.h"
#include "util/best.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>

/* The first items of a ranking. */
typedef struct pool {
    att_top_column *best; /* [n], in the order of the ranking */
    int64_t n;
    size_t room;
} pool;

/* An item that may be listed. */
typedef struct candidate {
    int64_t item;
    float score;
    double relevance; /* the score as a share of the pool's range */
    double cosine;    /* the largest with an item of the list */
    double scale;     /* 1 / the length of its vector; 0: it has none */
    bool is_new, listed;
} candidate;

struct att_rerank {
    const att_recommender *m;
    const att_recommend_options *o;
    int64_t *count; /* [categories]: items of each category in the list; or NULL: no limit */
    int64_t categories;
    bool *is_new;   /* [items]; or NULL: no positions for new items */
    pool first;     /* of all items */
    pool first_new; /* of the new ones */
    candidate *c;   /* [n]: both pools, in the order of the ranking */
    size_t room;
    int64_t n, n_first; /* all candidates; those of `first` */
    int64_t n_new;      /* new items in the list */
    att_tape *tape;     /* or NULL: no diversity */
    const float *x;     /* [n, hidden]: vectors of the candidates, in the tape */
};

/* ---- options */

att_status att_rerank_check_items(const att_recommender *m, const char *name, const int32_t *items, int64_t n)
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

static att_status check_categories(const att_recommender *m, const att_recommend_options *o)
{
    const int64_t all = m->config.info.items;
    if (o->max_per_category < 0)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.max_per_category is %lld, less than 0",
                        (long long)o->max_per_category);
    if (o->max_per_category > 0 && !o->category)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.max_per_category is %lld without options.category",
                        (long long)o->max_per_category);
    for (int64_t i = 0; o->max_per_category > 0 && i < all; i++)
        if (o->category[i] < -1 || o->category[i] >= all)
            return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.category[%lld] is %d, not from -1 to %lld",
                            (long long)i, o->category[i], (long long)all - 1);
    return ATT_OK;
}

static att_status check(const att_recommender *m, const att_recommend_options *o)
{
    att_ctx *ctx = m->model.ctx;
    att_status e = check_categories(m, o);
    if (!e && !(o->diversity >= 0 && o->diversity <= 1))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.diversity is %g, not from 0 to 1", o->diversity);
    if (!e && o->diversity > 0 && !m->item)
        e = att_fail(ctx, ATT_ERR_UNSUPPORTED, "options.diversity needs vectors of items, which \"%s\" does not have",
                     m->config.info.type);
    if (!e && o->diversity_pool < 0)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.diversity_pool is %lld, less than 0",
                     (long long)o->diversity_pool);
    if (!e && !(o->new_share >= 0 && o->new_share <= 1))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.new_share is %g, not from 0 to 1", o->new_share);
    if (!e && o->new_share > 0 && m->architecture == &att_ease)
        e = att_fail(ctx, ATT_ERR_UNSUPPORTED,
                     "options.new_share is %g, but \"%s\" has no scores of items without an action in training",
                     o->new_share, m->config.info.type);
    e = e ? e : att_rerank_check_items(m, "new_items", o->new_items, o->n_new_items);
    if (!e && o->new_share > 0 && o->n_new_items == 0 && !m->counts)
        e = att_fail(ctx, ATT_ERR_ARGUMENT,
                     "options.new_share is %g without options.new_items, but the model has no counts of its items "
                     "(att_recommender_set_counts)",
                     o->new_share);
    return e;
}

/* ---- construction */

/* Marks the new items. */
static att_status mark_new(att_rerank *r)
{
    const int64_t all = r->m->config.info.items;
    r->is_new = att_calloc(r->m->model.ctx, (size_t)all, sizeof *r->is_new);
    if (!r->is_new)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < r->o->n_new_items; i++)
        r->is_new[r->o->new_items[i]] = true;
    for (int64_t i = 0; r->o->n_new_items == 0 && i < all; i++)
        r->is_new[i] = r->m->counts[i] == 0;
    return ATT_OK;
}

static att_status build(att_rerank *r)
{
    att_ctx *ctx = r->m->model.ctx;
    const att_recommend_options *o = r->o;
    for (int64_t i = 0; o->max_per_category > 0 && i < r->m->config.info.items; i++)
        r->categories = att_max(r->categories, o->category[i] + 1);
    if (r->categories > 0) {
        r->count = att_alloc(ctx, (size_t)r->categories, sizeof *r->count);
        if (!r->count)
            return ATT_ERR_MEMORY;
    }
    const att_status e = o->new_share > 0 ? mark_new(r) : ATT_OK;
    return e || o->diversity <= 0 ? e : att_tape_new(ctx, NULL, &r->tape);
}

att_status att_rerank_new(const att_recommender *m, const att_recommend_options *o, att_rerank **out)
{
    *out = NULL;
    const att_status e = check(m, o);
    if (e || !(o->max_per_category > 0 || o->diversity > 0 || o->new_share > 0))
        return e;
    att_rerank *r = att_calloc(m->model.ctx, 1, sizeof *r);
    if (!r)
        return ATT_ERR_MEMORY;
    *out = r;
    r->m = m;
    r->o = o;
    return build(r);
}

void att_rerank_free(att_rerank *r)
{
    if (!r)
        return;
    att_ctx *ctx = r->m->model.ctx;
    att_tape_free(r->tape);
    att_free(ctx, r->count);
    att_free(ctx, r->is_new);
    att_free(ctx, r->first.best);
    att_free(ctx, r->first_new.best);
    att_free(ctx, r->c);
    att_free(ctx, r);
}

/* ---- pools */

static bool is_full(const att_rerank *r, int64_t item)
{
    const int32_t category = r->count ? r->o->category[item] : -1;
    return category >= 0 && r->count[category] >= r->o->max_per_category;
}

static void count(att_rerank *r, int64_t item)
{
    if (r->count && r->o->category[item] >= 0)
        r->count[r->o->category[item]]++;
}

static void clear_counts(att_rerank *r)
{
    for (int64_t i = 0; i < r->categories; i++)
        r->count[i] = 0;
}

/* Returns how many of the first n items of a ranking are needed, at least min, for a list of k within the limit;
 * -1: they do not suffice. */
static int64_t sufficient(att_rerank *r, const att_top_column *best, int64_t n, int64_t min)
{
    int64_t fill = 0;
    clear_counts(r);
    for (int64_t i = 0; i < n; i++) {
        if (!is_full(r, best[i].column)) {
            count(r, best[i].column);
            fill++;
        }
        if (i + 1 >= min && fill >= r->o->k)
            return i + 1;
    }
    return -1;
}

/* Finds the first items of the ranking by these scores, or of the new ones alone. As each item of a list fills at most
 * one position of a category, a pool that suffices for k items always has one for the next position. */
static att_status fill_pool(att_rerank *r, const float *scores, bool only_new, pool *p)
{
    const int64_t all = r->m->config.info.items, k = r->o->k;
    const int64_t own = r->o->diversity_pool ? r->o->diversity_pool : 10 * k;
    const int64_t min = r->tape ? att_min(att_max(own, k), all) : k;
    for (int64_t room = min;; room = att_min(4 * room, all)) {
        const att_status e = att_grow(r->m->model.ctx, &p->best, sizeof *p->best, 0, (size_t)room, &p->room);
        if (e)
            return e;
        att_best_begin(p->best, room);
        for (int64_t i = 0; i < all; i++)
            if (scores[i] > -INFINITY && (!only_new || r->is_new[i]))
                att_best_add(p->best, room, (att_top_column){.column = i, .value = scores[i]});
        att_best_sort(p->best, room);
        for (p->n = 0; p->n < room && p->best[p->n].column >= 0; p->n++)
            ;
        const int64_t n = sufficient(r, p->best, p->n, min);
        if (n >= 0)
            p->n = n;
        if (n >= 0 || p->n < room || room == all)
            return ATT_OK;
    }
}

static void add_candidate(att_rerank *r, att_top_column one, double lowest, double range)
{
    r->c[r->n++] = (candidate){.item = one.column,
                               .score = one.value,
                               .relevance = range > 0 ? ((double)one.value - lowest) / range : 0,
                               .cosine = -INFINITY,
                               .is_new = r->is_new && r->is_new[one.column]};
}

/* Joins the pools. New items that are only in the second rank after all of the first. */
static att_status join_pools(att_rerank *r)
{
    const pool *a = &r->first, *b = &r->first_new;
    const att_status e = att_grow(r->m->model.ctx, &r->c, sizeof *r->c, 0, (size_t)att_max(a->n + b->n, 1), &r->room);
    if (e)
        return e;
    const double lowest = a->n ? (double)a->best[a->n - 1].value : 0, highest = a->n ? (double)a->best[0].value : 0;
    r->n = 0;
    for (int64_t i = 0; i < a->n; i++)
        add_candidate(r, a->best[i], lowest, highest - lowest);
    r->n_first = r->n;
    for (int64_t i = 0; i < b->n; i++)
        if (a->n == 0 || att_is_better(a->best[a->n - 1], b->best[i]))
            add_candidate(r, b->best[i], lowest, highest - lowest);
    return ATT_OK;
}

/* ---- similarity */

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Computes the vectors of the candidates. */
static att_status embed(att_rerank *r)
{
    att_tensor v;
    const int64_t hidden = r->m->config.info.hidden;
    int32_t *ids = att_alloc(r->m->model.ctx, (size_t)r->n, sizeof *ids);
    if (!ids)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < r->n; i++)
        ids[i] = (int32_t)r->c[i].item;
    att_tape_reset(r->tape);
    const att_status e = att_var_value(r->tape, att_recommender_embedding(r->tape, r->m, ids, r->n), &v);
    att_free(r->m->model.ctx, ids);
    if (e)
        return e;
    r->x = v.data;
    for (int64_t i = 0; i < r->n; i++) {
        const double square = dot(r->x + i * hidden, r->x + i * hidden, hidden);
        r->c[i].scale = square > 0 ? 1 / sqrt(square) : 0;
    }
    return ATT_OK;
}

/* Compares all candidates with the one that has been listed. */
static void compare_with(att_rerank *r, int64_t listed)
{
    const int64_t hidden = r->m->config.info.hidden;
    for (int64_t i = 0; i < r->n; i++) {
        candidate *c = &r->c[i];
        if (!c->listed)
            c->cosine =
                fmax(c->cosine, dot(r->x + i * hidden, r->x + listed * hidden, hidden) * c->scale * r->c[listed].scale);
    }
}

/* ---- the list */

static double value_of(const att_rerank *r, const candidate *c, bool first)
{
    const double share = r->o->diversity;
    return r->tape ? (1 - share) * c->relevance - share * (first ? 0 : c->cosine) : (double)c->score;
}

/* Returns the candidate for the next position; -1: there is none. */
static int64_t choose(const att_rerank *r, bool only_new, bool first)
{
    int64_t best = -1;
    const int64_t n = only_new ? r->n : r->n_first;
    for (int64_t i = 0; i < n; i++) {
        const candidate *c = &r->c[i];
        if (!c->listed && (!only_new || c->is_new) && !is_full(r, c->item) &&
            (best < 0 || value_of(r, c, first) > value_of(r, &r->c[best], first)))
            best = i;
    }
    return best;
}

/* Returns whether new items must have position i, from 0. */
static bool is_for_new(const att_rerank *r, int64_t i)
{
    return r->is_new && r->n_new < (int64_t)floor((double)(i + 1) * r->o->new_share + 1e-9);
}

static void fill_list(att_rerank *r, att_top_column *list)
{
    const int64_t k = r->o->k;
    r->n_new = 0;
    clear_counts(r);
    for (int64_t i = 0; i < k; i++) {
        int64_t best = is_for_new(r, i) ? choose(r, true, i == 0) : -1;
        best = best < 0 ? choose(r, false, i == 0) : best;
        list[i] = (att_top_column){.column = -1, .value = -INFINITY};
        if (best < 0)
            continue;
        list[i] = (att_top_column){.column = r->c[best].item, .value = r->c[best].score};
        r->c[best].listed = true;
        r->n_new += r->c[best].is_new;
        count(r, r->c[best].item);
        if (r->tape)
            compare_with(r, best);
    }
}

att_status att_rerank_list(att_rerank *r, const float *scores, att_top_column *list)
{
    att_status e = fill_pool(r, scores, false, &r->first);
    if (!e && r->is_new)
        e = fill_pool(r, scores, true, &r->first_new);
    e = e ? e : join_pools(r);
    if (!e && r->tape && r->n > 0)
        e = embed(r);
    if (!e)
        fill_list(r, list);
    return e;
}
