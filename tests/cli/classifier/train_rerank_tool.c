/* attend train rerank: each loss from its rows, from a classifier and from an encoder, continued or not. */
// labels: trains
#include "fixtures/tiny_text_classifier.h"
#include "fixtures/tool.h"

#define TRAIN "$A train rerank --batch 4 --rate 0.02 --threads 2 "

static test_folder one, three; /* text classifiers of one label and of three: $R and $C */

static int set_up(void **state)
{
    one = tiny_text_classifier(1);
    three = tiny_text_classifier(3);
    setenv("R", one.path, 1);
    setenv("C", three.path, 1);
    const int failed = tool_setup(state);
    return failed
               ? failed
               : tool("for i in 1 2 3; do printf 'a b\\tc d\\t1\\na b\\tx y\\t0\\nm n\\to p\\t1\\nm n\\tk l\\t0\\n'; "
                      "done >scored.tsv; sed 's/0$/no/; s/1$/yes/' scored.tsv >labels.tsv; "
                      "cut -f 2,3 labels.tsv >single.tsv; grep '1$' scored.tsv | cut -f 1,2 >pairs.tsv");
}

static int tear_down(void **state)
{
    folder_remove(&one);
    folder_remove(&three);
    return tool_teardown(state);
}

static void scores_of_pairs_are_learned_and_continued(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-m $R -p scored.tsv --epochs 20 -o whole"), 0);
    assert_has(tool_err, "loss: binary cross entropy, of 12 pairs");
    assert_int_equal(tool("printf 'x y\\nc d\\n' >docs; $A rerank -m whole -c docs -k 1 'a b'"), 0);
    assert_has(tool_out, "\tc d");
    assert_int_equal(tool(TRAIN "-m $R -p scored.tsv --epochs 20 -o parts --steps 20 && "
                                "$A train rerank --resume -o parts --steps 60 && "
                                "cmp whole/model.safetensors parts/model.safetensors"),
                     0);
    assert_int_equal(tool(TRAIN "-m $R -p scored.tsv --valid scored.tsv --validate-every 10 --epochs 10 -o best"), 0);
    assert_has(tool_err, "on validation Spearman ");
    assert_int_equal(tool("wc -l <best/log.jsonl"), 0);
    assert_has(tool_out, "4\n"); /* of the model that it begins with, too */
}

static void an_encoder_gets_a_classifier_of_the_labels(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-m $D -p labels.tsv --valid labels.tsv --validate-every 30 --epochs 20 -o of_pairs"),
                     0);
    assert_has(tool_err, "loss: cross entropy, of 12 pairs");
    assert_has(tool_err, "accuracy 100.00 %");
    assert_int_equal(tool("$A classify -m of_pairs -k 1 --text 'm n' --pair 'o p'"), 0);
    assert_has(tool_out, "\tyes\t");
    assert_int_equal(tool(TRAIN "-m $D -p single.tsv --loss ce --epochs 20 -o of_texts && "
                                "$A classify -m of_texts -k 1 --text 'k l'"),
                     0);
    assert_has(tool_out, "k l\tno\t");
}

static void documents_of_other_rows_are_negatives(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-m $D -p pairs.tsv --negatives 2 --epochs 2 -o ranking"), 0);
    assert_has(tool_err, "loss: multiple negatives ranking, of 6 pairs");
    assert_int_equal(tool(TRAIN "-m $R -p scored.tsv --loss mse --epochs 2 -o squared"), 0);
    assert_has(tool_err, "loss: squared error, of 12 pairs");
    assert_int_equal(tool("$A rerank -m ranking -p pairs.tsv && $A rerank -m squared -p pairs.tsv"), 0);
}

static void options_of_another_loss_are_refused(void **state)
{
    (void)state;
    assert_refused(TRAIN "-m $R -p scored.tsv --scale 3 -o x", 2, "--scale 3 is for --loss mnr");
    assert_refused(TRAIN "-m $R -p scored.tsv --negatives 3 -o x", 2, "--negatives 3 is for --loss mnr");
    assert_refused(TRAIN "-m $R -p scored.tsv --activation sigmoid -o x", 2, "--activation is for --loss mnr and mse");
    assert_refused("$A train rerank -m $R -p pairs.tsv --batch 1 -o x", 2, "--batch 1 with --loss mnr");
    assert_refused(TRAIN "-m $R -p single.tsv --loss bce -o x", 1, "single.tsv");
    assert_refused(TRAIN "-m $C -p labels.tsv -o x", 1, "3 labels");
    assert_refused(TRAIN "-m fashion-mnist -p scored.tsv -o x", 1, "fashion-mnist is a vision model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_pairs_are_learned_and_continued),
        cmocka_unit_test(an_encoder_gets_a_classifier_of_the_labels),
        cmocka_unit_test(documents_of_other_rows_are_negatives),
        cmocka_unit_test(options_of_another_loss_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
