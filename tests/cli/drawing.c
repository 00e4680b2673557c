/* Heat maps and curves on a terminal and as SVG, colors, widths of text. */
#include "cli/base/utf8.h"
#include "cli/draw/chart.h"
#include "cli/draw/color.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/svg.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const tokyo[] = {"私", "は", "東京", "タワー", "を", "見", "まし", "た", "。"};
enum { TOKYO = sizeof tokyo / sizeof *tokyo };

/* The output of a drawing function, as a string that the caller frees. */
typedef struct memory {
    char *text;
    size_t size;
} memory;

static FILE *memory_open(memory *m) { return open_memstream(&m->text, &m->size); }

static void fill(float *w /* [n, n] */, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            w[i * n + j] = i == j ? 0.5f : 0.5f / (float)(n - 1);
    }
}

static char *draw_map(const heatmap *h, int colors)
{
    memory m;
    FILE *f = memory_open(&m);
    assert_int_equal(heatmap_terminal(f, h, colors), 0);
    fclose(f);
    return m.text;
}

static char *draw_map_svg(const char *title, const heatmap *h)
{
    memory m;
    FILE *f = memory_open(&m);
    assert_int_equal(heatmap_svg(f, title, h), 0);
    fclose(f);
    return m.text;
}

static char *draw(const char *const *labels, int64_t n, const float *w, int colors)
{
    const heatmap h = heatmap_square(labels, n, w);
    return draw_map(&h, colors);
}

static char *draw_svg(const char *title, const char *const *labels, int64_t n, const float *w)
{
    const heatmap h = heatmap_square(labels, n, w);
    return draw_map_svg(title, &h);
}

/* On a terminal with this number of columns. */
static void assert_drawn(const heatmap *h, const char *columns, const char *expected)
{
    setenv("COLUMNS", columns, 1);
    char *text = draw_map(h, 0);
    unsetenv("COLUMNS");
    assert_string_equal(text, expected);
    free(text);
}

static int lines(const char *s)
{
    int count = 0;
    for (; *s; s++)
        count += *s == '\n';
    return count;
}

static void text_is_measured_in_terminal_columns(void **state)
{
    (void)state;
    assert_int_equal(utf8_width("übersetzen"), 10);
    assert_int_equal(utf8_width("東京タワー"), 10);
    assert_int_equal(utf8_width("か\xE3\x82\x99"), 2); /* a combining mark takes no column */
    assert_int_equal(utf8_width("\xFF\x01"), 2);       /* each shows as U+FFFD */
    assert_int_equal(utf8_width("\xE6\x9D"), 1);       /* cut off within a character: one U+FFFD */
    assert_int_equal(utf8_width("\xC0\x80"), 2);       /* a long form of zero */
    assert_int_equal(utf8_width("\xED\xA0\x80"), 3);   /* a surrogate */
}

static void a_field_is_padded_or_cut_to_its_width(void **state)
{
    static const struct {
        const char *text;
        int width, right;
        const char *shown;
    } cases[] = {{"ab", 4, 0, "ab  "},
                 {"ab", 4, 1, "  ab"},
                 {"東京", 5, 1, " 東京"},
                 {"東京タワー", 6, 0, "東京… "},
                 {"abcdef", 4, 0, "abc…"},
                 {"abcdef", 4, 1, "abc…"},
                 {"", 2, 0, "  "},
                 {"a\tb", 3, 0,
                  "a\xEF\xBF\xBD"
                  "b"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory m;
        FILE *f = memory_open(&m);
        utf8_field(f, cases[i].text, cases[i].width, cases[i].right);
        fclose(f);
        assert_string_equal(m.text, cases[i].shown);
        free(m.text);
    }
}

static void code_points_survive_being_read_and_written(void **state)
{
    const uint32_t codes[] = {0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, 0x10FFFF};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        memory m;
        FILE *f = memory_open(&m);
        utf8_put(f, codes[i]);
        fclose(f);
        const char *s = m.text;
        assert_int_equal(utf8_next(&s), codes[i]);
        assert_int_equal(*s, 0);
        free(m.text);
    }
}

