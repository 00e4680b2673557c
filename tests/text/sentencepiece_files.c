/* SentencePiece's files: each way in which they can be wrong, memory that fails, time. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/sentencepiece.h"

#include <time.h>

/* A valid model, to which a test adds an error. */
static void good_model(void)
{
    begin_model(ATT_PIECES_BPE);
    put_piece("a", -1, ATT_PIECE_NORMAL);
    put_piece("user", 0, ATT_PIECE_USER);
}

static void refused(att_status status, const char *words)
{
    att_tokenizer *t;
    const char *path = write_model_file();
    assert_int_equal(att_tokenizer_open(ctx, path, &t), status);
    assert_null(t);
    check_message(ctx, path);
    check_message(ctx, words);
}

static void bad_fields_give_a_sentence_that_names_file_and_field(void **state)
{
    (void)state;
#define BYTES(bytes) bytes, sizeof(bytes) - 1
    static const struct {
        const char *bytes; /* that are added to the file */
        size_t n;
        att_status status;
        const char *words;
    } cases[] = {
        {BYTES("\x0A"), ATT_ERR_FORMAT, "\"pieces\" ends within a number"},
        {BYTES("\x8A\x80"), ATT_ERR_FORMAT, "\"a field\" ends within a number"},
        {BYTES("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), ATT_ERR_FORMAT, "more than 64 bits"},
        {BYTES("\x0A\x7F\x0A"), ATT_ERR_FORMAT, "\"pieces\" has 127 bytes, but only 1 are left"},
        {BYTES("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"), ATT_ERR_FORMAT,
         "has 9223372036854775807 bytes, but only 0"},
        {BYTES("\x08\x01"), ATT_ERR_FORMAT, "\"pieces\" has wire type 0, not 2"},
        {BYTES("\x0A\x05\x15\x00\x00\x80"), ATT_ERR_FORMAT, "\"pieces\" has 5 bytes, but only 4 are left"},
        {BYTES("\x0A\x04\x15\x00\x00\x80"), ATT_ERR_FORMAT, "\"pieces.score\" has 4 bytes, but only 3 are left"},
        {BYTES("\x0A\x02\x10\x00"), ATT_ERR_FORMAT, "\"pieces.score\" has wire type 0, not 5"},
        {BYTES("\xA3\x01"), ATT_ERR_FORMAT, "wire type 3"},
        {BYTES("\x0A\x00"), ATT_ERR_FORMAT, "\"pieces\" 5 is empty"},
        {BYTES("\x0A\x03\x0A\x01\xFF"), ATT_ERR_FORMAT, "\"pieces\" 5 is not text in UTF-8"},
        {BYTES("\x0A\x04\x0A\x02z\x00"), ATT_ERR_FORMAT, "\"pieces\" 5 is not text in UTF-8"},
        {BYTES("\x0A\x08\x0A\x01z\x15\x00\x00\xC0\x7F"), ATT_ERR_FORMAT, "\"pieces.score\" of piece 5 is nan"},
        {BYTES("\x0A\x08\x0A\x01z\x15\x00\x00\x80\x7F"), ATT_ERR_FORMAT, "\"pieces.score\" of piece 5 is inf"},
        {BYTES("\x0A\x05\x0A\x01z\x18\x09"), ATT_ERR_FORMAT, "\"pieces.type\" of piece 5 is 9, not in 1 to 6"},
        {BYTES("\x0A\x05\x0A\x01z\x18\x00"), ATT_ERR_FORMAT, "\"pieces.type\" of piece 5 is 0"},
        {BYTES("\x0A\x05\x0A\x01z\x18\x02"), ATT_ERR_FORMAT, "\"pieces\" 0 and 5 are both of type UNKNOWN"},
        {BYTES("\x0A\x03\x0A\x01"
               "a"),
         ATT_ERR_FORMAT, "\"pieces\" 3 and 5 are both \"a\""},
        {BYTES("\x0A\x05\x0A\x01z\x18\x05"), ATT_ERR_UNSUPPORTED, "\"pieces.type\" of piece 5 is 5 (UNUSED)"},
        {BYTES("\x0A\x05\x0A\x01z\x18\x06"), ATT_ERR_FORMAT, "of type BYTE but \"z\""},
        {BYTES("\x0A\x0A\x0A\x06<0x4a>\x18\x06"), ATT_ERR_FORMAT, "of type BYTE but \"<0x4a>\""},
        {BYTES("\x0A\x0A\x0A\x06<0x4A>\x18\x06"), ATT_ERR_FORMAT, "\"trainer_spec.byte_fallback\" is false"},
        {BYTES("\x12\x03\x98\x02\x01"), ATT_ERR_FORMAT, "there is no piece \"<0x00>\""},
        {BYTES("\x12\x02\x18\x05"), ATT_ERR_UNSUPPORTED, "\"trainer_spec.model_type\" is 5, which is not supported"},
        {BYTES("\x12\x04\xE2\x02\x01\xFF"), ATT_ERR_FORMAT, "\"trainer_spec.unk_surface\" is not text"},
        {BYTES("\x1A\x02\x18\x80"), ATT_ERR_FORMAT, "\"normalizer_spec.add_dummy_prefix\" ends within a number"},
        {BYTES("\x2A\x03\x12\x01x"), ATT_ERR_UNSUPPORTED, "\"denormalizer_spec.precompiled_charsmap\" has 1 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        good_model();
        att_bytes_add(&model_file, cases[i].bytes, cases[i].n);
        refused(cases[i].status, cases[i].words);
    }
    good_model();
    att_tokenizer_free(open_model());
}

static void what_is_no_model_is_refused(void **state)
{
    (void)state;
    att_bytes_free(&model_file);
    refused(ATT_ERR_FORMAT, "has no \"pieces\": it is not a SentencePiece model");
    att_bytes_add(&model_file, "Just some text.\n", 16);
    refused(ATT_ERR_FORMAT, " is not a SentencePiece model but a text");
    model_file.data[2] = 0; /* no text */
    refused(ATT_ERR_FORMAT, "byte 2: \"a field\" has 117 bytes, but only 14 are left");
    begin_model(ATT_PIECES_UNIGRAM);
    model_file.count = 4;
    refused(ATT_ERR_FORMAT, "has no \"pieces\"");
    put_piece("a", 0, ATT_PIECE_NORMAL);
    refused(ATT_ERR_FORMAT, "no piece is of type UNKNOWN");
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(ctx, NULL, &t), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_tokenizer_open: path is NULL");
}

/* ---- the map of characters */

/* Little-endian: the trie's bytes, its units, the replacements. */
static void put_map(const uint32_t *units, size_t n, uint32_t trie_bytes, const char *text, size_t bytes)
{
    att_bytes b = {.ctx = ctx};
    for (size_t i = 0; i <= n; i++) {
        const uint32_t x = i > 0 ? units[i - 1] : trie_bytes;
        att_bytes_add(&b, (const unsigned char[]){x & 0xFF, x >> 8 & 0xFF, x >> 16 & 0xFF, x >> 24}, 4);
    }
    att_bytes_add(&b, text, bytes);
    good_model();
    put_bytes(NORMALIZER_SPEC, CHARSMAP, b.data, b.count);
    att_bytes_free(&b);
}

enum { ENDS = 1 << 8, UNITS = 512 };
#define LEAF ((uint32_t)1 << 31)

/* "x" becomes "a", "xy" becomes "". */
static void make_map(uint32_t units[UNITS])
{
    const uint32_t base = 256, base_of_x = 258, base_of_y = 129, x = base ^ 'x', y = base_of_x ^ 'y';
    memset(units, 0, UNITS * sizeof *units);
    units[0] = base << 10;
    units[x] = (x ^ base_of_x) << 10 | ENDS | 'x';
    units[base_of_x] = LEAF | 0;
    units[y] = (y ^ base_of_y) << 10 | ENDS | 'y';
    units[base_of_y] = LEAF | 2;
}

static void the_longest_rule_of_the_map_replaces(void **state)
{
    (void)state;
    uint32_t units[UNITS];
    make_map(units);
    put_map(units, UNITS, sizeof units, "a\0", 3);
    put_setting(NORMALIZER_SPEC, ADD_PREFIX, 0);
    att_tokenizer *t = open_model();
    assert_string_equal(tokens_of(t, "ax", 2, NULL), "a a");
    assert_string_equal(tokens_of(t, "axya", 4, NULL), "a a");
    assert_string_equal(tokens_of(t, "xyx", 3, NULL), "a");
    assert_string_equal(tokens_of(t, "yx", 2, NULL), "<unk> a");
    assert_string_equal(tokens_of(t, "user", 4, NULL), "user");
    att_tokenizer_free(t);
}

static void a_map_that_leads_out_of_bounds_is_refused(void **state)
{
    (void)state;
    static const char long_text[300] = "";
    uint32_t units[UNITS];
    make_map(units);
    put_map(units, UNITS, sizeof units + 4, "", 0);
    refused(ATT_ERR_FORMAT, "precompiled_charsmap\" has 2052 bytes, its trie 2052");
    put_map(units, UNITS, sizeof units - 1, "", 0);
    refused(ATT_ERR_FORMAT, "its trie 2047");
    put_map(units, UNITS, sizeof units, "", 0);
    refused(ATT_ERR_FORMAT, "a replacement begins at byte 2, but there are 0");
    put_map(units, UNITS, sizeof units, "abcdef", 6);
    refused(ATT_ERR_FORMAT, "does not end within 256 bytes");
    char text[300];
    memset(text, 'a', sizeof text);
    put_map(units, UNITS, sizeof units, text, sizeof text);
    refused(ATT_ERR_UNSUPPORTED, "the replacement at byte 2 does not end within 256 bytes");
    put_map(units, UNITS, sizeof units, "\xFF\0", 3);
    refused(ATT_ERR_FORMAT, "the replacement at byte 0 is not text in UTF-8");
    units[7] = 512u << 10;
    put_map(units, UNITS, sizeof units, long_text, sizeof long_text);
    refused(ATT_ERR_FORMAT, "unit 7 leads to unit 767, but there are 512");
    units[7] = ENDS | 5u << 10;
    put_map(units, UNITS, sizeof units, long_text, sizeof long_text);
    refused(ATT_ERR_FORMAT, "a key ends at unit 7, but unit 2 is not a leaf");
    make_map(units);
    units[0] = LEAF;
    put_map(units, UNITS, sizeof units, long_text, sizeof long_text);
    refused(ATT_ERR_FORMAT, "unit 0, the root, is a leaf");
}

/* ---- all of a file */

static size_t read_golden(const char *name, char *data, size_t most)
{
    char path[64];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t bytes = fread(data, 1, most, f);
    fclose(f);
    return bytes;
}

static void a_file_that_is_cut_or_has_wrong_bytes_is_refused_or_works(void **state)
{
    (void)state;
    static char data[1 << 16];
    const size_t bytes = read_golden("bpe.spm", data, sizeof data);
    att_tokenizer *t;
    uint64_t random = 1;
    for (size_t i = 0; i < bytes; i += (size_t)(17 * check_step(10))) {
        att_bytes_free(&model_file);
        att_bytes_add(&model_file, data, i);
        if (att_tokenizer_open(ctx, write_model_file(), &t) == ATT_OK) /* cut behind its last message */
            att_tokenizer_free(t);
        else
            check_message(ctx, "model.spm: ");
        att_bytes_add(&model_file, data + i, bytes - i);
        random = random * 6364136223846793005u + 1442695040888963407u;
        model_file.data[i] = (char)(random >> 56);
        if (att_tokenizer_open(ctx, write_model_file(), &t) == ATT_OK) {
            att_tokens tokens;
            assert_int_equal(att_tokenize(t, data, 2000, NULL, &tokens), ATT_OK);
            att_tokens_free(ctx, &tokens);
            att_tokenizer_free(t);
        } else {
            check_message(ctx, "model.spm: ");
        }
    }
}

static void every_failing_allocation_gives_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static const char *const files[] = {"tests/golden/unigram.spm", "tests/golden/bpe.spm"};
    for (size_t i = 0; i < 2; i++) {
        att_status s = ATT_ERR_MEMORY;
        for (long n = 2; s != ATT_OK; n++) { /* the first is the context's own */
            fail_alloc f = {.fail_at = n};
            att_ctx *failing;
            if (att_open(&failing, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f))) != ATT_OK)
                continue;
            static const char sentence[] = "Hello, \xE6\x97\xA5\xE6\x9C\xAC and so on, for a while";
            att_tokenizer *t;
            att_tokens tokens = {0};
            att_text text = {0};
            s = att_tokenizer_open(failing, files[i], &t);
            if (!s)
                s = att_tokenize(t, sentence, sizeof sentence - 1, NULL, &tokens);
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
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Ten times the text takes about ten times as long, or with a heap twelve; with a quadratic step a hundred. */
static void long_texts_take_hardly_more_than_linear_time(void **state)
{
    (void)state;
    static const char *const files[] = {"tests/golden/unigram.spm", "tests/golden/bpe.spm"};
    static const char *const patterns[] = {"a", "a ", " ", "\xFF", "the ", "\xE6\x97\xA5", "[MASK", "\xE2\x96\x81"};
    const size_t small = 200000 / (size_t)check_step(10), large = 10 * small;
    char *text = malloc(large);
    for (size_t f = 0; f < 2; f++) {
        att_tokenizer *t;
        assert_int_equal(att_tokenizer_open(ctx, files[f], &t), ATT_OK);
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
                fail_msg("%s, \"%s\": %.3f s for a text, %.3f s for ten times as much", files[f], patterns[p], one,
                         ten);
        }
        att_tokenizer_free(t);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_fields_give_a_sentence_that_names_file_and_field),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(the_longest_rule_of_the_map_replaces),
        cmocka_unit_test(a_map_that_leads_out_of_bounds_is_refused),
        cmocka_unit_test(a_file_that_is_cut_or_has_wrong_bytes_is_refused_or_works),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
        cmocka_unit_test(long_texts_take_hardly_more_than_linear_time),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down_model);
}
