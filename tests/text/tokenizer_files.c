/* The tokenizer's files: two layouts, each way in which they can be wrong, memory that fails. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/text_lines.h"
#include "fixtures/real_files.h"
#include "fixtures/tokenizer.h"

/* ---- bad files */

typedef struct bad_file {
    const char *text;
    att_status status;
    const char *words[3];
} bad_file;

static void expect_failure(const bad_file *b)
{
    att_tokenizer *t = (att_tokenizer *)&t;
    att_status s = att_tokenizer_open(ctx, folder.path, &t);
    if (s != b->status)
        fail_msg("%.200s: %s: %s", b->text, att_status_name(s), s ? att_error(ctx) : "no error");
    assert_null(t);
    for (int i = 0; i < 3 && b->words[i]; i++)
        check_message(ctx, b->words[i]);
}

#define LONG_NAME "01234567890123456789012345678901234567890123456789"
#define WITH_VOCAB(vocab) TOKENIZER("[]", NORMALIZER, PRE_TOKENIZER, "null", MODEL_BEFORE vocab "}}")
#define WITH_ADDED(added) TOKENIZER(added, NORMALIZER, PRE_TOKENIZER, "null", MODEL)
#define WITH_POST(post) TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER, post, MODEL)
#define WITH_MODEL(model) TOKENIZER("[]", NORMALIZER, PRE_TOKENIZER, "null", model)
#define WITH_NORMALIZER(normalizer) TOKENIZER("[]", normalizer, PRE_TOKENIZER, "null", MODEL)

static void what_is_no_file_or_too_large_is_refused_without_reading_it(void **state)
{
    (void)state;
    char path[MAX_FILE_NAME];
    snprintf(path, sizeof path, "%s/tokenizer.json", folder.path);
    remove_all();
    assert_int_equal(mkfifo(path, 0600), 0); /* it is never written: waiting would not end */
    expect_failure(&(bad_file){"a pipe", ATT_ERR_IO, {"tokenizer.json is not a file"}});
    unlink(path);
    write_file("tokenizer.json", "{}");
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    expect_failure(
        &(bad_file){"2^40 bytes", ATT_ERR_UNSUPPORTED, {"has 1099511627776 bytes, the maximum is 67108864"}});
    remove_all();
}

