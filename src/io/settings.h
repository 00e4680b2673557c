/* A JSON file of settings, read strictly. As on the tape, the first failure stays and everything after it gives
 * zero, so that reading has no checks. Errors name the file, the setting and its value. */
#ifndef ATT_IO_SETTINGS_H
#define ATT_IO_SETTINGS_H

#include "io/bytes.h"
#include "io/text_file.h"

#include <jansson.h>

typedef struct att_settings {
    att_ctx *ctx;
    att_status status;
    json_t *root;         /* NULL: the file is not there */
    const json_t *object; /* whose settings are asked for: the root, or what was entered */
    char within[128];     /* its name in errors: "", or "model." with the dot */
    char path[ATT_MAX_PATH];
} att_settings;

/* Reads FOLDER/NAME, a JSON object; a missing file is an error where it is required. */
void att_settings_read(att_settings *s, att_ctx *ctx, const char *folder, const char *name, bool required);
/* The same where the file is a list of objects, and required. */
void att_settings_read_list(att_settings *s, att_ctx *ctx, const char *folder, const char *name);
/* Reads text[bytes], a JSON object; `path` is for errors. */
void att_settings_parse(att_settings *s, att_ctx *ctx, const char *path, const char *text, size_t bytes);
/* Settings that a program has made, as they will be when they are written and read again; frees root. NULL: memory ran
 * out. `path` is for errors. */
void att_settings_made(att_settings *s, att_ctx *ctx, const char *path, json_t *root);
/* Settings that were not read from a file; root is freed with them. */
void att_settings_init(att_settings *s, att_ctx *ctx, const char *path, json_t *root);
void att_settings_close(att_settings *s);

/* Fails with "PATH: sentence". */
void att_settings_fail(att_settings *s, att_status status, const char *format, ...) ATT_PRINTF(3, 4);
/* Fails with: "KEY" is VALUE, which is not supported; SUPPORTED is. */
void att_settings_unsupported(att_settings *s, const char *key, const char *supported);

/* ---- values: none where it is not there, or null */

const json_t *att_settings_get(const att_settings *s, const char *key);
bool att_settings_has(const att_settings *s, const char *key);
/* Fails where it is not there. */
void att_settings_need(att_settings *s, const char *key);
/* Required, in [min, max]. */
int64_t att_settings_whole(att_settings *s, const char *key, int64_t min, int64_t max);
double att_settings_number(att_settings *s, const char *key, double min, double max);
/* `otherwise` where it is not there; a text is required where `otherwise` is NULL. */
bool att_settings_bool(att_settings *s, const char *key, bool otherwise);
const char *att_settings_text(att_settings *s, const char *key, const char *otherwise);
/* NULL where it is not there, if not required. */
const json_t *att_settings_list(att_settings *s, const char *key, bool required);

/* ---- objects within: all settings are then of that object, until it is left for where one was before */

typedef struct att_settings_place {
    const json_t *object;
    size_t within; /* bytes */
} att_settings_place;

/* The setting `key`, a required object. */
att_settings_place att_settings_enter(att_settings *s, const char *key);
/* An item of a list, which is called `name` in errors ("": not at all). */
att_settings_place att_settings_enter_item(att_settings *s, const char *name, const json_t *item);
void att_settings_leave(att_settings *s, att_settings_place before);

/* ---- restrictions */

/* Not there, null, or `only`: "is_decoder" is true, which is not supported. */
void att_settings_only_bool(att_settings *s, const char *key, bool only);
void att_settings_only_text(att_settings *s, const char *key, const char *only);
void att_settings_only_number(att_settings *s, const char *key, double only);
/* Not there, null, or empty. */
void att_settings_only_empty(att_settings *s, const char *key);
/* Fails at a setting that is not in known[] (ends with NULL). */
void att_settings_only_known(att_settings *s, const char *const *known);

/* ---- limits */

/* jansson takes at most 300 bytes for each value, so 600 MB for so many, whatever the text. The largest tokenizer.json
 * has 1.5 million beside its vocabulary, the header of a checkpoint eight for each of its tensors. */
enum { ATT_MAX_JSON_VALUES = 1 << 21 };
/* How many values the text has, at least: its commas and its opening brackets, but not those in strings. */
int64_t att_json_values(const char *text, size_t bytes);

/* ---- writing */

/* Adds the value as JSON; flags are jansson's. */
void att_json_add(att_bytes *text, const json_t *value, size_t flags);
/* Replaces FOLDER/NAME by this value, which it frees; NULL: memory ran out. */
att_status att_settings_write(att_ctx *ctx, const char *folder, const char *name, json_t *root);

/* ---- for errors */

/* A value as it is written, cut to fit a sentence; "missing" for NULL. */
typedef struct att_json_text {
    char text[80];
} att_json_text;
att_json_text att_json_show(const json_t *value);

#endif
