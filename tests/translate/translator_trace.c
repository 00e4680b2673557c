/* Traces of translations: PyTorch's numbers of all layers and heads, and what a translation without a head or a token
 * is.
 */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"
#include "fixtures/trace_rows.h"
#include "fixtures/translator.h"

#include "attend_util.h"

static const char text[] = "Ein Hund";

static att_trace *trace(const att_translator *m, const int32_t *target, int64_t n, const att_trace_options *o)
{
    att_trace *t;
    if (att_translator_trace(m, text, sizeof text - 1, target, n, o, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* ---- alignments */

static void rows_of_an_alignment_sum_to_one_and_the_mean_is_that_of_the_heads(void **state)
{
    (void)state;
    att_translator *m = open_translator(ctx);
    att_translation found;
    translate(m, 1, (const char *const[]){text}, NULL, &found);
    att_trace *t = trace(m, found.tokens.ids, found.tokens.count, NULL);
    const att_trace_info a = trace_info(t);
    assert_int_equal(a.target, found.tokens.count + 1);
    assert_memory_equal(a.target_ids, found.tokens.ids, (size_t)found.tokens.count * sizeof *a.target_ids);
    assert_int_equal(a.target_ids[a.target - 1], 0);
    assert_true(a.shifted);
    assert_int_equal(a.source_ids[a.source - 1], 0);
    assert_in_range(a.target * a.source, 1, 256);
    for (int64_t layer = 0; layer < MARIAN_DECODER_LAYERS; layer++) {
        double mean[256] = {0};
        for (int64_t head = MARIAN_DECODER_HEADS - 1; head >= -1; head--) {
            float *weights = trace_weights(t, ATT_TRACE_SIDE_CROSS, layer, head);
            for (int64_t i = 0; i < a.target; i++) {
                double sum = 0;
                for (int64_t k = 0; k < a.source; k++) {
                    const double w = (double)weights[i * a.source + k];
                    assert_true(w >= 0);
                    sum += w;
                    if (head >= 0)
                        mean[i * a.source + k] += w / MARIAN_DECODER_HEADS;
                    else
                        check_near((float)w, mean[i * a.source + k], 1e-6, "mean");
                }
                check_near((float)sum, 1, 1e-5, "row %d of head %d", (int)i, (int)head);
            }
            free(weights);
        }
    }
    att_trace_free(t);
    free_all(ctx, &found, 1);
    att_translator_free(m);
}

/* A row does not see tokens that come later, and -1 is the last layer. */
static void an_alignment_is_of_the_step_that_chose_its_token(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 6, 7};
    att_translator *m = open_translator(ctx);
    att_trace *t[] = {trace(m, ids, 3, NULL), trace(m, ids, 2, NULL), trace(m, NULL, 0, NULL)};
    float *a = trace_weights(t[0], ATT_TRACE_SIDE_CROSS, -1, 1),
          *b = trace_weights(t[1], ATT_TRACE_SIDE_CROSS, MARIAN_DECODER_LAYERS - 1, 1),
          *c = trace_weights(t[2], ATT_TRACE_SIDE_CROSS, 0, 1);
    const int64_t source = trace_info(t[0]).source;
    const size_t row = (size_t)source * sizeof *a;
    assert_memory_equal(a, b, 3 * row);
    assert_int_equal(trace_info(t[2]).target, 1);
    assert_memory_not_equal(a, c, row);
    assert_memory_not_equal(a, a + source, row);
    free(a), free(b), free(c);
    for (int i = 0; i < 3; i++)
        att_trace_free(t[i]);
    att_translator_free(m);
}

static void alignments_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const int32_t ids[16] = {-1};
    static const struct {
        const char *text;
        int64_t n;
        const int32_t *source;
        int64_t n_source;
        const char *words;
    } wrong[] = {
        {"a", -1, NULL, 0, "att_translator_trace: n is -1, less than 0"},
        {"a", 16, NULL, 0, "target has 16 tokens and eos, but the model has 16 positions"},
        {"a", INT64_MAX, NULL, 0, " tokens and eos, but the model has 16 positions"},
        {"a", 1, NULL, 0, "decoder/embeddings: embedding: ids[1] = -1"},
        {"a b c d e f g h i j k l m n o p", 0, NULL, 0, " tokens, but the model has 1 to 16"},
        {NULL, 0, ids, 17, "options.n_ids is 17, not in [1, 16]"},
        {NULL, 0, ids, 1, "encoder/embeddings: embedding: ids[0] = -1"},
        {NULL, 0, ids, -1, "options.n_ids is -1, not in [1, 16]"},
        {NULL, 0, NULL, 3, "options.ids is NULL, but n_ids is 3"},
        {"a", 0, ids, 1, "text and options.ids are both given"},
        {NULL, 0, NULL, 0, "text is NULL, and so is options.ids"},
    };
    att_translator *m = open_translator(ctx);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_trace *t = (att_trace *)&wrong;
        const att_trace_options o = {.size = sizeof o, .ids = wrong[i].source, .n_ids = wrong[i].n_source};
        assert_int_equal(
            att_translator_trace(m, wrong[i].text, wrong[i].text ? strlen(wrong[i].text) : 0, ids, wrong[i].n, &o, &t),
            ATT_ERR_ARGUMENT);
        check_message(ctx, wrong[i].words);
        assert_null(t);
    }
    att_translator_free(m);
}

