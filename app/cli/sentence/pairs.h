/* Pairs of sentences from a table, in blocks. */
#ifndef CLI_SENTENCE_PAIRS_H
#define CLI_SENTENCE_PAIRS_H

#include "cli/base/records.h"

typedef struct cli_pairs_options {
    int format;        /* as of cli_records_open */
    bool gold;         /* the third column must be a number */
    double highest;    /* from 0 to this one; 0: any */
    int64_t skip;      /* malformed records that may be left out */
    int64_t max_count; /* of pairs in a block */
} cli_pairs_options;

typedef struct cli_pairs {
    /* The current block. */
    int64_t count;
    const char **text;  /* [2 count]: first and second of each pair, zero-terminated */
    size_t *bytes;      /* [2 count] */
    double *gold;       /* [count]: the third column; 0 unless asked for */
    double read, total; /* bytes so far; of the file, 0: unknown */
    cli_records in;     /* open */
    /* private */
    cli_pairs_options options;
    bool begun;    /* the first record has been read */
    size_t *begin; /* [2 max_count]: of the texts in data */
} cli_pairs;

/* Opens a table. A first record that names columns, or has no number in the column of scores, is a heading, which is
 * reported. */
int cli_pairs_open(cli_pairs *p, const char *path, const cli_pairs_options *options);
int cli_pairs_next(cli_pairs *p); /* reads the next block; count 0: end */
void cli_pairs_close(cli_pairs *p);

#endif
