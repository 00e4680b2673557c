/* Static embeddings: vectors and tokens of model2vec and sentence-transformers, the memory of the table, and folders
 * that are wrong. */
// labels: threads
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"
#include "fixtures/sentence_model.h"

#include <jansson.h>
#include <math.h>

#define GOLDEN "tests/golden/static"

enum { MAX_TEXTS = 16, MAX_DIM = 64, MAX_IDS = 4096 };

/* A line of expected.jsonl */
typedef struct golden {
    json_t *line;
    char folder[128];
    const char *text[MAX_TEXTS];
    size_t bytes[MAX_TEXTS];
    int64_t n;
} golden;

static json_t *read_lines(void)
{
    json_t *lines = json_array();
    static char line[1 << 17];
    FILE *file = fopen(GOLDEN "/expected.jsonl", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        assert_int_equal(json_array_append_new(lines, json_loads(line, 0, NULL)), 0);
    fclose(file);
    assert_true(json_array_size(lines) >= 7);
    return lines;
}

static golden golden_of(json_t *line)
{
    golden g = {.line = line};
    const json_t *texts = json_object_get(line, "texts");
    snprintf(g.folder, sizeof g.folder, "%s/%s", GOLDEN, json_string_value(json_object_get(line, "folder")));
    g.n = (int64_t)json_array_size(texts);
    assert_in_range(g.n, 5, MAX_TEXTS);
    for (int64_t i = 0; i < g.n; i++) {
        g.text[i] = json_string_value(json_array_get(texts, (size_t)i));
        g.bytes[i] = json_string_length(json_array_get(texts, (size_t)i));
    }
    return g;
}

static golden golden_named(json_t *lines, const char *name)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        if (!strcmp(json_string_value(json_object_get(line, "folder")), name))
            return golden_of(line);
    }
    fail_msg("there is no golden %s", name);
    return (golden){0};
}

static int64_t dim_of(const att_sentence *m)
{
    att_sentence_info info = {.size = sizeof info};
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    assert_in_range(info.dim, 1, MAX_DIM);
    return info.dim;
}

/* ---- results of the packages */

static void expect_vectors(const golden *g, const float *y, int64_t dim)
{
    const json_t *rows = json_object_get(g->line, "vectors");
    for (int64_t i = 0; i < g->n; i++) {
        const json_t *row = json_array_get(rows, (size_t)i);
        double scale = 0;
        assert_int_equal(json_array_size(row), dim);
        for (int64_t k = 0; k < dim; k++)
            scale = fmax(scale, fabs(json_number_value(json_array_get(row, (size_t)k))));
        for (int64_t k = 0; k < dim; k++) /* a sum of at most 41 numbers, and the rounding of the golden ones */
            check_near(json_number_value(json_array_get(row, (size_t)k)), y[i * dim + k], 1e-6 * scale,
                       "%s: text %d, number %d", g->folder, (int)i, (int)k);
    }
}

static void expect_ids(const golden *g, const att_token_embeddings *y)
{
    for (int64_t i = 0; i < g->n; i++) {
        const json_t *ids = json_array_get(json_object_get(g->line, "ids"), (size_t)i);
        assert_int_equal(y->offsets[i + 1] - y->offsets[i], json_array_size(ids));
        for (int64_t k = y->offsets[i]; k < y->offsets[i + 1]; k++)
            assert_int_equal(y->ids[k], json_integer_value(json_array_get(ids, (size_t)(k - y->offsets[i]))));
    }
}

static void vectors_and_tokens_are_those_of_the_packages(void **state)
{
    (void)state;
    static float y[MAX_TEXTS * MAX_DIM], again[MAX_TEXTS * MAX_DIM];
    json_t *lines = read_lines();
    for (att_ctx *c = NULL; check_next_context(&c, 2);)
        for (size_t i = 0; i < json_array_size(lines); i++) {
            const golden g = golden_of(json_array_get(lines, i));
            att_sentence *m = open_sentence(c, g.folder);
            const int64_t dim = dim_of(m);
            att_token_embeddings tokens;
            if (att_sentence_embed(m, g.n, g.text, g.bytes, NULL, y) ||
                att_sentence_embed_tokens(m, g.n, g.text, g.bytes, NULL, &tokens))
                fail_msg("%s", att_error(c));
            expect_vectors(&g, y, dim);
            expect_ids(&g, &tokens);
            const att_embed_options o = {.size = sizeof o, .ids = tokens.ids, .offsets = tokens.offsets};
            if (att_sentence_embed(m, g.n, NULL, NULL, &o, again))
                fail_msg("%s", att_error(c));
            assert_memory_equal(y, again, (size_t)(g.n * dim) * sizeof *y);
            att_token_embeddings_free(c, &tokens);
            att_sentence_free(m);
        }
    json_decref(lines);
}

