/* Tokenizes texts, and splits those that are too long into segments. */
#ifndef ATT_TRANSLATE_TEXT_SEGMENTS_H
#define ATT_TRANSLATE_TEXT_SEGMENTS_H

#include "attend_util.h"
#include "attend_text.h"

typedef struct att_text_segment {
    att_tokens tokens;
    int64_t text; /* number of its text */
} att_text_segment;

typedef struct att_text_segments {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    int64_t max_tokens;        /* of a segment */
    bool split;                /* longer texts are split; false: they are an error */
    att_text_segment *segment; /* [count], in the order of the texts */
    int64_t count;
    size_t room;
    int64_t tokens; /* of the text that was added last, before it was split, including eos */
} att_text_segments;

/* Adds text `number` as segments; none if it has no tokens besides a language code and eos. A long text is split in two
 * repeatedly, near the middle: at the end of a sentence, otherwise at a space, otherwise between characters. A language
 * code at its start (">>de<<") is repeated in each segment. */
att_status att_text_segments_add(att_text_segments *p, int64_t number, const char *text, size_t bytes);
/* Adds text `number` from its tokens, ids [n] or NULL if n is 0; it cannot be split. */
att_status att_text_segments_add_ids(att_text_segments *p, int64_t number, const int32_t *ids, int64_t n);
/* Removes all segments except the first `count`. */
void att_text_segments_truncate(att_text_segments *p, int64_t count);
void att_text_segments_free(att_text_segments *p);

#endif
