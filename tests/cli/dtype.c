/* --dtype and --compute wherever a model is opened. */
#include "fixtures/recommender_tool.h"
#include "fixtures/vision_tool.h"

/* $F, $C: the classifier and the captioner that come with attend, $R: a recommender, $P: a picture of each */
static int dtype_setup(void **state)
{
    assert_int_equal(tool_setup(state), 0);
    vision_setup();
    shop_setup();
    char *models = realpath("models", NULL);
    assert_non_null(models);
    setenv("M", models, 1);
    free(models);
    assert_int_equal(tool("cp $(ls $M/fashion-mnist/examples/* | grep -m 1 png) clothes.png; "
                          "cp $(ls $M/flickr8k-captions/examples/* | grep -m 1 png) photo.png; "
                          "mkdir -p set/LABEL_0 set/LABEL_1 some; cp clothes.png set/LABEL_0; cp dot.png set/LABEL_1; "
                          "cp photo.png dot.png some; "
                          "printf 'photo.png#0\\ta dog runs\\ndot.png#0\\ta dot is there\\n' >captions"),
                     0);
    return 0;
}

static const char *const commands[] = {"classify --json clothes.png",
                                       "embed -m fashion-mnist clothes.png",
                                       "embed -m $D --text 'a b'",
                                       "similarity -m fashion-mnist --json clothes.png dot.png",
                                       "search -m fashion-mnist --json -c set/LABEL_0 dot.png",
                                       "attention -m fashion-mnist --json clothes.png",
                                       "attention -m $D --json 'a b'",
                                       "caption --json photo.png",
                                       "recommend -m $R --history apple --json"};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Numbers that are stored as f32 or f16 are the same as f32; in bf16 they are others. */
static void results_are_of_weights_of_the_type(void **state)
{
    (void)state;
    for (int i = 0; i < COMMANDS; i++) {
        char line[300];
        snprintf(line, sizeof line, "$A %s >stored && $A %s --dtype f32 >f32 && cmp stored f32", commands[i],
                 commands[i]);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
        snprintf(line, sizeof line, "$A %s --dtype bf16 >bf16 && ! cmp -s stored bf16", commands[i]);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
    }
}

/* Returns whether the set has products of bf16, and what auto chooses. */
static bool multiplies_bf16(const char **automatic)
{
    att_ctx *ctx = check_open(NULL, 1);
    att_compute chosen, is;
    assert_int_equal(att_compute_choose(ctx, ATT_COMPUTE_AUTO, &chosen), ATT_OK);
    const bool does = att_compute_choose(ctx, ATT_COMPUTE_BF16, &is) == ATT_OK;
    att_close(ctx);
    *automatic = att_compute_name(chosen);
    return does;
}

/* f32 is the default; on sets without products of bf16, auto is f32 and bf16 an error. */
static void results_are_of_products_of_the_type(void **state)
{
    (void)state;
    const char *automatic;
    const bool does = multiplies_bf16(&automatic);
    for (int i = 0; i < COMMANDS; i++) {
        char line[300];
        snprintf(line, sizeof line, "$A %s >stored && $A %s --compute f32 >f32 && cmp stored f32", commands[i],
                 commands[i]);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
        if (does)
            snprintf(line, sizeof line, "$A %s --compute bf16 >bf16 && ! cmp -s stored bf16", commands[i]);
        else
            snprintf(line, sizeof line, "$A %s --compute bf16 2>said; test $? = 1 && grep -q bf16 said", commands[i]);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
        snprintf(line, sizeof line, "$A %s --compute auto >auto && cmp %s auto", commands[i], automatic);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
    }
}

static void json_names_what_is_computed(void **state)
{
    (void)state;
    const char *automatic;
    char products[40], has[100];
    multiplies_bf16(&automatic);
    snprintf(products, sizeof products, "\"products\": \"%s%s\"", automatic,
             *automatic == 'b' ? ", summed in f32" : "");
    assert_int_equal(tool("$A info -m fashion-mnist --json --compute auto"), 0);
    assert_has(tool_out, products);
    static const char *const lines[] = {"evaluate classify -m $V --data set --json",
                                        "evaluate caption --data captions --images some --json",
                                        "evaluate recommend -m $R --data log.tsv --json"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int k = 0; k < 2; k++) {
            char line[200];
            snprintf(line, sizeof line, "$A %s%s", lines[i], k ? " --compute auto" : "");
            assert_int_equal(tool(line), 0);
            snprintf(has, sizeof has, "\"compute\": \"%s\"", k ? automatic : "f32");
            assert_has(tool_out, has);
        }
    assert_refused("$A evaluate recommend --data log.tsv --compute bf16", 2, "--compute needs --model");
    assert_refused("$A info --compute bf16", 2, "--compute needs --model");
}

