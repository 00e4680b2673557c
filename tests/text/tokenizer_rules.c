/* The tokenizer: each rule, and its limits, on a vocabulary of our own. */
#include "fixtures/check.h"
#include "fixtures/tokenizer.h"

#include <time.h>

typedef struct rule {
    const char *text, *tokens;
} rule;

static void check(const char *tokenizer_json, const rule *rules, size_t n)
{
    att_tokenizer *t = open_text(tokenizer_json);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(tokens_of(t, rules[i].text, strlen(rules[i].text), PLAIN), rules[i].tokens);
    att_tokenizer_free(t);
}

#define CHECK(tokenizer_json, ...)                                                                                     \
    check(tokenizer_json, (const rule[]){__VA_ARGS__}, sizeof((const rule[]){__VA_ARGS__}) / sizeof(rule))

static void words_are_cut_into_the_longest_pieces(void **state)
{
    (void)state;
    CHECK(SMALL, {"unaffable", "unaff ##able"}, {"aab", "a ##a ##b"}, {"unx", "[UNK]"}, {"hellos", "hello ##s"},
          {"hello world", "hello world"}, {"xhello", "[UNK]"});
}

static void control_characters_go_and_all_white_space_divides(void **state)
{
    (void)state;
    CHECK(SMALL,
          {"a\x01\x7F\xC2\xAD\xE2\x80\x8B"
           "b",
           "a ##b"},
          {"a\xEF\xBF\xBD"
           "b",
           "a ##b"},
          {"a\xFF"
           "b",
           "a ##b"},
          {"a\x0B\x0C\xC2\x85"
           "b",
           "a ##b"},
          {"a\tb\nb\rb", "a b b b"},
          {"a\xC2\xA0"
           "b\xE3\x80\x80"
           "b",
           "a b b"},
          {" \t ", ""}, {"", ""});
    att_tokenizer *t = open_text(SMALL);
    assert_string_equal(tokens_of(t, "a\0b", 3, PLAIN), "a ##b");
    att_tokenizer_free(t);
}

static void unassigned_characters_stay(void **state)
{
    (void)state;
    CHECK(SMALL, {"\xCD\xB8", "\xCD\xB8"},
          {"a\xCD\xB8"
           "b",
           "[UNK]"});
}

static void punctuation_is_a_word_of_its_own(void **state)
{
    (void)state;
    CHECK(SMALL, {"hello,world!", "hello , world !"}, {"!!", "! !"}, {"\"a\"", "\" a \""},
          {"a\xCD\xBE"
           "b",
           "a ; b"} /* the Greek question mark decomposes to a semicolon */);
}

static void ideographs_are_words_of_their_own(void **state)
{
    (void)state;
    CHECK(SMALL, {"\xE6\x97\xA5\xE6\x9C\xAC", "\xE6\x97\xA5 \xE6\x9C\xAC"},
          {"a\xE6\x97\xA5"
           "b",
           "a \xE6\x97\xA5 b"});
}

static void accents_go_and_hangul_decomposes(void **state)
{
    (void)state;
    CHECK(SMALL,
          {"\xC3\x9C"
           "BER",
           "uber"},
          {"u\xCC\x88"
           "ber",
           "uber"},
          {"\xED\x95\x9C", "\xE1\x84\x92 ##\xE1\x85\xA1 ##\xE1\x86\xAB"}, {"\xEF\xAC\x81", "\xEF\xAC\x81"});
}

static void each_character_is_lowered_for_itself(void **state)
{
    (void)state;
    CHECK(SMALL, {"\xCE\xA3\xCE\xA3", "\xCF\x83 ##\xCF\x83"} /* no final sigma */, {"\xC4\xB0", "i"} /* U+0130 */,
          {"\xE2\x84\xAA", "k"} /* the Kelvin sign */);
}

static void special_tokens_are_found_as_they_are_written(void **state)
{
    (void)state;
    CHECK(SMALL, {"hello[MASK]world", "hello [MASK] world"}, {"  [MASK]  ", "[MASK]"}, {"[mask]", "[ mask ]"},
          {"[MASKED]", "[MASKED]"} /* the longest */, {"[MASK", "[ mask"}, {"[[MASK]]", "[ [MASK] ]"},
          {"un[PAD]s", "un [PAD] [UNK]"}, {"[CLS][SEP]", "[CLS] [SEP]"});
}

