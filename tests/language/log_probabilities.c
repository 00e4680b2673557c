/* Log probabilities of generated tokens, of the prompt's, and of the most probable ones at each. */
// labels: threads
#include "fixtures/generation.h"

#include <math.h>

enum { VOCABULARY = 20, TOP = 5, TOKENS = 30 };
#define LONG "bdcabtafhjkkqpprsabcdefgihlmnopqrst"

/* Rows of the model's distribution in double, of a full pass over ids [n]: [n, VOCABULARY], after each of them */
static void reference(const setting *t, const int32_t *ids, int64_t n, double *out)
{
    att_tape *tape;
    att_tensor logits;
    assert_int_equal(att_tape_new(t->ctx, NULL, &tape), ATT_OK);
    assert_int_equal(att_var_value(tape,
                                   att_language_model_apply(tape, att_text_generator_model(t->g), ids,
                                                            (const int64_t[]){0, n}, 1, NULL, false),
                                   &logits),
                     ATT_OK);
    for (int64_t i = 0; i < n; i++) {
        const float *row = (const float *)logits.data + i * VOCABULARY;
        double sum = 0;
        for (int k = 0; k < VOCABULARY; k++)
            sum += exp((double)row[k]);
        for (int k = 0; k < VOCABULARY; k++)
            out[i * VOCABULARY + k] = (double)row[k] - log(sum);
    }
    att_tape_free(tape);
}

/* own: of the token id; ids, highest [TOP]: the first of row [VOCABULARY] in descending order */
static void check_row(const double *row, int32_t id, float own, const int32_t *ids, const float *highest)
{
    assert_true(fabs((double)own - row[id]) < 1e-5);
    for (int i = 0; i < TOP; i++) {
        int before = 0;
        for (int k = 0; k < VOCABULARY; k++)
            before += row[k] > row[ids[i]];
        assert_int_equal(before, i);
        assert_true(fabs((double)highest[i] - row[ids[i]]) < 1e-5);
    }
}

typedef struct seen {
    int64_t n;
    int32_t ids[TOKENS * TOP];
    float highest[TOKENS * TOP];
} seen;

static bool add_top(void *user, const att_generated_token *token)
{
    seen *s = user;
    memcpy(s->ids + s->n * TOP, token->top_ids, TOP * sizeof(int32_t));
    memcpy(s->highest + s->n++ * TOP, token->top_log_probabilities, TOP * sizeof(float));
    return true;
}

static void check_all(const setting *t, const char *prompt, const att_generated *out, const seen *s)
{
    int32_t ids[POSITIONS];
    double rows[POSITIONS * VOCABULARY];
    const int64_t n = ids_of(prompt, ids), count = out->tokens.count;
    memcpy(ids + n, out->tokens.ids, (size_t)count * sizeof *ids);
    reference(t, ids, n + count, rows);
    assert_true(isnan(out->prompt_log_probabilities[0]) && isnan(out->prompt_top_log_probabilities[TOP - 1]));
    assert_int_equal(out->prompt_top_ids[0], -1);
    for (int64_t i = 1; i < n; i++)
        check_row(rows + (i - 1) * VOCABULARY, ids[i], out->prompt_log_probabilities[i], out->prompt_top_ids + i * TOP,
                  out->prompt_top_log_probabilities + i * TOP);
    for (int64_t i = 0; i < count; i++)
        check_row(rows + (n + i - 1) * VOCABULARY, ids[n + i], out->log_probabilities[i], out->top_ids + i * TOP,
                  out->top_log_probabilities + i * TOP);
    assert_int_equal(s->n, count);
    assert_memory_equal(s->ids, out->top_ids, (size_t)(count * TOP) * sizeof(int32_t));
    assert_memory_equal(s->highest, out->top_log_probabilities, (size_t)(count * TOP) * sizeof(float));
}

static void assert_same_floats(const float *a, const float *b, int64_t n)
{
    assert_memory_equal(a, b, (size_t)n * sizeof(float));
}

/* In parts of prompts, with lookup, at random with penalties, after a sequence with the same prompt that is kept: as a
 * full pass has them, and the same bits each time; the text is that without them. */
