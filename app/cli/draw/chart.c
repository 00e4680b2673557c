#include "chart.h"

#include "cli/base/terminal.h"
#include "cli/base/utf8.h"
#include "svg.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- axes */

/* Returns the smallest number of at least min that is 1, 2 or 5 times a power of ten. */
static double round_step(double min)
{
    const double power = pow(10, floor(log10(min)));
    static const double of[] = {1, 2, 5};
    for (int i = 0; i < 3; i++)
        if (of[i] * power >= min * (1 - 1e-9))
            return of[i] * power;
    return 10 * power;
}

chart_axis chart_axis_over(double low, double high, int ticks)
{
    const double size = fmax(fabs(low), fabs(high));
    if (!(high - low > fmax(1e-9 * size, CHART_MIN))) { /* one value: in the middle */
        const double room = size > CHART_MIN ? 0.1 * size : 1;
        low -= room;
        high += room;
    }
    chart_axis a = {.low = low, .high = high, .step = round_step((high - low) / ticks)};
    a.first = ceil(low / a.step - 1e-9);
    a.last = floor(high / a.step + 1e-9);
    return a;
}

void chart_tick(const chart_axis *a, double value, char *text, size_t size)
{
    const double largest = fmax(fabs(a->low), fabs(a->high));
    if (a->step < 1e-6 || largest >= 1e9) {
        snprintf(text, size, "%g", value);
        return;
    }
    const int decimals = a->step < 1 ? (int)ceil(-log10(a->step) - 1e-9) : 0;
    char plain[32];
    int n = snprintf(plain, sizeof plain, "%.*f", decimals, fabs(value));
    const int whole = n - (decimals ? decimals + 1 : 0);
    size_t used = 0;
    if (value < -a->step / 2 && size > 1)
        text[used++] = '-';
    for (int i = 0; i < n && used + 2 < size; i++) {
        if (i && i < whole && whole > 4 && (whole - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = plain[i];
    }
    text[used] = '\0';
}

/* Returns the position of a value on the axis, from 0 to 1. */
static double position_on(const chart_axis *a, double value) { return (value - a->low) / (a->high - a->low); }

/* Returns an axis with margins at both ends, which begins below zero only if a value is below zero. Without values it
 * is from 0 to 1. */
static chart_axis roomy_axis(double low, double high, int ticks)
{
    if (!(low <= high))
        return chart_axis_over(0, 1, ticks);
    const double room = 0.03 * (high - low);
    return chart_axis_over(low >= 0 ? fmax(0, low - room) : low - room, high + room, ticks);
}

static chart_axis x_axis(const chart *c, int ticks)
{
    double low = INFINITY, high = -INFINITY;
    for (int p = 0; p < c->n; p++) {
        for (int k = 0; k < c->panel[p].n; k++) {
            const chart_curve *v = &c->panel[p].curve[k];
            if (v->n > 0) {
                low = fmin(low, v->point[0].x);
                high = fmax(high, v->point[v->n - 1].x);
            }
        }
    }
    return roomy_axis(low, high, ticks);
}

static chart_axis y_axis(const chart_panel *p, int ticks)
{
    double low = INFINITY, high = -INFINITY;
    for (int k = 0; k < p->n; k++) {
        for (int64_t i = 0; i < p->curve[k].n; i++) {
            low = fmin(low, p->curve[k].point[i].low);
            high = fmax(high, p->curve[k].point[i].high);
        }
    }
    return roomy_axis(low, high, ticks);
}

/* ---- SVG */

/* Medium lightness, to be visible on white and on black; neighbors differ in lightness or hue. */
static const color palette[] = {{0x2f, 0x6f, 0xde}, {0xd9, 0x73, 0x0d}, {0x1a, 0x98, 0x50}, {0xd6, 0x33, 0x6c},
                                {0x82, 0x50, 0xdf}, {0x0a, 0x93, 0x96}, {0x9c, 0x6b, 0x30}, {0x6e, 0x77, 0x81}};
enum { N_COLORS = sizeof palette / sizeof *palette };

color chart_color(int number) { return palette[number % N_COLORS]; }

static const char *const dashes[] = {NULL, "7 4", "2 3", "9 3 2 3"};
enum { N_DASHES = sizeof dashes / sizeof *dashes };

static const char *dash_of(const chart_curve *v) { return dashes[(v->dash + v->color / N_COLORS) % N_DASHES]; }

enum { INK, PALE, GRID, CARD, N_TONES };
static const color light[N_TONES] = {{0x24, 0x29, 0x33}, {0x6b, 0x72, 0x81}, {0xe5, 0xe7, 0xeb}, {0xff, 0xff, 0xff}};
static const color dark[N_TONES] = {{0xe6, 0xed, 0xf3}, {0x9d, 0xa7, 0xb3}, {0x2d, 0x33, 0x3b}, {0x10, 0x14, 0x1a}};

enum { WIDTH = 760, MARGIN = 24, LEGEND_ROW = 22, NOTE_ROW = 26 };
static const double tick_size = 12, name_size = 13;

typedef struct frame {
    FILE *f;
    chart_axis x, y;
    double left, top, width, height; /* of the panel's rectangle */
} frame;

static double at_x(const frame *r, double x) { return r->left + r->width * position_on(&r->x, x); }
static double at_y(const frame *r, double y) { return r->top + r->height * (1 - position_on(&r->y, y)); }

static void draw_axes(const frame *r, bool last)
{
    svg_font down = {.size = tick_size, .fill = light[PALE], .anchor = 'm'}, left = down;
    left.anchor = 'e';
    char text[32];
    for (double k = r->y.first; k <= r->y.last; k++) {
        const double y = at_y(r, k * r->y.step);
        svg_line(r->f, r->left, y, r->left + r->width, y, 1, light[GRID]);
        chart_tick(&r->y, k * r->y.step, text, sizeof text);
        svg_text(r->f, r->left - 8, y, &left, text);
    }
    const double bottom = r->top + r->height;
    svg_line(r->f, r->left, bottom, r->left + r->width, bottom, 1, light[PALE]);
    for (double k = r->x.first; k <= r->x.last; k++) {
        const double x = at_x(r, k * r->x.step);
        svg_line(r->f, x, bottom, x, bottom + 4, 1, light[PALE]);
        chart_tick(&r->x, k * r->x.step, text, sizeof text);
        if (last)
            svg_text(r->f, x, bottom + 15, &down, text);
    }
}

/* Selects the points of a curve in pixels. Of all points in a pixel column it keeps the first, lowest, highest and
 * last, which draw the same line. Returns their number. */
static int64_t thin(const frame *r, const chart_curve *v, double *x /* [n] */, double *y)
{
    int64_t count = 0;
    for (int64_t i = 0, next; i < v->n; i = next) {
        const double column = floor(at_x(r, v->point[i].x));
        int64_t low = i, high = i;
        for (next = i + 1; next < v->n && floor(at_x(r, v->point[next].x)) == column; next++) {
            low = v->point[next].y < v->point[low].y ? next : low;
            high = v->point[next].y > v->point[high].y ? next : high;
        }
        const int64_t some[] = {i, low < high ? low : high, low < high ? high : low, next - 1};
        for (int k = 0; k < 4; k++) {
            if (k && some[k] == some[k - 1])
                continue;
            x[count] = at_x(r, v->point[some[k]].x);
            y[count++] = at_y(r, v->point[some[k]].y);
        }
    }
    return count;
}

static void draw_point(const frame *r, const chart *c, const chart_panel *p, const chart_curve *v, const chart_point *q)
{
    const double x = at_x(r, q->x), y = at_y(r, q->y);
    const color paint = chart_color(v->color);
    char tip[512];
    int n = snprintf(tip, sizeof tip, "%.*s, %.*s %g: %.*s %.6g", utf8_prefix(v->name, 100), v->name,
                     utf8_prefix(c->x_name, 80), c->x_name, q->x, utf8_prefix(p->name, 80), p->name, q->y);
    if (q->low < q->high) {
        const double ends[] = {at_y(r, q->low), at_y(r, q->high)};
        svg_line(r->f, x, ends[0], x, ends[1], 1.5, paint);
        for (int k = 0; k < 2; k++)
            svg_line(r->f, x - 4, ends[k], x + 4, ends[k], 1.5, paint);
        snprintf(tip + n, sizeof tip - (size_t)n, " (%.6g to %.6g)", q->low, q->high);
    }
    svg_circle(r->f, x, y, 3, paint, tip);
}

/* Marks the points if there are only a few. */
static int draw_curve(const frame *r, const chart *c, const chart_panel *p, const chart_curve *v)
{
    enum { MAX_MARKS = 40 };
    double *x = malloc(((size_t)v->n + 1) * sizeof *x), *y = malloc(((size_t)v->n + 1) * sizeof *y);
    const int code = x && y ? 0 : -1;
    if (!code)
        svg_polyline(r->f, x, y, thin(r, v, x, y), 2, dash_of(v), chart_color(v->color));
    for (int64_t i = 0; !code && v->n <= MAX_MARKS && i < v->n; i++)
        draw_point(r, c, p, v, &v->point[i]);
    free(x);
    free(y);
    return code;
}

/* A single curve with the name of its axis needs no legend. */
static bool has_legend(const chart_panel *p) { return p->n > 1 || (p->n == 1 && strcmp(p->curve->name, p->name)); }

/* Writes the legend in as many rows as necessary; f NULL: only counts. Returns the number of rows. */
static int legend(FILE *f, const chart_panel *p, double left, double top)
{
    const svg_font font = {.size = name_size, .fill = light[INK]};
    double x = left;
    int rows = 1;
    if (!has_legend(p))
        return 0;
    for (int k = 0; k < p->n; k++) {
        const chart_curve *v = &p->curve[k];
        const double width = 34 + svg_text_width(v->name, name_size) + 18;
        if (x > left && x + width > WIDTH - MARGIN) {
            x = left;
            rows++;
        }
        const double y = top + (rows - 0.5) * LEGEND_ROW;
        if (f) {
            svg_polyline(f, (const double[]){x, x + 26}, (const double[]){y, y}, 2, 2.5, dash_of(v),
                         chart_color(v->color));
            svg_text(f, x + 34, y, &font, v->name);
        }
        x += width;
    }
    return rows;
}

/* Returns the width of the tick labels of all panels. */
static double left_of(const chart *c)
{
    double widest = 0;
    for (int i = 0; i < c->n; i++) {
        const chart_axis a = y_axis(&c->panel[i], 5);
        for (double k = a.first; k <= a.last; k++) {
            char text[32];
            chart_tick(&a, k * a.step, text, sizeof text);
            widest = fmax(widest, svg_text_width(text, tick_size));
        }
    }
    return MARGIN + 18 + widest + 8;
}

static int draw_panel(FILE *f, const chart *c, int i, double left, double *top, double height)
{
    const chart_panel *p = &c->panel[i];
    *top += legend(f, p, left, *top) * LEGEND_ROW + 8;
    const frame r = {.f = f,
                     .x = x_axis(c, 6),
                     .y = y_axis(p, 5),
                     .left = left,
                     .top = *top,
                     .width = WIDTH - MARGIN - 12 - left,
                     .height = height};
    const bool last = i == c->n - 1;
    draw_axes(&r, last);
    const svg_font name = {.size = name_size, .fill = light[INK], .anchor = 'm', .rotate = -90};
    svg_text(f, MARGIN + 6, r.top + height / 2, &name, p->name);
    int code = 0;
    for (int k = 0; !code && k < p->n; k++)
        code = draw_curve(&r, c, p, &p->curve[k]);
    *top += height + (last ? 26 : 14);
    return code;
}

int chart_svg(FILE *f, const chart *c)
{
    const double panel = c->n > 1 ? 190 : 300, left = left_of(c);
    double top = MARGIN + 30, height = top + 26 + 12 + MARGIN + (c->note ? NOTE_ROW : 0);
    for (int i = 0; i < c->n; i++)
        height += legend(NULL, &c->panel[i], left, 0) * LEGEND_ROW + 8 + panel + (i < c->n - 1 ? 14 : 0);
    svg_begin(f, WIDTH, ceil(height), c->title);
    svg_dark(f, light, dark, N_TONES);
    svg_rect(f, 0, 0, WIDTH, ceil(height), 10, light[CARD], NULL);
    const double size = svg_bold_size(c->title, 17, WIDTH - 2 * MARGIN);
    svg_text(f, MARGIN, MARGIN + 10, &(svg_font){.size = size, .fill = light[INK], .bold = 1}, c->title);
    int code = 0;
    for (int i = 0; !code && i < c->n; i++)
        code = draw_panel(f, c, i, left, &top, panel);
    const svg_font name = {.size = name_size, .fill = light[INK], .anchor = 'm'};
    svg_text(f, (left + WIDTH - MARGIN - 12) / 2, top + 8, &name, c->x_name);
    if (c->note)
        svg_text(f, left, top + 8 + NOTE_ROW, &(svg_font){.size = tick_size, .fill = light[PALE]}, c->note);
    svg_end(f);
    return code;
}

/* ---- terminal */

enum { ROWS = 12, MAX_COLUMNS = 200, LABEL = 10 /* columns of the ticks */ };
static const char marks[] = "*+ox#@%&";

static char mark_of(int k) { return marks[k % (int)(sizeof marks - 1)]; }

/* Returns the curve's height in the column [low, high) of x: the mean of its points there, otherwise a value
 * interpolated between neighbors; NAN outside of the curve. *from: the first point to read, updated for the next
 * column. */
static double height_at(const chart_curve *v, double low, double high, int64_t *from)
{
    double sum = 0;
    int64_t i = *from;
    while (i < v->n && v->point[i].x < low)
        i++;
    *from = i;
    for (; i < v->n && v->point[i].x < high; i++)
        sum += v->point[i].y;
    if (i > *from)
        return sum / (double)(i - *from);
    if (i == 0 || i == v->n)
        return NAN;
    const chart_point *a = &v->point[i - 1], *b = &v->point[i];
    return a->y + (b->y - a->y) * ((low + high) / 2 - a->x) / (b->x - a->x);
}

/* Draws the characters of a panel: cell [ROWS][columns] gets the number of the curve there, -1: none. */
static void sketch(const chart_panel *p, const chart_axis *x, const chart_axis *y, int columns,
                   int (*cell)[MAX_COLUMNS])
{
    memset(cell, -1, ROWS * sizeof *cell);
    const double width = (x->high - x->low) / columns;
    for (int k = p->n - 1; k >= 0; k--) { /* the first stays on top */
        int64_t from = 0;
        for (int j = 0; j < columns; j++) {
            const double end = j == columns - 1 ? INFINITY : x->low + (j + 1) * width;
            const double v = height_at(&p->curve[k], x->low + j * width, end, &from);
            if (!isnan(v))
                cell[(int)fmin(ROWS * (1 - position_on(y, v)), ROWS - 1)][j] = k;
        }
    }
}

/* Writes the tick in this row, if there is one. */
static void row_label(const chart_axis *y, int row, char *text, size_t size)
{
    *text = '\0';
    for (double k = y->first; k <= y->last; k++)
        if ((int)fmin(ROWS * (1 - position_on(y, k * y->step)), ROWS - 1) == row)
            chart_tick(y, k * y->step, text, size);
}

/* Prints the ticks of x that do not overlap. A narrow terminal has none. */
static void print_x_labels(FILE *f, const chart *c, const chart_axis *x, int indent, int columns)
{
    int column = fprintf(f, "%*s", indent, "");
    for (double k = x->first; k <= x->last && columns >= 12; k++) {
        char text[32];
        chart_tick(x, k * x->step, text, sizeof text);
        const int begin = indent + (int)(position_on(x, k * x->step) * (columns - 1)) - (int)strlen(text) / 2;
        if (begin > column || column == indent)
            column += fprintf(f, "%*s%s", begin > column ? begin - column : 0, "", text);
    }
    fprintf(f, "  %s\n", c->x_name);
}

static void print_mark(FILE *f, const chart_curve *v, int k, int colors)
{
    if (colors)
        terminal_color(f, colors, 38, chart_color(v->color));
    fputc(mark_of(k), f);
    if (colors)
        terminal_color_end(f);
}

static void print_legend(FILE *f, const chart_panel *p, int indent, int colors)
{
    fprintf(f, "%*s", indent, "");
    for (int k = 0; k < p->n; k++) {
        print_mark(f, &p->curve[k], k, colors);
        fputc(' ', f);
        utf8_field(f, p->curve[k].name, utf8_width(p->curve[k].name), 0);
        fputs(k < p->n - 1 ? "   " : "\n", f);
    }
}

/* Prints the rows of a panel with their tick labels, and the line below them. */
static void print_rows(FILE *f, const chart_panel *p, const chart_axis *x, int columns, int colors)
{
    static int cell[ROWS][MAX_COLUMNS];
    const chart_axis y = y_axis(p, 5);
    sketch(p, x, &y, columns, cell);
    for (int row = 0; row < ROWS; row++) {
        char label[32];
        row_label(&y, row, label, sizeof label);
        fprintf(f, "%*s |", LABEL, label);
        int end = columns;
        while (end > 0 && cell[row][end - 1] < 0)
            end--;
        for (int j = 0; j < end; j++) {
            const int k = cell[row][j];
            if (k < 0)
                fputc(' ', f);
            else
                print_mark(f, &p->curve[k], k, colors);
        }
        fputc('\n', f);
    }
    fprintf(f, "%*s +", LABEL, "");
    for (int j = 0; j < columns; j++)
        fputc('-', f);
    fputc('\n', f);
}

void chart_terminal(FILE *f, const chart *c, int colors)
{
    int columns = terminal_columns(f) - LABEL - 2 - 2 - utf8_width(c->x_name);
    columns = columns < 4 ? 4 : columns > MAX_COLUMNS ? MAX_COLUMNS : columns;
    const chart_axis x = x_axis(c, columns / 12 + 1);
    for (int i = 0; i < c->n; i++) {
        const chart_panel *p = &c->panel[i];
        const int width = utf8_width(p->name);
        fprintf(f, "%s%*s", i ? "\n" : "", width < LABEL ? LABEL - width : 0, "");
        utf8_field(f, p->name, width, 0);
        fputc('\n', f);
        print_rows(f, p, &x, columns, colors);
        print_x_labels(f, c, &x, LABEL + 2, columns);
        if (has_legend(p))
            print_legend(f, p, LABEL + 2, colors);
    }
    if (c->note)
        fprintf(f, "%s\n", c->note);
}
