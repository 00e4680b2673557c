/* The texts of a PNG file that may state its orientation, internal. */
#ifndef ATT_IMAGE_PNG_TEXT_H
#define ATT_IMAGE_PNG_TEXT_H

#include "image/image.h"

enum { ATT_PNG_TEXTS = 4 };

typedef struct att_png_text {
    att_byte_view data; /* in the file; empty: there is no such text */
    bool packed;        /* by zlib */
} att_png_text;

/* Remembers a chunk, whose name has 4 letters, if it is such a text. The last one of each kind counts. */
void att_png_text_add(att_png_text texts[ATT_PNG_TEXTS], const char *name, att_byte_view data);
/* Finds the orientation, 1 to 8, that the data of the chunk eXIf states (data NULL: there is no such chunk), or
 * otherwise the texts. Texts are unpacked one by one, each within 1 MiB. Error: memory. */
att_status att_png_orientation(att_ctx *ctx, att_byte_view exif, const att_png_text texts[ATT_PNG_TEXTS],
                               int *orientation);

#endif
