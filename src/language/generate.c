/* Continues prompts, several at once.
 *
 * A pass computes the tokens of each sequence that the state does not have yet: at first the prompt, then the last
 * token and, after it, tokens that lookup proposes. The logits after each of them give a token; as long as this is the
 * proposed one, the next logits are valid, too. Since a random token depends on nothing but its logits and its
 * position, the text is the same with and without proposals. */
#include "util/util.h"
#include "stack/language_model.h"
#include "language/sampling.h"
#include "language/text_generator.h"
#include "language/text_stream.h"

#include <math.h>
#include <string.h>

enum {
    GROUP_ROWS = 64,       /* prompts at a time: the weights are read once for all */
    GROUP_TOKENS = 8192,   /* of their prompts, which are one pass */
    GROUP_BYTES = 1 << 30, /* of their states, about */
    USUAL_TOKENS = 256,    /* of a text, for GROUP_BYTES where options do not say it */
    MAX_LOOKUP = 64,
};

typedef struct sequence {
    int64_t number;         /* of the prompt */
    int32_t *ids;           /* prompt, generated tokens, room for max_lookup + 1 more */
    float *log_probability; /* of ids beyond the prompt; or NULL */
    int64_t prompt, count;  /* tokens: of the prompt, now */
    int64_t limit;          /* of count */
    int64_t done;           /* tokens that the state has */
    int64_t proposed;       /* tokens beyond count in this pass */
    int64_t chosen;         /* tokens beyond count after this pass */
    int64_t first_row;      /* of its logits in this pass */
    uint64_t *seen;         /* for the repetition penalty; or NULL */
    att_text_stream stream;
    att_generation_end end; /* 0: it continues */
} sequence;

typedef struct generate_job {
    const att_text_generator *g;
    att_ctx *ctx;
    att_generate_options o;
    att_sampler sampler;
    int32_t *stop_token; /* [n_stop]: the special token of this name; -1 */
    const int32_t *ids;  /* prompts */
    const int64_t *offsets;
    att_generated *out;
    /* of a group */
    att_language_state *state;
    sequence *s; /* [n]: that of row i in the state */
    int64_t n;
    att_tape *tape;
    att_tensor logits;
    int tasks;
    att_sampler_scratch *scratch; /* [tasks] */
    bool *finite;                 /* [tasks] */
} generate_job;

/* ---- a token that was chosen */

static bool is_eos(const generate_job *j, int32_t id)
{
    for (int64_t i = 0; !j->o.ignore_eos && i < j->g->config.n_eos; i++)
        if (j->g->config.eos[i] == id)
            return true;
    return false;
}

static bool is_stop(const generate_job *j, int32_t id)
{
    for (int64_t i = 0; i < j->o.n_stop; i++)
        if (j->stop_token[i] == id)
            return true;
    return false;
}

static att_generation_end end_of(const generate_job *j, const sequence *s, int32_t id)
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
static att_status accept(const generate_job *j, sequence *s)
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
static bool choose(const generate_job *j, sequence *s, att_sampler_scratch *scratch)
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
    generate_job *j = arg;
    j->finite[task] = true;
    for (int64_t i = task; i < j->n; i += j->tasks)
        if (!j->s[i].end && !choose(j, &j->s[i], &j->scratch[task]))
            j->finite[task] = false;
}

static att_status choose_all(generate_job *j)
{
    att_parallel_for(j->ctx, j->tasks, choose_task, j);
    for (int task = 0; task < j->tasks; task++)
        if (!j->finite[task])
            return att_fail(j->ctx, ATT_ERR_ARGUMENT,
                            "att_generate: the model's logits are not finite: the weights are damaged, or too large");
    return ATT_OK;
}

