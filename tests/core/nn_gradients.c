/* Gradients through whole layers: two layers of an encoder, as BERT has them, against differences. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "attend_nn.h"

enum { LAYERS = 2, HIDDEN = 12, PER_LAYER = 16, PARAMS = LAYERS * PER_LAYER, TOKENS = 13 };
static const int64_t offsets[] = {0, 5, 5, TOKENS};

typedef struct encoder {
    att_nn_params *params;
    const att_nn_encoder_layer *layer[LAYERS];
    float *x; /* [TOKENS, HIDDEN] */
} encoder;

/* Numbers of order 1, so that no gradient is near 0. */
static att_status fill(void *user, const char *name, const att_init *init, const att_tensor *value)
{
    uint64_t *seed = user;
    (void)init;
    check_fill(value->data, att_count(value), ++*seed, strstr(name, "_norm.weight") ? 1 : 0, 0.5f);
    return ATT_OK;
}

static void encoder_open(encoder *e)
{
    uint64_t seed = 0;
    *e = (encoder){.x = check_numbers(TOKENS * HIDDEN, 77)};
    assert_int_equal(
        att_nn_params_new(ctx, ATT_OPTIONS(att_nn_params_config, .initialize = fill, .user = &seed), &e->params),
        ATT_OK);
    const att_nn_layer_config c = {
        .size = sizeof c, .width = HIDDEN, .heads = 3, .intermediate = 20, .activation = ATT_ACTIVATION_GELU_ERF};
    for (int i = 0; i < LAYERS; i++)
        e->layer[i] = att_nn_encoder_layer_new(e->params, att_nn_number("layer", i).text, &c);
    assert_int_equal(att_nn_params_status(e->params), ATT_OK);
    assert_int_equal(att_nn_params_count(e->params), PARAMS);
}

static void encoder_close(encoder *e)
{
    att_nn_params_free(e->params);
    free(e->x);
}

/* Parameter `leaf`; NULL behind the last */
static att_param *param_of(const encoder *e, int leaf) { return att_nn_params_at(e->params, leaf, NULL); }

static att_tape *tape(bool record)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = record), &t), ATT_OK);
    return t;
}

static att_var *encode(att_tape *t, const encoder *e, att_var **in)
{
    att_attention_args args = {.size = sizeof args, .n_sequences = 3, .q_offsets = offsets};
    att_tensor x;
    assert_int_equal(att_wrap(&x, e->x, ATT_F32, ATT_DIMS(TOKENS, HIDDEN), NULL), ATT_OK);
    att_scope s = att_scope_begin(t, "encoder");
    att_var *y = *in = att_input(t, &x);
    for (int i = 0; i < LAYERS; i++)
        y = att_scope_reset(
            t, s, att_nn_encoder_layer_apply(t, e->layer[i], y, ATT_OPTIONS(att_nn_layer_call, .args = &args)));
    return att_scope_end(t, s, y);
}

static float slope(int i) { return check_uniform(5, (uint64_t)i); }

/* Returns the sum of slopes times outputs. */
static double loss(att_tape *t, const encoder *e)
{
    att_var *in;
    att_tensor y;
    att_tape_reset(t);
    if (att_var_value(t, encode(t, e, &in), &y))
        fail_msg("%s", att_error(ctx));
    double sum = 0;
    for (int i = 0; i < TOKENS * HIDDEN; i++)
        sum += (double)slope(i) * (double)((const float *)y.data)[i];
    return sum;
}

/* Returns the loss with x [n] moved by `step` along d, and x restored. */
static double loss_at(att_tape *t, const encoder *e, att_param *p, float *x, int64_t n, const float *d, double step)
{
    float *kept = malloc((size_t)n * sizeof *kept);
    memcpy(kept, x, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] += (float)(step * (double)d[i]);
    if (p)
        att_param_invalidate(p);
    const double y = loss(t, e);
    memcpy(x, kept, (size_t)n * sizeof *x);
    if (p)
        att_param_invalidate(p);
    free(kept);
    return y;
}

