/* The color ramp of all drawings, and the colors of a terminal. */
#ifndef CLI_COLOR_H
#define CLI_COLOR_H

#include <stdint.h>
#include <stdio.h>

typedef struct color {
    uint8_t r, g, b;
} color;

extern const color color_ink, color_pale, color_card; /* of text, of less important text, of the background */

/* t in [0, 1] (clamped; NaN is 0) from near white through teal and blue to deep indigo. Lightness falls evenly in
 * OKLab, so equal steps of t appear equally large, in gray print, too. */
color color_ramp(double t);
/* Returns the perceived lightness in [0, 1] (OKLab L). Text on c is black if it is above about 0.65. */
double color_lightness(color c);

/* Returns the number of colors to use on f: 1 << 24 or 256 on a terminal; 0 if f is not a terminal or a dumb one, or
 * NO_COLOR is set. */
int terminal_colors(FILE *f);
/* Writes the escape sequence that sets the color of the background (layer 48) or of the text (layer 38). */
void terminal_color(FILE *f, int colors, int layer, color c);
void terminal_color_end(FILE *f);

#endif