/* 8-bit rounding moves the lightness by less than 0.006 at the dark end, where it is steepest. */
static void the_ramp_darkens_evenly(void **state)
{
    double first = color_lightness(color_ramp(0)), last = color_lightness(color_ramp(1));
    (void)state;
    assert_true(first > 0.95 && last < 0.3);
    for (int i = 0; i <= 100; i++) {
        double expected = first + (last - first) * i / 100;
        assert_true(fabs(color_lightness(color_ramp(i / 100.0)) - expected) < 0.006);
    }
    color nan = color_ramp(NAN), zero = color_ramp(0), above = color_ramp(7), one = color_ramp(1);
    assert_memory_equal(&nan, &zero, sizeof nan);
    assert_memory_equal(&above, &one, sizeof above);
}

static void columns_of_a_japanese_sentence_line_up(void **state)
{
    float w[TOKYO * TOKYO];
    (void)state;
    fill(w, TOKYO);
    char *text = draw(tokyo, TOKYO, w, 0);
    assert_int_equal(lines(text), TOKYO + 1);
    assert_non_null(strstr(text, "タワー   0.06   0.06   0.06   0.50"));
    int width = 0;
    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        assert_true(width == 0 || utf8_width(line) == width);
        width = utf8_width(line);
    }
    free(text);
}

static void long_sentences_are_cut_into_panels_that_fit(void **state)
{
    enum { N = 70 };
    static char names[N][16];
    static const char *labels[N];
    static float w[N * N];
    const char *columns[] = {"40", "80", "200"};
    (void)state;
    for (int i = 0; i < N; i++)
        labels[i] = (snprintf(names[i], sizeof names[i], "tok%d", i), names[i]);
    fill(w, N);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        setenv("COLUMNS", columns[c], 1);
        char *text = draw(labels, N, w, 0);
        assert_true(lines(text) > N);
        assert_int_equal(lines(text) > 2 * N, c < 2);
        for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            assert_true(utf8_width(line) <= atoi(columns[c]));
        free(text);
    }
    unsetenv("COLUMNS");
}

/* Two rows by five columns; a narrow terminal has numbers in place of the columns' labels, which then come first. */
static void rows_and_columns_may_be_different(void **state)
{
    static const char *const row[] = {"two", "cats"}, *const column[] = {"ni", "hiki", "no", "neko", "desu"};
    static const float w[10] = {0.25f, 0.5f, 0, 0.25f, 0, 0.125f, 0, 0, 0.75f, 0.125f};
    const heatmap h = {row, column, 2, 5, w, "English", "Japanese", "e j"};
    (void)state;
    assert_drawn(&h, "80",
                 "e j       ni  hiki    no  neko  desu\n"
                 "   two  0.25  0.50  0.00  0.25  0.00\n"
                 "  cats  0.12  0.00  0.00  0.75  0.12\n");
    assert_drawn(&h, "30",
                 "0 ni  1 hiki  2 no  3 neko\n4 desu\n\n"
                 "e j        0  1  2  3  4\n"
                 "0 two     25 50  · 25  ·\n"
                 "1 cats    12  ·  · 75 12\n"
                 "          25 = 0.25   · < 0.005\n");
    char *svg = draw_map_svg("t", &h);
    assert_non_null(strstr(svg, ">English</text>"));
    assert_non_null(strstr(svg, ">Japanese</text>"));
    assert_non_null(strstr(svg, "cats → neko: 0.7500"));
    assert_null(strstr(svg, "cats → cats"));
    free(svg);
}

static void columns_without_labels_are_numbers(void **state)
{
    static const char *const row[] = {"odd", "even"};
    static const float w[6] = {0, 1, 0, 1, 0, 1};
    const heatmap h = {row, NULL, 2, 3, w, "kind", "number", "k n"};
    (void)state;
    assert_drawn(&h, "80",
                 "k n        0     1     2\n"
                 "   odd  0.00  1.00  0.00\n"
                 "  even  1.00  0.00  1.00\n");
    assert_drawn(&h, "22",
                 "k n        0  1  2\n"
                 "0 odd      ·100  ·\n"
                 "1 even   100  ·100\n"
                 "          25 = 0.25   · < 0.005\n");
    char *svg = draw_map_svg("t", &h);
    assert_non_null(strstr(svg, ">2</text>"));
    assert_non_null(strstr(svg, "even → 2: 1.0000"));
    free(svg);
}

