/* Sentence models: embeddings of sentence-transformers, settings of folders, and those that are wrong. */
// labels: threads
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/fail_malloc.h"
#include "fixtures/real_files.h"
#include "fixtures/sentence_model.h"

#include <math.h>

static void assert_near(const float *x, const float *expected, int n, float tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabsf(x[i] - expected[i]) <= tolerance))
            fail_msg("[%d] is %.9g, not %.9g", i, (double)x[i], (double)expected[i]);
}

/* ---- the published model */

enum { MINILM_DIM = 384, MINILM_LINES = 20, MINILM_CUT = 2 };

typedef struct golden {
    char *text;
    const char *line[MINILM_LINES];
    float embedding[MINILM_LINES * MINILM_DIM];
} golden;

static golden *read_golden(void)
{
    golden *g = calloc(1, sizeof *g);
    FILE *f = fopen("tests/golden/minilm_sentences.txt", "rb");
    assert_non_null(f);
    g->text = calloc(1, 1 << 16);
    char *p = g->text;
    assert_in_range(fread(g->text, 1, 1 << 16, f), 1, (1 << 16) - 1);
    fclose(f);
    for (int i = 0; i < MINILM_LINES; i++) {
        g->line[i] = p;
        p = strchr(p, '\n');
        assert_non_null(p);
        *p++ = 0;
    }
    f = fopen("tests/golden/minilm_embeddings.f32", "rb");
    assert_non_null(f);
    assert_int_equal(fread(g->embedding, sizeof(float), MINILM_LINES * MINILM_DIM, f), MINILM_LINES * MINILM_DIM);
    fclose(f);
    return g;
}

static void free_golden(golden *g)
{
    free(g->text);
    free(g);
}

static void minilm_gives_the_embeddings_of_sentence_transformers(void **state)
{
    (void)state;
    const char *folder = model_folder("all-MiniLM-L6-v2");
    golden *g = read_golden();
    att_sentence *m = open_sentence(ctx, folder);
    static float y[MINILM_LINES * MINILM_DIM];
    const int n = MINILM_LINES / check_step(5);
    bool truncated[MINILM_LINES] = {false};
    int cut = 0;
    assert_int_equal(att_sentence_embed(m, n, g->line, NULL, ATT_OPTIONS(att_embed_options, .truncated = truncated), y),
                     ATT_OK);
    assert_near(y, g->embedding, n * MINILM_DIM, 2e-6f);
    for (int i = 0; i < n; i++)
        cut += truncated[i];
    assert_in_range(cut, n < MINILM_LINES ? 0 : MINILM_CUT, MINILM_CUT);
    att_sentence_info info = {.size = sizeof info};
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    assert_int_equal(info.dim, MINILM_DIM);
    assert_int_equal(info.max_tokens, 256);
    assert_int_equal(info.layers, 6);
    assert_int_equal(info.heads, 12);
    assert_int_equal(info.poolings, 1);
    assert_int_equal(info.pooling[0], ATT_POOLING_MEAN);
    assert_true(info.normalized);
    att_sentence_free(m);
    free_golden(g);
}

static void minilm_has_the_same_bits_with_any_threads_alone_or_in_a_batch(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    static float expected[MINILM_LINES * MINILM_DIM], y[MINILM_LINES * MINILM_DIM], alone[MINILM_DIM];
    const char *folder = model_folder("all-MiniLM-L6-v2");
    golden *g = read_golden();
    const int n = MINILM_LINES / check_step(10);
    for (int i = 0; i < 4; i += check_step(2)) {
        att_ctx *c = check_open(NULL, threads[i]);
        att_sentence *m = open_sentence(c, folder);
        encode(m, n, g->line, i ? y : expected);
        if (i)
            assert_memory_equal(y, expected, (size_t)n * MINILM_DIM * sizeof *y);
        for (int k = i % n; k < n; k += 4) {
            encode(m, 1, &g->line[k], alone);
            assert_memory_equal(alone, expected + k * MINILM_DIM, sizeof alone);
        }
        att_sentence_free(m);
        att_close(c);
    }
    free_golden(g);
}

/* ---- a tiny model, which needs no download */

