/* Traces of recommenders: attention to past items, and the scores that come of it. */
#include "fixtures/recommend.h"
#include "fixtures/trace_rows.h"

enum { ITEMS = 64, HIDDEN = 24, POSITIONS = 8, MOST = 12 };
static const int32_t items[MOST] = {0, 49, 34, 19, 4, 53, 38, 23, 8, 57, 42, 27};

static att_recommender *make(const char *type)
{
    static char id_text[ITEMS][16];
    static const char *ids[ITEMS];
    char settings[200];
    att_recommender *m;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id_text[i], sizeof id_text[i], "i%d", i);
        ids[i] = id_text[i];
    }
    snprintf(settings, sizeof settings,
             "{\"model_type\": \"%s\", \"hidden_size\": %d, \"num_attention_heads\": 2, "
             "\"max_position_embeddings\": %d}",
             type, HIDDEN, POSITIONS);
    if (att_recommender_new(ctx, settings, ITEMS, ids, NULL, 3, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

static void attention_to_past_items_is_shown(void **state)
{
    (void)state;
    enum { N = 12 };
    for (int mask = 0; mask < 2; mask++) {
        att_recommender *m = make(mask ? "attend-bert4rec" : "attend-sasrec");
        const att_trace_side side = mask ? ATT_TRACE_SIDE_ENCODER : ATT_TRACE_SIDE_DECODER;
        att_trace *t;
        float row[POSITIONS], one[POSITIONS];
        assert_int_equal(att_recommender_trace(m, N, items, NULL, &t), ATT_OK);
        const att_trace_info info = trace_info(t);
        const int32_t *ids = mask ? info.source_ids : info.target_ids;
        assert_int_equal(mask ? info.source : info.target, POSITIONS);
        assert_int_equal(mask ? info.target : info.source, 0);
        assert_true(info.truncated && info.attentions == 2);
        assert_memory_equal(ids, items + N - (POSITIONS - mask), (size_t)(POSITIONS - mask) * sizeof *ids);
        assert_true(!mask || ids[POSITIONS - 1] == info.outputs);
        for (int layer = 0; layer < 2; layer++) {
            double sum = 0, mean[POSITIONS] = {0};
            const int64_t i = att_trace_find(t, side, layer);
            assert_true(trace_attention(t, side, layer).causal == !mask);
            assert_int_equal(att_trace_weights(t, i, -1, POSITIONS - 1, 1, row), ATT_OK);
            for (int head = 0; head < 2; head++) {
                assert_int_equal(att_trace_weights(t, i, head, POSITIONS - 1, 1, one), ATT_OK);
                for (int k = 0; k < POSITIONS; k++)
                    mean[k] += (double)one[k] / 2;
            }
            for (int k = 0; k < POSITIONS; k++) {
                assert_true(fabs(mean[k] - (double)row[k]) < 4 * FLT_EPSILON);
                assert_true(row[k] > 0);
                sum += k < POSITIONS - mask ? (double)row[k] : 0;
            }
            assert_true(mask ? sum < 0.999 && sum > 0.1 : fabs(sum - 1) < 8 * FLT_EPSILON); /* the mask weighs, too */
        }
        assert_int_equal(att_trace_find(t, side, 2), -1);
        assert_int_equal(att_trace_weights(t, 2, 0, 0, 1, row), ATT_ERR_ARGUMENT);
        att_trace_free(t);
        assert_int_equal(att_recommender_trace(m, 0, items, NULL, &t), ATT_ERR_ARGUMENT);
        check_message(ctx, "the history has no item");
        assert_int_equal(att_recommender_trace(m, 1, (const int32_t[]){-1}, NULL, &t), ATT_ERR_ARGUMENT);
        assert_int_equal(
            att_recommender_trace(m, 1, items, ATT_OPTIONS(att_trace_options, .ids = items, .n_ids = 1), &t),
            ATT_ERR_ARGUMENT);
        check_message(ctx, "options.ids are given, but the tokens are the items of the history");
        assert_null(t);
        att_recommender_free(m);
    }
}

/* Each weight is the softmax over keys, to a causal model those before it, of q . k / sqrt(head_dim). */
static void weights_are_what_queries_and_keys_make(void **state)
{
    (void)state;
    enum { N = 5 };
    for (int mask = 0; mask < 2; mask++) {
        att_recommender *m = make(mask ? "attend-bert4rec" : "attend-sasrec");
        const att_trace_side side = mask ? ATT_TRACE_SIDE_ENCODER : ATT_TRACE_SIDE_DECODER;
        const int n = N + mask;
        att_trace *t;
        assert_int_equal(att_recommender_trace(m, N, items, NULL, &t), ATT_OK);
        for (int layer = 0; layer < 2; layer++)
            for (int head = 0; head < 2; head++) {
                float *w = trace_weights(t, side, layer, head);
                for (int q = 0; q < n; q++) {
                    double e[N + 1], sum = 0;
                    for (int k = 0; k < (mask ? n : q + 1); k++) {
                        att_trace_pair p = {.size = sizeof p};
                        assert_int_equal(att_trace_pair_of(t, att_trace_find(t, side, layer), head, q, k, &p), ATT_OK);
                        assert_true(p.dim == HIDDEN / 2 && p.key_dim == HIDDEN / 2);
                        double dot = 0;
                        for (int64_t j = 0; j < p.dim; j++)
                            dot += (double)p.query[j] * (double)p.key[j];
                        sum += e[k] = exp(dot / sqrt(HIDDEN / 2.0));
                    }
                    for (int k = 0; k < n; k++) /* dots of HIDDEN / 2 numbers below 1 */
                        check_near(mask || k <= q ? e[k] / sum : 0, w[q * n + k], 16 * FLT_EPSILON, "weight %d, %d", q,
                                   k);
                }
                free(w);
            }
        att_trace_free(t);
        att_recommender_free(m);
    }
}

/* The scores of the last token are the scorer's, with the same bits; a hidden item that is another one changes nothing.
 */
static void the_output_of_a_trace_is_the_scores_of_all_items(void **state)
{
    (void)state;
    enum { N = 5 };
    static const int64_t n_offsets[] = {0, N}, hide[] = {1};
    for (int mask = 0; mask < 2; mask++) {
        att_recommender *m = make(mask ? "attend-bert4rec" : "attend-sasrec");
        const att_scorer scorer = att_recommender_scorer(m);
        int32_t history[N];
        att_trace *t, *hidden[2];
        memcpy(history, items, sizeof history);
        assert_int_equal(att_recommender_trace(m, N, history, ATT_OPTIONS(att_trace_options, .hidden = true), &t),
                         ATT_OK);
        const att_trace_info info = trace_info(t);
        const size_t bytes = (size_t)info.outputs * sizeof(float);
        float *expected = malloc(bytes), *last = malloc(bytes), *other[2];
        assert_true(expected && last);
        assert_int_equal(scorer.score(scorer.user, history, n_offsets, 1, info.outputs, expected), ATT_OK);
        assert_int_equal(att_trace_output(t, -1, info.output_rows - 1, 1, last), ATT_OK);
        assert_memory_equal(last, expected, bytes);
        assert_int_equal(att_trace_output(t, 1, info.output_rows - 1, 1, last), ATT_OK);
        assert_memory_not_equal(last, expected, bytes);
        for (int i = 0; i < 2; i++) {
            history[1] = i ? (history[1] + 1) % (int32_t)info.outputs : history[1];
            assert_int_equal(att_recommender_trace(
                                 m, N, history, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1), &hidden[i]),
                             ATT_OK);
            other[i] = malloc(bytes);
            assert_int_equal(att_trace_output(hidden[i], -1, info.output_rows - 1, 1, other[i]), ATT_OK);
            att_trace_free(hidden[i]);
        }
        assert_memory_not_equal(other[0], expected, bytes);
        assert_memory_equal(other[0], other[1], bytes);
        free(expected), free(last), free(other[0]), free(other[1]);
        att_trace_free(t);
        att_recommender_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_to_past_items_is_shown),
        cmocka_unit_test(weights_are_what_queries_and_keys_make),
        cmocka_unit_test(the_output_of_a_trace_is_the_scores_of_all_items),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
