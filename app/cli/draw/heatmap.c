#include "heatmap.h"

#include "cli/base/terminal.h"
#include "cli/base/utf8.h"
#include "color.h"
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

chart_axis heatmap_scale(const float *weights, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = isfinite(weights[i]) && weights[i] > max ? weights[i] : max;
    chart_axis a = chart_axis_over(0, max > CHART_MIN ? max : 1, 5);
    a.first = 0;
    a.last = ceil(a.high / a.step - 1e-6); /* weights are float: 0.2f is above 0.2 */
    a.high = a.last * a.step;
    return a;
}

static const char *label_of(const char *const *labels, int64_t i, char number[24])
{
    if (labels)
        return labels[i];
    snprintf(number, 24, "%" PRId64, i);
    return number;
}

static int widest(const char *const *labels, int64_t n)
{
    char number[24];
    int width = 0;
    for (int64_t i = 0; i < n; i++) {
        int w = utf8_width(label_of(labels, i, number));
        width = w > width ? w : width;
    }
    return width;
}

/* Returns the columns for labels in a terminal of this width. Longer labels are truncated. */
static int short_label(const char *const *labels, int64_t n, int columns)
{
    const int width = widest(labels, n), max = columns < 48 ? columns / 3 : 16;
    return width > max ? max : width;
}

/* ---- terminal: cells under their labels, else under numbers with two digits, else as blocks */

typedef struct grid {
    FILE *f;
    int colors;
    chart_axis scale;
    enum { CELL_VALUE, CELL_DIGITS, CELL_BLOCK } kind;
    int cell, number, label; /* columns of a cell, of a row's number (0: none), of a row's label */
} grid;

static grid choose(FILE *f, const heatmap *h, int colors)
{
    int columns = terminal_columns(f), label = short_label(h->row, h->rows, columns),
        head = short_label(h->column, h->columns, columns);
    int64_t longest = h->rows > h->columns ? h->rows : h->columns;
    int number = snprintf(NULL, 0, "%" PRId64, longest - 1), value = (head < 5 ? 5 : head) + 1;
    grid g = {.f = f, .colors = colors, .label = label < 6 ? 6 : label};
    if (g.label + h->columns * value <= columns) {
        g.kind = CELL_VALUE, g.cell = value;
    } else {
        int cell = number > 2 ? number + 1 : 3;
        g.number = number + 1;
        g.kind = g.number + g.label + 1 + h->columns * cell <= columns ? CELL_DIGITS : CELL_BLOCK;
        g.cell = g.kind == CELL_DIGITS ? cell : 2;
    }
    return g;
}

/* Prints the heads of columns [first, last). Blocks are narrow, so only every fifth has a number. */
static void print_heads(const grid *g, const heatmap *h, int64_t first, int64_t last)
{
    char number[24];
    utf8_field(g->f, h->corner, g->number + g->label, 0);
    fprintf(g->f, "%s", g->kind == CELL_VALUE ? "" : " ");
    for (int64_t j = first; j < last; j++) {
        if (g->kind != CELL_BLOCK)
            utf8_field(g->f, label_of(g->kind == CELL_VALUE ? h->column : NULL, j, number), g->cell, 1);
        else if (j % 5 == 0 && j + 1 < last)
            fprintf(g->f, "%-*s", j + 5 < last ? 10 : 0, label_of(NULL, j, number));
        else if (j == first && j % 5 != 0)
            fprintf(g->f, "%*s", (int)(5 - j % 5) * 2, "");
    }
    fputc('\n', g->f);
}

static void print_cell(const grid *g, double w)
{
    static const char *const shade[] = {"  ", "··", "░░", "▒▒", "▓▓", "██"};
    char text[16];
    double t = w / g->scale.high;
    if (g->kind == CELL_VALUE)
        snprintf(text, sizeof text, "%.2f", w);
    else if (g->kind == CELL_DIGITS)
        snprintf(text, sizeof text, w >= 0.005 ? "%.0f" : "·", w * 100);
    else
        strcpy(text, g->colors ? "  " : shade[t > 0.02 ? (int)fmin(1 + 5 * t, 5) : 0]);
    if (g->colors) {
        color c = color_ramp(1 - t); /* light on dark */
        terminal_color(g->f, g->colors, 48, c);
        terminal_color(g->f, g->colors, 38, color_lightness(c) > 0.65 ? (color){0, 0, 0} : (color){255, 255, 255});
    }
    utf8_field(g->f, text, g->cell - (g->colors && g->kind == CELL_VALUE), 1);
    if (g->colors) {
        fputs(g->kind == CELL_VALUE ? " " : "", g->f);
        terminal_color_end(g->f);
    }
}

