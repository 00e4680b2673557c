/* The captioner: an encoder makes a grid of vectors from an image, and a decoder makes the words of a caption from it
 * (Vinyals et al. 2015; Xu et al. 2015). Internal. */
#ifndef ATT_CAPTION_CAPTIONER_H
#define ATT_CAPTION_CAPTIONER_H

#include "caption/captioner_config.h"
#include "model/model.h"
#include "decoder/recurrent_decoder.h"
#include "decoder/transformer_decoder.h"

typedef struct att_captioner {
    att_model model;
    att_captioner_config config;
    att_image_cnn cnn;
    const att_nn_linear *project,
        *presence; /* from features of a location to the decoder; from features of all locations to words, or NULL */
    att_recurrent_decoder recurrent;
    att_transformer_decoder transformer;
} att_captioner;

extern const att_model_kind att_captioner_kind;
/* Makes a new model for training, or a folder's model for inference. Errors: those of att_model_open. */
att_status att_captioner_make(att_ctx *ctx, att_settings *s, uint64_t seed, att_captioner **out);
att_status att_captioner_load(att_ctx *ctx, const char *folder, const att_model_options *options, att_captioner **out);
att_status att_captioner_load_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                           att_captioner **out);
/* Writes FOLDER/config.json and FOLDER/model.safetensors; creates the folder if necessary. dtype 0: f32 */
att_status att_captioner_save(const att_captioner *m, const char *folder, att_dtype dtype);

/* Returns the grids [n * locations, features] of images [n, height, width, channels], computed by the CNN. training: of
 * batch norms.
 */
att_var *att_captioner_encode(att_tape *t, const att_captioner *m, att_var *images, bool training);
/* Predicts whether each of the most frequent words is in a caption of the image: returns logits [n, presence] of grids
 * [n * locations, features]. */
att_var *att_captioner_predict_words(att_tape *t, const att_captioner *m, att_var *grids, int64_t n);

/* Captions of n images, as the decoder's input (teacher forcing). */
typedef struct att_caption_batch {
    int64_t images, captions;
    const int64_t *of_image;      /* [images + 1]: captions of each image */
    const int32_t *words;         /* [offsets[captions]], each caption ended by `end` */
    const int64_t *offsets;       /* [captions + 1] */
    float dropout;                /* of the grid, embeddings and the decoder; 0: none */
    uint64_t seed;                /* a different one for each step */
    const uint32_t *sequence_ids; /* [captions]: identify captions in the masks of dropout; NULL without dropout */
    float label_smoothing;
    float doubly_stochastic; /* of additive attention: factor of the mean over captions of sum_i (1 - sum_t alpha_ti)^2,
                              * with the weight alpha_ti of location i for word t (Xu et al. 2015, equation 14); 0: none
                              */
    const float *lengths;    /* [captions]: words of each caption, for doubly_stochastic; valid until the backward pass
                              * is done */
} att_caption_batch;
/* Returns the input of the output layer, [words, any], of grids [images * locations, features]. If weights is not NULL,
 * sets it to the attention of each word, [words, locations]; only a trainable model with additive attention has it. */
att_var *att_captioner_states(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b,
                              att_var **weights);
/* Applies the output layer to x, the result of att_captioner_states. Returns the logits of all words, [words,
 * vocabulary]. */
att_var *att_captioner_output(att_tape *t, const att_captioner *m, att_var *x);
/* Calls att_captioner_states and att_captioner_output. */
att_var *att_captioner_logits(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b);
/* Returns the mean cross entropy of all words except unknown ones, plus the term of doubly_stochastic: [1]. */
att_var *att_captioner_loss(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b);

/* Begins to decode captions of n images from their grids [n * locations, features], which it copies. After an error
 * *out is {0}. */
att_status att_captioner_start(const att_captioner *m, const float *grids, int64_t n, att_generator *out);

#endif
