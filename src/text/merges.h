/* Learning byte-pair encoding (Sennrich et al. 2016): of all neighbours in the words of a text the most frequent ones
 * become a new symbol, and so on. */
#ifndef ATT_MERGES_H
#define ATT_MERGES_H

#include "io/bytes.h"
#include "text/wordpiece.h"

#define ATT_MAX_SYMBOL 64 /* characters */

typedef struct att_word {
    att_byte_view text; /* UTF-8; the mark for a space, if there is one, is its first character */
    int64_t count;
} att_word;

typedef struct att_merge_options {
    int64_t max_length; /* characters of a symbol, at most ATT_MAX_SYMBOL */
    bool split_digits;  /* a digit is never merged, neither with another digit nor with the mark */
    void (*progress)(void *user, double share);
    void *user;
} att_merge_options;

/* `symbols` has the *n characters that are learnt from, with ids from 0; others part a word. Adds symbols made of two
 * until there is no id left or no two that are neighbours twice; *n is then how many there are. A symbol is of letters,
 * of digits or of neither, but for a mark before it. Of pairs that are equally frequent that with fewer characters
 * comes first, then that of the older symbols, so that the result is always the same. */
att_status att_merges_learn(att_vocabulary *symbols, int64_t *n, const att_word *words, size_t n_words,
                            const att_merge_options *opt);

#endif
