/* A step computes a token of each text, and parts of prompts, whose size is such that the step takes as long as it
 * should. Texts that have no room in the session wait, in the order in which they came. */
#include "generate_work.h"

#include "cli/base/grow.h"
#include "cli/base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 64, MIN_PART = 16, FIRST_PART = 32, MAX_PART = 1024 };

struct serve_session {
    att_generation *s;
    int64_t part;     /* tokens of prompts in a step: a power of 2, so that parts end where smaller ones do */
    int64_t computed; /* tokens by all steps before */
};

/* ---- tokens that come ---- */

static bool add_text(serve_choice *c, const att_generated_token *t)
{
    if (t->bytes == 0)
        return true;
    if (!cli_reserve(&c->room, c->bytes + t->bytes, &(cli_array){&c->text, 1}, 1))
        return false;
    memcpy(c->text + c->bytes, t->text, t->bytes);
    c->bytes += t->bytes;
    return true;
}

static bool add_scores(serve_choice *c, const att_generated_token *t)
{
    const att_generate_options *o = &c->of->sampling->options;
    const size_t top = (size_t)o->top, at = (size_t)c->tokens;
    const cli_array arrays[] = {{&c->ids, sizeof *c->ids},
                                {&c->log_probabilities, sizeof *c->log_probabilities},
                                {&c->top_ids, top * sizeof *c->top_ids},
                                {&c->top_ones, top * sizeof *c->top_ones}};
    if (!o->log_probabilities)
        return true;
    if (!cli_reserve(&c->token_room, at + 1, arrays, top ? 4 : 2))
        return false;
    c->ids[at] = t->id;
    c->log_probabilities[at] = t->log_probability;
    if (top) {
        memcpy(c->top_ids + at * top, t->top_ids, top * sizeof *c->top_ids);
        memcpy(c->top_ones + at * top, t->top_log_probabilities, top * sizeof *c->top_ones);
    }
    return true;
}

static bool add_token(void *user, const att_generated_token *t)
{
    serve_choice *c = user;
    serve_generation *g = c->of;
    pthread_mutex_lock(&g->lock);
    const bool added = add_text(c, t) && add_scores(c, t);
    c->tokens++;
    g->changes++;
    pthread_cond_signal(&g->news);
    pthread_mutex_unlock(&g->lock);
    c->last = t->last || !added;
    if (!added)
        g->job.status = ATT_ERR_MEMORY;
    return added;
}

/* ---- joining and leaving ---- */

static void fail(serve_job *j, att_status s, const char *message)
{
    if (j->status)
        return;
    j->status = s;
    snprintf(j->message, sizeof j->message, "%s", message);
}

static att_status join_choice(serve_session *s, serve_choice *c)
{
    serve_generation *g = c->of;
    const int64_t index = c - g->choice;
    const int64_t n = serve_prompt_tokens(&g->prompts, c->prompt), room = g->job.model->max_tokens - n;
    att_generate_options o = g->sampling->options;
    o.max_tokens = o.max_tokens < room ? o.max_tokens : room;
    o.first_sequence = index % g->per_prompt;
    o.token = add_token;
    o.user = c;
    const int32_t *ids = g->prompts.ids + g->prompts.offsets[c->prompt];
    const att_status e = att_generation_add(s->s, ids, n, &o, &c->number);
    if (!e && index % g->per_prompt == 0)
        g->job.begun += n;
    return e;
}

/* Adds the texts that have not joined, until one has no room. If memory is short, one fails, and the others wait for
 * the next step. */
static void join(serve_session *s, const serve_batch *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        serve_generation *g = (serve_generation *)b->job[i];
        for (int64_t k = 0; k < g->choices && !g->job.status; k++) {
            serve_choice *c = &g->choice[k];
            if (c->number >= 0 || c->end)
                continue;
            const att_status e = join_choice(s, c);
            if (e == ATT_ERR_BUSY)
                return;
            if (e)
                fail(&g->job, e, att_error(b->ctx));
            if (e == ATT_ERR_MEMORY)
                return;
        }
    }
}

