/* Golden images: files in tests/golden/images, and what Pillow makes of them (tests/golden/make_images.py). */
#ifndef IMAGE_HELP_H
#define IMAGE_HELP_H

#include "golden_text.h"

#include "attend_vision.h"

#define GOLDEN_IMAGES "tests/golden/images/"

/* The image of this name in images.txt; its pixels are malloc's. */
static inline att_image golden_image(const char *name)
{
    double at[4];
    assert_int_equal(golden_line("tests/golden/images.txt", name, at, 4), 4);
    att_image image = {.height = (int64_t)at[1], .width = (int64_t)at[2], .channels = (int64_t)at[3]};
    const size_t bytes = (size_t)(image.height * image.width * image.channels);
    FILE *file = fopen("tests/golden/images.u8", "rb");
    image.pixels = malloc(bytes);
    assert_non_null(file);
    assert_non_null(image.pixels);
    assert_int_equal(fseek(file, (long)at[0], SEEK_SET), 0);
    assert_int_equal(fread(image.pixels, 1, bytes, file), bytes);
    fclose(file);
    return image;
}

/* Has the image the shape and, within `within` levels, the pixels of the golden one? */
static inline void check_image_within(const att_image *image, const char *name, int within)
{
    att_image expected = golden_image(name);
    if (image->height != expected.height || image->width != expected.width || image->channels != expected.channels)
        fail_msg("%s: [%d, %d, %d] is not [%d, %d, %d]", name, (int)image->height, (int)image->width,
                 (int)image->channels, (int)expected.height, (int)expected.width, (int)expected.channels);
    const int64_t n = image->height * image->width * image->channels;
    for (int64_t i = 0; i < n; i++)
        if (abs(image->pixels[i] - expected.pixels[i]) > within)
            fail_msg("%s: value %d is %d, not %d", name, (int)i, image->pixels[i], expected.pixels[i]);
    free(expected.pixels);
}
static inline void check_image(const att_image *image, const char *name) { check_image_within(image, name, 0); }

/* The bytes of a file, malloc's. */
static inline unsigned char *image_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    fclose(file);
    return data;
}

#endif
