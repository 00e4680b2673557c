/* attend_vision.h - images, vision Transformers, and their training.
 *
 * Chapters: 1 Images, 2 Preprocessing, 3 Vision Transformers, 4 Models with preprocessing, 5 Labeled images, 6
 * Training, 7 Probes.
 *
 * A model is a folder in the format in which it is published. attend_model.h has the rules for names, files and
 * threads, attend.h those for arguments that may be NULL. */
#ifndef ATTEND_VISION_H
#define ATTEND_VISION_H

#include "attend_probe.h"
#include "attend_trace.h"
#include "attend_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Images ----------------------------------------------------------- */

/* An image with pixels of 8 bits: gray (1 channel) or red, green, blue (3). */
typedef struct att_image {
    int64_t height, width, channels;
    uint8_t *pixels; /* [height, width, channels] */
} att_image;
ATT_API void att_image_free(att_ctx *ctx, att_image *image);

typedef struct att_image_options {
    size_t size;
    const uint8_t *background; /* [call] [3], red, green, blue: background of transparent pixels; or NULL: alpha is
                                * dropped, as Pillow's convert("RGB") does */
    bool ignore_orientation;   /* leave pixels as they are stored; false: rotate and flip them as EXIF states (in a
                                * number of any type), or else XMP, as Pillow does */
    int64_t max_pixels;        /* larger images are refused before memory is allocated; 0: 2^27. Besides its file, an
                                * image needs at most the memory of twice this many pixels, of 3 bytes, and 1 MiB */
} att_image_options;
/* Decodes a JPEG, PNG or (if the library was built with libwebp, libtiff or libheif) WebP, TIFF or HEIC file in memory,
 * data [bytes], to 3 channels. Gray images get three equal channels, samples of 16 bits are reduced to their upper 8,
 * palettes and CMYK become colors without a color profile, as by Pillow's convert("RGB"). Of an animation the first
 * frame is decoded, of a TIFF file the first page, with a note (att_config) if there are more. label: its path in
 * messages. options or NULL: defaults. Errors: another format (GIF, AVIF, ... are named); TIFF files of real numbers,
 * of raw photos and of other rare kinds, which are named; damaged or truncated data (a PNG file may lack what follows
 * its pixels); too many pixels or progressive scans; more memory at once than max_pixels allows, because of very wide
 * rows or many coefficients; out of memory. */
ATT_API att_status att_image_decode(att_ctx *ctx, const char *label, const void *data, size_t bytes,
                                    const att_image_options *options, att_image *out);
/* Decodes an image file as att_image_decode does; path "-": standard input. options or NULL: defaults. Errors: those of
 * att_image_decode; not a file; larger than 1 GiB. */
ATT_API att_status att_image_open(att_ctx *ctx, const char *path, const att_image_options *options, att_image *out);
/* Returns whether the name of a file ends like that of an image: .jpg, .jpeg, .png, .webp, .tif, .tiff, or if HEIC is
 * read .heic or .heif, in letters of either case. False for "-". */
ATT_API bool att_image_has_name(const char *path);

/* The image files of a folder and of all folders in it. */
typedef struct att_image_files att_image_files;
/* Lists them in the byte order of names. Image files are those of att_image_has_name, and others that begin as JPEG,
 * PNG or WebP files do, such as a JPEG file named .HEIC, but no backups (names that end in _original, .bak or ~).
 * Hidden files and folders are left out. Links to folders are followed; a folder to which several lead counts once.
 * Errors: not a folder; a link to a folder above it; more than 32 folders in one another. */
ATT_API att_status att_image_files_open(att_ctx *ctx, const char *path, att_image_files **out);
ATT_API void att_image_files_free(att_image_files *f);
ATT_API int64_t att_image_files_count(const att_image_files *f);
ATT_API const char *att_image_files_path(const att_image_files *f, int64_t i); /* NULL: out of range */
/* Returns which other files there are, by kind: "6 .heic, 2 .txt, 1 other"; "": none. Valid as long as f. */
ATT_API const char *att_image_files_passed_over(const att_image_files *f);

