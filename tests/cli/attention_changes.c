/* attend attention on texts and histories: the result without tokens and heads, and of each layer. */
#include "fixtures/attention_tool.h"

/* ---- Without tokens and heads -------------------------------------------------------- */

/* Returns the probabilities of a row of the result, or its numbers. */
static double *result_row(const traced *t, int64_t row, bool softmax)
{
    const int64_t n = trace_info(t->trace).outputs;
    float *x = trace_output(t->trace, -1), *from = x + row * n;
    double *y = malloc((size_t)n * sizeof *y), max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, (double)from[i]);
    for (int64_t i = 0; i < n; i++)
        sum += y[i] = exp((double)from[i] - max);
    for (int64_t i = 0; i < n; i++)
        y[i] = softmax ? y[i] / sum : (double)from[i];
    free(x);
    return y;
}

static void the_next_token_with_and_without_is_that_of_the_traces(void **state)
{
    (void)state;
    static const int64_t hide[] = {1, 3};
    static const att_trace_head zero[] = {{ATT_TRACE_SIDE_DECODER, 0, 2}, {ATT_TRACE_SIDE_DECODER, 1, 0}};
    static const struct {
        const char *options;
        int64_t row;
    } cases[] = {{"--hide 1,3 --zero 0.2,1.0", 4}, {"--hide 1 --hide 3 --zero 0.2 --zero 1.0 --from 3", 3}};
    for (int i = 0; i < 2; i++) {
        traced t = open_traced('L', NULL);
        double *with = result_row(&t, cases[i].row, true);
        trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 2, .zero = zero, .n_zero = 2));
        double *without = result_row(&t, cases[i].row, true);
        json_t *v = run('L', cases[i].options), *results = json_object_get(v, "results");
        assert_int_equal(json_array_size(results), 5);
        assert_string_equal(json_string_value(json_object_get(v, "measure")), "probability");
        for (size_t k = 0; k < 5; k++) {
            const json_t *r = json_array_get(results, k);
            const char *name = json_string_value(json_object_get(r, "name"));
            const int32_t id = att_tokenizer_find(t.tokenizer, name, strlen(name));
            assert_true(fabs(number(r, "with") - with[id]) < 1e-6);
            assert_true(fabs(number(r, "without") - without[id]) < 1e-6);
        }
        free(with);
        free(without);
        json_decref(v);
        close_traced(&t);
    }
    assert_int_equal(tool("$A attention -m $L --hide 1 --zero 0.2 bdcab"), 0);
    assert_has(tool_out, "Without token 1 \"d\", layer 0 head 2: probabilities of next tokens.\n\n");
    assert_has(tool_out, "with     without\n");
}

static void a_sentence_changes_by_a_cosine(void **state)
{
    (void)state;
    static const int64_t hide[] = {2};
    traced t = open_traced('D', NULL);
    const int64_t n = trace_info(t.trace).outputs;
    double *with = result_row(&t, 0, false), dot = 0, a = 0, b = 0;
    trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1));
    double *without = result_row(&t, 0, false);
    for (int64_t i = 0; i < n; i++)
        dot += with[i] * without[i], a += with[i] * with[i], b += without[i] * without[i];
    json_t *v = run('D', "--hide 2"), *r = json_array_get(json_object_get(v, "results"), 0);
    assert_string_equal(json_string_value(json_object_get(v, "measure")), "cosine");
    assert_true(fabs(number(r, "without") - dot / sqrt(a * b)) < 1e-6);
    assert_true(number(r, "with") == 1 && number(r, "without") < 0.99999);
    free(with);
    free(without);
    json_decref(v);
    close_traced(&t);
}

static void a_target_changes_by_its_log_probability(void **state)
{
    (void)state;
    static const int64_t hide[] = {0};
    static const char kinds[] = {'T', 'S'};
    for (int i = 0; i < 2; i++) {
        traced t = open_traced(kinds[i], NULL);
        json_t *v = run(kinds[i], "--hide 0"), *results = json_object_get(v, "results");
        double sum[2] = {0};
        for (int without = 0; without < 2; without++) {
            if (without)
                trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1));
            const att_trace_info info = trace_info(t.trace);
            assert_int_equal(json_array_size(results), info.target);
            for (int64_t k = 0; k < info.target; k++) {
                double *row = result_row(&t, k, true);
                const double log_p = log(row[info.target_ids[k]]);
                const json_t *r = json_array_get(results, (size_t)k);
                assert_true(fabs(number(r, without ? "without" : "with") - log_p) < 1e-4);
                sum[without] += log_p;
                free(row);
            }
        }
        assert_true(fabs(number(json_object_get(v, "sum"), "with") - sum[0]) < 1e-3);
        assert_true(fabs(number(json_object_get(v, "sum"), "without") - sum[1]) < 1e-3);
        assert_true(sum[0] != sum[1]);
        json_decref(v);
        close_traced(&t);
    }
    assert_int_equal(tool("$A attention -m $T --zero 0.1 'ein haus'"), 0);
    assert_has(tool_out, "Without cross layer 0 head 1: log probabilities of the target.\n");
    assert_has(tool_out, "\nsum ");
}

