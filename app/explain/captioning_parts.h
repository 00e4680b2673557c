/* A captioner in parts, for its chapter: the weights by their names in the file, and the writing of a caption step by
 * step. */
#ifndef EXPLAIN_CAPTIONING_PARTS_H
#define EXPLAIN_CAPTIONING_PARTS_H

#include <attend_nn.h>
#include <attend_caption.h>

enum { CAPTIONING_MAX_STAGES = 8, CAPTIONING_MAX_GRID = 10, CAPTIONING_MAX_WORDS = 64 };

typedef struct captioning_stage {
    const att_nn_conv *conv[2];
    const att_nn_batch_norm *norm[2];
} captioning_stage;

typedef struct captioning_parts {
    att_caption_model_info info;
    int64_t grid[2], locations;
    int64_t stages, channels[CAPTIONING_MAX_STAGES]; /* of the convolutions */
    int64_t vocabulary, embedding, end;              /* end: the word before the first */
    captioning_stage stage[CAPTIONING_MAX_STAGES];
    const att_nn_linear *project;            /* of a location: features to hidden */
    const att_nn_linear *bridge;             /* the mean of the grid to the first state */
    const att_nn_linear *query, *key, *gate; /* gate: or NULL */
    att_param *score;                        /* [1, hidden] */
    const att_nn_recurrent *decoder;
    const att_nn_linear *readout;
    att_nn_linear output; /* its weight is the table of words [vocabulary, embedding] */
    att_image_processor *processor;
    att_nn_params *params;
    att_safetensors *file;
} captioning_parts;

/* The captioner of a folder; model is the same, opened. Errors: another one than a GRU with additive attention to the
 * grid of convolutions, of one layer, or one that is too large to be shown. The caller frees *m in any case. */
att_status captioning_parts_open(att_ctx *ctx, const char *folder, const att_caption_model *model, captioning_parts *m);
void captioning_parts_free(captioning_parts *m);

/* Writes a [locations, width] to out, with left and right of the grid exchanged. */
void captioning_mirror(const captioning_parts *m, const float *a, int64_t width, float *out);

/* The values from which a caption of n words was written, row by row. */
typedef struct captioning_record {
    float *s;    /* the state before the word [n, hidden] */
    float *e;    /* scores [n, locations] */
    float *a;    /* weights [n, locations] */
    float *gate; /* [n]; 1 without one */
} captioning_record;
/* Computes them for the words ids [n] and the grid h [locations, hidden]; r's arrays are the caller's. */
att_status captioning_write(att_tape *t, const captioning_parts *m, const att_tensor *h, const int32_t *ids, int64_t n,
                            const captioning_record *r);

#endif
