/* Penalties and biases of a generation, against a reference in double on the model's logits. */
// labels: threads
#include "fixtures/generation.h"

#include <math.h>

static const char *const prompts[] = {"bdcab", "t", "gslaegslaegsla"};
enum { PROMPTS = sizeof prompts / sizeof prompts[0], VOCABULARY = 20, TOKENS = 40 };

/* Returns the most probable token after ids [n], whose first `prompt` are not generated, by the definitions. */
static int32_t reference(const setting *t, const int32_t *ids, int64_t n, int64_t prompt, const att_sampling *s)
{
    att_tape *tape;
    att_tensor logits;
    int32_t best = 0;
    double highest = -INFINITY;
    assert_int_equal(att_tape_new(t->ctx, NULL, &tape), ATT_OK);
    assert_int_equal(
        att_var_value(tape,
                      att_language_model_apply(tape, att_text_generator_model(t->g), ids, (const int64_t[]){0, n}, 1,
                                               NULL, ATT_OPTIONS(att_language_model_options, .last_only = true)),
                      &logits),
        ATT_OK);
    for (int32_t id = 0; id < VOCABULARY; id++) {
        double x = (double)((const float *)logits.data)[id];
        int seen = 0, count = 0;
        for (int64_t i = 0; i < n; i++) {
            seen += ids[i] == id;
            count += i >= prompt && ids[i] == id;
        }
        for (int64_t i = 0; i < s->n_bias; i++)
            x += s->bias[i].id == id ? (double)s->bias[i].bias : 0;
        if (seen && s->repetition_penalty > 0)
            x = x < 0 ? x * (double)s->repetition_penalty : x / (double)s->repetition_penalty;
        x -= count * (double)s->frequency_penalty + (count > 0 ? (double)s->presence_penalty : 0);
        if (x > highest) {
            highest = x;
            best = id;
        }
    }
    att_tape_free(tape);
    return best;
}

#define GREEDY(...) ATT_OPTIONS(att_sampling, __VA_ARGS__)
#define BIAS(...)                                                                                                      \
    .bias = (const att_logit_bias[]){__VA_ARGS__},                                                                     \
    .n_bias = sizeof((const att_logit_bias[]){__VA_ARGS__}) / sizeof(att_logit_bias)

static void greedy_text_is_that_of_the_reference(void **state)
{
    (void)state;
    const att_sampling *samplings[] = {
        GREEDY(.presence_penalty = 1),
        GREEDY(.frequency_penalty = 0.3f),
        GREEDY(.presence_penalty = -0.5f, .frequency_penalty = 0.2f),
        GREEDY(BIAS({4, -INFINITY}, {18, 1.5f})),
        GREEDY(.presence_penalty = 0.4f, .frequency_penalty = 0.1f, .repetition_penalty = 1.3f,
               BIAS({6, -2}, {0, 1}, {11, -INFINITY})),
    };
    setting t = open_setting(THREADS(2), NULL);
    for (size_t k = 0; k < sizeof samplings / sizeof samplings[0]; k++)
        for (int i = 0; i < PROMPTS; i++)
            for (int64_t lookup = 0; lookup <= 4; lookup += 4) {
                int32_t ids[POSITIONS];
                const int64_t prompt = ids_of(prompts[i], ids);
                const int64_t number =
                    add(&t, prompts[i], OPTIONS(.max_tokens = TOKENS, .sampling = samplings[k], .lookup = lookup));
                run(&t);
                att_generated out = finish(&t, number);
                assert_int_equal(out.tokens.count, TOKENS);
                for (int64_t n = 0; n < TOKENS; n++) {
                    ids[prompt + n] = reference(&t, ids, prompt + n, prompt, samplings[k]);
                    assert_int_equal(out.tokens.ids[n], ids[prompt + n]);
                }
                att_generated_free(t.ctx, &out);
            }
    close_setting(&t);
}

/* Probability of a text's tokens: that of the model, in which a forbidden token has its share. */
static void log_probabilities_are_before_bias_and_penalties(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), NULL);
    const att_sampling *sampling = GREEDY(.presence_penalty = 2, BIAS({14, 100}));
    const int64_t plain = add(&t, "bdcab", OPTIONS(.max_tokens = 1, .log_probabilities = true));
    const int64_t biased = add(&t, "bdcab", OPTIONS(.max_tokens = 1, .log_probabilities = true, .sampling = sampling));
    run(&t);
    att_generated a = finish(&t, plain), b = finish(&t, biased);
    assert_int_equal(a.tokens.ids[0], 14);
    assert_int_equal(b.tokens.ids[0], 14);
    assert_memory_equal(a.log_probabilities, b.log_probabilities, sizeof(float));
    att_generated_free(t.ctx, &a);
    att_generated_free(t.ctx, &b);
    close_setting(&t);
}

static void a_session_copies_the_biases(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), NULL);
    att_logit_bias bias = {.id = 7, .bias = 100};
    const int64_t number = add(&t, "bdcab", OPTIONS(.max_tokens = 3, .sampling = GREEDY(.bias = &bias, .n_bias = 1)));
    bias.id = -1;
    run(&t);
    att_generated out = finish(&t, number);
    assert_string_equal(out.text.text, "hhh");
    att_generated_free(t.ctx, &out);
    close_setting(&t);
}

static void a_wrong_bias_is_named_by_its_field(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), NULL);
    int64_t number;
    assert_int_equal(try_add(&t, "t", OPTIONS(.sampling = GREEDY(BIAS({3, 0}, {20, 1}))), &number), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "att_generation_add: options.sampling: bias[1].id is 20, but the model's are 0 to 19");
    assert_int_equal(try_add(&t, "t", OPTIONS(.sampling = GREEDY(.presence_penalty = -3)), &number), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "presence_penalty is -3, not in [-2, 2]");
    close_setting(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_text_is_that_of_the_reference),
        cmocka_unit_test(log_probabilities_are_before_bias_and_penalties),
        cmocka_unit_test(a_session_copies_the_biases),
        cmocka_unit_test(a_wrong_bias_is_named_by_its_field),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
