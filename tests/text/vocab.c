/* Learning a vocabulary: which pieces, in which order, and that the `sentencepiece` package reads them as we do. */
// labels: long
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/progress.h"
#include "fixtures/text_lines.h"
#include "fixtures/sentencepiece.h"

#include <utf8proc.h>

#define MARK ATT_WORD_MARK
#define OPTIONS(...) ATT_OPTIONS(att_vocab_options, __VA_ARGS__)
#define KEEPING(...) OPTIONS(.keep_text = true, __VA_ARGS__)

/* Learns the lines' vocabulary; lines end with NULL. */
static att_vocab *learn(const att_vocab_options *opt, const char *const *lines, att_vocab_result *r)
{
    att_vocab *v;
    *r = (att_vocab_result){.size = sizeof *r};
    if (att_vocab_new(ctx, opt, &v) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    for (; *lines; lines++)
        assert_int_equal(att_vocab_add(v, *lines, strlen(*lines)), ATT_OK);
    if (att_vocab_train(v, r) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    return v;
}

/* Returns the trained pieces, a space between them, without the special ones. */
static const char *pieces_of(const att_vocab_options *opt, const char *const *lines)
{
    static char out[4096];
    att_vocab_result r;
    att_sentencepiece m;
    att_vocab *v = learn(opt, lines, &r);
    assert_int_equal(att_sentencepiece_parse(&m, ctx, "what was learned", (att_byte_view){r.model, r.bytes}), ATT_OK);
    assert_int_equal(m.size, r.pieces);
    size_t n = 0;
    out[0] = 0;
    for (int64_t i = 0; i < m.size; i++)
        if (m.piece[i].type == ATT_PIECE_NORMAL)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n ? " " : "", m.piece[i].text);
    assert_true(n < sizeof out);
    att_sentencepiece_free(&m);
    att_vocab_free(v);
    return out;
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void the_most_frequent_neighbors_become_a_piece(void **state)
{
    (void)state;
    /* xaby twice, abz three times: a b are neighbors five times, then MARK ab and ab z three times, then MARK x, x ab
     * and ab y twice. Of equals that with fewer characters comes first, then that of the more frequent character. */
    assert_string_equal(pieces_of(KEEPING(.pieces = 100, .character_coverage = 1), LINES("xaby abz", "abz xaby abz")),
                        "ab " MARK "ab " MARK "abz " MARK "x aby " MARK "xaby a b " MARK " z x y");
}

static void no_piece_is_made_of_neighbors_that_are_there_once(void **state)
{
    (void)state;
    att_vocab_result r;
    att_vocab *v = learn(KEEPING(.pieces = 1000), LINES("ab cd", "ef"), &r);
    assert_int_equal(r.pieces, 3 + 7);
    assert_int_equal(r.characters, 7);
    assert_int_equal(r.words, 3);
    att_vocab_free(v);
    assert_string_equal(pieces_of(KEEPING(.pieces = 1000), LINES("aaaa")), "aa a " MARK);
}

static void a_piece_has_letters_or_digits_or_neither(void **state)
{
    (void)state;
    assert_string_equal(pieces_of(KEEPING(.pieces = 100), LINES("a1, a1, a1, a1,")), MARK "a , 1 a " MARK);
    assert_string_equal(pieces_of(KEEPING(.pieces = 100, .max_length = 2), LINES("abcd abcd")), "ab cd a b c d " MARK);
}

static void rare_characters_are_no_pieces(void **state)
{
    (void)state;
    assert_string_equal(pieces_of(KEEPING(.pieces = 100, .character_coverage = 0.9), LINES("aaaaaaaa aaaaaaaa z")),
                        "aa aaaa " MARK "aaaa " MARK "aaaaaaaa a " MARK);
}

static void a_digit_is_a_piece_of_its_own_where_that_is_asked_for(void **state)
{
    (void)state;
    assert_string_equal(pieces_of(KEEPING(.pieces = 100), LINES("12 a12 12 12")), "12 " MARK "12 1 2 " MARK " a");
    att_vocab_result r;
    att_vocab *v = learn(KEEPING(.pieces = 100, .split_digits = true),
                         LINES("12 a12 12 12", "12:30, 12:30", "\xEF\xBC\x91\xEF\xBC\x91\xEF\xBC\x91 ab ab"), &r);
    set_model(r.model, r.bytes);
    att_tokenizer *t = open_model();
    assert_string_equal(tokens_of(t, "12 ab 12:30, \xEF\xBC\x91\xEF\xBC\x91", 19, NULL),
                        MARK " 1 2 " MARK "ab " MARK " 1 2 : 3 0 , " MARK " \xEF\xBC\x91 \xEF\xBC\x91");
    att_tokenizer_free(t);
    att_vocab_free(v);
}

static void characters_that_are_left_out_are_named(void **state)
{
    (void)state;
    static const struct {
        att_vocab_options opt;
        const char *left_out;
    } cases[] = {
        {{.character_coverage = 1}, ""},
        {{.character_coverage = 0.5}, MARK "c\xC3\xA4z"},
        {{.character_coverage = 1, .min_count = 3}, "\xC3\xA4z"},
        {{.character_coverage = 1, .min_count = 2}, "z"},
        {{.character_coverage = 1, .max_characters = 3}, "c\xC3\xA4z"},
        {{.character_coverage = 1, .max_characters = 5, .min_count = 3}, "\xC3\xA4z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_vocab_options opt = cases[i].opt;
        att_vocab_result r;
        opt.size = sizeof opt;
        opt.pieces = 100;
        opt.keep_text = true;
        att_vocab *v = learn(&opt, LINES("aaaaaaaa", "bbbb ccc", "\xC3\xA4\xC3\xA4z"), &r);
        assert_string_equal(r.left_out_text, cases[i].left_out);
        assert_int_equal(r.left_out, 6 - r.characters);
        att_vocab_free(v);
    }
}

static void special_pieces_part_words(void **state)
{
    (void)state;
    static const char *const symbols[] = {"<sep>", "bc"}, *const control[] = {"<pad>", "xy"};
    assert_string_equal(pieces_of(KEEPING(.pieces = 400, .byte_fallback = true, .symbols = symbols, .n_symbols = 2,
                                          .control = control, .n_control = 2),
                                  LINES("a<sep>a abcd abcd xy xy <s> <s>")),
                        MARK "a " MARK " a d");
    att_vocab_result r;
    att_vocab *v = learn(KEEPING(.pieces = 400, .symbols = symbols, .n_symbols = 2), LINES("abcd"), &r);
    set_model(r.model, r.bytes);
    att_tokenizer *t = open_model();
    assert_string_equal(tokens_of(t, "abcd<sep>d", 10, NULL), MARK " a bc d <sep> d");
    assert_string_equal(att_tokenizer_token(t, 3), "<sep>");
    att_tokenizer_free(t);
    att_vocab_free(v);
}

static void the_model_is_the_same_in_any_order_of_the_lines(void **state)
{
    (void)state;
    static text_lines lines;
    att_vocab *v[2];
    att_vocab_result r[2];
    text_lines_init(&lines);
    for (int i = 0; i < 2; i++) {
        r[i].size = sizeof r[i];
        assert_int_equal(
            att_vocab_new(ctx, OPTIONS(.pieces = 3000, .character_coverage = 0.9, .keep_text = true), &v[i]), ATT_OK);
        for (unsigned k = 0; k < 2000; k++) {
            text_line(&lines, i ? 1999 - k : k);
            assert_int_equal(att_vocab_add(v[i], lines.line, lines.bytes), ATT_OK);
        }
        assert_int_equal(att_vocab_train(v[i], &r[i]), ATT_OK);
    }
    assert_int_equal(r[0].bytes, r[1].bytes);
    assert_memory_equal(r[0].model, r[1].model, r[0].bytes);
    for (int i = 0; i < 2; i++)
        att_vocab_free(v[i]);
    free(lines.text);
}

/* ---- as the package reads it */

/* Learns what tests/golden/make_vocab.py learns. */
static att_tokenizer *learn_golden(bool keep_text, text_lines *lines)
{
    static const char *const symbols[] = {"<sep>", "\xE6\x97\xA5\xE6\x9C\xAC"}, *const control[] = {"<pad>"};
    char line[512];
    att_vocab *v;
    att_vocab_result r = {.size = sizeof r};
    assert_int_equal(att_vocab_new(ctx,
                                   OPTIONS(.pieces = 1200, .byte_fallback = true, .keep_text = keep_text,
                                           .symbols = symbols, .n_symbols = 2, .control = control, .n_control = 1),
                                   &v),
                     ATT_OK);
    FILE *f = fopen("examples/facts.txt", "rb");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        assert_int_equal(att_vocab_add(v, line, strcspn(line, "\n")), ATT_OK);
    fclose(f);
    for (unsigned i = 0; i < lines->n_snippets; i++)
        assert_int_equal(att_vocab_add(v, lines->snippet[i], strlen(lines->snippet[i])), ATT_OK);
    if (att_vocab_train(v, &r) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    set_model(r.model, r.bytes);
    att_vocab_free(v);
    return open_model();
}

static uint32_t hash_text(const att_tokenizer *t, const char *s, size_t bytes, uint32_t h)
{
    att_tokens tokens;
    att_text text;
    assert_int_equal(att_tokenize(t, s, bytes, NULL, &tokens), ATT_OK);
    assert_int_equal(att_detokenize(t, tokens.ids, tokens.count, &text), ATT_OK);
    for (int64_t i = 0; i < tokens.count; i++)
        h = hash_int(h, (uint32_t)tokens.ids[i]);
    h = hash_bytes(h, text.text, text.bytes);
    att_text_free(ctx, &text);
    att_tokens_free(ctx, &tokens);
    return h;
}

static void the_package_reads_what_is_trained_and_gives_the_same_ids(void **state)
{
    (void)state;
    enum { ROWS = 1 + N_TEXT_LINES / 10 };
    static text_lines lines;
    char *text, *row[ROWS];
    text_lines_init(&lines);
    assert_int_equal(golden_lines("vocab.txt", &text, row, ROWS), ROWS);
    att_tokenizer *t = learn_golden(false, &lines);
    uint32_t h = HASH_START;
    for (unsigned i = 0; i < lines.n_snippets; i++)
        h = hash_text(t, lines.snippet[i], strlen(lines.snippet[i]), h);
    if (h != strtoul(row[0], NULL, 16))
        fail_msg("snippets: not as in tests/golden/vocab.txt");
    att_tokenizer_free(t);
    t = learn_golden(true, &lines);
    for (unsigned i = 0; i < ROWS - 1; i += (unsigned)check_step(29)) {
        h = HASH_START;
        for (unsigned k = 0; k < 10; k++) {
            text_line(&lines, 10 * i + k);
            h = hash_text(t, lines.line, lines.bytes, h);
        }
        if (h != strtoul(row[1 + i], NULL, 16))
            fail_msg("row %u: not as in tests/golden/vocab.txt", 1 + i);
    }
    att_tokenizer_free(t);
    free(text);
    free(lines.text);
}

/* ---- NFKC */

/* Whether our rules make of the text what utf8proc does. */
static void check_nfkc(const att_sentencepiece *m, const char *text, const char *wanted)
{
    att_bytes out = {.ctx = ctx};
    att_sentencepiece_normalize(m, text, strlen(text), &out, NULL);
    att_bytes_add(&out, "", 1);
    if (strcmp(out.data, wanted) != 0)
        fail_msg("\"%s\" became \"%s\", not \"%s\"", text, out.data, wanted);
    att_bytes_free(&out);
}

static void characters_and_decomposed_ones_become_their_nfkc(void **state)
{
    (void)state;
    att_vocab_result r;
    att_sentencepiece m;
    att_vocab *v = learn(OPTIONS(.pieces = 100), LINES("a"), &r);
    assert_int_equal(att_sentencepiece_parse(&m, ctx, "what was learned", (att_byte_view){r.model, r.bytes}), ATT_OK);
    m.add_prefix = m.remove_spaces = m.escape_spaces = false;
    for (uint32_t c = 0x20; c <= 0x10FFFF; c += (uint32_t)check_step(397)) {
        const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
        if (category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CS || category == UTF8PROC_CATEGORY_CC ||
            category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP || c == 0x1680 || c == 0x200B ||
            c == 0xFEFF)
            continue; /* white space, and characters that are removed */
        char text[8] = "";
        att_utf8_encode(c, text);
        char *nfkc = (char *)utf8proc_NFKC((const utf8proc_uint8_t *)text);
        char *nfd = (char *)utf8proc_NFD((const utf8proc_uint8_t *)text);
        char *nfc = (char *)utf8proc_NFC((const utf8proc_uint8_t *)text);
        check_nfkc(&m, text, nfkc);
        if (strcmp(nfc, text) == 0)
            check_nfkc(&m, nfd, nfkc);
        free(nfkc);
        free(nfd);
        free(nfc);
    }
    check_nfkc(&m,
               "a\tb\xE2\x80\xA8"
               "c\x01"
               "d\xEF\xBB\xBF\xE3\x80\x80",
               "a b cd  ");
    check_nfkc(&m, "\xEA\xB0\x80\xE1\x86\xA8", "\xEA\xB0\x81"); /* Hangul; two are composed already */
    att_sentencepiece_free(&m);
    att_vocab_free(v);
}

/* ---- errors */

static void wrong_options_and_calls_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const twice[] = {"x", "x"}, *const empty[] = {""}, *const broken[] = {"\xFF"};
    const struct {
        att_vocab_options opt;
        const char *words;
    } cases[] = {
        {{.pieces = 3}, "pieces is 3, not in [4, 4194304]"},
        {{.pieces = (1 << 22) + 1}, "pieces is 4194305"},
        {{.pieces = 100, .character_coverage = 1.5}, "character_coverage is 1.5, not in (0, 1]"},
        {{.pieces = 100, .max_characters = -1}, "max_characters is -1, less than 0"},
        {{.pieces = 100, .min_count = -1}, "min_count is -1, less than 0"},
        {{.pieces = 100, .max_length = 65}, "max_length is 65, not in [1, 64]"},
        {{.pieces = 100, .symbols = twice, .n_symbols = 2}, "\"pieces\" 3 and 4 are both \"x\""},
        {{.pieces = 100, .control = empty, .n_control = 1}, "\"pieces\" 3 is empty"},
        {{.pieces = 100, .control = broken, .n_control = 1}, "\"pieces\" 3 is not text in UTF-8"},
    };
    att_vocab *v;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_vocab_options opt = cases[i].opt;
        opt.size = sizeof opt;
        opt.keep_text = true;
        assert_int_not_equal(att_vocab_new(ctx, &opt, &v), ATT_OK);
        assert_null(v);
        check_message(ctx, cases[i].words);
    }
    att_vocab_result r = {.size = sizeof r};
    assert_int_equal(att_vocab_new(ctx, OPTIONS(.pieces = 10, .keep_text = true), &v), ATT_OK);
    assert_int_equal(att_vocab_train(v, &r), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "there is no text to learn a vocabulary from");
    assert_int_equal(att_vocab_add(v, NULL, 1), ATT_ERR_ARGUMENT);
    assert_int_equal(att_vocab_add(v, "abcdefgh", 8), ATT_OK);
    assert_int_equal(att_vocab_train(v, &r), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx),
                        "3 special pieces and 9 characters are more than a vocabulary of 10: it has to be "
                        "larger, or to cover fewer characters");
    att_vocab_free(v);
    assert_int_equal(att_vocab_new(ctx, OPTIONS(.pieces = 12, .keep_text = true), &v), ATT_OK);
    assert_int_equal(att_vocab_add(v, "abcdefgh", 8), ATT_OK);
    assert_int_equal(att_vocab_train(v, &r), ATT_OK);
    assert_int_equal(att_vocab_train(v, &r), ATT_ERR_ARGUMENT);
    check_message(ctx, "trained already");
    assert_int_equal(att_vocab_add(v, "a", 1), ATT_ERR_ARGUMENT);
    check_message(ctx, "trained already");
    att_vocab_free(v);
    att_vocab_free(NULL);
}

static void every_failing_allocation_gives_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static text_lines lines;
    text_lines_init(&lines);
    att_status s = ATT_ERR_MEMORY;
    for (long n = 2; s != ATT_OK; n += check_step(17)) { /* the first is the context's own */
        fail_alloc f = {.fail_at = n};
        att_ctx *failing;
        if (att_open(&failing, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f))) != ATT_OK)
            continue;
        att_vocab *v;
        att_vocab_result r = {.size = sizeof r};
        static const char *const symbols[] = {"<sep>"};
        s = att_vocab_new(failing, OPTIONS(.pieces = 500, .keep_text = true, .symbols = symbols, .n_symbols = 1), &v);
        for (unsigned i = 0; !s && i < lines.n_snippets; i++)
            s = att_vocab_add(v, lines.snippet[i], strlen(lines.snippet[i]));
        if (!s)
            s = att_vocab_train(v, &r);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_vocab_free(v);
        att_close(failing);
        assert_int_equal(f.live, 0);
    }
    free(lines.text);
}

