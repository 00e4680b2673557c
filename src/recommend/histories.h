/* Histories of a call. */
#ifndef ATT_RECOMMEND_HISTORIES_H
#define ATT_RECOMMEND_HISTORIES_H

#include "attend_util.h"

/* Checks n histories, which may be empty: items [offsets[n]] from 0 to n_items - 1, offsets [n + 1]. owner: the name of
 * the items' owner, for errors. */
att_status att_histories_check(att_ctx *ctx, const char *owner, int64_t n_items, int64_t n, const int32_t *items,
                               const int64_t *offsets);

#endif
