/* Traces: weights, hidden states and logits are those of the pass; without a head, without tokens; memory */
#include "fixtures/trace.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"

#define GOLDEN "tests/golden/traces.txt"

/* ---- as transformers */

/* x [n] are the numbers of a line. Tolerance: sums of at most 24 products in f32 through two layers, relative to the
 * largest number of the line. */
static void check_line(const char *model, const char *of, const char *what, int layer, const float *x, int n)
{
    static double golden[MOST];
    char name[64];
    double largest = 0;
    snprintf(name, sizeof name, "%s.%s.%s.%d", model, of, what, layer);
    assert_int_equal(golden_line(GOLDEN, name, golden, MOST), n);
    for (int i = 0; i < n; i++)
        largest = fmax(largest, fabs(golden[i]));
    for (int i = 0; i < n; i++)
        if (!(fabs((double)x[i] - golden[i]) <= 1e-5 * largest))
            fail_msg("%s[%d] is %.9g, not %.9g", name, i, (double)x[i], golden[i]);
}

static void check_as_golden(const char *model, const char *of, att_trace *t, att_trace_side side)
{
    static float x[MOST];
    const att_trace_info info = info_of(t);
    assert_int_equal(info.attentions, LAYERS);
    for (int layer = 0; layer < LAYERS; layer++) {
        const int64_t i = att_trace_find(t, side, layer);
        const att_trace_attention_info a = attention_of(t, i);
        for (int64_t h = 0; h < a.heads; h++)
            need(att_trace_weights(t, i, h, 0, a.queries, x + h * a.queries * a.keys));
        check_line(model, of, "attention", layer, x, (int)(a.heads * a.queries * a.keys));
    }
    const int64_t tokens = attention_of(t, 0).queries, states = side == ATT_TRACE_SIDE_ENCODER ? LAYERS : LAYERS - 1;
    for (int64_t layer = 0; layer <= states; layer++) {
        need(att_trace_hidden(t, side, layer, 0, tokens, x));
        check_line(model, of, "hidden", (int)layer, x, (int)(tokens * info.hidden[side]));
    }
    for (int layer = 0; info.output_rows == tokens && layer <= LAYERS; layer++) {
        need(att_trace_output(t, layer, 0, tokens, x));
        check_line(model, of, "logits", layer, x, (int)(tokens * info.outputs));
    }
    att_trace_free(t);
}

static void weights_hidden_states_and_the_logits_of_each_layer_are_those_of_transformers(void **state)
{
    (void)state;
    check_as_golden("bert", "plain", trace_bert(OPTIONS(.hidden = true)), ATT_TRACE_SIDE_ENCODER);
    check_as_golden("llama", "plain", trace_llama(OPTIONS(.hidden = true)), ATT_TRACE_SIDE_DECODER);
}

static void hidden_tokens_are_masked_as_transformers_masks_them(void **state)
{
    (void)state;
    const att_trace_options *o = OPTIONS(.hidden = true, .hide = hidden_tokens, .n_hide = 3);
    check_as_golden("bert", "hide", trace_bert(o), ATT_TRACE_SIDE_ENCODER);
    check_as_golden("llama", "hide", trace_llama(o), ATT_TRACE_SIDE_DECODER);
}

static void a_head_that_is_zero_is_one_whose_columns_of_the_output_projection_are_zero(void **state)
{
    (void)state;
    const att_trace_head encoder[] = {{ATT_TRACE_SIDE_ENCODER, 1, 2}, {ATT_TRACE_SIDE_ENCODER, 1, 2}},
                         decoder[] = {{ATT_TRACE_SIDE_DECODER, 1, 2}};
    check_as_golden("bert", "zero", trace_bert(OPTIONS(.hidden = true, .zero = encoder, .n_zero = 2)),
                    ATT_TRACE_SIDE_ENCODER);
    check_as_golden("llama", "zero", trace_llama(OPTIONS(.hidden = true, .zero = decoder, .n_zero = 1)),
                    ATT_TRACE_SIDE_DECODER);
}

