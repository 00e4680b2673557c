/* Settings of published folders that change results: tokens, similarities, embeddings and probabilities are those of
 * transformers and sentence-transformers (tests/golden/make_folders.py); what is not done is refused by name. */
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/tiny_bert.h"
#include "fixtures/tiny_vit.h"
#include "fixtures/tokenizer.h"
#include "attend_sentence.h"

#include <jansson.h>
#include <math.h>

#define GOLDEN "tests/golden/folders.jsonl"

/* Calls check for each line of a kind; returns their number. */
static int each_line(const char *kind, void check(const json_t *line, const char *text))
{
    static char text[1 << 15];
    int n = 0;
    FILE *file = fopen(GOLDEN, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        if (!strcmp(json_string_value(json_object_get(line, "kind")), kind)) {
            check(line, text);
            n++;
        }
        json_decref(line);
    }
    fclose(file);
    return n;
}

static void write_json(const test_folder *f, const char *name, const json_t *value)
{
    char *text = json_dumps(value, 0);
    assert_non_null(text);
    folder_write(f, name, text);
    free(text);
}

static char *read_whole(const char *path)
{
    enum { MOST = 1 << 17 };
    char *text = calloc(1, MOST + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_in_range(fread(text, 1, MOST, file), 1, MOST - 1);
    fclose(file);
    return text;
}

/* ---- tokenizers */

/* tokenizer.json: that of tests/golden/pipeline with one text replaced, everywhere */
static void write_tokenizer(const test_folder *f, const json_t *line)
{
    char path[256];
    snprintf(path, sizeof path, "tests/golden/pipeline/%s.json", json_string_value(json_object_get(line, "file")));
    const json_t *replace = json_object_get(line, "replace");
    const char *old = json_string_value(json_array_get(replace, 0)),
               *new = json_string_value(json_array_get(replace, 1));
    char *text = read_whole(path), *at = text;
    FILE *file = folder_open(f, "tokenizer.json");
    for (char *found; *old && (found = strstr(at, old)); at = found + strlen(old)) {
        fwrite(at, 1, (size_t)(found - at), file);
        fputs(new, file);
    }
    fputs(at, file);
    assert_int_equal(fclose(file), 0);
    free(text);
}

static void expect_ids(const att_tokens *t, const json_t *expected, const char *text)
{
    bool same = (size_t)t->count == json_array_size(expected);
    for (int64_t i = 0; same && i < t->count; i++)
        same = t->ids[i] == json_integer_value(json_array_get(expected, (size_t)i));
    if (!same) {
        for (int64_t i = 0; i < t->count; i++)
            print_error("%d ", t->ids[i]);
        fail_msg("are the ids, not those of %s", text);
    }
}

static void check_tokens(const json_t *line, const char *text)
{
    static const char *const texts[] = {"Hello  world <new> 12</s>", " the  nd end", "a<|im_end|> b <new>c", ""};
    static const char longer[] = "The quick brown fox jumps over the lazy dog again and again.",
                      second[] = "one two three four five six";
    const test_folder f = folder_new();
    att_tokenizer *t;
    att_tokens tokens;
    write_tokenizer(&f, line);
    write_json(&f, "tokenizer_config.json", json_object_get(line, "config"));
    folder_write(&f, "config.json", "{\"model_type\": \"llama\"}");
    if (att_tokenizer_open(ctx, f.path, &t))
        fail_msg("%s: %s", text, att_error(ctx));
    const json_t *ids = json_object_get(line, "ids");
    const int64_t most = json_integer_value(json_object_get(line, "max_length"));
    const att_tokenize_options o = {.size = sizeof o, .max_tokens = most};
    for (size_t i = 0; i < json_array_size(ids); i++) {
        if (most && i)
            assert_int_equal(att_tokenize_pair(t, longer, strlen(longer), second, strlen(second), &o, &tokens), ATT_OK);
        else
            assert_int_equal(att_tokenize(t, most ? longer : texts[i], strlen(most ? longer : texts[i]), &o, &tokens),
                             ATT_OK);
        assert_int_equal(tokens.truncated, most > 0);
        expect_ids(&tokens, json_array_get(ids, i), text);
        att_tokens_free(ctx, &tokens);
    }
    att_tokenizer_free(t);
    folder_remove(&f);
}

static void tokens_follow_tokenizer_config_as_in_transformers(void **state)
{
    (void)state;
    assert_int_equal(each_line("tokens", check_tokens), 38);
}

/* Tokens that remain of a text whose start is cut off have their own offsets. */
static void offsets_are_those_of_the_tokens_that_remain(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    char *text = read_whole("tests/golden/pipeline/gpt2.json");
    att_tokenizer *t;
    att_tokens all, some;
    folder_write(&f, "tokenizer.json", text);
    free(text);
    folder_write(&f, "tokenizer_config.json", "{\"truncation_side\": \"left\"}");
    assert_int_equal(att_tokenizer_open(ctx, f.path, &t), ATT_OK);
    att_tokenize_options o = {.size = sizeof o, .offsets = true};
    assert_int_equal(att_tokenize(t, "the end of it all", 17, &o, &all), ATT_OK);
    for (o.max_tokens = 1; o.max_tokens < all.count; o.max_tokens++) {
        assert_int_equal(att_tokenize(t, "the end of it all", 17, &o, &some), ATT_OK);
        const int64_t n = some.count, skipped = all.count - n;
        assert_int_equal(n, o.max_tokens);
        assert_memory_equal(some.ids, all.ids + skipped, (size_t)n * sizeof *all.ids);
        assert_memory_equal(some.offsets, all.offsets + 2 * skipped, 2 * (size_t)n * sizeof *all.offsets);
        att_tokens_free(ctx, &some);
    }
    att_tokens_free(ctx, &all);
    att_tokenizer_free(t);
    folder_remove(&f);
}

static void expect_refused(const test_folder *f, att_status status, const char *words)
{
    att_tokenizer *t;
    const att_status s = att_tokenizer_open(ctx, f->path, &t);
    if (s != status || !strstr(att_error(ctx), words))
        fail_msg("%s: %s, not %s", att_status_name(s), s ? att_error(ctx) : "", words);
}

static void settings_of_a_tokenizer_that_are_not_done_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *file, *config;
        att_status status;
        const char *words;
    } wrong[] = {
        {"gpt2", "{\"split_special_tokens\": true}", ATT_ERR_UNSUPPORTED, "\"split_special_tokens\" is true"},
        {"gpt2", "{\"truncation_side\": \"middle\"}", ATT_ERR_UNSUPPORTED, "\"truncation_side\" is \"middle\""},
        {"gpt2", "{\"added_tokens_decoder\": {\"1003\": {\"content\": \"<new>\"}}}", ATT_ERR_UNSUPPORTED,
         "\"added_tokens_decoder\" has \"<new>\" with id 1003, but in tokenizer.json it is missing, and the next free "
         "id is 1001"},
        {"gpt2", "{\"added_tokens_decoder\": {\"3\": {\"content\": \"a\"}}}", ATT_ERR_UNSUPPORTED,
         "has \"a\" with id 3, but in tokenizer.json it has 64"},
        {"gpt2", "{\"added_tokens_decoder\": {\"x\": {\"content\": \"the\"}}}", ATT_ERR_FORMAT, "has \"x\": {"},
        {"gpt2", "{\"added_tokens_decoder\": {\"3\": 3}}", ATT_ERR_FORMAT, "\"3\": 3, not an id and a token"},
        {"gpt2", "{\"added_tokens_decoder\": [3]}", ATT_ERR_FORMAT, "\"added_tokens_decoder\" is [3.0]"},
        {"smollm2", "{\"tokenizer_class\": \"GPT2Tokenizer\", \"add_prefix_space\": true}", ATT_ERR_UNSUPPORTED,
         "\"add_prefix_space\" is true, but tokenizer.json has the opposite"},
        {"llama2", "{\"tokenizer_class\": \"LlamaTokenizer\", \"add_prefix_space\": false}", ATT_ERR_UNSUPPORTED,
         "\"add_prefix_space\" is false, but tokenizer.json"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const test_folder f = folder_new();
        json_t *line = json_pack("{s:s, s:[s, s]}", "file", wrong[i].file, "replace", "", "");
        write_tokenizer(&f, line);
        json_decref(line);
        folder_write(&f, "tokenizer_config.json", wrong[i].config);
        expect_refused(&f, wrong[i].status, wrong[i].words);
        folder_remove(&f);
    }
}

