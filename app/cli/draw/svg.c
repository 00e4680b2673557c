#include "svg.h"

#include "cli/base/base64.h"
#include "cli/base/utf8.h"

#include <math.h>
#include <string.h>

#define FONTS "'Noto Sans','Noto Sans CJK JP','Hiragino Sans','Yu Gothic UI','Segoe UI','DejaVu Sans',sans-serif"

/* Writes a number with at most two decimals, without trailing zeros. */
static void number(FILE *f, const char *name, double v)
{
    v = round(v * 100) / 100;
    fprintf(f, " %s=\"%.*f\"", name, v == round(v) ? 0 : v * 10 == round(v * 10) ? 1 : 2, v);
}

static void paint(FILE *f, const char *name, color c) { fprintf(f, " %s=\"#%02x%02x%02x\"", name, c.r, c.g, c.b); }

/* Escapes text for elements and attributes; invalid UTF-8 and characters not allowed in XML become U+FFFD. */
static void escape(FILE *f, const char *text)
{
    static const struct {
        uint32_t code;
        const char *name;
    } names[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    while (*text) {
        uint32_t code = utf8_next(&text);
        const char *name = NULL;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (names[i].code == code)
                name = names[i].name;
        }
        if (name)
            fputs(name, f);
        else
            utf8_put(f, (code < 0x20 && code != '\t' && code != '\n') || code == 0x7F || (code & 0xFFFE) == 0xFFFE
                            ? 0xFFFD
                            : code);
    }
}

static void child_title(FILE *f, const char *text)
{
    fputs("<title>", f);
    escape(f, text);
    fputs("</title>", f);
}

/* Ends the element of a shape, after its attributes. */
static void end_shape(FILE *f, const char *name, const char *tooltip)
{
    if (!tooltip) {
        fputs("/>\n", f);
        return;
    }
    fputc('>', f);
    child_title(f, tooltip);
    fprintf(f, "</%s>\n", name);
}

void svg_begin(FILE *f, double width, double height, const char *title)
{
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\"", width, height);
    number(f, "width", width);
    number(f, "height", height);
    fputs(" role=\"img\" font-family=\"" FONTS "\">\n", f);
    child_title(f, title);
    /* Tooltips also appear when the pointer is on text. */
    fputs("\n<style>text{pointer-events:none}</style>\n", f);
}

void svg_dark(FILE *f, const color *light, const color *dark, int n)
{
    static const char *const what[] = {"fill", "stroke"};
    fputs("<style>@media (prefers-color-scheme:dark){", f);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            fprintf(f, "[%s=\"#%02x%02x%02x\"]{%s:#%02x%02x%02x}", what[k], light[i].r, light[i].g, light[i].b, what[k],
                    dark[i].r, dark[i].g, dark[i].b);
    fputs("}</style>\n", f);
}

void svg_end(FILE *f) { fputs("</svg>\n", f); }

void svg_rect(FILE *f, double x, double y, double width, double height, double radius, color fill, const char *tooltip)
{
    fputs("<rect", f);
    number(f, "x", x);
    number(f, "y", y);
    number(f, "width", width);
    number(f, "height", height);
    if (radius > 0)
        number(f, "rx", radius);
    paint(f, "fill", fill);
    end_shape(f, "rect", tooltip);
}

void svg_circle(FILE *f, double x, double y, double radius, color fill, const char *tooltip)
{
    fputs("<circle", f);
    number(f, "cx", x);
    number(f, "cy", y);
    number(f, "r", radius);
    paint(f, "fill", fill);
    end_shape(f, "circle", tooltip);
}

void svg_image(FILE *f, double x, double y, double width, double height, const uint8_t *png, size_t bytes)
{
    fputs("<image", f);
    number(f, "x", x);
    number(f, "y", y);
    number(f, "width", width);
    number(f, "height", height);
    fputs(" preserveAspectRatio=\"none\" href=\"data:image/png;base64,", f);
    cli_base64_write(f, png, bytes);
    fputs("\"/>\n", f);
}

