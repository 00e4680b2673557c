/* The thread pool: each index once, any number of threads, any callers. */
// labels: threads
#include "base/base.h"
#include "fixtures/check.h"
#include "fixtures/fp_control.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 1000 };

typedef struct tally {
    att_ctx *ctx;
    int n_inner;
    atomic_int seen[MOST];
    atomic_int inner;
    atomic_int busy[ATT_MAX_THREADS]; /* bodies running now with this thread number */
    atomic_int wrong;
} tally;

static void count(void *arg, int i, int thread)
{
    tally *t = arg;
    if (thread < 0 || thread >= att_threads(t->ctx) || t->busy[thread]++)
        t->wrong++;
    t->seen[i]++;
    t->busy[thread]--;
}

static void check_each_once(const tally *t, int n)
{
    for (int i = 0; i < MOST; i++)
        assert_int_equal(t->seen[i], i < n);
    assert_int_equal(t->wrong, 0);
}

static void every_index_runs_once_with_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7, 16}, counts[] = {0, 1, 2, 3, 16, 17, MOST};
    for (size_t k = 0; k < sizeof threads / sizeof threads[0]; k++) {
        att_ctx *ctx = check_open(NULL, threads[k]);
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            tally t = {.ctx = ctx};
            att_parallel(ctx, counts[c], count, &t);
            check_each_once(&t, counts[c]);
        }
        att_close(ctx);
    }
}

static void add_one(void *arg, int i)
{
    (void)i;
    atomic_fetch_add((atomic_long *)arg, 1);
}

static void many_short_calls_lose_nothing(void **state)
{
    (void)state;
    static const int threads[] = {2, 3, 16};
    for (size_t k = 0; k < sizeof threads / sizeof threads[0]; k++) {
        att_ctx *ctx = check_open(NULL, threads[k]);
        atomic_long sum = 0;
        for (int i = 0; i < 3000; i++) {
            att_parallel_for(ctx, 1 + i % 20, add_one, &sum);
            if (i % 500 == 0)
                usleep(300); /* long enough for the threads to sleep */
        }
        assert_int_equal(sum, 3000 / 20 * 210);
        att_close(ctx);
    }
}

static void count_inner(void *arg, int i, int thread)
{
    tally *t = arg;
    (void)i;
    if (thread != 0)
        t->wrong++;
    t->inner++;
}

static void call_again(void *arg, int i, int thread)
{
    tally *t = arg;
    count(arg, i, thread);
    att_parallel(t->ctx, t->n_inner, count_inner, t);
}

static void a_nested_call_runs_alone(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 3);
    tally t = {.ctx = ctx, .n_inner = 5};
    att_parallel(ctx, 100, call_again, &t);
    check_each_once(&t, 100);
    assert_int_equal(t.inner, 500);
    att_close(ctx);
}

static void *call_often(void *arg)
{
    att_ctx *ctx = arg;
    for (int k = 0; k < 200; k++) {
        tally t = {.ctx = ctx, .n_inner = 3};
        att_parallel(ctx, 50, k % 2 ? count : call_again, &t);
        for (int i = 0; i < 50; i++)
            if (t.seen[i] != 1)
                return "an index did not run once";
        if (t.wrong)
            return "a thread number was used twice at once in one call";
    }
    return NULL;
}

static void callers_at_the_same_time_do_not_disturb_each_other(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 3);
    pthread_t caller[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&caller[i], NULL, call_often, ctx), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(caller[i], &wrong);
        assert_null(wrong);
    }
    att_close(ctx);
}

/* A host's pool that runs its strands in turn, backwards. */
static void host_for(void *user, int n, void (*body)(void *, int), void *arg)
{
    *(int *)user = n;
    for (int i = n - 1; i >= 0; i--)
        body(arg, i);
}

static void the_callers_parallel_for_is_used_in_strands(void **state)
{
    (void)state;
    int strands = 0;
    att_ctx *ctx;
    assert_int_equal(
        att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 4, .parallel_for = host_for, .parallel_user = &strands)),
        ATT_OK);
    tally t = {.ctx = ctx, .n_inner = 2};
    att_parallel(ctx, 100, call_again, &t);
    check_each_once(&t, 100);
    assert_int_equal(t.inner, 200);
    assert_int_equal(strands, 4);
    att_close(ctx);
}

static void check_signals(void *arg, int i, int thread)
{
    (void)i;
    tally *t = arg;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    const bool faults = sigismember(&blocked, SIGBUS) || sigismember(&blocked, SIGSEGV);
    if (thread > 0 && (faults || !(sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM))))
        t->wrong++;
    t->inner += thread > 0;
    for (int k = 0; k < 10000 && !t->inner; k++) /* until the other thread has come, however busy the machine is */
        usleep(1000);
}

static void its_threads_leave_signals_to_the_host_but_not_faults(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    tally t = {.ctx = ctx};
    att_parallel(ctx, 50, check_signals, &t);
    assert_int_equal(t.wrong, 0);
    assert_true(t.inner > 0);
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGINT)); /* the host's own mask is as before */
    att_close(ctx);
}

static void small_and_rounded(void *arg, int i, int thread)
{
    (void)thread;
    float *y = arg;
    volatile float tiny = 1e-20f, one = 1.0f, bit = 1e-9f * (float)(i + 1);
    y[2 * i] = tiny * tiny * (float)(i + 1); /* a denormal, or zero when flushed */
    y[2 * i + 1] = one + bit;                /* 1, or the next number when rounded up */
}

static void a_host_that_flushes_denormals_gets_the_same_bits(void **state)
{
    (void)state;
    if (!fp_control_works())
        skip();
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        att_ctx *ctx = check_open(NULL, n_threads);
        float plain[2 * MOST], flushed[2 * MOST];
        att_parallel(ctx, MOST, small_and_rounded, plain);
        const uint64_t host = fp_control();
        set_fp_control(FLUSH_UP);
        att_parallel(ctx, MOST, small_and_rounded, flushed);
        const uint64_t after = fp_control();
        set_fp_control(host);
        assert_int_equal(after, FLUSH_UP);
        assert_memory_equal(plain, flushed, sizeof plain);
        assert_true(plain[0] > 0);
        att_close(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once_with_any_number_of_threads),
        cmocka_unit_test(many_short_calls_lose_nothing),
        cmocka_unit_test(a_nested_call_runs_alone),
        cmocka_unit_test(callers_at_the_same_time_do_not_disturb_each_other),
        cmocka_unit_test(the_callers_parallel_for_is_used_in_strands),
        cmocka_unit_test(its_threads_leave_signals_to_the_host_but_not_faults),
        cmocka_unit_test(a_host_that_flushes_denormals_gets_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
