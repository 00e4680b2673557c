/* Traces: options, texts and rows that are refused; what happens without memory, and when cancelled */
#include "fixtures/trace.h"
#include "fixtures/fail_alloc.h"

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int64_t minus[] = {0, -1}, two[] = {2}, large[] = {INT64_MAX}, tokens[] = {5};
    static const att_trace_head side = {ATT_TRACE_SIDE_DECODER, 0, 0}, none = {(att_trace_side)9, 0, 0},
                                layer = {ATT_TRACE_SIDE_ENCODER, 2, 0}, head = {ATT_TRACE_SIDE_ENCODER, 1, 3},
                                below = {ATT_TRACE_SIDE_ENCODER, 0, -1};
    const struct {
        att_trace_options o;
        const char *words;
    } cases[] = {
        {{.layers = minus, .n_layers = 2}, "options.layers[1] is -1, but the layers are 0 to 1"},
        {{.layers = two, .n_layers = 1}, "options.layers[0] is 2, but the layers are 0 to 1"},
        {{.layers = two, .n_layers = -1}, "options.n_layers is -1, less than 0"},
        {{.n_layers = 3}, "options.layers is NULL, but their number is 3"},
        {{.hide = minus, .n_hide = 2}, "options.hide[1] is -1, but the tokens are 0 to 4"},
        {{.hide = tokens, .n_hide = 1}, "options.hide[0] is 5, but the tokens are 0 to 4"},
        {{.hide = large, .n_hide = 1}, "options.hide[0] is 9223372036854775807, but"},
        {{.n_hide = 1}, "options.hide is NULL, but their number is 1"},
        {{.n_zero = 1}, "options.zero is NULL, but their number is 1"},
        {{.n_zero = INT64_MIN}, "options.n_zero is -9223372036854775808, less than 0"},
        {{.zero = &side, .n_zero = 1}, "options.zero[0].side is decoder, which the model does not have"},
        {{.zero = &none, .n_zero = 1}, "options.zero[0].side is 9, not one of the three"},
        {{.zero = &layer, .n_zero = 1}, "options.zero[0].layer is 2, but the layers are 0 to 1"},
        {{.zero = &head, .n_zero = 1}, "options.zero[0].head is 3, but the heads are 0 to 2"},
        {{.zero = &below, .n_zero = 1}, "options.zero[0].head is -1, but the heads are 0 to 2"},
        {{.ids = bert_ids, .n_ids = 5}, "att_encoder_trace: ids and options.ids are both given"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int only = 0; only < 2; only++) {
            att_trace_options o = cases[i].o;
            att_trace *t = (att_trace *)&o;
            o.size = sizeof o;
            o.describe_only = only;
            assert_int_equal(att_encoder_trace(bert, bert_ids, 5, &o, &t), ATT_ERR_ARGUMENT);
            check_message(ctx, cases[i].words);
            assert_null(t);
        }
}

