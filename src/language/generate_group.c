/* A group of prompts, which are continued together.
 *
 * A pass computes the tokens of each sequence that the state does not have yet: at first the prompt, then the last
 * token and, after it, tokens that lookup proposes. The logits after each of them give a token; as long as this is the
 * proposed one, the next logits are valid, too. Since a random token depends on nothing but its logits and its
 * position, the text is the same with and without proposals. */
#include "language/generate.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* ---- a token that was chosen */

static bool is_eos(const att_generate_job *j, int32_t id)
{
    for (int64_t i = 0; !j->o.ignore_eos && i < j->g->config.n_eos; i++)
        if (j->g->config.eos[i] == id)
            return true;
    return false;
}

static bool is_stop(const att_generate_job *j, int32_t id)
{
    for (int64_t i = 0; i < j->o.n_stop; i++)
        if (j->stop_token[i] == id)
            return true;
    return false;
}

static att_generation_end end_of(const att_generate_job *j, const att_generate_sequence *s, int32_t id)
{
    if (is_eos(j, id))
        return ATT_GENERATION_EOS;
    if (is_stop(j, id))
        return ATT_GENERATION_STOP;
    if (s->count < s->limit)
        return 0;
    return s->limit < j->g->info.max_positions ? ATT_GENERATION_LENGTH : ATT_GENERATION_CONTEXT;
}

/* The next of the chosen tokens becomes one of the sequence. */
static att_status accept(const att_generate_job *j, att_generate_sequence *s)
{
    const int32_t id = s->ids[s->count++];
    s->end = end_of(j, s, id);
    const bool has_text = s->end != ATT_GENERATION_EOS && s->end != ATT_GENERATION_STOP;
    const att_status e = att_text_stream_add(&s->stream, has_text ? id : -1, s->end != 0);
    if (e)
        return e;
    if (s->stream.stopped)
        s->end = ATT_GENERATION_STOP;
    const att_generated_token token = {
        .size = sizeof token,
        .sequence = s->number,
        .position = s->count - 1,
        .id = id,
        .log_probability = s->log_probability ? s->log_probability[s->count - 1 - s->prompt] : NAN,
        .text = s->stream.text.data ? s->stream.text.data + s->stream.sent : "", /* no token had text yet */
        .bytes = s->stream.ready - s->stream.sent,
        .last = s->end != 0,
    };
    s->stream.sent = s->stream.ready; /* without a callback, too: what was searched for stop strings is not again */
    if (j->o.token && !j->o.token(j->o.user, &token) && !s->end)
        s->end = ATT_GENERATION_CALLBACK;
    return ATT_OK;
}

/* ---- a pass */

/* Chooses tokens of a sequence: one, and one more for each proposal that is the token chosen. False: logits that are
 * not finite, at position count + chosen. */
static bool choose(const att_generate_job *j, att_generate_sequence *s, att_sampler_scratch *scratch)
{
    const float *logits = (const float *)j->logits.data + s->first_row * j->sampler.vocabulary;
    for (s->chosen = 0;; logits += j->sampler.vocabulary) {
        const int64_t at = s->count + s->chosen;
        const int32_t proposed = s->ids[at];
        float log_probability;
        const int32_t id = att_sampler_choose(&j->sampler, logits,
                                              &(att_sampler_position){j->o.first_sequence + s->number, at, s->seen},
                                              scratch, &log_probability);
        if (id < 0)
            return false;
        s->ids[at] = id;
        if (s->log_probability)
            s->log_probability[at - s->prompt] = log_probability;
        if (s->seen)
            s->seen[id / 64] |= UINT64_C(1) << id % 64;
        if (s->chosen++ == s->proposed || id != proposed)
            return true;
    }
}

static void choose_task(void *arg, int task)
{
    att_generate_job *j = arg;
    j->finite[task] = true;
    for (int64_t i = task; i < j->n; i += j->tasks)
        if (!j->s[i].end && !choose(j, &j->s[i], &j->scratch[task]))
            j->finite[task] = false;
}

