#include "page.h"

#include "attend_util.h"
#include "cli/base/command.h"
#include "cli/base/terminal.h"
#include "cli/base/utf8.h"
#include "cli/draw/color.h"
#include "cli/draw/picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80, PROSE = 3, FIGURES = 6, ROW_LABEL = 16, COLUMN_LABEL = 10, FIGURE_DECIMALS = 4 };

const char *page_text(const page *p, text t) { return p->japanese ? t.ja : t.en; }

/* Prints an empty line between different kinds of output, and between paragraphs. */
static void begin(page *p, int kind)
{
    if (p->last != PAGE_NOTHING && (p->last != kind || kind == PAGE_PROSE))
        fputc('\n', p->out);
    p->last = kind;
}

/* ---- memory */

float *page_floats(page *p, int64_t count)
{
    static float none;
    float *x = p->n_blocks < PAGE_MAX_BLOCKS ? calloc((size_t)count, sizeof *x) : NULL;
    if (!x) {
        if (p->status == ATT_OK)
            p->status = att_fail(p->ctx, ATT_ERR_MEMORY, "no memory for %" PRId64 " numbers", count);
        return &none;
    }
    return p->block[p->n_blocks++] = x;
}

void page_close(page *p)
{
    while (p->n_blocks > 0)
        free(p->block[--p->n_blocks]);
}

att_tensor page_matrix(page *p, const float *a, int64_t m, int64_t n)
{
    att_tensor t = {0};
    att_status s = att_wrap(&t, (float *)a, ATT_F32, ATT_DIMS(m, n), NULL);
    p->status = p->status == ATT_OK ? s : p->status;
    return t;
}

float *page_zeros(page *p, int64_t m, int64_t n, att_tensor *view)
{
    float *a = page_floats(p, m * n);
    *view = page_matrix(p, a, m, n);
    return a;
}

vectors page_vectors(page *p, const vectors *example) { return p->own ? *p->own : *example; }

int64_t page_query(page *p, const vectors *v)
{
    if (p->query > v->n && p->status == ATT_OK)
        p->status =
            att_fail(p->ctx, ATT_ERR_ARGUMENT, "query %" PRId64 ": there are %" PRId64 " vectors", p->query, v->n);
    if (p->query >= 1 && p->query <= v->n)
        return p->query - 1;
    return v->n > 1 ? 1 : 0;
}

/* ---- prose */

static void style(const page *p, const char *escape)
{
    if (p->colors)
        cli_terminal_control(p->out, escape);
}

/* Returns whether a set has the character. In Japanese some characters must not begin a line, and some must not end
 * one. */
static int holds(const char *set, uint32_t code)
{
    while (*set) {
        if (utf8_next(&set) == code)
            return 1;
    }
    return 0;
}
static int clings_left(uint32_t c)
{
    return holds("、。，．・：；？！」』）】〉》ー々〜…ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ", c);
}
static int clings_right(uint32_t c) { return holds("「『（【〈《", c); }

/* Returns the end of the unbreakable text at s: a word, or a wide character with attached punctuation. */
static const char *piece_end(const char *s)
{
    uint32_t before = utf8_next(&s);
    while (*s && *s != ' ') {
        const char *next = s;
        uint32_t code = utf8_next(&next);
        int joined = utf8_columns(before) < 2 && utf8_columns(code) < 2;
        if (!joined && !clings_left(code) && !clings_right(before))
            break;
        before = code;
        s = next;
    }
    return s;
}

static void print_wrapped(page *p, const char *s, int indent)
{
    const int terminal = terminal_columns(p->out), columns = terminal < COLUMNS ? terminal : COLUMNS;
    int used = 0;
    while (*s) {
        int space = *s == ' ' && used > 0;
        s += strspn(s, " ");
        if (!*s)
            break;
        const char *end = piece_end(s);
        char piece[512];
        snprintf(piece, sizeof piece, "%.*s", (int)(end - s), s);
        int width = utf8_width(piece);
        if (used > 0 && indent + used + space + width > columns - 2) {
            fputc('\n', p->out);
            used = space = 0;
        }
        fprintf(p->out, "%*s%s", used == 0 ? indent : space, "", piece);
        used += space + width;
        s = end;
    }
    fputc('\n', p->out);
}

