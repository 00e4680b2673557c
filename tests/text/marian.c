/* Marian's tokenizer: the ids and texts of the class MarianTokenizer, and each way in which its files can be wrong. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/marian_files.h"
#include "fixtures/text_lines.h"
#include "fixtures/sentencepiece.h"

static void write_folder(void)
{
    write_marian_files(ctx, &folder);
    remove_file("special_tokens_map.json");
}

static att_tokenizer *open_folder(void)
{
    att_tokenizer *t;
    if (att_tokenizer_open(ctx, folder.path, &t) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    return t;
}

/* ---- as the reference */

/* Decodes the line as Python does. */
static size_t put_line(text_lines *lines, unsigned number, char *to)
{
    char *at = to;
    text_line(lines, number);
    for (size_t i = 0; i < lines->bytes;) {
        uint32_t c;
        i += att_utf8_decode(lines->line + i, lines->bytes - i, &c);
        at += att_utf8_encode(c, at);
    }
    return (size_t)(at - to);
}

static size_t put(char *to, const char *text)
{
    memcpy(to, text, strlen(text));
    return strlen(text);
}

/* Text `number`: a line, perhaps with a language code, or two with something between. */
static size_t make_text(text_lines *lines, unsigned number, char *to)
{
    static const char *const between[] = {"</s>", "<pad>", " <unk> ", ">>de<<", "</s>>>fr<< ", "<pad></s>", ">>", "<<"};
    lines->random = ((uint64_t)1 << 33) + number;
    const unsigned other = below(lines, N_TEXT_LINES), kind = below(lines, 4);
    const unsigned middle = kind > 1 ? below(lines, sizeof between / sizeof between[0]) : 0;
    size_t n = kind == 1 ? put(to, ">>de<<") : 0;
    n += put_line(lines, number, to + n);
    if (kind > 1) {
        n += put(to + n, between[middle]);
        n += put_line(lines, other, to + n);
    }
    return n;
}

static uint32_t hash_ids(const att_tokenizer *t, const char *text, size_t bytes, bool target, uint32_t h)
{
    att_tokens tokens;
    assert_int_equal(att_tokenize(t, text, bytes, ATT_OPTIONS(att_tokenize_options, .target = target), &tokens),
                     ATT_OK);
    for (int64_t i = 0; i < tokens.count; i++)
        h = hash_int(h, (uint32_t)tokens.ids[i]);
    att_tokens_free(ctx, &tokens);
    return h;
}

static uint32_t hash_line(const att_tokenizer *t, text_lines *lines, unsigned number, uint32_t h)
{
    static char text[8 * MAX_TEXT_LINE];
    const size_t bytes = make_text(lines, number, text);
    h = hash_ids(t, text, bytes, false, h);
    h = hash_ids(t, text, bytes, true, h);
    int32_t ids[20];
    att_text again;
    lines->random = ((uint64_t)1 << 32) + number;
    for (int i = 0; i < 20; i++)
        ids[i] = (int32_t)below(lines, (unsigned)att_tokenizer_size(t));
    assert_int_equal(att_detokenize(t, ids, 20, &again), ATT_OK);
    h = hash_bytes(h, again.text, again.bytes);
    att_text_free(ctx, &again);
    return h;
}

static void ids_and_texts_equal_the_reference(void **state)
{
    (void)state;
    static text_lines lines;
    enum { ROWS = N_TEXT_LINES / 10 };
    char *text, *row[ROWS];
    write_folder();
    att_tokenizer *t = open_folder();
    text_lines_init(&lines);
    assert_int_equal(golden_lines("marian.txt", &text, row, ROWS), ROWS);
    for (unsigned i = 0; i < ROWS; i += (unsigned)check_step(7)) {
        uint32_t h = HASH_START;
        for (unsigned k = 0; k < 10; k++)
            h = hash_line(t, &lines, 10 * i + k, h);
        if (h != strtoul(row[i], NULL, 16))
            fail_msg("row %u: not as in tests/golden/marian.txt", i);
    }
    free(text);
    free(lines.text);
    att_tokenizer_free(t);
}

/* ---- rules */

static const char small_vocabulary[] = "{\"</s>\": 0, \"<unk>\": 1, \"" ATT_WORD_MARK "\": 2, \"" ATT_WORD_MARK
                                       "a\": 3, \"c\": 4, \"\\u0062c\": 5, \">>de<<\": 6, \"<pad>\": 8}";