static att_status choose_all(att_generate_job *j)
{
    att_parallel_for(j->ctx, j->tasks, choose_task, j);
    for (int task = 0; task < j->tasks; task++)
        if (!j->finite[task])
            return att_fail(j->ctx, ATT_ERR_ARGUMENT,
                            "att_generate: the model's logits are not finite: the weights are damaged, or too large");
    return ATT_OK;
}

/* Proposes tokens, and writes the tokens of a pass and where they begin. */
static void fill_pass(att_generate_job *j, bool first, int32_t *ids, int64_t *offsets)
{
    offsets[0] = 0;
    for (int64_t i = 0; i < j->n; i++) {
        att_generate_sequence *s = &j->s[i];
        const int64_t room = s->limit - s->count - 1;
        s->proposed = first || s->end ? 0 : att_lookup(s->ids, s->count, att_min(j->o.lookup, room), s->ids + s->count);
        const int64_t count = s->end ? 0 : s->count + s->proposed - s->done;
        memcpy(ids + offsets[i], s->ids + s->done, (size_t)count * sizeof *ids);
        s->first_row = first ? i : offsets[i];
        offsets[i + 1] = offsets[i] + count;
    }
}

static att_status compute_pass(att_generate_job *j, bool first, int64_t tokens)
{
    int32_t *ids = att_alloc(j->ctx, (size_t)tokens, sizeof *ids);
    int64_t *offsets = att_alloc(j->ctx, (size_t)j->n + 1, sizeof *offsets);
    att_status e = ids && offsets ? ATT_OK : ATT_ERR_MEMORY;
    if (!e) {
        fill_pass(j, first, ids, offsets);
        att_tape_reset(j->tape);
        e = att_var_value(j->tape, att_language_model_apply(j->tape, j->g->model, ids, offsets, j->n, j->state, first),
                          &j->logits);
    }
    att_free(j->ctx, offsets);
    att_free(j->ctx, ids);
    return e;
}

/* The tokens of each sequence, and what the state has beyond them is removed. */
static att_status accept_all(att_generate_job *j)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < j->n; i++) {
        att_generate_sequence *s = &j->s[i];
        if (s->end)
            continue;
        s->done = s->count + s->proposed;
        for (int64_t k = 0; !e && k < s->chosen && !s->end; k++)
            e = accept(j, s);
        if (s->done > s->count - 1) {
            s->done = s->count - 1;
            e = e ? e : att_language_state_truncate(j->state, i, s->done);
        }
    }
    return e;
}

/* Sequences that ended leave the state, unless it is the caller's. */
static att_status remove_ended(att_generate_job *j, int64_t *from)
{
    int64_t n = 0;
    for (int64_t i = 0; i < j->n; i++)
        if (!j->s[i].end)
            from[n++] = i;
    if (n == j->n || n == 0 || j->o.state)
        return ATT_OK;
    for (int64_t i = 0; i < n; i++) {
        const att_generate_sequence s = j->s[i];
        j->s[i] = j->s[from[i]];
        j->s[from[i]] = s;
    }
    j->n = n;
    return att_language_state_select(j->state, n, from);
}

/* Tokens of the next pass, at most; 0: all sequences have ended. */
static int64_t pass_tokens(const att_generate_job *j)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < j->n; i++)
        tokens += j->s[i].end ? 0 : j->s[i].count - j->s[i].done + j->o.lookup;
    return tokens;
}

static att_status run_group(att_generate_job *j)
{
    att_status e = ATT_OK;
    int64_t tokens, *from = att_alloc(j->ctx, (size_t)j->n, sizeof *from);
    if (!from)
        return ATT_ERR_MEMORY;
    for (bool first = true; !e && (tokens = pass_tokens(j)) > 0; first = false) {
        e = att_cancelled(j->ctx) ? att_fail(j->ctx, ATT_ERR_CANCELLED, "att_generate was cancelled") : ATT_OK;
        e = e ? e : compute_pass(j, first, tokens);
        e = e ? e : choose_all(j);
        e = e ? e : accept_all(j);
        e = e ? e : remove_ended(j, from);
    }
    for (int64_t i = 0; e && j->o.state && i < j->n; i++)
        att_language_state_truncate(j->state, i, j->s[i].done);
    att_free(j->ctx, from);
    return e;
}

