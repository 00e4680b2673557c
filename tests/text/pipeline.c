/* Tokenizers of tokenizer.json beside their golden files: pairs, options, long texts, files that are refused. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/text_lines.h"
#include "fixtures/real_files.h"
#include "fixtures/tokenizer.h"

#include <jansson.h>

/* Opens a tokenizer of tests/golden/pipeline; a step instead of its own, as {"normalizer": ...}, or NULL. */
static att_status open_golden(att_ctx *c, const char *name, const char *step, att_tokenizer **t)
{
    char path[MAX_FILE_NAME];
    remove_all();
    snprintf(path, sizeof path, "tests/golden/pipeline/%s.json", name);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    if (step) {
        json_error_t error;
        json_t *more = json_loads(step, 0, &error), *model = json_object_get(more, "model");
        if (!more)
            fail_msg("%s: %s", step, error.text);
        json_object_update(model ? json_object_get(root, "model") : root, model ? model : more);
        json_decref(more);
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", folder.path);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    return att_tokenizer_open(c, folder.path, t);
}

static att_tokenizer *golden(const char *name)
{
    att_tokenizer *t;
    if (open_golden(ctx, name, NULL, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* ---- pairs */

static uint32_t hash_pair(const att_tokenizer *t, const text_lines *a, const text_lines *b, int64_t most, bool special)
{
    att_tokens x;
    if (att_tokenize_pair(
            t, a->line, a->bytes, b->line, b->bytes,
            ATT_OPTIONS(att_tokenize_options, .max_tokens = most, .offsets = true, .no_special = !special), &x))
        fail_msg("%s", att_error(ctx));
    uint32_t h = HASH_START;
    for (int64_t i = 0; i < x.count; i++)
        h = hash_int(h, (uint32_t)x.ids[i]);
    for (int64_t i = 0; i < x.count; i++)
        h = hash_int(h, (uint32_t)x.type_ids[i]);
    for (int64_t i = 0; i < 2 * x.count; i++)
        h = hash_int(h, (uint32_t)x.offsets[i]);
    assert_true(most == 0 || x.count <= most);
    assert_int_equal(x.truncated, x.truncated && x.count == most);
    att_tokens_free(ctx, &x);
    return h;
}

static void pairs_are_those_of_the_reference(void **state)
{
    (void)state;
    static text_lines a, b;
    char *text, *line[400], open[16] = "";
    att_tokenizer *t = NULL;
    const int n = golden_lines("pipeline/pairs.txt", &text, line, 400);
    assert_int_equal(n, 320);
    text_lines_init(&a);
    text_lines_init(&b);
    for (int i = 0; i < n; i++) {
        char name[16];
        unsigned first, second, want;
        int most;
        assert_int_equal(sscanf(line[i], "%15s %u %u %d %x", name, &first, &second, &most, &want), 5);
        if (strcmp(name, open) != 0) {
            att_tokenizer_free(t);
            t = golden(name);
            strcpy(open, name);
        }
        text_line(&a, first);
        text_line(&b, second);
        if (hash_pair(t, &a, &b, most, first % 3 > 0) != want)
            fail_msg("not as in the reference: %s", line[i]);
    }
    att_tokenizer_free(t);
    free(text);
    free(a.text);
    free(b.text);
}

static void a_pair_of_bert_has_its_type_ids(void **state)
{
    (void)state;
    static const int32_t types[] = {0, 0, 0, 1, 1};
    att_tokens x;
    att_tokenizer *t =
        open_text(TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER,
                            "{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",2],\"sep\":[\"[SEP]\",3]}", MODEL));
    assert_int_equal(att_tokenize_pair(t, "hello", 5, "world", 5, NULL, &x), ATT_OK);
    assert_int_equal(x.count, 5);
    assert_memory_equal(x.type_ids, types, sizeof types);
    assert_memory_equal(x.ids, ((const int32_t[]){2, 8, 3, 9, 3}), sizeof types);
    assert_null(x.offsets);
    att_tokens_free(ctx, &x);
    assert_int_equal(att_tokenize_pair(t, "a", 1, "b", 1, ATT_OPTIONS(att_tokenize_options, .max_tokens = 2), &x),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "max_tokens is 2, but the special tokens alone are 3");
    static const int64_t offsets[] = {0, 0, 0, 5, 0, 0, 1, 6, 0, 0};
    assert_int_equal(
        att_tokenize_pair(t, "Hello", 5, " World", 6, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x), ATT_OK);
    assert_memory_equal(x.ids, ((const int32_t[]){2, 8, 3, 9, 3}), sizeof types);
    assert_memory_equal(x.offsets, offsets, sizeof offsets);
    att_tokens_free(ctx, &x);
    att_tokenizer_free(t);
}

/* ---- offsets */

/* The letters of a ligature that are new stand for U+001A after it, which the charsmap removes. */
static void what_a_charsmap_removes_belongs_to_the_character_before(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t tokens, begin, end; /* of the last token */
    } cases[] = {
        {u8"He\uFB00\x1A", 2, 2, 6},
        {u8"\uFB00\x1A", 2, 3, 4},
        {u8"\uFB00", 2, 0, 3},
        {u8"\uFB03\x1A\x1A"
         "z",
         4, 5, 6},
        {u8"\x1A\uFB01\x1A", 2, 1, 4},
        {"a\x1A\x1A"
         "b",
         2, 0, 4},
        {"\x1A"
         "a",
         1, 0, 1},
    };
    att_tokenizer *t = golden("xlmr");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_tokens x;
        assert_int_equal(att_tokenize(t, cases[i].text, strlen(cases[i].text),
                                      ATT_OPTIONS(att_tokenize_options, .offsets = true, .no_special = true), &x),
                         ATT_OK);
        if (x.count != cases[i].tokens || x.offsets[2 * x.count - 2] != cases[i].begin ||
            x.offsets[2 * x.count - 1] != cases[i].end)
            fail_msg("case %zu: %lld tokens, the last one [%lld, %lld)", i, (long long)x.count,
                     (long long)x.offsets[2 * x.count - 2], (long long)x.offsets[2 * x.count - 1]);
        att_tokens_free(ctx, &x);
    }
    att_tokenizer_free(t);
}

