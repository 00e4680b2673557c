/* attend train rerank: each loss from its rows, from a classifier and from an encoder, killed on the way or not. */
// labels: trains
#include "fixtures/stopped.h"
#include "fixtures/tiny_text_classifier.h"

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
                      "cut -f 2,3 labels.tsv >single.tsv; printf 'a b\\tc d\\ne f\\tg h\\ni j\\tk l\\nm n\\to p\\nq "
                      "r\\ts t\\nu v\\tw x\\n' >pairs.tsv");
}

static int tear_down(void **state)
{
    folder_remove(&one);
    folder_remove(&three);
    return tool_teardown(state);
}

static void scores_of_pairs_are_learned(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-m $R -p scored.tsv --epochs 20 -o whole"), 0);
    assert_has(tool_err, "loss: binary cross entropy, of 12 pairs");
    assert_int_equal(tool("printf 'x y\\nc d\\n' >docs; $A rerank -m whole -c docs -k 1 'a b'"), 0);
    assert_has(tool_out, "  2  c d");
    assert_int_equal(tool(TRAIN "-m $R -p scored.tsv --valid scored.tsv --validate-every 10 --epochs 10 -o best"), 0);
    assert_has(tool_err, "on validation Spearman ");
    assert_int_equal(tool("wc -l <best/log.jsonl"), 0);
    assert_has(tool_out, "4\n"); /* of the model that it begins with, too */
}

static void a_training_that_is_killed_has_the_same_result(void **state)
{
    (void)state;
    assert_kills_change_nothing(TRAIN "-m $R -p scored.tsv --epochs 20 --save-every 3 --valid scored.tsv "
                                      "--validate-every 10",
                                5, 7, 20, 60);
}

static void an_encoder_gets_a_classifier_of_the_labels(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-m $D -p labels.tsv --valid labels.tsv --validate-every 30 --epochs 20 -o of_pairs"),
                     0);
    assert_has(tool_err, "loss: cross entropy, of 12 pairs");
    assert_has(tool_err, "accuracy 100.00 %");
    assert_has(tool_err, "of_pairs is a model now: attend classify -m of_pairs");
    assert_int_equal(tool("$A classify -m of_pairs -k 1 --text 'm n' --pair 'o p'"), 0);
    assert_has(tool_out, "\tyes\t");
    assert_int_equal(tool(TRAIN "-m $D -p single.tsv --loss ce --epochs 20 -o of_texts && "
                                "$A classify -m of_texts -k 1 --text 'k l'"),
                     0);
    assert_has(tool_out, "k l\tno\t");
    assert_int_equal(tool(TRAIN "-m $C -p labels.tsv -o others"), 0); /* so does a classifier of three others */
    assert_has(tool_err, "\"classifier.bias\", \"classifier.weight\"");
    assert_has(tool_err, "2 labels: no (6), yes (6)");
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
    assert_refused(TRAIN "-m fashion-mnist -p scored.tsv -o x", 1, "fashion-mnist is a vision model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_pairs_are_learned),
        cmocka_unit_test(a_training_that_is_killed_has_the_same_result),
        cmocka_unit_test(an_encoder_gets_a_classifier_of_the_labels),
        cmocka_unit_test(documents_of_other_rows_are_negatives),
        cmocka_unit_test(options_of_another_loss_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
