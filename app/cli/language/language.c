#include "language.h"

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

int cli_sampling_read(const cli_language *m, cli_sampling *s, bool greedy, att_sampling *out)
{
    *out = (att_sampling){.size = sizeof *out};
    if (s->temperature > 0 && s->temperature < 1e-6)
        return cli_misuse("--temperature: \"%g\" is neither 0 nor a number from 1e-6 to 1e6", s->temperature);
    const int code = cli_status(m->base.ctx, att_text_generator_sampling(m->generator, out));
    if (code)
        return code;
    const bool asked = s->sample || s->temperature > 0 || s->top_k >= 0 || s->top_p >= 0 || s->min_p >= 0;
    if (greedy) /* without what the folder states for sampling */
        out->repetition_penalty = asked ? out->repetition_penalty : 1;
    out->sample = (asked || (!greedy && out->sample)) && s->temperature != 0;
    out->temperature = (float)(s->temperature > 0 ? s->temperature : (double)out->temperature);
    out->top_k = s->top_k >= 0 ? s->top_k : out->top_k;
    out->top_p = (float)(s->top_p >= 0 ? s->top_p : (double)out->top_p);
    out->min_p = (float)(s->min_p >= 0 ? s->min_p : (double)out->min_p);
    if (s->repetition_penalty >= 0)
        out->repetition_penalty = (float)s->repetition_penalty;
    if (!out->sample && s->seed >= 0)
        return cli_misuse("--seed %lld is for random tokens: --sample or --temperature is needed", (long long)s->seed);
    uint32_t seed = 0;
    if (out->sample && s->seed < 0)
        s->seed = getrandom(&seed, sizeof seed, 0) == sizeof seed ? seed : 0;
    return CLI_DONE;
}

void cli_sampling_note(const att_sampling *s, int64_t seed)
{
    if (s->sample)
        cli_note("sampling with --temperature %g --top-k %lld --top-p %g --min-p %g --repetition-penalty %g --seed "
                 "%lld",
                 (double)s->temperature, (long long)s->top_k, (double)s->top_p, (double)s->min_p,
                 (double)s->repetition_penalty, (long long)seed);
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
