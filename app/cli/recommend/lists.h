/* Prints lists of recommended items. */
#ifndef CLI_RECOMMEND_LISTS_H
#define CLI_RECOMMEND_LISTS_H

#include "item_texts.h"
#include "recommender.h"

#include <jansson.h>
#include <stdio.h>

typedef struct cli_lists {
    const cli_recommender *m;
    const cli_item_texts *texts; /* titles; texts->n 0: none */
    FILE *file;
    bool json;
    bool lines;      /* not JSON: a line for each list, for programs; otherwise one for each item, for people */
    bool of_items;   /* lists of similar items, not after a history */
    const char *key; /* of the name in JSON */
} cli_lists;

/* Prints row `row` of r. name: the user, the history or the item. unknown: a list of ids, for JSON. */
void cli_lists_print(const cli_lists *l, const char *name, json_t *unknown, const att_recommendation *r, int64_t row);

#endif
