/* Draws the attention of each word of a caption as a small map. */
#ifndef CLI_CAPTION_CAPTION_MAPS_H
#define CLI_CAPTION_CAPTION_MAPS_H

#include "captioner.h"

typedef struct caption_maps {
    const cli_captioner *m;
    const att_image_caption *caption;
    att_trace *trace;
    att_trace_info seen;                   /* grid and image of the trace */
    float *weights;                        /* [words, grid[0] * grid[1]], the mean of all heads of the last layer */
    const char *weights_name, *image_name; /* the captions of both, or NULL: in English */
} caption_maps;

/* Makes the maps of a caption that m gave the image. Both must not move until *c is freed. */
int caption_maps_open(caption_maps *c, const cli_captioner *m, const att_image *image,
                      const att_image_caption *caption);
void caption_maps_free(caption_maps *c);
/* Writes a self-contained SVG: the image as the model sees it, and once more under the colors of each word. name: of
 * the image. */
int caption_maps_svg(FILE *f, const char *name, const caption_maps *c);

#endif
