/* sentencepiece.bpe.model without tokenizer.json: ids and offsets of transformers (tests/golden/make_fairseq.py). */
#include "fixtures/check.h"
#include "fixtures/text_lines.h"
#include "fixtures/tokenizer.h"

enum { MAX_LINES = 40 };
static char *text, *line[MAX_LINES];
static int lines, at;

static int set_up_golden(void **state)
{
    lines = golden_lines("fairseq.txt", &text, line, MAX_LINES);
    return set_up(state);
}

static int tear_down_golden(void **state)
{
    free(text);
    return tear_down(state);
}

/* The rest of the next line, which begins with the word */
static const char *next(const char *word)
{
    const size_t n = strlen(word);
    assert_true(at < lines && !strncmp(line[at], word, n) && line[at][n] == ' ');
    return line[at++] + n + 1;
}

/* A model of tests/golden as the file of a folder, with these settings */
static att_status open_model(const char *name, const char *settings, att_tokenizer **out)
{
    char command[256];
    snprintf(command, sizeof command, "cp tests/golden/%s %s/sentencepiece.bpe.model", name, folder.path);
    assert_int_equal(system(command), 0);
    write_file("tokenizer_config.json", settings);
    return att_tokenizer_open(ctx, folder.path, out);
}

static att_status open_tokenizer(const char *settings, att_tokenizer **out)
{
    return open_model("unigram.spm", settings, out);
}

static void check_ids(const char *what, att_tokens *tokens)
{
    char *rest = (char *)next("ids"); /* strtol reads it */
    for (int64_t i = 0; i < tokens->count; i++)
        if (tokens->ids[i] != strtol(rest, &rest, 10))
            fail_msg("%s: id %lld is %d", what, (long long)i, (int)tokens->ids[i]);
    assert_string_equal(rest, "");
    att_tokens_free(ctx, tokens);
}

static void check_text(const att_tokenizer *t)
{
    att_tokens tokens;
    const char *s = next("text"), *between = strstr(s, " | ");
    if (between)
        assert_int_equal(
            att_tokenize_pair(t, s, (size_t)(between - s), between + 3, strlen(between + 3), NULL, &tokens), ATT_OK);
    else
        assert_int_equal(att_tokenize(t, s, strlen(s), NULL, &tokens), ATT_OK);
    check_ids(s, &tokens);
}

static uint32_t hash_lines(const att_tokenizer *t)
{
    static text_lines all;
    uint32_t h = HASH_START;
    text_lines_init(&all);
    for (unsigned i = 0; i < N_TEXT_LINES; i += 20) {
        att_tokens tokens;
        text_line(&all, i);
        assert_int_equal(
            att_tokenize(t, all.line, all.bytes, ATT_OPTIONS(att_tokenize_options, .offsets = true), &tokens), ATT_OK);
        for (int64_t k = 0; k < tokens.count; k++)
            h = hash_int(h, (uint32_t)tokens.ids[k]);
        for (int64_t k = 0; k < 2 * tokens.count; k++)
            h = hash_int(h, (uint32_t)tokens.offsets[k]);
        att_tokens_free(ctx, &tokens);
    }
    free(all.text);
    return h;
}

static void ids_are_those_of_fairseq(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        char settings[100];
        att_tokenizer *t;
        snprintf(settings, sizeof settings, "{\"tokenizer_class\": \"%s\"}", next("class"));
        if (open_tokenizer(settings, &t))
            fail_msg("%s", att_error(ctx));
        assert_int_equal(att_tokenizer_size(t), strtol(next("size"), NULL, 10));
        for (int i = 0; i < 4; i++)
            check_text(t);
        assert_int_equal(hash_lines(t), strtoul(next("hash"), NULL, 10));
        att_tokenizer_free(t);
    }
    assert_int_equal(at, lines);
}

/* The type of the model states the class where the tokenizer's settings do not. */
static void the_class_follows_from_the_model(void **state)
{
    (void)state;
    att_tokenizer *t;
    write_file("config.json", "{\"model_type\": \"xlm-roberta\"}");
    assert_int_equal(open_tokenizer("{}", &t), ATT_OK);
    assert_string_equal(att_tokenizer_token(t, 1), "<pad>");
    att_tokenizer_free(t);
    write_file("config.json", "{\"model_type\": \"camembert\"}");
    assert_int_equal(open_tokenizer("{}", &t), ATT_OK);
    assert_string_equal(att_tokenizer_token(t, 0), "<s>NOTUSED");
    att_tokenizer_free(t);
    remove_file("config.json");
}

static void what_is_not_supported_is_named(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"{}", "\"tokenizer_class\" is \"\", which is not supported with sentencepiece.bpe.model; XLMRobertaTokenizer"},
        {"{\"tokenizer_class\": \"XLNetTokenizer\"}", "\"tokenizer_class\" is \"XLNetTokenizer\", which is not"},
        {"{\"tokenizer_class\": \"CamembertTokenizer\", \"bos_token\": \"<none>\"}",
         "the special token \"<none>\" is not in sentencepiece.bpe.model"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_tokenizer *t;
        assert_true(open_tokenizer(wrong[i][0], &t) != ATT_OK);
        assert_null(t);
        check_message(ctx, wrong[i][1]);
    }
    att_tokenizer *t;
    assert_int_equal(open_model("bpe.spm", "{\"tokenizer_class\": \"XLMRobertaTokenizer\"}", &t), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "\"trainer_spec.model_type\" is 2, which is not supported here; 1 (unigram) is");
    write_file("sentencepiece.bpe.model", "not a model");
    write_file("tokenizer_config.json", "{\"tokenizer_class\": \"XLMRobertaTokenizer\"}");
    assert_int_equal(att_tokenizer_open(ctx, folder.path, &t), ATT_ERR_FORMAT);
    check_message(ctx, "sentencepiece.bpe.model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_fairseq),
        cmocka_unit_test(the_class_follows_from_the_model),
        cmocka_unit_test(what_is_not_supported_is_named),
    };
    return cmocka_run_group_tests(tests, set_up_golden, tear_down_golden);
}