static void layers_and_heads_that_do_not_exist_are_named(void **state)
{
    (void)state;
    static const struct {
        att_trace_head zero;
        const char *words;
    } wrong[] = {{{ATT_TRACE_SIDE_CROSS, 3, 0}, "options.zero[0].layer is 3, but the layers are 0 to 2"},
                 {{ATT_TRACE_SIDE_ENCODER, 2, 0}, "options.zero[0].layer is 2, but the layers are 0 to 1"},
                 {{ATT_TRACE_SIDE_ENCODER, 0, 3}, "options.zero[0].head is 3, but the heads are 0 to 2"},
                 {{ATT_TRACE_SIDE_DECODER, 0, -1}, "options.zero[0].head is -1, but the heads are 0 to 3"},
                 {{(att_trace_side)3, 0, 0}, "options.zero[0].side is 3, not one of the three"}};
    att_translator *m = open_translator(ctx);
    att_trace *t = trace(m, NULL, 0, NULL);
    float out[256];
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_CROSS, 3), -1);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_CROSS, -2), -1);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_ENCODER, 2), -1);
    const int64_t cross = att_trace_find(t, ATT_TRACE_SIDE_CROSS, 0);
    assert_int_equal(att_trace_weights(t, cross, 4, 0, 1, out), ATT_ERR_ARGUMENT);
    check_message(ctx, "head is 4, but the heads are 0 to 3");
    assert_int_equal(att_trace_weights(t, cross, 0, 1, 1, out), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_weights(t, -1, 0, 0, 1, out), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_CROSS, -1, 0, 1, out), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_DECODER, 0, 0, 1, out), ATT_ERR_ARGUMENT); /* not kept */
    att_trace_free(t);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(att_translator_trace(m, text, sizeof text - 1, NULL, 0,
                                              ATT_OPTIONS(att_trace_options, .zero = &wrong[i].zero, .n_zero = 1), &t),
                         ATT_ERR_ARGUMENT);
        check_message(ctx, wrong[i].words);
        assert_null(t);
    }
    assert_int_equal(att_translator_trace(m, text, sizeof text - 1, NULL, 0,
                                          ATT_OPTIONS(att_trace_options, .hide = &(int64_t){16}, .n_hide = 1), &t),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "options.hide[0] is 16");
    att_translator_free(m);
}

/* Each is filled with ones before: what is reserved for later fields is zero after. */
static void reserved_fields_are_zero_and_arrays_may_be_taken_over(void **state)
{
    (void)state;
    att_translator *m = open_translator(ctx);
    att_translation found;
    memset(&found, 0xff, sizeof found);
    translate(m, 1, (const char *const[]){text}, NULL, &found);
    const struct {
        void *const *pointer;
        const int64_t *number;
    } room[] = {{found.reserved, found.reserved_number}, {found.tokens.reserved, found.tokens.reserved_number}};
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        for (int k = 0; k < 2; k++)
            assert_true(!room[i].pointer[k] && room[i].number[k] == 0);
    char *out = found.text.text;
    int32_t *ids = found.tokens.ids;
    found.text.text = NULL, found.tokens.ids = NULL;
    free_all(ctx, &found, 1);
    assert_true(strlen(out) < 256 && ids[0] >= 0); /* they are still there */
    att_free(ctx, out);
    att_free(ctx, ids);
    att_translator_free(m);
}

/* ---- PyTorch */

