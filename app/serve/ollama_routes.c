/* Conversations and embeddings as Ollama's. Its streams are lines of JSON. */
#include "embed_work.h"
#include "messages.h"
#include "routes.h"
#include "text_run.h"

#include <stdlib.h>
#include <time.h>

/* ---- answers ---- */

static void begin_object(cli_json *j, const char *model)
{
    char now[32];
    const time_t t = time(NULL);
    struct tm parts;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &parts));
    cli_json_object(j, NULL);
    cli_json_string(j, "model", model);
    cli_json_string(j, "created_at", now);
}

static void write_message(cli_json *j, const serve_piece *p)
{
    cli_json_object(j, "message");
    cli_json_string(j, "role", "assistant");
    cli_json_bytes(j, "content", p->text, p->bytes);
    cli_json_end(j);
}

/* Writes the end of a text and the counts, with times in nanoseconds. */
static void write_done(cli_json *j, const serve_text_answer *a)
{
    int64_t cached;
    const serve_generation *g = a->g;
    const int64_t tokens = serve_text_answer_tokens(a, &cached);
    cli_json_bool(j, "done", true);
    cli_json_string(j, "done_reason", serve_end_reason(g->choice[0].end));
    cli_json_integer(j, "total_duration", (int64_t)(1e9 * (http_now() - g->job.added)));
    cli_json_integer(j, "load_duration", 0);
    cli_json_integer(j, "prompt_eval_count", g->cost);
    cli_json_integer(j, "eval_count", tokens);
    cli_json_integer(j, "eval_duration", (int64_t)(1e9 * g->job.computed));
}

static void write_whole(serve_text_answer *a, cli_json *j)
{
    const serve_piece p = serve_next_piece(a, 0);
    begin_object(j, a->g->job.model->id);
    write_message(j, &p);
    write_done(j, a);
}

static void write_events(serve_text_answer *a, FILE *f)
{
    const serve_piece p = serve_next_piece(a, 0);
    cli_json j = {.file = f};
    if (p.bytes == 0)
        return;
    begin_object(&j, a->g->job.model->id);
    write_message(&j, &p);
    cli_json_bool(&j, "done", false);
    cli_json_close(&j);
}

static void write_finish(serve_text_answer *a, FILE *f)
{
    const serve_piece empty = {.text = ""};
    cli_json j = {.file = f};
    begin_object(&j, a->g->job.model->id);
    write_message(&j, &empty);
    write_done(&j, a);
    cli_json_close(&j);
}

static void write_error(FILE *f, int status, const char *message)
{
    cli_json j = cli_json_begin(f);
    (void)status;
    cli_json_string(&j, "error", message);
    cli_json_close(&j);
}

const serve_text_shape serve_ollama_shape = {.id = "chat",
                                             .chat = true,
                                             .type = "application/x-ndjson",
                                             .write = write_whole,
                                             .events = write_events,
                                             .finish = write_finish,
                                             .fail = write_error};

/* ---- /api/chat ---- */

typedef struct chat_fields {
    const json_t *messages, *options;
    serve_text model;
    bool stream;
} chat_fields;

static const serve_field chat_table[] = {
    {"messages", SERVE_JSON, offsetof(chat_fields, messages), .required = true,
     .help = "list of objects with a role (system, user, assistant) and content"},
    SERVE_MODEL_FIELD(chat_fields, "language model"),
    {"stream", SERVE_BOOL, offsetof(chat_fields, stream), .usual = 1,
     .help = "send tokens as they are generated, as lines of JSON; default: true"},
    {"options", SERVE_JSON, offsetof(chat_fields, options),
     .help =
         "object: temperature, top_k, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty, seed, stop, "
         "num_predict"},
    {"keep_alive", SERVE_IGNORED, .help = "models stay open"},
    {"tools", SERVE_REFUSED, .words = "[]", .help = "models answer with text alone"},
    {"format", SERVE_REFUSED, .words = "\"\"", .help = "answers are text, which no schema restricts"},
    {"think", SERVE_REFUSED, .words = "false", .help = "models have no levels of it"},
    {0},
};

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
    {0},
};

static bool read_options(serve_call *c, const json_t *options, serve_sampling_fields *to)
{
    serve_field_error e = {0};
    json_t *none = json_object();
    if (options && !json_is_object(options))
        snprintf(e.message, sizeof e.message, "is not an object");
    const bool read = !*e.message && serve_fields_read(option_table, options ? options : none, 1, to, &e);
    json_decref(none);
    if (!read)
        serve_refuse(c, 400, "options", "options: %s", e.message);
    return read;
}

static void run_chat(serve_call *c, void *fields)
{
    const chat_fields *f = fields;
    serve_sampling_fields sampling = {0};
    serve_text_request r = {.model = serve_call_model(c, f->model, ATT_SUBJECT_LANGUAGE),
                            .shape = &serve_ollama_shape,
                            .per_prompt = 1,
                            .stream = f->stream};
    if (r.model && read_options(c, f->options, &sampling) && serve_sampling_read(c, r.model, &sampling, &r.sampling) &&
        serve_messages_prompt(c, r.model, f->messages, r.sampling, &r.prompts))
        serve_text_run(c, &r, "messages");
    serve_text_request_free(&r);
}

const serve_route serve_route_ollama_chat = {.method = "POST",
                                             .path = "/api/chat",
                                             .summary = "The answer of a language model in a conversation, as Ollama's",
                                             .fields = chat_table,
                                             .size = sizeof(chat_fields),
                                             .run = run_chat,
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
    const double begun = http_now();
    serve_embedding e = {.input = &f->input, .input_name = "input", .dims = f->dimensions, .refuse_long = !f->truncate};
    serve_model *m = serve_call_model(c, f->model, ATT_SUBJECT_SENTENCE);
    if (m && serve_embed(c, m, &e)) {
        cli_json j = serve_answer_open(c);
        cli_json_object(&j, NULL);
        cli_json_string(&j, "model", m->id);
        cli_json_matrix(&j, "embeddings", e.vectors, f->input.n, e.width);
        cli_json_integer(&j, "total_duration", (int64_t)(1e9 * (http_now() - begun)));
        cli_json_integer(&j, "load_duration", 0);
        cli_json_integer(&j, "prompt_eval_count", e.tokens);
        serve_answer_close(c, &j);
    }
    serve_embedding_free(&e);
}

const serve_route serve_route_ollama_embed = {.method = "POST",
                                              .path = "/api/embed",
                                              .summary = "Embeddings of texts, as Ollama's",
                                              .fields = embed_table,
                                              .size = sizeof(embed_fields),
                                              .run = run_embed,
                                              .errors = SERVE_ERRORS_FLAT};

/* ---- /api/tags ---- */

static void run_tags(serve_call *c, void *fields)
{
    const serve_models *all = &c->shared->models;
    (void)fields;
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_array(&j, "models");
    for (int i = 0; i < all->n; i++) {
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", all->model[i]->id);
        cli_json_string(&j, "model", all->model[i]->id);
        cli_json_end(&j);
    }
    serve_answer_close(c, &j);
}

const serve_route serve_route_ollama_tags = {
    .method = "GET", .path = "/api/tags", .summary = "The models, as Ollama's", .run = run_tags};
