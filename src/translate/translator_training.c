/* Trains a translator by the mean cross entropy per target token, and validates it. */
#include "util/util.h"
#include "translate/encoder_decoder.h"
#include "translate/parallel_corpus.h"
#include "translate/translator_vocabulary.h"
#include "train/training.h"

#include <stddef.h>
#include <string.h>

typedef struct translation {
    att_training_base base;
    att_translator_training_options options;
    att_encoder_decoder *model;
    att_tokenizer *tokenizer;
    json_t *config; /* config.json of the model */
    att_parallel_corpus corpus, valid;
    att_epoch epoch, valid_batches;
    att_batch batch;
} translation;

/* ---- opening */

/* Checks that both files have the same number of lines. */
static att_status check_lines(att_ctx *ctx, const char *source, const char *target)
{
    const char *const paths[] = {source, target};
    int64_t lines[2] = {0, 0};
    att_status e = ATT_OK;
    for (int i = 0; !e && i < 2; i++) {
        att_text_lines l;
        e = att_text_lines_open(&l, ctx, paths[i]);
        e = e ? e : att_text_lines_skip(&l);
        lines[i] = l.lines;
        att_text_lines_close(&l);
    }
    return e || lines[0] == lines[1] ? e : att_lines_differ(ctx, source, lines[0], target, lines[1]);
}

static att_status check_input(const void *self)
{
    const translation *t = self;
    const att_translator_training_options *o = &t->options;
    att_tokenizer *tokenizer = NULL;
    att_status e = att_encoder_decoder_new(t->base.ctx, o->settings, o->config, 0, 0, NULL);
    if (!e && o->tokenizer)
        e = att_tokenizer_open(t->base.ctx, o->tokenizer, &tokenizer);
    att_tokenizer_free(tokenizer);
    e = e ? e : check_lines(t->base.ctx, o->source, o->target);
    return e || !o->valid_source ? e : check_lines(t->base.ctx, o->valid_source, o->valid_target);
}

static att_status open_model(translation *t, const char *folder, bool resume)
{
    const att_translator_training_options *o = &t->options;
    att_status e = resume ? ATT_OK : att_translator_vocabulary_make(t->base.ctx, o, folder);
    e = e ? e : att_tokenizer_open(t->base.ctx, folder, &t->tokenizer);
    const int64_t vocabulary = att_tokenizer_size(t->tokenizer);
    e = e ? e
          : att_encoder_decoder_new(t->base.ctx, o->settings, o->config, vocabulary, t->base.common.seed, &t->model);
    if (!e)
        t->model->model.options.compute = t->base.common.compute;
    /* A resumed training has its settings already; different options are detected by its checkpoint. */
    return e || resume ? e : att_encoder_decoder_write_settings(t->model, folder, 4);
}

static att_status read_pairs(translation *t)
{
    const att_translator_training_options *o = &t->options;
    const int64_t positions = t->model->info.max_positions;
    att_status e = att_parallel_corpus_read(t->base.ctx, t->tokenizer, o->source, o->target, o->max_tokens,
                                            o->skip_bad_lines, &t->corpus);
    if (e || !o->valid_source)
        return e;
    e = att_parallel_corpus_read(t->base.ctx, t->tokenizer, o->valid_source, o->valid_target, positions,
                                 o->skip_bad_lines, &t->valid);
    return e ? e : att_epoch_make(&t->valid, 0, 0, o->batch_tokens, &t->valid_batches);
}