static void colors_appear_only_when_asked_for(void **state)
{
    float w[TOKYO * TOKYO];
    (void)state;
    fill(w, TOKYO);
    char *plain = draw(tokyo, TOKYO, w, 0), *some = draw(tokyo, TOKYO, w, 256), *all = draw(tokyo, TOKYO, w, 1 << 24);
    assert_null(strchr(plain, '\033'));
    assert_non_null(strstr(some, "\033[48;5;231m")); /* the largest weight: near white */
    assert_non_null(strstr(all, "\033[48;2;"));
    assert_null(strstr(some, "\033[48;2;"));
    free(plain), free(some), free(all);
    memory m;
    FILE *f = memory_open(&m);
    assert_int_equal(terminal_colors(f), 0); /* no terminal */
    fclose(f);
    free(m.text);
}

static void values_that_are_no_numbers_are_drawn_too(void **state)
{
    const char *const labels[] = {"a", "b"};
    const float bad[] = {NAN, INFINITY, -1, 0}, zero[] = {0, 0, 0, 0};
    (void)state;
    free(draw(labels, 2, bad, 256));
    free(draw(labels, 2, zero, 0));
    free(draw(labels, 0, zero, 0));
    free(draw_svg("bad", labels, 2, bad));
    free(draw_svg("nothing", labels, 0, zero));
}

/* Reads XML with a tiny reader: tags nest, text holds no stray < or &. Returns the number of elements, or -1. */
static int count_elements(const char *s)
{
    char open[16][32];
    int depth = 0, count = 0;
    for (; *s; s++) {
        if (*s == '&' && strncmp(s, "&amp;", 5) && strncmp(s, "&lt;", 4) && strncmp(s, "&gt;", 4) &&
            strncmp(s, "&quot;", 6) && strncmp(s, "&#39;", 5))
            return -1;
        if (*s != '<')
            continue;
        const char *end = strchr(s, '>');
        int length = (int)strcspn(s + 1 + (s[1] == '/'), " />");
        if (!end || length == 0 || length > 31 || (s[1] == '/' && depth == 0))
            return -1;
        if (s[1] == '/') {
            if (strlen(open[--depth]) != (size_t)length || strncmp(open[depth], s + 2, (size_t)length) != 0)
                return -1;
        } else {
            count++;
            if (end[-1] != '/') {
                if (depth == 16)
                    return -1;
                snprintf(open[depth++], sizeof open[0], "%.*s", length, s + 1);
            }
        }
        s = end;
    }
    return depth == 0 ? count : -1;
}

static void the_svg_is_well_formed_whatever_the_labels_hold(void **state)
{
    const char *const labels[] = {"<b>&\"'", "]]>", "\x01\xFF", "東京", "-->", "", "\xEF\xBF\xBF", "🗼", "x"};
    float w[81];
    (void)state;
    fill(w, 9);
    char *text = draw_svg("a < b & \"c\"", labels, 9, w);
    assert_true(count_elements(text) > 81 * 3); /* a cell, its tooltip, its value */
    assert_null(strchr(text, '\x01'));
    assert_null(strstr(text, "\xEF\xBF\xBF")); /* U+FFFF may not stand in XML */
    assert_non_null(strstr(text, "a &lt; b &amp; &quot;c&quot;"));
    assert_int_equal(count_elements("<a><b></a></b>"), -1);
    assert_int_equal(count_elements("<a>1 & 2</a>"), -1);
    free(text);
}

static void the_svg_names_its_axes_and_tells_each_value(void **state)
{
    float w[TOKYO * TOKYO];
    (void)state;
    fill(w, TOKYO);
    char *text = draw_svg("私は東京タワーを見ました。", tokyo, TOKYO, w);
    assert_non_null(strstr(text, "<title>東京 → 東京: 0.5000</title>"));
    assert_non_null(strstr(text, "query (row)"));
    assert_non_null(strstr(text, "key (column)"));
    assert_true(strlen(text) < 60 * 1024);
    free(text);
}

static void a_full_disk_is_noticed(void **state)
{
    float w[TOKYO * TOKYO];
    (void)state;
    fill(w, TOKYO);
    FILE *f = fopen("/dev/full", "w");
    if (!f)
        skip(); /* not Linux */
    const heatmap h = heatmap_square(tokyo, TOKYO, w);
    assert_int_equal(heatmap_svg(f, "x", &h), -1);
    fclose(f);
}

/* ---- curves */

static chart_curve curve_of(const char *name, chart_point *point, int64_t n, double (*y)(int64_t i))
{
    for (int64_t i = 0; i < n; i++)
        point[i] = (chart_point){(double)i, y(i), y(i), y(i)};
    return (chart_curve){name, point, n, 0, 0};
}

