/* Row lookup: embedding reads rows of a parameter, gather those of a variable */
#include "tape/tape.h"

#include <string.h>

typedef struct embedding_job {
    const att_param *table; /* [n, features], or NULL: x */
    const float *x;         /* [n, features] */
    const int32_t *ids;
    float *y; /* [count, features] */
    int64_t features;
} embedding_job;

static void rows(const void *arg, int64_t first, int64_t last)
{
    const embedding_job *j = arg;
    for (int64_t i = first; i < last; i++) {
        float *y = j->y + i * j->features;
        if (j->table)
            att_param_row(j->table, j->ids[i], y);
        else
            memcpy(y, j->x + j->ids[i] * j->features, (size_t)j->features * sizeof *y);
    }
}

static bool check(att_tape *t, const char *name, const char *of, int64_t n, const int32_t *ids, int64_t count)
{
    if (count < 0 || (count > 0 && !ids))
        att_tape_fail(t, ATT_ERR_ARGUMENT,
                      count < 0 ? "%s: count is %lld, less than 0" : "%s: ids is NULL, but count is %lld", name,
                      (long long)count);
    else
        for (int64_t i = 0; i < count; i++)
            if (ids[i] < 0 || ids[i] >= n) {
                att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: ids[%lld] = %d but %s has %lld rows", name, (long long)i,
                              (int)ids[i], of, (long long)n);
                break;
            }
    return !t->status;
}

/* ---- backward: scatter-add, for each row in ascending order of its uses */

typedef struct embedding_saved {
    const int32_t *ids; /* [count] */
    int64_t count, features;
} embedding_saved;

typedef struct scatter {
    const att_kernels *k;
    const embedding_saved *of;
    const float *dy; /* [count, features] */
    float *dx;       /* [n, features] */
} scatter;

static void scatter_columns(const void *arg, int64_t first, int64_t last)
{
    const scatter *j = arg;
    for (int64_t i = 0; i < j->of->count; i++) {
        float *row = j->dx + j->of->ids[i] * j->of->features + first;
        j->k->vector.add(last - first, row, j->dy + i * j->of->features + first, row);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    const embedding_saved *saved = s->saved;
    const scatter j = {.k = att_kernels_of(t->ctx->isa),
                       .of = saved,
                       .dy = s->y->grad,
                       .dx = s->n_param ? att_param_partial(s->param[0]) : att_tape_grad(s->in[0])};
    if (j.dx)
        att_tape_for_columns(t->ctx, saved->features, scatter_columns, &j);
    return ATT_OK;
}

const att_operation att_operation_embedding = {.name = "embedding", .backward = backward, .ignores_y = true};
const att_operation att_operation_gather = {.name = "gather", .backward = backward};

/* ---- forward */

/* Runs either operation: step and j have the fields that differ; y has this shape. */
static att_var *lookup(att_tape *t, att_step step, embedding_job j, int rank, const int64_t *dim)
{
    att_var *y = att_tape_var(t, rank, dim);
    if (!y)
        return NULL;
    const int64_t count = dim[0];
    j.features = 1;
    for (int i = 1; i < rank; i++)
        j.features *= dim[i];
    j.y = y->value.data;
    att_tape_for_rows(t->ctx, count, j.features, rows, &j);
    const embedding_saved saved = {att_tape_save(t, j.ids, (size_t)count * sizeof *j.ids), count, j.features};
    step.y = y;
    step.saved = &saved;
    step.saved_bytes = sizeof saved;
    return att_tape_done(t, &step, NULL, NULL);
}

att_var *att_embedding(att_tape *t, att_param *table, const int32_t *ids, int64_t count)
{
    if (!att_tape_ready(t))
        return NULL;
    if (!table)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "embedding: table is NULL");
    const att_tensor *value = att_param_value(table);
    if (value->rank != 2)
        return att_tape_fail(t, ATT_ERR_SHAPE, "embedding: table is %s, not a matrix", att_shape_of(value).text);
    if (!check(t, "embedding", "the table", value->dim[0], ids, count))
        return NULL;
    const att_step step = {.op = &att_operation_embedding, .param = &table, .n_param = 1};
    return lookup(t, step, (embedding_job){.table = table, .ids = ids}, 2, (const int64_t[]){count, value->dim[1]});
}

att_var *att_gather(att_tape *t, att_var *x, const int32_t *ids, int64_t count)
{
    if (!x || !att_tape_ready(t) || !check(t, "gather", "x", x->value.dim[0], ids, count))
        return NULL;
    att_tensor shape = x->value;
    shape.dim[0] = count;
    const att_step step = {.op = &att_operation_gather, .in = &x, .n_in = 1};
    return lookup(t, step, (embedding_job){.x = x->value.data, .ids = ids}, shape.rank, shape.dim);
}
