/* attend attention on images: maps of patches and of words, sides of captioners, what changes. */
#include "fixtures/caption_models.h"
#include "fixtures/trace_rows.h"
#include "fixtures/vision_tool.h"

#include <math.h>

/* $V: a classifier; $C: a captioner with convolutions and a GRU; $X: one of a vision Transformer and a Transformer; $N:
 * one without attention. dot.png: what they see */
static void move_model(const test_folder *made, const char *variable)
{
    char path[128];
    snprintf(path, sizeof path, "%.60s/model_%.8s", tool_model.path, variable);
    assert_int_equal(rename(made->path, path), 0);
    setenv(variable, path, 1);
}

static int set_up(void **state)
{
    assert_int_equal(open_context(state) || tool_setup(state), 0);
    vision_setup();
    const test_folder gru = captioner_folder(CAPTIONER_GRU, false),
                      vit = vit_folder(VIT_ENCODER, CAPTIONER_TRANSFORMER),
                      lstm = captioner_folder(CAPTIONER_LSTM, false);
    move_model(&gru, "C");
    move_model(&vit, "X");
    move_model(&lstm, "N");
    return 0;
}

static int tear_down(void **state) { return tool_teardown(state) || close_context(state); }

/* Its line of JSON */
static json_t *run(const char *options)
{
    char line[256];
    snprintf(line, sizeof line, "$A attention --json %s dot.png", options);
    if (tool(line))
        fail_msg("%s: %s", line, tool_err);
    return line_json(0);
}

static att_image read_dot(void)
{
    char path[128];
    att_image image;
    snprintf(path, sizeof path, "%s/dot.png", tool_model.path);
    assert_int_equal(att_image_open(ctx, path, NULL, &image), ATT_OK);
    return image;
}

static double at(const json_t *array, int64_t i) { return json_number_value(json_array_get(array, (size_t)i)); }

/* ---- Vision models ------------------------------------------------------------------- */

static att_trace *trace_vit(const att_trace_options *o, att_image_model **m)
{
    att_trace *t;
    att_image image = read_dot();
    assert_int_equal(att_image_model_open(ctx, getenv("V"), NULL, m), ATT_OK);
    assert_int_equal(att_image_trace(*m, &image, o, &t), ATT_OK);
    att_image_free(ctx, &image);
    return t;
}

static void a_patch_has_a_map_of_its_own(void **state)
{
    (void)state;
    att_image_model *m;
    att_trace *t = trace_vit(NULL, &m);
    const int64_t n = trace_info(t).source;
    float *layer = trace_weights(t, ATT_TRACE_SIDE_ENCODER, 1, 2), *rollout = malloc((size_t)(n * n) * sizeof *rollout);
    assert_int_equal(att_trace_rollout(t, rollout), ATT_OK);
    json_t *one = run("-m $V --layer 1 --head 2 --from 5"), *all = run("-m $V --from 5");
    for (int64_t k = 0; k < 9; k++) {
        const json_t *row = json_array_get(json_object_get(one, "weights"), (size_t)k / 3),
                     *of_all = json_array_get(json_object_get(all, "weights"), (size_t)k / 3);
        assert_true((float)at(row, k % 3) == layer[5 * n + 1 + k]);
        assert_true((float)at(of_all, k % 3) == rollout[5 * n + 1 + k]);
    }
    assert_string_equal(json_string_value(json_object_get(one, "from")), "1,1");
    assert_int_equal((int)number(one, "token"), 5);
    assert_int_equal(tool("$A attention -m $V --layer 1 --head 2 --from 5 --svg p.svg dot.png && grep -c '<title>row' "
                          "p.svg"),
                     0);
    assert_has(tool_out, "Layer 1, head 2: attention of the patch at 1,1.\n");
    assert_has(tool_out, "\n9\n");
    assert_refused("$A attention -m $V --from 10 dot.png", 2, "--from: the tokens are 0 to 9, not 10");
    assert_refused("$A attention -m $V --head 1 dot.png", 2, "--head needs --layer, as rollout");
    free(layer);
    free(rollout);
    json_decref(one);
    json_decref(all);
    att_trace_free(t);
    att_image_model_free(m);
}

static void heads_are_maps_of_what_the_first_token_attends_to(void **state)
{
    (void)state;
    att_image_model *m;
    att_trace *t = trace_vit(NULL, &m);
    json_t *v = run("-m $V --heads"), *heads = json_object_get(v, "heads");
    assert_int_equal(json_array_size(heads), 8);
    assert_int_equal((int)number(v, "from"), 0);
    for (int h = 0; h < 8; h++) {
        float *w = trace_weights(t, ATT_TRACE_SIDE_ENCODER, h / 4, h % 4), largest = 0;
        const json_t *head = json_array_get(heads, (size_t)h), *parts = json_object_get(head, "parts");
        for (int k = 1; k < 10; k++)
            largest = fmaxf(largest, w[k]);
        assert_true((float)number(head, "largest") == largest);
        for (int64_t k = 0; k < 9; k++)
            assert_int_equal((int)at(json_array_get(parts, (size_t)k / 3), k % 3), lrintf(255 * w[1 + k] / largest));
        free(w);
    }
    json_decref(v);
    att_trace_free(t);
    att_image_model_free(m);
}

