/* The ids of a recommender's items, and their file. */
#ifndef ATT_RECOMMEND_ITEM_IDS_H
#define ATT_RECOMMEND_ITEM_IDS_H

#include "io/settings.h"
#include "text/ids.h"

/* As many as a JSON file may have. */
enum { ATT_MAX_ITEMS = ATT_MAX_JSON_VALUES - 1 };

/* Adds items [n] to ids. Errors name the item: NULL, empty, too long, not UTF-8, there already; too many. */
att_status att_item_ids_add(att_ids *ids, const char *const *items, int64_t n);
/* Adds the ids of a list `from`. */
att_status att_item_ids_copy(att_ids *ids, const att_ids *from);
/* Adds the n ids of FOLDER/items.json. */
att_status att_item_ids_read(att_ids *ids, const char *folder, int64_t n);
att_status att_item_ids_write(const att_ids *ids, const char *folder);

#endif
