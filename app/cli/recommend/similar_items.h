/* Lists of the items most similar to an item, by the cosine of their vectors. */
#ifndef CLI_RECOMMEND_SIMILAR_ITEMS_H
#define CLI_RECOMMEND_SIMILAR_ITEMS_H

#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "lists.h"

typedef struct cli_similar_items {
    const cli_recommender *m;
    const att_recommend_options *options;
    const cli_lists *lists; /* print to out */
    cli_output *out;
    cli_progress *progress; /* of all items; has begun */
} cli_similar_items;

/* Prints a list for each id of --similar that is of the shard. */
int cli_similar_items_print(const cli_similar_items *s, const cli_texts *ids);
/* Prints a list for each item of the shard, and reports how many items have no similar one. */
int cli_similar_items_print_all(const cli_similar_items *s);

#endif
