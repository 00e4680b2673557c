/* The calls of a session of generations, which join and leave. */
#include "language/generation.h"
#include "util/util.h"

#include <string.h>

enum { USUAL_SEQUENCES = 64, MAX_SEQUENCES = 1 << 16 };

/* ---- made and freed */

static att_status complete_options(att_ctx *ctx, att_generation_options *o)
{
    const struct {
        const char *name;
        int64_t *value, max, usual;
    } numbers[] = {{"max_sequences", &o->max_sequences, MAX_SEQUENCES, USUAL_SEQUENCES},
                   {"max_tokens", &o->max_tokens, INT64_MAX, INT64_MAX},
                   {"prompt_tokens", &o->prompt_tokens, INT32_MAX, ATT_PROMPT_TOKENS},
                   {"kept_tokens", &o->kept_tokens, INT64_MAX, 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t *value = numbers[i].value;
        if (*value < 0 || *value > numbers[i].max)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "att_generation_new: options.%s is %lld, not in [0, %lld]",
                            numbers[i].name, (long long)*value, (long long)numbers[i].max);
        if (*value == 0)
            *value = numbers[i].usual;
    }
    return ATT_OK;
}

static att_status make_arrays(att_generation *s)
{
    const size_t vocabulary = (size_t)s->g->info.vocabulary, n = (size_t)s->o.max_sequences;
    s->tasks = (int)att_min(att_threads(s->ctx), s->o.max_sequences);
    s->sequence = att_alloc(s->ctx, n, sizeof *s->sequence);
    s->prefix = att_alloc(s->ctx, n, sizeof *s->prefix);
    s->from = att_alloc(s->ctx, 2 * n + 1, sizeof *s->from);
    s->scratch = att_calloc(s->ctx, (size_t)s->tasks, sizeof *s->scratch);
    s->finite = att_alloc(s->ctx, (size_t)s->tasks, sizeof *s->finite);
    bool all = s->sequence && s->prefix && s->from && s->scratch && s->finite;
    for (int i = 0; all && i < s->tasks; i++) {
        s->scratch[i].row = att_alloc(s->ctx, vocabulary, sizeof(float));
        s->scratch[i].weight = att_alloc(s->ctx, vocabulary, sizeof(float));
        s->scratch[i].order = att_alloc(s->ctx, vocabulary, sizeof(att_candidate));
        all = s->scratch[i].row && s->scratch[i].weight && s->scratch[i].order;
    }
    return all ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_generation_open(const att_text_generator *g, const att_generation_options *o, att_language_state *state,
                               att_generation **out)
{
    att_generation *s = att_calloc(g->ctx, 1, sizeof *s);
    *out = NULL;
    if (!s)
        return ATT_ERR_MEMORY;
    *s = (att_generation){.g = g, .ctx = g->ctx, .o = *o, .state = state, .borrowed = state};
    att_status e = make_arrays(s);
    e = e ? e : att_model_tape(&g->model->model, &s->tape);
    if (!e && !state)
        e = att_language_state_new(g->model, 1, o->dtype, &s->state);
    s->exact = !e && (att_language_state_exact(s->state) || (!state && o->dtype == ATT_F16));
    if (e)
        att_generation_free(s);
    else
        *out = s;
    return e;
}

att_status att_generation_new(const att_text_generator *g, const att_generation_options *options, att_generation **out)
{
    att_generation_options o;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"g", g}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&o, sizeof o, options, "att_generation_options");
    e = e ? e : complete_options(g->ctx, &o);
    return e ? e : att_generation_open(g, &o, NULL, out);
}

void att_generation_free(att_generation *s)
{
    if (!s)
        return;
    for (int64_t i = 0; i < s->n; i++)
        att_generation_sequence_free(s->sequence[i]);
    att_generation_prefixes_free(s);
    for (int i = 0; s->scratch && i < s->tasks; i++) {
        att_free(s->ctx, s->scratch[i].row);
        att_free(s->ctx, s->scratch[i].weight);
        att_free(s->ctx, s->scratch[i].order);
    }
    if (!s->borrowed)
        att_language_state_free(s->state);
    att_tape_free(s->tape);
    att_free(s->ctx, s->scratch);
    att_free(s->ctx, s->finite);
    att_free(s->ctx, s->sequence);
    att_free(s->ctx, s->prefix);
    att_free(s->ctx, s->from);
    att_free(s->ctx, s);
}

/* ---- sequences come */

bool att_generation_has_room(const att_generation *s, int64_t need)
{
    return s->n < s->o.max_sequences && need <= s->o.max_tokens - s->tokens;
}

static att_status check_room(const att_generation *s, const char *caller, int64_t need)
{
    if (need > s->o.max_tokens)
        return att_fail(
            s->ctx, ATT_ERR_ARGUMENT,
            "%s: the prompt and the text to be generated have up to %lld tokens, but the session's max_tokens is "
            "%lld: set options.max_tokens",
            caller, (long long)need, (long long)s->o.max_tokens);
    if (!att_generation_has_room(s, need))
        return att_fail(s->ctx, ATT_ERR_BUSY,
                        "%s: the session has %lld of at most %lld sequences and %lld of at most %lld tokens, and this "
                        "one needs %lld: finish or remove others first",
                        caller, (long long)s->n, (long long)s->o.max_sequences, (long long)s->tokens,
                        (long long)s->o.max_tokens, (long long)need);
    return ATT_OK;
}