/* ---- options */

static void what_users_type_need_not_become_special_tokens(void **state)
{
    (void)state;
    static const char text[] = "<|im_start|> a";
    const att_tokenize_options *plain = ATT_OPTIONS(att_tokenize_options, .split_special = true);
    att_tokens x;
    att_tokenizer *t = golden("smollm2");
    assert_int_equal(att_tokenize(t, text, sizeof text - 1, NULL, &x), ATT_OK);
    assert_int_equal(x.ids[0], 1);
    att_tokens_free(ctx, &x);
    assert_int_equal(att_tokenize(t, text, sizeof text - 1, plain, &x), ATT_OK);
    for (int64_t i = 0; i < x.count; i++)
        assert_true(x.ids[i] > 2);
    att_tokens_free(ctx, &x);
    att_tokenizer_free(t);
    t = open_text(SMALL);
    assert_string_equal(tokens_of(t, "[MASK]", 6, NULL), "[CLS] [MASK] [SEP]");
    assert_string_equal(tokens_of(t, "[MASK]", 6, plain), "[CLS] [ mask ] [SEP]");
    att_tokenizer_free(t);
    t = open_text(TOKENIZER("[{\"id\":60,\"content\":\"[MASKED]\",\"special\":false}]", NORMALIZER, PRE_TOKENIZER,
                            "null", MODEL));
    assert_string_equal(tokens_of(t, "[MASKED]", 8, plain), "[MASKED]");
    att_tokenizer_free(t);
}

static void texts_are_truncated_at_a_token(void **state)
{
    (void)state;
    static const char text[] = "one two three four five";
    att_tokens all, x;
    att_tokenizer *t = golden("llama3");
    assert_int_equal(att_tokenize(t, text, sizeof text - 1, NULL, &all), ATT_OK);
    assert_false(all.truncated);
    for (int64_t most = 1; most <= all.count + 1; most++) {
        assert_int_equal(
            att_tokenize(t, text, sizeof text - 1, ATT_OPTIONS(att_tokenize_options, .max_tokens = most), &x), ATT_OK);
        assert_int_equal(x.truncated, most < all.count);
        assert_int_equal(x.count, most < all.count ? most : all.count);
        assert_memory_equal(x.ids, all.ids, (size_t)x.count * sizeof *x.ids);
        att_tokens_free(ctx, &x);
    }
    att_tokens_free(ctx, &all);
    att_tokenizer_free(t);
}

