/* Tokenizers of tokenizer.json, rule by rule: which bytes a token stands for, what is read, and how long it takes. */
#include "fixtures/check.h"
#include "io/json_scan.h"
#include "text/pipeline/regex.h"
#include "fixtures/tokenizer.h"

#include <math.h>

/* A tokenizer.json of a model and other settings, each followed by a comma. */
#define FILE_OF(settings, model) "{" settings "\"model\":{" model "}}"

/* Returns the ids of a text and the bytes that they stand for: "3[0,2] 4[2,5]". */
static const char *spans_of(const att_tokenizer *t, const char *text, size_t bytes)
{
    static char out[2000];
    att_tokens x;
    if (att_tokenize(t, text, bytes, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x))
        fail_msg("%s", att_error(ctx));
    size_t n = 0;
    *out = 0;
    for (int64_t i = 0; i < x.count && n < sizeof out; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%d[%d,%d]", i ? " " : "", (int)x.ids[i],
                              (int)x.offsets[2 * i], (int)x.offsets[2 * i + 1]);
    assert_true(n < sizeof out);
    att_tokens_free(ctx, &x);
    return out;
}

/* The spans of a text with the tokenizer of a file */
static void check_spans(const char *file, const char *text, const char *spans)
{
    att_tokenizer *t = open_text(file);
    assert_string_equal(spans_of(t, text, strlen(text)), spans);
    att_tokenizer_free(t);
}

/* ---- bytes of a character with its prefix or suffix */

/* "#" and "b" are in no vocabulary, so that they become bytes. */
#define FALLBACK(settings, merges)                                                                                     \
    FILE_OF("", "\"type\":\"BPE\",\"byte_fallback\":true," settings                                                    \
                "\"vocab\":{\"a\":0,\"<0x23>\":1,\"<0x62>\":2,\"<0xC3>\":3,\"<0xA9>\":4,\"?\":5,\"<0x23>0x62>\":6},"   \
                "\"merges\":[" merges "]")
#define PREFIX(text) "\"continuing_subword_prefix\":\"" text "\","
#define SUFFIX(text) "\"end_of_word_suffix\":\"" text "\","

static void bytes_of_a_prefix_or_suffix_stand_for_their_character(void **state)
{
    (void)state;
    check_spans(FALLBACK(PREFIX("##"), ""), "ab", "0[0,1] 1[1,2] 1[1,2] 2[1,2]");
    check_spans(FALLBACK(PREFIX("#"), ""), "b\xC3\xA9\x62", "2[0,1] 1[1,3] 3[1,3] 4[1,3] 1[3,4] 2[3,4]");
    check_spans(FALLBACK(SUFFIX("#"), ""), "abb", "0[0,1] 2[1,2] 2[2,3] 1[2,3]");
    check_spans(FALLBACK(PREFIX("#") SUFFIX("##"), ""), "\xC3\xA9\xC3\xA9",
                "3[0,2] 4[0,2] 1[2,4] 3[2,4] 4[2,4] 1[2,4] 1[2,4]");
    check_spans(FALLBACK(PREFIX("#"), "[\"<0x23>\",\"<0x62>\"]"), "abb", "0[0,1] 6[1,2] 6[2,3]");
    /* as in the package, what is unknown is one token after the bytes that it has skipped */
    check_spans(FALLBACK(PREFIX("#") "\"unk_token\":\"?\",\"fuse_unk\":true,", ""), "xbxx", "1[0,1] 2[0,1] 5[1,4]");
}

static void a_long_word_of_bytes_with_a_prefix_reads_no_memory_beyond_it(void **state)
{
    (void)state;
    enum { LETTERS = 50000 };
    static char text[LETTERS];
    att_tokens x;
    memset(text, 'b', LETTERS);
    att_tokenizer *t = open_text(FALLBACK(PREFIX("################") SUFFIX("#"), ""));
    for (int offsets = 0; offsets < 2; offsets++) {
        assert_int_equal(att_tokenize(t, text, LETTERS, ATT_OPTIONS(att_tokenize_options, .offsets = offsets), &x),
                         ATT_OK);
        assert_int_equal(x.count, 17 * LETTERS - 16 + 1);
        for (int64_t i = 0; i < x.count && offsets; i++)
            assert_in_range(x.offsets[2 * i + 1], x.offsets[2 * i] + 1, LETTERS);
        att_tokens_free(ctx, &x);
    }
    att_tokenizer_free(t);
}

