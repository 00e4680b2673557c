#include "io/error_position.h"

#include <stdio.h>

att_status att_fail_at(const att_where *where, att_status status, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (where->path)
        return att_fail(where->ctx, status, "%s: line %lld: %s", where->path, (long long)where->number, message);
    if (!where->of)
        return att_fail(where->ctx, status, "%s", message);
    return att_fail(where->ctx, status, "%s %lld: %s", where->of, (long long)where->number, message);
}

att_status att_fail_in(att_ctx *ctx, const char *path, att_status status, const char *format, va_list args)
{
    char sentence[512];
    vsnprintf(sentence, sizeof sentence, format, args);
    return att_fail(ctx, status, "%s: %s", path, sentence);
}
