/* Dropout of attention weights: Philox against its published answers, and the same pairs kept on every instruction
 * set. */
#include "attend.h"
#include "fixtures/check.h"
#include "kernel/kernel.h"
#include "kernel/philox.h"

enum { QUERIES = 64, KEYS = 256 };

/* Random123, tests/kat_vectors: philox4x32, 10 rounds */
static void philox_gives_the_published_words(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed;
        uint32_t counter[4], words[4];
    } known[] = {
        {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX,
         {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t words[4];
        att_random(known[i].seed, known[i].counter, words);
        assert_memory_equal(words, known[i].words, sizeof words);
    }
}

static void words_belong_to_the_documented_pairs(void **state)
{
    (void)state;
    const uint32_t q = 0x243f6a88, group = 0x05a308d3, head = 0x13198a2e, sequence = 0x03707344;
    const uint64_t seed = 0x299f31d0a4093822;
    uint32_t words[4];
    att_philox(seed, (const uint32_t[]){q, group, head, sequence}, words);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t more = 0; more < 2; more++) {
            const att_dropout_mask d = {seed, .sequence = sequence, .head = head, .threshold = words[i] + more};
            assert_int_equal(att_dropout_keep(&d, q, 4 * group + i), !more);
        }
}

static void check_block(int isa, const att_dropout_mask *d, int queries, uint32_t q0, uint32_t k0, int keys)
{
    uint64_t bits[KEYS + 1];
    bits[(keys + 3) / 4 * 4] = 0x123456789abcdef;
    att_kernels_of(isa)->dropout.mask(d, queries, q0, k0, keys, bits);
    assert_true(bits[(keys + 3) / 4 * 4] == 0x123456789abcdef);
    for (int k = 0; k < keys; k++)
        for (int q = 0; q < queries; q++)
            if ((bits[k] >> q & 1) != att_dropout_keep(d, q0 + (uint32_t)q, k0 + (uint32_t)k))
                fail_msg("%s: query %u, key %u, %d queries, threshold %u", att_isa_name(isa), q0 + (uint32_t)q,
                         k0 + (uint32_t)k, queries, d->threshold);
}

static void every_set_keeps_the_pairs_of_the_definition(void **state)
{
    (void)state;
    static const uint32_t thresholds[] = {0, 1, 429496730, 1u << 31, (1u << 31) + 1, UINT32_MAX - 255, UINT32_MAX};
    static const uint32_t starts[] = {0, 4, 1020, 0x7ffffff0, 0xfffffff0}; /* the last ones wrap */
    for (int isa = -1; check_next_isa(&isa);) {
        const int panel = att_kernels_of(isa)->nr;
        assert_in_range(panel, 1, QUERIES);
        for (uint32_t i = 0; i < 35; i++) {
            const uint64_t noise = check_bits(1, i);
            const att_dropout_mask d = {check_bits(2, i), (uint32_t)(noise >> 32), (uint32_t)noise, thresholds[i % 7]};
            check_block(isa, &d, panel, starts[i % 5] + i % 3, starts[i % 5], KEYS);
            check_block(isa, &d, 1 + (int)i % panel, i, starts[(i + 2) % 5], 1 + (int)i);
        }
    }
}

static void dropped_weights_are_zero_and_the_others_scaled(void **state)
{
    (void)state;
    enum { ROWS = 5, STRIDE = QUERIES + 8 };
    const float scale = 1 / 0.9f;
    for (int isa = -1; check_next_isa(&isa);) {
        const att_kernels *kernels = att_kernels_of(isa);
        float s[ROWS * STRIDE], before[ROWS * STRIDE];
        uint64_t bits[ROWS];
        check_fill(s, ROWS * STRIDE, 3, 0, 1);
        s[0] = NAN;
        memcpy(before, s, sizeof s);
        for (uint64_t k = 0; k < ROWS; k++)
            bits[k] = check_bits(4, k) << 1 >> (k > 0); /* bit 0 of row 0 is 0: what is dropped cannot spread */
        kernels->dropout.apply(ROWS, bits, scale, s, STRIDE);
        for (int k = 0; k < ROWS; k++)
            for (int q = 0; q < STRIDE; q++) {
                const float was = before[k * STRIDE + q];
                const float is = q >= kernels->nr ? was : bits[k] >> q & 1 ? was * scale : 0;
                assert_int_equal(check_float_bits(s[k * STRIDE + q]), check_float_bits(is));
            }
    }
}

/* Of n independent pairs p n are dropped, give or take 5 sqrt(n p (1 - p)) but once in a million and a half; neighbors
 * in any direction are dropped together p^2 n times. */
static void as_many_are_dropped_as_should_be_and_neighbors_are_independent(void **state)
{
    (void)state;
    enum { N = 512 };
    static bool dropped[N + 1][N + 1];
    static const double rates[] = {0.1, 0.5, 0.9};
    for (int i = 0; i < 3; i++) {
        const double p = rates[i], n = (double)N * N;
        const att_dropout_mask d = {1234, .sequence = 5, .head = 6, .threshold = (uint32_t)lround(p * 0x1p32)};
        const att_dropout_mask next_head = {1234, .sequence = 5, .head = 7, .threshold = d.threshold};
        const att_dropout_mask next_sequence = {1234, .sequence = 6, .head = 6, .threshold = d.threshold};
        const att_dropout_mask next_seed = {1235, .sequence = 5, .head = 6, .threshold = d.threshold};
        long all = 0, with[5] = {0};
        for (uint32_t q = 0; q <= N; q++)
            for (uint32_t k = 0; k <= N; k++)
                dropped[q][k] = !att_dropout_keep(&d, q, k);
        for (uint32_t q = 0; q < N; q++)
            for (uint32_t k = 0; k < N; k++) {
                all += dropped[q][k];
                with[0] += dropped[q][k] && dropped[q + 1][k];
                with[1] += dropped[q][k] && dropped[q][k + 1];
                with[2] += dropped[q][k] && !att_dropout_keep(&next_head, q, k);
                with[3] += dropped[q][k] && !att_dropout_keep(&next_sequence, q, k);
                with[4] += dropped[q][k] && !att_dropout_keep(&next_seed, q, k);
            }
        check_near(p * n, (float)all, 5 * sqrt(n * p * (1 - p)), "dropped of p %g", p);
        for (int j = 0; j < 5; j++) /* two pairs that share one are not independent: at most twice the variance */
            check_near(p * p * n, (float)with[j], 5 * sqrt(2 * n * p * p * (1 - p * p)), "pairs %d of p %g", j, p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_words),
        cmocka_unit_test(words_belong_to_the_documented_pairs),
        cmocka_unit_test(every_set_keeps_the_pairs_of_the_definition),
        cmocka_unit_test(dropped_weights_are_zero_and_the_others_scaled),
        cmocka_unit_test(as_many_are_dropped_as_should_be_and_neighbors_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
