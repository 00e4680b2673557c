#include "call.h"

#include "guard.h"
#include "metrics.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

/* The types and codes that clients expect beside a status. */
static const struct error_type {
    int status;
    const char *type, *code, *flat;
} error_types[] = {
    {400, "invalid_request_error", NULL, "validation"},
    {401, "invalid_request_error", "invalid_api_key", "unauthorized"},
    {403, "invalid_request_error", "forbidden", "forbidden"},
    {404, "invalid_request_error", "not_found", "not_found"},
    {405, "invalid_request_error", "method_not_allowed", "method_not_allowed"},
    {413, "invalid_request_error", "request_too_large", "validation"},
    {429, "rate_limit_error", "overloaded", "overloaded"},
    {500, "server_error", NULL, "backend"},
    {503, "server_error", "unavailable", "unhealthy"},
    {504, "server_error", "timeout", "backend"},
    {0},
};

static const struct error_type *type_of(int status)
{
    const struct error_type *t = error_types;
    while (t->status && t->status != status)
        t++;
    return t->status ? t : error_types;
}

void serve_error_answer(http_answer *a, serve_errors shape, int status, const char *param, const char *message)
{
    const struct error_type *t = type_of(status);
    free(a->body);
    a->body = NULL;
    a->bytes = 0;
    a->status = status;
    FILE *f = open_memstream(&a->body, &a->bytes);
    if (!f)
        return;
    cli_json j = cli_json_begin(f);
    if (shape == SERVE_ERRORS_OPENAI) {
        cli_json_object(&j, "error");
        cli_json_string(&j, "message", message);
        cli_json_string(&j, "type", t->type);
        cli_json_string(&j, "param", param);
        cli_json_string(&j, "code", t->code);
    } else {
        cli_json_string(&j, "error", message);
        cli_json_string(&j, "error_type", t->flat);
    }
    cli_json_close(&j);
    fclose(f);
}

void serve_refuse(serve_call *c, int status, const char *param, const char *format, ...)
{
    char message[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    serve_error_answer(c->answer, c->route->errors, status, param, message);
}

bool serve_call_read(serve_call *c, const char *field, const serve_field *table, const json_t *object, void *to)
{
    serve_field_error why = {0};
    const bool read = serve_fields_read(table, object, c->shared->settings->max_inputs, to, &why);
    if (!read)
        serve_refuse(c, 400, field, "%s: %s", field, why.message);
    return read;
}

/* ---- answers ---- */

cli_json serve_answer_open(serve_call *c)
{
    c->file = open_memstream(&c->answer->body, &c->answer->bytes);
    if (!c->file)
        cli_fail_memory();
    return (cli_json){.file = c->file};
}

void serve_answer_close(serve_call *c, cli_json *j)
{
    cli_json_close(j);
    const bool failed = ferror(c->file);
    if (fclose(c->file) || failed) {
        serve_refuse(c, 503, NULL, "there is not enough memory for the answer");
        return;
    }
    c->answer->status = 200;
}

void serve_usage_write(cli_json *j, int64_t tokens, int64_t truncated)
{
    cli_json_object(j, "usage");
    cli_json_integer(j, "prompt_tokens", tokens);
    cli_json_integer(j, "total_tokens", tokens);
    cli_json_integer(j, "truncated", truncated);
    cli_json_end(j);
}

/* ---- models ---- */

/* Lists the names of the models of a subject, or of all: ATT_SUBJECT_NONE. */
static const char *list_models(const serve_models *m, att_subject subject, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < m->n && used < size; i++)
        if (subject == ATT_SUBJECT_NONE || m->model[i]->subject == subject)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", m->model[i]->id);
    return text;
}

/* Finds a model. "NAME:latest", as Ollama's clients write it, is NAME, if no model has that name itself. */
static serve_model *find_model(const serve_models *all, serve_text name)
{
    static const char tag[] = ":latest";
    const size_t n = strlen(tag);
    serve_model *m = serve_models_find(all, name.text, name.bytes);
    if (m || name.bytes <= n || memcmp(name.text + name.bytes - n, tag, n))
        return m;
    return serve_models_find(all, name.text, name.bytes - n);
}

