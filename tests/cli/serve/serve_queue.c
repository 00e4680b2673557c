/* The queue of attend serve: more texts of one model than a step has room for, also if a step fails; and short jobs
 * beside long ones. */
// labels: threads
#include "fixtures/fail_alloc.h"
#include "fixtures/generation.h"

#include "cli/base/progress.h"
#include "serve/generate_work.h"

#include <limits.h>
#include <semaphore.h>
#include <time.h>

/* ---- what queue.c needs of http.c ---- */

const short http_leaving = 0;

bool http_has_left(int socket, short events, bool *probed)
{
    (void)socket;
    (void)events;
    (void)probed;
    return false;
}

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- texts that are generated ---- */

enum { TEXTS = 2100, TOKENS = 6 };               /* a step has at most 2,048 jobs, and a session 64 sequences */
static const int32_t prompt[] = {1, 3, 2, 0, 1}; /* bdcab */
static const char text[] = "oeqegs";

typedef struct trial {
    fail_alloc allocator;
    serve_model model;
    serve_queue *queue;
    serve_generation *g[TEXTS]; /* [n] */
    int n;
    pthread_mutex_t gate; /* is held until all texts are added */
    /* of the compute loop: */
    int steps, fails_at; /* the number of steps before the one that fails; 0: none does */
    bool unordered;
} trial;

/* Is called after each step: its jobs must be the first ones that have not ended, in their order. */
static void see_step(void *user, const serve_batch *b, int64_t tokens, double seconds)
{
    trial *t = user;
    (void)tokens;
    (void)seconds;
    pthread_mutex_lock(&t->gate);
    pthread_mutex_unlock(&t->gate);
    for (int64_t i = 0, k = 0; t->steps && i < b->n; i++, k++) {
        while (k < t->n && t->g[k]->job.end)
            k++;
        t->unordered |= k == t->n || b->job[i] != &t->g[k]->job;
    }
    t->steps++;
    t->allocator.fail_at = t->steps == t->fails_at ? t->allocator.calls + 1 : 0; /* of the next step alone */
}

static serve_generation *new_text(trial *t)
{
    serve_prompts p = {0};
    serve_sampling *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->options = (att_generate_options){.size = sizeof s->options, .max_tokens = TOKENS};
    assert_true(serve_prompts_add(&p, prompt, sizeof prompt / sizeof *prompt));
    serve_generation *g = serve_generation_new(&t->model, &p, 1, s);
    assert_non_null(g);
    g->job.socket = -1;
    return g;
}

static void begin_trial(trial *t, int n, int fails_at)
{
    *t = (trial){.allocator.more = LONG_MAX / 2, .n = n, .fails_at = fails_at};
    att_ctx *ctx = fail_open(&t->allocator);
    t->model =
        (serve_model){.ctx = ctx, .id = "tiny", .subject = ATT_SUBJECT_LANGUAGE, .max_tokens = POSITIONS, .rate = 1000};
    t->model.session_tokens = 64 * (int64_t)(sizeof prompt / sizeof *prompt + TOKENS);
    assert_int_equal(att_any_model_open(ctx, folder.path, ATT_SUBJECT_NONE, NULL, &t->model.opened), ATT_OK);
    t->queue = serve_queue_start(&(serve_queue_options){.ctx = ctx,
                                                        .max_waiting = INT64_MAX / 2,
                                                        .step_tokens = 1 << 20,
                                                        .step_seconds = 0.03,
                                                        .step = see_step,
                                                        .user = t});
    assert_non_null(t->queue);
    for (int i = 0; i < t->n; i++)
        t->g[i] = new_text(t);
    pthread_mutex_init(&t->gate, NULL);
    pthread_mutex_lock(&t->gate);
    for (int i = 0; i < t->n; i++)
        serve_queue_add(t->queue, &t->g[i]->job);
    pthread_mutex_unlock(&t->gate);
}

/* Waits for all texts. Returns the number of those that failed; the others must be complete. */
static int end_trial(trial *t)
{
    int failed = 0;
    for (int i = 0; i < t->n; i++) {
        const serve_end end = serve_queue_wait(t->queue, &t->g[i]->job, cli_seconds() + 60);
        const serve_choice *c = t->g[i]->choice;
        if (end == SERVE_FAILED)
            failed++;
        else if (end != SERVE_DONE || c->bytes != TOKENS || memcmp(c->text, text, TOKENS))
            fail_msg("text %d ends as %d with \"%.*s\"", i, end, (int)c->bytes, c->text);
    }
    serve_queue_stop(t->queue);
    serve_queue_free(t->queue);
    for (int i = 0; i < t->n; i++)
        serve_generation_free(t->g[i]);
    serve_session_free(t->model.session);
    att_any_model_free(t->model.opened);
    att_close(t->model.ctx);
    pthread_mutex_destroy(&t->gate);
    assert_int_equal(t->allocator.live, 0);
    assert_false(t->unordered);
    return failed;
}