static char *draw_chart(const chart *c, int svg)
{
    memory m;
    FILE *f = memory_open(&m);
    if (svg)
        assert_int_equal(chart_svg(f, c), 0);
    else
        chart_terminal(f, c, 0);
    fclose(f);
    return m.text;
}

static void ticks_are_at_round_numbers(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        int ticks;
        double step, first, last; /* the latter two in steps */
        const char *text;         /* of the last */
    } cases[] = {
        {0, 10, 5, 2, 0, 5, "10"},
        {0.13, 0.87, 5, 0.2, 1, 4, "0.8"},
        {-3, 7, 5, 2, -1, 3, "6"},
        {0, 123456, 5, 5e4, 0, 2, "100,000"},
        {0, 9000, 4, 5000, 0, 1, "5000"},
        {-1, -0.5, 4, 0.2, -5, -3, "-0.6"},
        {0, 4e-8, 4, 1e-8, 0, 4, "4e-08"},
        {0, 3e12, 3, 1e12, 0, 3, "3e+12"},
        {7, 7, 4, 0.5, 13, 15, "7.5"},
        {0, 0, 2, 1, -1, 1, "1"},
        {2e6, 4e6, 2, 1e6, 2, 4, "4,000,000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const chart_axis a = chart_axis_over(cases[i].low, cases[i].high, cases[i].ticks);
        char text[32];
        assert_true(fabs(a.step / cases[i].step - 1) < 1e-9);
        assert_true(a.first == cases[i].first && a.last == cases[i].last);
        chart_tick(&a, a.last * a.step, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

/* Lightness from 0 to 1: that of a page is near an end of it. */
static void curves_are_seen_on_light_and_dark_pages(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const double lightness = color_lightness(chart_color(i));
        assert_true(lightness > 0.5 && lightness < 0.7);
    }
}

static double wave(int64_t i) { return i == 54321 ? 10 : 0.01 * (double)(i % 7); }
static double rise(int64_t i) { return (double)i; }
static double same(int64_t i) { return 3 + 0 * (double)i; }

/* Not more than four points a column of pixels, and a single high one is among them. */
static void a_curve_of_many_points_is_a_small_picture(void **state)
{
    (void)state;
    enum { N = 100000 };
    chart_point *point = malloc(N * sizeof *point);
    const chart_curve curve = curve_of("loss", point, N, wave);
    const chart_panel panel = {"loss", &curve, 1};
    char *text = draw_chart(&(chart){"a", "step", &panel, 1, NULL}, 1), *p = strstr(text, "points=\"");
    assert_true(strlen(text) < 40 * 1024);
    double highest = INFINITY, lowest = 0;
    for (p = strchr(p, ','); p; p = strchr(p + 1, ',')) {
        const double y = strtod(p + 1, NULL);
        highest = fmin(highest, y);
        lowest = fmax(lowest, y);
    }
    assert_true(lowest - highest > 200);
    assert_true(count_elements(text) > 10);
    free(text);
    free(point);
}

static void a_chart_is_well_formed_whatever_its_names(void **state)
{
    (void)state;
    chart_point point[3][5];
    const chart_curve curves[] = {curve_of("a<b>&\"'", point[0], 5, rise),
                                  curve_of("\x01\xFF", point[1], 5, same),
                                  curve_of("東京", point[2], 1, same),
                                  {"", NULL, 0, 9, 3}};
    point[0][2].low = 1;
    const chart_panel panels[] = {{"]]>", curves, 4}, {"none", NULL, 0}, {"", curves + 3, 1}};
    const chart c = {"-->", "<x>", panels, 3, "a < b & c"};
    char *text = draw_chart(&c, 1), *sketched = draw_chart(&c, 0);
    assert_true(count_elements(text) > 11); /* points, at least */
    assert_non_null(strstr(text, "a&lt;b&gt;&amp;&quot;&#39;, &lt;x&gt; 2: ]]&gt; 2 (1 to 2)</title>"));
    assert_non_null(strstr(text, "prefers-color-scheme:dark"));
    assert_null(strchr(sketched, '\x01'));
    free(text);
    free(sketched);
    free(draw_chart(&(chart){"", "", NULL, 0, NULL}, 1));
}

/* The curve goes from the lower left to the upper right, one mark a column. */
static void a_sketch_shows_where_a_curve_goes(void **state)
{
    (void)state;
    chart_point point[101];
    const chart_curve curve = curve_of("y", point, 101, rise);
    const chart_panel panel = {"y", &curve, 1};
    setenv("COLUMNS", "60", 1);
    char *text = draw_chart(&(chart){"", "x", &panel, 1, NULL}, 0);
    unsetenv("COLUMNS");
    int row = 0, before = 1000;
    assert_int_equal(lines(text), 1 + 12 + 2);
    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), row++) {
        assert_true(utf8_width(line) <= 60);
        if (row == 0 || row > 12)
            continue;
        const char *first = strchr(line, '*'), *last = strrchr(line, '*');
        assert_true(first && last - line < before && last - first < 6);
        before = (int)(first - line);
    }
    free(text);
}

