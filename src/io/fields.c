#include "io/fields.h"

#include <string.h>

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* Where the field at `at` in quotes ends: after its last quote. NULL: it does not. */
static const char *end_of_quotes(const char *at, const char *end)
{
    for (at++; at < end; at++)
        if (*at == '"' && (at + 1 == end || at[1] != '"'))
            return at + 1;
        else if (*at == '"')
            at++;
    return NULL;
}

static const char *find_separator(const att_fields *f, const char *from)
{
    const size_t n = strlen(f->separator);
    for (const char *p = from; (p = memchr(p, f->separator[0], (size_t)(f->end - p))); p++)
        if ((size_t)(f->end - p) >= n && !memcmp(p, f->separator, n))
            return p;
    return f->end;
}

static bool next_word(att_fields *f, att_byte_view *field)
{
    while (f->at < f->end && is_space(*f->at))
        f->at++;
    const char *start = f->at;
    while (f->at < f->end && !is_space(*f->at))
        f->at++;
    *field = (att_byte_view){start, (size_t)(f->at - start)};
    return f->at > start;
}

bool att_fields_next(att_fields *f, att_byte_view *field)
{
    if (!f->at)
        return false;
    if (*f->separator == ' ')
        return next_word(f, field);
    const bool quoted = f->quoted && f->at < f->end && *f->at == '"';
    const char *start = f->at, *after = quoted ? end_of_quotes(start, f->end) : find_separator(f, start);
    if (!after || find_separator(f, after) != after)
        return false;
    *field = quoted ? (att_byte_view){start + 1, (size_t)(after - start) - 2}
                    : (att_byte_view){start, (size_t)(after - start)};
    f->at = after < f->end ? after + strlen(f->separator) : NULL;
    return true;
}

bool att_fields_damaged(const att_fields *f) { return f->at && *f->separator != ' '; }

att_status att_fields_refuse(const att_where *where)
{
    return att_fail_at(where, ATT_ERR_FORMAT,
                       "a field begins with a quote but does not end with one, before the next field or the end of the "
                       "line (RFC 4180; line ends within quotes are not supported)");
}

att_byte_view att_fields_unquote(att_bytes *to, att_byte_view field)
{
    const size_t start = to->count;
    if (!memchr(field.data, '"', field.bytes))
        return field;
    for (size_t i = 0; i < field.bytes; i++) {
        att_bytes_add(to, field.data + i, 1);
        i += field.data[i] == '"';
    }
    return (att_byte_view){to->data + start, to->count - start};
}
