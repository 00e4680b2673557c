/* Answers of language models in conversations, as OpenAI's. */
#include "messages.h"
#include "routes.h"
#include "text_run.h"

typedef struct chat_fields {
    const json_t *messages;
    serve_text model;
    serve_sampling_fields sampling;
    int64_t max_completion_tokens, top_logprobs;
    bool logprobs;
} chat_fields;

static const serve_field table[] = {
    {"messages", SERVE_JSON, offsetof(chat_fields, messages), .required = true,
     .words = "[{\"role\": \"string\", \"content?\": \"any\", \"*\": \"any\"}]",
     .help =
         "list of objects with a role (system, developer, user, assistant) and content, a text or a list of parts of "
         "type text"},
    SERVE_MODEL_FIELD(chat_fields, "language model"),
    {"max_tokens", SERVE_INTEGER, offsetof(chat_fields, sampling.max_tokens), .min = 1, .max = 1 << 30,
     .help = "tokens of an answer, at most; default: as many as there is room for"},
    {"max_completion_tokens", SERVE_INTEGER, offsetof(chat_fields, max_completion_tokens), .min = 1, .max = 1 << 30,
     .help = "another name of max_tokens, and of the two the one that is used"},
    SERVE_SAMPLING_FIELDS(chat_fields),
    {"logprobs", SERVE_BOOL, offsetof(chat_fields, logprobs), .help = "return log probabilities of the tokens"},
    {"top_logprobs", SERVE_INTEGER, offsetof(chat_fields, top_logprobs), .max = SERVE_TOP_LOGPROBS,
     .help = "with logprobs: also those of this many most probable tokens"},
    {"tools", SERVE_REFUSED, .words = "[]", .help = "models answer with text alone"},
    {"tool_choice", SERVE_REFUSED, .words = "\"none\"", .help = "models answer with text alone"},
    {"functions", SERVE_REFUSED, .words = "[]", .help = "models answer with text alone"},
    {"function_call", SERVE_REFUSED, .words = "\"none\"", .help = "models answer with text alone"},
    {"response_format", SERVE_REFUSED, .words = "{\"type\": \"text\"}",
     .help = "answers are text, which no schema restricts"},
    {"modalities", SERVE_REFUSED, .words = "[\"text\"]", .help = "answers are text"},
    {"audio", SERVE_REFUSED, .help = "answers are text"},
    {"prediction", SERVE_REFUSED, .help = "the text is not guessed from another one"},
    {"web_search_options", SERVE_REFUSED, .help = "nothing is searched"},
    {"reasoning_effort", SERVE_REFUSED, .help = "models have no levels of it"},
    {"verbosity", SERVE_REFUSED, .help = "models have no levels of it"},
    {"parallel_tool_calls", SERVE_IGNORED, .help = "there are no tools"},
    {"store", SERVE_REFUSED, .words = "false", .help = "nothing is stored"},
    {"metadata", SERVE_IGNORED, .help = "nothing is stored"},
    {"service_tier", SERVE_IGNORED, .help = "all requests are treated in the same way"},
    {"safety_identifier", SERVE_IGNORED, .help = "nothing is stored"},
    {"prompt_cache_key", SERVE_IGNORED, .help = "beginnings of prompts are found without it"},
    {0},
};

/* ---- the route ---- */

static void run(serve_call *c, void *fields)
{
    chat_fields *f = fields;
    serve_text_request r = {.model = serve_call_model(c, f->model, ATT_SUBJECT_LANGUAGE),
                            .shape = &serve_chat_shape,
                            .per_prompt = f->sampling.n,
                            .stream = f->sampling.stream};
    if (f->max_completion_tokens > 0)
        f->sampling.max_tokens = f->max_completion_tokens;
    if (r.model && serve_top_check(c, r.model, "top_logprobs", f->logprobs, f->top_logprobs) &&
        serve_usage_read(c, &f->sampling, &r.usage) && serve_sampling_read(c, r.model, &f->sampling, &r.sampling) &&
        serve_messages_prompt(c, r.model, &(serve_messages){.field = "messages", .list = f->messages}, r.sampling,
                              &r.prompts)) {
        r.sampling->options.log_probabilities = f->logprobs;
        r.sampling->options.top = f->top_logprobs;
        serve_text_run(c, &r, "messages");
    }
    serve_text_request_free(&r);
}

#define ANSWER                                                                                                         \
    "{\"id\": \"string\", \"object\": \"string\", \"created\": \"integer\", \"model\": \"string\", "                   \
    "\"system_fingerprint\": \"string\", \"choices\": [{\"index\": \"integer\", \"message\": {\"role\": "              \
    "\"string\", \"content\": \"string\", \"refusal\": \"null\"}, \"logprobs\": {\"|\": [\"null\", "                   \
    "{\"content\": [{\"token\": \"string\", \"logprob\": \"number\", \"bytes\": [\"integer\"], "                       \
    "\"top_logprobs\": [{\"token\": \"string\", \"logprob\": \"number\", \"bytes\": [\"integer\"]}]}], "               \
    "\"refusal\": \"null\"}]}, \"finish_reason\": \"string\"}], \"usage\": {\"prompt_tokens\": \"integer\", "          \
    "\"completion_tokens\": \"integer\", \"total_tokens\": \"integer\", \"prompt_tokens_details\": "                   \
    "{\"cached_tokens\": \"integer\"}}}"

const serve_route serve_route_chat = {.method = "POST",
                                      .path = "/v1/chat/completions",
                                      .answers = ANSWER,
                                      .stream = "text/event-stream",
                                      .summary = "The answer of a language model in a conversation, as OpenAI's",
                                      .fields = table,
                                      .size = sizeof(chat_fields),
                                      .run = run};
