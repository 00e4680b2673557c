/* Makes a sequence of a session, and adds to its tokens and its text. */
#include "language/generation.h"
#include "util/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LOOKUP = 64, MAX_TOP = 256 };

/* ---- prompts */

int64_t att_generation_limit(const att_text_generator *g, const att_generate_options *o, int64_t n)
{
    const int64_t room = g->info.max_positions - n;
    return n + (o->max_tokens ? att_min(o->max_tokens, room) : room);
}

att_status att_prompt_check(const att_text_generator *g, const char *what, const int32_t *ids, int64_t first, int64_t n)
{
    const int64_t positions = g->info.max_positions;
    if (n <= 0)
        return att_fail(g->ctx, ATT_ERR_ARGUMENT, "%s has %s tokens, and the model continues at least one", what,
                        n ? "a negative number of" : "no");
    if (n >= positions)
        return att_fail(g->ctx, ATT_ERR_ARGUMENT,
                        "%s has %lld tokens, but the model has %lld positions for prompt and text", what, (long long)n,
                        (long long)positions);
    for (int64_t i = first; i < first + n; i++)
        if (ids[i] < 0 || ids[i] >= g->info.vocabulary)
            return att_fail(g->ctx, ATT_ERR_ARGUMENT, "%s: ids[%lld] is %d, but the model's are 0 to %lld", what,
                            (long long)i, (int)ids[i], (long long)g->info.vocabulary - 1);
    return ATT_OK;
}

/* ---- made and freed */

static att_status check_numbers(const att_text_generator *g, const char *caller, const att_generate_options *o)
{
    const struct {
        const char *name;
        int64_t value, max;
    } limits[] = {{"first_sequence", o->first_sequence, INT64_MAX - INT32_MAX},
                  {"max_tokens", o->max_tokens, INT64_MAX},
                  {"n_stop", o->n_stop, INT32_MAX},
                  {"lookup", o->lookup, MAX_LOOKUP},
                  {"top", o->top, att_min(MAX_TOP, g->info.vocabulary)}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].value < 0 || limits[i].value > limits[i].max)
            return att_fail(g->ctx, ATT_ERR_ARGUMENT, "%s: options.%s is %lld, not in [0, %lld]", caller,
                            limits[i].name, (long long)limits[i].value, (long long)limits[i].max);
    return ATT_OK;
}

/* Finds the special token of this name, which has no text; -1: it is not a special token. */
static att_status find_special(const att_text_generator *g, const char *name, int32_t *id)
{
    att_tokens tokens = {0};
    att_text text = {0};
    att_status e =
        att_tokenize(g->tokenizer, name, strlen(name), ATT_OPTIONS(att_tokenize_options, .no_special = true), &tokens);
    if (!e && tokens.count == 1)
        e = att_detokenize(g->tokenizer, tokens.ids, 1, &text);
    *id = !e && tokens.count == 1 && text.bytes == 0 ? tokens.ids[0] : -1;
    att_text_free(g->ctx, &text);
    att_tokens_free(g->ctx, &tokens);
    return e;
}

/* Checks the stop strings, copies them, and finds those that are special tokens. */
static att_status copy_stops(const char *caller, att_generation_sequence *q, const char *const *stop)
{
    att_ctx *ctx = q->g->ctx;
    const int64_t n = q->o.n_stop;
    if (n > 0 && att_require(caller, ATT_NAMED({"options.stop", stop})))
        return ATT_ERR_ARGUMENT;
    q->stop = att_calloc(ctx, (size_t)n + 1, sizeof *q->stop);
    q->stop_token = att_alloc(ctx, (size_t)n + 1, sizeof *q->stop_token);
    att_status e = q->stop && q->stop_token ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++) {
        if (!stop[i] || !*stop[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: options.stop[%lld] is %s", caller, (long long)i,
                            stop[i] ? "empty" : "NULL");
        const size_t bytes = strlen(stop[i]) + 1;
        q->stop[i] = att_alloc(ctx, bytes, 1);
        if (!q->stop[i])
            return ATT_ERR_MEMORY;
        memcpy(q->stop[i], stop[i], bytes);
        e = find_special(q->g, stop[i], &q->stop_token[i]);
    }
    q->stream.stop = (const char *const *)q->stop;
    q->stream.n_stop = n;
    return e;
}

static att_status make_scores(att_ctx *ctx, int64_t n, bool own, int64_t top, att_token_scores *out)
{
    if (own)
        out->own = att_alloc(ctx, (size_t)n, sizeof *out->own);
    if (top > 0) {
        out->ids = att_alloc(ctx, (size_t)(n * top), sizeof *out->ids);
        out->highest = att_alloc(ctx, (size_t)(n * top), sizeof *out->highest);
    }
    if ((own && !out->own) || (top > 0 && (!out->ids || !out->highest)))
        return ATT_ERR_MEMORY;
    return ATT_OK;
}

