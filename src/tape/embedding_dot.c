/* Scores of some of many classes: dot products of each row with chosen rows of a table, which are not copied. */
#include "tape/tape.h"

typedef struct embedding_dot_saved {
    const int32_t *ids; /* [rows, count] */
    int64_t count;
} embedding_dot_saved;

typedef struct embedding_dot_job {
    const att_kernels *k;
    const embedding_dot_saved *of;
    int64_t rows, features;
    float *x;               /* [rows, features] */
    const att_param *table; /* [n, features] */
    float *y;               /* [rows, count] */
    float *dy;              /* as y */
    float *dx, *dtable;     /* as x and table */
    /* The rows of an f32 table; for other tables, the chosen rows of a block of rows of x, as f32. */
    float *floats;
    float *converted; /* [block, count, features] */
    int64_t first;    /* first row of the block */
} embedding_dot_job;

static void convert_rows(const void *arg, int64_t first, int64_t last)
{
    const embedding_dot_job *j = arg;
    for (int64_t i = first; i < last; i++)
        att_param_row(j->table, j->of->ids[j->first * j->of->count + i], j->converted + i * j->features);
}

typedef struct block_job {
    const embedding_dot_job *j;
    void (*body)(const void *job, int64_t first, int64_t last);
} block_job;

static void block_rows(const void *arg, int64_t first, int64_t last)
{
    const block_job *b = arg;
    b->body(b->j, b->j->first + first, b->j->first + last);
}

/* Calls body for all rows of x, by blocks if the table must be converted to f32. False: error set. */
static bool for_rows(att_tape *t, embedding_dot_job *j, void (*body)(const void *job, int64_t first, int64_t last))
{
    enum { NUMBERS = 1 << 18 };
    const size_t mark = att_arena_mark(&t->arena);
    const bool whole = att_param_block_count(j->table) == 0;
    const int64_t numbers = att_max(j->of->count * j->features, 1);
    const int64_t block = whole ? j->rows : att_max(NUMBERS / numbers, 1);
    j->floats = whole ? att_param_value(j->table)->data : NULL;
    j->converted = att_tape_scratch(t, whole ? 0 : (size_t)(att_min(block, j->rows) * numbers));
    if (!j->converted)
        return false;
    for (j->first = 0; j->first < j->rows; j->first += block) {
        const int64_t n = att_min(block, j->rows - j->first);
        if (!whole)
            att_tape_for_rows(t->ctx, n * j->of->count, j->features, convert_rows, j);
        att_tape_for_rows(t->ctx, n, numbers, block_rows, &(const block_job){j, body});
    }
    att_arena_release(&t->arena, mark);
    return true;
}

/* Returns rows [first, last) of x or dx, and the rows of the table that are chosen for them; y or dy. */
static att_chosen_args chosen(const embedding_dot_job *j, int64_t first, int64_t last, float *x, float *y)
{
    const int64_t at = first * j->of->count, in_block = at - j->first * j->of->count;
    return (att_chosen_args){.rows = last - first,
                             .count = j->of->count,
                             .ids = j->floats ? j->of->ids + at : NULL,
                             .n = j->features,
                             .stride = j->features,
                             .x = x + first * j->features,
                             .table = j->floats ? j->floats : j->converted + in_block * j->features,
                             .y = y + at};
}

static void dots(const void *arg, int64_t first, int64_t last)
{
    const embedding_dot_job *j = arg;
    const att_chosen_args args = chosen(j, first, last, j->x, j->y);
    j->k->vector.chosen_dots(&args);
}

/* ---- backward: sums in ascending order of rows, and of ids within one */

static void rows_back(const void *arg, int64_t first, int64_t last)
{
    const embedding_dot_job *j = arg;
    const att_chosen_args args = chosen(j, first, last, j->dx, j->dy);
    j->k->vector.chosen_add(&args, false);
}

static void table_back(const void *arg, int64_t first, int64_t last)
{
    const embedding_dot_job *j = arg;
    const att_chosen_args args = {.rows = j->rows,
                                  .count = j->of->count,
                                  .ids = j->of->ids,
                                  .n = last - first,
                                  .stride = j->features,
                                  .x = j->x + first,
                                  .table = j->dtable + first,
                                  .y = j->dy};
    j->k->vector.chosen_add(&args, true);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *x = &s->in[0]->value;
    embedding_dot_job j = {.k = att_kernels_of(t->ctx->isa),
                           .of = s->saved,
                           .rows = x->dim[0],
                           .features = x->dim[1],
                           .x = x->data,
                           .table = s->param[0],
                           .dy = s->y->grad};
    j.dx = att_tape_grad(s->in[0]);
    j.dtable = att_param_partial(s->param[0]);
    if (j.dx && !for_rows(t, &j, rows_back))
        return ATT_ERR_MEMORY;
    if (j.dtable)
        att_tape_for_columns(t->ctx, j.features, table_back, &j);
    return ATT_OK;
}

const att_operation att_operation_embedding_dot = {.name = "embedding_dot", .backward = backward, .ignores_y = true};

/* ---- forward */

static bool check(att_tape *t, const att_tensor *x, const att_tensor *table, const int32_t *ids, int64_t count)
{
    if (x->rank != 2 || table->rank != 2 || x->dim[1] != table->dim[1])
        att_tape_fail(t, ATT_ERR_SHAPE, "embedding_dot: x is %s but the table is %s", att_shape_of(x).text,
                      att_shape_of(table).text);
    else if (count < 0 || (count > 0 && x->dim[0] > 0 && !ids))
        att_tape_fail(t, ATT_ERR_ARGUMENT,
                      count < 0 ? "embedding_dot: count is %lld, less than 0"
                                : "embedding_dot: ids is NULL, but count is %lld",
                      (long long)count);
    for (int64_t i = 0; !t->status && i < x->dim[0] * count; i++)
        if (ids[i] < 0 || ids[i] >= table->dim[0])
            att_tape_fail(t, ATT_ERR_ARGUMENT, "embedding_dot: ids[%lld] = %d but the table has %lld rows",
                          (long long)i, (int)ids[i], (long long)table->dim[0]);
    return !t->status;
}

att_var *att_embedding_dot(att_tape *t, att_var *x, att_param *table, const int32_t *ids, int64_t count)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    if (!table)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "embedding_dot: table is NULL");
    if (!check(t, &x->value, att_param_value(table), ids, count))
        return NULL;
    embedding_dot_job j = {.k = att_kernels_of(t->ctx->isa),
                           .rows = x->value.dim[0],
                           .features = x->value.dim[1],
                           .x = x->value.data,
                           .table = table};
    att_var *y = att_tape_var(t, 2, (const int64_t[]){j.rows, count});
    if (!y)
        return NULL;
    const embedding_dot_saved saved = {att_tape_save(t, ids, (size_t)(j.rows * count) * sizeof *ids), count};
    j.of = &saved;
    j.y = y->value.data;
    if (t->status)
        return NULL;
    if (!for_rows(t, &j, dots))
        return att_tape_fail(t, ATT_ERR_MEMORY, "embedding_dot: %s", att_error(t->ctx));
    const att_step step = {.op = &att_operation_embedding_dot,
                           .y = y,
                           .in = &x,
                           .n_in = 1,
                           .param = &table,
                           .n_param = 1,
                           .saved = &saved,
                           .saved_bytes = sizeof saved};
    return att_tape_done(t, &step, NULL, NULL);
}
