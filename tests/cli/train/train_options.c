/* attend train: the options that all commands have do the same in each. */
// labels: trains
#include "fixtures/five_trainings.h"

#define CAPTION TRAIN_CAPTION "--presence 0 "

static const struct training {
    const char *train;       /* with data for validation, */
    const char *unvalidated; /* and without */
    const char *score;       /* as --json has it */
    const char *needs;       /* what --patience needs */
} trainings[] = {
    {TRAIN_TRANSLATE "--valid-src train.de --valid-tgt train.en", TRAIN_TRANSLATE, "valid_loss",
     "--valid-src and --valid-tgt"},
    {TRAIN_EMBED "--valid pairs.tsv", TRAIN_EMBED, "spearman", "--valid FILE"},
    {TRAIN_CLASSIFY, TRAIN_CLASSIFY "--valid-share 0", "accuracy", "images for validation: --valid FOLDER"},
    {CAPTION "--valid-list valid.txt", CAPTION, "valid_loss", "--valid-list FILE"},
    {TRAIN_RECOMMEND, TRAIN_RECOMMEND "--split none", "ndcg", "a validation: --split leave-one-out or time"},
};
enum { TRAININGS = sizeof trainings / sizeof *trainings };

/* Runs a training with options; an exit code of 0 is asserted. */
static void train(const char *command, const char *options)
{
    char line[1024];
    snprintf(line, sizeof line, "rm -rf m; %s %s -o m", command, options);
    const int code = tool(line);
    if (code)
        fail_msg("%s: exit code %d: %s", line, code, tool_err);
}

static void a_line_of_json_has_the_result(void **state)
{
    (void)state;
    for (int i = 0; i < TRAININGS; i++) {
        train(trainings[i].train, "--steps 3 --validate-every 1 --json");
        json_t *v = line_json(0);
        assert_string_equal(json_string_value(json_object_get(v, "model")), "m");
        assert_true(json_is_true(json_object_get(v, "finished")));
        assert_string_equal(json_string_value(json_object_get(v, "compute")), "f32");
        assert_int_equal(number(v, "steps"), 3);
        assert_in_range(number(v, "step"), 0, 3);
        assert_true(json_is_number(json_object_get(v, trainings[i].score)));
        json_decref(v);
    }
}

/* What auto chooses is that of attend bench gemm, which reports it. */
static void what_auto_computes_is_printed_and_stored(void **state)
{
    (void)state;
    assert_int_equal(tool("$A bench gemm --m 7 --n 7 --k 7 -r 1 --seconds 0.01 --compute auto --json"), 0);
    json_t *v = line_json(0);
    char chosen[8], printed[64];
    snprintf(chosen, sizeof chosen, "%s", json_string_value(json_object_get(v, "compute")));
    json_decref(v);
    train(TRAIN_CLASSIFY, "--steps 1 --compute auto --json");
    v = line_json(0);
    assert_string_equal(json_string_value(json_object_get(v, "compute")), chosen);
    json_decref(v);
    snprintf(printed, sizeof printed, "; products of %s; ", chosen);
    assert_has(tool_err, printed);
    assert_int_equal(tool("cat m/training.json"), 0);
    json_t *stored = json_loads(tool_out, 0, NULL);
    assert_non_null(stored);
    assert_string_equal(json_string_value(json_object_get(stored, "compute")), chosen);
    assert_string_equal(json_string_value(json_object_get(json_object_get(stored, "options"), "compute")), "auto");
    json_decref(stored);
}

