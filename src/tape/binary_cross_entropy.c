/* Binary cross entropy with logits: the mean or sum of -t log s - (1 - t) log(1 - s), s = sigmoid(logit), over the
 * elements with a target t */
#include "tape/tape.h"

typedef struct binary_cross_entropy_saved {
    const float *targets; /* in the shape of logits; negative: ignored */
    int64_t divisor;      /* of the sum of losses: 1, or the number of targets */
} binary_cross_entropy_saved;

typedef struct binary_cross_entropy_job {
    const att_kernels *k;
    const float *x, *targets;
    float *y;        /* losses or dx; all [count] */
    const float *dy; /* [1] */
    int64_t divisor;
} binary_cross_entropy_job;

static void losses(const void *arg, int64_t first, int64_t last)
{
    const binary_cross_entropy_job *j = arg;
    j->k->layer.logistic(last - first, j->x + first, j->targets + first, j->y + first);
}

/* ---- backward: sigmoid - target */

static void losses_back(const void *arg, int64_t first, int64_t last)
{
    const binary_cross_entropy_job *j = arg;
    const float factor = (float)((double)*j->dy / (double)j->divisor);
    j->k->layer.logistic_back(last - first, j->x + first, j->targets + first, j->y + first);
    j->k->vector.scale(last - first, factor, j->y + first, j->y + first);
}

static att_status backward(att_tape *t, const att_step *s)
{
    att_var *x = s->in[0];
    const binary_cross_entropy_saved *how = s->saved;
    float *dx = att_tape_dx(t, x);
    if (!dx)
        return ATT_ERR_MEMORY;
    const binary_cross_entropy_job j = {
        att_kernels_of(t->ctx->isa), x->value.data, how->targets, dx, s->y->grad, how->divisor};
    att_tape_for_rows(t->ctx, att_count(&x->value), 1, losses_back, &j);
    att_tape_dx_end(t, x, dx);
    return ATT_OK;
}

const att_operation att_operation_binary_cross_entropy = {
    .name = "binary_cross_entropy", .backward = backward, .in_place = true};

/* ---- forward */

/* Returns the number of targets that are not ignored; -1: an invalid target. */
static int64_t count_of(att_tape *t, const float *targets, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(targets[i] <= 1)) {
            att_tape_fail(t, ATT_ERR_ARGUMENT, "binary_cross_entropy: targets[%lld] = %g is above 1", (long long)i,
                          (double)targets[i]);
            return -1;
        }
        count += targets[i] >= 0;
    }
    return count;
}

static bool sum_up(att_tape *t, const att_tensor *x, const float *targets, int64_t divisor, float *y)
{
    const int64_t n = att_count(x);
    const size_t mark = att_arena_mark(&t->arena);
    const binary_cross_entropy_job j = {
        .k = att_kernels_of(t->ctx->isa), .x = x->data, .targets = targets, .y = att_tape_scratch(t, (size_t)n)};
    if (j.y) {
        att_tape_for_rows(t->ctx, n, 1, losses, &j);
        att_tape_total(t->ctx, n, j.y, divisor, y);
    }
    att_arena_release(&t->arena, mark);
    return j.y;
}

att_var *att_binary_cross_entropy(att_tape *t, att_var *logits, const float *targets,
                                  const att_binary_cross_entropy_options *options)
{
    att_binary_cross_entropy_options o;
    if (!logits || !att_tape_ready(t) ||
        !att_tape_options_read(t, "binary_cross_entropy", &o, sizeof o, options, "att_binary_cross_entropy_options"))
        return NULL;
    const att_tensor *x = &logits->value;
    const int64_t n = att_count(x);
    if (!targets && n > 0)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "binary_cross_entropy: targets is NULL");
    const int64_t n_targets = count_of(t, targets, n);
    att_var *y = n_targets < 0 ? NULL : att_tape_var(t, 1, (const int64_t[]){1});
    if (!y)
        return NULL;
    const binary_cross_entropy_saved how = {.targets = att_tape_save(t, targets, (size_t)n * sizeof *targets),
                                            .divisor = o.sum || n_targets == 0 ? 1 : n_targets};
    if (t->status || !sum_up(t, x, how.targets, how.divisor, y->value.data))
        return att_tape_fail(t, ATT_ERR_MEMORY, "binary_cross_entropy: %s", att_error(t->ctx));
    if (o.count)
        *o.count = n_targets;
    return att_tape_end(t, &att_operation_binary_cross_entropy, y, &logits, 1, &how, sizeof how);
}
