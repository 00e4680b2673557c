/* A training in a folder of its own: made or gone on with, saved, and finished as a model. */
#include "io/replace.h"
#include "model/checkpoint.h"
#include "train/run_state.h"
#include "train/text_lines.h"
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

enum { MOMENTS = 2, LARGEST_NAME = 112 };

struct att_training {
    att_ctx *ctx;
    char folder[ATT_MAX_PATH];
    att_training_options options;
    att_run *run;
    att_tokenizer *tokenizer;
    att_transformer *model;
    att_trainer *trainer;
};

/* ---- the state of a run, as run_state.h wants it */

typedef struct state {
    att_run_state all;
    char (*names)[LARGEST_NAME];
    const char **name;
    att_tensor *tensor;
    att_fact facts[24];
    int64_t whole[8]; /* copies of settings for them */
    double number[8];
} state;

static void add_fact(state *s, const char *name, att_fact_kind kind, void *value, bool setting)
{
    s->facts[s->all.n_facts++] = (att_fact){.name = name, .kind = kind, .value = value, .setting = setting};
}

/* What would make other bits is a setting; shapes of tensors say the other sizes. */
static void add_settings(const att_training *t, state *s)
{
    const att_trainer_options *o = &t->trainer->options;
    const att_schedule *rates = &o->schedule;
    const att_marian_config *c = att_transformer_config(t->model);
    const struct {
        const char *name;
        int64_t value;
    } whole[] = {{"pairs", t->trainer->set.n},        {"seed", (int64_t)o->seed},       {"schedule", rates->kind},
                 {"warmup", rates->warmup},           {"schedule_steps", rates->steps}, {"heads", c->encoder.heads},
                 {"max_positions", c->max_positions}, {"activation", c->activation}};
    const struct {
        const char *name;
        double value;
    } number[] = {{"rate", rates->peak},
                  {"least_rate", rates->least},
                  {"dropout", (double)o->dropout},
                  {"smoothing", (double)o->smoothing},
                  {"clip", o->clip}};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        s->whole[i] = whole[i].value;
        add_fact(s, whole[i].name, ATT_FACT_WHOLE, &s->whole[i], true);
    }
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        s->number[i] = number[i].value;
        add_fact(s, number[i].name, ATT_FACT_NUMBER, &s->number[i], true);
    }
}

static void add_facts(att_training *t, state *s)
{
    att_trainer *r = t->trainer;
    att_trainer_options *o = &r->options;
    add_fact(s, "epochs", ATT_FACT_WHOLE, &r->epochs, false);
    add_fact(s, "batch", ATT_FACT_WHOLE, &r->batch, false);
    add_fact(s, "step", ATT_FACT_WHOLE, &r->step, false);
    add_fact(s, "batch_tokens", ATT_FACT_WHOLE, &o->batch_tokens, true);
    add_fact(s, "max_tokens", ATT_FACT_WHOLE, &o->max_tokens, true);
    add_fact(s, "accumulate", ATT_FACT_WHOLE, &o->accumulate, true);
    add_settings(t, s);
}

static void add_tensor(state *s, const char *kind, const char *name, const att_tensor *value)
{
    const int64_t i = s->all.n++;
    snprintf(s->names[i], LARGEST_NAME, "%s%s", kind, name);
    s->name[i] = s->names[i];
    s->tensor[i] = *value;
}

static void state_free(const att_training *t, state *s)
{
    att_free(t->ctx, s->names);
    att_free(t->ctx, s->name);
    att_free(t->ctx, s->tensor);
}

static att_status state_make(att_training *t, state *s)
{
    static const char *const kinds[MOMENTS] = {"moment1.", "moment2."};
    const int64_t n = att_transformer_params(t->model);
    const size_t most = (size_t)(n * (1 + MOMENTS) + 1);
    *s = (state){.names = att_alloc(t->ctx, most, sizeof *s->names),
                 .name = att_alloc(t->ctx, most, sizeof *s->name),
                 .tensor = att_alloc(t->ctx, most, sizeof *s->tensor)};
    if (!s->names || !s->name || !s->tensor) {
        state_free(t, s);
        return ATT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < n; i++) {
        const char *name;
        const att_param *p = att_transformer_param(t->model, i, &name);
        add_tensor(s, "", name, att_param_value(p));
        for (int k = 0; k < MOMENTS; k++)
            add_tensor(s, kinds[k], name, att_optimizer_moment(t->trainer->optimizer, i, k));
    }
    add_tensor(s, "", "steps", att_optimizer_steps(t->trainer->optimizer));
    add_facts(t, s);
    s->all.names = s->name;
    s->all.tensors = s->tensor;
    s->all.facts = s->facts;
    return ATT_OK;
}

