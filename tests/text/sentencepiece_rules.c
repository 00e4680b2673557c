/* SentencePiece: each rule, on models of a few pieces. */
#include "fixtures/check.h"
#include "fixtures/sentencepiece.h"

#define MARK ATT_WORD_MARK

/* A text, its tokens, and what these make again, if not the text. */
typedef const char *rule[3];

static void check(const rule *rules, size_t n)
{
    att_tokenizer *t = open_model();
    for (size_t i = 0; i < n; i++) {
        att_tokens tokens;
        att_text text;
        assert_string_equal(tokens_of(t, rules[i][0], strlen(rules[i][0]), NULL), rules[i][1]);
        assert_int_equal(att_tokenize(t, rules[i][0], strlen(rules[i][0]), NULL, &tokens), ATT_OK);
        assert_int_equal(att_detokenize(t, tokens.ids, tokens.count, &text), ATT_OK);
        assert_string_equal(text.text, rules[i][2] ? rules[i][2] : rules[i][0]);
        assert_int_equal(text.bytes, strlen(text.text));
        att_text_free(ctx, &text);
        assert_null(text.text);
        att_tokens_free(ctx, &tokens);
    }
    att_tokenizer_free(t);
}

#define CHECK(...) check((const rule[]){__VA_ARGS__}, sizeof((const rule[]){__VA_ARGS__}) / sizeof(rule))

/* Pieces of the type NORMAL, in one row of texts; the first has score -1, the next -2, ... */
static void put_pieces(const char *const *texts)
{
    for (int i = 0; texts[i]; i++)
        put_piece(texts[i], (float)-i - 1, ATT_PIECE_NORMAL);
}

#define PIECES(...) put_pieces((const char *const[]){__VA_ARGS__, NULL})

static void unigram_takes_the_pieces_of_the_best_sum(void **state)
{
    (void)state;
    begin_model(ATT_PIECES_UNIGRAM);
    PIECES(MARK, "a", "b", "ab", "abc", "c", "bc");
    /* a b = -5, ab = -4; ab c = -10, abc = -5, a bc = -9 */
    CHECK({"ab", MARK " ab"}, {"abc", MARK " abc"}, {"ba", MARK " b a"}, {"", ""});
    begin_model(ATT_PIECES_UNIGRAM);
    put_piece("a", -1, ATT_PIECE_NORMAL);
    put_piece("aa", -2, ATT_PIECE_NORMAL);
    put_setting(NORMALIZER_SPEC, ADD_PREFIX, 0);
    CHECK({"aa", "aa"}, {"aaa", "a aa"}); /* of equal sums that whose last piece begins first */
}

static void bpe_merges_the_best_pair_and_of_equal_ones_the_leftmost(void **state)
{
    (void)state;
    begin_model(ATT_PIECES_BPE);
    PIECES("bc", "ab", "aa", "cd", "abc", "a", "b", "c", "d", MARK, "xy");
    put_setting(NORMALIZER_SPEC, ADD_PREFIX, 0);
    CHECK({"abc", "abc"}, {"abcd", "abc d"} /* bc, then a bc, before cd */, {"abd", "ab d"}, {"aaa", "aa a"},
          {"xyx", "xy <unk>", "xy \xE2\x81\x87 "});
}

static void unknown_neighbors_are_one_token(void **state)
{
    (void)state;
    for (int model = ATT_PIECES_UNIGRAM; model <= ATT_PIECES_CHAR; model++) {
        begin_model((att_piece_model)model);
        PIECES("a", MARK);
        put_setting(NORMALIZER_SPEC, ADD_PREFIX, 0);
        if (model != ATT_PIECES_WORD)
            CHECK({"xyaz", "<unk> a <unk>", " \xE2\x81\x87 a \xE2\x81\x87 "},
                  {"\xE6\x97\xA5\xE6\x9C\xAC", "<unk>", " \xE2\x81\x87 "});
        else
            CHECK({"a", "a"}, {"ab", "<unk>", " \xE2\x81\x87 "}, {"x y", "<unk>", " \xE2\x81\x87 "});
    }
}

static void unknown_characters_are_reported_one_by_one(void **state)
{
    (void)state;
    for (int model = ATT_PIECES_UNIGRAM; model <= ATT_PIECES_CHAR; model++) {
        begin_model((att_piece_model)model);
        PIECES("a", MARK "a", MARK);
        att_tokenizer *t = open_model();
        assert_string_equal(unknown_of(t, "a"), "");
        assert_string_equal(unknown_of(t, "a x\xE6\x97\xA5"),
                            model == ATT_PIECES_WORD ? MARK "x\xE6\x97\xA5" : "x \xE6\x97\xA5");
        att_tokenizer_free(t);
    }
}