/* Proposes tokens, and writes the tokens of a pass and where they begin. */
static void fill_pass(generate_job *j, bool first, int32_t *ids, int64_t *offsets)
{
    offsets[0] = 0;
    for (int64_t i = 0; i < j->n; i++) {
        sequence *s = &j->s[i];
        const int64_t room = s->limit - s->count - 1;
        s->proposed = first || s->end ? 0 : att_lookup(s->ids, s->count, att_min(j->o.lookup, room), s->ids + s->count);
        const int64_t count = s->end ? 0 : s->count + s->proposed - s->done;
        memcpy(ids + offsets[i], s->ids + s->done, (size_t)count * sizeof *ids);
        s->first_row = first ? i : offsets[i];
        offsets[i + 1] = offsets[i] + count;
    }
}

static att_status compute_pass(generate_job *j, bool first, int64_t tokens)
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
static att_status accept_all(generate_job *j)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < j->n; i++) {
        sequence *s = &j->s[i];
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
static att_status remove_ended(generate_job *j, int64_t *from)
{
    int64_t n = 0;
    for (int64_t i = 0; i < j->n; i++)
        if (!j->s[i].end)
            from[n++] = i;
    if (n == j->n || n == 0 || j->o.state)
        return ATT_OK;
    for (int64_t i = 0; i < n; i++) {
        const sequence s = j->s[i];
        j->s[i] = j->s[from[i]];
        j->s[from[i]] = s;
    }
    j->n = n;
    return att_language_state_select(j->state, n, from);
}

/* Tokens of the next pass, at most; 0: all sequences have ended. */
static int64_t pass_tokens(const generate_job *j)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < j->n; i++)
        tokens += j->s[i].end ? 0 : j->s[i].count - j->s[i].done + j->o.lookup;
    return tokens;
}

static att_status run_group(generate_job *j)
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