static void they_are_those_of_a_full_pass(void **state)
{
    (void)state;
    static const char *const prompts[] = {LONG, "t", "gslaegslaegsla"};
    const att_sampling *samplings[] = {NULL, SAMPLING(.temperature = 3, .presence_penalty = 1, .top_k = 9)};
    for (int k = 0; k < 3 * 2; k++) {
        const att_generate_options plain = {
            .size = sizeof plain, .max_tokens = TOKENS, .sampling = samplings[k % 2], .seed = 3};
        att_generated first = {0};
        for (int i = 0; i < 4; i++) {
            seen s = {.n = 0};
            setting t = open_setting(THREADS(1 + i % 2), SESSION(.prompt_tokens = i < 2 ? 8 : 0, .kept_tokens = 200));
            att_generate_options o = plain;
            const int64_t without = add(&t, prompts[k / 2], &o);
            run(&t);
            att_generated expected = finish(&t, without);
            o.log_probabilities = o.prompt_log_probabilities = true;
            o.top = TOP;
            o.lookup = i == 3 ? 4 : 0;
            o.token = add_top;
            o.user = &s;
            const int64_t number = add(&t, prompts[k / 2], &o);
            run(&t);
            att_generated out = finish(&t, number);
            const int64_t n = (int64_t)strlen(prompts[k / 2]);
            assert_string_equal(out.text.text, expected.text.text);
            assert_int_equal(out.cached, 0);
            assert_null(expected.top_ids);
            assert_null(expected.prompt_log_probabilities);
            check_all(&t, prompts[k / 2], &out, &s);
            if (i > 0) {
                assert_same_floats(out.log_probabilities, first.log_probabilities, TOKENS);
                assert_same_floats(out.prompt_log_probabilities + 1, first.prompt_log_probabilities + 1, n - 1);
                assert_same_floats(out.prompt_top_log_probabilities + TOP, first.prompt_top_log_probabilities + TOP,
                                   (n - 1) * TOP);
            }
            att_generated_free(t.ctx, &expected);
            att_generated_free(t.ctx, &first);
            first = out;
            if (i == 3)
                att_generated_free(t.ctx, &first);
            close_setting(&t);
        }
    }
}

/* Perplexity comes from the loss, not from the sampler. */
static void the_prompt_has_the_perplexity_of_its_text(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(2), SESSION(.prompt_tokens = 10));
    int32_t ids[POSITIONS];
    const int64_t n = ids_of(LONG, ids);
    double sum = 0;
    att_perplexity p = {.size = sizeof p};
    const int64_t number = add(&t, LONG, OPTIONS(.max_tokens = 1, .prompt_log_probabilities = true));
    run(&t);
    att_generated out = finish(&t, number);
    for (int64_t i = 1; i < n; i++)
        sum -= (double)out.prompt_log_probabilities[i];
    assert_int_equal(att_language_perplexity(att_text_generator_model(t.g), ids, n, NULL, &p), ATT_OK);
    assert_true(fabs(p.loss - sum / (double)(n - 1)) < 1e-5);
    assert_null(out.log_probabilities);
    assert_null(out.prompt_top_ids);
    att_generated_free(t.ctx, &out);
    close_setting(&t);
}

static void what_was_not_computed_is_not_a_number(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), SESSION(.prompt_tokens = 10));
    const int64_t number = add(&t, LONG, OPTIONS(.prompt_log_probabilities = true, .top = 2));
    step(&t);
    att_generated out = finish(&t, number);
    assert_int_equal(out.end, ATT_GENERATION_CANCELLED);
    for (int64_t i = 0; LONG[i]; i++) {
        assert_int_equal(isnan(out.prompt_log_probabilities[i]) != 0, i == 0 || i > 10);
        assert_int_equal(out.prompt_top_ids[2 * i + 1] == -1, i == 0 || i > 10);
    }
    att_generated_free(t.ctx, &out);
    close_setting(&t);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), NULL);
    int64_t number;
    assert_int_equal(try_add(&t, "t", OPTIONS(.top = 21), &number), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "att_generation_add: options.top is 21, not in [0, 20]");
    assert_int_equal(try_add(&t, "t", OPTIONS(.top = -1), &number), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "options.top is -1");
    att_language_state *s;
    att_generated out;
    const int64_t offsets[] = {0, 1};
    assert_int_equal(att_language_state_new(att_text_generator_model(t.g), 1, ATT_F32, &s), ATT_OK);
    assert_int_equal(att_generate(t.g, 1, (const int32_t[]){0}, offsets, OPTIONS(.max_tokens = 3, .state = s), &out),
                     ATT_OK);
    att_generated_free(t.ctx, &out);
    assert_int_equal(att_generate(t.g, 1, (const int32_t[]){0, 1, 2, 3, 4}, (const int64_t[]){0, 5},
                                  OPTIONS(.state = s, .prompt_log_probabilities = true), &out),
                     ATT_ERR_ARGUMENT);
    check_message(t.ctx, "att_generate: options.prompt_log_probabilities is for prompts that are computed, but "
                         "options.state has 3 tokens of prompt 0");
    att_language_state_free(s);
    close_setting(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_those_of_a_full_pass),
        cmocka_unit_test(the_prompt_has_the_perplexity_of_its_text),
        cmocka_unit_test(what_was_not_computed_is_not_a_number),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