/* Those that change the result are kept by --resume. */
static void options_of_steps_have_their_effect_and_are_stored(void **state)
{
    (void)state;
    static const struct {
        const char *name, *other; /* another value */
    } kept[] = {{"accumulate", "7"}, {"beta2", "0.25"}, {"decay", "0.25"}, {"clip", "0.25"},  {"schedule", "constant"},
                {"warmup", "7"},     {"seed", "7"},     {"shards", "7"},   {"compute", "f32"}};
    char line[1024];
    for (int i = 0; i < TRAININGS; i++) {
        train(trainings[i].unvalidated, "--steps 3 --save-every 1 --seed 2");
        assert_int_equal(tool("cp m/model.safetensors plain"), 0);
        train(trainings[i].unvalidated,
              "--steps 3 --save-every 1 --seed 2 --accumulate 2 --beta2 0.9 --decay 0.1 "
              "--clip 0.5 --schedule inverse-sqrt --warmup 2 --minutes 60 --keep 2 --dtype f16 --compute auto");
        assert_has(tool_err, "; 3 steps or 60 minutes\n");
        assert_int_equal(tool("cmp -s plain m/model.safetensors"), 1);
        assert_int_equal(tool("head -c 9999 m/model.safetensors | grep -a -c '\"F16\"'"), 0);
        assert_int_equal(tool("ls m | grep -c checkpoint; tail -n 1 m/log.jsonl"), 0);
        assert_int_equal(strtol(tool_out, NULL, 10), 2);
        assert_has(tool_out, "\n{\"step\": 3, ");
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
            snprintf(line, sizeof line,
                     "$A train $(sed -n 's/ *\"command\": \"\\(.*\\)\",/\\1/p' m/training.json) --resume -o m --%s %s",
                     kept[k].name, kept[k].other);
            snprintf(line + 512, 128, "--%s is ", kept[k].name);
            assert_refused(line, 2, line + 512);
        }
        snprintf(line, sizeof line,
                 "%s --resume -o m --steps 4 --seed 2 --accumulate 2 --beta2 0.9 --decay 0.1 "
                 "--clip 0.5 --schedule inverse-sqrt --warmup 2 --dtype f32 --average 2",
                 trainings[i].unvalidated);
        assert_int_equal(tool(line), 0);
        assert_has(tool_err, "continues after step 3, 4 steps or 60 minutes in all\n");
        assert_int_equal(tool("head -c 9999 m/model.safetensors | grep -a -c '\"F16\"'"), 1);
    }
}

/* They change bits, and are stored; a loss that couples a batch has none. */
static void shards_are_of_losses_that_are_sums_over_rows(void **state)
{
    (void)state;
    for (int i = 0; i < TRAININGS; i++) {
        if (strstr(trainings[i].unvalidated, "train caption")) {
            char line[1024];
            snprintf(line, sizeof line, "%s --shards 2 --steps 1 -o none", trainings[i].unvalidated);
            assert_refused(line, 2, "--shards is 2, but batch normalization, ");
            continue;
        }
        train(trainings[i].unvalidated, "--steps 3 --seed 2");
        assert_int_equal(tool("cp m/model.safetensors plain"), 0);
        train(trainings[i].unvalidated, "--steps 3 --seed 2 --shards 3");
        assert_int_equal(tool("! cmp -s plain m/model.safetensors"), 0);
    }
    assert_refused(TRAIN_EMBED "--loss mnr --shards 2 --steps 1 -o none", 2,
                   "--shards is 2, but the multiple negatives ranking loss ");
}

static void patterns_that_freeze_nothing_or_all_are_refused_by_name(void **state)
{
    (void)state;
    char line[1024];
    for (int i = 0; i < TRAININGS; i++) {
        snprintf(line, sizeof line, "%s --freeze no.such --steps 1 -o none", trainings[i].unvalidated);
        assert_refused(line, 2, "--freeze: \"no.such\" matches no parameter; ");
        snprintf(line, sizeof line, "%s --freeze '*' --steps 1 -o none", trainings[i].unvalidated);
        assert_refused(line, 2, "--freeze: all ");
    }
}

