/* attend train embed: from pairs with scores to a sentence model, killed on the way or not. */
// labels: trains
#include "fixtures/stopped.h"

#define TRAIN                                                                                                          \
    "$A train embed -m . --pairs pairs.tsv --epochs 6 --batch 4 --rate 1e-3 --save-every 3 --validate-every 4 "        \
    "--threads 2 "

/* Two words of letters; the more letters they share, the more similar they are. */
static void write_pairs(const char *name, int n, uint64_t seed)
{
    FILE *f = folder_open(&tool_model, name);
    for (int i = 0; i < n; i++) {
        const uint64_t bits = check_bits(seed, (uint64_t)i);
        const int a = (int)(bits % 20), b = (int)(bits / 32 % 20);
        fprintf(f, "%c %c %c\t%c %c %c\t%.2f\n", 'a' + a, 'b' + a, 'c' + a, 'a' + b, 'b' + b, 'c' + b,
                5 * fmax(0, 1 - fabs((double)(a - b)) / 6));
    }
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    tool_model = tiny_sentence();
    write_pairs("pairs.tsv", 40, 1);
    write_pairs("valid.tsv", 30, 2);
    return 0;
}

static double spearman_of(const char *model)
{
    char line[200];
    snprintf(line, sizeof line, "$A similarity -m %s --pairs valid.tsv --gold --json | tail -1", model);
    assert_int_equal(tool(line), 0);
    json_t *v = line_json(0);
    const double spearman = json_number_value(json_object_get(v, "spearman"));
    json_decref(v);
    return spearman;
}

static void a_training_leaves_the_best_model_and_a_log(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 40 --rate 3e-3 --validate-every 40 --valid valid.tsv -o whole"), 0);
    assert_has(tool_err, "step 400, epoch 40: loss ");
    assert_has(tool_err, "with the highest Spearman on validation");
    assert_int_equal(tool("wc -l < whole/log.jsonl"), 0);
    assert_has(tool_out, "11\n"); /* of the model that it begins with, too */
    assert_int_equal(tool("cat whole/log.jsonl"), 0);
    double best = -INFINITY;
    for (int i = 0; i < 11; i++) {
        json_t *v = line_json(i);
        const double spearman = json_number_value(json_object_get(v, "spearman"));
        best = spearman > best ? spearman : best;
        json_decref(v);
    }
    assert_int_equal(tool("$A plot whole/log.jsonl -o whole.svg"), 0);
    const double before = spearman_of("."), after = spearman_of("whole");
    if (!(after > before + 5 && fabs(after - best) <= 1e-4)) /* as many digits as the log has */
        fail_msg("Spearman was %g and is %g; the best of the log is %g", before, after, best);
}

static void without_a_validation_the_model_is_the_last(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-o last"), 0);
    assert_has(tool_err, "last is a model now: attend embed -m last");
    assert_int_equal(tool("echo a b c | $A embed -m last"), 0);
}

static void a_training_that_is_killed_again_and_again_has_the_same_result(void **state)
{
    (void)state;
    assert_kills_change_nothing(TRAIN "--valid valid.tsv", 2, 7, 5, 100);
}

static void a_training_that_is_interrupted_is_a_model(void **state)
{
    (void)state;
    assert_interrupt_leaves_a_model(TRAIN "--epochs 100000 --save-every 1", "embed", "echo 'a b c' |", "");
    assert_interrupt_leaves_a_model(TRAIN "--epochs 100000 --save-every 1 --valid valid.tsv --validate-every 1000000",
                                    "embed", "echo 'a b c' |", "");
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"$A train embed -m . --pairs none.tsv -o x", "none.tsv"},
        {"printf 'a\\tb\\t1\\nc\\td\\n' > odd.tsv", "odd.tsv: line 2: 2 columns, but line 1 has 3"},
        {"printf 'a\\tb\\t1\\nc\\n' > odd.tsv", "odd.tsv: line 2: one column, but a pair has two"},
        {"printf 'c\\td\\t1\\na\\tb\\tmuch\\ne\\tf\\t1\\n' > odd.tsv",
         "odd.tsv: line 2: the third column is \"much\", but must be a number"},
        {"printf 'a\\tb\\tnan\\n' > odd.tsv", "odd.tsv: line 1: the third column is \"nan\""},
        {"printf 'a\\tb\\t1\\nc\\td\\t5.5\\n' > odd.tsv", "odd.tsv: line 2: the score is 5.5, but must be from 0 to 5"},
        {"printf 'a\\tb\\t-1\\n' > odd.tsv", "odd.tsv: line 1: the score is -1, but must be from 0 to 5"},
        {"printf '' > odd.tsv", "odd.tsv: has no pairs"},
        {"printf 'a\\tb\\t1\\n' > odd.tsv; $A train embed -m . --pairs odd.tsv -o .", "is the model's own folder"},
        {"$A train embed -m . --pairs pairs.tsv --resume -o y",
         "y: there is no training to continue: start it without --resume"},
        {"$A train embed -m . --pairs pairs.tsv --valid odd.tsv -o z --epochs 1",
         "odd.tsv: no validation has a correlation"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        const bool whole = strstr(cases[i].line, "train embed");
        snprintf(line, sizeof line, "%s%s", cases[i].line, whole ? "" : "; $A train embed -m . --pairs odd.tsv -o x");
        const int code = tool(line);
        if (code != 1)
            fail_msg("%s: exit code %d: %s", line, code, tool_err);
        assert_has(tool_err, cases[i].says);
    }
}