static att_status begin_sequence(const generate_job *j, int64_t number, sequence *s)
{
    const int32_t *ids = j->ids + j->offsets[number];
    const int64_t prompt = j->offsets[number + 1] - j->offsets[number], room = j->g->info.max_positions - prompt;
    const int64_t limit = j->o.max_tokens ? att_min(j->o.max_tokens, room) : room;
    *s = (sequence){.number = number, .prompt = prompt, .count = prompt, .limit = prompt + limit};
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

static att_status finish_sequence(const generate_job *j, sequence *s, att_generated *out)
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

static void free_sequence(const generate_job *j, sequence *s)
{
    att_free(j->ctx, s->ids);
    att_free(j->ctx, s->seen);
    att_free(j->ctx, s->log_probability);
    att_text_stream_free(&s->stream);
}

/* Prompts [first, last) */
static att_status generate_group(generate_job *j, int64_t first, int64_t last)
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

/* The end of the group that begins with prompt `first` */
static int64_t group_end(const generate_job *j, int64_t first, int64_t n)
{
    const att_language_model_info *i = &j->g->info;
    const double bytes_of_token = 8.0 * (double)(i->layers * i->kv_heads * i->head_dim);
    const int64_t more = j->o.max_tokens ? att_min(j->o.max_tokens, i->max_positions) : USUAL_TOKENS;
    double bytes = 0;
    int64_t last = first;
    for (; last < n && last - first < GROUP_ROWS; last++) {
        const int64_t prompt = j->offsets[last + 1] - j->offsets[last];
        bytes += (double)(prompt + more) * bytes_of_token;
        if (last > first && (bytes > GROUP_BYTES || j->offsets[last + 1] - j->offsets[first] > GROUP_TOKENS))
            break;
    }
    return last;
}

/* ---- the call */

static att_status check_prompts(const generate_job *j, int64_t n)
{
    const int64_t positions = j->g->info.max_positions;
    if (j->offsets[0] != 0)
        return att_fail(j->ctx, ATT_ERR_ARGUMENT, "att_generate: offsets[0] is %lld, not 0", (long long)j->offsets[0]);
    for (int64_t i = 0; i < n; i++) {
        const int64_t count = j->offsets[i + 1] - j->offsets[i];
        if (count <= 0)
            return att_fail(j->ctx, ATT_ERR_ARGUMENT,
                            count ? "att_generate: offsets descend after prompt %lld"
                                  : "att_generate: prompt %lld has no tokens, and the model continues at least one",
                            (long long)i);
        if (count >= positions)
            return att_fail(j->ctx, ATT_ERR_ARGUMENT,
                            "att_generate: prompt %lld has %lld tokens, but the model has %lld positions for prompt "
                            "and text",
                            (long long)i, (long long)count, (long long)positions);
    }
    for (int64_t i = 0; i < j->offsets[n]; i++)
        if (j->ids[i] < 0 || j->ids[i] >= j->g->info.vocabulary)
            return att_fail(j->ctx, ATT_ERR_ARGUMENT, "att_generate: ids[%lld] is %d, but the model's are 0 to %lld",
                            (long long)i, (int)j->ids[i], (long long)j->g->info.vocabulary - 1);
    return ATT_OK;
}

static att_status check_state(const generate_job *j, int64_t n)
{
    const att_language_state *s = j->o.state;
    if (!s)
        return ATT_OK;
    if (!att_language_state_fits(s, j->g->model))
        return att_fail(j->ctx, ATT_ERR_ARGUMENT, "att_generate: options.state is one of another model");
    if (att_language_state_sequences(s) != n)
        return att_fail(j->ctx, ATT_ERR_ARGUMENT, "att_generate: n is %lld, but options.state has %lld sequences",
                        (long long)n, (long long)att_language_state_sequences(s));
    if (j->o.lookup > 0 && !att_language_state_exact(s))
        return att_fail(j->ctx, ATT_ERR_UNSUPPORTED,
                        "att_generate: options.lookup is %lld, but options.state is not of f32: the text could differ",
                        (long long)j->o.lookup);
    for (int64_t i = 0; i < n; i++) {
        const int64_t has = att_language_state_length(s, i), count = j->offsets[i + 1] - j->offsets[i];
        if (has >= count)
            return att_fail(j->ctx, ATT_ERR_ARGUMENT,
                            "att_generate: options.state has %lld tokens of prompt %lld, which has %lld: at least one "
                            "has to be new",
                            (long long)has, (long long)i, (long long)count);
    }
    return ATT_OK;
}

static att_status check_numbers(const generate_job *j, int64_t n)
{
    const struct {
        const char *name;
        int64_t value, max;
    } limits[] = {{"n", n, INT32_MAX},
                  {"options.first_sequence", j->o.first_sequence, INT64_MAX - INT32_MAX},
                  {"options.max_tokens", j->o.max_tokens, INT64_MAX},
                  {"options.n_stop", j->o.n_stop, INT32_MAX},
                  {"options.lookup", j->o.lookup, MAX_LOOKUP}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].value < 0 || limits[i].value > limits[i].max)
            return att_fail(j->ctx, ATT_ERR_ARGUMENT, "att_generate: %s is %lld, not in [0, %lld]", limits[i].name,
                            (long long)limits[i].value, (long long)limits[i].max);
    return ATT_OK;
}

/* Checks the stop strings, and finds those that are special tokens, which have no text. */
static att_status read_stops(generate_job *j)
{
    att_status e = ATT_OK;
    if (j->o.n_stop > 0 && att_require("att_generate", ATT_NAMED({"options.stop", j->o.stop})))
        return ATT_ERR_ARGUMENT;
    j->stop_token = att_alloc(j->ctx, (size_t)j->o.n_stop + 1, sizeof *j->stop_token);
    if (!j->stop_token)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < j->o.n_stop; i++) {
        const char *stop = j->o.stop[i];
        if (!stop || !*stop)
            return att_fail(j->ctx, ATT_ERR_ARGUMENT, "att_generate: options.stop[%lld] is %s", (long long)i,
                            stop ? "empty" : "NULL");
        att_tokens tokens = {0};
        att_text text = {0};
        e = att_encode(j->g->tokenizer, stop, strlen(stop), ATT_OPTIONS(att_encode_options, .no_special = true),
                       &tokens);
        if (!e && tokens.count == 1)
            e = att_detokenize(j->g->tokenizer, tokens.ids, 1, &text);
        j->stop_token[i] = !e && tokens.count == 1 && text.bytes == 0 ? tokens.ids[0] : -1;
        att_text_free(j->g->tokenizer, &text);
        att_tokens_free(j->g->tokenizer, &tokens);
    }
    return e;
}