static void classes_have_other_probabilities_without_patches(void **state)
{
    (void)state;
    static const int64_t hide[] = {0, 4};
    static const att_trace_head zero[] = {{ATT_TRACE_SIDE_ENCODER, 1, 3}};
    att_image_model *m;
    json_t *v = run("-m $V --hide 0,4 --zero 1.3"), *results = json_object_get(v, "results");
    for (int without = 0; without < 2; without++) {
        const att_trace_options changed = {
            .size = sizeof changed, .hide = hide, .n_hide = 2, .zero = zero, .n_zero = 1};
        att_trace *t = trace_vit(without ? &changed : NULL, &m);
        const int64_t n = trace_info(t).outputs;
        float *logits = trace_output(t, -1);
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += exp((double)logits[i]);
        assert_int_equal(json_array_size(results), n < 5 ? n : 5);
        for (size_t k = 0; k < json_array_size(results); k++) {
            const json_t *r = json_array_get(results, k);
            int64_t class = 0;
            while (strcmp(att_image_model_label(m, class), json_string_value(json_object_get(r, "name"))))
                class ++;
            assert_true(fabs(number(r, without ? "without" : "with") - exp((double)logits[class]) / sum) < 1e-6);
        }
        free(logits);
        att_trace_free(t);
        att_image_model_free(m);
    }
    json_decref(v);
    assert_int_equal(tool("$A attention -m $V --hide 5 dot.png"), 0);
    assert_has(tool_out, "Without token 5 \"1,1\": probabilities of classes.\n");
    assert_int_equal(tool("$A attention -m $V --logit-lens dot.png"), 0);
    assert_has(tool_out, "The classes of largest probability after each number of layers.\n\nlayers\n     0");
    assert_refused("$A attention -m $V --hide 10 dot.png", 2, "--hide: the tokens are 0 to 9, not 10");
}

static void a_weight_of_a_patch_is_told(void **state)
{
    (void)state;
    assert_int_equal(tool("$A attention -m $V --pair 0,5 dot.png"), 0);
    assert_has(tool_out, "Layer 1 of 0 to 1: query 0 \"[CLS]\", key 5 \"1,1\".\n");
    assert_int_equal(count(tool_out, "\n"), 7);
    assert_refused("$A attention -m $V --side cross dot.png", 2, "--side cross: ");
}

/* Without a classifier, of several classes at once, without [CLS] */
static void other_vision_models_have_other_results(void **state)
{
    (void)state;
    vision_model("dinov2_model", "E");
    vision_model("own_patches", "M");
    assert_int_equal(tool("$A attention -m $E --hide 3 dot.png"), 0);
    assert_has(tool_out, ": the cosine with the vector of the whole.\n");
    assert_refused("$A attention -m $E --logit-lens dot.png", 2, "has no logits, but a vector");
    assert_int_equal(tool("cp -r $V many && sed -i 's/^{/{\"problem_type\": \"multi_label_classification\", /' "
                          "many/config.json"),
                     0);
    json_t *one = run("-m $V --logit-lens"), *each = run("-m many --logit-lens");
    for (int layer = 0; layer < 3; layer++) {
        double sum[2] = {0};
        for (int i = 0; i < 2; i++) {
            const json_t *results =
                json_object_get(json_array_get(json_object_get(i ? each : one, "layers"), (size_t)layer), "results");
            for (size_t k = 0; k < json_array_size(results); k++)
                sum[i] += number(json_array_get(results, k), "probability");
        }
        assert_true(sum[0] < 1.001 && fabs(sum[1] - sum[0]) > 0.01);
    }
    json_decref(one);
    json_decref(each);
    json_t *v = run("-m $M --heads");
    assert_null(json_object_get(v, "from"));
    assert_int_equal(json_array_size(json_object_get(json_array_get(json_object_get(v, "heads"), 0), "parts")), 9);
    json_decref(v);
}

/* ---- Captioners ----------------------------------------------------------------------- */

