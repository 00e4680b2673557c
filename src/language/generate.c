/* Continues prompts: they join a session as memory permits. */
#include "language/generation.h"
#include "util/util.h"

#include <stdio.h>

enum {
    MAX_ROWS = 64,         /* prompts at a time: the weights are read once for all */
    STATE_BYTES = 1 << 30, /* of their state, about */
    USUAL_TOKENS = 256,    /* tokens of a text, to estimate memory if options do not state them */
};

typedef struct generate_job {
    const att_text_generator *g;
    int64_t n;
    const int32_t *ids;
    const int64_t *offsets;
    att_generate_options o;
    att_generated *out;
    att_generation *s;
    int64_t next; /* the first prompt that is not in the session yet */
} generate_job;

static int64_t prompt_tokens(const generate_job *j, int64_t i) { return j->offsets[i + 1] - j->offsets[i]; }

/* ---- checks */

static att_status check_prompts(const generate_job *j)
{
    att_ctx *ctx = j->g->ctx;
    att_status e = ATT_OK;
    if (j->n < 0 || j->n > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_generate: n is %lld, not in [0, %d]", (long long)j->n, INT32_MAX);
    if (j->offsets[0] != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_generate: offsets[0] is %lld, not 0", (long long)j->offsets[0]);
    for (int64_t i = 0; !e && i < j->n; i++) {
        char what[64];
        snprintf(what, sizeof what, "att_generate: prompt %lld", (long long)i);
        if (prompt_tokens(j, i) < 0)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "att_generate: offsets descend after prompt %lld", (long long)i);
        e = att_prompt_check(j->g, what, j->ids, j->offsets[i], prompt_tokens(j, i));
    }
    return e;
}

static att_status check_state(const generate_job *j)
{
    const att_language_state *s = j->o.state;
    att_ctx *ctx = j->g->ctx;
    if (!s)
        return ATT_OK;
    if (!att_language_state_fits(s, j->g->model))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_generate: options.state belongs to another model");
    if (att_language_state_sequences(s) != j->n)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_generate: n is %lld, but options.state has %lld sequences",
                        (long long)j->n, (long long)att_language_state_sequences(s));
    for (int64_t i = 0; i < j->n; i++) {
        const int64_t has = att_language_state_length(s, i), count = prompt_tokens(j, i);
        if (has > 0 && j->o.prompt_log_probabilities)
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "att_generate: options.prompt_log_probabilities is for prompts that are computed, but "
                            "options.state has %lld tokens of prompt %lld: truncate it to 0",
                            (long long)has, (long long)i);
        if (has >= count)
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "att_generate: options.state has %lld tokens of prompt %lld, which has %lld: at least one "
                            "has to be new",
                            (long long)has, (long long)i, (long long)count);
    }
    return ATT_OK;
}

/* ---- the session */

/* Returns the expected number of tokens of a prompt and its text. */
static int64_t expected(const generate_job *j, int64_t i)
{
    const int64_t n = prompt_tokens(j, i), limit = att_generation_limit(j->g, &j->o, n);
    return j->o.max_tokens ? limit : att_min(limit, n + USUAL_TOKENS);
}

static att_status open_session(generate_job *j)
{
    const att_language_model_info *i = &j->g->info;
    att_generation_options o = {.size = sizeof o, .prompt_tokens = ATT_PROMPT_TOKENS};
    o.max_sequences = j->o.state ? j->n : att_min(j->n, MAX_ROWS);
    o.max_tokens = j->o.state ? INT64_MAX : STATE_BYTES / (8 * i->layers * i->kv_heads * i->head_dim);
    for (int64_t k = 0; k < j->n; k++)
        o.max_tokens = att_max(o.max_tokens, expected(j, k));
    return att_generation_open(j->g, &o, j->o.state, &j->s);
}

/* Adds the next prompts, as many as there is room for. A sequence has the number of its prompt. */
static att_status add_prompts(generate_job *j)
{
    att_status e = ATT_OK;
    for (; !e && j->next < j->n && att_generation_has_room(j->s, expected(j, j->next)); j->next++) {
        int64_t number;
        att_generate_options o = j->o;
        o.first_sequence += j->next;
        e = att_generation_admit(j->s,
                                 &(att_generation_entry){"att_generate", j->ids + j->offsets[j->next],
                                                         prompt_tokens(j, j->next), &o, expected(j, j->next)},
                                 &number);
    }
    return e;
}

/* Writes the results of sequences that have ended, or of all. */
static att_status write_results(generate_job *j, bool all)
{
    att_status e = ATT_OK;
    for (int64_t i = j->s->n - 1; !e && i >= 0; i--) {
        const att_generation_sequence *q = j->s->sequence[i];
        const int64_t number = q->number;
        if (q->end || all)
            e = att_generation_finish(j->s, number, &j->out[number]);
    }
    return e;
}

static att_status run(generate_job *j)
{
    att_status e = ATT_OK;
    int64_t active = 0;
    while (!e && (j->next < j->n || active > 0)) {
        e = add_prompts(j);
        e = e ? e : att_generation_step(j->s, &active);
        e = e ? e : write_results(j, false);
    }
    if (e == ATT_ERR_CANCELLED) {
        const att_status written = write_results(j, true);
        return written ? written : att_fail(j->g->ctx, e, "att_generate was cancelled");
    }
    return e;
}

att_status att_generate(const att_text_generator *g, int64_t n, const int32_t *ids, const int64_t *offsets,
                        const att_generate_options *options, att_generated *out)
{
    if (att_require(__func__, ATT_NAMED({"g", g}, {"ids", ids}, {"offsets", offsets}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    generate_job j = {.g = g, .n = n, .ids = ids, .offsets = offsets, .out = out};
    att_status e = att_options_read(&j.o, sizeof j.o, options, "att_generate_options");
    if (e || n == 0)
        return e;
    for (int64_t i = 0; i < n; i++)
        out[i] = (att_generated){0};
    e = check_prompts(&j);
    e = e ? e : check_state(&j);
    e = e ? e : open_session(&j);
    e = e ? e : run(&j);
    for (int64_t i = 0; e && i < n; i++)
        if (e != ATT_ERR_CANCELLED)
            att_generated_free(g->ctx, &out[i]);
        else if (!out[i].end)
            out[i].end = ATT_GENERATION_CANCELLED;
    att_generation_free(j.s);
    return e;
}