static void a_list_changes_by_its_scores(void **state)
{
    (void)state;
    static const int64_t hide[] = {0};
    traced t = open_traced('R', NULL);
    double *with = result_row(&t, 2, false);
    trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1));
    double *without = result_row(&t, 2, false);
    json_t *v = run('R', "--hide 0"), *results = json_object_get(v, "results");
    assert_int_equal(json_array_size(results), 10);
    for (size_t k = 0; k < 10; k++) {
        const json_t *r = json_array_get(results, k);
        const char *name = json_string_value(json_object_get(r, "name"));
        int64_t item = 0;
        while (strcmp(shop_ids[item], name))
            item++;
        assert_true(fabs(number(r, "with") - with[item]) < 1e-6);
        assert_true(fabs(number(r, "without") - without[item]) < 1e-6);
    }
    free(with);
    free(without);
    json_decref(v);
    close_traced(&t);
}

static void the_mask_is_a_token_of_a_recommender_of_both_directions(void **state)
{
    (void)state;
    assert_int_equal(tool("$A attention -m $B --from 3 apple,pear,fig"), 0);
    assert_has(tool_out, "Token 3 \"[MASK]\" attends to:\n");
    assert_int_equal(tool("$A attention -m $B --hide 0 apple,pear,fig"), 0);
    assert_has(tool_out, "Without token 0 \"apple\": scores of items.\n");
    assert_int_equal(count(tool_out, "\n"), 3 + 10);
    assert_int_equal(tool("$A attention -m $B apple,pear,fig,kiwi,lime,oat"), 0);
    assert_has(tool_err, "attend: of the history the last 4 items are used\n");
}

static void results_that_are_not_finite_are_an_error(void **state)
{
    (void)state;
    assert_refused("$A attention -m $Z --logit-lens apple,pear", 1, "not finite");
    assert_refused("$A attention -m $Z --hide 0 apple,pear", 1, "not finite");
    assert_string_equal(tool_out, "");
}

static void lists_of_tokens_and_heads_are_checked(void **state)
{
    (void)state;
    refused("$A attention -m $L --hide 1,x bdcab", "--hide: \"1,x\" is not a list of whole numbers");
    refused("$A attention -m $L --hide '' bdcab", "--hide: \"\" is not a list");
    refused("$A attention -m $L --hide 1, bdcab", "--hide: \"1,\" is not a list");
    refused("$A attention -m $L --hide 5 bdcab", "--hide: the tokens are 0 to 4, not 5");
    refused("$A attention -m $L --zero 1 bdcab", "--zero: \"1\" is not a list of LAYER.HEAD");
    refused("$A attention -m $L --zero 0.1.2 bdcab", "--zero: \"0.1.2\" is not a list of LAYER.HEAD");
    refused("$A attention -m $L --zero 2.0 bdcab", "--zero: the model has the layers 0 to 1, not 2");
    refused("$A attention -m $L --zero 0.4 bdcab", "--zero: the model has the heads 0 to 3, not 4");
    refused("$A attention -m $D --hide 1 --from 2 'a b'", "--from does not go with --hide");
    refused("$A attention -m $T --zero 0.0 --from 0 'ein haus'", "--from does not go with --zero");
}

/* ---- The logit lens ------------------------------------------------------------------ */

static void each_layer_has_what_it_would_have_next(void **state)
{
    (void)state;
    traced t = open_traced('L', ATT_OPTIONS(att_trace_options, .hidden = true));
    double *last = result_row(&t, 4, true);
    const int64_t n = trace_info(t.trace).outputs;
    float *first = trace_output(t.trace, 0);
    json_t *v = run('L', "--logit-lens"), *layers = json_object_get(v, "layers");
    assert_int_equal(json_array_size(layers), 3);
    const json_t *r = json_array_get(json_object_get(json_array_get(layers, 2), "results"), 0);
    for (int64_t i = 0; i < n; i++)
        assert_true(last[i] <= last[(int)number(r, "id")]);
    assert_true(fabs(number(r, "probability") - last[(int)number(r, "id")]) < 1e-6);
    r = json_array_get(json_object_get(json_array_get(layers, 0), "results"), 0);
    for (int64_t i = 0; i < n; i++)
        assert_true(first[4 * n + i] <= first[4 * n + (int)number(r, "id")]);
    json_t *other = run('L', "--logit-lens --from 1");
    assert_false(json_equal(json_object_get(other, "layers"), layers));
    free(last);
    free(first);
    json_decref(v);
    json_decref(other);
    close_traced(&t);
    assert_int_equal(tool("$A attention -m $L --logit-lens bdcab"), 0);
    assert_has(tool_out, "The tokens of largest probability after each number of layers, next to token 4.\n\nlayers\n");
    assert_int_equal(count(tool_out, "\n"), 6);
    assert_int_equal(tool("$A attention -m $R --logit-lens apple && $A attention -m $T --logit-lens 'ein haus'"), 0);
    refused("$A attention -m $D --logit-lens a", "has no logits, but a vector");
    refused("$A attention -m $S --logit-lens 'ein haus'", "has a recurrent decoder");
    refused("$A attention -m $L --logit-lens --from 5 bdcab", "--from: the tokens are 0 to 4, not 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_token_with_and_without_is_that_of_the_traces),
        cmocka_unit_test(a_sentence_changes_by_a_cosine),
        cmocka_unit_test(a_target_changes_by_its_log_probability),
        cmocka_unit_test(a_list_changes_by_its_scores),
        cmocka_unit_test(the_mask_is_a_token_of_a_recommender_of_both_directions),
        cmocka_unit_test(results_that_are_not_finite_are_an_error),
        cmocka_unit_test(lists_of_tokens_and_heads_are_checked),
        cmocka_unit_test(each_layer_has_what_it_would_have_next),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
