#include "text_run.h"

#include "metrics.h"

#include <stdlib.h>
#include <string.h>

/* A request that is being answered. It lives as long as its job; a stream's until its connection has ended. */
typedef struct text_run {
    serve_text_answer answer;
    serve_shared *shared;
    double deadline;
    size_t memory; /* acquired */
    bool ended;    /* the job has ended, and was waited for */
    /* of a stream: */
    char *events; /* [bytes]; the first `sent` were sent */
    size_t bytes, sent;
    uint64_t seen; /* of the generation's changes */
    bool complete; /* the last events are written */
} text_run;

/* ---- the end of a request ---- */

static void free_run(text_run *t)
{
    http_release(t->shared->http, t->memory);
    serve_text_answer_free(&t->answer);
    free(t->events);
    free(t);
}

/* Ends the job, if it has not ended. */
static serve_end end_job(text_run *t, double deadline)
{
    serve_generation *g = t->answer.g;
    if (!t->ended)
        serve_queue_wait(t->shared->queue, &g->job, deadline);
    t->ended = true;
    return g->job.end;
}

static void count(const text_run *t)
{
    int64_t cached;
    const serve_generation *g = t->answer.g;
    serve_metrics_job(t->shared->metrics, &g->job);
    serve_metrics_count(t->shared->metrics, g->cost + serve_text_answer_tokens(&t->answer, &cached), 0);
}

/* ---- streams ---- */

/* The sentences and statuses of jobs that end without being complete, after their streams have begun. */
static const struct end_error {
    serve_end end;
    int status;
    const char *sentence; /* NULL: the job's message */
} end_errors[] = {
    {SERVE_FAILED, 500, NULL},
    {SERVE_LATE, 504, "the text is not complete after the seconds of --timeout"},
    {SERVE_STOPPED, 503, "the server ends"},
};

static void write_end(text_run *t, FILE *f, serve_end end)
{
    const serve_text_shape *shape = t->answer.shape;
    t->complete = true;
    if (end == SERVE_DONE)
        shape->finish(&t->answer, f);
    for (size_t i = 0; i < sizeof end_errors / sizeof *end_errors; i++)
        if (end_errors[i].end == end)
            shape->fail(&t->answer, f, end_errors[i].status,
                        end_errors[i].sentence ? end_errors[i].sentence : t->answer.g->job.message);
}

/* Waits for more, and writes events of it. Returns false if the connection must be closed. */
static bool write_events(text_run *t)
{
    serve_generation *g = t->answer.g;
    serve_end end = SERVE_WAITING;
    if (!serve_generation_wait(g, t->seen, t->deadline))
        end_job(t, 0);
    free(t->events);
    t->events = NULL;
    t->bytes = t->sent = 0;
    FILE *f = open_memstream(&t->events, &t->bytes);
    if (!f)
        return false;
    pthread_mutex_lock(&g->lock);
    t->seen = g->changes;
    end = g->end;
    t->answer.shape->events(&t->answer, f);
    pthread_mutex_unlock(&g->lock);
    if (end)
        write_end(t, f, end);
    const bool failed = ferror(f);
    return !fclose(f) && !failed && end != SERVE_LEFT;
}

static ssize_t read_stream(void *user, char *to, size_t size)
{
    text_run *t = user;
    while (t->sent == t->bytes) {
        if (t->complete)
            return 0;
        if (!write_events(t))
            return -1;
    }
    const size_t n = t->bytes - t->sent < size ? t->bytes - t->sent : size;
    memcpy(to, t->events + t->sent, n);
    t->sent += n;
    return (ssize_t)n;
}

static void close_stream(void *user)
{
    text_run *t = user;
    const serve_end end = end_job(t, 0);
    if (end == SERVE_LEFT || end == SERVE_LATE)
        serve_metrics_reject(t->shared->metrics, end == SERVE_LATE && t->complete ? "timeout" : "left");
    count(t);
    free_run(t);
}

/* Waits for the first token, so that what is refused has its status, and answers with a stream, which owns the run from
 * here on. */
