#include "heatmap.h"

#include "color.h"
#include "svg.h"
#include "utf8.h"

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

static int widest(const char *const *labels, int64_t n)
{
    int width = 0;
    for (int64_t i = 0; i < n; i++) {
        int w = utf8_width(labels[i]);
        width = w > width ? w : width;
    }
    return width;
}

/* ---- terminal: cells under their labels, else under numbers with two digits, else as blocks */

typedef struct grid {
    FILE *f;
    int colors;
    double max;
    enum { CELL_VALUE, CELL_DIGITS, CELL_BLOCK } kind;
    int cell, number, label; /* columns of a cell, of a row's number (0: none), of a row's label */
} grid;

static grid choose(FILE *f, const char *const *labels, int64_t n, int colors)
{
    int columns = terminal_columns(f), label = widest(labels, n);
    label = label > 16 ? 16 : label;
    int number = snprintf(NULL, 0, "%" PRId64, n - 1), value = (label < 5 ? 5 : label) + 1;
    grid g = {.f = f, .colors = colors, .label = label < 6 ? 6 : label};
    if (g.label + n * value <= columns) {
        g.kind = CELL_VALUE, g.cell = value;
    } else {
        int cell = number > 2 ? number + 1 : 3;
        g.number = number + 1;
        g.kind = g.number + g.label + 1 + n * cell <= columns ? CELL_DIGITS : CELL_BLOCK;
        g.cell = g.kind == CELL_DIGITS ? cell : 2;
    }
    return g;
}

/* The heads of columns [first, last). Blocks are narrow: every fifth has a number. */
static void print_heads(const grid *g, const char *const *labels, int64_t first, int64_t last)
{
    char number[24];
    utf8_field(g->f, "q↓ k→", g->number + g->label, 0);
    fprintf(g->f, "%s", g->kind == CELL_VALUE ? "" : " ");
    for (int64_t j = first; j < last; j++) {
        snprintf(number, sizeof number, "%" PRId64, j);
        if (g->kind != CELL_BLOCK)
            utf8_field(g->f, g->kind == CELL_VALUE ? labels[j] : number, g->cell, 1);
        else if (j % 5 == 0 && j + 1 < last)
            fprintf(g->f, "%-*s", j + 5 < last ? 10 : 0, number);
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

int heatmap_terminal(FILE *f, const char *const *labels, int64_t n, const float *weights, int colors)
{
    grid g = choose(f, labels, n, colors);
    g.max = largest(weights, n * n);
    int64_t room = (terminal_columns(f) - g.number - g.label - 1) / g.cell;
    if (g.kind == CELL_VALUE)
        room = n;
    else if (room >= 10)
        room -= room % 5; /* so that every panel's numbers stand alike */
    room = room < 1 ? 1 : room;
    for (int64_t first = 0; first < n; first += room) {
        int64_t last = first + room < n ? first + room : n;
        if (first > 0)
            fputc('\n', f);
        print_heads(&g, labels, first, last);
        for (int64_t i = 0; i < n; i++) {
            if (g.number)
                fprintf(f, "%*" PRId64 " ", g.number - 1, i);
            utf8_field(f, labels[i], g.label, g.kind == CELL_VALUE);
            fputs(g.kind == CELL_VALUE ? "" : " ", f);
            for (int64_t j = first; j < last; j++)
                print_cell(&g, weights[i * n + j]);
            fputc('\n', f);
        }
    }
    if (n > 0 && (colors || g.kind != CELL_VALUE))
        print_legend(&g);
    return fflush(f) || ferror(f) ? -1 : 0;
}

/* ---- SVG */

static const color ink = {0x24, 0x29, 0x33}, pale = {0x6b, 0x72, 0x80}, card = {0xff, 0xff, 0xff};

typedef struct layout {
    double cell, gap, font; /* of the grid: pitch, space between cells, label size */
    int64_t every;          /* each label (1), each second, ... */
    double rotate;          /* of column labels */
    double x, y, side;      /* of the grid */
    double title;           /* font size */
    double width, height;
} layout;

static layout arrange(const char *title, const char *const *labels, int64_t n)
{
    layout l = {.cell = fmin(44, fmax(6, 600.0 / (double)(n > 0 ? n : 1)))};
    l.gap = l.cell >= 12 ? 1.5 : l.cell >= 8 ? 0.5 : 0;
    l.font = fmin(15, fmax(8, 0.62 * l.cell));
    l.every = (int64_t)ceil(1.15 * l.font / l.cell);
    l.side = l.cell * (double)n;
    double longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = fmax(longest, svg_text_width(labels[i], l.font));
    l.rotate = l.cell < 1.6 * l.font ? -90 : longest > l.cell - 3 ? -45 : 0;
    double rise = longest * (l.rotate == -90 ? 1 : 0.71), over = l.rotate == -45 ? fmax(0, rise - 90) : 0;
    if (l.rotate == 0)
        rise = 0.5 * l.font;
    const double margin = 24, bar = 90;
    l.x = margin + 26 + longest + 8;
    l.y = margin + 34 + 30 + rise + 0.7 * l.font + 6;
    l.width = l.x + l.side + bar + over + margin;
    double title_width = svg_text_width(title, 19);
    l.width = fmax(l.width, fmin(2 * margin + title_width, 760));
    l.title = 19 * fmin(1, (l.width - 2 * margin) / (title_width > 0 ? title_width : 1));
    l.height = l.y + fmax(l.side, 120) + margin;
    return l;
}

static void draw_labels(FILE *f, const layout *l, const char *const *labels, int64_t n)
{
    svg_font row = {.size = l->font, .fill = ink, .anchor = 'e'};
    svg_font column = {.size = l->font, .fill = ink, .anchor = l->rotate != 0 ? 's' : 'm', .rotate = l->rotate};
    svg_font axis = {.size = 12, .fill = pale, .anchor = 'm'};
    for (int64_t i = 0; i < n; i += l->every) {
        double middle = ((double)i + 0.5) * l->cell;
        svg_text(f, l->x - 8, l->y + middle, &row, labels[i]);
        svg_text(f, l->x + middle, l->y - 6 - 0.3 * l->font, &column, labels[i]);
    }
    svg_text(f, l->x + l->side / 2, 24 + 34 + 14, &axis, "key (column)");
    axis.rotate = -90;
    svg_text(f, 24 + 6, l->y + l->side / 2, &axis, "query (row)");
}

static void draw_cells(FILE *f, const layout *l, const char *const *labels, int64_t n, const float *weights, double max)
{
    char tip[512], value[16];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            double w = weights[i * n + j];
            double x = l->x + (double)j * l->cell, y = l->y + (double)i * l->cell;
            color c = color_ramp(w / max);
            snprintf(tip, sizeof tip, "%.200s → %.200s: %.4f", labels[i], labels[j], w);
            svg_rect(f, x, y, l->cell - l->gap, l->cell - l->gap, l->cell >= 20 ? 2 : 0, c, tip);
            if (l->cell >= 30 && w >= 0.005) { /* the rest is as good as empty */
                snprintf(value, sizeof value, "%.2f", w);
                svg_font digits = {.size = 0.3 * l->cell, .fill = ink, .anchor = 'm'};
                if (color_lightness(c) <= 0.65)
                    digits.fill = card;
                svg_text(f, x + (l->cell - l->gap) / 2, y + (l->cell - l->gap) / 2, &digits, value);
            }
        }
    }
}

