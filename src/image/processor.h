/* Preprocessing of images, internal. Public: att_image_processor_*. */
#ifndef ATT_IMAGE_PROCESSOR_H
#define ATT_IMAGE_PROCESSOR_H

#include "image/image.h"

typedef struct att_image_size {
    int64_t height, width;
    int64_t shortest; /* or of the shorter side, with the image's proportions; 0: height and width */
} att_image_size;

typedef struct att_image_processor_config {
    att_image_processor_info info;
    double rescale;        /* info.rescale, as the file has it */
    bool resized, cropped; /* in this order */
    att_image_size size;   /* if resized */
    bool rounds_offset;    /* of a crop, to even, as torchvision does; otherwise it is the floor */
} att_image_processor_config;

/* Reads processor_config.json or preprocessor_config.json, else "pretrained_cfg" of config.json. */
att_status att_image_processor_config_read(att_ctx *ctx, const char *folder, att_image_processor_config *out);

/* Writes FOLDER/preprocessor_config.json, for a class that does the same: ViTImageProcessor, with a crop
 * DeiTImageProcessor, or BitImageProcessor after a resize of the shorter side. None of them has rounds_offset. The
 * settings have the decimal numbers that were meant: 0.1307, not the nearest float. */
att_status att_image_processor_write(att_ctx *ctx, const char *folder, const att_image_processor_config *config);

/* Makes a processor of these settings. */
att_status att_image_processor_make(att_ctx *ctx, const att_image_processor_config *config, att_image_processor **out);
/* Normalizes a result of att_image_processor_crop -> out [height, width, channels]. */
void att_image_processor_normalize(const att_image_processor *p, const att_image *seen, float *out);

#endif
