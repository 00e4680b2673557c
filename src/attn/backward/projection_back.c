/* The gradient of a parameter that rows were projected with: X^T G [in, out], or G^T X [out, in], where X are rows of q
 * or k and G the gradients of the projected ones. The sum is over all rows, and over the heads that share the
 * parameter, in ascending order. */
#include "attn/backward/transform_back.h"
#include "gemm/gemm.h"

#include <stdatomic.h>
#include <string.h>

enum { BAND = 1024, TASK = 64 }; /* rows of one product, and of a task that checks them */

/* Some rows of one head: x [rows, in] and g [rows, out]. */
typedef struct band {
    const att_kernels *kernels;
    int64_t rows, in, out;
    const float *x;
    int64_t x_stride;
    const float *g;
    int64_t g_stride;
    atomic_bool excludes; /* a row of x is not finite, but its gradient is 0 */
} band;

/* Returns whether a row is excluded: if its gradient is 0, the row counts as 0, even if it has NaN. */
static bool is_excluded(const band *b, int64_t row)
{
    return !b->kernels->vector.all_finite(b->in, b->x + row * b->x_stride) &&
           att_is_zero(b->out, b->g + row * b->g_stride);
}

static void find_excluded(void *arg, int task)
{
    band *b = arg;
    for (int64_t r = (int64_t)task * TASK; r < att_min(b->rows, (int64_t)(task + 1) * TASK); r++)
        if (is_excluded(b, r))
            atomic_store(&b->excludes, true);
}

/* Returns x or, if rows are excluded, a copy [rows, in] with zeros for these. */
static const float *clean_rows(att_ctx *ctx, band *b, float *copy, int64_t *stride)
{
    *stride = b->x_stride;
    att_parallel_for(ctx, (int)att_ceil_div(b->rows, TASK), find_excluded, b);
    if (!atomic_load(&b->excludes))
        return b->x;
    *stride = b->in;
    for (int64_t r = 0; r < b->rows; r++)
        if (is_excluded(b, r))
            memset(copy + r * b->in, 0, (size_t)b->in * sizeof *copy);
        else
            memcpy(copy + r * b->in, b->x + r * b->x_stride, (size_t)b->in * sizeof *copy);
    return copy;
}

static att_matmul_args product_of(const att_qk_operand *x, int64_t rows)
{
    const bool out_first = x->how->out_first;
    return (att_matmul_args){
        .m = out_first ? x->out : x->in, .n = out_first ? x->in : x->out, .k = rows, .ldc = out_first ? x->in : x->out};
}

/* Sets `to` to the product of a band, or adds it. */
static void add_band(const att_call *c, const att_qk_operand *x, band *b, bool add, float *to, float *scratch)
{
    int64_t stride;
    att_matmul_args p = product_of(x, b->rows);
    const float *rows = clean_rows(c->plan->ctx, b, scratch, &stride);
    const att_matrix gradient = {b->g, b->g_stride, 1}, input = {rows, stride, 1};
    const att_matrix left = x->how->out_first ? gradient : input;
    p.a = (att_matrix){left.x, 1, left.row};
    p.b = x->how->out_first ? input : gradient;
    p.add = add;
    p.c = to;
    att_matmul_strided(c->plan->ctx, &p, scratch + BAND * x->in);
}

/* Sets `to` to the product of all rows of a head, or adds it; false: there are none. */
static bool add_head(const att_call *c, const att_qk_operand *x, const att_tensor *grads, int64_t head, bool add,
                     float *to, float *scratch)
{
    att_strided_rows in = att_strided_rows_of(c, x->rows, head / x->group), g = att_strided_rows_of(c, grads, head);
    bool any = false;
    att_strided_rows_join(&in, &g);
    for (int64_t outer = 0; outer < in.outer; outer++)
        for (int64_t first = 0; first < in.inner; first += BAND, any = true) {
            band b = {.kernels = c->plan->kernels,
                      .rows = att_min(BAND, in.inner - first),
                      .in = x->in,
                      .out = x->out,
                      .x = att_strided_row_at(&in, outer * in.outer_step + first * in.step),
                      .x_stride = in.step,
                      .g = att_strided_row_at(&g, outer * g.outer_step + first * g.step),
                      .g_stride = g.step};
            add_band(c, x, &b, add || any, to, scratch);
        }
    return any;
}

typedef struct sum_job {
    const att_kernels *kernels;
    int64_t n;
    float *to;
    const float *sum;
} sum_job;

/* Adds the sum to `to`. It is a task, so that the host's rounding mode does not matter. */
static void add_sum(void *arg, int task)
{
    const sum_job *j = arg;
    (void)task;
    j->kernels->vector.add(j->n, j->to, j->sum, j->to);
}

/* Returns the floats of scratch memory: a gradient to be added to another, a copy of rows, and that of a product. */
size_t att_projection_back_workspace(const att_call *c, const att_qk_operand *x)
{
    const att_matmul_args p = product_of(x, BAND);
    const size_t in = (size_t)x->in, fixed = att_size_mul(in, (size_t)x->out + BAND);
    const size_t product = att_matmul_scratch(c->plan->ctx, &p);
    return fixed < SIZE_MAX - product ? fixed + product : SIZE_MAX;
}

void att_projection_back(const att_call *c, const att_qk_operand *x, const att_tensor *grads,
                         const att_tensor *gradient, bool add, float *scratch)
{
    const int64_t sharing = att_qk_shares_param(x) ? x->heads : 1, count = x->in * x->out;
    for (int64_t first = 0; first < x->heads; first += sharing) {
        float *to = (float *)gradient->data + first * gradient->stride[0], *sum = add ? scratch : to;
        bool begun = false;
        for (int64_t head = first; head < first + sharing; head++)
            begun = add_head(c, x, grads, head, begun, sum, scratch + count) || begun;
        if (!begun)
            memset(sum, 0, (size_t)count * sizeof *sum);
        if (add)
            att_parallel_for(c->plan->ctx, 1, add_sum, &(sum_job){c->plan->kernels, count, to, sum});
    }
}
