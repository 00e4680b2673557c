/* Records of a table: tab-separated, or comma-separated with quotes (RFC 4180). The file may be packed by gzip. */
#ifndef CLI_RECORDS_H
#define CLI_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_records {
    /* The current record. Fields are zero-terminated, one behind the other in data, whose owner is this struct: a
     * caller may set `used` back to drop fields. */
    int64_t line;       /* where it begins */
    int64_t fields;     /* number of them */
    size_t *begin;      /* [fields]: in data */
    size_t *bytes;      /* [fields] */
    char *data;         /* [capacity] */
    size_t used;        /* bytes of data, of this and earlier records */
    double read, total; /* bytes so far; of the file, 0: unknown */
    /* private */
    FILE *file;
    const char *path;
    bool csv;
    int64_t next_line;
    size_t capacity, room; /* of data; of begin and bytes */
} cli_records;

/* Field separators, in the order of an option "tsv|csv". */
enum { CLI_PAIRS_BY_NAME = -1, CLI_PAIRS_TSV, CLI_PAIRS_CSV }; /* the first: by the file's extension */
int cli_records_open(cli_records *r, const char *path, int format);
/* Appends the next record to data; fields 0: the file has ended. */
int cli_records_next(cli_records *r);
void cli_records_close(cli_records *r);

#endif