static void the_longest_special_token_that_is_there_is_taken(void **state)
{
    (void)state;
#define SPECIAL(id, content) "{\"id\":" #id ",\"content\":\"" content "\",\"special\":true,\"normalized\":false}"
    static const char added[] =
        TOKENIZER("[" SPECIAL(60, "<ab>") "," SPECIAL(61, "<") "," SPECIAL(62, "<a") "," SPECIAL(63, "<<") "," SPECIAL(
                      64, "\xC3\xBC") "," SPECIAL(65, "<ac") "]",
                  NORMALIZER, PRE_TOKENIZER, "null", MODEL);
    CHECK(added, {"<", "<"}, {"<<<", "<< <"}, {"<a", "<a"}, {"<ab", "<a b"}, {"<ab>", "<ab>"}, {"<aca", "<ac a"},
          {"<b<a<", "< b <a <"}, {"a\xC3\xBC", "a \xC3\xBC"}, {"\xC3", ""}, {"<ab<ab>", "<a b <ab>"});
}

static void a_word_is_unknown_from_its_hundred_and_first_character(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    for (int n = 99; n < 103; n++) {
        char text[128];
        att_tokens tokens;
        memset(text, 'a', (size_t)n);
        assert_int_equal(att_tokenize(t, text, (size_t)n, PLAIN, &tokens), ATT_OK);
        assert_int_equal(tokens.count, n <= 100 ? n : 1);
        assert_int_equal(tokens.ids[0], n <= 100 ? 14 : 1);
        att_tokens_free(ctx, &tokens);
    }
    att_tokenizer_free(t);
}

static void what_is_unknown_is_reported(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"hello unaffable", ""},
        {"x hello xay", "x x y"}, /* the characters that no token has */
        {"hellob \xE2\x98\x83", "\xE2\x98\x83"},
        {"sa", "sa"},        /* a word whose characters are in tokens, but do not make it up */
        {"[UNK] hello", ""}, /* it was asked for */
    };
    att_tokenizer *t = open_text(SMALL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(unknown_of(t, cases[i][0]), cases[i][1]);
    att_tokenizer_free(t);
}

static void settings_of_the_normalizer_are_honored(void **state)
{
    (void)state;
#define WITH(clean, cjk, strip, lower)                                                                                 \
    TOKENIZER(ADDED,                                                                                                   \
              "{\"type\":\"BertNormalizer\",\"clean_text\":" clean ",\"handle_chinese_chars\":" cjk                    \
              ",\"strip_accents\":" strip ",\"lowercase\":" lower "}",                                                 \
              PRE_TOKENIZER, POST, MODEL)
    CHECK(WITH("true", "true", "null", "false"), {"Hello", "Hello"},
          {"\xC3\xBC"
           "ber",
           "\xC3\xBC"
           "ber"});
    CHECK(WITH("true", "true", "false", "true"), {"\xC3\x9C"
                                                  "BER",
                                                  "\xC3\xBC"
                                                  "ber"});
    CHECK(WITH("true", "true", "true", "false"),
          {"\xC3\xBC"
           "ber",
           "uber"},
          {"HELLO", "[UNK]"});
    CHECK(WITH("true", "false", "null", "true"), {"\xE6\x97\xA5\xE6\x9C\xAC", "[UNK]"});
    CHECK(WITH("false", "true", "null", "true"),
          {"a\xC2\xAD"
           "b",
           "[UNK]"},
          {"a\xC2\x85"
           "b",
           "a b"},
          {"a\xFF"
           "b",
           "[UNK]"});
    att_tokenizer *t = open_text(WITH("false", "true", "null", "true"));
    assert_string_equal(tokens_of(t, "a\0b", 3, PLAIN), "[UNK]"); /* not the token "a" */
    att_tokenizer_free(t);
}

static void the_post_processor_says_what_is_put_around(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    assert_string_equal(tokens_of(t, "hello", 5, NULL), "[CLS] hello [SEP]");
    assert_string_equal(tokens_of(t, NULL, 0, NULL), "[CLS] [SEP]");
    att_tokenizer_free(t);
    t = open_text(TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER,
                            "{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]}", MODEL));
    assert_string_equal(tokens_of(t, "hello", 5, NULL), "[CLS] hello [SEP]");
    att_tokenizer_free(t);
    t = open_text(TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER, "null", MODEL));
    assert_string_equal(tokens_of(t, "hello", 5, NULL), "hello");
    att_tokenizer_free(t);
}

