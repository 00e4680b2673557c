/* Texts as a model reads them: the tokens of each, or of segments of it that fit. */
#ifndef ATT_MODEL_TEXT_SEGMENTS_H
#define ATT_MODEL_TEXT_SEGMENTS_H

#include "attend_model.h"
#include "attend_util.h"

typedef struct att_text_segment {
    att_tokens tokens;
    int64_t text; /* the number of the text that it is of */
} att_text_segment;

typedef struct att_text_segments {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    int64_t max_tokens;        /* of a segment */
    bool split;                /* a longer text is cut; else it is an error */
    att_text_segment *segment; /* [count], as they stand in the texts */
    int64_t count;
    size_t room;
} att_text_segments;

/* The next text, which is called number `number`, as segments; none where it has no tokens but a language code and the
 * end. It is cut in two again and again: near its middle behind a sentence, or else at a space, or else between
 * characters. A language code that it begins with (">>de<<") is put before each segment. */
att_status att_text_segments_add(att_text_segments *p, int64_t number, const char *text, size_t bytes);
void att_text_segments_free(att_text_segments *p);

#endif
