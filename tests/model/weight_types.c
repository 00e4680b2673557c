/* Models whose weights are of another type than the file's, with rows in whole blocks. */
#include "fixtures/converted_model.h"
#include "attend_learn.h"

#include <math.h>

enum { VOCABULARY = 50, HIDDEN = 64, INNER = 96, KEYS = 32, TOKENS = 9 };
static const int32_t ids[TOKENS] = {3, 41, 7, 7, 19, 0, 49, 22, 5};

static float memory[VOCABULARY * HIDDEN + 3 * HIDDEN + 2 * HIDDEN * HIDDEN + 2 * KEYS * HIDDEN + 3 * INNER * HIDDEN];

static void add(converted *c, float **at, const char *name, int64_t rows, int64_t columns)
{
    const int64_t n = (rows ? rows : 1) * columns;
    check_fill(*at, n, (uint64_t)c->n, rows ? 0 : 1, rows ? 0.3f : 0.1f);
    converted_add(c, name, *at, rows, columns);
    *at += n;
}

/* A Llama of one layer, in a folder */
static void write_model(const test_folder *folder)
{
    static const char config[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 50, \"hidden_size\": 64, \"num_hidden_layers\": 1, "
        "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 96, "
        "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\", "
        "\"tie_word_embeddings\": true}";
    converted c = {0};
    float *at = memory;
    add(&c, &at, "model.embed_tokens.weight", VOCABULARY, HIDDEN);
    add(&c, &at, "model.norm.weight", 0, HIDDEN);
    add(&c, &at, "model.layers.0.input_layernorm.weight", 0, HIDDEN);
    add(&c, &at, "model.layers.0.post_attention_layernorm.weight", 0, HIDDEN);
    add(&c, &at, "model.layers.0.self_attn.q_proj.weight", HIDDEN, HIDDEN);
    add(&c, &at, "model.layers.0.self_attn.k_proj.weight", KEYS, HIDDEN);
    add(&c, &at, "model.layers.0.self_attn.v_proj.weight", KEYS, HIDDEN);
    add(&c, &at, "model.layers.0.self_attn.o_proj.weight", HIDDEN, HIDDEN);
    add(&c, &at, "model.layers.0.mlp.gate_proj.weight", INNER, HIDDEN);
    add(&c, &at, "model.layers.0.mlp.up_proj.weight", INNER, HIDDEN);
    add(&c, &at, "model.layers.0.mlp.down_proj.weight", HIDDEN, INNER);
    att_language_model_free(converted_open(&c, folder, config));
}

static att_language_model *open_as(const test_folder *folder, att_weight_type weights)
{
    att_language_model *m;
    const att_model_options o = {.size = sizeof o, .weights = weights};
    if (att_language_model_open(ctx, folder->path, &o, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* Logits of ids [first, first + n), after what the state has -> out [n, VOCABULARY] */
static void apply(const att_language_model *m, int64_t first, int64_t n, att_language_state *state, float *out)
{
    att_tape *t;
    att_tensor v;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    att_var *y = att_language_model_apply(t, m, ids + first, (const int64_t[]){0, n}, 1, state, NULL);
    assert_int_equal(att_var_value(t, y, &v), ATT_OK);
    memcpy(out, v.data, (size_t)(n * VOCABULARY) * sizeof *out);
    att_tape_free(t);
}

/* Returns the root of the mean square of the difference, as a share of that of the exact logits. */
static double error_of(const float *logits, const float *exact)
{
    double error = 0, size = 0;
    for (int i = 0; i < TOKENS * VOCABULARY; i++) {
        error += pow((double)logits[i] - (double)exact[i], 2);
        size += pow((double)exact[i], 2);
    }
    return sqrt(error / size);
}

/* A number is off by up to 2^-11 in f16, 2^-8 in bf16, 1/254 of its block's largest in int8, 1/14 in int4. */
static void fewer_bits_are_less_exact(void **state)
{
    (void)state;
    static const struct {
        att_weight_type weights;
        double min, max;
    } of[] = {{ATT_WEIGHT_TYPE_STORED, 0, 0},     {ATT_WEIGHT_TYPE_F32, 0, 0},
              {ATT_WEIGHT_TYPE_F16, 1e-6, 1e-3},  {ATT_WEIGHT_TYPE_BF16, 1e-4, 8e-3},
              {ATT_WEIGHT_TYPE_INT8, 1e-3, 4e-2}, {ATT_WEIGHT_TYPE_INT4, 1e-2, 0.3}};
    static float exact[TOKENS * VOCABULARY], logits[TOKENS * VOCABULARY], one[VOCABULARY];
    const test_folder folder = folder_new();
    write_model(&folder);
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        att_language_state *s;
        att_language_model *m = open_as(&folder, of[k].weights);
        apply(m, 0, TOKENS, NULL, logits);
        if (k == 0)
            memcpy(exact, logits, sizeof exact);
        const double error = error_of(logits, exact);
        if (error < of[k].min || error > of[k].max)
            fail_msg("weights %d: the logits are off by %g", (int)of[k].weights, error);
        assert_int_equal(att_language_state_new(m, 1, ATT_F32, &s), ATT_OK);
        for (int i = 0; i < TOKENS; i++) { /* token by token: the bits of a full pass */
            apply(m, i, 1, s, one);
            assert_memory_equal(one, logits + i * VOCABULARY, sizeof one);
        }
        att_language_state_free(s);
        att_language_model_free(m);
    }
    folder_remove(&folder);
}

/* The loss is that of the logits, by either of two ways. */
static void the_loss_is_of_the_same_products(void **state)
{
    (void)state;
    const test_folder folder = folder_new();
    write_model(&folder);
    att_language_model *m = open_as(&folder, ATT_WEIGHT_TYPE_INT8);
    static const int64_t offsets[] = {0, TOKENS - 1};
    static float logits[TOKENS * VOCABULARY];
    double expected = 0;
    att_tape *t;
    att_tensor loss;
    apply(m, 0, TOKENS - 1, NULL, logits);
    for (int i = 0; i < TOKENS - 1; i++) {
        double sum = 0;
        for (int k = 0; k < VOCABULARY; k++)
            sum += exp((double)logits[i * VOCABULARY + k]);
        expected += (log(sum) - (double)logits[i * VOCABULARY + ids[i + 1]]) / (TOKENS - 1);
    }
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    assert_int_equal(att_var_value(t, att_language_model_loss(t, m, ids, offsets, 1, ids + 1, NULL), &loss), ATT_OK);
    assert_float_equal(*(float *)loss.data, (float)expected, 1e-5f);
    att_tape_free(t);
    att_language_model_free(m);
    folder_remove(&folder);
}

/* All rows here are in whole blocks: 34 bytes for 32 numbers of 4. */
static void a_model_tells_the_bytes_of_its_weights(void **state)
{
    (void)state;
    const test_folder folder = folder_new();
    write_model(&folder);
    att_model_weights w = {.size = sizeof w};
    att_language_model *m = open_as(&folder, ATT_WEIGHT_TYPE_INT8);
    assert_int_equal(att_language_model_weights(m, &w), ATT_OK);
    assert_int_equal(w.stored[ATT_F32], sizeof memory);
    assert_int_equal(w.used[ATT_F32], 3 * HIDDEN * sizeof *memory);
    assert_int_equal(w.used[ATT_Q8_0], (sizeof memory - 3 * HIDDEN * sizeof *memory) / 128 * 34);
    att_language_model_free(m);
    folder_remove(&folder);
}

static void another_number_is_no_type(void **state)
{
    (void)state;
    att_language_model *m;
    const test_folder folder = folder_new();
    write_model(&folder);
    const att_model_options o = {.size = sizeof o, .weights = (att_weight_type)9};
    assert_int_equal(att_language_model_open(ctx, folder.path, &o, &m), ATT_ERR_ARGUMENT);
    assert_null(m);
    check_message(ctx, "weights is 9, which is not an att_weight_type");
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_bits_are_less_exact),
        cmocka_unit_test(the_loss_is_of_the_same_products),
        cmocka_unit_test(a_model_tells_the_bytes_of_its_weights),
        cmocka_unit_test(another_number_is_no_type),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