/* Small models; the vocabulary has most of their pieces, with other ids. */
static void write_small_folder(void)
{
    char to[128];
    begin_model(ATT_PIECES_BPE);
    put_piece(ATT_WORD_MARK, -3, ATT_PIECE_NORMAL);
    put_piece("a", -2, ATT_PIECE_NORMAL);
    put_piece("b", -4, ATT_PIECE_NORMAL);
    put_piece(ATT_WORD_MARK "a", -1, ATT_PIECE_NORMAL);
    snprintf(to, sizeof to, "%s/source.spm", folder.path);
    assert_int_equal(rename(write_model_file(), to), 0);
    begin_model(ATT_PIECES_UNIGRAM);
    put_piece(ATT_WORD_MARK, -3, ATT_PIECE_NORMAL);
    put_piece("c", -2, ATT_PIECE_NORMAL);
    put_piece("bc", -2, ATT_PIECE_USER);
    snprintf(to, sizeof to, "%s/target.spm", folder.path);
    assert_int_equal(rename(write_model_file(), to), 0);
    write_file("vocab.json", small_vocabulary);
    remove_file("tokenizer_config.json");
    remove_file("special_tokens_map.json");
}

static void special_tokens_codes_and_unknown_pieces_get_their_ids(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a", ATT_WORD_MARK "a </s>"},
        {"", "</s>"},
        {">>de<< a", ">>de<< " ATT_WORD_MARK "a </s>"},
        {">>xx<<a", "<unk> " ATT_WORD_MARK "a </s>"},
        {"a >>de<<",
         ATT_WORD_MARK "a " ATT_WORD_MARK " >>de<< </s>"} /* a run of unknown characters, which is a token */,
        {"a</s>a<pad>", ATT_WORD_MARK "a </s> " ATT_WORD_MARK "a <pad> </s>"},
        {"</s>>>de<<", "</s> >>de<< </s>"},
        {"c", ATT_WORD_MARK " c </s>"} /* no piece of the source's, but in the vocabulary */,
        {"b", ATT_WORD_MARK " <unk> </s>"} /* a piece that the vocabulary has not */,
    };
    write_small_folder();
    att_tokenizer *t = open_folder();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(tokens_of(t, cases[i][0], strlen(cases[i][0]), NULL), cases[i][1]);
    assert_string_equal(unknown_of(t, "a c"), "");
    assert_string_equal(unknown_of(t, ">>de<< axb"), "x b");
    assert_string_equal(tokens_of(t, "a", 1, PLAIN), ATT_WORD_MARK "a");
    assert_string_equal(tokens_of(t, "a</s>a", 6, ATT_OPTIONS(att_tokenize_options, .max_tokens = 2)),
                        ATT_WORD_MARK "a </s>");
    att_tokenizer_free(t);
}

