/* Answers of language models, as OpenAI's Responses. */
#include "messages.h"
#include "routes.h"
#include "text_run.h"

#include <string.h>

typedef struct response_fields {
    const json_t *input, *include, *metadata;
    serve_text model, instructions;
    serve_sampling_fields sampling;
    int64_t top_logprobs;
} response_fields;

#define SAMPLING(name) SERVE_SAMPLING_FIELD(response_fields, name)
#define TEXT_ALONE "models answer with text alone"
static const serve_field table[] = {
    {"input", SERVE_JSON, offsetof(response_fields, input), .required = true,
     .words = "{\"|\": [\"string\", [{\"role\": \"string\", \"content?\": \"any\", \"*\": \"any\"}]]}",
     .help = "text, or list of objects with a role (system, developer, user, assistant) and content, a text or a list "
             "of parts of type input_text or output_text"},
    SERVE_MODEL_FIELD(response_fields, "language model"),
    {"instructions", SERVE_TEXT, offsetof(response_fields, instructions), .help = "a system message before the input"},
    {"max_output_tokens", SERVE_INTEGER, SAMPLING(max_tokens), .min = 1, .max = 1 << 30,
     .help = "tokens of an answer, at most; default: as many as there is room for"},
    {"temperature", SERVE_NUMBER, SAMPLING(temperature), .max = 1e6, .usual = -1,
     .help = "divides the logits; 0: the most probable token each time; default: as the model's "
             "generation_config.json states"},
    {"top_p", SERVE_NUMBER, SAMPLING(top_p), .max = 1, .usual = -1,
     .help = "only the most probable tokens whose probabilities sum to this"},
    {"seed", SERVE_INTEGER, SAMPLING(seed), .min = -1, .max = 0x1p53, .usual = -1,
     .help = "of the random tokens: the same seed gives the same text; -1: another one each time"},
    {"stream", SERVE_BOOL, SAMPLING(stream),
     .help = "send the text as it is generated, as events of text/event-stream"},
    {"stream_options", SERVE_IGNORED, .help = "events are not obfuscated"},
    {"include", SERVE_JSON, offsetof(response_fields, include), .words = "[\"string\"]",
     .help = "list: message.output_text.logprobs, to return log probabilities of the tokens"},
    {"top_logprobs", SERVE_INTEGER, offsetof(response_fields, top_logprobs), .max = SERVE_TOP_LOGPROBS,
     .help = "log probabilities of the tokens, and of this many most probable ones"},
    {"text", SERVE_REFUSED, .words = "{\"format\": {\"type\": \"text\"}}",
     .help = "answers are text, which no schema restricts"},
    {"tools", SERVE_REFUSED, .words = "[]", .help = TEXT_ALONE},
    {"tool_choice", SERVE_REFUSED, .words = "\"none\"", .help = TEXT_ALONE},
    {"max_tool_calls", SERVE_IGNORED, .help = "there are no tools"},
    {"parallel_tool_calls", SERVE_IGNORED, .help = "there are no tools"},
    {"previous_response_id", SERVE_REFUSED, .help = "nothing is stored: send the whole conversation as input"},
    {"conversation", SERVE_REFUSED, .help = "nothing is stored: send the whole conversation as input"},
    {"prompt", SERVE_REFUSED, .help = "nothing is stored: send its text as instructions"},
    {"store", SERVE_IGNORED, .help = "nothing is stored, as the answer states"},
    {"background", SERVE_REFUSED, .words = "false", .help = "nothing is stored"},
    {"context_management", SERVE_REFUSED, .words = "[]", .help = "conversations are not shortened"},
    {"truncation", SERVE_REFUSED, .words = "\"disabled\"", .help = "conversations that are too long are refused"},
    {"reasoning", SERVE_REFUSED, .words = "{}", .help = "models have no levels of it"},
    {"metadata", SERVE_JSON, offsetof(response_fields, metadata), .words = "{\"*\": \"any\"}",
     .help = "object, which the answer repeats"},
    {"user", SERVE_IGNORED, .help = "who asks; nothing is stored"},
    {"safety_identifier", SERVE_IGNORED, .help = "nothing is stored"},
    {"prompt_cache_key", SERVE_IGNORED, .help = "beginnings of prompts are found without it"},
    {"prompt_cache_retention", SERVE_IGNORED, .help = "beginnings of prompts are found without it"},
    {"service_tier", SERVE_IGNORED, .help = "all requests are treated in the same way"},
    {0},
};

