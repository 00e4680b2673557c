/* Extreme numbers in files: each is the right one, or refused with a sentence that names the file. */
#include "fixtures/check.h"
#include "fixtures/extreme_numbers.h"
#include "io/settings.h"
#include "fixtures/sentencepiece.h"
#include "attend_model.h"

/* ---- settings */

static void settings_are_the_numbers_that_the_file_has(void **state)
{
    (void)state;
    static const struct {
        int64_t least, most;
    } ranges[] = {{0, 1}, {-1, INT32_MAX}, {1, 1 << 20}, {INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MAX}};
    for (int i = 0; i < 5 * NUMBERS; i++) {
        char text[512];
        att_settings s;
        const int64_t least = ranges[i % 5].least, most = ranges[i % 5].most;
        const double is = numbers[i / 5].is;
        snprintf(text, sizeof text, "{\"x\": %s}", numbers[i / 5].json);
        att_settings_parse(&s, ctx, "file", text, strlen(text));
        assert_int_equal(s.status, isnan(is) ? ATT_ERR_FORMAT : ATT_OK);
        const double x = att_settings_number(&s, "x", (double)least, (double)most);
        const bool inside = is >= (double)least && is <= (double)most;
        assert_int_equal(s.status, inside ? ATT_OK : ATT_ERR_FORMAT);
        assert_true(x == (inside ? is : 0));
        if (s.status)
            check_message(ctx, isnan(is) ? "file: line 1, column " : "file: \"x\" is ");
        att_settings_close(&s);
        att_settings_parse(&s, ctx, "file", text, strlen(text));
        const int64_t n = att_settings_int(&s, "x", least, most);
        const bool whole = inside && is == floor(is) && fabs(is) < 0x1p53;
        if (!whole)
            assert_true(n == 0 && s.status == ATT_ERR_FORMAT);
        else
            assert_true((double)n == is && s.status == ATT_OK);
        att_settings_close(&s);
    }
}

/* ---- tokenizers */

/* Sums of such scores are infinite: there is a best way still, and all of the text is in it. */
static void pieces_of_extreme_scores_cut_all_of_a_text(void **state)
{
    (void)state;
    static const float scores[] = {0, -0.0f, 1e-45f, -1e-45f, FLT_MIN, FLT_MAX, -FLT_MAX, 1e30f, -1e30f};
    enum { SCORES = sizeof scores / sizeof scores[0], BYTES = 400 };
    char text[BYTES + 1], again[BYTES + 8] = "";
    for (int i = 0; i < BYTES; i++)
        text[i] = "abc"[check_bits(1, (uint64_t)i) % 3];
    text[BYTES] = 0;
    for (int i = 0; i < 4 * SCORES * SCORES; i++) {
        static const att_piece_model types[] = {ATT_PIECES_UNIGRAM, ATT_PIECES_BPE, ATT_PIECES_WORD, ATT_PIECES_CHAR};
        begin_model(types[i % 4]);
        const float first = scores[i / 4 % SCORES], second = scores[i / 4 / SCORES];
        put_piece("\xE2\x96\x81", first, ATT_PIECE_NORMAL);
        put_piece("a", first, ATT_PIECE_NORMAL);
        put_piece("b", second, ATT_PIECE_NORMAL);
        put_piece("ab", first, ATT_PIECE_NORMAL);
        put_piece("c", first, ATT_PIECE_NORMAL);
        put_piece("bc", second, ATT_PIECE_NORMAL);
        att_tokenizer *t = open_model();
        att_tokens tokens;
        assert_int_equal(
            att_tokenize(t, text, BYTES, &(att_tokenize_options){.size = sizeof(att_tokenize_options)}, &tokens),
            ATT_OK);
        again[0] = 0;
        for (int64_t k = 0; k < tokens.count; k++) {
            const char *piece = att_tokenizer_token(t, tokens.ids[k]);
            assert_non_null(piece);
            if (strlen(again) + strlen(piece) < sizeof again && types[i % 4] != ATT_PIECES_WORD)
                strcat(again, strncmp(piece, "\xE2\x96\x81", 3) ? piece : piece + 3);
        }
        if (types[i % 4] != ATT_PIECES_WORD)
            assert_string_equal(again, text);
        att_tokens_free(ctx, &tokens);
        att_tokenizer_free(t);
    }
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        att_tokenizer *t;
        begin_model(ATT_PIECES_UNIGRAM);
        put_piece("a", bad[i], ATT_PIECE_NORMAL);
        assert_int_equal(att_tokenizer_open(ctx, write_model_file(), &t), ATT_ERR_FORMAT);
        check_message(ctx, "model.spm: \"pieces.score\" of piece 3 is ");
    }
}

