/* Offsets: which bytes of the text each token stands for, of BERT, SentencePiece and Marian. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/marian_files.h"
#include "fixtures/sentencepiece.h"

/* "a[0,1] ##b[1,3] ", special tokens around with a star, of a text whose zero bytes count. */
static const char *spans_of(const att_tokenizer *t, const char *text, size_t bytes, const att_tokenize_options *o)
{
    static char out[4096];
    att_tokens x;
    if (att_tokenize(t, text, bytes, o, &x))
        fail_msg("%s", att_error(ctx));
    size_t n = 0;
    out[0] = 0;
    for (int64_t i = 0; i < x.count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s%s[%d,%d]", i ? " " : "", x.special[i] ? "*" : "",
                              att_tokenizer_token(t, x.ids[i]), (int)x.offsets[2 * i], (int)x.offsets[2 * i + 1]);
    assert_true(n < sizeof out);
    att_tokens_free(ctx, &x);
    return out;
}

#define OFFSETS ATT_OPTIONS(att_tokenize_options, .offsets = true)

typedef struct span_case {
    const char *text, *spans;
} span_case;

static void check_spans(const att_tokenizer *t, const span_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_string_equal(spans_of(t, cases[i].text, strlen(cases[i].text), OFFSETS), cases[i].spans);
}

static void of_bert(void **state)
{
    (void)state;
    static const span_case cases[] = {
        {"", "*[CLS][0,0] *[SEP][0,0]"},
        {"Hello unaffable!", "*[CLS][0,0] hello[0,5] unaff[6,11] ##able[11,15] ![15,16] *[SEP][0,0]"},
        {"  a\n\n\tb ", "*[CLS][0,0] a[2,3] b[6,7] *[SEP][0,0]"},
        /* accents, of one character or two, and capitals that become two characters */
        {u8"\u00DCber u\u0308ber", "*[CLS][0,0] uber[0,5] uber[6,12] *[SEP][0,0]"},
        {u8"i\u0301 \u0130", "*[CLS][0,0] i[0,1] i[4,6] *[SEP][0,0]"}, /* a mark at the end is in no token */
        /* ideographs without spaces, an emoji, a syllable that decomposes */
        {u8"a\u65E5\u672Cb", "*[CLS][0,0] a[0,1] \u65E5[1,4] \u672C[4,7] b[7,8] *[SEP][0,0]"},
        {u8"a \U0001F600!", "*[CLS][0,0] a[0,1] \U0001F600[2,6] ![6,7] *[SEP][0,0]"},
        {u8"\uD55C", u8"*[CLS][0,0] \u1112[0,3] ##\u1161[0,3] ##\u11AB[0,3] *[SEP][0,0]"},
        {u8"\uFF48\uFF49", "*[CLS][0,0] [UNK][0,6] *[SEP][0,0]"}, /* wide letters are not normalized */
        /* removed bytes (control characters, and bytes that are not UTF-8) belong to a token only if they are inside
         * it */
        {"\x01"
         "a\xFF"
         "b\xFE",
         "*[CLS][0,0] a[1,2] ##b[3,4] *[SEP][0,0]"},
        {"hel\xE2\x80\x8Blo\xC3", "*[CLS][0,0] hello[0,8] *[SEP][0,0]"}, /* a zero-width space; a cut character */
        {"hello  [MASK] a", "*[CLS][0,0] hello[0,5] [MASK][5,13] a[14,15] *[SEP][0,0]"}, /* with its spaces: lstrip */
        {"xyz [UNK]", "*[CLS][0,0] [UNK][0,3] [UNK][4,9] *[SEP][0,0]"},
    };
    att_tokenizer *t = open_text(SMALL);
    check_spans(t, cases, sizeof cases / sizeof cases[0]);
    assert_string_equal(spans_of(t, "a\0b", 3, OFFSETS), "*[CLS][0,0] a[0,1] ##b[2,3] *[SEP][0,0]");
    assert_string_equal(
        spans_of(t, "hello a b", 9, ATT_OPTIONS(att_tokenize_options, .offsets = true, .max_tokens = 4)),
        "*[CLS][0,0] hello[0,5] a[6,7] *[SEP][0,0]");
    assert_string_equal(
        spans_of(t, "[MASK]", 6, ATT_OPTIONS(att_tokenize_options, .offsets = true, .split_special = true)),
        "*[CLS][0,0] [[0,1] mask[1,5] ][5,6] *[SEP][0,0]");
    att_tokenizer_free(t);
}