/* What the pooling and the norm make of the hidden states of "a b c", for each setting. */
static void pooling_and_normalization_follow_the_folder(void **state)
{
    (void)state;
    static const struct {
        const char *pooling;
        att_pooling kind;
    } settings[] = {
        {"{\"word_embedding_dimension\": 12, \"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}",
         ATT_POOLING_CLS},
        {"{\"word_embedding_dimension\": 12, \"pooling_mode_max_tokens\": true}", ATT_POOLING_MAX},
        {"{\"word_embedding_dimension\": 12}", ATT_POOLING_MEAN},
        {"{\"embedding_dimension\": 12, \"pooling_mode\": \"cls\", \"include_prompt\": true}", ATT_POOLING_CLS},
        {"{\"embedding_dimension\": 12, \"pooling_mode\": [\"max\"]}", ATT_POOLING_MAX},
        {"{\"embedding_dimension\": 12, \"pooling_mode\": \"mean\"}", ATT_POOLING_MEAN},
    };
    static const char *const modules[2] = {
        "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
        " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]",
        "[{\"path\": \"\", \"type\": \"sentence_transformers.base.modules.transformer.Transformer\"},"
        " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.sentence_transformer.modules.pooling.Pooling\"},"
        " {\"path\": \"2_Normalize\", \"type\": \"sentence_transformers.base.modules.normalize.Normalize\"}]"};
    static const int32_t ids[] = {2, 5, 6, 7, 3};
    static const int64_t offsets[] = {0, 5};
    const test_folder f = tiny_sentence();
    folder_write(&f, "2_Normalize/config.json", "{\"module_input_name\": \"sentence_embedding\"}");
    att_encoder *encoder;
    assert_int_equal(att_encoder_open(ctx, f.path, NULL, &encoder), ATT_OK);
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (size_t i = 0; i < 2 * sizeof settings / sizeof settings[0]; i++) {
        const bool normalized = i % 2;
        float y[TINY_HIDDEN];
        att_tensor expected;
        folder_write(&f, "1_Pooling/config.json", settings[i / 2].pooling);
        folder_write(&f, "modules.json", modules[normalized]);
        att_sentence *m = open_sentence(ctx, f.path);
        encode(m, 1, (const char *[]){"a B c"}, y);
        att_tape_reset(t);
        att_var *x =
            att_pool(t, att_encoder_apply(t, encoder, ids, offsets, 1, NULL), offsets, 1, settings[i / 2].kind, 0);
        assert_int_equal(att_var_value(t, normalized ? att_normalize(t, x, 1e-12f) : x, &expected), ATT_OK);
        assert_memory_equal(y, expected.data, sizeof y);
        x = att_pool(t, att_encoder_apply(t, att_sentence_encoder(m), ids, offsets, 1, NULL), offsets, 1,
                     settings[i / 2].kind, 0);
        assert_int_equal(att_var_value(t, normalized ? att_normalize(t, x, 1e-12f) : x, &expected), ATT_OK);
        assert_memory_equal(y, expected.data, sizeof y);
        att_sentence_free(m);
    }
    assert_null(att_sentence_encoder(NULL));
    att_tape_free(t);
    att_encoder_free(encoder);
    folder_remove(&f);
}

static int64_t limit_of(const test_folder *f)
{
    att_sentence *m = open_sentence(ctx, f->path);
    att_sentence_info info = {.size = sizeof info};
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    att_sentence_free(m);
    return info.max_tokens;
}

static void the_limit_of_tokens_is_found_where_it_is_said(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    assert_int_equal(limit_of(&f), 12); /* max_seq_length, not model_max_length */
    folder_write(&f, "sentence_bert_config.json", "{\"max_seq_length\": null, \"do_lower_case\": false}");
    assert_int_equal(limit_of(&f), 14);
    tiny_delete(&f, "sentence_bert_config.json");
    assert_int_equal(limit_of(&f), 14);
    folder_write(&f, "tokenizer_config.json", "{\"model_max_length\": 1e30}");
    assert_int_equal(limit_of(&f), TINY_POSITIONS);
    folder_write(&f, "tokenizer_config.json", "{}");
    assert_int_equal(limit_of(&f), TINY_POSITIONS);
    folder_write(
        &f, "sentence_bert_config.json",
        "{\"transformer_task\": \"feature-extraction\", \"modality_config\": {\"text\": {\"method\": \"forward\", "
        "\"method_output_name\": \"last_hidden_state\"}}, \"module_output_name\": \"token_embeddings\"}");
    assert_int_equal(limit_of(&f), TINY_POSITIONS);
    folder_remove(&f);
}

