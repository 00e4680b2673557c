/* Continues prompts: checks, and groups of as many prompts as fit into memory. */
#include "language/generate.h"
#include "util/util.h"

#include <string.h>

enum {
    GROUP_ROWS = 64,       /* prompts at a time: the weights are read once for all */
    GROUP_TOKENS = 8192,   /* of their prompts, which are one pass */
    GROUP_BYTES = 1 << 30, /* of their states, about */
    USUAL_TOKENS = 256,    /* of a text, for GROUP_BYTES where options do not state it */
    MAX_LOOKUP = 64,
};

/* The end of the group that begins with prompt `first` */
static int64_t group_end(const att_generate_job *j, int64_t first, int64_t n)
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

static att_status check_prompts(const att_generate_job *j, int64_t n)
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

static att_status check_state(const att_generate_job *j, int64_t n)
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

static att_status check_numbers(const att_generate_job *j, int64_t n)
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
static att_status read_stops(att_generate_job *j)
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
        e = att_tokenize(j->g->tokenizer, stop, strlen(stop), ATT_OPTIONS(att_tokenize_options, .no_special = true),
                         &tokens);
        if (!e && tokens.count == 1)
            e = att_detokenize(j->g->tokenizer, tokens.ids, 1, &text);
        j->stop_token[i] = !e && tokens.count == 1 && text.bytes == 0 ? tokens.ids[0] : -1;
        att_text_free(j->ctx, &text);
        att_tokens_free(j->ctx, &tokens);
    }
    return e;
}

static att_status make_scratch(att_generate_job *j, int64_t n)
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

static void free_job(att_generate_job *j)
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

static att_status prepare(att_generate_job *j, int64_t n)
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
    att_generate_job j = {.g = g, .ctx = g->ctx, .ids = ids, .offsets = offsets, .out = out};
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
        e = att_generate_group(&j, first, last);
    }
    for (int64_t i = 0; e && i < n; i++)
        if (e != ATT_ERR_CANCELLED)
            att_generated_free(j.ctx, &out[i]);
        else if (!out[i].end)
            out[i].end = ATT_GENERATION_CANCELLED;
    free_job(&j);
    return e;
}

void att_generated_free(att_ctx *ctx, att_generated *generated)
{
    if (!ctx || !generated)
        return;
    att_text_free(ctx, &generated->text);
    att_tokens_free(ctx, &generated->tokens);
    att_free(ctx, generated->log_probabilities);
    *generated = (att_generated){0};
}
