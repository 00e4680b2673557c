/* a + b */
#include "tape/tape.h"

typedef struct job {
    const att_kernels *k;
    const float *a, *b;
    float *y; /* all [count] */
} job;

static void add(const void *arg, int64_t first, int64_t last)
{
    const job *j = arg;
    j->k->add(last - first, j->a + first, j->b + first, j->y + first);
}

static bool same_shape(const att_tensor *a, const att_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* ---- backward */

static att_status backward(att_tape *t, const att_step *s)
{
    att_tape_give(t, s->in[0], s->y->grad);
    att_tape_give(t, s->in[1], s->y->grad);
    return ATT_OK;
}

const att_operation att_operation_add = {"add", backward};

/* ---- forward */

att_var *att_add(att_tape *t, att_var *a, att_var *b)
{
    if (!a || !b || !att_tape_ready(t))
        return NULL;
    if (!same_shape(&a->value, &b->value))
        return att_tape_fail(t, ATT_ERR_SHAPE, "add: a is %s but b is %s", att_shape_of(&a->value).text,
                             att_shape_of(&b->value).text);
    att_var *y = att_tape_var(t, a->value.rank, a->value.dim);
    if (!y)
        return NULL;
    const job j = {.k = att_kernels_of(t->ctx->isa), .a = a->value.data, .b = b->value.data, .y = y->value.data};
    att_tape_for_rows(t->ctx, att_count(&a->value), 1, add, &j);
    const att_step step = {.op = &att_operation_add, .y = y, .in = (att_var *[]){a, b}, .n_in = 2};
    return att_tape_done(t, &step, NULL, NULL);
}
