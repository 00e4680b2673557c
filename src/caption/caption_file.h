/* Files of captions, in any format. */
#ifndef ATT_CAPTION_CAPTION_FILE_H
#define ATT_CAPTION_CAPTION_FILE_H

#include "io/json_scan.h"
#include "text/ids.h"
#include "attend_caption.h"

/* The contents of a file, in its order. */
typedef struct att_caption_file {
    att_ctx *ctx;
    const char *format;
    att_ids images;     /* names */
    att_names captions; /* as in the file, without spaces around */
    int32_t *image;     /* [captions.n]: the image of each caption */
    size_t room;        /* of image */
    int64_t skipped;    /* malformed lines */
    att_names bad;      /* the message about the first of them, or none */
} att_caption_file;

/* Reads a file, with these options for malformed lines and columns. Errors: those of att_caption_set_open.
 * (caption_file_read.c) */
att_status att_caption_file_read(att_caption_file *f, att_ctx *ctx, const char *path,
                                 const att_caption_set_options *options);
void att_caption_file_free(att_caption_file *f);

/* ---- for the formats */

/* Adds an image, if it is new. Sets *image to its number. */
att_status att_caption_file_add_image(att_caption_file *f, const att_where *where, att_byte_view name, int32_t *image);
att_status att_caption_file_add(att_caption_file *f, const att_where *where, int32_t image, att_byte_view caption);
/* Reads COCO's JSON text. (caption_json.c) */
att_status att_caption_file_read_coco(att_caption_file *f, const char *path, att_json_scan text);

/* Returns the text without spaces and tabs around. */
att_byte_view att_trim(att_byte_view text);

#endif