static int padding(const char *s, int width)
{
    const int columns = utf8_width(s);
    return columns < width ? width - columns : 0;
}

page_cell page_left(const page *p, text t, int width)
{
    const char *s = page_text(p, t);
    page_cell c;
    snprintf(c.text, sizeof c.text, "%s%*s", s, padding(s, width), "");
    return c;
}

page_cell page_right(const page *p, text t, int width)
{
    const char *s = page_text(p, t);
    page_cell c;
    snprintf(c.text, sizeof c.text, "%*s%s", padding(s, width), "", s);
    return c;
}

void page_title(page *p, text t)
{
    const char *s = p->title = page_text(p, t);
    style(p, "\033[1m");
    fprintf(p->out, "%s\n", s);
    for (int i = utf8_width(s); i > 0; i--)
        fputs("═", p->out);
    fputc('\n', p->out);
    style(p, "\033[0m");
    p->last = PAGE_PROSE;
}

void page_step(page *p, text t)
{
    if (p->status != ATT_OK)
        return;
    begin(p, PAGE_PROSE);
    style(p, "\033[1m");
    fprintf(p->out, "%d  %s\n", ++p->step, page_text(p, t));
    style(p, "\033[0m");
}

void page_print(page *p, text format, ...)
{
    char *s = NULL;
    va_list arguments;
    if (p->status != ATT_OK)
        return;
    va_start(arguments, format);
    if (vasprintf(&s, page_text(p, format), arguments) >= 0) {
        begin(p, PAGE_PROSE);
        print_wrapped(p, s, PROSE);
        free(s);
    } else {
        p->status = att_fail(p->ctx, ATT_ERR_MEMORY, "out of memory");
    }
    va_end(arguments);
}

const text page_query_name = {"query (row)", "クエリ（行）"}, page_key_name = {"key (column)", "キー（列）"};

/* ---- formulas, code, numbers */

void page_formula(page *p, const char *formula)
{
    if (p->status != ATT_OK)
        return;
    begin(p, PAGE_PROSE);
    fprintf(p->out, "%*s%s\n", FIGURES, "", formula);
}

void page_line(page *p, const char *format, ...)
{
    char *s = NULL;
    va_list arguments;
    if (p->status != ATT_OK)
        return;
    va_start(arguments, format);
    if (vasprintf(&s, format, arguments) >= 0) {
        begin(p, PAGE_FIGURES);
        fprintf(p->out, "%*s%s\n", *s ? FIGURES : 0, "", s);
        free(s);
    } else {
        p->status = att_fail(p->ctx, ATT_ERR_MEMORY, "out of memory");
    }
    va_end(arguments);
}

/* Returns the length of the line of code that begins at s: up to the end of a statement or to a block's brace; if that
 * is too long, up to a break in the fewest parentheses, preferably after a comma or a parenthesis, as late as possible;
 * at = only if there is no comma in parentheses. *nesting of parentheses is updated. */
static size_t code_line(const char *s, size_t room, int *nesting)
{
    size_t length = 0, end = 0;
    int depth = *nesting, best = 1000, best_depth = depth;
    for (; s[length]; length++) {
        char c = s[length];
        int opens = c == '(' || c == '[' || (c == '{' && (depth > 0 || (length > 1 && s[length - 2] == '=')));
        int closes = depth > 0 && strchr(")]}", c);
        depth += opens - closes;
        if (c == ' ' && length > 0) {
            int assigns = s[length - 1] == '=' || s[length + 1] == '=';
            int rank = 4 * depth + (assigns ? 5 : strchr(",)", s[length - 1]) ? 0 : 2);
            if (length <= room && rank <= best)
                end = length + 1, best = rank, best_depth = depth;
        }
        if (depth == 0 && !opens && !closes && strchr(";{}", c)) {
            length++;
            break;
        }
    }
    int fits = length <= room || end == 0;
    *nesting = fits ? depth : best_depth;
    return fits ? length : end;
}

