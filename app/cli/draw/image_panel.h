/* An image as a part of a picture, and over its pale copy weights of a grid's locations. */
#ifndef CLI_IMAGE_PANEL_H
#define CLI_IMAGE_PANEL_H

#include "chart.h"

#include <attend_vision.h>

typedef struct image_panel {
    att_ctx *ctx;
    const att_image *image;
    double left, top, width, height;
} image_panel;

/* Returns the scale in px per pixel, with which the side of an image is at most `longest` px. If possible it is a
 * multiple of 1/2, so that pixels are sharp in a PNG of twice the size. */
double image_panel_scale(const att_image *image, double longest);
/* Draws the image itself. The edges of pixels are sharp if it is enlarged. Returns 0, or a code after a message. */
int image_panel_draw(FILE *f, const image_panel *p);
/* Draws the image in pale gray, for colors over it. */
int image_panel_draw_pale(FILE *f, const image_panel *p);
/* Draws weights [rows, columns] of locations of `cell` px (height, width) each, from the upper left corner on. */
void image_panel_draw_weights(FILE *f, const image_panel *p, int64_t rows, int64_t columns, const double cell[2],
                              const float *weights, const chart_axis *scale);

#endif