static void print_legend(const grid *g)
{
    char max[32];
    chart_tick(&g->scale, g->scale.high, max, sizeof max);
    fprintf(g->f, "%*s", g->number + g->label + (g->kind != CELL_VALUE), "");
    if (g->colors) {
        fputs("0 ", g->f);
        for (int i = 0; i < 24; i++) {
            terminal_color(g->f, g->colors, 48, color_ramp(1 - i / 23.0));
            fputc(' ', g->f);
        }
        terminal_color_end(g->f);
        fprintf(g->f, " %s\n", max);
    } else if (g->kind == CELL_BLOCK) {
        fprintf(g->f, "0 ··░░▒▒▓▓██ %s\n", max);
    } else if (g->kind == CELL_DIGITS) {
        fputs(" 25 = 0.25   · < 0.005\n", g->f);
    } else {
        fputc('\n', g->f);
    }
}

static void print_row(const grid *g, const heatmap *h, int64_t i, int64_t first, int64_t last)
{
    if (g->number)
        fprintf(g->f, "%*" PRId64 " ", g->number - 1, i);
    utf8_field(g->f, h->row[i], g->label, g->kind == CELL_VALUE);
    fputs(g->kind == CELL_VALUE ? "" : " ", g->f);
    for (int64_t j = first; j < last; j++)
        print_cell(g, h->weights[i * h->columns + j]);
    fputc('\n', g->f);
}

/* Lists the labels of the columns, if only their numbers are shown and rows have other labels. */
static void print_columns(const grid *g, const heatmap *h)
{
    if (g->kind == CELL_VALUE || !h->column || h->column == h->row)
        return;
    int used = 0;
    for (int64_t j = 0; j < h->columns; j++) {
        const int width = snprintf(NULL, 0, "%" PRId64 " ", j) + utf8_width(h->column[j]);
        const int breaks = used > 0 && used + 2 + width > terminal_columns(g->f);
        fprintf(g->f, "%s%" PRId64 " %s", used == 0 ? "" : breaks ? "\n" : "  ", j, h->column[j]);
        used = breaks || used == 0 ? width : used + 2 + width;
    }
    fputs("\n\n", g->f);
}

int heatmap_terminal(FILE *f, const heatmap *h, int colors)
{
    grid g = choose(f, h, colors);
    g.scale = heatmap_scale(h->weights, h->rows * h->columns);
    int64_t room = (terminal_columns(f) - g.number - g.label - 1) / g.cell;
    if (g.kind == CELL_VALUE)
        room = h->columns;
    else if (room >= 10)
        room -= room % 5; /* so that the numbers of all panels are in the same columns */
    room = room < 1 ? 1 : room;
    print_columns(&g, h);
    for (int64_t first = 0; first < h->columns; first += room) {
        int64_t last = first + room < h->columns ? first + room : h->columns;
        if (first > 0)
            fputc('\n', f);
        print_heads(&g, h, first, last);
        for (int64_t i = 0; i < h->rows; i++)
            print_row(&g, h, i, first, last);
    }
    if (h->columns > 0 && (colors || g.kind != CELL_VALUE))
        print_legend(&g);
    return fflush(f) || ferror(f) ? -1 : 0;
}

/* ---- SVG */

typedef struct layout {
    double cell, gap, font;    /* of the grid: pitch, space between cells, label size */
    int64_t every;             /* each label (1), each second, ... */
    double rotate;             /* of column labels */
    double x, y, across, down; /* of the grid */
    double title, titles;      /* font size; height of its lines after the first */
    double width, height;
} layout;

enum { SVG_LABEL = 200 };

/* Returns the label for a picture. Fonts draw the lower block that begins a piece of SentencePiece as a long bar;
 * therefore it is replaced by an open box. Both have three bytes. */
static const char *svg_label(const char *const *labels, int64_t i, char text[SVG_LABEL])
{
    static const char block[] = "\u2581", box[] = "\u2423";
    char number[24];
    snprintf(text, SVG_LABEL, "%s", label_of(labels, i, number));
    for (char *p = text; (p = strstr(p, block));)
        memcpy(p, box, sizeof box - 1);
    return text;
}

static double longest_label(const char *const *labels, int64_t n, double font)
{
    char text[SVG_LABEL];
    double longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = fmax(longest, svg_text_width(svg_label(labels, i, text), font));
    return longest;
}

/* Draws the title, and returns the number of its lines. f NULL: draws nothing. */
static int draw_title(FILE *f, const layout *l, const char *title)
{
    const svg_font font = {.size = l->title, .fill = color_ink, .bold = 1};
    return svg_paragraph(f, 24, 24 + 10, l->width - 48, 1.3 * l->title, &font, title);
}

