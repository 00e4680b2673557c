/* What a model's folder says about its results, as the tool shows it: the measure by which vectors are compared, a BERT
 * without modules, classes that have probabilities of their own. */
#include "fixtures/vision_tool.h"

#include <math.h>

/* $D without Normalize, whose vectors have lengths; lines: three */
static int set_up(void **state)
{
    const int code = tool_setup(state);
    folder_write(&tool_model, "modules.json",
                 "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
                 " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]");
    folder_write(&tool_model, "lines", "cab bed\na fed cafe\na b c d e f g h i j k l m n o p q r s t\n");
    return code;
}

static void set_measure(const char *name)
{
    char text[80];
    snprintf(text, sizeof text, "{\"similarity_fn_name\": %s}", name);
    folder_write(&tool_model, "config_sentence_transformers.json", text);
}

/* Those of sentence-transformers (tests/golden/make_folders.py) of the first two lines, and with the third */
static const struct {
    const char *name, *note;
    double same, second, third;
} measures[] = {
    {"null", NULL, 1, 0.9391807, 0.9619763},
    {"\"cosine\"", NULL, 1, 0.9391807, 0.9619763},
    {"\"dot\"", "compares by the dot product, \"similarity_fn_name\"", 11.95218, 10.78544, 0},
    {"\"euclidean\"", "compares by minus the Euclidean distance", 0, -1.189634, 0},
    {"\"manhattan\"", "compares by minus the Manhattan distance", 0, -2.388482, 0},
};

static void expect_note(const char *note)
{
    if (note)
        assert_has(tool_err, note);
    else
        assert_string_equal(tool_err, "");
}

static void similarities_are_by_the_models_measure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        char word[40];
        set_measure(measures[i].name);
        assert_int_equal(tool("$A similarity -m $D --json 'cab bed' 'a fed cafe'"), 0);
        expect_note(measures[i].note);
        json_t *v = line_json(0);
        const json_t *rows = json_object_get(v, "similarity");
        for (size_t k = 0; k < 4; k++)
            assert_true(fabs(json_number_value(json_array_get(json_array_get(rows, k / 2), k % 2)) -
                             (k == 1 || k == 2 ? measures[i].second
                              : k              ? 11.03393
                                               : measures[i].same)) < 2e-4 ||
                        (k == 3 && i != 2));
        json_decref(v);
        assert_int_equal(tool("$A similarity -m $D 'cab bed' 'a fed cafe'"), 0);
        snprintf(word, sizeof word, " %.4f", measures[i].second);
        assert_has(tool_out, word);
        assert_int_equal(tool("printf 'cab bed\\ta fed cafe\\n' | $A similarity -m $D --pairs -"), 0);
        assert_true(fabs(atof(tool_out) - measures[i].second) < 2e-4);
    }
}

/* Numbers of any width stand apart. */
static void columns_are_as_wide_as_their_numbers(void **state)
{
    (void)state;
    set_measure("\"dot\"");
    assert_int_equal(tool("$A similarity -m $D $(seq -s ' ' 12) | tail -n +2 | awk '{print NF}' | sort -u"), 0);
    assert_string_equal(tool_out, "14\n");
}

/* The line whose vector is longest wins by the dot product, the line itself by the others. */
static void search_ranks_by_the_models_measure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        float best = -INFINITY;
        int line = 0;
        set_measure(measures[i].name);
        assert_int_equal(tool("$A similarity -m $D --json --file lines"), 0);
        json_t *v = line_json(0);
        for (int k = 0; k < 3; k++) {
            const float x = (float)json_number_value(
                json_array_get(json_array_get(json_object_get(v, "similarity"), 0), (size_t)k));
            line = x > best ? k : line;
            best = x > best ? x : best;
        }
        json_decref(v);
        assert_int_equal(line, i == 2 ? 2 : 0);
        assert_int_equal(tool("$A embed -m $D --format npy -o v.npy lines"), 0);
        for (int index = 0; index < 2; index++) {
            assert_int_equal(tool(index ? "$A search -m $D -c lines -i v.npy -k 3 --json 'cab bed'"
                                        : "$A search -m $D -c lines -k 3 --json 'cab bed'"),
                             0);
            expect_note(measures[i].note);
            v = line_json(0);
            const json_t *first = json_array_get(json_object_get(v, "results"), 0);
            assert_int_equal(number(first, "line"), line + 1);
            assert_true(fabs(number(first, "score") - (double)best) < 1e-4);
            json_decref(v);
        }
    }
}

