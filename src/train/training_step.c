/* A training step: gradients, whole or of shards, then an update by the optimizer. */
#include "train/training.h"
#include "util/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- updates */

/* Updates the parameters, and writes the rate and the norm to r. */
static att_status update(att_training *t, const att_training_part *sum, att_training_report *r)
{
    att_status e = att_schedule_rate(t->options->schedule, t->step + 1, &r->rate);
    if (t->kind->rate)
        r->rate = t->kind->rate(t->self, t->step + 1, r->rate);
    const att_update u = {.size = sizeof u,
                          .rate = r->rate,
                          .scale = 1.0 / (double)(sum->targets ? sum->targets : 1),
                          .clip = t->options->clip};
    return e ? e : att_optimizer_step(t->optimizer, &u, &r->norm);
}

/* Counts the step and completes its report. */
static att_status report_step(att_training *t, const att_training_part *sum, att_training_report *r,
                              att_training_report *report)
{
    r->targets = sum->targets;
    r->examples = sum->examples;
    r->sources = sum->sources;
    r->step = ++t->step;
    r->epoch = t->epochs;
    r->steps_left = att_ceil_div(t->batches - t->batch, t->options->accumulate);
    r->loss = sum->loss / (double)(sum->targets ? sum->targets : 1);
    return att_info_write(report, r, sizeof *r, "att_training_report");
}

/* Makes a step of the sum of all shards, which is in t->gradients. */
static att_status step_of_sum(att_training *t, const att_training_part *sum, att_training_report *report)
{
    const att_training_position was = att_training_position_of(t);
    char cause[512];
    const char *name;
    int64_t n;
    att_training_report r = {0};
    /* Each parameter has a gradient in the buffer, and so an update; idle ones have no gradient in a whole step. */
    att_status e = att_optimizer_gradients(t->optimizer, &t->gradients, &n);
    for (int64_t i = 0; t->kind->idle && i < t->params; i++) {
        att_param *p = att_training_param(t, i, &name);
        if (t->kind->idle(t->self, name))
            att_param_zero_grad(p);
    }
    e = e ? e : att_training_skip_batches(t);
    e = e ? e : update(t, sum, &r);
    if (!e)
        return report_step(t, sum, &r, report);
    att_training_undo(t, was);
    if (isfinite(r.norm))
        return e;
    snprintf(cause, sizeof cause, "%s", att_error(t->ctx));
    return att_fail(t->ctx, e, "step %lld is not taken: its gradients' norm is %g; %s", (long long)t->step + 1,
                    fabs(r.norm), cause);
}

/* ---- sums of shards */

typedef struct addition {
    int64_t n;
    float *x;
    const float *y;
} addition;

enum { CHUNK = 1 << 16 };

static void add_chunk(void *arg, int i)
{
    const addition *a = arg;
    const int64_t first = (int64_t)i * CHUNK, last = att_min(first + CHUNK, a->n);
    for (int64_t k = first; k < last; k++)
        a->x[k] += a->y[k];
}

/* Adds y to x: gradients, and what they were computed from. */
static att_status add(const att_training *t, float *x, att_training_part *of_x, const float *y,
                      const att_training_part *of_y)
{
    int64_t *const to[] = {&of_x->targets, &of_x->examples, &of_x->sources};
    const int64_t from[] = {of_y->targets, of_y->examples, of_y->sources};
    for (int i = 0; i < 3; i++)
        if (*to[i] < 0 || from[i] < 0 || __builtin_add_overflow(*to[i], from[i], to[i]))
            return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                            "parts have counts of %lld and %lld, which are negative or too many", (long long)*to[i],
                            (long long)from[i]);
    of_x->loss += of_y->loss;
    addition a = {att_training_count(t), x, y};
    att_parallel_for(t->ctx, (int)att_ceil_div(a.n, CHUNK), add_chunk, &a);
    return ATT_OK;
}

enum { MAX_LEVELS = 16 }; /* levels of 2^16 shards */

static att_status make_pending(att_training *t)
{
    int64_t levels = 0;
    while ((INT64_C(1) << levels) < t->options->shards)
        levels++;
    if (!t->pending)
        t->pending = att_alloc(t->ctx, (size_t)(levels * att_training_count(t)), sizeof *t->pending);
    return t->pending ? ATT_OK : ATT_ERR_MEMORY;
}

/* Computes the sum of all shards in t->gradients, by the tree of att_training_gradients: a sum waits until its neighbor
 * is there. */
static att_status sum_shards(att_training *t, att_training_part *sum)
{
    const int64_t n = att_training_count(t), last = t->options->shards - 1;
    att_training_part pending[MAX_LEVELS];
    int64_t top = 0;
    att_status e = make_pending(t);
    for (int64_t s = 0; !e && s <= last; s++) {
        e = att_training_shard(t, s, sum);
        for (int64_t k = s; !e && top > 0 && (k & 1 || s == last); k >>= 1) {
            top--;
            e = add(t, t->gradients, sum, t->pending + top * n, &pending[top]);
        }
        if (e || s == last)
            break;
        memcpy(t->pending + top * n, t->gradients, (size_t)n * sizeof *t->gradients);
        pending[top++] = *sum;
        att_training_zero_gradients(t);
    }
    if (e)
        att_training_zero_gradients(t);
    return e;
}

