/* attend attention on texts and histories: weights, heads, one weight; wrong options. */
#include "fixtures/attention_tool.h"

/* ---- Weights ----------------------------------------------------------------------- */

static void weights_of_all_kinds_and_sides_are_those_of_the_trace(void **state)
{
    (void)state;
    static const struct {
        char kind;
        const char *options;
        att_trace_side side;
        int64_t layer, head;
    } cases[] = {{'D', "", ATT_TRACE_SIDE_ENCODER, 1, 0},
                 {'D', "--side encoder -l 0 -H 2", ATT_TRACE_SIDE_ENCODER, 0, 2},
                 {'L', "", ATT_TRACE_SIDE_DECODER, 1, 0},
                 {'L', "--layer 0 --head 1", ATT_TRACE_SIDE_DECODER, 0, 1},
                 {'T', "", ATT_TRACE_SIDE_CROSS, -1, -1},
                 {'T', "--side cross --layer 0 --head 1", ATT_TRACE_SIDE_CROSS, 0, 1},
                 {'T', "--side encoder", ATT_TRACE_SIDE_ENCODER, -1, -1},
                 {'T', "--side decoder --head 0", ATT_TRACE_SIDE_DECODER, -1, 0},
                 {'S', "", ATT_TRACE_SIDE_CROSS, 0, -1},
                 {'R', "", ATT_TRACE_SIDE_DECODER, -1, -1},
                 {'R', "--head 1", ATT_TRACE_SIDE_DECODER, -1, 1},
                 {'B', "", ATT_TRACE_SIDE_ENCODER, -1, -1},
                 {'B', "--layer 0 --head 1", ATT_TRACE_SIDE_ENCODER, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        traced t = open_traced(cases[i].kind, NULL);
        const att_trace_attention_info a = trace_attention(t.trace, cases[i].side, cases[i].layer);
        float *weights = trace_weights(t.trace, cases[i].side, cases[i].layer, cases[i].head);
        json_t *v = run(cases[i].kind, cases[i].options);
        check_matrix(json_object_get(v, "weights"), weights, a.queries, a.keys);
        assert_int_equal((int64_t)number(v, "layer"), a.layer);
        assert_int_equal(json_is_integer(json_object_get(v, "head")), cases[i].head >= 0);
        const bool cross = cases[i].side == ATT_TRACE_SIDE_CROSS,
                   shifted = cases[i].kind == 'T' && cases[i].side == ATT_TRACE_SIDE_DECODER;
        assert_int_equal(json_array_size(json_object_get(v, cross ? "source" : shifted ? "keys" : "tokens")), a.keys);
        if (cross || shifted)
            assert_int_equal(json_array_size(json_object_get(v, cross ? "target" : "queries")), a.queries);
        free(weights);
        json_decref(v);
        close_traced(&t);
    }
}

static void a_row_is_that_of_the_matrix(void **state)
{
    (void)state;
    json_t *all = run('L', ""), *row = run('L', "--from 3");
    assert_true(json_equal(json_array_get(json_object_get(all, "weights"), 3), json_object_get(row, "weights")));
    assert_int_equal((int)number(row, "from"), 3);
    json_decref(all);
    json_decref(row);
    assert_int_equal(tool("$A attention -m $L --from 0 bdcab"), 0);
    assert_has(tool_out, "Token 0 \"b\" attends to:\n\n  1.0000      0  b\n  0.0000      1  d\n");
    assert_int_equal(tool("$A attention -m $L --from 0 --svg row.svg bdcab >/dev/null && grep -c '<title>b' row.svg"),
                     0);
    assert_string_equal(tool_out, "5\n");
    refused("$A attention -m $L --from 5 bdcab", "--from: the tokens are 0 to 4, not 5");
}

static void a_given_translation_is_the_target(void **state)
{
    (void)state;
    json_t *v = run('T', "--target 'ein haus'"), *own = run('T', "");
    assert_true(json_array_size(json_object_get(v, "target")) > 2);
    assert_false(json_equal(json_object_get(v, "target"), json_object_get(own, "target")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(v, "target"),
                                                         json_array_size(json_object_get(v, "target")) - 1)),
                        "</s>");
    json_decref(v);
    json_decref(own);
    assert_int_equal(tool("$A attention -m $T --side decoder --target 'ein haus' 'ein haus'"), 0);
    assert_has(tool_out, "(start)");
    refused("$A attention -m $L --target a b", "--target is for translators and captioners");
}

/* ---- Heads ------------------------------------------------------------------------- */

