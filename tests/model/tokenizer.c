/* The tokenizer: each rule on a vocabulary of our own, then the ids of the `tokenizers` package on real ones. */
#include "attend_model.h"
#include "fail_alloc.h"
#include "folder.h"
#include "model/text_lines.h"
#include "real_files.h"

#include <time.h>

#include <jansson.h>

static att_ctx *ctx;

/* ---- the folder of all tests */

static test_folder folder;

static void write_file(const char *name, const char *text) { folder_write(&folder, name, text); }

static void remove_file(const char *name)
{
    char path[MAX_FILE_NAME];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    unlink(path);
}

static void remove_all(void)
{
    static const char *const names[] = {"tokenizer.json", "vocab.txt", "tokenizer_config.json",
                                        "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        remove_file(names[i]);
}

/* ---- a small vocabulary */

/* clang-format off */
#define ADDED "[{\"id\":0,\"content\":\"[PAD]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":1,\"content\":\"[UNK]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":2,\"content\":\"[CLS]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":3,\"content\":\"[SEP]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":4,\"content\":\"[MASK]\",\"special\":true,\"normalized\":false,\"lstrip\":true}," \
              "{\"id\":60,\"content\":\"[MASKED]\",\"special\":true,\"normalized\":false}]"
#define NORMALIZER "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true," \
                   "\"strip_accents\":null,\"lowercase\":true}"
#define PRE_TOKENIZER "{\"type\":\"BertPreTokenizer\"}"
#define POST "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}}," \
             "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":0}}]," \
             "\"pair\":[],\"special_tokens\":{\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[2],\"tokens\":[\"[CLS]\"]}," \
             "\"[SEP]\":{\"id\":\"[SEP]\",\"ids\":[3],\"tokens\":[\"[SEP]\"]}}}"
#define VOCAB "\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"un\":5,\"##aff\":6,\"##able\":7," \
              "\"hello\":8,\"world\":9,\"!\":10,\",\":11,\"uber\":12,\"##s\":13,\"a\":14,\"##a\":15,\"b\":16,\"##b\":17," \
              "\"[\":18,\"]\":19,\"mask\":20,\"\\u65e5\":21,\"\\u672c\":22,\"\\u1112\":23,\"##\\u1161\":24," \
              "\"##\\u11ab\":25,\"i\":26,\"\\ud83d\\ude00\":27,\"\\u03c3\":28,\"##\\u03c3\":29,\"unaff\":30,\";\":31," \
              "\"\\u00fcber\":32,\"##ed\":33,\"\\\"\":34,\"Hello\":35,\"\\ufb01\":36,\"k\":37,\"\\u0378\":38"
#define MODEL_BEFORE "{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\"," \
                     "\"max_input_chars_per_word\":100,\"vocab\":{"
#define MODEL MODEL_BEFORE VOCAB "}}"
#define TOKENIZER(added, normalizer, pre, post, model) \
    "{\"version\":\"1.0\",\"truncation\":{\"max_length\":3},\"padding\":{\"strategy\":{\"Fixed\":9}},\"added_tokens\":" \
    added ",\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre ",\"post_processor\":" post ",\"model\":" model "}"
#define SMALL TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER, POST, MODEL)
/* clang-format on */

