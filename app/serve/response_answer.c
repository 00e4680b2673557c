/* Texts as answers of OpenAI's Responses: an object whose output is one message, or numbered events about it. */
#include "text_answer.h"

#include <stdlib.h>
#include <string.h>

/* ---- objects ---- */

static void write_part(cli_json *j, const char *key, const serve_text_answer *a, bool full)
{
    const serve_choice *c = &a->g->choice[0];
    size_t bytes = 0;
    const char *text = full ? serve_choice_text(a, 0, &bytes) : "";
    cli_json_object(j, key);
    cli_json_string(j, "type", "output_text");
    cli_json_bytes(j, "text", text, bytes);
    cli_json_array(j, "annotations");
    cli_json_end(j);
    serve_log_probabilities_write(j, "logprobs", c, 0,
                                  full && a->g->sampling->options.log_probabilities ? c->tokens : 0);
    cli_json_end(j);
}

/* Writes the id of the message, which ends as that of the answer. */
static void write_message_id(cli_json *j, const char *key, const serve_text_answer *a)
{
    char id[48];
    snprintf(id, sizeof id, "msg_%s", a->id + strlen(a->shape->id));
    cli_json_string(j, key, id);
}

static const char *status_of(const serve_text_answer *a)
{
    const char *reason = serve_end_reason(a->g->choice[0].end);
    return !reason ? "in_progress" : !strcmp(reason, "length") ? "incomplete" : "completed";
}

static void write_message(cli_json *j, const char *key, const serve_text_answer *a, bool full)
{
    cli_json_object(j, key);
    write_message_id(j, "id", a);
    cli_json_string(j, "type", "message");
    cli_json_string(j, "status", full ? status_of(a) : "in_progress");
    cli_json_string(j, "role", "assistant");
    cli_json_array(j, "content");
    if (full)
        write_part(j, NULL, a, true);
    cli_json_end(j);
    cli_json_end(j);
}

/* Writes what an answer repeats of its request. */
static void write_request(cli_json *j, const serve_text_answer *a)
{
    static const char *const repeated[] = {"instructions", "max_output_tokens", "temperature", "top_p", "user"};
    const json_t *metadata = json_object_get(a->echo, "metadata");
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        const json_t *value = json_object_get(a->echo, repeated[i]);
        if (value)
            cli_json_value(j, repeated[i], value, JSON_REAL_PRECISION(9));
        else
            cli_json_string(j, repeated[i], NULL);
    }
    if (json_is_object(metadata)) {
        cli_json_value(j, "metadata", metadata, JSON_REAL_PRECISION(9));
    } else {
        cli_json_object(j, "metadata");
        cli_json_end(j);
    }
    cli_json_bool(j, "parallel_tool_calls", false);
    cli_json_string(j, "previous_response_id", NULL);
    cli_json_bool(j, "store", false);
    cli_json_object(j, "text");
    cli_json_object(j, "format");
    cli_json_string(j, "type", "text");
    cli_json_end(j);
    cli_json_end(j);
    cli_json_string(j, "tool_choice", "none");
    cli_json_array(j, "tools");
    cli_json_end(j);
    cli_json_string(j, "truncation", "disabled");
}

static void write_usage(cli_json *j, const serve_text_answer *a)
{
    int64_t cached;
    const int64_t tokens = serve_text_answer_tokens(a, &cached), prompt = a->g->cost;
    cli_json_object(j, "usage");
    cli_json_integer(j, "input_tokens", prompt);
    cli_json_object(j, "input_tokens_details");
    cli_json_integer(j, "cached_tokens", cached);
    cli_json_end(j);
    cli_json_integer(j, "output_tokens", tokens);
    cli_json_object(j, "output_tokens_details");
    cli_json_integer(j, "reasoning_tokens", 0);
    cli_json_end(j);
    cli_json_integer(j, "total_tokens", prompt + tokens);
    cli_json_end(j);
}