#define GOLDEN "tests/golden/translator_trace.txt"
enum { SOURCE = 5, TARGET = 4, MOST = 256 };

/* The model of the script, with a tokenizer that it does not use */
typedef struct golden_model {
    test_folder folder;
    att_translator *other, *m;
    att_transformer *transformer;
} golden_model;

static golden_model open_golden(att_ctx *c)
{
    golden_model g = {.folder = tiny_marian(), .other = open_translator(c)};
    g.transformer = open_model(c, &g.folder);
    assert_int_equal(
        att_translator_new(att_transformer_as_encoder_decoder(g.transformer), att_translator_tokenizer(g.other), &g.m),
        ATT_OK);
    return g;
}

static void close_golden(golden_model *g)
{
    att_translator_free(g->m);
    att_translator_free(g->other);
    att_transformer_free(g->transformer);
    folder_remove(&g->folder);
}

static att_trace *golden_trace(const golden_model *g, const att_trace_options *more)
{
    static const int32_t source[SOURCE] = {5, 9, 11, 7, 0}, target[TARGET - 1] = {3, 4, 20};
    att_trace_options o = *more;
    att_trace *t;
    o.ids = source;
    o.n_ids = SOURCE;
    if (att_translator_trace(g->m, NULL, 0, target, TARGET - 1, &o, &t))
        fail_msg("%s", att_error(NULL));
    return t;
}

/* Frees x. The tolerance is that of transformer.c for logits: some hundred roundings of sums of numbers near 10. */
static void check_golden(const char *name, float *x, int n)
{
    double expected[MOST];
    assert_int_equal(golden_line(GOLDEN, name, expected, MOST), n);
    for (int i = 0; i < n; i++)
        check_near(expected[i], x[i], 1e-4, "%s[%d]", name, i);
    free(x);
}

static const struct {
    const char *name;
    att_trace_side side;
    int layers, heads, queries, keys;
} sides[] = {{"encoder", ATT_TRACE_SIDE_ENCODER, MARIAN_ENCODER_LAYERS, MARIAN_ENCODER_HEADS, SOURCE, SOURCE},
             {"decoder", ATT_TRACE_SIDE_DECODER, MARIAN_DECODER_LAYERS, MARIAN_DECODER_HEADS, TARGET, TARGET},
             {"cross", ATT_TRACE_SIDE_CROSS, MARIAN_DECODER_LAYERS, MARIAN_DECODER_HEADS, TARGET, SOURCE}};

static void weights_of_all_layers_and_heads_are_those_of_pytorch(void **state)
{
    (void)state;
    for (att_ctx *c = NULL; check_next_context(&c, 2);) {
        golden_model g = open_golden(c);
        att_trace *t = golden_trace(&g, ATT_OPTIONS(att_trace_options, .hidden = false));
        const att_trace_info info = trace_info(t);
        assert_int_equal(info.attentions, MARIAN_ENCODER_LAYERS + 2 * MARIAN_DECODER_LAYERS);
        assert_true(info.source == SOURCE && info.target == TARGET);
        assert_true(info.output_rows == TARGET && info.outputs == MARIAN_TOKENS);
        for (int s = 0; s < 3; s++)
            for (int layer = 0; layer < sides[s].layers; layer++) {
                const att_trace_attention_info a = trace_attention(t, sides[s].side, layer);
                assert_true(a.side == sides[s].side && a.layer == layer && a.heads == sides[s].heads);
                assert_true(a.queries == sides[s].queries && a.keys == sides[s].keys);
                assert_true(a.causal == (a.side == ATT_TRACE_SIDE_DECODER) && a.recorded);
                assert_string_equal(a.score, "dot");
                assert_int_equal(info.layers[a.side], sides[s].layers);
                for (int head = 0; head < a.heads; head++) {
                    char name[32];
                    snprintf(name, sizeof name, "%s.%d.%d", sides[s].name, layer, head);
                    check_golden(name, trace_weights(t, a.side, layer, head), sides[s].queries * sides[s].keys);
                }
            }
        att_trace_free(t);
        close_golden(&g);
    }
}

