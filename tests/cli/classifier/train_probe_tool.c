/* attend train classify --head: classifiers on the embeddings of images and of texts, and what opens them. */
#include "fixtures/idx_files.h"
#include "fixtures/vision_tool.h"

#include <math.h>

static int set_up(void **state)
{
    const int failed = tool_setup(state);
    open_context(state);
    vision_setup();
    stripes_write(&tool_model, "train", 120, 1);
    stripes_write(&tool_model, "t10k", 60, 2);
    return failed ? failed
                  : tool("{ printf 'label\\tid\\ttext\\n'; i=0; while [ $i -lt 10 ]; do "
                         "printf 'sea\\t%d\\ta b a\\nsky\\t%d\\td c d\\n' $i $i; i=$((i+1)); done; } >topics.tsv; "
                         "printf 'a b,sea\\nc d,sky\\nd,sky\\n' >valid.csv");
}

static int tear_down(void **state)
{
    close_context(state);
    return tool_teardown(state);
}

static void a_linear_probe_of_images_is_a_classifier(void **state)
{
    (void)state;
    assert_int_equal(tool("$A train classify --head linear -m $V --data . --labels r,c,d -t 2 --json -o linear"), 0);
    assert_has(tool_err, "96 images of 3 classes; 24 for validation");
    assert_has(tool_err, "120 images embedded in ");
    assert_has(tool_err, " numbers each\nlinear probe: C ");
    assert_has(tool_err, ", chosen on validation, in ");
    assert_has(tool_err, "linear is trained on all 120 images: attend classify -m linear IMAGE; transformers opens it");
    json_t *v = line_json(0);
    assert_string_equal(json_string_value(json_object_get(v, "model")), "linear");
    assert_int_equal(number(v, "validated"), 24);
    assert_true(fabs(number(v, "accuracy") - number(v, "correct") / 24) < 1e-7);
    assert_true(number(v, "low") < number(v, "accuracy") && number(v, "c") > 0);
    json_decref(v);
    assert_int_equal(tool("$A evaluate classify -m linear --data . --json"), 0);
    v = line_json(0);
    assert_true(number(v, "accuracy") > 0.8); /* of random weights; a random answer is right in a third of the cases */
    json_decref(v);
    assert_int_equal(tool("$A info -m linear; ls linear"), 0);
    assert_has(tool_out, "labels              r, c, d\n");
    assert_has(tool_out, "\nconfig.json\nmodel.safetensors\npreprocessor_config.json\n");
}

static void nearest_neighbors_of_images_are_a_classifier(void **state)
{
    (void)state;
    assert_int_equal(tool("$A train classify --head knn --neighbors 3 -m $V --data . --labels r,c,d -o knn"), 0);
    assert_has(tool_err, "nearest neighbors: 3 vote, by cosine, weighted with temperature 0.07\n");
    assert_has(tool_err, "knn is trained on all 120 images: attend classify -m knn IMAGE\n");
    assert_int_equal(tool("$A evaluate classify -m knn --data . --json"), 0);
    json_t *v = line_json(0);
    assert_true(number(v, "accuracy") > 0.8);
    json_decref(v);
    assert_int_equal(tool("$A info -m knn; ls knn"), 0);
    assert_has(tool_out, "probe               3 nearest of 120 vectors\n");
    assert_has(tool_out, "\nprobe.json\nprobe.safetensors\n");
    assert_int_equal(tool("$A classify -m knn -k 1 dot.png; $A attention -m knn dot.png; $A embed -m knn dot.png"), 0);
    assert_has(tool_out, "{\"image\": \"dot.png\", \"embedding\": [");
    assert_int_equal(tool("rm knn/probe.safetensors; $A classify -m knn dot.png"), 1);
    assert_has(tool_err, "knn/probe.safetensors: No such file or directory");
}

