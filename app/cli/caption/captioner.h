/* Captioners, opened by name. */
#ifndef CLI_CAPTION_CAPTIONER_H
#define CLI_CAPTION_CAPTIONER_H

#include "cli/vision/vision.h"

#include <attend_caption.h>

typedef struct cli_captioner {
    cli_model base;
    const att_caption_model *model;
    att_caption_model_info info;
    att_image_options image_options; /* how a command decodes images; size 0: by the defaults */
    uint8_t background[3];
} cli_captioner;
extern const cli_model_kind cli_captioner_kind;
/* att_caption; 0, or a code after a message, which names the model if it is the fault of that. */
int cli_captioner_caption(const cli_captioner *m, int64_t n, const att_image *images,
                          const att_caption_options *options, att_image_caption *out);

/* The options of commands for the search of captions. */
typedef struct cli_caption_search {
    int64_t beam, max_words;
    double length_penalty;
    float penalty; /* the same */
} cli_caption_search;
/* Checks the options against the model. *s must not move while the options are used. */
int cli_caption_search_options(cli_caption_search *s, const cli_captioner *m, int64_t n_best, att_caption_options *o);

/* Options of commands that read captions of images. */
typedef struct cli_captions {
    const char *data, *images; /* --data, --images */
    const char *image_column, *caption_column, *background;
    int64_t skip_bad_lines;
} cli_captions;
/* Opens the set of the images that a list names; list NULL: all. Messages name the options of columns. */
int cli_captions_open(const cli_captions *c, att_ctx *ctx, const char *list, att_caption_set **out);

/* clang-format off */
/* c: a cli_captions */
#define CLI_CAPTIONS(c)                                                                      \
    {"data", 'd', "FILE", .text = &(c).data, .required = true,                               \
     .help = "captions of images: Flickr8k.token.txt, lines of name and caption with a tab between them, a table (CSV, " \
             "semicolons or tabs) whose header has columns image and caption, or COCO's JSON; names are of files in " \
             "--images or in its folders"},                                                  \
    {"images", 'i', "FOLDER", .text = &(c).images, .required = true,                         \
     .help = "folder of the images: JPEG, PNG, WebP or TIFF; in it and in its folders"},     \
    {"image-column", 0, "NAME", .text = &(c).image_column,                                   \
     .help = "column of a table that has the names of images; of a table without a header its number, from 1"}, \
    {"caption-column", 0, "NAME", .text = &(c).caption_column,                               \
     .help = "column of a table that has the captions, or its number"}
/* An option for the model. `to` is initialized with CLI_CAPTIONER_SHIPPED. */
#define CLI_CAPTIONER_OPTION(to)                                                             \
    {"model", 'm', "MODEL", .text = (to),                                                    \
     .help = "model folder, or name of a captioner in the models folder or of the one that \"./dev install --all\" installs"}
/* The initial values of a search whose options are not given */
#define CLI_CAPTION_SEARCH_DEFAULTS .beam = 5, .length_penalty = 1
#define CLI_CAPTION_SEARCH(s)                                                                \
    {"beam", 0, "N", .integer = &(s).beam, .min = 1, .max = 1024, .help = "beam size; 1: greedy search"},  \
    {"max-words", 0, "N", .integer = &(s).max_words, .min = 1, .max = 1 << 20, .quiet = true, \
     .help = "maximum number of words of a caption; default: the model's"},                  \
    {"length-penalty", 0, "X", .number = &(s).length_penalty, .min = -100, .max = 100,       \
     .help = "score = log probability / (words and the end) ^ X; larger values prefer longer captions"}
/* clang-format on */

#endif