/* ---- the bits of the pass */

typedef struct recorded {
    int n;
    float weights[LAYERS][MOST]; /* [heads, tokens, tokens] of each layer */
} recorded;

static void record(void *user, const att_tape_event *e)
{
    recorded *r = user;
    const int64_t heads = e->plan ? e->args->q.dim[1] : 0, tokens = e->plan ? e->args->q.dim[0] : 0;
    for (int64_t h = 0; h < heads; h++)
        need(att_weights(e->plan, e->args, 0, h, 0, tokens, r->weights[r->n] + h * tokens * tokens));
    r->n += e->plan != NULL;
}

static void check_rows(const att_trace *t, const recorded *r)
{
    static float row[MOST];
    assert_int_equal(r->n, LAYERS);
    for (int64_t i = 0; i < LAYERS; i++) {
        const att_trace_attention_info a = attention_of(t, i);
        for (int64_t h = 0; h < a.heads; h++)
            for (int64_t first = 0; first <= a.queries; first++)
                for (int64_t count = 0; count <= a.queries - first; count++) {
                    need(att_trace_weights(t, i, h, first, count, row));
                    assert_memory_equal(row, r->weights[i] + (h * a.queries + first) * a.keys,
                                        (size_t)(count * a.keys) * sizeof *row);
                }
    }
}

static void rows_of_weights_have_the_bits_of_att_weights_during_the_pass(void **state)
{
    (void)state;
    static recorded r;
    att_tape *tape;
    att_tensor y;
    r.n = 0;
    need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = record, .hook_user = &r), &tape));
    need(att_var_value(tape, att_encoder_apply(tape, bert, bert_ids, (const int64_t[]){0, BERT_TOKENS}, 1, NULL), &y));
    att_trace *t = trace_bert(NULL);
    check_rows(t, &r);
    att_trace_free(t);
    r.n = 0;
    att_tape_reset(tape);
    need(att_var_value(tape,
                       att_language_model_apply(tape, att_text_generator_model(llama), llama_ids,
                                                (const int64_t[]){0, LLAMA_TOKENS}, 1, NULL, NULL),
                       &y));
    t = trace_llama(NULL);
    check_rows(t, &r);
    static float logits[LLAMA_TOKENS * LLAMA_VOCABULARY];
    need(att_trace_output(t, -1, 0, LLAMA_TOKENS, logits));
    assert_memory_equal(logits, y.data, sizeof logits);
    need(att_trace_output(t, LAYERS, 4, 1, logits));
    assert_memory_equal(logits, (float *)y.data + 4 * LLAMA_VOCABULARY, LLAMA_VOCABULARY * sizeof *logits);
    att_trace_free(t);
    att_tape_free(tape);
}

static void the_output_of_a_sentence_model_is_its_embedding_bit_by_bit(void **state)
{
    (void)state;
    static const char *const text = "ab c";
    float embedding[TINY_HIDDEN], output[TINY_HIDDEN];
    att_trace *t;
    need(att_sentence_trace(sentence, text, 4, NULL, NULL, &t));
    need(att_sentence_embed(sentence, 1, &text, NULL, NULL, embedding));
    need(att_trace_output(t, -1, 0, 1, output));
    assert_memory_equal(output, embedding, sizeof output);
    const att_trace_info info = info_of(t);
    assert_int_equal(info.source, 5);
    assert_int_equal(info.source_ids[0], 2);
    assert_int_equal(info.source_ids[4], 3);
    assert_int_equal(info.target, 0);
    assert_null(info.target_ids);
    assert_int_equal(info.output_rows, 1);
    assert_int_equal(info.outputs, TINY_HIDDEN);
    assert_false(info.truncated);
    att_trace *same;
    need(att_sentence_trace(sentence, NULL, 0, NULL, OPTIONS(.ids = info.source_ids, .n_ids = 5), &same));
    need(att_trace_output(same, -1, 0, 1, output));
    assert_memory_equal(output, embedding, sizeof output);
    att_trace_free(same);
    att_trace_free(t);
    need(att_sentence_trace(sentence, "a b c d e f g h i j k l m n", 27, NULL, NULL, &t));
    assert_int_equal(info_of(t).source, 12);
    assert_true(info_of(t).truncated);
    att_trace_free(t);
}

