/* The metadata of a .gguf file by key, and its first error. */
#include "io/error_position.h"
#include "io/gguf_file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const att_gguf_value_type att_gguf_value_types[ATT_GGUF_VALUE_TYPES] = {
    {"uint8", 1, false, false},  {"int8", 1, true, false},   {"uint16", 2, false, false}, {"int16", 2, true, false},
    {"uint32", 4, false, false}, {"int32", 4, true, false},  {"float32", 4, true, true},  {"bool", 1, false, false},
    {"string", 0, false, false}, {"array", 0, false, false}, {"uint64", 8, false, false}, {"int64", 8, true, false},
    {"float64", 8, true, true}};

att_status att_gguf_error(const att_gguf *g) { return g->status; }

const char *att_gguf_label(const att_gguf *g) { return g->label; }

void att_gguf_fail(att_gguf *g, att_status s, const char *format, ...)
{
    va_list args;
    if (g->status)
        return;
    va_start(args, format);
    g->status = att_fail_in(g->ctx, g->label, s, format, args);
    va_end(args);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const att_gguf_value *)a)->key, ((const att_gguf_value *)b)->key);
}

void att_gguf_sort_values(att_gguf *g)
{
    if (g->n_values > 0)
        qsort(g->value, (size_t)g->n_values, sizeof *g->value, by_key);
    for (int64_t i = 1; i < g->n_values; i++)
        if (strcmp(g->value[i - 1].key, g->value[i].key) == 0)
            att_gguf_fail(g, ATT_ERR_FORMAT, "\"%.80s\" occurs twice", g->value[i].key);
}

static const att_gguf_value *find(const att_gguf *g, const char *key)
{
    const att_gguf_value wanted = {.key = key};
    return g->n_values ? bsearch(&wanted, g->value, (size_t)g->n_values, sizeof wanted, by_key) : NULL;
}

bool att_gguf_has(const att_gguf *g, const char *key) { return find(g, key) != NULL; }

/* Returns a number of a type; integers beyond 2^53 are rounded. */
static double number(uint32_t type, const unsigned char *data)
{
    const int bytes = att_gguf_value_types[type].bytes;
    const uint64_t bits = att_read_number(data, (size_t)bytes);
    if (att_gguf_value_types[type].is_float && bytes == 4) {
        float x;
        memcpy(&x, &(uint32_t){(uint32_t)bits}, sizeof x);
        return (double)x;
    }
    if (att_gguf_value_types[type].is_float) {
        double x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    if (att_gguf_value_types[type].is_signed && bits >> (8 * bytes - 1)) /* two's complement */
        return -(double)((~bits & (UINT64_MAX >> (64 - 8 * bytes))) + 1);
    return (double)bits;
}

/* Returns the value of a key, of a type that `fits`; NULL after an error, or if there is none and it is not
 * required. */
static const att_gguf_value *get(att_gguf *g, const char *key, bool required, bool fits(uint32_t type),
                                 const char *what)
{
    const att_gguf_value *v = g->status ? NULL : find(g, key);
    if (!v && required)
        att_gguf_fail(g, ATT_ERR_FORMAT, "there is no \"%s\"", key);
    if (v && !fits(v->type))
        att_gguf_fail(g, ATT_ERR_FORMAT, "\"%s\" is of type %s, not %s", key, att_gguf_value_types[v->type].name, what);
    return v && fits(v->type) ? v : NULL;
}

static bool is_number(uint32_t type) { return type != ATT_GGUF_TEXT && type != ATT_GGUF_LIST && type != ATT_GGUF_BOOL; }
static bool is_bool(uint32_t type) { return type == ATT_GGUF_BOOL; }
static bool is_text(uint32_t type) { return type == ATT_GGUF_TEXT; }
static bool is_list(uint32_t type) { return type == ATT_GGUF_LIST; }

int64_t att_gguf_int(att_gguf *g, const char *key, int64_t min, int64_t max)
{
    const att_gguf_value *v = get(g, key, true, is_number, "a number");
    const double x = v ? number(v->type, v->data) : (double)min;
    if (v && !(x >= (double)min && x <= (double)max && x == (double)(int64_t)x))
        att_gguf_fail(g, ATT_ERR_FORMAT, "\"%s\" is %.17g, not a whole number in [%lld, %lld]", key, x, (long long)min,
                      (long long)max);
    return v && !g->status ? (int64_t)x : min;
}

double att_gguf_number(att_gguf *g, const char *key, double otherwise)
{
    const att_gguf_value *v = get(g, key, false, is_number, "a number");
    return v ? number(v->type, v->data) : otherwise;
}

bool att_gguf_bool(att_gguf *g, const char *key, bool otherwise)
{
    const att_gguf_value *v = get(g, key, false, is_bool, "a bool");
    return v ? *v->data != 0 : otherwise;
}

const char *att_gguf_text(att_gguf *g, const char *key, const char *otherwise)
{
    const att_gguf_value *v = get(g, key, !otherwise, is_text, "a text");
    if (v && strlen(v->text) < v->text_bytes)
        att_gguf_fail(g, ATT_ERR_FORMAT, "\"%s\" has a zero byte (NUL)", key);
    return v ? v->text : otherwise ? otherwise : "";
}

static const att_gguf_value *list_of(att_gguf *g, const char *key, bool texts)
{
    const att_gguf_value *v = get(g, key, false, is_list, "a list");
    if (v && (v->item_type == ATT_GGUF_TEXT) != texts) {
        att_gguf_fail(g, ATT_ERR_FORMAT, "\"%s\" is a list of type %s", key, att_gguf_value_types[v->item_type].name);
        return NULL;
    }
    return v;
}

int64_t att_gguf_texts(att_gguf *g, const char *key)
{
    const att_gguf_value *v = list_of(g, key, true);
    return v ? v->count : 0;
}

int64_t att_gguf_numbers(att_gguf *g, const char *key)
{
    const att_gguf_value *v = list_of(g, key, false);
    return v ? v->count : 0;
}

static att_byte_view next_text(const unsigned char **at)
{
    const att_byte_view text = {(const char *)*at + 8, att_read_number(*at, 8)};
    *at += 8 + text.bytes;
    return text;
}

void att_gguf_get_texts(att_gguf *g, const char *key, att_byte_view *text, int64_t n)
{
    const att_gguf_value *v = list_of(g, key, true);
    const unsigned char *at = v ? v->data : NULL;
    for (int64_t i = 0; v && i < n && i < v->count; i++)
        text[i] = next_text(&at);
}

void att_gguf_get_text(att_gguf *g, const char *key, int64_t i, att_byte_view *text)
{
    const att_gguf_value *v = list_of(g, key, true);
    const unsigned char *at = v ? v->data : NULL;
    *text = (att_byte_view){"", 0};
    for (int64_t k = 0; v && k <= i && i < v->count; k++)
        *text = next_text(&at);
}

void att_gguf_get_numbers(att_gguf *g, const char *key, double *out, int64_t n)
{
    const att_gguf_value *v = list_of(g, key, false);
    for (int64_t i = 0; v && i < n && i < v->count; i++)
        out[i] = number(v->item_type, v->data + i * att_gguf_value_types[v->item_type].bytes);
}

const char *att_gguf_raw(const att_gguf *g, int64_t i, att_byte_view *raw)
{
    if (i >= g->n_values)
        return NULL;
    *raw = g->value[i].raw;
    return g->value[i].key;
}
