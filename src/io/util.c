#include "io/util.h"

#include <stdio.h>

#include <string.h>

att_status att_grow_array(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room)
{
    size_t wanted = *room ? *room : 64;
    while (wanted - count < more && wanted <= SIZE_MAX / 2)
        wanted *= 2;
    if (wanted - count < more)
        return att_fail(ctx, ATT_ERR_MEMORY, "an array of %zu items and %zu more is too large", count, more);
    void *items, *grown = att_alloc(ctx, wanted, size);
    if (!grown)
        return ATT_ERR_MEMORY;
    memcpy(&items, array, sizeof items); /* all pointers to objects have the same representation */
    if (count > 0)
        memcpy(grown, items, count * size);
    att_free(ctx, items);
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return ATT_OK;
}

att_status att_fail_in(att_ctx *ctx, const char *path, att_status status, const char *format, va_list args)
{
    char sentence[512];
    vsnprintf(sentence, sizeof sentence, format, args);
    return att_fail(ctx, status, "%s: %s", path, sentence);
}
