/* Numbers of quantized blocks: the bits of the package gguf, of blocks of random bytes. */
#include "fixtures/check.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS = 64, LARGEST = 210, NUMBERS = 256 };

/* The types, and where factors of f16 begin: below 2, so that all numbers are finite. */
static const struct {
    att_dtype type;
    int factors, factor[2];
} types[] = {{ATT_Q5_0, 1, {0}},   {ATT_Q5_1, 2, {0, 2}}, {ATT_Q2_K, 2, {80, 82}},
             {ATT_Q3_K, 1, {108}}, {ATT_Q4_K, 2, {0, 2}}, {ATT_Q5_K, 2, {0, 2}},
             {ATT_Q6_K, 1, {208}}, {ATT_IQ4_NL, 1, {0}},  {ATT_IQ4_XS, 1, {0}}};
enum { TYPES = sizeof types / sizeof *types };

static uint64_t fnv64(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001B3);
    return hash;
}

static void blocks_have_the_numbers_of_the_reference(void **state)
{
    (void)state;
    static unsigned char blocks[BLOCKS * LARGEST];
    static float x[BLOCKS * NUMBERS];
    FILE *golden = fopen("tests/golden/gguf_blocks.txt", "r");
    assert_non_null(golden);
    att_ctx *ctx = check_open(NULL, 1);
    for (int k = 0; k < TYPES; k++) {
        const att_dtype type = types[k].type;
        const int64_t block = att_dtype_block(type), bytes = att_dtype_bytes(type, block);
        char name[16];
        unsigned long long want;
        uint64_t random = 1;
        att_tensor from, to;
        assert_true(bytes <= LARGEST);
        assert_int_equal(fscanf(golden, "%15s %llx", name, &want), 2);
        assert_string_equal(name, att_dtype_name(type));
        for (int i = 0; i < BLOCKS * bytes; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            blocks[i] = (unsigned char)(random >> 56);
        }
        for (int b = 0; b < BLOCKS; b++)
            for (int f = 0; f < types[k].factors; f++)
                blocks[b * bytes + types[k].factor[f] + 1] &= 0xBF;
        att_wrap(&from, blocks, type, ATT_DIMS(BLOCKS, block), NULL);
        att_wrap(&to, x, ATT_F32, ATT_DIMS(BLOCKS, block), NULL);
        assert_int_equal(att_tensor_convert(ctx, &from, &to), ATT_OK);
        if (fnv64(x, (size_t)(BLOCKS * block) * sizeof *x) != want)
            fail_msg("%s: not as in tests/golden/gguf_blocks.txt; the first numbers are %g, %g, %g", name, (double)x[0],
                     (double)x[1], (double)x[2]);
    }
    att_close(ctx);
    fclose(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_the_numbers_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
