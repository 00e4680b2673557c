/* UTF-8, and words as the `tokenizers` package makes them of every character. */
#include "fixtures/text_lines.h"
#include "text/bert_normalizer.h"

/* ---- UTF-8 */

/* Decodes s[bytes] into c[]; returns how many. */
static int decode(const char *s, size_t bytes, uint32_t *c)
{
    int n = 0;
    for (size_t i = 0; i < bytes; n++)
        i += att_utf8_decode(s + i, bytes - i, &c[n]);
    return n;
}

static void every_code_point_survives_encoding_and_decoding(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[4];
        uint32_t back;
        size_t n = c >= 0xD800 && c < 0xE000 ? 0 : att_utf8_encode(c, s);
        if (n == 0)
            continue;
        assert_int_equal(att_utf8_decode(s, n, &back), n);
        assert_int_equal(back, c);
        assert_true(att_utf8_valid(s, n));
        assert_true(n == 1 || !att_utf8_valid(s, n - 1));
    }
}

static void each_maximal_invalid_subpart_is_one_replacement_character(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int n; /* what len(bytes.decode('utf-8', 'replace')) gives in Python */
    } cases[] = {
        {"\xFF", 1},
        {"\x80", 1},
        {"\xC0\x80", 2},
        {"\xC3", 1},
        {"\xC3\xC3", 2},
        {"\xE2\x82", 1},
        {"\xE0\x80\x80", 3},
        {"\xED\xA0\x80", 3},
        {"\xF0\x9F\x98", 1},
        {"\xF0\x9F\x98\xF0", 2},
        {"\xF0\x80\x80\x80", 4},
        {"\xF4\x90\x80\x80", 4},
        {"\xF5\x80", 2},
        {"\xE2\x82\xE2\x82", 2},
        {"\xF1\x80\x80\xE1\x80\xC2", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t c[8];
        assert_false(att_utf8_valid(cases[i].bytes, strlen(cases[i].bytes)));
        assert_int_equal(decode(cases[i].bytes, strlen(cases[i].bytes), c), cases[i].n);
        for (int k = 0; k < cases[i].n; k++)
            assert_int_equal(c[k], ATT_REPLACEMENT);
    }
    uint32_t c[8];
    assert_int_equal(decode("a\xE2\x82z", 4, c), 3);
    assert_int_equal(c[2], 'z');
}

/* ---- words */

static void add_to_hash(void *user, const char *word, size_t bytes, bool too_long)
{
    assert_false(too_long);
    uint32_t *h = user;
    *h = hash_bytes(hash_bytes(*h, word, bytes), "\n", 1);
}

static uint32_t hash_words(const att_bert_settings *settings, uint32_t h, const char *s, size_t bytes)
{
    static const bool pause[256];
    static att_bert_normalizer w;
    att_bert_normalizer_init(&w, settings, add_to_hash, &h);
    assert_int_equal(att_bert_normalizer_run(&w, (const unsigned char *)s, bytes, pause), bytes);
    att_bert_normalizer_end(&w);
    return h;
}

static const att_bert_settings uncased = {true, true, true, true, ATT_MAX_WORD};

static void every_character_is_classed_stripped_and_lowered_as_in_the_reference(void **state)
{
    (void)state;
    static const att_bert_settings settings[] = {{true, true, true, true, ATT_MAX_WORD},
                                                 {false, false, false, true, ATT_MAX_WORD},
                                                 {false, false, true, false, ATT_MAX_WORD}};
    static char *line[0x1100];
    char *text;
    assert_int_equal(golden_lines("characters.txt", &text, line, 0x1100), 0x1100);
    for (uint32_t block = 0; block < 0x1100; block++) {
        uint32_t h = HASH_START;
        for (uint32_t c = block * 256; c < block * 256 + 256; c++) {
            char s[6] = "a";
            if (c >= 0xD800 && c < 0xE000)
                continue;
            size_t n = 1 + att_utf8_encode(c, s + 1);
            s[n++] = 'b';
            for (int k = 0; k < 3; k++)
                h = hash_words(&settings[k], h, s, n);
        }
        if (h != strtoul(line[block], NULL, 16))
            fail_msg("U+%04X to U+%04X: not as in tests/golden/characters.txt", block * 256, block * 256 + 255);
    }
    free(text);
}