typedef enum att_image_filter {
    ATT_IMAGE_FILTER_NEAREST = 0,
    ATT_IMAGE_FILTER_BILINEAR,
    ATT_IMAGE_FILTER_BICUBIC, /* Keys 1981, a = -0.5 */
    ATT_IMAGE_FILTER_LANCZOS  /* three lobes */
} att_image_filter;
/* Resamples to [height, width], with the pixels of Pillow's resize. If an axis becomes smaller, its filter becomes
 * wider by the same factor (antialiasing). It resamples horizontally, rounds to 8 bits, and then resamples vertically,
 * or in the reverse order if Pillow 13 does so. Besides the images it needs some MB of memory. Error: a pixel of the
 * result would be a sum of more than 2^24 pixels. */
ATT_API att_status att_image_resize(att_ctx *ctx, const att_image *image, int64_t height, int64_t width,
                                    att_image_filter filter, att_image *out);
/* Converts an image to 1 channel (ITU-R 601-2 luma, as Pillow's convert("L")) or to 3. */
ATT_API att_status att_image_convert(att_ctx *ctx, const att_image *image, int64_t channels, att_image *out);

typedef struct att_image_bytes {
    uint8_t *data; /* [bytes] */
    size_t bytes;
} att_image_bytes;
/* Encodes an image as a PNG file; free it with att_image_bytes_free. */
ATT_API att_status att_image_encode_png(att_ctx *ctx, const att_image *image, att_image_bytes *out);
ATT_API void att_image_bytes_free(att_ctx *ctx, att_image_bytes *b);

/* ---- 2 Preprocessing ---------------------------------------------------- */

/* How images become a model's input: resized, cropped, scaled, normalized, as preprocessor_config.json of a Hugging
 * Face folder or "pretrained_cfg" in config.json of a timm folder states. */
typedef struct att_image_processor att_image_processor;

typedef struct att_image_processor_info {
    size_t size;
    int64_t height, width, channels; /* of the result */
    att_image_filter filter;
    float mean[3], deviation[3]; /* the result is (x * rescale - mean) / deviation, where x * rescale is computed in
                                  * f64 and rounded to f32, and the rest in f32 */
    float rescale;               /* 1 / 255, rounded */
} att_image_processor_info;
/* Opens the preprocessing of a folder. Results have the bits of the Pillow back end of `transformers`, or of timm's
 * transform for evaluation. Missing settings have the defaults of the class that the file names: ViTImageProcessor,
 * DeiTImageProcessor or BitImageProcessor. Errors: no such file; a class or setting that is not supported. */
ATT_API att_status att_image_processor_open(att_ctx *ctx, const char *folder, att_image_processor **out);
ATT_API void att_image_processor_free(att_image_processor *p);
ATT_API att_status att_image_processor_describe(const att_image_processor *p, att_image_processor_info *info);
/* Resizes and crops an image to what the model sees, with the processor's number of channels. */
ATT_API att_status att_image_processor_crop(const att_image_processor *p, const att_image *image, att_image *out);
/* Applies all steps: image -> out [height, width, channels]. */
ATT_API att_status att_image_processor_apply(const att_image_processor *p, const att_image *image, float *out);

/* ---- 3 Vision Transformers ---------------------------------------------- */

/* The vision Transformer (Dosovitskiy et al. 2021): patches of an image are tokens, after a [CLS] token (Hugging Face:
 * ViTForImageClassification, ViTModel; timm: vit_*, deit_*). Variants: distilled, with a second token and a second head
 * (DeiT: Touvron et al. 2021); DINOv2 (Oquab et al. 2023), also with registers (Darcet et al. 2023); with a
 * convolutional stem instead of the patch matrix, which the paper calls hybrid. */
