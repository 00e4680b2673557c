/* Frozen layers of a vision Transformer in another type than the file's: the same bits as f32 weights of these values,
 * and what is then written. */
// labels: trains
#include "vision/vit.h"
#include "attend_nn.h"
#include "fixtures/tiny_vit.h"

#define FOLDER "models/fashion-mnist"
static const char *const layers[] = {"layer"};

static att_vit *open(const char *const *freeze, att_weight_type weights)
{
    att_vit *m;
    const att_trainable_options options = {
        .size = sizeof options, .freeze = freeze, .n_freeze = freeze != NULL, .weights = weights};
    if (att_vit_open_for_training(ctx, FOLDER, &options, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* Has f32 copies of `from`, whatever its type, as the values of `to` */
static void convert(const att_param *from, att_param *to)
{
    if (att_tensor_convert(ctx, att_param_value(from), att_param_value(to)))
        fail_msg("%s", att_error(ctx));
    att_param_invalidate(to);
}

/* Logits of a gradient image, and the gradient of the classifier's weights, into out; returns their number. */
static int64_t learn(const att_vit *m, float *out)
{
    enum { SIDE = 28, CLASSES = 10 };
    static float pixels[SIDE * SIDE];
    att_tensor x, y;
    att_tape *t;
    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = (float)(i % 97) / 97;
    att_wrap(&x, pixels, ATT_F32, ATT_DIMS(1, SIDE, SIDE, 1), NULL);
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t), ATT_OK);
    att_var *logits = att_vit_logits(t, m, att_constant(t, &x), NULL);
    if (att_var_value(t, logits, &y) || att_tape_backward(t, logits, NULL))
        fail_msg("%s", att_error(ctx));
    memcpy(out, y.data, CLASSES * sizeof *out);
    att_param *head = att_nn_params_find(att_vit_params(m), "head.weight"),
              *patches = att_nn_params_find(att_vit_params(m), "patches.weight");
    int64_t n = CLASSES;
    for (int i = 0; i < 2; i++) {
        const att_tensor *g = att_param_grad(i ? patches : head);
        assert_non_null(g->data);
        memcpy(out + n, g->data, (size_t)att_count(g) * sizeof *out);
        n += att_count(g);
    }
    att_tape_free(t);
    return n;
}

static void frozen_layers_of_any_type_compute_as_f32_weights_of_these_values(void **state)
{
    (void)state;
    static const struct {
        att_weight_type weights;
        att_dtype dtype;
    } types[] = {{ATT_WEIGHT_TYPE_STORED, ATT_F16}, {ATT_WEIGHT_TYPE_BF16, ATT_BF16}, {ATT_WEIGHT_TYPE_INT8, ATT_Q8_0}};
    static float expected[1 << 14], got[1 << 14];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        att_vit *frozen = open(layers, types[i].weights), *plain = open(NULL, ATT_WEIGHT_TYPE_STORED);
        const att_nn_params *p = att_vit_params(frozen);
        const char *name;
        int matrices = 0;
        for (int64_t k = 0; k < att_nn_params_count(p); k++) {
            const att_param *from = att_nn_params_at(p, k, &name);
            const att_tensor *x = att_param_value(from);
            const bool matrix = att_param_frozen(from) && x->rank == 2;
            matrices += matrix;
            assert_int_equal(att_param_frozen(from), strncmp(name, "layer.", 6) == 0);
            assert_int_equal(x->dtype, matrix ? types[i].dtype : att_param_frozen(from) ? ATT_F16 : ATT_F32);
            convert(from, att_nn_params_find(att_vit_params(plain), name));
        }
        assert_int_equal(matrices, 6 * 6);
        const int64_t n = learn(plain, expected);
        assert_int_equal(learn(frozen, got), n);
        assert_memory_equal(got, expected, (size_t)n * sizeof *got);
        att_vit_free(frozen);
        att_vit_free(plain);
    }
}

static void frozen_layers_of_int8_are_written_as_their_values(void **state)
{
    (void)state;
    const test_folder folder = folder_new();
    static float of_model[1 << 15], of_file[1 << 15];
    att_vit *m = open(layers, ATT_WEIGHT_TYPE_INT8), *again;
    if (att_vit_write(m, folder.path, NULL, ATT_F32) || att_vit_open(ctx, folder.path, NULL, &again))
        fail_msg("%s", att_error(ctx));
    const char *name;
    for (int64_t k = 0; k < att_nn_params_count(att_vit_params(m)); k++) {
        att_tensor x = *att_param_value(att_nn_params_at(att_vit_params(m), k, &name)), y = x;
        const att_tensor *written = att_param_value(att_nn_params_find(att_vit_params(again), name));
        assert_true(att_count(&x) <= 1 << 15);
        att_wrap(&y, of_model, ATT_F32, x.rank, x.dim, NULL);
        assert_int_equal(att_tensor_convert(ctx, &x, &y), ATT_OK);
        att_wrap(&y, of_file, ATT_F32, written->rank, written->dim, NULL);
        assert_int_equal(att_tensor_convert(ctx, written, &y), ATT_OK);
        assert_memory_equal(of_file, of_model, (size_t)att_count(&y) * sizeof *of_file);
    }
    att_vit_free(m);
    att_vit_free(again);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_layers_of_any_type_compute_as_f32_weights_of_these_values),
        cmocka_unit_test(frozen_layers_of_int8_are_written_as_their_values),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
