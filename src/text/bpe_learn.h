/* Learning byte-pair encoding (Sennrich et al. 2016): the most frequent pair of adjacent symbols becomes a new symbol,
 * repeatedly. */
#ifndef ATT_BPE_LEARN_H
#define ATT_BPE_LEARN_H

#include "attend_text.h"
#include "io/bytes.h"
#include "text/wordpiece.h"

#define ATT_MAX_SYMBOL 64 /* characters */

typedef struct att_word {
    size_t begin, bytes; /* in a text of all words, UTF-8; may begin with the word mark */
    int64_t count;
} att_word;

/* `symbols` has the *n characters to learn from, with ids from 0; other characters separate words. Adds merged symbols
 * until no id is left or no pair occurs twice, and sets *n to the number of symbols. A symbol consists of letters, of
 * digits or of neither, optionally after the word mark. Among equally frequent pairs the one with fewer characters
 * comes first, then the one with older symbols, so the result is deterministic. It uses the options max_length,
 * split_digits and progress. */
att_status att_bpe_learn(att_vocabulary *symbols, int64_t *n, const char *text, const att_word *words, size_t n_words,
                         const att_vocab_options *options);

#endif
