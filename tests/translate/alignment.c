/* Alignments of translations. */
#include "fixtures/check.h"
#include "fixtures/translator.h"

#include "attend_util.h"

static void rows_of_an_alignment_sum_to_one_and_the_mean_is_that_of_the_heads(void **state)
{
    (void)state;
    static const char text[] = "Ein Hund";
    att_translator *m = open_translator(ctx);
    att_translation found;
    translate(m, 1, (const char *const[]){text}, NULL, &found);
    for (int64_t layer = 0; layer < MARIAN_DECODER_LAYERS; layer++) {
        double mean[256] = {0};
        att_alignment a;
        for (int64_t head = MARIAN_DECODER_HEADS - 1; head >= -1; head--) {
            assert_int_equal(att_translate_alignment(m, text, sizeof text - 1, found.tokens.ids, found.tokens.count,
                                                     layer, head, &a),
                             ATT_OK);
            assert_int_equal(a.target.count, found.tokens.count + 1);
            assert_memory_equal(a.target.ids, found.tokens.ids, (size_t)found.tokens.count * sizeof *a.target.ids);
            assert_int_equal(a.target.ids[a.target.count - 1], 0);
            assert_int_equal(a.source.ids[a.source.count - 1], 0);
            assert_in_range(a.target.count * a.source.count, 1, 256);
            for (int64_t i = 0; i < a.target.count; i++) {
                double sum = 0;
                for (int64_t k = 0; k < a.source.count; k++) {
                    const double w = (double)a.weights[i * a.source.count + k];
                    assert_true(w >= 0);
                    sum += w;
                    if (head >= 0)
                        mean[i * a.source.count + k] += w / MARIAN_DECODER_HEADS;
                    else
                        check_near((float)w, mean[i * a.source.count + k], 1e-6, "mean");
                }
                check_near((float)sum, 1, 1e-5, "row %d of head %d", (int)i, (int)head);
            }
            att_alignment_free(ctx, &a);
        }
    }
    free_all(ctx, &found, 1);
    att_translator_free(m);
}

/* A row does not see tokens that come later, and -1 is the last layer. */
static void an_alignment_is_of_the_step_that_chose_its_token(void **state)
{
    (void)state;
    static const char text[] = "Ein Hund";
    static const int32_t ids[] = {5, 6, 7};
    att_translator *m = open_translator(ctx);
    att_alignment a, b, c;
    assert_int_equal(att_translate_alignment(m, text, sizeof text - 1, ids, 3, -1, 1, &a), ATT_OK);
    assert_int_equal(att_translate_alignment(m, text, sizeof text - 1, ids, 2, MARIAN_DECODER_LAYERS - 1, 1, &b),
                     ATT_OK);
    assert_int_equal(att_translate_alignment(m, text, sizeof text - 1, NULL, 0, 0, 1, &c), ATT_OK);
    const size_t row = (size_t)a.source.count * sizeof *a.weights;
    assert_memory_equal(a.weights, b.weights, 3 * row);
    assert_int_equal(c.target.count, 1);
    assert_memory_not_equal(a.weights, c.weights, row);
    assert_memory_not_equal(a.weights, a.weights + a.source.count, row);
    att_alignment_free(ctx, &a);
    att_alignment_free(ctx, &b);
    att_alignment_free(ctx, &c);
    att_translator_free(m);
}

static void alignments_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const int32_t ids[16] = {-1};
    static const struct {
        const char *text;
        int64_t n, layer, head;
        const char *words;
    } wrong[] = {
        {"a", 0, 3, 0, "layer 3, but the decoder's are 0 to 2"},
        {"a", 0, -2, 0, "layer -2, but the decoder's are 0 to 2"},
        {"a", 0, 0, 4, "head 4, but the decoder's are 0 to 3"},
        {"a", -1, 0, 0, "att_translate_alignment: n is -1, less than 0"},
        {"a", 16, 0, 0, "target: sequence 0 has 17 tokens but the model has 16 positions"},
        {"a", 1, 0, 0, "decoder/embeddings: embedding: ids[1] = -1"},
        {"a b c d e f g h i j k l m n o p", 0, 0, 0, " tokens but the model has 16 positions"},
    };
    att_translator *m = open_translator(ctx);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_alignment a = {.weights = (float *)&a};
        assert_int_equal(att_translate_alignment(m, wrong[i].text, strlen(wrong[i].text), ids, wrong[i].n,
                                                 wrong[i].layer, wrong[i].head, &a),
                         ATT_ERR_ARGUMENT);
        check_message(ctx, wrong[i].words);
        assert_true(!a.weights && !a.source.ids && !a.target.ids);
    }
    att_translator_free(m);
}

/* Each is filled with ones before: what is reserved for later fields is zero after. */
static void reserved_fields_are_zero_and_arrays_may_be_taken_over(void **state)
{
    (void)state;
    static const char text[] = "Ein Hund";
    att_translator *m = open_translator(ctx);
    att_translation found;
    att_alignment a;
    memset(&found, 0xff, sizeof found);
    memset(&a, 0xff, sizeof a);
    translate(m, 1, (const char *const[]){text}, NULL, &found);
    assert_int_equal(att_translate_alignment(m, text, sizeof text - 1, found.tokens.ids, found.tokens.count, 0, 0, &a),
                     ATT_OK);
    const struct {
        void *const *pointer;
        const int64_t *number;
    } room[] = {{found.reserved, found.reserved_number},
                {found.tokens.reserved, found.tokens.reserved_number},
                {a.reserved, a.reserved_number},
                {a.source.reserved, a.source.reserved_number},
                {a.target.reserved, a.target.reserved_number}};
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        for (int k = 0; k < 2; k++)
            assert_true(!room[i].pointer[k] && room[i].number[k] == 0);
    char *out = found.text.text;
    int32_t *ids = a.target.ids;
    float *weights = a.weights;
    found.text.text = NULL, a.target.ids = NULL, a.weights = NULL;
    free_all(ctx, &found, 1);
    att_alignment_free(ctx, &a);
    assert_true(strlen(out) < 256 && ids[0] >= 0 && weights[0] >= 0); /* they are still there */
    att_free(ctx, out);
    att_free(ctx, ids);
    att_free(ctx, weights);
    att_translator_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_an_alignment_sum_to_one_and_the_mean_is_that_of_the_heads),
        cmocka_unit_test(an_alignment_is_of_the_step_that_chose_its_token),
        cmocka_unit_test(alignments_that_cannot_be_are_named),
        cmocka_unit_test(reserved_fields_are_zero_and_arrays_may_be_taken_over),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
