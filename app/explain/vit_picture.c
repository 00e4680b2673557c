#include "vit_picture.h"

#include "cli/draw/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- characters */

enum { MAX_COLUMNS = 32, LINE = 4 * 2 * MAX_COLUMNS };

/* Appends the columns [x, x + n) of the rows y and y + 1. */
static void shade(char *line, const att_image *a, int64_t y, int64_t x, int64_t n)
{
    static const char *const shades[] = {"·", "░", "▒", "▓", "█"};
    const int64_t rows = y + 1 < a->height ? 2 : 1;
    for (int64_t end = x + n; x < end; x++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < rows * a->channels; i++)
            sum += a->pixels[((y + i / a->channels) * a->width + x) * a->channels + i % a->channels];
        strcat(line, shades[sum * 5 / (256 * rows * a->channels)]);
    }
}

/* Writes line i of the patches, with gaps between them; empty after the last line. The rest of the image is in no
 * patch. */
static void shade_patches(char *line, const att_image *a, const int64_t patch[2], int64_t i)
{
    const int64_t lines = patch[0] / 2, y = i / (lines + 1) * patch[0] + 2 * (i % (lines + 1));
    if (i % (lines + 1) == lines || y >= a->height / patch[0] * patch[0])
        return;
    for (int64_t x = 0; x + patch[1] <= a->width; x += patch[1]) {
        if (x > 0)
            strcat(line, " ");
        shade(line, a, y, x, patch[1]);
    }
}

/* Removes the spaces at the end of a line. */
static const char *without_end(char *line)
{
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ')
        line[--n] = '\0';
    return line;
}

static void print_both(page *p, const att_image *a, const int64_t patch[2])
{
    const bool cut = patch && patch[0] % 2 == 0 && a->width / patch[1] <= MAX_COLUMNS / 4;
    const int64_t lines = (a->height + 1) / 2, all = cut ? lines + a->height / patch[0] - 1 : lines;
    for (int64_t i = 0; i < all; i++) {
        char left[LINE] = "", right[LINE] = "";
        if (i < lines)
            shade(left, a, 2 * i, 0, a->width);
        if (cut)
            shade_patches(right, a, patch, i);
        char line[2 * LINE + MAX_COLUMNS];
        snprintf(line, sizeof line, "%s%*s%s", left, (int)(4 + (i < lines ? 0 : a->width)), "", right);
        page_line(p, "%s", without_end(line));
    }
}

void vit_print_picture(page *p, const att_image *image, const int64_t patch[2])
{
    att_image small = {0};
    if (p->status != ATT_OK)
        return;
    if (image->width <= MAX_COLUMNS) {
        print_both(p, image, patch);
        return;
    }
    const int64_t height = (image->height * MAX_COLUMNS + image->width - 1) / image->width;
    p->status = att_image_resize(p->ctx, image, height, MAX_COLUMNS, ATT_IMAGE_FILTER_BILINEAR, &small);
    if (p->status == ATT_OK)
        print_both(p, &small, NULL);
    att_image_free(p->ctx, &small);
}

/* ---- SVG */

enum { MARGIN = 24, SIDE = 224, TOP = 96, BELOW = 44, CUT = 4 };

typedef struct frame {
    double x, y; /* of the panel */
    double down; /* its height; the width is SIDE */
} frame;

static void draw_title(FILE *f, const frame *at, const char *text)
{
    svg_text(f, at->x, at->y - 14, &(svg_font){.size = 13, .fill = color_pale}, text);
}

/* Enlarges the image, each pixel to scale x scale, with white lines of `gap` pixels between patches. The memory is from
 * malloc. */
static att_image enlarge(const vit_drawing *d, int64_t scale, int64_t gap)
{
    const att_image *a = d->image;
    const int64_t side[2] = {d->patch[0] * scale, d->patch[1] * scale}, c = a->channels;
    att_image out = {
        .height = d->grid[0] * (side[0] + gap) - gap, .width = d->grid[1] * (side[1] + gap) - gap, .channels = c};
    out.pixels = malloc((size_t)(out.height * out.width * c));
    for (int64_t i = 0; out.pixels && i < out.height * out.width; i++) {
        const int64_t at[2] = {i / out.width, i % out.width};
        int64_t from[2]; /* the pixel */
        bool inside = true;
        for (int k = 0; k < 2; k++) {
            const int64_t within = at[k] % (side[k] + gap);
            inside = inside && within < side[k];
            from[k] = at[k] / (side[k] + gap) * d->patch[k] + within / scale;
        }
        if (inside)
            memcpy(out.pixels + i * c, a->pixels + (from[0] * a->width + from[1]) * c, (size_t)c);
        else
            memset(out.pixels + i * c, 255, (size_t)c);
    }
    return out;
}

