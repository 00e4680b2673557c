/* A training step: batches, losses, backward, optimizer. */
#include "util/util.h"
#include "train/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static att_status lay_out(att_training *t, int64_t epoch)
{
    const att_status e = t->kind->begin_epoch(t->self, epoch - 1, &t->batches);
    t->current_epoch = e ? 0 : epoch;
    return e;
}

/* Makes the next batch one of the current epoch, beginning epochs as necessary. */
static att_status find_batch(att_training *t)
{
    att_status e = ATT_OK;
    if (t->epochs > 0 && t->current_epoch != t->epochs)
        e = lay_out(t, t->epochs);
    if (!e && (t->epochs < 0 || t->batch < 0 || (t->epochs > 0 && t->batch > t->batches)))
        e = att_fail(t->ctx, ATT_ERR_FORMAT,
                     "epoch %lld has %lld batches, but the checkpoint continues from batch %lld", (long long)t->epochs,
                     (long long)t->batches, (long long)t->batch);
    if (e || (t->epochs > 0 && t->batch < t->batches))
        return e;
    e = lay_out(t, t->epochs + 1);
    if (!e) {
        t->epochs++;
        t->batch = 0;
    }
    return e;
}

/* Adds the gradients of the next batch's summed loss. */
static att_status accumulate_batch(att_training *t, int64_t part, att_training_report *r, int64_t *n_targets)
{
    const uint64_t number = (uint64_t)t->step * (uint64_t)t->options->accumulate + (uint64_t)part + 1;
    int64_t count = 0;
    att_tensor loss;
    att_status e = find_batch(t);
    if (e)
        return e;
    att_var *y =
        t->kind->loss(t->self, t->tape, t->batch, t->options->seed + number * UINT64_C(0x9e3779b97f4a7c15), r, &count);
    e = att_var_value(t->tape, y, &loss);
    if (!e) {
        r->loss += (double)*(const float *)loss.data;
        *n_targets += count;
        e = att_tape_backward(t->tape, y, NULL);
    }
    att_tape_reset(t->tape);
    t->batch += !e;
    return e;
}

static att_status accumulate_batches(att_training *t, att_training_report *r, int64_t *n_targets)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < t->options->accumulate; i++)
        e = accumulate_batch(t, i, r, n_targets);
    return e;
}

/* Keeps the values of frozen parameters, which the forward pass may change, or puts them back. */
static void keep_frozen(att_training *t, bool back)
{
    const char *name;
    float *saved = t->frozen;
    for (int64_t i = 0; saved && i < t->params; i++) {
        if (!att_training_is_frozen(t, i))
            continue;
        att_param *p = att_training_param(t, i, &name);
        const att_tensor *x = att_param_value(p);
        const int64_t n = att_elements(x);
        memcpy(back ? x->data : saved, back ? saved : x->data, (size_t)n * sizeof *saved);
        if (back)
            att_param_invalidate(p);
        saved += n;
    }
}

/* Restores the state after a step that has failed or was cancelled. */
static void undo_step(att_training *t, int64_t epochs, int64_t batch)
{
    const char *name;
    keep_frozen(t, true);
    for (int64_t i = 0; i < t->params; i++)
        att_param_zero_grad(att_training_param(t, i, &name));
    t->epochs = epochs;
    t->batch = batch;
}

/* After a loss or gradients that are not finite: repeats the step, with the same bits, on a tape with
 * detect_anomaly. */
static att_status find_cause(att_training *t, const att_training_report *was)
{
    const int64_t epochs = t->epochs, batch = t->batch;
    char cause[512] = "";
    int64_t n_targets = 0;
    att_training_report r = {0};
    att_tape *const plain = t->tape;
    att_status e = att_tape_new(t->ctx, ATT_OPTIONS(att_tape_config, .record = true, .detect_anomaly = true), &t->tape);
    if (!e) {
        e = accumulate_batches(t, &r, &n_targets);
        att_tape_free(t->tape);
        undo_step(t, epochs, batch);
    }
    t->tape = plain;
    if (e == ATT_ERR_MEMORY || e == ATT_ERR_CANCELLED)
        return e;
    if (e)
        snprintf(cause, sizeof cause, "; first, %s", att_error(t->ctx));
    const bool loss = !isfinite(was->loss);
    return att_fail(t->ctx, ATT_ERR_ARGUMENT, "step %lld is not taken: its %s is %g%s", (long long)t->step + 1,
                    loss ? "loss" : "gradients' norm", fabs(loss ? was->loss : was->norm), cause);
}

att_status att_training_step(att_training *t, att_training_report *report)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"report", report})))
        return ATT_ERR_ARGUMENT;
    const int64_t epochs = t->epochs, batch = t->batch, parts = t->options->accumulate;
    int64_t n_targets = 0;
    att_training_report r = {0};
    keep_frozen(t, false);
    att_status e = accumulate_batches(t, &r, &n_targets);
    if (!e && !isfinite(r.loss))
        e = ATT_ERR_ARGUMENT; /* the message is find_cause's */
    e = e ? e : att_schedule_rate(t->options->schedule, t->step + 1, &r.rate);
    if (t->kind->rate)
        r.rate = t->kind->rate(t->self, t->step + 1, r.rate);
    const att_update update = {.size = sizeof update,
                               .rate = r.rate,
                               .scale = 1.0 / (double)(n_targets ? n_targets : 1),
                               .clip = t->options->clip};
    e = e ? e : att_optimizer_step(t->optimizer, &update, &r.norm);
    if (e) {
        undo_step(t, epochs, batch);
        return isfinite(r.loss) && isfinite(r.norm) ? e : find_cause(t, &r);
    }
    r.targets = n_targets;
    r.step = ++t->step;
    r.epoch = t->epochs;
    r.steps_left = att_ceil_div(t->batches - t->batch, parts);
    r.loss /= (double)(n_targets ? n_targets : 1);
    return att_info_write(report, &r, sizeof r, "att_training_report");
}
