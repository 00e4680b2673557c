#include "model/settings.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A value for a sentence, cut where it is long. */
typedef struct shown {
    char text[64];
} shown;

static shown show(const json_t *value)
{
    shown s = {""};
    const size_t n = json_dumpb(value, s.text, sizeof s.text - 1,
                                JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
    if (n >= sizeof s.text)
        memcpy(s.text + sizeof s.text - 4, "...", 4);
    return s;
}

void att_settings_fail(att_settings *s, att_status status, const char *format, ...)
{
    char sentence[512];
    if (s->status)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    s->status = att_fail(s->ctx, status, "%s: %s", s->path, sentence);
}

/* Numbers all become doubles: some files have whole ones beyond 64 bits (model_max_length 1e30, written out). */
static void parse(att_settings *s, FILE *file)
{
    json_error_t e;
    errno = 0; /* where memory runs out, jansson may blame the text, or leave characters out of a name and go on */
    s->root = json_loadf(file, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &e);
    if (ferror(file))
        att_settings_fail(s, ATT_ERR_IO, "cannot be read: %s", strerror(errno));
    else if (errno == ENOMEM || (!s->root && json_error_code(&e) == json_error_out_of_memory))
        att_settings_fail(s, ATT_ERR_MEMORY, "out of memory");
    else if (!s->root)
        att_settings_fail(s, ATT_ERR_FORMAT, "line %d, column %d: %s", e.line, e.column, e.text);
    s->object = s->root;
}

void att_settings_read(att_settings *s, att_ctx *ctx, const char *folder, const char *name, bool required)
{
    *s = (att_settings){.ctx = ctx};
    if (snprintf(s->path, sizeof s->path, "%s/%s", folder, name) >= (int)sizeof s->path) {
        s->status = att_fail(ctx, ATT_ERR_IO, "the path of %s is longer than %zu bytes", name, sizeof s->path - 1);
        return;
    }
    FILE *file = fopen(s->path, "rb");
    if (file) {
        parse(s, file);
        fclose(file);
    } else if (required || (errno != ENOENT && errno != ENOTDIR)) {
        att_settings_fail(s, ATT_ERR_IO, "%s", strerror(errno));
    }
}

void att_settings_close(att_settings *s)
{
    json_decref(s->root);
    s->root = NULL;
}

/* ---- values */

static const json_t *get(const att_settings *s, const char *key)
{
    const json_t *value = s->status ? NULL : json_object_get(s->object, key);
    return json_is_null(value) ? NULL : value;
}

bool att_settings_has(const att_settings *s, const char *key) { return get(s, key) != NULL; }

/* The value; a required one that is not there, or one of another type, is an error. */
static const json_t *typed(att_settings *s, const char *key, bool required, bool good_type(const json_t *),
                           const char *type)
{
    const json_t *value = get(s, key);
    if (!value && required)
        att_settings_fail(s, ATT_ERR_FORMAT, "there is no \"%s\"", key);
    else if (value && !good_type(value))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is %s, not %s", key, show(value).text, type);
    return s->status ? NULL : value;
}

static bool is_number(const json_t *v) { return json_is_real(v); }
static bool is_whole(const json_t *v) { return json_is_real(v) && json_real_value(v) == floor(json_real_value(v)); }
static bool is_bool(const json_t *v) { return json_is_boolean(v); }
static bool is_text(const json_t *v) { return json_is_string(v); }

static double in_range(att_settings *s, const char *key, const json_t *value, double least, double most)
{
    const double x = json_number_value(value);
    if (!value || (x >= least && x <= most))
        return value ? x : 0;
    att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is %.12g, not in [%.12g, %.12g]", key, x, least, most);
    return 0;
}

int64_t att_settings_whole(att_settings *s, const char *key, int64_t least, int64_t most)
{
    const json_t *value = typed(s, key, true, is_whole, "a whole number");
    return (int64_t)in_range(s, key, value, (double)least, (double)most);
}

double att_settings_number(att_settings *s, const char *key, double least, double most)
{
    return in_range(s, key, typed(s, key, true, is_number, "a number"), least, most);
}

bool att_settings_bool(att_settings *s, const char *key, bool otherwise)
{
    const json_t *value = typed(s, key, false, is_bool, "true or false");
    return value ? json_is_true(value) : otherwise;
}

const char *att_settings_text(att_settings *s, const char *key, const char *otherwise)
{
    const json_t *value = typed(s, key, !otherwise, is_text, "a text");
    return value ? json_string_value(value) : otherwise ? otherwise : "";
}

/* ---- restrictions */

void att_settings_only_bool(att_settings *s, const char *key, bool only)
{
    if (att_settings_bool(s, key, only) != only)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s\" is %s, which is not supported", key, only ? "false" : "true");
}

void att_settings_only_text(att_settings *s, const char *key, const char *only)
{
    const char *is = att_settings_text(s, key, only);
    if (!s->status && strcmp(is, only) != 0)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s\" is \"%.40s\", which is not supported, only \"%s\" is", key,
                          is, only);
}

void att_settings_only_empty(att_settings *s, const char *key)
{
    const json_t *value = get(s, key);
    const bool empty =
        (json_is_object(value) || json_is_array(value)) && json_object_size(value) + json_array_size(value) == 0;
    if (value && !empty)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s\" is %s, which is not supported", key, show(value).text);
}

void att_settings_only_known(att_settings *s, const char *const *known)
{
    const char *key;
    json_t *value;
    if (!s->status && !json_is_object(s->object))
        att_settings_fail(s, ATT_ERR_FORMAT, "is not a JSON object");
    json_object_foreach((json_t *)s->object, key, value)
    {
        bool is_known = false;
        for (const char *const *k = known; *k && !is_known; k++)
            is_known = !strcmp(*k, key);
        if (!is_known)
            att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%.40s\" is not a setting that is known here", key);
    }
}
