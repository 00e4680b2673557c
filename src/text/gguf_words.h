/* The tags of .gguf files by which a text of byte level is split into words. */
#ifndef ATT_TEXT_GGUF_WORDS_H
#define ATT_TEXT_GGUF_WORDS_H

#include "io/gguf.h"

#include <jansson.h>

enum { ATT_GGUF_SPLITS = 4 };

typedef struct att_gguf_words {
    const char *tags[16];
    const char *split[ATT_GGUF_SPLITS];
    bool digits; /* each digit is a word; otherwise as GPT-2 */
    bool nfc, ignore_merges, bos;
} att_gguf_words;

/* Returns the words of a file by its tag. */
const att_gguf_words *att_gguf_words_of(att_gguf *g);
/* Makes "pre_tokenizer" of tokenizer.json. */
json_t *att_gguf_pre_tokenizer(const att_gguf_words *w);
json_t *att_gguf_byte_level(bool use_regex);
/* Returns the tag of a tokenizer.json, by its normalizer, pre_tokenizer and model; NULL: none. */
const char *att_gguf_words_tag(const json_t *tokenizer);

#endif
