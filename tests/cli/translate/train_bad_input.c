/* attend train translate on files, disks and settings that cannot be used: one sentence, and nothing is lost. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/tool.h"
#include "fixtures/toy_texts.h"

#define FILES "--src train.de --tgt train.en "
#define SMALL "-p tiny --batch-tokens 150 --threads 2 --average 1 "
#define LEARN "$A train translate --vocabulary 70 " SMALL
#define TRAIN "$A train translate --tokenizer pieces.spm " SMALL

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    tool_model = folder_new();
    toy_write(&tool_model, "train.de", "train.en", 1, 200);
    assert_int_equal(tool("$A vocab --size 70 -n identity -o pieces.spm train.de train.en"), 0);
    return 0;
}

/* Pairs that cannot be trained on are counted and left out; the others are trained on. */
static void lines_that_are_empty_or_no_text_or_too_long_are_left_out_and_counted(void **state)
{
    (void)state;
    assert_int_equal(
        tool("{ printf '\\n \\neins\\nbl\\374\\n'; yes eins | head -c 1000000 | tr '\\n' ' '; echo; "
             "cat train.de; } >odd.de; { printf 'one\\n\\n\\nblue\\none\\n'; cat train.en; } >odd.en; " LEARN
             "--src odd.de --tgt odd.en --steps 1 --skip-bad-lines 1 -o odd"),
        0);
    assert_has(tool_err, "200 sentence pairs; left out: 3 with an empty side, 1 that are not UTF-8, 1 that are too "
                         "long\n");
}

static void files_without_a_pair_are_refused(void **state)
{
    (void)state;
    assert_refused(": >no.de; : >no.en; " LEARN "--src no.de --tgt no.en -o no", 1,
                   "no.de, no.en: there is no text to learn a vocabulary from");
    assert_refused("printf '\\n\\n' >no.de; printf 'one\\ntwo\\n' >no.en; " TRAIN "--src no.de --tgt no.en -o no", 1,
                   "no.de, no.en: none of 2 pairs can be used (2 are empty, 0 not UTF-8, 0 longer than 128 tokens)");
    assert_refused(
        "printf '\\374ber\\n' >no.de; echo over >no.en; " TRAIN "--src no.de --tgt no.en -o no", 1,
        "no.de: line 1: is not UTF-8, but seems to be in WINDOWS-1252; convert it: iconv -f WINDOWS-1252 -t");
    assert_refused(TRAIN "--src . --tgt train.en -o no", 1, ". is not a file");
    assert_refused(TRAIN FILES "--valid-src no.de --valid-tgt no.en --validate-every 1 -o evaluated", 1,
                   "no.de: line 1: is not UTF-8");
    assert_int_equal(tool("cat evaluated/log.jsonl"), 1); /* before the first step */
    assert_refused(TRAIN FILES "-o train.de", 1,
                   "--output train.de would replace --src train.de, which this command reads");
    assert_refused("cp train.de file; " TRAIN FILES "-o file", 1, "file is a file, not a folder");
}

/* With a learning rate and a decay as high as can be asked for, weights are multiplied by -9 at each step, and soon
 * leave the range of floats. What is left is the checkpoint before, from which the same happens again. */
static void numbers_that_are_not_finite_end_a_training_and_leave_its_checkpoints(void **state)
{
    (void)state;
    char first[512];
    assert_refused(TRAIN FILES "--rate 1000 -o steep", 2, "--rate: \"1000\" is not a number greater than 0, up to 10");
    const char *line = TRAIN FILES "--rate 10 --decay 1 --warmup 0 --save-every 1 --steps 1000 -o steep ";
    assert_int_equal(tool(line), 1);
    assert_has(tool_err, " is not taken: its ");
    const char *from = strstr(tool_err, "attend: step ");
    assert_non_null(from);
    snprintf(first, sizeof first, "%s", from);
    assert_has(first, "; first, ");
    assert_has(first, " made ");
    const long step = strtol(first + strlen("attend: step "), NULL, 10);
    assert_in_range(step, 2, 1000);
    char newest[64];
    snprintf(newest, sizeof newest, "checkpoint-%010ld.safetensors\n", step - 1);
    assert_int_equal(tool("ls steep | grep checkpoint"), 0);
    assert_string_equal(tool_out, newest);
    char again[512];
    snprintf(again, sizeof again, "%s --resume", line);
    assert_int_equal(tool(again), 1);
    assert_has(tool_err, first);
}

/* A file may not be larger than the vocabulary needs, but less than a checkpoint: as on a disk that is full. */
static void a_disk_that_is_full_ends_a_training_and_leaves_its_checkpoints(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN FILES "--steps 2 --save-every 2 -o full && cp full/checkpoint-* before"), 0);
    assert_int_equal(tool("ulimit -f 100; trap '' XFSZ; " TRAIN FILES "--steps 4 --save-every 2 --resume -o full"), 1);
    assert_has(tool_err, "full/checkpoint-0000000004.safetensors cannot be written: File too large");
    assert_int_equal(tool("ls full | grep checkpoint; cmp before full/checkpoint-*"), 0);
    assert_string_equal(tool_out, "checkpoint-0000000002.safetensors\n");
    assert_int_equal(tool(TRAIN FILES "--steps 4 --save-every 2 --resume -o full"), 0);
}

static void a_checkpoint_that_is_damaged_or_of_another_training_is_refused(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN FILES "--steps 2 --save-every 2 -o one && cp one/checkpoint-* before"), 0);
    assert_refused(TRAIN FILES "--steps 4 -o one", 1, "one: has checkpoints of a training already");
    assert_refused(TRAIN FILES "--steps 4 -o one --resume -p small", 2, "--preset is tiny in one but small here");
    assert_refused(TRAIN FILES "--steps 4 -o one --resume --rate 0.5", 2, "--rate is 0.001 in one but 0.5 here");
    assert_int_equal(tool("cmp before one/checkpoint-*"), 0); /* unchanged */
    assert_refused("head -c 100000 before >one/checkpoint-0000000002.safetensors; " TRAIN FILES
                   "--steps 4 -o one --resume",
                   1, "one/checkpoint-0000000002.safetensors: ");
    assert_refused(": >one/checkpoint-0000000002.safetensors; " TRAIN FILES "--steps 4 -o one --resume", 1,
                   "one/checkpoint-0000000002.safetensors is empty");
    assert_int_equal(tool("cp before one/checkpoint-0000000002.safetensors; " TRAIN FILES "--steps 4 -o one --resume"),
                     0);
}

static void a_folder_is_of_one_training_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN FILES "--save-every 1 -o both >/dev/null 2>&1 & "
                                      "await 'ls both/checkpoint-*'; " TRAIN FILES
                                      "--resume -o both; echo $? >code; kill -TERM $!; wait $!; cat code"),
                     0);
    assert_string_equal(tool_out, "1\n");
    assert_has(tool_err, "both: another training");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_are_empty_or_no_text_or_too_long_are_left_out_and_counted),
        cmocka_unit_test(files_without_a_pair_are_refused),
        cmocka_unit_test(numbers_that_are_not_finite_end_a_training_and_leave_its_checkpoints),
        cmocka_unit_test(a_disk_that_is_full_ends_a_training_and_leaves_its_checkpoints),
        cmocka_unit_test(a_checkpoint_that_is_damaged_or_of_another_training_is_refused),
        cmocka_unit_test(a_folder_is_of_one_training_at_a_time),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