static void begin_stream(serve_call *c, text_run *t)
{
    serve_generation *g = t->answer.g;
    const bool news = serve_generation_wait(g, 0, t->deadline);
    pthread_mutex_lock(&g->lock);
    const serve_end end = g->end;
    pthread_mutex_unlock(&g->lock);
    if (!news || (end && end != SERVE_DONE)) {
        serve_call_wait(c, &g->job);
        free_run(t);
        return;
    }
    serve_queue_answers(c->shared->queue, &g->job);
    c->answer->status = 200;
    c->answer->type = t->answer.shape->type;
    c->answer->stream = (http_stream){.read = read_stream, .close = close_stream, .user = t};
    http_answer_header(c->answer, "Cache-Control", "no-cache");
    http_answer_header(c->answer, "X-Accel-Buffering", "no"); /* of nginx, which would hold events back */
}

/* ---- requests ---- */

static bool check_prompts(serve_call *c, const serve_text_request *r, const char *what)
{
    const serve_model *m = r->model;
    for (int64_t i = 0; i < r->prompts.n; i++) {
        const long long tokens = (long long)serve_prompt_tokens(&r->prompts, i), max = (long long)m->max_tokens;
        char index[32] = "";
        if (r->prompts.n > 1)
            snprintf(index, sizeof index, "[%lld]", (long long)i);
        if (tokens == 0)
            serve_refuse(c, 400, what, "%s%s: is empty, and %s continues at least one token", what, index, m->id);
        else if (tokens >= max)
            serve_refuse(c, 400, what, "%s%s: has %lld tokens, but in %s prompt and text have at most %lld together",
                         what, index, tokens, m->id, max);
        else
            continue;
        return false;
    }
    return true;
}

/* Returns the bytes that the texts of a request may need. */
static size_t count_bytes(const serve_text_request *r)
{
    enum { TEXT = 16, SCORE = 8 }; /* of a token, with room to grow */
    const att_generate_options *o = &r->sampling->options;
    const int64_t max = o->max_tokens < r->model->max_tokens ? o->max_tokens : r->model->max_tokens;
    return (size_t)(r->prompts.n * r->per_prompt * max) *
           (TEXT + (o->log_probabilities ? 2 * SCORE * (size_t)(o->top + 1) : 0));
}

/* Makes a run, which owns what the request has. NULL: out of memory. */
static text_run *new_run(serve_call *c, serve_text_request *r)
{
    text_run *t = calloc(1, sizeof *t);
    serve_generation *g = t ? serve_generation_new(r->model, &r->prompts, r->per_prompt, r->sampling) : NULL;
    if (!g) {
        free(t);
        return NULL;
    }
    r->sampling = NULL;
    *t = (text_run){.shared = c->shared, .deadline = serve_call_deadline(c)};
    if (!serve_text_answer_begin(&t->answer, r->shape, g)) {
        free_run(t);
        return NULL;
    }
    t->answer.usage = r->usage;
    t->answer.echo = json_incref(r->echo);
    return t;
}

static void answer_whole(serve_call *c, text_run *t)
{
    int64_t cached;
    serve_generation *g = t->answer.g;
    if (serve_call_wait(c, &g->job)) {
        cli_json j = serve_answer_open(c);
        t->answer.shape->write(&t->answer, &j);
        serve_answer_close(c, &j);
        serve_call_count(c, g->cost + serve_text_answer_tokens(&t->answer, &cached), 0);
    }
    free_run(t);
}

static void answer(serve_call *c, serve_text_request *r)
{
    const size_t memory = count_bytes(r);
    const bool room = http_acquire(c->shared->http, memory);
    text_run *t = room ? new_run(c, r) : NULL;
    if (!t) {
        http_release(c->shared->http, room ? memory : 0);
        serve_refuse(c, 503, NULL,
                     "the texts of all requests together have no room in --max-memory: retry later, or "
                     "ask for fewer with max_tokens");
        return;
    }
    t->memory = memory;
    if (!serve_call_add(c, &t->answer.g->job))
        free_run(t);
    else if (r->stream)
        begin_stream(c, t);
    else
        answer_whole(c, t);
}

void serve_text_run(serve_call *c, serve_text_request *r, const char *what)
{
    if (check_prompts(c, r, what))
        answer(c, r);
}

void serve_text_request_free(serve_text_request *r)
{
    serve_prompts_free(&r->prompts);
    serve_sampling_free(r->sampling);
}
