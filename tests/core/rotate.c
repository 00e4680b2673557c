/* The kernels that turn pairs, on every instruction set, against their reference in double. */
#include "fixtures/check.h"
#include "kernel/kernel.h"

static void check_rotation(int isa, check_fence *f, int64_t pairs, bool neighbors, float way)
{
    const att_kernels *k = att_kernels_of(isa);
    const int64_t n = 2 * pairs, step[][2] = {{1, pairs}, {2, 1}};
    float *x = check_numbers(n, 1), *sine = check_numbers(pairs, 2), *cosine = check_numbers(pairs, 2);
    float *y = check_place(f, (size_t)n * sizeof *y);
    double *expected = malloc((size_t)(n + 1) * sizeof *expected);
    for (int64_t i = 0; i < pairs; i++) {
        const double angle = 3 * (double)sine[i];
        sine[i] = (float)sin(angle), cosine[i] = (float)cos(angle);
    }
    void (*const rotate)(int64_t, float, const float *, const float *, const float *, float *) =
        neighbors ? k->layer.rotate_pairs : k->layer.rotate_halves;
    rotate(pairs, way, x, sine, cosine, y);
    att_ref_rotate(pairs, step[neighbors], way, x, sine, cosine, expected);
    for (int64_t i = 0; i < n; i++) /* two products below 1 and their sum: half a unit each, of 1 and of 2 */
        check_near(expected[i], y[i], 2 * FLT_EPSILON, "%s rotate[%d] of %d", att_isa_name(isa), (int)i, (int)n);
    check_untouched(f, "rotate");
    rotate(pairs, way, x, sine, cosine, x); /* in place, too */
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    free(x), free(sine), free(cosine), free(expected);
}

static void rotations_equal_their_reference(void **state)
{
    (void)state;
    static const int64_t pairs[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 48, 129};
    check_fence f = check_fence_new(2048);
    for (int isa = -1; check_next_isa(&isa);)
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
            for (int neighbors = 0; neighbors < 2; neighbors++)
                for (int way = -1; way <= 1; way += 2)
                    check_rotation(isa, &f, pairs[i], neighbors, (float)way);
    check_fence_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotations_equal_their_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
