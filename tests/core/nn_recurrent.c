/* GRU and LSTM layers: parameters are asked for under PyTorch's names, in its order, and give its numbers. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/golden_text.h"
#include "nn/nn.h"

#define GOLDEN "tests/golden/recurrent.txt"

/* As in make_recurrent.py */
enum { IN = 2, UNITS = 3, LAYERS = 2, SEQUENCES = 4, TOKENS = 12, PARAMS = 16, STATES = 2 * LAYERS, MOST = 128 };
static const int64_t offsets[] = {0, 3, 8, 9, TOKENS};

/* Parameters are requested in PyTorch's order. */
static att_status fill(void *user, const char *name, const att_init *init, const att_tensor *value)
{
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    int *n = user;
    char expected[64];
    (void)init;
    assert_true(*n < PARAMS);
    snprintf(expected, sizeof expected, "rnn.%s_l%d%s", names[*n % 4], *n / 8, *n % 8 < 4 ? "" : "_reverse");
    assert_string_equal(name, expected);
    assert_int_equal(value->rank, *n % 4 < 2 ? 2 : 1);
    check_fill(value->data, att_count(value), (uint64_t)(*n)++ + 10, 0, 1);
    return ATT_OK;
}

static att_var *input(att_tape *t, float *x, int rank, const int64_t *dim)
{
    att_tensor v;
    assert_int_equal(att_wrap(&v, x, ATT_F32, rank, dim, NULL), ATT_OK);
    return att_input(t, &v);
}

/* Roundings: see tests/core/recurrent.c. */
static void check_rows(att_tape *t, att_var *x, const char *name, int64_t first, int64_t n)
{
    double expected[MOST];
    att_tensor v;
    if (att_var_value(t, x, &v))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_count(&v), n);
    assert_true(golden_line(GOLDEN, name, expected, MOST) >= first + n);
    for (int64_t i = 0; i < n; i++)
        check_near(expected[first + i], ((const float *)v.data)[i], 85 * FLT_EPSILON, "%s [%d]", name, (int)i);
}

static void check_kind(bool lstm)
{
    const att_nn_recurrent_config c = {
        .size = sizeof c, .in = IN, .units = UNITS, .layers = LAYERS, .bidirectional = true, .lstm = lstm};
    int n_params = 0;
    att_nn_params *p;
    assert_int_equal(
        att_nn_params_new(ctx, ATT_OPTIONS(att_nn_params_config, .initialize = fill, .user = &n_params), &p), ATT_OK);
    const att_nn_recurrent *l = att_nn_recurrent_new(p, "rnn", &c);
    assert_int_equal(att_nn_params_status(p), ATT_OK);
    assert_int_equal(n_params, PARAMS);
    float *x = check_numbers(TOKENS * IN, 1), *start[2];
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    att_recurrent_state states[STATES] = {{0}};
    for (int k = 0; k < 2; k++)
        start[k] = check_numbers(STATES * SEQUENCES * UNITS, (uint64_t)k + 2);
    for (int i = 0; i < STATES; i++) {
        states[i].hidden = input(t, start[0] + i * SEQUENCES * UNITS, ATT_DIMS(SEQUENCES, UNITS));
        states[i].cell = lstm ? input(t, start[1] + i * SEQUENCES * UNITS, ATT_DIMS(SEQUENCES, UNITS)) : NULL;
    }
    att_var *y =
        att_nn_recurrent_apply(t, l, input(t, x, ATT_DIMS(TOKENS, IN)), offsets, SEQUENCES, states, states, NULL);
    check_rows(t, y, lstm ? "lstm_y" : "gru_y", 0, TOKENS * 2 * UNITS);
    for (int i = 0; i < STATES; i++) {
        const int64_t n = SEQUENCES * UNITS;
        check_rows(t, states[i].hidden, lstm ? "lstm_last_0" : "gru_last_0", i * n, n);
        if (lstm)
            check_rows(t, states[i].cell, "lstm_last_1", i * n, n);
    }
    att_tape_free(t);
    att_nn_params_free(p);
    free(x), free(start[0]), free(start[1]);
}

static void layers_are_those_of_pytorch(void **state)
{
    (void)state;
    check_kind(false);
    check_kind(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_those_of_pytorch),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
