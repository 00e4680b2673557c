/* The tokenizer "13a" of sacreBLEU, on code points; for metrics of translations. */
#ifndef ATT_METRIC_SACREBLEU_TOKENIZER_H
#define ATT_METRIC_SACREBLEU_TOKENIZER_H

#include "attend_model.h"

/* A text as code points; later its words or characters as numbers. */
typedef struct att_letters {
    uint32_t *c; /* [n] */
    size_t n;
} att_letters;

bool att_is_space(uint32_t c);

/* text [bytes] as code points; each maximal invalid subpart of UTF-8 is one U+FFFD. On ATT_OK att_free(ctx, out->c). */
att_status att_letters_read(att_ctx *ctx, const char *text, size_t bytes, att_letters *out);
/* Puts spaces between the words that mteval-v13a sees in t; frees t->c where it makes a new one. */
att_status att_letters_13a(att_ctx *ctx, att_letters *t);

#endif
