/* Many texts at once: what one by one gives, or nothing. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/tokenizer.h"

enum { TEXTS = 500 };

static char text_of[TEXTS][64];
static const char *texts[TEXTS];
static size_t bytes_of[TEXTS];

/* Texts of different lengths, some of them empty. */
static void make_texts(void)
{
    static const char *const words[] = {"hello ", "world", "[MASK]", "unaffable, ", "x", "a", "!", "hellos "};
    for (size_t i = 0; i < TEXTS; i++) {
        text_of[i][0] = 0;
        for (size_t k = 0; k < i % 5; k++)
            strcat(text_of[i], words[check_bits(7, 8 * i + k) % 8]);
        texts[i] = text_of[i];
        bytes_of[i] = strlen(text_of[i]);
    }
}

static void assert_all_empty(const att_tokens *out)
{
    for (size_t i = 0; i < TEXTS; i++)
        assert_true(!out[i].ids && !out[i].count && !out[i].offsets && !out[i].truncated);
}

static void free_all(att_ctx *c, att_tokens *out)
{
    for (size_t i = 0; i < TEXTS; i++)
        att_tokens_free(c, &out[i]);
}

static void check_batch(att_ctx *c, const size_t *bytes, const att_tokenize_options *o)
{
    static att_tokens out[TEXTS];
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(c, folder.path, &t), ATT_OK);
    assert_int_equal(att_tokenize_batch(t, TEXTS, texts, bytes, o, out), ATT_OK);
    for (size_t i = 0; i < TEXTS; i++) {
        att_tokens one;
        assert_int_equal(att_tokenize(t, texts[i], bytes ? bytes[i] : strlen(texts[i]), o, &one), ATT_OK);
        assert_int_equal(one.count, out[i].count);
        assert_memory_equal(one.ids, out[i].ids, (size_t)one.count * sizeof *one.ids);
        assert_int_equal(one.truncated, out[i].truncated);
        assert_true(!one.offsets == !out[i].offsets && !one.special == !out[i].special);
        if (one.offsets) {
            assert_memory_equal(one.offsets, out[i].offsets, 2 * (size_t)one.count * sizeof *one.offsets);
            assert_memory_equal(one.special, out[i].special, (size_t)one.count * sizeof *one.special);
        }
        att_tokens_free(c, &one);
    }
    free_all(c, out);
    att_tokenizer_free(t);
}

static void a_batch_has_the_tokens_of_each_text_alone_for_any_number_of_threads(void **state)
{
    (void)state;
    make_texts();
    att_tokenizer_free(open_text(SMALL));
    for (int threads = 1; threads <= 5; threads += 2) {
        att_ctx *c = check_open(NULL, threads);
        check_batch(c, NULL, NULL);
        check_batch(c, bytes_of, PLAIN);
        check_batch(c, NULL, ATT_OPTIONS(att_tokenize_options, .max_tokens = 3, .offsets = true));
        att_close(c);
    }
}

static void lengths_count_and_zero_bytes_are_text(void **state)
{
    (void)state;
    att_tokens out[2];
    att_tokenizer *t = open_text(SMALL);
    assert_int_equal(
        att_tokenize_batch(t, 2, (const char *const[]){"a\0b", "hello"}, (const size_t[]){3, 0}, PLAIN, out), ATT_OK);
    assert_int_equal(out[0].count, 2);
    assert_int_equal(out[1].count, 0);
    for (int i = 0; i < 2; i++)
        att_tokens_free(ctx, &out[i]);
    assert_int_equal(att_tokenize_batch(t, 0, NULL, NULL, NULL, NULL), ATT_OK);
    att_tokenizer_free(t);
}

/* A text that Unigram cannot tokenize, as its vocabulary has no unknown token. */
static void an_error_names_the_first_text_that_has_one_and_leaves_nothing(void **state)
{
    (void)state;
    static att_tokens out[TEXTS];
    make_texts();
    att_tokenizer *t = open_text("{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":null,"
                                 "\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"Unigram\",\"unk_id\":"
                                 "null,\"vocab\":[[\"a\",-1.0],[\"b\",-2.0]]}}");
    for (size_t i = 0; i < TEXTS; i++)
        texts[i] = i == 3 || i == 77 || i == TEXTS - 1 ? "abc" : "ab";
    for (int i = 0; i < 20; i++) { /* whichever thread is first */
        memset(out, 1, sizeof out);
        assert_int_equal(att_tokenize_batch(t, TEXTS, texts, NULL, NULL, out), ATT_ERR_FORMAT);
        check_message(ctx, "texts[3]: ");
        assert_all_empty(out);
    }
    att_tokenizer_free(t);
}

