#include "io/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* All of an open file; text grows by doubling, since the size of what is opened may not be known. */
static att_status read_all(att_text_file *f, FILE *file)
{
    size_t capacity = 0;
    while (!feof(file)) {
        if (capacity - f->bytes < 2) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            char *text = att_alloc(f->ctx, capacity, 1);
            if (!text)
                return ATT_ERR_MEMORY;
            if (f->bytes > 0)
                memcpy(text, f->text, f->bytes);
            att_free(f->ctx, f->text);
            f->text = text;
        }
        f->bytes += fread(f->text + f->bytes, 1, capacity - f->bytes - 1, file);
        if (ferror(file))
            return att_fail(f->ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    }
    f->text[f->bytes] = 0;
    return ATT_OK;
}

att_status att_text_file_read(att_text_file *f, att_ctx *ctx, const char *folder, const char *name, bool required)
{
    f->ctx = ctx;
    f->text = NULL;
    f->bytes = 0;
    if (snprintf(f->path, sizeof f->path, "%s/%s", folder, name) >= (int)sizeof f->path)
        return att_fail(ctx, ATT_ERR_IO, "the path of %s is longer than %zu bytes", name, sizeof f->path - 1);
    FILE *file = fopen(f->path, "rb");
    if (!file && !required && (errno == ENOENT || errno == ENOTDIR))
        return ATT_OK;
    if (!file && errno == ENOMEM)
        return att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", f->path);
    if (!file)
        return att_fail(ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    att_status s = read_all(f, file);
    fclose(file);
    if (s != ATT_OK)
        att_text_file_free(f);
    return s;
}

void att_text_file_free(att_text_file *f)
{
    att_free(f->ctx, f->text);
    f->text = NULL;
}
