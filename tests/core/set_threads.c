/* att_set_threads: how many of its threads a context uses, also while others compute in it. */
// labels: threads
#include "fixtures/attention.h"
#include "fixtures/fail_alloc.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST = 4, BODIES = 400, ROUNDS = 300 };
static const shape n = {2, 4, 2, 40, 90, 16, 16};

typedef struct results {
    float out[2 * 4 * 40 * 16], lse[2 * 4 * 40];
    float dq[2 * 4 * 40 * 16], dk[2 * 2 * 90 * 16], dv[2 * 2 * 90 * 16];
} results;

static att_status compute(const att_plan *plan, results *r)
{
    operands o = make(n), g = make(n);
    o.args.out.data = r->out, o.args.lse.data = r->lse;
    g.args.q.data = r->dq, g.args.k.data = r->dk, g.args.v.data = r->dv;
    const att_attention_grads grads = {
        .size = sizeof grads, .dout = g.args.out, .dq = g.args.q, .dk = g.args.k, .dv = g.args.v};
    att_status s = att_forward(plan, &o.args);
    s = s ? s : att_backward(plan, &o.args, &grads);
    operands_free(&o), operands_free(&g);
    return s;
}

typedef struct meeting {
    pthread_barrier_t all;
    atomic_int bodies;
    pthread_t thread[BODIES];
} meeting;

static void meet(void *arg, int i)
{
    meeting *m = arg;
    m->thread[i] = pthread_self();
    pthread_barrier_wait(&m->all);
}

static void note_thread(void *arg, int i)
{
    meeting *m = arg;
    m->thread[i] = pthread_self();
    for (volatile int k = 0; k < 1000; k++) /* long enough for others to come, were they allowed to */
        ;
}

static int distinct(const pthread_t *thread, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < i && !pthread_equal(thread[k], thread[i]))
            k++;
        found += k == i;
    }
    return found;
}

static void check_uses(att_ctx *ctx, int threads)
{
    static meeting m;
    assert_int_equal(att_threads(ctx), threads);
    pthread_barrier_init(&m.all, NULL, (unsigned)threads);
    att_parallel_for(ctx, threads, meet, &m); /* ends only if each body has a thread */
    pthread_barrier_destroy(&m.all);
    assert_int_equal(distinct(m.thread, threads), threads);
    att_parallel_for(ctx, BODIES, note_thread, &m);
    assert_true(distinct(m.thread, BODIES) <= threads);
}

static void later_calls_run_on_as_many_threads_and_have_the_same_bits(void **state)
{
    (void)state;
    static const int counts[] = {1, 3, 2, 4, 1, 2, 0};
    static results expected, got;
    fail_alloc f = {0};
    att_ctx *ctx;
    att_plan *plan;
    const att_attention_spec s = spec_of(n);
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = MOST, .allocator = fail_allocator(&f))),
                     ATT_OK);
    assert_int_equal(att_plan_new(ctx, &s, &plan), ATT_OK);
    assert_int_equal(compute(plan, &expected), ATT_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_int_equal(att_set_threads(ctx, counts[i]), ATT_OK);
        check_uses(ctx, counts[i] ? counts[i] : MOST);
        memset(&got, 0xff, sizeof got);
        assert_int_equal(compute(plan, &got), ATT_OK);
        assert_memory_equal(&got, &expected, sizeof got);
    }
    att_set_threads(ctx, 2); /* closing ends those that sleep, too */
    att_plan_free(plan);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

static void a_number_that_the_context_does_not_have_is_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    assert_int_equal(att_set_threads(ctx, 1), ATT_OK);
    assert_int_equal(att_set_threads(ctx, 3), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_set_threads: n is 3, but must be from 0 to 2");
    assert_int_equal(att_set_threads(ctx, -1), ATT_ERR_ARGUMENT);
    check_message(ctx, "n is -1");
    assert_int_equal(att_threads(ctx), 1);
    att_close(ctx);
}

static void host_for(void *user, int count, void (*body)(void *, int), void *arg)
{
    *(int *)user = count;
    for (int i = 0; i < count; i++)
        body(arg, i);
}

static void a_host_is_asked_for_as_many(void **state)
{
    (void)state;
    int asked = 0;
    static meeting m;
    att_ctx *ctx;
    assert_int_equal(
        att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = MOST, .parallel_for = host_for, .parallel_user = &asked)),
        ATT_OK);
    for (int i = 2; i <= MOST; i++) {
        assert_int_equal(att_set_threads(ctx, i), ATT_OK);
        att_parallel_for(ctx, BODIES, note_thread, &m);
        assert_int_equal(asked, i);
    }
    att_close(ctx);
}

typedef struct worker {
    const att_plan *plan;
    const results *expected;
    atomic_bool *stop;
    results got;
} worker;

static void *compute_on(void *arg)
{
    worker *w = arg;
    while (!*w->stop)
        if (compute(w->plan, &w->got) || memcmp(&w->got, w->expected, sizeof w->got))
            return "other bits";
    return NULL;
}

static void it_may_change_while_other_threads_compute(void **state)
{
    (void)state;
    static results expected;
    static worker w[2];
    atomic_bool stop = false;
    att_plan *plan;
    att_ctx *ctx = check_open(NULL, MOST);
    const att_attention_spec s = spec_of(n);
    assert_int_equal(att_plan_new(ctx, &s, &plan), ATT_OK);
    assert_int_equal(compute(plan, &expected), ATT_OK);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        w[i].plan = plan, w[i].expected = &expected, w[i].stop = &stop;
        assert_int_equal(pthread_create(&thread[i], NULL, compute_on, &w[i]), 0);
    }
    for (int i = 0; i < ROUNDS / check_step(5); i++) {
        assert_int_equal(att_set_threads(ctx, (int)(check_bits(1, (uint64_t)i) % (MOST + 1))), ATT_OK);
        usleep(500);
    }
    stop = true;
    for (int i = 0; i < 2; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(att_set_threads(ctx, 0), ATT_OK);
    check_uses(ctx, MOST);
    att_plan_free(plan);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_calls_run_on_as_many_threads_and_have_the_same_bits),
        cmocka_unit_test(a_number_that_the_context_does_not_have_is_refused),
        cmocka_unit_test(a_host_is_asked_for_as_many),
        cmocka_unit_test(it_may_change_while_other_threads_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
