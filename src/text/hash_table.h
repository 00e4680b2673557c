/* A hash table of item numbers; the caller stores the items and compares them. */
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
    att_hash_slot *slots; /* [mask + 1], at most half of them used */
    uint32_t mask, count;
} att_hash_table;

/* Reserves space for `items` items in all. Error: memory; more than 2^30 items. */
att_status att_hash_reserve(att_hash_table *t, uint32_t items);
void att_hash_free(att_hash_table *t);
/* Returns the i-th slot of the probe sequence of a hash; it ends at the first free slot. */
static inline att_hash_slot *att_hash_slot_at(const att_hash_table *t, uint32_t hash, uint32_t i)
{
    return &t->slots[((hash ^ hash >> 15) + i) & t->mask];
}
/* Inserts an item into a free slot; space must have been reserved. */
static inline void att_hash_insert(att_hash_table *t, att_hash_slot *free, uint32_t hash, int32_t item)
{
    *free = (att_hash_slot){hash, item};
    t->count++;
}

#endif