static att_status open_translation(void *self, const char *folder, bool resume)
{
    translation *t = self;
    const att_status e = folder ? open_model(t, folder, resume) : ATT_OK;
    if (e)
        return e;
    t->options.max_tokens = att_min(t->options.max_tokens, t->model->info.max_positions);
    t->config = att_architecture_of(t->model)->settings(t->model);
    return t->config ? read_pairs(t)
                     : att_fail(t->base.ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
}

static void free_translation(void *self)
{
    translation *t = self;
    att_batch_free(t->base.ctx, &t->batch);
    att_epoch_free(&t->epoch);
    att_epoch_free(&t->valid_batches);
    att_parallel_corpus_free(&t->corpus);
    att_parallel_corpus_free(&t->valid);
    json_decref(t->config);
    if (!t->base.in_memory) {
        att_model_free(t->model);
        att_tokenizer_free(t->tokenizer);
    }
}

/* ---- training */

static att_param *param(const void *self, int64_t i, const char **name)
{
    return att_nn_params_at(att_encoder_decoder_params(((const translation *)self)->model), i, name);
}

/* Freezes the embedding of <pad> at 0: other implementations start decoding with a zero vector. */
static att_param_options param_options(const void *self, const char *name, const att_tensor *value)
{
    const int64_t *pad = &((const translation *)self)->model->info.pad;
    const bool table = !strcmp(name, "shared.weight") || !strcmp(name, "target.weight");
    const bool frozen = table && *pad < value->dim[0];
    return (att_param_options){
        .size = sizeof(att_param_options), .frozen_rows = frozen ? pad : NULL, .n_frozen_rows = frozen};
}

static att_status begin_epoch(void *self, int64_t number, int64_t *batches)
{
    translation *t = self;
    att_epoch_free(&t->epoch); /* frees the old one first: two epochs of millions of pairs do not fit in memory */
    const att_status e = att_epoch_make(&t->corpus, t->base.common.seed, number, t->options.batch_tokens, &t->epoch);
    *batches = t->epoch.n;
    return e;
}

static int64_t rows(const void *self, int64_t batch)
{
    return att_batch_size(&((const translation *)self)->epoch, batch);
}

static att_var *loss(void *self, att_tape *tape, const att_training_rows *rows, att_training_part *sum)
{
    translation *t = self;
    int64_t count = 0;
    att_batch_free(t->base.ctx, &t->batch);
    const att_status e = att_batch_read_rows(&t->corpus, &t->epoch, rows->batch, rows->first, rows->last, &t->batch);
    if (e)
        return att_tape_fail(tape, e, "%s", att_error(t->base.ctx));
    const att_sequence_pairs *pairs = &t->batch.pairs;
    const att_loss_options l = {.size = sizeof l,
                                .label_smoothing = t->options.label_smoothing,
                                .dropout = t->options.dropout,
                                .seed = rows->seed,
                                .sequence_ids = t->batch.ids,
                                .sum = true,
                                .count = &count};
    att_var *y = att_encoder_decoder_loss(tape, t->model, pairs, &l);
    sum->targets += count;
    sum->examples += pairs->n;
    sum->sources += pairs->source_offsets[pairs->n];
    return y;
}

/* ---- validation */

/* Adds the summed loss of a batch to *sum, and its number of tokens. */
static att_status add_loss(const translation *t, att_tape *tape, int64_t i, double *sum, int64_t *tokens)
{
    att_batch b;
    int64_t count = 0;
    att_tensor y;
    att_status e = att_batch_read(&t->valid, &t->valid_batches, i, &b);
    if (e)
        return e;
    const att_loss_options l = {.size = sizeof l, .sum = true, .count = &count};
    e = att_var_value(tape, att_encoder_decoder_loss(tape, t->model, &b.pairs, &l), &y);
    *sum += e ? 0 : (double)*(const float *)y.data;
    *tokens += count;
    att_tape_reset(tape);
    att_batch_free(t->base.ctx, &b);
    return e;
}

static att_status validate(const void *self, double *loss)
{
    const translation *t = self;
    if (!t->options.valid_source)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "the training has no files to validate by");
    att_tape *tape = NULL;
    double sum = 0;
    int64_t tokens = 0;
    att_status e = att_model_tape(&t->model->model, &tape);
    for (int64_t i = 0; !e && i < t->valid_batches.n; i++)
        e = add_loss(t, tape, i, &sum, &tokens);
    *loss = tokens ? sum / (double)tokens : 0;
    att_tape_free(tape);
    return e;
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    const translation *t = self;
    const att_translator_training_options *o = &t->options;
    const char *key;
    json_t *value;
    json_object_foreach(t->config, key, value)
    {
        if (json_is_string(value))
            att_fields_text(fields, key, json_string_value(value));
        else if (json_is_integer(value) || json_is_boolean(value))
            att_fields_int(fields, key, json_is_true(value) ? 1 : json_integer_value(value));
    }
    att_fields_int(fields, "batch_tokens", o->batch_tokens);
    att_fields_int(fields, "max_tokens", o->max_tokens);
    att_fields_int(fields, "pairs", t->corpus.n);
    att_fields_double(fields, "dropout", (double)o->dropout);
    att_fields_double(fields, "smoothing", (double)o->label_smoothing);
}

