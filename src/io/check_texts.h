/* Texts passed by the caller. */
#ifndef ATT_IO_CHECK_TEXTS_H
#define ATT_IO_CHECK_TEXTS_H

#include "attend_util.h"

/* Checks that texts [n] and each of them are not NULL; errors name them `name`. */
att_status att_check_texts(att_ctx *ctx, const char *name, const char *const *texts, int64_t n);

#endif