/* ---- a group of prompts */

static att_status begin_sequence(const att_generate_job *j, int64_t number, att_generate_sequence *s)
{
    const int32_t *ids = j->ids + j->offsets[number];
    const int64_t prompt = j->offsets[number + 1] - j->offsets[number], room = j->g->info.max_positions - prompt;
    const int64_t limit = j->o.max_tokens ? att_min(j->o.max_tokens, room) : room;
    *s = (att_generate_sequence){.number = number, .prompt = prompt, .count = prompt, .limit = prompt + limit};
    s->done = j->o.state ? att_language_state_length(j->o.state, number) : 0;
    s->ids = att_calloc(j->ctx, (size_t)(prompt + limit + j->o.lookup + 1), sizeof *s->ids);
    if (!s->ids)
        return ATT_ERR_MEMORY;
    memcpy(s->ids, ids, (size_t)prompt * sizeof *ids);
    att_text_stream_begin(&s->stream, j->ctx, j->g->tokenizer, ids, prompt);
    s->stream.stop = j->o.stop;
    s->stream.n_stop = j->o.n_stop;
    if (j->o.log_probabilities) {
        s->log_probability = att_alloc(j->ctx, (size_t)limit + 1, sizeof(float));
        if (!s->log_probability)
            return ATT_ERR_MEMORY;
    }
    if (j->sampler.s.repetition_penalty == 1)
        return ATT_OK;
    s->seen = att_calloc(j->ctx, (size_t)j->sampler.vocabulary / 64 + 1, sizeof *s->seen);
    for (int64_t i = 0; s->seen && i < prompt; i++)
        s->seen[ids[i] / 64] |= UINT64_C(1) << ids[i] % 64;
    return s->seen ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status finish_sequence(const att_generate_job *j, att_generate_sequence *s, att_generated *out)
{
    const int64_t count = s->count - s->prompt;
    att_ctx *ctx = j->ctx;
    out->end = s->end ? s->end : ATT_GENERATION_CANCELLED;
    out->tokens = (att_tokens){.ids = att_alloc(ctx, (size_t)count + 1, sizeof *out->tokens.ids), .count = count};
    out->text = (att_text){.text = att_alloc(ctx, s->stream.text.count + 1, 1), .bytes = s->stream.text.count};
    if (!out->tokens.ids || !out->text.text)
        return ATT_ERR_MEMORY;
    memcpy(out->tokens.ids, s->ids + s->prompt, (size_t)count * sizeof *s->ids);
    if (s->stream.text.count)
        memcpy(out->text.text, s->stream.text.data, s->stream.text.count);
    out->text.text[out->text.bytes] = 0;
    out->log_probabilities = s->log_probability;
    s->log_probability = NULL;
    return ATT_OK;
}

static void free_sequence(const att_generate_job *j, att_generate_sequence *s)
{
    att_free(j->ctx, s->ids);
    att_free(j->ctx, s->seen);
    att_free(j->ctx, s->log_probability);
    att_text_stream_free(&s->stream);
}

att_status att_generate_group(att_generate_job *j, int64_t first, int64_t last)
{
    const int64_t n = last - first;
    att_status e = ATT_OK;
    j->n = n;
    j->s = att_calloc(j->ctx, (size_t)n, sizeof *j->s);
    if (!j->s)
        return ATT_ERR_MEMORY;
    j->state = j->o.state;
    if (!j->state)
        e = att_language_state_new(j->g->model, n, ATT_F32, &j->state);
    for (int64_t i = 0; !e && i < n; i++)
        e = begin_sequence(j, first + i, &j->s[i]);
    e = e ? e : run_group(j);
    for (int64_t i = 0; (!e || e == ATT_ERR_CANCELLED) && i < n; i++) {
        const att_status s = finish_sequence(j, &j->s[i], &j->out[j->s[i].number]);
        e = s ? s : e;
    }
    for (int64_t i = 0; i < n; i++)
        free_sequence(j, &j->s[i]);
    if (!j->o.state)
        att_language_state_free(j->state);
    att_free(j->ctx, j->s);
    return e;
}
