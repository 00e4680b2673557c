/* Line charts in panels with a common x axis: as a picture, or as characters. */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include "color.h"

#include <stdint.h>
#include <stdio.h>

typedef struct chart_point {
    double x, y;
    double low, high; /* an interval around y; both equal to y: none */
} chart_point;

typedef struct chart_curve {
    const char *name;
    const chart_point *point; /* [n], x ascending; all numbers finite, of a magnitude below CHART_MAX */
    int64_t n;
    int color, dash; /* any numbers; equal numbers give equal styles */
} chart_curve;

typedef struct chart_panel {
    const char *name; /* of the y axis */
    const chart_curve *curve;
    int n;
} chart_panel;

typedef struct chart {
    const char *title, *x_name;
    const chart_panel *panel;
    int n;
    const char *note; /* a line below the picture, or NULL */
} chart;

#define CHART_MAX 1e100
#define CHART_MIN 1e-100 /* numbers that are no further apart are drawn as one */

/* Writes a self-contained SVG for light and dark pages. Returns 0, or -1 if out of memory. */
int chart_svg(FILE *f, const chart *c);
/* Prints the chart for a terminal or a log. colors: see terminal_colors(f). Each curve has its own character. */
void chart_terminal(FILE *f, const chart *c, int colors);
/* Returns the color of curves of this number. */
color chart_color(int number);

/* An axis: its range, and ticks at multiples of 1, 2 or 5 times a power of ten. */
typedef struct chart_axis {
    double low, high, step;
    double first, last; /* of the ticks, in steps */
} chart_axis;

/* Returns an axis over [low, high] with about `ticks` ticks. */
chart_axis chart_axis_over(double low, double high, int ticks);
/* Writes a tick's value as text, with as many decimals as the steps need: "0.25", "12,000". */
void chart_tick(const chart_axis *a, double value, char *text, size_t size);

#endif
