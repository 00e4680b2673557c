/* Texts as Ollama's answers: an object, or a stream of lines of JSON. */
#include "text_answer.h"

#include "cli/base/progress.h"

#include <time.h>

void serve_ollama_time(cli_json *j, const char *key, int64_t seconds)
{
    char text[32];
    const time_t t = (time_t)seconds;
    struct tm parts;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &parts));
    cli_json_string(j, key, text);
}

static void begin_object(cli_json *j, const serve_text_answer *a)
{
    cli_json_object(j, NULL);
    cli_json_string(j, "model", a->g->job.model->id);
    serve_ollama_time(j, "created_at", (int64_t)time(NULL));
}

/* Writes the new part of a text: in a conversation as a message. */
static void write_piece(cli_json *j, const serve_text_answer *a, const serve_piece *p)
{
    if (a->shape == &serve_ollama_chat_shape) {
        cli_json_object(j, "message");
        cli_json_string(j, "role", "assistant");
        cli_json_bytes(j, "content", p->text, p->bytes);
        cli_json_end(j);
    } else {
        cli_json_bytes(j, "response", p->text, p->bytes);
    }
    if (p->to > p->from && a->g->sampling->options.log_probabilities)
        serve_log_probabilities_write(j, "logprobs", p->c, p->from, p->to);
}

/* Writes the end of a text and the counts, with times in nanoseconds. */
static void write_done(cli_json *j, const serve_text_answer *a)
{
    int64_t cached;
    const serve_generation *g = a->g;
    const int64_t tokens = serve_text_answer_tokens(a, &cached);
    cli_json_bool(j, "done", true);
    cli_json_string(j, "done_reason", serve_end_reason(g->choice[0].end));
    cli_json_integer(j, "total_duration", (int64_t)(1e9 * (cli_seconds() - g->job.added)));
    cli_json_integer(j, "load_duration", 0);
    cli_json_integer(j, "prompt_eval_count", g->cost);
    cli_json_integer(j, "eval_count", tokens);
    cli_json_integer(j, "eval_duration", (int64_t)(1e9 * g->job.computed));
}

static void write_whole(serve_text_answer *a, cli_json *j)
{
    const serve_piece p = serve_next_piece(a, 0);
    begin_object(j, a);
    write_piece(j, a, &p);
    write_done(j, a);
}

static void write_events(serve_text_answer *a, FILE *f)
{
    const serve_piece p = serve_next_piece(a, 0);
    const bool scores = a->g->sampling->options.log_probabilities && p.to > p.from;
    cli_json j = {.file = f};
    if (p.bytes == 0 && !scores)
        return;
    begin_object(&j, a);
    write_piece(&j, a, &p);
    cli_json_bool(&j, "done", false);
    cli_json_close(&j);
}

static void write_finish(serve_text_answer *a, FILE *f)
{
    const serve_piece empty = {.text = ""};
    cli_json j = {.file = f};
    begin_object(&j, a);
    write_piece(&j, a, &empty);
    write_done(&j, a);
    cli_json_close(&j);
}

static void write_error(serve_text_answer *a, FILE *f, int status, const char *message)
{
    cli_json j = cli_json_begin(f);
    (void)a;
    (void)status;
    cli_json_string(&j, "error", message);
    cli_json_close(&j);
}

#define LINES                                                                                                          \
    .type = "application/x-ndjson", .write = write_whole, .events = write_events, .finish = write_finish,              \
    .fail = write_error
const serve_text_shape serve_ollama_chat_shape = {.id = "chat-", .chat = true, LINES};
const serve_text_shape serve_ollama_text_shape = {.id = "text-", .chat = true, LINES};
const serve_text_shape serve_ollama_raw_shape = {.id = "raw-", LINES};
