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

/* In characters, a line for two rows of pixels: the picture, and beside it its patches, if they are small enough; patch
 * NULL: none. */
void vit_print_picture(page *p, const att_image *image, const int64_t patch[2]);
/* In a row: the picture, its patches, the maps. drawing is a vit_drawing; for page_drawing. */
int vit_draw(FILE *f, const page *p, const void *drawing);

#endif
