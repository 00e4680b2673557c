/* Conversations, texts and embeddings as Ollama's. */
#include "embed_work.h"
#include "messages.h"
#include "routes.h"
#include "text_run.h"

#include "cli/base/progress.h"

#include <stdlib.h>
#include <time.h>

/* ---- /api/chat and /api/generate ---- */

typedef struct text_fields {
    const json_t *messages, *options;
    serve_text model, prompt, system;
    int64_t top_logprobs;
    bool stream, raw, logprobs;
} text_fields;

static const serve_field option_table[] = {
    {"temperature", SERVE_NUMBER, offsetof(serve_sampling_fields, temperature), .max = 1e6, .usual = -1},
    {"top_k", SERVE_INTEGER, offsetof(serve_sampling_fields, top_k), .min = -1, .max = INT32_MAX, .usual = -2},
    {"top_p", SERVE_NUMBER, offsetof(serve_sampling_fields, top_p), .max = 1, .usual = -1},
    {"min_p", SERVE_NUMBER, offsetof(serve_sampling_fields, min_p), .max = 1, .usual = -1},
    {"repeat_penalty", SERVE_NUMBER, offsetof(serve_sampling_fields, repetition_penalty), .min = 1e-3, .max = 1e3,
     .usual = -1},
    {"presence_penalty", SERVE_NUMBER, offsetof(serve_sampling_fields, presence_penalty), .min = -2, .max = 2},
    {"frequency_penalty", SERVE_NUMBER, offsetof(serve_sampling_fields, frequency_penalty), .min = -2, .max = 2},
    {"seed", SERVE_INTEGER, offsetof(serve_sampling_fields, seed), .min = -1, .max = 0x1p53, .usual = -1},
    {.name = "stop", .type = SERVE_JSON, .offset = offsetof(serve_sampling_fields, stop)},
    {"num_predict", SERVE_INTEGER, offsetof(serve_sampling_fields, max_tokens), .min = -2, .max = 1 << 30},
    {.name = "num_ctx", .type = SERVE_IGNORED},
    {.name = "num_keep", .type = SERVE_IGNORED},
    {.name = "num_thread", .type = SERVE_IGNORED},
    {.name = "num_batch", .type = SERVE_IGNORED},
    {.name = "num_gpu", .type = SERVE_IGNORED},
    {.name = "main_gpu", .type = SERVE_IGNORED},
    {.name = "numa", .type = SERVE_IGNORED},
    {.name = "use_mmap", .type = SERVE_IGNORED},
    {.name = "use_mlock", .type = SERVE_IGNORED},
    {.name = "low_vram", .type = SERVE_IGNORED},
    {0},
};

/* clang-format off */
#define COMMON                                                                                                    \
    SERVE_MODEL_FIELD(text_fields, "language model"),                                                             \
    {"stream", SERVE_BOOL, offsetof(text_fields, stream), .usual = 1,                                             \
     .help = "send tokens as they are generated, as lines of JSON; default: true"},                               \
    {"options", SERVE_JSON, offsetof(text_fields, options), .table = option_table,                                \
     .help = "object: temperature, top_k, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty, "    \
             "seed, stop, num_predict"},                                                                          \
    {"logprobs", SERVE_BOOL, offsetof(text_fields, logprobs), .help = "return log probabilities of the tokens"},  \
    {"top_logprobs", SERVE_INTEGER, offsetof(text_fields, top_logprobs), .max = SERVE_TOP_LOGPROBS,               \
     .help = "with logprobs: also those of this many most probable tokens"},                                      \
    {"keep_alive", SERVE_IGNORED, .help = "models stay open"},                                                    \
    {"format", SERVE_REFUSED, .words = "\"\"", .help = "answers are text, which no schema restricts"},            \
    {"think", SERVE_REFUSED, .words = "false", .help = "models have no levels of it"}
/* clang-format on */

static const serve_field chat_table[] = {
    {"messages", SERVE_JSON, offsetof(text_fields, messages), .required = true,
     .words = "[{\"role\": \"string\", \"content?\": \"any\", \"*\": \"any\"}]",
     .help = "list of objects with a role (system, user, assistant) and content"},
    COMMON,
    {"tools", SERVE_REFUSED, .words = "[]", .help = "models answer with text alone"},
    {0},
};

static const serve_field generate_table[] = {
    {"prompt", SERVE_TEXT, offsetof(text_fields, prompt),
     .help = "text: the message of a user if the model has a chat template, and otherwise what is continued; without "
             "it nothing is generated"},
    {"system", SERVE_TEXT, offsetof(text_fields, system), .help = "a system message before the prompt"},
    {"raw", SERVE_BOOL, offsetof(text_fields, raw), .help = "continue the prompt itself, without the chat template"},
    COMMON,
    {"suffix", SERVE_REFUSED, .words = "\"\"", .help = "models continue a prompt, and fill no gap"},
    {"images", SERVE_REFUSED, .words = "[]", .help = "language models read text alone"},
    {"template", SERVE_REFUSED, .words = "\"\"", .help = "the template is the model's"},
    {"context", SERVE_REFUSED, .words = "[]", .help = "nothing is stored: /api/chat has the whole conversation"},
    {0},
};

