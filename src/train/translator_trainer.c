/* What a translator learns: pairs of texts, by the cross entropy of each target token; and its loss on others. */
#include "io/util.h"
#include "model/encoder_decoder.h"
#include "train/pairs.h"
#include "train/trainer.h"

#include <string.h>

typedef struct translation {
    att_ctx *ctx;
    att_encoder_decoder *model;
    const att_tokenizer *tokenizer;
    att_trainer_options options;
    json_t *config; /* what the model's config.json has */
    att_pair_set set, valid;
    att_epoch epoch, valid_batches;
    att_batch batch;
} translation;

static att_param *param(const void *self, int64_t i, const char **name)
{
    return att_encoder_decoder_param(((const translation *)self)->model, i, name);
}

/* The table's row of <pad> says nothing and stays so: others begin their translations with a vector of zeros. */
static att_learn_options rule(const void *self, const char *name, const att_tensor *value)
{
    const int64_t *pad = &((const translation *)self)->model->info.pad;
    const bool table = !strcmp(name, "shared.weight") || !strcmp(name, "target.weight");
    const bool frozen = table && *pad < value->dim[0];
    return (att_learn_options){.size = sizeof(att_learn_options),
                               .no_decay = value->rank == 1,
                               .frozen_rows = frozen ? pad : NULL,
                               .n_frozen_rows = frozen};
}

static att_status begin_epoch(void *self, uint64_t seed, int64_t number, int64_t *batches)
{
    translation *t = self;
    att_epoch_free(&t->epoch); /* first: of millions of pairs there is no room for two */
    const att_status e = att_epoch_make(&t->set, seed, number, t->options.batch_tokens, &t->epoch);
    *batches = t->epoch.n;
    return e;
}

static att_var *loss(void *self, att_tape *tape, int64_t batch, uint64_t seed, att_train_report *r, int64_t *count)
{
    translation *t = self;
    att_batch_free(t->ctx, &t->batch);
    const att_status e = att_batch_take(&t->set, &t->epoch, batch, &t->batch);
    if (e)
        return att_tape_fail(tape, e, "%s", att_error(t->ctx));
    const att_pairs *pairs = &t->batch.pairs;
    const att_learning l = {.smoothing = t->options.smoothing,
                            .dropout = t->options.dropout,
                            .seed = seed,
                            .sequence_ids = t->batch.ids,
                            .sum = true,
                            .count = count};
    att_var *y = att_encoder_decoder_loss(tape, t->model, pairs, &l);
    r->pairs = t->set.n;
    r->empty = t->set.empty;
    r->invalid = t->set.invalid;
    r->longer = t->set.longer;
    r->source_tokens += pairs->source_offsets[pairs->n];
    r->target_tokens += *count;
    return y;
}

static void settings(const void *self, att_facts *facts)
{
    const translation *t = self;
    const att_trainer_options *o = &t->options;
    const char *key;
    json_t *value;
    json_object_foreach(t->config, key, value)
    {
        if (json_is_string(value))
            att_facts_text(facts, key, json_string_value(value));
        else if (json_is_integer(value) || json_is_boolean(value))
            att_facts_whole(facts, key, json_is_true(value) ? 1 : json_integer_value(value));
    }
    att_facts_whole(facts, "batch_tokens", o->batch_tokens);
    att_facts_whole(facts, "max_tokens", o->max_tokens);
    att_facts_whole(facts, "pairs", t->set.n);
    att_facts_number(facts, "dropout", (double)o->dropout);
    att_facts_number(facts, "smoothing", (double)o->smoothing);
}

static void free_translation(void *self)
{
    translation *t = self;
    att_batch_free(t->ctx, &t->batch);
    att_epoch_free(&t->epoch);
    att_epoch_free(&t->valid_batches);
    att_pair_set_free(&t->set);
    att_pair_set_free(&t->valid);
    json_decref(t->config);
    att_free(t->ctx, t);
}

static const att_task task = {.name = "translation",
                              .param = param,
                              .rule = rule,
                              .begin_epoch = begin_epoch,
                              .loss = loss,
                              .settings = settings,
                              .free = free_translation};

/* ---- made */