static void words_of_ten_thousand_lines_equal_the_reference(void **state)
{
    (void)state;
    static text_lines t;
    static char *line[N_TEXT_LINES / 100];
    char *text;
    text_lines_init(&t);
    assert_int_equal(golden_lines("words.txt", &text, line, N_TEXT_LINES / 100), N_TEXT_LINES / 100);
    for (unsigned i = 0; i < N_TEXT_LINES;) {
        uint32_t h = HASH_START;
        for (unsigned end = i + 100; i < end; i++) {
            text_line(&t, i);
            h = hash_words(&uncased, h, t.line, t.bytes);
        }
        if (h != strtoul(line[i / 100 - 1], NULL, 16))
            fail_msg("lines %u to %u: not as in tests/golden/words.txt", i - 100, i - 1);
    }
    free(text);
    free(t.text);
}

static void copy_word(void *user, const char *word, size_t bytes, bool too_long)
{
    assert_false(too_long);
    memcpy(user, word, bytes);
    ((char *)user)[bytes] = 0;
}

/* Expected words are those of normalizers.BertNormalizer().normalize_str. U+302E has class 224, U+1D165 216. */
static void marks_that_are_kept_are_sorted_between_starters(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {u8"a\u302E\U0001D165", u8"a\U0001D165\u302E"},
        {u8"a\u302E\u0301\U0001D165", u8"a\U0001D165\u302E"}, /* a mark that goes, of class 230 */
        {u8"a\u302E\u0902\U0001D165", u8"a\u302E\U0001D165"}, /* one of class 0: a starter that goes */
        {u8"a\u302E\u200B\U0001D165", u8"a\U0001D165\u302E"}, /* removed before it could divide */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const bool pause[256];
        static att_bert_normalizer w;
        char word[64] = "";
        att_bert_normalizer_init(&w, &uncased, copy_word, word);
        att_bert_normalizer_run(&w, (const unsigned char *)cases[i].text, strlen(cases[i].text), pause);
        att_bert_normalizer_end(&w);
        assert_string_equal(word, cases[i].word);
    }
}

static void count_too_long(void *user, const char *word, size_t bytes, bool too_long)
{
    (void)word;
    (void)bytes;
    *(int *)user += too_long;
}

/* Classes fall from 226 to 216 half way, so each mark of the second half would be moved before the whole first half:
 * 2.5e11 steps, if more marks were sorted than a word may have. */
static void a_million_marks_that_are_kept_take_linear_time(void **state)
{
    (void)state;
    enum { N = 1000000, MARK = 4 };
    char *s = malloc(N * MARK);
    for (int i = 0; i < N; i++)
        memcpy(s + i * MARK, i < N / 2 ? "\xF0\x9D\x85\xAD" : "\xF0\x9D\x85\xA5", MARK);
    static const bool pause[256];
    static att_bert_normalizer w;
    int too_long = 0;
    att_bert_normalizer_init(&w, &uncased, count_too_long, &too_long);
    assert_int_equal(att_bert_normalizer_run(&w, (const unsigned char *)s, N * MARK, pause), N * MARK);
    att_bert_normalizer_end(&w);
    assert_int_equal(too_long, 1);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_survives_encoding_and_decoding),
        cmocka_unit_test(each_maximal_invalid_subpart_is_one_replacement_character),
        cmocka_unit_test(every_character_is_classed_stripped_and_lowered_as_in_the_reference),
        cmocka_unit_test(words_of_ten_thousand_lines_equal_the_reference),
        cmocka_unit_test(marks_that_are_kept_are_sorted_between_starters),
        cmocka_unit_test(a_million_marks_that_are_kept_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