static void a_text_has_the_same_bits_alone_and_with_any_threads(void **state)
{
    (void)state;
    static float y[MAX_TEXTS * MAX_DIM], alone[MAX_DIM];
    json_t *lines = read_lines();
    const golden g = golden_named(lines, "model2vec_f16");
    att_ctx *one = check_open(NULL, 1), *more = check_open(NULL, 3);
    att_sentence *a = open_sentence(one, g.folder), *b = open_sentence(more, g.folder);
    const int64_t dim = dim_of(a);
    assert_int_equal(att_sentence_embed(b, g.n, g.text, g.bytes, NULL, y), ATT_OK);
    for (int64_t i = 0; i < g.n; i++) {
        assert_int_equal(att_sentence_embed(a, 1, g.text + i, g.bytes + i, NULL, alone), ATT_OK);
        assert_memory_equal(alone, y + i * dim, (size_t)dim * sizeof *y);
    }
    att_sentence_free(a);
    att_sentence_free(b);
    att_close(one);
    att_close(more);
    json_decref(lines);
}

static void texts_without_tokens_have_vectors_beside_long_ones(void **state)
{
    (void)state;
    enum { N = 40, WORDS = 500 };
    static char words[2 * WORDS + 1];
    static float y[N * MAX_DIM], alone[2 * MAX_DIM];
    const char *text[N];
    json_t *lines = read_lines();
    const golden g = golden_named(lines, "model2vec_f16");
    att_ctx *c = check_open(NULL, 3);
    att_sentence *m = open_sentence(c, g.folder);
    const int64_t dim = dim_of(m);
    for (int i = 0; i < WORDS; i++)
        memcpy(words + 2 * i, "a ", 2);
    for (int with_long = 0; with_long < 2; with_long++) {
        for (int i = 0; i < N; i++)
            text[i] = with_long && i % 16 == 0 ? words : "";
        assert_int_equal(att_sentence_embed(m, N, text, NULL, NULL, y), ATT_OK);
        for (int i = 0; i < 2; i++)
            assert_int_equal(att_sentence_embed(m, 1, text + i, NULL, NULL, alone + i * dim), ATT_OK);
        for (int i = 0; i < N; i++)
            assert_memory_equal(y + i * dim, alone + (i % 16 > 0) * dim, (size_t)dim * sizeof *y);
    }
    att_sentence_free(m);
    att_close(c);
    json_decref(lines);
}

/* ---- memory, and types */

