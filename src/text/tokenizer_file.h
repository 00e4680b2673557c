/* Reading a tokenizer's files. */
#ifndef ATT_TOKENIZER_FILE_H
#define ATT_TOKENIZER_FILE_H

#include "io/settings.h"

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

/* ---- the two layouts; the settings, to be closed, are those of tokenizer.json without model.vocab */

/* tokenizer.json (vocab_json.c). Tokens are unescaped in place. */
att_status att_read_vocab_json(att_text_file *f, att_token_list *list, att_settings *settings);
/* vocab.txt, a token a line, whose id is the line's number from 0, with tokenizer_config.json and perhaps
 * special_tokens_map.json (vocab_txt.c). */
att_status att_read_vocab_txt(const att_text_file *f, const char *folder, att_token_list *list, att_settings *settings);

#endif
