/* Arrays that grow: like att_grow_array, but without a call if there is room, as in most cases. */
#ifndef ATT_UTIL_ARRAY_H
#define ATT_UTIL_ARRAY_H

#include "attend_util.h"

static inline att_status att_grow(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room)
{
    return more <= *room - count ? ATT_OK : att_grow_array(ctx, array, size, count, more, room);
}

#endif
