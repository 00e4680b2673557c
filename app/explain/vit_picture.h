/* Drawings of the chapter on the Vision Transformer: a picture, its patches, and weights on these. */
#ifndef EXPLAIN_VIT_PICTURE_H
#define EXPLAIN_VIT_PICTURE_H

#include "page.h"

enum { VIT_MAX_MAPS = 2 };

typedef struct vit_drawing {
    const att_image *image;
    int64_t grid[2], patch[2];
    const char *name, *patches_name; /* of the picture, and of the patches */
    int n_maps;                      /* of weights */
    const char *map_name[VIT_MAX_MAPS];
    const float *map[VIT_MAX_MAPS]; /* weights of the patches [grid[0], grid[1]] */
} vit_drawing;

/* Prints the picture in characters, a line for two rows of pixels, and next to it its patches, if they are small
 * enough. patch NULL: no patches. */
void vit_print_picture(page *p, const att_image *image, const int64_t patch[2]);
/* Draws the picture, its patches and the maps in a row. A function for page_drawing; drawing is a vit_drawing. */
int vit_draw(FILE *f, const page *p, const void *drawing);

#endif
