/* Strided copies of blocks, for concat and slice. */
#include "tape/tape.h"

#include <string.h>

typedef struct blocks_job {
    const att_kernels *k;
    int64_t n;
    const float *x;
    int64_t x_stride;
    float *y;
    int64_t y_stride;
    bool add;
} blocks_job;

static void blocks_body(const void *arg, int64_t first, int64_t last)
{
    const blocks_job *j = arg;
    for (int64_t i = first; i < last; i++) {
        const float *x = j->x + i * j->x_stride;
        float *y = j->y + i * j->y_stride;
        if (j->add)
            j->k->vector.add(j->n, y, x, y);
        else
            memcpy(y, x, (size_t)j->n * sizeof *y);
    }
}

void att_tape_blocks(att_ctx *ctx, int64_t blocks, int64_t n, const float *x, int64_t x_stride, float *y,
                     int64_t y_stride, bool add)
{
    const blocks_job j = {att_kernels_of(ctx->isa), n, x, x_stride, y, y_stride, add};
    if (n > 0)
        att_tape_for_rows(ctx, blocks, n, blocks_body, &j);
}

int att_tape_dim(const att_tensor *x, int dim, int64_t *outer, int64_t *inner)
{
    dim = dim < 0 ? dim + x->rank : dim;
    *outer = *inner = 1;
    if (dim < 0 || dim >= x->rank)
        return -1;
    for (int i = 0; i < dim; i++)
        *outer *= x->dim[i];
    for (int i = dim + 1; i < x->rank; i++)
        *inner *= x->dim[i];
    return dim;
}