/* Words of two to four of ten syllables, each twice */
static att_status learn_syllables(void *unused, att_progress_fn progress, void *user)
{
    (void)unused;
    att_vocab *v;
    att_vocab_result r = {.size = sizeof r};
    assert_int_equal(
        att_vocab_new(ctx, KEEPING(.pieces = 300, .character_coverage = 1, .progress = progress, .user = user), &v),
        ATT_OK);
    for (int i = 0; i < 400; i++) {
        char word[16] = "";
        for (int k = 1000; k > 0; k /= 10)
            snprintf(word + strlen(word), sizeof word - strlen(word), "%c%c", 'a' + 7 * (i % 200) / k % 10,
                     "eiou"[k % 4]);
        assert_int_equal(att_vocab_add(v, word, strlen(word)), ATT_OK);
    }
    const att_status s = att_vocab_train(v, &r);
    progress_result(s, r.model, r.bytes);
    assert_true(!s || !r.model);
    att_vocab_free(v);
    return s;
}

static void progress_may_stop_learning(void **state)
{
    (void)state;
    assert_progress(ctx, learn_syllables, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_frequent_neighbors_become_a_piece),
        cmocka_unit_test(no_piece_is_made_of_neighbors_that_are_there_once),
        cmocka_unit_test(a_piece_has_letters_or_digits_or_neither),
        cmocka_unit_test(rare_characters_are_no_pieces),
        cmocka_unit_test(a_digit_is_a_piece_of_its_own_where_that_is_asked_for),
        cmocka_unit_test(characters_that_are_left_out_are_named),
        cmocka_unit_test(special_pieces_part_words),
        cmocka_unit_test(the_model_is_the_same_in_any_order_of_the_lines),
        cmocka_unit_test(the_package_reads_what_is_trained_and_gives_the_same_ids),
        cmocka_unit_test(characters_and_decomposed_ones_become_their_nfkc),
        cmocka_unit_test(wrong_options_and_calls_are_refused_with_a_sentence),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
        cmocka_unit_test(progress_may_stop_learning),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down_model);
}
