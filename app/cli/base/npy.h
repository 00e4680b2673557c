/* Matrices of f32, or of codes of a byte, as NumPy's .npy files (format 1.0 written; 1.0, 2.0 and 3.0 read). */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cli_npy_type { CLI_NPY_FLOAT32, CLI_NPY_INT8, CLI_NPY_UINT8 } cli_npy_type;

/* Writes a header whose length does not depend on rows and columns. */
void cli_npy_header(FILE *f, cli_npy_type type, int64_t rows, int64_t columns);

typedef struct cli_npy {
    cli_npy_type type;
    const float *data;    /* [rows, columns], mapped or own; or NULL, if it has codes */
    const uint8_t *codes; /* [rows, columns], mapped; or NULL, if it has floats */
    int64_t rows, columns;
    void *map;
    size_t bytes;
    void *own; /* a copy of numbers that do not begin at a multiple of 4 bytes */
} cli_npy;

/* Maps a file, and checks its header and that all numbers are finite. Errors are messages. */
int cli_npy_open(cli_npy *a, const char *path);
/* Opens a file in memory, which must outlive a. */
int cli_npy_read(cli_npy *a, const char *path, const void *file, size_t bytes);
/* Maps a file of floats. Codes are an error. */
int cli_npy_open_floats(cli_npy *a, const char *path);
void cli_npy_close(cli_npy *a);

#endif
