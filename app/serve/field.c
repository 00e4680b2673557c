#include "field.h"

#include "cli/base/command.h"

#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

static bool wrong(serve_field_error *e, const serve_field *f, const char *what)
{
    e->field = f->name;
    snprintf(e->message, sizeof e->message, "%s: %s", f->name, what);
    return false;
}

static bool no_memory(serve_field_error *e, const serve_field *f) { return wrong(e, f, "out of memory"); }

/* ---- lists of texts ---- */

static bool make_texts(serve_texts *t, int64_t n)
{
    t->n = n;
    t->text = calloc((size_t)n + 1, sizeof *t->text);
    t->bytes = calloc((size_t)n + 1, sizeof *t->bytes);
    return t->text && t->bytes;
}

static void set_text(serve_texts *t, int64_t i, const json_t *value)
{
    t->text[i] = json_string_value(value);
    t->bytes[i] = json_string_length(value);
}

/* Reads n lists of ids: the values of `lists`, or the one list itself. */
static bool read_ids(const serve_field *f, const json_t *lists, int64_t n, bool single, serve_texts *t,
                     serve_field_error *e)
{
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all += (int64_t)json_array_size(single ? lists : json_array_get(lists, (size_t)i));
    t->n = n;
    t->ids = calloc((size_t)all + 1, sizeof *t->ids);
    t->offsets = calloc((size_t)n + 1, sizeof *t->offsets);
    if (!t->ids || !t->offsets)
        return no_memory(e, f);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const json_t *list = single ? lists : json_array_get(lists, (size_t)i), *id;
        size_t k;
        if (!json_is_array(list) || json_array_size(list) == 0)
            return wrong(e, f, "a list of lists of token ids has something else, or an empty one");
        json_array_foreach(list, k, id)
        {
            const json_int_t v = json_integer_value(id);
            if (!json_is_integer(id) || v < 0 || v > INT32_MAX)
                return wrong(e, f, "the id of a token is not a number from 0 to 2147483647");
            t->ids[at++] = (int32_t)v;
        }
        t->offsets[i + 1] = at;
    }
    return true;
}

static bool read_texts(const serve_field *f, const json_t *value, int64_t max_texts, serve_texts *t,
                       serve_field_error *e)
{
    char message[160];
    const json_t *first = json_array_get(value, 0);
    const bool ids = f->type == SERVE_INPUT && (json_is_integer(first) || json_is_array(first));
    t->single = (json_is_string(value) && f->type != SERVE_DOCUMENTS) || (ids && json_is_integer(first));
    if (!t->single && !json_is_array(value))
        return wrong(e, f,
                     f->type == SERVE_INPUT       ? "is not a string, a list of strings, or token ids"
                     : f->type == SERVE_DOCUMENTS ? "is not a list of strings, or of objects with a \"text\""
                                                  : "is not a string or a list of strings");
    const int64_t n = t->single ? 1 : (int64_t)json_array_size(value);
    if (n == 0 && !f->empty)
        return wrong(e, f, "is an empty list");
    if (n > max_texts) {
        snprintf(message, sizeof message, "has %lld texts, but --max-inputs allows %lld", (long long)n,
                 (long long)max_texts);
        return wrong(e, f, message);
    }
    if (ids)
        return read_ids(f, value, n, t->single, t, e);
    if (!make_texts(t, n))
        return no_memory(e, f);
    for (int64_t i = 0; i < n; i++) {
        const json_t *text = t->single ? value : json_array_get(value, (size_t)i);
        if (f->type == SERVE_DOCUMENTS && json_is_object(text))
            text = json_object_get(text, "text");
        if (!json_is_string(text)) {
            snprintf(message, sizeof message, "element %lld is not a string", (long long)i);
            return wrong(e, f, message);
        }
        set_text(t, i, text);
    }
    return true;
}

/* ---- single values ---- */

static bool read_number(const serve_field *f, const json_t *value, double *to, serve_field_error *e)
{
    char message[160];
    const double x = json_number_value(value);
    if (!json_is_number(value))
        return wrong(e, f, "is not a number");
    *to = x;
    if (x >= f->min && x <= f->max)
        return true;
    snprintf(message, sizeof message, "%.10g is not from %.10g to %.10g", x, f->min, f->max);
    return wrong(e, f, message);
}

/* Reads an integer, which is compared as such: a double has not all of them. */
static bool read_integer(const serve_field *f, const json_t *value, int64_t *to, serve_field_error *e)
{
    char message[160];
    const int64_t x = json_integer_value(value), min = (int64_t)f->min, max = (int64_t)f->max;
    if (!json_is_integer(value))
        return wrong(e, f, "is not an integer");
    *to = x;
    if (x >= min && x <= max)
        return true;
    snprintf(message, sizeof message, "%lld is not from %lld to %lld", (long long)x, (long long)min, (long long)max);
    return wrong(e, f, message);
}

