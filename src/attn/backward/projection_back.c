/* The gradient of a parameter that rows were multiplied with: y [m, n] = sum of a^T b, over all rows and over the heads
 * that share it, where a are rows and b gradients of transformed ones, or, for a parameter [out, in], the other way
 * round. A task has some of m by some panels of n; rows are multiplied where they lie. */
#include "attn/backward/transform_back.h"
#include "attn/call/scratch.h"
#include "tensor/tensor.h"

#include <string.h>

enum {
    DEPTH = 256, /* rows of a product */
    MOST = 256   /* rows and columns of a task */
};

typedef struct param_job {
    const att_call *call;
    const att_qk_operand *side;
    const att_tensor *grads, *gradient;
    bool add;
    int64_t m, n, rows, columns; /* of one head's gradient, and of a task */
    int64_t blocks, groups;      /* tasks of a head */
    float *memory;
    size_t of_thread; /* floats of it */
} param_job;

/* Rows a step apart, of one head. */
typedef struct run {
    const float *a, *b; /* where their parts that a task needs begin */
    int64_t a_step, b_step, count;
} run;

/* What a task has done, and what it has to do. */
typedef struct part {
    const param_job *job;
    int64_t i, j, m, n;                    /* of the gradient */
    int64_t head, last_head, outer, inner; /* next rows */
} part;

/* How many rows of a run come before one that is left out: one whose gradient is 0 counts as 0, whatever is in it. */
static int64_t clean_rows(const att_kernels *k, int64_t rows, int64_t in, const float *x, int64_t x_step, int64_t out,
                          const float *slope, int64_t slope_step)
{
    for (int64_t r = 0; r < rows; r++)
        if (!k->vector.all_finite(in, x + r * x_step) && att_is_zero(out, slope + r * slope_step))
            return r;
    return rows;
}

/* The next rows, at most DEPTH; moves on. */
static run next_run(part *p)
{
    const param_job *j = p->job;
    const bool out_first = j->side->how->out_first;
    att_strided_rows x = att_strided_rows_of(j->call, j->side->rows, p->head / j->side->group);
    att_strided_rows slope = att_strided_rows_of(j->call, j->grads, p->head);
    att_strided_rows_join(&x, &slope);
    run r = {.a_step = out_first ? slope.step : x.step, .b_step = out_first ? x.step : slope.step};
    if (p->outer < x.outer && p->inner < x.inner) {
        const int64_t left = x.inner - p->inner, rows = left < DEPTH ? left : DEPTH;
        const float *from = att_strided_row_at(&x, p->outer * x.outer_step + p->inner * x.step);
        const float *grads = att_strided_row_at(&slope, p->outer * slope.outer_step + p->inner * slope.step);
        r.a = (out_first ? grads : from) + p->i;
        r.b = (out_first ? from : grads) + p->j;
        r.count = clean_rows(j->call->plan->kernels, rows, out_first ? p->n : p->m, out_first ? r.b : r.a, x.step,
                             j->side->out, grads, slope.step);
        p->inner += r.count + (r.count < rows);
    }
    if (p->inner >= x.inner) {
        p->inner = 0;
        p->outer++;
    }
    if (p->outer >= x.outer) {
        p->outer = 0;
        p->head++;
    }
    return r;
}

/* What a thread works in, from p on: how many floats that takes. */
static size_t lay_out(const param_job *j, float *p, float **sum, float **packed)
{
    const att_scratch_part parts[] = {{sum, j->rows * j->columns}, {packed, DEPTH * j->call->plan->kernels->q_tile}};
    return att_scratch_lay_out(p, sizeof parts / sizeof parts[0], parts);
}

