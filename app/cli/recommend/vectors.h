/* Writes vectors of items and of histories, in the formats of attend embed. */
#ifndef CLI_RECOMMEND_VECTORS_H
#define CLI_RECOMMEND_VECTORS_H

#include "cli/base/output.h"
#include "cli/sentence/vector_file.h"
#include "recommender.h"

typedef struct cli_item_vectors {
    const cli_recommender *m;
    cli_output out;
    cli_vector_file file;
    float *row; /* [hidden]: zeros */
    float *x;   /* [room, hidden] */
    size_t room;
    int64_t before;        /* rows of earlier shards */
    int64_t rows, without; /* all; without a vector, so zeros */
} cli_item_vectors;

/* Begins a file in this format of CLI_VECTOR_FORMATS. table: that of SQL; key: the name of a row's id. */
int cli_item_vectors_open(cli_item_vectors *v, const cli_recommender *m, const char *path, int format,
                          const char *table, const char *key);
/* Adds the vectors of all items, with --shard of those of the shard; or of histories, whose ids are names [h->n]. */
int cli_item_vectors_add_items(cli_item_vectors *v);
int cli_item_vectors_add_histories(cli_item_vectors *v, const cli_histories *h, const char *const *names);
/* Reports how many rows of the file at `path` are zeros. items: they are items, not histories. */
void cli_item_vectors_report(const cli_item_vectors *v, const char *path, bool items);
/* Ends the file. code: that of the work before, which is returned if it is not 0. */
int cli_item_vectors_close(cli_item_vectors *v, int code);

#endif