static void an_index_of_other_lengths_is_refused_where_lengths_count(void **state)
{
    (void)state;
    enum { HEADER = 128 };
    float x[3 * TINY_HIDDEN];
    set_measure("null");
    assert_int_equal(tool("$A embed -m $D --format npy -o v.npy lines && cat v.npy"), 0);
    memcpy(x, tool_out + HEADER, sizeof x);
    for (int i = 0; i < 3 * TINY_HIDDEN; i++)
        x[i] /= 2;
    FILE *f = folder_open(&tool_model, "w.npy");
    fwrite(tool_out, 1, HEADER, f);
    fwrite(x, 1, sizeof x, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(tool("$A search -m $D -c lines -i w.npy -k 1 'cab bed'"), 0);
    set_measure("\"dot\"");
    assert_int_equal(tool("$A search -m $D -c lines -i w.npy -k 1 'cab bed'"), 1);
    assert_has(tool_err, "w.npy: row 1 has the length ");
    assert_has(tool_err, "compares by lengths, too");
}

static void a_bert_alone_is_averaged_with_a_note(void **state)
{
    (void)state;
    set_measure("null");
    assert_int_equal(tool("$A embed -m $D --text 'cab bed' >all && mkdir -p p && cp config.json model.safetensors "
                          "vocab.txt tokenizer_config.json p && $A embed -m p --text 'cab bed' | cmp - all"),
                     0);
    assert_has(tool_err, "p has no modules.json, which would state how its hidden states become an embedding");
    assert_int_equal(tool("$A search -m p -c lines -k 1 a"), 0);
    assert_refused("sed 's/\"bert\"/\"electra\"/' config.json >p/config.json; $A embed -m p --text a", 1,
                   "p/config.json: \"model_type\" is \"electra\", which is not supported for embeddings of sentences");
    assert_refused("sed 's/\"bert\"/\"deberta\"/' config.json >p/config.json; $A similarity -m p a b", 1,
                   "\"deberta\", which is not supported");
}

static void the_default_prompt_stands_before_texts_and_info_lists_all(void **state)
{
    (void)state;
    set_measure("null");
    assert_int_equal(tool("$A embed -m $D --text 'd cab' | sed 's/d cab/cab/' >with; $A info -m $D"), 0);
    assert_null(strstr(tool_out, "prompts"));
    folder_write(&tool_model, "config_sentence_transformers.json",
                 "{\"prompts\": {\"query\": \"q:\\n\", \"d\": \"d \"}, \"default_prompt_name\": \"d\"}");
    assert_int_equal(tool("$A embed -m $D --text cab | cmp - with && $A info -m $D"), 0);
    assert_has(tool_out, "prompts             query \"q:\\n\", d \"d \"\ndefault prompt      d\n");
    assert_int_equal(tool("$A attention -m $D cab"), 0);
    assert_has(tool_out, " d ");
    assert_int_equal(tool("$A info -m $D --json"), 0);
    json_t *v = json_loads(tool_out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json_object_get(v, "prompts"), "query")), "q:\n");
    assert_string_equal(json_string_value(json_object_get(json_object_get(v, "prompts"), "document")), "");
    assert_string_equal(json_string_value(json_object_get(v, "default_prompt")), "d");
    json_decref(v);
    set_measure("null");
}

static void classes_with_probabilities_of_their_own_are_shown_as_such(void **state)
{
    (void)state;
    vision_setup();
    double sum = 0;
    assert_int_equal(tool("sed -i '1s/{/{\"problem_type\": \"multi_label_classification\", /' $V/config.json; "
                          "$A classify -m $V --top 5 --json dot.png"),
                     0);
    json_t *v = line_json(0);
    for (size_t i = 0; i < 5; i++)
        sum += number(json_array_get(json_object_get(v, "classes"), i), "probability");
    json_decref(v);
    assert_true(sum > 1.01 || sum < 0.99);
    assert_int_equal(tool("$A classify -m $V --top 5 dot.png | awk '{exit !($3 > 0 && $3 < 1)}'"), 0);
    assert_int_equal(tool("mkdir -p images/a images/b && cp dot.png images/a && cp dot.png images/b"), 0);
    assert_refused("$A evaluate classify -m $V --data images", 1, "its classes have probabilities of their own");
    assert_refused("$A explain vit -m $V --image dot.png", 1, "has a probability of its own");
    assert_refused("sed -i 's/multi_label_classification/regression/' $V/config.json; $A classify -m $V dot.png", 1,
                   "\"problem_type\" is \"regression\", which is not supported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(similarities_are_by_the_models_measure),
        cmocka_unit_test(columns_are_as_wide_as_their_numbers),
        cmocka_unit_test(search_ranks_by_the_models_measure),
        cmocka_unit_test(an_index_of_other_lengths_is_refused_where_lengths_count),
        cmocka_unit_test(a_bert_alone_is_averaged_with_a_note),
        cmocka_unit_test(the_default_prompt_stands_before_texts_and_info_lists_all),
        cmocka_unit_test(classes_with_probabilities_of_their_own_are_shown_as_such),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