static void wrong_arguments_are_refused_before_anything_is_written(void **state)
{
    (void)state;
    static att_tokens out[TEXTS];
    char list[256] = "";
    const struct {
        int64_t n;
        const att_tokenize_options *options;
        att_status status;
        const char *words;
    } cases[] = {
        {-1, NULL, ATT_ERR_ARGUMENT, "att_tokenize_batch: n is -1"},
        {(int64_t)1 << 40, NULL, ATT_ERR_ARGUMENT, "n is 1099511627776, not in [0, 2^31]"},
        {2, ATT_OPTIONS(att_tokenize_options, .max_tokens = -1), ATT_ERR_ARGUMENT, "max_tokens is -1"},
        {2, ATT_OPTIONS(att_tokenize_options, .max_tokens = 1), ATT_ERR_ARGUMENT, "the special tokens alone are 2"},
        {2, ATT_OPTIONS(att_tokenize_options, .unknown = add_unknown, .user = list), ATT_ERR_ARGUMENT,
         "options.unknown is set"},
        {2, &(const att_tokenize_options){.size = 0}, ATT_ERR_ARGUMENT, "att_tokenize_options: its field size is 0"},
    };
    att_tokenizer *t = open_text(SMALL);
    make_texts();
    memset(out, 1, sizeof out);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(att_tokenize_batch(t, cases[i].n, texts, NULL, cases[i].options, out), cases[i].status);
        check_message(ctx, cases[i].words);
    }
    texts[1] = NULL;
    assert_int_equal(att_tokenize_batch(t, 2, texts, NULL, NULL, out), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_tokenize_batch: texts[1] is NULL");
    assert_true(((char *)out)[0] == 1);
    att_tokenizer_free(t);
}

static void a_batch_is_cancelled(void **state)
{
    (void)state;
    static att_tokens out[TEXTS];
    volatile int cancel = 0;
    att_ctx *c;
    att_tokenizer *t;
    make_texts();
    att_tokenizer_free(open_text(SMALL));
    assert_int_equal(att_open(&c, ATT_OPTIONS(att_config, .n_threads = 2, .cancel = &cancel)), ATT_OK);
    assert_int_equal(att_tokenizer_open(c, folder.path, &t), ATT_OK);
    cancel = 1;
    assert_int_equal(att_tokenize_batch(t, TEXTS, texts, NULL, NULL, out), ATT_ERR_CANCELLED);
    check_message(c, "att_tokenize_batch was cancelled");
    assert_all_empty(out);
    att_tokenizer_free(t);
    att_close(c);
}

static void every_failed_allocation_leaves_nothing(void **state)
{
    (void)state;
    static att_tokens out[TEXTS];
    make_texts();
    att_tokenizer_free(open_text(SMALL));
    for (int threads = 1; threads <= 3; threads += 2) {
        fail_alloc f = {0};
        att_ctx *c;
        att_tokenizer *t;
        assert_int_equal(att_open(&c, ATT_OPTIONS(att_config, .n_threads = threads, .allocator = fail_allocator(&f))),
                         ATT_OK);
        assert_int_equal(att_tokenizer_open(c, folder.path, &t), ATT_OK);
        const long live = f.live, before = f.calls;
        assert_int_equal(att_tokenize_batch(t, TEXTS, texts, NULL, NULL, out), ATT_OK);
        free_all(c, out);
        const long calls = f.calls - before;
        for (long n = 1; n <= calls; n += 1 + calls / 50) {
            f.fail_at = f.calls + n;
            assert_int_equal(att_tokenize_batch(t, TEXTS, texts, NULL, NULL, out), ATT_ERR_MEMORY);
            check_message(c, "texts[");
            assert_all_empty(out);
            assert_int_equal(f.live, live);
        }
        att_tokenizer_free(t);
        att_close(c);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_the_tokens_of_each_text_alone_for_any_number_of_threads),
        cmocka_unit_test(lengths_count_and_zero_bytes_are_text),
        cmocka_unit_test(an_error_names_the_first_text_that_has_one_and_leaves_nothing),
        cmocka_unit_test(wrong_arguments_are_refused_before_anything_is_written),
        cmocka_unit_test(a_batch_is_cancelled),
        cmocka_unit_test(every_failed_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