void svg_layer(FILE *f, double opacity) { fprintf(f, "<g opacity=\"%g\">\n", opacity); }

void svg_layer_end(FILE *f) { fputs("</g>\n", f); }

void svg_named(FILE *f, const char *name) { fprintf(f, "<g id=\"%s\">\n", name); }

void svg_named_end(FILE *f) { fputs("</g>\n", f); }

void svg_again(FILE *f, const char *name, double x, double y)
{
    fprintf(f, "<use href=\"#%s\"", name);
    number(f, "x", x);
    number(f, "y", y);
    fputs("/>\n", f);
}

void svg_line(FILE *f, double x1, double y1, double x2, double y2, double width, color stroke)
{
    fputs("<line", f);
    number(f, "x1", x1);
    number(f, "y1", y1);
    number(f, "x2", x2);
    number(f, "y2", y2);
    number(f, "stroke-width", width);
    paint(f, "stroke", stroke);
    fputs("/>\n", f);
}

void svg_polyline(FILE *f, const double *x, const double *y, int64_t n, double width, const char *dash, color stroke)
{
    fputs("<polyline fill=\"none\" stroke-linejoin=\"round\"", f);
    number(f, "stroke-width", width);
    paint(f, "stroke", stroke);
    if (dash)
        fprintf(f, " stroke-dasharray=\"%s\"", dash);
    fputs(" points=\"", f);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%s%.1f,%.1f", i ? " " : "", x[i], y[i]);
    fputs("\"/>\n", f);
}

void svg_text(FILE *f, double x, double y, const svg_font *font, const char *text)
{
    fputs("<text", f);
    if (font->rotate != 0) {
        fprintf(f, " transform=\"translate(%.2f %.2f) rotate(%g)\"", x, y, font->rotate);
        x = y = 0;
    }
    number(f, "x", x);
    number(f, "y", y + 0.36 * font->size); /* half a capital's height: dominant-baseline is not drawn everywhere */
    number(f, "font-size", font->size);
    if (font->anchor == 'm' || font->anchor == 'e')
        fprintf(f, " text-anchor=\"%s\"", font->anchor == 'm' ? "middle" : "end");
    if (font->bold)
        fputs(" font-weight=\"600\"", f);
    paint(f, "fill", font->fill);
    fputc('>', f);
    escape(f, text);
    fputs("</text>\n", f);
}

double svg_text_width(const char *text, double size)
{
    double ems = 0;
    while (*text) {
        int columns = utf8_columns(utf8_next(&text));
        ems += columns == 2 ? 1.0 : 0.56 * columns;
    }
    return ems * size;
}

/* Bold letters are wider, of DejaVu Sans by a quarter. */
static double width_of(const char *text, const svg_font *font)
{
    return svg_text_width(text, font->bold ? 1.25 * font->size : font->size);
}

double svg_bold_size(const char *text, double size, double width)
{
    const double wide = width_of(text, &(svg_font){.size = size, .bold = 1});
    return wide > width ? size * width / wide : size;
}

/* Returns the bytes of the first line of a text. */
static int line_bytes(const char *text, double width, const svg_font *font)
{
    double used = 0;
    int best = 0;
    for (const char *at = text; *at;) {
        const char *begin = at;
        const uint32_t code = utf8_next(&at);
        char one[8];
        snprintf(one, sizeof one, "%.*s", (int)(at - begin), begin);
        used += width_of(one, font);
        if (used > width && code != ' ')
            return best ? best : begin > text ? (int)(begin - text) : (int)(at - text);
        if (code == ' ' || code == ',' || code == ';')
            best = (int)(at - text);
    }
    return (int)strlen(text);
}

int svg_paragraph(FILE *f, double x, double y, double width, double pitch, const svg_font *font, const char *text)
{
    char line[1024];
    int lines = 0;
    for (int bytes; *text; text += bytes, lines++) {
        bytes = line_bytes(text, width, font);
        snprintf(line, sizeof line, "%.*s", bytes, text);
        if (f)
            svg_text(f, x, y + lines * pitch, font, line);
    }
    return lines;
}
