/* PNG files of any size and kind, of zeros, and their chunks. */
#ifndef PNG_WRITE_H
#define PNG_WRITE_H

#include "attend_vision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

typedef struct png_kind {
    int bits; /* of a channel */
    int type; /* 0 grey, 2 red, green, blue, 3 palette, 4 and 6 with alpha */
    bool interlaced;
} png_kind;

static inline unsigned char *png_put_number(unsigned char *to, size_t x)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(x >> (24 - 8 * i));
    return to + 4;
}

/* Writes a chunk of data [bytes], which may be there already; returns its end. */
static inline unsigned char *png_put_chunk(unsigned char *to, const char *name, const void *data, size_t bytes)
{
    unsigned char *at = png_put_number(to, bytes);
    memcpy(at, name, 4);
    memmove(at + 4, data, bytes);
    return png_put_number(at + 4 + bytes, crc32(0, at, (uInt)bytes + 4));
}

/* Bytes of the rows of an image, each with the number of its filter. */
static inline size_t png_row_bytes(png_kind kind, size_t width, size_t height)
{
    static const int channels[] = {1, 0, 3, 1, 2, 0, 4};
    return width ? height * (1 + (width * (size_t)(kind.bits * channels[kind.type]) + 7) / 8) : 0;
}

static inline size_t png_data_bytes(png_kind kind, size_t width, size_t height)
{
    static const unsigned char passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                               {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}; /* x, y, steps of x and y */
    size_t bytes = 0;
    for (int i = 0; i < 7 && kind.interlaced; i++) {
        const unsigned char *p = passes[i];
        bytes += png_row_bytes(kind, (width + p[2] - 1 - p[0]) / p[2], (height + p[3] - 1 - p[1]) / p[3]);
    }
    return kind.interlaced ? bytes : png_row_bytes(kind, width, height);
}

/* A file of zeros, malloc's. */
static inline att_image_bytes png_zeros(png_kind kind, size_t width, size_t height)
{
    const size_t raw = png_data_bytes(kind, width, height);
    uLongf packed = compressBound(raw);
    unsigned char *zeros = calloc(raw, 1), *out = malloc(packed + 256), *at = out;
    assert_non_null(zeros);
    assert_non_null(out);
    unsigned char header[13] = {[8] = (unsigned char)kind.bits, (unsigned char)kind.type, 0, 0, kind.interlaced};
    memcpy(at, "\x89PNG\r\n\x1a\n", 8);
    png_put_number(png_put_number(header, width), height);
    at = png_put_chunk(at + 8, "IHDR", header, sizeof header);
    if (kind.type == 3)
        at = png_put_chunk(at, "PLTE", "\1\2\3\4\5\6", 6);
    assert_int_equal(compress2(at + 8, &packed, zeros, raw, 1), Z_OK);
    at = png_put_chunk(at, "IDAT", at + 8, packed);
    at = png_put_chunk(at, "IEND", "", 0);
    free(zeros);
    return (att_image_bytes){out, (size_t)(at - out)};
}

#endif
