/* Tokens that are being decoded: a list of texts, which decoders change. */
#ifndef ATT_DECODED_H
#define ATT_DECODED_H

#include "io/bytes.h"

typedef struct att_decoded {
    att_bytes text;             /* of all tokens, one after the other */
    att_bytes ends;             /* size_t[]: where each one ends in it */
    att_bytes text_to, ends_to; /* what a decoder has written so far */
} att_decoded;

static inline size_t att_decoded_count(const att_decoded *d) { return d->ends.count / sizeof(size_t); }
/* Writes a part of a token; ends the token. */
void att_decoded_put(att_decoded *d, const char *text, size_t bytes);
void att_decoded_end_token(att_decoded *d);
/* Makes what was written the list. */
void att_decoded_swap(att_decoded *d);
/* Makes the list one text, without the spaces that the clean_up_tokenization_spaces of `transformers` removes. */
void att_decoded_clean_up(att_decoded *d);
void att_decoded_free(att_decoded *d);

#endif