/* ---- offsets without spaces */

/* The space before "\u304C" is not a byte of the text. Its token therefore has the bytes of the character, and is
 * trimmed to nothing.
 */
static void offsets_are_trimmed_by_characters(void **state)
{
    (void)state;
#define TRIMMED(post)                                                                                                  \
    FILE_OF("\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},\"post_processor\":{" post "},",     \
            "\"type\":\"BPE\",\"vocab\":{\"\u0120\":0,\"\u00E3\":1,\"\u0123\":2,\"\u012E\":3,\"\u0120\u0120\":4,"      \
            "\"\u00C2\":5,\"\u00B2\":6},\"merges\":[[\"\u0120\",\"\u0120\"]]")
    static const char byte_level[] = TRIMMED("\"type\":\"ByteLevel\""),
                      roberta[] = TRIMMED("\"type\":\"RobertaProcessing\",\"cls\":[\"\u0120\u0120\",4],"
                                          "\"sep\":[\"\u00C2\",5]");
    check_spans(byte_level, u8"\u304C", "0[0,0] 1[0,3] 2[0,3] 3[0,3]");
    check_spans(byte_level, u8"\u00B2   \u304C", "0[0,0] 5[0,2] 6[0,2] 4[4,4] 0[5,5] 1[5,8] 2[5,8] 3[5,8]");
    check_spans(roberta, u8"\u304C", "4[0,0] 0[0,0] 1[0,3] 2[0,3] 3[0,3] 5[0,0]");
    check_spans(byte_level, "\xE3\x81", "0[0,0]");
}

/* ---- long texts */

/* 300 KB of two marks in the wrong order: moving each to its place would take 10^10 steps. */
static void a_long_run_of_marks_takes_linear_time(void **state)
{
    (void)state;
    enum { PAIRS = 75000 };
    static const char *const forms[] = {"NFC", "NFD", "NFKC", "NFKD"};
    static char text[4 * PAIRS + 1], file[300];
    for (size_t i = 0; i < PAIRS; i++)
        memcpy(text + 4 * i, u8"\u0315\u0300", 4);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        att_tokens x;
        snprintf(file, sizeof file,
                 FILE_OF("\"normalizer\":{\"type\":\"%s\"},", "\"type\":\"BPE\",\"merges\":[],"
                                                              "\"vocab\":{\"\u0315\":0,\"\u0300\":1}"),
                 forms[i]);
        att_tokenizer *t = open_text(file);
        assert_int_equal(att_tokenize(t, text, 4 * PAIRS, NULL, &x), ATT_OK);
        assert_int_equal(x.count, 2 * PAIRS);
        for (int64_t k = 0; k < x.count; k++)
            assert_int_equal(x.ids[k], k < PAIRS);
        att_tokens_free(ctx, &x);
        att_tokenizer_free(t);
    }
}

/* A token that takes the spaces after it, in spaces: each of them is one. */
static void spaces_are_counted_once_for_many_tokens(void **state)
{
    (void)state;
    enum { SPACES = 200000 };
    static char text[SPACES];
    att_tokens x;
    memset(text, ' ', SPACES);
    att_tokenizer *t = open_text(FILE_OF("\"added_tokens\":[{\"id\":0,\"content\":\" \",\"rstrip\":true,"
                                         "\"normalized\":false}],",
                                         "\"type\":\"BPE\",\"merges\":[],\"vocab\":{\" \":0}"));
    assert_int_equal(att_tokenize(t, text, SPACES, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x), ATT_OK);
    assert_int_equal(x.count, SPACES);
    for (int64_t i = 0; i < SPACES; i++)
        assert_true(x.offsets[2 * i] == i && x.offsets[2 * i + 1] == SPACES);
    att_tokens_free(ctx, &x);
    att_tokenizer_free(t);
}

