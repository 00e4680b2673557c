/* Rows of q, k, v, out and of gradients, whatever type they are stored in. */
#include "attn/attn.h"

#include <string.h>

static char *row_at(const att_rows *r, int64_t row)
{
    return (char *)r->at + row * r->stride * (int64_t)att_dtype_size(r->dtype);
}

att_rows att_rows_block(const att_rows *r, int64_t first)
{
    att_rows block = *r;
    block.page = NULL;
    block.at = r->page ? (char *)r->page[first / ATT_KEY_BLOCK] + r->offset : row_at(r, first);
    return block;
}

att_floats att_rows_read(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim, float *buffer)
{
    const att_rows block = att_rows_block(r, first);
    if (block.panel) {
        k->few_unpack((int)block.dtype, n, dim, block.at, buffer);
        return (att_floats){buffer, dim};
    }
    if (block.dtype == ATT_F32)
        return (att_floats){block.at, block.stride};
    void (*const convert)(int64_t, const uint16_t *, float *) = block.dtype == ATT_F16 ? k->from_f16 : k->from_bf16;
    for (int64_t i = 0; i < n; i++)
        convert(dim, (const uint16_t *)block.at + i * block.stride, buffer + i * dim);
    return (att_floats){buffer, dim};
}

void att_rows_write(const att_kernels *k, const float *x, int64_t stride, const att_rows *y, int64_t first, int64_t n,
                    int64_t dim, bool add, float *buffer)
{
    for (int64_t i = 0; y->at && i < n; i++) {
        void *to = row_at(y, first + i);
        const float *from = x + i * stride;
        if (add) {
            k->add(dim, att_rows_read(k, y, first + i, 1, dim, buffer).at, from, buffer);
            from = buffer;
        }
        if (y->dtype == ATT_F32)
            memcpy(to, from, (size_t)dim * sizeof *from);
        else
            (y->dtype == ATT_F16 ? k->to_f16 : k->to_bf16)(dim, from, to);
    }
}

void att_rows_clear(const att_rows *y, int64_t first, int64_t last, int64_t dim)
{
    for (int64_t i = first; y->at && i < last; i++)
        memset(row_at(y, i), 0, (size_t)dim * att_dtype_size(y->dtype));
}