static void the_table_stays_in_the_file_in_its_type(void **state)
{
    (void)state;
    static const struct {
        const char *folder;
        att_dtype type;
    } cases[] = {{GOLDEN "/model2vec_f32", ATT_F32},
                 {GOLDEN "/model2vec_f16", ATT_F16},
                 {GOLDEN "/model2vec_int8", ATT_I8},
                 {GOLDEN "/static_bf16", ATT_BF16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_sentence *m = open_sentence(ctx, cases[i].folder);
        att_model_weights w = {.size = sizeof w};
        assert_int_equal(att_sentence_weights(m, &w), ATT_OK);
        assert_true(w.stored[cases[i].type] > 0 && w.used[cases[i].type] == w.stored[cases[i].type]);
        assert_int_equal(w.mapped, w.stored[cases[i].type]);
        assert_int_equal(w.own + w.packed, 0);
        att_sentence_free(m);
    }
}

static void an_int8_table_can_be_opened_as_floats(void **state)
{
    (void)state;
    static float y[MAX_TEXTS * MAX_DIM], stored[MAX_TEXTS * MAX_DIM];
    json_t *lines = read_lines();
    const golden g = golden_named(lines, "model2vec_int8");
    att_sentence *m = open_sentence(ctx, g.folder);
    const int64_t dim = dim_of(m);
    assert_int_equal(att_sentence_embed(m, g.n, g.text, g.bytes, NULL, stored), ATT_OK);
    att_sentence_free(m);
    const att_model_options o = {.size = sizeof o, .weights = ATT_WEIGHT_TYPE_F16};
    assert_int_equal(att_sentence_open(ctx, g.folder, &o, &m), ATT_OK);
    assert_int_equal(att_sentence_embed(m, g.n, g.text, g.bytes, NULL, y), ATT_OK);
    assert_memory_equal(y, stored, (size_t)(g.n * dim) * sizeof *y); /* f16 has whole numbers of 8 bits exactly */
    att_sentence_free(m);
    json_decref(lines);
}

static void there_is_no_attention_to_trace(void **state)
{
    (void)state;
    att_sentence *m = open_sentence(ctx, GOLDEN "/model2vec_f32");
    att_sentence_info info = {.size = sizeof info};
    att_trace *t;
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    assert_int_equal(info.layers, 0);
    assert_null(att_sentence_encoder(m));
    assert_int_equal(att_sentence_trace(m, "fox", 3, NULL, NULL, &t), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "attention");
    att_sentence_free(m);
}

/* ---- wrong folders */

/* A tensor of model.safetensors whose bytes are all `byte` */
typedef struct tensor {
    const char *name, *type, *shape;
    size_t bytes;
    unsigned char byte;
} tensor;

static void write_tensors(const test_folder *f, const tensor *t)
{
    char header[1024] = "{";
    size_t at = 1, begin = 0;
    for (int i = 0; t[i].name; begin += t[i++].bytes)
        at += (size_t)snprintf(header + at, sizeof header - at,
                               "%s\"%s\": {\"dtype\": \"%s\", \"shape\": %s, \"data_offsets\": [%zu, %zu]}",
                               i ? ", " : "", t[i].name, t[i].type, t[i].shape, begin, begin + t[i].bytes);
    header[at++] = '}';
    const uint64_t bytes = at;
    FILE *file = folder_open(f, "model.safetensors");
    fwrite(&bytes, 1, 8, file);
    fwrite(header, 1, at, file);
    for (int i = 0; t[i].name; i++)
        for (size_t k = 0; k < t[i].bytes; k++)
            fputc(t[i].byte, file);
    assert_int_equal(fclose(file), 0);
}

#define TOKENIZER(more)                                                                                                \
    "{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, "                \
    "\"post_processor\": null, \"decoder\": null, " more                                                               \
    "\"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"a\": 1, \"b\": 2}, \"merges\": []}}"
#define TABLE                                                                                                          \
    {                                                                                                                  \
        "embeddings", "F32", "[3, 2]", 24, 0                                                                           \
    }
enum { TENSORS = 4 };

static const struct {
    const char *file, *content;
    tensor tensors[TENSORS];
    att_status status;
    const char *words;
} wrong[] = {
    {"config.json", "{\"model_type\": \"model2vec\"}", {TABLE}, ATT_OK, ""},
    {"config.json", "{\"model_type\": \"model2vec\", \"max_length\": null}", {TABLE}, ATT_OK, ""},
    {"config.json", "{\"embedding_dtype\": \"float32\"}", {TABLE}, ATT_OK, ""},
    {"config.json",
     "{\"model_type\": \"model2vec\", \"max_length\": 0}",
     {TABLE},
     ATT_ERR_FORMAT,
     "config.json: \"max_length\" is 0"},
    {"config.json", "{\"model_type\": \"model2vec\", \"normalize\": 1}", {TABLE}, ATT_ERR_FORMAT, "\"normalize\" is 1"},
    {"tokenizer.json",
     TOKENIZER(""),
     {{"embeddings", "F32", "[2, 2]", 16, 0}},
     ATT_ERR_FORMAT,
     "tokenizer.json has 3 tokens but model.safetensors has 2"},
    {"tokenizer.json",
     TOKENIZER(""),
     {{"table", "F32", "[3, 2]", 24, 0}},
     ATT_ERR_FORMAT,
     "there is neither a tensor \"embedding.weight\" nor \"embeddings\""},
    {"tokenizer.json",
     TOKENIZER(""),
     {{"embeddings", "F32", "[6]", 24, 0}},
     ATT_ERR_SHAPE,
     "tensor \"embeddings\" is [6], not [tokens, features]"},
    {"tokenizer.json",
     TOKENIZER(""),
     {{"embeddings", "F64", "[3, 1]", 24, 0}},
     ATT_ERR_DTYPE,
     "tensor \"embeddings\" is F64, which cannot be used here"},
    {"tokenizer.json",
     TOKENIZER(""),
     {{"embeddings", "I32", "[3, 2]", 24, 0}},
     ATT_ERR_DTYPE,
     "tensor \"embeddings\" is i32, not f32, f16 or bf16"},
    {"tokenizer.json",
     TOKENIZER(""),
     {TABLE, {"mapping", "I32", "[3]", 12, 1}},
     ATT_ERR_FORMAT,
     "mapping[0] is 16843009, but the table has 3 rows"},
    {"tokenizer.json",
     TOKENIZER(""),
     {TABLE, {"mapping", "I64", "[3]", 24, 255}},
     ATT_ERR_FORMAT,
     "mapping[0] is -1, but the table has 3 rows"},
    {"tokenizer.json",
     TOKENIZER(""),
     {TABLE, {"mapping", "F32", "[3]", 12, 0}},
     ATT_ERR_FORMAT,
     "tensor \"mapping\" is [3] of f32, not [tokens] of i32 or i64"},
    {"tokenizer.json",
     TOKENIZER(""),
     {TABLE, {"mapping", "I32", "[2]", 8, 0}},
     ATT_ERR_FORMAT,
     "tokenizer.json has 3 tokens but model.safetensors has 2"},
    {"tokenizer.json", TOKENIZER(""), {TABLE, {"mapping", "I32", "[4]", 16, 0}}, ATT_OK, ""},
    {"tokenizer.json", TOKENIZER(""), {TABLE, {"weights", "F64", "[3]", 24, 0}}, ATT_OK, ""},
    {"tokenizer.json",
     TOKENIZER(""),
     {TABLE, {"weights", "F32", "[3, 1]", 12, 0}},
     ATT_ERR_SHAPE,
     "tensor \"weights\" is [3, 1], not [tokens]"},
    {"tokenizer.json", TOKENIZER(""), {TABLE, {"weights", "I32", "[3]", 12, 0}}, ATT_ERR_DTYPE, "x is i32"},
    {"tokenizer.json",
     TOKENIZER("\"truncation\": {\"max_length\": 0, \"direction\": \"Right\"}, "),
     {TABLE},
     ATT_ERR_FORMAT,
     "\"truncation.max_length\" is 0"},
    {"tokenizer.json",
     TOKENIZER("\"truncation\": {\"max_length\": 3, \"direction\": \"up\"}, "),
     {TABLE},
     ATT_ERR_UNSUPPORTED,
     "\"truncation.direction\" is \"up\""},
    {"tokenizer.json",
     TOKENIZER("\"truncation\": {\"max_length\": 3, \"direction\": \"Left\", \"strategy\": "
               "\"OnlySecond\"}, "),
     {TABLE},
     ATT_ERR_UNSUPPORTED,
     "\"OnlySecond\""},
    {"tokenizer.json", "{}", {TABLE}, ATT_ERR_FORMAT, "tokenizer.json: there is no \"model\""},
};

static void wrong_files_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const test_folder f = folder_new();
        folder_write(&f, "modules.json",
                     "[{\"path\": \".\", \"type\": \"sentence_transformers.models.StaticEmbedding\"}]");
        folder_write(&f, "tokenizer.json", TOKENIZER(""));
        folder_write(&f, wrong[i].file, wrong[i].content);
        write_tensors(&f, wrong[i].tensors);
        att_sentence *m = (att_sentence *)&m;
        const att_status s = att_sentence_open(ctx, f.path, NULL, &m);
        if (s != wrong[i].status || (s && (m || !strstr(att_error(ctx), wrong[i].words))))
            fail_msg("%d: %s with %s: %s, \"%s\"", (int)i, wrong[i].file, wrong[i].content, att_status_name(s),
                     att_error(ctx));
        att_sentence_free(s ? NULL : m);
        folder_remove(&f);
    }
}

