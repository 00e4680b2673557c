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
    return att_tape_done(t, "embedding", y, NULL, NULL);
}
