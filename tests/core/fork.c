/* A child that a process forks has its memory and none of its threads, whatever those were doing: calls compute there,
 * on as many threads that the child makes, contexts can be closed, and nothing waits for threads that do not exist. */
// labels: threads native
#include "fixtures/cache.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/tape.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 3, SIDE = 40, FORKS = 1000, AT_ONCE = 8, IN_TIME = 300 /* seconds, of a child */ };
static const shape n = {2, 4, 2, 9, 20, 8, 8};

typedef struct results {
    float product[SIDE * SIDE], linear[SIDE * SIDE];
    float out[2 * 4 * 9 * 8], dq[2 * 4 * 9 * 8];
} results;

/* The resources of a parent: threads, a plan, and a weight that is packed repeatedly. */
typedef struct fixture {
    att_ctx *ctx;
    att_plan *plan;
    att_param *w;
    operands o;
    float *x;
    results expected;
    atomic_bool stop;
} fixture;

static att_status compute(fixture *f, att_ctx *ctx, results *r)
{
    const att_tensor x = view(f->x, ATT_F32, ATT_DIMS(SIDE, SIDE)), y = view(r->product, ATT_F32, ATT_DIMS(SIDE, SIDE));
    att_attention_args a = f->o.args;
    operands g = make(n);
    att_tape *t = NULL;
    att_tensor z;
    a.out.data = r->out;
    const att_attention_grads grads = {
        .size = sizeof grads, .dout = f->o.args.out, .dq = g.args.q, .dk = g.args.k, .dv = g.args.v};
    att_status s = att_tensor_matmul(ctx, &x, &x, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &y);
    s = s ? s : att_forward(f->plan, &a);
    s = s ? s : att_backward(f->plan, &a, &grads);
    s = s ? s : att_tape_new(ctx, NULL, &t);
    s = s ? s : att_var_value(t, att_linear(t, att_input(t, &x), f->w, NULL, ATT_ACTIVATION_IDENTITY, NULL), &z);
    if (!s) {
        memcpy(r->dq, g.q, sizeof r->dq);
        memcpy(r->linear, z.data, sizeof r->linear);
    }
    att_tape_free(t);
    operands_free(&g);
    return s;
}

/* Computes until it is told to stop, so that locks and threads are in any state when the process forks. */
static void *compute_on(void *arg)
{
    fixture *f = arg;
    static results r;
    while (!f->stop) {
        att_param_invalidate(f->w);
        if (compute(f, f->ctx, &r))
            return "failed";
    }
    return NULL;
}

#if defined(__has_feature)
#define HAS(sanitizer) __has_feature(sanitizer)
#else
#define HAS(sanitizer) 0
#endif
/* Address sanitizer's memory has locks that stay taken in a child; thread sanitizer knows no threads of a child. */
#if defined(__SANITIZE_ADDRESS__) || HAS(address_sanitizer)
static const bool memory_can_fork = false;
#else
static const bool memory_can_fork = true;
#endif
#if defined(__SANITIZE_THREAD__) || HAS(thread_sanitizer)
static const bool child_has_threads = false;
#else
static const bool child_has_threads = true;
#endif

/* Returns the child's exit code. */
static int child(fixture *f, bool first)
{
    static results r;
    alarm(IN_TIME); /* ends one that waits for ever */
    if (!child_has_threads && att_set_threads(f->ctx, 1))
        return 5;
    if (compute(f, f->ctx, &r))
        return 1;
    if (memcmp(&r, &f->expected, sizeof r))
        return 2;
    if (first && child_has_threads) {
        att_ctx *own;
        if (att_open(&own, ATT_OPTIONS(att_config, .n_threads = THREADS)) || compute(f, own, &r))
            return 3;
        att_close(own);
        if (memcmp(&r, &f->expected, sizeof r))
            return 4;
    }
    att_param_free(f->w);
    att_plan_free(f->plan);
    att_close(f->ctx);
    return 0;
}

