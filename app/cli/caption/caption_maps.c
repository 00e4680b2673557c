#include "caption_maps.h"
#include "cli/base/utf8.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/image_panel.h"
#include "cli/draw/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int caption_maps_open(caption_maps *c, const cli_captioner *m, const att_image *image, const att_image_caption *caption)
{
    att_ctx *ctx = m->base.ctx;
    *c = (caption_maps){.m = m, .caption = caption, .seen.size = sizeof c->seen};
    int code = cli_status(ctx, att_caption_trace(m->model, image, caption->ids, caption->count, NULL, &c->trace));
    code = code ? code : cli_status(ctx, att_trace_describe(c->trace, &c->seen));
    if (code)
        return code;
    c->weights = malloc((size_t)(caption->count * c->seen.grid[0] * c->seen.grid[1]) * sizeof *c->weights);
    code = c->weights ? cli_status(ctx, att_trace_weights(c->trace, att_trace_find(c->trace, ATT_TRACE_SIDE_CROSS, -1),
                                                          -1, 0, caption->count, c->weights))
                      : cli_fail_memory();
    if (code)
        caption_maps_free(c);
    return code;
}

void caption_maps_free(caption_maps *c)
{
    att_trace_free(c->trace);
    free(c->weights);
    c->trace = NULL;
    c->weights = NULL;
}

/* ---- Layout ---------------------------------------------------------------------- */

enum { MIN_SIZE = 11, MARGIN = 24, TOP = 110, SIDE = 144, GAP = 20, WORD = 24, COLUMNS = 5, BAR = 100 };

/* Panels in rows, that of the image first; above each its word */
typedef struct layout {
    double scale, width, height; /* of a panel */
    double across;               /* from a panel to the next */
    int64_t panels, columns, rows;
} layout;

static layout arrange(const caption_maps *c)
{
    const att_image *image = c->seen.image;
    layout l = {.scale = image_panel_scale(image, SIDE), .panels = c->caption->count + 1};
    l.width = l.scale * (double)image->width;
    l.height = l.scale * (double)image->height;
    l.across = l.width;
    for (int64_t i = 0; i < c->caption->count; i++)
        l.across = fmax(l.across, svg_text_width(att_caption_model_word(c->m->model, c->caption->ids[i]), 15));
    l.across += GAP;
    l.columns = l.panels < COLUMNS ? l.panels : COLUMNS;
    l.rows = (l.panels + l.columns - 1) / l.columns;
    return l;
}

static image_panel panel_at(const caption_maps *c, const layout *l, int64_t i)
{
    return (image_panel){.ctx = c->m->base.ctx,
                         .image = c->seen.image,
                         .left = MARGIN + (double)(i % l->columns) * l->across,
                         .top = TOP + WORD + (double)(i / l->columns) * (l->height + WORD + GAP),
                         .width = l->width,
                         .height = l->height};
}

/* ---- Drawing ---------------------------------------------------------------------- */

static int draw_word(FILE *f, const caption_maps *c, const layout *l, int64_t i, const chart_axis *scale)
{
    const int64_t rows = c->seen.grid[0], columns = c->seen.grid[1];
    const image_panel p = panel_at(c, l, i + 1);
    const double cell[] = {p.height / (double)rows, p.width / (double)columns};
    svg_text(f, p.left, p.top - 12, &(svg_font){.size = 15, .fill = color_ink},
             att_caption_model_word(c->m->model, c->caption->ids[i]));
    int code = CLI_DONE;
    if (i > 0) { /* the picture of the first word again: it is most of the file */
        const image_panel first = panel_at(c, l, 1);
        svg_again(f, "picture", p.left - first.left, p.top - first.top);
    } else {
        svg_named(f, "picture");
        code = image_panel_draw_pale(f, &p);
        svg_named_end(f);
    }
    image_panel_draw_weights(f, &p, rows, columns, cell, c->weights + i * rows * columns, scale);
    return code;
}

static void name_weights(const caption_maps *c, char *text, size_t size)
{
    const att_caption_model_info *i = &c->m->info;
    if (i->attention[0] == 'm')
        snprintf(text, size, "Attention to %lld x %lld locations before each word: layer %lld, mean of all heads",
                 (long long)c->seen.grid[0], (long long)c->seen.grid[1], (long long)i->layers - 1);
    else
        snprintf(text, size, "Attention to %lld x %lld locations before each word", (long long)c->seen.grid[0],
                 (long long)c->seen.grid[1]);
}

/* Draws a line of text in letters that are as small as needed, but not below MIN_SIZE; then the text is truncated. Bold
 * letters are wider. */
static void draw_line(FILE *f, double y, double room, const svg_font *font, const char *text)
{
    char truncated[1024];
    svg_font small = *font;
    room /= font->bold ? 1.12 : 1;
    small.size = fmax(MIN_SIZE, fmin(font->size, room / fmax(svg_text_width(text, 1), 1e-3)));
    snprintf(truncated, sizeof truncated, "%.*s", utf8_prefix(text, 1000), text);
    for (int n = (int)strlen(truncated); n > 0 && svg_text_width(truncated, small.size) > room;) {
        n = utf8_prefix(text, n - 1);
        snprintf(truncated, sizeof truncated, "%.*s…", n, text);
    }
    svg_text(f, MARGIN, y, &small, truncated);
}

int caption_maps_svg(FILE *f, const char *name, const caption_maps *c)
{
    const layout l = arrange(c);
    const image_panel first = panel_at(c, &l, 0), last = panel_at(c, &l, l.rows * l.columns - 1);
    const chart_axis scale = heatmap_scale(c->weights, c->caption->count * c->seen.grid[0] * c->seen.grid[1]);
    char title[1024], weights[128], seen[64];
    snprintf(title, sizeof title, "%.*s: %.*s", utf8_prefix(name, 200), name, utf8_prefix(c->caption->text, 800),
             c->caption->text);
    snprintf(seen, sizeof seen, "what the model sees: %lld x %lld pixels", (long long)c->seen.image->width,
             (long long)c->seen.image->height);
    name_weights(c, weights, sizeof weights);
    const double right = MARGIN + (double)l.columns * l.across, width = fmax(right + BAR, 480);
    const double height = last.top + last.height + 40, room = width - 2 * MARGIN;
    svg_begin(f, ceil(width), ceil(height), title);
    svg_rect(f, 0, 0, ceil(width), ceil(height), 10, color_card, NULL);
    draw_line(f, MARGIN + 10, room, &(svg_font){.size = 13, .fill = color_pale}, name);
    draw_line(f, MARGIN + 36, room, &(svg_font){.size = 19, .fill = color_ink, .bold = 1}, c->caption->text);
    draw_line(f, MARGIN + 62, room, &(svg_font){.size = 13, .fill = color_ink},
              c->weights_name ? c->weights_name : weights);
    int code = image_panel_draw(f, &first);
    for (int64_t i = 0; !code && i < c->caption->count; i++)
        code = draw_word(f, c, &l, i, &scale);
    heatmap_bar(f, right, first.top, l.height, &scale);
    svg_text(f, MARGIN, last.top + last.height + 18, &(svg_font){.size = 12, .fill = color_pale},
             c->image_name ? c->image_name : seen);
    svg_end(f);
    return code;
}
