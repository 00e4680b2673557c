/* Attention weights as a picture: row = query, column = key. */
#ifndef CLI_HEATMAP_H
#define CLI_HEATMAP_H

#include <stdint.h>
#include <stdio.h>

/* On a terminal or in a log. labels [n], weights [n, n]; colors as terminal_colors(f) says: 0 prints digits and
 * shades. The widest cells that fit are chosen; what is wider than the terminal is cut into panels of columns.
 * Colours run from 0 (dark) to the largest weight (light). Returns 0, or -1 where writing failed. */
int heatmap_terminal(FILE *f, const char *const *labels, int64_t n, const float *weights, int colors);

/* As a self-contained SVG. Colours run from 0 (light) to the largest weight (dark), each cell says its value. */
int heatmap_svg(FILE *f, const char *title, const char *const *labels, int64_t n, const float *weights);

#endif
