/* Vocabularies of captions: which words, in which order, their ids, and the file. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder_context.h"
#include "fixtures/real_files.h"

#include "attend_caption.h"
#include "caption/plain_words.h"
#include "text/utf8.h"
#include "caption/words.h"

static const char *const captions[] = {"the dog runs in the grass", "a dog and a cat", "the cat", "", "dog", "zebra"};
enum { CAPTIONS = sizeof captions / sizeof *captions };

static att_word_counts count_captions(void)
{
    att_word_counts c;
    att_word_counts_init(&c, ctx);
    for (int i = 0; i < CAPTIONS; i++)
        assert_int_equal(att_word_counts_add(&c, captions[i]), ATT_OK);
    return c;
}

/* The vocabulary's words, separated by spaces. */
static void check_words(const att_words *w, const char *expected)
{
    char found[256] = "";
    for (int64_t i = 0; i < att_ids_count(&w->words); i++) {
        strcat(found, i ? " " : "");
        strcat(found, att_ids_at(&w->words, i));
    }
    assert_string_equal(found, expected);
}

static void words_are_sorted_by_count_and_cut(void **state)
{
    (void)state;
    static const struct {
        int64_t min_count, max;
        const char *words;
    } cases[] = {
        {0, 0, "dog the a cat and grass in runs zebra"},
        {1, 6, "dog the a cat and grass"},
        {2, 0, "dog the a cat"},
        {3, 0, "dog the"},
        {2, 1, "dog"},
    };
    att_word_counts c = count_captions();
    att_words w;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(att_words_make(&w, &c, cases[i].min_count, cases[i].max), ATT_OK);
        check_words(&w, cases[i].words);
        att_words_free(&w);
    }
    assert_int_equal(att_words_make(&w, &c, 4, 0), ATT_ERR_ARGUMENT);
    check_message(ctx,
                  "no word is in the captions 4 times or more: of their 9 words, the most frequent is there 3 times");
    att_words_free(&w);
    att_word_counts_free(&c);
    att_word_counts_init(&c, ctx);
    assert_int_equal(att_words_make(&w, &c, 1, 0), ATT_ERR_ARGUMENT);
    check_message(ctx, "of their 0 words");
    att_words_free(&w);
    att_word_counts_free(&c);
}

static void unknown_words_have_an_id_and_are_never_written(void **state)
{
    (void)state;
    att_word_counts c = count_captions();
    att_words w;
    int32_t ids[8] = {-7, -7, -7, -7, -7};
    att_bytes text = {.ctx = ctx};
    assert_int_equal(att_words_make(&w, &c, 2, 0), ATT_OK); /* dog the a cat */
    assert_int_equal(att_words_size(&w), 6);
    assert_int_equal(att_words_encode(&w, "a zebra and the dog", ids, 4), 5);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], att_words_unknown(&w));
    assert_int_equal(ids[2], 4);
    assert_int_equal(ids[3], 1);
    assert_int_equal(ids[4], -7);
    assert_int_equal(att_words_encode(&w, "", ids, 4), 0);
    const int32_t said[] = {4, 2, 4, 0, 5, 1}; /* <unk> a <unk> dog <end> the */
    assert_int_equal(att_words_decode(&w, said, 6, &text), ATT_OK);
    att_bytes_add(&text, "", 1);
    assert_string_equal(text.data, "a dog");
    assert_int_equal(att_words_decode(&w, (const int32_t[]){0, 6}, 2, &text), ATT_ERR_ARGUMENT);
    check_message(ctx, "ids[1] is 6, not in [0, 6)");
    assert_int_equal(att_words_decode(&w, (const int32_t[]){-1}, 1, &text), ATT_ERR_ARGUMENT);
    att_bytes_free(&text);
    att_words_free(&w);
    att_word_counts_free(&c);
}

static void content_words_are_no_function_words(void **state)
{
    (void)state;
    att_word_counts c = count_captions();
    att_words w;
    int32_t ids[9];
    assert_int_equal(att_words_make(&w, &c, 1, 0), ATT_OK); /* dog the a cat and grass in runs zebra */
    assert_int_equal(att_words_content(&w, ids, 9), 5);
    assert_string_equal(att_ids_at(&w.words, ids[0]), "dog");
    assert_string_equal(att_ids_at(&w.words, ids[1]), "cat");
    assert_string_equal(att_ids_at(&w.words, ids[4]), "zebra");
    assert_int_equal(att_words_content(&w, ids, 2), 2);
    att_words_free(&w);
    att_word_counts_free(&c);
}

/* ---- the file */

static void a_file_has_the_same_words(void **state)
{
    (void)state;
    att_word_counts c = count_captions();
    att_words w, again;
    assert_int_equal(att_word_counts_add(&c, "\xC3\xA4pfel dog"), ATT_OK);
    assert_int_equal(att_words_make(&w, &c, 1, 0), ATT_OK);
    assert_int_equal(att_words_write(&w, folder.path), ATT_OK);
    assert_int_equal(att_words_read(&again, ctx, folder.path), ATT_OK);
    check_words(&again, "dog the a cat and grass in runs zebra \xC3\xA4pfel");
    assert_int_equal(again.min_count, 1);
    att_words_free(&again);
    att_words_free(&w);
    att_word_counts_free(&c);
}