/* Traces the words "red" ... that the model writes. */
static att_trace *trace_caption(const char *variable, const json_t *words, att_caption_model **m)
{
    int32_t ids[32];
    att_trace *t;
    att_image image = read_dot();
    const size_t n = json_array_size(words);
    assert_int_equal(att_caption_model_open(ctx, getenv(variable), NULL, m), ATT_OK);
    for (size_t i = 0; i < n; i++) {
        ids[i] = 0;
        while (strcmp(att_caption_model_word(*m, ids[i]), json_string_value(json_array_get(words, i))))
            ids[i]++;
    }
    assert_int_equal(att_caption_trace(*m, &image, ids, (int64_t)n, NULL, &t), ATT_OK);
    att_image_free(ctx, &image);
    return t;
}

static void words_come_from_where_the_trace_has_them(void **state)
{
    (void)state;
    static const char *const models[] = {"C", "X"};
    for (int i = 0; i < 2; i++) {
        char options[32];
        att_caption_model *m;
        snprintf(options, sizeof options, "-m $%s", models[i]);
        json_t *v = run(options), *words = json_object_get(v, "words"), *rows = json_object_get(v, "weights");
        att_trace *t = trace_caption(models[i], words, &m);
        const att_trace_attention_info a = trace_attention(t, ATT_TRACE_SIDE_CROSS, -1);
        float *w = trace_weights(t, ATT_TRACE_SIDE_CROSS, -1, -1);
        assert_int_equal(json_array_size(rows), a.queries);
        assert_int_equal((int64_t)(at(json_object_get(v, "grid"), 0) * at(json_object_get(v, "grid"), 1)), a.keys);
        for (int64_t k = 0; k < a.queries * a.keys; k++)
            assert_true((float)at(json_array_get(rows, (size_t)(k / a.keys)), k % a.keys) == w[k]);
        free(w);
        att_trace_free(t);
        att_caption_model_free(m);
        json_decref(v);
        assert_int_equal(tool(i ? "$A attention -m $X dot.png" : "$A attention -m $C dot.png"), 0);
        assert_has(tool_out, ": what each word gets from ");
    }
    assert_int_equal(tool("$A attention -m $C --svg w.svg --target 'red square' dot.png >/dev/null && "
                          "grep -c '<use' w.svg; grep -c 'Layer 0, mean of 1 head' w.svg"),
                     0);
    assert_string_equal(tool_out, "1\n1\n"); /* the picture of the second word is that of the first */
    json_t *all = run("-m $C --target 'red square'"), *one = run("-m $C --target 'red square' --from 1");
    assert_true(json_equal(json_array_get(json_object_get(all, "weights"), 1),
                           json_array_get(json_object_get(one, "weights"), 0)));
    assert_int_equal(json_array_size(json_object_get(one, "words")), 1);
    json_decref(all);
    json_decref(one);
}

static void captioners_have_sides(void **state)
{
    (void)state;
    assert_int_equal(tool("$A attention -m $X --side encoder --from 0 dot.png"), 0);
    assert_has(tool_out, "Token 0 \"[CLS]\" attends to:\n");
    assert_int_equal(tool("$A attention -m $X --side decoder --target 'red square' dot.png"), 0);
    assert_has(tool_out, "(start)");
    json_t *v = run("-m $X --heads --side encoder");
    assert_int_equal(json_array_size(json_object_get(v, "heads")), 8);
    json_decref(v);
    assert_int_equal(tool("$A attention -m $X --pair 1,4 --target 'red square' dot.png"), 0);
    assert_has(tool_out, "query 1 \"square\", key 4 \"1,1\".\n");
    assert_int_equal(tool("$A attention -m $C --hide 0 --target 'red square' dot.png"), 0);
    assert_has(tool_out, "Without token 0 \"0,0\": log probabilities of the target.\n");
    assert_int_equal(count(tool_out, "\n"), 6);
    assert_int_equal(tool("$A attention -m $X --logit-lens --target 'red square' dot.png"), 0);
    assert_refused("$A attention -m $C --side decoder dot.png", 2, "does not have it, but cross");
    assert_refused("$A attention -m $C --target 'red zebra' dot.png", 1, "does not know the word \"zebra\"");
    assert_refused("$A attention -m $C --target ' ' dot.png", 2, "--target: \" \" has no word");
    assert_refused("$A attention -m $N dot.png", 1,
                   "has no attention: all words come from one context vector of the image");
    assert_refused("$A attention -m $C nix.png", 1, "nix.png: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_patch_has_a_map_of_its_own),
        cmocka_unit_test(heads_are_maps_of_what_the_first_token_attends_to),
        cmocka_unit_test(classes_have_other_probabilities_without_patches),
        cmocka_unit_test(a_weight_of_a_patch_is_told),
        cmocka_unit_test(other_vision_models_have_other_results),
        cmocka_unit_test(words_come_from_where_the_trace_has_them),
        cmocka_unit_test(captioners_have_sides),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