void page_code(page *p, const char *code)
{
    if (p->status != ATT_OK)
        return;
    begin(p, PAGE_CODE);
    int braces = 0, nesting = 0, loops = 0; /* loops: a break after for (...) indents its body */
    while (*code) {
        size_t indent = FIGURES + 4 * (size_t)(braces - (*code == '}') + nesting + loops);
        size_t length = code_line(code, COLUMNS - 2 - indent, &nesting);
        char last = code[length - 1];
        braces += (last == '{') - (last == '}');
        loops = nesting == 0 && last == ' ' ? loops + 1 : 0;
        style(p, "\033[36m");
        fprintf(p->out, "%*s", (int)indent, "");
        for (size_t i = 0; i < length - (last == ' '); i++) {
            if (code[i] != ' ' || i == 0 || code[i - 1] != '(') /* a line break follows in the source */
                fputc(code[i], p->out);
        }
        fputc('\n', p->out);
        style(p, "\033[0m");
        code += length;
        code += strspn(code, " ");
    }
}

static const char *figure(char out[32], float v, int decimals)
{
    if (isnan(v)) /* inf / inf has a meaningless sign bit on some machines */
        return "NaN";
    if (fabsf(v) < 100000 || isinf(v))
        snprintf(out, 32, "%.*f", decimals, fabs(v) < 0.5 * pow(10, -decimals) ? 0.0 : v); /* no -0 */
    else
        snprintf(out, 32, "%.3e", v);
    return out;
}

static int fit(const char *const *labels, int64_t n, int min, int max)
{
    int width = min;
    for (int64_t i = 0; labels && i < n; i++) {
        int w = utf8_width(labels[i]);
        width = w > width ? w : width;
    }
    return width < max ? width : max;
}

void page_table(page *p, const char *const *rows, int64_t m, const char *const *columns, int64_t n, const float *a)
{
    page_table_rounded(p, FIGURE_DECIMALS, rows, m, columns, n, a);
}

void page_table_rounded(page *p, int decimals, const char *const *rows, int64_t m, const char *const *columns,
                        int64_t n, const float *a)
{
    char text[32];
    if (p->status != ATT_OK)
        return;
    begin(p, PAGE_FIGURES);
    int label = fit(rows, m, 7, ROW_LABEL), cell = fit(columns, n, 6, COLUMN_LABEL);
    for (int64_t i = 0; i < m * n; i++) {
        int w = (int)strlen(figure(text, a[i], decimals));
        cell = w > cell ? w : cell;
    }
    int64_t room = (COLUMNS - FIGURES - label) / (cell + 2);
    room = room > 0 ? room : 1;
    for (int64_t first = 0; first < n; first += room) {
        int64_t last = first + room < n ? first + room : n;
        if (first > 0 && m > 1)
            fputc('\n', p->out);
        if (columns) {
            fprintf(p->out, "%*s", FIGURES + label, "");
            for (int64_t j = first; j < last; j++) {
                fputs("  ", p->out);
                utf8_field(p->out, columns[j], cell, 1);
            }
            fputc('\n', p->out);
        }
        for (int64_t i = 0; i < m; i++) {
            fprintf(p->out, "%*s", FIGURES, "");
            utf8_field(p->out, rows[i], label, 0);
            for (int64_t j = first; j < last; j++)
                fprintf(p->out, "  %*s", cell, figure(text, a[i * n + j], decimals));
            fputc('\n', p->out);
        }
    }
}

void page_drawing(page *p, page_draw *draw, const void *drawing)
{
    picture file;
    if (p->status != ATT_OK || !p->svg || p->code)
        return;
    p->code = picture_open(&file, p->svg);
    if (p->code)
        return;
    if (draw(file.svg, p, drawing))
        p->code = cli_fail_memory();
    p->code = picture_close(&file, p->code);
}

static int draw_heatmap(FILE *f, const page *p, const void *drawing)
{
    heatmap_svg(f, p->title, drawing);
    return 0; /* picture_close reports write errors */
}

static int draw_chart(FILE *f, const page *p, const void *drawing)
{
    (void)p;
    return chart_svg(f, drawing);
}