static void await(pid_t p)
{
    int status;
    assert_int_equal(waitpid(p, &status, 0), p);
    if (status)
        fail_msg("a child: %s %d", WIFSIGNALED(status) ? "signal" : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void fork_often(fixture *f, int forks)
{
    pid_t p[AT_ONCE] = {0};
    for (int i = 0; i < forks + AT_ONCE; i++) {
        if (p[i % AT_ONCE])
            await(p[i % AT_ONCE]);
        p[i % AT_ONCE] = i < forks ? fork() : -1;
        if (p[i % AT_ONCE] == 0)
            _exit(child(f, i % 50 == 0));
        assert_true(p[i % AT_ONCE] > 0 || i >= forks);
    }
}

typedef struct meeting {
    pthread_barrier_t all;
    pthread_t thread[THREADS];
} meeting;

static void meet(void *arg, int i)
{
    meeting *m = arg;
    m->thread[i] = pthread_self();
    pthread_barrier_wait(&m->all);
}

/* Does each of THREADS bodies, which wait for one another, run on a thread of its own? Afterwards what a thread
 * allocates as it starts, and address sanitizer's lock of that, is past. */
static bool all_meet(att_ctx *ctx)
{
    meeting m;
    pthread_barrier_init(&m.all, NULL, THREADS);
    att_parallel_for(ctx, THREADS, meet, &m);
    pthread_barrier_destroy(&m.all);
    bool distinct = true;
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < i; k++)
            distinct = distinct && !pthread_equal(m.thread[i], m.thread[k]);
    return distinct;
}

/* ---- threads of a child */

/* Forks a child, which forks another one, and so on, `below` times. Returns the exit code of the first that failed, or
 * of the first child. */
static int child_with_threads(att_ctx *ctx, const fail_alloc *f, int below)
{
    alarm(IN_TIME);
    int status;
    if (att_threads(ctx) != THREADS)
        return 1;
    if (below > 0) { /* before it has needed its threads, or after */
        if (below % 2 && !all_meet(ctx))
            return 2;
        const pid_t p = fork();
        if (p == 0)
            _exit(child_with_threads(ctx, f, below - 1));
        if (p < 0 || waitpid(p, &status, 0) != p || !WIFEXITED(status) || WEXITSTATUS(status))
            return 3;
    }
    if (!all_meet(ctx) || !all_meet(ctx))
        return 4;
    if (att_set_threads(ctx, 1) || att_threads(ctx) != 1 || att_set_threads(ctx, 0) || !all_meet(ctx))
        return 5;
    att_close(ctx);
    return f->live ? 6 : 0;
}

static void fork_with_threads(att_ctx *ctx, const fail_alloc *f, int forks)
{
    for (int i = 0; i < forks; i++) {
        const pid_t p = fork();
        if (p == 0)
            _exit(child_with_threads(ctx, f, i % 4));
        assert_true(p > 0);
        await(p);
        assert_int_equal(att_threads(ctx), THREADS);
    }
}

typedef struct holder {
    att_ctx *ctx;
    pthread_barrier_t held, released;
} holder;

static void hold(void *arg, int i)
{
    holder *h = arg;
    (void)i;
    pthread_barrier_wait(&h->held);
    pthread_barrier_wait(&h->released);
}

static void *hold_all(void *arg)
{
    holder *h = arg;
    att_parallel_for(h->ctx, THREADS, hold, h);
    return NULL;
}

static void a_child_has_as_many_threads_as_its_parent_had_whatever_these_did(void **state)
{
    (void)state;
    if (!child_has_threads)
        skip();
    fail_alloc f = {0};
    holder h;
    assert_int_equal(att_open(&h.ctx, ATT_OPTIONS(att_config, .n_threads = THREADS, .allocator = fail_allocator(&f))),
                     ATT_OK);
    assert_true(all_meet(h.ctx));
    fork_with_threads(h.ctx, &f, 8);
    assert_true(all_meet(h.ctx));
    pthread_t other;
    pthread_barrier_init(&h.held, NULL, THREADS + 1);
    pthread_barrier_init(&h.released, NULL, THREADS + 1);
    assert_int_equal(pthread_create(&other, NULL, hold_all, &h), 0);
    pthread_barrier_wait(&h.held); /* now all threads of the context are in a call */
    fork_with_threads(h.ctx, &f, 8);
    pthread_barrier_wait(&h.released);
    pthread_join(other, NULL);
    pthread_barrier_destroy(&h.held);
    pthread_barrier_destroy(&h.released);
    assert_true(all_meet(h.ctx)); /* and the parent has its own */
    att_close(h.ctx);
    assert_int_equal(f.live, 0);
}

/* ---- results */

static void a_child_computes_what_its_parent_does_and_closes(void **state)
{
    (void)state;
    static fixture f;
    const att_attention_spec s = spec_of(n);
    f.ctx = check_open(NULL, THREADS);
    assert_true(all_meet(f.ctx));
    f.plan = plan_of(f.ctx, &s);
    f.x = check_numbers(SIDE * SIDE, 1);
    f.w = param(f.ctx, f.x, ATT_F32, ATT_DIMS(SIDE, SIDE));
    f.o = make(n);
    check_ok(f.ctx, compute(&f, f.ctx, &f.expected));
    fork_often(&f, 20); /* its threads sleep, or wait to */

    pthread_t other;
    void *wrong;
    results after;
    if (memory_can_fork) {
        assert_int_equal(pthread_create(&other, NULL, compute_on, &f), 0);
        fork_often(&f, FORKS / check_step(10));
        f.stop = true;
        pthread_join(other, &wrong);
        assert_null(wrong);
    }
    check_ok(f.ctx, compute(&f, f.ctx, &after)); /* and the parent continues with its threads */
    assert_memory_equal(&after, &f.expected, sizeof after);
    att_param_free(f.w);
    att_plan_free(f.plan);
    operands_free(&f.o);
    free(f.x);
    att_close(f.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_as_many_threads_as_its_parent_had_whatever_these_did),
        cmocka_unit_test(a_child_computes_what_its_parent_does_and_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
