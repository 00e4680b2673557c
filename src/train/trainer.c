/* The training of a translator: batches, steps, validation. */
#include "train/trainer.h"

#include <string.h>

/* ---- made and freed */

/* The table's row of <pad> says nothing and stays so: others begin their translations with a vector of zeros. */
static att_status add_params(att_trainer *t)
{
    const att_marian_config *c = att_transformer_config(t->model);
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < att_transformer_params(t->model); i++) {
        const char *name;
        att_param *p = att_transformer_param(t->model, i, &name);
        const att_tensor *value = att_param_value(p);
        const bool table = !strcmp(name, "shared.weight") || !strcmp(name, "target.weight");
        const bool frozen = table && c->pad < value->dim[0];
        e = att_optimizer_add(t->optimizer, p,
                              ATT_OPTIONS(att_learn_options, .no_decay = value->rank == 1,
                                          .frozen_rows = frozen ? &c->pad : NULL, .n_frozen_rows = frozen));
    }
    return e;
}

static att_status begin(att_trainer *t)
{
    const att_trainer_options *o = &t->options;
    att_status e = att_pair_set_read(t->ctx, t->tokenizer, o->source, o->target, o->max_tokens, &t->set);
    e = e ? e : att_tape_new(t->ctx, ATT_OPTIONS(att_tape_config, .record = true), &t->tape);
    e = e ? e
          : att_optimizer_new(t->ctx, ATT_OPTIONS(att_optimizer_config, .method = ATT_ADAM, .beta2 = 0.98, .eps = 1e-9),
                              &t->optimizer);
    return e ? e : add_params(t);
}

att_status att_trainer_new(att_transformer *m, const att_tokenizer *tokenizer, const att_trainer_options *options,
                           att_trainer **out)
{
    *out = NULL;
    att_ctx *ctx = att_transformer_ctx(m);
    att_trainer_options o;
    att_status e = att_take_options(&o, sizeof o, options, "att_trainer_options");
    if (!e && (!o.source || !o.target))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.%s is NULL", o.source ? "target" : "source");
    if (!e && att_transformer_params(m) == 0)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "the model does not learn: it comes from att_transformer_open");
    const int64_t positions = att_transformer_config(m)->max_positions, most = o.max_tokens ? o.max_tokens : 128;
    if (!e && (most < 1 || o.batch_tokens < 0 || o.accumulate < 0))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.%s is %lld",
                     most < 1             ? "max_tokens"
                     : o.batch_tokens < 0 ? "batch_tokens"
                                          : "accumulate",
                     (long long)(most < 1             ? most
                                 : o.batch_tokens < 0 ? o.batch_tokens
                                                      : o.accumulate));
    if (e)
        return e;
    o.max_tokens = most < positions ? most : positions;
    o.batch_tokens = o.batch_tokens ? o.batch_tokens : 2048;
    o.accumulate = o.accumulate ? o.accumulate : 1;
    att_trainer *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    *t = (att_trainer){.ctx = ctx, .model = m, .tokenizer = tokenizer, .options = o};
    e = begin(t);
    if (e)
        att_trainer_free(t);
    else
        *out = t;
    return e;
}

void att_trainer_free(att_trainer *t)
{
    if (!t)
        return;
    att_optimizer_free(t->optimizer);
    att_tape_free(t->tape);
    att_epoch_free(&t->epoch);
    att_pair_set_free(&t->set);
    att_free(t->ctx, t);
}

/* ---- a step */

att_status att_trainer_begin_epoch(att_trainer *t, int64_t epochs)
{
    att_epoch_free(&t->epoch);
    const att_status e = att_epoch_make(&t->set, t->options.seed, epochs - 1, t->options.batch_tokens, &t->epoch);
    t->epochs = e ? t->epochs : epochs;
    return e;
}