/* Along d [n], of length 1, the loss rises as its gradient says. 156 outputs of order 1 are off by some 8 roundings
 * each, so the loss by 8 sqrt(156) 6e-8 = 6e-6, and differences of fourth order by 1.4 / STEP times that, 5.4e-4; they
 * cut off 4 STEP^4 / 30 = 8e-9 times the fifth derivative, of some thousands where layers divide by deviations of 1/2:
 * 3e-5. */
static void check_direction(att_tape *t, const encoder *e, int leaf, const float *grad, const float *d)
{
    static const double STEP = 0x1p-6;
    att_param *p = param_of(e, leaf);
    float *x = p ? att_param_value(p)->data : e->x;
    const int64_t n = p ? att_count(att_param_value(p)) : TOKENS * HIDDEN;
    double expected = 0;
    for (int64_t i = 0; i < n; i++)
        expected += (double)grad[i] * (double)d[i];
    const double near = loss_at(t, e, p, x, n, d, STEP) - loss_at(t, e, p, x, n, d, -STEP);
    const double far = loss_at(t, e, p, x, n, d, 2 * STEP) - loss_at(t, e, p, x, n, d, -2 * STEP);
    check_near((8 * near - far) / (12 * STEP), (float)expected, 6e-4, "leaf %d of %d", leaf, PARAMS);
}

static void normalize(float *d, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (double)d[i] * (double)d[i];
    for (int64_t i = 0; i < n && squares > 0; i++)
        d[i] = (float)((double)d[i] / sqrt(squares));
}

static void gradients_of_two_encoder_layers_are_those_of_differences(void **state)
{
    (void)state;
    encoder e;
    encoder_open(&e);
    att_tape *t = tape(true), *plain = tape(false);
    att_var *in, *y = encode(t, &e, &in);
    float slopes[TOKENS * HIDDEN];
    att_tensor dy, grad;
    for (int i = 0; i < TOKENS * HIDDEN; i++)
        slopes[i] = slope(i);
    assert_int_equal(att_var_value(t, y, &dy), ATT_OK);
    dy.data = slopes;
    assert_int_equal(att_tape_backward(t, y, &dy), ATT_OK);
    for (int leaf = 0; leaf <= PARAMS; leaf++) {
        const att_param *p = param_of(&e, leaf);
        const int64_t n = p ? att_count(att_param_value(p)) : TOKENS * HIDDEN;
        if (p)
            grad = *att_param_grad(p);
        else
            assert_int_equal(att_var_grad(t, in, &grad), ATT_OK);
        float *d = check_numbers(n, (uint64_t)leaf + 200);
        normalize(d, n);
        check_direction(plain, &e, leaf, grad.data, d); /* any */
        memcpy(d, grad.data, (size_t)n * sizeof *d);
        normalize(d, n);
        check_direction(plain, &e, leaf, grad.data, d); /* the steepest */
        free(d);
    }
    att_tape_free(plain);
    att_tape_free(t);
    encoder_close(&e);
}

static void recording_changes_no_bit_of_what_layers_compute(void **state)
{
    (void)state;
    encoder e;
    encoder_open(&e);
    att_tape *t = tape(true), *plain = tape(false);
    att_var *in;
    att_tensor with, without;
    assert_int_equal(att_var_value(t, encode(t, &e, &in), &with), ATT_OK);
    assert_int_equal(att_var_value(plain, encode(plain, &e, &in), &without), ATT_OK);
    assert_memory_equal(with.data, without.data, TOKENS * HIDDEN * sizeof(float));
    att_tape_free(plain);
    att_tape_free(t);
    encoder_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_two_encoder_layers_are_those_of_differences),
        cmocka_unit_test(recording_changes_no_bit_of_what_layers_compute),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
