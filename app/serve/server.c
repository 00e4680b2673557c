/* A server from its beginning to its end, and the way of a request to its route. */
#include "server.h"
#include "form.h"
#include "guard.h"
#include "listen.h"
#include "metrics.h"
#include "routes.h"

#include "cli/base/progress.h"
#include "cli/base/signals.h"

#include <malloc.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LAST_SECONDS = 2 }; /* for clients to read what ends with the server */

typedef struct server {
    serve_shared shared;
    serve_guard guard;
    serve_listener listener;
    atomic_bool ready, draining;
} server;

/* ---- requests ---- */

/* Allows the page of an origin that is listed to read the answer. */
static void add_cors(const server *s, const http_request *r, http_answer *a)
{
    const char *origin = r->connection ? serve_guard_origin(&s->guard, r) : NULL;
    if (!origin)
        return;
    http_answer_header(a, "Access-Control-Allow-Origin", "%s", origin);
    http_answer_header(a, "Access-Control-Expose-Headers", "X-Attend-Tokens, X-Attend-Truncated, Retry-After");
    http_answer_header(a, "Vary", "Origin");
}

/* Answers what a browser asks before it sends a request of a page of another origin. */
static bool answer_preflight(const server *s, const http_request *r, http_answer *a)
{
    const char *headers = http_header(r, "Access-Control-Request-Headers");
    if (strcmp(r->method, "OPTIONS") || !serve_guard_origin(&s->guard, r))
        return false;
    a->status = 204;
    http_answer_header(a, "Access-Control-Allow-Methods", "GET, POST");
    if (headers && strlen(headers) < 200)
        http_answer_header(a, "Access-Control-Allow-Headers", "%s", headers);
    http_answer_header(a, "Access-Control-Max-Age", "600");
    return true;
}

/* Returns the status of a request that is refused before its body is read, with the sentence; 0: it is not. */
static int find_refusal(const server *s, const http_request *r, const serve_route *route, const serve_route *other,
                        const char **sentence)
{
    *sentence = serve_guard_refuses_host(&s->guard, r);
    if (*sentence) {
        serve_metrics_reject(s->shared.metrics, "host");
        return 403;
    }
    if (!route) {
        *sentence = other ? "this path has another method" : "there is no such path; GET /openapi.json lists all";
        return other ? 405 : 404;
    }
    if (!route->open && !route->own_key && !serve_guard_has_key(&s->guard, r)) {
        *sentence = "a key is needed: \"Authorization: Bearer KEY\"";
        serve_metrics_reject(s->shared.metrics, "key");
        return 401;
    }
    if (!route->always && !atomic_load(&s->ready)) {
        *sentence = atomic_load(&s->draining) ? "the server ends" : "models are being opened";
        return 503;
    }
    return 0;
}

static bool admit(void *user, const http_request *r, http_answer *a)
{
    const server *s = user;
    const serve_route *other, *route = serve_route_find(r->method, r->path, &other);
    const char *sentence;
    add_cors(s, r, a);
    if (answer_preflight(s, r, a))
        return false;
    const int status = find_refusal(s, r, route, other, &sentence);
    if (!status)
        return true;
    if (status == 401)
        http_answer_header(a, "WWW-Authenticate", "Bearer");
    if (status == 405)
        http_answer_header(a, "Allow", "%s", other->method);
    if (status == 503)
        http_answer_header(a, "Retry-After", "1");
    serve_error_answer(a, route ? route->errors : SERVE_ERRORS_OPENAI, status, NULL, sentence);
    return false;
}

/* Returns the bytes that the values of a body have in memory, at most: of JSON, by what begins them. */
static size_t count_values(const http_request *r)
{
    enum { VALUE = 96, KEY = 80, ARRAY = 128, OBJECT = 256 };
    size_t bytes = VALUE + 2 * r->bytes; /* their texts, also as a form's */
    bool within = false;
    for (size_t i = 0; i < r->bytes; i++) {
        const char c = r->body[i];
        if (c == '"')
            within = !within;
        else if (within)
            i += c == '\\';
        else
            bytes += c == ',' ? VALUE : c == ':' ? KEY : c == '[' ? ARRAY : c == '{' ? OBJECT : 0;
    }
    return bytes;
}

