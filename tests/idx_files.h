/* Image sets of a test, as IDX files. */
#ifndef IDX_FILES_H
#define IDX_FILES_H

#include "attend_util.h"
#include "folder.h"

#include <stdbool.h>

/* Writes n images, pixels [n, side, side] and labels [n], as those of a part, "train" or "t10k". */
static inline void idx_write(const test_folder *f, const char *part, int n, int side, const uint8_t *pixels,
                             const uint8_t *labels)
{
    const uint8_t images_header[] =
        {0, 0, 8, 3, 0, 0, (uint8_t)(n >> 8), (uint8_t)n, 0, 0, 0, (uint8_t)side, 0, 0, 0, (uint8_t)side},
                  labels_header[] = {0, 0, 8, 1, 0, 0, (uint8_t)(n >> 8), (uint8_t)n};
    char name[64];
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    FILE *file = folder_open(f, name);
    fwrite(images_header, 1, sizeof images_header, file);
    fwrite(pixels, 1, (size_t)(n * side * side), file);
    assert_int_equal(fclose(file), 0);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    file = folder_open(f, name);
    fwrite(labels_header, 1, sizeof labels_header, file);
    fwrite(labels, 1, (size_t)n, file);
    assert_int_equal(fclose(file), 0);
}

enum { STRIPES_SIDE = 8, STRIPES_CLASSES = 3, STRIPES_MAX = 256 };

/* Stripes, two pixels wide, of any phase and contrast, with noise: along rows, columns or diagonals, n of them. */
static inline void stripes_write(const test_folder *f, const char *part, int n, uint64_t seed)
{
    static uint8_t pixels[STRIPES_MAX * STRIPES_SIDE * STRIPES_SIDE], labels[STRIPES_MAX];
    uint8_t *pixel = pixels;
    for (int i = 0; i < n; i++) {
        uint32_t r[4], noise[4];
        att_random(seed, (const uint32_t[]){(uint32_t)i, 0, 0, 0}, r);
        labels[i] = (uint8_t)(i % STRIPES_CLASSES);
        for (unsigned y = 0; y < STRIPES_SIDE; y++)
            for (unsigned x = 0; x < STRIPES_SIDE; x++) {
                const unsigned along[STRIPES_CLASSES] = {y, x, x + y};
                const bool light = (along[labels[i]] + r[0] % 4) / 2 % 2;
                att_random(seed, (const uint32_t[]){(uint32_t)i, y * STRIPES_SIDE + x, 0, 1}, noise);
                *pixel++ = (uint8_t)((light ? 120 + r[1] % 90 : r[2] % 60) + noise[0] % 40);
            }
    }
    idx_write(f, part, n, STRIPES_SIDE, pixels, labels);
}

#endif
