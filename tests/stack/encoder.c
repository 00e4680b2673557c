/* What all text encoders have: token types and positions, dropout, parameters. The model is a tiny BERT. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/tiny_bert.h"
#include "fixtures/tiny_gguf.h"
#include "attend_encoder.h"

static test_folder folder;
static att_encoder *model, *learning; /* of the folder, opened for inference and for training */
static att_tape *tape, *recording;

static int open_models(void **state)
{
    open_context(state);
    folder = tiny_sentence();
    return att_encoder_open(ctx, folder.path, NULL, &model) ||
           att_encoder_open_for_training(ctx, folder.path, NULL, &learning) || att_tape_new(ctx, NULL, &tape) ||
           att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &recording);
}

static int close_models(void **state)
{
    att_tape_free(tape);
    att_tape_free(recording);
    att_encoder_free(model);
    att_encoder_free(learning);
    folder_remove(&folder);
    return close_context(state);
}

/* The sequences of make_tiny_bert.py, of 8 and 5 tokens */
enum { PAIR = 8, TOKENS = 13, NUMBERS = TOKENS * TINY_HIDDEN };
static const int32_t ids[TOKENS] = {2, 5, 6, 3, 7, 8, 9, 3, 2, 7, 9, 11, 3};
static const int32_t types[TOKENS] = {0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1};
static const int64_t positions[TOKENS] = {0, 1, 2, 3, 4, 5, 6, 7, 7, 0, 3, 3, 15};
static const int64_t offsets[] = {0, PAIR, TOKENS};

/* Its hidden states; then the gradients of the tables of types and of positions */
typedef struct golden_pair {
    float y[NUMBERS], types[2 * TINY_HIDDEN], positions[TINY_POSITIONS * TINY_HIDDEN];
} golden_pair;

static golden_pair read_golden(void)
{
    golden_pair g;
    float *all[] = {g.y, g.types, g.positions};
    const size_t n[] = {sizeof g.y, sizeof g.types, sizeof g.positions};
    FILE *file = fopen("tests/golden/tiny_bert_pair.txt", "r");
    assert_non_null(file);
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < n[k] / sizeof(float); i++)
            assert_int_equal(fscanf(file, "%f", &all[k][i]), 1);
    fclose(file);
    return g;
}

static void assert_near(const char *what, const float *is, const float *expected, int64_t n, float tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(is[i] - expected[i]) <= tolerance))
            fail_msg("%s: [%lld] is %.9g, not %.9g", what, (long long)i, (double)is[i], (double)expected[i]);
}

/* Hidden states of the first n tokens, which are whole sequences; on the tape until the next call */
static const float *apply(const att_encoder *m, int64_t n, const att_encoder_options *options)
{
    att_tensor x;
    att_tape_reset(tape);
    if (att_var_value(tape, att_encoder_apply(tape, m, ids, offsets, n == PAIR ? 1 : 2, options), &x))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(x.dim[0], n);
    assert_int_equal(x.dim[1], TINY_HIDDEN);
    return x.data;
}

/* The call failed with these words. */
static void check_failed(att_var *y, const char *words)
{
    att_tensor x;
    assert_null(y);
    assert_int_equal(att_var_value(tape, y, &x), ATT_ERR_ARGUMENT);
    check_message(ctx, words);
    att_tape_reset(tape);
}

/* ---- token types and positions */

static void tokens_of_a_pair_have_the_hidden_states_of_transformers(void **state)
{
    (void)state;
    const golden_pair g = read_golden();
    att_tokenizer *t;
    att_tokens tokens;
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    assert_int_equal(att_tokenize_pair(t, "a b", 3, "c d e", 5, NULL, &tokens), ATT_OK);
    assert_int_equal(tokens.count, PAIR);
    assert_memory_equal(tokens.ids, ids, PAIR * sizeof *ids);
    const float *y = apply(model, PAIR, ATT_OPTIONS(att_encoder_options, .type_ids = tokens.type_ids));
    assert_near("y", y, g.y, PAIR * TINY_HIDDEN, 4e-6f); /* as in bert.c */
    att_tokens_free(ctx, &tokens);
    att_tokenizer_free(t);
}

static void token_types_and_positions_may_be_any_that_the_model_has(void **state)
{
    (void)state;
    const golden_pair g = read_golden();
    const float *y =
        apply(model, TOKENS, ATT_OPTIONS(att_encoder_options, .type_ids = types, .position_ids = positions));
    assert_near("y", y, g.y, NUMBERS, 4e-6f);
}

