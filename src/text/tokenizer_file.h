/* Reading a tokenizer's files. */
#ifndef ATT_TOKENIZER_FILE_H
#define ATT_TOKENIZER_FILE_H

#include "io/settings.h"
#include "text/wordpiece.h"

/* ---- vocabularies as files have them */

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
/* Makes the vocabulary: each token and each id may be there once. It has room for ids below `size`, and for so many
 * bytes of tokens that are not in the list. */
void att_token_list_fill(const att_token_list *list, att_settings *s, att_vocabulary *v, int64_t size, size_t bytes);
/* Whether no token has this id yet, which else is a failure. */
bool att_token_id_is_free(att_settings *s, const att_vocabulary *v, int32_t id, const char *token, size_t bytes);
/* The setting `key` has a token, as a text or as an object with a content. */
const char *att_token_content(att_settings *s, const char *key, const json_t *value);

/* ---- the layouts; the settings, to be closed, are those of tokenizer.json without model.vocab */

/* tokenizer.json (vocab_json.c). Tokens are unescaped in place. */
att_status att_read_vocab_json(att_text_file *f, att_token_list *list, att_settings *settings);
/* vocab.json, the tokens alone (vocab_json.c). */
att_status att_read_token_map(att_text_file *f, att_token_list *list);
/* vocab.txt, a token a line, whose id is the line's number from 0, with tokenizer_config.json and perhaps
 * special_tokens_map.json (vocab_txt.c). */
att_status att_read_vocab_txt(const att_text_file *f, const char *folder, att_token_list *list, att_settings *settings);

#endif
