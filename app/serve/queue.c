#include "queue.h"

#include "http.h"

#include "cli/base/grow.h"
#include "cli/base/progress.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 2048, STACK = 8 << 20 }; /* of a step */
static const double fill = 0.75; /* share of a step's time that is planned: times vary, and connections compute, too */

struct serve_queue {
    serve_queue_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    serve_job *first, *last;
    int64_t tokens;
    double rate; /* tokens per second of the last steps */
    size_t jobs; /* in the list */
    bool stopped;
    /* of the step */
    serve_job *job[ITEMS];
    int64_t item[ITEMS];
    int64_t n, taken; /* items, tokens */
    bool short_alone; /* it has short jobs alone */
    /* of the jobs whose sockets are watched: */
    struct pollfd *polled; /* [watched_room] */
    serve_job **watched;
    size_t watched_room;
};

/* ---- the list of jobs; the lock is held ---- */

static void append(serve_queue *q, serve_job *j)
{
    j->previous = q->last;
    j->following = NULL;
    *(q->last ? &q->last->following : &q->first) = j;
    q->last = j;
    q->jobs++;
}

static void unlink_job(serve_queue *q, serve_job *j)
{
    *(j->previous ? &j->previous->following : &q->first) = j->following;
    *(j->following ? &j->following->previous : &q->last) = j->previous;
    j->previous = j->following = NULL;
    q->jobs--;
}

/* Ends a job none of whose items are being computed. */
static void end_job(serve_queue *q, serve_job *j, serve_end end)
{
    unlink_job(q, j);
    q->tokens -= j->tokens;
    j->tokens = 0;
    j->end = end;
    if (j->work->ended)
        j->work->ended(j);
    pthread_cond_signal(&j->ended);
}

/* Ends jobs that stay and whose time is over. */
static void drop_late(serve_queue *q)
{
    for (serve_job *j = q->first, *next; j; j = next) {
        next = j->following;
        if (j->late && j->work->stays)
            end_job(q, j, SERVE_LATE);
    }
}

/* Ends the jobs whose clients have gone: between steps, when none of their items are computed. If memory is short, the
 * last ones are not watched. */
static void drop_leavers(serve_queue *q)
{
    nfds_t n = 0;
    const cli_array arrays[] = {{&q->polled, sizeof *q->polled}, {&q->watched, sizeof(serve_job *)}};
    cli_reserve(&q->watched_room, q->jobs, arrays, 2);
    for (serve_job *j = q->first; j && n < q->watched_room; j = j->following)
        if (j->socket >= 0) {
            q->watched[n] = j;
            q->polled[n++] = (struct pollfd){.fd = j->socket, .events = http_leaving};
        }
    if (poll(q->polled, n, 0) <= 0)
        return;
    for (nfds_t i = 0; i < n; i++)
        if (q->polled[i].revents && http_has_left(q->polled[i].fd, q->polled[i].revents, &q->watched[i]->probed))
            end_job(q, q->watched[i], SERVE_LEFT);
}

/* ---- a step ---- */

static bool fit(const serve_job *a, const serve_job *b)
{
    if (a == b)
        return true;
    return a->model == b->model && a->work == b->work && (!a->work->fits || a->work->fits(a, b));
}

/* Adds the next item of a job to the step if there is room; the first one always fits. */
static bool add_item(serve_queue *q, serve_job *j, int64_t room)
{
    if (j->next == j->n || q->n == ITEMS || (q->n > 0 && q->taken + j->cost[j->next] > room))
        return false;
    if (j->next == 0)
        j->waited = cli_seconds() - j->added;
    q->taken += j->cost[j->next];
    q->job[q->n] = j;
    q->item[q->n++] = j->next++;
    j->running++;
    return true;
}

/* Chooses all jobs of the first one's model and work, which stays. */
static void choose_staying(serve_queue *q)
{
    serve_job *first = q->first;
    for (serve_job *j = first; j && q->n < ITEMS; j = j->following)
        if (fit(first, j)) {
            if (j->next == 0)
                j->waited = cli_seconds() - j->added;
            j->next = j->running = 1;
            q->job[q->n] = j;
            q->item[q->n++] = 0;
        }
}

