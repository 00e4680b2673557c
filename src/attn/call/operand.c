/* One side of a call, its queries or its keys, if a score transforms them. */
#include "attn/call/operand.h"

att_qk_operand att_qk_operand_of(const att_call *c, bool of_keys)
{
    const att_attention_spec *s = &c->plan->spec;
    att_qk_operand x = {.how = of_keys ? &c->plan->transforms->k : &c->plan->transforms->q,
                        .rows = &c->floats[of_keys],
                        .transformed = of_keys ? &c->k_rows : &c->q_rows,
                        .in = of_keys ? s->key_dim : s->head_dim,
                        .out = of_keys ? c->plan->k_dim : c->plan->q_dim,
                        .heads = of_keys && !c->keys_per_head ? s->kv_heads : s->heads,
                        .group = of_keys && c->keys_per_head ? s->heads / s->kv_heads : 1};
    if (x.how->kind == ATT_TRANSFORM_PROJECT)
        x.param = &c->param[x.how->param];
    return x;
}

const att_tensor *att_qk_rows(const att_call *c, bool of_keys) { return of_keys ? &c->args.k : &c->args.q; }

int64_t att_qk_count(const att_call *c, bool of_keys)
{
    const att_tensor *t = att_qk_rows(c, of_keys);
    return t->dim[c->ragged ? 0 : 2] * (c->ragged ? 1 : t->dim[0]);
}

att_strided_rows att_strided_rows_of(const att_call *c, const att_tensor *t, int64_t head)
{
    att_strided_rows l = {.at = t->data, .dtype = t->dtype};
    l.at = att_strided_row_at(&l, head * t->stride[1]);
    l.outer = c->ragged ? 1 : t->dim[0];
    l.outer_step = c->ragged ? 0 : t->stride[0];
    l.inner = t->dim[c->ragged ? 0 : 2];
    l.step = t->stride[c->ragged ? 0 : 2];
    if (l.inner == 1) /* one row of each sequence */
        return (att_strided_rows){l.at, l.dtype, 1, 0, l.outer, l.outer_step};
    return l;
}

void att_strided_rows_join(att_strided_rows *a, att_strided_rows *b)
{
    if (a->outer == 1 || a->outer_step != a->inner * a->step || b->outer_step != b->inner * b->step)
        return;
    a->inner *= a->outer;
    b->inner *= b->outer;
    a->outer = b->outer = 1;
}

/* ---- line by line, over all threads */

typedef struct line_job {
    const att_kernels *kernels;
    att_row_function *f;
    int64_t n, count, tasks;
    att_strided_rows x, u, y;
} line_job;

static att_rows row_of(const att_strided_rows *l, int64_t row)
{
    const int64_t start = l->inner ? row / l->inner * l->outer_step + row % l->inner * l->step : 0;
    return (att_rows){.at = att_strided_row_at(l, start), .dtype = l->dtype};
}

static void line_task(void *arg, int i)
{
    const line_job *j = arg;
    for (int64_t r = j->count * i / j->tasks; r < j->count * (i + 1) / j->tasks; r++) {
        const att_rows x = row_of(&j->x, r), u = row_of(&j->u, r), y = row_of(&j->y, r);
        j->f(j->kernels, j->n, &x, &u, &y);
    }
}

void att_for_each_row(const att_call *c, att_row_function *f, int64_t n, att_strided_rows x, att_strided_rows u,
                      att_strided_rows y)
{
    enum { LINES_PER_TASK = 64, MAX_TASKS = 1 << 12 };
    line_job j = {.kernels = c->plan->kernels, .f = f, .n = n, .count = y.outer * y.inner, .x = x, .u = u, .y = y};
    j.tasks = att_min(att_ceil_div(j.count, LINES_PER_TASK), MAX_TASKS);
    att_parallel_for(c->plan->ctx, (int)j.tasks, line_task, &j);
}
