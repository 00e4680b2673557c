/* The captioner: an encoder makes a grid of vectors of an image, a decoder the words of a caption (Vinyals et al. 2015;
 * Xu et al. 2015). Internal. */
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
        *presence; /* features of a location to the decoder; of all locations to words, or NULL */
    att_recurrent_decoder recurrent;
    att_transformer_decoder transformer;
} att_captioner;

extern const att_model_kind att_captioner_kind;
/* Makes a new model for training, or the one of a folder for inference. Errors: as att_model_open. */
att_status att_captioner_make(att_ctx *ctx, att_settings *s, uint64_t seed, att_captioner **out);
att_status att_captioner_load(att_ctx *ctx, const char *folder, const att_model_options *options, att_captioner **out);
att_status att_captioner_load_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                           att_captioner **out);
/* Writes FOLDER/config.json and FOLDER/model.safetensors; creates the folder if necessary. dtype 0: f32 */
att_status att_captioner_save(const att_captioner *m, const char *folder, att_dtype dtype);

/* Computes the grids of images [n, height, width, channels] -> [n * locations, features], by the CNN. training: of
 * batch norms.
 */
att_var *att_captioner_encode(att_tape *t, const att_captioner *m, att_var *images, bool training);
/* Is each of the commonest words in a caption of the image? grids [n * locations, features] -> logits [n, presence] */
att_var *att_captioner_predict_words(att_tape *t, const att_captioner *m, att_var *grids, int64_t n);

/* Captions of n images in teacher forcing */
typedef struct att_caption_batch {
    int64_t images, captions;
    const int64_t *of_image;      /* [images + 1]: captions of each image */
    const int32_t *words;         /* [offsets[captions]], each caption ended by `end` */
    const int64_t *offsets;       /* [captions + 1] */
    float dropout;                /* of the grid, embeddings and the decoder; 0: none */
    uint64_t seed;                /* another one for each step */
    const uint32_t *sequence_ids; /* [captions]: identify captions in the masks of dropout; NULL without it */
    float label_smoothing;
    float doubly_stochastic; /* of additive attention: factor of the mean over captions of sum_i (1 - sum_t alpha_ti)^2,
                              * with the weight alpha_ti of location i for word t (Xu et al. 2015, equation 14); 0: none
                              */
    const float *lengths;    /* [captions]: words of each, for it; valid until backward has been */
} att_caption_batch;
/* Computes the input of the output layer: grids [images * locations, features] -> [words, any]; the attention of each
 * word, [words, locations], if weights is not NULL, of additive attention of a trainable model only. */
att_var *att_captioner_states(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b,
                              att_var **weights);
/* Applies the output layer: these -> logits of all words [words, vocabulary] */
att_var *att_captioner_output(att_tape *t, const att_captioner *m, att_var *x);
/* Both */
att_var *att_captioner_logits(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b);
/* Computes the mean cross entropy of all words but unknown ones, and what doubly_stochastic adds -> [1] */
att_var *att_captioner_loss(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b);

/* Begins to decode captions of n images from their grids [n * locations, features], which it copies. After an error
 * *out is {0}. */
att_status att_captioner_start(const att_captioner *m, const float *grids, int64_t n, att_generator *out);

#endif
