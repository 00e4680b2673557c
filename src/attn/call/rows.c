/* Reads and writes rows of q, k, v, out and of gradients, whatever type they are stored in. */
#include "attn/call/rows.h"

#include <string.h>

typedef void convert(int64_t n, const uint16_t *x, float *y);
static convert *conversion(const att_kernels *k, att_dtype t)
{
    return t == ATT_F16 ? k->vector.from_f16 : k->vector.from_bf16;
}

att_rows att_rows_block(const att_rows *r, int64_t first)
{
    att_rows block = *r;
    block.page = NULL;
    block.packed = r->packed - first;
    block.at = r->page ? att_page_at(r->page[first / ATT_KEY_BLOCK], r->offset) : att_row_at(r, first);
    return block;
}

static void copy_rows(const att_kernels *k, const att_rows *block, int64_t first, int64_t n, int64_t dim, float *y)
{
    for (int64_t i = first; i < n; i++)
        if (block->dtype == ATT_F32)
            memcpy(y + i * dim, att_row_at(block, i), (size_t)dim * sizeof *y);
        else
            conversion(k, block->dtype)(dim, att_row_at(block, i), y + i * dim);
}

/* Unpacks the first n keys of a block, which are all packed, to y [n, dim], some numbers of a panel at a time. */
static void unpack(const att_kernels *k, const att_rows *block, int64_t n, int64_t dim, float *y)
{
    enum { CHUNK = 32 };
    const int64_t panel = k->q_tile;
    float piece[CHUNK * ATT_MAX_Q_TILE], ones[ATT_MAX_Q_TILE];
    for (int i = 0; i < ATT_MAX_Q_TILE; i++)
        ones[i] = 1;
    for (int64_t row = 0; row < n; row += panel)
        for (int64_t d = 0; d < dim; d += CHUNK) {
            const int64_t rows = n - row < panel ? n - row : panel, numbers = dim - d < CHUNK ? dim - d : CHUNK;
            const int64_t at = row * dim + d * panel;
            const float *x = block->dtype == ATT_F32 ? (const float *)block->at + at : piece;
            if (block->dtype != ATT_F32)
                conversion(k, block->dtype)(numbers * panel, (const uint16_t *)block->at + at, piece);
            k->attend.unpack(rows, numbers, x, ones, y + row * dim + d, dim);
        }
}

att_floats att_rows_read(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim, float *buffer)
{
    const bool in_place = r->dtype == ATT_F32 && !r->panel && !r->copy;
    if (in_place && !r->page)
        return (att_floats){att_row_at(r, first), r->stride};
    const att_rows block = att_rows_block(r, first);
    if (in_place)
        return (att_floats){block.at, block.stride};
    const int64_t packed = att_rows_packed(&block, n);
    unpack(k, &block, packed, dim, buffer);
    copy_rows(k, &block, packed, n, dim, buffer);
    return (att_floats){buffer, dim};
}

void att_rows_write(const att_kernels *k, att_floats x, const att_rows *y, int64_t first, int64_t n, int64_t dim,
                    bool add, float *buffer)
{
    for (int64_t i = 0; y->at && i < n; i++) {
        void *to = att_row_at(y, first + i);
        const float *from = x.at + i * x.stride;
        if (add) {
            k->vector.add(dim, att_rows_read(k, y, first + i, 1, dim, buffer).at, from, buffer);
            from = buffer;
        }
        if (y->dtype == ATT_F32)
            memcpy(to, from, (size_t)dim * sizeof *from);
        else
            (y->dtype == ATT_F16 ? k->vector.to_f16 : k->vector.to_bf16)(dim, from, to);
    }
}

void att_rows_prefetch(att_prefetch *list, const att_rows *y, int64_t first, int64_t n, int64_t dim)
{
    const int64_t size = (int64_t)att_dtype_size(y->dtype);
    if (y->at)
        att_prefetch_add(list, att_row_at(y, first), dim * size, y->stride * size, n);
}

void att_rows_clear(const att_rows *y, int64_t first, int64_t last, int64_t dim)
{
    for (int64_t i = first; y->at && i < last; i++)
        memset(att_row_at(y, i), 0, (size_t)dim * att_dtype_size(y->dtype));
}
