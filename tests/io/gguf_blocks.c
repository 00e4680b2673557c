/* Blocks that are unpacked: the bits of the package gguf, of blocks of random bytes. */
#include "io/gguf_blocks.h"

#include "fixtures/check.h"
#include "io/gguf_types.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS = 64, LARGEST = 210, NUMBERS = 256 };

/* The types, and where factors of f16 begin: below 2, so that all numbers are finite. */
static const struct {
    const char *name;
    int type, factors, factor[2];
} types[] = {{"Q5_0", 6, 1, {0}},    {"Q5_1", 7, 2, {0, 2}},  {"Q2_K", 10, 2, {80, 82}},
             {"Q3_K", 11, 1, {108}}, {"Q4_K", 12, 2, {0, 2}}, {"Q5_K", 13, 2, {0, 2}},
             {"Q6_K", 14, 1, {208}}, {"IQ4_NL", 20, 1, {0}},  {"IQ4_XS", 23, 1, {0}}};
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
    for (int k = 0; k < TYPES; k++) {
        const att_gguf_type *type = att_gguf_type_of(types[k].type);
        char name[16];
        unsigned long long want;
        uint64_t random = 1;
        assert_string_equal(type->name, types[k].name);
        assert_true(type->supported && type->bytes <= LARGEST && att_gguf_is_packed(type->number));
        assert_int_equal(fscanf(golden, "%15s %llx", name, &want), 2);
        assert_string_equal(name, type->name);
        for (int i = 0; i < BLOCKS * type->bytes; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            blocks[i] = (unsigned char)(random >> 56);
        }
        for (int b = 0; b < BLOCKS; b++)
            for (int f = 0; f < types[k].factors; f++)
                blocks[b * type->bytes + types[k].factor[f] + 1] &= 0xBF;
        att_gguf_unpack(type, BLOCKS, blocks, x);
        if (fnv64(x, (size_t)(BLOCKS * type->block) * sizeof *x) != want)
            fail_msg("%s: not as in tests/golden/gguf_blocks.txt; the first numbers are %g, %g, %g", name, (double)x[0],
                     (double)x[1], (double)x[2]);
    }
    fclose(golden);
}

static void other_types_are_not_unpacked(void **state)
{
    (void)state;
    static const int others[] = {0, 1, 2, 3, 8, 30, 15, 16, 39, -1, 1000};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(att_gguf_is_packed(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_the_numbers_of_the_reference),
        cmocka_unit_test(other_types_are_not_unpacked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
