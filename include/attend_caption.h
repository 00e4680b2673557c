/* attend_caption.h - captions of images, with attention, and training of captioners.
 *
 * Chapters: 1 Captioned images, 2 Captions, 3 Training.
 *
 * A model is a folder in the format in which it is published. attend_model.h has the rules for names, files and
 * threads, attend.h those for arguments that may be NULL. */
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
    const char *images; /* [call] folder of the images; or NULL: none, so files need not exist, and paths are their
                         * names */
    const char *list;   /* [call] file with the name of an image on each line, which selects images and their order; or
                         * NULL: all, in the order of their first captions */
    bool keep_text;     /* keep captions as typed, without spaces around them; false: normalize them */
    int64_t skip_bad_lines; /* leave out up to this many malformed lines, see att_caption_set_info.skipped; 0: none */
    const char *image_column, *caption_column; /* [call] columns of a table, by name in letters of either case, or by
                                                * number from 1, where two numbers mean that there is no header; or
                                                * NULL: the usual names */
    const uint8_t *background;                 /* [call] [3], of transparent pixels, as in att_image_options; or NULL */
} att_caption_set_options;

typedef struct att_caption_set_info {
    size_t size;
    const char *format; /* "Flickr8k.token", "tabs", "CSV", "COCO" */
    int64_t images, captions;
    int64_t max_captions; /* of an image */
    int64_t max_words;    /* of a caption, normalized */
    int64_t empty;        /* captions of the file that have no word and are left out */
    int64_t missing;      /* images that have captions, but do not exist in the folder, and are left out */
    int64_t uncaptioned;  /* images of the folder (att_image_has_name) without a caption */
    int64_t skipped;      /* malformed lines of the file that were left out */
    const char *bad;      /* the error sentence of the first of them; NULL: none. Valid as long as the set */
} att_caption_set_info;
/* Opens a set of captioned images. captions is a file (see att_open_text) in one of these formats, recognized by its
 * content:
 * - lines NAME#K, tab, caption (Flickr8k.token, results_20130124.token of Flickr30k);
 * - lines NAME, tab, caption;
 * - CSV, see att_table, or with tabs and quotes as text, whose header has the columns image (or image_name, file_name,
 *   filename) and caption (or comment), as Flickr8k on Kaggle, or the ones that options name;
 * - COCO's JSON, captions_*.json: "images" with "id" and "file_name", "annotations" with "image_id" and "caption".
 *
 * A normalized caption is its words with one space between them: Unicode letters, marks and digits, in lower case. All
 * other characters except white space are removed, even inside words ("t-shirt" becomes "tshirt"). The 6,000 training
 * images of Flickr8k then have 7,630 words: 3,486 occur three times or more, 2,537 five times or more. options or NULL:
 * defaults. Errors name file and line: another format; more than 1 GiB; a caption of more than 65,536 bytes, with a
 * zero byte or not in UTF-8; a name with a path separator, or "..", or of more than 255 bytes; in COCO, two images of
 * one name or id, or a caption without an image; in the list, an image twice, without a caption, or not in the folder;
 * no image is left. */
ATT_API att_status att_caption_set_open(att_ctx *ctx, const char *captions, const att_caption_set_options *options,
                                        att_caption_set **out);
/* Removes the images marked in `out` [images] and their captions; the others keep their order. No other thread may use
 * s meanwhile, and no training that reads from it may be open. Error: no image is left. */
ATT_API att_status att_caption_set_leave_out(att_caption_set *s, const bool *out);
ATT_API void att_caption_set_free(att_caption_set *s);
ATT_API att_status att_caption_set_describe(const att_caption_set *s, att_caption_set_info *info);
ATT_API const char *att_caption_set_path(const att_caption_set *s, int64_t i); /* path of image i; NULL: out of range */
/* Decodes image i. Many threads may call it at once. */
ATT_API att_status att_caption_set_read(const att_caption_set *s, int64_t i, att_image *out);
ATT_API int64_t att_caption_set_count(const att_caption_set *s, int64_t i); /* number of captions of image i; 0: out of
                                                                             * range */
/* Returns caption k of image i, in the order of the file; NULL: out of range. */
ATT_API const char *att_caption_set_caption(const att_caption_set *s, int64_t i, int64_t k);

/* ---- 2 Captions --------------------------------------------------------- */

/* A captioner with the preprocessing and the words of its folder. An encoder computes features at a grid of locations
 * of an image, and a decoder writes a caption word by word (Vinyals et al. 2015); with attention, each word has its own
 * mean over the locations (Xu et al. 2015). Read-only: many threads may use it at once. */
typedef struct att_caption_model att_caption_model;