static att_status check(const att_encoder_decoder *m, const att_trainer_options *o)
{
    att_ctx *ctx = m->model.ctx;
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {{"max_tokens", o->max_tokens}, {"batch_tokens", o->batch_tokens}, {"accumulate", o->accumulate}};
    if (!o->source || !o->target)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.%s is NULL", o->source ? "target" : "source");
    if (!o->valid_source != !o->valid_target)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.valid_%s is NULL, but options.valid_%s is not",
                        o->valid_source ? "target" : "source", o->valid_source ? "source" : "target");
    if (att_encoder_decoder_params(m) == 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "the model does not learn: it was opened to be used");
    for (int i = 0; i < 3; i++)
        if (counts[i].value < 0)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.%s is %lld", counts[i].name, (long long)counts[i].value);
    return ATT_OK;
}

static att_status read_pairs(translation *t)
{
    const att_trainer_options *o = &t->options;
    att_status e = att_pair_set_read(t->ctx, t->tokenizer, o->source, o->target, o->max_tokens, &t->set);
    if (e || !o->valid_source)
        return e;
    e = att_pair_set_read(t->ctx, t->tokenizer, o->valid_source, o->valid_target, t->model->info.max_positions,
                          &t->valid);
    return e ? e : att_epoch_make(&t->valid, 0, 0, o->batch_tokens, &t->valid_batches);
}

att_status att_trainer_new(att_encoder_decoder *m, const att_tokenizer *tokenizer, const att_trainer_options *options,
                           att_trainer **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"t", tokenizer}, {"options", options}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = m->model.ctx;
    att_trainer_options o;
    att_status e = att_take_options(&o, sizeof o, options, "att_trainer_options");
    e = e ? e : check(m, &o);
    translation *t = e ? NULL : att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return e ? e : ATT_ERR_MEMORY;
    const int64_t positions = m->info.max_positions, most = o.max_tokens ? o.max_tokens : 128;
    o.max_tokens = att_min(most, positions);
    o.batch_tokens = o.batch_tokens ? o.batch_tokens : 2048;
    *t = (translation){
        .ctx = ctx, .model = m, .tokenizer = tokenizer, .options = o, .config = att_architecture_of(m)->settings(m)};
    const att_trainer_config config = {
        .optimizer = {.size = sizeof config.optimizer, .method = ATT_ADAM, .beta2 = 0.98, .eps = 1e-9},
        .schedule = o.schedule,
        .clip = o.clip,
        .accumulate = o.accumulate ? o.accumulate : 1,
        .seed = o.seed};
    if (!t->config)
        e = att_fail(ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
    e = e ? e : read_pairs(t);
    if (e)
        free_translation(t);
    return e ? e : att_trainer_make(ctx, &task, t, &config, out);
}

/* ---- validation */

/* Adds the loss of a batch and its tokens. */
static att_status add_loss(const translation *t, att_tape *tape, int64_t i, double *sum, int64_t *tokens)
{
    att_batch b;
    int64_t count = 0;
    att_tensor y;
    att_status e = att_batch_take(&t->valid, &t->valid_batches, i, &b);
    if (e)
        return e;
    const att_learning l = {.sum = true, .count = &count};
    e = att_read(tape, att_encoder_decoder_loss(tape, t->model, &b.pairs, &l), &y);
    *sum += e ? 0 : (double)*(const float *)y.data;
    *tokens += count;
    att_tape_reset(tape);
    att_batch_free(t->ctx, &b);
    return e;
}

att_status att_trainer_validate(att_trainer *trainer, double *loss)
{
    if (att_require(__func__, ATT_NAMED({"t", trainer}, {"loss", loss})))
        return ATT_ERR_ARGUMENT;
    if (trainer->task != &task)
        return att_fail(trainer->ctx, ATT_ERR_ARGUMENT, "the trainer learns %s, not translation", trainer->task->name);
    const translation *t = trainer->self;
    if (!t->options.valid_source)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "the trainer has no files to validate by");
    att_tape *tape = NULL;
    double sum = 0;
    int64_t tokens = 0;
    att_status e = att_tape_new(t->ctx, NULL, &tape);
    for (int64_t i = 0; !e && i < t->valid_batches.n; i++)
        e = add_loss(t, tape, i, &sum, &tokens);
    *loss = tokens ? sum / (double)tokens : 0;
    att_tape_free(tape);
    return e;
}
