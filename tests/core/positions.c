/* Positions: sinusoids and rotations against transformers, however positions are given. Gradients are in gradients.c.
 */
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"
#include "fixtures/tape.h"

#define GOLDEN "tests/golden/positions.txt"

/* ---- sinusoids */

enum { TOKENS = 6, MOST_FEATURES = 10 };

static void check_sinusoids(const char *name, bool interleaved, int64_t features, int64_t last)
{
    const int64_t positions[TOKENS] = {0, 1, 2, 7, 100, last};
    double expected[TOKENS * MOST_FEATURES];
    float zeros[TOKENS * MOST_FEATURES] = {0};
    assert_int_equal(golden_line(GOLDEN, name, expected, TOKENS * MOST_FEATURES), TOKENS * features);
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        att_tape *t = new_tape(ctx);
        const float *y =
            read_floats(t, att_sinusoidal(t, input(t, zeros, ATT_DIMS(TOKENS, features)),
                                          ATT_OPTIONS(att_positions, .position_ids = positions),
                                          ATT_OPTIONS(att_sinusoidal_options, .interleaved = interleaved)));
        for (int64_t i = 0; i < TOKENS * features; i++) /* half a unit of a number below 1, ours and the file's */
            check_near(expected[i], y[i], FLT_EPSILON / 2, "%s [%d]", name, (int)i);
        att_tape_free(t);
    }
}

static void sinusoids_are_those_of_marian_and_of_the_paper(void **state)
{
    (void)state;
    check_sinusoids("marian_10", false, 10, 1023);
    check_sinusoids("marian_7", false, 7, 1023);
    check_sinusoids("paper_10", true, 10, 1000000);
    check_sinusoids("paper_7", true, 7, 1000000);
}

static void appended_sinusoids_are_what_is_added_to_zeros(void **state)
{
    (void)state;
    enum { IN = 5, FEATURES = 8, ROWS = 40 };
    static const int64_t offsets[] = {0, ROWS};
    att_ctx *ctx = check_open(NULL, 2);
    att_tape *t = new_tape(ctx);
    float *x = check_numbers(ROWS * IN, 1), zeros[ROWS * FEATURES] = {0};
    att_tensor appended;
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1};
    const float *added = read_floats(t, att_sinusoidal(t, input(t, zeros, ATT_DIMS(ROWS, FEATURES)), &at, NULL));
    att_var *y = att_sinusoidal(t, input(t, x, ATT_DIMS(ROWS, IN)), &at,
                                ATT_OPTIONS(att_sinusoidal_options, .append = FEATURES));
    assert_int_equal(att_var_value(t, y, &appended), ATT_OK);
    assert_true(appended.rank == 2 && appended.dim[0] == ROWS && appended.dim[1] == IN + FEATURES);
    for (int64_t i = 0; i < ROWS; i++) {
        const float *row = (const float *)appended.data + i * (IN + FEATURES);
        assert_memory_equal(row, x + i * IN, IN * sizeof *row);
        assert_memory_equal(row + IN, added + i * FEATURES, FEATURES * sizeof *row);
    }
    free(x);
    att_tape_free(t);
    att_close(ctx);
}

/* ---- rotations */

enum { HEADS = 2, DIM = 12, ROW = HEADS * DIM };

static void rotations_are_those_of_llama_and_gptj(void **state)
{
    (void)state;
    static const int64_t positions[TOKENS] = {0, 1, 2, 3, 57, 400};
    double expected[TOKENS * ROW];
    float *x = check_numbers(TOKENS * ROW, 1);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        const char *name = interleaved ? "gptj" : "llama";
        assert_int_equal(golden_line(GOLDEN, name, expected, TOKENS * ROW), TOKENS * ROW);
        for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
            att_tape *t = new_tape(ctx);
            const float *y = read_floats(t, att_rotary(t, input(t, x, ATT_DIMS(TOKENS, HEADS, DIM)),
                                                       ATT_OPTIONS(att_positions, .position_ids = positions),
                                                       ATT_OPTIONS(att_rotary_options, .interleaved = interleaved)));
            for (int i = 0; i < TOKENS * ROW; i++) /* theirs has angles in float: a frequency and a product */
                check_near(expected[i], y[i], (4 + 2 * (double)positions[i / ROW]) * FLT_EPSILON, "%s [%d]", name, i);
            att_tape_free(t);
        }
    }
    free(x);
}