static void check_refused(const char *text, const char *says)
{
    att_words w;
    folder_write(&folder, "words.json", text);
    assert_true(att_words_read(&w, ctx, folder.path) != ATT_OK);
    check_message(ctx, says);
    att_words_free(&w);
}

static void a_damaged_file_is_refused(void **state)
{
    (void)state;
    att_words w;
    assert_int_equal(att_words_read(&w, ctx, folder.path), ATT_ERR_IO);
    check_message(ctx, "words.json");
    att_words_free(&w);
    check_refused("[]", "words.json");
    check_refused("{\"min_count\": 3}", "there is no \"words\"");
    check_refused("{\"words\": [], \"min_count\": 3}", "\"words\" has no word");
    check_refused("{\"words\": [\"a\", 7], \"min_count\": 3}", "\"words\"[1] is 7, not a word in lower case");
    check_refused("{\"words\": [\"A\"], \"min_count\": 3}", "\"words\"[0] is \"A\", not a word in lower case without");
    check_refused("{\"words\": [\"a b\"], \"min_count\": 3}", "\"words\"[0] is \"a b\", not");
    check_refused("{\"words\": [\"\"], \"min_count\": 3}", "\"words\"[0] is \"\", not");
    check_refused("{\"words\": [\"a\\u001b\"], \"min_count\": 3}", "\"words\"[0] is \"a\\u001B\", not");
    check_refused("{\"words\": [\"<unk>\"], \"min_count\": 3}", "not a word");
    check_refused("{\"words\": [\"a\", \"b\", \"a\"], \"min_count\": 3}", "\"words\"[2], \"a\", occurs a second time");
    check_refused("{\"words\": [\"a\"], \"min_count\": -1}", "\"min_count\" is -1");
    check_refused("{\"words\": [\"a\"]}", "there is no \"min_count\"");
}

/* Otherwise words of captions would be refused when the vocabulary is read. */
static void plain_words_are_their_own_plain_words(void **state)
{
    (void)state;
    att_bytes once = {.ctx = ctx}, twice = {.ctx = ctx};
    for (uint32_t c = 1; c < 0x110000; c++) {
        char text[6] = "x";
        if (c >= 0xD800 && c < 0xE000)
            continue;
        const size_t n = 1 + att_utf8_encode(c, text + 1);
        text[n] = 'Y';
        once.count = twice.count = 0;
        const int64_t words = att_plain_words((att_byte_view){text, n + 1}, &once);
        assert_int_equal(att_plain_words((att_byte_view){once.data, once.count}, &twice), words);
        if (once.count != twice.count || memcmp(once.data, twice.data, once.count) != 0)
            fail_msg("U+%04X", c);
    }
    att_bytes_free(&once);
    att_bytes_free(&twice);
}

static void a_failed_allocation_leaves_nothing(void **state)
{
    (void)state;
    att_status e = ATT_ERR_MEMORY;
    folder_write(&folder, "words.json", "{\"words\": [\"a\", \"b\"], \"min_count\": 3}");
    for (long n = 1; e; n++) {
        fail_alloc f = {0};
        att_ctx *failing = fail_open(&f);
        att_word_counts c;
        att_words w, read;
        att_word_counts_init(&c, failing);
        f.fail_at = f.calls + n;
        e = att_word_counts_add(&c, "a b a c");
        const att_status made = att_words_make(&w, &c, 1, 0), opened = att_words_read(&read, failing, folder.path);
        e = e ? e : made ? made : opened;
        assert_true(!e || e == ATT_ERR_MEMORY);
        att_words_free(&w);
        att_words_free(&read);
        att_word_counts_free(&c);
        att_close(failing);
        assert_int_equal(f.live, 0);
        assert_true(n < 100);
    }
}

/* ---- Flickr8k, where it is */

static void flickr8k_has_7630_words_to_train_with(void **state)
{
    (void)state;
    static const int least[] = {1, 3, 5}, expected[] = {7630, 3486, 2537};
    char path[MAX_FILE_NAME];
    if (!data_file("flickr8k/Flickr8k.token.txt"))
        skip();
    snprintf(path, sizeof path, "%s", data_file("flickr8k/Flickr8k.token.txt"));
    const att_caption_set_options o = {.size = sizeof o, .list = data_file("flickr8k/Flickr_8k.trainImages.txt")};
    att_caption_set *s;
    att_word_counts c;
    att_word_counts_init(&c, ctx);
    assert_int_equal(att_caption_set_open(ctx, path, &o, &s), ATT_OK);
    for (int64_t i = 0; i < 6000; i++)
        for (int64_t k = 0; k < att_caption_set_count(s, i); k++)
            assert_int_equal(att_word_counts_add(&c, att_caption_set_caption(s, i, k)), ATT_OK);
    for (int i = 0; i < 3; i++) {
        att_words w;
        assert_int_equal(att_words_make(&w, &c, least[i], 0), ATT_OK);
        assert_int_equal(att_ids_count(&w.words), expected[i]);
        att_words_free(&w);
    }
    att_word_counts_free(&c);
    att_caption_set_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(words_are_sorted_by_count_and_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_words_have_an_id_and_are_never_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(content_words_are_no_function_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_has_the_same_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plain_words_are_their_own_plain_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_allocation_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flickr8k_has_7630_words_to_train_with, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
