/* Texts as a model reads them: the tokens of each, or of parts of it that fit. */
#ifndef ATT_MODEL_PARTS_H
#define ATT_MODEL_PARTS_H

#include "attend_model.h"

typedef struct att_part {
    att_tokens tokens;
    int64_t text; /* the number of the text that it is of */
} att_part;

typedef struct att_parts {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    int64_t most_tokens; /* of a part */
    bool split;          /* a longer text is cut; else it is an error */
    att_part *part;      /* [count], as they stand in the texts */
    int64_t count;
    size_t room;
} att_parts;

/* The next text, which is called number `number`, as parts; none where it has no tokens but a language code and the
 * end. It is cut in two again and again: near its middle behind a sentence, or else at a space, or else between
 * characters. A language code that it begins with (">>de<<") is put before each part. */
att_status att_parts_add(att_parts *p, int64_t number, const char *text, size_t bytes);
void att_parts_free(att_parts *p);

#endif