/* No match is long, but of each try PCRE2 takes 2^22 steps; it does not count those of the second one. */
static void the_time_of_an_expression_is_limited_for_a_text(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(?:a|a){0,22}b|a", "[\\s\\S]{0,65535}b|a"};
    enum { LETTERS = 100000 };
    static char text[LETTERS];
    memset(text, 'a', LETTERS);
    for (size_t i = 0; i < 2; i++) {
        att_settings s = {.ctx = ctx, .path = "file", .within = ""};
        att_regex *r = att_regex_new(&s, "Regex", patterns[i]);
        att_regex_match m = {.time = 20000000};
        size_t begin, end = 0;
        while (att_regex_find(r, &m, text, LETTERS, end, &begin, &end))
            assert_int_equal(end - begin, 1);
        assert_int_equal(m.status, ATT_ERR_UNSUPPORTED);
        check_message(ctx, patterns[i]);
        check_message(ctx, "takes too long on this text");
        assert_in_range(end, 1, LETTERS - 1);
        att_regex_match_free(&m);
        att_regex_free(r);
    }
}

/* ---- normalization */

static void of_added_tokens_with_the_same_text_the_first_is_found(void **state)
{
    (void)state;
#define SAME(first, second)                                                                                            \
    FILE_OF("\"normalizer\":{\"type\":\"NFKC\"},\"added_tokens\":[{\"id\":" first ",\"content\":\"\u00E9 \","          \
            "\"normalized\":true},{\"id\":" second ",\"content\":\"e\u0301\u00A0\",\"normalized\":true}],",            \
            "\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]")
    check_spans(SAME("1", "2"), u8"a\u00E9 ", "0[0,1] 1[1,4]");
    check_spans(SAME("2", "1"), u8"e\u0301 a", "1[0,4] 0[4,5]");
}

/* ---- zero bytes */

static void a_zero_byte_is_a_character_like_any_other(void **state)
{
    (void)state;
    static const char text[] = "ab\0\0a\0";
    static const struct {
        const char *file, *spans;
    } cases[] = {
        {FILE_OF("", "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\\u0000\":2,\"\\u0000\\u0000\":3,\"a\\u0000\":4},"
                     "\"merges\":[[\"\\u0000\",\"\\u0000\"],[\"a\",\"\\u0000\"]]"),
         "0[0,1] 1[1,2] 3[2,4] 4[4,6]"},
        {FILE_OF("", "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\\u0000\":2,\"\\u0000\\u0000\":3,\"a\\u0000\":4},"
                     "\"merges\":[\"\\u0000 \\u0000\",\"a \\u0000\"]"),
         "0[0,1] 1[1,2] 3[2,4] 4[4,6]"},
        {FILE_OF("", "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",-9],[\"a\",-1],[\"b\",-2],[\"\\u0000\",-3],"
                     "[\"a\\u0000\",-1.5]]"),
         "1[0,1] 2[1,2] 3[2,3] 3[3,4] 4[4,6]"},
        {FILE_OF("", "\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"##\","
                     "\"max_input_chars_per_word\":9,\"vocab\":{\"?\":0,\"ab\":1,\"##\\u0000\":2,\"##\\u0000a\":3}"),
         "1[0,2] 2[2,3] 3[3,5] 2[5,6]"},
        {FILE_OF("\"normalizer\":{\"type\":\"Lowercase\"},"
                 "\"added_tokens\":[{\"id\":2,\"content\":\"\\u0000\",\"normalized\":false},"
                 "{\"id\":3,\"content\":\"\\u0000A\",\"normalized\":true}],",
                 "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]"),
         "0[0,1] 1[1,2] 2[2,3] 2[3,4] 0[4,5] 2[5,6]"},
        {FILE_OF("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u0000\"},\"content\":\"b\"},",
                 "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]"),
         "0[0,1] 1[1,2] 1[2,3] 1[3,4] 0[4,5] 1[5,6]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_tokenizer *t = open_text(cases[i].file);
        assert_string_equal(spans_of(t, text, 6), cases[i].spans);
        att_tokenizer_free(t);
    }
    att_text decoded;
    att_tokenizer *t = open_text(cases[0].file);
    assert_int_equal(att_detokenize(t, (const int32_t[]){4, 3}, 2, &decoded), ATT_OK);
    assert_int_equal(decoded.bytes, 5);
    assert_memory_equal(decoded.text, "a\0 \0\0", 5);
    att_text_free(ctx, &decoded);
    att_tokenizer_free(t);
}

static void where_a_text_may_have_no_zero_byte_the_sentence_says_so(void **state)
{
    (void)state;
    static const char *const files[] = {
        FILE_OF("", "\"type\":\"BPE\",\"unk_token\":\"a\\u0000\",\"vocab\":{\"a\\u0000\":0},\"merges\":[]"),
        FILE_OF("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\\u0000\"},\"content\":\"\"},",
                "\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]"),
        FILE_OF("\"a\\u0000\":1,", "\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]"),
    };
    att_tokenizer *t;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        remove_all();
        write_file("tokenizer.json", files[i]);
        assert_int_not_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
        check_message(ctx, "NUL");
    }
}