static att_tokenizer *open_text(const char *tokenizer_json)
{
    att_tokenizer *t;
    remove_all();
    write_file("tokenizer.json", tokenizer_json);
    if (att_tokenizer_open(ctx, folder.path, &t) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    return t;
}

/* The tokens of a text with a space between them. */
static const char *tokens_of(const att_tokenizer *t, const char *text, size_t bytes, const att_encode_options *opt)
{
    static char out[4096];
    att_tokens tokens;
    if (att_encode(t, text, bytes, opt, &tokens) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    size_t n = 0;
    out[0] = 0;
    for (int64_t i = 0; i < tokens.count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i ? " " : "", att_tokenizer_token(t, tokens.ids[i]));
    assert_true(n < sizeof out);
    att_tokens_free(t, &tokens);
    assert_null(tokens.ids);
    return out;
}

typedef struct rule {
    const char *text, *tokens;
} rule;

#define PLAIN ATT_OPTIONS(att_encode_options, .no_special = true)

static void check(const char *tokenizer_json, const rule *rules, size_t n)
{
    att_tokenizer *t = open_text(tokenizer_json);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(tokens_of(t, rules[i].text, strlen(rules[i].text), PLAIN), rules[i].tokens);
    att_tokenizer_free(t);
}

#define CHECK(tokenizer_json, ...)                                                                                     \
    check(tokenizer_json, (const rule[]){__VA_ARGS__}, sizeof((const rule[]){__VA_ARGS__}) / sizeof(rule))

static void words_are_cut_into_the_longest_pieces(void **state)
{
    (void)state;
    CHECK(SMALL, {"unaffable", "unaff ##able"}, {"aab", "a ##a ##b"}, {"unx", "[UNK]"}, {"hellos", "hello ##s"},
          {"hello world", "hello world"}, {"xhello", "[UNK]"});
}

static void control_characters_go_and_all_white_space_divides(void **state)
{
    (void)state;
    CHECK(SMALL,
          {"a\x01\x7F\xC2\xAD\xE2\x80\x8B"
           "b",
           "a ##b"},
          {"a\xEF\xBF\xBD"
           "b",
           "a ##b"},
          {"a\xFF"
           "b",
           "a ##b"},
          {"a\x0B\x0C\xC2\x85"
           "b",
           "a ##b"},
          {"a\tb\nb\rb", "a b b b"},
          {"a\xC2\xA0"
           "b\xE3\x80\x80"
           "b",
           "a b b"},
          {" \t ", ""}, {"", ""});
    att_tokenizer *t = open_text(SMALL);
    assert_string_equal(tokens_of(t, "a\0b", 3, PLAIN), "a ##b");
    att_tokenizer_free(t);
}

static void unassigned_characters_stay(void **state)
{
    (void)state;
    CHECK(SMALL, {"\xCD\xB8", "\xCD\xB8"},
          {"a\xCD\xB8"
           "b",
           "[UNK]"});
}

static void punctuation_is_a_word_of_its_own(void **state)
{
    (void)state;
    CHECK(SMALL, {"hello,world!", "hello , world !"}, {"!!", "! !"}, {"\"a\"", "\" a \""},
          {"a\xCD\xBE"
           "b",
           "a ; b"} /* the Greek question mark decomposes to a semicolon */);
}

static void ideographs_are_words_of_their_own(void **state)
{
    (void)state;
    CHECK(SMALL, {"\xE6\x97\xA5\xE6\x9C\xAC", "\xE6\x97\xA5 \xE6\x9C\xAC"},
          {"a\xE6\x97\xA5"
           "b",
           "a \xE6\x97\xA5 b"});
}

static void accents_go_and_hangul_decomposes(void **state)
{
    (void)state;
    CHECK(SMALL,
          {"\xC3\x9C"
           "BER",
           "uber"},
          {"u\xCC\x88"
           "ber",
           "uber"},
          {"\xED\x95\x9C", "\xE1\x84\x92 ##\xE1\x85\xA1 ##\xE1\x86\xAB"}, {"\xEF\xAC\x81", "\xEF\xAC\x81"});
}

static void each_character_is_lowered_for_itself(void **state)
{
    (void)state;
    CHECK(SMALL, {"\xCE\xA3\xCE\xA3", "\xCF\x83 ##\xCF\x83"} /* no final sigma */, {"\xC4\xB0", "i"} /* U+0130 */,
          {"\xE2\x84\xAA", "k"} /* the Kelvin sign */);
}

static void special_tokens_are_found_as_they_are_written(void **state)
{
    (void)state;
    CHECK(SMALL, {"hello[MASK]world", "hello [MASK] world"}, {"  [MASK]  ", "[MASK]"}, {"[mask]", "[ mask ]"},
          {"[MASKED]", "[MASKED]"} /* the longest */, {"[MASK", "[ mask"}, {"[[MASK]]", "[ [MASK] ]"},
          {"un[PAD]s", "un [PAD] [UNK]"}, {"[CLS][SEP]", "[CLS] [SEP]"});
}

static void a_word_is_unknown_from_its_hundred_and_first_character(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    for (int n = 99; n < 103; n++) {
        char text[128];
        att_tokens tokens;
        memset(text, 'a', (size_t)n);
        assert_int_equal(att_encode(t, text, (size_t)n, PLAIN, &tokens), ATT_OK);
        assert_int_equal(tokens.count, n <= 100 ? n : 1);
        assert_int_equal(tokens.ids[0], n <= 100 ? 14 : 1);
        att_tokens_free(t, &tokens);
    }
    att_tokenizer_free(t);
}

static void settings_of_the_normalizer_are_honoured(void **state)
{
    (void)state;
#define WITH(clean, cjk, strip, lower)                                                                                 \
    TOKENIZER(ADDED,                                                                                                   \
              "{\"type\":\"BertNormalizer\",\"clean_text\":" clean ",\"handle_chinese_chars\":" cjk                    \
              ",\"strip_accents\":" strip ",\"lowercase\":" lower "}",                                                 \
              PRE_TOKENIZER, POST, MODEL)
    CHECK(WITH("true", "true", "null", "false"), {"Hello", "Hello"},
          {"\xC3\xBC"
           "ber",
           "\xC3\xBC"
           "ber"});
    CHECK(WITH("true", "true", "false", "true"), {"\xC3\x9C"
                                                  "BER",
                                                  "\xC3\xBC"
                                                  "ber"});
    CHECK(WITH("true", "true", "true", "false"),
          {"\xC3\xBC"
           "ber",
           "uber"},
          {"HELLO", "[UNK]"});
    CHECK(WITH("true", "false", "null", "true"), {"\xE6\x97\xA5\xE6\x9C\xAC", "[UNK]"});
    CHECK(WITH("false", "true", "null", "true"),
          {"a\xC2\xAD"
           "b",
           "[UNK]"},
          {"a\xC2\x85"
           "b",
           "a b"},
          {"a\xFF"
           "b",
           "[UNK]"});
    att_tokenizer *t = open_text(WITH("false", "true", "null", "true"));
    assert_string_equal(tokens_of(t, "a\0b", 3, PLAIN), "[UNK]"); /* not the token "a" */
    att_tokenizer_free(t);
}

static void the_post_processor_says_what_is_put_around(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    assert_string_equal(tokens_of(t, "hello", 5, NULL), "[CLS] hello [SEP]");
    assert_string_equal(tokens_of(t, NULL, 0, NULL), "[CLS] [SEP]");
    att_tokenizer_free(t);
    t = open_text(TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER,
                            "{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]}", MODEL));
    assert_string_equal(tokens_of(t, "hello", 5, NULL), "[CLS] hello [SEP]");
    att_tokenizer_free(t);
    t = open_text(TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER, "null", MODEL));
    assert_string_equal(tokens_of(t, "hello", 5, NULL), "hello");
    att_tokenizer_free(t);
}