static void patience_ends_what_does_not_improve(void **state)
{
    (void)state;
    char line[1024];
    for (int i = 0; i < TRAININGS; i++) {
        train(trainings[i].train, "--steps 30 --validate-every 1 --rate 1e-30 --decay 0 --patience 2");
        assert_int_equal(tool("tail -n 1 m/log.jsonl"), 0);
        assert_in_range(strtol(tool_out + strlen("{\"step\": "), NULL, 10), 2, 3);
        snprintf(line, sizeof line, "%s --patience 2 --steps 3 -o none", trainings[i].unvalidated);
        assert_int_equal(tool(line), 2);
        snprintf(line, sizeof line, "attend: --patience 2 needs %s", trainings[i].needs);
        assert_has(tool_err, line);
        assert_int_equal(tool("ls -d none"), 2);
    }
}

/* In place of the best model. */
static void the_mean_of_checkpoints_is_the_model_and_validated(void **state)
{
    (void)state;
    for (int i = 0; i < TRAININGS; i++) {
        train(trainings[i].train, "--steps 4 --save-every 1 --validate-every 4 --average 3");
        assert_has(tool_err, "attend: the mean of the last checkpoints, up to 3: on validation ");
        assert_null(strstr(tool_err, " is the model of step "));
        assert_int_equal(tool("ls m | grep -c checkpoint"), 0);
        assert_int_equal(strtol(tool_out, NULL, 10), 1);
    }
}

static void what_says_where_a_training_ends_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *options, *says;
        bool epochs; /* for trainings that have them */
    } cases[] = {
        {"--steps 3 --epochs 2", "--steps does not go with --epochs", true},
        {"--steps 3 --warmup 1.5", "--warmup: 1.5 is not a whole number of steps", false},
        {"--steps 3 --schedule linear --warmup 3", "--steps is 3, not more than --warmup 3: ", false},
        {"--epochs 1e-6 --schedule cosine --warmup 1", "--epochs is 1e-06 (1 step), not more than --warmup 1: ", true},
    };
    char line[1024];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int i = cases[k].epochs; i < TRAININGS; i++) {
            snprintf(line, sizeof line, "%s %s -o none", trainings[i].train, cases[k].options);
            assert_int_equal(tool(line), 2);
            assert_has(tool_err, cases[k].says);
            assert_int_equal(tool("ls -d none"), 2);
        }
    assert_refused(TRAIN_TRANSLATE "--schedule cosine -o none", 2, "--schedule cosine needs --steps");
    assert_refused(TRAIN_TRANSLATE "--warmup 0.1 -o none", 2, "--warmup 0.1, a share of all steps, needs --steps");
    assert_refused(TRAIN_TRANSLATE "--save-every 0 -o none", 2, "--save-every 0: there are no epochs here");
}

/* --half is --dtype f16. */
static void a_folder_of_version_0_2_with_half_continues(void **state)
{
    (void)state;
    train(TRAIN_TRANSLATE, "--steps 4 --save-every 2 --dtype f16");
    assert_int_equal(tool("mv m whole"), 0);
    train(TRAIN_TRANSLATE, "--steps 2 --save-every 2 --dtype f16 --keep 9");
    assert_int_equal(
        tool("sed -i '/\"dtype\"/s/.*/  \"half\": \"set\",/' m/training.json; grep -c half m/training.json && "
             "$A train translate --resume -o m --steps 4 && cmp m/model.safetensors whole/model.safetensors && "
             "grep -c '\"dtype\": \"f16\"' m/training.json"),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_json_has_the_result),
        cmocka_unit_test(what_auto_computes_is_printed_and_stored),
        cmocka_unit_test(options_of_steps_have_their_effect_and_are_stored),
        cmocka_unit_test(shards_are_of_losses_that_are_sums_over_rows),
        cmocka_unit_test(patterns_that_freeze_nothing_or_all_are_refused_by_name),
        cmocka_unit_test(patience_ends_what_does_not_improve),
        cmocka_unit_test(the_mean_of_checkpoints_is_the_model_and_validated),
        cmocka_unit_test(what_says_where_a_training_ends_is_checked),
        cmocka_unit_test(a_folder_of_version_0_2_with_half_continues),
    };
    return cmocka_run_group_tests(tests, five_trainings_setup, tool_teardown);
}
