#include "thumbnails.h"
#include "cli/base/command.h"
#include "cli/base/terminal.h"
#include "cli/base/utf8.h"
#include "image_panel.h"
#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void thumbnail_pool(const float *weights, int64_t rows, int64_t columns, int64_t height, int64_t width, uint8_t *out)
{
    float largest = 0;
    for (int64_t i = 0; i < rows * columns; i++)
        largest = fmaxf(largest, weights[i]);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            float max = 0;
            for (int64_t i = y * rows / height; i < (y + 1) * rows / height; i++)
                for (int64_t j = x * columns / width; j < (x + 1) * columns / width; j++)
                    max = fmaxf(max, weights[i * columns + j]);
            out[y * width + x] = largest > 0 ? (uint8_t)lrintf(255 * max / largest) : 0;
        }
}

static const uint8_t *map_at(const thumbnails *t, int64_t row, int64_t column)
{
    return t->cells + (row * t->columns + column) * t->height * t->width;
}

/* ---- SVG ----------------------------------------------------------------------- */

enum { MARGIN = 24, TOP = 76, SIDE = 72, GAP = 8 };

typedef struct layout {
    double label, width, height; /* of the names of rows, and of a map */
} layout;

static double widest(const char *const *names, int64_t n, double size)
{
    double width = 0;
    for (int64_t i = 0; i < n; i++)
        width = fmax(width, svg_text_width(names[i], size));
    return width;
}

/* Makes a map as an image of one pixel a cell. */
static int draw_map(FILE *f, const thumbnails *t, const layout *l, int64_t row, int64_t column, uint8_t *pixels)
{
    const uint8_t *cells = map_at(t, row, column);
    const att_image image = {.height = t->height, .width = t->width, .channels = 3, .pixels = pixels};
    const image_panel p = {.ctx = t->ctx,
                           .image = &image,
                           .left = MARGIN + l->label + (double)column * (l->width + GAP),
                           .top = TOP + (double)row * (l->height + GAP),
                           .width = l->width,
                           .height = l->height};
    for (int64_t i = 0; i < t->height * t->width; i++) {
        const color c = color_ramp(cells[i] / 255.0);
        pixels[3 * i] = c.r;
        pixels[3 * i + 1] = c.g;
        pixels[3 * i + 2] = c.b;
    }
    return image_panel_draw(f, &p);
}

static int draw_maps(FILE *f, const thumbnails *t, const layout *l)
{
    uint8_t *pixels = malloc((size_t)(t->height * t->width) * 3);
    int code = pixels ? 0 : cli_fail_memory();
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; !code && j < t->columns; j++)
            code = draw_map(f, t, l, i, j, pixels);
    free(pixels);
    return code;
}

int thumbnails_svg(FILE *f, const char *title, const thumbnails *t)
{
    const double longest = (double)(t->height > t->width ? t->height : t->width), pitch = SIDE / longest;
    layout l = {.label = widest(t->row, t->rows, 12) + 10,
                .width = fmax(1, floor(pitch * (double)t->width)),
                .height = fmax(1, floor(pitch * (double)t->height))};
    l.width = fmax(l.width, widest(t->column, t->columns, 12));
    const svg_font name = {.size = 12, .fill = color_pale}, head = {.size = 12, .fill = color_pale, .anchor = 'm'};
    const double bottom = TOP + (double)t->rows * (l.height + GAP);
    const double width = fmax(MARGIN + l.label + (double)t->columns * (l.width + GAP) + MARGIN, 480);
    const double size = svg_bold_size(title, 19, width - 2 * MARGIN);
    svg_begin(f, ceil(width), ceil(bottom + 36), title);
    svg_rect(f, 0, 0, ceil(width), ceil(bottom + 36), 10, color_card, NULL);
    svg_text(f, MARGIN, MARGIN + 10, &(svg_font){.size = size, .fill = color_ink, .bold = 1}, title);
    for (int64_t j = 0; j < t->columns; j++)
        svg_text(f, MARGIN + l.label + (double)j * (l.width + GAP) + l.width / 2, TOP - 14, &head, t->column[j]);
    for (int64_t i = 0; i < t->rows; i++)
        svg_text(f, MARGIN, TOP + (double)i * (l.height + GAP) + l.height / 2, &name, t->row[i]);
    const int code = draw_maps(f, t, &l);
    svg_text(f, MARGIN, bottom + 14, &name, t->note);
    svg_end(f);
    return code;
}

/* ---- Terminal -------------------------------------------------------------------- */

/* Returns the columns for the names of rows and a gap; 0: names are empty. */
static int label_width(const thumbnails *t)
{
    int width = 0;
    for (int64_t i = 0; i < t->rows; i++) {
        const int w = utf8_width(t->row[i]);
        width = w > width ? w : width;
    }
    return width > 0 ? width + 2 : 0;
}

/* 0: blank, to 5 */
static int shade_of(uint8_t cell) { return cell > 5 ? (int)fmin(1 + cell / 51.0, 5) : 0; }

/* Prints a line of a map, [width] cells; last: nothing follows it, so that without colors it has no blanks at its
 * end. */
static void put_cells(FILE *f, const uint8_t *cells, int64_t width, bool last, int colors)
{
    static const char *const shade[] = {" ", "·", "░", "▒", "▓", "█"};
    while (last && !colors && width > 0 && shade_of(cells[width - 1]) == 0)
        width--;
    for (int64_t x = 0; x < width; x++) {
        if (colors)
            terminal_color(f, colors, 48, color_ramp(1 - cells[x] / 255.0)); /* light on dark */
        fputs(colors ? " " : shade[shade_of(cells[x])], f);
    }
    if (colors)
        terminal_color_end(f);
    fputs(last ? "\n" : " ", f);
}

/* Prints the maps [first, last) of a row of the grid, below their names. */
static void print_maps(FILE *f, const thumbnails *t, int64_t row, int64_t first, int64_t last, int colors)
{
    const int label = label_width(t), width = (int)t->width;
    utf8_field(f, "", label, 0);
    for (int64_t j = first; j < last; j++) {
        const char *name = t->column[j], *last_word = strrchr(name, ' ');
        name = last_word && utf8_width(name) > width ? last_word + 1 : name;
        utf8_field(f, name, j + 1 < last || utf8_width(name) > width ? width : utf8_width(name), 0);
        fputs(j + 1 < last ? " " : "\n", f);
    }
    for (int64_t y = 0; y < t->height; y++) {
        utf8_field(f, y == 0 ? t->row[row] : "", label, 0);
        for (int64_t j = first; j < last; j++)
            put_cells(f, map_at(t, row, j) + y * width, width, j + 1 == last, colors);
    }
}

void thumbnails_terminal(FILE *f, const thumbnails *t, int colors)
{
    const int64_t fit = (terminal_columns(f) - label_width(t) + 1) / (t->width + 1), across = fit < 1 ? 1 : fit;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t first = 0; first < t->columns; first += across) {
            const int64_t last = first + across < t->columns ? first + across : t->columns;
            if (i > 0 || first > 0)
                fputc('\n', f);
            print_maps(f, t, i, first, last, colors);
        }
}