/* Checks that the session has not failed and that no step is running. */
static att_status check_ready(const att_generation *s, const char *caller)
{
    if (s->calling)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "%s: it was called by the callback of a token, not between steps",
                        caller);
    return ATT_OK;
}

static att_status check_whole(const att_generation *s, const char *caller)
{
    return s->failed ? att_fail(s->ctx, s->failed, "%s: an earlier step of the session failed (%s)", caller,
                                att_status_text(s->failed))
                     : ATT_OK;
}

static att_status check_options(const att_generation *s, const char *caller, const att_generate_options *o)
{
    if (o->lookup > 0 && !att_language_state_exact(s->state))
        return att_fail(s->ctx, ATT_ERR_UNSUPPORTED,
                        "%s: options.lookup is %lld, but %s is not of f32: the text could differ", caller,
                        (long long)o->lookup, s->borrowed ? "options.state" : "the session");
    if (o->state && !s->borrowed)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "%s: options.state is given, but a session has a state of its own",
                        caller);
    return ATT_OK;
}

att_status att_generation_admit(att_generation *s, const att_generation_entry *entry, int64_t *number)
{
    att_generation_sequence *q = NULL;
    att_status e = check_options(s, entry->caller, entry->o);
    e = e ? e : att_generation_sequence_new(s->g, entry, &q);
    e = e ? e : check_room(s, entry->caller, entry->need);
    if (e) {
        att_generation_sequence_free(q);
        return e;
    }
    q->number = *number = s->next_number++;
    if (s->borrowed) {
        q->row = q->number;
        q->done = q->cached = att_language_state_length(s->state, q->row);
    }
    s->sequence[s->n++] = q;
    s->tokens += q->need;
    s->moved = true;
    return ATT_OK;
}

att_status att_generation_add(att_generation *s, const int32_t *ids, int64_t n, const att_generate_options *options,
                              int64_t *number)
{
    att_generate_options o;
    if (number)
        *number = -1;
    if (att_require(__func__, ATT_NAMED({"s", s}, {"ids", ids}, {"number", number})))
        return ATT_ERR_ARGUMENT;
    att_status e = check_ready(s, __func__);
    e = e ? e : check_whole(s, __func__);
    e = e ? e : att_options_read(&o, sizeof o, options, "att_generate_options");
    e = e ? e : att_prompt_check(s->g, "att_generation_add: the prompt", ids, 0, n);
    return e ? e
             : att_generation_admit(s, &(att_generation_entry){__func__, ids, n, &o, att_generation_limit(s->g, &o, n)},
                                    number);
}

/* ---- sequences leave */

static att_status find(const att_generation *s, const char *caller, int64_t number, int64_t *at)
{
    att_status e = check_ready(s, caller);
    *at = 0;
    while (!e && *at < s->n && s->sequence[*at]->number != number)
        ++*at;
    if (!e && *at == s->n)
        e = att_fail(s->ctx, ATT_ERR_ARGUMENT, "%s: the session has no sequence %lld", caller, (long long)number);
    return e;
}

static void remove_at(att_generation *s, int64_t at)
{
    att_generation_sequence *q = s->sequence[at];
    att_generation_release(s, q);
    s->tokens -= q->need;
    att_generation_sequence_free(q);
    s->n--;
    memmove(s->sequence + at, s->sequence + at + 1, (size_t)(s->n - at) * sizeof(att_generation_sequence *));
}

att_status att_generation_remove(att_generation *s, int64_t number)
{
    int64_t at;
    if (att_require(__func__, ATT_NAMED({"s", s})))
        return ATT_ERR_ARGUMENT;
    const att_status e = find(s, __func__, number, &at);
    if (!e)
        remove_at(s, at);
    return e;
}

att_status att_generation_finish(att_generation *s, int64_t number, att_generated *out)
{
    int64_t at;
    if (out)
        *out = (att_generated){0};
    if (att_require(__func__, ATT_NAMED({"s", s}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = find(s, __func__, number, &at);
    e = e ? e : att_generation_sequence_write(s->sequence[at], out);
    if (!e)
        remove_at(s, at);
    return e;
}

/* ---- steps */

att_status att_generation_describe(const att_generation *s, att_generation_info *info)
{
    if (att_require(__func__, ATT_NAMED({"s", s}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    att_generation_info all = {.sequences = s->n, .computed = s->computed, .bytes = att_language_state_bytes(s->state)};
    for (int64_t i = 0; i < s->n; i++)
        all.active += !s->sequence[i]->end;
    return att_info_write(info, &all, sizeof all, "att_generation_info");
}

att_status att_generation_set_prompt_tokens(att_generation *s, int64_t tokens)
{
    if (att_require(__func__, ATT_NAMED({"s", s})))
        return ATT_ERR_ARGUMENT;
    const att_status e = check_ready(s, __func__);
    if (e)
        return e;
    if (tokens < 1 || tokens > INT32_MAX)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "%s: tokens is %lld, not in [1, %d]", __func__, (long long)tokens,
                        INT32_MAX);
    if (!s->exact)
        return att_fail(s->ctx, ATT_ERR_UNSUPPORTED, "%s: in bf16 the bits would depend on it", __func__);
    s->o.prompt_tokens = tokens;
    return ATT_OK;
}

att_status att_generation_step(att_generation *s, int64_t *active)
{
    if (active)
        *active = 0;
    if (att_require(__func__, ATT_NAMED({"s", s}, {"active", active})))
        return ATT_ERR_ARGUMENT;
    att_status e = check_ready(s, __func__);
    e = e ? e : check_whole(s, __func__);
    return e ? e : att_generation_compute(s, active);
}
