/* Sets of labeled images: declarations that the formats share. */
#ifndef ATT_VISION_IMAGE_SET_H
#define ATT_VISION_IMAGE_SET_H

#include "image/image_files.h"
#include "io/string_list.h"
#include "io/file.h"

#include "attend_vision.h"

#include <stdatomic.h>

/* A format of image sets. */
typedef struct att_image_format {
    const char *name;
    bool (*found)(const char *folder);
    /* Adds images, their classes, and the names of the classes if the format has any. */
    att_status (*open)(att_image_set *s, const char *folder, att_image_split split);
} att_image_format;
extern const att_image_format att_format_idx, att_format_cifar10, att_format_folders;

struct att_image_set {
    att_ctx *ctx;
    att_image_set_info info;
    att_names labels;                        /* of classes */
    att_names paths;                         /* of images; empty: they are in memory */
    att_names groups;                        /* [images]: of images, if they have any */
    size_t above_classes;                    /* bytes of paths before the folder of the class */
    uint8_t *pixels;                         /* [images, height, width, channels]; or NULL */
    int32_t *classes;                        /* [images] */
    char passed_over[ATT_PASSED_OVER_BYTES]; /* info.passed_over */
    uint8_t background[3];                   /* of transparent pixels, */
    bool has_background;                     /* if there is one */
    atomic_int trainings;                    /* the number of open trainings that read from it */
};
/* Counts a training that begins (+1) or ends (-1) to read from s, which is constant for its caller. */
static inline void att_image_set_count_training(const att_image_set *s, int change)
{
    atomic_fetch_add(&((att_image_set *)(uintptr_t)s)->trainings, change);
}

/* Sets *n to the number of images that are not left out: out [images] is true for those that are. Fails if all are left
 * out. */
att_status att_count_left(att_ctx *ctx, const bool *out, int64_t images, int64_t *n);

/* An open file with data, plain or compressed by gzip. */
typedef struct att_data_file {
    att_ctx *ctx;
    char path[ATT_MAX_PATH];
    int file;      /* -1: none */
    int64_t bytes; /* uncompressed */
} att_data_file;
/* Opens FOLDER/NAME; folder NULL: the path `name`. */
att_status att_data_file_open(att_data_file *f, att_ctx *ctx, const char *folder, const char *name);
/* Reads the next n bytes. */
att_status att_data_file_read(att_data_file *f, void *data, size_t n);
void att_data_file_close(att_data_file *f);

/* Returns whether FOLDER/NAME exists and is not a folder. */
bool att_has_file(const char *folder, const char *name);

#endif
