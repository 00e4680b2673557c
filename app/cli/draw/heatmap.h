/* Attention weights as a heat map: rows are queries, columns are keys. */
#ifndef CLI_HEATMAP_H
#define CLI_HEATMAP_H

#include "chart.h"

#include <stdint.h>
#include <stdio.h>

typedef struct heatmap {
    const char *const *row, *const *column; /* labels, [rows] and [columns]; column NULL: numbers from 0 */
    int64_t rows, columns;
    const float *weights;               /* [rows, columns] */
    const char *row_name, *column_name; /* of the axes */
    const char *corner;                 /* both, short */
} heatmap;

/* Returns the heat map of self-attention of tokens [n]. */
static inline heatmap heatmap_square(const char *const *labels, int64_t n, const float *weights)
{
    return (heatmap){labels, labels, n, n, weights, "query (row)", "key (column)", "q↓ k→"};
}

/* Prints a heat map for a terminal or a log. colors: see terminal_colors(f); 0 prints digits and shades. Cells are as
 * wide as fits; wider maps are split into panels of columns. Colors range from 0 (dark) to a round number at or above
 * the largest weight (light). Returns 0, or -1 on a write error. */
int heatmap_terminal(FILE *f, const heatmap *h, int colors);

/* Writes a self-contained SVG. Colors range from 0 (light) to a round number at or above the largest weight (dark);
 * cells show their values. */
int heatmap_svg(FILE *f, const char *title, const heatmap *h);

/* Returns the scale of the colors of weights [n]: from 0 to the first tick at or above the largest. */
chart_axis heatmap_scale(const float *weights, int64_t n);
/* Draws the bar that explains the colors, and its ticks to the right. */
void heatmap_bar(FILE *f, double x, double y, double height, const chart_axis *scale);

#endif
