/* Tokens by their text, special ones, and these by their role: of each layout of files. */
#include "fixtures/check.h"
#include "fixtures/marian_files.h"
#include "fixtures/sentencepiece.h"

/* Ids by att_token: pad, unk, bos, eos, cls, sep, mask */
static void assert_special(const att_tokenizer *t, const int32_t ids[7])
{
    for (int i = 0; i < 7; i++)
        if (att_tokenizer_special(t, (att_token)i) != ids[i])
            fail_msg("role %d: %d, expected %d", i, att_tokenizer_special(t, (att_token)i), ids[i]);
    assert_int_equal(att_tokenizer_special(t, (att_token)7), -1);
    assert_int_equal(att_tokenizer_special(t, (att_token)-1), -1);
}

/* Each token is found by its text. */
static void assert_found(const att_tokenizer *t)
{
    for (int32_t i = 0; i < att_tokenizer_size(t); i++) {
        const char *text = att_tokenizer_token(t, i);
        if (text && att_tokenizer_find(t, text, strlen(text)) != i)
            fail_msg("\"%s\" is token %d, not %d", text, i, att_tokenizer_find(t, text, strlen(text)));
    }
    assert_int_equal(att_tokenizer_find(t, "no token", 8), -1);
    assert_int_equal(att_tokenizer_find(t, "", 0), -1);
    assert_false(att_tokenizer_is_special(t, -1));
    assert_false(att_tokenizer_is_special(t, (int32_t)att_tokenizer_size(t)));
}