/* Writes the fields of an answer: with its output if it is complete, or with an error, or without either. */
static void write_fields(cli_json *j, const serve_text_answer *a, const char *status, const char *error)
{
    const bool full = strcmp(status, "in_progress") && !error;
    cli_json_string(j, "id", a->id);
    cli_json_string(j, "object", a->shape->object);
    cli_json_integer(j, "created_at", a->created);
    cli_json_string(j, "status", status);
    cli_json_string(j, "model", a->g->job.model->id);
    if (error) {
        cli_json_object(j, "error");
        cli_json_string(j, "code", "server_error");
        cli_json_string(j, "message", error);
        cli_json_end(j);
    } else {
        cli_json_string(j, "error", NULL);
    }
    if (!strcmp(status, "incomplete")) {
        cli_json_object(j, "incomplete_details");
        cli_json_string(j, "reason", "max_output_tokens");
        cli_json_end(j);
    } else {
        cli_json_string(j, "incomplete_details", NULL);
    }
    cli_json_array(j, "output");
    if (full)
        write_message(j, NULL, a, true);
    cli_json_end(j);
    write_request(j, a);
    if (full)
        write_usage(j, a);
    else
        cli_json_string(j, "usage", NULL);
}

static void write_whole(serve_text_answer *a, cli_json *j)
{
    cli_json_object(j, NULL);
    write_fields(j, a, status_of(a), NULL);
}

/* ---- events ---- */

static cli_json begin_event(serve_text_answer *a, FILE *f, const char *type)
{
    cli_json j = {.file = f};
    fprintf(f, "event: %s\ndata: ", type);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "type", type);
    cli_json_integer(&j, "sequence_number", a->events++);
    return j;
}

static void end_event(cli_json *j)
{
    cli_json_close(j);
    putc('\n', j->file);
}

/* Writes an event that has the whole answer. */
static void write_answer_event(serve_text_answer *a, FILE *f, const char *type, const char *status, const char *error)
{
    cli_json j = begin_event(a, f, type);
    cli_json_object(&j, "response");
    write_fields(&j, a, status, error);
    end_event(&j);
}

/* Begins an event about the message, or about its only part. */
static cli_json begin_inner(serve_text_answer *a, FILE *f, const char *type, bool part)
{
    cli_json j = begin_event(a, f, type);
    cli_json_integer(&j, "output_index", 0);
    if (part) {
        write_message_id(&j, "item_id", a);
        cli_json_integer(&j, "content_index", 0);
    }
    return j;
}

static void write_begin(serve_text_answer *a, FILE *f)
{
    cli_json j;
    write_answer_event(a, f, "response.created", "in_progress", NULL);
    write_answer_event(a, f, "response.in_progress", "in_progress", NULL);
    j = begin_inner(a, f, "response.output_item.added", false);
    write_message(&j, "item", a, false);
    end_event(&j);
    j = begin_inner(a, f, "response.content_part.added", true);
    write_part(&j, "part", a, false);
    end_event(&j);
}

static void write_events(serve_text_answer *a, FILE *f)
{
    const bool scores = a->g->sampling->options.log_probabilities;
    if (a->events == 0)
        write_begin(a, f);
    const serve_piece p = serve_next_piece(a, 0);
    if (p.bytes == 0 && (!scores || p.from == p.to))
        return;
    cli_json j = begin_inner(a, f, "response.output_text.delta", true);
    cli_json_bytes(&j, "delta", p.text, p.bytes);
    serve_log_probabilities_write(&j, "logprobs", p.c, p.from, scores ? p.to : p.from);
    end_event(&j);
}

static void write_finish(serve_text_answer *a, FILE *f)
{
    const serve_choice *c = &a->g->choice[0];
    const char *status = status_of(a);
    char type[32];
    size_t bytes;
    const char *text = serve_choice_text(a, 0, &bytes);
    cli_json j = begin_inner(a, f, "response.output_text.done", true);
    cli_json_bytes(&j, "text", text, bytes);
    serve_log_probabilities_write(&j, "logprobs", c, 0, a->g->sampling->options.log_probabilities ? c->tokens : 0);
    end_event(&j);
    j = begin_inner(a, f, "response.content_part.done", true);
    write_part(&j, "part", a, true);
    end_event(&j);
    j = begin_inner(a, f, "response.output_item.done", false);
    write_message(&j, "item", a, true);
    end_event(&j);
    snprintf(type, sizeof type, "response.%s", status);
    write_answer_event(a, f, type, status, NULL);
}

static void write_error(serve_text_answer *a, FILE *f, int status, const char *message)
{
    (void)status;
    write_answer_event(a, f, "response.failed", "failed", message);
}

const serve_text_shape serve_response_shape = {.id = "resp_",
                                               .object = "response",
                                               .chat = true,
                                               .type = "text/event-stream",
                                               .write = write_whole,
                                               .events = write_events,
                                               .finish = write_finish,
                                               .fail = write_error};
