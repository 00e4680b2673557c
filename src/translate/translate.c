/* Translates: tokenizes, sorts by length, searches in batches, restores the order. */
#include "io/cancelled.h"
#include "io/check_texts.h"
#include "io/progress.h"
#include "model/composite.h"
#include "util/util.h"
#include "translate/text_segments.h"
#include "translate/translator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_ROWS = 128,   /* rows decoded together: the weights are read once for all */
    BATCH_TOKENS = 4096 /* source tokens per batch */
};

/* ---- open and close */

static att_status open_all(void *self, const char *folder, const att_model_options *options)
{
    att_translator *m = self;
    att_status s = att_encoder_decoder_open(m->ctx, folder, options, &m->model);
    s = s ? s : att_tokenizer_open(m->ctx, folder, &m->tokenizer);
    if (s)
        return s;
    const att_encoder_decoder_info *i = &m->model->info;
    const int64_t size = att_tokenizer_size(m->tokenizer);
    if (size > i->source_vocabulary || size < i->target_vocabulary)
        return att_fail(m->ctx, ATT_ERR_FORMAT,
                        "%s: vocab.json has %lld tokens but the model %lld of sources and %lld of translations", folder,
                        (long long)size, (long long)i->source_vocabulary, (long long)i->target_vocabulary);
    return att_generation_read(m->ctx, folder, i, &m->generation);
}

static void free_all(void *self) { att_translator_free(self); }

att_status att_translator_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_translator **out)
{
    static const att_composite kind = {sizeof(att_translator), open_all, free_all};
    return att_composite_open(ctx, __func__, &kind, folder, options, out);
}

att_status att_translator_new(const att_encoder_decoder *model, const att_tokenizer *tokenizer, att_translator **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", model}, {"t", tokenizer}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_translator *m = att_calloc(model->model.ctx, 1, sizeof *m);
    *out = m;
    if (!m)
        return ATT_ERR_MEMORY;
    *m = (att_translator){.ctx = model->model.ctx,
                          .model = (att_encoder_decoder *)model, /* not modified */
                          .tokenizer = (att_tokenizer *)tokenizer,
                          .borrowed = true};
    att_generation_greedy(&model->info, &m->generation);
    return ATT_OK;
}

void att_translator_free(att_translator *m)
{
    if (!m)
        return;
    if (!m->borrowed) {
        att_model_free(m->model);
        att_tokenizer_free(m->tokenizer);
    }
    att_free(m->ctx, m);
}

const att_encoder_decoder *att_translator_model(const att_translator *m) { return m ? m->model : NULL; }

const att_nn_params *att_translator_params(const att_translator *m)
{
    return att_encoder_decoder_params(att_translator_model(m));
}

att_status att_translator_weights(const att_translator *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? &m->model->model : NULL, weights);
}

const att_tokenizer *att_translator_tokenizer(const att_translator *m) { return m ? m->tokenizer : NULL; }

int64_t att_translator_beam(const att_translator *m) { return m ? m->generation.search.beam : 0; }

/* ---- a batch */

typedef struct translate_job {
    const att_translator *m;
    att_translate_options options;
    att_search search;
    att_text_segments segments; /* of all texts */
    int64_t *order;             /* [segments.count] by descending length */
    att_finished *finished;     /* [segments.count][n_best] */
    att_progress progress;      /* in tokens of the segments */
} translate_job;

static bool begins_text(const translate_job *j, int64_t segment)
{
    return segment == 0 || j->segments.segment[segment - 1].text != j->segments.segment[segment].text;
}

/* Sets the forced beginnings, in *search, of those of the segments order[first, first + n) that begin a text. The
 * caller frees *memory with att_free. */
static att_status gather_prefixes(const translate_job *j, int64_t first, int64_t n, att_search *search,
                                  int64_t **memory)
{
    const att_translate_options *o = &j->options;
    if (!o->prefix_offsets)
        return ATT_OK;
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t text = j->segments.segment[j->order[first + i]].text;
        total += o->prefix_offsets[text + 1] - o->prefix_offsets[text];
    }
    int64_t *offsets = *memory = att_alloc(j->m->ctx, (size_t)(n + 1 + total), sizeof *offsets);
    if (!offsets)
        return ATT_ERR_MEMORY;
    int32_t *ids = (int32_t *)(offsets + n + 1);
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t segment = j->order[first + i], text = j->segments.segment[segment].text;
        const int64_t begin = o->prefix_offsets[text];
        const int64_t count = begins_text(j, segment) ? o->prefix_offsets[text + 1] - begin : 0;
        if (count > 0)
            memcpy(ids + offsets[i], o->prefix_ids + begin, (size_t)count * sizeof *ids);
        offsets[i + 1] = offsets[i] + count;
    }
    search->prefix = ids;
    search->prefix_offsets = offsets;
    return ATT_OK;
}

