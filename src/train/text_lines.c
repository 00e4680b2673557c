#include "train/text_lines.h"

#include <string.h>

att_status att_text_lines_read(att_ctx *ctx, const char *path, att_text_lines *l)
{
    att_status e = att_text_file_open(&l->file, ctx, path, true);
    if (e)
        return e;
    const char *end = l->file.text + l->file.bytes;
    int64_t n = 0;
    for (const char *c = l->file.text; c < end; c++)
        n += *c == '\n' || c + 1 == end;
    l->text = att_alloc(ctx, (size_t)n + 1, sizeof *l->text);
    l->bytes = att_alloc(ctx, (size_t)n + 1, sizeof *l->bytes);
    if (!l->text || !l->bytes)
        return ATT_ERR_MEMORY;
    for (const char *c = l->file.text, *next; c < end; c = next + 1) {
        next = memchr(c, '\n', (size_t)(end - c));
        next = next ? next : end;
        const size_t bytes = (size_t)(next - c);
        l->text[l->n] = c;
        l->bytes[l->n++] = bytes - (bytes > 0 && c[bytes - 1] == '\r');
    }
    return ATT_OK;
}

void att_text_lines_free(att_ctx *ctx, att_text_lines *l)
{
    att_free(ctx, l->text);
    att_free(ctx, l->bytes);
    att_text_file_free(&l->file);
}
