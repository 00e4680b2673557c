/* Rows of a table, by their numbers */
#include "tape/tape.h"

typedef struct job {
    const att_param *table; /* [n, features] */
    const int32_t *ids;
    float *y; /* [count, features] */
    int64_t features;
} job;

static void gather(const void *arg, int64_t first, int64_t last)
{
    const job *j = arg;
    for (int64_t i = first; i < last; i++)
        att_param_row(j->table, j->ids[i], j->y + i * j->features);
}

static bool check(att_tape *t, const att_tensor *table, const int32_t *ids, int64_t count)
{
    if (table->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "embedding: table is %s, not a matrix", att_shape_of(table).text);
    else if (count < 0 || (count > 0 && !ids))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "embedding: count = %lld with %s ids", (long long)count,
                      ids ? "these" : "no");
    else
        for (int64_t i = 0; i < count; i++)
            if (ids[i] < 0 || ids[i] >= table->dim[0]) {
                att_tape_fail(t, ATT_ERR_ARGUMENT, "embedding: ids[%lld] = %d but the table has %lld rows",
                              (long long)i, (int)ids[i], (long long)table->dim[0]);
                break;
            }
    return !t->status;
}

/* ---- backward: a row's gradient is that of each place that shows it, in ascending order */

typedef struct kept {
    const int32_t *ids; /* [count] */
} kept;

typedef struct scatter {
    const att_kernels *k;
    const int32_t *ids;
    int64_t count, features;
    const float *dy; /* [count, features] */
    float *dtable;   /* [n, features] */
} scatter;

static void scatter_columns(const void *arg, int64_t first, int64_t last)
{
    const scatter *j = arg;
    for (int64_t i = 0; i < j->count; i++) {
        float *row = j->dtable + j->ids[i] * j->features + first;
        j->k->add(last - first, row, j->dy + i * j->features + first, row);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    const kept *kept = s->kept;
    const int64_t features = s->y->value.dim[1];
    const scatter j = {.k = att_kernels_of(t->ctx->isa),
                       .ids = kept->ids,
                       .count = s->y->value.dim[0],
                       .features = features,
                       .dy = s->y->grad,
                       .dtable = att_param_part(s->param[0])};
    att_tape_for_columns(t->ctx, features, scatter_columns, &j);
    return ATT_OK;
}

const att_operation att_operation_embedding = {"embedding", backward};

/* ---- forward */

att_var *att_embedding(att_tape *t, att_param *table, const int32_t *ids, int64_t count)
{
    if (!att_tape_ready(t))
        return NULL;
    if (!table)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "embedding: table is NULL");
    const att_tensor *value = att_param_value(table);
    if (!check(t, value, ids, count))
        return NULL;
    const int64_t features = value->dim[1];
    att_var *y = att_tape_var(t, 2, (const int64_t[]){count, features});
    if (!y)
        return NULL;
    const job j = {.table = table, .ids = ids, .y = y->value.data, .features = features};
    att_tape_for_rows(t->ctx, count, features, gather, &j);
    const kept kept = {.ids = att_tape_keep(t, ids, (size_t)count * sizeof *ids)};
    const att_step step = {.op = &att_operation_embedding,
                           .y = y,
                           .param = &table,
                           .n_param = 1,
                           .kept = &kept,
                           .kept_bytes = sizeof kept};
    return att_tape_done(t, &step, NULL, NULL);
}