/* Returns whether this text is a separate element. */
static bool is_text(const char *svg, const char *text)
{
    char element[64];
    snprintf(element, sizeof element, ">%s</text>", text);
    return strstr(svg, element);
}

static void the_color_bar_ends_at_a_round_number(void **state)
{
    (void)state;
    static const struct {
        float max;
        const char *tick[4], *no_tick; /* some that are there, one that is not */
    } of[] = {
        {0.67f, {"0.8", "0.6", "0.2", "0.0"}, "1.0"}, {0.9f, {"1.0", "0.8", "0.2", "0.0"}, "1.2"},
        {1, {"1.0", "0.8", "0.2", "0.0"}, "1.2"},     {0.2f, {"0.20", "0.15", "0.05", "0.00"}, "0.25"},
        {40, {"40", "30", "10", "0"}, "50"},
    };
    static const char *const labels[] = {"a", "b"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const float w[4] = {of[i].max, 0, 0, 0};
        char *svg = draw_svg("Title", labels, 2, w);
        for (int k = 0; k < 4; k++)
            if (!is_text(svg, of[i].tick[k]))
                fail_msg("%g: no tick %s: %s", (double)of[i].max, of[i].tick[k], svg);
        assert_false(is_text(svg, of[i].no_tick));
        free(svg);
    }
}

static void a_piece_begins_with_a_space_mark_instead_of_a_bar(void **state)
{
    (void)state;
    static const char *const labels[] = {"▁Hund", "e"};
    const float w[4] = {1, 0, 0.5f, 0.5f};
    char *svg = draw_svg("Title", labels, 2, w);
    assert_true(is_text(svg, "␣Hund"));
    assert_non_null(strstr(svg, "e → ␣Hund: 0.5"));
    assert_null(strstr(svg, "▁"));
    free(svg);
    char *text = draw(labels, 2, w, 0);
    assert_non_null(strstr(text, "▁Hund"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_measured_in_terminal_columns),
        cmocka_unit_test(a_field_is_padded_or_cut_to_its_width),
        cmocka_unit_test(code_points_survive_being_read_and_written),
        cmocka_unit_test(the_ramp_darkens_evenly),
        cmocka_unit_test(columns_of_a_japanese_sentence_line_up),
        cmocka_unit_test(long_sentences_are_cut_into_panels_that_fit),
        cmocka_unit_test(rows_and_columns_may_be_different),
        cmocka_unit_test(columns_without_labels_are_numbers),
        cmocka_unit_test(colors_appear_only_when_asked_for),
        cmocka_unit_test(values_that_are_no_numbers_are_drawn_too),
        cmocka_unit_test(the_svg_is_well_formed_whatever_the_labels_hold),
        cmocka_unit_test(the_svg_names_its_axes_and_tells_each_value),
        cmocka_unit_test(a_full_disk_is_noticed),
        cmocka_unit_test(ticks_are_at_round_numbers),
        cmocka_unit_test(curves_are_seen_on_light_and_dark_pages),
        cmocka_unit_test(a_curve_of_many_points_is_a_small_picture),
        cmocka_unit_test(a_chart_is_well_formed_whatever_its_names),
        cmocka_unit_test(a_sketch_shows_where_a_curve_goes),
        cmocka_unit_test(the_color_bar_ends_at_a_round_number),
        cmocka_unit_test(a_piece_begins_with_a_space_mark_instead_of_a_bar),
    };
    unsetenv("COLUMNS");
    return cmocka_run_group_tests_name("drawing", tests, NULL, NULL);
}