/* ---- what is wrong is named */

#define TRANSFORMER_AT(path)                                                                                           \
    "[{\"path\": \"" path "\", \"type\": \"sentence_transformers.models.Transformer\"},"                               \
    " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]"

#define DENSE                                                                                                          \
    "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"                                       \
    " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"                                  \
    " {\"path\": \"2_Dense\", \"type\": \"sentence_transformers.models.Dense\"}]"

#define LETTERS "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\nq\nr\ns\nt\nu\nv\nw\nx\ny\nz\n"
#define LETTERS_WITHIN "##a\n##b\n##c\n##d\n##e\n##f\n##g\n##h\n##i\n##j\n"

static const struct {
    const char *file, *content;
    att_status status;
    const char *words;
} wrong[] = {
    {"modules.json", "", ATT_ERR_FORMAT, "modules.json: line 1"},
    {"modules.json", "{}", ATT_ERR_FORMAT, "modules.json: is not a list"},
    {"modules.json", DENSE, ATT_ERR_IO, "2_Dense/config.json: No such file"},
    {"modules.json", TRANSFORMER_AT("../other"), ATT_ERR_FORMAT,
     "\"path\" of module 0 is \"../other\", which is not in"},
    {"modules.json", TRANSFORMER_AT("a/.."), ATT_ERR_FORMAT, "is \"a/..\", which is not in the model's folder"},
    {"modules.json", TRANSFORMER_AT("a//../../b"), ATT_ERR_FORMAT, "is \"a//../../b\", which is not in"},
    {"modules.json", TRANSFORMER_AT("/etc"), ATT_ERR_FORMAT, "is \"/etc\", which is not in the model's folder"},
    {"modules.json", TRANSFORMER_AT("..a/b..c/"), ATT_ERR_IO, "b..c//config.json: No such"}, /* strange, but inside */
    {"modules.json", "[{\"path\": \"\"}, {}]", ATT_ERR_FORMAT, "modules.json: there is no \"type\""},
    {"modules.json", "[{\"type\": \"evil.Transformer\"}, {}]", ATT_ERR_UNSUPPORTED, "\"evil.Transformer\""},
    {"1_Pooling/config.json", "{}", ATT_ERR_FORMAT, "1_Pooling/config.json: there is no \"word_embedding_dimension\""},
    {"1_Pooling/config.json", "{\"word_embedding_dimension\": 13}", ATT_ERR_FORMAT,
     "1_Pooling/config.json: \"word_embedding_dimension\" is 13, but by"},
    {"1_Pooling/config.json", "{\"word_embedding_dimension\": 13}", ATT_ERR_FORMAT,
     "/config.json it is applied to 12 features"},
    {"1_Pooling/config.json", "{\"word_embedding_dimension\": 12, \"pooling_mode_lasttoken\": 3}", ATT_ERR_FORMAT,
     "1_Pooling/config.json: \"pooling_mode_lasttoken\" is 3"},
    {"1_Pooling/config.json", "{\"word_embedding_dimension\": 12, \"pooling_mode_median\": true}", ATT_ERR_UNSUPPORTED,
     "\"pooling_mode_median\" is not a known setting"},
    {"2_Normalize/config.json", "{\"module_input_name\": \"pixels\"}", ATT_ERR_UNSUPPORTED,
     "\"module_input_name\" is \"pixels\", which is not supported; one of sentence_embedding and token_embeddings"},
    {"2_Normalize/config.json", "{\"module_output_name\": \"token_embeddings\"}", ATT_ERR_UNSUPPORTED,
     "\"module_output_name\" is \"token_embeddings\""},
    {"sentence_bert_config.json", "{\"max_seq_length\": -5}", ATT_ERR_FORMAT,
     "sentence_bert_config.json: \"max_seq_length\" is -5, not in"},
    {"sentence_bert_config.json", "{\"max_seq_length\": \"many\"}", ATT_ERR_FORMAT, "\"many\", not a whole number"},
    {"sentence_bert_config.json", "{\"transformer_task\": \"fill-mask\"}", ATT_ERR_UNSUPPORTED, "\"fill-mask\""},
    {"sentence_bert_config.json", "{\"query_length\": 32}", ATT_ERR_UNSUPPORTED, "\"query_length\" is 32"},
    {"sentence_bert_config.json",
     "{\"modality_config\": {\"text\": {\"method\": \"forward\", \"method_output_name\": \"last_hidden_state\"}, "
     "\"message\": {}}}",
     ATT_ERR_UNSUPPORTED, "\"modality_config.message\""},
    {"config_sentence_transformers.json", "{\"default_prompt_name\": \"q\", \"prompts\": {\"p\": \"query: \"}}",
     ATT_ERR_FORMAT,
     "config_sentence_transformers.json: \"default_prompt_name\" is \"q\", but the model's prompts are \"query\", "
     "\"document\", \"p\""},
    {"config_sentence_transformers.json", "{\"default_prompt_name\": 3}", ATT_ERR_FORMAT,
     "\"default_prompt_name\" is 3"},
    {"config_sentence_transformers.json", "{\"prompts\": [\"a\"]}", ATT_ERR_FORMAT,
     "\"prompts\" is [\"a\"], not an object of names and texts"},
    {"config_sentence_transformers.json", "{\"prompts\": {\"query\": 3}}", ATT_ERR_FORMAT, "\"prompts.query\" is 3"},
    {"config_sentence_transformers.json", "{\"truncate_dim\": 0}", ATT_ERR_FORMAT, "\"truncate_dim\" is 0, not in"},
    {"config_sentence_transformers.json", "{\"truncate_dim\": -3}", ATT_ERR_FORMAT, "\"truncate_dim\" is -3, not in"},
    {"config_sentence_transformers.json", "{\"truncate_dim\": \"3\"}", ATT_ERR_FORMAT, "\"truncate_dim\" is \"3\""},
    {"config_sentence_transformers.json", "{\"similarity_fn_name\": \"maxsim\"}", ATT_ERR_UNSUPPORTED,
     "\"similarity_fn_name\" is \"maxsim\", which is not supported; one of cosine, dot, euclidean and manhattan"},
    {"config_sentence_transformers.json", "{\"similarity_fn_name\": 3}", ATT_ERR_FORMAT,
     "\"similarity_fn_name\" is 3, not a text"},
    {"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" LETTERS LETTERS_WITHIN, ATT_ERR_FORMAT,
     "the tokenizer has 41 tokens but vocab_size is 40"},
};