att_status att_training_save(att_training *t)
{
    state s;
    att_status e = state_make(t, &s);
    if (e)
        return e;
    e = att_run_save(t->run, t->trainer->step, &s.all);
    state_free(t, &s);
    return e;
}

static att_status load_newest(att_training *t)
{
    state s;
    att_status e = state_make(t, &s);
    if (e)
        return e;
    e = att_run_load(t->run, ATT_RUN_NEWEST, &s.all, NULL);
    state_free(t, &s);
    for (int64_t i = 0; !e && i < att_transformer_params(t->model); i++) {
        const char *name;
        att_param_touch(att_transformer_param(t->model, i, &name));
    }
    return e || t->trainer->epochs == 0 ? e : att_trainer_begin_epoch(t->trainer, t->trainer->epochs);
}

/* ---- the vocabulary */

static att_status count_words(att_training *t, att_vocab *v, const char *path)
{
    att_text_lines l = {0};
    att_status e = att_text_lines_read(t->ctx, path, &l);
    for (int64_t i = 0; !e && i < l.n; i++)
        e = att_vocab_add(v, l.text[i], l.bytes[i]);
    att_text_lines_free(t->ctx, &l);
    return e;
}

/* Both languages' pieces, in one model for both. */
static att_status learn_vocabulary(att_training *t)
{
    const int64_t pieces = t->options.vocabulary ? t->options.vocabulary : 8000;
    att_vocab *v = NULL;
    att_vocab_result r = {.size = sizeof r};
    att_status e = att_vocab_new(t->ctx, ATT_OPTIONS(att_vocab_options, .pieces = pieces), &v);
    e = e ? e : count_words(t, v, t->options.learn.source);
    e = e ? e : count_words(t, v, t->options.learn.target);
    e = e ? e : att_vocab_learn(v, &r);
    e = e ? e
          : att_marian_text_write(t->ctx, t->folder,
                                  ATT_OPTIONS(att_marian_text, .source = r.model, .source_bytes = r.bytes), NULL);
    att_vocab_free(v);
    return e;
}

/* From a SentencePiece model. */
static att_status take_pieces(att_training *t)
{
    att_text_file f = {0};
    att_status e = att_text_file_open(&f, t->ctx, t->options.tokenizer, true);
    e = e ? e
          : att_marian_text_write(t->ctx, t->folder,
                                  ATT_OPTIONS(att_marian_text, .source = f.text, .source_bytes = f.bytes), NULL);
    att_text_file_free(&f);
    return e;
}

/* From a folder that has them. */
static att_status copy_vocabulary(att_training *t)
{
    static const char *const names[] = {"source.spm", "target.spm", "vocab.json", "tokenizer_config.json",
                                        "special_tokens_map.json"};
    att_status e = ATT_OK;
    for (int i = 0; !e && i < 5; i++) {
        att_text_file f = {0};
        char to[ATT_MAX_PATH];
        e = att_text_file_read(&f, t->ctx, t->options.tokenizer, names[i], i < 3);
        e = e ? e : att_join_path(t->ctx, t->folder, names[i], to);
        if (!e && f.text)
            e = att_write_file(t->ctx, to, f.text, f.bytes);
        att_text_file_free(&f);
    }
    return e;
}

/* ---- made, or gone on with */

static att_status make_model(att_training *t)
{
    const att_training_options *o = &t->options;
    const int64_t vocabulary = att_tokenizer_size(t->tokenizer), heads = o->heads ? o->heads : 8;
    const int64_t intermediate = o->intermediate ? o->intermediate : 1024;
    const att_marian_config c = {.source_vocabulary = vocabulary,
                                 .target_vocabulary = vocabulary,
                                 .hidden = o->hidden ? o->hidden : 256,
                                 .max_positions = o->max_positions ? o->max_positions : 512,
                                 .encoder = {o->encoder_layers ? o->encoder_layers : 3, heads, intermediate},
                                 .decoder = {o->decoder_layers ? o->decoder_layers : 3, heads, intermediate},
                                 .activation = o->activation == ATT_IDENTITY ? ATT_RELU : o->activation,
                                 .scale_embedding = true,
                                 .share = true,
                                 .tie = true,
                                 .pad = vocabulary - 1,
                                 .eos = 0,
                                 .start = vocabulary - 1};
    /* One that goes on has its settings already: other options are found out by its checkpoint, and spoil nothing. */
    const att_status e = o->resume ? ATT_OK : att_marian_config_write(t->ctx, t->folder, &c, 4);
    return e ? e : att_transformer_new(t->ctx, &c, o->learn.seed, &t->model);
}

