/* Computes a step of a session, for all sequences together.
 *
 * A step computes the tokens of each sequence that the state does not have yet: a part of the prompt, or later the last
 * token and the tokens that lookup proposes after it. The logits after each of them give a token. As long as this is
 * the proposed one, the next logits are valid, too. The text is the same with and without proposals, because a random
 * token depends only on its logits and its position.
 *
 * A part of a prompt ends at a multiple of options.prompt_tokens, counted from the prompt's first token, or at its end.
 * Therefore other sequences have no effect on how it is split. */
#include "language/generation.h"
#include "util/util.h"

#include <string.h>

/* ---- what is computed */

static bool reads_prompt(const att_generation_sequence *q) { return !q->end && q->done < q->prompt; }

/* Selects the next part of a prompt. Returns false if the rest of the step has no room for it. */
static bool plan_prompt(const att_generation *s, att_generation_sequence *q, int64_t *left)
{
    const int64_t part = s->o.prompt_tokens, end = att_min(q->prompt, (q->done / part + 1) * part);
    if (end - q->done > *left)
        return false;
    q->added = end - q->done;
    q->wanted = q->o.prompt_log_probabilities ? q->added : end == q->prompt;
    *left -= q->added;
    return true;
}

/* Selects the parts of prompts in a step. Prompts take turns, so that a short one does not wait for all of a long one:
 * first that of sequence next_prompt and those after it, then those before it. The first one without room is the first
 * in the next step, so that none waits for ever. */
static void plan_prompts(att_generation *s)
{
    const int64_t begin = s->next_prompt;
    int64_t left = s->o.prompt_tokens, waiting = -1;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < s->n; i++) {
            att_generation_sequence *q = s->sequence[i];
            if ((q->number < begin) != pass || !reads_prompt(q))
                continue;
            if (plan_prompt(s, q, &left))
                s->next_prompt = q->number + 1;
            else if (waiting < 0)
                waiting = q->number;
        }
    if (waiting >= 0)
        s->next_prompt = waiting;
}

static void plan_step(att_generation *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        att_generation_sequence *q = s->sequence[i];
        q->added = q->wanted = q->proposed = q->chosen = 0;
        if (q->end || reads_prompt(q))
            continue;
        const int64_t room = att_min(q->o.lookup, q->limit - q->count - 1);
        q->proposed = att_lookup(q->ids, q->count, room, q->ids + q->count);
        q->added = q->count + q->proposed - q->done;
        q->wanted = 1 + q->proposed;
    }
    plan_prompts(s);
}

/* The tokens of all rows of the state, concatenated. */
typedef struct step_tokens {
    int32_t *ids; /* [offsets[rows]] */
    int64_t rows;
    int64_t *offsets; /* [rows + 1] */
    int64_t *last;    /* [rows]: the tokens of each row after which logits are wanted */
} step_tokens;

static att_status fill(att_generation *s, step_tokens *t)
{
    int64_t tokens = 0, first_row = 0;
    t->rows = att_language_state_sequences(s->state);
    t->offsets = att_calloc(s->ctx, (size_t)t->rows + 1, sizeof *t->offsets);
    t->last = att_calloc(s->ctx, (size_t)t->rows, sizeof *t->last);
    if (!t->offsets || !t->last)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < s->n; i++) {
        att_generation_sequence *q = s->sequence[i];
        if (q->row < 0)
            continue;
        t->offsets[q->row + 1] = q->added;
        t->last[q->row] = q->wanted;
        q->first_row = first_row; /* rows are ascending */
        first_row += q->wanted;
        tokens += q->added;
    }
    for (int64_t row = 0; row < t->rows; row++)
        t->offsets[row + 1] += t->offsets[row];
    t->ids = att_alloc(s->ctx, (size_t)tokens, sizeof *t->ids);
    for (int64_t i = 0; t->ids && i < s->n; i++) {
        const att_generation_sequence *q = s->sequence[i];
        if (q->added > 0)
            memcpy(t->ids + t->offsets[q->row], q->ids + q->done, (size_t)q->added * sizeof *t->ids);
    }
    return t->ids ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status apply(att_generation *s)
{
    step_tokens t = {0};
    att_status e = fill(s, &t);
    if (!e) {
        att_tape_reset(s->tape);
        e = att_var_value(s->tape,
                          att_language_model_rows(s->tape, s->g->model, t.ids, t.offsets, t.rows, s->state, t.last),
                          &s->logits);
    }
    att_free(s->ctx, t.ids);
    att_free(s->ctx, t.offsets);
    att_free(s->ctx, t.last);
    return e;
}

/* ---- what is chosen */

