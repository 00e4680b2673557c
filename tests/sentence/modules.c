/* Modules of sentence models: what sentence-transformers makes of a text with each, prompts, truncated embeddings; and
 * folders whose modules are wrong. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/sentence_model.h"
#include "fixtures/tiny_modules.h"
#include "sentence/sentence.h"

#include <math.h>

#define GOLDEN "tests/golden/modules.jsonl"

/* ---- folders of sentence-transformers */

enum { TEXTS = 4, MAX_DIM = 128, FOLDERS = 29 };

/* Those of make_modules.py */
static const char *const texts[TEXTS] = {"cab bed", "fig", "a b c d e f g h i j k l m n o p q r s t", ""};

/* Calls check for each line of the golden file. */
static void each_folder(void check(const json_t *line, const test_folder *f, const char *what))
{
    static char text[1 << 15];
    int n = 0;
    FILE *file = fopen(GOLDEN, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        const char *name;
        json_t *line = json_loads(text, 0, NULL), *content;
        assert_non_null(line);
        const test_folder f = tiny_sentence();
        json_object_foreach(json_object_get(line, "files"), name, content)
        {
            char path[64];
            char *settings = json_dumps(content, 0);
            snprintf(path, sizeof path, "%s", name);
            char *slash = strchr(path, '/');
            if (slash) {
                *slash = 0;
                tiny_write_module(&f, path, settings, NULL);
            } else
                folder_write(&f, name, settings);
            free(settings);
        }
        check(line, &f, text);
        folder_remove(&f);
        json_decref(line);
        n++;
    }
    fclose(file);
    assert_int_equal(n, FOLDERS);
}

static att_embed_options options_of(const json_t *line)
{
    const json_t *o = json_object_get(line, "options");
    return (att_embed_options){.size = sizeof(att_embed_options),
                               .prompt = json_string_value(json_object_get(o, "prompt")),
                               .prompt_name = json_string_value(json_object_get(o, "prompt_name")),
                               .dims = json_integer_value(json_object_get(o, "truncate_dim"))};
}

/* x [n, dim]; the numbers of the file have 9 digits. */
static void expect_rows(const float *x, int64_t dim, const json_t *rows, double tolerance, const char *what)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if ((int64_t)json_array_size(row) != dim)
            fail_msg("a vector has %d numbers, not %d, with %s", (int)dim, (int)json_array_size(row), what);
        for (int64_t d = 0; d < dim; d++) {
            const double expected = json_number_value(json_array_get(row, (size_t)d)),
                         is = (double)x[(int64_t)i * dim + d];
            if (!(fabs(is - expected) <= tolerance + 1e-8 * fabs(expected)))
                fail_msg("[%d][%d] is %.9g, not %.9g, with %s", (int)i, (int)d, is, expected, what);
        }
    }
}

static void check_folder(const json_t *line, const test_folder *f, const char *what)
{
    static float y[TEXTS * MAX_DIM], alone[MAX_DIM];
    const json_t *expected = json_object_get(line, "vectors"), *of_tokens = json_object_get(line, "tokens");
    const att_embed_options o = options_of(line);
    const double tolerance = 8 * json_number_value(json_object_get(line, "error"));
    const int64_t dim = (int64_t)json_array_size(json_array_get(expected, 0));
    att_sentence_info info = {.size = sizeof info};
    att_sentence *m;
    if (att_sentence_open(ctx, f->path, NULL, &m))
        fail_msg("%s with %s", att_error(ctx), what);
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    assert_int_equal(o.dims ? o.dims : info.dim, dim);
    assert_in_range(info.full_dim, dim, MAX_DIM);
    if (att_sentence_embed(m, TEXTS, texts, NULL, &o, y))
        fail_msg("%s with %s", att_error(ctx), what);
    expect_rows(y, dim, expected, tolerance, what);
    for (int i = 0; i < TEXTS; i++) {
        assert_int_equal(att_sentence_embed(m, 1, &texts[i], NULL, &o, alone), ATT_OK);
        assert_memory_equal(alone, y + i * dim, (size_t)dim * sizeof *y);
    }
    if (of_tokens) {
        att_token_embeddings e;
        assert_int_equal(att_sentence_embed_tokens(m, 1, texts, NULL, ATT_OPTIONS(att_embed_options, .prompt = ""), &e),
                         ATT_OK);
        assert_int_equal(e.offsets[1], json_array_size(of_tokens));
        expect_rows(e.vectors, info.token_dim, of_tokens, 1e-5, what);
        att_token_embeddings_free(ctx, &e);
    }
    att_sentence_free(m);
}

