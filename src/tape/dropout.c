/* Dropout. The mask is a function of seed, sequence, position and feature, so backward computes it again. */
#include "tape/tape.h"

typedef struct dropout_saved {
    float p;
    uint64_t seed;
    uint32_t threshold;
    int64_t n;
    const int64_t *offsets, *starts; /* [n + 1], [n] or NULL */
    const uint32_t *ids;             /* [n] */
} dropout_saved;

typedef struct dropout_job {
    const att_kernels *k;
    const dropout_saved *how;
    const float *x, *residual; /* [tokens, features], residual NULL: none */
    float *y;                  /* as x */
    int64_t features;
} dropout_job;

/* Rows [first, last) of sequence b, at most BLOCK. The mask is generated for four positions at a time, from a multiple
 * of 4. */
enum { BLOCK = 64 };

static void dropout_block(const dropout_job *j, int64_t b, int64_t first, int64_t last)
{
    const dropout_saved *h = j->how;
    const float scale = (float)(1 / (1 - (double)h->p)); /* of elements that are not dropped */
    const uint32_t position = (uint32_t)((h->starts ? h->starts[b] : 0) + first - h->offsets[b]), before = position % 4;
    for (int64_t f = 0; f < j->features; f += j->k->nr) {
        const int columns = (int)att_min(j->features - f, j->k->nr);
        const att_dropout_mask d = {
            .seed = h->seed, .sequence = h->ids[b], .head = UINT32_MAX, .threshold = h->threshold};
        const int64_t at = first * j->features + f;
        uint64_t bits[BLOCK + 8];
        j->k->dropout.mask(&d, columns, (uint32_t)f, position - before, before + (last - first), bits);
        j->k->dropout.apply_rows(columns, last - first, bits + before, scale, j->x + at,
                                 j->residual ? j->residual + at : NULL, j->y + at, j->features);
    }
}

static void apply_dropout(const void *arg, int64_t first, int64_t last)
{
    const dropout_job *j = arg;
    const int64_t *offsets = j->how->offsets;
    int64_t b = 0;
    while (first < last) {
        while (offsets[b + 1] <= first)
            b++;
        const int64_t end = att_min(att_min(last, offsets[b + 1]), first + BLOCK);
        dropout_block(j, b, first, end);
        first = end;
    }
}

/* ---- backward */

static att_status backward(att_tape *t, const att_step *s)
{
    att_var *x = s->in[0];
    att_tape_add_grad(t, s->in[1], s->y->grad);
    if (!x->grad)
        return ATT_OK;
    float *dx = att_tape_dx(t, x);
    if (!dx)
        return ATT_ERR_MEMORY;
    const dropout_job j = {
        .k = att_kernels_of(t->ctx->isa), .how = s->saved, .x = s->y->grad, .y = dx, .features = x->value.dim[1]};
    att_tape_for_rows(t->ctx, x->value.dim[0], j.features, apply_dropout, &j);
    att_tape_dx_end(t, x, dx);
    return ATT_OK;
}

const att_operation att_operation_dropout = {
    .name = "dropout", .backward = backward, .ignores_y = true, .ignores_in = 3};

/* ---- forward */

static bool check(att_tape *t, const att_tensor *x, const att_tensor *residual, float p, const att_positions *at,
                  const uint32_t *ids)
{
    if (!(p >= 0 && p < 1))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "dropout: p = %g is not in [0, 1)", (double)p);
    else if (x->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "dropout: x is %s, not [tokens, features]", att_shape_of(x).text);
    else if (residual && !att_same_shape(x, residual))
        att_tape_fail(t, ATT_ERR_SHAPE, "dropout: x is %s but residual is %s", att_shape_of(x).text,
                      att_shape_of(residual).text);
    else if (at->position_ids)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "dropout: positions are given one by one, not by offsets");
    else if (at->n > 0 && !ids)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "dropout: sequence_ids is NULL, but each of the %lld sequences needs an id",
                      (long long)at->n);
    return !t->status && att_tape_check_positions(t, "dropout", x, at);
}

/* Copies the arguments into the tape's memory. */
static dropout_saved save(att_tape *t, float p, uint64_t seed, const att_positions *at, const uint32_t *ids)
{
    const size_t n = (size_t)at->n;
    return (dropout_saved){.p = p,
                           .seed = seed,
                           .threshold = att_dropout_threshold(p),
                           .n = at->n,
                           .offsets = att_tape_save(t, at->offsets, (n + 1) * sizeof *at->offsets),
                           .starts = at->starts ? att_tape_save(t, at->starts, n * sizeof *at->starts) : NULL,
                           .ids = att_tape_save(t, ids, n * sizeof *ids)};
}

att_var *att_dropout(att_tape *t, att_var *x, att_var *residual, float p, uint64_t seed, const att_positions *at,
                     const uint32_t *sequence_ids)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    if (!at)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "dropout: at is NULL");
    att_positions rows;
    if (!att_tape_options_read(t, "dropout", &rows, sizeof rows, at, "att_positions"))
        return NULL;
    if (!check(t, &x->value, residual ? &residual->value : NULL, p, &rows, sequence_ids))
        return NULL;
    if (att_dropout_threshold(p) == 0)
        return residual ? att_add(t, x, residual) : x;
    const dropout_saved how = save(t, p, seed, &rows, sequence_ids);
    att_var *y = att_tape_var(t, 2, x->value.dim);
    if (!y)
        return NULL;
    const dropout_job j = {.k = att_kernels_of(t->ctx->isa),
                           .how = &how,
                           .x = x->value.data,
                           .residual = residual ? residual->value.data : NULL,
                           .y = y->value.data,
                           .features = x->value.dim[1]};
    att_tape_for_rows(t->ctx, x->value.dim[0], j.features, apply_dropout, &j);
    return att_tape_end(t, &att_operation_dropout, y, (att_var *[]){x, residual}, 2, &how, sizeof how);
}