static void ids_without_a_token_give_null(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    assert_int_equal(att_tokenizer_size(t), 61);
    assert_string_equal(att_tokenizer_token(t, 60), "[MASKED]");
    assert_string_equal(att_tokenizer_token(t, 27), "\xF0\x9F\x98\x80");
    assert_string_equal(att_tokenizer_token(t, 34), "\"");
    assert_null(att_tokenizer_token(t, 59));
    assert_null(att_tokenizer_token(t, -1));
    assert_null(att_tokenizer_token(t, 61));
    att_tokenizer_free(t);
    att_tokenizer_free(NULL);
}

/* ---- limits */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void max_tokens_counts_special_tokens_and_says_what_it_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t max;
        bool no_special;
        const char *tokens;
        bool truncated;
    } cases[] = {
        {"hello world", 4, false, "[CLS] hello world [SEP]", false},
        {"hello world", 3, false, "[CLS] hello [SEP]", true},
        {"hello world", 2, false, "[CLS] [SEP]", true},
        {" \x01 ", 2, false, "[CLS] [SEP]", false},
        {"hello world", 2, true, "hello world", false},
        {"hello world", 1, true, "hello", true},
        {"hello \xCC\x88 \t", 1, true, "hello", false},
        {"aaa", 2, true, "a ##a", true},
        {"hello [MASK]", 1, true, "hello", true},
        {"[MASK][MASK]", 1, true, "[MASK]", true},
        {"[MASK]", 1, true, "[MASK]", false},
        {"hello!", 1, true, "hello", true},
        {"hello\xE6\x97\xA5", 1, true, "hello", true},
    };
    att_tokenizer *t = open_text(SMALL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const att_tokenize_options *opt =
            ATT_OPTIONS(att_tokenize_options, .max_tokens = cases[i].max, .no_special = cases[i].no_special);
        size_t bytes = strlen(cases[i].text);
        att_tokens tokens;
        assert_string_equal(tokens_of(t, cases[i].text, bytes, opt), cases[i].tokens);
        assert_int_equal(att_tokenize(t, cases[i].text, bytes, opt, &tokens), ATT_OK);
        assert_int_equal(tokens.truncated, cases[i].truncated);
        att_tokens_free(ctx, &tokens);
    }
    att_tokenizer_free(t);
}

static void refused(const att_tokenizer *t, const char *words, const att_tokenize_options *opt)
{
    att_tokens tokens = {.count = 7};
    assert_int_equal(att_tokenize(t, "a", 1, opt, &tokens), ATT_ERR_ARGUMENT);
    assert_int_equal(tokens.count, 0);
    assert_null(tokens.ids);
    check_message(ctx, words);
}

