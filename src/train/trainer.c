/* A step of learning: batches, their losses, backward, the optimizer. */
#include "io/util.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>

/* ---- made and freed */

static att_status add_params(att_trainer *t)
{
    att_status e = ATT_OK;
    const char *name;
    for (att_param *p; !e && (p = t->task->param(t->self, t->params, &name)); t->params++) {
        const att_learn_options how = t->task->rule(t->self, name, att_param_value(p));
        e = att_optimizer_add(t->optimizer, p, &how);
    }
    return e;
}

att_status att_trainer_make(att_ctx *ctx, const att_task *task, void *self, const att_trainer_config *config,
                            att_trainer **out)
{
    *out = NULL;
    att_trainer *t = att_calloc(ctx, 1, sizeof *t);
    if (!t) {
        task->free(self);
        return ATT_ERR_MEMORY;
    }
    *t = (att_trainer){.ctx = ctx, .task = task, .self = self, .config = *config};
    att_status e = att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t->tape);
    e = e ? e : att_optimizer_new(ctx, &t->config.optimizer, &t->optimizer);
    e = e ? e : add_params(t);
    if (e)
        att_trainer_free(t);
    else
        *out = t;
    return e;
}

int64_t att_trainer_steps(const att_trainer *t) { return t ? t->step : 0; }

void att_trainer_free(att_trainer *t)
{
    if (!t)
        return;
    att_optimizer_free(t->optimizer);
    att_tape_free(t->tape);
    t->task->free(t->self);
    att_free(t->ctx, t);
}

void att_trainer_facts(att_trainer *t, att_facts *facts)
{
    const att_trainer_config *c = &t->config;
    att_facts_add(facts, "epochs", ATT_FACT_WHOLE, &t->epochs);
    att_facts_add(facts, "batch", ATT_FACT_WHOLE, &t->batch);
    att_facts_add(facts, "step", ATT_FACT_WHOLE, &t->step);
    att_facts_whole(facts, "accumulate", c->accumulate);
    att_facts_whole(facts, "seed", (int64_t)c->seed);
    att_facts_whole(facts, "schedule", c->schedule.kind);
    att_facts_whole(facts, "warmup", c->schedule.warmup);
    att_facts_whole(facts, "schedule_steps", c->schedule.steps);
    att_facts_number(facts, "rate", c->schedule.peak);
    att_facts_number(facts, "least_rate", c->schedule.least);
    att_facts_number(facts, "clip", c->clip);
    t->task->settings(t->self, facts);
}

att_status att_trainer_check(const att_trainer *t, const char *path)
{
    const int64_t steps = *(const int64_t *)att_optimizer_steps(t->optimizer)->data;
    int64_t batches = 0; /* that were learnt, each of an epoch */
    const bool can_be =
        t->step >= 0 && t->step < INT64_MAX && !__builtin_mul_overflow(t->step + 1, t->config.accumulate, &batches);
    batches -= t->config.accumulate;
    if (!can_be || steps != t->step)
        return att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"step\" is %lld and the optimizer's \"steps\" %lld", path,
                        (long long)t->step, (long long)steps);
    if (t->epochs < 0 || t->epochs > batches || t->batch < 0 || t->batch > batches ||
        (t->epochs == 0) != (batches == 0))
        return att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"epochs\" is %lld and \"batch\" %lld, after %lld batches", path,
                        (long long)t->epochs, (long long)t->batch, (long long)batches);
    return ATT_OK;
}

/* ---- a step */

static att_status lay_out(att_trainer *t, int64_t epoch)
{
    const att_status e = t->task->begin_epoch(t->self, t->config.seed, epoch - 1, &t->batches);
    t->laid_out = e ? 0 : epoch;
    return e;
}

