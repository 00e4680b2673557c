/* Preprocessing of images, internal. Public: att_image_processor_*. */
#ifndef ATT_IMAGE_PROCESSOR_H
#define ATT_IMAGE_PROCESSOR_H

#include "image/image.h"

typedef struct att_image_size {
    int64_t height, width;
    int64_t shortest; /* size of the shorter side, if the image's proportions are kept; 0: height and width are set */
} att_image_size;

typedef struct att_image_processor_config {
    att_image_processor_info info;
    double rescale;        /* info.rescale as it is in the file */
    bool resized, cropped; /* in this order */
    att_image_size size;   /* if resized */
    bool rounds_offset;    /* of a crop, to even, as torchvision does; otherwise it is the floor */
} att_image_processor_config;

/* Reads processor_config.json or preprocessor_config.json, otherwise "pretrained_cfg" of config.json. */
att_status att_image_processor_config_read(att_ctx *ctx, const char *folder, att_image_processor_config *out);

/* Writes FOLDER/preprocessor_config.json for a class that does the same: ViTImageProcessor; DeiTImageProcessor if there
 * is a crop; BitImageProcessor if the shorter side is resized. None of them has rounds_offset. Settings are written as
 * the shortest decimal numbers, such as 0.1307, not as the nearest float. */
att_status att_image_processor_write(att_ctx *ctx, const char *folder, const att_image_processor_config *config);

/* Makes a processor of these settings. */
att_status att_image_processor_make(att_ctx *ctx, const att_image_processor_config *config, att_image_processor **out);
/* Normalizes a result of att_image_processor_crop, and writes it to out [height, width, channels]. */
void att_image_processor_normalize(const att_image_processor *p, const att_image *seen, float *out);

#endif