static void evaluations_are_of_weights_of_the_type(void **state)
{
    (void)state;
    static const char *const lines[] = {"$A evaluate classify -m $V --data set --json",
                                        "$A evaluate caption --data captions --images some --json",
                                        "$A evaluate recommend -m $R --data log.tsv --json"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[300];
        snprintf(line, sizeof line, "%s >stored && %s --dtype f32 >f32 && " SAME_LOG("stored", "f32"), lines[i],
                 lines[i]);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
    }
    assert_refused("$A evaluate recommend --data log.tsv --dtype f32", 2, "--dtype needs --model");
    assert_refused("$A evaluate caption --data captions --images some --dtype int8", 1,
                   "recurrent layers have no products of int8 or int4 weights, expected f32, f16 or bf16");
    assert_refused("$A caption --dtype int4 photo.png", 1, "recurrent layers have no products of int8 or int4 weights");
}

static void info_tells_the_bytes_of_all_kinds(void **state)
{
    (void)state;
    static const char *const models[] = {"$D", "tatoeba-de-en", "fashion-mnist", "flickr8k-captions", "$R"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char line[200];
        snprintf(line, sizeof line, "$A info -m %s --dtype bf16 --json", models[i]);
        assert_int_equal(tool(line), 0);
        json_t *v = json_loads(tool_out, 0, NULL);
        const json_t *stored = json_object_get(v, "stored"), *used = json_object_get(v, "used");
        assert_true(json_object_size(stored) == 1 && !json_object_get(stored, "bf16"));
        assert_true(json_integer_value(json_object_get(used, "bf16")) > 0);
        assert_string_equal(json_string_value(json_object_get(v, "products")), "f32");
        json_decref(v);
    }
    assert_int_equal(tool("$A info -m fashion-mnist --dtype int8"), 0);
    assert_has(tool_out, "\nkind                vision model\ntype                vit\nclass               "
                         "ViTForImageClassification\n");
    assert_has(tool_out, ", Q8_0 0.8 MB\nproducts            int8 in blocks of 32, summed in f32\n");
}

/* The parameters from which an option chooses by name are listed. */
static void info_lists_the_parameters_of_a_model(void **state)
{
    (void)state;
    assert_int_equal(tool("$A info -m fashion-mnist --parameters --dtype int8 --json"), 0);
    json_t *v = json_loads(tool_out, 0, NULL);
    const json_t *list = json_object_get(v, "parameters");
    const char *name, *dtype;
    int rows, columns, found = 0;
    assert_true(json_array_size(list) > 50);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *x = json_array_get(list, i);
        name = json_string_value(json_object_get(x, "name"));
        dtype = json_string_value(json_object_get(x, "dtype"));
        assert_true(name && dtype && json_array_size(json_object_get(x, "shape")) > 0);
        if (strcmp(name, "head.weight") != 0 && strcmp(name, "layer.5.feed_forward.inner.weight") != 0)
            continue;
        assert_int_equal(json_unpack(json_object_get(x, "shape"), "[ii]", &rows, &columns), 0);
        assert_true(columns == 128 && rows == (*name == 'h' ? 10 : 256));
        assert_string_equal(dtype, "Q8_0");
        found++;
    }
    assert_int_equal(found, 2);
    json_decref(v);
    assert_int_equal(tool("$A info -m fashion-mnist --parameters"), 0);
    assert_has(tool_out, "\nparameters          ");
    assert_has(tool_out,
               "\n  layer.0.attention.query.weight     f16   128 x 128\n  layer.0.attention.query.bias       f16 "
               "  128\n");
    assert_int_equal(tool("$A info -m $D --parameters | grep -c '^  layer[.]'"), 0);
    assert_refused("$A info --parameters", 2, "--parameters needs --model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_of_weights_of_the_type), cmocka_unit_test(results_are_of_products_of_the_type),
        cmocka_unit_test(json_names_what_is_computed),        cmocka_unit_test(evaluations_are_of_weights_of_the_type),
        cmocka_unit_test(info_tells_the_bytes_of_all_kinds),  cmocka_unit_test(info_lists_the_parameters_of_a_model),
    };
    return cmocka_run_group_tests(tests, dtype_setup, tool_teardown);
}