static void probes_of_texts_are_text_classifiers(void **state)
{
    (void)state;
    static const char *const heads[] = {"linear", "knn"};
    for (int i = 0; i < 2; i++) {
        setenv("H", heads[i], 1);
        assert_int_equal(tool("$A train classify --head $H -m $D --data topics.tsv --valid valid.csv -o texts-$H"), 0);
        assert_has(tool_err, "topics.tsv: line 1 was read as a heading: text, label ...\n");
        assert_has(tool_err, "2 labels: sea (10), sky (10)\n20 texts; 3 for validation\n");
        assert_has(tool_err, "of 3 texts\n");
        assert_has(tool_err, "is trained on 20 texts: attend classify -m texts-");
        assert_int_equal(tool("$A classify -m texts-$H -k 1 --text 'a b a' --text 'd c d'; $A info -m texts-$H"), 0);
        assert_has(tool_out, "a b a\tsea\t");
        assert_has(tool_out, "d c d\tsky\t");
        assert_has(tool_out, "kind                text classifier\n");
        assert_has(tool_out, i ? "probe               20 nearest of 20 vectors\n" : "probe               linear, C ");
    }
    assert_int_equal(tool("$A evaluate classify -m texts-knn --data topics.tsv --wrong wrong.tsv --json"), 0);
    json_t *v = line_json(0);
    assert_int_equal(number(v, "texts"), 20);
    assert_int_equal(number(v, "right"), 20);
    assert_true(number(v, "low") < 1 && number(v, "balanced_accuracy") == 1);
    json_decref(v);
    assert_int_equal(tool("printf 'a b a\\tsky\\nd c d\\tsky\\na\\tsea\\n' >half.tsv; "
                          "$A evaluate classify -m texts-knn --data half.tsv --wrong wrong.tsv; cat wrong.tsv"),
                     0);
    assert_has(tool_out, "accuracy      66.67 %  from 20.77 to 93.85 (95 %): 2 of 3 texts\n");
    assert_has(tool_out, "text\tclass\tanswer\tprobability\na b a\tsky\tsea\t");
    assert_int_equal(tool("printf 'a\\tx\\nb\\ty\\n' >others.tsv; $A evaluate classify -m texts-knn --data others.tsv"),
                     1);
    assert_has(tool_err, "others.tsv: has the label \"x\", which texts-knn does not have");
    assert_int_equal(tool("$A evaluate classify -m texts-knn --data topics.tsv --background white"), 2);
    assert_int_equal(tool("$A train classify --head linear --balance -m $D --data topics.tsv -o texts-balanced"), 0);
    assert_int_equal(tool("$A classify -m texts-knn --text a --pair b"), 2);
    assert_int_equal(tool("$A train rerank -m texts-knn -p topics.tsv -o no"), 1);
}

/* The command with these arguments misses: its code, and a sentence. */
static void fails(const char *arguments, int code, const char *sentence)
{
    char line[400];
    snprintf(line, sizeof line, "$A train classify %s -o no", arguments);
    assert_int_equal(tool(line), code);
    assert_has(tool_err, sentence);
    assert_int_equal(tool("ls | grep -c '^no'"), 1);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    fails("--head linear --data .", 2, "--head needs --model, a vision model or a sentence model");
    fails("--head knn -m $V --data . --rate 1", 2, "--rate does not go with --head");
    fails("--head knn -m $V --data . --c 1", 2, "--c is for --head linear");
    fails("--head linear -m $V --data . --neighbors 1", 2, "--neighbors is for --head knn");
    fails("--head linear -m $V --data . --valid-share 0", 2, "--valid-share 0 needs --c");
    fails("--c 1 --data .", 2, "--c needs --head linear or knn");
    fails("--head knn -m $D --data topics.tsv --labels a,b", 2, "--labels is for images");
    fails("--head knn -m $D --data .", 1, "is a folder");
    fails("--head knn -m tests/nix --data .", 1, "\"tests/nix\" is not in the cache of the Hugging Face Hub");
    assert_int_equal(tool("printf 'a\\tb\\tyes\\nc\\td\\tno\\n' >pairs.tsv; printf 'a\\tland\\nb\\tsea\\n' >land.tsv; "
                          "mkdir full; touch full/file"),
                     0);
    fails("--head knn -m $D --data pairs.tsv", 1, "pairs.tsv: has rows of two texts and a label");
    fails("--head knn -m $D --data topics.tsv --valid land.tsv", 1,
          "land.tsv: has the label \"land\", which topics.tsv does not have");
    assert_int_equal(tool("$A train classify --head knn -m $D --data topics.tsv -o full; ls full"), 0);
    assert_has(tool_err, "full is not empty; remove it first, or give another folder");
    assert_string_equal(tool_out, "file\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_probe_of_images_is_a_classifier),
        cmocka_unit_test(nearest_neighbors_of_images_are_a_classifier),
        cmocka_unit_test(probes_of_texts_are_text_classifiers),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
