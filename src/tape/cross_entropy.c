/* Cross entropy: the mean or sum of -log softmax(logits)[target] over rows with a target. With label smoothing s the
 * target distribution is 1 - s at the target plus s / classes everywhere. */
#include "tape/cross_entropy.h"

#include <string.h>

typedef struct cross_entropy_job {
    const att_kernels *k;
    const att_cross_entropy_saved *how;
    const float *x;  /* [rows, all] */
    float *loss;     /* [rows] */
    const float *dy; /* [1] */
    float *dx;       /* as x; it may be x */
} cross_entropy_job;

static void losses(const void *arg, int64_t first, int64_t last)
{
    const cross_entropy_job *j = arg;
    const att_cross_entropy_saved *h = j->how;
    for (int64_t i = first; i < last; i++) {
        const float *x = j->x + i * h->all;
        j->loss[i] = h->lse[i] = 0;
        if (h->targets[i] < 0)
            continue;
        h->lse[i] = j->k->layer.log_sum_exp(h->classes, x);
        const float rest = h->label_smoothing > 0 ? h->share * j->k->vector.sum(h->classes, x) : 0;
        j->loss[i] = h->lse[i] - (1 - h->label_smoothing) * x[h->targets[i]] - rest;
    }
}

/* ---- backward: (softmax - target distribution) * dy / divisor */

static void losses_back(const void *arg, int64_t first, int64_t last)
{
    const cross_entropy_job *j = arg;
    const att_cross_entropy_saved *h = j->how;
    const float factor = (float)((double)*j->dy / (double)h->divisor);
    for (int64_t i = first; i < last; i++) {
        float *dx = j->dx + i * h->all;
        const int64_t used = h->targets[i] < 0 ? 0 : h->classes;
        if (used)
            j->k->layer.cross_entropy_back(used, j->x + i * h->all, h->lse[i], h->share, factor, dx);
        memset(dx + used, 0, (size_t)(h->all - used) * sizeof *dx);
        if (used)
            dx[h->targets[i]] -= factor * (1 - h->label_smoothing);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    att_var *x = s->in[0];
    const att_cross_entropy_saved *how = s->saved;
    float *dx = att_tape_dx(t, x);
    if (!dx)
        return ATT_ERR_MEMORY;
    const cross_entropy_job j = {
        .k = att_kernels_of(t->ctx->isa), .how = how, .x = x->value.data, .dy = s->y->grad, .dx = dx};
    att_tape_for_rows(t->ctx, x->value.dim[0], how->all, losses_back, &j);
    att_tape_dx_end(t, x, dx);
    return ATT_OK;
}

const att_operation att_operation_cross_entropy = {.name = "cross_entropy", .backward = backward, .in_place = true};

/* ---- forward */

static bool check(att_tape *t, const char *op, const int64_t dim[2], const int32_t *targets,
                  const att_cross_entropy_options *o)
{
    const int64_t classes = o->classes ? o->classes : dim[1];
    if (!targets && dim[0] > 0)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: targets is NULL", op);
    else if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: label_smoothing = %g is not in [0, 1)", op, (double)o->label_smoothing);
    else if (o->classes < 0 || o->classes > dim[1])
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: classes = %lld but logits are [%lld, %lld]", op, (long long)o->classes,
                      (long long)dim[0], (long long)dim[1]);
    for (int64_t i = 0; !t->status && i < dim[0]; i++)
        if (targets[i] >= classes)
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: targets[%lld] = %d but there are %lld classes", op, (long long)i,
                          (int)targets[i], (long long)classes);
    return !t->status;
}

bool att_tape_save_cross_entropy(att_tape *t, const char *op, const int64_t dim[2], const int32_t *targets,
                                 const att_cross_entropy_options *options, att_cross_entropy_saved *saved)
{
    att_cross_entropy_options o;
    if (!att_tape_options_read(t, op, &o, sizeof o, options, "att_cross_entropy_options") ||
        !check(t, op, dim, targets, &o))
        return false;
    const int64_t rows = dim[0], classes = o.classes ? o.classes : dim[1];
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++)
        count += targets[i] >= 0;
    if (o.count)
        *o.count = count;
    att_var *lse = att_tape_var(t, 1, &rows);
    if (!lse)
        return false;
    *saved = (att_cross_entropy_saved){.targets = att_tape_save(t, targets, (size_t)rows * sizeof *targets),
                                       .lse = lse->value.data,
                                       .all = dim[1],
                                       .classes = classes,
                                       .label_smoothing = o.label_smoothing,
                                       .share = o.label_smoothing / (float)(classes ? classes : 1),
                                       .divisor = o.sum || count == 0 ? 1 : count};
    return !t->status;
}

static bool sum_up(att_tape *t, const att_cross_entropy_saved *how, const float *x, int64_t rows, float *y)
{
    const size_t mark = att_arena_mark(&t->arena);
    const cross_entropy_job j = {
        .k = att_kernels_of(t->ctx->isa), .how = how, .x = x, .loss = att_tape_scratch(t, (size_t)rows)};
    if (j.loss) {
        att_tape_for_rows(t->ctx, rows, how->all, losses, &j);
        att_tape_total(t->ctx, rows, j.loss, how->divisor, y);
    }
    att_arena_release(&t->arena, mark);
    return j.loss;
}

att_var *att_cross_entropy(att_tape *t, att_var *logits, const int32_t *targets,
                           const att_cross_entropy_options *options)
{
    if (!logits || !att_tape_ready(t))
        return NULL;
    const att_tensor *x = &logits->value;
    if (x->rank != 2)
        return att_tape_fail(t, ATT_ERR_SHAPE, "cross_entropy: logits are %s, not [rows, classes]",
                             att_shape_of(x).text);
    att_cross_entropy_saved how;
    att_var *y = att_tape_var(t, 1, (const int64_t[]){1});
    if (!y || !att_tape_save_cross_entropy(t, "cross_entropy", x->dim, targets, options, &how))
        return NULL;
    if (!sum_up(t, &how, x->data, x->dim[0], y->value.data))
        return att_tape_fail(t, ATT_ERR_MEMORY, "cross_entropy: %s", att_error(t->ctx));
    return att_tape_end(t, &att_operation_cross_entropy, y, &logits, 1, &how, sizeof how);
}
