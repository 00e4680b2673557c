/* Matrix product for operations and their backward, operands in either order of storage. */
#include "tape/tape.h"
#include "gemm/gemm.h"

typedef struct transpose_job {
    const att_kernels *kernels;
    const float *x; /* [k, m], row stride `right` */
    int64_t k, right;
    float *y; /* [m, stride] */
    int64_t stride;
} transpose_job;

static void transpose(const void *arg, int64_t first, int64_t last)
{
    const transpose_job *j = arg;
    j->kernels->transpose(j->k, last - first, j->x + first, j->right, j->y + first * j->stride, j->stride);
}

/* Rows of the left operand must be contiguous; if its columns are, it is transposed into scratch memory. */
static const float *rows_of(att_tape *t, int64_t m, int64_t k, att_matrix a, int64_t *stride)
{
    enum { PADDING = 16 }; /* else a stride of a multiple of 4,096 bytes maps all rows to one cache set */
    *stride = a.down;
    if (a.right == 1)
        return a.x;
    *stride = k + PADDING;
    float *y = att_tape_scratch(t, att_size_mul((size_t)m, (size_t)*stride));
    const transpose_job j = {att_kernels_of(t->ctx->isa), a.x, k, a.right, y, *stride};
    if (y)
        att_tape_for_columns(t->ctx, m, transpose, &j);
    return y;
}

/* The left operand is transposed in bands, so that scratch memory is that of a band: logits are large. */
att_status att_tape_product(att_tape *t, int64_t m, int64_t n, int64_t k, att_matrix a, att_matrix b, bool add,
                            float *c)
{
    enum { BAND = 1024 };
    const int64_t band = a.right == 1 ? m : BAND;
    const size_t mark = att_arena_mark(&t->arena);
    float *packed = att_tape_scratch(t, att_gemm_packed_count(t->ctx, n, k));
    bool good = packed;
    if (good)
        att_gemm_pack(t->ctx, n, k, b.x, b.right, b.down, packed);
    for (int64_t first = 0; good && first < m; first += band) {
        const size_t before = att_arena_mark(&t->arena);
        const int64_t count = m - first < band ? m - first : band;
        int64_t stride;
        const float *rows = rows_of(t, count, k, (att_matrix){a.x + first * a.down, a.down, a.right}, &stride);
        good = rows;
        if (good)
            att_gemm(t->ctx, count, n, k, rows, stride, packed, c + first * n, n, &(const att_epilogue){.add = add});
        att_arena_release(&t->arena, before);
    }
    att_arena_release(&t->arena, mark);
    return good ? ATT_OK : ATT_ERR_MEMORY;
}
