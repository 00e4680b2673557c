/* The tokenizer on real vocabularies: the ids of the `tokenizers` package. */
#include "fixtures/check.h"
#include "fixtures/text_lines.h"
#include "fixtures/real_files.h"
#include "fixtures/tokenizer.h"

#include <jansson.h>

static uint32_t hash_ids(const att_tokenizer *t, const text_lines *line)
{
    att_tokens tokens;
    assert_int_equal(att_tokenize(t, line->line, line->bytes, NULL, &tokens), ATT_OK);
    uint32_t h = HASH_START;
    for (int64_t i = 0; i < tokens.count; i++)
        h = hash_int(h, (uint32_t)tokens.ids[i]);
    att_tokens_free(ctx, &tokens);
    return h;
}

static void check_lines(const char *from)
{
    static text_lines t;
    static char *line[N_TEXT_LINES];
    char *text;
    att_tokenizer *tokenizer;
    if (att_tokenizer_open(ctx, from, &tokenizer) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tokenizer_size(tokenizer), 30522);
    text_lines_init(&t);
    assert_int_equal(golden_lines("tokens.txt", &text, line, N_TEXT_LINES), N_TEXT_LINES);
    for (unsigned i = 0; i < N_TEXT_LINES; i += (unsigned)check_step(7)) {
        text_line(&t, i);
        if (hash_ids(tokenizer, &t) != strtoul(line[i], NULL, 16))
            fail_msg("line %u: not as in tests/golden/tokens.txt", i);
    }
    free(text);
    free(t.text);
    att_tokenizer_free(tokenizer);
}

static void ids_of_ten_thousand_lines_equal_the_reference(void **state)
{
    (void)state;
    check_lines(model_folder("all-MiniLM-L6-v2"));
}

static void ids_of_ten_thousand_lines_equal_the_reference_with_vocab_txt(void **state)
{
    (void)state;
    char path[2 * MAX_FILE_NAME];
    const char *vocab = data_file("vocab/bert-base-uncased/vocab.txt");
    if (!vocab) {
        snprintf(path, sizeof path, "%s/vocab.txt", model_folder("all-MiniLM-L6-v2"));
        vocab = path;
    }
    char real[4 * MAX_FILE_NAME], to[MAX_FILE_NAME];
    remove_all();
    assert_non_null(realpath(vocab, real));
    snprintf(to, sizeof to, "%s/vocab.txt", folder.path);
    assert_int_equal(symlink(real, to), 0);
    write_file("tokenizer_config.json", "{}");
    check_lines(folder.path);
}

static void every_setting_gives_the_ids_of_the_reference(void **state)
{
    (void)state;
    static text_lines t;
    char path[2 * MAX_FILE_NAME], *text, *line[24];
    snprintf(path, sizeof path, "%s/tokenizer.json", model_folder("all-MiniLM-L6-v2"));
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    text_lines_init(&t);
    assert_int_equal(golden_lines("settings.txt", &text, line, 24), 24);
    remove_all();
    for (int i = 0; i < 24; i += check_step(5)) {
        static const char *const keys[] = {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"};
        char value[4][8], hash[16];
        assert_int_equal(sscanf(line[i], "%7s %7s %7s %7s %15s", value[0], value[1], value[2], value[3], hash), 5);
        for (int k = 0; k < 4; k++)
            json_object_set_new(json_object_get(root, "normalizer"), keys[k],
                                json_loads(value[k], JSON_DECODE_ANY, NULL));
        snprintf(path, sizeof path, "%s/tokenizer.json", folder.path);
        assert_int_equal(json_dump_file(root, path, 0), 0);
        att_tokenizer *tokenizer;
        assert_int_equal(att_tokenizer_open(ctx, folder.path, &tokenizer), ATT_OK);
        uint32_t h = HASH_START;
        for (unsigned n = 0; n < N_TEXT_LINES; n++) {
            text_line(&t, n);
            h = hash_int(h, hash_ids(tokenizer, &t));
        }
        if (h != strtoul(hash, NULL, 16))
            fail_msg("not as in tests/golden/settings.txt: %s", line[i]);
        att_tokenizer_free(tokenizer);
    }
    json_decref(root);
    free(text);
    free(t.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_ten_thousand_lines_equal_the_reference),
        cmocka_unit_test(ids_of_ten_thousand_lines_equal_the_reference_with_vocab_txt),
        cmocka_unit_test(every_setting_gives_the_ids_of_the_reference),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