static att_status make_new(att_training *t)
{
    const char *ready = t->options.tokenizer;
    const att_status e = !ready ? learn_vocabulary(t) : att_is_file(ready) ? take_pieces(t) : copy_vocabulary(t);
    return e ? e : att_tokenizer_open(t->ctx, t->folder, &t->tokenizer);
}

/* A run without checkpoints is one that has not begun. */
static att_status look(att_training *t)
{
    int64_t *steps = NULL, n = 0;
    const att_status e = att_run_steps(t->run, &steps, &n);
    att_free(t->ctx, steps);
    if (e || (n > 0) == t->options.resume)
        return e;
    return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                    n > 0 ? "%s: has checkpoints of a training already; go on with it, or take another folder"
                          : "%s: there is no checkpoint to go on from",
                    t->folder);
}

static att_status open_all(att_training *t)
{
    const att_training_options *o = &t->options;
    att_status e = att_run_open(t->ctx, t->folder, o->keep ? o->keep : 5, &t->run);
    e = e ? e : look(t);
    if (!e && o->resume)
        e = att_tokenizer_open(t->ctx, t->folder, &t->tokenizer);
    else if (!e)
        e = make_new(t);
    e = e ? e : make_model(t);
    e = e ? e : att_trainer_new(t->model, t->tokenizer, &o->learn, &t->trainer);
    return e || !o->resume ? e : load_newest(t);
}

att_status att_training_open(att_ctx *ctx, const char *folder, const att_training_options *options, att_training **out)
{
    *out = NULL;
    att_training *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->ctx = ctx;
    att_status e = att_take_options(&t->options, sizeof t->options, options, "att_training_options");
    if (!e && (!folder || !t->options.learn.source || !t->options.learn.target))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "%s is NULL",
                     !folder                   ? "folder"
                     : t->options.learn.source ? "options.learn.target"
                                               : "options.learn.source");
    if (!e && snprintf(t->folder, sizeof t->folder, "%s", folder) >= (int)sizeof t->folder)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "folder is longer than %d bytes", (int)sizeof t->folder - 1);
    e = e ? e : open_all(t);
    if (e)
        att_training_close(t);
    else
        *out = t;
    return e;
}

void att_training_close(att_training *t)
{
    if (!t)
        return;
    att_trainer_free(t->trainer);
    att_transformer_free(t->model);
    att_tokenizer_free(t->tokenizer);
    att_run_close(t->run);
    att_free(t->ctx, t);
}

att_trainer *att_training_trainer(const att_training *t) { return t->trainer; }
const att_transformer *att_training_model(const att_training *t) { return t->model; }
const att_tokenizer *att_training_tokenizer(const att_training *t) { return t->tokenizer; }

/* ---- finished */

/* The mean of each parameter over the checkpoints of n steps, into the model. */
static att_status average(att_training *t, const int64_t *steps, int64_t n)
{
    att_safetensors **file = att_calloc(t->ctx, (size_t)n, sizeof *file);
    att_tensor *x = att_alloc(t->ctx, (size_t)n, sizeof *x);
    att_status e = file && x ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t k = 0; !e && k < n; k++) {
        char path[ATT_MAX_PATH];
        e = att_run_path(t->run, steps[k], path);
        e = e ? e : att_safetensors_open(t->ctx, path, &file[k]);
    }
    for (int64_t i = 0; !e && i < att_transformer_params(t->model); i++) {
        const char *name;
        att_param *p = att_transformer_param(t->model, i, &name);
        for (int64_t k = 0; !e && k < n; k++)
            e = att_safetensors_get(file[k], name, &x[k]);
        e = e ? e : att_average(t->ctx, x, n, att_param_value(p));
        att_param_touch(p);
    }
    for (int64_t k = 0; file && k < n; k++)
        att_safetensors_close(file[k]);
    att_free(t->ctx, x);
    att_free(t->ctx, file);
    return e;
}

att_status att_training_finish(att_training *t, int64_t n, att_dtype dtype)
{
    int64_t *steps = NULL, count = 0;
    att_status e = n > 0 ? att_run_steps(t->run, &steps, &count) : ATT_OK;
    const int64_t used = n < count ? n : count;
    if (!e && used > 0)
        e = average(t, steps + count - used, used);
    att_free(t->ctx, steps);
    return e ? e
             : att_transformer_write(t->model, t->folder,
                                     ATT_OPTIONS(att_transformer_write_options, .dtype = dtype == ATT_F32 ? 0 : dtype));
}
