/* Draws the attention of a recommender to past items as a heat map. */
#ifndef CLI_RECOMMEND_HISTORY_ATTENTION_H
#define CLI_RECOMMEND_HISTORY_ATTENTION_H

#include "recommender.h"

/* Draws the attention of the last state to the items [n > 0] of a history to a picture. There is a column for the mean
 * of all heads, one for each layer, and one for each head if there are several. labels [n]: texts of items. */
int history_attention_draw(const cli_recommender *m, const char *path, const char *title, const int32_t *items,
                           int64_t n, const char *const *labels);

#endif
