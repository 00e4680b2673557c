#include "io/settings.h"
#include "io/error_position.h"
#include "io/atomic_write.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors */

/* Appends part of a JSON text, as far as it fits. */
static int append(const char *piece, size_t bytes, void *user)
{
    att_json_text *shown = user;
    const size_t used = strlen(shown->text), room = sizeof shown->text - 1 - used;
    memcpy(shown->text + used, piece, bytes < room ? bytes : room);
    if (bytes > room)
        memcpy(shown->text + sizeof shown->text - 4, "...", 4);
    return 0;
}

att_json_text att_json_show(const json_t *value)
{
    att_json_text shown = {""};
    if (!value)
        return (att_json_text){"missing"};
    json_dump_callback(value, append, &shown,
                       JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
    char *zero = json_is_real(value) ? strstr(shown.text, ".0") : NULL;
    if (zero && zero[2] == 0) /* an integer that was read as a real */
        *zero = 0;
    return shown;
}

void att_settings_fail(att_settings *s, att_status status, const char *format, ...)
{
    va_list args;
    if (s->status)
        return;
    va_start(args, format);
    s->status = att_fail_in(s->ctx, s->path, status, format, args);
    va_end(args);
}

void att_settings_unsupported(att_settings *s, const char *key, const char *supported)
{
    att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s%s\" is %s, which is not supported; %s is", s->within, key,
                      att_json_show(att_settings_get(s, key)).text, supported);
}

/* ---- writing */

static int add_piece(const char *piece, size_t bytes, void *text)
{
    att_bytes_add(text, piece, bytes);
    return 0;
}

void att_json_add(att_bytes *text, const json_t *value, size_t flags)
{
    if (json_dump_callback(value, add_piece, text, flags) && !text->status)
        text->status = att_fail(text->ctx, ATT_ERR_MEMORY, "out of memory");
}

att_status att_settings_write(att_ctx *ctx, const char *folder, const char *name, json_t *root)
{
    char path[ATT_MAX_PATH];
    att_bytes text = {.ctx = ctx};
    att_status s = att_join_path(ctx, folder, name, path);
    if (!s && !root)
        s = att_fail(ctx, ATT_ERR_MEMORY, "%s cannot be written: out of memory", path);
    if (!s) {
        att_json_add(&text, root, JSON_INDENT(2));
        att_bytes_add(&text, "\n", 1);
        s = text.status;
    }
    s = s ? s : att_write_file(ctx, path, text.data, text.count);
    att_bytes_free(&text);
    json_decref(root);
    return s;
}

/* ---- files */

int64_t att_json_values(const char *text, size_t bytes)
{
    int64_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        const char c = text[i];
        in_string ^= c == '"';
        values += !in_string && (c == ',' || c == '[' || c == '{');
        i += in_string && c == '\\'; /* an escaped character may be a quote */
    }
    return values;
}

void att_settings_init(att_settings *s, att_ctx *ctx, const char *path, json_t *root)
{
    *s = (att_settings){.ctx = ctx, .root = root, .object = root};
    snprintf(s->path, sizeof s->path, "%s", path);
}

/* Settings have all numbers as doubles: some files have integers beyond 64 bits (model_max_length 1e30, written out).
 */
enum { AS_DOUBLES = JSON_DECODE_INT_AS_REAL };

static void parse(att_settings *s, const char *text, size_t bytes, bool list, size_t flags)
{
    json_error_t e;
    const int64_t values = att_json_values(text, bytes);
    if (values > ATT_MAX_JSON_VALUES) {
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "has %lld values, the maximum is %d", (long long)values,
                          ATT_MAX_JSON_VALUES);
        return;
    }
    errno = 0; /* when out of memory, jansson may report a syntax error */
    s->object = s->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | flags, &e);
    if (!s->root && (errno == ENOMEM || json_error_code(&e) == json_error_out_of_memory))
        att_settings_fail(s, ATT_ERR_MEMORY, "out of memory");
    else if (!s->root)
        att_settings_fail(s, ATT_ERR_FORMAT, "line %d, column %d: %s", e.line, e.column, e.text);
    else if (list ? !json_is_array(s->root) : !json_is_object(s->root))
        att_settings_fail(s, ATT_ERR_FORMAT, list ? "is not a list" : "is not a JSON object");
}

att_status att_refuse_adapter(att_ctx *ctx, const char *folder)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "adapter_config.json", false);
    const char *base = att_settings_text(&s, "base_model_name_or_path", "another model");
    const att_status e = !s.root
                             ? (s.status == ATT_ERR_MEMORY ? s.status : ATT_OK)
                             : att_fail(ctx, ATT_ERR_UNSUPPORTED,
                                        "%s is an adapter of %.200s, not a model by itself: merge it into that first, "
                                        "as with peft's merge_and_unload() and save_pretrained()",
                                        folder, base);
    att_settings_close(&s);
    return e;
}