static void modules_and_prompts_give_the_embeddings_of_sentence_transformers(void **state)
{
    (void)state;
    each_folder(check_folder);
}

/* A folder that was opened for training is written with the same weights; and what is read again has the same bits. */
static void check_written(const json_t *line, const test_folder *f, const char *what)
{
    static float before[TEXTS * MAX_DIM], after[TEXTS * MAX_DIM];
    const att_embed_options o = options_of(line);
    char written[128];
    att_sentence *m;
    snprintf(written, sizeof written, "%s/written", f->path);
    if (att_sentence_open_for_training(ctx, f->path, NULL, &m))
        fail_msg("%s with %s", att_error(ctx), what);
    assert_int_equal(att_sentence_embed(m, TEXTS, texts, NULL, &o, before), ATT_OK);
    if (att_sentence_write(m, written, 0))
        fail_msg("%s with %s", att_error(ctx), what);
    att_sentence_free(m);
    if (att_sentence_open(ctx, written, NULL, &m))
        fail_msg("%s with %s", att_error(ctx), what);
    assert_int_equal(att_sentence_embed(m, TEXTS, texts, NULL, &o, after), ATT_OK);
    const size_t dim = json_array_size(json_array_get(json_object_get(line, "vectors"), 0));
    assert_memory_equal(before, after, TEXTS * dim * sizeof *after);
    att_sentence_free(m);
}

static void a_folder_with_modules_that_is_written_gives_the_same_bits(void **state)
{
    (void)state;
    each_folder(check_written);
}

/* ---- prompts and truncated embeddings */

#define CONFIG "config_sentence_transformers.json"
#define PROMPTS                                                                                                        \
    "{\"prompts\": {\"query\": \"ab c: \", \"passage\": \"d \", \"none\": null}, \"default_prompt_name\": "            \
    "\"passage\"}"

static void prompts_are_listed_and_stand_before_texts(void **state)
{
    (void)state;
    static const char *const with[] = {"d x", "ab c: x", "x"}, *const plain[] = {"x", "x", "x"};
    static const char *const names[] = {"query", "document", "passage", "none"}, *const known[] = {"ab c: ", "", "d ",
                                                                                                   ""};
    const test_folder f = tiny_sentence();
    float y[3 * TINY_HIDDEN], expected[3 * TINY_HIDDEN];
    att_sentence_info info = {.size = sizeof info};
    folder_write(&f, CONFIG, PROMPTS);
    att_sentence *m = open_sentence(ctx, f.path);
    assert_int_equal(att_sentence_describe(m, &info), ATT_OK);
    assert_int_equal(info.prompts, 4);
    assert_string_equal(info.default_prompt, "passage");
    for (int64_t i = 0; i < info.prompts; i++) {
        const char *name, *text;
        assert_string_equal(att_sentence_prompt_at(m, i, &name), known[i]);
        assert_string_equal(name, names[i]);
        assert_int_equal(att_sentence_prompt(m, name, &text), ATT_OK);
        assert_string_equal(text, known[i]);
    }
    assert_null(att_sentence_prompt_at(m, 4, NULL));
    assert_null(att_sentence_prompt_at(m, -1, NULL));
    const char *text;
    assert_int_equal(att_sentence_prompt(m, NULL, &text), ATT_OK);
    assert_string_equal(text, "d ");
    assert_int_equal(att_sentence_prompt(m, "passages", &text), ATT_ERR_ARGUMENT);
    check_message(ctx,
                  "name is \"passages\", but the model's prompts are \"query\", \"document\", \"passage\", \"none\"");

    assert_int_equal(att_sentence_embed(m, 3, with, NULL, ATT_OPTIONS(att_embed_options, .prompt = ""), expected),
                     ATT_OK);
    assert_int_equal(att_sentence_embed(m, 1, plain, NULL, NULL, y), ATT_OK);
    assert_memory_equal(y, expected, TINY_HIDDEN * sizeof *y);
    assert_int_equal(att_sentence_embed(m, 1, plain, NULL, ATT_OPTIONS(att_embed_options, .prompt_name = "query"), y),
                     ATT_OK);
    assert_memory_equal(y, expected + TINY_HIDDEN, TINY_HIDDEN * sizeof *y);
    assert_int_equal(
        att_sentence_embed(m, 1, plain, NULL, ATT_OPTIONS(att_embed_options, .prompt_name = "document"), y), ATT_OK);
    assert_memory_equal(y, expected + 2 * TINY_HIDDEN, TINY_HIDDEN * sizeof *y);
    att_trace *t;
    assert_int_equal(att_sentence_trace(m, "x", 1, NULL, NULL, &t), ATT_OK);
    assert_int_equal(att_trace_output(t, -1, 0, 1, y), ATT_OK);
    assert_memory_equal(y, expected, TINY_HIDDEN * sizeof *y);
    att_trace_free(t);
    att_sentence_free(m);
    folder_remove(&f);
}