/* ---- scores */

/* Expected: what Tokenizer.from_str reads and to_str writes again. Some are the next number to the correct one. */
static void scores_are_read_as_the_reference_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"-11.591346724873130", -0x1.72ec4ff77da86p+3},
        {"-10.3235922883876583", -0x1.4a5ade36fb9c0p+3},
        {"-10.665256678022223", -0x1.5549c85f71a24p+3},
        {"-3.1415926535897931", -0x1.921fb54442d18p+1},
        {"0.1", 0x1.999999999999ap-4},
        {"1e23", 0x1.52d02c7e14af6p+76},
        {"18446744073709551615.5", 0x1.0000000000000p+64},
        {"18446744073709551616.5", 0x1.0000000000000p+64},
        {"1844674407370955161.65", 0x1.999999999999ap+60},
        {"123456789012345678901234567890", 0x1.8ee90ff6c373ep+96},
        {"-0", -0x0.0p+0},
        {"0e999", 0x0.0p+0},
        {"5e-324", 0x0.0000000000001p-1022},
        {"123456789e-330", 0x0.0000000000019p-1022},
        {"1.7976931348623157e308", 0x1.fffffffffffffp+1023},
        {"-9.8765432109876543210e-5", -0x1.9e409341bc812p-14},
        {"12345678901234567890123e-22", 0x1.3c0ca428c59fbp+0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        double x;
        snprintf(text, sizeof text, " %s]", cases[i].text);
        att_json_scan c = {text, text + strlen(text)};
        if (!att_json_number(&c, &x) || x != cases[i].value || signbit(x) != signbit(cases[i].value) || *c.at != ']')
            fail_msg("%s: %a, not %a", cases[i].text, x, cases[i].value);
    }
    for (size_t i = 0; i < 6; i++) {
        char text[64] = "";
        double x;
        strcat(text, ((const char *const[]){"", "-", "1.", "1e", "1e309", "99e400"})[i]);
        assert_false(att_json_number(&(att_json_scan){text, text + strlen(text)}, &x));
    }
}

/* All segmentations into these pieces are about equally probable: which is best depends on the last bits. */
static void a_long_repeat_is_split_as_by_the_reference(void **state)
{
    (void)state;
    static const int32_t ids[] = {2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    att_tokenizer *t = open_text(FILE_OF("", "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",-20.0],"
                                             "[\"0\",-11.591346724873130],[\"00\",-10.3235922883876583],"
                                             "[\"000\",-10.665256678022223]]"));
    char text[40];
    att_tokens x;
    memset(text, '0', sizeof text);
    assert_int_equal(att_tokenize(t, text, sizeof text, NULL, &x), ATT_OK);
    assert_int_equal(x.count, sizeof ids / sizeof ids[0]);
    assert_memory_equal(x.ids, ids, sizeof ids);
    att_tokens_free(ctx, &x);
    att_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_a_prefix_or_suffix_stand_for_their_character),
        cmocka_unit_test(offsets_are_trimmed_by_characters),
        cmocka_unit_test(a_long_run_of_marks_takes_linear_time),
        cmocka_unit_test(spaces_are_counted_once_for_many_tokens),
        cmocka_unit_test(the_time_of_an_expression_is_limited_for_a_text),
        cmocka_unit_test(of_added_tokens_with_the_same_text_the_first_is_found),
        cmocka_unit_test(a_zero_byte_is_a_character_like_any_other),
        cmocka_unit_test(where_a_text_may_have_no_zero_byte_the_sentence_says_so),
        cmocka_unit_test(scores_are_read_as_the_reference_reads_them),
        cmocka_unit_test(a_long_repeat_is_split_as_by_the_reference),
        cmocka_unit_test(a_long_word_of_bytes_with_a_prefix_reads_no_memory_beyond_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