/* The frequencies are those of the file, in float; the factor multiplies sines and cosines. */
static void rotations_by_frequencies_and_a_factor_are_those_of_yarn(void **state)
{
    (void)state;
    static const int64_t positions[TOKENS] = {0, 1, 2, 3, 57, 400};
    double expected[TOKENS * ROW], frequencies[DIM / 2], factor;
    float *x = check_numbers(TOKENS * ROW, 1);
    assert_int_equal(golden_line(GOLDEN, "yarn", expected, TOKENS * ROW), TOKENS * ROW);
    assert_int_equal(golden_line(GOLDEN, "yarn_frequencies", frequencies, DIM / 2), DIM / 2);
    assert_int_equal(golden_line(GOLDEN, "yarn_factor", &factor, 1), 1);
    assert_true(factor > 1.1);
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        att_tape *t = new_tape(ctx);
        const float *y =
            read_floats(t, att_rotary(t, input(t, x, ATT_DIMS(TOKENS, HEADS, DIM)),
                                      ATT_OPTIONS(att_positions, .position_ids = positions),
                                      ATT_OPTIONS(att_rotary_options, .frequencies = frequencies, .factor = factor)));
        for (int i = 0; i < TOKENS * ROW; i++)
            check_near(expected[i], y[i], (6 + 2 * (double)positions[i / ROW]) * FLT_EPSILON, "yarn [%d]", i);
        att_tape_free(t);
    }
    free(x);
}

static void angles_are_exact_at_position_one_million(void **state)
{
    (void)state;
    static const int64_t position[] = {1000000};
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[64] = {[0] = 1, [1] = 1, [2] = 1, [3] = 1, [31] = 1};
    const att_positions at = {.size = sizeof at, .position_ids = position};
    const float *y = read_floats(t, att_rotary(t, input(t, x, ATT_DIMS(1, 1, 64)), &at, NULL));
    for (int i = 0; i < 32; i++) {
        const double angle = 1e6 / pow(10000, i / 32.0);
        check_near((double)x[i] * cos(angle), y[i], FLT_EPSILON / 2, "cosine %d", i);
        check_near((double)x[i] * sin(angle), y[32 + i], FLT_EPSILON / 2, "sine %d", i);
    }
    att_tape_free(t);
    att_close(ctx);
}

/* The product of a turned query and a turned key depends on their distance alone (Su et al. 2021, section 3.1). */
static void products_of_what_is_turned_depend_on_the_distance(void **state)
{
    (void)state;
    enum { PLACES = 50, DIMS = 20, DISTANCE = 7 };
    static const int64_t offsets[] = {0, PLACES};
    att_ctx *ctx = check_open(NULL, 1);
    float *one = check_numbers(2 * DIMS, 1), q[PLACES * DIMS], k[PLACES * DIMS];
    for (int i = 0; i < PLACES * DIMS; i++)
        q[i] = one[i % DIMS], k[i] = one[DIMS + i % DIMS];
    for (int interleaved = 0; interleaved < 2; interleaved++)
        for (int64_t dims = 0; dims <= 8; dims += 8) {
            att_tape *t = new_tape(ctx);
            const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1};
            const att_rotary_options how = {.size = sizeof how, .interleaved = interleaved, .dims = dims};
            const float *a = read_floats(t, att_rotary(t, input(t, q, ATT_DIMS(PLACES, 1, DIMS)), &at, &how));
            const float *b = read_floats(t, att_rotary(t, input(t, k, ATT_DIMS(PLACES, 1, DIMS)), &at, &how));
            double first = 0;
            for (int i = DISTANCE; i < PLACES; i++) {
                double product = 0;
                for (int d = 0; d < DIMS; d++)
                    product += (double)a[i * DIMS + d] * (double)b[(i - DISTANCE) * DIMS + d];
                first = i == DISTANCE ? product : first;
                /* numbers below sqrt 2 with three roundings each */
                check_near(first, (float)product, DIMS * 8 * FLT_EPSILON, "at %d", i);
            }
            for (int d = (int)dims; dims && d < DIMS; d++) /* what is not turned */
                assert_true(a[(PLACES - 1) * DIMS + d] == q[d]);
            att_tape_free(t);
        }
    free(one);
    att_close(ctx);
}

/* ---- positions */

enum { ROWS = 1500 };

static const float *turned(att_tape *t, float *x, int64_t tokens, const att_positions *at)
{
    return read_floats(t, att_rotary(t, input(t, x, ATT_DIMS(tokens, HEADS, DIM)), at, NULL));
}

