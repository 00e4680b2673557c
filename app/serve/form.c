#include "form.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char url_encoded[] = "application/x-www-form-urlencoded", multipart[] = "multipart/form-data";

static bool has_type(const http_request *r, const char *type)
{
    return r->type && !strncasecmp(r->type, type, strlen(type));
}

bool serve_is_form(const http_request *r)
{
    const size_t blank = strspn(r->body, " \t\r\n");
    return has_type(r, multipart) || (has_type(r, url_encoded) && r->body[blank] != '{');
}

/* ---- values ---- */

/* Returns a value as JSON: by the field's type, or else a string of any bytes. */
static json_t *value_of(const serve_field *fields, const char *name, const char *text, size_t bytes)
{
    while (fields->name && strcmp(fields->name, name))
        fields++;
    const bool plain =
        fields->name && (fields->type == SERVE_BOOL || fields->type == SERVE_INTEGER || fields->type == SERVE_NUMBER);
    json_t *value = plain ? json_loadb(text, bytes, JSON_DECODE_ANY, NULL) : NULL;
    return value ? value : json_stringn_nocheck(text, bytes);
}

/* Adds a value; the second one of a name makes a list. */
static void add_value(json_t *o, const char *name, json_t *value)
{
    json_t *old = json_object_get(o, name);
    if (!old) {
        json_object_set_new_nocheck(o, name, value);
    } else if (json_is_array(old)) {
        json_array_append_new(old, value);
    } else {
        json_t *list = json_array();
        json_array_append(list, old);
        json_array_append_new(list, value);
        json_object_set_new_nocheck(o, name, list);
    }
}

/* ---- application/x-www-form-urlencoded ---- */

static int hexadecimal(char c) { return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10; }

/* Decodes text [n] in place. Returns the number of bytes. */
static size_t unescape(char *text, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] == '%' && i + 2 < n && isxdigit((unsigned char)text[i + 1]) &&
            isxdigit((unsigned char)text[i + 2])) {
            text[to++] = (char)(16 * hexadecimal(text[i + 1]) + hexadecimal(text[i + 2]));
            i += 2;
        } else {
            text[to++] = text[i] == '+' ? ' ' : text[i];
        }
    return to;
}

static json_t *read_url_encoded(const http_request *r, const serve_field *fields)
{
    json_t *o = json_object();
    char *body = malloc(r->bytes + 1);
    if (!body) {
        json_decref(o);
        return NULL;
    }
    memcpy(body, r->body, r->bytes + 1);
    for (size_t at = 0, end; at < r->bytes; at = end + 1) {
        const char *stop = memchr(body + at, '&', r->bytes - at);
        end = stop ? (size_t)(stop - body) : r->bytes;
        char *is = memchr(body + at, '=', end - at);
        if (!is)
            continue;
        char *name = body + at, *text = is + 1;
        name[unescape(name, (size_t)(is - name))] = '\0';
        const size_t bytes = unescape(text, end - (size_t)(text - body));
        add_value(o, name, value_of(fields, name, text, bytes));
    }
    free(body);
    return o;
}

/* ---- multipart/form-data (RFC 7578) ---- */

/* Finds the text that separates parts, "\r\n--BOUNDARY". */
static bool find_boundary(const http_request *r, char *to, size_t size)
{
    const char *at = strcasestr(r->type, "boundary=");
    if (!at)
        return false;
    at += strlen("boundary=");
    const bool quoted = *at == '"';
    const size_t n = strcspn(at + quoted, quoted ? "\"" : "; \t");
    return n > 0 && n <= 70 && snprintf(to, size, "\r\n--%.*s", (int)n, at + quoted) < (int)size;
}

/* Finds the name of a part in its headers. */
static bool part_name(const char *head, size_t bytes, char *to, size_t size)
{
    static const char key[] = "name=\"";
    for (size_t i = 0; i + sizeof key - 1 < bytes; i++) {
        if (strncasecmp(head + i, key, sizeof key - 1) || (i > 0 && head[i - 1] != ' ' && head[i - 1] != ';'))
            continue;
        const char *begin = head + i + sizeof key - 1, *end = memchr(begin, '"', bytes - (size_t)(begin - head));
        return end && snprintf(to, size, "%.*s", (int)(end - begin), begin) < (int)size;
    }
    return false;
}

static json_t *read_multipart(const http_request *r, const serve_field *fields)
{
    char boundary[80], name[64];
    json_t *o = json_object();
    if (!find_boundary(r, boundary, sizeof boundary))
        return o;
    const size_t n = strlen(boundary);
    const char *end = r->body + r->bytes, *first = memmem(r->body, r->bytes, boundary, n);
    const bool begins = r->bytes >= n - 2 && !memcmp(r->body, boundary + 2, n - 2); /* without "\r\n" */
    const char *head = begins ? r->body + n - 2 : first ? first + n : NULL;
    while (head) {
        const char *blank = memmem(head, (size_t)(end - head), "\r\n\r\n", 4);
        if (!blank)
            break;
        const char *data = blank + 4, *next = memmem(data - 2, (size_t)(end - data) + 2, boundary, n);
        if (!next)
            break;
        if (part_name(head, (size_t)(blank - head), name, sizeof name))
            add_value(o, name, value_of(fields, name, data, next < data ? 0 : (size_t)(next - data)));
        head = next + n;
    }
    return o;
}

json_t *serve_form_read(const http_request *r, const serve_field *fields, const char **why)
{
    json_t *o = has_type(r, multipart) ? read_multipart(r, fields) : read_url_encoded(r, fields);
    *why = o ? "the form has no field" : "out of memory";
    if (json_object_size(o) > 0)
        return o;
    json_decref(o);
    return NULL;
}