static void what_is_unknown_is_reported(void **state)
{
    (void)state;
    att_tokenizer *t = golden("xlmr");
    assert_string_equal(unknown_of(t, "a\xF0\x90\x80\x80z"), "\xF0\x90\x80\x80");
    att_tokenizer_free(t);
}

/* ---- long texts */

static void a_million_times_one_letter_takes_no_time(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "llama2", "clip", "xlmr"};
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES);
    memset(text, 'a', BYTES);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        att_tokens x;
        att_tokenizer *t = golden(names[i]);
        assert_int_equal(att_tokenize(t, text, BYTES, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x), ATT_OK);
        assert_true(x.count > BYTES / 64);
        att_tokens_free(ctx, &x);
        att_tokenizer_free(t);
    }
    free(text);
}

static void an_expression_that_takes_too_long_fails_with_a_sentence(void **state)
{
    (void)state;
    static const char split[] =
        "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?:a|a)*b|(?:a+)+c\"}, "
        "\"behavior\": \"Isolated\", \"invert\": false}}";
    char text[2000];
    att_tokens x;
    att_tokenizer *t;
    memset(text, 'a', sizeof text);
    if (open_golden(ctx, "gpt2", split, &t))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tokenize(t, text, sizeof text, NULL, &x), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "(?:a|a)*b");
    check_message(ctx, "fails on this text");
    assert_null(x.ids);
    att_tokenizer_free(t);
}

static void normalizers_that_would_fill_memory_fail(void **state)
{
    (void)state;
    enum { STEPS = 4, GROWTH = 400 }; /* 400^4 bytes */
    char step[STEPS * (GROWTH + 80) + 80] = "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [";
    char letters[GROWTH + 1] = "";
    memset(letters, 'a', GROWTH);
    for (int i = 0; i < STEPS; i++)
        sprintf(step + strlen(step), "%s{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"%s\"}",
                i ? ", " : "", letters);
    strcat(step, "]}}");
    att_tokens x;
    att_tokenizer *t;
    if (open_golden(ctx, "gpt2", step, &t))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tokenize(t, "a", 1, NULL, &x), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "the normalizers make more than");
    att_tokenizer_free(t);
}

/* ---- files */

#define SPLIT(regex)                                                                                                   \
    "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex "\"}, \"behavior\": \"Isolated\"}}"

