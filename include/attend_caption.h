/* attend_caption.h - captions of images, with attention, and training of captioners.
 *
 * Chapters: 1 Captioned images, 2 Captions, 3 Training.
 *
 * A model is a folder in the format in which it is published, as in attend_model.h, whose rules for names, files and
 * threads hold here, too. Arguments that may be NULL are marked as in attend.h. */
#ifndef ATTEND_CAPTION_H
#define ATTEND_CAPTION_H

#include "attend_vision.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Captioned images ------------------------------------------------- */

/* A set of images with one or more captions each. Read-only: many threads may use it at once. */
typedef struct att_caption_set att_caption_set;

typedef struct att_caption_set_options {
    size_t size;
    const char *images; /* [call] folder of the images, or NULL: none, so files need not exist; paths are their names */
    const char *list; /* [call] file with the name of an image on each line: these images, in this order; or NULL: all,
                       * in the order of their first captions */
    bool keep_text;   /* captions as typed, without spaces around; false: normalized */
    int64_t skip_bad_lines; /* leave out up to as many malformed lines, see att_caption_set_info.skipped; 0: none */
} att_caption_set_options;

typedef struct att_caption_set_info {
    size_t size;
    const char *format; /* "Flickr8k.token", "tabs", "CSV", "COCO" */
    int64_t images, captions;
    int64_t max_captions; /* of an image */
    int64_t max_words;    /* of a caption, normalized */
    int64_t empty;        /* captions of the file without a word, which are left out */
    int64_t missing;      /* images that have captions, but do not exist in the folder, and are left out */
    int64_t uncaptioned;  /* images of the folder (att_image_has_name) without a caption */
    int64_t skipped;      /* malformed lines of the file that were left out */
    const char *bad;      /* the sentence on the first of them; NULL: none. Valid as long as the set */
} att_caption_set_info;
/* captions: a file, see att_open_text, in one of these formats, found by its content:
 * - lines NAME#K, tab, caption (Flickr8k.token, results_20130124.token of Flickr30k);
 * - lines NAME, tab, caption;
 * - CSV, see att_table, or with tabs and quotes as text, whose header has the columns image (or image_name, file_name,
 *   filename) and caption (or comment), as Flickr8k on Kaggle;
 * - COCO's JSON, captions_*.json: "images" with "id" and "file_name", "annotations" with "image_id" and "caption".
 *
 * Normalized, a caption is its words with one space between them: letters, marks and digits of Unicode, in lower case;
 * all other characters but white space are dropped, also within words ("t-shirt" is "tshirt"). On the 6,000 images to
 * train with, that makes the 7,630 words of Flickr8k, 3,486 of them three times or more, 2,537 five times. options or
 * NULL: defaults. Errors name file and line: another format; more than 1 GiB; a caption of more than 65,536 bytes, with
 * a zero byte or not in UTF-8; a name with a path separator, or "..", or of more than 255 bytes; of COCO, two images of
 * one name or id, and a caption of none; in the list, an image twice, without a caption, or not in the folder; nothing
 * left. */
ATT_API att_status att_caption_set_open(att_ctx *ctx, const char *captions, const att_caption_set_options *options,
                                        att_caption_set **out);
/* Leaves out the images marked in `out` [images], with their captions; the others keep their order. No other thread may
 * be using s, and no training that reads from it be open. Error: no image is left. */
ATT_API att_status att_caption_set_leave_out(att_caption_set *s, const bool *out);
ATT_API void att_caption_set_free(att_caption_set *s);
ATT_API att_status att_caption_set_describe(const att_caption_set *s, att_caption_set_info *info);
ATT_API const char *att_caption_set_path(const att_caption_set *s, int64_t i); /* of image i; NULL: out of range */
ATT_API int64_t att_caption_set_count(const att_caption_set *s, int64_t i); /* captions of image i; 0: out of range */
/* Caption k of image i, in the order of the file; NULL: out of range. */
ATT_API const char *att_caption_set_caption(const att_caption_set *s, int64_t i, int64_t k);

/* ---- 2 Captions --------------------------------------------------------- */

/* A captioner with its preprocessing and its words, of one folder: an encoder makes a grid of locations of an image, a
 * decoder writes a caption word by word (Vinyals et al. 2015), with attention each word from a mean of the locations of
 * its own (Xu et al. 2015). Read-only: many threads may use it at once. */
typedef struct att_caption_model att_caption_model;

typedef struct att_caption_model_info {
    size_t size;
    const char *encoder;        /* "cnn", or "vit" */
    const char *decoder;        /* "gru", "lstm", "transformer" */
    const char *attention;      /* to the locations: "none", "additive", "multi-head" */
    bool gate;                  /* of additive attention */
    int64_t image[2], channels; /* height, width of what the model sees */
    int64_t grid[2], features;  /* rows and columns of locations; numbers of a location */
    int64_t hidden, layers;     /* of the decoder */
    int64_t words;              /* that it knows, <unk> and the end not counted */
    int64_t max_words;          /* of a caption */
} att_caption_model_info;