/* ---- a pair */

/* Softmax of the scaled products of a row, in double, from the vectors that pairs have */
static void check_pairs(const att_trace *t, int64_t i, int64_t head, int64_t q)
{
    const att_trace_attention_info a = attention_of(t, i);
    static float row[MOST];
    double score[MOST], sum = 0;
    need(att_trace_weights(t, i, head, q, 1, row));
    for (int64_t k = 0; k < a.keys; k++) {
        att_trace_pair p = {.size = sizeof p};
        need(att_trace_pair_of(t, i, head, q, k, &p));
        assert_int_equal(p.dim, a.head_dim);
        assert_int_equal(p.n_stages, a.causal);
        score[k] = 0;
        for (int64_t d = 0; d < p.dim; d++)
            score[k] += (double)p.query[d] * (double)p.key[d] / sqrt((double)a.head_dim);
        assert_true(fabs(p.score - score[k]) < 1e-6 * (1 + fabs(score[k])));
        assert_int_equal(p.masked_by, a.causal && k > q ? 0 : -1);
        if (a.causal)
            assert_string_equal(p.stage[0], "causal");
        sum += a.causal && k > q ? 0 : exp(score[k]);
        assert_true(p.value_length > 0);
    }
    for (int64_t k = 0; k < a.keys; k++) {
        att_trace_pair p = {.size = sizeof p};
        need(att_trace_pair_of(t, i, head, q, k, &p));
        const double weight = a.causal && k > q ? 0 : exp(score[k]) / sum;
        assert_true(fabs(p.weight - weight) < 1e-6);
        assert_true(fabs((double)row[k] - weight) < 1e-6);
        assert_true(fabs(p.log_sum_exp - log(sum)) < 1e-5);
    }
}

static void a_weight_is_the_softmax_of_products_of_the_query_and_key_that_its_pair_has(void **state)
{
    (void)state;
    att_trace *const traces[] = {trace_bert(NULL), trace_llama(NULL)};
    for (int n = 0; n < 2; n++) {
        for (int64_t i = 0; i < LAYERS; i++) {
            const att_trace_attention_info a = attention_of(traces[n], i);
            for (int64_t h = 0; h < a.heads; h++)
                for (int64_t q = 0; q < a.queries; q++)
                    check_pairs(traces[n], i, h, q);
        }
        att_trace_free(traces[n]);
    }
}

typedef struct lengths {
    int64_t layers;
    double length[LAYERS][MOST]; /* [tokens, kv_heads] */
} lengths;

static void measure_values(void *user, const att_tape_event *e)
{
    lengths *l = user;
    if (!e->plan)
        return;
    const att_tensor *v = &e->args->v;
    for (int64_t i = 0; i < v->dim[0] * v->dim[1]; i++) {
        double sum = 0;
        for (int64_t d = 0; d < v->dim[2]; d++)
            sum += pow((double)((float *)v->data)[i * v->dim[2] + d], 2);
        l->length[l->layers][i] = sqrt(sum);
    }
    l->layers++;
}

static void the_length_of_a_value_is_that_of_the_key_head_which_the_query_head_shares(void **state)
{
    (void)state;
    static lengths l;
    att_tape *tape;
    att_tensor y;
    need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = measure_values, .hook_user = &l), &tape));
    need(att_var_value(tape,
                       att_language_model_apply(tape, att_text_generator_model(llama), llama_ids,
                                                (const int64_t[]){0, LLAMA_TOKENS}, 1, NULL, NULL),
                       &y));
    att_tape_free(tape);
    att_trace *t = trace_llama(NULL);
    for (int64_t i = 0; i < LAYERS; i++)
        for (int64_t h = 0; h < 4; h++)
            for (int64_t k = 0; k < LLAMA_TOKENS; k++) {
                att_trace_pair p = {.size = sizeof p};
                need(att_trace_pair_of(t, i, h, 0, k, &p));
                assert_true(fabs((double)p.value_length - l.length[i][2 * k + h / 2]) < 1e-6);
            }
    att_trace_free(t);
}

