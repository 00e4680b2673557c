/* Records of a table of texts, see att_table: CSV, or separated by tabs. */
#ifndef CLI_RECORDS_H
#define CLI_RECORDS_H

#include "command.h"
#include "skipped.h"

#include <attend_text.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_records {
    /* The current record. Fields are zero-terminated, one after the other in data, whose owner is this struct: a caller
     * may set `used` back to drop fields. */
    int64_t line;        /* the line in which it begins */
    int64_t fields;      /* number of them */
    size_t *begin;       /* [fields]: in data */
    size_t *bytes;       /* [fields] */
    char *data;          /* [capacity] */
    size_t used;         /* bytes of data, of this and earlier records */
    double read, total;  /* bytes so far; of the file, 0: unknown */
    bool csv;            /* separated by `between`, with quotes */
    const char *between; /* "comma", "semicolon", "tab" */
    bool valued;         /* a heading has named a score or label, which is the last field */
    bool single;         /* set by the caller: a heading may name one text and a label */
    /* private */
    att_ctx *ctx;
    att_table *table;
    const char *path;
    int stream; /* descriptor of a pipe, if has_stream */
    bool has_stream;
    int64_t skip;
    size_t capacity, room; /* of data; of begin and bytes */
    char *heading;         /* [heading_bytes]: its fields, as in data; NULL: none */
    size_t heading_bytes;
    int64_t *column; /* [chosen]: of each field in the file, of `columns`; chosen 0: all fields are read */
    int64_t chosen, columns;
} cli_records;

/* Formats, in the order of an option "tsv|csv". */
enum { CLI_PAIRS_BY_NAME = -1, CLI_PAIRS_TSV, CLI_PAIRS_CSV }; /* the first: by the file's extension */
/* path: "-" is standard input; it may be a pipe. skip: malformed records that may be left out. */
int cli_records_open(cli_records *r, const char *path, int format, int64_t skip);
/* Appends the next record to data. fields 0: the file has ended. If the heading has named texts, the fields are these
 * texts, then the score or label. */
int cli_records_next(cli_records *r);
/* The current record is malformed: fails with a sentence on its line, or if it may be left out, drops it and returns
 * CLI_DONE. */
int cli_records_refuse(cli_records *r, const char *format, ...) ATT_PRINTF(2, 3);
/* Refuses the current record, as above, because it has one field and a pair has two. */
int cli_records_refuse_one(cli_records *r);
/* Reports the records that were left out so far. */
void cli_records_skipped(const cli_records *r, cli_skipped *out);
void cli_records_close(cli_records *r);

/* Returns whether the current record, the first one, is a heading: each field is a name for texts, scores or labels,
 * such as sentence1, question, negative or score, in letters of either case; or two or more are names for texts, with
 * `single` also one and a label. */
bool cli_records_named(const cli_records *r);
/* Reports that the current record was read as a heading, and drops it; the same line again is passed over. Chooses the
 * columns of texts that it names, which need not be the first. */
int cli_records_heading(cli_records *r);
/* Returns whether a text is a number, which need not be finite. It may have a comma instead of the point, as
 * spreadsheets of many countries write it. */
bool cli_records_number(const char *text, double *value);

#endif