static void texts_and_ids_that_a_model_does_not_have_are_refused(void **state)
{
    (void)state;
    static const int32_t ids[40] = {0}, bad[] = {2, 40};
    att_trace *t;
    assert_int_equal(att_encoder_trace(bert, ids, 0, NULL, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_encoder_trace: n is 0, not in [1, 16]");
    assert_int_equal(att_encoder_trace(bert, ids, 17, NULL, &t), ATT_ERR_ARGUMENT);
    assert_int_equal(att_encoder_trace(bert, bad, 2, NULL, &t), ATT_ERR_ARGUMENT);
    assert_int_equal(att_sentence_trace(sentence, NULL, 0, NULL, NULL, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_sentence_trace: text is NULL, and so is options.ids");
    assert_int_equal(att_sentence_trace(sentence, "a", 1, NULL, OPTIONS(.ids = ids, .n_ids = 3), &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_sentence_trace: text and options.ids are both given");
    assert_int_equal(att_sentence_trace(sentence, NULL, 0, NULL, OPTIONS(.ids = ids, .n_ids = 13), &t),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "att_sentence_trace: options.n_ids is 13, not in [1, 12]");
    assert_int_equal(att_language_trace(llama, NULL, 0, OPTIONS(.ids = ids), &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_language_trace: options.n_ids is 0, not in [1, 32]");
    assert_int_equal(att_language_trace(llama, NULL, 0, OPTIONS(.n_ids = 4), &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_language_trace: options.ids is NULL, but n_ids is 4");
    assert_int_equal(att_language_trace(llama, "", 0, NULL, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_language_trace: the text has 0 tokens, but the model has 1 to 32");
    assert_int_equal(att_language_trace(llama, "abcdabcdabcdabcdabcdabcdabcdabcda", 33, NULL, &t), ATT_ERR_ARGUMENT);
    assert_null(t);
}

static void rows_out_of_range_are_refused(void **state)
{
    (void)state;
    att_trace *t = trace_bert(NULL);
    float x[BERT_TOKENS * TINY_HIDDEN], scale;
    uint8_t out[BERT_TOKENS * BERT_TOKENS];
    att_trace_pair p = {.size = sizeof p};
    const int64_t rows[][2] = {
        {-1, 1}, {0, -1}, {0, 6}, {5, 1}, {INT64_MAX, 1}, {1, INT64_MAX}, {INT64_MIN, INT64_MIN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(att_trace_weights(t, 0, 0, rows[i][0], rows[i][1], x), ATT_ERR_ARGUMENT);
        assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_ENCODER, -1, rows[i][0], rows[i][1], x), ATT_ERR_ARGUMENT);
        assert_int_equal(att_trace_pooled(t, 0, 0, rows[i][0], 1, out, &scale),
                         rows[i][0] == 1 || rows[i][0] == 5 ? ATT_OK : ATT_ERR_ARGUMENT);
        assert_int_equal(att_trace_pooled(t, 0, 0, 1, rows[i][1], out, &scale),
                         rows[i][1] == 1 ? ATT_OK : ATT_ERR_ARGUMENT);
    }
    const int64_t pairs[][3] = {{-1, 0, 0}, {3, 0, 0}, {0, -1, 0}, {0, 5, 0}, {0, 0, -1}, {0, 0, 5}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_int_equal(att_trace_pair_of(t, 0, pairs[i][0], pairs[i][1], pairs[i][2], &p), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_weights(t, 2, 0, 0, 1, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_trace_weights: i is 2, but the attentions are 0 to 1");
    assert_int_equal(att_trace_weights(t, -1, 0, 0, 1, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_weights(t, 0, 3, 0, 1, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_trace_weights: head is 3, but the heads are 0 to 2");
    assert_int_equal(att_trace_weights(t, 0, -2, 0, 1, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_DECODER, 0, 0, 1, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_trace_hidden: this side of the model has no hidden states");
    assert_int_equal(att_trace_hidden(t, (att_trace_side)-1, 0, 0, 1, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_ENCODER, 3, 0, 1, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_ENCODER, -2, 0, 1, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_output(t, -1, 0, 1, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "the model has no output layer");
    att_trace_free(t);
    t = trace_llama(NULL);
    assert_int_equal(att_trace_rollout(t, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_trace_rollout: the model has no encoder's side");
    assert_int_equal(att_trace_output(t, 3, 0, 1, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_output(t, -1, 6, 1, x), ATT_ERR_ARGUMENT);
    att_trace_free(t);
}

/* Makes a trace with hidden tokens and heads that are 0, and calls everything on it. */
static att_status everything(att_ctx *c, const char *path)
{
    static const att_trace_head head = {ATT_TRACE_SIDE_ENCODER, 0, 1};
    att_sentence *m = NULL;
    att_trace *t = NULL;
    float x[MOST], scale;
    uint8_t out[9];
    att_trace_pair p = {.size = sizeof p};
    att_status s = att_sentence_open(c, path, NULL, &m);
    if (!s)
        s = att_sentence_trace(m, "c", 1, "ab ",
                               OPTIONS(.hidden = true, .hide = hidden_tokens, .n_hide = 2, .zero = &head, .n_zero = 1),
                               &t);
    s = s ? s : att_trace_weights(t, 1, -1, 0, 5, x);
    s = s ? s : att_trace_pooled(t, 1, 0, 3, 3, out, &scale);
    s = s ? s : att_trace_pair_of(t, 1, 0, 2, 2, &p);
    s = s ? s : att_trace_rollout(t, x);
    s = s ? s : att_trace_output(t, 1, 0, 1, x);
    att_trace_free(t);
    att_sentence_free(m);
    return s;
}

static void an_allocation_that_fails_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc a = {0};
        att_ctx *c = fail_open(&a);
        a.fail_at = a.calls + at;
        s = everything(c, folder.path);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_close(c);
        assert_int_equal(a.live, 0);
    }
}

static void a_cancelled_trace_leaves_nothing(void **state)
{
    (void)state;
    volatile int flag = 0;
    att_trace *t = trace_bert(NULL), *other;
    float x[BERT_TOKENS * BERT_TOKENS], scale;
    uint8_t out[4];
    att_cancel_by(&flag);
    flag = 1;
    const att_status s[] = {att_encoder_trace(bert, bert_ids, BERT_TOKENS, NULL, &other),
                            att_trace_weights(t, 0, 0, 0, BERT_TOKENS, x), att_trace_rollout(t, x),
                            att_trace_pooled(t, 0, 0, 2, 2, out, &scale)};
    att_cancel_by(NULL);
    for (size_t i = 0; i < sizeof s / sizeof *s; i++)
        assert_int_equal(s[i], ATT_ERR_CANCELLED);
    assert_null(other);
    need(att_trace_weights(t, 0, 0, 0, BERT_TOKENS, x));
    att_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(texts_and_ids_that_a_model_does_not_have_are_refused),
        cmocka_unit_test(rows_out_of_range_are_refused),
        cmocka_unit_test(an_allocation_that_fails_anywhere_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_cancelled_trace_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