/* ---- all rows at once: means, thumbnails, rollout */

static void the_mean_of_heads_thumbnails_and_rollout_follow_from_the_weights(void **state)
{
    (void)state;
    enum { N = BERT_TOKENS, HEADS = TINY_HEADS };
    static float w[LAYERS][HEADS + 1][N * N]; /* of each head, and their mean */
    double product[N * N] = {0};
    float rollout[N * N];
    att_trace *t = trace_bert(NULL);
    for (int i = 0; i < LAYERS; i++) {
        for (int64_t h = 0; h < HEADS; h++)
            need(att_trace_weights(t, i, h, 0, N, w[i][h]));
        need(att_trace_weights(t, i, -1, 0, N, w[i][HEADS]));
        for (int j = 0; j < N * N; j++)
            assert_true(fabsf(w[i][HEADS][j] - (w[i][0][j] + w[i][1][j] + w[i][2][j]) / 3) < 1e-6f);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                product[i * N + k] += (0.5 * (double)w[1][HEADS][i * N + j] + 0.5 * (i == j)) *
                                      (0.5 * (double)w[0][HEADS][j * N + k] + 0.5 * (j == k));
    need(att_trace_rollout(t, rollout));
    for (int j = 0; j < N * N; j++)
        assert_true(fabs((double)rollout[j] - product[j]) < 1e-6);
    for (int rows = 1; rows <= N; rows++)
        for (int columns = 1; columns <= N; columns++)
            for (int head = -1; head < HEADS; head++) {
                const float *all = w[1][head < 0 ? HEADS : head];
                float cell[N * N] = {0}, largest = 0, scale;
                uint8_t out[N * N];
                for (int r = 0; r < rows; r++)
                    for (int c = 0; c < columns; c++)
                        for (int q = r * N / rows; q < (r + 1) * N / rows; q++)
                            for (int k = c * N / columns; k < (c + 1) * N / columns; k++) {
                                cell[r * columns + c] = fmaxf(cell[r * columns + c], all[q * N + k]);
                                largest = fmaxf(largest, all[q * N + k]);
                            }
                need(att_trace_pooled(t, 1, head, rows, columns, out, &scale));
                assert_true(scale == largest);
                for (int j = 0; j < rows * columns; j++)
                    assert_true(fabsf((float)out[j] - 255 * cell[j] / largest) <= 0.501f);
            }
    att_trace_free(t);
}

/* ---- what is kept */

static void a_description_tells_layers_heads_and_shapes_before_the_pass(void **state)
{
    (void)state;
    att_trace *t = trace_llama(OPTIONS(.describe_only = true));
    const att_trace_info info = info_of(t);
    assert_int_equal(info.attentions, 2);
    assert_int_equal(info.layers[ATT_TRACE_SIDE_DECODER], 2);
    assert_int_equal(info.layers[ATT_TRACE_SIDE_ENCODER] + info.layers[ATT_TRACE_SIDE_CROSS], 0);
    assert_int_equal(info.target, LLAMA_TOKENS);
    assert_memory_equal(info.target_ids, llama_ids, sizeof llama_ids);
    assert_false(info.shifted);
    assert_int_equal(info.hidden[ATT_TRACE_SIDE_DECODER], LLAMA_HIDDEN);
    assert_int_equal(info.outputs, LLAMA_VOCABULARY);
    assert_int_equal(info.output_rows, LLAMA_TOKENS);
    const att_trace_attention_info a = attention_of(t, 1);
    assert_int_equal(a.side, ATT_TRACE_SIDE_DECODER);
    assert_int_equal(a.layer, 1);
    assert_int_equal(a.heads, 4);
    assert_int_equal(a.kv_heads, 2);
    assert_int_equal(a.head_dim, 8);
    assert_int_equal(a.key_dim, 8);
    assert_string_equal(a.scope, "decoder/layer.1/attention");
    assert_string_equal(a.score, "dot");
    assert_true(a.causal && a.recorded);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_DECODER, -1), 1);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_DECODER, 2), -1);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_DECODER, -2), -1);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_CROSS, -1), -1);
    assert_int_equal(att_trace_find(t, (att_trace_side)7, 0), -1);
    float x[MOST];
    assert_int_equal(att_trace_weights(t, 0, 0, 0, 1, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_trace_weights: the trace has no numbers, because options.describe_only was true");
    assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_DECODER, -1, 0, 1, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_output(t, -1, 0, 1, x), ATT_ERR_ARGUMENT);
    att_trace_free(t);
}