static att_tokenizer *open_config(const char *tokenizer_json, const char *config)
{
    remove_all();
    write_file("tokenizer.json", tokenizer_json);
    if (config)
        write_file("tokenizer_config.json", config);
    att_tokenizer *t;
    if (att_tokenizer_open(ctx, folder.path, &t) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    return t;
}

static void tokens_are_found_by_their_text_and_added_ones_may_be_special(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    assert_found(t);
    assert_int_equal(att_tokenizer_find(t, "##able", 6), 7);
    assert_int_equal(att_tokenizer_find(t, "[MASKED]", 8), 60); /* is not in the model's vocabulary */
    for (int32_t i = 0; i < att_tokenizer_size(t); i++)
        assert_int_equal(att_tokenizer_is_special(t, i), i <= 4 || i == 60);
    att_tokenizer_free(t);
}

static void tokenizer_config_states_special_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int32_t ids[7];
    } cases[] = {
        {NULL, {-1, 1, -1, -1, -1, -1, -1}}, /* the model's unknown token */
        {"{\"pad_token\": \"[PAD]\", \"cls_token\": {\"content\": \"[CLS]\"}, \"mask_token\": \"[MASK]\"}",
         {0, 1, -1, -1, 2, -1, 4}},
        {"{\"bos_token\": \"[CLS]\", \"eos_token\": \"[SEP]\", \"sep_token\": \"[SEP]\", \"unk_token\": \"[MASK]\", "
         "\"pad_token\": \"in no vocabulary\", \"cls_token\": null}",
         {-1, 4, 2, 3, -1, 3, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_tokenizer *t = open_config(SMALL, cases[i].config);
        assert_special(t, cases[i].ids);
        att_tokenizer_free(t);
    }
    att_tokenizer *t = open_config("{\"padding\":{\"pad_token\":\"b\"},\"tokenizer_config\":{\"eos_token\":\"b\"},"
                                   "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}",
                                   NULL);
    assert_special(t, (const int32_t[]){1, -1, -1, -1, -1, -1, -1}); /* a key that tokenizer.json does not have */
    att_tokenizer_free(t);
}

static void older_layouts_have_those_of_their_class(void **state)
{
    (void)state;
    static const struct {
        const char *vocab_txt, *vocab_json, *config;
        int32_t ids[7];
    } cases[] = {
        {"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", NULL, "{}", {0, 1, -1, -1, 2, 3, 4}},
        {"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n",
         NULL,
         "{\"bos_token\": \"[CLS]\", \"pad_token\": \"a\"}",
         {5, 1, 2, -1, 2, 3, 4}},
        {NULL, "{\"<|endoftext|>\": 0, \"a\": 1}", "{}", {-1, 0, 0, 0, -1, -1, -1}},
        {NULL, "{\"<|endoftext|>\": 0, \"a\": 1}", "{\"pad_token\": \"a\"}", {1, 0, 0, 0, -1, -1, -1}},
        {NULL,
         "{\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"<mask>\": 4}",
         "{\"tokenizer_class\": \"RobertaTokenizer\"}",
         {1, 3, 0, 2, 0, 2, 4}},
        {NULL,
         "{\"<|startoftext|>\": 0, \"<|endoftext|>\": 1}",
         "{\"tokenizer_class\": \"CLIPTokenizer\"}",
         {1, 1, 0, 1, -1, -1, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_tokenizer *t;
        remove_all();
        write_file("tokenizer_config.json", cases[i].config);
        if (cases[i].vocab_txt)
            write_file("vocab.txt", cases[i].vocab_txt);
        else {
            write_file("vocab.json", cases[i].vocab_json);
            write_file("merges.txt", "");
        }
        if (att_tokenizer_open(ctx, folder.path, &t) != ATT_OK)
            fail_msg("%s", att_error(ctx));
        assert_special(t, cases[i].ids);
        assert_found(t);
        att_tokenizer_free(t);
    }
}

static void sentencepiece_has_control_symbols(void **state)
{
    (void)state;
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(ctx, "tests/golden/unigram.spm", &t), ATT_OK);
    assert_special(t, (const int32_t[]){-1, 0, 1, 2, -1, -1, -1});
    assert_found(t);
    for (int32_t i = 0; i < att_tokenizer_size(t); i++)
        assert_int_equal(att_tokenizer_is_special(t, i), i <= 3); /* <unk>, <s>, </s>, <ctl> */
    att_tokenizer_free(t);
    assert_int_equal(att_tokenizer_open(ctx, "tests/golden/bpe.spm", &t), ATT_OK); /* without <s> */
    assert_special(t, (const int32_t[]){-1, 0, -1, 2, -1, -1, -1});
    assert_found(t);
    att_tokenizer_free(t);
}

static void other_names_of_control_symbols_are_read(void **state)
{
    (void)state;
    begin_model(ATT_PIECES_UNIGRAM); /* <unk>, <s>, </s> */
    put_piece("<begin>", 0, ATT_PIECE_CONTROL);
    put_piece("<end>", 0, ATT_PIECE_NORMAL); /* no control symbol */
    put_piece("<pad>", 0, ATT_PIECE_CONTROL);
    put_bytes(TRAINER, 47, "<end>", 5);
    put_bytes(TRAINER, 46, "<begin>", 7);
    att_tokenizer *t = open_model();
    assert_special(t, (const int32_t[]){5, 0, 3, -1, -1, -1, -1});
    att_tokenizer_free(t);
}

static void marian_has_the_three_that_it_needs(void **state)
{
    (void)state;
    att_tokenizer *t;
    remove_all();
    const int32_t n = (int32_t)write_marian_files(ctx, &folder);
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    assert_special(t, (const int32_t[]){n - 1, 1, -1, 0, -1, -1, -1});
    assert_found(t);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(att_tokenizer_is_special(t, i), i == 0 || i == 1 || i == n - 1);
    att_tokenizer_free(t);
    write_file("tokenizer_config.json", "{\"additional_special_tokens\": [\">>de<<\"]}");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    assert_true(att_tokenizer_is_special(t, att_tokenizer_find(t, ">>de<<", 6)));
    att_tokenizer_free(t);
    remove_file("source.spm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_found_by_their_text_and_added_ones_may_be_special),
        cmocka_unit_test(tokenizer_config_states_special_tokens),
        cmocka_unit_test(older_layouts_have_those_of_their_class),
        cmocka_unit_test(sentencepiece_has_control_symbols),
        cmocka_unit_test(other_names_of_control_symbols_are_read),
        cmocka_unit_test(marian_has_the_three_that_it_needs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down_model);
}
