/* Made-up captioned images: squares of one colour each, which their captions name. */
#ifndef CAPTION_COLOURS_H
#define CAPTION_COLOURS_H

#include "folder.h"

#include "attend_vision.h"

enum { COLOURS = 4, COLOUR_IMAGES = 12, COLOUR_SIDE = 16, COLOUR_CAPTIONS = 2 * COLOUR_IMAGES };
static const char *const colour_names[COLOURS] = {"red", "green", "blue", "yellow"};

/* Writes images/0.png to 11.png, image i of colour i % 4; captions.txt; train.txt, the first 8, and valid.txt, the
 * others. */
static inline void colours_write(att_ctx *ctx, const test_folder *to)
{
    static const uint8_t rgb[COLOURS][3] = {{220, 30, 40}, {20, 200, 50}, {30, 40, 210}, {230, 220, 20}};
    FILE *captions = folder_open(to, "captions.txt"), *list[2];
    list[0] = folder_open(to, "train.txt");
    list[1] = folder_open(to, "valid.txt");
    for (int i = 0; i < COLOUR_IMAGES; i++) {
        uint8_t pixels[COLOUR_SIDE * COLOUR_SIDE * 3];
        char name[32];
        att_image_bytes png;
        for (int k = 0; k < COLOUR_SIDE * COLOUR_SIDE * 3; k++)
            pixels[k] = (uint8_t)(rgb[i % COLOURS][k % 3] + (7 * i + 3 * k) % 20);
        const att_image image = {.height = COLOUR_SIDE, .width = COLOUR_SIDE, .channels = 3, .pixels = pixels};
        assert_int_equal(att_image_encode_png(ctx, &image, &png), ATT_OK);
        snprintf(name, sizeof name, "images/%d.png", i);
        FILE *f = folder_open(to, name);
        assert_int_equal(fwrite(png.data, 1, png.bytes, f), png.bytes);
        fclose(f);
        att_image_bytes_free(ctx, &png);
        const char *colour = colour_names[i % COLOURS];
        fprintf(captions, "%d.png#0\tA %s square.\n%d.png#1\tThis is a square, and it is %s!\n", i, colour, i, colour);
        fprintf(list[i >= 2 * COLOURS], "%d.png\n", i);
    }
    fclose(list[0]);
    fclose(list[1]);
    fclose(captions);
}

#endif
