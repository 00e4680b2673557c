/* Reading a tokenizer's files. */
#ifndef ATT_TOKENIZER_FILE_H
#define ATT_TOKENIZER_FILE_H

#include <jansson.h>

#include "attend_model.h"

/* ---- files (json_file.c) */

#define ATT_MAX_PATH 4096

typedef struct att_text_file {
    att_ctx *ctx;
    char path[ATT_MAX_PATH];
    char *text; /* [bytes], and a zero byte behind */
    size_t bytes;
} att_text_file;

/* Reads FOLDER/NAME. Where it is not there: an error if required, else text is NULL. */
att_status att_text_file_read(att_text_file *f, att_ctx *ctx, const char *folder, const char *name, bool required);
void att_text_file_free(att_text_file *f);
/* The file as a JSON object, but with {} in place of the bytes [begin, end). Numbers are all real: some files have
 * whole ones beyond 64 bits (model_max_length 1e30, written out). */
att_status att_text_file_json(const att_text_file *f, size_t begin, size_t end, json_t **out);

/* object[key], of this type; `where` is the object's name in errors. Absent or null: an error if required, else NULL.
 * For JSON_TRUE either boolean is right. */
att_status att_json_get(att_ctx *ctx, const char *path, const char *where, const json_t *object, const char *key,
                        json_type type, bool required, json_t **out);
/* A value as it is written, cut to fit a sentence. */
typedef struct att_json_text {
    char text[80];
} att_json_text;
att_json_text att_json_show(const json_t *value);
/* An id that a vocabulary may have, in [0, ATT_MAX_VOCABULARY); ATT_NO_TOKEN for any other value. */
int32_t att_json_id(const json_t *value);

/* ---- vocabularies as files have them (vocab_json.c, vocab_txt.c) */

typedef struct att_token_entry {
    const char *text; /* [bytes], in the file's text, not empty */
    size_t bytes;
    int32_t id; /* in [0, ATT_MAX_VOCABULARY) */
} att_token_entry;

typedef struct att_token_list {
    att_ctx *ctx;
    att_token_entry *entry; /* [count] */
    size_t count, capacity;
} att_token_list;

att_status att_token_list_add(att_token_list *list, att_token_entry entry);
void att_token_list_free(att_token_list *list);

/* The object model.vocab of tokenizer.json, whose bytes are [*begin, *end); if there is none, that is empty. It is
 * most of the file, and a general JSON reader would take ten milliseconds for it. Tokens are unescaped in place. */
att_status att_read_vocab_json(att_text_file *f, att_token_list *list, size_t *begin, size_t *end);
/* vocab.txt: a token a line, whose id is the line's number from 0. */
att_status att_read_vocab_txt(att_text_file *f, att_token_list *list);
/* What tokenizer.json would say beside the vocabulary, from tokenizer_config.json and special_tokens_map.json. */
att_status att_read_tokenizer_config(att_ctx *ctx, const char *folder, const att_token_list *list, json_t **out);

#endif
