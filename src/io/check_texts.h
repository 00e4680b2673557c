/* Texts, and token ids, passed by the caller. */
#ifndef ATT_IO_CHECK_TEXTS_H
#define ATT_IO_CHECK_TEXTS_H

#include "attend_util.h"

/* Checks that texts [n] and each of them are not NULL; errors name them `name`. */
att_status att_check_texts(att_ctx *ctx, const char *name, const char *const *texts, int64_t n);
/* Checks that offsets [n + 1] are not NULL and ascend from 0. */
att_status att_check_text_offsets(att_ctx *ctx, const char *name, const int64_t *offsets, int64_t n);
/* Checks that ids [first, last) are in [0, vocabulary). */
att_status att_check_ids(att_ctx *ctx, const char *name, const int32_t *ids, int64_t first, int64_t last,
                         int64_t vocabulary);

/* Token ids instead of texts: offsets [n + 1] and ids [offsets[n]] of n texts */
typedef struct att_given_ids {
    const int32_t *ids;
    const int64_t *offsets;
    int64_t min, max;   /* tokens of a text */
    int64_t vocabulary; /* ids are below it */
} att_given_ids;
/* Checks that they are sequences that a tokenizer could have made. caller: of options.ids and options.offsets. */
att_status att_check_given_ids(att_ctx *ctx, const char *caller, const att_given_ids *given, int64_t n);

#endif
