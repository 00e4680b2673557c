/* Formats values as the operator % of Python's texts does: %s, %r, %d, %i, %f and %%, with flags, width and precision.
 */
#include "jinja/string.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WIDTH = 1000 };

/* "%-08.3f" */
typedef struct directive {
    char flags[8];
    int64_t width, precision; /* precision < 0: none */
    char kind;
} directive;

/* Reads digits. Returns their number. */
static int64_t read_number(att_jinja_state *s, const att_jinja_string *x, size_t *at)
{
    int64_t n = 0;
    for (; *at < x->bytes && x->data[*at] >= '0' && x->data[*at] <= '9'; (*at)++)
        if ((n = 10 * n + (x->data[*at] - '0')) > MAX_WIDTH)
            att_jinja_fail(s, "a width of a format is larger than %d", MAX_WIDTH);
    return n;
}

/* Reads a directive after its "%". */
static directive read_directive(att_jinja_state *s, const att_jinja_string *x, size_t *at)
{
    directive d = {.precision = -1};
    size_t n = 0;
    while (*at < x->bytes && x->data[*at] && strchr("-+ 0", x->data[*at]) && n < sizeof d.flags - 1)
        d.flags[n++] = x->data[(*at)++];
    d.width = read_number(s, x, at);
    if (*at < x->bytes && x->data[*at] == '.') {
        (*at)++;
        d.precision = read_number(s, x, at);
    }
    d.kind = *at < x->bytes ? x->data[(*at)++] : 0;
    return d;
}

/* Writes a text in a field. The precision is the largest number of its characters. */
static void add_text(att_jinja_builder *b, const directive *d, const att_jinja_string *x)
{
    const int64_t all = (int64_t)att_jinja_characters(x),
                  n = d->precision >= 0 && d->precision < all ? d->precision : all;
    const bool left = strchr(d->flags, '-') != NULL;
    for (int64_t i = n; !left && i < d->width; i++)
        att_jinja_add_word(b, " ");
    att_jinja_add_part(b, x, 0, att_jinja_offset(x, (size_t)n));
    for (int64_t i = n; left && i < d->width; i++)
        att_jinja_add_word(b, " ");
}

static void add_number(att_jinja_builder *b, const directive *d, att_jinja_value v)
{
    char format[32], text[2 * MAX_WIDTH + 400];
    const bool integer = d->kind != 'f';
    if (!att_jinja_is_number(v))
        att_jinja_fail(b->s, "%%%c formats a number, not a %s", d->kind, att_jinja_type_name(v.type));
    snprintf(format, sizeof format, "%%%s*.*%s", d->flags, integer ? "lld" : "f");
    const double x = att_jinja_real(v);
    if (!(x > -1e300 && x < 1e300) || (integer && v.type == ATT_JINJA_FLOAT && !(x > -9e18 && x < 9e18)))
        att_jinja_fail(b->s, "%%%c: the number is too large", d->kind);
    const int width = (int)d->width, precision = d->precision >= 0 ? (int)d->precision : integer ? -1 : 6;
    int n;
    if (integer)
        n = snprintf(text, sizeof text, format, width, precision,
                     v.type == ATT_JINJA_FLOAT ? (long long)x : (long long)att_jinja_integer(b->s, v, "a number"));
    else
        n = snprintf(text, sizeof text, format, width, precision, x);
    for (int i = 0; i < n; i++) /* "." whatever the locale is */
        text[i] = strchr("-+ 0123456789", text[i]) ? text[i] : '.';
    att_jinja_add(b, text, (size_t)n, false);
}

att_jinja_value att_jinja_format(att_jinja_state *s, const att_jinja_string *x, const att_jinja_value *value, size_t n)
{
    att_jinja_builder b = {.s = s}, repr = {.s = s};
    size_t used = 0;
    for (size_t at = 0; at < x->bytes;) {
        const size_t begin = at;
        while (at < x->bytes && x->data[at] != '%')
            at++;
        att_jinja_add_part(&b, x, begin, at);
        if (at == x->bytes)
            break;
        at++;
        const directive d = read_directive(s, x, &at);
        if (d.kind == '%') {
            att_jinja_add_word(&b, "%");
            continue;
        }
        if (!d.kind || !strchr("srdif", d.kind))
            att_jinja_fail(s, "a format has \"%%%c\", which is not supported; %%s, %%r, %%d and %%f are", d.kind);
        if (used == n)
            att_jinja_fail(s, "a format has more than %zu values", n);
        if (d.kind == 'r')
            att_jinja_repr(&repr, value[used]);
        if (d.kind == 's' || d.kind == 'r')
            add_text(&b, &d, d.kind == 'r' ? att_jinja_built(&repr) : att_jinja_str(s, value[used]));
        else
            add_number(&b, &d, value[used]);
        repr = (att_jinja_builder){.s = s};
        used++;
    }
    if (used < n)
        att_jinja_fail(s, "a format has %zu values, but there are %zu", used, n);
    return att_jinja_built_value(&b);
}