/* Translates the segments order[first, last). *tokens: the number of their tokens. */
static att_status translate_batch(const translate_job *j, int64_t first, int64_t last, int64_t *tokens)
{
    att_ctx *ctx = j->m->ctx;
    const int64_t n = last - first, best = j->search.n_best;
    int64_t *offsets = att_alloc(ctx, (size_t)n + 1, sizeof *offsets), *prefixes = NULL;
    att_search search = j->search;
    if (!offsets)
        return ATT_ERR_MEMORY;
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++)
        offsets[i + 1] = offsets[i] + j->segments.segment[j->order[first + i]].tokens.count;
    *tokens = offsets[n];
    int32_t *ids = att_alloc(ctx, (size_t)offsets[n] + 1, sizeof *ids);
    att_finished *finished = att_calloc(ctx, (size_t)(n * best), sizeof *finished);
    att_generator model = {0};
    att_status e = ids && finished ? gather_prefixes(j, first, n, &search, &prefixes) : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++) {
        const att_tokens *s = &j->segments.segment[j->order[first + i]].tokens;
        memcpy(ids + offsets[i], s->ids, (size_t)s->count * sizeof *ids);
    }
    e = e ? e : att_architecture_of(j->m->model)->start(j->m->model, ids, offsets, n, &model);
    e = e ? e : att_search_run(&j->m->model->model, &search, &model, n, finished);
    for (int64_t i = 0; !e && i < n; i++)
        memcpy(j->finished + j->order[first + i] * best, finished + i * best, (size_t)best * sizeof *finished);
    if (model.free)
        model.free(model.user);
    att_free(ctx, finished);
    att_free(ctx, prefixes);
    att_free(ctx, ids);
    att_free(ctx, offsets);
    return e;
}

/* Compares by descending length, so that sequences of a batch have similar lengths. The order is stable. */
static int by_length(const void *a, const void *b, void *arg)
{
    const att_text_segment *segment = arg;
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    const int64_t x = segment[i].tokens.count, y = segment[k].tokens.count;
    return x != y ? (x > y ? -1 : 1) : i < k ? -1 : 1;
}

static att_status translate_segments(translate_job *j)
{
    const int64_t n = j->segments.count, rows = att_max(BATCH_ROWS / j->search.beam, 1);
    j->order = att_alloc(j->m->ctx, (size_t)n + 1, sizeof *j->order);
    j->finished = att_calloc(j->m->ctx, (size_t)(n * j->search.n_best) + 1, sizeof *j->finished);
    att_status e = j->order && j->finished ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++) {
        j->order[i] = i;
        j->progress.all += j->segments.segment[i].tokens.count;
    }
    if (!e && n > 0)
        qsort_r(j->order, (size_t)n, sizeof *j->order, by_length, j->segments.segment);
    for (int64_t first = 0, last; !e && first < n; first = last) {
        int64_t tokens = 0;
        for (last = first; last < n && last - first < rows; last++) {
            tokens += j->segments.segment[j->order[last]].tokens.count;
            if (last > first && tokens > BATCH_TOKENS)
                break;
        }
        e = translate_batch(j, first, last, &tokens);
        e = e ? e : att_progress_add(&j->progress, tokens);
    }
    return e ? e : att_progress_end(&j->progress);
}

/* ---- hypotheses to texts */

/* Joins the k-th best hypotheses of segments [first, last), which are one text, by concatenating their tokens. There is
 * no text if a segment has no k-th hypothesis. */
