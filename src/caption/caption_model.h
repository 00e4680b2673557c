/* Captioners with their preprocessing and words, internal: caption_model.c, caption_score.c, caption_trace.c. */
#ifndef ATT_CAPTION_CAPTION_MODEL_H
#define ATT_CAPTION_CAPTION_MODEL_H

#include "attend_caption.h"
#include "caption/captioner.h"
#include "caption/words.h"
#include "vision/image_run.h"

struct att_caption_model {
    att_ctx *ctx;
    att_captioner *captioner;
    att_words words;
    att_image_model *encoder;             /* a vision Transformer, or NULL: the captioner's CNN */
    att_image_processor *own;             /* if there is no encoder */
    const att_image_processor *processor; /* the encoder's or own */
    att_image_processor_info input;       /* of the processor's results */
};

/* Returns an empty one, freed by att_caption_model_free; NULL: out of memory. */
att_caption_model *att_caption_model_alloc(att_ctx *ctx);
/* Returns the number of values of a grid. */
int64_t att_caption_grid_size(const att_caption_model *m);
/* Returns how the encoder is applied to images. */
att_image_run att_caption_grid_run(const att_caption_model *m);
/* Computes grids as att_caption_encode does, without checks. */
att_status att_caption_grids(const att_caption_model *m, int64_t n, const att_image *images, float *out);
/* Checks that m, and images [n] and out if n is not 0, are not NULL. function: "att_caption" */
att_status att_caption_check(const char *function, const att_caption_model *m, int64_t n, const void *images,
                             const void *out);

#endif