static void an_option_of_an_embedding_that_is_wrong_is_named(void **state)
{
    (void)state;
    static const int32_t ids[] = {2, 5, 3};
    static const int64_t offsets[] = {0, 3};
    static const char *const text[] = {"a"};
    static const struct {
        att_embed_options o;
        const char *words;
    } wrong[] = {
        {{.prompt_name = "queries"},
         "options.prompt_name is \"queries\", but the model's prompts are \"query\", \"document\""},
        {{.prompt_name = ""}, "options.prompt_name is \"\", but"},
        {{.prompt_name = "query", .prompt = "a "}, "options.prompt and options.prompt_name are both given"},
        {{.ids = ids, .offsets = offsets, .prompt = ""}, "options.ids and options.prompt are both given"},
        {{.ids = ids, .offsets = offsets, .prompt_name = "query"},
         "options.ids and options.prompt_name are both given"},
        {{.dims = 13}, "options.dims is 13, but embeddings have 1 to 12 numbers"},
        {{.dims = -1}, "options.dims is -1, but embeddings have 1 to 12 numbers"},
        {{.dims = INT64_MIN}, "but embeddings have 1 to 12 numbers"},
    };
    const test_folder f = tiny_sentence();
    att_sentence *m = open_sentence(ctx, f.path);
    float y[TINY_HIDDEN];
    att_token_embeddings e;
    att_trace *t;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_embed_options o = wrong[i].o;
        o.size = sizeof o;
        assert_int_equal(att_sentence_embed(m, 1, o.ids ? NULL : text, NULL, &o, y), ATT_ERR_ARGUMENT);
        check_message(ctx, wrong[i].words);
    }
    assert_int_equal(att_sentence_embed_tokens(m, 1, text, NULL, ATT_OPTIONS(att_embed_options, .dims = 2), &e),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "options.dims is 2, but vectors of tokens are not truncated");
    assert_int_equal(att_sentence_trace(m, NULL, 0, "a", ATT_OPTIONS(att_trace_options, .ids = ids, .n_ids = 3), &t),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "prompt is given, but text is NULL");
    assert_int_equal(att_sentence_embed(m, 0, NULL, NULL, ATT_OPTIONS(att_embed_options, .dims = 2), NULL), ATT_OK);
    att_sentence_free(m);
    folder_remove(&f);
}

/* ---- what is wrong is named */

#define TYPE(path, class) "{\"path\": \"" path "\", \"type\": \"sentence_transformers.models." class "\"}"
#define FIRST TYPE("", "Transformer")
#define POOLED FIRST ", " TYPE("1_Pooling", "Pooling")
#define WITH(more) "[" POOLED ", " more "]"
#define DENSE WITH(TYPE("2_Dense", "Dense"))

