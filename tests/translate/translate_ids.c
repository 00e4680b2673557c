/* Translation from ids, with a forced beginning, and of texts that fail alone. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/translator.h"

enum { TEXTS = 6, BEST = 2 };
static const char *const texts[TEXTS] = {
    "the table is in China", "", "a", ">>de<< Ein Hund", "running in the snow and the table", "Hund und"};

typedef struct lists {
    int32_t ids[TEXTS * MARIAN_POSITIONS];
    int64_t offsets[TEXTS + 1];
} lists;

static void append(lists *l, int64_t text, const int32_t *ids, int64_t n)
{
    if (n > 0)
        memcpy(l->ids + l->offsets[text], ids, (size_t)n * sizeof *ids);
    l->offsets[text + 1] = l->offsets[text] + n;
}

static lists tokenize_all(att_ctx *c, const att_translator *m)
{
    lists l = {.offsets = {0}};
    for (int i = 0; i < TEXTS; i++) {
        att_tokens t;
        assert_int_equal(att_tokenize(att_translator_tokenizer(m), texts[i], strlen(texts[i]), NULL, &t), ATT_OK);
        append(&l, i, t.ids, t.count);
        att_tokens_free(c, &t);
    }
    return l;
}

static void assert_same(const att_translation *a, const att_translation *b)
{
    assert_true(a->text.text && b->text.text);
    assert_string_equal(a->text.text, b->text.text);
    assert_int_equal(a->tokens.count, b->tokens.count);
    assert_memory_equal(a->tokens.ids, b->tokens.ids, (size_t)a->tokens.count * sizeof *a->tokens.ids);
    assert_true(a->score == b->score);
}

static void ids_give_the_translations_of_their_texts_and_the_same_counts(void **state)
{
    (void)state;
    att_translator *m = open_translator(ctx);
    const lists l = tokenize_all(ctx, m);
    att_translation expected[TEXTS], found[TEXTS];
    int64_t tokens_of_texts[TEXTS], tokens_of_ids[TEXTS];
    translate(m, TEXTS, texts, ATT_OPTIONS(att_translate_options, .beam = 3, .tokens = tokens_of_texts), expected);
    translate(
        m, TEXTS, NULL,
        ATT_OPTIONS(att_translate_options, .beam = 3, .ids = l.ids, .offsets = l.offsets, .tokens = tokens_of_ids),
        found);
    for (int i = 0; i < TEXTS; i++) {
        assert_same(&found[i], &expected[i]);
        assert_int_equal(tokens_of_texts[i], l.offsets[i + 1] - l.offsets[i]);
        assert_int_equal(tokens_of_ids[i], tokens_of_texts[i]);
    }
    free_all(ctx, expected, TEXTS);
    free_all(ctx, found, TEXTS);
    translate(m, 2, NULL, ATT_OPTIONS(att_translate_options, .offsets = (const int64_t[]){0, 0, 0}), found);
    assert_string_equal(found[1].text.text, "");
    free_all(ctx, found, 2);
    att_translator_free(m);
}

static void split_texts_are_counted_whole(void **state)
{
    (void)state;
    static const char *const text = "The snow is in the table. A Hund is running in China.";
    att_translator *m = open_translator(ctx);
    att_tokens whole;
    att_translation found;
    int64_t count = 0;
    assert_int_equal(att_tokenize(att_translator_tokenizer(m), text, strlen(text), NULL, &whole), ATT_OK);
    assert_in_range(whole.count, MARIAN_POSITIONS + 1, 100);
    translate(m, 1, &text, ATT_OPTIONS(att_translate_options, .split = true, .tokens = &count), &found);
    assert_int_equal(count, whole.count);
    att_tokens_free(ctx, &whole);
    free_all(ctx, &found, 1);
    att_translator_free(m);
}

/* ---- a forced beginning */

/* What has no choice but the greedy search's is the greedy search's. */
static void the_first_tokens_of_a_translation_as_its_beginning_change_nothing(void **state)
{
    (void)state;
    att_translator *m = open_translator(ctx);
    const att_translate_options *o = ATT_OPTIONS(att_translate_options, .beam = 1);
    att_translation plain[TEXTS], found[TEXTS];
    translate(m, TEXTS, texts, o, plain);
    for (int64_t most = 0; most < 12; most += 3) {
        lists l = {.offsets = {0}};
        for (int i = 0; i < TEXTS; i++)
            append(&l, i, plain[i].tokens.ids, most < plain[i].tokens.count ? most : plain[i].tokens.count);
        translate(m, TEXTS, texts,
                  ATT_OPTIONS(att_translate_options, .beam = 1, .prefix_ids = l.ids, .prefix_offsets = l.offsets),
                  found);
        for (int i = 0; i < TEXTS; i++) {
            assert_string_equal(found[i].text.text, plain[i].text.text);
            assert_int_equal(found[i].tokens.count, plain[i].tokens.count);
        }
        free_all(ctx, found, TEXTS);
    }
    free_all(ctx, plain, TEXTS);
    att_translator_free(m);
}

