/* Draws the attention of a recommender to past items as a heat map. */
#ifndef CLI_RECOMMEND_HISTORY_ATTENTION_H
#define CLI_RECOMMEND_HISTORY_ATTENTION_H

#include "item_texts.h"
#include "recommender.h"

/* Draws the attention of the last state to the items [n] of a history to a picture. There is a column for the mean of
 * all heads, one for each layer, and one for each head if there are several. A label is the text of an item, or its id
 * if it has none. name: that of the history; best: the first item of its list; -1: there is none. */
int history_attention_draw(const cli_recommender *m, const cli_item_texts *texts, const char *path, const char *name,
                           int32_t best, const int32_t *items, int64_t n);

#endif
