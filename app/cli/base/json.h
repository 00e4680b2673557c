/* Writing JSON, value after value, without a tree:
 *
 *     cli_json j = cli_json_begin(stdout);
 *     cli_json_string(&j, "text", text);
 *     cli_json_array(&j, "tokens");
 *     for (int64_t i = 0; i < n; i++)
 *         cli_json_integer(&j, NULL, ids[i]);
 *     cli_json_close(&j); // the array, the object and the line
 *
 * Errors are the stream's. In all functions key is that of the value in an object, NULL in an array and outside. */
#ifndef CLI_BASE_JSON_H
#define CLI_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLI_JSON_DEPTH = 12 };
typedef struct cli_json {
    FILE *file;
    /* The texts before the first value of the outermost array or object, between two values, and after the last; NULL:
     * "", ", " and "". Inner arrays and objects always have these. */
    const char *first, *between, *last;
    int depth; /* of open arrays and objects */
    struct {
        char end; /* ']' or '}' */
        bool more;
    } open[CLI_JSON_DEPTH];
} cli_json;

/* Begins an object that is a line; ends all that is open. */
cli_json cli_json_begin(FILE *f);
void cli_json_close(cli_json *j);
void cli_json_object(cli_json *j, const char *key);
void cli_json_array(cli_json *j, const char *key);
/* Ends the innermost array or object; after the outermost one comes a line end. */
void cli_json_end(cli_json *j);

/* Write a string: text, zero-terminated or of `bytes`, or NULL: null. Invalid UTF-8 becomes U+FFFD, and characters for
 * which utf8_is_control returns true are escaped. */
void cli_json_string(cli_json *j, const char *key, const char *text);
void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t bytes);
void cli_json_bool(cli_json *j, const char *key, bool x);
void cli_json_integer(cli_json *j, const char *key, int64_t x);
/* x with `digits` digits in all, or with `decimals` after the point; or with the nine that tell all floats apart. NaN
 * and infinities are null, as JSON has neither. */
void cli_json_number(cli_json *j, const char *key, double x, int digits);
void cli_json_fixed(cli_json *j, const char *key, double x, int decimals);
void cli_json_float(cli_json *j, const char *key, float x);
/* texts [n] as an array of strings, numbers x [n] with `digits` digits as one of numbers, row [n] as one of floats
 * without spaces, and x [rows, columns] as one of such rows. */
void cli_json_strings(cli_json *j, const char *key, const char *const *texts, int64_t n);
void cli_json_numbers(cli_json *j, const char *key, const double *x, int64_t n, int digits);
void cli_json_row(cli_json *j, const char *key, const float *row, int64_t n);
void cli_json_matrix(cli_json *j, const char *key, const float *x, int64_t rows, int64_t columns);
/* Writes what precedes a value, which the caller then writes to j->file. */
void cli_json_begin_value(cli_json *j, const char *key);
/* Writes any value on one line. flags: of json_dumps, without JSON_INDENT. Returns 0, or an error code. */
int cli_json_value(cli_json *j, const char *key, const json_t *value, size_t flags);

#endif