static void read_file(att_settings *s, att_ctx *ctx, const char *folder, const char *name, bool required, bool list,
                      size_t flags)
{
    att_text_file f;
    att_status status = att_text_file_read(&f, ctx, folder, name, false);
    if (!status && !f.text && required) {
        status = att_refuse_adapter(ctx, folder);
        status = status ? status : att_text_file_read(&f, ctx, folder, name, true);
    }
    att_settings_init(s, ctx, f.path, NULL);
    s->status = status;
    if (!status && f.text)
        parse(s, f.text, f.bytes, list, flags);
    att_text_file_free(&f);
}

void att_settings_read(att_settings *s, att_ctx *ctx, const char *folder, const char *name, bool required)
{
    read_file(s, ctx, folder, name, required, false, AS_DOUBLES);
}

att_status att_settings_read_as_is(att_ctx *ctx, const char *folder, const char *name, bool required, json_t **out)
{
    att_settings s;
    read_file(&s, ctx, folder, name, required, false, 0);
    if (s.status == ATT_ERR_FORMAT) { /* maybe of an integer beyond 64 bits */
        att_settings_close(&s);
        att_settings_read(&s, ctx, folder, name, required);
    }
    *out = s.status ? NULL : json_incref(s.root);
    att_settings_close(&s);
    return s.status;
}

void att_settings_read_list(att_settings *s, att_ctx *ctx, const char *folder, const char *name)
{
    read_file(s, ctx, folder, name, true, true, AS_DOUBLES);
}

void att_settings_parse(att_settings *s, att_ctx *ctx, const char *path, const char *text, size_t bytes)
{
    att_settings_init(s, ctx, path, NULL);
    parse(s, text, bytes, false, AS_DOUBLES);
}

void att_settings_parse_tokens(att_settings *s, att_ctx *ctx, const char *path, const char *text, size_t bytes)
{
    att_settings_init(s, ctx, path, NULL);
    parse(s, text, bytes, false, AS_DOUBLES | JSON_ALLOW_NUL);
}

void att_settings_from_json(att_settings *s, att_ctx *ctx, const char *path, json_t *root)
{
    att_bytes text = {.ctx = ctx};
    att_settings_init(s, ctx, path, NULL);
    if (root)
        att_json_add(&text, root, 0);
    else
        text.status = att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory for the settings", path);
    s->status = text.status;
    if (!s->status)
        parse(s, text.data, text.count, false, AS_DOUBLES | JSON_ALLOW_NUL);
    att_bytes_free(&text);
    json_decref(root);
}

void att_settings_close(att_settings *s)
{
    json_decref(s->root);
    s->root = NULL;
}

att_status att_settings_complete(att_settings *s, att_ctx *ctx, const char *text,
                                 att_status (*complete)(const void *user, json_t *root), const void *user)
{
    static const char name[] = "the model's settings";
    att_settings_parse(s, ctx, name, text, strlen(text));
    const att_status e = s->status ? s->status : complete(user, s->root);
    if (e)
        return e;
    json_t *root = json_incref(s->root);
    att_settings_close(s);
    att_settings_from_json(s, ctx, name, root);
    return s->status;
}

/* ---- values */

const json_t *att_settings_get(const att_settings *s, const char *key)
{
    const json_t *value = s->status ? NULL : json_object_get(s->object, key);
    return json_is_null(value) ? NULL : value;
}

bool att_settings_has(const att_settings *s, const char *key) { return att_settings_get(s, key) != NULL; }

bool att_settings_has_key(const att_settings *s, const char *key)
{
    return !s->status && json_object_get(s->object, key) != NULL;
}

void att_settings_need(att_settings *s, const char *key)
{
    if (!att_settings_has(s, key))
        att_settings_fail(s, ATT_ERR_FORMAT, "there is no \"%s%s\"", s->within, key);
}

/* Returns the value of a key; error: it is missing but required, or has another type. */
static const json_t *typed(att_settings *s, const char *key, bool required, bool good_type(const json_t *),
                           const char *type)
{
    const json_t *value = att_settings_get(s, key);
    if (required)
        att_settings_need(s, key);
    if (value && !good_type(value))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s%s\" is %s, not %s", s->within, key, att_json_show(value).text, type);
    return s->status ? NULL : value;
}

static bool is_number(const json_t *v) { return json_is_real(v); }
static bool is_whole(const json_t *v) { return json_is_real(v) && json_real_value(v) == floor(json_real_value(v)); }
static bool is_bool(const json_t *v) { return json_is_boolean(v); }
static bool is_text(const json_t *v) { return json_is_string(v); }
static bool is_list(const json_t *v) { return json_is_array(v); }
static bool is_object(const json_t *v) { return json_is_object(v); }