/* The folder has config.json ("attend-captioner"), model.safetensors and words.json; preprocessor_config.json or, with
 * "encoder": "vit", a folder encoder/ with a vision Transformer, whose patches after the last norm are the locations.
 * options or NULL: defaults; they are for the encoder, too. Error: quantized weights of a decoder other than
 * "transformer". */
ATT_API att_status att_caption_model_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                          att_caption_model **out);
/* The same for training (att_caption_training_new); an encoder that is a vision Transformer stays as it is.
 * options or NULL: defaults */
ATT_API att_status att_caption_model_open_for_training(att_ctx *ctx, const char *folder,
                                                       const att_trainable_options *options, att_caption_model **out);
/* Its parameters: see attend_model.h. */
ATT_API const att_nn_params *att_caption_model_params(const att_caption_model *m);
/* The encoder where that is a vision Transformer, as long as m exists; NULL: it is not. */
ATT_API const att_image_model *att_caption_model_encoder(const att_caption_model *m);
ATT_API void att_caption_model_free(att_caption_model *m);
ATT_API att_status att_caption_model_describe(const att_caption_model *m, att_caption_model_info *info);
/* Those of an encoder that is a vision Transformer are counted, too. */
ATT_API att_status att_caption_model_weights(const att_caption_model *m, att_model_weights *weights);
ATT_API const char *att_caption_model_word(const att_caption_model *m, int64_t i); /* NULL: out of range */

typedef struct att_image_caption {
    char *text;   /* words with one space between them, zero-terminated; NULL: none was found */
    int32_t *ids; /* [count]: of the words */
    int64_t count;
    /* log probability / (count + 1) ^ length_penalty, with its end; of a caption that max_words has cut, without the
     * end, / count ^ length_penalty; NAN if options.no_scores */
    float score;
    void *reserved[2];
    int64_t reserved_number[2];
} att_image_caption;

typedef struct att_caption_options {
    size_t size;
    int64_t beam;                /* beam size, at most 1,024; 0: 5; 1: greedy search */
    int64_t n_best;              /* captions of each image, at most `beam`; 0: 1 */
    int64_t max_words;           /* 0: the model's */
    const float *length_penalty; /* [call] or NULL: 1. Larger values prefer longer captions */
    bool no_scores;              /* faster with beam 1 */
    att_progress_fn progress;    /* [call] in images; or NULL */
    void *user;                  /* [call] */
} att_caption_options;
/* Captions of images [n] of any sizes -> out [n][n_best], best first, with the same bits whatever else is in the call;
 * free each with att_image_caption_free. A caption has one word or more, and never <unk>. options or NULL: defaults.
 * After an error no element of out needs to be freed. */
ATT_API att_status att_caption(const att_caption_model *m, int64_t n, const att_image *images,
                               const att_caption_options *options, att_image_caption *out);
ATT_API void att_image_caption_free(att_ctx *ctx, att_image_caption *c);

/* The log probability of each caption, given each image: images [n], captions [n_captions] -> out [n, n_captions], the
 * sum over words and the end. Captions may be as typed. Of words that the model does not know it cannot tell the
 * probability: they are left out of the sum, and of a caption of max_words words or more the end and all after them. An
 * image is encoded once, so that images can be searched by a text, or texts by an image, in time n times n_captions.
 * options or NULL: defaults; progress is in images. */
ATT_API att_status att_caption_score(const att_caption_model *m, int64_t n, const att_image *images, int64_t n_captions,
                                     const char *const *captions, const att_call_options *options, double *out);

/* What the encoder makes of images [n]: out [n, locations, features], grid[0] * grid[1] locations row by row, as
 * att_caption_model_info has them, with the same bits whatever else is in the call. options or NULL: defaults. */
ATT_API att_status att_caption_encode(const att_caption_model *m, int64_t n, const att_image *images,
                                      const att_call_options *options, float *out);

/* A trace (attend_trace.h) of an image and of words [n] of a caption, at most max_words, such as those of att_caption,
 * in one pass of the decoder. Its source tokens are the locations, by rows, after what a vision Transformer has before
 * them (info.prefix), which the decoder does not get: key k of cross-attention is source token prefix + k. Row t of the
 * decoder's side and of cross-attention, and target_ids[t], is the step that predicts word t; key t of the decoder's
 * own attention is the word before, at first the end. An encoder that is a vision Transformer has its own attention,
 * one of convolutions has none; a recurrent decoder has the weights of additive attention before each word, of one
 * layer and head, and no hidden states. options or NULL: defaults. Errors: a model without attention; a word that is
 * out of range; those of the options; memory. */
