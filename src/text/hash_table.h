/* Numbers of items by a hash of each; which of those of one hash is the item that is looked for, the caller says. */
#ifndef ATT_HASH_TABLE_H
#define ATT_HASH_TABLE_H

#include "attend_util.h"

enum { ATT_NO_ITEM = -1 };

typedef struct att_hash_slot {
    uint32_t hash;
    int32_t item; /* ATT_NO_ITEM: free */
} att_hash_slot;

typedef struct att_hash_table {
    att_ctx *ctx;
    att_hash_slot *slots; /* [mask + 1], at most half full */
    uint32_t mask, count;
} att_hash_table;

/* Makes room for so many items in all; those that are there stay. Error: memory, and more than 2^30 items. */
att_status att_hash_reserve(att_hash_table *t, uint32_t items);
void att_hash_free(att_hash_table *t);
/* The i-th slot in which an item of this hash may be, from 0; there is none behind the first that is free. */
static inline att_hash_slot *att_hash_slot_at(const att_hash_table *t, uint32_t hash, uint32_t i)
{
    return &t->slots[((hash ^ hash >> 15) + i) & t->mask];
}
/* Takes a free slot, after which the table must have had room for one more. */
static inline void att_hash_take(att_hash_table *t, att_hash_slot *free, uint32_t hash, int32_t item)
{
    *free = (att_hash_slot){hash, item};
    t->count++;
}

#endif
