/* Output: standard output, or a file that appears completely or not at all. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_output {
    FILE *file;
    const char *path;          /* for messages */
    char *target, *unfinished; /* NULL: written directly (standard output, a device, a pipe) */
} cli_output;

/* path NULL or "-": standard output. A symbolic link is kept, and the file it leads to is replaced. Removes the
 * temporary file of an earlier, killed process. */
int cli_output_open(cli_output *o, const char *path);
/* Returns whether the output is standard output and leads to a terminal. */
bool cli_output_is_terminal(const cli_output *o);
/* Flushes the output. */
int cli_output_flush(cli_output *o);
/* Closes the output. If code is 0, moves the file to `path`; otherwise removes it. Returns code, or CLI_FAILED. */
int cli_output_close(cli_output *o, int code);

/* ---- Formats ------------------------------------------------------------ */

/* Writes x with nine digits, which reading converts to the same float: to [CLI_FLOAT_BYTES], not zero-terminated;
 * returns the length. */
enum { CLI_FLOAT_BYTES = 24 };
size_t cli_put_float(char *to, float x);
/* Writes as few digits as give the same number. */
enum { CLI_NUMBER_BYTES = 32 };
void cli_write_number(double x, char text[CLI_NUMBER_BYTES]);
/* Writes row [n] with `between` between the numbers; NaN and infinities are null, as JSON has neither. */
void cli_write_row(FILE *f, const float *row, int64_t n, char between);

#endif