static void small_maps_are_the_largest_weights_of_all_heads(void **state)
{
    (void)state;
    static const struct {
        char kind;
        const char *options;
        att_trace_side side;
    } cases[] = {{'L', "--heads", ATT_TRACE_SIDE_DECODER}, {'T', "--heads --side encoder", ATT_TRACE_SIDE_ENCODER}};
    for (size_t i = 0; i < 2; i++) {
        traced t = open_traced(cases[i].kind, NULL);
        const att_trace_attention_info a = trace_attention(t.trace, cases[i].side, 0);
        const int64_t layers = trace_info(t.trace).layers[cases[i].side], size = a.queries * a.keys;
        uint8_t *cells = malloc((size_t)size);
        float largest;
        json_t *v = run(cases[i].kind, cases[i].options), *heads = json_object_get(v, "heads");
        assert_int_equal(json_array_size(heads), layers * a.heads);
        for (int64_t h = 0; h < layers * a.heads; h++) {
            const json_t *head = json_array_get(heads, (size_t)h), *parts = json_object_get(head, "parts");
            assert_int_equal(att_trace_pooled(t.trace, att_trace_find(t.trace, cases[i].side, h / a.heads), h % a.heads,
                                              a.queries, a.keys, cells, &largest),
                             ATT_OK);
            assert_int_equal((int64_t)number(head, "layer") * a.heads + (int64_t)number(head, "head"), h);
            assert_true((float)number(head, "largest") == largest);
            for (int64_t k = 0; k < size; k++)
                assert_int_equal((int)at(json_array_get(parts, (size_t)(k / a.keys)), k % a.keys), cells[k]);
        }
        free(cells);
        json_decref(v);
        close_traced(&t);
    }
    assert_int_equal(tool("$A attention -m $L --heads --svg heads.svg bdcab && grep -c '<image' heads.svg"), 0);
    assert_has(tool_out, "layer 0  ");
    assert_has(tool_out, "\n         0     1     2     3\n");
    assert_has(tool_out, "\n8\n"); /* two layers of four heads */
    assert_int_equal(tool("COLUMNS=20 $A attention -m $L --heads bdcab"), 0);
    assert_has(tool_out, "\n         0     1\nlayer 1");
}

/* ---- One weight -------------------------------------------------------------------- */

static void the_terms_of_a_weight_are_those_of_the_trace(void **state)
{
    (void)state;
    traced t = open_traced('L', NULL);
    const int64_t index = att_trace_find(t.trace, ATT_TRACE_SIDE_DECODER, 1);
    json_t *v = run('L', "--pair 3,1"), *heads = json_object_get(v, "heads");
    assert_string_equal(json_string_value(json_object_get(v, "query")), "a");
    assert_string_equal(json_string_value(json_object_get(v, "key")), "d");
    assert_int_equal(json_array_size(heads), 4);
    for (int64_t h = 0; h < 4; h++) {
        att_trace_pair p = {.size = sizeof p};
        const json_t *head = json_array_get(heads, (size_t)h), *stages = json_object_get(head, "stages");
        double product = 0;
        assert_int_equal(att_trace_pair_of(t.trace, index, h, 3, 1, &p), ATT_OK);
        for (int64_t k = 0; k < p.dim; k++)
            product += at(json_object_get(head, "q"), k) * at(json_object_get(head, "k"), k);
        assert_true(fabs(number(head, "product") - product) < 1e-5 * (1 + fabs(product)));
        assert_true(fabs(number(head, "score") - p.score) < 1e-7 * (1 + fabs(p.score)));
        assert_true(fabs(number(head, "weight") - p.weight) < 1e-8);
        assert_true(fabs(number(head, "log_sum_exp") - p.log_sum_exp) < 1e-7 * (1 + fabs(p.log_sum_exp)));
        assert_true((float)number(head, "value_length") == p.value_length);
        assert_int_equal(json_array_size(stages), p.n_stages);
        for (int i = 0; i < p.n_stages; i++)
            assert_string_equal(json_string_value(json_object_get(json_array_get(stages, (size_t)i), "name")),
                                p.stage[i]);
    }
    json_decref(v);
    close_traced(&t);
}