/* Draws the picture, with gaps between patches or without; enlarged here, since not all programs that show an SVG keep
 * the edges of pixels sharp. -1: out of memory. */
static int draw_pixels(FILE *f, const page *p, const frame *at, const vit_drawing *d, double gap)
{
    const int64_t fit = 2 * SIDE / d->image->width, scale = fit > 1 ? fit : 1;
    const double unit = SIDE / (double)(d->image->width * scale); /* of the drawing, for a pixel of the large image */
    const att_image large = enlarge(d, scale, (int64_t)(gap / unit + 0.5));
    att_image_bytes png = {0};
    const int failed = !large.pixels || att_image_encode_png(p->ctx, &large, &png);
    if (!failed)
        svg_image(f, at->x, at->y, unit * (double)large.width, unit * (double)large.height, png.data, png.bytes);
    att_image_bytes_free(p->ctx, &png);
    free(large.pixels);
    return failed ? -1 : 0;
}

/* Draws weights [grid] at the positions of their patches. The darkest is the largest. */
static void draw_map(FILE *f, const frame *at, const vit_drawing *d, const float *map)
{
    const double width = SIDE / (double)d->grid[1], height = at->down / (double)d->grid[0];
    const int64_t n = d->grid[0] * d->grid[1];
    float max = 1e-30f;
    for (int64_t i = 0; i < n; i++)
        max = fmaxf(max, map[i]);
    for (int64_t i = 0; i < n; i++) {
        const double x = at->x + width * (double)(i % d->grid[1]), y = at->y + height * (double)(i / d->grid[1]);
        const color fill = color_ramp(map[i] / max);
        char tip[96], value[16];
        snprintf(tip, sizeof tip, "%" PRId64 ": %.2f %%", i + 1, 100 * map[i]);
        svg_rect(f, x, y, width - 1, height - 1, 0, fill, tip);
        snprintf(value, sizeof value, "%.1f", 100 * map[i]);
        if (width >= 26)
            svg_text(
                f, x + width / 2, y + height / 2,
                &(svg_font){.size = 11, .fill = color_lightness(fill) > 0.65 ? color_ink : color_card, .anchor = 'm'},
                value);
    }
}

/* Draws the scale of colors below a map, from 0 to its largest weight. */
static void draw_legend(FILE *f, const frame *at, const vit_drawing *d, const float *map, double y)
{
    enum { STEPS = 48, WIDTH = 120 };
    float max = 0;
    char text[32];
    for (int64_t i = 0; i < d->grid[0] * d->grid[1]; i++)
        max = fmaxf(max, map[i]);
    snprintf(text, sizeof text, "%.1f %%", 100 * max);
    svg_text(f, at->x, y + 5, &(svg_font){.size = 12, .fill = color_pale}, "0");
    for (int i = 0; i < STEPS; i++)
        svg_rect(f, at->x + 14 + i * (double)WIDTH / STEPS, y, (double)WIDTH / STEPS + (i + 1 < STEPS), 10, 0,
                 color_ramp((i + 0.5) / STEPS), NULL);
    svg_text(f, at->x + 14 + WIDTH + 8, y + 5, &(svg_font){.size = 12, .fill = color_pale}, text);
}

int vit_draw(FILE *f, const page *p, const void *drawing)
{
    const vit_drawing *d = drawing;
    const double down = SIDE * (double)d->image->height / (double)d->image->width;
    const double step = SIDE + CUT * (double)(d->grid[1] - 1) + MARGIN;
    const double width = MARGIN + (2 + d->n_maps) * step, height = TOP + down + CUT * (double)(d->grid[0] - 1) + BELOW;
    frame at = {MARGIN, TOP, down};
    svg_begin(f, ceil(width), ceil(height), p->title);
    svg_rect(f, 0, 0, ceil(width), ceil(height), 10, color_card, NULL);
    svg_text(f, MARGIN, MARGIN + 10, &(svg_font){.size = 19, .fill = color_ink, .bold = 1}, p->title);
    draw_title(f, &at, d->name);
    int failed = draw_pixels(f, p, &at, d, 0);
    at.x += step;
    draw_title(f, &at, d->patches_name);
    failed = failed || draw_pixels(f, p, &at, d, CUT);
    for (int i = 0; i < d->n_maps; i++) {
        at.x += step;
        draw_title(f, &at, d->map_name[i]);
        draw_map(f, &at, d, d->map[i]);
        draw_legend(f, &at, d, d->map[i], at.y + down + 12);
    }
    svg_end(f);
    return failed ? -1 : 0;
}
