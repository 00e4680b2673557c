/* Pairs of sentences from a table, in blocks. */
#ifndef CLI_PAIRS_H
#define CLI_PAIRS_H

#include "records.h"

typedef struct cli_pairs {
    /* The current block. */
    int64_t count;
    const char **text;  /* [2 count]: first and second of each pair, zero-terminated */
    size_t *bytes;      /* [2 count] */
    double *gold;       /* [count]: the third column; 0 unless asked for */
    double read, total; /* bytes so far; of the file, 0: unknown */
    /* private */
    cli_records in;
    const char *path;
    bool want_gold;
    size_t *begin; /* [2 max_count]: of the texts in data */
    int64_t max_count;
} cli_pairs;

/* Blocks have at most max_count pairs. want_gold: the third column must be a number. */
int cli_pairs_open(cli_pairs *p, const char *path, int format, bool want_gold, int64_t max_count);
int cli_pairs_next(cli_pairs *p); /* reads the next block; count 0: end */
void cli_pairs_close(cli_pairs *p);

#endif
