/* Texts that continue prompts, as OpenAI's. */
#include "routes.h"
#include "text_run.h"

#include <stdlib.h>

typedef struct completion_fields {
    serve_texts prompt;
    serve_text model;
    serve_sampling_fields sampling;
    int64_t logprobs;
    bool echo;
} completion_fields;

static const serve_field table[] = {
    {"prompt", SERVE_INPUT, offsetof(completion_fields, prompt), .required = true,
     .help = "text, list of texts, ids of tokens, or list of such lists"},
    SERVE_MODEL_FIELD(completion_fields, "language model"),
    {"max_tokens", SERVE_INTEGER, offsetof(completion_fields, sampling.max_tokens), .min = 1, .max = 1 << 30,
     .usual = 16, .help = "tokens of a text, at most"},
    SERVE_SAMPLING_FIELDS(completion_fields),
    {"logprobs", SERVE_INTEGER, offsetof(completion_fields, logprobs), .max = SERVE_TOP_LOGPROBS, .usual = -1,
     .help = "log probabilities of the tokens, and of this many most probable ones"},
    {"echo", SERVE_BOOL, offsetof(completion_fields, echo), .help = "begin the text with the prompt"},
    {"best_of", SERVE_REFUSED, .words = "1", .help = "ask for n texts, and choose by logprobs"},
    {"suffix", SERVE_REFUSED, .words = "\"\"", .help = "models continue a prompt, and fill no gap"},
    {0},
};

static bool tokenize(serve_call *c, const serve_model *m, const serve_texts *t, serve_prompts *out)
{
    for (int64_t i = 0; i < t->n; i++) {
        att_tokens tokens = {0};
        if (!t->ids && att_tokenize(m->tokenizer, t->text[i], t->bytes[i], NULL, &tokens)) {
            serve_refuse(c, 400, "prompt", "prompt: %s", att_error(m->ctx));
            return false;
        }
        const bool added = t->ids ? serve_prompts_add(out, t->ids + t->offsets[i], t->offsets[i + 1] - t->offsets[i])
                                  : serve_prompts_add(out, tokens.ids, tokens.count);
        att_tokens_free(m->ctx, &tokens);
        if (!added) {
            serve_refuse(c, 503, NULL, "out of memory");
            return false;
        }
    }
    return true;
}

/* Checks the ids of prompts that are given as such, and what does not go with others. */
static bool check(serve_call *c, const serve_model *m, const completion_fields *f)
{
    const serve_texts *t = &f->prompt;
    const int64_t size = m->info.language.vocabulary;
    for (int64_t i = 0; t->ids && i < t->offsets[t->n]; i++)
        if (t->ids[i] >= size) {
            serve_refuse(c, 400, "prompt", "prompt: has the token %d, but those of %s are 0 to %lld", (int)t->ids[i],
                         m->id, (long long)size - 1);
            return false;
        }
    if (f->echo && (t->ids || f->logprobs >= 0)) {
        serve_refuse(c, 400, "echo",
                     t->ids ? "echo: the prompt is token ids, which are not echoed as text"
                            : "echo: the log probabilities of a prompt are not computed here, so not "
                              "with logprobs");
        return false;
    }
    return serve_top_check(c, m, "logprobs", true, f->logprobs);
}

static void run(serve_call *c, void *fields)
{
    completion_fields *f = fields;
    serve_text_request r = {.model = serve_call_model(c, f->model, ATT_SUBJECT_LANGUAGE),
                            .shape = &serve_completion_shape,
                            .per_prompt = f->sampling.n,
                            .stream = f->sampling.stream,
                            .echo = f->echo ? json_object_get(c->body, "prompt") : NULL};
    if (r.model && check(c, r.model, f) && serve_usage_read(c, &f->sampling, &r.usage) &&
        serve_sampling_read(c, r.model, &f->sampling, &r.sampling) && tokenize(c, r.model, &f->prompt, &r.prompts)) {
        r.sampling->options.log_probabilities = f->logprobs >= 0;
        r.sampling->options.top = f->logprobs > 0 ? f->logprobs : 0;
        serve_text_run(c, &r, "prompt");
    }
    serve_text_request_free(&r);
}

#define ANSWER                                                                                                         \
    "{\"id\": \"string\", \"object\": \"string\", \"created\": \"integer\", \"model\": \"string\", "                   \
    "\"system_fingerprint\": \"string\", \"choices\": [{\"index\": \"integer\", \"text\": \"string\", "                \
    "\"logprobs\": {\"|\": [\"null\", {\"tokens\": [\"string\"], \"token_logprobs\": [\"number\"], "                   \
    "\"top_logprobs\": [{\"*\": \"number\"}], \"text_offset\": [\"integer\"]}]}, \"finish_reason\": "                  \
    "\"string\"}], \"usage\": {\"prompt_tokens\": \"integer\", \"completion_tokens\": \"integer\", "                   \
    "\"total_tokens\": \"integer\", \"prompt_tokens_details\": {\"cached_tokens\": \"integer\"}}}"

const serve_route serve_route_completions = {.method = "POST",
                                             .path = "/v1/completions",
                                             .answers = ANSWER,
                                             .stream = "text/event-stream",
                                             .summary = "Texts that continue prompts, as OpenAI's",
                                             .fields = table,
                                             .size = sizeof(completion_fields),
                                             .run = run};
