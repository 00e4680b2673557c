/* WordPiece (Wu et al. 2016) on pieces, with offsets; text/wordpiece.h has the search. */
#include "text/pipeline/pipeline.h"
#include "text/sentencepiece.h"

#include <string.h>

static void read_wordpiece(att_settings *s, att_pipeline *t)
{
    att_vocabulary *v = &t->vocabulary;
    const char *unknown = att_settings_text(s, "unk_token", NULL);
    const char *prefix = att_settings_text(s, "continuing_subword_prefix", NULL);
    t->max_word = (int)att_settings_int(s, "max_input_chars_per_word", 1, INT32_MAX);
    if (s->status)
        return;
    v->unknown = att_vocabulary_find(v, unknown, strlen(unknown));
    if (v->unknown == ATT_NO_TOKEN)
        att_settings_fail(s, ATT_ERR_FORMAT, "the unknown token \"%.80s\" is not in the vocabulary", unknown);
    v->prefix_bytes = strlen(prefix);
    if (v->prefix_bytes < ATT_MAX_PREFIX)
        memcpy(v->prefix, prefix, v->prefix_bytes);
    else
        att_settings_unsupported(s, "continuing_subword_prefix", "a shorter one, as \"##\",");
    if (t->max_word > ATT_MAX_WORD)
        att_settings_unsupported(s, "max_input_chars_per_word", "a whole number in [1, 1000]");
}

/* Returns the bytes of the first `chars` characters of s [bytes]. */
static size_t first_chars(const char *s, size_t bytes, int chars)
{
    size_t i = 0;
    for (; i < bytes && chars > 0; chars--)
        i += att_piece_char(s + i, bytes - i);
    return i;
}

static void segment(att_encoding *e, const char *s, size_t bytes)
{
    const att_vocabulary *v = &e->t->vocabulary;
    int32_t ids[4 * ATT_MAX_WORD];
    const size_t first = first_chars(s, bytes, e->t->max_word);
    const bool too_long = first < bytes;
    const int n = too_long ? 0 : att_wordpiece(v, s, bytes, ids);
    if (too_long || (n == 1 && ids[0] == v->unknown)) {
        att_wordpiece_report_unknown(v, e->sink, s, first);
        att_encoding_add(e, v->unknown, 0, bytes);
        return;
    }
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const size_t length = v->tokens[ids[i]].bytes - (i > 0 ? v->prefix_bytes : 0);
        att_encoding_add(e, ids[i], at, at + length);
        at += length;
    }
}

const att_subword_model att_wordpiece_model = {"WordPiece", read_wordpiece, segment};