typedef struct att_vit att_vit;

typedef enum att_vit_pooling {
    ATT_VIT_POOLING_CLS = 0,        /* the [CLS] token */
    ATT_VIT_POOLING_MEAN,           /* the mean of all patches */
    ATT_VIT_POOLING_CLS_AND_MEAN,   /* both, concatenated (DINOv2 with a classifier; without one it is
                                     * ATT_VIT_POOLING_CLS) */
    ATT_VIT_POOLING_CLS_AND_DISTILL /* two heads, whose logits are averaged (DeiT) */
} att_vit_pooling;

typedef struct att_vit_info {
    size_t size;
    const char
        *type; /* "vit", "timm", "deit", "dinov2", "dinov2_with_registers", "attend-vit": valid as long as the model */
    int64_t hidden, layers, heads, intermediate, channels;
    int64_t image[2]; /* height, width of the training; if the positions are resampled (DINOv2), other sizes are
                       * accepted, too */
    int64_t patch[2]; /* pixels of the image per row and column of the grid of tokens */
    int64_t prefix;   /* tokens before the patches: [CLS], distillation token, registers */
    int64_t classes;  /* 0: no classifier */
    att_vit_pooling pooling;
    bool multi_label; /* each class has its own probability, sigmoid(logit), so an image may have several classes or
                       * none. True with a single class or "problem_type" multi_label_classification; false:
                       * softmax(logits) */
} att_vit_info;

/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_vit_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_vit **out);
/* att_vit_open_for_training opens a model for training: its weights are f32 copies, except frozen ones. options or
 * NULL: defaults. att_vit_new makes a model with randomly initialized weights from settings as in config.json, a JSON
 * text: {"model_type": "vit", "image_size": 28, ...}. "attend-vit" has two more settings. "stem" replaces "patch_size":
 * the channels of 3 x 3 convolutions, each followed by ReLU and max-pooling to half the size (Hassani et al. 2021); the
 * last number must be "hidden_size". "pooling" is "cls" or "mean", which has no [CLS] token. */
ATT_API att_status att_vit_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                             att_vit **out);
ATT_API att_status att_vit_new(att_ctx *ctx, const char *settings, uint64_t seed, att_vit **out);
ATT_API void att_vit_free(att_vit *m);
ATT_API att_status att_vit_describe(const att_vit *m, att_vit_info *info);
ATT_API att_status att_vit_weights(const att_vit *m, att_model_weights *weights);
/* Returns the model's parameters: see attend_model.h. */
ATT_API const att_nn_params *att_vit_params(const att_vit *m);
/* Writes a model that was opened for training: config.json and model.safetensors. The format is that of the class
 * ViTForImageClassification, for DINOv2 that of its own class, and with a convolutional stem or mean pooling
 * "attend-vit", for which `transformers` has no class. labels [classes] or NULL: names of the classes. The folder is
 * created if it does not exist. dtype is that of the weights; 0: f32. Errors: what none of these formats has (DeiT's
 * second token, SwiGLU, some models of timm). */
ATT_API att_status att_vit_write(const att_vit *m, const char *folder, const char *const *labels, att_dtype dtype);

typedef struct att_vit_options {
    size_t size;
    float dropout;                /* in training: of embeddings and each sublayer's result */
    uint64_t seed;                /* a different one for each step */
    const uint32_t *sequence_ids; /* [call] [images], if dropout > 0: identify the images in the masks */
} att_vit_options;
/* Computes hidden states of all tokens after the last norm (or before it, if it follows pooling as in some models of
 * timm): images [n, height, width, channels], normalized -> [n * tokens, hidden], where tokens = prefix + (height /
 * patch[0]) * (width / patch[1]), prefix tokens first, patches by rows. options or NULL: no dropout. Returns NULL on
 * error, like all operations. Error: a size other than info.image if positions are not resampled. */