static const struct {
    const char *modules;
    const char *path, *config; /* of a module; or NULL */
    att_status status;
    const char *words;
} wrong[] = {
    {WITH(TYPE("2", "Router")), NULL, NULL, ATT_ERR_UNSUPPORTED,
     "module 2 is \"sentence_transformers.models.Router\", which is not supported; Transformer, then Pooling, Dense"},
    {WITH(TYPE("2", "WeightedLayerPooling")), NULL, NULL, ATT_ERR_UNSUPPORTED,
     "models.WeightedLayerPooling\", which is"},
    {WITH("{\"path\": \"2\", \"type\": \"custom.Dense\"}"), NULL, NULL, ATT_ERR_UNSUPPORTED, "\"custom.Dense\", which"},
    {"[]", NULL, NULL, ATT_ERR_FORMAT, "is a list of 0 modules"},
    {"[3]", NULL, NULL, ATT_ERR_FORMAT, "modules.json"},
    {"[" FIRST "]", NULL, NULL, ATT_ERR_FORMAT, "modules.json: there is no Pooling"},
    {"[" TYPE("1_Pooling", "Pooling") "]", NULL, NULL, ATT_ERR_FORMAT,
     "module 0 is \"sentence_transformers.models.Pooling\", but a model begins with a module that reads texts"},
    {WITH(FIRST), NULL, NULL, ATT_ERR_FORMAT,
     "\"sentence_transformers.models.Transformer\", but only module 0 reads texts"},
    {"[" FIRST ", " TYPE("2_Dense", "Dense") "]", "2_Dense", "{\"in_features\": 12, \"out_features\": 3}",
     ATT_ERR_FORMAT, "2_Dense/config.json: Dense is applied to sentence_embedding, which no module before it makes"},
    {DENSE, "2_Dense", "{\"in_features\": 13, \"out_features\": 3}", ATT_ERR_FORMAT,
     "2_Dense/config.json: \"in_features\" is 13, but by"},
    {DENSE, "2_Dense", "{\"in_features\": 13, \"out_features\": 3}", ATT_ERR_FORMAT,
     "1_Pooling/config.json it is applied to 12 features"},
    {DENSE, "1_Pooling", "{\"embedding_dimension\": 11, \"pooling_mode\": \"mean\"}", ATT_ERR_FORMAT,
     "1_Pooling/config.json: \"embedding_dimension\" is 11, but by"},
    {WITH(TYPE("2_Norm", "LayerNorm")), "2_Norm", "{\"dimension\": 8}", ATT_ERR_FORMAT, "\"dimension\" is 8, but by"},
    {WITH(TYPE("2_Norm", "LayerNorm")), "2_Norm", "{\"dimension\": -8}", ATT_ERR_FORMAT, "\"dimension\" is -8, not in"},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 0}", ATT_ERR_FORMAT, "\"out_features\" is 0, not in"},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 1e12}", ATT_ERR_FORMAT,
     "\"out_features\" is 1e+12, not in"},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 99999999999}", ATT_ERR_FORMAT,
     "\"out_features\" is 99999999999"},
    {DENSE, "2_Dense", "{\"in_features\": \"12\", \"out_features\": 3}", ATT_ERR_FORMAT, "\"in_features\" is \"12\""},
    {DENSE, "2_Dense", "{\"out_features\": 3}", ATT_ERR_FORMAT, "there is no \"in_features\""},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 3, \"bias\": 1}", ATT_ERR_FORMAT, "\"bias\" is 1"},
    {DENSE, "2_Dense",
     "{\"in_features\": 12, \"out_features\": 3, \"bias\": true, \"activation_function\": "
     "\"torch.nn.modules.activation.ELU\"}",
     ATT_ERR_UNSUPPORTED,
     "\"activation_function\" is \"torch.nn.modules.activation.ELU\", which is not supported; one of Tanh"},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 3, \"activation_function\": \"custom.Tanh\"}",
     ATT_ERR_UNSUPPORTED, "\"activation_function\" is \"custom.Tanh\""},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 3, \"activation_function\": 7}", ATT_ERR_FORMAT,
     "\"activation_function\" is 7"},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 3, \"module_input_name\": \"all_layer_embeddings\"}",
     ATT_ERR_UNSUPPORTED, "\"module_input_name\" is \"all_layer_embeddings\""},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 3, \"module_output_name\": \"token_embeddings\"}",
     ATT_ERR_UNSUPPORTED, "\"module_output_name\" is \"token_embeddings\""},
    {DENSE, "2_Dense", "{\"in_features\": 12, \"out_features\": 3, \"rank\": 2}", ATT_ERR_UNSUPPORTED,
     "\"rank\" is not a known setting"},
    {WITH(TYPE("2_Dense", "Dense") ", " TYPE("2_Dense", "Dense")), "2_Dense",
     "{\"in_features\": 12, \"out_features\": 12}", ATT_ERR_UNSUPPORTED,
     "the path of module 3 is \"2_Dense\", that of another one"},
    {DENSE, "1_Pooling", "{\"embedding_dimension\": 12, \"pooling_mode\": []}", ATT_ERR_UNSUPPORTED,
     "\"pooling_mode\" is a list of 0"},
    {DENSE, "1_Pooling", "{\"embedding_dimension\": 12, \"pooling_mode\": [\"mean\", 2]}", ATT_ERR_FORMAT,
     "\"pooling_mode\" has 2, not one of cls"},
    {DENSE, "1_Pooling", "{\"embedding_dimension\": 12, \"pooling_mode\": \"median\"}", ATT_ERR_UNSUPPORTED,
     "\"pooling_mode\" has \"median\", not one of cls, max, mean, mean_sqrt_len_tokens, weightedmean and lasttoken"},
    {DENSE, "1_Pooling", "{\"embedding_dimension\": 12, \"include_prompt\": \"no\"}", ATT_ERR_FORMAT,
     "\"include_prompt\" is \"no\""},
    {WITH(TYPE("2_Dropout", "Dropout")), "2_Dropout", "{\"dropout\": 1.5}", ATT_ERR_FORMAT, "\"dropout\" is 1.5"},
};