static void memory_may_run_out_while_a_tokenizer_is_changed(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    char *text = read_whole("tests/golden/pipeline/gpt2.json");
    folder_write(&f, "tokenizer.json", text);
    free(text);
    folder_write(&f, "tokenizer_config.json",
                 "{\"tokenizer_class\": \"GPT2Tokenizer\", \"add_prefix_space\": true, \"pad_token\": \"he\", "
                 "\"added_tokens_decoder\": {\"1002\": {\"content\": \"<b>\"}, \"1001\": {\"content\": \"<a>\"}}}");
    bool opened = false;
    for (long n = 1; !opened; n++) {
        fail_alloc failing = {.fail_at = n};
        att_ctx *c;
        att_tokenizer *t = NULL;
        if (att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&failing))))
            continue;
        const att_status s = att_tokenizer_open(c, f.path, &t);
        if (s && s != ATT_ERR_MEMORY)
            fail_msg("allocation %ld: %s: %s", n, att_status_name(s), att_error(c));
        opened = !s && failing.calls < n;
        att_tokenizer_free(t);
        att_close(c);
        assert_int_equal(failing.live, 0);
    }
    folder_remove(&f);
}

/* As transformers, whose classes have values of their own where tokenizer_config.json has no key */
static void missing_keys_of_berts_tokenizer_mean_the_defaults_of_its_class(void **state)
{
    (void)state;
    static const char cased[] = "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
                                "\"strip_accents\":null,\"lowercase\":false}",
                      accents[] = "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
                                  "\"strip_accents\":false,\"lowercase\":true}",
                      plain[] = "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":false,"
                                "\"strip_accents\":null,\"lowercase\":true}";
    static const struct {
        const char *normalizer, *config, *model;
        const char *words; /* NULL: it agrees */
    } cases[] = {
        {cased, "{\"tokenizer_class\": \"BertTokenizer\"}", NULL,
         "\"do_lower_case\" is missing, which for BertTokenizer is true, but the normalizer in tokenizer.json has"},
        {cased, "{}", "bert", "\"do_lower_case\" is missing"},
        {cased, "{}", "distilbert", "\"do_lower_case\" is missing"},
        {cased, "{}", "vit", NULL},
        {cased, "{\"do_lower_case\": false}", "bert", NULL},
        {cased, "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}", "bert", NULL},
        {cased, "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"do_lower_case\": true}", "bert", NULL},
        {cased, "{\"tokenizer_class\": \"BertTokenizer\", \"do_lower_case\": true}", NULL, "\"do_lower_case\" is true"},
        {accents, "{\"tokenizer_class\": \"DistilBertTokenizerFast\"}", NULL, "\"strip_accents\" is missing"},
        {accents, "{\"tokenizer_class\": \"BertTokenizer\", \"strip_accents\": false}", NULL, NULL},
        {plain, "{\"tokenizer_class\": \"BertTokenizer\"}", NULL, "\"tokenize_chinese_chars\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const test_folder f = folder_new();
        att_tokenizer *t = NULL;
        char text[4096];
        snprintf(text, sizeof text,
                 "{\"added_tokens\": " ADDED ", \"normalizer\": %s, \"pre_tokenizer\": " PRE_TOKENIZER
                 ", \"post_processor\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "
                 "\"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": {\"[PAD]\": 0, "
                 "\"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4, \"a\": 5}}}",
                 cases[i].normalizer);
        folder_write(&f, "tokenizer.json", text);
        folder_write(&f, "tokenizer_config.json", cases[i].config);
        snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", cases[i].model ? cases[i].model : "");
        if (cases[i].model)
            folder_write(&f, "config.json", text);
        if (cases[i].words)
            expect_refused(&f, ATT_ERR_UNSUPPORTED, cases[i].words);
        else if (att_tokenizer_open(ctx, f.path, &t))
            fail_msg("%s: %s", cases[i].config, att_error(ctx));
        att_tokenizer_free(t);
        folder_remove(&f);
    }
}

/* ---- sentence models */

enum { SENTENCES = 4 };
static const char *const sentences[SENTENCES] = {"cab bed", "a fed cafe", "a b c d e f g h i j k l m n o p q r s t",
                                                 ""};

static void encode(const test_folder *f, att_sentence_info *info, float y[SENTENCES * TINY_HIDDEN])
{
    att_sentence *m;
    if (att_sentence_open(ctx, f->path, NULL, &m))
        fail_msg("%s", att_error(ctx));
    *info = (att_sentence_info){.size = sizeof *info};
    assert_int_equal(att_sentence_describe(m, info), ATT_OK);
    assert_int_equal(att_sentence_embed(m, SENTENCES, sentences, NULL, NULL, y), ATT_OK);
    att_sentence_free(m);
}

static void expect_near(double x, const json_t *expected, const char *text)
{
    if (!(fabs(x - json_number_value(expected)) <= 2e-5))
        fail_msg("%.9g is not %.9g of %s", x, json_number_value(expected), text);
}

static double similarity(att_similarity measure, const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0, square = 0, absolute = 0;
    for (int i = 0; i < TINY_HIDDEN; i++) {
        const double x = (double)a[i], y = (double)b[i];
        ab += x * y;
        aa += x * x;
        bb += y * y;
        square += (x - y) * (x - y);
        absolute += fabs(x - y);
    }
    return measure == ATT_SIMILARITY_COSINE      ? ab / sqrt(aa * bb)
           : measure == ATT_SIMILARITY_DOT       ? ab
           : measure == ATT_SIMILARITY_EUCLIDEAN ? -sqrt(square)
                                                 : -absolute;
}

static void write_two_modules(const test_folder *f)
{
    folder_write(f, "modules.json",
                 "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
                 " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]");
}

static void check_similarity(const json_t *line, const char *text)
{
    const test_folder f = tiny_sentence();
    json_t *config = json_pack("{s:O}", "similarity_fn_name", json_object_get(line, "measure"));
    float y[SENTENCES * TINY_HIDDEN];
    att_sentence_info info;
    write_two_modules(&f);
    write_json(&f, "config_sentence_transformers.json", config);
    json_decref(config);
    encode(&f, &info, y);
    assert_false(info.plain);
    for (int i = 0; i < SENTENCES * SENTENCES; i++)
        expect_near(similarity(info.similarity, y + i / SENTENCES * TINY_HIDDEN, y + i % SENTENCES * TINY_HIDDEN),
                    json_array_get(json_array_get(json_object_get(line, "similarity"), (size_t)i / SENTENCES),
                                   (size_t)i % SENTENCES),
                    text);
    folder_remove(&f);
}

static void a_model_says_by_which_measure_it_compares(void **state)
{
    (void)state;
    assert_int_equal(each_line("similarity", check_similarity), 5);
}

/* The files of a BERT alone: with sentence_bert_config.json, which is then not read, there, too */
static test_folder plain_bert(void)
{
    const test_folder f = tiny_sentence();
    tiny_delete(&f, "modules.json");
    return f;
}

static void check_plain(const json_t *line, const char *text)
{
    const test_folder f = plain_bert();
    float y[SENTENCES * TINY_HIDDEN];
    att_sentence_info info;
    json_t *config = json_pack("{s:b, s:i}", "do_lower_case", 1, "model_max_length", 14);
    assert_int_equal(json_object_update(config, json_object_get(line, "config")), 0);
    write_json(&f, "tokenizer_config.json", config);
    json_decref(config);
    encode(&f, &info, y);
    assert_true(info.plain);
    assert_false(info.normalized);
    assert_int_equal(info.poolings, 1);
    assert_int_equal(info.pooling[0], ATT_POOLING_MEAN);
    assert_int_equal(info.max_tokens, 14);
    for (int i = 0; i < SENTENCES * TINY_HIDDEN; i++)
        expect_near((double)y[i],
                    json_array_get(json_array_get(json_object_get(line, "embeddings"), (size_t)i / TINY_HIDDEN),
                                   (size_t)i % TINY_HIDDEN),
                    text);
    folder_remove(&f);
}

static void hidden_states_of_a_bert_alone_are_averaged_as_in_sentence_transformers(void **state)
{
    (void)state;
    assert_int_equal(each_line("plain", check_plain), 2);
}

static void another_architecture_is_named_with_and_without_modules(void **state)
{
    (void)state;
    static const char *const types[] = {"electra", "deberta-v2", "xlnet", "xlm-roberta-xl", "luke", "t5"};
    for (size_t i = 0; i < 2 * sizeof types / sizeof types[0]; i++) {
        const test_folder f = i % 2 ? tiny_sentence() : plain_bert();
        char value[40], words[120];
        att_sentence *m;
        snprintf(value, sizeof value, "\"%s\"", types[i / 2]);
        snprintf(words, sizeof words, "config.json: \"model_type\" is %s, which is not supported for embeddings",
                 value);
        tiny_write_config(&f, "model_type", value);
        tiny_delete(&f, "vocab.txt"); /* which such a model has not */
        assert_int_equal(att_sentence_open(ctx, f.path, NULL, &m), ATT_ERR_UNSUPPORTED);
        check_message(ctx, words);
        folder_remove(&f);
    }
}

/* Trained, it is a folder of the same kind. */
static void a_bert_alone_is_trained_and_written_without_modules(void **state)
{
    (void)state;
    const test_folder f = plain_bert(), out = folder_new();
    float before[SENTENCES * TINY_HIDDEN], after[SENTENCES * TINY_HIDDEN];
    att_sentence_info info;
    att_sentence *m;
    encode(&f, &info, before);
    assert_int_equal(att_sentence_open_for_training(ctx, f.path, NULL, &m), ATT_OK);
    assert_int_equal(att_sentence_write(m, out.path, 0), ATT_OK);
    att_sentence_free(m);
    encode(&out, &info, after);
    assert_true(info.plain);
    assert_memory_equal(before, after, sizeof before);
    folder_remove(&f);
    folder_remove(&out);
}

/* ---- classes of images */

static test_folder tiny_classifier(int labels, const char *settings)
{
    enum { SIDE = 12 };
    tiny_weights weights = {0};
    const test_folder f = folder_new();
    char text[600], *names = strdup(golden_words(TINY_VIT_GOLDEN, "vit.tensors"));
    assert_non_null(names);
    for (char *at = names; (at = strstr(at, "classifier.")); at++)
        *strchr(at, '5') = (char)('0' + labels);
    snprintf(text, sizeof text,
             "{\"model_type\": \"vit\", \"hidden_size\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
             "\"intermediate_size\": 24, \"image_size\": %d, \"patch_size\": 4, \"num_labels\": %d, %s}",
             SIDE, labels, settings);
    folder_write(&f, "config.json", text);
    folder_write(&f, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 12, \"width\": 12}}");
    weights.model = names;
    tiny_write_tensors(&f, &weights, tiny_put_vit);
    free(names);
    return f;
}

static void check_classes(const json_t *line, const char *text)
{
    uint8_t pixels[12 * 12 * 3];
    float p[5];
    const int labels = (int)json_integer_value(json_object_get(line, "labels"));
    const char *type = json_string_value(json_object_get(json_object_get(line, "config"), "problem_type"));
    char settings[80];
    snprintf(settings, sizeof settings, "\"problem_type\": %s%s%s", type ? "\"" : "", type ? type : "null",
             type ? "\"" : "");
    const test_folder f = tiny_classifier(labels, settings);
    const att_image image = {.height = 12, .width = 12, .channels = 3, .pixels = pixels};
    att_image_model *m;
    att_vit_info info = {.size = sizeof info};
    for (int i = 0; i < 12 * 12 * 3; i++)
        pixels[i] = (uint8_t)(i * 37 % 256);
    if (att_image_model_open(ctx, f.path, NULL, &m))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_vit_describe(att_image_model_vit(m), &info), ATT_OK);
    assert_int_equal(info.multi_label, labels == 1 || (type && !strncmp(type, "multi", 5)));
    assert_int_equal(att_image_classify(m, 1, &image, NULL, p), ATT_OK);
    for (int i = 0; i < labels; i++)
        expect_near((double)p[i], json_array_get(json_object_get(line, "probabilities"), (size_t)i), text);
    att_image_model_free(m);
    folder_remove(&f);
}

static void probabilities_are_those_of_the_pipeline(void **state)
{
    (void)state;
    assert_int_equal(each_line("classify", check_classes), 6);
}

static void another_kind_of_problem_is_named(void **state)
{
    (void)state;
    static const struct {
        int labels;
        const char *type;
    } wrong[] = {{5, "regression"}, {1, "regression"}, {1, "single_label_classification"}, {5, "ranking"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char settings[80], words[80];
        att_vit *m;
        snprintf(settings, sizeof settings, "\"problem_type\": \"%s\"", wrong[i].type);
        snprintf(words, sizeof words, "\"problem_type\" is \"%s\", which is not supported", wrong[i].type);
        const test_folder f = tiny_classifier(wrong[i].labels, settings);
        assert_int_equal(att_vit_open(ctx, f.path, NULL, &m), ATT_ERR_UNSUPPORTED);
        check_message(ctx, words);
        folder_remove(&f);
    }
}

/* What is written is a folder of the same kind of problem. */
static void several_labels_an_image_are_written_as_such(void **state)
{
    (void)state;
    const test_folder f = tiny_classifier(5, "\"problem_type\": \"multi_label_classification\""), out = folder_new();
    att_vit *m = tiny_vit_open(&f, true);
    att_vit_info info = {.size = sizeof info};
    assert_int_equal(att_vit_write(m, out.path, NULL, 0), ATT_OK);
    att_vit_free(m);
    m = tiny_vit_open(&out, false);
    assert_int_equal(att_vit_describe(m, &info), ATT_OK);
    assert_true(info.multi_label);
    att_vit_free(m);
    folder_remove(&f);
    folder_remove(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_follow_tokenizer_config_as_in_transformers),
        cmocka_unit_test(offsets_are_those_of_the_tokens_that_remain),
        cmocka_unit_test(settings_of_a_tokenizer_that_are_not_done_are_named),
        cmocka_unit_test(memory_may_run_out_while_a_tokenizer_is_changed),
        cmocka_unit_test(missing_keys_of_berts_tokenizer_mean_the_defaults_of_its_class),
        cmocka_unit_test(a_model_says_by_which_measure_it_compares),
        cmocka_unit_test(hidden_states_of_a_bert_alone_are_averaged_as_in_sentence_transformers),
        cmocka_unit_test(another_architecture_is_named_with_and_without_modules),
        cmocka_unit_test(a_bert_alone_is_trained_and_written_without_modules),
        cmocka_unit_test(probabilities_are_those_of_the_pipeline),
        cmocka_unit_test(another_kind_of_problem_is_named),
        cmocka_unit_test(several_labels_an_image_are_written_as_such),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
