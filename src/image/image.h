/* Images, internal. Each format is a file that defines one att_image_decoder; image.c has the list of them. */
#ifndef ATT_IMAGE_IMAGE_H
#define ATT_IMAGE_IMAGE_H

#include "attend_util.h"
#include "attend_vision.h"
#include "io/bytes.h"

/* ---- formats */

typedef struct att_image_file {
    att_ctx *ctx;
    const char *label;   /* its path in messages */
    const uint8_t *data; /* [bytes] */
    size_t bytes;
    att_image_options options; /* max_pixels is not 0 */
} att_image_file;

/* Decodes a file to 3 channels, in the order in which its pixels are stored. Sets *orientation, which is 1 before, to
 * the orientation that its EXIF data or XMP states. */
typedef att_status (*att_image_decoder)(const att_image_file *f, att_image *out, int *orientation);
att_status att_jpeg_decode(const att_image_file *f, att_image *out, int *orientation);
att_status att_png_decode(const att_image_file *f, att_image *out, int *orientation);
att_status att_webp_decode(const att_image_file *f, att_image *out, int *orientation);
att_status att_heif_decode(const att_image_file *f, att_image *out, int *orientation);
att_status att_tiff_decode(const att_image_file *f, att_image *out, int *orientation);

/* Returns whether the first bytes of a file are those of a JPEG, PNG or WebP file. TIFF and HEIC files are known by
 * their names alone: photos as cameras record them, .nef or .dng, begin as TIFF, too, but have only a small preview
 * there. */
enum { ATT_IMAGE_MAGIC = 12 };
bool att_image_begins_as_one(const uint8_t *data, size_t bytes);

/* Allocates the pixels of a file. A decoder calls it when it knows the header, before it allocates anything else of
 * that size. besides: bytes that decoding needs temporarily. Errors: more pixels than options.max_pixels, and those of
 * att_image_file_check.
 */
att_status att_image_file_alloc(const att_image_file *f, int64_t height, int64_t width, int64_t channels,
                                int64_t besides, att_image *out);
/* Returns an error if the pixels of `image` and these bytes are more than the limit: twice the pixels of max_pixels,
 * and 1 MiB. */
att_status att_image_file_check(const att_image_file *f, const att_image *image, int64_t besides);
/* Fails with "PATH: the FORMAT file is truncated". */
att_status att_image_truncated(const att_image_file *f, const char *format);

/* Returns the orientation in EXIF data, which is a TIFF file: 1 to 8; 1 for any other value; 0 if there is none, or no
 * data. */
int att_exif_orientation(att_byte_view exif);
/* Returns the orientation in an XMP packet: tiff:Orientation, as an attribute or an element. */
int att_xmp_orientation(att_byte_view xmp);
/* Returns the orientation that EXIF data states, otherwise the one that XMP states, as Pillow does: 1 to 8; 1 if
 * neither has any. */
int att_image_orientation(att_byte_view exif, att_byte_view xmp);

/* ---- pixels */

/* Allocates an image, whose pixels are undefined. After an error *out is empty. */
att_status att_image_alloc(att_ctx *ctx, int64_t height, int64_t width, int64_t channels, att_image *out);
/* Checks that it is an image with 1 or 3 channels. The error names the function. */
att_status att_image_check(att_ctx *ctx, const char *function, const att_image *image);
/* Converts a color of inks, cyan, magenta, yellow and black (0: none), to red, green and blue as Pillow does. */
void att_cmyk_to_rgb(const uint8_t cmyk[4], uint8_t rgb[3]);
/* Converts 4 channels to 3 in the same memory: blends red, green and blue with background [3] by alpha. */
void att_image_composite(att_image *image, const uint8_t *background);
/* Transposes and flips an image by its orientation, 1 to 8 (EXIF 2.32, tag 274). */
att_status att_image_orient(att_ctx *ctx, att_image *image, int orientation);

#endif
