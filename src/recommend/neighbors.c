/* Item k-nearest neighbors: the items that most of an item's users also have. Co-occurrence is measured by the cosine
 * (Sarwar et al. 2001, for sets). A history's score of an item is the sum of the similarities to its own items,
 * weighted by their distance from its end. */
#include "recommend/counting.h"
#include "util/best.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* ---- finding neighbors */

enum { PARTS = 16 };

typedef struct counting {
    const att_item_users *x;
    int64_t k;
    int64_t *room;        /* [items + 1]: offsets of the room for each item's neighbors */
    int32_t *n;           /* [items]: the number of each item's neighbors */
    int32_t *item;        /* [room[items]]: nearest first */
    float *similarity;    /* [room[items]] */
    int32_t *together;    /* [PARTS, items]: the number of users that an item shares with each other item; zero between
                           * uses */
    int32_t *found;       /* [PARTS, items]: the items with a number above zero */
    att_top_column *best; /* [PARTS, k] */
    int64_t first, last;  /* items of a pass */
} counting;

static void find_of_item(const counting *c, int64_t item, int32_t *together, int32_t *found, att_top_column *best)
{
    const att_item_users *x = c->x;
    const int64_t at = c->room[item], k = c->room[item + 1] - at;
    int64_t n_found = 0, n = 0;
    att_best_begin(best, k);
    for (int64_t i = x->users_of[item]; i < x->users_of[item + 1]; i++)
        for (int64_t j = x->items_of[x->users[i]]; j < x->items_of[x->users[i] + 1]; j++)
            if (together[x->items[j]]++ == 0)
                found[n_found++] = x->items[j];
    for (int64_t i = 0; i < n_found; i++) {
        const int32_t other = found[i];
        const double both = together[other],
                     of = (double)att_item_users_count(x, item) * (double)att_item_users_count(x, other);
        together[other] = 0;
        if (other != item && k > 0)
            att_best_add(best, k, (att_top_column){other, (float)(both / sqrt(of))});
    }
    att_best_sort(best, k);
    for (; n < k && best[n].column >= 0; n++) {
        c->item[at + n] = (int32_t)best[n].column;
        c->similarity[at + n] = best[n].value;
    }
    c->n[item] = (int32_t)n;
}

static void find_of_part(void *arg, int part)
{
    const counting *c = arg;
    const int64_t items = c->x->n_items;
    for (int64_t i = c->first + part; i < c->last && !att_cancelled(c->x->ctx); i += PARTS)
        find_of_item(c, i, c->together + part * items, c->found + part * items, c->best + part * c->k);
}

