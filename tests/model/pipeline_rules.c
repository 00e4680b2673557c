/* Tokenizers of tokenizer.json, rule by rule: which bytes a token stands for, what is read, and how long it takes. */
#include "check.h"
#include "tokenizer_help.h"

/* A tokenizer.json of a model and other settings, each followed by a comma. */
#define FILE_OF(settings, model) "{" settings "\"model\":{" model "}}"

/* The ids of a text and the bytes that they stand for: "3[0,2] 4[2,5]". */
static const char *spans_of(const att_tokenizer *t, const char *text, size_t bytes)
{
    static char out[2000];
    att_tokens x;
    if (att_encode(t, text, bytes, ATT_OPTIONS(att_encode_options, .offsets = true), &x))
        fail_msg("%s", att_error(ctx));
    size_t n = 0;
    *out = 0;
    for (int64_t i = 0; i < x.count && n < sizeof out; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%d[%d,%d]", i ? " " : "", (int)x.ids[i],
                              (int)x.offsets[2 * i], (int)x.offsets[2 * i + 1]);
    assert_true(n < sizeof out);
    att_tokens_free(t, &x);
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
        assert_int_equal(att_encode(t, text, LETTERS, ATT_OPTIONS(att_encode_options, .offsets = offsets), &x), ATT_OK);
        assert_int_equal(x.count, 17 * LETTERS - 16 + 1);
        for (int64_t i = 0; i < x.count && offsets; i++)
            assert_in_range(x.offsets[2 * i + 1], x.offsets[2 * i] + 1, LETTERS);
        att_tokens_free(t, &x);
    }
    att_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_a_prefix_or_suffix_stand_for_their_character),
        cmocka_unit_test(a_long_word_of_bytes_with_a_prefix_reads_no_memory_beyond_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