ATT_API att_var *att_vit_apply(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options);
/* Computes the input of the classifier: images as in att_vit_apply -> [n, hidden], or with ATT_VIT_POOLING_CLS_AND_MEAN
 * [n, 2 hidden]. With ATT_VIT_POOLING_CLS_AND_DISTILL it is the [CLS] token. options or NULL: no dropout. */
ATT_API att_var *att_vit_features(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options);
/* Computes logits: images as in att_vit_apply -> [n, classes]. options or NULL: no dropout. Error: no classifier. */
ATT_API att_var *att_vit_logits(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options);

/* ---- 4 Models with preprocessing ---------------------------------------- */

/* A vision Transformer with the preprocessing and the names of classes of its folder. Read-only: many threads may use
 * it at once. */
typedef struct att_image_model att_image_model;
/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_image_model_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                        att_image_model **out);
ATT_API void att_image_model_free(att_image_model *m);
ATT_API att_status att_image_model_weights(const att_image_model *m, att_model_weights *weights);
ATT_API const att_vit *att_image_model_vit(const att_image_model *m);
/* Returns the parameters of its vision Transformer: see attend_model.h. */
ATT_API const att_nn_params *att_image_model_params(const att_image_model *m);
ATT_API const att_image_processor *att_image_model_processor(const att_image_model *m);
ATT_API int64_t att_image_model_dim(const att_image_model *m); /* numbers of an embedding; m NULL: 0 */
/* Returns the classifier of att_image_probe_train that the folder has in probe.json. It counts instead of a classifier
 * of the vision Transformer. NULL: the folder has none. */
ATT_API const att_probe *att_image_model_probe(const att_image_model *m);
ATT_API int64_t att_image_model_classes(const att_image_model *m); /* 0: no classifier; m NULL: 0 */
/* Returns the name of class i, or its number, such as "7", if it has none. NULL: out of range. */
ATT_API const char *att_image_model_label(const att_image_model *m, int64_t i);
/* Computes the probabilities of the classes: images [n] of any sizes -> out [n, classes]. An image has the same bits
 * whatever else is in the call, and its probabilities sum to 1, unless att_vit_info.multi_label is true. options or
 * NULL: defaults. Errors: no classifier; probabilities that are not finite. */
ATT_API att_status att_image_classify(const att_image_model *m, int64_t n, const att_image *images,
                                      const att_call_options *options, float *out);
/* Computes embeddings, which are the results of att_vit_features: images [n] -> out [n, dim], not normalized. options
 * or NULL: defaults. Error: an embedding is not finite. */
ATT_API att_status att_image_embed(const att_image_model *m, int64_t n, const att_image *images,
                                   const att_call_options *options, float *out);

/* Traces one pass of the model (attend_trace.h) for an image. The tokens are those before the patches, beginning with
 * [CLS] if there is one, and then the patches, by rows. The output is one row of logits, or without a classifier the
 * result of att_image_embed. options or NULL: defaults. Errors: those of preprocessing and of the options; out of
 * memory. */
ATT_API att_status att_image_trace(const att_image_model *m, const att_image *image, const att_trace_options *options,
                                   att_trace **out);

/* ---- 5 Labeled images -------------------------------------------------- */

/* A set of images with classes. */
typedef struct att_image_set att_image_set;

typedef enum att_image_split { ATT_IMAGE_SPLIT_TRAIN = 0, ATT_IMAGE_SPLIT_TEST } att_image_split;

