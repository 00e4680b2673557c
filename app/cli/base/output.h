/* Where results go: standard output, or a file that appears complete or not at all. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_output {
    FILE *file;
    const char *path;          /* for sentences */
    char *target, *unfinished; /* NULL: written directly (standard output, a device, a pipe) */
} cli_output;

/* path NULL or "-": standard output. A symbolic link stays, and the file that it leads to is replaced. Removes the
 * unfinished file of an earlier process that was killed. */
int cli_output_open(cli_output *o, const char *path);
/* Flushes what was written. */
int cli_output_flush(cli_output *o);
/* code 0: moves the file to `path`; else removes it. Returns code, or CLI_FAILED. */
int cli_output_close(cli_output *o, int code);

/* ---- What is written ------------------------------------------------------- */

/* Nine digits, from which reading gives the same x: to [CLI_FLOAT_BYTES], not zero-terminated; returns their number. */
enum { CLI_FLOAT_BYTES = 24 };
size_t cli_put_float(char *to, float x);
/* row [n] with `between` between the numbers; JSON has no NaN and no infinity: null. */
void cli_write_row(FILE *f, const float *row, int64_t n, char between);
/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
void cli_write_json(FILE *f, const char *text, size_t bytes);
/* texts [n] as a JSON array of strings; x [rows, columns] as one of arrays. */
void cli_write_json_texts(FILE *f, const char *const *texts, int64_t n);
void cli_write_json_matrix(FILE *f, const float *x, int64_t rows, int64_t columns);

#endif