/* A U+FFFD in the file is text. */
static void pairs_that_are_not_utf_8_are_left_out_if_they_may(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a\\tb\\t1\\nc\\td\\t2\\n\\357\\277\\275 e\\tf\\t3\\n' >clean.tsv; "
                          "{ printf '\\377a\\tb\\t4\\n'; cat clean.tsv; printf 'a\\tb\\303\\t5\\n'; } >bytes.tsv; "
                          "for name in clean bytes; do $A train embed -m . --pairs $name.tsv --epochs 2 --batch 2 "
                          "--skip-bad-lines 2 -o $name; done; "
                          "cmp clean/model.safetensors bytes/model.safetensors"),
                     0);
    assert_has(tool_err,
               "attend: 2 malformed lines were left out (--skip-bad-lines), first: bytes.tsv: line 1: is not UTF-8");
    assert_null(strstr(tool_err, "clean.tsv:"));
    assert_refused("printf '\\377a\\tb\\t4\\n' >none.tsv; $A train embed -m . --pairs none.tsv -o none", 1,
                   "none.tsv: line 1: is not UTF-8");
}

/* The best model until now was best by the old evaluation. */
static void a_training_that_is_evaluated_by_something_else_is_not_continued(void **state)
{
    (void)state;
    assert_int_equal(tool("{ cat valid.tsv; printf 'a b\\tb c\\t1\\n'; } >other.tsv; " TRAIN
                          "--valid valid.tsv -o evaluated && " TRAIN
                          "-o not-evaluated && cat evaluated/checkpoint-* >before"),
                     0);
    assert_refused(TRAIN "--resume --valid other.tsv -o evaluated", 1,
                   "--valid: other.tsv has 520 bytes, but had 510 when the training in evaluated began");
    assert_refused("tac valid.tsv >other.tsv; " TRAIN "--resume --valid other.tsv -o evaluated", 1,
                   "with other evaluation data");
    assert_refused(TRAIN "--resume --valid valid.tsv -o not-evaluated", 2,
                   "--valid is not set in not-evaluated but valid.tsv here");
    assert_int_equal(tool("cat evaluated/checkpoint-* | cmp before - && cp valid.tsv same.tsv && " TRAIN
                          "--resume --valid same.tsv -o evaluated && " TRAIN "--resume -o evaluated"),
                     0);
}

/* The pre-trained model is a candidate. */
static void a_training_that_makes_nothing_better_ends_with_what_it_began_with(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN
                          "--rate 1e-30 --valid valid.tsv -o still && $A similarity -m still --pairs valid.tsv >1 && "
                          "$A similarity -m . --pairs valid.tsv | cmp 1 -"),
                     0);
    assert_has(tool_err, "step 0, the model to begin with, on validation Spearman ");
    assert_has(tool_err, "attend: no step was better than the model to begin with, whose Spearman on validation is ");
    assert_has(tool_err, ": still is that one\n");
    assert_int_equal(tool("head -n 1 still/log.jsonl | grep -c '{\"step\": 0, .*\"spearman\": '"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_that_makes_nothing_better_ends_with_what_it_began_with),
        cmocka_unit_test(a_training_leaves_the_best_model_and_a_log),
        cmocka_unit_test(without_a_validation_the_model_is_the_last),
        cmocka_unit_test(a_training_that_is_killed_again_and_again_has_the_same_result),
        cmocka_unit_test(a_training_that_is_interrupted_is_a_model),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(pairs_that_are_not_utf_8_are_left_out_if_they_may),
        cmocka_unit_test(a_training_that_is_evaluated_by_something_else_is_not_continued),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
