#include "image_attention.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/image_panel.h"
#include "cli/draw/svg.h"

#include <math.h>
#include <stdlib.h>

/* ---- Attention --------------------------------------------------------------- */

int image_attention_check(const cli_vision *m, int64_t layer, int64_t head)
{
    if (layer >= m->info.layers)
        return cli_misuse("--layer: the model has the layers 0 to %lld, not %lld", (long long)m->info.layers - 1,
                          (long long)layer);
    if (head >= m->info.heads)
        return cli_misuse("--head: the model has the heads 0 to %lld, not %lld", (long long)m->info.heads - 1,
                          (long long)head);
    if (head >= 0 && layer < 0)
        return cli_misuse("--head needs --layer, as rollout over all layers is of the mean of all heads");
    return CLI_DONE;
}

/* Returns the rows [first, first + rows) whose mean is shown. */
static int64_t first_row(const image_attention *a) { return a->from >= 0 ? a->from : a->mean ? a->seen.prefix : 0; }
static int64_t row_count(const image_attention *a) { return a->mean ? a->seen.source - a->seen.prefix : 1; }

/* Computes the mean of rows [row_count, tokens]: the patches into a->weights, the sum of the other tokens into
 * a->rest. */
static void collect(image_attention *a, const float *row)
{
    const int64_t n = a->seen.source, prefix = a->seen.prefix, rows = row_count(a);
    a->rest = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += (double)row[i * n + j];
        if (j < prefix)
            a->rest += sum / (double)rows;
        else
            a->weights[j - prefix] = (float)(sum / (double)rows);
    }
}

static int read_weights(image_attention *a)
{
    const int64_t n = a->seen.source, first = first_row(a), rows = a->layer < 0 ? n : row_count(a);
    float *read = malloc((size_t)(rows * n) * sizeof *read);
    a->weights = malloc((size_t)(n - a->seen.prefix) * sizeof *a->weights);
    if (!read || !a->weights) {
        free(read);
        return cli_fail_memory();
    }
    const int64_t i = att_trace_find(a->trace, ATT_TRACE_SIDE_ENCODER, a->layer);
    const int code =
        cli_status(a->m->base.ctx, a->layer < 0 ? att_trace_rollout(a->trace, read)
                                                : att_trace_weights(a->trace, i, a->head, first, rows, read));
    if (!code)
        collect(a, a->layer < 0 ? read + first * n : read);
    free(read);
    return code;
}

/* Makes the labels for image_attention_terminal, so that it cannot fail after a picture has been written. */
static int make_labels(image_attention *a)
{
    const int64_t rows = a->seen.grid[0];
    a->part = malloc((size_t)(rows * a->seen.grid[1]) * sizeof *a->part);
    a->number = malloc((size_t)rows * sizeof *a->number);
    a->label = malloc((size_t)rows * sizeof *a->label);
    if (!a->part || !a->number || !a->label)
        return cli_fail_memory();
    for (int64_t i = 0; i < rows; i++) {
        snprintf(a->number[i], sizeof a->number[i], "%lld", (long long)i);
        a->label[i] = a->number[i];
    }
    return CLI_DONE;
}

int image_attention_set(image_attention *a, const cli_vision *m, att_trace *trace, const image_row *row)
{
    *a = (image_attention){
        .m = m, .layer = row->layer, .head = row->head, .from = row->from, .trace = trace, .seen.size = sizeof a->seen};
    int code = cli_status(m->base.ctx, att_trace_describe(a->trace, &a->seen));
    a->mean = a->from < 0 && (a->seen.prefix == 0 || m->info.pooling == ATT_VIT_POOLING_MEAN);
    code = code ? code : read_weights(a);
    code = code ? code : make_labels(a);
    if (code)
        image_attention_free(a);
    return code;
}

int image_attention_open(image_attention *a, const cli_vision *m, const att_image *image, int64_t layer, int64_t head)
{
    att_trace *trace;
    const att_trace_options o = {.size = sizeof o, .layers = &layer, .n_layers = layer >= 0};
    *a = (image_attention){0};
    const int code = cli_status(m->base.ctx, att_image_trace(m->model, image, &o, &trace));
    return code ? code : image_attention_set(a, m, trace, &(const image_row){layer, head, -1});
}

void image_attention_free(image_attention *a)
{
    att_trace_free(a->trace);
    free(a->weights);
    free(a->part);
    free(a->number);
    free(a->label);
    *a = (image_attention){0};
}

/* Writes the end of a name: "attention of [CLS]", "mean attention of all patches", "attention of the patch at
 * 2,5". */
static void write_source(const image_attention *a, char *text, size_t size)
{
    const int64_t patch = a->from - a->seen.prefix;
    if (a->mean)
        snprintf(text, size, "mean attention of all patches");
    else if (a->from <= 0 && a->seen.prefix > 0)
        snprintf(text, size, "attention of [CLS]");
    else if (patch < 0)
        snprintf(text, size, "attention of token %lld", (long long)a->from);
    else
        snprintf(text, size, "attention of the patch at %lld,%lld", (long long)(patch / a->seen.grid[1]),
                 (long long)(patch % a->seen.grid[1]));
}

