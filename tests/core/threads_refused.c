/* A system that refuses threads: this program's own pthread_create stands before the real one. */
// labels: threads
#include "attend.h"
#include "fixtures/fail_alloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
            char words[64];
            snprintf(words, sizeof words, "n_threads is %d, but the system gave only %d", WANTED, beside + 1);
            assert_int_equal(s, ATT_ERR_SYSTEM);
            assert_string_equal(att_error(NULL), words);
            assert_null(ctx);
        }
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(too_few_threads_are_an_error_that_leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
