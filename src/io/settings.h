/* Strict reading of JSON settings. As on the tape, the first error stays and all later values are zero, so reading code
 * needs no checks. Errors name the file, the setting and its value. */
#ifndef ATT_IO_SETTINGS_H
#define ATT_IO_SETTINGS_H

#include "io/bytes.h"
#include "io/file.h"

#include <jansson.h>

typedef struct att_settings {
    att_ctx *ctx;
    att_status status;
    json_t *root;         /* NULL: no such file */
    const json_t *object; /* the current object: root, or the one that was entered */
    char within[128];     /* prefix of its keys in errors: "", or "model." */
    char path[ATT_MAX_PATH];
} att_settings;

/* Returns an error if the folder has adapter_config.json: the missing files are in another model, which the message
 * names. */
att_status att_refuse_adapter(att_ctx *ctx, const char *folder);
/* Reads FOLDER/NAME, a JSON object; a missing file is an error if required. */
void att_settings_read(att_settings *s, att_ctx *ctx, const char *folder, const char *name, bool required);
/* Reads FOLDER/NAME as att_settings_read does, to change it and write it again -> *out, which the caller owns; NULL:
 * there is no file. Integers of up to 64 bits stay integers, which classes of Python require. */
att_status att_settings_read_as_is(att_ctx *ctx, const char *folder, const char *name, bool required, json_t **out);
/* Reads FOLDER/NAME, a JSON list of objects; a missing file is an error. */
void att_settings_read_list(att_settings *s, att_ctx *ctx, const char *folder, const char *name);
/* Reads text [bytes], a JSON object; `path` is for errors. */
void att_settings_parse(att_settings *s, att_ctx *ctx, const char *path, const char *text, size_t bytes);
/* Reads text [bytes] of tokenizer.json, whose strings may have zero bytes. */
void att_settings_parse_tokens(att_settings *s, att_ctx *ctx, const char *path, const char *text, size_t bytes);
/* Makes settings of a JSON value in memory, normalized as if written and read again, and frees root. root NULL: out of
 * memory. `path` is for errors. */
void att_settings_from_json(att_settings *s, att_ctx *ctx, const char *path, json_t *root);
/* Makes settings of a JSON value, which att_settings_close frees. */
void att_settings_init(att_settings *s, att_ctx *ctx, const char *path, json_t *root);
void att_settings_close(att_settings *s);
/* Makes settings of a new model from a JSON text, to which `complete` adds what follows from its data; close them even
 * after an error. */
att_status att_settings_complete(att_settings *s, att_ctx *ctx, const char *text,
                                 att_status (*complete)(const void *user, json_t *root), const void *user);

/* Fails with "PATH: message". */
void att_settings_fail(att_settings *s, att_status status, const char *format, ...) ATT_PRINTF(3, 4);
/* Fails with: "KEY" is VALUE, which is not supported; SUPPORTED is. */
void att_settings_unsupported(att_settings *s, const char *key, const char *supported);

/* ---- values: a key that is missing or null has no value */

const json_t *att_settings_get(const att_settings *s, const char *key);
bool att_settings_has(const att_settings *s, const char *key);
/* Returns whether the key exists, even if its value is null. In `transformers` null is a value that differs from the
 * default of a missing key. */
bool att_settings_has_key(const att_settings *s, const char *key);
/* Fails if there is no value. */
void att_settings_need(att_settings *s, const char *key);
/* Returns a required integer in [min, max]. */
int64_t att_settings_int(att_settings *s, const char *key, int64_t min, int64_t max);
/* Return a value; `otherwise` if there is none. */
int64_t att_settings_int_or(att_settings *s, const char *key, int64_t min, int64_t max, int64_t otherwise);
double att_settings_number(att_settings *s, const char *key, double min, double max);
double att_settings_number_or(att_settings *s, const char *key, double min, double max, double otherwise);
/* `otherwise` if there is no value; a text with `otherwise` NULL is required. */
bool att_settings_bool(att_settings *s, const char *key, bool otherwise);
const char *att_settings_text(att_settings *s, const char *key, const char *otherwise);
/* Returns a required text that may have zero bytes, with which att_settings_text fails. */
att_byte_view att_settings_bytes(att_settings *s, const char *key);
/* Returns which of names [n] the required text is; `supported` lists them in the error message. */
int att_settings_choice(att_settings *s, const char *key, const char *const *names, int n, const char *supported);
/* Returns a list; NULL if there is no value and it is not required. */
const json_t *att_settings_list(att_settings *s, const char *key, bool required);

/* ---- nested objects: after enter, keys are those of the nested object, until leave */

typedef struct att_settings_scope {
    const json_t *object;
    size_t within; /* bytes */
} att_settings_scope;

/* Enters the value of `key`, a required object. */
att_settings_scope att_settings_enter(att_settings *s, const char *key);
/* Enters an item of a list; `name` is its prefix in errors ("": none). */
att_settings_scope att_settings_enter_item(att_settings *s, const char *name, const json_t *item);
void att_settings_leave(att_settings *s, att_settings_scope before);

/* ---- restrictions */

/* Accepts a missing key, null, or `only`; otherwise: "is_decoder" is true, which is not supported. */
void att_settings_only_bool(att_settings *s, const char *key, bool only);
void att_settings_only_text(att_settings *s, const char *key, const char *only);
void att_settings_only_number(att_settings *s, const char *key, double only);
/* Accepts a missing key, null, or an empty value. */
void att_settings_only_empty(att_settings *s, const char *key);
/* Fails at a key that is not in known[] (ends with NULL). */
void att_settings_only_known(att_settings *s, const char *const *known);

/* ---- limits */

/* jansson allocates at most 300 bytes per value, so 600 MB at this limit. The largest tokenizer.json has 1.5 million
 * values besides its vocabulary; the header of a checkpoint has eight per tensor. */
enum { ATT_MAX_JSON_VALUES = 1 << 21 };
/* Returns a lower bound of the number of values in a text: commas and opening brackets outside strings. */
int64_t att_json_values(const char *text, size_t bytes);

/* ---- writing */

/* Appends a value as JSON text; flags are jansson's. */
void att_json_add(att_bytes *text, const json_t *value, size_t flags);
/* Replaces FOLDER/NAME by a value, which it frees; NULL: out of memory. */
att_status att_settings_write(att_ctx *ctx, const char *folder, const char *name, json_t *root);

/* ---- for errors */

/* A value as JSON text, truncated for a message; "missing" for NULL. */
typedef struct att_json_text {
    char text[80];
} att_json_text;
att_json_text att_json_show(const json_t *value);

#endif
