#include "recommend/item_users.h"

#include <string.h>

/* Writes the different items among the last ones of a user's training to `out`, and returns their number. last_user
 * [items]: the last user that had each item. */
static int64_t different_items(const att_holdout *h, int64_t user, int64_t *last_user, int32_t *out)
{
    const att_history x = att_holdout_train(h, user);
    int64_t n = 0;
    for (int64_t i = x.count - 1; i >= 0 && n < ATT_MAX_USER_ITEMS; i--) {
        if (last_user[x.items[i]] == user)
            continue;
        last_user[x.items[i]] = user;
        out[n++] = x.items[i];
    }
    return n;
}

static void fill_items(att_item_users *x, const att_holdout *h, int64_t *last_user)
{
    for (int64_t i = 0; i < x->n_items; i++)
        last_user[i] = -1;
    x->items_of[0] = 0;
    for (int64_t u = 0; u < x->n_users; u++)
        x->items_of[u + 1] = x->items_of[u] + different_items(h, u, last_user, x->items + x->items_of[u]);
}

static void fill_users(att_item_users *x)
{
    memset(x->users_of, 0, ((size_t)x->n_items + 2) * sizeof *x->users_of);
    for (int64_t i = 0; i < x->items_of[x->n_users]; i++)
        x->users_of[x->items[i] + 2]++;
    int64_t *begin = x->users_of + 1;
    for (int64_t i = 0; i < x->n_items; i++)
        begin[i + 1] += begin[i];
    for (int64_t u = 0; u < x->n_users; u++)
        for (int64_t i = x->items_of[u]; i < x->items_of[u + 1]; i++)
            x->users[begin[x->items[i]]++] = (int32_t)u;
}

att_status att_item_users_find(const att_holdout *h, att_item_users *out)
{
    *out = (att_item_users){.ctx = h->ctx, .n_users = h->log->info.users, .n_items = h->log->info.items};
    att_item_users *x = out;
    const size_t actions = (size_t)h->info.actions;
    int64_t *last_user = att_alloc(x->ctx, (size_t)x->n_items, sizeof *last_user);
    x->items_of = att_alloc(x->ctx, (size_t)x->n_users + 1, sizeof *x->items_of);
    x->users_of = att_alloc(x->ctx, (size_t)x->n_items + 2, sizeof *x->users_of);
    x->items = att_alloc(x->ctx, actions, sizeof *x->items);
    x->users = att_alloc(x->ctx, actions, sizeof *x->users);
    const bool all = last_user && x->items_of && x->users_of && x->items && x->users;
    if (all) {
        fill_items(x, h, last_user);
        fill_users(x);
    }
    att_free(x->ctx, last_user);
    return all ? ATT_OK : ATT_ERR_MEMORY;
}

void att_item_users_free(att_item_users *x)
{
    att_free(x->ctx, x->items_of);
    att_free(x->ctx, x->users_of);
    att_free(x->ctx, x->items);
    att_free(x->ctx, x->users);
    *x = (att_item_users){0};
}