static void wrong_options_are_refused_with_a_sentence(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    refused(t, "max_tokens is 1, but the special tokens alone are 2",
            ATT_OPTIONS(att_tokenize_options, .max_tokens = 1));
    refused(t, "max_tokens is -1", ATT_OPTIONS(att_tokenize_options, .max_tokens = -1));
    refused(t, "size is 0", &(att_tokenize_options){.max_tokens = 4});
    att_tokens tokens;
    assert_int_equal(att_tokenize(t, NULL, 3, NULL, &tokens), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_tokenize: text is NULL, but bytes is 3");
    att_tokenizer_free(t);
}

/* How long it takes to search 100,000 bytes for n special tokens that all might begin at each of them. */
static double search_for(int n)
{
    enum { BYTES = 100000 };
    static char text[BYTES];
    remove_all();
    FILE *f = folder_open(&folder, "tokenizer.json");
    fprintf(f, "{\"added_tokens\":[");
    for (int i = 0; i < n; i++)
        fprintf(f, "%s{\"id\":%d,\"content\":\"a%d\",\"normalized\":false}", i ? "," : "", 60 + i, i);
    fprintf(f, "],\"normalizer\":" NORMALIZER ",\"pre_tokenizer\":" PRE_TOKENIZER ",\"model\":" MODEL "}");
    assert_int_equal(fclose(f), 0);
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    memset(text, 'a', BYTES);
    att_tokens tokens;
    const double start = seconds();
    assert_int_equal(att_tokenize(t, text, BYTES, NULL, &tokens), ATT_OK);
    const double end = seconds();
    att_tokens_free(ctx, &tokens);
    att_tokenizer_free(t);
    return end - start;
}

static void many_special_tokens_cost_hardly_more_than_few(void **state)
{
    (void)state;
    const double few = search_for(100), many = search_for(30000);
    if (many > 20 * few + 0.1) /* looked at one by one, 300 times as many would take 300 times as long */
        fail_msg("%.3f s for 100 special tokens, %.3f s for 30,000", few, many);
}

/* Ten times the text takes about ten times as long; with a quadratic step it would take a hundred times as long. */
static void long_texts_take_linear_time_and_little_where_they_are_cut(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "a", "a ", "[", "\xCC\x96\xCC\x81", "\xF0\x9D\x85\xAD\xF0\x9D\x85\xA5", "\xFF", "[MASK", "\xED\x95\x9C", "!"};
    const size_t small = 1000000 / (size_t)check_step(20), large = 10 * small;
    att_tokenizer *t = open_text(SMALL);
    char *text = malloc(large);
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        for (size_t i = 0, n = strlen(patterns[p]); i < large; i++)
            text[i] = patterns[p][i % n];
        att_tokens tokens;
        double start = seconds();
        assert_int_equal(att_tokenize(t, text, small, NULL, &tokens), ATT_OK);
        double one = seconds() - start;
        att_tokens_free(ctx, &tokens);
        assert_int_equal(att_tokenize(t, text, large, NULL, &tokens), ATT_OK);
        double ten = seconds() - start - one;
        att_tokens_free(ctx, &tokens);
        if (ten > 40 * one + 0.1)
            fail_msg("\"%s\": %.3f s for a text, %.3f s for ten times as much", patterns[p], one, ten);
    }
    for (size_t i = 0; i < large; i++)
        text[i] = i % 2 ? ' ' : 'a';
    att_tokens tokens;
    double start = seconds();
    assert_int_equal(att_tokenize(t, text, large, NULL, &tokens), ATT_OK);
    double whole = seconds() - start;
    att_tokens_free(ctx, &tokens);
    start = seconds();
    for (int i = 0; i < 100; i++) { /* each looks at 512 bytes of all */
        assert_int_equal(att_tokenize(t, text, large, ATT_OPTIONS(att_tokenize_options, .max_tokens = 256), &tokens),
                         ATT_OK);
        assert_int_equal(tokens.count, 256);
        assert_true(tokens.truncated);
        att_tokens_free(ctx, &tokens);
    }
    if (seconds() - start > whole)
        fail_msg("%.3f s for a hundred short cuts, %.3f s for the whole text once", seconds() - start, whole);
    free(text);
    att_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_into_the_longest_pieces),
        cmocka_unit_test(control_characters_go_and_all_white_space_divides),
        cmocka_unit_test(unassigned_characters_stay),
        cmocka_unit_test(punctuation_is_a_word_of_its_own),
        cmocka_unit_test(ideographs_are_words_of_their_own),
        cmocka_unit_test(accents_go_and_hangul_decomposes),
        cmocka_unit_test(each_character_is_lowered_for_itself),
        cmocka_unit_test(special_tokens_are_found_as_they_are_written),
        cmocka_unit_test(the_longest_special_token_that_is_there_is_taken),
        cmocka_unit_test(a_word_is_unknown_from_its_hundred_and_first_character),
        cmocka_unit_test(what_is_unknown_is_reported),
        cmocka_unit_test(settings_of_the_normalizer_are_honored),
        cmocka_unit_test(the_post_processor_says_what_is_put_around),
        cmocka_unit_test(ids_without_a_token_give_null),
        cmocka_unit_test(max_tokens_counts_special_tokens_and_says_what_it_cut),
        cmocka_unit_test(wrong_options_are_refused_with_a_sentence),
        cmocka_unit_test(many_special_tokens_cost_hardly_more_than_few),
        cmocka_unit_test(long_texts_take_linear_time_and_little_where_they_are_cut),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
