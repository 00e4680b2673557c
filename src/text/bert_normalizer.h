/* Text to words, as the types BertNormalizer and BertPreTokenizer of the `tokenizers` package do it:
 *
 *   clean_text            drop control characters, U+0000 and U+FFFD
 *   handle_chinese_chars  put spaces around each ideograph
 *   strip_accents         decompose (NFD), then drop nonspacing marks; nothing is composed again
 *   lowercase             each character for itself
 *   then split            at white space, which goes, and around each punctuation mark, which is a word
 *
 * Here this is one pass: characters go in one by one, words come out, and nothing is kept but the word that grows. */
#ifndef ATT_BERT_NORMALIZER_H
#define ATT_BERT_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/wordpiece.h"

typedef struct att_bert_settings {
    bool clean_text, handle_chinese_chars, strip_accents, lowercase;
    int max_word; /* in characters, at most ATT_MAX_WORD; of longer words only this is known: that they are too long */
} att_bert_settings;

typedef struct att_words {
    const att_bert_settings *settings;
    /* Called with each word: bytes of UTF-8, normalised, not terminated; cut off if it is too long. */
    void (*emit)(void *user, const char *word, size_t bytes, bool too_long);
    void *user;
    bool full; /* set by the user: no further word is wanted */
    bool cut;  /* there was a further word: the rest of the text is not looked at */

    int n_pending; /* marks that are kept wait for a starter: they are sorted by combining class */
    uint32_t pending[ATT_MAX_WORD + 1];
    int chars; /* of the word that grows, at most max_word + 1 */
    size_t bytes;
    char word[4 * ATT_MAX_WORD];
} att_words;

void att_words_init(att_words *w, const att_bert_settings *settings,
                    void (*emit)(void *user, const char *word, size_t bytes, bool too_long), void *user);
/* Takes one character of s[bytes], bytes > 0; returns how many bytes that was. */
size_t att_words_take(att_words *w, const unsigned char *s, size_t bytes);
/* Takes characters up to the first whose first byte is in `pause`, or until w->cut; returns how many bytes. */
size_t att_words_run(att_words *w, const unsigned char *s, size_t bytes, const bool pause[256]);
/* Ends the word that grows, if any. */
void att_words_end(att_words *w);

#endif
