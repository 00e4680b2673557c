/* A system that refuses threads: this program's own pthread_create stands before the real one. */
// labels: threads
#include "attend_util.h"
#include "fixtures/fail_alloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int allowed; /* threads that may still start */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (allowed-- <= 0)
        return EAGAIN;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, arg);
}

static void too_few_threads_are_an_error_that_leaks_nothing(void **state)
{
    (void)state;
    enum { WANTED = 5 };
    for (int beside = 0; beside < WANTED; beside++) {
        fail_alloc f = {0};
        att_ctx *ctx;
        allowed = beside;
        const att_status s =
            att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = WANTED, .allocator = fail_allocator(&f)));
        if (beside == WANTED - 1) {
            assert_int_equal(s, ATT_OK);
            att_close(ctx);
        } else {
            char words[128];
            snprintf(words, sizeof words, "n_threads is %d, but the system gave only %d: %s", WANTED, beside + 1,
                     strerror(EAGAIN));
            assert_int_equal(s, ATT_ERR_SYSTEM);
            assert_string_equal(att_error(NULL), words);
            assert_int_equal(att_error_number(), EAGAIN);
            assert_null(ctx);
        }
        assert_int_equal(f.live, 0);
    }
}

static void count(void *arg, int i)
{
    (void)i;
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* The exit code of a child whose system gives `beside` threads. */
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
        cmocka_unit_test(too_few_threads_are_an_error_that_leaks_nothing),
        cmocka_unit_test(a_child_that_gets_fewer_threads_computes_on_these_and_counts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