/* Takes a text that is complete out of the session. */
static void finish_choice(serve_session *s, serve_choice *c, att_ctx *ctx)
{
    serve_generation *g = c->of;
    att_generated out;
    const att_status e = att_generation_finish(s->s, c->number, &out);
    if (e) {
        fail(&g->job, e, att_error(ctx));
        return;
    }
    pthread_mutex_lock(&g->lock);
    c->end = out.end;
    c->cached = out.cached;
    g->changes++;
    pthread_cond_signal(&g->news);
    pthread_mutex_unlock(&g->lock);
    c->number = -1;
    att_generated_free(ctx, &out);
}

static void collect(serve_session *s, const serve_batch *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        serve_generation *g = (serve_generation *)b->job[i];
        bool all = true;
        for (int64_t k = 0; k < g->choices && !g->job.status; k++) {
            serve_choice *c = &g->choice[k];
            if (c->number >= 0 && c->last)
                finish_choice(s, c, b->ctx);
            all = all && c->end;
        }
        g->job.done = all;
    }
}

/* Is called when the job ends, whose texts then leave. */
static void leave(serve_job *j)
{
    serve_generation *g = (serve_generation *)j;
    serve_session *s = j->model->session;
    for (int64_t k = 0; k < g->choices; k++)
        if (g->choice[k].number >= 0) {
            att_generation_remove(s->s, g->choice[k].number);
            g->choice[k].number = -1;
        }
    pthread_mutex_lock(&g->lock);
    g->end = j->end;
    g->changes++;
    pthread_cond_signal(&g->news);
    pthread_mutex_unlock(&g->lock);
}

/* ---- steps ---- */

static att_status open_session(serve_model *m)
{
    serve_session *s = m->session ? m->session : calloc(1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    m->session = s;
    if (s->s)
        return ATT_OK;
    s->computed = 0;
    s->part = FIRST_PART;
    return att_generation_new(att_any_model_as(m->opened, ATT_SUBJECT_LANGUAGE),
                              ATT_OPTIONS(att_generation_options, .max_sequences = SEQUENCES,
                                          .max_tokens = m->session_tokens, .prompt_tokens = s->part,
                                          .kept_tokens = m->session_tokens / 4),
                              &s->s);
}

/* Fails all jobs that are in the session, which has failed, and frees it; the others join the next one. */
static void fail_all(serve_session *s, const serve_batch *b, att_status e)
{
    char message[512];
    snprintf(message, sizeof message, "%s", att_error(b->ctx));
    for (int64_t i = 0; i < b->n; i++) {
        serve_generation *g = (serve_generation *)b->job[i];
        for (int64_t k = 0; k < g->choices; k++)
            if (!s->s || g->choice[k].number >= 0) {
                g->choice[k].number = -1;
                fail(&g->job, e, message);
            }
    }
    att_generation_free(s->s);
    s->s = NULL;
}

static bool reads_prompts(const serve_batch *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        const serve_generation *g = (const serve_generation *)b->job[i];
        for (int64_t k = 0; k < g->choices; k++)
            if (g->choice[k].number >= 0 && g->choice[k].tokens == 0)
                return true;
    }
    return false;
}

/* Chooses the parts of prompts for the next step by the seconds of this one. */
static void fit_part(serve_session *s, const serve_batch *b, double seconds)
{
    int64_t part = s->part;
    if (seconds > b->step_seconds && part > MIN_PART)
        part /= 2;
    else if (seconds < 0.45 * b->step_seconds && part < MAX_PART && reads_prompts(b))
        part *= 2; /* it was too small: prompts wait, although there was time */
    if (part != s->part && !att_generation_set_prompt_tokens(s->s, part))
        s->part = part;
}

static void count(serve_session *s, const serve_batch *b)
{
    att_generation_info info = {.size = sizeof info};
    if (att_generation_describe(s->s, &info))
        return;
    *b->taken = info.computed - s->computed;
    s->computed = info.computed;
}

