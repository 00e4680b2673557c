/* The format is described in gguf.c. */
#include "io/gguf_write.h"

#include "io/gguf_types.h"
#include "io/tensor_write.h"
#include "util/shape.h"
#include "util/util.h"
#include "util/array.h"

#include <string.h>

enum { UINT32 = 4, INT32 = 5, FLOAT32 = 6, BOOL = 7, TEXT = 8, LIST = 9, ALIGNMENT = 32, VERSION = 3 };

/* ---- values */

static void add_text(att_bytes *to, const char *text, size_t bytes)
{
    att_bytes_add_number(to, bytes, 8);
    att_bytes_add(to, text, bytes);
}

static void add_float(att_bytes *to, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    att_bytes_add_number(to, bits, sizeof bits);
}

static void begin(att_gguf_writer *w, const char *key, int type)
{
    add_text(&w->values, key, strlen(key));
    att_bytes_add_number(&w->values, (uint64_t)type, 4);
    w->n_values++;
}

static void begin_list(att_gguf_writer *w, const char *key, int type, int64_t n)
{
    begin(w, key, LIST);
    att_bytes_add_number(&w->values, (uint64_t)type, 4);
    att_bytes_add_number(&w->values, (uint64_t)n, 8);
}

void att_gguf_put_int(att_gguf_writer *w, const char *key, int64_t x)
{
    begin(w, key, UINT32);
    att_bytes_add_number(&w->values, (uint64_t)x, 4);
}

void att_gguf_put_number(att_gguf_writer *w, const char *key, double x)
{
    begin(w, key, FLOAT32);
    add_float(&w->values, (float)x);
}

void att_gguf_put_bool(att_gguf_writer *w, const char *key, bool x)
{
    begin(w, key, BOOL);
    att_bytes_add_number(&w->values, x, 1);
}

void att_gguf_put_text(att_gguf_writer *w, const char *key, const char *text)
{
    begin(w, key, TEXT);
    add_text(&w->values, text, strlen(text));
}

void att_gguf_put_texts(att_gguf_writer *w, const char *key, const att_byte_view *text, int64_t n)
{
    begin_list(w, key, TEXT, n);
    for (int64_t i = 0; i < n; i++)
        add_text(&w->values, text[i].data, text[i].bytes);
}

void att_gguf_put_ints(att_gguf_writer *w, const char *key, const int32_t *x, int64_t n)
{
    begin_list(w, key, INT32, n);
    for (int64_t i = 0; i < n; i++)
        att_bytes_add_number(&w->values, (uint32_t)x[i], 4);
}

void att_gguf_put_numbers(att_gguf_writer *w, const char *key, const float *x, int64_t n)
{
    begin_list(w, key, FLOAT32, n);
    for (int64_t i = 0; i < n; i++)
        add_float(&w->values, x[i]);
}

void att_gguf_put_raw(att_gguf_writer *w, const char *key, att_byte_view raw)
{
    add_text(&w->values, key, strlen(key));
    att_bytes_add(&w->values, raw.data, raw.bytes);
    w->n_values++;
}

/* ---- tensors */

void att_gguf_put_tensor(att_gguf_writer *w, const att_gguf_entry *entry)
{
    const att_status s = att_grow(w->ctx, &w->entry, sizeof *entry, w->count, 1, &w->capacity);
    w->status = w->status ? w->status : s;
    if (!s)
        w->entry[w->count++] = *entry;
}

static int64_t bytes_of(const att_gguf_entry *e)
{
    int64_t count = 1;
    for (int i = 0; i < e->rank; i++)
        count *= e->dim[i];
    return att_dtype_bytes(e->dtype, count);
}

/* ---- the file */

static void add_header(const att_gguf_writer *w, att_bytes *to)
{
    int64_t offset = 0;
    att_bytes_add(to, "GGUF", 4);
    att_bytes_add_number(to, VERSION, 4);
    att_bytes_add_number(to, w->count, 8);
    att_bytes_add_number(to, w->n_values, 8);
    att_bytes_add(to, w->values.data, w->values.count);
    for (size_t i = 0; i < w->count; i++) {
        const att_gguf_entry *e = &w->entry[i];
        add_text(to, e->name, strlen(e->name));
        att_bytes_add_number(to, (uint64_t)e->rank, 4);
        for (int d = e->rank - 1; d >= 0; d--)
            att_bytes_add_number(to, (uint64_t)e->dim[d], 8);
        att_bytes_add_number(to, (uint64_t)att_gguf_type_number(e->dtype), 4);
        att_bytes_add_number(to, (uint64_t)offset, 8);
        offset += att_round_up(bytes_of(e), ALIGNMENT);
    }
}

static void write_padding(att_replace *file, int64_t bytes)
{
    static const char zeros[ALIGNMENT];
    att_replace_write(file, zeros, (size_t)(att_round_up(bytes, ALIGNMENT) - bytes));
}

static void write_tensors(const att_gguf_writer *w, att_replace *file, const char *source, att_progress *progress)
{
    att_tensor_writer to;
    const att_status s = att_tensor_writer_init(&to, file, source, progress);
    file->status = file->status ? file->status : s;
    for (size_t i = 0; i < w->count; i++) {
        const att_gguf_entry *e = &w->entry[i];
        att_tensor_writer_put(&to, e->name, &e->value, e->dtype);
        write_padding(file, bytes_of(e));
    }
    att_tensor_writer_free(&to);
}

att_status att_gguf_writer_save(att_gguf_writer *w, const char *path, const char *source, att_progress *progress,
                                att_status (*check)(void *user, const char *path), void *user)
{
    progress->all = 1; /* the check, in addition to the numbers */
    for (size_t i = 0; i < w->count; i++)
        progress->all += att_elements(&w->entry[i].value);
    att_bytes header = {.ctx = w->ctx};
    att_status s = w->status ? w->status : w->values.status;
    if (!s)
        add_header(w, &header);
    s = s ? s : header.status;
    if (!s) {
        att_replace file;
        att_replace_open(&file, w->ctx, path, true);
        att_replace_write(&file, header.data, header.count);
        write_padding(&file, (int64_t)header.count);
        write_tensors(w, &file, source, progress);
        if (!file.status)
            file.status = check(user, file.unfinished);
        if (!file.status)
            file.status = att_progress_add(progress, 1);
        s = att_replace_commit(&file);
    }
    att_bytes_free(&header);
    return s;
}

void att_gguf_writer_free(att_gguf_writer *w)
{
    att_bytes_free(&w->values);
    att_free(w->ctx, w->entry);
    *w = (att_gguf_writer){.ctx = w->ctx};
}