typedef struct att_image_set_info {
    size_t size;
    const char *format; /* "folders", "idx", "cifar-10" */
    int64_t images, classes;
    int64_t height, width, channels; /* of each image; 0 for folders, whose images may have any sizes */
    int64_t ignored;                 /* files of folders that are not images */
    const char *passed_over;         /* these by kind: "6 .heic, 2 .txt"; "": none. Valid as long as the set */
} att_image_set_info;
/* Opens a set of images. path is one of
 *   a folder with a folder for each class, which has its images, as att_image_files_open lists them; or
 *     with folders train and test (or val, valid, validation), which have these; without train it is to test with only;
 *   a folder with IDX files named as MNIST's and Fashion-MNIST's are: train-images-idx3-ubyte, train-labels-idx1-ubyte,
 *     t10k-..., also packed by gzip (.gz);
 *   a folder with CIFAR-10's binary batches: data_batch_1.bin to data_batch_5.bin, test_batch.bin, batches.meta.txt.
 * split: which part is opened. A folder of classes without parts has all its images in either split. labels [n_labels]
 * or NULL: the names of a model's classes, in its order; a folder of another name is then an error. Errors name the
 * file and what was expected. Files are checked when they are opened, images of folders when they are read. */
ATT_API att_status att_image_set_open(att_ctx *ctx, const char *path, att_image_split split, const char *const *labels,
                                      int64_t n_labels, att_image_set **out);
/* Puts the images into groups that att_image_set_hold_out does not divide, such as those of one animal. pattern is
 * "folder": images in one folder belong together; or a regular expression of Perl (PCRE2) on an image's path from the
 * folder of its class on ("toad/2021/toad_A014_0056.jpg"): images with the same match, or the same match of its first
 * parenthesis, belong together, in all classes. An image that does not match is alone. *alone or NULL: the number of
 * these. Errors: images that are not in folders; not a regular expression; it matches no image. */
ATT_API att_status att_image_set_group(att_image_set *s, const char *pattern, int64_t *alone);
ATT_API const char *att_image_set_group_of(const att_image_set *s,
                                           int64_t i); /* name of the group of image i; NULL: out
                                                        * of range, or there are no groups */
/* Moves a share, in (0, 1), of each class's images, chosen at random by a seed, to a new set, for validation. If a
 * class has two images or more, each set gets at least one; a single image stays. Of a set with groups, whole groups
 * are moved, and each class keeps an image; then shares are only about as wanted. Both sets keep the order of images.
 * No other thread may use s meanwhile. Errors: no class has two images; a training that reads from s is open. */
ATT_API att_status att_image_set_hold_out(att_image_set *s, double share, uint64_t seed, att_image_set **out);
/* Removes the images marked in `out` [images], for example those that cannot be decoded. The others keep their order,
 * and all classes stay. No other thread may use s meanwhile. Errors: no image is left; a training that reads from s is
 * open. */
ATT_API att_status att_image_set_leave_out(att_image_set *s, const bool *out);
ATT_API void att_image_set_free(att_image_set *s);
ATT_API att_status att_image_set_describe(const att_image_set *s, att_image_set_info *info);
ATT_API const char *att_image_set_label(const att_image_set *s, int64_t i); /* name of class i; NULL: out of range */
ATT_API int32_t att_image_set_class(const att_image_set *s, int64_t i);     /* class of image i; -1: out of range */
ATT_API const char *att_image_set_path(const att_image_set *s, int64_t i);  /* path of image i if the set has folders;
                                                                             * otherwise NULL */
/* Sets the background of transparent pixels for all later calls, before a training begins. background [3] or NULL:
 * none, as in att_image_options. */
ATT_API att_status att_image_set_background(att_image_set *s, const uint8_t *background);
/* Decodes image i. Many threads may call it at once. */
ATT_API att_status att_image_set_read(const att_image_set *s, int64_t i, att_image *out);

/* ---- 6 Training --------------------------------------------------------- */

/* Training of a classifier from labeled images: it minimizes the mean cross entropy with AdamW. A separate thread
 * decodes images and augments them at random, one step ahead. Weight decay applies to matrices, but not to tokens and
 * positions. */
