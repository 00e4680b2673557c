/* Classifiers of texts that are a sentence model and a probe of its embeddings. */
#include "classifier/classifier.h"
#include "io/progress.h"
#include "model/class_names.h"
#include "util/util.h"

#include <math.h>

/* ---- open */

/* Describes the sentence model as an encoder, which it need not have. */
static att_status describe(att_text_classifier *m)
{
    att_sentence_info s = {.size = sizeof s};
    const att_encoder *encoder = att_sentence_encoder(m->sentence);
    att_status e = att_sentence_describe(m->sentence, &s);
    m->info = (att_encoder_info){.size = sizeof m->info};
    if (!e && encoder)
        e = att_encoder_describe(encoder, &m->info);
    if (!e && !encoder)
        m->info = (att_encoder_info){.size = sizeof m->info,
                                     .type = "sentence",
                                     .hidden = s.token_dim,
                                     .layers = s.layers,
                                     .heads = s.heads,
                                     .vocabulary = att_tokenizer_size(att_sentence_tokenizer(m->sentence))};
    m->config.max_tokens = s.max_tokens;
    return e;
}

att_status att_probe_classifier_load(att_text_classifier *m, const char *folder)
{
    att_ctx *ctx = m->model.ctx;
    att_sentence_info s = {.size = sizeof s};
    if (m->model.trainable)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s: is a probe of a sentence model, which is not trained further: att_text_probe_train makes "
                        "another, and att_sentence_open_for_training trains the sentence model",
                        folder);
    att_status e = att_sentence_open(ctx, folder, &m->model.options, &m->sentence);
    m->model.options.prepare = false; /* that has been done */
    e = e ? e : att_sentence_describe(m->sentence, &s);
    e = e ? e : att_probe_read(ctx, folder, ATT_PROBE_TEXTS, s.dim, &m->probe);
    if (!e && !m->probe)
        e = att_fail(ctx, ATT_ERR_IO, "%s: has no probe.json", folder);
    if (e)
        return e;
    m->config.head.labels = m->probe->info.classes;
    m->config.activation = ATT_TEXT_ACTIVATION_IDENTITY;
    m->config.probability = ATT_TEXT_ACTIVATION_SOFTMAX;
    e = att_class_names_copy(ctx, (const char *const *)m->probe->name, m->config.head.labels, &m->config.name);
    return e ? e : describe(m);
}

const att_probe *att_text_classifier_probe(const att_text_classifier *m) { return m ? m->probe : NULL; }

/* ---- scores */

enum { BLOCK = 512 };

typedef struct probe_call {
    const att_text_classifier *m;
    const char *const *texts;
    const size_t *bytes;
    const att_text_classify_options *options;
    float *vectors; /* [BLOCK, dim] */
    int64_t offsets[BLOCK + 1];
} probe_call;

/* Replaces scores x [n] by what an activation makes of them. */
static void activate(att_text_activation activation, int64_t n, float *x)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        max = fmax(max, (double)x[k]);
    for (int64_t k = 0; k < n; k++)
        sum += exp((double)x[k] - max);
    for (int64_t k = 0; k < n; k++)
        x[k] = activation == ATT_TEXT_ACTIVATION_SOFTMAX   ? (float)(exp((double)x[k] - max) / sum)
               : activation == ATT_TEXT_ACTIVATION_SIGMOID ? (float)(1 / (1 + exp(-(double)x[k])))
                                                           : x[k];
}

/* Writes the results of texts [first, first + n) to out [n, classes]. */
static att_status run_block(probe_call *c, int64_t first, int64_t n, float *out)
{
    const att_text_classify_options *o = c->options;
    const int64_t classes = c->m->probe->info.classes, from = o->ids ? o->offsets[first] : 0;
    for (int64_t i = 0; o->ids && i <= n; i++)
        c->offsets[i] = o->offsets[first + i] - from;
    const att_embed_options embed = {.size = sizeof embed,
                                     .ids = o->ids ? o->ids + from : NULL,
                                     .offsets = o->ids ? c->offsets : NULL,
                                     .tokens = o->tokens ? o->tokens + first : NULL,
                                     .truncated = o->truncated ? o->truncated + first : NULL};
    att_status s = att_sentence_embed(c->m->sentence, n, o->ids ? NULL : c->texts + first,
                                      c->bytes ? c->bytes + first : NULL, &embed, c->vectors);
    s = s ? s : att_probe_scores(c->m->probe, n, c->vectors, out);
    for (int64_t i = 0; !s && i < n; i++)
        activate(o->activation, classes, out + i * classes);
    return s;
}

static att_status refuse(const att_text_classifier *m, const att_text_classify_options *o)
{
    att_ctx *ctx = m->model.ctx;
    if (o->pairs || o->type_ids)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_text_classify: options.%s are given, but the model is a probe of the embeddings of single "
                        "texts",
                        o->pairs ? "pairs" : "type_ids");
    return o->max_tokens == m->config.max_tokens
               ? ATT_OK
               : att_fail(
                     ctx, ATT_ERR_ARGUMENT,
                     "att_text_classify: options.max_tokens is %lld, but the probe was trained on texts of at most "
                     "%lld tokens",
                     (long long)o->max_tokens, (long long)m->config.max_tokens);
}

att_status att_probe_classify(const att_text_classifier *m, int64_t n, const char *const *texts, const size_t *bytes,
                              const att_text_classify_options *options, float *out)
{
    att_ctx *ctx = m->model.ctx;
    probe_call c = {.m = m, .texts = texts, .bytes = bytes, .options = options};
    att_progress p = {
        .ctx = ctx, .call = "att_text_classify", .report = options->progress, .user = options->user, .all = n};
    att_status s = refuse(m, options);
    if (s)
        return s;
    c.vectors = att_alloc(ctx, BLOCK, (size_t)m->probe->info.dim * sizeof *c.vectors);
    s = c.vectors ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < n; i += BLOCK) {
        const int64_t count = att_min(BLOCK, n - i);
        s = run_block(&c, i, count, out + i * m->probe->info.classes);
        s = s ? s : att_progress_add(&p, count);
    }
    att_free(ctx, c.vectors);
    return s;
}