static bool read_options(serve_call *c, const json_t *options, serve_sampling_fields *to)
{
    return serve_call_read(c, "options", option_table, options, to);
}

static bool read_scores(serve_call *c, const serve_model *m, const text_fields *f, serve_sampling *s)
{
    s->options.log_probabilities = f->logprobs;
    s->options.top = f->top_logprobs;
    return serve_top_check(c, m, "top_logprobs", f->logprobs, f->top_logprobs);
}

/* Makes the prompt of /api/generate: of a conversation of one message, or the text itself. */
static bool read_prompt(serve_call *c, const serve_model *m, const text_fields *f, serve_text_request *r)
{
    att_tokens tokens = {0};
    if (m->template && !f->raw)
        return serve_messages_prompt(c, m, &(serve_messages){.field = "prompt", .system = f->system, .user = f->prompt},
                                     r->sampling, &r->prompts);
    if (f->system.bytes > 0) {
        serve_refuse(c, 400, "system", "system: is for models with a chat template, and not with raw: true");
        return false;
    }
    r->shape = &serve_ollama_raw_shape;
    const att_status s = att_tokenize(m->tokenizer, f->prompt.text, f->prompt.bytes, NULL, &tokens);
    const bool added = !s && serve_prompts_add(&r->prompts, tokens.ids, tokens.count);
    if (s)
        serve_refuse(c, s == ATT_ERR_MEMORY ? 503 : 400, "prompt", "prompt: %s", att_error(m->ctx));
    else if (!added)
        serve_refuse(c, 503, NULL, "out of memory");
    att_tokens_free(m->ctx, &tokens);
    return added;
}

static void answer_text(serve_call *c, const text_fields *f, const serve_text_shape *shape)
{
    serve_sampling_fields sampling = {0};
    const serve_messages messages = {.field = "messages", .list = f->messages};
    serve_text_request r = {.model = serve_call_model(c, f->model, ATT_SUBJECT_LANGUAGE),
                            .shape = shape,
                            .per_prompt = 1,
                            .stream = f->stream};
    if (r.model && read_options(c, f->options, &sampling) && serve_sampling_read(c, r.model, &sampling, &r.sampling) &&
        read_scores(c, r.model, f, r.sampling) &&
        (f->messages ? serve_messages_prompt(c, r.model, &messages, r.sampling, &r.prompts)
                     : read_prompt(c, r.model, f, &r)))
        serve_text_run(c, &r, f->messages ? "messages" : "prompt");
    serve_text_request_free(&r);
}

/* Answers a request that only loads a model, as models are always open. */
static void answer_loaded(serve_call *c, const serve_model *m)
{
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "model", m->id);
    serve_ollama_time(&j, "created_at", (int64_t)time(NULL));
    cli_json_string(&j, "response", "");
    cli_json_bool(&j, "done", true);
    cli_json_string(&j, "done_reason", "load");
    serve_answer_close(c, &j);
}

static void run_chat(serve_call *c, void *fields) { answer_text(c, fields, &serve_ollama_chat_shape); }

static void run_generate(serve_call *c, void *fields)
{
    const text_fields *f = fields;
    serve_sampling_fields unused = {0};
    const serve_model *m;
    if (f->prompt.bytes > 0)
        answer_text(c, f, &serve_ollama_text_shape);
    else if (read_options(c, f->options, &unused) && (m = serve_call_model(c, f->model, ATT_SUBJECT_LANGUAGE)))
        answer_loaded(c, m);
}

#define DONE                                                                                                           \
    "\"logprobs?\": [{\"token\": \"string\", \"logprob\": \"number\", \"bytes\": [\"integer\"], "                      \
    "\"top_logprobs\": [{\"token\": \"string\", \"logprob\": \"number\", \"bytes\": [\"integer\"]}]}], "               \
    "\"done\": \"boolean\", \"done_reason?\": \"string\", \"total_duration?\": \"integer\", "                          \
    "\"load_duration?\": \"integer\", \"prompt_eval_count?\": \"integer\", \"eval_count?\": \"integer\", "             \
    "\"eval_duration?\": \"integer\"}"

const serve_route serve_route_ollama_chat = {.method = "POST",
                                             .path = "/api/chat",
                                             .answers =
                                                 "{\"model\": \"string\", \"created_at\": \"string\", \"message\": "
                                                 "{\"role\": \"string\", \"content\": \"string\"}, " DONE,
                                             .stream = "application/x-ndjson",
                                             .summary = "The answer of a language model in a conversation, as Ollama's",
                                             .fields = chat_table,
                                             .size = sizeof(text_fields),
                                             .run = run_chat,
                                             .errors = SERVE_ERRORS_FLAT};