static void what_masks_a_pair_is_named(void **state)
{
    (void)state;
    json_t *v = run('L', "--pair 1,3 --layer 0 --head 2"), *heads = json_object_get(v, "heads");
    const json_t *head = json_array_get(heads, 0);
    assert_int_equal(json_array_size(heads), 1);
    assert_int_equal((int)number(head, "head"), 2);
    assert_string_equal(json_string_value(json_object_get(head, "masked_by")), "causal");
    assert_true(number(head, "weight") == 0);
    json_decref(v);
    v = run('D', "--pair 1,2 --hide 2");
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(v, "heads"), 0), "masked_by")),
                        "boolean");
    json_decref(v);
    assert_int_equal(tool("$A attention -m $L --pair 1,3 bdcab"), 0);
    assert_has(tool_out, "Layer 1 of 0 to 1: query 1 \"d\", key 3 \"a\".\n\nhead      q . k     scaled     causal");
    assert_has(tool_out, "     masked  ");
    assert_int_equal(count(tool_out, "\n"), 7);
    assert_int_equal(tool("$A attention -m $S --pair 0,0 'ein haus'"), 0);
    assert_has(tool_out, "additive");
    refused("$A attention -m $L --pair 3 a", "--pair: \"3\" is not Q,K, the numbers of two tokens");
    refused("$A attention -m $L --pair 1,2,3 a", "--pair: \"1,2,3\" is not Q,K");
    refused("$A attention -m $L --pair -1,2 a", "--pair: \"-1,2\" is not Q,K");
    refused("$A attention -m $L --pair 5,0 bdcab", "--pair: the queries are 0 to 4, not 5");
    refused("$A attention -m $L --pair 0,9 bdcab", "--pair: the keys are 0 to 4, not 9");
}

/* ---- What does not go together ------------------------------------------------------- */

static void options_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"--heads --layer 1", "--layer does not go with --heads"},
        {"--heads -H 1", "--head does not go with --heads"},
        {"--heads --from 1", "--from does not go with --heads where keys are not locations of an image"},
        {"--side decoder --logit-lens", "--side does not go with --logit-lens"},
        {"--side decoder --hide 1", "--side does not go with --hide"},
        {"--heads --pair 1,1", "--pair does not go with --heads"},
        {"--heads --logit-lens", "--logit-lens does not go with --heads"},
        {"--pair 1,1 --logit-lens", "--logit-lens does not go with --pair"},
        {"--pair 1,1 --from 1", "--from does not go with --pair"},
        {"--pair 1,1 --svg x.svg", "--svg does not go with --pair"},
        {"--logit-lens --layer 1", "--layer does not go with --logit-lens"},
        {"--logit-lens --svg x.svg", "--svg does not go with --logit-lens"},
        {"--hide 1 --layer 1", "--layer does not go with --hide"},
        {"--zero 1.1 --head 1", "--head does not go with --zero"},
        {"--hide 1 --svg x.svg", "--svg does not go with --hide"},
        {"--side up", "--side: \"up\" is not one of encoder|decoder|cross"},
        {"--side cross", "--side cross: "},
        {"--layer 2", "--layer: the model has the layers 0 to 1, not 2"},
        {"--head 4", "--head: the model has the heads 0 to 3, not 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A attention -m $L %s bdcab", cases[i][0]);
        refused(line, cases[i][1]);
    }
    assert_int_equal(tool("test ! -e x.svg"), 0);
    refused("$A attention -m $L --side encoder bdcab", "does not have it, but decoder");
    assert_refused("$A attention -m $N 'ein haus'", 1, "the model has no attention, but one fixed context of a text");
    assert_refused("$A attention -m $R 'apple,rope'", 1, "the history: the model has no item \"rope\"");
    assert_refused("$A attention -m $R ','", 1, "the history has no item");
}

static void a_long_history_is_shown_by_parts(void **state)
{
    (void)state;
    assert_int_equal(tool("seq 700 | sed 's/.*/apple/' | paste -sd, >history; "
                          "$A attention -m $W --svg long.svg \"$(cat history)\" && grep -c '<title>' long.svg"),
                     0);
    assert_has(tool_err, "attend: of the history the last 600 items are used\n");
    assert_has(tool_out, "The text is long: a cell is the largest weight of up to 10 x 10 tokens; --from N shows a "
                         "token.\n");
    assert_has(tool_out, "\n4097\n"); /* 64 x 64, and that of the picture */
    assert_int_equal(tool("$A attention -m $W --from 599 \"$(cat history)\""), 0);
    assert_has(tool_out, "attends to, the 20 largest of 600 weights:\n");
    assert_int_equal(tool("$A attention -m $W --json \"$(cat history)\" | tr ']' '\\n' | wc -l"), 0);
    assert_string_equal(tool_out, "603\n"); /* the tokens, the rows, what these are in, and the end of the line */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_all_kinds_and_sides_are_those_of_the_trace),
        cmocka_unit_test(a_row_is_that_of_the_matrix),
        cmocka_unit_test(a_given_translation_is_the_target),
        cmocka_unit_test(small_maps_are_the_largest_weights_of_all_heads),
        cmocka_unit_test(the_terms_of_a_weight_are_those_of_the_trace),
        cmocka_unit_test(what_masks_a_pair_is_named),
        cmocka_unit_test(options_that_do_not_go_together_are_refused),
        cmocka_unit_test(a_long_history_is_shown_by_parts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