static att_status join(const translate_job *j, int64_t first, int64_t last, int64_t k, att_translation *out)
{
    const int64_t best = j->search.n_best;
    int64_t count = 0, steps = 0;
    double log_probability = 0;
    for (int64_t i = first; i < last; i++) {
        const att_finished *f = &j->finished[i * best + k];
        if (!f->ids)
            return ATT_OK;
        count += f->count;
        steps += f->steps;
        log_probability += f->log_probability;
    }
    if (first == last && k > 0) /* an empty text has one translation */
        return ATT_OK;
    out->tokens.ids = att_alloc(j->m->ctx, (size_t)count + 1, sizeof *out->tokens.ids);
    if (!out->tokens.ids)
        return ATT_ERR_MEMORY;
    for (int64_t i = first; i < last; i++) {
        const att_finished *f = &j->finished[i * best + k];
        memcpy(out->tokens.ids + out->tokens.count, f->ids, (size_t)f->count * sizeof *f->ids);
        out->tokens.count += f->count;
    }
    out->score = j->search.no_scores ? NAN
                 : steps > 0         ? (float)(log_probability / pow((double)steps, j->search.length_penalty))
                                     : 0;
    return att_detokenize(j->m->tokenizer, out->tokens.ids, out->tokens.count, &out->text);
}

static att_status write_out(const translate_job *j, int64_t n, att_translation *out)
{
    const int64_t best = j->search.n_best;
    att_status e = ATT_OK;
    for (int64_t i = 0, first = 0, last; !e && i < n; i++, first = last) {
        for (last = first; last < j->segments.count && j->segments.segment[last].text == i;)
            last++;
        const bool failed = j->options.status && j->options.status[i];
        for (int64_t k = 0; !e && !failed && k < best; k++)
            e = join(j, first, last, k, &out[i * best + k]);
    }
    return e;
}

/* ---- the call */

static att_status set_options(const att_translator *m, const att_translate_options *o, att_search *search)
{
    const int64_t positions = m->model->info.max_positions;
    *search = m->generation.search;
    const struct {
        const char *name;
        int64_t value, min, max;
    } limits[] = {{"beam", o->beam, 0, ATT_MAX_BEAMS},
                  {"max_tokens", o->max_tokens, 0, positions},
                  {"min_tokens", o->min_tokens, 0, positions},
                  {"n_best", o->n_best, 0, o->beam ? o->beam : search->beam}};
    for (int i = 0; i < 4; i++)
        if (limits[i].value < limits[i].min || limits[i].value > limits[i].max)
            return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_translate: options.%s is %lld, not in [%lld, %lld]",
                            limits[i].name, (long long)limits[i].value, (long long)limits[i].min,
                            (long long)limits[i].max);
    search->beam = o->beam ? o->beam : search->beam;
    search->max_tokens = o->max_tokens ? o->max_tokens : search->max_tokens;
    search->max_tokens = att_min(search->max_tokens, positions);
    search->min_tokens = o->min_tokens ? o->min_tokens : search->min_tokens;
    search->n_best = o->n_best ? o->n_best : 1;
    search->no_scores = o->no_scores;
    search->length_penalty = o->length_penalty ? (double)*o->length_penalty : search->length_penalty;
    if (!isfinite(search->length_penalty))
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_translate: options.length_penalty is %g, not a number",
                        search->length_penalty);
    return ATT_OK;
}

/* Checks ids and prefixes, except for errors that concern only one text. */
static att_status check_ids(const att_translator *m, int64_t n, const char *const *texts,
                            const att_translate_options *o)
{
    const struct {
        const char *names[2];
        const int32_t *ids;
        const int64_t *offsets;
    } given[] = {{{"att_translate: options.offsets", "options.ids"}, o->ids, o->offsets},
                 {{"att_translate: options.prefix_offsets", "options.prefix_ids"}, o->prefix_ids, o->prefix_offsets}};
    if (texts && (o->ids || o->offsets))
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_translate: texts and options.ids are given, not one of them");
    att_status e = ATT_OK;
    for (int i = 0; !e && i < 2; i++) {
        if (given[i].ids || given[i].offsets)
            e = att_check_text_offsets(m->ctx, given[i].names[0], given[i].offsets, n);
        if (!e && given[i].offsets && given[i].offsets[n] > 0)
            e = att_require("att_translate", ATT_NAMED({given[i].names[1], given[i].ids}));
    }
    return e;
}

