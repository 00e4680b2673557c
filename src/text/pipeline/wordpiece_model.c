/* WordPiece (Wu et al. 2016) on pieces, with offsets; text/wordpiece.h has the search. */
#include "text/pipeline/pipeline.h"
#include "text/utf8.h"

static void read_wordpiece(att_settings *s, att_pipeline *t) { att_wordpiece_read(s, &t->vocabulary, &t->max_word); }

static bool is_longer(const char *s, size_t bytes, int chars)
{
    uint32_t c;
    for (size_t i = 0; i < bytes; chars--) {
        if (chars == 0)
            return true;
        i += att_utf8_decode(s + i, bytes - i, &c);
    }
    return false;
}

static void segment(att_encoding *e, const char *s, size_t bytes)
{
    const att_vocabulary *v = &e->t->vocabulary;
    int32_t ids[4 * ATT_MAX_WORD];
    const bool too_long = is_longer(s, bytes, e->t->max_word);
    const int n = too_long ? 0 : att_wordpiece(v, s, bytes, ids);
    if (too_long || (n == 1 && ids[0] == v->unknown)) {
        att_encoding_unknown(e, 0, bytes);
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
