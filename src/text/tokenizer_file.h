/* Reading a tokenizer's files. */
#ifndef ATT_TOKENIZER_FILE_H
#define ATT_TOKENIZER_FILE_H

#include <jansson.h>

#include "attend_model.h"

/* What tokenizer.json would say, from vocab.txt, tokenizer_config.json and special_tokens_map.json. */
att_status att_read_vocab_txt(att_ctx *ctx, const char *folder, json_t **out);

#define ATT_MAX_PATH 4096
/* "folder/name", or an error if that is too long. */
att_status att_join_path(att_ctx *ctx, const char *folder, const char *name, char path[ATT_MAX_PATH]);

/* A JSON file whose value is an object. */
att_status att_read_json(att_ctx *ctx, const char *path, json_t **out);
/* object[key], of this type; `where` is the object's name in errors. Absent or null: an error if required, else NULL.
 * For JSON_TRUE either boolean is right. */
att_status att_json_get(att_ctx *ctx, const char *file, const char *where, const json_t *object, const char *key,
                        json_type type, bool required, json_t **out);
/* The value as text, cut to fit an error sentence. */
typedef struct att_json_text {
    char text[80];
} att_json_text;
att_json_text att_json_show(const json_t *value);

#endif
