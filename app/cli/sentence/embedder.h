/* Models that embed the items of a command: sentences, or paths of images. */
#ifndef CLI_SENTENCE_EMBEDDER_H
#define CLI_SENTENCE_EMBEDDER_H

#include "cli/base/lines.h"
#include "cli/vision/vision.h"
#include "sentence.h"

typedef struct cli_embedder {
    att_ctx *ctx;
    const char *name; /* as the user wrote it; its folder, if it was not given */
    int64_t dim;
    bool images;               /* the items are paths of images */
    const char *lines;         /* the name of lines and arguments in messages: "lines", "images" */
    const char *key;           /* of an item in JSON: "text", "image" */
    att_similarity similarity; /* the model's measure */
    int64_t block;             /* items to embed at once: enough for all threads, few enough to hold and to report */
    int64_t dims;              /* to which embeddings are truncated: dim; 0: they are not */
    const char *prompt;        /* text before each text; or NULL: the model's default prompt */
    int64_t *tokens;           /* [block] or NULL: receives the number of tokens of each text that is embedded */
    bool *truncated;           /* [block] or NULL: receives which of them were truncated */
    bool *unknown;             /* [block] or NULL: receives which of them have a part that the model does not know */
    att_image_options image_options; /* how images are decoded */
    uint8_t background[3];
    /* private: one of them is open */
    cli_sentence text;
    cli_vision vision;
} cli_embedder;

/* Opens a model. name NULL: the only sentence model. *e must not move until it is
 * closed. */
int cli_embedder_open(cli_embedder *e, const char *name, cli_types types, int64_t threads);
void cli_embedder_close(cli_embedder *e);

/* Sets the text before each text, as cli_sentence_prompt finds it. Images have none. */
int cli_embedder_prompt(cli_embedder *e, const char *option, const char *given, const char *usual);
/* Truncates embeddings to their first `dims` numbers; 0: does not. */
int cli_embedder_truncate(cli_embedder *e, int64_t dims);

/* Sets the background of transparent images to the one that --background names; NULL: none. */
int cli_embedder_background(cli_embedder *e, const char *given);

/* A command's arguments [n] as items. Of a vision model a folder stands for the images in it. */
int cli_embedder_arguments(const cli_embedder *e, cli_lines *l, int n, char *const *arguments);

/* Items [n] with lengths bytes [n] -> vectors [n, dim]; those of images have length 1. Adds the number of truncated
 * sentences to *truncated. failed: receives which images could not be read, after a message for each, and vectors that
 * are zero; NULL: the first one is an error. Error: a vector that is not finite, whose item is named, with its number
 * if `before` items of the input came before these; -1: without. */
int cli_embedder_encode(const cli_embedder *e, int64_t n, const char *const *items, const size_t *bytes, float *vectors,
                        int64_t *truncated, bool *failed, int64_t before);
/* Computes the similarities of vectors a [n, dim] and b [m, dim] by the model's measure: out [n, m]. */
int cli_embedder_compare(const cli_embedder *e, const float *a, int64_t n, const float *b, int64_t m, float *out);
/* Reports a model's measure if it is not the cosine. */
void cli_embedder_note_measure(const cli_embedder *e);
/* Reports how many of n items were truncated, if any. */
void cli_embedder_note(const cli_embedder *e, int64_t truncated, int64_t n, const char *items);

/* clang-format off */
#define CLI_DIMS(to)                                                                         \
    {"dims", 0, "N", .integer = (to), .min = 1, .max = 1 << 20, .quiet = true,               \
     .help = "truncate vectors to their first N numbers, and normalize them if the model's are; default: all"}
/* clang-format on */

#endif
