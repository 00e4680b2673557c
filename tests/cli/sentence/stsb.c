/* The tool reaches the figure that is published for the model on STS-B (development set). */
// labels: slow
#include "fixtures/check.h"
#include "fixtures/tool.h"

#include <math.h>

static void stsb_correlates_as_published(void **state)
{
    (void)state;
    need_model();
    const char *pairs = data_file("stsb/stsb-en-dev.csv");
    if (!pairs) {
        print_message("skipped: stsb/stsb-en-dev.csv does not exist\n");
        skip();
    }
    char full[4096];
    assert_non_null(realpath(pairs, full));
    setenv("P", full, 1);
    const int n = 1500 / check_step(15);
    char some[16];
    snprintf(some, sizeof some, "%d", n);
    setenv("N", some, 1);
    assert_int_equal(
        tool("head -n $N \"$P\" >some.csv && $A similarity -m $M --pairs some.csv --gold --json | tail -1"), 0);
    json_t *v = line_json(0);
    assert_true(number(v, "pairs") == n);
    /* Of sentence-transformers, as rounded: published, and measured for the first hundred pairs */
    assert_true(fabs(number(v, "spearman") - (n == 1500 ? 86.72 : 94.33)) <= 0.02);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stsb_correlates_as_published)};
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