static layout arrange(const char *title, const heatmap *h)
{
    layout l = {.cell = fmin(44, fmax(6, 600.0 / fmax(1, fmax((double)h->rows, (double)h->columns))))};
    l.gap = l.cell >= 12 ? 1.5 : l.cell >= 8 ? 0.5 : 0;
    l.font = fmin(15, fmax(8, 0.62 * l.cell));
    l.every = (int64_t)ceil(1.15 * l.font / l.cell);
    l.across = l.cell * (double)h->columns;
    l.down = l.cell * (double)h->rows;
    const double longest = longest_label(h->column, h->columns, l.font);
    l.rotate = l.cell < 1.6 * l.font ? -90 : longest > l.cell - 3 ? -45 : 0;
    double rise = longest * (l.rotate == -90 ? 1 : 0.71), over = l.rotate == -45 ? fmax(0, rise - 90) : 0;
    if (l.rotate == 0)
        rise = 0.5 * l.font;
    const double margin = 24, bar = 90;
    l.x = margin + 26 + longest_label(h->row, h->rows, l.font) + 8;
    l.y = margin + 34 + 30 + rise + 0.7 * l.font + 6;
    l.width = l.x + l.across + bar + over + margin;
    l.width = fmax(l.width, fmin(2 * margin + 1.25 * svg_text_width(title, 19), 760));
    l.title = fmax(13, svg_bold_size(title, 19, l.width - 2 * margin));
    l.titles = 1.3 * l.title * fmax(0, draw_title(NULL, &l, title) - 1);
    l.y += l.titles;
    l.height = l.y + fmax(l.down, 120) + margin;
    return l;
}

static void draw_labels(FILE *f, const layout *l, const heatmap *h)
{
    svg_font row = {.size = l->font, .fill = color_ink, .anchor = 'e'};
    svg_font column = {.size = l->font, .fill = color_ink, .anchor = l->rotate != 0 ? 's' : 'm', .rotate = l->rotate};
    svg_font axis = {.size = 12, .fill = color_pale, .anchor = 'm'};
    char text[SVG_LABEL];
    for (int64_t i = 0; i < h->rows; i += l->every)
        svg_text(f, l->x - 8, l->y + ((double)i + 0.5) * l->cell, &row, svg_label(h->row, i, text));
    for (int64_t j = 0; j < h->columns; j += l->every)
        svg_text(f, l->x + ((double)j + 0.5) * l->cell, l->y - 6 - 0.3 * l->font, &column,
                 svg_label(h->column, j, text));
    svg_text(f, l->x + l->across / 2, 24 + 34 + 14 + l->titles, &axis, h->column_name);
    axis.rotate = -90;
    svg_text(f, 24 + 6, l->y + l->down / 2, &axis, h->row_name);
}

static void draw_cell(FILE *f, const layout *l, const heatmap *h, int64_t i, int64_t j, double max)
{
    char tip[512], value[16], from[SVG_LABEL], to[SVG_LABEL];
    double w = h->weights[i * h->columns + j];
    double x = l->x + (double)j * l->cell, y = l->y + (double)i * l->cell;
    color c = color_ramp(w / max);
    snprintf(tip, sizeof tip, "%s → %s: %.4f", svg_label(h->row, i, from), svg_label(h->column, j, to), w);
    svg_rect(f, x, y, l->cell - l->gap, l->cell - l->gap, l->cell >= 20 ? 2 : 0, c, tip);
    if (l->cell >= 30 && w >= 0.005) { /* smaller weights are almost invisible */
        snprintf(value, sizeof value, "%.2f", w);
        svg_font digits = {.size = 0.3 * l->cell, .fill = color_ink, .anchor = 'm'};
        if (color_lightness(c) <= 0.65)
            digits.fill = color_card;
        svg_text(f, x + (l->cell - l->gap) / 2, y + (l->cell - l->gap) / 2, &digits, value);
    }
}

void heatmap_bar(FILE *f, double x, double y, double height, const chart_axis *scale)
{
    enum { STEPS = 64 };
    const double width = 14;
    char value[32];
    svg_font tick = {.size = 12, .fill = color_pale};
    for (int i = 0; i < STEPS; i++) /* each slightly taller than its step, to avoid gaps */
        svg_rect(f, x, y + height * i / STEPS, width, height / STEPS + (i + 1 < STEPS), 0,
                 color_ramp(1 - (i + 0.5) / STEPS), NULL);
    for (int i = 0; i <= (int)scale->last; i++) {
        const double at = y + height * (1 - i / scale->last);
        chart_tick(scale, i * scale->step, value, sizeof value);
        svg_line(f, x + width, at, x + width + 4, at, 1, color_pale);
        svg_text(f, x + width + 8, at, &tick, value);
    }
}

int heatmap_svg(FILE *f, const char *title, const heatmap *h)
{
    layout l = arrange(title, h);
    const chart_axis scale = heatmap_scale(h->weights, h->rows * h->columns);
    svg_begin(f, ceil(l.width), ceil(l.height), title);
    svg_rect(f, 0, 0, ceil(l.width), ceil(l.height), 10, color_card, NULL);
    draw_title(f, &l, title);
    draw_labels(f, &l, h);
    for (int64_t i = 0; i < h->rows; i++)
        for (int64_t j = 0; j < h->columns; j++)
            draw_cell(f, &l, h, i, j, scale.high);
    heatmap_bar(f, l.x + l.across + 26, l.y, fmax(fmin(l.down, 320), 120), &scale);
    svg_end(f);
    return fflush(f) || ferror(f) ? -1 : 0;
}