/* sum [panels of n][m][panel], or 0 where that has not been begun, += a^T b; packed [DEPTH][panel] */
static void add_product(const part *p, const run *r, bool begun, float *sum, float *packed)
{
    const att_kernels *k = p->job->call->plan->kernels;
    for (int64_t j = 0; j < p->n; j += k->q_tile, sum += p->m * k->q_tile) {
        const bool padded = p->n - j >= k->q_tile;
        if (!padded)
            k->backward.pack_rows(r->count, r->count, p->n - j, r->b + j, r->b_step, 1, packed);
        k->backward.gemm_tn(&(const att_product){.add = begun,
                                                 .m = p->m,
                                                 .k = r->count,
                                                 .a = r->a,
                                                 .lda = r->a_step,
                                                 .b = padded ? r->b + j : packed,
                                                 .ldb = padded ? r->b_step : k->q_tile,
                                                 .c = sum});
    }
}

/* A task's part of one head's gradient. */
static void store(const part *p, const float *sum, float *to)
{
    const att_kernels *k = p->job->call->plan->kernels;
    const int64_t n = p->job->n;
    for (int64_t j = 0; j < p->n; j += k->q_tile, to += k->q_tile)
        for (int64_t i = 0; i < p->m; i++, sum += k->q_tile) {
            const int64_t columns = p->n - j < k->q_tile ? p->n - j : k->q_tile;
            if (p->job->add)
                k->vector.add(columns, to + i * n, sum, to + i * n);
            else
                memcpy(to + i * n, sum, (size_t)columns * sizeof *to);
        }
}

static void param_task(void *arg, int task, int thread)
{
    const param_job *j = arg;
    const int64_t of_head = j->blocks * j->groups, head = task / of_head;
    const bool shared = att_qk_shares_param(j->side);
    part p = {.job = j, .i = task % j->blocks * j->rows, .j = task % of_head / j->blocks * j->columns};
    p.m = j->m - p.i < j->rows ? j->m - p.i : j->rows;
    p.n = j->n - p.j < j->columns ? j->n - p.j : j->columns;
    p.head = shared ? 0 : head;
    p.last_head = shared ? j->side->heads : head + 1;
    float *sum, *packed;
    lay_out(j, j->memory + (size_t)thread * j->of_thread, &sum, &packed);
    bool begun = false;
    while (p.head < p.last_head) {
        const run r = next_run(&p);
        if (r.count)
            add_product(&p, &r, begun, sum, packed);
        begun = begun || r.count;
    }
    if (!begun)
        memset(sum, 0, (size_t)(j->rows * j->columns) * sizeof *sum);
    store(&p, sum, (float *)j->gradient->data + head * j->gradient->stride[0] + p.i * j->n + p.j);
}

/* Large tasks read least for what they multiply; enough for all threads. */
static void deal(param_job *j)
{
    const int64_t panel = j->call->plan->kernels->q_tile, heads = j->side->param->dim[0];
    const int64_t enough = att_threads(j->call->plan->ctx);
    j->m = j->side->how->out_first ? j->side->out : j->side->in;
    j->n = j->side->how->out_first ? j->side->in : j->side->out;
    j->rows = j->m < MOST ? j->m : MOST;
    j->columns = j->n < MOST ? att_round_up(j->n, panel) : MOST;
    while (heads * att_ceil_div(j->m, j->rows) * att_ceil_div(j->n, j->columns) < enough &&
           (j->rows >= 64 || j->columns > panel))
        if (j->rows >= 64)
            j->rows = att_ceil_div(j->rows, 2);
        else
            j->columns = att_round_up(att_ceil_div(j->columns, 2), panel);
    j->blocks = att_ceil_div(j->m, j->rows);
    j->groups = att_ceil_div(j->n, j->columns);
    j->of_thread = lay_out(j, NULL, &(float *){NULL}, &(float *){NULL});
}

size_t att_projection_back_workspace(const att_call *c, const att_qk_operand *x)
{
    param_job j = {.call = c, .side = x};
    deal(&j);
    return att_size_mul(j.of_thread, (size_t)att_threads(c->plan->ctx));
}

void att_projection_back(const att_call *c, const att_qk_operand *x, const att_tensor *grads,
                         const att_tensor *gradient, bool add, float *memory)
{
    param_job j = {.call = c, .side = x, .grads = grads, .gradient = gradient, .add = add, .memory = memory};
    deal(&j);
    att_parallel(c->plan->ctx, (int)(gradient->dim[0] * j.blocks * j.groups), param_task, &j);
}