static void wrong_files_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const test_folder f = tiny_sentence();
        folder_write(&f, wrong[i].file, wrong[i].content);
        att_sentence *m = (att_sentence *)&m;
        const att_status s = att_sentence_open(ctx, f.path, NULL, &m);
        if (s != wrong[i].status || (s && (m || !strstr(att_error(ctx), wrong[i].words))))
            fail_msg("%s with %s: %s, \"%s\"", wrong[i].file, wrong[i].content, att_status_name(s), att_error(ctx));
        att_sentence_free(s ? NULL : m);
        folder_remove(&f);
    }
}

static void a_tokenizer_that_does_not_lower_is_refused_where_lower_case_is_asked_for(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    folder_write(&f, "sentence_bert_config.json", "{\"max_seq_length\": 12, \"do_lower_case\": true}");
    att_sentence_free(open_sentence(ctx, f.path)); /* it lowers already */
    folder_write(&f, "tokenizer_config.json", "{\"do_lower_case\": false}");
    att_sentence *m;
    assert_int_equal(att_sentence_open(ctx, f.path, NULL, &m), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "\"do_lower_case\" is true, but the tokenizer does not lower");
    folder_remove(&f);
}

static void a_vocabulary_may_have_fewer_tokens_than_the_padded_embeddings(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    float whole[TINY_HIDDEN], padded[TINY_HIDDEN];
    att_sentence *m = open_sentence(ctx, f.path);
    encode(m, 1, (const char *[]){"a b z"}, whole);
    att_sentence_free(m);
    folder_write(&f, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" LETTERS);
    m = open_sentence(ctx, f.path);
    encode(m, 1, (const char *[]){"a b z"}, padded);
    assert_memory_equal(whole, padded, sizeof whole);
    att_sentence_free(m);
    folder_remove(&f);
}

static void a_text_or_a_folder_that_is_null_is_named(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    float y[2 * TINY_HIDDEN];
    assert_int_equal(att_sentence_embed(m, 2, (const char *[]){"a", NULL}, NULL, NULL, y), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_sentence_embed: texts[1] is NULL");
    assert_int_equal(att_sentence_embed(m, -1, NULL, NULL, NULL, y), ATT_ERR_ARGUMENT);
    att_sentence_free(m);
    assert_int_equal(att_sentence_open(ctx, NULL, NULL, &m), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_sentence_open: folder is NULL");
    folder_remove(&f);
}

/* ---- failing allocations */

/* Opens, encodes, computes attention weights, closes. */
static att_status everything(const att_config *cfg, const char *folder, float y[3 * TINY_HIDDEN])
{
    static const char *const texts[] = {"a b c", "", "wxyz abc"};
    att_ctx *c = NULL;
    att_sentence *m = NULL;
    att_trace *trace = NULL;
    float weights[25];
    att_status s = att_open(&c, cfg);
    if (!s)
        s = att_sentence_open(c, folder, NULL, &m);
    if (!s)
        s = att_sentence_embed(m, 3, texts, NULL, NULL, y);
    if (!s)
        s = att_sentence_trace(m, "abc", 3, NULL, NULL, &trace);
    if (!s)
        s = att_trace_weights(trace, 1, 0, 0, 3, weights);
    att_trace_free(trace);
    att_sentence_free(m);
    att_close(c);
    return s;
}

static void a_failing_allocation_of_the_context_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const test_folder f = tiny_sentence();
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc a = {.fail_at = at};
        float y[3 * TINY_HIDDEN];
        s = everything(ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&a)), f.path, y);
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
        assert_int_equal(a.live, 0);
    }
    folder_remove(&f);
}