/* ---- a step */

/* Saves the values of buffers, which the forward pass may change, or restores them. */
static void keep_buffers(att_training *t, bool back)
{
    const char *name;
    float *saved = t->buffers;
    for (int64_t i = 0; saved && i < t->params; i++) {
        att_param *p = att_training_param(t, i, &name);
        if (!att_training_is_buffer(t, name))
            continue;
        const att_tensor *x = att_param_value(p);
        const int64_t n = att_elements(x);
        memcpy(back ? x->data : saved, back ? saved : x->data, (size_t)n * sizeof *saved);
        if (back)
            att_param_invalidate(p);
        saved += n;
    }
}

static att_status step_of_whole(att_training *t, att_training_report *report)
{
    const att_training_position was = att_training_position_of(t);
    att_training_part sum = {0};
    att_training_report r = {0};
    keep_buffers(t, false);
    att_status e = att_training_add_batches(t, 0, &sum);
    const bool finite = e || isfinite(sum.loss);
    if (!e && finite)
        e = update(t, &sum, &r);
    if (!e && finite)
        return report_step(t, &sum, &r, report);
    keep_buffers(t, true);
    att_training_undo(t, was);
    if (finite && isfinite(r.norm))
        return e;
    e = att_training_find_cause(t, 0, sum.loss, r.norm);
    keep_buffers(t, true);
    return e;
}

att_status att_training_step(att_training *t, att_training_report *report)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"report", report})))
        return ATT_ERR_ARGUMENT;
    if (t->options->shards == 1)
        return step_of_whole(t, report);
    att_training_part sum;
    const att_status e = sum_shards(t, &sum);
    return e ? e : step_of_sum(t, &sum, report);
}

/* ---- halves of it */

/* Refuses halves of a step if each caller that computes gradients would have to change running statistics for all. */
static att_status check_halves(const att_training *t, const char *caller)
{
    return t->coupling && t->coupling->moves
               ? att_fail(t->ctx, ATT_ERR_ARGUMENT,
                          "%s: %s, and moves running statistics: call att_training_step, or %s", caller,
                          t->coupling->what, t->coupling->instead)
               : ATT_OK;
}

att_status att_training_gradients(att_training *t, int64_t shard, float *gradients, att_training_part *part)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"gradients", gradients}, {"part", part})))
        return ATT_ERR_ARGUMENT;
    att_training_part sum = {0};
    att_status e = att_info_write(part, &sum, sizeof sum, "att_training_part");
    if (!e && (shard < 0 || shard >= t->options->shards))
        e = att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: shard is %lld, expected 0 to %lld, one less than options.shards",
                     __func__, (long long)shard, (long long)t->options->shards - 1);
    e = e ? e : check_halves(t, __func__);
    e = e ? e : att_training_shard(t, shard, &sum);
    if (e)
        return e;
    memcpy(gradients, t->gradients, (size_t)att_training_count(t) * sizeof *gradients);
    att_training_zero_gradients(t);
    return att_info_write(part, &sum, sizeof sum, "att_training_part");
}

att_status att_training_add(const att_training *t, float *gradients, att_training_part *part, const float *other,
                            const att_training_part *other_part)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"gradients", gradients}, {"part", part}, {"other", other},
                                        {"other_part", other_part})))
        return ATT_ERR_ARGUMENT;
    att_training_part x, y;
    att_status e = att_options_read(&x, sizeof x, part, "att_training_part");
    e = e ? e : att_options_read(&y, sizeof y, other_part, "att_training_part");
    e = e ? e : add(t, gradients, &x, other, &y);
    return e ? e : att_info_write(part, &x, sizeof x, "att_training_part");
}

static att_status check_sum(const att_training *t, const att_training_part *sum)
{
    if (sum->targets < 0 || sum->examples < 0 || sum->sources < 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                        "att_training_apply: sum has %lld targets, %lld examples and %lld sources, expected 0 or more",
                        (long long)sum->targets, (long long)sum->examples, (long long)sum->sources);
    if (!isfinite(sum->loss))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "step %lld is not taken: its loss is %g", (long long)t->step + 1,
                        fabs(sum->loss));
    return ATT_OK;
}

att_status att_training_apply(att_training *t, const float *gradients, const att_training_part *sum,
                              att_training_report *report)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"gradients", gradients}, {"sum", sum}, {"report", report})))
        return ATT_ERR_ARGUMENT;
    att_training_part all;
    int64_t n;
    att_status e = att_options_read(&all, sizeof all, sum, "att_training_part");
    e = e ? e : check_halves(t, __func__);
    e = e ? e : check_sum(t, &all);
    e = e ? e : att_optimizer_gradients(t->optimizer, &t->gradients, &n);
    if (e)
        return e;
    memcpy(t->gradients, gradients, (size_t)n * sizeof *gradients);
    return step_of_sum(t, &all, report);
}