/* Reads the fields of a request and runs its route. */
static void run_route(serve_call *c)
{
    if (!serve_call_acquire(c, count_values(c->request))) {
        serve_refuse_memory(c);
        return;
    }
    serve_field_error e = {0};
    json_error_t why;
    const char *sentence = "the body is not a JSON object";
    const serve_route *route = c->route;
    c->is_form = route->form && serve_is_form(c->request);
    json_t *body = c->is_form
                       ? serve_form_read(c->request, route->fields, &sentence)
                       : json_loadb(c->request->body, c->request->bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    void *fields = calloc(1, route->size);
    if (!fields) {
        serve_refuse(c, 503, NULL, "out of memory");
    } else if (!body && !c->is_form) {
        serve_refuse(c, 400, NULL, "the body is not JSON: %s", why.text);
    } else if (!json_is_object(body)) {
        serve_refuse(c, 400, NULL, "%s", sentence);
    } else if (!serve_fields_read(route->fields, body, c->shared->settings->max_inputs, fields, &e)) {
        serve_refuse(c, 400, e.field, "%s", e.message);
    } else {
        c->body = body;
        route->run(c, fields);
    }
    if (fields)
        serve_fields_free(route->fields, fields);
    free(fields);
    json_decref(body);
}

static void answer(void *user, const http_request *r, http_answer *a)
{
    server *s = user;
    const serve_route *other;
    serve_call c = {
        .shared = &s->shared, .request = r, .answer = a, .route = serve_route_find(r->method, r->path, &other)};
    if (c.route->fields)
        run_route(&c);
    else
        c.route->run(&c, NULL);
}

static void refuse(void *user, const http_request *r, http_answer *a, int status, const char *sentence)
{
    server *s = user;
    const serve_route *other, *route = r->path ? serve_route_find(r->method, r->path, &other) : NULL;
    add_cors(s, r, a);
    if (status == 503) {
        http_answer_header(a, "Retry-After", "1");
        serve_metrics_reject(s->shared.metrics, "memory");
    }
    serve_error_answer(a, route ? route->errors : SERVE_ERRORS_OPENAI, status, NULL, sentence);
}

/* Writes a line about an answer: the route, never the texts. */
static void log_answer(void *user, const http_request *r, const http_answer *a)
{
    const server *s = user;
    const serve_route *other, *route = serve_route_find(r->method, r->path, &other);
    const char *path = route ? route->path : "-";
    const double seconds = cli_seconds() - r->began;
    char now[32];
    time_t t = time(NULL);
    struct tm parts;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &parts));
    serve_metrics_answer(s->shared.metrics, path, a->status, seconds);
    fprintf(stderr,
            "{\"time\": \"%s\", \"method\": \"%s\", \"route\": \"%s\", \"status\": %d, \"ms\": %.3f, \"in\": %zu, "
            "\"out\": %zu}\n",
            now, route ? route->method : "-", path, a->status, 1000 * seconds, r->bytes, a->bytes);
}

/* ---- the process ---- */

static void note_step(void *user, const serve_batch *b, int64_t tokens, double seconds)
{
    const server *s = user;
    serve_metrics_step(s->shared.metrics, b, tokens, seconds);
}

static int start_http(server *s)
{
    enum { OWN = 128 }; /* descriptors besides connections' */
    const serve_settings *o = s->shared.settings;
    char why[256];
    const int64_t descriptors = serve_raise_descriptors(o->max_connections + OWN);
    const int64_t connections = descriptors < o->max_connections + OWN ? descriptors - OWN : o->max_connections;
    if (connections < 1)
        return cli_fail("the process may open only %lld files (ulimit -n)", (long long)descriptors);
    if (connections < o->max_connections)
        cli_note("there can be %lld connections instead of the %lld of --max-connections, as the process may open "
                 "only %lld files (ulimit -n)",
                 (long long)connections, (long long)o->max_connections, (long long)descriptors);
    const http_options h = {
        .socket = s->listener.socket,
        .connections = connections,
        .body = o->max_body << 20,
        .memory = o->max_memory << 20,
        .request_time = (double)o->timeout,
        .handler = {.admit = admit, .answer = answer, .refuse = refuse, .ended = log_answer, .user = s}};
    s->shared.http = http_start(&h, why, sizeof why);
    return s->shared.http ? CLI_DONE : cli_fail("%s: %s", s->listener.url, why);
}