static void a_failing_malloc_anywhere_is_an_error_or_changes_nothing_and_leaks_nothing(void **state)
{
    (void)state;
    if (!FAIL_MALLOC_WORKS)
        skip();
    const test_folder f = tiny_sentence();
    const att_config *cfg = ATT_OPTIONS(att_config, .n_threads = 1);
    float expected[3 * TINY_HIDDEN], y[3 * TINY_HIDDEN];
    assert_int_equal(everything(cfg, f.path, expected), ATT_OK);
    long at = 0;
    do {
        malloc_fails_at(++at);
        const att_status s = everything(cfg, f.path, y);
        malloc_fails_never();
        if (malloc_live != 0)
            fail_msg("failing at %ld leaves %ld blocks", at, (long)malloc_live);
        if (s && s != ATT_ERR_MEMORY && s != ATT_ERR_IO)
            fail_msg("failing at %ld gives %s: %s", at, att_status_name(s), att_error(NULL));
        else if (!s)
            assert_memory_equal(y, expected, sizeof y);
    } while (malloc_calls >= at);
    assert_true(at > 100);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minilm_gives_the_embeddings_of_sentence_transformers),
        cmocka_unit_test(minilm_has_the_same_bits_with_any_threads_alone_or_in_a_batch),
        cmocka_unit_test(pooling_and_normalization_follow_the_folder),
        cmocka_unit_test(the_limit_of_tokens_is_found_where_it_is_said),
        cmocka_unit_test(wrong_files_are_named),
        cmocka_unit_test(a_tokenizer_that_does_not_lower_is_refused_where_lower_case_is_asked_for),
        cmocka_unit_test(a_vocabulary_may_have_fewer_tokens_than_the_padded_embeddings),
        cmocka_unit_test(a_text_or_a_folder_that_is_null_is_named),
        cmocka_unit_test(a_failing_allocation_of_the_context_anywhere_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_failing_malloc_anywhere_is_an_error_or_changes_nothing_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