/* Writes whose attention is drawn: "Layer 3, head 1: attention of [CLS]" */
static void write_name(const image_attention *a, char *text, size_t size)
{
    const long long layers = a->m->info.layers, heads = a->m->info.heads;
    char of[80];
    write_source(a, of, sizeof of);
    if (a->layer < 0)
        snprintf(text, size, "Rollout over %lld layer%s, mean of %lld head%s: %s", layers, layers == 1 ? "" : "s",
                 heads, heads == 1 ? "" : "s", of);
    else if (a->head < 0)
        snprintf(text, size, "Layer %lld, mean of %lld head%s: %s", (long long)a->layer, heads, heads == 1 ? "" : "s",
                 of);
    else
        snprintf(text, size, "Layer %lld, head %lld: %s", (long long)a->layer, (long long)a->head, of);
}

/* Writes "12.0 % goes to [CLS] and the registers, not in the picture", or "" if there are no such tokens. */
static void name_rest(const image_attention *a, char *text, size_t size)
{
    const char *tokens = a->mean                                                 ? "the tokens before the patches"
                         : a->seen.prefix == 1                                   ? "[CLS]"
                         : a->m->info.pooling == ATT_VIT_POOLING_CLS_AND_DISTILL ? "[CLS] and the distillation token"
                                                                                 : "[CLS] and the registers";
    *text = '\0';
    if (a->seen.prefix > 0)
        snprintf(text, size, "%.1f %% goes to %s, not in the picture", 100 * a->rest, tokens);
}

/* ---- SVG ----------------------------------------------------------------------- */

enum { MARGIN = 24, SIDE = 360, GAP = 28, BAR = 100 };

/* The image is drawn twice, each time with this size. */
typedef struct layout {
    double scale;         /* pixels of the drawing for one of the image */
    image_panel panel[2]; /* the image itself; the image under colors */
} layout;

static layout arrange(const image_attention *a)
{
    const att_image *image = a->seen.image;
    layout p = {.scale = fmax(1, image_panel_scale(image, SIDE))};
    for (int i = 0; i < 2; i++)
        p.panel[i] = (image_panel){.ctx = a->m->base.ctx,
                                   .image = image,
                                   .top = MARGIN + 62,
                                   .width = p.scale * (double)image->width,
                                   .height = p.scale * (double)image->height};
    p.panel[0].left = MARGIN;
    p.panel[1].left = MARGIN + p.panel[0].width + GAP;
    return p;
}

static int draw_panels(FILE *f, const image_attention *a, const layout *p, const chart_axis *scale)
{
    const double cell[] = {p->scale * (double)a->m->info.patch[0], p->scale * (double)a->m->info.patch[1]};
    int code = image_panel_draw(f, &p->panel[0]);
    if (!code)
        code = image_panel_draw_pale(f, &p->panel[1]);
    image_panel_draw_weights(f, &p->panel[1], a->seen.grid[0], a->seen.grid[1], cell, a->weights, scale);
    return code;
}

int image_attention_svg(FILE *f, const char *title, const image_attention *a)
{
    const layout p = arrange(a);
    const image_panel *left = &p.panel[0], *right = &p.panel[1];
    const int64_t n = a->seen.grid[0] * a->seen.grid[1];
    const chart_axis scale = heatmap_scale(a->weights, n);
    char name[192], rest[128], seen[64];
    write_name(a, name, sizeof name);
    name_rest(a, rest, sizeof rest);
    snprintf(seen, sizeof seen, "what the model sees: %lld x %lld pixels", (long long)a->seen.image->width,
             (long long)a->seen.image->height);
    const double width = fmax(right->left + right->width + BAR, 480);
    const double bottom = left->top + left->height, height = bottom + 50,
                 size = svg_bold_size(title, 19, width - 2 * MARGIN);
    const svg_font small = {.size = 12, .fill = color_pale};
    svg_begin(f, ceil(width), ceil(height), title);
    svg_rect(f, 0, 0, ceil(width), ceil(height), 10, color_card, NULL);
    svg_text(f, MARGIN, MARGIN + 10, &(svg_font){.size = size, .fill = color_ink, .bold = 1}, title);
    svg_text(f, MARGIN, MARGIN + 38, &(svg_font){.size = 13, .fill = color_ink}, name);
    const int code = draw_panels(f, a, &p, &scale);
    heatmap_bar(f, right->left + right->width + 16, right->top, right->height, &scale);
    svg_text(f, left->left, bottom + 16, &small, seen);
    svg_text(f, left->left, bottom + 34, &small, rest);
    svg_end(f);
    return code;
}

/* ---- Terminal -------------------------------------------------------------------- */

void image_attention_terminal(FILE *f, const image_attention *a, int colors)
{
    const int64_t rows = a->seen.grid[0], columns = a->seen.grid[1];
    char name[192], rest[128];
    float largest = 0;
    for (int64_t i = 0; i < rows * columns; i++)
        largest = fmaxf(largest, a->weights[i]);
    for (int64_t i = 0; i < rows * columns; i++)
        a->part[i] = largest > 0 ? a->weights[i] / largest : 0;
    write_name(a, name, sizeof name);
    name_rest(a, rest, sizeof rest);
    const heatmap h = {a->label, NULL, rows, columns, a->part, "row", "column", "y↓ x→"};
    fprintf(f, "%s.\nRows and columns of patches; 1 is the largest weight, %.4f.%s%s%s\n\n", name, (double)largest,
            *rest ? " " : "", rest, *rest ? "." : "");
    heatmap_terminal(f, &h, colors);
}