static void ids_without_a_token_give_null(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    assert_int_equal(att_tokenizer_size(t), 61);
    assert_string_equal(att_tokenizer_token(t, 60), "[MASKED]");
    assert_string_equal(att_tokenizer_token(t, 27), "\xF0\x9F\x98\x80");
    assert_string_equal(att_tokenizer_token(t, 34), "\"");
    assert_null(att_tokenizer_token(t, 59));
    assert_null(att_tokenizer_token(t, -1));
    assert_null(att_tokenizer_token(t, 61));
    att_tokenizer_free(t);
    att_tokenizer_free(NULL);
}

/* ---- limits */

static void max_tokens_counts_special_tokens_and_says_what_it_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t max;
        bool no_special;
        const char *tokens;
        bool truncated;
    } cases[] = {
        {"hello world", 4, false, "[CLS] hello world [SEP]", false},
        {"hello world", 3, false, "[CLS] hello [SEP]", true},
        {"hello world", 2, false, "[CLS] [SEP]", true},
        {" \x01 ", 2, false, "[CLS] [SEP]", false},
        {"hello world", 2, true, "hello world", false},
        {"hello world", 1, true, "hello", true},
        {"hello \xCC\x88 \t", 1, true, "hello", false},
        {"aaa", 2, true, "a ##a", true},
        {"hello [MASK]", 1, true, "hello", true},
        {"[MASK][MASK]", 1, true, "[MASK]", true},
        {"[MASK]", 1, true, "[MASK]", false},
        {"hello!", 1, true, "hello", true},
        {"hello\xE6\x97\xA5", 1, true, "hello", true},
    };
    att_tokenizer *t = open_text(SMALL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const att_encode_options *opt =
            ATT_OPTIONS(att_encode_options, .max_tokens = cases[i].max, .no_special = cases[i].no_special);
        size_t bytes = strlen(cases[i].text);
        att_tokens tokens;
        assert_string_equal(tokens_of(t, cases[i].text, bytes, opt), cases[i].tokens);
        assert_int_equal(att_encode(t, cases[i].text, bytes, opt, &tokens), ATT_OK);
        assert_int_equal(tokens.truncated, cases[i].truncated);
        att_tokens_free(t, &tokens);
    }
    att_tokenizer_free(t);
}

