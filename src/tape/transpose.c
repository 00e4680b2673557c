/* Two dimensions exchanged: a copy */
#include "tape/tape.h"

#include <string.h>

/* x [outer, rows, middle, columns, inner] -> y [outer, columns, middle, rows, inner] */
typedef struct transpose_job {
    int64_t outer, rows, middle, columns, inner;
    const att_kernels *k;
    const float *x;
    float *y;
} transpose_job;

/* With an inner dimension: blocks of it, in the order of y. */
static void copy_blocks(const void *arg, int64_t first, int64_t last)
{
    const transpose_job *j = arg;
    for (int64_t i = first; i < last; i++) { /* of [outer, columns, middle] */
        const int64_t m = i % j->middle, c = i / j->middle % j->columns, o = i / j->middle / j->columns;
        const float *x = j->x + ((o * j->rows * j->middle + m) * j->columns + c) * j->inner;
        float *y = j->y + i * j->rows * j->inner;
        for (int64_t r = 0; r < j->rows; r++)
            memcpy(y + r * j->inner, x + r * j->middle * j->columns * j->inner, (size_t)j->inner * sizeof *y);
    }
}

enum { ROWS = 64 };

/* Without one: matrices, ROWS rows at a time. */
static void transpose_rows(const void *arg, int64_t first, int64_t last)
{
    const transpose_job *j = arg;
    const int64_t blocks = att_ceil_div(j->rows, ROWS);
    for (int64_t i = first; i < last; i++) { /* of [outer, middle, blocks] */
        const int64_t r = i % blocks * ROWS, m = i / blocks % j->middle, o = i / blocks / j->middle;
        const int64_t x_stride = j->middle * j->columns, y_stride = j->middle * j->rows;
        j->k->vector.transpose(att_min(j->rows - r, ROWS), j->columns,
                               j->x + (o * j->rows + r) * x_stride + m * j->columns, x_stride,
                               j->y + o * j->columns * y_stride + m * j->rows + r, y_stride);
    }
}

static void transpose(att_ctx *ctx, transpose_job *j, const float *x, float *y)
{
    const int64_t matrices = j->outer * j->middle;
    j->k = att_kernels_of(ctx->isa);
    j->x = x;
    j->y = y;
    if (j->rows * j->columns * j->inner == 0)
        return;
    if (j->inner > 1)
        att_tape_for_rows(ctx, matrices * j->columns, j->rows * j->inner, copy_blocks, j);
    else
        att_tape_for_rows(ctx, matrices * att_ceil_div(j->rows, ROWS), att_min(j->rows, ROWS) * j->columns,
                          transpose_rows, j);
}

/* ---- backward: the same, of y's shape */

static att_status backward(att_tape *t, const att_step *s)
{
    transpose_job j = *(const transpose_job *)s->saved;
    float *dx = att_tape_dx(t, s->in[0]);
    if (!dx)
        return ATT_ERR_MEMORY;
    const int64_t rows = j.rows;
    j.rows = j.columns;
    j.columns = rows;
    transpose(t->ctx, &j, s->y->grad, dx);
    att_tape_dx_end(t, s->in[0], dx);
    return ATT_OK;
}

const att_operation att_operation_transpose = {
    .name = "transpose", .backward = backward, .ignores_y = true, .ignores_in = 1};

/* ---- forward */

/* Returns the dimensions of x around first and last, which are exchanged; first <= last. */
static transpose_job job_of(const att_tensor *x, int first, int last)
{
    transpose_job j = {.outer = 1, .rows = x->dim[first], .middle = 1, .columns = 1, .inner = 1};
    for (int i = 0; i < x->rank; i++) {
        int64_t *part = i < first ? &j.outer : i < last ? &j.middle : i == last ? &j.columns : &j.inner;
        *part *= i == first ? 1 : x->dim[i];
    }
    return j;
}

att_var *att_transpose(att_tape *t, att_var *x, int dim0, int dim1)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_tensor shape = x->value;
    int64_t outer, inner;
    const int first = att_tape_dim(&shape, dim0, &outer, &inner), last = att_tape_dim(&shape, dim1, &outer, &inner);
    if (first < 0 || last < 0)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "transpose: dim%d = %d but x is %s", first < 0 ? 0 : 1,
                             first < 0 ? dim0 : dim1, att_shape_of(&shape).text);
    transpose_job j = job_of(&shape, first < last ? first : last, first < last ? last : first);
    shape.dim[first] = x->value.dim[last];
    shape.dim[last] = x->value.dim[first];
    att_var *y = att_tape_var(t, shape.rank, shape.dim);
    if (!y)
        return NULL;
    transpose(t->ctx, &j, x->value.data, y->value.data);
    return att_tape_end(t, &att_operation_transpose, y, &x, 1, &j, sizeof j);
}
