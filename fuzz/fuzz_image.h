/* Shared by the fuzz targets of images: the input is a file. What is accepted must have all its pixels, within the
 * limits. */
#ifndef FUZZ_IMAGE_H
#define FUZZ_IMAGE_H

#include "fuzz.h"

#include "attend_vision.h"

enum { FUZZ_MAX_PIXELS = 1 << 18 };

/* Checks that the image fits its header. Reads all of it, so that a sanitizer detects memory that is too small. */
static inline void fuzz_check_image(const att_image *image)
{
    fuzz_check(image->height > 0 && image->width > 0 && image->channels == 3, "an image of no pixels");
    fuzz_check(image->height <= FUZZ_MAX_PIXELS / image->width, "more pixels than max_pixels");
    unsigned sum = 0;
    for (int64_t i = 0; i < image->height * image->width * 3; i++)
        sum += image->pixels[i];
    static volatile unsigned used; /* otherwise nothing need be read */
    used = sum;
    (void)used;
}

/* A PNG file of the image has the same pixels. */
static inline void fuzz_write_and_read(const att_image *image)
{
    att_image_bytes png;
    att_image again;
    fuzz_check(!att_image_encode_png(fuzz_context(), image, &png), "not written");
    fuzz_check(!att_image_decode(fuzz_context(), "written", png.data, png.bytes, NULL, &again), "written, not read");
    const size_t bytes = (size_t)(image->height * image->width * 3);
    fuzz_check(again.height == image->height && again.width == image->width &&
                   !memcmp(again.pixels, image->pixels, bytes),
               "read again, it is another image");
    att_image_free(fuzz_context(), &again);
    att_image_bytes_free(fuzz_context(), &png);
}

static inline int fuzz_decode(const unsigned char *data, size_t size, const uint8_t *background)
{
    att_image image, small;
    const att_image_options options = {.size = sizeof options, .background = background, .max_pixels = FUZZ_MAX_PIXELS};
    unsigned char *bytes = malloc(size + !size); /* its end is known to a sanitizer */
    if (!bytes)
        abort();
    if (size > 0)
        memcpy(bytes, data, size);
    if (att_image_decode(fuzz_context(), "input", bytes, size, &options, &image))
        fuzz_check(!image.pixels, "refused, but with an image");
    else {
        fuzz_check_image(&image);
        if (!att_image_resize(fuzz_context(), &image, 8, 9, ATT_IMAGE_FILTER_BICUBIC, &small)) {
            fuzz_check_image(&small);
            fuzz_write_and_read(&small);
        }
        att_image_free(fuzz_context(), &small);
    }
    att_image_free(fuzz_context(), &image);
    free(bytes);
    return 0;
}

/* Twice: without alpha, and over a background. */
static inline int fuzz_image(const unsigned char *data, size_t size)
{
    static const uint8_t background[] = {200, 30, 90};
    fuzz_decode(data, size, NULL);
    return fuzz_decode(data, size, background);
}

#endif