/* Makes the scores of a prompt. Until they are computed they are NaN, and ids are -1. */
static att_status make_prompt_scores(att_ctx *ctx, int64_t n, int64_t top, att_token_scores *out)
{
    const att_status e = make_scores(ctx, n, true, top, out);
    for (int64_t i = 0; !e && i < n; i++)
        out->own[i] = NAN;
    for (int64_t i = 0; !e && i < n * top; i++) {
        out->ids[i] = -1;
        out->highest[i] = NAN;
    }
    return e;
}

static void free_scores(att_ctx *ctx, att_token_scores *scores)
{
    att_free(ctx, scores->own);
    att_free(ctx, scores->ids);
    att_free(ctx, scores->highest);
    *scores = (att_token_scores){0};
}

static att_status make_arrays(att_generation_sequence *q, const int32_t *ids)
{
    att_ctx *ctx = q->g->ctx;
    q->ids = att_calloc(ctx, (size_t)(q->limit + q->o.lookup + 1), sizeof *q->ids);
    if (!q->ids)
        return ATT_ERR_MEMORY;
    memcpy(q->ids, ids, (size_t)q->prompt * sizeof *ids);
    att_status e = make_scores(ctx, q->limit - q->prompt, q->o.log_probabilities, q->o.top, &q->scores);
    if (!e && q->o.prompt_log_probabilities)
        e = make_prompt_scores(ctx, q->prompt, q->o.top, &q->prompt_scores);
    if (e)
        return e;
    if (q->sampler.s.repetition_penalty == 1)
        return ATT_OK;
    q->seen = att_calloc(ctx, (size_t)q->sampler.vocabulary / 64 + 1, sizeof *q->seen);
    for (int64_t i = 0; q->seen && i < q->prompt; i++)
        q->seen[ids[i] / 64] |= UINT64_C(1) << ids[i] % 64;
    return q->seen ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status copy_bias(att_generation_sequence *q)
{
    att_sampling *s = &q->sampler.s;
    if (s->n_bias == 0)
        return ATT_OK;
    q->bias = att_alloc(q->g->ctx, (size_t)s->n_bias, sizeof *q->bias);
    if (!q->bias)
        return ATT_ERR_MEMORY;
    memcpy(q->bias, s->bias, (size_t)s->n_bias * sizeof *q->bias);
    s->bias = q->bias;
    return ATT_OK;
}

static att_status read_options(const att_generation_entry *entry, att_generation_sequence *q)
{
    char sampling[80];
    snprintf(sampling, sizeof sampling, "%s: options.sampling", entry->caller);
    att_status e = att_options_read(&q->sampler.s, sizeof q->sampler.s, q->o.sampling, "att_sampling");
    e = e ? e : att_sampling_complete(q->g->ctx, sampling, q->sampler.vocabulary, &q->sampler.s);
    e = e ? e : copy_bias(q);
    e = e ? e : check_numbers(q->g, entry->caller, &q->o);
    return e ? e : copy_stops(entry->caller, q, q->o.stop);
}

att_status att_generation_sequence_new(const att_text_generator *g, const att_generation_entry *entry,
                                       att_generation_sequence **out)
{
    att_generation_sequence *q = att_calloc(g->ctx, 1, sizeof *q);
    *out = NULL;
    if (!q)
        return ATT_ERR_MEMORY;
    q->g = g;
    q->row = -1;
    q->o = *entry->o;
    q->prompt = q->count = entry->n;
    q->limit = att_generation_limit(g, entry->o, entry->n);
    q->need = entry->need;
    q->sampler = (att_sampler){.seed = q->o.seed, .vocabulary = g->info.vocabulary, .top = q->o.top};
    att_text_stream_begin(&q->stream, g->ctx, g->tokenizer, entry->ids, entry->n);
    att_status e = q->stream.window.status;
    e = e ? e : read_options(entry, q);
    e = e ? e : make_arrays(q, entry->ids);
    if (e)
        att_generation_sequence_free(q);
    else
        *out = q;
    return e;
}

void att_generation_sequence_free(att_generation_sequence *q)
{
    if (!q)
        return;
    att_ctx *ctx = q->g->ctx;
    for (int64_t i = 0; q->stop && i < q->o.n_stop; i++)
        att_free(ctx, q->stop[i]);
    att_free(ctx, q->stop);
    att_free(ctx, q->stop_token);
    att_free(ctx, q->ids);
    att_free(ctx, q->seen);
    att_free(ctx, q->bias);
    free_scores(ctx, &q->scores);
    free_scores(ctx, &q->prompt_scores);
    att_text_stream_free(&q->stream);
    att_free(ctx, q);
}

/* ---- a token that was chosen */

static bool is_eos(const att_generation_sequence *q, int32_t id)
{
    for (int64_t i = 0; !q->o.ignore_eos && i < q->g->config.n_eos; i++)
        if (q->g->config.eos[i] == id)
            return true;
    return false;
}

static bool is_stop(const att_generation_sequence *q, int32_t id)
{
    for (int64_t i = 0; i < q->o.n_stop; i++)
        if (q->stop_token[i] == id)
            return true;
    return false;
}

static att_generation_end end_of(const att_generation_sequence *q, int32_t id)
{
    if (is_eos(q, id))
        return ATT_GENERATION_EOS;
    if (is_stop(q, id))
        return ATT_GENERATION_STOP;
    if (q->count < q->limit)
        return 0;
    return q->limit < q->g->info.max_positions ? ATT_GENERATION_LENGTH : ATT_GENERATION_CONTEXT;
}

att_status att_generation_sequence_accept(att_generation_sequence *q)
{
    const int64_t at = q->count - q->prompt;
    const int32_t id = q->ids[q->count++];
    q->end = end_of(q, id);
    const bool has_text = q->end != ATT_GENERATION_EOS && q->end != ATT_GENERATION_STOP;
    const att_status e = att_text_stream_add(&q->stream, has_text ? id : -1, q->end != 0);
    if (e)
        return e;
    if (q->stream.stopped)
        q->end = ATT_GENERATION_STOP;
    const att_generated_token token = {
        .size = sizeof token,
        .sequence = q->number,
        .position = q->count - 1,
        .id = id,
        .log_probability = q->scores.own ? q->scores.own[at] : NAN,
        .text = q->stream.text.data ? q->stream.text.data + q->stream.sent : "", /* NULL if no token had text yet */
        .bytes = q->stream.ready - q->stream.sent,
        .last = q->end != 0,
        .top_ids = q->scores.ids ? q->scores.ids + at * q->o.top : NULL,
        .top_log_probabilities = q->scores.ids ? q->scores.highest + at * q->o.top : NULL,
    };
    q->stream.sent = q->stream.ready; /* even without a callback, so that no text is searched twice for stop strings */
    if (q->o.token && !q->o.token(q->o.user, &token) && !q->end)
        q->end = ATT_GENERATION_CALLBACK;
    return ATT_OK;
}

att_status att_generation_sequence_write(att_generation_sequence *q, att_generated *out)
{
    const int64_t count = q->count - q->prompt;
    att_ctx *ctx = q->g->ctx;
    *out = (att_generated){.end = q->end ? q->end : ATT_GENERATION_CANCELLED, .cached = q->cached};
    out->tokens = (att_tokens){.ids = att_alloc(ctx, (size_t)count + 1, sizeof *out->tokens.ids), .count = count};
    out->text = (att_text){.text = att_alloc(ctx, q->stream.text.count + 1, 1), .bytes = q->stream.text.count};
    if (!out->tokens.ids || !out->text.text) {
        att_generated_free(ctx, out);
        return ATT_ERR_MEMORY;
    }
    memcpy(out->tokens.ids, q->ids + q->prompt, (size_t)count * sizeof *q->ids);
    if (q->stream.text.count)
        memcpy(out->text.text, q->stream.text.data, q->stream.text.count);
    out->text.text[out->text.bytes] = 0;
    out->log_probabilities = q->scores.own;
    out->top_ids = q->scores.ids;
    out->top_log_probabilities = q->scores.highest;
    out->prompt_log_probabilities = q->prompt_scores.own;
    out->prompt_top_ids = q->prompt_scores.ids;
    out->prompt_top_log_probabilities = q->prompt_scores.highest;
    q->scores = q->prompt_scores = (att_token_scores){0};
    return ATT_OK;
}

void att_generated_free(att_ctx *ctx, att_generated *generated)
{
    if (!ctx || !generated)
        return;
    att_text_free(ctx, &generated->text);
    att_tokens_free(ctx, &generated->tokens);
    att_free(ctx, generated->log_probabilities);
    att_free(ctx, generated->top_ids);
    att_free(ctx, generated->top_log_probabilities);
    att_free(ctx, generated->prompt_log_probabilities);
    att_free(ctx, generated->prompt_top_ids);
    att_free(ctx, generated->prompt_top_log_probabilities);
    *generated = (att_generated){0};
}