static void bytes_are_stated_before_the_pass_and_are_those_that_a_trace_has(void **state)
{
    (void)state;
    static const int64_t layers[] = {1};
    fail_alloc a = {0};
    att_ctx *c = fail_open(&a);
    att_text_generator *g;
    att_trace *t;
    assert_int_equal(att_text_generator_open(c, "tests/golden/tiny_llama", NULL, &g), ATT_OK);
    const att_trace_options cases[] = {
        {.hidden = false}, {.hidden = true}, {.layers = layers, .n_layers = 1}, {.hidden = true, .layers = layers}};
    size_t bytes[4];
    for (int i = 0; i < 4; i++)
        for (int only = 1; only >= 0; only--) {
            att_trace_options o = cases[i];
            o.size = sizeof o;
            o.ids = llama_ids;
            o.n_ids = LLAMA_TOKENS;
            o.describe_only = only;
            /* the first makes copies of weights, which stay */
            assert_int_equal(att_language_trace(g, NULL, 0, &o, &t), ATT_OK);
            att_trace_free(t);
            const long before = a.bytes;
            assert_int_equal(att_language_trace(g, NULL, 0, &o, &t), ATT_OK);
            if (only)
                bytes[i] = info_of(t).bytes;
            else
                assert_int_equal(a.bytes - before, bytes[i]);
            assert_int_equal(info_of(t).bytes, bytes[i]);
            att_trace_free(t);
            assert_int_equal(a.bytes, before);
        }
    /* queries of 4 heads of 8, keys of 2 and the length of their values; hidden states */
    assert_int_equal(bytes[0] - bytes[2], 4 * LLAMA_TOKENS * (4 * 8 + 2 * 8 + 2));
    assert_int_equal(bytes[1] - bytes[0], 4 * LLAMA_TOKENS * LLAMA_HIDDEN * LAYERS);
    assert_int_equal(bytes[3], bytes[1]);
    att_text_generator_free(g);
    att_close(c);
    assert_int_equal(a.live, 0);
}

static void where_tokens_are_hidden_a_trace_has_less_than_8_kib_a_layer_more(void **state)
{
    (void)state;
    fail_alloc a = {0};
    att_ctx *c = fail_open(&a);
    att_text_generator *g;
    att_trace *t;
    assert_int_equal(att_text_generator_open(c, "tests/golden/tiny_llama", NULL, &g), ATT_OK);
    const att_trace_options *o = OPTIONS(.ids = llama_ids, .n_ids = LLAMA_TOKENS, .hide = hidden_tokens, .n_hide = 3);
    assert_int_equal(att_language_trace(g, NULL, 0, o, &t), ATT_OK); /* makes copies of weights, which stay */
    att_trace_free(t);
    const long before = a.bytes;
    assert_int_equal(att_language_trace(g, NULL, 0, o, &t), ATT_OK);
    const long more = a.bytes - before - (long)info_of(t).bytes;
    assert_in_range(more, 1, LAYERS * 8192 - 1);
    att_trace_free(t);
    assert_int_equal(a.bytes, before);
    att_text_generator_free(g);
    att_close(c);
    assert_int_equal(a.live, 0);
}

