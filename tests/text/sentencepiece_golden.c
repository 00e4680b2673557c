/* SentencePiece models: the ids of the `sentencepiece` package, and the text that it makes of ids. */
#include "fixtures/check.h"
#include "fixtures/text_lines.h"
#include "fixtures/real_files.h"
#include "fixtures/tokenizer.h"

static uint32_t hash_text(const att_tokenizer *t, const int32_t *ids, int64_t n, uint32_t h)
{
    att_text text;
    if (att_detokenize(t, ids, n, &text) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    h = hash_bytes(h, text.text, text.bytes);
    att_text_free(ctx, &text);
    return h;
}

/* Hashes the results of line `number`: its ids, their text, and the text of ten random ids. */
static uint32_t hash_line(const att_tokenizer *t, text_lines *lines, unsigned number)
{
    att_tokens tokens;
    text_line(lines, number);
    if (att_tokenize(t, lines->line, lines->bytes, NULL, &tokens) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    uint32_t h = HASH_START;
    for (int64_t i = 0; i < tokens.count; i++)
        h = hash_int(h, (uint32_t)tokens.ids[i]);
    h = hash_text(t, tokens.ids, tokens.count, h);
    att_tokens_free(ctx, &tokens);
    int32_t ids[10];
    lines->random = ((uint64_t)1 << 32) + number;
    for (int i = 0; i < 10; i++)
        ids[i] = (int32_t)below(lines, (unsigned)att_tokenizer_size(t));
    return hash_text(t, ids, 10, h);
}

static att_tokenizer *open_file(const char *path)
{
    att_tokenizer *t;
    if (att_tokenizer_open(ctx, path, &t) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    return t;
}

static void check_lines(const char *model, const char *golden)
{
    static text_lines lines;
    static char *hash[N_TEXT_LINES];
    char *text;
    att_tokenizer *t = open_file(model);
    text_lines_init(&lines);
    assert_int_equal(golden_lines(golden, &text, hash, N_TEXT_LINES), N_TEXT_LINES);
    for (unsigned i = 0; i < N_TEXT_LINES; i += (unsigned)check_step(7))
        if (hash_line(t, &lines, i) != strtoul(hash[i], NULL, 16))
            fail_msg("line %u: not as in tests/golden/%s", i, golden);
    free(text);
    free(lines.text);
    att_tokenizer_free(t);
}

static void ids_and_texts_of_a_unigram_model_equal_the_reference(void **state)
{
    (void)state;
    check_lines("tests/golden/unigram.spm", "unigram.txt");
}

static void ids_and_texts_of_a_bpe_model_equal_the_reference(void **state)
{
    (void)state;
    check_lines("tests/golden/bpe.spm", "bpe.txt");
}

/* The file of a model and the bytes that these digits say. */
static void write_model(const char *name, const char *digits)
{
    char path[64];
    static char data[1 << 16];
    snprintf(path, sizeof path, "tests/golden/%s.spm", name);
    FILE *from = fopen(path, "rb"), *to = folder_open(&folder, "model.spm");
    assert_non_null(from);
    const size_t bytes = fread(data, 1, sizeof data, from);
    assert_true(bytes < sizeof data);
    fclose(from);
    fwrite(data, 1, bytes, to);
    unsigned byte;
    for (; sscanf(digits, "%2x", &byte) == 1; digits += 2)
        fputc((int)byte, to);
    assert_int_equal(fclose(to), 0);
}

static void every_setting_gives_the_ids_and_texts_of_the_reference(void **state)
{
    (void)state;
    static text_lines lines;
    enum { N = 128 };
    char *text, *row[N], path[128];
    text_lines_init(&lines);
    assert_int_equal(golden_lines("sentencepiece.txt", &text, row, N), N);
    snprintf(path, sizeof path, "%s/model.spm", folder.path);
    for (int i = 0; i < N; i += check_step(11)) {
        char model[16], digits[64], hash[16];
        assert_int_equal(sscanf(row[i], "%15s %63s %15s", model, digits, hash), 3);
        write_model(model, digits);
        att_tokenizer *t = open_file(path);
        uint32_t h = HASH_START;
        for (unsigned n = 0; n < N_TEXT_LINES; n += 10)
            h = hash_int(h, hash_line(t, &lines, n));
        if (h != strtoul(hash, NULL, 16))
            fail_msg("not as in tests/golden/sentencepiece.txt: %s", row[i]);
        att_tokenizer_free(t);
    }
    free(text);
    free(lines.text);
}

/* Hashes every step-th of lines [first, last): their ids and offsets. */
static uint32_t hash_offsets(const att_tokenizer *t, text_lines *lines, unsigned first, unsigned last, unsigned step)
{
    uint32_t all = HASH_START;
    for (unsigned n = first; n < last; n += step) {
        att_tokens x;
        text_line(lines, n);
        if (att_tokenize(t, lines->line, lines->bytes, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x))
            fail_msg("%s", att_error(ctx));
        uint32_t h = HASH_START;
        for (int64_t i = 0; i < x.count; i++)
            h = hash_int(h, (uint32_t)x.ids[i]);
        for (int64_t i = 0; i < 2 * x.count; i++)
            h = hash_int(h, (uint32_t)x.offsets[i]);
        all = hash_int(all, h);
        att_tokens_free(ctx, &x);
    }
    return all;
}

static void offsets_equal_the_reference_with_every_setting(void **state)
{
    (void)state;
    static const char *const models[] = {"tests/golden/unigram.spm", "tests/golden/bpe.spm"};
    static text_lines lines;
    enum { BLOCK = 100, BLOCKS = N_TEXT_LINES / BLOCK, SETTINGS = 128 };
    char *texts[2], *row[SETTINGS], *want[2 * BLOCKS + SETTINGS], path[128];
    text_lines_init(&lines);
    assert_int_equal(golden_lines("sentencepiece_offsets.txt", &texts[0], want, 2 * BLOCKS + SETTINGS),
                     2 * BLOCKS + SETTINGS);
    assert_int_equal(golden_lines("sentencepiece.txt", &texts[1], row, SETTINGS), SETTINGS);
    for (unsigned i = 0; i < 2 * BLOCKS; i += (unsigned)check_step(7)) {
        att_tokenizer *t = open_file(models[i / BLOCKS]);
        const unsigned first = i % BLOCKS * BLOCK;
        if (hash_offsets(t, &lines, first, first + BLOCK, 1) != strtoul(want[i], NULL, 16))
            fail_msg("%s: lines %u to %u", models[i / BLOCKS], first, first + BLOCK - 1);
        att_tokenizer_free(t);
    }
    snprintf(path, sizeof path, "%s/model.spm", folder.path);
    for (int i = 0; i < SETTINGS; i += check_step(11)) {
        char model[16], digits[64];
        assert_int_equal(sscanf(row[i], "%15s %63s", model, digits), 2);
        write_model(model, digits);
        att_tokenizer *t = open_file(path);
        if (hash_offsets(t, &lines, 0, N_TEXT_LINES, 50) != strtoul(want[2 * BLOCKS + i], NULL, 16))
            fail_msg("not as in tests/golden/sentencepiece_offsets.txt: %s", row[i]);
        att_tokenizer_free(t);
    }
    free(texts[0]);
    free(texts[1]);
    free(lines.text);
}

/* Hashes of all lines' hashes, made as those of tests/golden/make_sentencepiece.py. */
static void ids_and_texts_of_published_models_equal_the_reference(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t hash;
    } models[] = {{"sentencepiece_models/test_model.model", 0x388c190c}, /* unigram, NFKC */
                  {"sentencepiece_models/test_ja_model.model", 0x70616dd0},
                  {"vocab/llama2c/tokenizer.model", 0x3ac8cecf}}; /* BPE with bytes, as it is */
    static text_lines lines;
    if (!data_file(models[0].name)) {
        print_message("skipped: %s does not exist\n", models[0].name);
        skip();
    }
    text_lines_init(&lines);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        att_tokenizer *t = open_file(data_file(models[i].name));
        uint32_t h = HASH_START;
        for (unsigned n = 0; n < N_TEXT_LINES; n++)
            h = hash_int(h, hash_line(t, &lines, n));
        if (h != models[i].hash)
            fail_msg("%s: the hash of all lines is %08x, not %08x", models[i].name, h, models[i].hash);
        att_tokenizer_free(t);
    }
    free(lines.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_texts_of_a_unigram_model_equal_the_reference),
        cmocka_unit_test(ids_and_texts_of_a_bpe_model_equal_the_reference),
        cmocka_unit_test(every_setting_gives_the_ids_and_texts_of_the_reference),
        cmocka_unit_test(offsets_equal_the_reference_with_every_setting),
        cmocka_unit_test(ids_and_texts_of_published_models_equal_the_reference),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