/* Reads `include`: whether it asks for log probabilities. Returns false if it asks for others than these. */
static bool read_include(serve_call *c, const json_t *include, bool *scores)
{
    static const char name[] = "message.output_text.logprobs";
    bool good = !include || json_is_array(include);
    for (size_t i = 0; good && i < json_array_size(include); i++) {
        const char *given = json_string_value(json_array_get(include, i));
        good = *scores = given && !strcmp(given, name);
    }
    if (!good)
        serve_refuse(c, 400, "include", "include: is not a list that has nothing but \"%s\"", name);
    return good;
}

static bool check(serve_call *c, const serve_model *m, const response_fields *f)
{
    if (f->metadata && !json_is_object(f->metadata))
        serve_refuse(c, 400, "metadata", "metadata: is not an object");
    else if (!json_is_string(f->input) && !json_is_array(f->input))
        serve_refuse(c, 400, "input", "input: is not a text or a list of messages");
    else
        return serve_top_check(c, m, "top_logprobs", true, f->top_logprobs);
    return false;
}

static void run(serve_call *c, void *fields)
{
    response_fields *f = fields;
    bool scores = f->top_logprobs > 0;
    serve_text_request r = {.model = serve_call_model(c, f->model, ATT_SUBJECT_LANGUAGE),
                            .shape = &serve_response_shape,
                            .per_prompt = 1,
                            .stream = f->sampling.stream,
                            .echo = (json_t *)c->body};
    const serve_messages messages = {.field = "input",
                                     .list = json_is_array(f->input) ? f->input : NULL,
                                     .items = true,
                                     .system = f->instructions,
                                     .user = {json_string_value(f->input), json_string_length(f->input)}};
    if (r.model && check(c, r.model, f) && read_include(c, f->include, &scores) &&
        serve_sampling_read(c, r.model, &f->sampling, &r.sampling) &&
        serve_messages_prompt(c, r.model, &messages, r.sampling, &r.prompts)) {
        r.sampling->options.log_probabilities = scores;
        r.sampling->options.top = f->top_logprobs;
        serve_text_run(c, &r, "input");
    }
    serve_text_request_free(&r);
}

#define ANSWER                                                                                                         \
    "{\"id\": \"string\", \"object\": \"string\", \"created_at\": \"integer\", \"status\": \"string\", "               \
    "\"model\": \"string\", \"error\": \"null\", \"incomplete_details\": {\"|\": [\"null\", {\"reason\": "             \
    "\"string\"}]}, \"output\": [{\"id\": \"string\", \"type\": \"string\", \"status\": \"string\", "                  \
    "\"role\": \"string\", \"content\": [{\"type\": \"string\", \"text\": \"string\", \"annotations\": [], "           \
    "\"logprobs\": [{\"token\": \"string\", \"logprob\": \"number\", \"bytes\": [\"integer\"], "                       \
    "\"top_logprobs\": [{\"token\": \"string\", \"logprob\": \"number\", \"bytes\": [\"integer\"]}]}]}]}], "           \
    "\"instructions\": \"string|null\", \"max_output_tokens\": \"integer|null\", \"temperature\": "                    \
    "\"number|null\", \"top_p\": \"number|null\", \"user\": \"any\", \"metadata\": {\"*\": \"any\"}, "                 \
    "\"parallel_tool_calls\": \"boolean\", \"previous_response_id\": \"null\", \"store\": \"boolean\", "               \
    "\"text\": {\"format\": {\"type\": \"string\"}}, \"tool_choice\": \"string\", \"tools\": [], "                     \
    "\"truncation\": \"string\", \"usage\": {\"input_tokens\": \"integer\", \"input_tokens_details\": "                \
    "{\"cached_tokens\": \"integer\"}, \"output_tokens\": \"integer\", \"output_tokens_details\": "                    \
    "{\"reasoning_tokens\": \"integer\"}, \"total_tokens\": \"integer\"}}"

const serve_route serve_route_responses = {.method = "POST",
                                           .path = "/v1/responses",
                                           .answers = ANSWER,
                                           .stream = "text/event-stream",
                                           .summary = "The answer of a language model, as OpenAI's Responses",
                                           .fields = table,
                                           .size = sizeof(response_fields),
                                           .run = run};
