/* Which users have which items, by the training actions of a hold-out: what models that count begin with. */
#ifndef ATT_RECOMMEND_ITEM_USERS_H
#define ATT_RECOMMEND_ITEM_USERS_H

#include "recommend/holdout.h"

/* Each user has an item once. */
typedef struct att_item_users {
    att_ctx *ctx;
    int64_t n_users, n_items;
    int64_t *users_of; /* [n_items + 2]: the first user of each item */
    int32_t *users;    /* users of each item, ascending */
    int64_t *items_of; /* [n_users + 1]: the first item of each user */
    int32_t *items;    /* different items of each user */
} att_item_users;

/* Only the last ATT_MAX_USER_ITEMS different items of a user count, so that time is linear in the actions. */
enum { ATT_MAX_USER_ITEMS = 1000 };

att_status att_item_users_find(const att_holdout *h, att_item_users *out);
void att_item_users_free(att_item_users *x);

/* Returns the number of users who have the item. */
static inline int64_t att_item_users_count(const att_item_users *x, int64_t item)
{
    return x->users_of[item + 1] - x->users_of[item];
}

#endif