static void refused(const att_tokenizer *t, const char *words, const att_encode_options *opt)
{
    att_tokens tokens = {.count = 7};
    assert_int_equal(att_encode(t, "a", 1, opt, &tokens), ATT_ERR_ARGUMENT);
    assert_int_equal(tokens.count, 0);
    assert_null(tokens.ids);
    if (!strstr(att_error(ctx), words))
        fail_msg("\"%s\" does not say \"%s\"", att_error(ctx), words);
}

static void wrong_options_are_refused_with_a_sentence(void **state)
{
    (void)state;
    att_tokenizer *t = open_text(SMALL);
    refused(t, "max_tokens is 1, but the special tokens alone are 2", ATT_OPTIONS(att_encode_options, .max_tokens = 1));
    refused(t, "max_tokens is -1", ATT_OPTIONS(att_encode_options, .max_tokens = -1));
    refused(t, "size is 0", &(att_encode_options){.max_tokens = 4});
    att_tokenizer_free(t);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Ten times the text takes about ten times as long; with a quadratic step it would take a hundred times as long. */
static void long_texts_take_linear_time_and_little_where_they_are_cut(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "a", "a ", "[", "\xCC\x96\xCC\x81", "\xF0\x9D\x85\xAD\xF0\x9D\x85\xA5", "\xFF", "[MASK", "\xED\x95\x9C", "!"};
    enum { SMALL_TEXT = 1000000, LARGE_TEXT = 10000000 };
    att_tokenizer *t = open_text(SMALL);
    char *text = malloc(LARGE_TEXT);
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        for (size_t i = 0, n = strlen(patterns[p]); i < LARGE_TEXT; i++)
            text[i] = patterns[p][i % n];
        att_tokens tokens;
        double start = seconds();
        assert_int_equal(att_encode(t, text, SMALL_TEXT, NULL, &tokens), ATT_OK);
        double one = seconds() - start;
        att_tokens_free(t, &tokens);
        assert_int_equal(att_encode(t, text, LARGE_TEXT, NULL, &tokens), ATT_OK);
        double ten = seconds() - start - one;
        att_tokens_free(t, &tokens);
        if (ten > 40 * one + 0.1)
            fail_msg("\"%s\": %.3f s for 1 MB, %.3f s for 10 MB", patterns[p], one, ten);
    }
    for (size_t i = 0; i < LARGE_TEXT; i++)
        text[i] = i % 2 ? ' ' : 'a';
    att_tokens tokens;
    double start = seconds();
    assert_int_equal(att_encode(t, text, LARGE_TEXT, NULL, &tokens), ATT_OK);
    double whole = seconds() - start;
    att_tokens_free(t, &tokens);
    start = seconds();
    for (int i = 0; i < 100; i++) { /* each looks at 512 of 10,000,000 bytes */
        assert_int_equal(att_encode(t, text, LARGE_TEXT, ATT_OPTIONS(att_encode_options, .max_tokens = 256), &tokens),
                         ATT_OK);
        assert_int_equal(tokens.count, 256);
        assert_true(tokens.truncated);
        att_tokens_free(t, &tokens);
    }
    if (seconds() - start > whole)
        fail_msg("%.3f s for a hundred short cuts, %.3f s for the whole text once", seconds() - start, whole);
    free(text);
    att_tokenizer_free(t);
}

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
    for (int i = 0; i < 3 && b->words[i]; i++) {
        if (!strstr(att_error(ctx), b->words[i]))
            fail_msg("\"%s\" does not say \"%s\"", att_error(ctx), b->words[i]);
    }
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
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody fills it: who waits, waits for ever */
    expect_failure(&(bad_file){"a pipe", ATT_ERR_IO, {"tokenizer.json is not a file"}});
    unlink(path);
    write_file("tokenizer.json", "{}");
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    expect_failure(&(bad_file){"2^40 bytes", ATT_ERR_UNSUPPORTED, {"has 1099511627776 bytes, the most is 67108864"}});
    remove_all();
}