static void hidden_states_and_logits_are_those_of_pytorch(void **state)
{
    (void)state;
    golden_model g = open_golden(ctx);
    att_trace *t = golden_trace(&g, ATT_OPTIONS(att_trace_options, .hidden = true));
    for (int s = 0; s < 2; s++) {
        assert_int_equal(trace_info(t).hidden[sides[s].side], MARIAN_HIDDEN);
        for (int layer = 0; layer <= sides[s].layers; layer++) {
            char name[32];
            snprintf(name, sizeof name, "%s.hidden.%d", sides[s].name, layer);
            check_golden(name, trace_hidden(t, sides[s].side, layer), sides[s].queries * MARIAN_HIDDEN);
        }
        float *last = trace_hidden(t, sides[s].side, sides[s].layers), *same = trace_hidden(t, sides[s].side, -1);
        assert_memory_equal(last, same, (size_t)(sides[s].queries * MARIAN_HIDDEN) * sizeof *last);
        free(last), free(same);
    }
    check_golden("logits", trace_output(t, -1), TARGET * MARIAN_TOKENS);
    att_trace_free(t);
    close_golden(&g);
}

/* The last layer's logits have the model's bits; those of an earlier one are the product of its states and the output
 * layer, the shared table, to which the bias is added: sums of 24 products of numbers up to 10. */
static void logits_of_any_layer_are_the_output_layer_s(void **state)
{
    (void)state;
    static const int32_t source[SOURCE] = {5, 9, 11, 7, 0}, target[TARGET] = {3, 4, 20, 0};
    static const int64_t from[] = {0, SOURCE}, to[] = {0, TARGET};
    golden_model g = open_golden(ctx);
    att_encoder_decoder *m = att_transformer_as_encoder_decoder(g.transformer);
    att_trace *t = golden_trace(&g, ATT_OPTIONS(att_trace_options, .hidden = true));
    att_tape *tape;
    att_tensor y;
    const att_sequence_pairs pairs = {
        .size = sizeof pairs, .n = 1, .source = source, .source_offsets = from, .target = target, .target_offsets = to};
    assert_int_equal(att_tape_new(ctx, NULL, &tape), ATT_OK);
    assert_int_equal(att_var_value(tape, att_encoder_decoder_logits(tape, m, &pairs, NULL), &y), ATT_OK);
    float *last = trace_output(t, -1), *first = trace_output(t, 1), *again = trace_output(t, MARIAN_DECODER_LAYERS),
          row[30];
    assert_memory_equal(last, y.data, TARGET * MARIAN_TOKENS * sizeof *last);
    assert_memory_equal(last, again, TARGET * MARIAN_TOKENS * sizeof *last);
    att_tape_free(tape);
    assert_int_equal(att_trace_output(t, 1, 2, 1, row), ATT_OK);
    assert_memory_equal(row, first + 2 * MARIAN_TOKENS, sizeof row);
    float *x[] = {trace_hidden(t, ATT_TRACE_SIDE_DECODER, 1), trace_hidden(t, ATT_TRACE_SIDE_DECODER, -1)};
    const float *logits[] = {first, last};
    /* The table's rows and the bias follow from the last layer's: logits of both layers are x W^T + b. */
    for (int64_t i = 0; i < MARIAN_TOKENS; i++) {
        double w[2] = {0};
        for (int k = 0; k < 2; k++)
            for (int64_t j = 0; j < MARIAN_HIDDEN; j++) {
                const char *name = "model.shared.weight";
                w[k] += (double)x[k][j] * (double)tiny_number(name, i * MARIAN_HIDDEN + j);
            }
        check_near(w[0] - w[1], (float)((double)logits[0][i] - (double)logits[1][i]), 1e-3, "token %d", (int)i);
    }
    free(x[0]), free(x[1]), free(last), free(first), free(again);
    att_trace_free(t);
    close_golden(&g);
}

static void hidden_tokens_and_zeroed_heads_have_the_logits_of_pytorch(void **state)
{
    (void)state;
    static const int64_t second[] = {1};
    static const att_trace_head head[] = {{ATT_TRACE_SIDE_CROSS, 1, 3}};
    golden_model g = open_golden(ctx);
    att_trace *t = golden_trace(&g, ATT_OPTIONS(att_trace_options, .hide = second, .n_hide = 1));
    for (int h = 0; h < MARIAN_DECODER_HEADS; h++) {
        char name[32];
        float *w = trace_weights(t, ATT_TRACE_SIDE_CROSS, 2, h);
        for (int i = 0; i < TARGET; i++)
            assert_true(w[i * SOURCE + 1] <= 0);
        snprintf(name, sizeof name, "hide.cross.2.%d", h);
        check_golden(name, w, TARGET * SOURCE);
    }
    for (int layer = 0; layer < MARIAN_ENCODER_LAYERS; layer++) {
        float *w = trace_weights(t, ATT_TRACE_SIDE_ENCODER, layer, -1);
        for (int i = 0; i < SOURCE; i++)
            assert_true(w[i * SOURCE + 1] <= 0);
        free(w);
    }
    check_golden("hide.logits", trace_output(t, -1), TARGET * MARIAN_TOKENS);
    att_trace_free(t);
    t = golden_trace(&g, ATT_OPTIONS(att_trace_options, .zero = head, .n_zero = 1));
    check_golden("zero.logits", trace_output(t, -1), TARGET * MARIAN_TOKENS);
    att_trace_free(t);
    close_golden(&g);
}

