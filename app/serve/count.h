/* Tokens of the texts of a request, which the queue counts and error messages name. */
#ifndef SERVE_COUNT_H
#define SERVE_COUNT_H

#include "call.h"

/* A text of a request, alone or with a second one, and where it is, for messages: field[index]. */
typedef struct serve_element {
    const char *field;
    int64_t index;
    serve_text text, pair; /* pair.text NULL: the text is alone */
} serve_element;

/* Counts the tokens, truncated to max_tokens (0: not) -> *count, at least 1. Returns false if the text cannot be
 * tokenized, and the request was refused. */
bool serve_count_tokens(serve_call *c, const serve_model *m, const serve_element *p, int64_t max_tokens,
                        int64_t *count);
/* Refuses a request because a text is too long for the model, with both lengths. */
void serve_refuse_long(serve_call *c, const serve_model *m, const serve_element *p);

#endif