static int start_queue(server *s)
{
    const serve_settings *o = s->shared.settings;
    s->shared.queue = serve_queue_start(&(serve_queue_options){.ctx = s->shared.models.ctx,
                                                               .max_waiting = o->max_waiting,
                                                               .step_tokens = o->step_tokens,
                                                               .step_seconds = 0.001 * (double)o->step_ms,
                                                               .step = note_step,
                                                               .user = s});
    return s->shared.queue ? CLI_DONE : cli_fail_memory();
}

/* Waits for a signal, or at most this many milliseconds. `mask`: the signals that are blocked meanwhile. */
static void wait_for_signal(int milliseconds, const sigset_t *mask)
{
    const struct timespec t = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
    ppoll(NULL, 0, &t, mask);
}

/* Waits until all requests are answered, or at most this long. */
static void wait_for_answers(server *s, int64_t seconds, const sigset_t *mask)
{
    const double until = cli_seconds() + (double)seconds;
    while (http_active(s->shared.http) > 0 && cli_seconds() < until) {
        wait_for_signal(10, mask);
        http_watch(s->shared.http);
    }
}

/* Bounds the memory that malloc keeps for later, which otherwise grows for thousands of requests: two arenas for each
 * processor, and 128 KiB at the end of each. Is called before there are threads. */
static void limit_kept_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 2 * (int)sysconf(_SC_NPROCESSORS_ONLN));
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
}

/* Returns memory that many requests have used to the system, once none is left. *answered: the requests until the last
 * time. */
static void trim_memory(server *s, int64_t *answered)
{
    const int64_t now = http_answered(s->shared.http);
    if (now == *answered || http_active(s->shared.http) > 0)
        return;
    *answered = now;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Serves until a signal comes; then no new connection is accepted, and requests get their answers, for at most --grace
 * seconds. A second signal ends the process. */
static void serve(server *s, const sigset_t *mask)
{
    atomic_store(&s->ready, true);
    printf("attend: serving at %s\n", s->listener.url);
    fflush(stdout);
    for (int64_t answered = 0; !cli_signal;) {
        wait_for_signal(1000, mask);
        http_watch(s->shared.http);
        trim_memory(s, &answered);
    }
    atomic_store(&s->draining, true);
    atomic_store(&s->ready, false);
    http_drain(s->shared.http);
    wait_for_answers(s, s->shared.settings->grace, mask);
    serve_queue_stop(s->shared.queue); /* which answers what is left */
    wait_for_answers(s, LAST_SECONDS, mask);
}

int serve_run(const serve_settings *settings)
{
    server s = {.shared = {.settings = settings, .routes = serve_routes, .guard = &s.guard}};
    sigset_t before;
    json_object_seed(0); /* before threads do */
    limit_kept_memory();
    cli_end_later();
    cli_end_block(&before); /* threads inherit it, so that signals reach this one alone */
    int code = serve_listen(settings->host, settings->port, &s.listener);
    if (!code)
        code = serve_guard_open(&s.guard, settings, s.listener.loopback);
    if (!code && !(s.shared.metrics = serve_metrics_new()))
        code = cli_fail_memory();
    if (!code && !s.listener.activated)
        code = start_http(&s);
    if (!code)
        code = cli_open_with(&s.shared.models.ctx, settings->threads, NULL);
    if (!code)
        code = serve_models_open(&s.shared.models, settings);
    if (!code && s.listener.activated) /* the request for which systemd has started the process waits for models */
        code = start_http(&s);
    if (!code)
        code = start_queue(&s);
    if (!code)
        serve(&s, &before);
    http_stop(s.shared.http);
    serve_queue_free(s.shared.queue);
    serve_models_close(&s.shared.models);
    att_close(s.shared.models.ctx);
    serve_metrics_free(s.shared.metrics);
    serve_guard_close(&s.guard);
    if (!code)
        cli_end_answered();
    return code;
}