/* Chooses items of the first job and of those that fit to it, one each in turn. */
static void choose_evenly(serve_queue *q, serve_job *first, int64_t room)
{
    for (bool more = true; more;) {
        more = false;
        for (serve_job *j = first; j; j = j->following)
            if (fit(first, j))
                more |= add_item(q, j, room);
    }
}

/* Returns whether a job is new, and all of it has room in a step. */
static bool is_short(const serve_job *j, int64_t room)
{
    return !j->work->stays && j->next == 0 && j->tokens <= room && j->n <= ITEMS;
}

static int64_t room_of(const serve_queue *q, const serve_model *m)
{
    const double tokens = fill * m->rate * q->o.step_seconds;
    return tokens < (double)q->o.step_tokens ? (int64_t)tokens : q->o.step_tokens;
}

/* Chooses short jobs alone, if there are other ones. Returns whether it has. */
static bool choose_short(serve_queue *q)
{
    serve_job *first = NULL;
    bool others = false;
    for (serve_job *j = q->first; j; j = j->following)
        if (!is_short(j, room_of(q, j->model)))
            others = true;
        else if (!first)
            first = j;
    if (!first || !others)
        return false;
    const int64_t room = room_of(q, first->model);
    for (serve_job *j = first; j; j = j->following)
        if (is_short(j, room) && fit(first, j) && q->taken + j->tokens <= room && q->n + j->n <= ITEMS)
            while (add_item(q, j, room))
                ;
    return q->n > 0;
}

/* Chooses the items of a step. After a step of others come short jobs, if there are any: they wait for at most the step
 * that runs, and not for their share of one more. */
static void choose(serve_queue *q)
{
    q->n = q->taken = 0;
    q->short_alone = !q->short_alone && choose_short(q);
    if (q->short_alone)
        return;
    if (q->first->work->stays)
        choose_staying(q);
    else
        choose_evenly(q, q->first, room_of(q, q->first->model));
}

/* Computes the step. After an error each job's items are computed by themselves, so that one does not fail another. */
static void compute(serve_queue *q)
{
    serve_batch b = {.model = q->job[0]->model,
                     .ctx = q->o.ctx,
                     .n = q->n,
                     .job = q->job,
                     .item = q->item,
                     .step_seconds = q->o.step_seconds,
                     .taken = &q->taken};
    if (!q->job[0]->work->run(&b))
        return;
    for (int64_t i = 0; i < q->n; i++) {
        b = (serve_batch){.model = b.model, .ctx = b.ctx, .n = 1, .job = q->job + i, .item = q->item + i};
        const att_status s = q->job[i]->status ? ATT_OK : q->job[i]->work->run(&b);
        if (s) {
            q->job[i]->status = s;
            snprintf(q->job[i]->message, sizeof q->job[i]->message, "%s", att_error(q->o.ctx));
        }
    }
}

/* Subtracts the tokens of an item of the step from those that wait. */
static void subtract(serve_queue *q, serve_job *j, int64_t item)
{
    const int64_t tokens = j->work->stays ? j->begun : j->cost[item];
    j->begun = 0;
    j->tokens -= tokens;
    q->tokens -= tokens;
}

/* Moves the jobs that stay and fit to this one, which may have ended, after the others, in the same order: those that
 * came first are in each step, although it has no room for all. */
static void put_last(serve_queue *q, const serve_job *staying)
{
    serve_job *next = q->first;
    for (size_t n = q->jobs; n > 0; n--) {
        serve_job *j = next;
        next = j->following;
        if (fit(staying, j)) {
            unlink_job(q, j);
            append(q, j);
        }
    }
}

