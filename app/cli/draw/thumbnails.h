/* Many small maps of weights on a grid, such as all heads of all layers: as a picture, or as characters. */
#ifndef CLI_THUMBNAILS_H
#define CLI_THUMBNAILS_H

#include <attend_vision.h>

#include <stdint.h>
#include <stdio.h>

typedef struct thumbnails {
    att_ctx *ctx;
    const char *const *row, *const *column; /* names [rows], [columns] */
    int64_t rows, columns;                  /* of the grid of maps */
    int64_t height, width;                  /* of each map, in cells */
    const uint8_t *cells;                   /* [rows, columns, height, width]; 255: the largest weight of the map */
    const char *note;                       /* a line below the picture */
} thumbnails;

/* Writes the largest of weights [rows, columns] in each cell of a map [height, width] to out, scaled so that the
 * largest of all is 255. height <= rows, width <= columns. */
void thumbnail_pool(const float *weights, int64_t rows, int64_t columns, int64_t height, int64_t width, uint8_t *out);

/* Writes a self-contained SVG. Returns 0, or a code after a message. */
int thumbnails_svg(FILE *f, const char *title, const thumbnails *t);
/* Prints maps with a character for each cell, side by side if several fit. colors: see terminal_colors(f). */
void thumbnails_terminal(FILE *f, const thumbnails *t, int colors);

#endif
