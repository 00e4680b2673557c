#include "json.h"
#include "command.h"
#include "output.h"
#include "utf8.h"

#include <attend_text.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Writes the inside of a string: escapes control characters and those of `quoted`. */
static void write_escaped(FILE *f, const char *text, size_t bytes, const char *quoted)
{
    const char *p = text, *end = p + bytes, *plain = p; /* text from `plain` on is not written yet */
    while (p < end) {
        uint32_t code;
        const size_t n = att_utf8_decode(p, (size_t)(end - p), &code);
        const bool quote = n == 1 && *p && strchr(quoted, *p), invalid = code == 0xFFFD && !att_utf8_valid(p, n);
        if (invalid || quote || utf8_is_control(code)) {
            fwrite(plain, 1, (size_t)(p - plain), f);
            plain = p + n;
            if (quote)
                fprintf(f, "\\%c", *p);
            else
                fprintf(f, "\\u%04x", (unsigned)code);
        }
        p += n;
    }
    fwrite(plain, 1, (size_t)(p - plain), f);
}

static void write_string(FILE *f, const char *text, size_t bytes)
{
    putc('"', f);
    write_escaped(f, text, bytes, "\"\\");
    putc('"', f);
}

/* Writes the text before a value: a comma, its key. */
void cli_json_begin_value(cli_json *j, const char *key)
{
    if (j->depth > 0) {
        const bool outermost = j->depth == 1, more = j->open[j->depth - 1].more;
        const char *first = outermost && j->first ? j->first : "",
                   *between = outermost && j->between ? j->between : ", ";
        fputs(more ? between : first, j->file);
        j->open[j->depth - 1].more = true;
    }
    if (key) {
        write_string(j->file, key, strlen(key));
        fputs(": ", j->file);
    }
}

static void open(cli_json *j, const char *key, char begin, char end)
{
    cli_json_begin_value(j, key);
    putc(begin, j->file);
    j->open[j->depth].end = end;
    j->open[j->depth++].more = false;
}

void cli_json_object(cli_json *j, const char *key) { open(j, key, '{', '}'); }
void cli_json_array(cli_json *j, const char *key) { open(j, key, '[', ']'); }

void cli_json_end(cli_json *j)
{
    j->depth--;
    if (j->depth == 0 && j->last)
        fputs(j->last, j->file);
    putc(j->open[j->depth].end, j->file);
    if (j->depth == 0)
        putc('\n', j->file);
}

cli_json cli_json_begin(FILE *f)
{
    cli_json j = {.file = f};
    cli_json_object(&j, NULL);
    return j;
}

void cli_json_close(cli_json *j)
{
    while (j->depth > 0)
        cli_json_end(j);
}

void cli_json_bytes(cli_json *j, const char *key, const char *text, size_t bytes)
{
    cli_json_begin_value(j, key);
    if (text)
        write_string(j->file, text, bytes);
    else
        fputs("null", j->file);
}

void cli_json_string(cli_json *j, const char *key, const char *text)
{
    cli_json_bytes(j, key, text, text ? strlen(text) : 0);
}

void cli_json_bool(cli_json *j, const char *key, bool x)
{
    cli_json_begin_value(j, key);
    fputs(x ? "true" : "false", j->file);
}

void cli_json_integer(cli_json *j, const char *key, int64_t x)
{
    cli_json_begin_value(j, key);
    fprintf(j->file, "%lld", (long long)x);
}

void cli_json_number(cli_json *j, const char *key, double x, int digits)
{
    cli_json_begin_value(j, key);
    if (isfinite(x))
        fprintf(j->file, "%.*g", digits, x);
    else
        fputs("null", j->file);
}

void cli_json_fixed(cli_json *j, const char *key, double x, int decimals)
{
    if (!isfinite(x)) {
        cli_json_number(j, key, x, 0);
        return;
    }
    cli_json_begin_value(j, key);
    fprintf(j->file, "%.*f", decimals, x);
}

void cli_json_float(cli_json *j, const char *key, float x)
{
    cli_json_begin_value(j, key);
    cli_write_row(j->file, &x, 1, ',');
}

void cli_json_strings(cli_json *j, const char *key, const char *const *texts, int64_t n)
{
    cli_json_array(j, key);
    for (int64_t i = 0; i < n; i++)
        cli_json_string(j, NULL, texts[i]);
    cli_json_end(j);
}

void cli_json_numbers(cli_json *j, const char *key, const double *x, int64_t n, int digits)
{
    cli_json_array(j, key);
    for (int64_t i = 0; i < n; i++)
        cli_json_number(j, NULL, x[i], digits);
    cli_json_end(j);
}

void cli_json_row(cli_json *j, const char *key, const float *row, int64_t n)
{
    cli_json_array(j, key);
    cli_write_row(j->file, row, n, ',');
    cli_json_end(j);
}

void cli_json_matrix(cli_json *j, const char *key, const float *x, int64_t rows, int64_t columns)
{
    cli_json_array(j, key);
    for (int64_t i = 0; i < rows; i++)
        cli_json_row(j, NULL, x + i * columns, columns);
    cli_json_end(j);
}

int cli_json_value(cli_json *j, const char *key, const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags | JSON_ENCODE_ANY);
    if (!text)
        return cli_fail_memory();
    cli_json_begin_value(j, key);
    write_escaped(j->file, text, strlen(text), "");
    free(text);
    return CLI_DONE;
}