static const struct {
    const char *name, *step;
    att_status status;
    const char *words[2];
} bad[] = {
    {"gpt2", SPLIT("a(b"), ATT_ERR_UNSUPPORTED, {"pre_tokenizer.pattern.Regex", "missing closing parenthesis"}},
    {"gpt2", SPLIT("\\\\bword"), ATT_ERR_UNSUPPORTED, {"\\b in a regular expression", "Regex"}},
    {"gpt2", SPLIT("(a)\\\\1"), ATT_ERR_UNSUPPORTED, {"\\1", NULL}},
    {"gpt2", SPLIT("a{1,3}+"), ATT_ERR_UNSUPPORTED, {"}+", NULL}},
    {"gpt2", SPLIT("\\\\p{Cn}"), ATT_ERR_UNSUPPORTED, {"\\p{Cn}", NULL}},
    {"gpt2", SPLIT("\\\\p{Alphabetic}"), ATT_ERR_UNSUPPORTED, {"\\p{Alphabetic}", NULL}},
    {"gpt2", SPLIT("[\\\\P{L}]"), ATT_ERR_UNSUPPORTED, {"\\P{L}", NULL}},
    {"gpt2", SPLIT("\\\\pL"), ATT_ERR_UNSUPPORTED, {"\\p", NULL}},
    {"gpt2", SPLIT("a{,3}"), ATT_ERR_UNSUPPORTED, {"{,3}", NULL}},
    {"gpt2", SPLIT("a{3}?"), ATT_ERR_UNSUPPORTED, {"{3}?", NULL}},
    {"gpt2", SPLIT("\\\\v"), ATT_ERR_UNSUPPORTED, {"\\v", NULL}},
    {"gpt2", SPLIT("a(?i)b|c"), ATT_ERR_UNSUPPORTED, {"(?i", NULL}},
    {"gpt2", SPLIT("(?i)[\\\\p{Lu}]"), ATT_ERR_UNSUPPORTED, {"\\p{Lu}", NULL}},
    {"gpt2", SPLIT("(?i:miss)"), ATT_ERR_UNSUPPORTED, {"ss", NULL}},
    {"gpt2", SPLIT("\\\\Qa"), ATT_ERR_UNSUPPORTED, {"\\Q", NULL}},
    {"gpt2", SPLIT("[a&&b]"), ATT_ERR_UNSUPPORTED, {"&&", NULL}},
    {"gpt2", SPLIT("[[:alpha:]]"), ATT_ERR_UNSUPPORTED, {"[:", NULL}},
    {"gpt2", SPLIT("(?R)"), ATT_ERR_UNSUPPORTED, {"(?R", NULL}},
    {"gpt2", SPLIT("(?m:.)"), ATT_ERR_UNSUPPORTED, {"(?m", NULL}},
    {"gpt2", SPLIT("(*UTF)a"), ATT_ERR_UNSUPPORTED, {"(*", NULL}},
    {"gpt2",
     "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"\"}, \"behavior\": \"Isolated\"}}",
     ATT_ERR_FORMAT,
     {"pre_tokenizer.pattern.String", "empty"}},
    {"gpt2",
     "{\"pre_tokenizer\": {\"type\": \"Punctuation\", \"behavior\": \"Merged\"}}",
     ATT_ERR_UNSUPPORTED,
     {"pre_tokenizer.behavior", "\"Merged\""}},
    {"gpt2",
     "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"last\"}}",
     ATT_ERR_UNSUPPORTED,
     {"prepend_scheme", "\"last\""}},
    {"gpt2",
     "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Sequence\"}]}}",
     ATT_ERR_UNSUPPORTED,
     {"normalizer.normalizers.type", "Sequence"}},
    {"gpt2", "{\"normalizer\": {\"type\": \"Uppercase\"}}", ATT_ERR_UNSUPPORTED, {"\"Uppercase\"", "NFKC"}},
    {"gpt2",
     "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAA\"}}",
     ATT_ERR_FORMAT,
     {"precompiled_charsmap", "base64"}},
    {"gpt2",
     "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"/////w==\"}}",
     ATT_ERR_FORMAT,
     {"precompiled_charsmap", "its trie 4294967295"}},
    {"gpt2", "{\"decoder\": {\"type\": \"CTC\"}}", ATT_ERR_UNSUPPORTED, {"decoder.type", "\"CTC\""}},
    {"gpt2", "{\"model\": {\"merges\": [\"a\"]}}", ATT_ERR_FORMAT, {"model.merges", "\"a\""}},
    {"gpt2", "{\"model\": {\"merges\": [[\"a\", 1]]}}", ATT_ERR_FORMAT, {"model.merges", "not two tokens"}},
    {"gpt2", "{\"model\": {\"merges\": [\"a zzzz\"]}}", ATT_ERR_FORMAT, {"\"zzzz\"", "not all in the vocabulary"}},
    {"gpt2", "{\"model\": {\"dropout\": 0.1}}", ATT_ERR_UNSUPPORTED, {"model.dropout", "0.1"}},
    {"gpt2", "{\"model\": {\"unk_token\": \"<nothing>\"}}", ATT_ERR_FORMAT, {"<nothing>", NULL}},
    {"xlmr", "{\"model\": {\"unk_id\": 100000}}", ATT_ERR_FORMAT, {"model.unk_id", "100000"}},
    {"xlmr", "{\"model\": {\"vocab\": [[\"<s>\", 0.5], [\"<pad>\"]]}}", ATT_ERR_FORMAT, {"model.vocab", "[\"<pad>\"]"}},
    {"xlmr", "{\"model\": {\"vocab\": []}}", ATT_ERR_FORMAT, {"model.unk_id", NULL}},
};
static void bad_files_give_a_sentence_that_names_setting_and_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        att_tokenizer *t;
        const att_status s = open_golden(ctx, bad[i].name, bad[i].step, &t);
        if (s != bad[i].status)
            fail_msg("%s: %s: %s", bad[i].step, att_status_name(s), s ? att_error(ctx) : "no error");
        assert_null(t);
        for (int k = 0; k < 2 && bad[i].words[k]; k++)
            check_message(ctx, bad[i].words[k]);
    }
}