/* Adds the gradients of the next batch, of the sum over its tokens. */
static att_status learn_batch(att_trainer *t, int64_t part, att_train_report *r)
{
    const att_trainer_options *o = &t->options;
    att_status e = ATT_OK;
    if (t->batch == t->epoch.n) {
        t->batch = 0;
        e = att_trainer_begin_epoch(t, t->epochs + 1);
    }
    att_batch b = {0};
    e = e ? e : att_batch_take(&t->set, &t->epoch, t->batch, &b);
    if (e)
        return e;
    int64_t count = 0;
    const att_learning l = {.smoothing = o->smoothing,
                            .dropout = o->dropout,
                            .seed =
                                o->seed + (uint64_t)(t->step * o->accumulate + part + 1) * UINT64_C(0x9e3779b97f4a7c15),
                            .sequence_ids = b.ids,
                            .sum = true,
                            .count = &count};
    att_tensor loss;
    att_var *y = att_transformer_loss(t->tape, t->model, &b.pairs, &l);
    e = att_read(t->tape, y, &loss);
    if (!e) {
        r->loss += (double)*(const float *)loss.data;
        r->target_tokens += count;
        r->source_tokens += b.pairs.source_offsets[b.pairs.n];
        e = att_tape_backward(t->tape, y, NULL);
    }
    att_tape_reset(t->tape);
    att_batch_free(t->ctx, &b);
    t->batch += !e;
    return e;
}

/* A step that has failed, or was cancelled, was none. */
static void take_back(att_trainer *t, int64_t epochs, int64_t batch)
{
    for (int64_t i = 0; i < att_transformer_params(t->model); i++) {
        const char *name;
        att_param_clear_grad(att_transformer_param(t->model, i, &name));
    }
    if (t->epochs != epochs && epochs > 0)
        att_trainer_begin_epoch(t, epochs);
    t->epochs = epochs;
    t->batch = epochs > 0 ? batch : t->epoch.n; /* the first epoch begins where one ends */
}

att_status att_trainer_step(att_trainer *t, att_train_report *report)
{
    const int64_t epochs = t->epochs, batch = t->batch;
    att_train_report r = {0};
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < t->options.accumulate; i++)
        e = learn_batch(t, i, &r);
    e = e ? e : att_schedule_rate(&t->options.schedule, t->step + 1, &r.rate);
    const att_update update = {.size = sizeof update,
                               .rate = r.rate,
                               .scale = 1.0 / (double)(r.target_tokens ? r.target_tokens : 1),
                               .clip = t->options.clip};
    e = e ? e : att_optimizer_step(t->optimizer, &update, &r.norm);
    if (e) {
        take_back(t, epochs, batch);
        return e;
    }
    r.step = ++t->step;
    r.epoch = t->epochs;
    r.steps_left = (t->epoch.n - t->batch + t->options.accumulate - 1) / t->options.accumulate;
    r.loss /= (double)(r.target_tokens ? r.target_tokens : 1);
    r.pairs = t->set.n;
    r.empty = t->set.empty;
    r.longer = t->set.longer;
    return att_give_info(report, &r, sizeof r, "att_train_report");
}

/* ---- validation */

att_status att_trainer_validate(att_trainer *t, const char *source, const char *target, double *loss)
{
    att_pair_set set = {0};
    att_epoch all = {0};
    att_tape *tape = NULL;
    double sum = 0;
    int64_t tokens = 0;
    att_status e =
        att_pair_set_read(t->ctx, t->tokenizer, source, target, att_transformer_config(t->model)->max_positions, &set);
    e = e ? e : att_epoch_make(&set, 0, 0, t->options.batch_tokens, &all);
    e = e ? e : att_tape_new(t->ctx, NULL, &tape);
    for (int64_t i = 0; !e && i < all.n; i++) {
        att_batch b;
        int64_t count = 0;
        att_tensor y;
        e = att_batch_take(&set, &all, i, &b);
        if (e)
            break;
        const att_learning l = {.sum = true, .count = &count};
        e = att_read(tape, att_transformer_loss(tape, t->model, &b.pairs, &l), &y);
        sum += e ? 0 : (double)*(const float *)y.data;
        tokens += count;
        att_tape_reset(tape);
        att_batch_free(t->ctx, &b);
    }
    *loss = tokens ? sum / (double)tokens : 0;
    att_tape_free(tape);
    att_epoch_free(&all);
    att_pair_set_free(&set);
    return e;
}
