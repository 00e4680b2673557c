/* Codes for search: vectors of int8, uint8 or bits, of an index or of a corpus that is embedded. */
#ifndef CLI_SENTENCE_CODES_H
#define CLI_SENTENCE_CODES_H

#include "cli/base/npy.h"
#include "embedder.h"

#include <attend_vectors.h>

typedef struct cli_codes {
    att_precision precision;
    float *ranges;       /* [2, dim] of int8 and uint8, or NULL */
    const uint8_t *data; /* [rows, att_precision_bytes(precision, dim)]: those of an index, or own */
    uint8_t *own;        /* or NULL */
} cli_codes;

typedef struct cli_codes_options {
    int precision;      /* as given, or -1: that of the index, or float32 */
    const char *index;  /* the path of the index, or NULL */
    const char *ranges; /* the path of the ranges, or NULL: next to the index */
    const char *remake; /* the command that makes the index again, for messages */
} cli_codes_options;

/* Finds the precision of the index from its type and columns. Errors: no precision fits the model's dimension; it is
 * not the given one. */
int cli_codes_precision(const cli_npy *index, const cli_embedder *m, const cli_codes_options *o,
                        att_precision *precision);
/* Opens the codes of an index, and reads their ranges. */
int cli_codes_open(cli_codes *c, const cli_npy *index, const cli_embedder *m, const cli_codes_options *o);
/* Quantizes vectors [rows, dim]. */
int cli_codes_make(cli_codes *c, const float *vectors, int64_t rows, const cli_embedder *m, const cli_codes_options *o);
void cli_codes_close(cli_codes *c);

/* Checks that the vector `again` [dim], which the model makes of line `line` (from 0), is that of its row, up to
 * rounding. */
int cli_codes_check(const cli_codes *c, const cli_embedder *m, const cli_codes_options *o, int64_t line,
                    const float *again);

#endif