static void modules_that_are_wrong_or_do_not_fit_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const test_folder f = tiny_sentence();
        att_sentence *m;
        folder_write(&f, "modules.json", wrong[i].modules);
        tiny_write_module(&f, "2_Dense", "{\"in_features\": 12, \"out_features\": 3}", NULL);
        if (wrong[i].path) {
            char name[64];
            snprintf(name, sizeof name, "%s/config.json", wrong[i].path);
            folder_write(&f, name, wrong[i].config);
        }
        const att_status s = att_sentence_open(ctx, f.path, NULL, &m);
        if (s != wrong[i].status || m || !strstr(att_error(ctx), wrong[i].words))
            fail_msg("%s with %s: %s, \"%s\"", wrong[i].modules, wrong[i].config ? wrong[i].config : "",
                     att_status_name(s), att_error(ctx));
        folder_remove(&f);
    }
}

/* ---- parameters of modules */

/* A Dense of 12 to 7 and a LayerNorm after the pooling; before that a Dense of tokens, without bias, and a prompt that
 * is not pooled */
static test_folder make_modules(void)
{
    const test_folder f = tiny_sentence();
    folder_write(&f, "modules.json",
                 "[" FIRST
                 ", " TYPE("1_Dense", "Dense") ", " TYPE("1_Pooling", "Pooling") ", " TYPE("3_Dense", "Dense") ", " //
                 TYPE("4_LayerNorm", "LayerNorm") "]");
    tiny_write_module(
        &f, "1_Dense",
        "{\"in_features\": 12, \"out_features\": 12, \"bias\": false, \"module_input_name\": \"token_embeddings\"}",
        NULL);
    folder_write(&f, "1_Pooling/config.json",
                 "{\"embedding_dimension\": 12, \"pooling_mode\": \"weightedmean\", \"include_prompt\": false}");
    tiny_write_module(&f, "3_Dense", "{\"in_features\": 12, \"out_features\": 7}", NULL);
    tiny_write_module(&f, "4_LayerNorm", "{\"dimension\": 7}", NULL);
    folder_write(&f, CONFIG, PROMPTS);
    return f;
}

static void parameters_of_modules_are_the_models_and_can_be_frozen(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t dim[2];
    } expected[] = {{"module.1.linear.weight", {12, 12}},
                    {"module.3.linear.weight", {7, 12}},
                    {"module.3.linear.bias", {7}},
                    {"module.4.norm.weight", {7}},
                    {"module.4.norm.bias", {7}}};
    enum { N = sizeof expected / sizeof expected[0] };
    const test_folder f = make_modules();
    att_sentence *m;
    att_encoder *encoder;
    att_model_weights all = {.size = sizeof all}, alone = {.size = sizeof alone};
    assert_int_equal(att_encoder_open(ctx, f.path, NULL, &encoder), ATT_OK);
    assert_int_equal(att_encoder_weights(encoder, &alone), ATT_OK);
    const int64_t n = att_nn_params_count(att_encoder_params(encoder));
    att_encoder_free(encoder);
    for (int trains = 0; trains < 2; trains++) {
        const att_trainable_options o = {
            .size = sizeof o, .freeze = (const char *const[]){"embeddings", "module.3", "*.norm.bias"}, .n_freeze = 3};
        assert_int_equal(trains ? att_sentence_open_for_training(ctx, f.path, &o, &m)
                                : att_sentence_open(ctx, f.path, NULL, &m),
                         ATT_OK);
        const att_nn_params *p = att_sentence_params(m);
        assert_int_equal(att_nn_params_count(p), n + N);
        for (int i = 0; i < N; i++) {
            const char *name;
            att_param *x = att_nn_params_at(p, n + i, &name);
            assert_string_equal(name, expected[i].name);
            assert_int_equal(att_param_value(x)->dim[0], expected[i].dim[0]);
            if (trains)
                assert_int_equal(att_param_frozen(x), i == 1 || i == 2 || i == 4);
        }
        if (!trains) {
            assert_int_equal(att_sentence_weights(m, &all), ATT_OK);
            assert_int_equal(all.stored[ATT_F32], alone.stored[ATT_F32] + 4 * (12 * 12 + 12 * 7 + 7 + 7 + 7));
        }
        att_sentence_free(m);
    }
    const att_trainable_options none = {
        .size = sizeof none, .freeze = (const char *const[]){"module.2"}, .n_freeze = 1};
    assert_int_equal(att_sentence_open_for_training(ctx, f.path, &none, &m), ATT_ERR_ARGUMENT);
    check_message(ctx, "module.2");
    folder_remove(&f);
}

