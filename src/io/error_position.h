/* Positions in files, for error messages. */
#ifndef ATT_IO_ERROR_POSITION_H
#define ATT_IO_ERROR_POSITION_H

#include "attend_util.h"

#include <stdarg.h>

typedef struct att_where {
    att_ctx *ctx;
    const char *path; /* of a file; or NULL: the caller's array */
    int64_t number;   /* of its line, from 1; or index of the array */
    const char *of;   /* what the array has: "action"; or NULL: it is a single text */
} att_where;

/* Fails with "PATH: line NUMBER: message", "action NUMBER: message", or the message alone. */
att_status att_fail_at(const att_where *where, att_status status, const char *format, ...) ATT_PRINTF(3, 4);
/* Fails with "PATH: message"; for the variadic functions of readers of a format. */
att_status att_fail_in(att_ctx *ctx, const char *path, att_status status, const char *format, va_list args);

#endif
