/* Texts of the caller. */
#ifndef ATT_IO_TEXTS_H
#define ATT_IO_TEXTS_H

#include "attend_util.h"

/* Are texts [n], and each of them, not NULL? If not an error that calls them `name`. */
att_status att_check_texts(att_ctx *ctx, const char *name, const char *const *texts, int64_t n);

#endif
