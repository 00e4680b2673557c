/* Rows of q, k, v, out and of gradients, whatever type they are stored in. */
#ifndef ATT_ATTN_ROWS_H
#define ATT_ATTN_ROWS_H

#include "attn/stage/stage.h"

typedef struct att_page att_page; /* of a cache (cache.c) */
/* Rows of one head in a tensor of the caller's; at NULL: not given. Or in a cache, whose pages have ATT_KEY_BLOCK rows
 * each and are read one at a time: att_rows_block. */
typedef struct att_rows {
    void *at;
    int64_t stride; /* elements from row to row; packed, of a row */
    int64_t packed; /* rows before this one are packed in panels, the others lie as rows */
    att_dtype dtype;
    bool copy;             /* they are read as a copy, f32 too */
    int panel;             /* 0, or the rows of a packed panel, [dim][panel] */
    att_page *const *page; /* NULL, or instead of `at`; the rows begin at this offset of each, in bytes */
    size_t offset;
} att_rows;
/* Rows of floats to read: the caller's own, a copy of those of another type, or a tile. */
typedef struct att_floats {
    const float *at;
    int64_t stride;
} att_floats;

void *att_page_at(const att_page *page, size_t offset);

/* Where a row begins, in f16 and bf16 too; where rows are packed, the first of a panel. */
static inline void *att_row_at(const att_rows *r, int64_t row)
{
    return (char *)r->at + row * r->stride * (int64_t)att_dtype_size(r->dtype);
}
/* How many of the first n rows of a block are packed */
static inline int64_t att_rows_packed(const att_rows *block, int64_t n)
{
    const int64_t packed = block->panel && block->packed > 0 ? block->packed : 0;
    return packed < n ? packed : n;
}
/* Rows from `first` on, in a cache those of one page, where `first` begins one (rows.c). */
att_rows att_rows_block(const att_rows *r, int64_t first);
/* Rows [first, first + n) of dim numbers as floats: in place, or converted into buffer [n, dim]. In a cache `first`
 * begins a page, and n rows end in it. */
att_floats att_rows_read(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim, float *buffer);
/* y = or += x [n, dim], rounded to y's type; buffer [dim]. Does nothing where y is not given. */
void att_rows_write(const att_kernels *k, att_floats x, const att_rows *y, int64_t first, int64_t n, int64_t dim,
                    bool add, float *buffer);
/* Appends rows to a list of what is prefetched; not those of a cache. */
void att_rows_prefetch(att_prefetch *list, const att_rows *y, int64_t first, int64_t n, int64_t dim);
/* Rows [first, last) become 0. */
void att_rows_clear(const att_rows *y, int64_t first, int64_t last, int64_t dim);

#endif
