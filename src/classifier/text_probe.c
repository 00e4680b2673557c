/* Trains a classifier on the embeddings of a sentence model that stays as it is. */
#include "attend_text_classifier.h"
#include "io/new_folder.h"
#include "io/check_texts.h"
#include "probe/probe_training.h"
#include "sentence/sentence.h"
#include "util/clock.h"
#include "util/util.h"

#include <string.h>

typedef struct text_probe {
    att_ctx *ctx;
    const char *folder; /* of the model */
    att_text_probe_options options;
    att_probe_examples examples;
    att_opened_files files;
    att_sentence *model;
} text_probe;

static att_status embed(text_probe *p)
{
    const att_text_probe_options *o = &p->options;
    att_sentence_info info = {.size = sizeof info};
    att_status s = att_sentence_open(
        p->ctx, p->folder, ATT_OPTIONS(att_model_options, .read = att_opened_files_read, .read_user = &p->files),
        &p->model);
    s = s ? s : att_sentence_describe(p->model, &info);
    s = s ? s : att_probe_examples_embed(&p->examples, info.dim);
    return s ? s
             : att_sentence_embed(p->model, o->n + o->n_valid, o->texts, o->bytes,
                                  ATT_OPTIONS(att_embed_options, .progress = o->progress, .user = o->user),
                                  p->examples.vectors);
}

static att_status train(text_probe *p, const char *folder, att_probe_result *result)
{
    att_probe *probe = NULL;
    const double begin = att_seconds();
    att_status s = embed(p);
    result->embedding_seconds = att_seconds() - begin;
    s = s ? s : att_probe_train(&p->examples, p->options.probe, p->options.refit, &probe, result);
    s = s ? s : att_probe_write_model(probe, &p->files, folder, ATT_PROBE_TEXTS, p->examples.names, p->options.dtype);
    att_probe_free(probe);
    return s;
}

static att_status begin(text_probe *p)
{
    const att_text_probe_options *o = &p->options;
    att_probe_examples *e = &p->examples;
    *e = (att_probe_examples){
        .ctx = p->ctx, .what = "text", .names = o->names, .n = o->n, .n_valid = o->n_valid, .classes = o->classes};
    if (att_is_gguf_name(p->folder))
        return att_fail(p->ctx, ATT_ERR_UNSUPPORTED,
                        "%s is a .gguf file; a probe is trained on the model of a folder, whose files it gets",
                        p->folder);
    att_status s = att_probe_examples_begin(e);
    s = s ? s : att_check_texts(p->ctx, "options.texts", o->texts, o->n + o->n_valid);
    if (!s && !o->labels)
        s = att_fail(p->ctx, ATT_ERR_ARGUMENT, "options.labels is NULL");
    if (!s)
        memcpy(e->labels, o->labels, (size_t)(o->n + o->n_valid) * sizeof *e->labels);
    return s;
}

att_status att_text_probe_train(att_ctx *ctx, const char *model, const char *folder,
                                const att_text_probe_options *options, att_probe_result *result)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"model", model}, {"folder", folder}, {"options", options})))
        return ATT_ERR_ARGUMENT;
    text_probe p = {.ctx = ctx, .folder = model, .examples.ctx = ctx, .files = {.ctx = ctx, .folder = model}};
    att_probe_result r = {.size = sizeof r};
    att_new_folder to = {.fd = -1};
    att_status s = att_options_read(&p.options, sizeof p.options, options, "att_text_probe_options");
    s = s ? s : begin(&p);
    s = s ? s : att_new_folder_begin(&to, ctx, folder);
    s = s ? s : train(&p, to.path, &r);
    s = att_new_folder_end(&to, s);
    att_sentence_free(p.model);
    att_opened_files_free(&p.files);
    att_probe_examples_free(&p.examples);
    return s || !result ? s : att_info_write(result, &r, sizeof r, "att_probe_result");
}