static void what_is_unknown_is_spelled_in_bytes(void **state)
{
    (void)state;
    begin_model(ATT_PIECES_BPE);
    PIECES("a", MARK);
    put_byte_pieces();
    CHECK({"a\xC3\xA9", MARK " a <0xC3> <0xA9>"}, {"\xFF", MARK " <0xEF> <0xBF> <0xBD>", "\xEF\xBF\xBD"});
    att_tokenizer *t = open_model();
    assert_string_equal(tokens_of(t, "a\0", 2, NULL), MARK " a <0x00>");
    const int32_t byte = 3 + 2; /* the id of <0x00> */
    static const struct {
        unsigned char bytes[6];
        const char *text;
    } broken[] = {{{0xE6, 0x97}, "\xEF\xBF\xBD\xEF\xBF\xBD"},
                  {{0xE6, 'x', 0xA5}, "\xEF\xBF\xBDx\xEF\xBF\xBD"},
                  {{0xC0, 0xAF}, "\xEF\xBF\xBD\xEF\xBF\xBD"},
                  {{0xF0, 0x9F, 0x98, 0x80, 0x80}, "\xF0\x9F\x98\x80\xEF\xBF\xBD"},
                  {{0xED, 0xA0, 0x80}, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        int32_t ids[6];
        int64_t n = 0;
        for (; n < 6 && broken[i].bytes[n]; n++)
            ids[n] = byte + broken[i].bytes[n];
        att_text text;
        assert_int_equal(att_detokenize(t, ids, n, &text), ATT_OK);
        assert_string_equal(text.text, broken[i].text);
        att_text_free(ctx, &text);
    }
    att_tokenizer_free(t);
}

static void pieces_of_the_user_are_kept_whole_and_control_symbols_are_not_found(void **state)
{
    (void)state;
    for (int model = ATT_PIECES_UNIGRAM; model <= ATT_PIECES_BPE; model++) {
        begin_model((att_piece_model)model);
        PIECES("ab", "bc", "cd", "a", "b", "c", "d", MARK, "<", "s", ">");
        put_piece("bcd", 0, ATT_PIECE_USER);
        put_setting(NORMALIZER_SPEC, ADD_PREFIX, 0);
        CHECK({"abcd", "a bcd"}, {"abd", "ab d"}, {"<s>", "< s >"});
    }
}

static void white_space_is_kept_or_dropped_as_the_model_says(void **state)
{
    (void)state;
    static const struct {
        bool prefix, remove, escape, suffix;
        const char *tokens, *again;
    } cases[] = {
        {true, true, true, false, MARK " a " MARK " b", "a b"},
        {false, true, true, false, "a " MARK " b", "a b"},
        {false, false, true, false, MARK " " MARK " a " MARK " " MARK " b " MARK, "  a  b "},
        {true, false, true, false, MARK " " MARK " " MARK " a " MARK " " MARK " b " MARK, "  a  b "},
        {true, true, false, false, "<unk> a <unk> b", " \xE2\x81\x87 a \xE2\x81\x87 b"},
        {true, true, true, true, "a " MARK " b " MARK, "a b "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_model(ATT_PIECES_CHAR);
        PIECES("a", "b", MARK);
        put_setting(NORMALIZER_SPEC, ADD_PREFIX, cases[i].prefix);
        put_setting(NORMALIZER_SPEC, REMOVE_SPACES, cases[i].remove);
        put_setting(NORMALIZER_SPEC, ESCAPE_SPACES, cases[i].escape);
        put_setting(TRAINER, SUFFIX, cases[i].suffix);
        CHECK({"  a  b ", cases[i].tokens, cases[i].again});
    }
}

static void ids_and_limits_are_checked(void **state)
{
    (void)state;
    begin_model(ATT_PIECES_UNIGRAM);
    PIECES("a", MARK);
    att_tokenizer *t = open_model();
    att_text text = {.bytes = 7};
    assert_int_equal(att_detokenize(t, (const int32_t[]){3, 5}, 2, &text), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_detokenize: ids[1] is 5, not in [0, 5)");
    assert_int_equal(text.bytes, 0);
    assert_int_equal(att_detokenize(t, (const int32_t[]){-1}, 1, &text), ATT_ERR_ARGUMENT);
    assert_int_equal(att_detokenize(t, NULL, 0, &text), ATT_OK);
    assert_string_equal(text.text, "");
    att_text_free(ctx, &text);
    assert_int_equal(att_tokenizer_size(t), 5);
    assert_string_equal(att_tokenizer_token(t, 3), "a");
    assert_null(att_tokenizer_token(t, 5));
    assert_null(att_tokenizer_token(t, -1));
    static const struct {
        int64_t max;
        bool truncated;
    } cuts[] = {{1, true}, {2, true}, {3, true}, {4, false}};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        att_tokens tokens;
        assert_int_equal(
            att_tokenize(t, "aax", 3, ATT_OPTIONS(att_tokenize_options, .max_tokens = cuts[i].max), &tokens), ATT_OK);
        assert_int_equal(tokens.count, cuts[i].max);
        assert_int_equal(tokens.truncated, cuts[i].truncated);
        att_tokens_free(ctx, &tokens);
    }
    att_tokenizer_free(t);
    att_tokenizer *words = open_text(SMALL);
    assert_int_equal(att_detokenize(words, (const int32_t[]){2, 8, 13, 3}, 4, &text), ATT_OK);
    assert_string_equal(text.text, "hello ##s"); /* it has no decoder, which would join them */
    att_text_free(ctx, &text);
    att_tokenizer_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unigram_takes_the_pieces_of_the_best_sum),
        cmocka_unit_test(bpe_merges_the_best_pair_and_of_equal_ones_the_leftmost),
        cmocka_unit_test(unknown_neighbors_are_one_token),
        cmocka_unit_test(unknown_characters_are_reported_one_by_one),
        cmocka_unit_test(what_is_unknown_is_spelled_in_bytes),
        cmocka_unit_test(pieces_of_the_user_are_kept_whole_and_control_symbols_are_not_found),
        cmocka_unit_test(white_space_is_kept_or_dropped_as_the_model_says),
        cmocka_unit_test(ids_and_limits_are_checked),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down_model);
}
