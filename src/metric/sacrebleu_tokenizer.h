/* The tokenizer "13a" of sacreBLEU, on code points; for metrics of translations. */
#ifndef ATT_METRIC_SACREBLEU_TOKENIZER_H
#define ATT_METRIC_SACREBLEU_TOKENIZER_H

#include "attend_model.h"
#include "attend_util.h"

/* A text as code points; later its tokens or characters as numbers. */
typedef struct att_code_points {
    uint32_t *c; /* [n] */
    size_t n;
} att_code_points;

bool att_is_space(uint32_t c);

/* text [bytes] as code points; each maximal invalid subpart of UTF-8 is one U+FFFD. On ATT_OK att_free(ctx, out->c). */
att_status att_code_points_read(att_ctx *ctx, const char *text, size_t bytes, att_code_points *out);
/* Puts spaces between the tokens that mteval-v13a sees in t; frees t->c where it makes a new one. */
att_status att_tokenize_13a(att_ctx *ctx, att_code_points *t);

#endif