static att_status check(const att_translator *m, int64_t n, const char *const *texts, const att_translate_options *o,
                        const att_translation *out)
{
    if (n < 0 || n > (int64_t)1 << 31)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_translate: n is %lld, not in [0, 2^31]", (long long)n);
    if (n > 0 && att_require("att_translate", ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status e = check_ids(m, n, texts, o);
    return e || o->offsets ? e : att_check_texts(m->ctx, "att_translate: texts", texts, n);
}

/* Checks that text i can begin with its prefix. */
static att_status check_prefix(const translate_job *j, int64_t i)
{
    const att_translate_options *o = &j->options;
    if (!o->prefix_offsets)
        return ATT_OK;
    att_ctx *ctx = j->m->ctx;
    const int64_t first = o->prefix_offsets[i], last = o->prefix_offsets[i + 1];
    if (last - first >= j->search.max_tokens)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_translate: the prefix of text %lld has %lld tokens but its translation has at most %lld, "
                        "eos included",
                        (long long)i, (long long)(last - first), (long long)j->search.max_tokens);
    for (int64_t k = first; k < last; k++)
        if (o->prefix_ids[k] == j->search.end)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "att_translate: options.prefix_ids[%lld] is %lld, the end token",
                            (long long)k, (long long)o->prefix_ids[k]);
    return att_check_ids(ctx, "att_translate: options.prefix_ids", o->prefix_ids, first, last,
                         j->m->model->info.target_vocabulary);
}

/* Adds the segments of text i. An error of this text is the error of the call unless each text has a status. */
static att_status add_text(translate_job *j, int64_t i, const char *const *texts, const size_t *bytes)
{
    const att_translate_options *o = &j->options;
    att_text_segments *p = &j->segments;
    const int64_t before = p->count;
    att_status e = att_check_cancelled(p->ctx, "att_translate");
    if (e)
        return e;
    if (o->offsets) {
        const int64_t first = o->offsets[i], last = o->offsets[i + 1];
        e = att_text_segments_add_ids(p, i, last > first ? o->ids + first : NULL, last - first);
        e = e ? e
              : att_check_ids(p->ctx, "att_translate: options.ids", o->ids, first, last,
                              j->m->model->info.source_vocabulary);
    } else {
        e = att_text_segments_add(p, i, texts[i], bytes ? bytes[i] : strlen(texts[i]));
    }
    e = e ? e : check_prefix(j, i);
    if (o->tokens)
        o->tokens[i] = p->tokens;
    if (!o->status || e == ATT_ERR_MEMORY || e == ATT_ERR_CANCELLED)
        return e;
    o->status[i] = e;
    if (e)
        att_text_segments_truncate(p, before);
    return ATT_OK;
}

att_status att_translate(const att_translator *m, int64_t n, const char *const *texts, const size_t *bytes,
                         const att_translate_options *options, att_translation *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    translate_job j = {.m = m};
    att_status e = att_options_read(&j.options, sizeof j.options, options, "att_translate_options");
    e = e ? e : set_options(m, &j.options, &j.search);
    e = e ? e : check(m, n, texts, &j.options, out);
    if (e)
        return e;
    j.progress = (att_progress){.ctx = m->ctx, .call = __func__, .report = j.options.progress, .user = j.options.user};
    const int64_t count = n * j.search.n_best;
    for (int64_t i = 0; i < count; i++)
        out[i] = (att_translation){0};
    j.segments = (att_text_segments){
        .ctx = m->ctx, .tokenizer = m->tokenizer, .max_tokens = m->model->info.max_positions, .split = j.options.split};
    for (int64_t i = 0; !e && i < n; i++)
        e = add_text(&j, i, texts, bytes);
    e = e ? e : translate_segments(&j);
    e = e ? e : write_out(&j, n, out);
    for (int64_t i = 0; e && i < count; i++)
        att_translation_free(m->ctx, &out[i]);
    for (int64_t i = 0; j.finished && i < j.segments.count * j.search.n_best; i++)
        att_free(m->ctx, j.finished[i].ids);
    att_free(m->ctx, j.finished);
    att_free(m->ctx, j.order);
    att_text_segments_free(&j.segments);
    return e;
}

void att_translation_free(att_ctx *ctx, att_translation *t)
{
    if (!ctx || !t)
        return;
    att_text_free(ctx, &t->text);
    att_tokens_free(ctx, &t->tokens);
    *t = (att_translation){0};
}