/* ---- what is kept */

static void what_a_trace_would_keep_is_told_before(void **state)
{
    (void)state;
    golden_model g = open_golden(ctx);
    static const int64_t two[] = {2};
    float out[SOURCE];
    att_trace *all = golden_trace(&g, ATT_OPTIONS(att_trace_options, .hidden = true)),
              *told = golden_trace(&g, ATT_OPTIONS(att_trace_options, .hidden = true, .describe_only = true)),
              *one = golden_trace(&g, ATT_OPTIONS(att_trace_options, .layers = two, .n_layers = 1));
    assert_int_equal(trace_info(all).bytes, trace_info(told).bytes);
    assert_true(trace_info(one).bytes < trace_info(all).bytes);
    assert_int_equal(att_trace_weights(told, 0, 0, 0, 1, out), ATT_ERR_ARGUMENT);
    assert_int_equal(trace_attention(told, ATT_TRACE_SIDE_CROSS, 1).keys, SOURCE);
    assert_int_equal(att_trace_weights(one, att_trace_find(one, ATT_TRACE_SIDE_CROSS, 1), 0, 0, 1, out),
                     ATT_ERR_ARGUMENT);
    assert_false(trace_attention(one, ATT_TRACE_SIDE_ENCODER, 1).recorded);
    float *a = trace_weights(all, ATT_TRACE_SIDE_CROSS, 2, 1), *b = trace_weights(one, ATT_TRACE_SIDE_CROSS, 2, 1);
    assert_memory_equal(a, b, TARGET * SOURCE * sizeof *a);
    free(a), free(b);
    att_trace_free(all), att_trace_free(told), att_trace_free(one);
    close_golden(&g);
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static const int64_t hide[] = {1};
    static const att_trace_head zero[] = {{ATT_TRACE_SIDE_ENCODER, 0, 0}};
    const att_trace_options o = {
        .size = sizeof o, .hidden = true, .hide = hide, .n_hide = 1, .zero = zero, .n_zero = 1};
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at += check_step(3)) {
        fail_alloc f = {.fail_at = 0};
        att_ctx *c;
        assert_int_equal(att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f))),
                         ATT_OK);
        att_translator *m = open_translator(c);
        att_trace *t = NULL;
        float out[MOST * 16];
        f.fail_at = f.calls + at;
        s = att_translator_trace(m, text, sizeof text - 1, (const int32_t[]){5, 6}, 2, &o, &t);
        s = s ? s : att_trace_weights(t, att_trace_find(t, ATT_TRACE_SIDE_CROSS, -1), -1, 0, 3, out);
        s = s ? s : att_trace_output(t, 1, 0, 1, out);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_trace_free(t);
        att_translator_free(m);
        att_close(c);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_an_alignment_sum_to_one_and_the_mean_is_that_of_the_heads),
        cmocka_unit_test(an_alignment_is_of_the_step_that_chose_its_token),
        cmocka_unit_test(alignments_that_cannot_be_are_named),
        cmocka_unit_test(layers_and_heads_that_do_not_exist_are_named),
        cmocka_unit_test(reserved_fields_are_zero_and_arrays_may_be_taken_over),
        cmocka_unit_test(weights_of_all_layers_and_heads_are_those_of_pytorch),
        cmocka_unit_test(hidden_states_and_logits_are_those_of_pytorch),
        cmocka_unit_test(logits_of_any_layer_are_the_output_layer_s),
        cmocka_unit_test(hidden_tokens_and_zeroed_heads_have_the_logits_of_pytorch),
        cmocka_unit_test(what_a_trace_would_keep_is_told_before),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
