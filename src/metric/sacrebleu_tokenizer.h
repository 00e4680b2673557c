/* sacreBLEU's tokenizer "13a", on code points. */
#ifndef ATT_METRIC_SACREBLEU_TOKENIZER_H
#define ATT_METRIC_SACREBLEU_TOKENIZER_H

#include "io/bytes.h"

/* A text as code points; later its token numbers. */
typedef struct att_code_points {
    uint32_t *c; /* [n] */
    size_t n;
} att_code_points;

bool att_is_space(uint32_t c);

/* Decodes a text; each maximal invalid subpart of UTF-8 is one U+FFFD. Free with att_free(ctx, out->c). */
att_status att_code_points_read(att_ctx *ctx, att_byte_view text, att_code_points *out);
/* Separates tokens by spaces, as mteval-v13a does; replaces t->c if it must grow. */
att_status att_tokenize_13a(att_ctx *ctx, att_code_points *t);

#endif