serve_model *serve_call_model(serve_call *c, serve_text name, att_subject subject)
{
    char names[700];
    const serve_models *all = &c->shared->models;
    serve_model *m = name.text ? find_model(all, name) : serve_models_first(all, subject);
    if (m && (m->subject == subject || subject == ATT_SUBJECT_NONE))
        return m;
    if (m)
        serve_refuse(c, 400, "model", "%s is a %s, but %s needs a %s%s%s", m->id, att_subject_name(m->subject),
                     c->route->path, att_subject_name(subject), serve_models_first(all, subject) ? "; there are: " : "",
                     list_models(all, subject, names, sizeof names));
    else if (name.text)
        serve_refuse(c, 404, "model", "there is no model \"%.*s\"; there are: %s",
                     name.bytes < SERVE_NAME ? (int)name.bytes : SERVE_NAME, name.text,
                     list_models(all, ATT_SUBJECT_NONE, names, sizeof names));
    else
        serve_refuse(c, 404, "model", "%s needs a %s, and none is served; there are: %s", c->route->path,
                     att_subject_name(subject), list_models(all, ATT_SUBJECT_NONE, names, sizeof names));
    return NULL;
}

/* ---- memory ---- */

bool serve_call_acquire(serve_call *c, size_t bytes)
{
    const bool acquired = http_acquire(c->shared->http, bytes);
    c->answer->acquired += acquired ? bytes : 0;
    return acquired;
}

const char serve_memory_sentence[] = "what all requests need together is more than --max-memory; retry later";

void serve_refuse_memory(serve_call *c)
{
    http_answer_header(c->answer, "Retry-After", "1");
    serve_refuse(c, 503, NULL, "%s", serve_memory_sentence);
    serve_metrics_reject(c->shared->metrics, "memory");
}

/* ---- work ---- */

static void refuse_failed(serve_call *c, const serve_job *job)
{
    const bool argument = job->status == ATT_ERR_ARGUMENT || job->status == ATT_ERR_SHAPE,
               memory = job->status == ATT_ERR_MEMORY;
    if (memory)
        http_answer_header(c->answer, "Retry-After", "1");
    serve_refuse(c, argument ? 400 : memory ? 503 : 500, NULL, "%s", job->message);
}

double serve_call_deadline(const serve_call *c) { return c->request->began + (double)c->shared->settings->timeout; }

bool serve_call_add(serve_call *c, serve_job *job)
{
    int64_t tokens = 0, seconds;
    for (int64_t i = 0; i < job->n; i++)
        tokens += job->cost[i];
    job->socket = c->request->socket;
    job->probed = c->request->is_1_0;
    if (!serve_queue_has_room(c->shared->queue, tokens, &seconds)) {
        http_answer_header(c->answer, "Retry-After", "%lld", (long long)(seconds > 0 ? seconds : 1));
        serve_refuse(c, 429, NULL, "%lld tokens wait already, and --max-waiting allows %lld: retry later",
                     (long long)serve_queue_waiting(c->shared->queue), (long long)c->shared->settings->max_waiting);
        serve_metrics_reject(c->shared->metrics, "waiting");
        return false;
    }
    serve_queue_add(c->shared->queue, job);
    return true;
}

bool serve_call_wait(serve_call *c, serve_job *job)
{
    switch (serve_queue_wait(c->shared->queue, job, serve_call_deadline(c))) {
    case SERVE_DONE:
        serve_metrics_job(c->shared->metrics, job);
        return true;
    case SERVE_FAILED:
        refuse_failed(c, job);
        return false;
    case SERVE_LATE:
        serve_refuse(c, 504, NULL, "it is not computed after the %lld seconds of --timeout",
                     (long long)c->shared->settings->timeout);
        serve_metrics_reject(c->shared->metrics, "timeout");
        return false;
    case SERVE_LEFT:
        serve_refuse(c, 503, NULL, "the client has gone");
        serve_metrics_reject(c->shared->metrics, "left");
        c->answer->close = true;
        return false;
    default:
        http_answer_header(c->answer, "Retry-After", "1");
        serve_refuse(c, 503, NULL, "the server ends");
        return false;
    }
}

bool serve_call_run(serve_call *c, serve_job *job) { return serve_call_add(c, job) && serve_call_wait(c, job); }

bool serve_call_has_key(const serve_call *c, serve_text key)
{
    return serve_guard_has_key(c->shared->guard, c->request) ||
           (key.text && serve_guard_knows(c->shared->guard, key.text));
}

void serve_call_count(serve_call *c, int64_t tokens, int64_t truncated)
{
    http_answer_header(c->answer, "X-Attend-Tokens", "%lld", (long long)tokens);
    http_answer_header(c->answer, "X-Attend-Truncated", "%lld", (long long)truncated);
    serve_metrics_count(c->shared->metrics, tokens, truncated);
}