/* In one batch or alone, one by one or by offsets, near to each other or far apart, with any number of threads. */
static void a_position_has_the_same_bits_however_it_is_given(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 600, 600, ROWS}, starts[] = {3, 9, 0};
    int64_t each[ROWS], far[ROWS];
    for (int64_t i = 0; i < ROWS; i++)
        far[i] = each[i] = i < 600 ? i + 3 : i - 600;
    far[7] = INT64_MAX;
    float *x = check_numbers(ROWS * ROW, 1), *first = check_numbers(ROWS * ROW, 1);
    for (int threads = 1; threads < 4; threads++) {
        att_ctx *ctx = check_open(NULL, threads);
        att_tape *t = new_tape(ctx);
        const float *given[] = {
            turned(t, x, ROWS, ATT_OPTIONS(att_positions, .offsets = offsets, .n = 3, .starts = starts)),
            turned(t, x, ROWS, ATT_OPTIONS(att_positions, .position_ids = each)),
            turned(t, x, ROWS, ATT_OPTIONS(att_positions, .position_ids = far))};
        if (threads == 1)
            memcpy(first, given[0], ROWS * ROW * sizeof *first);
        for (int k = 0; k < 3; k++)
            for (int64_t i = 0; i < ROWS; i++)
                if (k < 2 || i != 7)
                    assert_memory_equal(given[k] + i * ROW, first + i * ROW, ROW * sizeof *first);
        for (int64_t i = 0; i < ROWS; i += 299) {
            const float *alone = turned(t, x + i * ROW, 1, ATT_OPTIONS(att_positions, .position_ids = each + i));
            assert_memory_equal(alone, first + i * ROW, ROW * sizeof *first);
        }
        att_tape_free(t);
        att_close(ctx);
    }
    free(x), free(first);
}

static void learned_positions_are_rows_of_a_table(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 2, 5}, starts[] = {0, 2};
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float x[10], table[8], dy[10];
    for (int i = 0; i < 10; i++)
        x[i] = (float)i, dy[i] = (float)(i + 1), table[i % 8] = (float)(100 * (i % 8));
    att_param *p = param(ctx, table, ATT_F32, ATT_DIMS(4, 2));
    const att_tensor slopes = view(dy, ATT_F32, ATT_DIMS(5, 2));
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 2};
    att_var *y = att_learned_positions(t, input(t, x, ATT_DIMS(5, 2)), p, &at);
    const float *found = read_floats(t, y);
    for (int i = 0; i < 10; i++)
        assert_true(found[i] == x[i] + table[i < 4 ? i : i - 4]);
    assert_int_equal(att_tape_backward(t, y, &slopes), ATT_OK);
    for (int i = 0; i < 8; i++) { /* tokens 0 and 2, 1 and 3, 4, none */
        const float sum = i < 4 ? dy[i] + dy[i + 4] : i < 6 ? dy[i + 4] : 0;
        assert_true(((const float *)att_param_grad(p)->data)[i] == sum);
    }
    att_tape_reset(t);
    const att_positions late = {.size = sizeof late, .offsets = offsets, .n = 2, .starts = starts};
    assert_error(t, att_learned_positions(t, input(t, x, ATT_DIMS(5, 2)), p, &late), ATT_ERR_ARGUMENT,
                 "learned_positions: token 4 is at position 4 but the table has 4 rows");
    att_tape_reset(t);
    assert_error(t, att_learned_positions(t, input(t, x, ATT_DIMS(5, 2)), NULL, &at), ATT_ERR_ARGUMENT,
                 "learned_positions: table is NULL");
    att_param_free(p);
    att_tape_free(t);
    att_close(ctx);
}

/* ---- refused */

