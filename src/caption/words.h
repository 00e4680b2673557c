/* Vocabularies of captions: words by descending count. */
#ifndef ATT_CAPTION_WORDS_H
#define ATT_CAPTION_WORDS_H

#include "text/ids.h"

#define ATT_WORDS_FILE "words.json"

/* Words and their counts, in the order in which they were added. */
typedef struct att_word_counts {
    att_ids words;
    int64_t *count; /* [words] */
    size_t room;
} att_word_counts;

void att_word_counts_init(att_word_counts *c, att_ctx *ctx);
void att_word_counts_free(att_word_counts *c);
/* Adds the words of a text made by att_plain_words. */
att_status att_word_counts_add(att_word_counts *c, const char *text);

/* A vocabulary. Ids 0 to n - 1 are words, n is <unk> and n + 1 is <end>, which also begins a caption. */
typedef struct att_words {
    att_ids words;
    int64_t min_count;
} att_words;

static inline int32_t att_words_unknown(const att_words *w) { return (int32_t)att_ids_count(&w->words); }
static inline int32_t att_words_end(const att_words *w) { return att_words_unknown(w) + 1; }
static inline int64_t att_words_size(const att_words *w) { return att_ids_count(&w->words) + 2; }

/* Selects the words that were counted min_count times or more, sorted by descending count, then by their bytes. Keeps
 * the first `max` of them, or all if max is 0. Error: no word is selected. w must be freed even after an error. */
att_status att_words_make(att_words *w, const att_word_counts *counts, int64_t min_count, int64_t max);
/* Write and read FOLDER/words.json: {"words": ["a", "in", ...], "min_count": 3}. Errors: a word is not as
 * att_plain_words makes it; a word occurs twice; there is none. w must be freed even after an error. */
att_status att_words_write(const att_words *w, const char *folder);
att_status att_words_read(att_words *w, att_ctx *ctx, const char *folder);
void att_words_free(att_words *w);

/* Writes the ids of the words of a text made by att_plain_words to ids [room], without <end>. Returns their number,
 * which may be more than room. A word that the vocabulary does not have is <unk>. */
int64_t att_words_encode(const att_words *w, const char *text, int32_t *ids, int64_t room);
/* Adds the words of ids [n], separated by one space, up to <end> and without <unk>. Error: an id is out of range.
 */
att_status att_words_decode(const att_words *w, const int32_t *ids, int64_t n, att_bytes *text);
/* Writes the first words of the vocabulary that are not English function words ("the", "with") to ids [room]. Returns
 * their number. */
int64_t att_words_content(const att_words *w, int32_t *ids, int64_t room);

#endif
