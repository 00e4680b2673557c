/* Perplexity, window by window, against the logits in double. */
#include "attend_language.h"
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/progress.h"
#include "fixtures/tiny_llama.h"

#include <math.h>

enum { VOCABULARY = LLAMA_VOCABULARY, TOKENS = 22, POSITIONS = 64, LONG = 5000 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3, 5, 2, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 3};
static test_folder folder;
static att_language_model *model;

/* -log p(next | id [n]) */
static double loss_of(const int32_t *id, int64_t n, int32_t next)
{
    att_tape *t;
    att_tensor v;
    const int64_t offsets[] = {0, n};
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    assert_int_equal(att_var_value(t,
                                   att_language_model_apply(t, model, id, offsets, 1, NULL,
                                                            ATT_OPTIONS(att_language_model_options, .last_only = true)),
                                   &v),
                     ATT_OK);
    const float *x = v.data;
    double sum = 0;
    for (int i = 0; i < VOCABULARY; i++)
        sum += exp((double)x[i]);
    const double loss = log(sum) - (double)x[next];
    att_tape_free(t);
    return loss;
}

static void each_token_is_predicted_once_from_its_window(void **state)
{
    (void)state;
    static const int sizes[][2] = {{5, 5}, {5, 2}, {5, 1}, {21, 21}, {32, 7}, {1, 1}, {7, 6}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int window = sizes[i][0], stride = sizes[i][1];
        double sum = 0;
        int64_t done = 0, windows = 0; /* the next token that is predicted is done + 1 */
        for (int64_t begin = 0; done < TOKENS - 1; begin += stride, windows++)
            for (; done < TOKENS - 1 && done < begin + window; done++)
                sum += loss_of(ids + begin, done + 1 - begin, ids[done + 1]);
        att_perplexity p = {.size = sizeof p};
        assert_int_equal(
            att_language_perplexity(model, ids, TOKENS,
                                    ATT_OPTIONS(att_perplexity_options, .window = window, .stride = stride), &p),
            ATT_OK);
        assert_int_equal(p.tokens, TOKENS - 1);
        assert_int_equal(p.windows, windows);
        assert_int_equal(p.window, window);
        assert_int_equal(p.stride, stride);
        if (!(fabs(p.loss - sum / (TOKENS - 1)) <= 1e-6 * p.loss))
            fail_msg("window %d, stride %d: %.9g, not %.9g", window, stride, p.loss, sum / (TOKENS - 1));
        assert_true(p.perplexity == exp(p.loss));
    }
}

/* Computes the perplexity of a text that takes three batches. */
static att_status measure(void *text, att_progress_fn progress, void *user)
{
    att_perplexity p = {.size = sizeof p};
    const att_status s = att_language_perplexity(
        model, text, LONG, ATT_OPTIONS(att_perplexity_options, .progress = progress, .user = user), &p);
    if (!s) {
        assert_int_equal(p.window, POSITIONS);
        assert_int_equal(p.stride, POSITIONS);
        assert_int_equal(p.windows, 79);
    }
    progress_result(s, &p, sizeof p);
    return s;
}

static void defaults_are_the_positions_and_progress_may_stop_the_call(void **state)
{
    (void)state;
    static int32_t text[LONG];
    for (int i = 0; i < LONG; i++)
        text[i] = ids[i % TOKENS];
    assert_progress(ctx, measure, text);
}

static void refused(int64_t n, const int32_t *id, int64_t window, int64_t stride, const char *sentence)
{
    att_perplexity p = {.size = sizeof p};
    assert_int_not_equal(att_language_perplexity(
                             model, id, n, ATT_OPTIONS(att_perplexity_options, .window = window, .stride = stride), &p),
                         ATT_OK);
    if (!strstr(att_error(ctx), sentence))
        fail_msg("%s", att_error(ctx));
}

static void what_cannot_be_predicted_is_refused(void **state)
{
    (void)state;
    static const int32_t strange[] = {1, VOCABULARY, 2};
    refused(1, ids, 0, 0, "n is 1");
    refused(TOKENS, ids, POSITIONS + 1, 0, "window is 65, not in [1, 64]");
    refused(TOKENS, ids, -1, 0, "window is -1");
    refused(TOKENS, ids, 5, 6, "stride is 6, not in [1, 5]");
    refused(TOKENS, ids, 5, -1, "stride is -1");
    refused(3, strange, 0, 0, "20");
}

static int open_all(void **state)
{
    const int bad = open_context(state);
    folder = tiny_llama_folder(&tiny_llamas[0], NULL);
    return bad || att_language_model_open(ctx, folder.path, NULL, &model);
}

static int close_all(void **state)
{
    att_language_model_free(model);
    folder_remove(&folder);
    return close_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_token_is_predicted_once_from_its_window),
        cmocka_unit_test(defaults_are_the_positions_and_progress_may_stop_the_call),
        cmocka_unit_test(what_cannot_be_predicted_is_refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