static void without_them_types_are_0_and_positions_ascend_from_0(void **state)
{
    (void)state;
    static const int32_t zeros[TOKENS];
    static const int64_t ascending[TOKENS] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4};
    float expected[NUMBERS];
    memcpy(expected, apply(model, TOKENS, NULL), sizeof expected);
    const float *y =
        apply(model, TOKENS, ATT_OPTIONS(att_encoder_options, .type_ids = zeros, .position_ids = ascending));
    assert_memory_equal(y, expected, sizeof expected);
    y = apply(model, TOKENS, ATT_OPTIONS(att_encoder_options, .type_ids = types));
    assert_memory_not_equal(y, expected, sizeof expected);
}

/* Of the sum of all squares */
static void gradients_of_types_and_positions_are_those_of_pytorch(void **state)
{
    (void)state;
    static float none[NUMBERS];
    const golden_pair g = read_golden();
    const att_nn_params *p = att_encoder_params(learning);
    int32_t type[TOKENS];
    int64_t position[TOKENS];
    att_tensor zeros;
    assert_int_equal(att_wrap(&zeros, none, ATT_F32, ATT_DIMS(TOKENS, TINY_HIDDEN), NULL), ATT_OK);
    memcpy(type, types, sizeof type);
    memcpy(position, positions, sizeof position);
    att_tape_reset(recording);
    att_var *y = att_encoder_apply(recording, learning, ids, offsets, 2,
                                   ATT_OPTIONS(att_encoder_options, .type_ids = type, .position_ids = position));
    memset(type, 0, sizeof type); /* they are needed no longer */
    memset(position, 0, sizeof position);
    att_var *loss = att_mean_squared_error(recording, y, att_input(recording, &zeros),
                                           ATT_OPTIONS(att_mean_squared_error_options, .sum = true));
    assert_int_equal(att_tape_backward(recording, loss, NULL), ATT_OK);
    /* sums of up to 8 gradients of order 10, each with rounding errors of about 1e-6 */
    const float *types_grad = att_param_grad(att_nn_params_find(p, "embeddings.type.weight"))->data;
    assert_near("types", types_grad, g.types, 2 * TINY_HIDDEN, 2e-5f);
    const float *positions_grad = att_param_grad(att_nn_params_find(p, "embeddings.position.weight"))->data;
    assert_near("positions", positions_grad, g.positions, TINY_POSITIONS * TINY_HIDDEN, 2e-5f);
}