static void ids_that_no_token_has_are_refused(void **state)
{
    (void)state;
    att_sentence *m = open_sentence(ctx, GOLDEN "/model2vec_f32");
    float y[MAX_DIM];
    const int32_t ids[] = {(int32_t)att_tokenizer_size(att_sentence_tokenizer(m))};
    const int64_t offsets[] = {0, 1};
    const att_embed_options o = {.size = sizeof o, .ids = ids, .offsets = offsets};
    assert_int_equal(att_sentence_embed(m, 1, NULL, NULL, &o, y), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.ids");
    att_sentence_free(m);
}

/* ---- failing allocations */

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"the quick fox", "", "lazy wolf"};
    static const char *const folders[] = {GOLDEN "/model2vec_int8", GOLDEN "/static_f32"};
    for (int k = 0; k < 2; k++) {
        att_status s = ATT_ERR_MEMORY;
        for (long at = 1; s; at++) {
            fail_alloc a = {.fail_at = at};
            float y[3 * MAX_DIM];
            att_ctx *c = NULL;
            att_sentence *m = NULL;
            s = att_open(&c, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&a)));
            s = s ? s : att_sentence_open(c, folders[k], NULL, &m);
            s = s ? s : att_sentence_embed(m, 3, texts, NULL, NULL, y);
            att_sentence_free(m);
            att_close(c);
            assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
            assert_int_equal(a.live, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_and_tokens_are_those_of_the_packages),
        cmocka_unit_test(a_text_has_the_same_bits_alone_and_with_any_threads),
        cmocka_unit_test(texts_without_tokens_have_vectors_beside_long_ones),
        cmocka_unit_test(the_table_stays_in_the_file_in_its_type),
        cmocka_unit_test(an_int8_table_can_be_opened_as_floats),
        cmocka_unit_test(there_is_no_attention_to_trace),
        cmocka_unit_test(wrong_files_are_named),
        cmocka_unit_test(ids_that_no_token_has_are_refused),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
