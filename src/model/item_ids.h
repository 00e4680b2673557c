/* Texts by which a recommender's items are known, numbered from 0. */
#ifndef ATT_MODEL_ITEM_IDS_H
#define ATT_MODEL_ITEM_IDS_H

#include "io/settings.h"
#include "text/hash_table.h"

/* As many as a JSON file may have */
enum { ATT_MAX_ITEMS = ATT_MAX_JSON_VALUES - 1, ATT_MAX_ITEM_ID = 4096 };

typedef struct att_item_ids {
    att_ctx *ctx;
    int64_t n;
    size_t *start; /* [n]: of each id in text */
    size_t start_room;
    att_bytes text; /* ids, each followed by a zero byte */
    att_hash_table table;
} att_item_ids;

/* Adds items [n]. Errors name the item: NULL, empty, too long, not UTF-8, there already; too many. */
att_status att_item_ids_add(att_item_ids *ids, const char *const *items, int64_t n);
/* Adds those of a list of `from`. */
att_status att_item_ids_copy(att_item_ids *ids, const att_item_ids *from);
void att_item_ids_free(att_item_ids *ids);
/* NULL, -1: there is none. */
const char *att_item_ids_get(const att_item_ids *ids, int64_t i);
int64_t att_item_ids_find(const att_item_ids *ids, const char *id);
/* FOLDER/items.json: n ids, to empty `ids`. */
att_status att_item_ids_read(att_item_ids *ids, const char *folder, int64_t n);
att_status att_item_ids_write(const att_item_ids *ids, const char *folder);

#endif
