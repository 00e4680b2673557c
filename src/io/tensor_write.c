#include "io/tensor_write.h"

#include "io/dtype_range.h"
#include "util/shape.h"
#include "util/util.h"

#include <string.h>

/* Converts a tensor that fits into the chunk, and writes it. */
static void put_chunk(att_tensor_writer *w, const char *name, const att_tensor *t, att_dtype dtype)
{
    att_tensor dense;
    const int64_t count = att_elements(t), bytes = att_dtype_bytes(dtype, count);
    if (w->file->status)
        return;
    att_status s = att_wrap(&dense, w->chunk, dtype, t->rank, t->dim, NULL);
    s = s ? s : att_tensor_convert(w->file->ctx, t, &dense);
    if (!s && w->source)
        s = att_check_narrow(w->file->ctx, w->source, name, "convert to", t, &dense);
    w->file->status = s;
    for (int64_t i = 0; dtype == ATT_BOOL && i < bytes; i++)
        w->chunk[i] = w->chunk[i] != 0;
    att_replace_write(w->file, w->chunk, (size_t)bytes);
    if (!w->file->status && w->progress)
        w->file->status = att_progress_add(w->progress, count);
}

/* Splits a tensor into ranges of rows, or of elements of a row, that fit into the chunk. */
void att_tensor_writer_put(att_tensor_writer *w, const char *name, const att_tensor *t, att_dtype dtype)
{
    enum { BLOCK = 256, NUMBERS = ATT_TENSOR_CHUNK / 8 }; /* the largest block; numbers of 8 bytes or fewer */
    int64_t each = 1;                                     /* numbers of a row */
    for (int i = 1; i < t->rank; i++)
        each *= t->dim[i];
    const int64_t rows = t->rank > 0 ? t->dim[0] : 1;
    if (rows * each == 0 || w->file->status)
        return;
    if (rows * each <= NUMBERS) {
        put_chunk(w, name, t, dtype);
        return;
    }
    const bool whole = each <= NUMBERS;
    const int64_t max = t->rank == 1 ? NUMBERS / BLOCK * BLOCK : whole ? NUMBERS / each : 1;
    att_tensor part = *t;
    if (!whole) { /* one row */
        part.rank--;
        memmove(part.dim, t->dim + 1, (size_t)part.rank * sizeof *part.dim);
        memmove(part.stride, t->stride + 1, (size_t)part.rank * sizeof *part.stride);
    }
    for (int64_t r = 0; r < rows; r += max) {
        part.data = (char *)t->data + att_dtype_bytes(t->dtype, r * t->stride[0]);
        if (whole)
            part.dim[0] = att_min(rows - r, max);
        att_tensor_writer_put(w, name, &part, dtype);
    }
}

att_status att_tensor_writer_init(att_tensor_writer *w, att_replace *file, const char *source, att_progress *progress)
{
    att_ctx *ctx = file->ctx;
    *w = (att_tensor_writer){
        .file = file, .source = source, .progress = progress, .chunk = att_alloc(ctx, ATT_TENSOR_CHUNK, 1)};
    return w->chunk ? ATT_OK : ATT_ERR_MEMORY;
}

void att_tensor_writer_free(att_tensor_writer *w) { att_free(w->file->ctx, w->chunk); }