static void draw_bar(FILE *f, const layout *l, double max)
{
    enum { STEPS = 64 };
    double x = l->x + l->side + 26, width = 14, height = fmax(fmin(l->side, 320), 120);
    char value[16];
    svg_font tick = {.size = 12, .fill = pale};
    for (int i = 0; i < STEPS; i++) /* each a little taller than its step: no seams */
        svg_rect(f, x, l->y + height * i / STEPS, width, height / STEPS + (i + 1 < STEPS), 0,
                 color_ramp(1 - (i + 0.5) / STEPS), NULL);
    for (int i = 0; i <= 4; i++) {
        double y = l->y + height * i / 4;
        snprintf(value, sizeof value, "%.2f", max * (4 - i) / 4);
        svg_line(f, x + width, y, x + width + 4, y, 1, pale);
        svg_text(f, x + width + 8, y, &tick, value);
    }
}

int heatmap_svg(FILE *f, const char *title, const char *const *labels, int64_t n, const float *weights)
{
    layout l = arrange(title, labels, n);
    double max = largest(weights, n * n);
    svg_begin(f, ceil(l.width), ceil(l.height), title);
    svg_rect(f, 0, 0, ceil(l.width), ceil(l.height), 10, card, NULL);
    svg_text(f, 24, 24 + 10, &(svg_font){.size = l.title, .fill = ink, .bold = 1}, title);
    draw_labels(f, &l, labels, n);
    draw_cells(f, &l, labels, n, weights, max);
    draw_bar(f, &l, max);
    svg_end(f);
    return fflush(f) || ferror(f) ? -1 : 0;
}
