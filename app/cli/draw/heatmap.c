#include "heatmap.h"

#include "cli/base/utf8.h"
#include "color.h"
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static double largest(const float *w /* [count] */, int64_t count)
{
    double max = 0;
    for (int64_t i = 0; i < count; i++)
        max = isfinite(w[i]) && w[i] > max ? w[i] : max;
    return max > 0 ? max : 1;
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

/* Columns for labels; longer ones are truncated. */
static int short_label(const char *const *labels, int64_t n)
{
    int width = widest(labels, n);
    return width > 16 ? 16 : width;
}

/* ---- terminal: cells under their labels, else under numbers with two digits, else as blocks */

typedef struct grid {
    FILE *f;
    int colors;
    double max;
    enum { CELL_VALUE, CELL_DIGITS, CELL_BLOCK } kind;
    int cell, number, label; /* columns of a cell, of a row's number (0: none), of a row's label */
} grid;

static grid choose(FILE *f, const heatmap *h, int colors)
{
    int columns = terminal_columns(f), label = short_label(h->row, h->rows), head = short_label(h->column, h->columns);
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

/* The heads of columns [first, last). Blocks are narrow: every fifth has a number. */
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
    double t = w / g->max;
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
    if (g->colors)
        fputs(g->kind == CELL_VALUE ? " \033[0m" : "\033[0m", g->f);
}

static void print_legend(const grid *g)
{
    fprintf(g->f, "%*s", g->number + g->label + (g->kind != CELL_VALUE), "");
    if (g->colors) {
        fputs("0 ", g->f);
        for (int i = 0; i < 24; i++) {
            terminal_color(g->f, g->colors, 48, color_ramp(1 - i / 23.0));
            fputc(' ', g->f);
        }
        fprintf(g->f, "\033[0m %.2f\n", g->max);
    } else if (g->kind == CELL_BLOCK) {
        fprintf(g->f, "0 ··░░▒▒▓▓██ %.2f\n", g->max);
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
    g.max = largest(h->weights, h->rows * h->columns);
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

static const color ink = {0x24, 0x29, 0x33}, pale = {0x6b, 0x72, 0x80}, card = {0xff, 0xff, 0xff};

typedef struct layout {
    double cell, gap, font;    /* of the grid: pitch, space between cells, label size */
    int64_t every;             /* each label (1), each second, ... */
    double rotate;             /* of column labels */
    double x, y, across, down; /* of the grid */
    double title;              /* font size */
    double width, height;
} layout;

static double longest_label(const char *const *labels, int64_t n, double font)
{
    char number[24];
    double longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = fmax(longest, svg_text_width(label_of(labels, i, number), font));
    return longest;
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
    double title_width = svg_text_width(title, 19);
    l.width = fmax(l.width, fmin(2 * margin + title_width, 760));
    l.title = 19 * fmin(1, (l.width - 2 * margin) / (title_width > 0 ? title_width : 1));
    l.height = l.y + fmax(l.down, 120) + margin;
    return l;
}

static void draw_labels(FILE *f, const layout *l, const heatmap *h)
{
    svg_font row = {.size = l->font, .fill = ink, .anchor = 'e'};
    svg_font column = {.size = l->font, .fill = ink, .anchor = l->rotate != 0 ? 's' : 'm', .rotate = l->rotate};
    svg_font axis = {.size = 12, .fill = pale, .anchor = 'm'};
    char number[24];
    for (int64_t i = 0; i < h->rows; i += l->every)
        svg_text(f, l->x - 8, l->y + ((double)i + 0.5) * l->cell, &row, h->row[i]);
    for (int64_t j = 0; j < h->columns; j += l->every)
        svg_text(f, l->x + ((double)j + 0.5) * l->cell, l->y - 6 - 0.3 * l->font, &column,
                 label_of(h->column, j, number));
    svg_text(f, l->x + l->across / 2, 24 + 34 + 14, &axis, h->column_name);
    axis.rotate = -90;
    svg_text(f, 24 + 6, l->y + l->down / 2, &axis, h->row_name);
}

static void draw_cell(FILE *f, const layout *l, const heatmap *h, int64_t i, int64_t j, double max)
{
    char tip[512], value[16], number[24];
    double w = h->weights[i * h->columns + j];
    double x = l->x + (double)j * l->cell, y = l->y + (double)i * l->cell;
    color c = color_ramp(w / max);
    snprintf(tip, sizeof tip, "%.200s → %.200s: %.4f", h->row[i], label_of(h->column, j, number), w);
    svg_rect(f, x, y, l->cell - l->gap, l->cell - l->gap, l->cell >= 20 ? 2 : 0, c, tip);
    if (l->cell >= 30 && w >= 0.005) { /* smaller weights are almost invisible */
        snprintf(value, sizeof value, "%.2f", w);
        svg_font digits = {.size = 0.3 * l->cell, .fill = ink, .anchor = 'm'};
        if (color_lightness(c) <= 0.65)
            digits.fill = card;
        svg_text(f, x + (l->cell - l->gap) / 2, y + (l->cell - l->gap) / 2, &digits, value);
    }
}

static void draw_bar(FILE *f, const layout *l, double max)
{
    enum { STEPS = 64 };
    double x = l->x + l->across + 26, width = 14, height = fmax(fmin(l->down, 320), 120);
    char value[16];
    svg_font tick = {.size = 12, .fill = pale};
    for (int i = 0; i < STEPS; i++) /* each slightly taller than its step, to avoid gaps */
        svg_rect(f, x, l->y + height * i / STEPS, width, height / STEPS + (i + 1 < STEPS), 0,
                 color_ramp(1 - (i + 0.5) / STEPS), NULL);
    for (int i = 0; i <= 4; i++) {
        double y = l->y + height * i / 4;
        snprintf(value, sizeof value, "%.2f", max * (4 - i) / 4);
        svg_line(f, x + width, y, x + width + 4, y, 1, pale);
        svg_text(f, x + width + 8, y, &tick, value);
    }
}

int heatmap_svg(FILE *f, const char *title, const heatmap *h)
{
    layout l = arrange(title, h);
    double max = largest(h->weights, h->rows * h->columns);
    svg_begin(f, ceil(l.width), ceil(l.height), title);
    svg_rect(f, 0, 0, ceil(l.width), ceil(l.height), 10, card, NULL);
    svg_text(f, 24, 24 + 10, &(svg_font){.size = l.title, .fill = ink, .bold = 1}, title);
    draw_labels(f, &l, h);
    for (int64_t i = 0; i < h->rows; i++)
        for (int64_t j = 0; j < h->columns; j++)
            draw_cell(f, &l, h, i, j, max);
    draw_bar(f, &l, max);
    svg_end(f);
    return fflush(f) || ferror(f) ? -1 : 0;
}
