/* Lists of what is prefetched: they give every line of their rows once, and no other. */
#include "kernel/prefetch.h"
#include "fixtures/check.h"

enum { ROWS = 3, BYTES = 200, STRIDE = 1000, LINES = 4 /* of a row */ };

static void a_list_gives_each_line_of_its_rows_in_order(void **state)
{
    (void)state;
    static const char memory[ROWS * STRIDE], dense[ROWS * BYTES];
    for (int64_t max = 1; max < 7; max++) {
        att_prefetch list = {0};
        att_prefetch_add(&list, memory, BYTES, STRIDE, ROWS);
        att_prefetch_add(&list, NULL, BYTES, STRIDE, ROWS);
        att_prefetch_add(&list, memory, 0, STRIDE, ROWS);
        att_prefetch_add(&list, dense, BYTES, BYTES, ROWS);
        int64_t n = 0;
        for (att_prefetch_lines x; (x = att_prefetch_next(&list, max)).left > 0;)
            for (int64_t i = 0; i < x.left; i++, n++) {
                const int64_t rest = n - ROWS * LINES;
                const char *line =
                    rest < 0 ? memory + n / LINES * STRIDE + n % LINES * ATT_CACHE_LINE : dense + rest * ATT_CACHE_LINE;
                assert_true(x.left <= max);
                assert_true(x.line + (uintptr_t)(i * ATT_CACHE_LINE) == (uintptr_t)line);
            }
        assert_int_equal(n, ROWS * LINES + att_ceil_div(ROWS * BYTES, ATT_CACHE_LINE));
    }
}

static void a_share_bounds_what_is_taken_at_once(void **state)
{
    (void)state;
    static const char memory[10 * ATT_CACHE_LINE];
    att_prefetch list = {.share = 3};
    att_prefetch_add(&list, memory, sizeof memory, 0, 1);
    for (int64_t left = 10; left > 0; left -= 3)
        assert_int_equal(att_prefetch_next(&list, 100).left, att_min(left, 3));
    assert_int_equal(att_prefetch_next(&list, 100).left, 0);
    assert_int_equal(att_prefetch_next(NULL, 100).left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_gives_each_line_of_its_rows_in_order),
        cmocka_unit_test(a_share_bounds_what_is_taken_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
