/* Draws the attention to the patches of an image. */
#ifndef CLI_VISION_IMAGE_ATTENTION_H
#define CLI_VISION_IMAGE_ATTENTION_H

#include "vision.h"

typedef struct image_attention {
    const cli_vision *m;
    int64_t layer, head; /* -1: rollout over all layers, the mean of all heads */
    int64_t from;        /* the token that attends; -1: [CLS], or all patches */
    bool mean;           /* of all patches' attention, where the model has no [CLS] token; false: that of [CLS] */
    att_trace *trace;
    att_trace_info seen; /* grid and image of the trace */
    float *weights;      /* [seen.grid[0], seen.grid[1]]: of the patches */
    double rest;         /* what tokens before the patches get */
    /* private: */
    float *part;        /* [seen.grid[0], seen.grid[1]] */
    char (*number)[24]; /* [seen.grid[0]], as label */
    const char **label;
} image_attention;

/* Refuses layers and heads that the model does not have, as values of --layer and --head. */
int image_attention_check(const cli_vision *m, int64_t layer, int64_t head);
/* Computes the attention of one image. *a stays where it is until it is freed, and m is open. */
int image_attention_open(image_attention *a, const cli_vision *m, const att_image *image, int64_t layer, int64_t head);
typedef struct image_row {
    int64_t layer, head, from; /* as in image_attention */
} image_row;
/* Reads the attention of a trace, which has the layer; it is freed with *a, also after an error. */
int image_attention_set(image_attention *a, const cli_vision *m, att_trace *trace, const image_row *row);
void image_attention_free(image_attention *a);

/* Self-contained SVG: the image as the model sees it, and under the colors of the patches. */
int image_attention_svg(FILE *f, const char *title, const image_attention *a);
/* For a terminal or a log: a map of the patches, in parts of the largest weight. colors: see terminal_colors(f). */
void image_attention_terminal(FILE *f, const image_attention *a, int colors);

#endif