/* The ids of tokenizer.json and of vocab.json have readers of their own. */
static void ids_of_tokens_are_whole_numbers_that_are_there(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * NUMBERS; i++) {
        char text[2048];
        const char *json = numbers[i / 2].json;
        const bool added = i % 2;
        snprintf(
            text, sizeof text,
            "{\"added_tokens\": [{\"id\": %s, \"content\": \"[UNK]\", \"single_word\": false, \"lstrip\": false, "
            "\"rstrip\": false, \"normalized\": false, \"special\": true}], \"normalizer\": {\"type\": "
            "\"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, \"strip_accents\": null, "
            "\"lowercase\": true}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"post_processor\": null, "
            "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", "
            "\"max_input_chars_per_word\": 100, \"vocab\": {\"[UNK]\": %s, \"a\": 2}}}",
            added ? json : "0", added ? "0" : json);
        remove_all();
        write_file("tokenizer.json", text);
        att_tokenizer *t;
        const att_status s = att_tokenizer_open(ctx, folder.path, &t);
        assert_true(s == ATT_OK || strstr(att_error(ctx), "tokenizer.json"));
        if (!s && (isnan(numbers[i / 2].is) || numbers[i / 2].is < 0 || numbers[i / 2].is > 2))
            fail_msg("%s is taken for an id", json);
        att_tokenizer_free(t);
    }
}

/* ---- safetensors */

static void sizes_and_offsets_are_whole_numbers_that_fit_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        double right; /* the only one that is taken */
    } headers[] = {{"{\"x\": {\"dtype\": \"F32\", \"shape\": [%s], \"data_offsets\": [0, 4]}}", 1},
                   {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1, %s], \"data_offsets\": [0, 4]}}", 1},
                   {"{\"x\": {\"dtype\": \"F32\", \"shape\": [%s, 1, 1, 1, 1, 1, 1, 1], \"data_offsets\": [0, 4]}}", 1},
                   {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [%s, 4]}}", 0},
                   {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, %s]}}", 4}};
    for (int i = 0; i < 5 * NUMBERS; i++) {
        _Alignas(8) char file[1024] = "", header[800];
        snprintf(header, sizeof header, headers[i % 5].format, numbers[i / 5].json);
        const uint64_t bytes = (strlen(header) + 7) / 8 * 8;
        memcpy(file, &bytes, 8);
        snprintf(file + 8, sizeof file - 8, "%-*s", (int)bytes, header);
        memset(file + 8 + bytes, 0, 4);
        att_safetensors *f;
        const att_status s = att_safetensors_from_memory(ctx, "file", file, 8 + bytes + 4, &f);
        const bool digits = numbers[i / 5].json[strspn(numbers[i / 5].json, "-0123456789")] == 0;
        if (numbers[i / 5].is == headers[i % 5].right && digits)
            assert_int_equal(s, ATT_OK);
        else
            assert_int_equal(s, ATT_ERR_FORMAT);
        if (s)
            check_message(ctx, "file: ");
        att_safetensors_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_the_numbers_that_the_file_has),
        cmocka_unit_test(pieces_of_extreme_scores_cut_all_of_a_text),
        cmocka_unit_test(ids_of_tokens_are_whole_numbers_that_are_there),
        cmocka_unit_test(sizes_and_offsets_are_whole_numbers_that_fit_the_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down_model);
}