static void those_that_the_model_does_not_have_are_named(void **state)
{
    (void)state;
    static const struct {
        int32_t type;
        int64_t position;
        const char *sentence;
    } wrong[] = {
        {2, 0, "encoder: type_ids[7] = 2 but the model has 2 token types"},
        {INT32_MIN, 0, "encoder: type_ids[7] = -2147483648 but the model has 2 token types"},
        {0, 16, "encoder: position_ids[7] = 16 but the model has 16 positions"},
        {0, -1, "encoder: position_ids[7] = -1 but the model has 16 positions"},
        {0, INT64_MAX, "encoder: position_ids[7] = 9223372036854775807 but the model has 16 positions"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int32_t type[PAIR] = {0};
        int64_t position[PAIR] = {0};
        type[PAIR - 1] = wrong[i].type;
        position[PAIR - 1] = wrong[i].position;
        const att_encoder_options o = {.size = sizeof o, .type_ids = type, .position_ids = position};
        check_failed(att_encoder_apply(tape, model, ids, offsets, 1, &o), wrong[i].sentence);
    }
    const att_encoder_options none = {.size = 0};
    check_failed(att_encoder_apply(tape, model, ids, offsets, 1, &none), "att_encoder_options");
}

/* ---- training */

static void dropout_follows_seed_and_sequence_ids_alone(void **state)
{
    (void)state;
    static const uint32_t sequences[] = {7, 8};
    float expected[NUMBERS], plain[NUMBERS];
    att_encoder_options o = {.size = sizeof o, .dropout = true, .seed = 3, .sequence_ids = sequences};
    memcpy(plain, apply(learning, TOKENS, NULL), sizeof plain);
    assert_memory_equal(apply(model, TOKENS, NULL), plain, sizeof plain);
    memcpy(expected, apply(learning, TOKENS, &o), sizeof expected);
    assert_memory_not_equal(expected, plain, sizeof plain);
    assert_memory_equal(apply(learning, TOKENS, &o), expected, sizeof expected);
    /* the bits of the first sequence are the same with and without the second */
    assert_memory_equal(apply(learning, PAIR, &o), expected, PAIR * TINY_HIDDEN * sizeof *expected);
    o.seed = 4;
    assert_memory_not_equal(apply(learning, TOKENS, &o), expected, sizeof expected);
    o.seed = 3, o.sequence_ids = sequences + 1;
    assert_memory_not_equal(apply(learning, PAIR, &o), expected, PAIR * TINY_HIDDEN * sizeof *expected);
    o.dropout = false; /* seed and sequence_ids are then of no effect */
    assert_memory_equal(apply(learning, PAIR, &o), plain, PAIR * TINY_HIDDEN * sizeof *plain);
}

static void dropout_needs_a_model_for_training_and_sequence_ids(void **state)
{
    (void)state;
    static const uint32_t sequences[] = {7, 8};
    att_encoder_options o = {.size = sizeof o, .dropout = true, .sequence_ids = sequences};
    check_failed(att_encoder_apply(tape, model, ids, offsets, 2, &o),
                 "encoder: dropout is true, but the model is not trainable: it comes from att_encoder_open");
    o.sequence_ids = NULL;
    check_failed(att_encoder_apply(tape, learning, ids, offsets, 2, &o), "sequence_ids is NULL");
}

static void parameters_are_had_by_name_and_those_for_training_are_told_from_others(void **state)
{
    (void)state;
    const att_nn_params *p = att_encoder_params(learning);
    assert_null(att_encoder_params(NULL));
    assert_true(att_nn_params_trainable(p) && !att_nn_params_trainable(att_encoder_params(model)));
    assert_int_equal(att_nn_params_count(att_encoder_params(model)), att_nn_params_count(p));
    assert_int_equal(att_nn_params_count(p), 3 + 2 + 16 * TINY_LAYERS);
    assert_int_equal(att_param_value(att_nn_params_find(p, "embeddings.word.weight"))->dim[0], TINY_TOKENS);
}

static void weights_have_their_bytes(void **state)
{
    (void)state;
    enum { H = TINY_HIDDEN, LAYER = 4 * (H * H + H) + 2 * TINY_INNER * H + TINY_INNER + H + 4 * H };
    att_model_weights w = {.size = sizeof w};
    assert_int_equal(att_encoder_weights(model, &w), ATT_OK);
    assert_int_equal(w.used[ATT_F32], 4 * ((TINY_TOKENS + TINY_POSITIONS + 2) * H + 2 * H + TINY_LAYERS * LAYER));
    assert_int_equal(w.stored[ATT_F32], w.used[ATT_F32]);
}

static void a_file_with_a_language_model_is_refused(void **state)
{
    (void)state;
    att_encoder *m = (att_encoder *)&m;
    char path[128];
    const test_folder f = tiny_llama_folder(&tiny_llamas[0], NULL);
    tiny_gguf_write(&f, "model.gguf", &tiny_llamas[0], NULL);
    snprintf(path, sizeof path, "%s/model.gguf", f.path);
    check_file_refused(ctx, att_encoder_open(ctx, path, NULL, &m), ATT_ERR_UNSUPPORTED, "model.gguf",
                       "\"model_type\" is \"llama\", which is not supported; one of bert, roberta, ");
    assert_null(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_a_pair_have_the_hidden_states_of_transformers),
        cmocka_unit_test(token_types_and_positions_may_be_any_that_the_model_has),
        cmocka_unit_test(without_them_types_are_0_and_positions_ascend_from_0),
        cmocka_unit_test(gradients_of_types_and_positions_are_those_of_pytorch),
        cmocka_unit_test(those_that_the_model_does_not_have_are_named),
        cmocka_unit_test(dropout_follows_seed_and_sequence_ids_alone),
        cmocka_unit_test(dropout_needs_a_model_for_training_and_sequence_ids),
        cmocka_unit_test(parameters_are_had_by_name_and_those_for_training_are_told_from_others),
        cmocka_unit_test(weights_have_their_bytes),
        cmocka_unit_test(a_file_with_a_language_model_is_refused),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