/* The next batch is one of the epoch that is laid out. */
static att_status find_batch(att_trainer *t)
{
    att_status e = ATT_OK;
    if (t->epochs > 0 && t->laid_out != t->epochs)
        e = lay_out(t, t->epochs);
    if (!e && (t->epochs < 0 || t->batch < 0 || (t->epochs > 0 && t->batch > t->batches)))
        e = att_fail(t->ctx, ATT_ERR_FORMAT, "epoch %lld has %lld batches, but the checkpoint goes on from batch %lld",
                     (long long)t->epochs, (long long)t->batches, (long long)t->batch);
    if (e || (t->epochs > 0 && t->batch < t->batches))
        return e;
    e = lay_out(t, t->epochs + 1);
    if (!e) {
        t->epochs++;
        t->batch = 0;
    }
    return e;
}

/* Adds the gradients of the next batch, of the sum over what is counted. */
static att_status learn_batch(att_trainer *t, int64_t part, att_train_report *r, int64_t *counted)
{
    const uint64_t number = (uint64_t)t->step * (uint64_t)t->config.accumulate + (uint64_t)part + 1;
    int64_t count = 0;
    att_tensor loss;
    att_status e = find_batch(t);
    if (e)
        return e;
    att_var *y =
        t->task->loss(t->self, t->tape, t->batch, t->config.seed + number * UINT64_C(0x9e3779b97f4a7c15), r, &count);
    e = att_read(t->tape, y, &loss);
    if (!e) {
        r->loss += (double)*(const float *)loss.data;
        *counted += count;
        e = att_tape_backward(t->tape, y, NULL);
    }
    att_tape_reset(t->tape);
    t->batch += !e;
    return e;
}

static att_status learn_batches(att_trainer *t, att_train_report *r, int64_t *counted)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < t->config.accumulate; i++)
        e = learn_batch(t, i, r, counted);
    return e;
}

/* A step that has failed, or was cancelled, was none. */
static void take_back(att_trainer *t, int64_t epochs, int64_t batch)
{
    const char *name;
    for (int64_t i = 0; i < t->params; i++)
        att_param_clear_grad(t->task->param(t->self, i, &name));
    t->epochs = epochs;
    t->batch = batch;
}

/* The loss or the gradients of a step that was taken back are not finite: it has the same bits once more, on a tape
 * that looks at what each operation makes. */
static att_status name_cause(att_trainer *t, const att_train_report *was)
{
    const int64_t epochs = t->epochs, batch = t->batch;
    char cause[512] = "";
    int64_t counted = 0;
    att_train_report r = {0};
    att_tape *const plain = t->tape;
    att_status e = att_tape_new(t->ctx, ATT_OPTIONS(att_tape_config, .record = true, .finite = true), &t->tape);
    if (!e) {
        e = learn_batches(t, &r, &counted);
        att_tape_free(t->tape);
        take_back(t, epochs, batch);
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

att_status att_trainer_step(att_trainer *t, att_train_report *report)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"report", report})))
        return ATT_ERR_ARGUMENT;
    const int64_t epochs = t->epochs, batch = t->batch, parts = t->config.accumulate;
    int64_t counted = 0;
    att_train_report r = {0};
    att_status e = learn_batches(t, &r, &counted);
    if (!e && !isfinite(r.loss))
        e = ATT_ERR_ARGUMENT; /* name_cause says it */
    e = e ? e : att_schedule_rate(&t->config.schedule, t->step + 1, &r.rate);
    const att_update update = {
        .size = sizeof update, .rate = r.rate, .scale = 1.0 / (double)(counted ? counted : 1), .clip = t->config.clip};
    e = e ? e : att_optimizer_step(t->optimizer, &update, &r.norm);
    if (e) {
        take_back(t, epochs, batch);
        return isfinite(r.loss) && isfinite(r.norm) ? e : name_cause(t, &r);
    }
    r.step = ++t->step;
    r.epoch = t->epochs;
    r.steps_left = att_ceil_div(t->batches - t->batch, parts);
    r.loss /= (double)(counted ? counted : 1);
    return att_give_info(report, &r, sizeof r, "att_train_report");
}