static void the_target_is_cut_and_joined_by_its_own_pieces(void **state)
{
    (void)state;
    write_small_folder();
    att_tokenizer *t = open_folder();
    const att_tokenize_options *target = ATT_OPTIONS(att_tokenize_options, .target = true);
    assert_string_equal(tokens_of(t, "bcc", 3, target), ATT_WORD_MARK " bc c </s>");
    assert_string_equal(tokens_of(t, "bcc", 3, NULL), ATT_WORD_MARK " <unk> <unk> </s>");
    static const struct {
        int32_t ids[6];
        int64_t n;
        const char *text;
    } cases[] = {
        {{2, 5, 4, 0}, 4, "bcc"},
        {{4, 3, 4}, 3, "c ac"} /* no piece of the target's, but a token */,
        {{2, 2, 4, 2, 8, 0}, 6, "c"},
        {{6, 2, 4}, 3, ">>de<< c"},
        {{4, 1, 7, 4}, 4, "cc"} /* <unk> is special; id 7 is not a token */,
        {{0}, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_text text;
        assert_int_equal(att_detokenize(t, cases[i].ids, cases[i].n, &text), ATT_OK);
        assert_string_equal(text.text, cases[i].text);
        att_text_free(ctx, &text);
    }
    assert_int_equal(att_tokenizer_size(t), 9);
    assert_string_equal(att_tokenizer_token(t, 8), "<pad>");
    assert_null(att_tokenizer_token(t, 7));
    att_tokenizer_free(t);
}

static void special_tokens_may_have_other_names(void **state)
{
    (void)state;
    write_small_folder();
    write_file("vocab.json", "{\"<end>\": 0, \"?\": 1, \"\u2581a\": 2, \"<pad>\": 3, \"<x>\": 4}");
    write_file(
        "tokenizer_config.json",
        "{\"additional_special_tokens\": [\"<x>\"], \"eos_token\": {\"content\": \"<end>\"}, \"unk_token\": \"?\","
        "\"added_tokens_decoder\": {\"0\": {\"content\": \"<end>\", \"lstrip\": false}}}");
    write_file("special_tokens_map.json", "{\"unk_token\": \"ignored\", \"eos_token\": \"ignored\"}");
    att_tokenizer *t = open_folder();
    assert_string_equal(tokens_of(t, "a<x>a<end>zz", 12, NULL),
                        ATT_WORD_MARK "a <x> " ATT_WORD_MARK "a <end> ? ? <end>");
    att_tokenizer_free(t);
}

/* ---- errors */

static void bad_folders_give_a_sentence_that_names_file_and_setting(void **state)
{
    (void)state;
    static const struct {
        const char *file, *content;
        att_status status;
        const char *words;
    } cases[] = {
        {"vocab.json", "", ATT_ERR_FORMAT, "vocab.json: line 1: expected {\"token\": id, ...}"},
        {"vocab.json", "[]", ATT_ERR_FORMAT, "expected {\"token\": id, ...}"},
        {"vocab.json", "{\"a\": 0", ATT_ERR_FORMAT, "vocab.json"},
        {"vocab.json", "{\"a\": 0} x", ATT_ERR_FORMAT, "there is more after the tokens"},
        {"vocab.json", "{}", ATT_ERR_FORMAT, "vocab.json: the vocabulary is empty"},
        {"vocab.json", "{\"a\": 0, \"b\": 0}", ATT_ERR_FORMAT, "\"a\" and \"b\" have the same id 0"},
        {"vocab.json", "{\"a\": 0, \"a\": 1}", ATT_ERR_FORMAT, "\"a\" occurs twice"},
        {"vocab.json", "{\"a\": -1}", ATT_ERR_FORMAT, "the id of token \"a\" is -1"},
        {"vocab.json", "{\"</s>\": 0, \"<unk>\": 1}", ATT_ERR_FORMAT,
         "the special token \"<pad>\" is not in vocab.json"},
        {"tokenizer_config.json", "{\"separate_vocabs\": true}", ATT_ERR_UNSUPPORTED, "\"separate_vocabs\" is true"},
        {"tokenizer_config.json", "{\"tokenizer_class\": \"T5\"}", ATT_ERR_UNSUPPORTED,
         "\"tokenizer_class\" is \"T5\""},
        {"tokenizer_config.json", "{\"sp_model_kwargs\": {\"alpha\": 1}}", ATT_ERR_UNSUPPORTED, "sp_model_kwargs"},
        {"tokenizer_config.json", "{\"eos_token\": 3}", ATT_ERR_FORMAT, "\"eos_token\" has 3"},
        {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"0\": {\"content\": \"c\", \"rstrip\": true}}}",
         ATT_ERR_UNSUPPORTED, "\"added_tokens_decoder.rstrip\" is true"},
        {"special_tokens_map.json", "[]", ATT_ERR_FORMAT, "special_tokens_map.json"},
        {"source.spm", "", ATT_ERR_FORMAT, "source.spm: has no \"pieces\""},
        {"target.spm", "\x0A", ATT_ERR_FORMAT, "target.spm: byte "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_tokenizer *t;
        write_small_folder();
        write_file(cases[i].file, cases[i].content);
        assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), cases[i].status);
        assert_null(t);
        check_message(ctx, cases[i].words);
        check_message(ctx, folder.path);
    }
    static const char *const needed[] = {"vocab.json", "target.spm"};
    for (size_t i = 0; i < 2; i++) {
        att_tokenizer *t;
        write_small_folder();
        remove_file(needed[i]);
        assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_ERR_IO);
        check_message(ctx, needed[i]);
    }
}

static void every_failing_allocation_gives_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    write_small_folder();
    write_file("tokenizer_config.json", "{\"additional_special_tokens\": [\">>de<<\"]}");
    att_status s = ATT_ERR_MEMORY;
    for (long n = 2; s != ATT_OK; n++) { /* the first is the context's own */
        fail_alloc f = {.fail_at = n};
        att_ctx *failing;
        if (att_open(&failing, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f))) != ATT_OK)
            continue;
        att_tokenizer *t;
        att_tokens tokens = {0};
        att_text text = {0};
        s = att_tokenizer_open(failing, folder.path, &t);
        if (!s)
            s = att_tokenize(t, "a c</s>a", 8, NULL, &tokens);
        if (!s)
            s = att_detokenize(t, tokens.ids, tokens.count, &text);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        if (t) {
            att_text_free(failing, &text);
            att_tokens_free(failing, &tokens);
        }
        att_tokenizer_free(t);
        att_close(failing);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_texts_equal_the_reference),
        cmocka_unit_test(special_tokens_codes_and_unknown_pieces_get_their_ids),
        cmocka_unit_test(the_target_is_cut_and_joined_by_its_own_pieces),
        cmocka_unit_test(special_tokens_may_have_other_names),
        cmocka_unit_test(bad_folders_give_a_sentence_that_names_file_and_setting),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down_model);
}