static void describe(const void *self, att_training_info *info)
{
    const translation *t = self;
    info->examples = t->corpus.n;
    info->skipped_empty = t->corpus.empty;
    info->skipped_invalid = t->corpus.invalid;
    info->skipped_long = t->corpus.too_long;
    info->vocabulary = att_tokenizer_size(t->tokenizer);
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    return att_encoder_decoder_write(
        ((const translation *)self)->model, folder,
        ATT_OPTIONS(att_encoder_decoder_write_options, .dtype = dtype == ATT_F32 ? 0 : dtype));
}

static const char *const files[] = {"source.spm",
                                    "target.spm",
                                    "vocab.json",
                                    "tokenizer_config.json",
                                    "special_tokens_map.json",
                                    "config.json",
                                    "generation_config.json",
                                    NULL};
/* ---- options */

static att_status check_counts(const translation *t)
{
    const att_translator_training_options *o = &t->options;
    const att_training_option numbers[] = {{"max_tokens", (double)o->max_tokens, 0x1p62},
                                           {"batch_tokens", (double)o->batch_tokens, 0x1p62}};
    const att_folder_option of_folders[] = {{"tokenizer", o->tokenizer != NULL},
                                            {"vocabulary", o->vocabulary != 0},
                                            {"character_coverage", o->character_coverage != 0},
                                            {"byte_fallback", o->byte_fallback},
                                            {"settings", o->settings != NULL},
                                            {"config", o->config != NULL}};
    const att_status e = att_training_check_options(t->base.ctx, numbers, 2);
    return e ? e : att_training_check_in_memory(&t->base, of_folders, 6);
}

static att_status configure(void *self)
{
    translation *t = self;
    att_translator_training_options *o = &t->options;
    if (t->base.in_memory && att_require("att_translator_training_new", ATT_NAMED({"t", t->tokenizer})))
        return ATT_ERR_ARGUMENT;
    if (!o->source || !o->target)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.%s is NULL", o->source ? "target" : "source");
    if (!o->valid_source != !o->valid_target)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.valid_%s is NULL, but options.valid_%s is not",
                        o->valid_source ? "target" : "source", o->valid_source ? "source" : "target");
    const att_status e = check_counts(t);
    o->max_tokens = o->max_tokens ? o->max_tokens : 128;
    o->batch_tokens = o->batch_tokens ? o->batch_tokens : 2048;
    return e;
}

static const att_training_kind kind = {.name = "translators",
                                       .bytes = sizeof(translation),
                                       .options = "att_translator_training_options",
                                       .options_bytes = sizeof(att_translator_training_options),
                                       .options_at = offsetof(translation, options),
                                       .keep = 5,
                                       .beta2 = 0.98,
                                       .eps = 1e-9,
                                       .configure = configure,
                                       .check = check_input,
                                       .files = files,
                                       .open = open_translation,
                                       .param = param,
                                       .param_options = param_options,
                                       .begin_epoch = begin_epoch,
                                       .rows = rows,
                                       .loss = loss,
                                       .validate = validate,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_translation};

/* ---- construction */

att_status att_translator_training_new(att_encoder_decoder *m, const att_tokenizer *tokenizer,
                                       const att_training_options *common,
                                       const att_translator_training_options *options, att_training **out)
{
    const translation given = {.model = m, .tokenizer = (att_tokenizer *)tokenizer};
    return att_training_new(__func__, &kind, m ? &m->model : NULL, &given, common, options, out);
}

att_status att_translator_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                        const att_translator_training_options *options, att_training **out)
{
    return att_training_open(__func__, &kind, ctx, folder, common, options, out);
}

const att_encoder_decoder *att_training_encoder_decoder(const att_training *t)
{
    const translation *self = att_training_self(t, &kind);
    return self ? self->model : NULL;
}

const att_tokenizer *att_training_tokenizer(const att_training *t)
{
    const translation *self = att_training_self(t, &kind);
    return self ? self->tokenizer : NULL;
}