static double in_range(att_settings *s, const char *key, const json_t *value, double min, double max)
{
    const double x = json_number_value(value);
    if (!value || (x >= min && x <= max))
        return value ? x : 0;
    att_settings_fail(s, ATT_ERR_FORMAT, "\"%s%s\" is %.12g, not in [%.12g, %.12g]", s->within, key, x, min, max);
    return 0;
}

int64_t att_settings_int(att_settings *s, const char *key, int64_t min, int64_t max)
{
    const double exact = 0x1p53 - 1; /* the largest integer below which doubles represent all integers */
    const json_t *value = typed(s, key, true, is_whole, "a whole number");
    return (int64_t)in_range(s, key, value, fmax((double)min, -exact), fmin((double)max, exact));
}

int64_t att_settings_int_or(att_settings *s, const char *key, int64_t min, int64_t max, int64_t otherwise)
{
    return att_settings_has(s, key) ? att_settings_int(s, key, min, max) : otherwise;
}

double att_settings_number(att_settings *s, const char *key, double min, double max)
{
    return in_range(s, key, typed(s, key, true, is_number, "a number"), min, max);
}

double att_settings_number_or(att_settings *s, const char *key, double min, double max, double otherwise)
{
    return att_settings_has(s, key) ? att_settings_number(s, key, min, max) : otherwise;
}

bool att_settings_bool(att_settings *s, const char *key, bool otherwise)
{
    const json_t *value = typed(s, key, false, is_bool, "true or false");
    return value ? json_is_true(value) : otherwise;
}

const char *att_settings_text(att_settings *s, const char *key, const char *otherwise)
{
    const json_t *value = typed(s, key, !otherwise, is_text, "a text");
    const char *text = value ? json_string_value(value) : otherwise ? otherwise : "";
    if (value && strlen(text) < json_string_length(value))
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s%s\" is %s, which has a zero byte (NUL)", s->within, key,
                          att_json_show(value).text);
    return text;
}

att_byte_view att_settings_bytes(att_settings *s, const char *key)
{
    const json_t *value = typed(s, key, true, is_text, "a text");
    return value ? (att_byte_view){json_string_value(value), json_string_length(value)} : (att_byte_view){"", 0};
}

int att_settings_choice(att_settings *s, const char *key, const char *const *names, int n, const char *supported)
{
    const char *value = att_settings_text(s, key, NULL);
    for (int i = 0; i < n; i++)
        if (!strcmp(value, names[i]))
            return i;
    att_settings_unsupported(s, key, supported);
    return 0;
}

const json_t *att_settings_list(att_settings *s, const char *key, bool required)
{
    return typed(s, key, required, is_list, "a list");
}

/* ---- nested objects */

att_settings_scope att_settings_enter_item(att_settings *s, const char *name, const json_t *item)
{
    const att_settings_scope before = {s->object, strlen(s->within)};
    snprintf(s->within + before.within, sizeof s->within - before.within, "%s%s", name, *name ? "." : "");
    s->object = item;
    return before;
}

att_settings_scope att_settings_enter(att_settings *s, const char *key)
{
    return att_settings_enter_item(s, key, typed(s, key, true, is_object, "an object"));
}

void att_settings_leave(att_settings *s, att_settings_scope before)
{
    s->object = before.object;
    s->within[before.within] = 0;
}

/* ---- restrictions */

void att_settings_only_bool(att_settings *s, const char *key, bool only)
{
    if (att_settings_bool(s, key, only) != only)
        att_settings_unsupported(s, key, only ? "true" : "false");
}

void att_settings_only_text(att_settings *s, const char *key, const char *only)
{
    const char *is = att_settings_text(s, key, only);
    if (!s->status && strcmp(is, only) != 0)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s%s\" is \"%.40s\", which is not supported, only \"%s\" is",
                          s->within, key, is, only);
}

void att_settings_only_number(att_settings *s, const char *key, double only)
{
    const json_t *value = typed(s, key, false, is_number, "a number");
    char supported[32];
    snprintf(supported, sizeof supported, "%g", only);
    if (value && json_real_value(value) != only)
        att_settings_unsupported(s, key, supported);
}

void att_settings_only_empty(att_settings *s, const char *key)
{
    const json_t *value = att_settings_get(s, key);
    const bool empty =
        (json_is_object(value) || json_is_array(value)) && json_object_size(value) + json_array_size(value) == 0;
    if (value && !empty)
        att_settings_unsupported(s, key, "leaving it out");
}

void att_settings_only_known(att_settings *s, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)s->object, key, value)
    {
        bool is_known = false;
        for (const char *const *k = known; *k && !is_known; k++)
            is_known = !strcmp(*k, key);
        if (!is_known)
            att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s%.40s\" is not a known setting", s->within, key);
    }
}
