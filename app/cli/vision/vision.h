/* Vision models, opened by name, and the images that they see. */
#ifndef CLI_VISION_VISION_H
#define CLI_VISION_VISION_H

#include "cli/base/lines.h"
#include "cli/base/output.h"
#include "cli/model/model.h"

#include <attend_vision.h>

typedef struct cli_vision {
    cli_model base;
    const att_image_model *model;
    att_vit_info info;
} cli_vision;
extern const cli_model_kind cli_vision_kind;
/* att_image_classify; 0, or a code after a message, which names the model if it is the fault of that. */
int cli_vision_classify(const cli_vision *m, int64_t n, const att_image *images, const char *const *paths, float *out);

/* An image that has been read, or why that failed. */
typedef struct cli_image {
    att_image image;
    att_status status;
    char message[512];
} cli_image;
/* Returns how many images to read at once: some for each thread, so that a few large ones fit into memory. */
int64_t cli_images_at_once(const att_ctx *ctx);
/* Reads the images at paths [n] to images [n], each by one of the context's threads; free them. options or NULL. */
void cli_images_read(att_ctx *ctx, int64_t n, const char *const *paths, const att_image_options *options,
                     cli_image *images);
/* Reads images first .. first + n - 1 of a set in the same way. */
void cli_images_read_set(att_ctx *ctx, const att_image_set *set, int64_t first, int64_t n, cli_image *images);
/* 0, or a code after its message. */
int cli_image_code(const cli_image *image);
void cli_images_free(att_ctx *ctx, int64_t n, cli_image *images);

/* Images that are a command's arguments, block by block; those that cannot be read are reported and counted, the others
 * are worked on. *s stays where it is until it is closed. */
typedef struct cli_image_stream {
    att_image_options options;
    bool skip_broken;   /* of CLI_SKIP_BROKEN */
    const char *output; /* path of the output; NULL: standard output */
    int64_t room;       /* images of a block at most */
    /* The current block: those that could be read */
    int64_t count;
    att_image *image;  /* [room] */
    const char **path; /* [room]: as given */
    cli_output out;    /* open while they are worked on */
    /* private */
    att_ctx *ctx;
    cli_lines in;
    cli_image *read;      /* [room] */
    int64_t done, failed; /* so far */
} cli_image_stream;
/* Opens the images of arguments [n]; a folder stands for the images in it. With --shard only those of the shard. */
int cli_image_stream_open(cli_image_stream *s, int n, char *const *arguments);
/* Then they can be read. */
int cli_image_stream_start(cli_image_stream *s, att_ctx *ctx);
/* each: called for each block, and its output is flushed. drawn or NULL: a file that shows the first
 * image, which is reported where there are others. Returns 0, or a code after a message. */
int cli_image_stream_run(cli_image_stream *s, int (*each)(void *user), void *user, const char *drawn);
void cli_image_stream_close(cli_image_stream *s);

/* Sets options->background to color [3], which is that of a text, "#ff8000" or a name; NULL: none. */
int cli_read_background(const char *text, uint8_t color[3], att_image_options *options);
/* Sets the background of a set of images to that of a text; NULL: none. */
int cli_set_background(const char *text, att_image_set *set);

/* clang-format off */
#define CLI_BACKGROUND(to)                                                                   \
    {"background", 'b', "COLOR", .text = (to),                                              \
     .help = "color behind transparent pixels: #rrggbb, white, black or gray; default: transparency is dropped"}
#define CLI_SKIP_BROKEN(to)                                                                  \
    {"skip-broken", 0, NULL, .flag = (to),                                                   \
     .help = "leave out images that cannot be read, and report how many; without it they make the command fail"}
/* clang-format on */

#endif
