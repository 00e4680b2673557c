/* Pairs of sentences from a table: tab-separated, or comma-separated with quotes (RFC 4180). */
#ifndef CLI_PAIRS_H
#define CLI_PAIRS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_pairs {
    /* The current block. */
    int64_t count;
    const char **text;  /* [2 count]: first and second of each pair, zero-terminated */
    size_t *bytes;      /* [2 count] */
    double *gold;       /* [count]: the third column; 0 unless asked for */
    double read, total; /* bytes so far; of the file, 0: unknown */
    /* private */
    FILE *file;
    const char *path;
    bool csv, want_gold, end;
    int64_t line; /* start of the current record */
    int64_t next_line;
    char *data; /* [capacity]: the fields of the block */
    size_t capacity, used;
    size_t *begin; /* [2 max_count]: of the texts in data */
    int64_t max_count;
} cli_pairs;

/* Field separators, in the order of an option "tsv|csv". */
enum { CLI_PAIRS_BY_NAME = -1, CLI_PAIRS_TSV, CLI_PAIRS_CSV }; /* the first: by the file's extension */
/* Blocks have at most max_count pairs. want_gold: the third column must be a number. */
int cli_pairs_open(cli_pairs *p, const char *path, int format, bool want_gold, int64_t max_count);
int cli_pairs_next(cli_pairs *p); /* reads the next block; count 0: end */
void cli_pairs_close(cli_pairs *p);

#endif