/* Writes the scores of the token at a position. Returns false if logits are not finite. */
static bool score(att_generation_sequence *q, const float *logits, int64_t at, att_sampler_scratch *scratch)
{
    const bool in_prompt = at < q->prompt;
    const att_token_scores *to = in_prompt ? &q->prompt_scores : &q->scores;
    return (!to->own && !to->ids) ||
           att_sampler_score(&q->sampler, logits, q->ids[at], scratch, to, in_prompt ? at : at - q->prompt);
}

/* Scores the tokens of the prompt whose logits are wanted. Then chooses tokens of a sequence: one, and one more for
 * each proposal that is equal to the chosen token. Returns false if logits are not finite. */
static bool choose(const att_generation *s, att_generation_sequence *q, att_sampler_scratch *scratch)
{
    const int64_t vocabulary = q->sampler.vocabulary, last = q->done + q->added;
    const float *logits = (const float *)s->logits.data + q->first_row * vocabulary;
    int64_t at = last - q->wanted + 1;
    for (; at <= last && at < q->prompt; at++, logits += vocabulary)
        if (!score(q, logits, at, scratch))
            return false;
    for (; at <= last; at++, logits += vocabulary) {
        const int32_t proposed = q->ids[at];
        const att_sampler_position position = {q->o.first_sequence, at, q->seen, q->ids + q->prompt, at - q->prompt};
        const int32_t id = att_sampler_choose(&q->sampler, logits, &position, scratch);
        if (id < 0)
            return false;
        q->ids[at] = id;
        if (!score(q, logits, at, scratch))
            return false;
        if (q->seen)
            q->seen[id / 64] |= UINT64_C(1) << id % 64;
        q->chosen++;
        if (id != proposed)
            break;
    }
    return true;
}

static void choose_task(void *arg, int task)
{
    att_generation *s = arg;
    s->finite[task] = true;
    for (int64_t i = task; i < s->n; i += s->tasks)
        if (s->sequence[i]->wanted > 0 && !choose(s, s->sequence[i], &s->scratch[task]))
            s->finite[task] = false;
}

static att_status choose_all(att_generation *s)
{
    att_parallel_for(s->ctx, s->tasks, choose_task, s);
    for (int task = 0; task < s->tasks; task++)
        if (!s->finite[task])
            return att_fail(s->ctx, ATT_ERR_ARGUMENT,
                            "generation: the model's logits are not finite: the weights are damaged, or too large");
    return ATT_OK;
}

/* Appends the chosen tokens of a sequence, and removes tokens beyond them from the state. */
static att_status accept(att_generation *s, att_generation_sequence *q)
{
    att_status e = ATT_OK;
    q->done += q->added;
    for (int64_t k = 0; !e && k < q->chosen && !q->end; k++)
        e = att_generation_sequence_accept(q);
    if (q->done > q->count - 1) {
        q->done = q->count - 1;
        att_language_state_truncate(s->state, q->row, q->done);
    }
    if (q->end)
        att_generation_release(s, q);
    return e;
}

static att_status accept_all(att_generation *s)
{
    att_status e = ATT_OK;
    s->calling = true;
    for (int64_t i = 0; !e && i < s->n; i++)
        if (s->sequence[i]->added > 0)
            e = accept(s, s->sequence[i]);
    s->calling = false;
    return e;
}

/* ---- all of it */

/* Restores the state after an error to the tokens that sequences had before. */
static void restore(att_generation *s)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->sequence[i]->row >= 0)
            att_language_state_truncate(s->state, s->sequence[i]->row, s->sequence[i]->done);
}

static att_status compute(att_generation *s)
{
    att_status e = att_generation_arrange(s);
    if (e) {
        s->failed = e;
        return e;
    }
    plan_step(s);
    e = apply(s);
    if (e == ATT_ERR_CANCELLED) {
        restore(s);
        return e;
    }
    for (int64_t i = 0; !e && i < s->n; i++)
        s->computed += s->sequence[i]->added;
    e = e ? e : choose_all(s);
    e = e ? e : accept_all(s);
    s->failed = e;
    if (e)
        restore(s);
    return e;
}

static int64_t count_active(const att_generation *s)
{
    int64_t active = 0;
    for (int64_t i = 0; i < s->n; i++)
        active += !s->sequence[i]->end;
    return active;
}

att_status att_generation_compute(att_generation *s, int64_t *active)
{
    att_status e = ATT_OK;
    *active = count_active(s);
    if (*active == 0)
        return ATT_OK;
    s->steps++;
    e = att_cancelled(s->ctx) ? att_fail(s->ctx, ATT_ERR_CANCELLED, "generation was cancelled") : compute(s);
    *active = count_active(s);
    return e;
}