typedef struct att_caption_model_info {
    size_t size;
    const char *encoder;        /* "cnn" or "vit" */
    const char *decoder;        /* "gru", "lstm", "transformer" */
    const char *attention;      /* to the locations: "none", "additive", "multi-head" */
    bool gate;                  /* of additive attention */
    int64_t image[2], channels; /* height, width of what the model sees */
    int64_t grid[2], features;  /* rows and columns of locations; features of a location */
    int64_t hidden, layers;     /* of the decoder */
    int64_t words;              /* size of the vocabulary, without <unk> and the end */
    int64_t max_words;          /* of a caption */
} att_caption_model_info;

/* Opens a model for inference. The folder has config.json ("attend-captioner"), model.safetensors and words.json, and
 * preprocessor_config.json or, with "encoder": "vit", a folder encoder/ with a vision Transformer, whose patches after
 * the last norm are the locations. options or NULL: defaults; they apply to the encoder, too. Error: quantized weights
 * of a decoder other than "transformer". */
ATT_API att_status att_caption_model_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                          att_caption_model **out);
/* Opens a model for training (att_caption_training_new). An encoder that is a vision Transformer is not trained.
 * options or NULL: defaults. */
ATT_API att_status att_caption_model_open_for_training(att_ctx *ctx, const char *folder,
                                                       const att_trainable_options *options, att_caption_model **out);
/* Returns the model's parameters: see attend_model.h. */
ATT_API const att_nn_params *att_caption_model_params(const att_caption_model *m);
/* Returns the encoder if it is a vision Transformer, valid as long as m; otherwise NULL. */
ATT_API const att_image_model *att_caption_model_encoder(const att_caption_model *m);
ATT_API void att_caption_model_free(att_caption_model *m);
ATT_API att_status att_caption_model_describe(const att_caption_model *m, att_caption_model_info *info);
/* Counts the weights of the model, including those of an encoder that is a vision Transformer. */
ATT_API att_status att_caption_model_weights(const att_caption_model *m, att_model_weights *weights);
ATT_API const char *att_caption_model_word(const att_caption_model *m, int64_t i); /* NULL: out of range */