static void translations_begin_with_their_prefixes_the_same_in_any_company(void **state)
{
    (void)state;
    static const int32_t prefix[] = {7, 9, 5, 11, 12, 13};
    static const int64_t offsets[TEXTS + 1] = {0, 2, 4, 4, 5, 5, 6};
    static const int64_t one[] = {0, 1}, two[] = {0, 2}, none[] = {0, 0};
    const int64_t *alone[TEXTS] = {two, two, none, one, none, one};
    att_translator *m = open_translator(ctx);
    att_translation found[TEXTS * BEST], single[BEST];
    translate(
        m, TEXTS, texts,
        ATT_OPTIONS(att_translate_options, .beam = 3, .n_best = BEST, .prefix_ids = prefix, .prefix_offsets = offsets),
        found);
    for (int i = 0; i < TEXTS; i++) {
        translate(m, 1, &texts[i],
                  ATT_OPTIONS(att_translate_options, .beam = 3, .n_best = BEST, .prefix_ids = prefix + offsets[i],
                              .prefix_offsets = alone[i]),
                  single);
        for (int k = 0; k < BEST && *texts[i]; k++) {
            const att_translation *t = &found[i * BEST + k];
            assert_same(t, &single[k]);
            assert_in_range(t->tokens.count, alone[i][1], 12);
            assert_memory_equal(t->tokens.ids, prefix + offsets[i], (size_t)alone[i][1] * sizeof *prefix);
        }
        free_all(ctx, single, BEST);
    }
    assert_string_equal(found[1 * BEST].text.text, ""); /* of an empty text */
    free_all(ctx, found, TEXTS * BEST);
    att_translator_free(m);
}

static void the_first_part_of_a_text_that_is_split_has_the_prefix(void **state)
{
    (void)state;
    static const char *const whole = "The snow is in the table. A Hund is running in China.";
    static const char *const parts[] = {"The snow is in the table.", " A Hund is running in China."};
    static const int32_t prefix[] = {7, 9};
    static const int64_t offsets[] = {0, 2, 2};
    att_translator *m = open_translator(ctx);
    att_translation found, expected[2];
    const att_translate_options *o = ATT_OPTIONS(att_translate_options, .beam = 1, .max_tokens = 6, .split = true,
                                                 .prefix_ids = prefix, .prefix_offsets = offsets);
    translate(m, 1, &whole, o, &found);
    translate(m, 2, parts, o, expected);
    const int64_t n = expected[0].tokens.count;
    assert_int_equal(found.tokens.count, n + expected[1].tokens.count);
    assert_memory_equal(found.tokens.ids, prefix, sizeof prefix);
    assert_memory_equal(found.tokens.ids, expected[0].tokens.ids, (size_t)n * sizeof(int32_t));
    assert_memory_equal(found.tokens.ids + n, expected[1].tokens.ids,
                        (size_t)expected[1].tokens.count * sizeof(int32_t));
    free_all(ctx, &found, 1);
    free_all(ctx, expected, 2);
    att_translator_free(m);
}

/* ---- what is wrong */

static void a_text_that_is_too_long_fails_alone(void **state)
{
    (void)state;
    static const char *const lines[] = {"a", "The snow is in the table. A Hund is running in China.", "Ein Hund"};
    static const char *const good[] = {"a", "Ein Hund"};
    att_translator *m = open_translator(ctx);
    att_translation found[3 * BEST], expected[2 * BEST];
    att_status status[3] = {ATT_ERR_IO, ATT_ERR_IO, ATT_ERR_IO};
    int64_t count[3];
    translate(m, 3, lines, ATT_OPTIONS(att_translate_options, .n_best = BEST, .tokens = count, .status = status),
              found);
    check_message(ctx, "text 1 has ");
    check_message(ctx, " tokens but the model has 16 positions");
    translate(m, 2, good, ATT_OPTIONS(att_translate_options, .n_best = BEST), expected);
    assert_int_equal(status[0], ATT_OK);
    assert_int_equal(status[1], ATT_ERR_ARGUMENT);
    assert_int_equal(status[2], ATT_OK);
    assert_in_range(count[1], 17, 100);
    for (int k = 0; k < BEST; k++) {
        assert_same(&found[k], &expected[k]);
        assert_null(found[BEST + k].text.text);
        assert_null(found[BEST + k].tokens.ids);
        assert_same(&found[2 * BEST + k], &expected[BEST + k]);
    }
    free_all(ctx, found, 3 * BEST);
    free_all(ctx, expected, 2 * BEST);
    att_translator_free(m);
}

