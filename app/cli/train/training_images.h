/* The files of a training's images: all are decoded before it begins, and are the same when it continues. */
#ifndef CLI_TRAIN_TRAINING_IMAGES_H
#define CLI_TRAIN_TRAINING_IMAGES_H

#include <attend.h>

#include <stdbool.h>
#include <stdint.h>

/* The known properties of a file. FOLDER/images.tsv has a line for each. */
typedef struct cli_image_file {
    uint64_t checksum;              /* of the content */
    int64_t bytes, changed, status; /* size; times of the last change of content and of status, in nanoseconds */
    bool broken;                    /* it cannot be decoded */
    char *name;                     /* the last part of its path, with bytes that end a field as %09 */
    char *path;                     /* where it is; NULL: it is from a list */
    uint64_t pixels;                /* checksum of the image, if it was decoded */
} cli_image_file;

typedef struct cli_training_images {
    att_ctx *ctx;
    const char *folder; /* of the training */
    bool resume;
    bool skip_broken; /* of CLI_SKIP_BROKEN */
    /* private */
    cli_image_file *file; /* [n]: those that were checked so far */
    int64_t n;
    cli_image_file *known; /* [n_known]: those of the training that continues */
    int64_t n_known;
} cli_training_images;

/* Checks images [n], all of a set, by their paths, with all threads: decodes them, and leaves those that fail out of
 * the set. If the training continues, leaves out its broken images, and checks that the content of others is unchanged
 * since its start; files with unchanged size and times are not read. Errors, each after a list of the images: broken
 * images, without skip_broken; changed images. */
int cli_training_images_check(cli_training_images *t, int64_t n, const char *(*path)(const void *set, int64_t i),
                              att_status (*leave_out)(void *set, const bool *broken), void *set);
/* Writes FOLDER/images.tsv, if a training begins with images in files. *made: it did not exist. */
int cli_training_images_write(const cli_training_images *t, bool *made);
/* Removes it again. */
void cli_training_images_discard(const cli_training_images *t);
void cli_training_images_free(cli_training_images *t);

#endif
