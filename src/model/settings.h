/* A JSON file of settings, read strictly. As on the tape, the first failure stays and everything after it gives
 * zero, so that reading has no checks. Errors name the file, the setting and its value. */
#ifndef ATT_MODEL_SETTINGS_H
#define ATT_MODEL_SETTINGS_H

#include "attend.h"

#include <jansson.h>

typedef struct att_settings {
    att_ctx *ctx;
    att_status status;
    json_t *root;         /* NULL: the file is not there */
    const json_t *object; /* whose settings are asked for: the root, or one item of a list */
    char path[4096];
} att_settings;

/* Reads FOLDER/NAME; a missing file is an error where it is required. */
void att_settings_read(att_settings *s, att_ctx *ctx, const char *folder, const char *name, bool required);
void att_settings_close(att_settings *s);

/* Fails with "PATH: sentence". */
void att_settings_fail(att_settings *s, att_status status, const char *format, ...) ATT_PRINTF(3, 4);

bool att_settings_has(const att_settings *s, const char *key); /* there, and not null */
/* Required, in [least, most]. */
int64_t att_settings_whole(att_settings *s, const char *key, int64_t least, int64_t most);
double att_settings_number(att_settings *s, const char *key, double least, double most);
/* `otherwise` where it is not there; a text is required where `otherwise` is NULL. */
bool att_settings_bool(att_settings *s, const char *key, bool otherwise);
const char *att_settings_text(att_settings *s, const char *key, const char *otherwise);

/* Not there, null, or `only`: "is_decoder is true: not supported". */
void att_settings_only_bool(att_settings *s, const char *key, bool only);
void att_settings_only_text(att_settings *s, const char *key, const char *only);
/* Not there, null, or empty. */
void att_settings_only_empty(att_settings *s, const char *key);
/* Fails at a setting that is not in known[] (ends with NULL). */
void att_settings_only_known(att_settings *s, const char *const *known);

#endif