/* Allocates room for k neighbors of each item, or for as many as its users have other items if these are fewer. */
static att_status allocate_lists(counting *c)
{
    const att_item_users *x = c->x;
    c->room = att_alloc(x->ctx, (size_t)x->n_items + 1, sizeof *c->room);
    c->n = att_alloc(x->ctx, (size_t)x->n_items, sizeof *c->n);
    if (!c->room || !c->n)
        return ATT_ERR_MEMORY;
    c->room[0] = 0;
    for (int64_t i = 0; i < x->n_items; i++) {
        int64_t others = 0;
        for (int64_t u = x->users_of[i]; u < x->users_of[i + 1] && others < c->k; u++)
            others += x->items_of[x->users[u] + 1] - x->items_of[x->users[u]] - 1;
        c->room[i + 1] = c->room[i] + att_min(others, c->k);
    }
    c->item = att_alloc(x->ctx, (size_t)c->room[x->n_items], sizeof *c->item);
    c->similarity = att_alloc(x->ctx, (size_t)c->room[x->n_items], sizeof *c->similarity);
    return c->item && c->similarity ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status allocate(counting *c)
{
    att_ctx *ctx = c->x->ctx;
    const size_t items = (size_t)c->x->n_items;
    c->together = att_calloc(ctx, PARTS * items, sizeof *c->together);
    c->found = att_alloc(ctx, PARTS * items, sizeof *c->found);
    c->best = att_alloc(ctx, PARTS * (size_t)c->k, sizeof *c->best);
    return c->together && c->found && c->best ? allocate_lists(c) : ATT_ERR_MEMORY;
}

/* Finds the neighbors of all items, in passes. After each pass it reports progress. */
static att_status find_all(counting *c, att_progress *p)
{
    enum { PASSES = 64 };
    const int64_t items = c->x->n_items, pass = att_max(PARTS, att_ceil_div(items, PASSES));
    att_status e = ATT_OK;
    p->all = items;
    for (c->first = 0; !e && c->first < items; c->first = c->last) {
        c->last = att_min(c->first + pass, items);
        att_parallel_for(c->x->ctx, PARTS, find_of_part, c);
        e = att_progress_add(p, c->last - c->first);
    }
    return e;
}

/* Moves the lists to the model, without the room that they do not need. */
static void close_gaps(counting *c, att_neighbor_lists *lists)
{
    int64_t at = 0;
    for (int64_t i = 0; i < c->x->n_items; i++) {
        const int64_t from = c->room[i];
        memmove(c->item + at, c->item + from, (size_t)c->n[i] * sizeof *c->item);
        memmove(c->similarity + at, c->similarity + from, (size_t)c->n[i] * sizeof *c->similarity);
        c->room[i] = at;
        at += c->n[i];
    }
    c->room[c->x->n_items] = at;
    *lists = (att_neighbor_lists){.first = c->room, .item = c->item, .similarity = c->similarity};
    c->room = NULL;
    c->item = NULL;
    c->similarity = NULL;
}

static att_status count(att_recommender *m, const att_item_users *x, att_progress *p)
{
    counting c = {.x = x, .k = att_min(m->config.info.neighbors, x->n_items)};
    att_status e = allocate(&c);
    e = e ? e : find_all(&c, p);
    if (!e)
        close_gaps(&c, &m->neighbors);
    void *const arrays[] = {c.room, c.n, c.item, c.similarity, c.together, c.found, c.best};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        att_free(x->ctx, arrays[i]);
    return e;
}

/* ---- scores */

static void score(const att_recommender *m, const int32_t *items, int64_t n, float *scores, float *row)
{
    const att_neighbor_lists *lists = &m->neighbors;
    const int64_t all = m->config.info.items;
    double weight = 1;
    (void)row;
    for (int64_t i = 0; i < all; i++)
        scores[i] = 0;
    for (int64_t i = n - 1; i >= 0; i--, weight *= m->config.info.decay)
        for (int64_t k = lists->first[items[i]]; k < lists->first[items[i] + 1]; k++)
            scores[lists->item[k]] += (float)(weight * lists->similarity[k]);
    for (int64_t i = 0; i < all; i++)
        scores[i] = scores[i] > 0 ? scores[i] : att_score_by_popularity(m->counts[i]);
}

static void similar(const att_recommender *m, int64_t item, float *scores, float *row)
{
    const att_neighbor_lists *lists = &m->neighbors;
    (void)row;
    for (int64_t i = 0; i < m->config.info.items; i++)
        scores[i] = -INFINITY;
    for (int64_t k = lists->first[item]; k < lists->first[item + 1]; k++)
        scores[lists->item[k]] = lists->similarity[k];
}

/* ---- files */

static const char *const names[] = {"neighbors.first", "neighbors.item", "neighbors.similarity"};

static int tensors(const att_recommender *m, const char **name, att_tensor *tensor)
{
    const att_neighbor_lists *lists = &m->neighbors;
    const int64_t items = m->config.info.items;
    for (int i = 0; i < 3; i++)
        name[i] = names[i];
    att_wrap(&tensor[0], lists->first, ATT_I64, ATT_DIMS(items + 1), NULL);
    att_wrap(&tensor[1], lists->item, ATT_I32, ATT_DIMS(lists->first[items]), NULL);
    att_wrap(&tensor[2], lists->similarity, ATT_F32, ATT_DIMS(lists->first[items]), NULL);
    return 3;
}

/* Copies a vector of the model's file; numbers that are not integers may have another type there. dim: its length; -1:
 * any, which it becomes. */
static att_status read_vector(const att_recommender *m, const char *name, att_dtype dtype, int64_t *dim, void **out)
{
    const att_checkpoint *c = m->model.checkpoint;
    att_tensor v;
    att_status e = att_safetensors_get(c->file[0].data, name, &v);
    if (e)
        return e;
    const bool fits = v.dtype == dtype || (dtype == ATT_F32 && (v.dtype == ATT_F16 || v.dtype == ATT_BF16));
    if (!fits || v.rank != 1 || (*dim >= 0 && v.dim[0] != *dim))
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: tensor \"%s\" is not a vector of %s%s", c->path, name,
                        att_dtype_name(dtype), *dim < 0 ? "" : " of the length that the others require");
    *dim = v.dim[0];
    *out = att_alloc(m->model.ctx, (size_t)*dim, att_dtype_size(dtype));
    if (!*out)
        return ATT_ERR_MEMORY;
    att_tensor to;
    att_wrap(&to, *out, dtype, 1, dim, NULL);
    return att_tensor_convert(m->model.ctx, &v, &to);
}

static att_status check_lists(const att_recommender *m, int64_t n)
{
    const att_neighbor_lists *lists = &m->neighbors;
    const int64_t items = m->config.info.items;
    bool fine = lists->first[0] == 0 && lists->first[items] == n;
    for (int64_t i = 0; fine && i < items; i++)
        fine = lists->first[i] <= lists->first[i + 1];
    for (int64_t i = 0; fine && i < n; i++)
        fine = lists->item[i] >= 0 && lists->item[i] < items && isfinite(lists->similarity[i]);
    return fine ? ATT_OK
                : att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: the lists of neighbors are damaged",
                           m->model.checkpoint->path);
}

static att_status read_lists(att_recommender *m)
{
    att_neighbor_lists *lists = &m->neighbors;
    void *vector[3] = {NULL};
    int64_t n = m->config.info.items + 1;
    att_status e = read_vector(m, names[0], ATT_I64, &n, &vector[0]);
    n = -1;
    e = e ? e : read_vector(m, names[1], ATT_I32, &n, &vector[1]);
    e = e ? e : read_vector(m, names[2], ATT_F32, &n, &vector[2]);
    *lists = (att_neighbor_lists){vector[0], vector[1], vector[2]};
    return e ? e : check_lists(m, n);
}

static const char *const settings[] = {"model_type", "num_items", "neighbors", "decay", NULL};
/* The decay is the best of 0.3, 0.45, 0.6, 0.75 on validation of ml-100k and of Amazon Beauty. */
static const att_counting_kind kind = {.settings = settings,
                                       .neighbors = 100,
                                       .decay = 0.6,
                                       .read = read_lists,
                                       .count = count,
                                       .score = score,
                                       .similar = similar,
                                       .tensors = tensors};
const att_recommender_architecture att_item_neighbors = {.counting = &kind};
