/* A million lines take no more memory than ten thousand. */
// labels: slow
#include "fixtures/tool.h"

static void a_million_lines_fit(void **state)
{
    (void)state;
    assert_int_equal(tool("yes ab | head -n 10000 | $A embed -m $D --format npy -o few.npy"), 0);
    long few = tool_peak;
    assert_int_equal(tool("yes ab | head -n 1000000 | $A embed -m $D --format npy -o many.npy"), 0);
    print_message("peak memory: %ld KiB for 10,000 lines, %ld KiB for 1,000,000\n", few, tool_peak);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what is freed */
    assert_true(tool_peak < few + 8 * 1024);
    assert_true(tool_peak < 64 * 1024);
#endif
    assert_int_equal(tool("tail -c +129 many.npy | wc -c; head -c 128 many.npy"), 0);
    assert_has(tool_out, "48000000\n");
    assert_has(strchr(tool_out, '\n') + 11, "(1000000, 12)");
}

/* Vectors whose ranges are those of all wait in a file, not in memory. */
static void vectors_of_8_bits_fit_as_well(void **state)
{
    (void)state;
    assert_int_equal(
        tool("{ echo a; yes ab; } | head -n 10000 | $A embed -m $D --precision int8 --format npy -o few.npy"), 0);
    const long limit = tool_peak + 8 * 1024;
    print_message("peak memory may be %ld KiB\n", limit);
    assert_int_equal(
        tool("{ echo a; yes ab; } | head -n 300000 | $A embed -m $D --precision int8 --format npy -o many.npy"), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(tool_peak < limit);
#endif
    assert_int_equal(tool("tail -c +129 many.npy | wc -c; head -c 128 many.npy"), 0);
    assert_has(tool_out, "3600000\n");
    assert_has(strchr(tool_out, '\n') + 11, "(300000, 12)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_lines_fit),
                                       cmocka_unit_test(vectors_of_8_bits_fit_as_well)};
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