static void bad_merges_files_give_a_sentence(void **state)
{
    (void)state;
    att_tokenizer *t;
    remove_all();
    write_file("vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3}");
    write_file("merges.txt", "#version: 0.2\na b\n");
    t = NULL;
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    assert_string_equal(tokens_of(t, "ab", 2, NULL), "ab");
    att_tokenizer_free(t);
    write_file("added_tokens.json", "{\"<|user|>\": 4, \"<|pad|>\": 5}");
    write_file("tokenizer_config.json", "{\"pad_token\": \"<|pad|>\", \"added_tokens_decoder\": {\"6\": "
                                        "{\"content\": \"<x>\", \"special\": false, \"normalized\": false}}}");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    assert_string_equal(tokens_of(t, "<|user|>ab<|pad|><x>", 20, NULL), "<|user|> ab <|pad|> <x>");
    assert_string_equal(tokens_of(t, "<|user|>ab<|pad|>", 17, ATT_OPTIONS(att_tokenize_options, .split_special = true)),
                        "<|user|> ab a");
    att_tokenizer_free(t);
    write_file("tokenizer_config.json", "{\"add_bos_token\": true}");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "add_bos_token");
    write_file("tokenizer_config.json", "{\"eos_token\": \"<none>\"}");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_ERR_FORMAT);
    check_message(ctx, "\"<none>\" is not in vocab.json");
    remove_file("tokenizer_config.json");
    write_file("merges.txt", "#version: 0.2\na b\na b c\n");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_ERR_FORMAT);
    check_message(ctx, "merges.txt: line 3 is not two tokens");
    write_file("merges.txt", "a b\n");
    write_file("tokenizer_config.json", "{\"tokenizer_class\": \"BloomTokenizer\"}");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "\"BloomTokenizer\"");
    write_file("tokenizer_config.json", "{}");
    write_file("vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2}");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_ERR_FORMAT);
    check_message(ctx, "<|endoftext|>");
}

static void every_failing_allocation_gives_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"qwen", "llama2", "xlmr"};
    static const char text[] = "na\xC3\xAFve <|im_start|> \xE7\x8C\xAB 12 Stra\xC3\x9F"
                               "e";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        att_tokenizer_free(golden(names[i])); /* writes the folder */
        att_status s = ATT_ERR_MEMORY;
        for (long n = 2; s != ATT_OK; n += check_step(5)) { /* the first is the context's own */
            fail_alloc f = {.fail_at = n};
            att_ctx *failing;
            if (att_open(&failing, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f))))
                continue;
            att_tokenizer *t;
            att_tokens x = {0};
            att_text decoded = {0};
            s = att_tokenizer_open(failing, folder.path, &t);
            s = s ? s
                  : att_tokenize_pair(t, text, sizeof text - 1, text, 3,
                                      ATT_OPTIONS(att_tokenize_options, .offsets = true), &x);
            s = s ? s : att_detokenize(t, x.ids, x.count, &decoded);
            assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
            if (s)
                check_message(failing, "out of memory");
            att_text_free(failing, &decoded);
            att_tokens_free(failing, &x);
            att_tokenizer_free(t);
            att_close(failing);
            assert_int_equal(f.live, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_those_of_the_reference),
        cmocka_unit_test(a_pair_of_bert_has_its_type_ids),
        cmocka_unit_test(what_a_charsmap_removes_belongs_to_the_character_before),
        cmocka_unit_test(what_users_type_need_not_become_special_tokens),
        cmocka_unit_test(texts_are_truncated_at_a_token),
        cmocka_unit_test(what_is_unknown_is_reported),
        cmocka_unit_test(a_million_times_one_letter_takes_no_time),
        cmocka_unit_test(an_expression_that_takes_too_long_fails_with_a_sentence),
        cmocka_unit_test(normalizers_that_would_fill_memory_fail),
        cmocka_unit_test(bad_files_give_a_sentence_that_names_setting_and_value),
        cmocka_unit_test(bad_merges_files_give_a_sentence),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