static void wrong_positions_are_named(void **state)
{
    (void)state;
    static const int64_t each[] = {0, -3}, offsets[] = {0, 2}, short_ones[] = {0, 1}, starts[] = {-1};
    static const struct {
        att_positions at;
        att_status status;
        const char *sentence;
    } wrong[] = {
        {{.size = sizeof wrong[0].at},
         ATT_ERR_ARGUMENT,
         "rotary: positions are given neither one by one nor by offsets"},
        {{.size = sizeof wrong[0].at, .position_ids = each, .offsets = offsets, .n = 1},
         ATT_ERR_ARGUMENT,
         "rotary: positions are given one by one and by offsets"},
        {{.size = sizeof wrong[0].at, .position_ids = each}, ATT_ERR_ARGUMENT, "rotary: the position of token 1 is -3"},
        {{.size = sizeof wrong[0].at, .offsets = short_ones, .n = 1},
         ATT_ERR_SHAPE,
         "rotary: offsets go from 0 to 1 but x is [2, 1, 4]"},
        {{.size = sizeof wrong[0].at, .offsets = offsets, .n = 1, .starts = starts},
         ATT_ERR_ARGUMENT,
         "rotary: starts[0] = -1 is not a position"},
        {{.size = 3},
         ATT_ERR_ARGUMENT,
         "rotary: att_positions: its field size is 3, but must be sizeof(att_positions); see ATT_OPTIONS"},
    };
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[8] = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_error(t, att_rotary(t, input(t, x, ATT_DIMS(2, 1, 4)), &wrong[i].at, NULL), wrong[i].status,
                     wrong[i].sentence);
        att_tape_reset(t);
    }
    att_tape_free(t);
    att_close(ctx);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 2};
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[8] = {0};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 1};
#define REFUSED(call, status, sentence) (assert_error(t, call, status, sentence), att_tape_reset(t))
#define SINUSOIDAL(x, ...) att_sinusoidal(t, x, &at, ATT_OPTIONS(att_sinusoidal_options, __VA_ARGS__))
#define ROTARY(x, ...) att_rotary(t, x, &at, ATT_OPTIONS(att_rotary_options, __VA_ARGS__))
    REFUSED(SINUSOIDAL(input(t, x, ATT_DIMS(2, 2, 2)), .append = 0), ATT_ERR_SHAPE,
            "sinusoidal: x is [2, 2, 2], not [tokens, features]");
    REFUSED(SINUSOIDAL(input(t, x, ATT_DIMS(2, 4)), .append = -1), ATT_ERR_ARGUMENT,
            "sinusoidal: append = -1 features cannot follow those of x, [2, 4]");
    REFUSED(SINUSOIDAL(input(t, x, ATT_DIMS(2, 4)), .base = -1), ATT_ERR_ARGUMENT,
            "sinusoidal: base is -1, not above 0");
    REFUSED(ROTARY(input(t, x, ATT_DIMS(2, 4)), .dims = 0), ATT_ERR_SHAPE,
            "rotary: x is [2, 4], not [tokens, heads, dim]");
    REFUSED(ROTARY(input(t, x, ATT_DIMS(2, 1, 4)), .dims = 3), ATT_ERR_SHAPE,
            "rotary: dims = 3, not an even part of x, [2, 1, 4]");
    REFUSED(ROTARY(input(t, x, ATT_DIMS(2, 1, 4)), .dims = 6), ATT_ERR_SHAPE,
            "rotary: dims = 6, not an even part of x, [2, 1, 4]");
    REFUSED(ROTARY(input(t, x, ATT_DIMS(2, 1, 4)), .base = NAN), ATT_ERR_ARGUMENT, "rotary: base is nan, not above 0");
    REFUSED(ROTARY(input(t, x, ATT_DIMS(2, 1, 4)), .factor = -1), ATT_ERR_ARGUMENT,
            "rotary: factor is -1, not above 0");
    REFUSED(ROTARY(input(t, x, ATT_DIMS(2, 1, 4)), .frequencies = (const double[]){1, INFINITY}), ATT_ERR_ARGUMENT,
            "rotary: frequencies[1] is inf");
#undef REFUSED
#undef SINUSOIDAL
#undef ROTARY
    att_tape_free(t);
    att_close(ctx);
}

static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, ROWS};
    static float x[ROWS * ROW];
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        att_tape *t = recording_tape(ctx);
        const att_positions ragged = {.size = sizeof ragged, .offsets = offsets, .n = 1};
        att_tensor y;
        f.fail_at = f.calls + at;
        att_var *v = att_sinusoidal(t, input(t, x, ATT_DIMS(ROWS, ROW)), &ragged, NULL);
        v = att_rotary(t, att_split_heads(t, v, HEADS), &ragged, NULL);
        s = att_var_value(t, v, &y);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_tape_free(t);
        att_close(ctx);
        assert_int_equal(f.live, 0);
        assert_true(at < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sinusoids_are_those_of_marian_and_of_the_paper),
        cmocka_unit_test(appended_sinusoids_are_what_is_added_to_zeros),
        cmocka_unit_test(rotations_are_those_of_llama_and_gptj),
        cmocka_unit_test(rotations_by_frequencies_and_a_factor_are_those_of_yarn),
        cmocka_unit_test(angles_are_exact_at_position_one_million),
        cmocka_unit_test(products_of_what_is_turned_depend_on_the_distance),
        cmocka_unit_test(a_position_has_the_same_bits_however_it_is_given),
        cmocka_unit_test(learned_positions_are_rows_of_a_table),
        cmocka_unit_test(wrong_positions_are_named),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