static void bad_tokenizer_files_give_a_sentence_that_names_file_setting_and_value(void **state)
{
    (void)state;
    static const bad_file cases[] = {
        {"", ATT_ERR_FORMAT, {"tokenizer.json", "line"}},
        {"{", ATT_ERR_FORMAT, {"tokenizer.json", "line 1"}},
        {"[1]", ATT_ERR_FORMAT, {"not a JSON object"}},
        {"{\"a\":1,\"a\":2}", ATT_ERR_FORMAT, {"duplicate"}},
        {"{}", ATT_ERR_FORMAT, {"\"model\""}},
        {WITH_MODEL("{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}"),
         ATT_ERR_UNSUPPORTED,
         {"model.type", "\"BPE\"", "only \"WordPiece\" is"}},
        {WITH_MODEL("{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.5]]}"), ATT_ERR_UNSUPPORTED, {"\"Unigram\""}},
        {WITH_MODEL("{\"vocab\":{}}"), ATT_ERR_FORMAT, {"there is no \"model.type\""}},
        {WITH_MODEL("{\"type\":\"WordPiece\",\"vocab\":7}"), ATT_ERR_FORMAT, {"\"model.vocab\" is 7", "an object"}},
        {WITH_NORMALIZER("null"), ATT_ERR_FORMAT, {"\"normalizer\""}},
        {WITH_NORMALIZER("{\"type\":\"" LONG_NAME "\"}"), ATT_ERR_UNSUPPORTED, {"0123456789012345678901234567"}},
        {WITH_NORMALIZER("\"" LONG_NAME LONG_NAME "\""),
         ATT_ERR_FORMAT,
         {"is \"0123456789", "01234..., not an object"}},
        {WITH_NORMALIZER("{\"type\":\"Sequence\",\"normalizers\":[]}"),
         ATT_ERR_UNSUPPORTED,
         {"normalizer.type", "\"Sequence\"", "only \"BertNormalizer\" is"}},
        {WITH_NORMALIZER("{\"type\":\"BertNormalizer\",\"clean_text\":1}"),
         ATT_ERR_FORMAT,
         {"\"normalizer.clean_text\" is 1", "true or false"}},
        {TOKENIZER("[]", NORMALIZER, "{\"type\":\"Whitespace\"}", "null", MODEL),
         ATT_ERR_UNSUPPORTED,
         {"pre_tokenizer.type", "\"Whitespace\"", "only \"BertPreTokenizer\" is"}},
        {WITH_POST("{\"type\":\"RobertaProcessing\"}"),
         ATT_ERR_UNSUPPORTED,
         {"post_processor.type", "\"RobertaProcessing\""}},
        {WITH_POST("{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",2]}"), ATT_ERR_FORMAT, {"\"post_processor.sep\""}},
        {WITH_POST("{\"type\":\"BertProcessing\",\"cls\":[2],\"sep\":[\"[SEP]\",3]}"),
         ATT_ERR_FORMAT,
         {"post_processor.cls"}},
        {WITH_POST("{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",50],\"sep\":[\"[SEP]\",3]}"),
         ATT_ERR_FORMAT,
         {"\"[CLS]\"", "id 50"}},
        {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[],\"special_tokens\":{}}"),
         ATT_ERR_FORMAT,
         {"post_processor.single", "Sequence"}},
        {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}],"
                   "\"special_tokens\":{}}"),
         ATT_ERR_UNSUPPORTED,
         {"\"B\""}},
        {WITH_POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":1}}],"
                   "\"special_tokens\":{}}"),
         ATT_ERR_UNSUPPORTED,
         {"\"post_processor.single.Sequence.type_id\" is 1"}},
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
        {WITH_VOCAB("\"a\":0,\"a\":1"), ATT_ERR_FORMAT, {"\"a\" is there twice", "0 and 1"}},
        {WITH_VOCAB("\"a\":-1"), ATT_ERR_FORMAT, {"\"a\"", "-1"}},
        {WITH_VOCAB("\"a\":1.5"), ATT_ERR_FORMAT, {"\"a\"", "1.5"}},
        {WITH_VOCAB("\"a\":99999999999999999999"), ATT_ERR_FORMAT, {"\"a\"", "99999999999999999999"}},
        {WITH_VOCAB("\"a\":4194304"), ATT_ERR_FORMAT, {"\"a\"", "4194304"}},
        {WITH_VOCAB("\"a\":\"0\""), ATT_ERR_FORMAT, {"\"a\"", "\"0\""}},
        {WITH_VOCAB("\"a\""), ATT_ERR_FORMAT, {"line 1", "no id"}},
        {WITH_VOCAB("\"\":0"), ATT_ERR_FORMAT, {"empty"}},
        {WITH_VOCAB("\"\\u0000\":0"), ATT_ERR_FORMAT, {"escape"}},
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
        {WITH_ADDED("[{\"id\":14,\"content\":\"a\",\"normalized\":true}]"),
         ATT_ERR_UNSUPPORTED,
         {"\"a.normalized\" is true"}},
        {WITH_ADDED("[{\"id\":14,\"content\":\"a\",\"single_word\":true}]"), ATT_ERR_UNSUPPORTED, {"single_word"}},
        {WITH_MODEL("{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":\"##\","
                    "\"max_input_chars_per_word\":1001,\"vocab\":{\"a\":0}}"),
         ATT_ERR_UNSUPPORTED,
         {"\"model.max_input_chars_per_word\" is 1001"}},
        {WITH_MODEL("{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":"
                    "\"00000000000000000000000000000000\",\"max_input_chars_per_word\":100,\"vocab\":{\"a\":0}}"),
         ATT_ERR_UNSUPPORTED,
         {"continuing_subword_prefix"}},
    };
    remove_all();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file("tokenizer.json", cases[i].text);
        expect_failure(&cases[i]);
    }
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
    assert_non_null(strstr(att_error(ctx), "/nowhere"));
    char path[MAX_FILE_NAME];
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
        {"{\"cls_token\": {\"content\": \"[SEP]\"}}", "{\"sep_token\": \"[PAD]\", \"cls_token\": \"[MASK]\"}",
         "[SEP] hello ##s [MASK] uber [PAD]"},
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
        {SMALL_VOCAB_TXT "a\na\n", "{}", NULL, ATT_ERR_FORMAT, {"vocab.txt", "\"a\" is there twice", "10 and 11"}},
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
                s = att_encode(t, text, sizeof text - 1, NULL, &tokens);
                if (s == ATT_OK)
                    assert_int_equal(tokens.count, 74);
                else
                    assert_null(tokens.ids);
                att_tokens_free(t, &tokens);
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

