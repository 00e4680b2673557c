/* Text to words, like BertNormalizer and BertPreTokenizer of the `tokenizers` package:
 *
 * clean_text            remove control characters, U+0000 and U+FFFD
 * handle_chinese_chars  put spaces around each ideograph
 * strip_accents         decompose (NFD), then remove nonspacing marks; nothing is recomposed
 * lowercase             each character, without context
 * then split            at white space, and around each punctuation mark, which is a word
 *
 * All steps are done in one pass: characters are pushed one by one, words are emitted, and only the current word is
 * stored. */
#ifndef ATT_BERT_NORMALIZER_H
#define ATT_BERT_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/wordpiece.h"

typedef struct att_bert_settings {
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
    int max_word; /* in characters, at most ATT_MAX_WORD; longer words are emitted truncated, as too long */
} att_bert_settings;

typedef struct att_bert_normalizer {
    const att_bert_settings *settings;
    /* Receives each word: normalized UTF-8 [bytes], not zero-terminated; truncated if it is too long. */
    void (*emit)(void *user, const char *word, size_t bytes, bool too_long);
    void *user;
    bool full;      /* set by the user: no more words are accepted */
    bool truncated; /* another word followed; the rest of the text is not read */

    int n_pending; /* marks after the last starter, sorted by combining class */
    uint32_t pending[ATT_MAX_WORD + 1];
    int chars; /* of the current word, at most max_word + 1 */
    size_t bytes;
    char word[4 * ATT_MAX_WORD];
} att_bert_normalizer;

void att_bert_normalizer_init(att_bert_normalizer *w, const att_bert_settings *settings,
                              void (*emit)(void *user, const char *word, size_t bytes, bool too_long), void *user);
/* Processes one character of s [bytes], bytes > 0; returns its length in bytes. */
size_t att_bert_normalizer_step(att_bert_normalizer *w, const unsigned char *s, size_t bytes);
/* Processes characters up to the first whose first byte is in `pause`, or until truncated; returns the number of
 * bytes. */
size_t att_bert_normalizer_run(att_bert_normalizer *w, const unsigned char *s, size_t bytes, const bool pause[256]);
/* Ends the current word, if any. */
void att_bert_normalizer_end(att_bert_normalizer *w);

#endif