static att_status make_scratch(generate_job *j, int64_t n)
{
    const size_t vocabulary = (size_t)j->sampler.vocabulary;
    j->tasks = (int)att_min(att_threads(j->ctx), att_min(n, GROUP_ROWS));
    j->scratch = att_calloc(j->ctx, (size_t)j->tasks, sizeof *j->scratch);
    j->finite = att_alloc(j->ctx, (size_t)j->tasks, sizeof *j->finite);
    bool all = j->scratch && j->finite;
    for (int i = 0; all && i < j->tasks; i++) {
        j->scratch[i].row = att_alloc(j->ctx, vocabulary, sizeof(float));
        j->scratch[i].weight = att_alloc(j->ctx, vocabulary, sizeof(float));
        j->scratch[i].order = att_alloc(j->ctx, vocabulary, sizeof(att_candidate));
        all = j->scratch[i].row && j->scratch[i].weight && j->scratch[i].order;
    }
    return all ? att_tape_new(j->ctx, NULL, &j->tape) : ATT_ERR_MEMORY;
}

static void free_job(generate_job *j)
{
    for (int i = 0; j->scratch && i < j->tasks; i++) {
        att_free(j->ctx, j->scratch[i].row);
        att_free(j->ctx, j->scratch[i].weight);
        att_free(j->ctx, j->scratch[i].order);
    }
    att_free(j->ctx, j->scratch);
    att_free(j->ctx, j->finite);
    att_free(j->ctx, j->stop_token);
    att_tape_free(j->tape);
}

static att_status prepare(generate_job *j, int64_t n)
{
    att_status e = att_options_read(&j->sampler.s, sizeof j->sampler.s, j->o.sampling, "att_sampling");
    e = e ? e : att_sampling_complete(j->ctx, "att_generate: options.sampling", &j->sampler.s);
    e = e ? e : check_numbers(j, n);
    e = e ? e : check_prompts(j, n);
    e = e ? e : check_state(j, n);
    e = e ? e : read_stops(j);
    return e ? e : make_scratch(j, n);
}

att_status att_generate(const att_text_generator *g, int64_t n, const int32_t *ids, const int64_t *offsets,
                        const att_generate_options *options, att_generated *out)
{
    if (att_require(__func__, ATT_NAMED({"g", g}, {"ids", ids}, {"offsets", offsets}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    generate_job j = {.g = g, .ctx = g->ctx, .ids = ids, .offsets = offsets, .out = out};
    att_status e = att_options_read(&j.o, sizeof j.o, options, "att_generate_options");
    if (e || n == 0)
        return e;
    for (int64_t i = 0; i < n; i++)
        out[i] = (att_generated){0};
    j.sampler =
        (att_sampler){.seed = j.o.seed, .vocabulary = g->info.vocabulary, .log_probabilities = j.o.log_probabilities};
    e = prepare(&j, n);
    for (int64_t first = 0, last; !e && first < n; first = last) {
        last = j.o.state ? n : group_end(&j, first, n);
        e = generate_group(&j, first, last);
    }
    for (int64_t i = 0; e && i < n; i++)
        if (e != ATT_ERR_CANCELLED)
            att_generated_free(g, &out[i]);
        else if (!out[i].end)
            out[i].end = ATT_GENERATION_CANCELLED;
    free_job(&j);
    return e;
}

void att_generated_free(const att_text_generator *g, att_generated *generated)
{
    if (!g || !generated)
        return;
    att_text_free(g->tokenizer, &generated->text);
    att_tokens_free(g->tokenizer, &generated->tokens);
    att_free(g->ctx, generated->log_probabilities);
    *generated = (att_generated){0};
}
