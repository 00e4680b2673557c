/* Finds the neighbors of each item: the items that most of its users also have. Co-occurrence is measured by the cosine
 * (Sarwar et al. 2001, for sets). */
#include "recommend/baseline.h"
#include "util/best.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* Limits. Only the last MAX_ITEMS items of a user count, so that time and memory are linear in the actions. */
enum { MAX_ITEMS = 1000, PARTS = 16 };

typedef struct counting {
    att_baseline *b;
    int64_t *users_of;    /* [items + 1]: the first user of each item */
    int32_t *users;       /* users of each item, ascending */
    int64_t *items_of;    /* [users + 1]: the first item of each user */
    int32_t *items;       /* different items of each user */
    int32_t *together;    /* [PARTS, items]: the number of users that an item shares with each other item; zero between
                           * uses */
    int32_t *found;       /* [PARTS, items]: the items with a number above zero */
    att_top_column *best; /* [PARTS, k] */
    int64_t first, last;  /* items of a pass */
} counting;

/* Writes the different items among the last ones of a user's training to `out`, and returns their number. last_user
 * [items]: the last user that had each item.
 */
static int64_t different_items(const att_holdout *h, int64_t user, int64_t *last_user, int32_t *out)
{
    const att_history x = att_holdout_train(h, user);
    int64_t n = 0;
    for (int64_t i = x.count - 1; i >= 0 && n < MAX_ITEMS; i--) {
        if (last_user[x.items[i]] == user)
            continue;
        last_user[x.items[i]] = user;
        out[n++] = x.items[i];
    }
    return n;
}

static void fill_items(counting *c, int64_t *last_user)
{
    const att_holdout *h = c->b->h;
    for (int64_t i = 0; i < h->log->info.items; i++)
        last_user[i] = -1;
    c->items_of[0] = 0;
    for (int64_t u = 0; u < h->log->info.users; u++)
        c->items_of[u + 1] = c->items_of[u] + different_items(h, u, last_user, c->items + c->items_of[u]);
}

static void fill_users(counting *c)
{
    const int64_t items = c->b->h->log->info.items, users = c->b->h->log->info.users;
    memset(c->users_of, 0, ((size_t)items + 2) * sizeof *c->users_of);
    for (int64_t i = 0; i < c->items_of[users]; i++)
        c->users_of[c->items[i] + 2]++;
    int64_t *begin = c->users_of + 1;
    for (int64_t i = 0; i < items; i++)
        begin[i + 1] += begin[i];
    for (int64_t u = 0; u < users; u++)
        for (int64_t i = c->items_of[u]; i < c->items_of[u + 1]; i++)
            c->users[begin[c->items[i]]++] = (int32_t)u;
}

static int64_t users_with(const counting *c, int64_t item) { return c->users_of[item + 1] - c->users_of[item]; }

static void find_of_item(const counting *c, int64_t item, int32_t *together, int32_t *found, att_top_column *best)
{
    att_neighbor *list = c->b->neighbors + c->b->first[item];
    const int64_t k = c->b->first[item + 1] - c->b->first[item];
    int64_t n_found = 0, n = 0;
    att_best_begin(best, k);
    for (int64_t i = c->users_of[item]; i < c->users_of[item + 1]; i++)
        for (int64_t j = c->items_of[c->users[i]]; j < c->items_of[c->users[i] + 1]; j++)
            if (together[c->items[j]]++ == 0)
                found[n_found++] = c->items[j];
    for (int64_t i = 0; i < n_found; i++) {
        const int32_t other = found[i];
        const double both = together[other], of = (double)users_with(c, item) * (double)users_with(c, other);
        together[other] = 0;
        if (other != item && k > 0)
            att_best_add(best, k, (att_top_column){other, (float)(both / sqrt(of))});
    }
    att_best_sort(best, k);
    for (; n < k && best[n].column >= 0; n++)
        list[n] = (att_neighbor){(int32_t)best[n].column, best[n].value};
    c->b->found[item] = (int32_t)n;
}

