/* The categories of a model's items, from a file. */
#ifndef CLI_RECOMMEND_ITEM_CATEGORIES_H
#define CLI_RECOMMEND_ITEM_CATEGORIES_H

#include "item_texts.h"
#include "recommender.h"

/* Numbers the categories, malloc'd: [items], -1 of an item without one. texts: from cli_item_categories_read. path: of
 * its file, for messages. Error: no item has one. */
int cli_item_categories_number(const cli_item_texts *texts, const cli_recommender *m, const char *path, int32_t **out);

#endif
