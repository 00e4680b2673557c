/* The training of a translator in a folder: its vocabulary, its model, its files. */
#include "io/replace.h"
#include "model/encoder_decoder.h"
#include "train/pairs.h"
#include "train/training.h"

#include <stdio.h>

typedef struct translator {
    att_ctx *ctx;
    att_training_options options;
    att_tokenizer *tokenizer;
    att_encoder_decoder *model;
} translator;

/* ---- the vocabulary */

/* The words of a file, and its *lines. */
static att_status count_words(const translator *t, att_vocab *v, const char *path, int64_t *lines)
{
    att_text_lines l;
    att_text_line line;
    int64_t before;
    att_status e = att_text_lines_open(&l, t->ctx, path);
    do {
        before = l.lines;
        e = e ? e : att_text_lines_fill(&l);
        while (!e && att_text_lines_take(&l, &line))
            e = att_vocab_add(v, line.text, line.bytes);
        if (!e && att_cancelled(t->ctx))
            e = att_fail(t->ctx, ATT_ERR_CANCELLED, "cancelled");
    } while (!e && l.lines > before);
    *lines = l.lines;
    att_text_lines_close(&l);
    return e;
}

/* Of both files, which have as many lines. */
static att_status count_all_words(const translator *t, att_vocab *v)
{
    const char *const paths[] = {t->options.learn.source, t->options.learn.target};
    int64_t lines[2];
    att_status e = ATT_OK;
    for (int i = 0; !e && i < 2; i++)
        e = count_words(t, v, paths[i], &lines[i]);
    return e || lines[0] == lines[1] ? e : att_lines_differ(t->ctx, paths[0], lines[0], paths[1], lines[1]);
}

/* What is wrong with both together. */
static att_status name_files(const translator *t, att_status e)
{
    char what[512];
    snprintf(what, sizeof what, "%s", att_error(t->ctx));
    return att_fail(t->ctx, e, "%s, %s: %s", t->options.learn.source, t->options.learn.target, what);
}

/* Both languages' pieces, in one model for both. A number is copied digit by digit. A character that is hardly there is
 * no piece, as its embedding would not be learnt: it is unknown, which is learnt. */
static att_status learn_vocabulary(const translator *t, const char *folder)
{
    enum { PIECES = 8000, MAX_CHARACTERS = 4000, MIN_COUNT = 3 };
    const att_training_options *o = &t->options;
    const att_vocab_options *options = ATT_OPTIONS(
        att_vocab_options, .pieces = o->vocabulary ? o->vocabulary : PIECES,
        .character_coverage = o->character_coverage ? o->character_coverage : 1, .max_characters = MAX_CHARACTERS,
        .min_count = MIN_COUNT, .byte_fallback = o->byte_fallback, .split_digits = true);
    att_vocab *v = NULL;
    att_vocab_result r = {.size = sizeof r};
    att_status e = att_vocab_new(t->ctx, options, &v);
    e = e ? e : count_all_words(t, v);
    e = e ? e : att_vocab_learn(v, &r);
    if (e == ATT_ERR_ARGUMENT)
        e = name_files(t, e);
    e = e ? e
          : att_marian_text_write(t->ctx, folder,
                                  ATT_OPTIONS(att_marian_text, .source = r.model, .source_bytes = r.bytes), NULL);
    att_vocab_free(v);
    return e;
}

/* From a SentencePiece model. */
static att_status take_pieces(const translator *t, const char *folder)
{
    att_text_file f = {0};
    att_status e = att_text_file_open(&f, t->ctx, t->options.tokenizer, true);
    e = e ? e
          : att_marian_text_write(t->ctx, folder,
                                  ATT_OPTIONS(att_marian_text, .source = f.text, .source_bytes = f.bytes), NULL);
    att_text_file_free(&f);
    return e;
}

/* From a folder that has them. */
static att_status copy_vocabulary(const translator *t, const char *folder)
{
    static const char *const names[] = {
        "source.spm", "target.spm", "vocab.json", "tokenizer_config.json", "special_tokens_map.json", NULL};
    return att_copy_files(t->ctx, t->options.tokenizer, folder, names, 3);
}

static att_status make_vocabulary(const translator *t, const char *folder)
{
    const char *ready = t->options.tokenizer;
    return !ready               ? learn_vocabulary(t, folder)
           : att_is_file(ready) ? take_pieces(t, folder)
                                : copy_vocabulary(t, folder);
}

/* ---- the model */

static att_status make_model(translator *t, const char *folder)
{
    const att_training_options *o = &t->options;
    const att_status e = att_encoder_decoder_new(t->ctx, o->settings, o->config, att_tokenizer_size(t->tokenizer),
                                                 o->learn.seed, &t->model);
    if (e)
        return e;
    /* One that goes on has its settings already: other options are found out by its checkpoint, and spoil nothing. */
    return o->resume ? ATT_OK : att_encoder_decoder_write_settings(t->model, folder, 4);
}

/* ---- what a training asks for */

static att_status begin(void *self, const char *folder, bool resume, att_trainer **out)
{
    translator *t = self;
    att_status e = att_encoder_decoder_new(t->ctx, t->options.settings, t->options.config, 0, 0, NULL);
    if (!e && !resume) /* which may take long */
        e = make_vocabulary(t, folder);
    e = e ? e : att_tokenizer_open(t->ctx, folder, &t->tokenizer);
    e = e ? e : make_model(t, folder);
    return e ? e : att_trainer_new(t->model, t->tokenizer, &t->options.learn, out);
}

static att_status write(const void *self, const char *folder, att_dtype dtype)
{
    return att_encoder_decoder_write(
        ((const translator *)self)->model, folder,
        ATT_OPTIONS(att_encoder_decoder_write_options, .dtype = dtype == ATT_F32 ? 0 : dtype));
}

static void free_translator(void *self)
{
    translator *t = self;
    att_model_free(t->model);
    att_tokenizer_free(t->tokenizer);
    att_free(t->ctx, t);
}

static const att_training_kind kind = {.begin = begin, .write = write, .free = free_translator};

att_status att_training_open(att_ctx *ctx, const char *folder, const att_training_options *options, att_training **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"options", options}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    translator *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->ctx = ctx;
    att_status e = att_take_options(&t->options, sizeof t->options, options, "att_training_options");
    if (!e && (!t->options.learn.source || !t->options.learn.target))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.learn.%s is NULL", t->options.learn.source ? "target" : "source");
    if (e) {
        free_translator(t);
        return e;
    }
    const att_training_options *o = &t->options;
    const att_training_start start = {o->resume, o->keep, o->note, o->note_bytes};
    return att_training_make(ctx, folder, &start, &kind, t, out);
}

static const translator *translator_of(const att_training *t) { return t && t->kind == &kind ? t->self : NULL; }

const att_encoder_decoder *att_training_model(const att_training *t)
{
    const translator *x = translator_of(t);
    return x ? x->model : NULL;
}

const att_tokenizer *att_training_tokenizer(const att_training *t)
{
    const translator *x = translator_of(t);
    return x ? x->tokenizer : NULL;
}