/* ---- real vocabularies: the ids of the `tokenizers` package */

static uint32_t hash_ids(const att_tokenizer *t, const text_lines *line)
{
    att_tokens tokens;
    assert_int_equal(att_encode(t, line->line, line->bytes, NULL, &tokens), ATT_OK);
    uint32_t h = HASH_START;
    for (int64_t i = 0; i < tokens.count; i++)
        h = hash_int(h, (uint32_t)tokens.ids[i]);
    att_tokens_free(t, &tokens);
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
    for (unsigned i = 0; i < N_TEXT_LINES; i++) {
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
    for (int i = 0; i < 24; i++) {
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

static int set_up(void **state)
{
    (void)state;
    folder = folder_new();
    return att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1));
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&folder);
    att_close(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_into_the_longest_pieces),
        cmocka_unit_test(control_characters_go_and_all_white_space_divides),
        cmocka_unit_test(unassigned_characters_stay),
        cmocka_unit_test(punctuation_is_a_word_of_its_own),
        cmocka_unit_test(ideographs_are_words_of_their_own),
        cmocka_unit_test(accents_go_and_hangul_decomposes),
        cmocka_unit_test(each_character_is_lowered_for_itself),
        cmocka_unit_test(special_tokens_are_found_as_they_are_written),
        cmocka_unit_test(a_word_is_unknown_from_its_hundred_and_first_character),
        cmocka_unit_test(settings_of_the_normalizer_are_honoured),
        cmocka_unit_test(the_post_processor_says_what_is_put_around),
        cmocka_unit_test(ids_without_a_token_give_null),
        cmocka_unit_test(max_tokens_counts_special_tokens_and_says_what_it_cut),
        cmocka_unit_test(wrong_options_are_refused_with_a_sentence),
        cmocka_unit_test(long_texts_take_linear_time_and_little_where_they_are_cut),
        cmocka_unit_test(what_is_no_file_or_too_large_is_refused_without_reading_it),
        cmocka_unit_test(bad_tokenizer_files_give_a_sentence_that_names_file_setting_and_value),
        cmocka_unit_test(two_files_that_contradict_each_other_give_a_sentence),
        cmocka_unit_test(a_folder_without_a_tokenizer_gives_a_sentence_that_names_it),
        cmocka_unit_test(the_older_layout_is_read_with_its_configuration),
        cmocka_unit_test(a_bad_older_layout_gives_a_sentence),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
        cmocka_unit_test(ids_of_ten_thousand_lines_equal_the_reference),
        cmocka_unit_test(ids_of_ten_thousand_lines_equal_the_reference_with_vocab_txt),
        cmocka_unit_test(every_setting_gives_the_ids_of_the_reference),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