/* Notes what the step has done: the tokens per second of its model, and which jobs have ended. The lock is held. */
static void finish(serve_queue *q, double seconds)
{
    serve_model *m = q->job[0]->model;
    const double rate = (double)q->taken / (seconds > 1e-6 ? seconds : 1e-6);
    const int64_t room = room_of(q, m);
    const bool whole = q->job[0]->work->stays || q->taken >= room; /* of others, small steps have lower rates */
    m->rate += 0.2 * (whole ? 1 : (double)q->taken / (double)room) * (rate - m->rate);
    q->rate = m->rate;
    for (int64_t i = 0; i < q->n; i++) {
        serve_job *j = q->job[i];
        subtract(q, j, q->item[i]);
        if (--j->running > 0)
            continue;
        j->computed += seconds;
        if (j->status)
            end_job(q, j, SERVE_FAILED);
        else if (j->work->stays ? j->done : j->next == j->n)
            end_job(q, j, SERVE_DONE);
        else if (j->late)
            end_job(q, j, SERVE_LATE);
        else if (j->following && !j->work->stays) { /* others come first */
            unlink_job(q, j);
            append(q, j);
        }
    }
    if (q->job[0]->work->stays)
        put_last(q, q->job[0]);
}

static void *loop(void *user)
{
    serve_queue *q = user;
    pthread_mutex_lock(&q->lock);
    while (!q->stopped) {
        if (!q->first) {
            pthread_cond_wait(&q->work, &q->lock);
            continue;
        }
        drop_late(q);
        drop_leavers(q);
        if (!q->first)
            continue;
        choose(q);
        pthread_mutex_unlock(&q->lock);
        const double begun = cli_seconds();
        compute(q);
        const double seconds = cli_seconds() - begun;
        const serve_batch b = {.model = q->job[0]->model, .ctx = q->o.ctx, .n = q->n, .job = q->job, .item = q->item};
        q->o.step(q->o.user, &b, q->taken, seconds);
        pthread_mutex_lock(&q->lock);
        finish(q, seconds);
    }
    while (q->first)
        end_job(q, q->first, SERVE_STOPPED);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- what connections call ---- */

serve_queue *serve_queue_start(const serve_queue_options *o)
{
    serve_queue *q = calloc(1, sizeof *q);
    pthread_attr_t attributes;
    if (!q)
        return NULL;
    q->o = *o;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    const int failed = pthread_create(&q->thread, &attributes, loop, q);
    pthread_attr_destroy(&attributes);
    if (!failed)
        return q;
    free(q);
    return NULL;
}

void serve_queue_stop(serve_queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->stopped = true;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
}

void serve_queue_free(serve_queue *q)
{
    if (!q)
        return;
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q->polled);
    free(q->watched);
    free(q);
}

bool serve_queue_has_room(serve_queue *q, int64_t tokens, int64_t *seconds)
{
    pthread_mutex_lock(&q->lock);
    const bool room = q->tokens == 0 || q->tokens + tokens <= q->o.max_waiting;
    *seconds = (int64_t)ceil((double)q->tokens / (q->rate > 1 ? q->rate : 1));
    pthread_mutex_unlock(&q->lock);
    return room;
}

void serve_queue_add(serve_queue *q, serve_job *j)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&j->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int64_t i = 0; i < j->n; i++)
        j->tokens += j->cost[i];
    j->added = cli_seconds();
    pthread_mutex_lock(&q->lock);
    append(q, j);
    q->tokens += j->tokens;
    if (q->stopped)
        end_job(q, j, SERVE_STOPPED);
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

serve_end serve_queue_wait(serve_queue *q, serve_job *j, double deadline)
{
    const struct timespec until = {.tv_sec = (time_t)deadline, .tv_nsec = (long)(1e9 * (deadline - floor(deadline)))};
    pthread_mutex_lock(&q->lock);
    while (j->end == SERVE_WAITING && !j->late)
        j->late = pthread_cond_timedwait(&j->ended, &q->lock, &until) != 0;
    if (j->end == SERVE_WAITING && j->running == 0 && !j->work->stays)
        end_job(q, j, SERVE_LATE);
    while (j->end == SERVE_WAITING)
        pthread_cond_wait(&j->ended, &q->lock);
    pthread_mutex_unlock(&q->lock);
    pthread_cond_destroy(&j->ended);
    return j->end;
}

void serve_queue_answers(serve_queue *q, serve_job *j)
{
    pthread_mutex_lock(&q->lock);
    j->probed = true;
    pthread_mutex_unlock(&q->lock);
}

int64_t serve_queue_waiting(serve_queue *q)
{
    pthread_mutex_lock(&q->lock);
    const int64_t tokens = q->tokens;
    pthread_mutex_unlock(&q->lock);
    return tokens;
}