typedef struct att_image_caption {
    char *text;   /* words with one space between them, zero-terminated; NULL: no caption was found */
    int32_t *ids; /* [count]: of the words */
    int64_t count;
    /* log probability / (count + 1) ^ length_penalty, including the end. If max_words truncated the caption, it is
     * without the end, / count ^ length_penalty. NAN if options.no_scores */
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
/* Writes captions of images [n] of any sizes -> out [n][n_best], best first; free each with att_image_caption_free. An
 * image has the same bits whatever else is in the call. A caption has one word or more, and never <unk>. options or
 * NULL: defaults. After an error no element of out needs to be freed. */
ATT_API att_status att_caption(const att_caption_model *m, int64_t n, const att_image *images,
                               const att_caption_options *options, att_image_caption *out);
ATT_API void att_image_caption_free(att_ctx *ctx, att_image_caption *c);

/* Computes the log probability of each caption given each image: images [n], captions [n_captions] -> out [n,
 * n_captions], the sum over words and the end. Captions may be as typed. The sum leaves out words that the model does
 * not know, and the end and everything after max_words words. Each image is encoded once, so searching images by a
 * text, or texts by an image, takes time proportional to n * n_captions. options or NULL: defaults; progress counts
 * images. */
ATT_API att_status att_caption_score(const att_caption_model *m, int64_t n, const att_image *images, int64_t n_captions,
                                     const char *const *captions, const att_call_options *options, double *out);

/* Encodes images [n] -> out [n, locations, features]: grid[0] * grid[1] locations row by row, see
 * att_caption_model_info. An image has the same bits whatever else is in the call. options or NULL: defaults. */
ATT_API att_status att_caption_encode(const att_caption_model *m, int64_t n, const att_image *images,
                                      const att_call_options *options, float *out);

/* Traces one pass of the decoder (attend_trace.h) for an image and words [n] of a caption, at most max_words, such as
 * those of att_caption. Source tokens are the locations, by rows, after the tokens that a vision Transformer has before
 * its patches (info.prefix). The decoder does not see those, so key k of cross-attention is source token prefix + k.
 * Row t of the decoder's side and of cross-attention, and target_ids[t], belong to the step that predicts word t. Key t
 * of the decoder's self-attention is the word before word t; key 0 is the end. If the encoder is a vision Transformer,
 * its attention is traced; a CNN has none. A recurrent decoder has the weights of additive attention before each word,
 * one layer of one head, and no hidden states. options or NULL: defaults. Errors: a model without attention; a word
 * that is out of range; those of the options; out of memory. */
ATT_API att_status att_caption_trace(const att_caption_model *m, const att_image *image, const int32_t *words,
                                     int64_t n, const att_trace_options *options, att_trace **out);

/* ---- 3 Training --------------------------------------------------------- */

/* Training of a captioner (Vinyals et al. 2015; Xu et al. 2015): it minimizes the mean cross entropy per word, without
 * <unk>, with AdamW. An image is encoded once for all its captions. A separate thread decodes images and augments them
 * at random, one step ahead. In the first presence_epochs epochs the loss is the binary cross entropy of word
 * prediction, and a target is whether a word is in an image's captions. The learning rate warms up a second time when
 * captions begin to be trained. Weight decay applies to matrices, but not to embeddings. */
typedef struct att_caption_training_options {
    size_t size;
    const att_caption_set *captions; /* [object] normalized, with the files of their images */
    const att_caption_set *valid;    /* [object] captions for att_training_validate, as `captions`; or NULL */
    int64_t batch;                   /* images; 0: 32 */
    int64_t captions_per_image;      /* number of captions of an image in a step, drawn at random; 0: all */
    float label_smoothing, dropout;  /* both in [0, 1) */
    float doubly_stochastic;  /* factor of the mean over captions of sum_i (1 - sum_t alpha_ti)^2, with the attention
                               * alpha_ti of word t to location i (Xu et al. 2015, equation 14); 0: none */
    int64_t crop;             /* zeros by which each side is padded before a random crop: shifts images */
    bool flip;                /* mirror half of the images, left to right */
    int64_t presence_epochs;  /* number of pre-training epochs: only the CNN is trained, to predict which of the most
                                 frequent content words occur in the image's captions */
    float presence_weight;    /* factor of the loss of word prediction, per word, in the other epochs; 0: none */
    int64_t encoder_memory;   /* maximum bytes for the features of an encoder that is a vision Transformer; 0: 4 GiB.
                               * Features of all images are computed once and kept in memory as f16, so crop and flip
                               * must be 0 */
    att_progress_fn progress; /* [call] progress of computing these features; or NULL */
    void *user;               /* [call] */
    /* The following fields are for att_caption_training_open only. */
    const char *settings;         /* [call] settings of a new model, in the format of its config.json, a JSON text.
                                   * Words and "max_positions" follow from the captions, and settings of the encoder
                                   * from `encoder`; "presence" is the number of words of word prediction, which becomes
                                   * less if there are fewer */
    int64_t min_count, max_words; /* vocabulary of the model: words that occur min_count times or more in the captions,
                                   * 0: 5; of these the max_words most frequent, 0: all */
    const char *encoder;          /* [call] folder of a vision Transformer, which is not trained and is copied to
                                   * encoder/ in the training's folder; NULL: a new CNN */
} att_caption_training_options;
/* Makes a training in memory. The model, which was opened for training, must outlive it and keeps its words,
 * preprocessing and encoder. Errors: a caption that is longer than the model allows; features that need more memory
 * than allowed. */
ATT_API att_status att_caption_training_new(att_caption_model *m, const att_training_options *common,
                                            const att_caption_training_options *options, att_training **out);
/* Makes or resumes a training in a folder, which becomes that of a captioner: config.json, model.safetensors,
 * words.json, and preprocessor_config.json or encoder/. Images are resized (bilinear) to the network's size, whatever
 * their aspect ratio is, with mean and deviation 0.5. Errors: those of att_caption_training_new; no word is frequent
 * enough; an invalid setting of the model. */
ATT_API att_status att_caption_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                             const att_caption_training_options *options, att_training **out);
ATT_API const att_caption_model *att_training_captioner(const att_training *t); /* NULL for other trainings */
/* Computes losses of the current weights on options.valid. words or NULL: receives the mean loss per word, without
 * label smoothing, as att_training_validate. presence or NULL: receives the mean loss of word prediction, per word.
 * Error: presence is not NULL, but the model has no word prediction. */
ATT_API att_status att_training_caption_losses(att_training *t, double *words, double *presence);
/* Computes CIDEr-D (see att_cider) of greedy captions of options.valid, or of its first max_images. */
ATT_API att_status att_training_caption_cider(att_training *t, int64_t max_images, double *cider);
/* Returns the number of first steps that train only word prediction: those of options.presence_epochs, or fewer. */
ATT_API int64_t att_training_caption_word_prediction_steps(const att_training *t);
/* Begins to train captions with the next step, even if options.presence_epochs are not over, for example because the
 * time is short. Checkpoints record this. */
ATT_API att_status att_training_caption_train_words(att_training *t);
/* Returns the seconds that all steps of this process have waited for images. */
ATT_API double att_training_caption_seconds_waiting(const att_training *t);

#ifdef __cplusplus
}
#endif
#endif
