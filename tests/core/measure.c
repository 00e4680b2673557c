/* The machine's limits are plausible: their worth as a yardstick is that they bound all else. */
// labels: slow
#include "base/base.h"
#include "fixtures/check.h"
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void the_read_kernel_reads_each_number_once(void **state)
{
    (void)state;
    float x[300];
    for (int i = 0; i < 300; i++)
        x[i] = (float)(i + 1);
    for (int isa = -1; check_next_isa(&isa);)
        for (int n = 0; n <= 300; n++)
            assert_true(att_kernels_of(isa)->measure.read(n, x) == 0.5 * n * (n + 1)); /* whole numbers: exact */
}

static void the_peak_kernel_counts_what_it_computes(void **state)
{
    (void)state;
    for (int isa = -1; check_next_isa(&isa);) {
        const att_kernels *k = att_kernels_of(isa);
        double once, thrice;
        k->measure.peak(1, &once);
        k->measure.peak(3, &thrice);
        assert_true(once > 0 && thrice == 3 * once);
    }
}

static void peak_and_bandwidth_are_plausible_and_can_be_cancelled(void **state)
{
    (void)state;
    volatile int cancel = 0;
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .cancel = &cancel)), ATT_OK);
    double flops, bytes;
    assert_int_equal(att_measure_peak(ctx, 0.01, &flops), ATT_OK);
    assert_true(flops > 1e7 &&
                flops < 1e14); /* two threads of anything from a valgrind to a server of the next decade */
    assert_int_equal(att_measure_bandwidth(ctx, &bytes), ATT_OK);
    assert_true(bytes > 1e6 && bytes < 1e13);
    cancel = 1;
    assert_int_equal(att_measure_peak(ctx, 0.01, &flops), ATT_ERR_CANCELLED);
    assert_int_equal(att_measure_bandwidth(ctx, &bytes), ATT_ERR_CANCELLED);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_read_kernel_reads_each_number_once),
        cmocka_unit_test(the_peak_kernel_counts_what_it_computes),
        cmocka_unit_test(peak_and_bandwidth_are_plausible_and_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