void page_picture(page *p, const heatmap *h)
{
    if (p->status != ATT_OK)
        return;
    begin(p, PAGE_FIGURES);
    heatmap_terminal(p->out, h, p->colors);
    page_drawing(p, draw_heatmap, h);
}

void page_chart(page *p, const char *x_name, const chart_panel *panel, int n)
{
    if (p->status != ATT_OK)
        return;
    const chart c = {.title = p->title, .x_name = x_name, .panel = panel, .n = n};
    begin(p, PAGE_FIGURES);
    chart_terminal(p->out, &c, p->colors);
    page_drawing(p, draw_chart, &c);
}

void page_rows(page *p, const char *const *labels, const float *const *rows, int m, int64_t width)
{
    enum { SHOWN = 6 };
    const int64_t n = width < SHOWN ? width : SHOWN;
    float *a = page_floats(p, m * n);
    for (int i = 0; i < m && p->status == ATT_OK; i++)
        memcpy(a + i * n, rows[i], (size_t)n * sizeof *a);
    page_table_rounded(p, 3, labels, m, NULL, n, a);
}

void page_grid(page *p, const float *a, const int64_t grid[2], float scale, int decimals)
{
    char name[PAGE_MAX_GRID][32];
    const char *labels[PAGE_MAX_GRID];
    float *scaled = page_floats(p, grid[0] * grid[1]);
    for (int64_t i = 0; i < grid[0]; i++) {
        snprintf(name[i], sizeof name[i], page_text(p, (text){"row %" PRId64, "行%" PRId64}), i + 1);
        labels[i] = name[i];
    }
    for (int64_t i = 0; i < grid[0] * grid[1] && p->status == ATT_OK; i++)
        scaled[i] = scale * a[i];
    page_table_rounded(p, decimals, labels, grid[0], NULL, grid[1], scaled);
}

void page_heatmap(page *p, const char *const *labels, int64_t n, const float *weights)
{
    heatmap h = heatmap_square(labels, n, weights);
    h.row_name = page_text(p, page_query_name);
    h.column_name = page_text(p, page_key_name);
    page_picture(p, &h);
}

/* digits: 5 or 6 */
static void agree(page *p, int digits, text what, const float *a, const float *b, int64_t count)
{
    const text number = digits == 6 ? (text){"six", "六"} : (text){"five", "五"};
    float largest = 0, difference = 0;
    if (p->status != ATT_OK)
        return;
    for (int64_t i = 0; i < count; i++) {
        largest = fmaxf(largest, fmaxf(fabsf(a[i]), fabsf(b[i])));
        difference = fmaxf(difference, fabsf(a[i] - b[i]));
    }
    if (difference <= (digits == 6 ? 1e-6f : 1e-5f) * largest)
        page_print(p, (text){"%s: the same to %s digits.", "%s：%s桁まで一致します。"}, page_text(p, what),
                   page_text(p, number));
    else
        page_print(p, (text){"%s: they differ by up to %.2g.", "%s：最大%.2gの差があります。"}, page_text(p, what),
                   difference);
}

void page_agree(page *p, text what, const float *a, const float *b, int64_t count) { agree(p, 6, what, a, b, count); }

void page_agree_roughly(page *p, text what, const float *a, const float *b, int64_t count)
{
    agree(p, 5, what, a, b, count);
}

void page_answer(page *p, att_status s)
{
    if (s == ATT_ERR_MEMORY && p->status == ATT_OK)
        p->status = s;
    if (p->status != ATT_OK)
        return;
    p->last = PAGE_FIGURES; /* directly after its call */
    char line[1024];
    snprintf(line, sizeof line, "→ ATT_%s%s%s", att_status_name(s), s == ATT_OK ? "" : ": ",
             s == ATT_OK ? "" : att_error(p->ctx));
    print_wrapped(p, line, FIGURES);
}

att_status page_config(att_ctx *ctx, const char *folder, json_t **out)
{
    char path[sizeof(att_model_path) + sizeof "/config.json"];
    json_error_t e;
    snprintf(path, sizeof path, "%s/config.json", folder);
    *out = json_load_file(path, 0, &e);
    return *out ? ATT_OK : att_fail(ctx, ATT_ERR_FORMAT, "%s: %s", path, e.text);
}