static const bad_file bad_tokenizers[] = {
    {"", ATT_ERR_FORMAT, {"tokenizer.json", "line"}},
    {"{", ATT_ERR_FORMAT, {"tokenizer.json", "line 1"}},
    {"[1]", ATT_ERR_FORMAT, {"not a JSON object"}},
    {"{\"a\":1,\"a\":2}", ATT_ERR_FORMAT, {"duplicate"}},
    {"{}", ATT_ERR_FORMAT, {"\"model\""}},
    {WITH_MODEL("{\"type\":\"WordList\",\"vocab\":{\"a\":0}}"),
     ATT_ERR_UNSUPPORTED,
     {"model.type", "\"WordList\"", "BPE, Unigram, WordPiece or WordLevel"}},
    {WITH_MODEL("{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}"), ATT_ERR_FORMAT, {"there is no \"model.unk_token\""}},
    {WITH_MODEL("{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":7}"), ATT_ERR_FORMAT, {"\"model.vocab\" is 7"}},
    {WITH_MODEL("{\"vocab\":{}}"), ATT_ERR_FORMAT, {"there is no \"model.type\""}},
    {WITH_MODEL("{\"type\":\"WordPiece\",\"vocab\":7}"), ATT_ERR_FORMAT, {"\"model.vocab\" is 7", "an object"}},
    {WITH_NORMALIZER("{\"type\":\"" LONG_NAME "\"}"), ATT_ERR_UNSUPPORTED, {"0123456789012345678901234567"}},
    {WITH_NORMALIZER("\"" LONG_NAME LONG_NAME "\""), ATT_ERR_FORMAT, {"is \"0123456789", "01234..., not an object"}},
    {WITH_NORMALIZER("{\"type\":\"BertNormalizer\",\"clean_text\":1}"),
     ATT_ERR_FORMAT,
     {"\"normalizer.clean_text\" is 1", "true or false"}},
    {TOKENIZER("[]", NORMALIZER, "{\"type\":\"UnicodeScripts\"}", "null", MODEL),
     ATT_ERR_UNSUPPORTED,
     {"pre_tokenizer.type", "\"UnicodeScripts\"", "BertPreTokenizer, ByteLevel"}},
    {WITH_POST("{\"type\":\"LlamaProcessing\"}"), ATT_ERR_UNSUPPORTED, {"post_processor.type", "RobertaProcessing"}},
    {WITH_POST("{\"type\":\"RobertaProcessing\"}"), ATT_ERR_FORMAT, {"\"post_processor.cls\""}},
    {WITH_POST("{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",2]}"), ATT_ERR_FORMAT, {"\"post_processor.sep\""}},
    {WITH_POST("{\"type\":\"BertProcessing\",\"cls\":[2],\"sep\":[\"[SEP]\",3]}"),
     ATT_ERR_FORMAT,
     {"post_processor.cls"}},
    {WITH_POST("{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",50],\"sep\":[\"[SEP]\",3]}"),
     ATT_ERR_FORMAT,
     {"\"[CLS]\"", "id 50"}},
    {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[],\"special_tokens\":{}}"),
     ATT_ERR_FORMAT,
     {"post_processor.single", "text A 0 times"}},
    {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}],"
               "\"special_tokens\":{}}"),
     ATT_ERR_FORMAT,
     {"post_processor.single", "text B 1 times"}},
    {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"C\",\"type_id\":0}}],"
               "\"special_tokens\":{}}"),
     ATT_ERR_UNSUPPORTED,
     {"\"C\"", "\"A\" and \"B\""}},
    {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[X]\",\"type_id\":0}}],"
               "\"special_tokens\":{}}"),
     ATT_ERR_FORMAT,
     {"\"post_processor.special_tokens.[X]\""}},
    {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\",\"type_id\":0}}],"
               "\"special_tokens\":{\"x\":{\"ids\":[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]}}}"),
     ATT_ERR_UNSUPPORTED,
     {"more than 16"}},
    {WITH_VOCAB(""), ATT_ERR_FORMAT, {"vocabulary is empty"}},
    {WITH_VOCAB("\"a\":0"), ATT_ERR_FORMAT, {"unknown token", "\"[UNK]\""}},
    {WITH_VOCAB("\"a\":0,\"b\":0"), ATT_ERR_FORMAT, {"\"a\" and \"b\"", "same id 0"}},
    {WITH_VOCAB("\"a\":0,\"a\":1"), ATT_ERR_FORMAT, {"\"a\" occurs twice", "0 and 1"}},
    {WITH_VOCAB("\"a\":-1"), ATT_ERR_FORMAT, {"\"a\"", "-1"}},
    {WITH_VOCAB("\"a\":1.5"), ATT_ERR_FORMAT, {"\"a\"", "1.5"}},
    {WITH_VOCAB("\"a\":99999999999999999999"), ATT_ERR_FORMAT, {"\"a\"", "99999999999999999999"}},
    {WITH_VOCAB("\"a\":4194304"), ATT_ERR_FORMAT, {"\"a\"", "4194304"}},
    {WITH_VOCAB("\"a\":\"0\""), ATT_ERR_FORMAT, {"\"a\"", "\"0\""}},
    {WITH_VOCAB("\"a\""), ATT_ERR_FORMAT, {"line 1", "no id"}},
    {WITH_VOCAB("\"\":0"), ATT_ERR_FORMAT, {"empty"}},
    {WITH_VOCAB("\"\\u00\":0"), ATT_ERR_FORMAT, {"escape"}},
    {WITH_VOCAB("\"\\ud800\":0"), ATT_ERR_FORMAT, {"escape"}},
    {WITH_VOCAB("\"\\ud83dx\":0"), ATT_ERR_FORMAT, {"escape"}},
    {WITH_VOCAB("\"\\udc00\":0"), ATT_ERR_FORMAT, {"escape"}},
    {WITH_VOCAB("\"\\u12\":0"), ATT_ERR_FORMAT, {"escape"}},
    {WITH_VOCAB("\"\\x\":0"), ATT_ERR_FORMAT, {"escape"}},
    {WITH_VOCAB("\"\xFF\":0"), ATT_ERR_FORMAT, {"UTF-8"}},
    {WITH_VOCAB("\"a\n\":0"), ATT_ERR_FORMAT, {"control character"}},
    {WITH_VOCAB("a:0"), ATT_ERR_FORMAT, {"quotes"}},
    {"{\"model\":{\"vocab\":{\"a\":0,\"b", ATT_ERR_FORMAT, {"tokenizer.json", "line 1"}},
    {"{\"model\":{\"vocab\":{\"a\":0,", ATT_ERR_FORMAT, {"tokenizer.json", "line 1"}},
    {"{\"model\":{\"vocab\":{\"a\\", ATT_ERR_FORMAT, {"tokenizer.json", "line 1"}},
    {"{\"model\":{\"vocab\":{\"a\":", ATT_ERR_FORMAT, {"tokenizer.json"}},
    {"{\"model\":{\"vocab\":{\"a\":1", ATT_ERR_FORMAT, {"tokenizer.json"}},
    {WITH_ADDED("[{\"content\":\"a\"}]"), ATT_ERR_FORMAT, {"added_tokens", "\"a\"", "missing"}},
    {WITH_ADDED("[{\"id\":3}]"), ATT_ERR_FORMAT, {"there is no \"added_tokens.content\""}},
    {WITH_ADDED("[{\"id\":3,\"content\":\"\"}]"), ATT_ERR_FORMAT, {"empty"}},
    {WITH_ADDED("[{\"id\":3,\"content\":\"new\"}]"), ATT_ERR_FORMAT, {"\"[SEP]\" and \"new\"", "id 3"}},
    {WITH_ADDED("[{\"id\":3,\"content\":\"a\"}]"), ATT_ERR_FORMAT, {"\"a\"", "id 3", "14"}},
    {WITH_MODEL("{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":\"##\","
                "\"max_input_chars_per_word\":1001,\"vocab\":{\"a\":0}}"),
     ATT_ERR_UNSUPPORTED,
     {"\"model.max_input_chars_per_word\" is 1001"}},
    {WITH_MODEL("{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":"
                "\"00000000000000000000000000000000\",\"max_input_chars_per_word\":100,\"vocab\":{\"a\":0}}"),
     ATT_ERR_UNSUPPORTED,
     {"continuing_subword_prefix"}},
};

