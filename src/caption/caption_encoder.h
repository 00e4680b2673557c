/* A vision Transformer whose features are the grids of a captioner; it is not trainable. */
#ifndef ATT_CAPTION_CAPTION_ENCODER_H
#define ATT_CAPTION_CAPTION_ENCODER_H

#include "io/progress.h"
#include "vision/image_input.h"

typedef struct att_caption_encoder {
    att_ctx *ctx;
    const att_image_model *model;
    att_image_processor_info input;
    att_vit_info info;
    int64_t grid[2];
} att_caption_encoder;
/* Opens the model of a folder. Error: its weights are not in one file, model.safetensors. */
att_status att_caption_encoder_open(att_ctx *ctx, const char *folder, att_compute compute, att_image_model **out);
/* Makes an encoder from a model, which must outlive it. */
att_status att_caption_encoder_of(att_ctx *ctx, const att_image_model *model, att_caption_encoder *out);
/* Copies the model from its folder to TO/encoder. */
att_status att_caption_encoder_copy(att_ctx *ctx, const char *folder, const char *to);
/* The files that att_caption_encoder_copy may write to TO, followed by NULL. */
extern const char *const att_caption_encoder_files[];

/* Computes all grids of n images into *out, f16 [n, locations, hidden], which the caller frees. *max_bytes: the limit
 * of memory for them, which is reduced by the memory used. progress: in images. Errors: they need more; features are
 * not finite. */
att_status att_caption_encoder_run(const att_caption_encoder *e, const att_image_source *from, int64_t n,
                                   int64_t *max_bytes, att_progress *progress, uint16_t **out);

#endif