static void weights_of_a_module_that_are_wrong_are_named(void **state)
{
    (void)state;
    static const struct {
        tiny_weights how;
        att_status status;
        const char *words;
    } cases[] = {
        {{.without = "linear.bias"}, ATT_ERR_FORMAT, "3_Dense/model.safetensors: there is no tensor \"linear.bias\""},
        {{.wider = "linear.weight"},
         ATT_ERR_SHAPE,
         "3_Dense/model.safetensors: tensor \"linear.weight\" is [7, 13] but by config.json it is [7, 12]"},
    };
    const test_folder f = make_modules();
    att_sentence *m;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tiny_write_module(&f, "3_Dense", "{\"in_features\": 12, \"out_features\": 7}", &cases[i].how);
        assert_int_equal(att_sentence_open(ctx, f.path, NULL, &m), cases[i].status);
        check_message(ctx, cases[i].words);
    }
    tiny_delete(&f, "3_Dense/model.safetensors");
    assert_int_equal(att_sentence_open(ctx, f.path, NULL, &m), ATT_ERR_IO);
    check_message(ctx, "3_Dense: there is no model.safetensors");
    folder_write(&f, "3_Dense/pytorch_model.bin", "PK");
    assert_int_equal(att_sentence_open(ctx, f.path, NULL, &m), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "3_Dense: has pytorch_model.bin but no model.safetensors");
    folder_remove(&f);
}

/* Opens, embeds texts and tokens, traces and closes. */
static att_status everything(att_ctx *c, const char *folder)
{
    att_sentence *m = NULL;
    att_trace *trace = NULL;
    att_token_embeddings e = {0};
    float y[TEXTS * MAX_DIM];
    att_status s = att_sentence_open(c, folder, NULL, &m);
    s = s ? s : att_sentence_embed(m, TEXTS, texts, NULL, ATT_OPTIONS(att_embed_options, .dims = 3), y);
    s = s ? s : att_sentence_embed_tokens(m, TEXTS, texts, NULL, NULL, &e);
    s = s ? s : att_sentence_trace(m, "abc", 3, "z ", NULL, &trace);
    s = s ? s : att_trace_output(trace, -1, 0, 1, y);
    att_trace_free(trace);
    att_token_embeddings_free(c, &e);
    att_sentence_free(m);
    return s;
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const test_folder f = make_modules();
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc a = {.fail_at = at};
        att_ctx *c = NULL;
        s = att_open(&c, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&a)));
        s = s ? s : everything(c, f.path);
        att_close(c);
        if (s && s != ATT_ERR_MEMORY)
            fail_msg("failing at %ld gives %s: %s", at, att_status_name(s), att_error(NULL));
        assert_true(s || a.calls < at);
        assert_int_equal(a.live, 0);
    }
    folder_remove(&f);
}

/* ---- training */

/* A Dropout sets about half of the numbers to 0 and doubles the others, the same in each batch; without training it
 * does nothing. */