static void many_texts_come_in_their_order(void **state)
{
    static trial t;
    (void)state;
    begin_trial(&t, TEXTS, 0);
    assert_int_equal(end_trial(&t), 0);
}

static void a_step_that_fails_ends_only_the_texts_in_it(void **state)
{
    static trial t;
    (void)state;
    int failed = 0;
    for (int step = 1; step < 12; step += 5) {
        begin_trial(&t, TEXTS / check_step(8), step);
        const int n = end_trial(&t);
        assert_true(n <= 64 + 1); /* those of the session, and one that could not join */
        failed += n;
    }
    assert_true(failed > 0);
}

/* ---- short jobs beside a long one ---- */

enum { ROOM = 100, COST = 10, LONG = 100, SHORT = 3, STEPS = 64 };

typedef struct turns {
    serve_queue *queue;
    pthread_mutex_t gate;     /* is held until all jobs are added */
    sem_t begun;              /* the first step was computed */
    serve_job job[1 + SHORT]; /* a long one, and short ones of 1, 2 and 3 items */
    int64_t cost[LONG];
    int steps, items[STEPS][1 + SHORT]; /* of each step and job */
} turns;

static att_status compute_nothing(const serve_batch *b)
{
    (void)b;
    return ATT_OK;
}

static const serve_work nothing = {.name = "nothing", .run = compute_nothing};

static void note_items(void *user, const serve_batch *b, int64_t tokens, double seconds)
{
    turns *t = user;
    (void)seconds;
    sem_post(&t->begun);
    pthread_mutex_lock(&t->gate);
    pthread_mutex_unlock(&t->gate);
    for (int64_t i = 0; t->steps < STEPS && i < b->n; i++)
        t->items[t->steps][b->job[i] - t->job]++;
    t->steps++;
    if (tokens > ROOM)
        fail_msg("step %d has %lld tokens", t->steps, (long long)tokens);
}

static void add_job(turns *t, serve_model *m, int i, int64_t n)
{
    t->job[i] = (serve_job){.work = &nothing, .model = m, .n = n, .cost = t->cost, .socket = -1};
    serve_queue_add(t->queue, &t->job[i]);
}

static void short_jobs_come_next_and_alone(void **state)
{
    static turns t;
    static serve_model m = {.rate = 1e6};
    (void)state;
    for (int i = 0; i < LONG; i++)
        t.cost[i] = COST;
    pthread_mutex_init(&t.gate, NULL);
    sem_init(&t.begun, 0, 0);
    t.queue = serve_queue_start(&(serve_queue_options){
        .max_waiting = INT64_MAX / 2, .step_tokens = ROOM, .step_seconds = 0.03, .step = note_items, .user = &t});
    assert_non_null(t.queue);
    pthread_mutex_lock(&t.gate);
    add_job(&t, &m, 0, LONG);
    sem_wait(&t.begun);
    for (int i = 1; i <= SHORT; i++)
        add_job(&t, &m, i, i);
    pthread_mutex_unlock(&t.gate);
    for (int i = SHORT; i >= 0; i--)
        assert_int_equal(serve_queue_wait(t.queue, &t.job[i], cli_seconds() + 60), SERVE_DONE);
    serve_queue_stop(t.queue);
    serve_queue_free(t.queue);
    pthread_mutex_destroy(&t.gate);
    sem_destroy(&t.begun);
    for (int i = 1; i <= SHORT; i++)
        assert_int_equal(t.items[1][i], i); /* each as a whole */
    for (int k = 0; k < t.steps; k++)
        assert_int_equal(t.items[k][0], k == 1 ? 0 : ROOM / COST);
    assert_int_equal(t.steps, 1 + LONG * COST / ROOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_texts_come_in_their_order),
        cmocka_unit_test(a_step_that_fails_ends_only_the_texts_in_it),
        cmocka_unit_test(short_jobs_come_next_and_alone),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