static att_status run(const serve_batch *b)
{
    int64_t active;
    att_status e = open_session(b->model);
    serve_session *s = b->model->session;
    if (e) { /* the others try again in the next step */
        fail(b->job[0], e, att_error(b->ctx));
        return ATT_OK;
    }
    join(s, b);
    const bool prompts = reads_prompts(b);
    const double begun = cli_seconds();
    e = att_generation_step(s->s, &active);
    if (e) {
        fail_all(s, b, e);
        return ATT_OK;
    }
    if (prompts)
        fit_part(s, b, cli_seconds() - begun);
    count(s, b);
    collect(s, b);
    return ATT_OK;
}

static const serve_work work = {.name = "generate", .run = run, .stays = true, .ended = leave};

int64_t serve_session_tokens(const att_language_model_info *m, int64_t bytes)
{
    const int64_t token = 2 * m->layers * m->kv_heads * m->head_dim * (int64_t)sizeof(float);
    return bytes / token * 4 / 5; /* a fifth is for beginnings that are kept */
}

void serve_session_free(serve_session *s)
{
    if (s)
        att_generation_free(s->s);
    free(s);
}

/* ---- generations ---- */

bool serve_prompts_add(serve_prompts *p, const int32_t *ids, int64_t n)
{
    const int64_t at = p->n ? p->offsets[p->n] : 0;
    if (!cli_reserve(&p->room, (size_t)(at + n), &(cli_array){&p->ids, sizeof *p->ids}, 1) ||
        !cli_reserve(&p->offsets_room, (size_t)p->n + 2, &(cli_array){&p->offsets, sizeof *p->offsets}, 1))
        return false;
    if (n > 0)
        memcpy(p->ids + at, ids, (size_t)n * sizeof *ids);
    p->offsets[p->n] = at;
    p->offsets[++p->n] = at + n;
    return true;
}

int64_t serve_prompt_tokens(const serve_prompts *p, int64_t i) { return p->offsets[i + 1] - p->offsets[i]; }

void serve_prompts_free(serve_prompts *p)
{
    free(p->ids);
    free(p->offsets);
    *p = (serve_prompts){0};
}

serve_generation *serve_generation_new(serve_model *m, serve_prompts *prompts, int64_t per_prompt,
                                       serve_sampling *sampling)
{
    const int64_t n = prompts->n * per_prompt;
    serve_generation *g = calloc(1, sizeof *g);
    serve_choice *choice = calloc((size_t)n, sizeof *choice);
    pthread_condattr_t monotonic;
    if (!g || !choice) {
        free(g);
        free(choice);
        return NULL;
    }
    *g = (serve_generation){.job = {.work = &work, .model = m, .n = 1, .cost = &g->cost},
                            .prompts = *prompts,
                            .per_prompt = per_prompt,
                            .choices = n,
                            .cost = prompts->offsets[prompts->n],
                            .sampling = sampling,
                            .choice = choice};
    *prompts = (serve_prompts){0};
    for (int64_t i = 0; i < n; i++)
        choice[i] = (serve_choice){.of = g, .prompt = i / per_prompt, .number = -1};
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return g;
}

void serve_sampling_free(serve_sampling *s)
{
    if (!s)
        return;
    for (int i = 0; i <= SERVE_STOPS; i++)
        free(s->stop[i]);
    free(s->bias);
    free(s);
}

void serve_generation_free(serve_generation *g)
{
    if (!g)
        return;
    serve_prompts_free(&g->prompts);
    serve_sampling_free(g->sampling);
    for (int64_t i = 0; i < g->choices; i++) {
        serve_choice *c = &g->choice[i];
        free(c->text);
        free(c->ids);
        free(c->top_ids);
        free(c->log_probabilities);
        free(c->top_ones);
    }
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->news);
    free(g->choice);
    free(g);
}

bool serve_generation_wait(serve_generation *g, uint64_t seen, double deadline)
{
    const struct timespec until = {.tv_sec = (time_t)deadline, .tv_nsec = (long)(1e9 * (deadline - floor(deadline)))};
    int late = 0;
    pthread_mutex_lock(&g->lock);
    while (g->changes == seen && !late)
        late = pthread_cond_timedwait(&g->news, &g->lock, &until);
    const bool changed = g->changes != seen;
    pthread_mutex_unlock(&g->lock);
    return changed;
}