typedef struct att_image_training_options {
    size_t size;
    const att_image_set *images;    /* [object] of two classes or more; must not change */
    int64_t batch;                  /* images; 0: 128 */
    float label_smoothing, dropout; /* both in [0, 1) */
    int64_t crop;                   /* zeros by which each side is padded before a random crop: shifts images */
    bool flip;                      /* mirror half of the images, left to right */
    double mixup;   /* alpha of the beta distribution of mixup (Zhang et al. 2018), 0.001 or more; each batch draws one
                     * share; 0: none */
    int64_t cutout; /* side in pixels of a square that is erased (DeVries, Taylor 2017); 0: none */
    /* The following fields are for att_image_training_open only. */
    const char *settings; /* [call] settings of a new model, as in att_vit_new; "num_labels", "image_size" and
                           * "num_channels" may be left out if the set determines them; NULL: `model` is used */
    const char *model; /* [call] the folder of a pre-trained model, or NULL. Its classifier stays, in the order of the
                        * set's classes, if it has the same names (LABEL_7 is "7"); otherwise a new one is made */
    /* This is for both functions. */
    bool balance; /* for unequal classes: an epoch has as many images as the set, but equally many of each class. Images
                   * of small classes occur several times, each time augmented in another way, and those of large ones
                   * take turns over epochs. It is the oversampling that Buda et al. (2018) found best */
} att_image_training_options;
/* att_image_training_new trains a model in memory, which was opened for training and must outlive the training. Images
 * are resized to its size (bilinear), with mean and deviation 0.5, whatever it was trained with before.
 * att_image_training_open trains in a folder, which becomes a model folder with config.json, model.safetensors and
 * preprocessor_config.json. Preprocessing is that of options.model, or otherwise the same as in memory, and the folder
 * describes the preprocessing of the training. Only a crop that timm begins at half a pixel begins at the pixel before,
 * as in `transformers`. */
ATT_API att_status att_image_training_new(att_vit *m, const att_training_options *common,
                                          const att_image_training_options *options, att_training **out);
ATT_API att_status att_image_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                           const att_image_training_options *options, att_training **out);
ATT_API const att_vit *att_training_vit(const att_training *t); /* NULL for other trainings */
/* Returns the seconds that all steps of this process have waited for images. */
ATT_API double att_training_image_seconds_waiting(const att_training *t);
/* Evaluates the current weights on another set: *correct receives the number of images whose most probable class is the
 * correct one. confusion [classes, classes] or NULL: receives counts of (class, answer). */
ATT_API att_status att_training_image_correct(att_training *t, const att_image_set *images, int64_t *correct,
                                              int64_t *confusion);

/* ---- 7 Probes ----------------------------------------------------------- */

/* Training of a classifier on the embeddings of a model that stays as it is: see attend_probe.h. */
typedef struct att_image_probe_options {
    size_t size;
    const att_image_set *images;    /* [call] of two classes or more, each with an image */
    const att_image_set *valid;     /* [call] of the same classes, for validation; or NULL */
    bool refit;                     /* finally train on both, with the c that validation chose */
    const att_probe_options *probe; /* [call] or NULL: defaults */
    att_dtype dtype;                /* of the weights that are written; 0: f32 */
    att_progress_fn progress;       /* [call] called as images are embedded; or NULL */
    void *user;                     /* [call] */
} att_image_probe_options;
/* Embeds all images by the model in the folder `model`, each once and without augmentation, trains a probe, and writes
 * `folder`, which must be new or empty; it appears when complete. att_image_model_open opens it. A linear probe of a
 * model that att_vit_write can write becomes the model's classifier, as in `transformers`: of DINOv2 it is on [CLS] and
 * the mean of the patches. Other folders have a copy of the model's files, and probe.json and probe.safetensors.
 * *result or NULL: its size is to be set. Errors: those of opening the model, of reading images and of att_probe_fit;
 * the folder is not empty. */
ATT_API att_status att_image_probe_train(att_ctx *ctx, const char *model, const char *folder,
                                         const att_image_probe_options *options, att_probe_result *result);

#ifdef __cplusplus
}
#endif
#endif
