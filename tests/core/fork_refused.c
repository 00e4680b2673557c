/* A child whose system gives it fewer threads than its parent has. */
// labels: threads native
#include "attend_util.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/refuse_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void count(void *arg, int i)
{
    (void)i;
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Returns the exit code of a child whose system gives `beside` threads. */
static int child(att_ctx *ctx, const fail_alloc *f, int beside)
{
    enum { BODIES = 100 };
    atomic_int bodies = 0;
    alarm(60);
    allowed = beside;
    if (att_threads(ctx) != beside + 1)
        return 1;
    allowed = 100; /* it does not ask again */
    att_parallel_for(ctx, BODIES, count, &bodies);
    if (bodies != BODIES || att_threads(ctx) != beside + 1)
        return 2;
    att_close(ctx);
    return f->live ? 3 : 0;
}

static void wait_at(void *barrier, int i)
{
    (void)i;
    pthread_barrier_wait(barrier);
}

/* Waits until all threads have begun: a lock of address sanitizer's, which a thread holds as it begins, would stay
 * locked in a child. */
static void wait_for_all(att_ctx *ctx, int threads)
{
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, (unsigned)threads);
    att_parallel_for(ctx, threads, wait_at, &all);
    pthread_barrier_destroy(&all);
}

static void a_child_that_gets_fewer_threads_computes_on_these_and_counts_them(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it knows no threads of a child */
#endif
    enum { WANTED = 4 };
    fail_alloc f = {0};
    att_ctx *ctx;
    allowed = WANTED;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = WANTED, .allocator = fail_allocator(&f))),
                     ATT_OK);
    wait_for_all(ctx, WANTED);
    for (int beside = 0; beside < WANTED; beside++) {
        int status;
        const pid_t p = fork();
        if (p == 0)
            _exit(child(ctx, &f, beside));
        assert_int_equal(waitpid(p, &status, 0), p);
        assert_int_equal(status, 0);
    }
    assert_int_equal(att_threads(ctx), WANTED);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_gets_fewer_threads_computes_on_these_and_counts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
