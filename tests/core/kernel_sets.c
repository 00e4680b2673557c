/* Properties that all instruction sets share. */
#include "fixtures/check.h"
#include "kernel/kernel.h"

/* avx512bf16 only adds to avx512, and amx to that: what is in f32 is the same code. */
static void a_set_that_extends_another_shares_its_kernels(void **state)
{
    (void)state;
    static const char *const names[] = {"avx512", "avx512bf16", "amx"};
    const int base = att_isa_find(names[0]);
    if (base < 0 || base == att_isa_count() - 1)
        skip(); /* not on this processor, or the last that is compiled: ATT_SETS */
    const att_kernels *k = att_kernels_of(base);
    assert_true(!k->bf16.scores && !k->bf16_gemm.run);
    for (int i = 1; i < 3; i++) {
        const int more = att_isa_find(names[i]);
        if (more < 0)
            continue; /* not compiled: ATT_SETS */
        const att_kernels *l = att_kernels_of(more);
        assert_true(more == base + i);
        if (!att_isa_usable(more))
            continue;
        assert_true(k->lanes == l->lanes && k->nr == l->nr);
        assert_true(k->gemm.run == l->gemm.run && k->attend.softmax_step == l->attend.softmax_step &&
                    k->layer.softmax == l->layer.softmax && k->vector.dot == l->vector.dot);
        assert_true(l->bf16.scores && l->bf16.accumulate_pv && !l->bf16.pack_values == (i == 1));
        assert_true(l->bf16_gemm.run && !l->bf16_gemm_tiles.run == (i == 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_set_that_extends_another_shares_its_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
