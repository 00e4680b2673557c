/* Gradients of a step's batches, or of a shard of them. */
#include "train/training.h"
#include "util/util.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* ---- the position */

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

att_status att_training_skip_batches(att_training *t)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < t->options->accumulate; i++) {
        e = find_batch(t);
        t->batch += !e;
    }
    return e;
}

static void go_to(att_training *t, att_training_position to)
{
    t->epochs = to.epochs;
    t->batch = to.batch;
}

void att_training_zero_gradients(att_training *t)
{
    const char *name;
    for (int64_t i = 0; i < t->params; i++)
        att_param_zero_grad(att_training_param(t, i, &name));
}

void att_training_undo(att_training *t, att_training_position was)
{
    att_training_zero_gradients(t);
    go_to(t, was);
}

/* ---- gradients */

/* Returns the first row of a shard of n. */
static int64_t first_row(const att_training *t, int64_t n, int64_t shard) { return n * shard / t->options->shards; }

/* Predicts the rows that are needed after `part` of a step's batches of a shard, if shards are requested as in the step
 * before; `began`: the first of these batches. */
static void predict(const att_training *t, int64_t shard, int64_t part, int64_t began, att_training_rows *rows)
{
    const bool last_part = part == t->options->accumulate - 1,
               last_shard = shard == t->options->shards - 1 || shard == t->shards.end;
    const int64_t next = last_part && !last_shard ? began : t->batch + 1,
                  of = !last_part   ? shard
                       : last_shard ? t->shards.first
                                    : shard + 1,
                  n = next < t->batches ? t->kind->rows(t->self, next) : 0;
    rows->next = next;
    rows->next_first = first_row(t, n, of);
    rows->next_last = first_row(t, n, of + 1);
}

static att_status add_rows(att_training *t, const att_training_rows *rows, att_training_part *sum)
{
    att_tensor loss;
    att_var *y = t->kind->loss(t->self, t->tape, rows, sum);
    att_status e = att_var_value(t->tape, y, &loss);
    if (!e) {
        sum->loss += (double)*(const float *)loss.data;
        e = att_tape_backward(t->tape, y, NULL);
    }
    att_tape_reset(t->tape);
    return e;
}

att_status att_training_add_batches(att_training *t, int64_t shard, att_training_part *sum)
{
    const att_training_options *o = t->options;
    const int64_t began = t->batch;
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < o->accumulate; i++) {
        const uint64_t number = (uint64_t)t->step * (uint64_t)o->accumulate + (uint64_t)i + 1;
        e = find_batch(t);
        if (e)
            break;
        const int64_t n = t->kind->rows(t->self, t->batch);
        att_training_rows rows = {.batch = t->batch,
                                  .first = first_row(t, n, shard),
                                  .last = first_row(t, n, shard + 1),
                                  .seed = o->seed + number * UINT64_C(0x9e3779b97f4a7c15),
                                  .step = t->step};
        predict(t, shard, i, began, &rows);
        e = rows.first < rows.last ? add_rows(t, &rows, sum) : ATT_OK;
        t->batch += !e;
    }
    return e;
}

att_status att_training_find_cause(att_training *t, int64_t shard, double loss, double norm)
{
    const att_training_position was = att_training_position_of(t);
    char cause[512] = "";
    att_training_part sum = {0};
    att_tape *const plain = t->tape;
    att_status e = att_tape_new(
        t->ctx, ATT_OPTIONS(att_tape_config, .record = true, .detect_anomaly = true, .compute = t->options->compute),
        &t->tape);
    if (!e) {
        e = att_training_add_batches(t, shard, &sum);
        att_tape_free(t->tape);
        att_training_undo(t, was);
    }
    t->tape = plain;
    if (e == ATT_ERR_MEMORY || e == ATT_ERR_CANCELLED)
        return e;
    if (e)
        snprintf(cause, sizeof cause, "; first, %s", att_error(t->ctx));
    return att_fail(t->ctx, ATT_ERR_ARGUMENT, "step %lld is not taken: its %s is %g%s", (long long)t->step + 1,
                    isfinite(loss) ? "gradients' norm" : "loss", fabs(isfinite(loss) ? norm : loss), cause);
}

/* ---- of a shard */

/* Makes the gradients one buffer, of zeros. */
static att_status make_buffer(att_training *t)
{
    int64_t n;
    if (t->gradients)
        return ATT_OK;
    const att_status e = att_optimizer_gradients(t->optimizer, &t->gradients, &n);
    att_training_zero_gradients(t);
    return e;
}

/* Returns the absolute value of the first number of x [n] that is not finite; 0: all are. */
static double find_not_finite(int64_t n, const float *x)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad += !(fabsf(x[i]) <= FLT_MAX);
    for (int64_t i = 0; bad && i < n; i++)
        if (!isfinite(x[i]))
            return fabs((double)x[i]);
    return 0;
}

att_status att_training_shard(att_training *t, int64_t shard, att_training_part *sum)
{
    const att_training_position was = att_training_position_of(t);
    att_shard_order *asked = &t->shards;
    if (asked->step != t->step)
        *asked = (att_shard_order){.step = t->step, .first = shard, .end = asked->last};
    asked->last = shard;
    *sum = (att_training_part){0};
    att_status e = make_buffer(t);
    e = e ? e : att_training_add_batches(t, shard, sum);
    const double norm = e || !isfinite(sum->loss) ? 0 : find_not_finite(att_training_count(t), t->gradients);
    const bool finite = isfinite(sum->loss) && isfinite(norm);
    if (e || !finite)
        att_training_zero_gradients(t);
    go_to(t, was);
    return e || finite ? e : att_training_find_cause(t, shard, sum->loss, norm);
}
