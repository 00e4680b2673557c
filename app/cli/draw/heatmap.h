/* Attention weights as a picture: row = query, column = key. */
#ifndef CLI_HEATMAP_H
#define CLI_HEATMAP_H

#include <stdint.h>
#include <stdio.h>

typedef struct heatmap {
    const char *const *row, *const *column; /* labels, [rows] and [columns]; column NULL: numbers from 0 */
    int64_t rows, columns;
    const float *weights;               /* [rows, columns] */
    const char *row_name, *column_name; /* of the axes */
    const char *corner;                 /* both, short */
} heatmap;

/* Of tokens [n] and each other. */
static inline heatmap heatmap_square(const char *const *labels, int64_t n, const float *weights)
{
    return (heatmap){labels, labels, n, n, weights, "query (row)", "key (column)", "q↓ k→"};
}

/* On a terminal or in a log. colors as terminal_colors(f) says: 0 prints digits and shades. The widest cells that fit
 * are chosen; what is wider than the terminal is cut into panels of columns. Colours run from 0 (dark) to the largest
 * weight (light). Returns 0, or -1 where writing failed. */
int heatmap_terminal(FILE *f, const heatmap *h, int colors);

/* As a self-contained SVG. Colours run from 0 (light) to the largest weight (dark), each cell says its value. */
int heatmap_svg(FILE *f, const char *title, const heatmap *h);

#endif