ATT_API att_status att_caption_trace(const att_caption_model *m, const att_image *image, const int32_t *words,
                                     int64_t n, const att_trace_options *options, att_trace **out);

/* ---- 3 Training --------------------------------------------------------- */

/* Training of a captioner (Vinyals et al. 2015; Xu et al. 2015): minimizes the mean cross entropy per word with AdamW,
 * <unk> left out. A picture is encoded once for all its captions. Images are decoded and changed at random by a thread
 * of their own, one step ahead. In the first epochs, if presence_epochs is not 0, the loss is the binary cross entropy
 * of the presence of a word, and a target is such a word in an image. The schedule of the learning rate warms up again
 * where words begin to be trained. Weight decay is of matrices, but not of embeddings. */
typedef struct att_caption_training_options {
    size_t size;
    const att_caption_set *captions; /* [object] normalized, with the files of their images */
    const att_caption_set *valid;    /* [object] likewise, for att_training_validate; or NULL */
    int64_t batch;                   /* images; 0: 32 */
    int64_t captions_per_image;      /* in a step, at random; 0: all */
    float label_smoothing, dropout;  /* both in [0, 1) */
    float doubly_stochastic;  /* factor of the mean over captions of sum_i (1 - sum_t alpha_ti)^2, with the attention
                               * alpha_ti of word t to location i (Xu et al. 2015, equation 14); 0: none */
    int64_t crop;             /* zeros by which each side is padded before a random crop: shifts images */
    bool flip;                /* left and right, for half of the images */
    int64_t presence_epochs;  /* number of pre-training epochs: only the CNN is trained, to predict which of the most
                                 frequent content words occur in the image's captions */
    float presence_weight;    /* factor of that loss, per word, in the other epochs; 0: none */
    int64_t encoder_memory;   /* bytes for the features of an encoder that is a vision Transformer: those of all images
                               * are computed once and kept in memory as f16, so crop and flip must be 0; 0: 4 GiB */
    att_progress_fn progress; /* [call] of computing those features; or NULL */
    void *user;               /* [call] */
    /* The following fields are for att_caption_training_open only. */
    const char *settings;         /* [call] of a new model, in the format of its config.json, a JSON text. Words and
                                   * "max_positions" follow from the captions, what describes the encoder from
                                   * `encoder`; "presence" is the number of words of word prediction, or less where
                                   * there are no more */
    int64_t min_count, max_words; /* words of the model: those min_count times or more in the captions, 0: 5; of them
                                   * the max_words commonest, 0: all */
    const char *encoder;          /* [call] folder of a vision Transformer, which stays as it is; NULL: a new network of
                                   * convolutions. The training's folder gets a copy, encoder/ */
} att_caption_training_options;
/* In memory: the model, which was opened for training, must outlive the training; its words, preprocessing and encoder
 * stay. Errors: a caption that is longer than the model's; features that need more memory than allowed. */
ATT_API att_status att_caption_training_new(att_caption_model *m, const att_training_options *common,
                                            const att_caption_training_options *options, att_training **out);
/* In a folder, which becomes that of a captioner: config.json, model.safetensors, words.json, and
 * preprocessor_config.json or encoder/. Images are resized to the network's size, whatever their aspect is, bilinear,
 * and mean and deviation are 0.5. Errors: the same; no word is frequent enough; what a model's settings may have. */
ATT_API att_status att_caption_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                             const att_caption_training_options *options, att_training **out);
ATT_API const att_caption_model *att_training_captioner(const att_training *t); /* NULL for other trainings */
/* Of the current weights on options.valid. words or NULL: the mean loss per word, without label smoothing, as
 * att_training_validate. presence or NULL: that of word prediction, per word. Error: the model predicts no words. */
ATT_API att_status att_training_caption_losses(att_training *t, double *words, double *presence);
/* CIDEr-D (see att_cider) of greedy captions of options.valid, or of its first max_images. */
ATT_API att_status att_training_caption_cider(att_training *t, int64_t max_images, double *cider);
/* The number of the first steps that train word prediction alone: those of options.presence_epochs, or fewer. */
ATT_API int64_t att_training_caption_word_prediction_steps(const att_training *t);
/* From the next step on captions are trained, too, even if options.presence_epochs are not over, as where the time of a
 * training is short. Checkpoints have it. */
ATT_API att_status att_training_caption_train_words(att_training *t);
/* As att_training_image_seconds_waiting */
ATT_API double att_training_caption_seconds_waiting(const att_training *t);

#ifdef __cplusplus
}
#endif
#endif