static void find_of_part(void *arg, int part)
{
    const counting *c = arg;
    const int64_t items = c->b->h->log->info.items;
    for (int64_t i = c->first + part; i < c->last && !att_cancelled(c->b->ctx); i += PARTS)
        find_of_item(c, i, c->together + part * items, c->found + part * items, c->best + part * c->b->k);
}

/* Allocates room for k neighbors of each item, or for as many as its users have other items if these are fewer. */
static att_status allocate_lists(const counting *c)
{
    att_baseline *b = c->b;
    const int64_t items = b->h->log->info.items;
    b->first = att_alloc(b->ctx, (size_t)items + 1, sizeof *b->first);
    b->found = att_alloc(b->ctx, (size_t)items, sizeof *b->found);
    if (!b->first || !b->found)
        return ATT_ERR_MEMORY;
    b->first[0] = 0;
    for (int64_t i = 0; i < items; i++) {
        int64_t others = 0;
        for (int64_t u = c->users_of[i]; u < c->users_of[i + 1] && others < b->k; u++)
            others += c->items_of[c->users[u] + 1] - c->items_of[c->users[u]] - 1;
        b->first[i + 1] = b->first[i] + att_min(others, b->k);
    }
    b->neighbors = att_alloc(b->ctx, (size_t)b->first[items], sizeof *b->neighbors);
    return b->neighbors ? ATT_OK : ATT_ERR_MEMORY;
}

/* Finds the neighbors of all items, in passes. After each pass it reports progress. */
static att_status find_all(counting *c, att_progress *p)
{
    enum { PASSES = 64 };
    const int64_t items = c->b->h->log->info.items, pass = att_max(PARTS, att_ceil_div(items, PASSES));
    att_status e = ATT_OK;
    p->all = items;
    for (c->first = 0; !e && c->first < items; c->first = c->last) {
        c->last = att_min(c->first + pass, items);
        att_parallel_for(c->b->ctx, PARTS, find_of_part, c);
        e = att_progress_add(p, c->last - c->first);
    }
    return e;
}

static att_status count(counting *c, att_progress *p)
{
    att_ctx *ctx = c->b->ctx;
    const size_t items = (size_t)c->b->h->log->info.items, users = (size_t)c->b->h->log->info.users;
    const size_t actions = (size_t)c->b->h->info.actions;
    int64_t *last_user = att_alloc(ctx, items, sizeof *last_user);
    c->items_of = att_alloc(ctx, users + 1, sizeof *c->items_of);
    c->users_of = att_alloc(ctx, items + 2, sizeof *c->users_of);
    c->items = att_alloc(ctx, actions, sizeof *c->items);
    c->users = att_alloc(ctx, actions, sizeof *c->users);
    c->together = att_calloc(ctx, PARTS * items, sizeof *c->together);
    c->found = att_alloc(ctx, PARTS * items, sizeof *c->found);
    c->best = att_alloc(ctx, PARTS * (size_t)c->b->k, sizeof *c->best);
    const bool all =
        c->best && last_user && c->items_of && c->users_of && c->items && c->users && c->together && c->found;
    att_status e = all ? ATT_OK : ATT_ERR_MEMORY;
    if (!e) {
        fill_items(c, last_user);
        fill_users(c);
        e = allocate_lists(c);
    }
    e = e ? e : find_all(c, p);
    att_free(ctx, last_user);
    return e;
}

att_status att_neighbors_find(att_baseline *b, att_progress *p)
{
    counting c = {.b = b};
    const att_status e = count(&c, p);
    att_free(b->ctx, c.items_of);
    att_free(b->ctx, c.users_of);
    att_free(b->ctx, c.items);
    att_free(b->ctx, c.users);
    att_free(b->ctx, c.together);
    att_free(b->ctx, c.found);
    att_free(b->ctx, c.best);
    return e;
}