const serve_route serve_route_ollama_generate = {
    .method = "POST",
    .path = "/api/generate",
    .answers = "{\"model\": \"string\", \"created_at\": \"string\", \"response\": \"string\", " DONE,
    .stream = "application/x-ndjson",
    .summary = "The answer of a language model to a text, as Ollama's",
    .fields = generate_table,
    .size = sizeof(text_fields),
    .run = run_generate,
    .errors = SERVE_ERRORS_FLAT};

/* ---- /api/embed ---- */

typedef struct embed_fields {
    serve_texts input;
    serve_text model;
    int64_t dimensions;
    bool truncate;
} embed_fields;

static const serve_field embed_table[] = {
    {"input", SERVE_TEXTS, offsetof(embed_fields, input), .required = true, .help = "text or list of texts"},
    SERVE_MODEL_FIELD(embed_fields, "sentence model"),
    {"truncate", SERVE_BOOL, offsetof(embed_fields, truncate), .usual = 1,
     .help = "truncate texts that are too long for the model; false: refuse them"},
    {"dimensions", SERVE_INTEGER, offsetof(embed_fields, dimensions), .min = 1, .max = 1 << 20,
     .help = "truncate vectors to their first numbers"},
    {"keep_alive", SERVE_IGNORED, .help = "models stay open"},
    {"options", SERVE_IGNORED, .help = "they are for models of texts"},
    {0},
};

static void run_embed(serve_call *c, void *fields)
{
    const embed_fields *f = fields;
    const double begun = cli_seconds();
    serve_embedding e = {.input = &f->input, .input_name = "input", .dims = f->dimensions, .refuse_long = !f->truncate};
    serve_model *m = serve_call_model(c, f->model, ATT_SUBJECT_SENTENCE);
    if (m && serve_embed(c, m, &e)) {
        cli_json j = serve_answer_open(c);
        cli_json_object(&j, NULL);
        cli_json_string(&j, "model", m->id);
        cli_json_matrix(&j, "embeddings", e.vectors, f->input.n, e.width);
        cli_json_integer(&j, "total_duration", (int64_t)(1e9 * (cli_seconds() - begun)));
        cli_json_integer(&j, "load_duration", 0);
        cli_json_integer(&j, "prompt_eval_count", e.tokens);
        serve_answer_close(c, &j);
    }
    serve_embedding_free(&e);
}

#define VECTORS                                                                                                        \
    "{\"model\": \"string\", \"embeddings\": [[\"number\"]], \"total_duration\": \"integer\", "                        \
    "\"load_duration\": \"integer\", \"prompt_eval_count\": \"integer\"}"

const serve_route serve_route_ollama_embed = {.method = "POST",
                                              .path = "/api/embed",
                                              .answers = VECTORS,
                                              .summary = "Embeddings of texts, as Ollama's",
                                              .fields = embed_table,
                                              .size = sizeof(embed_fields),
                                              .run = run_embed,
                                              .errors = SERVE_ERRORS_FLAT};

/* ---- /api/embeddings ---- */

typedef struct old_fields {
    serve_texts prompt;
    serve_text model;
} old_fields;

static const serve_field old_table[] = {
    {"prompt", SERVE_TEXTS, offsetof(old_fields, prompt), .max = 1, .required = true, .help = "text"},
    SERVE_MODEL_FIELD(old_fields, "sentence model"),
    {"keep_alive", SERVE_IGNORED, .help = "models stay open"},
    {"options", SERVE_IGNORED, .help = "they are for models of texts"},
    {0},
};

static void run_embeddings(serve_call *c, void *fields)
{
    const old_fields *f = fields;
    serve_embedding e = {.input = &f->prompt, .input_name = "prompt"};
    serve_model *m = serve_call_model(c, f->model, ATT_SUBJECT_SENTENCE);
    if (m && serve_embed(c, m, &e)) {
        cli_json j = serve_answer_open(c);
        cli_json_object(&j, NULL);
        cli_json_row(&j, "embedding", e.vectors, e.width);
        serve_answer_close(c, &j);
    }
    serve_embedding_free(&e);
}

#define VECTOR "{\"embedding\": [\"number\"]}"

const serve_route serve_route_ollama_embeddings = {.method = "POST",
                                                   .path = "/api/embeddings",
                                                   .answers = VECTOR,
                                                   .summary = "The embedding of a text, as Ollama's of old",
                                                   .fields = old_table,
                                                   .size = sizeof(old_fields),
                                                   .run = run_embeddings,
                                                   .errors = SERVE_ERRORS_FLAT};
