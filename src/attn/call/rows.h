/* Rows of q, k, v, out and of gradients, whatever type they are stored in. */
#ifndef ATT_ATTN_ROWS_H
#define ATT_ATTN_ROWS_H

#include "attn/stage/stage.h"

typedef struct att_page att_page; /* page of a cache (cache.c) */
/* Rows of one head in a tensor of the caller's; at NULL: not given. Or in a cache, whose pages have ATT_KEY_BLOCK rows
 * each and are read one at a time: att_rows_block. */
typedef struct att_rows {
    void *at;
    int64_t stride; /* elements from row to row; if packed, of a row */
    int64_t packed; /* rows before this one are packed in panels, the others are not */
    att_dtype dtype;
    bool copy;             /* they are copied when read, even f32 */
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

/* Returns where a row begins, also in f16 and bf16. If rows are packed, it must be the first of a panel. */
static inline void *att_row_at(const att_rows *r, int64_t row)
{
    return (char *)r->at + row * r->stride * (int64_t)att_dtype_size(r->dtype);
}
/* Returns how many of the first n rows of a block are packed. */
static inline int64_t att_rows_packed(const att_rows *block, int64_t n)
{
    const int64_t packed = block->panel && block->packed > 0 ? block->packed : 0;
    return packed < n ? packed : n;
}
/* Returns the rows from `first` on; in a cache those of one page, which must begin with `first` (rows.c). */
att_rows att_rows_block(const att_rows *r, int64_t first);
/* Reads rows [first, first + n) of dim numbers as floats: in place, or converted into buffer [n, dim]. In a cache
 * `first` begins a page, and the n rows end in it. */
att_floats att_rows_read(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim, float *buffer);
/* Writes or adds x [n, dim] to y, rounded to y's type; buffer [dim]. Does nothing if y is not given. */
void att_rows_write(const att_kernels *k, att_floats x, const att_rows *y, int64_t first, int64_t n, int64_t dim,
                    bool add, float *buffer);
/* Appends rows to a list of what is prefetched; not those of a cache. */
void att_rows_prefetch(att_prefetch *list, const att_rows *y, int64_t first, int64_t n, int64_t dim);
/* Sets rows [first, last) to 0. */
void att_rows_clear(const att_rows *y, int64_t first, int64_t last, int64_t dim);

#endif
