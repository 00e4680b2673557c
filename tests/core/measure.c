/* The machine's limits are plausible: their worth as a yardstick is that they bound all else. */
// labels: slow
#include "attend.h"
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
        const att_measure_kernels *m = &att_kernels_of(isa)->measure;
        att_peak_kernel *const kernel[] = {m->peak, m->peak_bf16, m->peak_int8}; /* tiles: peak_tiles.c */
        for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++) {
            double once, thrice;
            if (!kernel[i])
                continue;
            kernel[i](1, &once);
            kernel[i](3, &thrice);
            assert_true(once > 0 && thrice == 3 * once);
        }
    }
}

/* Vectors of bf16 and int8 are measured where products of bf16 are computed, and tiles where these are. */
static void a_unit_is_measured_on_the_sets_that_have_it_and_refused_on_others(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        const att_kernels *k = att_kernels_of(ctx->isa);
        const bool pairs = k->bf16_gemm.run, tiles = k->bf16_gemm_tiles.run && att_os_allow_tiles();
        const bool has[] = {true, pairs, pairs, tiles, tiles};
        double rate;
        for (int u = ATT_UNIT_F32; u <= ATT_UNIT_INT8_TILES; u++) {
            const att_status s = att_measure_unit(ctx, (att_unit)u, 0, &rate);
            assert_int_equal(s, has[u] ? ATT_OK : ATT_ERR_UNSUPPORTED);
            assert_true(has[u] ? rate > 1e7 && rate < 1e15 : rate == 0);
            assert_true(has[u] || strstr(att_error(ctx), att_unit_name((att_unit)u)) || k->bf16_gemm_tiles.run);
        }
        assert_int_equal(att_measure_unit(ctx, (att_unit)99, 0, &rate), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), "unit is 99, expected an att_unit");
    }
    assert_null(att_unit_name((att_unit)-1));
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
        cmocka_unit_test(a_unit_is_measured_on_the_sets_that_have_it_and_refused_on_others),
        cmocka_unit_test(peak_and_bandwidth_are_plausible_and_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
