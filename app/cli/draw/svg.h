/* A small SVG writer: one function per element, text is escaped. Lengths are in px, y grows downwards. */
#ifndef CLI_SVG_H
#define CLI_SVG_H

#include "color.h"

#include <stdio.h>

typedef struct svg_font {
    double size;
    color fill;
    char anchor;   /* 's'tart (also 0), 'm'iddle, 'e'nd */
    double rotate; /* degrees, clockwise */
    int bold;
} svg_font;

/* title: for browsers and screen readers. */
void svg_begin(FILE *f, double width, double height, const char *title);
/* Makes dark pages show the color light[i] as dark[i]. Both [n]. */
void svg_dark(FILE *f, const color *light, const color *dark, int n);
void svg_end(FILE *f);
/* tooltip NULL: none. */
void svg_rect(FILE *f, double x, double y, double width, double height, double radius, color fill, const char *tooltip);
void svg_line(FILE *f, double x1, double y1, double x2, double y2, double width, color stroke);
/* Draws lines from point to point, x and y [n]. dash: lengths of lines and gaps as "6 4"; NULL: one line. */
void svg_polyline(FILE *f, const double *x, const double *y, int64_t n, double width, const char *dash, color stroke);
/* tooltip NULL: none. */
void svg_circle(FILE *f, double x, double y, double radius, color fill, const char *tooltip);
/* Draws a PNG file in memory, png [bytes], stretched to this size. */
void svg_image(FILE *f, double x, double y, double width, double height, const uint8_t *png, size_t bytes);
/* Begins and ends a layer of this opacity. */
void svg_layer(FILE *f, double opacity);
void svg_layer_end(FILE *f);
/* Begins and ends a group with a name, which svg_again draws again, moved by x and y. */
void svg_named(FILE *f, const char *name);
void svg_named_end(FILE *f);
void svg_again(FILE *f, const char *name, double x, double y);
/* y is the vertical center of the letters. */
void svg_text(FILE *f, double x, double y, const svg_font *font, const char *text);
/* Returns the approximate width of a text, for layout. */
double svg_text_width(const char *text, double size);
/* Returns the size, at most `size`, at which a bold text surely has at most this width. */
double svg_bold_size(const char *text, double size, double width);
/* Draws lines of at most this width, `pitch` apart, the first at y. Lines break after spaces, commas and semicolons; a
 * word that is longer is broken. f NULL: draws nothing. Returns the number of lines. */
int svg_paragraph(FILE *f, double x, double y, double width, double pitch, const svg_font *font, const char *text);

#endif
