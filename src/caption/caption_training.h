/* Declarations that caption_training.c and caption_training_model.c share. */
#ifndef ATT_CAPTION_CAPTION_TRAINING_H
#define ATT_CAPTION_CAPTION_TRAINING_H

#include "caption/caption_batches.h"
#include "caption/caption_images.h"
#include "caption/caption_model.h"
#include "train/training.h"

typedef struct att_caption_training {
    att_training_base base;
    att_caption_model *model;
    att_caption_training_options options;
    att_caption_set_info set, valid_set; /* of options.captions and .valid */
    att_caption_batches *captions, *valid;
    att_caption_images images;
    att_image_order order;
    int64_t word_prediction_steps; /* the number of the first steps, which train only word prediction */
    uint64_t start;                /* a checksum of the settings; the initial weights follow from them and the seed */
} att_caption_training;

/* Configures a training. `configure` of the kind. */
att_status att_caption_training_configure(void *self);
/* Makes the model, unless it is the caller's, with the words of the captions; then makes the input or the encoder of
 * images. */
att_status att_caption_training_model(att_caption_training *t);
/* Returns the number of the first steps that train only word prediction. A checkpoint may state any number. */
int64_t att_caption_word_prediction_steps(const att_caption_training *t);

#endif