static void a_dropout_applies_in_training_alone(void **state)
{
    (void)state;
    enum { N = 50, DIM = 12 };
    static float x[N * DIM];
    int64_t counting[N + 1];
    uint32_t sequences[N];
    int64_t dropped = 0;
    const test_folder f = tiny_sentence();
    folder_write(&f, "modules.json", WITH(TYPE("2_Dropout", "Dropout")));
    tiny_write_module(&f, "2_Dropout", "{\"dropout\": 0.5}", NULL);
    att_sentence *m = open_sentence(ctx, f.path);
    att_tape *t;
    att_tensor in, all, some;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (int64_t i = 0; i <= N; i++)
        counting[i] = i;
    for (int64_t i = 0; i < N; i++)
        sequences[i] = (uint32_t)i;
    for (int64_t i = 0; i < N * DIM; i++)
        x[i] = (float)(i + 1);
    const att_texts_dropout dropout = {.seed = 5, .sequence_ids = sequences, .rows = counting},
                            last = {.seed = 5, .sequence_ids = sequences + 9, .rows = counting};
    att_texts texts_of = {.offsets = counting, .n = N}; /* of one token each, which the mean does not change */
    att_wrap(&in, x, ATT_F32, ATT_DIMS(N, DIM), NULL);
    assert_int_equal(att_var_value(t, att_modules_apply(t, &m->modules, &texts_of, att_constant(t, &in), NULL), &all),
                     ATT_OK);
    assert_memory_equal(all.data, x, sizeof x);
    texts_of.dropout = &dropout;
    assert_int_equal(att_var_value(t, att_modules_apply(t, &m->modules, &texts_of, att_constant(t, &in), NULL), &all),
                     ATT_OK);
    for (int64_t i = 0; i < N * DIM; i++) {
        const float y = ((const float *)all.data)[i];
        assert_true(y == 0 || y == 2 * x[i]);
        dropped += y == 0;
    }
    assert_in_range(dropped, N * DIM / 2 - 61, N * DIM / 2 + 61); /* 5 standard deviations, sqrt(N DIM) / 2 each */
    texts_of.dropout = &last;
    texts_of.n = 1;
    att_wrap(&in, x + 9 * DIM, ATT_F32, ATT_DIMS(1, DIM), NULL);
    assert_int_equal(att_var_value(t, att_modules_apply(t, &m->modules, &texts_of, att_constant(t, &in), NULL), &some),
                     ATT_OK);
    assert_memory_equal(some.data, (const float *)all.data + 9 * DIM, DIM * sizeof *x);
    att_tape_free(t);
    att_sentence_free(m);
    folder_remove(&f);
}

static void a_training_of_modules_resumes_and_writes_them(void **state)
{
    (void)state;
    static const double scores[] = {0.9, 0.1};
    const test_folder f = make_modules();
    char learns[128];
    float before[TEXTS * 7], after[TEXTS * 7];
    att_training *t;
    att_sentence *m;
    snprintf(learns, sizeof learns, "%s/learns", f.path);
    for (int resumed = 0; resumed < 2; resumed++) {
        const att_sentence_training_options o = {
            .size = sizeof o, .model = f.path, .pairs = 2, .texts = texts, .scores = scores, .batch = 2};
        const att_training_options common = {.size = sizeof common,
                                             .resume = resumed,
                                             .schedule =
                                                 &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-2}};
        if (att_sentence_training_open(ctx, learns, &common, &o, &t))
            fail_msg("%s", att_error(ctx));
        for (int i = 0; i < 3; i++) {
            att_training_report r = {.size = sizeof r};
            assert_int_equal(att_training_step(t, &r), ATT_OK);
        }
        assert_int_equal(att_training_save(t), ATT_OK);
        assert_int_equal(att_sentence_embed(att_training_sentence(t), TEXTS, texts, NULL, NULL, before), ATT_OK);
        assert_int_equal(att_training_write(t, 0, ATT_F32), ATT_OK);
        att_training_free(t);
        m = open_sentence(ctx, learns);
        assert_int_equal(att_sentence_embed(m, TEXTS, texts, NULL, NULL, after), ATT_OK);
        assert_memory_equal(before, after, sizeof after);
        att_sentence_free(m);
    }
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_and_prompts_give_the_embeddings_of_sentence_transformers),
        cmocka_unit_test(a_folder_with_modules_that_is_written_gives_the_same_bits),
        cmocka_unit_test(prompts_are_listed_and_stand_before_texts),
        cmocka_unit_test(an_option_of_an_embedding_that_is_wrong_is_named),
        cmocka_unit_test(modules_that_are_wrong_or_do_not_fit_are_named),
        cmocka_unit_test(parameters_of_modules_are_the_models_and_can_be_frozen),
        cmocka_unit_test(weights_of_a_module_that_are_wrong_are_named),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_dropout_applies_in_training_alone),
        cmocka_unit_test(a_training_of_modules_resumes_and_writes_them),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