static void bad_tokenizer_files_give_a_sentence_that_names_file_setting_and_value(void **state)
{
    (void)state;
    remove_all();
    for (size_t i = 0; i < sizeof bad_tokenizers / sizeof bad_tokenizers[0]; i++) {
        write_file("tokenizer.json", bad_tokenizers[i].text);
        expect_failure(&bad_tokenizers[i]);
    }
}

/* Tokens whose hashes (FNV-1a, folded to ten bits as for 1024 slots) are the same: with more and more of them, each
 * search would take longer and longer. */
static void a_vocabulary_that_is_made_to_collide_is_refused(void **state)
{
    (void)state;
    enum { N = 300 };
    for (int colliding = 0; colliding < 2; colliding++) {
        FILE *f = folder_open(&folder, "tokenizer.json");
        fprintf(f, "{\"normalizer\":" NORMALIZER ",\"pre_tokenizer\":" PRE_TOKENIZER ",\"model\":" MODEL_BEFORE
                   "\"[UNK]\":0");
        for (unsigned i = 0, id = 1; id < N; i++) {
            char token[16];
            const uint32_t hash = hash_bytes(HASH_START, token, (size_t)snprintf(token, sizeof token, "x%u", i));
            if (!colliding || ((hash ^ hash >> 15) & 1023) == 7)
                fprintf(f, ",\"%s\":%u", token, id++);
        }
        fprintf(f, "}}}");
        assert_int_equal(fclose(f), 0);
        const bad_file collision = {
            "a collision", ATT_ERR_UNSUPPORTED, {"tokenizer.json: more than 256 tokens collide"}};
        att_tokenizer *t = NULL;
        if (colliding)
            expect_failure(&collision);
        else
            assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
        att_tokenizer_free(t);
    }
}

static void more_values_than_there_is_memory_for_are_refused(void **state)
{
    (void)state;
    FILE *f = folder_open(&folder, "tokenizer.json");
    fprintf(f, "{\"model\":{\"vocab\":{\"a\":0}},\"x\":\"[,\\\",\",\"more\":["); /* in strings nothing counts */
    for (int i = 0; i < 1 << 20; i++)
        fprintf(f, "[],");
    fprintf(f, "0]}");
    assert_int_equal(fclose(f), 0);
    expect_failure(
        &(bad_file){"lists", ATT_ERR_UNSUPPORTED, {"tokenizer.json: has 2097158 values, the maximum is 2097152"}});
}

