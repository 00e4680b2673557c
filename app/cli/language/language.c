#include "language.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static int describe(cli_model *base)
{
    cli_language *m = (cli_language *)base;
    m->generator = att_any_model_as(base->opened, ATT_SUBJECT_LANGUAGE);
    m->info = (att_language_model_info){.size = sizeof m->info};
    return cli_status(base->ctx, att_language_model_describe(att_text_generator_model(m->generator), &m->info));
}

const cli_model_kind cli_language_kind = {.subject = ATT_SUBJECT_LANGUAGE, .describe = describe};

/* Reads "ID=X". */
static int read_bias(const cli_language *m, const char *text, att_logit_bias *out)
{
    char *equals, *end;
    const long long id = strtoll(text, &equals, 10);
    const double bias = *equals == '=' ? strtod(equals + 1, &end) : NAN;
    if (*text < '0' || *text > '9' || *equals != '=' || end == equals + 1 || *end)
        return cli_misuse("--logit-bias: \"%s\" is not ID=X, such as 42=-1.5", text);
    if (bias != -INFINITY && !(bias >= -100 && bias <= 100))
        return cli_misuse("--logit-bias: %g in \"%s\" is neither a number from -100 to 100 nor -inf", bias, text);
    if (id >= m->info.vocabulary)
        return cli_misuse("--logit-bias: \"%s\" is for token %lld, but the model's are 0 to %lld", text, id,
                          (long long)m->info.vocabulary - 1);
    *out = (att_logit_bias){(int32_t)id, (float)bias};
    return CLI_DONE;
}

static int read_biases(const cli_language *m, cli_sampling *s, att_sampling *out)
{
    int code = CLI_DONE;
    for (int i = 0; !code && i < s->bias_text.n; i++)
        code = read_bias(m, s->bias_text.text[i], &s->bias[i]);
    out->bias = s->bias;
    out->n_bias = s->bias_text.n;
    return code;
}

int cli_sampling_read(const cli_language *m, cli_sampling *s, bool greedy, att_sampling *out)
{
    *out = (att_sampling){.size = sizeof *out};
    if (s->temperature > 0 && s->temperature < 1e-6)
        return cli_misuse("--temperature: \"%g\" is neither 0 nor a number from 1e-6 to 1e6", s->temperature);
    int code = cli_status(m->base.ctx, att_text_generator_sampling(m->generator, out));
    if (!code)
        code = read_biases(m, s, out);
    if (code)
        return code;
    const bool asked = s->sample || s->temperature > 0 || s->top_k >= 0 || s->top_p >= 0 || s->min_p >= 0;
    if (greedy) /* without the folder's settings for sampling */
        out->repetition_penalty = asked ? out->repetition_penalty : 1;
    out->sample = (asked || (!greedy && out->sample)) && s->temperature != 0;
    out->temperature = (float)(s->temperature > 0 ? s->temperature : (double)out->temperature);
    out->top_k = s->top_k >= 0 ? s->top_k : out->top_k;
    out->top_p = (float)(s->top_p >= 0 ? s->top_p : (double)out->top_p);
    out->min_p = (float)(s->min_p >= 0 ? s->min_p : (double)out->min_p);
    if (s->repetition_penalty >= 0)
        out->repetition_penalty = (float)s->repetition_penalty;
    out->presence_penalty = (float)s->presence_penalty;
    out->frequency_penalty = (float)s->frequency_penalty;
    if (!out->sample && s->seed >= 0)
        return cli_misuse("--seed %lld is for random tokens: --sample or --temperature is needed", (long long)s->seed);
    uint32_t seed = 0;
    if (out->sample && s->seed < 0)
        s->seed = getrandom(&seed, sizeof seed, 0) == sizeof seed ? seed : 0;
    return CLI_DONE;
}

void cli_sampling_note(const att_sampling *s, int64_t seed)
{
    char penalties[80] = "";
    if (s->presence_penalty != 0 || s->frequency_penalty != 0)
        snprintf(penalties, sizeof penalties, " --presence-penalty %g --frequency-penalty %g",
                 (double)s->presence_penalty, (double)s->frequency_penalty);
    if (s->sample)
        cli_note("sampling with --temperature %g --top-k %lld --top-p %g --min-p %g --repetition-penalty %g%s%s --seed "
                 "%lld",
                 (double)s->temperature, (long long)s->top_k, (double)s->top_p, (double)s->min_p,
                 (double)s->repetition_penalty, penalties, s->n_bias ? " --logit-bias as given" : "", (long long)seed);
}

int cli_prompt_check(const cli_language *m, const char *what, int64_t tokens)
{
    const int64_t positions = m->info.max_positions;
    if (tokens == 0)
        return cli_fail("%s is empty, and this model continues at least one token", what);
    if (tokens >= positions)
        return cli_fail("%s has %lld tokens but the model has %lld positions, for prompt and text", what,
                        (long long)tokens, (long long)positions);
    return CLI_DONE;
}

const char *cli_generation_end(att_generation_end end)
{
    static const char *const names[] = {"", "eos", "stop", "length", "context", "interrupted", "interrupted"};
    return names[end];
}

int cli_top_check(const cli_language *m, int64_t top)
{
    if (top > m->info.vocabulary)
        return cli_misuse("--top-logprobs %lld: the model has %lld tokens", (long long)top,
                          (long long)m->info.vocabulary);
    return CLI_DONE;
}

int cli_stop_check(const cli_texts *stop)
{
    for (int i = 0; i < stop->n; i++)
        if (!*stop->text[i])
            return cli_misuse("--stop is empty");
    return CLI_DONE;
}

int cli_lookup_check(const cli_language *m, int64_t lookup)
{
    if (lookup && lookup >= m->info.max_positions)
        return cli_misuse("--lookup %lld: the model has %lld positions", (long long)lookup,
                          (long long)m->info.max_positions);
    return CLI_DONE;
}

static void write_one(cli_json *j, const cli_language *m, int32_t id, float log_probability)
{
    const char *token = att_tokenizer_token(att_text_generator_tokenizer(m->generator), id);
    cli_json_integer(j, "id", id);
    cli_json_string(j, "token", token ? token : "");
    cli_json_float(j, "log_probability", log_probability);
}

void cli_token_write(cli_json *j, const cli_language *m, const cli_scored_tokens *t, int64_t at)
{
    write_one(j, m, t->ids[at], t->log_probabilities[at]);
    if (!t->top_ids)
        return;
    cli_json_array(j, "top_logprobs");
    for (int64_t i = at * t->top; i < (at + 1) * t->top && t->top_ids[i] >= 0; i++) {
        cli_json_object(j, NULL);
        write_one(j, m, t->top_ids[i], t->top_log_probabilities[i]);
        cli_json_end(j);
    }
    cli_json_end(j);
}

void cli_tokens_write(cli_json *j, const char *key, const cli_language *m, const cli_scored_tokens *t)
{
    cli_json_array(j, key);
    for (int64_t i = 0; i < t->n; i++) {
        cli_json_object(j, NULL);
        cli_token_write(j, m, t, i);
        cli_json_end(j);
    }
    cli_json_end(j);
}