static void layers_that_are_left_out_have_no_rows_and_the_others_the_same(void **state)
{
    (void)state;
    static const int64_t layers[] = {1, 1};
    float all[BERT_TOKENS * BERT_TOKENS], x[BERT_TOKENS * BERT_TOKENS];
    att_trace *t = trace_bert(NULL), *some = trace_bert(OPTIONS(.layers = layers, .n_layers = 2));
    need(att_trace_weights(t, 1, 2, 0, BERT_TOKENS, all));
    need(att_trace_weights(some, 1, 2, 0, BERT_TOKENS, x));
    assert_memory_equal(all, x, sizeof x);
    assert_false(attention_of(some, 0).recorded);
    assert_true(attention_of(some, 1).recorded);
    assert_int_equal(att_trace_weights(some, 0, 2, 0, 1, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_trace_weights: layer 0 is not among options.layers");
    assert_int_equal(att_trace_rollout(some, x), ATT_ERR_ARGUMENT);
    assert_int_equal(att_trace_hidden(t, ATT_TRACE_SIDE_ENCODER, 1, 0, 1, x), ATT_ERR_ARGUMENT);
    check_message(ctx, "the hidden states of layer 1 were not kept, because options.hidden was false");
    need(att_trace_hidden(t, ATT_TRACE_SIDE_ENCODER, 2, 0, 1, x));
    att_trace_free(some);
    att_trace_free(t);
}

static void tokens_without_a_key_get_nothing_from_attention(void **state)
{
    (void)state;
    static const int64_t every[] = {0, 1, 2, 3, 4};
    att_trace *t = trace_bert(OPTIONS(.hide = every, .n_hide = 5));
    float x[BERT_TOKENS * BERT_TOKENS], scale = 1;
    uint8_t out[4];
    need(att_trace_weights(t, 0, 0, 0, BERT_TOKENS, x));
    for (int i = 0; i < BERT_TOKENS * BERT_TOKENS; i++)
        assert_true(x[i] == 0);
    need(att_trace_pooled(t, 0, 0, 2, 2, out, &scale));
    assert_true(scale == 0 && !out[0] && !out[1] && !out[2] && !out[3]);
    att_trace_pair p = {.size = sizeof p};
    need(att_trace_pair_of(t, 0, 0, 1, 1, &p));
    assert_int_equal(p.n_stages, 1);
    assert_int_equal(p.masked_by, 0);
    assert_string_equal(p.stage[0], "boolean");
    assert_true(p.weight == 0);
    att_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_hidden_states_and_the_logits_of_each_layer_are_those_of_transformers),
        cmocka_unit_test(hidden_tokens_are_masked_as_transformers_masks_them),
        cmocka_unit_test(a_head_that_is_zero_is_one_whose_columns_of_the_output_projection_are_zero),
        cmocka_unit_test(rows_of_weights_have_the_bits_of_att_weights_during_the_pass),
        cmocka_unit_test(the_output_of_a_sentence_model_is_its_embedding_bit_by_bit),
        cmocka_unit_test(a_weight_is_the_softmax_of_products_of_the_query_and_key_that_its_pair_has),
        cmocka_unit_test(the_length_of_a_value_is_that_of_the_key_head_which_the_query_head_shares),
        cmocka_unit_test(the_mean_of_heads_thumbnails_and_rollout_follow_from_the_weights),
        cmocka_unit_test(a_description_tells_layers_heads_and_shapes_before_the_pass),
        cmocka_unit_test(bytes_are_stated_before_the_pass_and_are_those_that_a_trace_has),
        cmocka_unit_test(where_tokens_are_hidden_a_trace_has_less_than_8_kib_a_layer_more),
        cmocka_unit_test(layers_that_are_left_out_have_no_rows_and_the_others_the_same),
        cmocka_unit_test(tokens_without_a_key_get_nothing_from_attention),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