static void two_files_that_contradict_each_other_give_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        bad_file b;
    } cases[] = {
        {"{\"do_lower_case\": false}",
         {"", ATT_ERR_UNSUPPORTED, {"tokenizer_config.json", "\"do_lower_case\" is false", "tokenizer.json"}}},
        {"{\"strip_accents\": false}", {"", ATT_ERR_UNSUPPORTED, {"\"strip_accents\" is false"}}},
        {"{\"tokenize_chinese_chars\": false}", {"", ATT_ERR_UNSUPPORTED, {"\"tokenize_chinese_chars\" is false"}}},
        {"{\"do_lower_case\": 1}", {"", ATT_ERR_FORMAT, {"\"do_lower_case\"", "1"}}},
        {"{", {"", ATT_ERR_FORMAT, {"tokenizer_config.json"}}},
    };
    att_tokenizer_free(open_text(SMALL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file("tokenizer_config.json", cases[i].config);
        expect_failure(&cases[i].b);
    }
    write_file("tokenizer_config.json", "{\"do_lower_case\": true, \"strip_accents\": null, \"other\": 7}");
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_OK);
    att_tokenizer_free(t);
}

static void a_folder_without_a_tokenizer_gives_a_sentence_that_names_it(void **state)
{
    (void)state;
    remove_all();
    expect_failure(&(bad_file){"nothing", ATT_ERR_IO, {folder.path, "neither tokenizer.json nor vocab.txt"}});
    att_tokenizer *t;
    assert_int_equal(att_tokenizer_open(ctx, "/nowhere", &t), ATT_ERR_IO);
    check_message(ctx, "/nowhere");
    char path[MAX_FILE_NAME];
    assert_int_equal(att_tokenizer_open(ctx, NULL, &t), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_tokenizer_open: path is NULL");
    snprintf(path, sizeof path, "%s/tokenizer.json", folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_failure(&(bad_file){"a folder", ATT_ERR_IO, {"tokenizer.json", "is not a file"}});
    rmdir(path);
}

/* ---- the older layout */

#define SMALL_VOCAB_TXT                                                                                                \
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nHello\nhello\n\xC3\xBC"                                                       \
    "ber\nuber\n##s\r\n"

static void the_older_layout_is_read_with_its_configuration(void **state)
{
    (void)state;
    remove_all();
    write_file("vocab.txt", SMALL_VOCAB_TXT);
    static const struct {
        const char *config, *map, *tokens;
    } cases[] = {
        {"{}", NULL, "[CLS] hello ##s [MASK] uber [SEP]"},
        {"{\"do_lower_case\": false, \"model_max_length\": 1000000000000000019884624838656}", NULL,
         "[CLS] Hello ##s [MASK] \xC3\xBC"
         "ber [SEP]"},
        {"{\"strip_accents\": false, \"tokenizer_class\": \"BertTokenizer\", \"never_split\": null}", NULL,
         "[CLS] hello ##s [MASK] \xC3\xBC"
         "ber [SEP]"},
        {"{\"cls_token\": {\"content\": \"[SEP]\"}}", "{\"sep_token\": \"[PAD]\"}",
         "[SEP] hello ##s [MASK] uber [PAD]"},
        {"{\"cls_token\": {\"content\": \"[SEP]\"}}", "{\"cls_token\": \"[MASK]\"}",
         "[MASK] hello ##s [MASK] uber [SEP]"},
        {"{\"cls_token\": \"[SEP]\", \"added_tokens_decoder\": {}}", "{\"cls_token\": \"[MASK]\"}",
         "[SEP] hello ##s [MASK] uber [SEP]"},
        {"{\"additional_special_tokens\": [\"Hello\", {\"content\": \"uber\"}]}", NULL,
         "[CLS] Hello [UNK] [MASK] uber [SEP]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file("tokenizer_config.json", cases[i].config);
        remove_file("special_tokens_map.json");
        if (cases[i].map)
            write_file("special_tokens_map.json", cases[i].map);
        att_tokenizer *t;
        if (att_tokenizer_open(ctx, folder.path, &t) != ATT_OK)
            fail_msg("%s", att_error(ctx));
        const char *text = "Hellos[MASK]\xC3\xBC"
                           "ber";
        assert_string_equal(tokens_of(t, text, strlen(text), NULL), cases[i].tokens);
        assert_int_equal(att_tokenizer_size(t), 10);
        att_tokenizer_free(t);
    }
}

static void a_bad_older_layout_gives_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *vocab, *config, *map;
        att_status status;
        const char *words[3];
    } cases[] = {
        {SMALL_VOCAB_TXT, NULL, NULL, ATT_ERR_IO, {"tokenizer_config.json"}},
        {SMALL_VOCAB_TXT, "[]", NULL, ATT_ERR_FORMAT, {"tokenizer_config.json", "object"}},
        {SMALL_VOCAB_TXT, "{}", "{", ATT_ERR_FORMAT, {"special_tokens_map.json"}},
        {SMALL_VOCAB_TXT "a\na\n", "{}", NULL, ATT_ERR_FORMAT, {"vocab.txt", "\"a\" occurs twice", "10 and 11"}},
        {SMALL_VOCAB_TXT "\na\n", "{}", NULL, ATT_ERR_FORMAT, {"vocab.txt", "line 11 is empty"}},
        {SMALL_VOCAB_TXT "\xFF\n", "{}", NULL, ATT_ERR_FORMAT, {"vocab.txt", "line 11", "UTF-8"}},
        {"[UNK]\n", "{}", NULL, ATT_ERR_FORMAT, {"tokenizer_config.json", "\"[CLS]\"", "vocab.txt"}},
        {"", "{}", NULL, ATT_ERR_FORMAT, {"not in vocab.txt"}},
        {SMALL_VOCAB_TXT,
         "{\"tokenizer_class\": \"T5Tokenizer\"}",
         NULL,
         ATT_ERR_UNSUPPORTED,
         {"\"tokenizer_class\" is \"T5Tokenizer\""}},
        {SMALL_VOCAB_TXT,
         "{\"do_basic_tokenize\": false}",
         NULL,
         ATT_ERR_UNSUPPORTED,
         {"\"do_basic_tokenize\" is false"}},
        {SMALL_VOCAB_TXT, "{\"never_split\": [\"x\"]}", NULL, ATT_ERR_UNSUPPORTED, {"never_split"}},
        {SMALL_VOCAB_TXT, "{\"do_lower_case\": \"yes\"}", NULL, ATT_ERR_FORMAT, {"\"do_lower_case\"", "\"yes\""}},
        {SMALL_VOCAB_TXT, "{\"unk_token\": 7}", NULL, ATT_ERR_FORMAT, {"\"unk_token\" has 7"}},
        {SMALL_VOCAB_TXT, "{\"additional_special_tokens\": [7]}", NULL, ATT_ERR_FORMAT, {"additional_special_tokens"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        remove_all();
        write_file("vocab.txt", cases[i].vocab);
        if (cases[i].config)
            write_file("tokenizer_config.json", cases[i].config);
        if (cases[i].map)
            write_file("special_tokens_map.json", cases[i].map);
        bad_file b = {cases[i].config, cases[i].status, {cases[i].words[0], cases[i].words[1], cases[i].words[2]}};
        expect_failure(&b);
    }
}

/* ---- memory */

static void every_failing_allocation_gives_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    remove_all();
    for (int older = 0; older < 2; older++) {
        write_file("vocab.txt", SMALL_VOCAB_TXT);
        write_file("tokenizer_config.json", "{}");
        if (!older)
            write_file("tokenizer.json", SMALL);
        else
            remove_file("tokenizer.json");
        att_status s = ATT_ERR_MEMORY;
        for (long n = 2; s != ATT_OK; n++) { /* the first is the context's own */
            fail_alloc f = {.fail_at = n};
            att_ctx *failing;
            att_status opened =
                att_open(&failing, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f)));
            if (opened != ATT_OK)
                continue;
            att_tokenizer *t;
            s = att_tokenizer_open(failing, folder.path, &t);
            if (s == ATT_OK) {
                att_tokens tokens;
                static const char text[] = "hello hello hello hello hello hello hello hello hello hello hello hello "
                                           "hello hello hello hello hello hello hello hello hello hello hello hello "
                                           "hello hello hello hello hello hello hello hello hello hello hello hello "
                                           "hello hello hello hello hello hello hello hello hello hello hello hello "
                                           "hello hello hello hello hello hello hello hello hello hello hello hello "
                                           "hello hello hello hello hello hello hello hello hello hello hello hello";
                s = att_tokenize(t, text, sizeof text - 1, NULL, &tokens);
                if (s == ATT_OK)
                    assert_int_equal(tokens.count, 74);
                else
                    assert_null(tokens.ids);
                att_tokens_free(failing, &tokens);
            } else {
                assert_null(t);
            }
            assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
            att_tokenizer_free(t);
            att_close(failing);
            assert_int_equal(f.live, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_file_or_too_large_is_refused_without_reading_it),
        cmocka_unit_test(bad_tokenizer_files_give_a_sentence_that_names_file_setting_and_value),
        cmocka_unit_test(a_vocabulary_that_is_made_to_collide_is_refused),
        cmocka_unit_test(more_values_than_there_is_memory_for_are_refused),
        cmocka_unit_test(two_files_that_contradict_each_other_give_a_sentence),
        cmocka_unit_test(a_folder_without_a_tokenizer_gives_a_sentence_that_names_it),
        cmocka_unit_test(the_older_layout_is_read_with_its_configuration),
        cmocka_unit_test(a_bad_older_layout_gives_a_sentence),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