static void of_a_truncated_start(void **state)
{
    (void)state;
    att_tokenizer_free(open_text(SMALL));
    write_file("tokenizer_config.json", "{\"truncation_side\": \"left\"}");
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    assert_string_equal(
        spans_of(t, "hello a b", 9, ATT_OPTIONS(att_tokenize_options, .offsets = true, .max_tokens = 4)),
        "*[CLS][0,0] a[6,7] b[8,9] *[SEP][0,0]");
    att_tokenizer_free(t);
}

static void of_sentencepiece(void **state)
{
    (void)state;
    static const span_case bpe[] = {
        /* the space before the text is at its start; of the bytes of a character the last one has it */
        {u8"Hello w\u00F6rld \u65E5 \U0001F600",
         u8"\u2581H[0,1] el[1,3] lo[3,5] \u2581w[5,7] \u00F6[7,9] r[9,10] ld[10,12] \u2581[12,13] <0xE6>[13,13] "
         u8"<0x97>[13,13] <0xA5>[13,16] \u2581[16,17] \U0001F600[17,21]"},
        /* spaces around are in no piece, or in the next one; a ligature is two letters */
        {u8"  a  \uFB01x  ", u8"\u2581a[2,3] \u2581f[3,5] ix[5,9]"},
        {"\xFF\xFE z", u8"\u2581[0,0] \uFFFD[0,1] \uFFFD[1,2] \u2581z[2,4]"},
        {"", ""},
        {"   ", ""},
    };
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(ctx, "tests/golden/bpe.spm", &t), ATT_OK);
    check_spans(t, bpe, sizeof bpe / sizeof bpe[0]);
    att_tokenizer_free(t);
}

/* Special tokens and language codes stand where they are; what is between them begins anew. */
static void of_marian(void **state)
{
    (void)state;
    att_tokenizer *t;
    remove_all();
    write_marian_files(ctx, &folder);
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    assert_string_equal(spans_of(t, ">>de<< a</s> a<pad>", 19, OFFSETS),
                        u8">>de<<[0,6] \u2581a[7,8] </s>[8,12] \u2581a[13,14] <pad>[14,19] *</s>[0,0]");
    assert_string_equal(spans_of(t, "a\xFF", 2, ATT_OPTIONS(att_tokenize_options, .offsets = true, .target = true)),
                        u8"\u2581a[0,1] \uFFFD[1,2] *</s>[0,0]");
    att_tokenizer_free(t);
    remove_file("source.spm");
}

/* There and back, with each allocation failing in turn. */
static void check_memory(const char *path)
{
    static const char text[] =
        u8"Hello w\u00F6rld \u65E5\uD55C, hello \U0001F600 <pad> [MASK] a b c d e f g h i j k l m n";
    fail_alloc f = {0};
    att_ctx *c = fail_open(&f);
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(c, path, &t), ATT_OK);
    const long live = f.live;
    bool done = false;
    for (long n = 1; !done; n++) {
        att_tokens x;
        att_text back = {0};
        f.fail_at = f.calls + n;
        att_status s = att_tokenize(t, text, sizeof text - 1, OFFSETS, &x);
        if (s)
            assert_true(!x.ids && !x.offsets && !x.special);
        else
            s = att_detokenize(t, x.ids, x.count, &back);
        done = s == ATT_OK;
        assert_true(done == (f.calls < f.fail_at));
        assert_true(done || s == ATT_ERR_MEMORY);
        att_tokens_free(c, &x);
        att_text_free(c, &back);
        assert_int_equal(f.live, live);
    }
    att_tokenizer_free(t);
    att_close(c);
    assert_int_equal(f.live, 0);
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    att_tokenizer_free(open_text(SMALL));
    write_file("tokenizer_config.json", "{\"clean_up_tokenization_spaces\": true}");
    check_memory(folder.path);
    check_memory("tests/golden/unigram.spm");
    check_memory("tests/golden/bpe.spm");
    remove_all();
    write_marian_files(ctx, &folder);
    check_memory(folder.path);
    remove_file("source.spm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_bert),
        cmocka_unit_test(of_a_truncated_start),
        cmocka_unit_test(of_sentencepiece),
        cmocka_unit_test(of_marian),
        cmocka_unit_test(every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down_model);
}