/* Returns the index of a word in "one|two"; -1: there is none. */
static int find_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (int i = 0; *words; i++) {
        const size_t m = strcspn(words, "|");
        if (m == n && !memcmp(words, word, n))
            return i;
        words += m + (words[m] == '|');
    }
    return -1;
}

static bool read_choice(const serve_field *f, const json_t *value, int *to, serve_field_error *e)
{
    char message[256];
    const char *word = json_string_value(value);
    *to = word ? find_word(f->words, word) : -1;
    if (*to >= 0)
        return true;
    snprintf(message, sizeof message, "is not one of the words %s", f->words);
    return wrong(e, f, message);
}

/* Refuses a field that is not built, unless it has the one value that asks for what is done anyway. */
static bool read_refused(const serve_field *f, const json_t *value, serve_field_error *e)
{
    char message[400];
    json_t *accepted = f->words ? json_loads(f->words, JSON_DECODE_ANY, NULL) : NULL;
    const bool same = accepted && json_equal(accepted, value);
    json_decref(accepted);
    if (same)
        return true;
    snprintf(message, sizeof message, "is not supported: %s", f->help);
    return wrong(e, f, message);
}

static bool read_value(const serve_field *f, const json_t *value, int64_t max_texts, char *to, serve_field_error *e)
{
    void *at = to + f->offset;
    switch (f->type) {
    case SERVE_TEXT:
        if (!json_is_string(value))
            return wrong(e, f, "is not a string");
        *(serve_text *)at = (serve_text){json_string_value(value), json_string_length(value)};
        return true;
    case SERVE_TEXTS:
    case SERVE_DOCUMENTS:
    case SERVE_INPUT:
        return read_texts(f, value, f->max > 0 && f->max < (double)max_texts ? (int64_t)f->max : max_texts, at, e);
    case SERVE_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value) ? true : wrong(e, f, "is not true or false");
    case SERVE_INTEGER:
        return read_integer(f, value, at, e);
    case SERVE_NUMBER:
        return read_number(f, value, at, e);
    case SERVE_CHOICE:
        return read_choice(f, value, at, e);
    case SERVE_JSON:
        *(const json_t **)at = value;
        return !f->table || json_is_object(value) ? true : wrong(e, f, "is not an object");
    case SERVE_REFUSED:
        return read_refused(f, value, e);
    case SERVE_IGNORED:
        break;
    }
    return true;
}

static void set_usual(const serve_field *f, char *to)
{
    void *at = to + f->offset;
    if (f->type == SERVE_BOOL)
        *(bool *)at = f->usual != 0;
    else if (f->type == SERVE_INTEGER)
        *(int64_t *)at = (int64_t)f->usual;
    else if (f->type == SERVE_NUMBER)
        *(double *)at = f->usual;
    else if (f->type == SERVE_CHOICE)
        *(int *)at = (int)f->usual;
}

/* ---- objects ---- */

enum { MAX_FIELDS = 64 };

/* Refuses a key that the table does not have. */
static bool unknown(const serve_field *fields, const char *key, serve_field_error *e)
{
    const char *names[MAX_FIELDS];
    int n = 0;
    cli_hint hint;
    for (; fields[n].name && n < MAX_FIELDS; n++)
        names[n] = fields[n].name;
    snprintf(e->name, sizeof e->name, "%.60s", key);
    e->field = e->name;
    snprintf(e->message, sizeof e->message, "there is no field \"%.60s\" here%s", key,
             cli_did_you_mean(&hint, "", key, names, n, "; GET /openapi.json lists those that there are"));
    return false;
}

static const serve_field *find_field(const serve_field *fields, const char *key)
{
    for (; fields->name; fields++)
        if (!strcmp(fields->name, key))
            return fields;
    return NULL;
}

bool serve_fields_read(const serve_field *fields, const json_t *object, int64_t max_texts, void *to,
                       serve_field_error *e)
{
    const char *key;
    json_t *value;
    for (const serve_field *f = fields; f->name; f++)
        set_usual(f, to);
    json_object_foreach((json_t *)object, key, value) if (!find_field(fields, key)) return unknown(fields, key, e);
    for (const serve_field *f = fields; f->name; f++) {
        const json_t *given = json_object_get(object, f->name);
        if (given && !json_is_null(given)) {
            if (!read_value(f, given, max_texts, to, e))
                return false;
        } else if (f->required) {
            return wrong(e, f, "is needed");
        }
    }
    return true;
}

void serve_fields_free(const serve_field *fields, void *to)
{
    for (const serve_field *f = fields; f && f->name; f++)
        if (f->type == SERVE_TEXTS || f->type == SERVE_DOCUMENTS || f->type == SERVE_INPUT) {
            serve_texts *t = (void *)((char *)to + f->offset);
            free(t->text);
            free(t->bytes);
            free(t->ids);
            free(t->offsets);
        }
}