/* Of three texts the second is wrong: it fails alone, or as the whole call. */
static void wrong_ids_and_prefixes_fail_alone_or_name_the_text(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 9, 0, 5, 9, 0, 5, 9, 0}, wrong_ids[] = {5, 9, 0, 5, -1, 0, 5, 9, 0};
    static const int32_t prefix[] = {4, 7, 9, 4}, ends[] = {4, 7, 0, 4}, negative[] = {4, 7, -3, 4};
    static const int64_t offsets[] = {0, 3, 6, 9}, begins[] = {0, 1, 3, 4};
    static const struct {
        const int32_t *ids, *prefix;
        int64_t max_tokens;
        const char *error;
    } wrong[] = {
        {wrong_ids, prefix, 6, "att_translate: options.ids[4] is -1, not in [0, "},
        {ids, ends, 6, "att_translate: options.prefix_ids[2] is 0, the end token"},
        {ids, negative, 6, "att_translate: options.prefix_ids[2] is -3, not in [0, "},
        {ids, prefix, 2,
         "att_translate: the prefix of text 1 has 2 tokens but its translation has at most 2, eos included"},
    };
    att_translator *m = open_translator(ctx);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_status status[3];
        att_translation found[3], alone;
        att_translate_options o = {.size = sizeof o,
                                   .max_tokens = wrong[i].max_tokens,
                                   .ids = wrong[i].ids,
                                   .offsets = offsets,
                                   .prefix_ids = wrong[i].prefix,
                                   .prefix_offsets = begins};
        assert_int_equal(att_translate(m, 3, NULL, NULL, &o, found), ATT_ERR_ARGUMENT);
        check_message(ctx, wrong[i].error);
        translate(m, 1, NULL, &o, &alone); /* the first */
        o.status = status;
        translate(m, 3, NULL, &o, found);
        check_message(ctx, wrong[i].error);
        assert_true(status[0] == ATT_OK && status[1] == ATT_ERR_ARGUMENT && status[2] == ATT_OK);
        assert_null(found[1].text.text);
        for (int k = 0; k < 3; k += 2)
            assert_same(&found[k], &alone); /* the first and the last are the same */
        free_all(ctx, found, 3);
        free_all(ctx, &alone, 1);
    }
    att_translator_free(m);
}

static void offsets_that_are_wrong_are_named_whatever_the_status(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 0, 5, 0};
    static const int64_t good[] = {0, 2, 4}, back[] = {0, 2, 1};
    static const struct {
        att_translate_options options;
        bool with_texts;
        const char *error;
    } wrong[] = {
        {{.ids = ids, .offsets = good}, true, "att_translate: texts and options.ids are given, not one of them"},
        {{.ids = ids}, false, "att_translate: options.offsets is NULL, but should be 3 offsets"},
        {{.offsets = good}, false, "att_translate: options.ids is NULL"},
        {{.ids = ids, .offsets = back}, false, "att_translate: options.offsets[2] is 1, less than 2 before it"},
        {{.prefix_ids = ids}, true, "att_translate: options.prefix_offsets is NULL, but should be 3 offsets"},
        {{.prefix_offsets = good}, true, "att_translate: options.prefix_ids is NULL"},
        {{.prefix_ids = ids, .prefix_offsets = back},
         true,
         "att_translate: options.prefix_offsets[2] is 1, less than 2 before it"},
    };
    att_translator *m = open_translator(ctx);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_status status[2];
        att_translation found[2];
        att_translate_options o = wrong[i].options;
        o.size = sizeof o;
        o.status = status;
        assert_int_equal(att_translate(m, 2, wrong[i].with_texts ? texts : NULL, NULL, &o, found), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), wrong[i].error);
    }
    att_translator_free(m);
}

static void a_failing_allocation_is_an_error_of_the_call_and_leaks_nothing(void **state)
{
    (void)state;
    static const int32_t prefix[] = {7, 9, 5};
    static const int64_t offsets[] = {0, 2, 2, 3};
    fail_alloc a = {0};
    att_ctx *c = fail_open(&a);
    att_translator *m = open_translator(c);
    const lists l = tokenize_all(c, m);
    att_status status[3], s = ATT_ERR_MEMORY;
    att_translation found[3];
    const att_translate_options *o =
        ATT_OPTIONS(att_translate_options, .beam = 2, .max_tokens = 4, .ids = l.ids, .offsets = l.offsets,
                    .prefix_ids = prefix, .prefix_offsets = offsets, .status = status);
    translate(m, 3, NULL, o, found); /* packs the weights */
    free_all(c, found, 3);
    const long live = a.live;
    for (long at = 1; s; at++) {
        a.fail_at = a.calls + at;
        s = att_translate(m, 3, NULL, NULL, o, found);
        a.fail_at = 0;
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && at > 20));
        if (!s)
            free_all(c, found, 3);
        assert_int_equal(a.live, live);
    }
    att_translator_free(m);
    att_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_give_the_translations_of_their_texts_and_the_same_counts),
        cmocka_unit_test(split_texts_are_counted_whole),
        cmocka_unit_test(the_first_tokens_of_a_translation_as_its_beginning_change_nothing),
        cmocka_unit_test(translations_begin_with_their_prefixes_the_same_in_any_company),
        cmocka_unit_test(the_first_part_of_a_text_that_is_split_has_the_prefix),
        cmocka_unit_test(a_text_that_is_too_long_fails_alone),
        cmocka_unit_test(wrong_ids_and_prefixes_fail_alone_or_name_the_text),
        cmocka_unit_test(offsets_that_are_wrong_are_named_whatever_the_status),
        cmocka_unit_test(a_failing_allocation_is_an_error_of_the_call_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
