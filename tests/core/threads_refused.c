/* A context whose threads the system refuses. */
// labels: threads
#include "attend.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/refuse_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_few_threads_are_an_error_that_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
