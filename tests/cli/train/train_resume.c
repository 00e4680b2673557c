/* attend train --resume: the folder knows the options of its training, and says what may not change. */
// labels: trains
#include "fixtures/stopped.h"
#include "fixtures/toy_texts.h"

#define SMALL "--config small.json --tokenizer pieces.spm --batch-tokens 150 --threads 1 "
#define FILES "--src train.de --tgt train.en "
#define TRAIN                                                                                                          \
    "$A train translate " SMALL FILES "--warmup 20 --dropout 0.2 --average 2 --save-every 2 --validate-every 2 "
#define RESUME "$A train translate --resume "
#define EMBED "$A train embed -m . --pairs pairs.tsv --batch 2 --rate 1e-3 --threads 1 "

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    tool_model = tiny_sentence();
    toy_write(&tool_model, "train.de", "train.en", 1, 60);
    assert_int_equal(tool(SMALL_TRANSLATOR
                          "; mkdir elsewhere; "
                          "printf 'a b\\tb c\\t1\\nc d\\td\\t4\\na\\ta b\\t5\\nc\\td a\\t2\\n' >pairs.tsv; "
                          "$A vocab --size 70 -n identity -o pieces.spm train.de train.en && " TRAIN
                          "--steps 6 -o whole && " TRAIN "--steps 4 --keep 9 -o half"),
                     0);
    return 0;
}

/* From another folder, too. */
static void a_folder_is_all_that_is_needed(void **state)
{
    (void)state;
    assert_int_equal(tool("cp -r half one; cd elsewhere; " RESUME "-o ../one --steps 6 && "
                          "cmp ../one/model.safetensors ../whole/model.safetensors"),
                     0);
    assert_has(tool_err, "continues after step 4, 6 steps in all\n");
    assert_int_equal(tool(SAME_LOG("one/log.jsonl", "whole/log.jsonl")), 0);
    assert_int_equal(tool(EMBED "--epochs 3 -o calm && { " EMBED "--epochs 3 --save-every 1 -o killed & "
                                "await 'ls killed/checkpoint-*'; kill -KILL $!; "
                                "wait $!; cd elsewhere; $A train embed --resume -o ../killed; } && "
                                "cmp ../calm/model.safetensors ../killed/model.safetensors"),
                     0);
}

/* The same command as at the start, or some of its options. */
static void options_that_are_the_same_may_be_typed_again(void **state)
{
    (void)state;
    assert_int_equal(tool("cp -r half two; " TRAIN "--resume -o two --steps 6 && " RESUME
                          "--dropout 0.20 --tokenizer ./../$(basename $PWD)/pieces.spm -o two && "
                          "cmp two/model.safetensors whole/model.safetensors"),
                     0);
    assert_has(tool_err, "two is a model that has finished its training, and stays as it is\n");
}

static void options_that_change_the_result_are_refused_as_typed(void **state)
{
    (void)state;
    static const struct {
        const char *option, *says;
    } cases[] = {
        {"--warmup 1000", "--warmup is 20 in half but 1000 here"},
        {"--dropout 0.3", "--dropout is 0.2 in half but 0.3 here"},
        {"--rate 0.1", "--rate is 0.001 in half but 0.1 here"},
        {"--schedule linear", "--schedule is constant in half but linear here"},
        {"--arch rnn", "--arch is not set in half but rnn here"},
        {"--byte-fallback", "--byte-fallback is not set in half but set here"},
        {"--seed 9223372036", "--seed is 1 in half but 9223372036 here"},
        {"--valid-src train.de", "--valid-tgt is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(line, sizeof line, RESUME "-o half %s", cases[i].option);
        assert_refused(line, 2, cases[i].says);
    }
    assert_int_equal(tool(TRAIN "--schedule cosine --warmup 2 --steps 4 -o cosine"), 0);
    assert_refused(RESUME "-o cosine --steps 8", 2, "--steps is 4 in cosine but 8 here, where --schedule falls to 0");
    assert_refused(TRAIN "--schedule cosine --steps 20 -o steep", 2, "--steps is 20, not more than --warmup 20: ");
    assert_refused("$A train embed --resume -o half", 1,
                   "half: has a training of another kind: attend train translate --resume -o half");
    assert_refused(
        "cp -r half \"it's half\"; " TRAIN "--steps 9 -o \"it's half\"", 1,
        "it's half: has checkpoints of a training already: attend train translate --resume -o 'it'\\''s half'");
    assert_refused(TRAIN "--steps 9 -o half", 1,
                   "half: has checkpoints of a training already: attend train translate --resume -o half");
    assert_refused(RESUME "--tokenizer small.json -o half", 1, "--tokenizer: small.json has ");
    assert_refused(RESUME "-o nowhere", 1, "nowhere: there is no training to continue");
    assert_refused(RESUME, 2, "--output FOLDER is needed");
}

/* Nothing is written where a training should go back, nor is more promised where it is done. */
static void a_training_that_is_past_its_steps_is_refused_as_it_is(void **state)
{
    (void)state;
    assert_refused("cp half/training.json before.json; " RESUME "-o half --steps 2", 2,
                   "attend: --steps is 2 but half is at step 4\n");
    assert_int_equal(tool("cmp before.json half/training.json; cp -r half done; " RESUME "-o done --steps 4"), 0);
    assert_has(tool_err, "; at step 4, with no further step to make (4 steps)\n");
    assert_null(strstr(tool_err, "continues after"));
}

/* The folder is as after a process that was killed before it stored the options. */
static void a_start_that_was_killed_at_once_begins_again(void **state)
{
    (void)state;
    assert_refused("mkdir young; cp half/*.spm half/vocab.json half/config.json young; : >young/lock; " RESUME
                   "-o young",
                   1, "young: there is no training to continue: start it without --resume\n");
    assert_int_equal(tool(TRAIN "--steps 6 -o young && cmp young/model.safetensors whole/model.safetensors"), 0);
}

/* Where its texts are may change, but not what they are. */
static void texts_may_move_but_not_change(void **state)
{
    (void)state;
    assert_int_equal(tool("cp train.de moved.de; " TRAIN "--src moved.de --steps 2 -o moved && rm moved.de"), 0);
    assert_refused(RESUME "-o moved --steps 4", 1, "/moved.de: No such file");
    assert_refused("{ cat train.de; echo eins; } >moved.de; " RESUME "-o moved --steps 4", 1, "--src: /");
    assert_has(tool_err, " bytes, but had ");
    assert_refused(RESUME "-o moved --steps 4 --src moved.de", 1, "--src: moved.de has ");
    assert_int_equal(tool(RESUME "-o moved --steps 4 --src train.de && rm moved.de && " RESUME "-o moved --steps 5"),
                     0);
}

static void a_pipe_is_asked_for_again(void **state)
{
    (void)state;
    assert_int_equal(tool("echo '" TRAIN "--tgt <(cat train.en) --steps 2 -o piped' >pipe.sh; bash pipe.sh"), 0);
    assert_refused(RESUME "-o piped --steps 4", 2,
                   "--tgt FILE is needed again: it was not a file when the training in piped began");
    assert_int_equal(tool(RESUME "-o piped --steps 4 --tgt train.en"), 0);
}

static void a_folder_of_an_older_version_says_what_it_needs(void **state)
{
    (void)state;
    assert_int_equal(tool("cp -r half older; rm older/training.json"), 0);
    assert_refused(RESUME "-o older --steps 6", 2,
                   "older: its training was started by an older attend, which stored no options; those of the start "
                   "are needed again: --src FILE --tgt FILE ...");
    assert_refused(RESUME FILES SMALL "-o older --steps 6 --warmup 20", 1,
                   "\"dropout\" is 0.20000000298023224 but here it is");
    assert_int_equal(tool(TRAIN "--resume -o older --steps 6 && cmp older/model.safetensors whole/model.safetensors"),
                     0);
    assert_int_equal(tool(RESUME "-o older --steps 7"), 0); /* they are stored now */
}

static void stored_options_that_are_damaged_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *spoil, *says;
    } cases[] = {
        {"echo '{' >bad/training.json", "bad/training.json: is not a JSON object"},
        {"echo '[1]' >bad/training.json", "bad/training.json: is not a JSON object"},
        {"ln -sf ../half/training.json bad/training.json", "bad/training.json: is a symbolic link, not a file"},
        {"rm bad/training.json; mkfifo bad/training.json", "bad/training.json: is not a file"},
        {"sed -i 's/\"20\"/\"many\"/' bad/training.json",
         "--warmup in bad/training.json: \"many\" is not a number from 0 to 1073741824"},
        {"sed -i 's/\"20\"/[]/' bad/training.json", "bad/training.json: \"warmup\" is not a text"},
        {"sed -i 's/constant/konstant/' bad/training.json",
         "--schedule in bad/training.json: \"konstant\" is not one of"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(line, sizeof line, "rm -rf bad; cp -r half bad; %s; " RESUME "-o bad", cases[i].spoil);
        const int code = tool(line);
        if (code != 1 && code != 2)
            fail_msg("%s: exit code %d: %s", cases[i].spoil, code, tool_err);
        assert_has(tool_err, cases[i].says);
    }
    assert_refused("rm -rf bad; mkdir bad; echo precious >precious; ln -s ../precious bad/training.json; " TRAIN
                   "-o bad",
                   1, "bad/training.json: is a symbolic link, not a file");
    assert_int_equal(tool("cat precious"), 0);
    assert_string_equal(tool_out, "precious\n");
}

static void a_killed_training_says_how_to_go_on(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-o kill 2>/dev/null & await 'ls kill/checkpoint-*'; kill -KILL $!; wait $!"), 137);
    assert_refused("echo eins | $A translate -m kill", 1,
                   "kill has a training that has not finished: attend train translate --resume -o kill");
    assert_refused("echo eins | $A embed -m kill", 1, "attend train translate --resume -o kill");
    assert_int_equal(tool(RESUME "-o kill --minutes 0.0001 && echo eins | $A translate -m kill"), 0);
    assert_int_equal(tool("cp -r half early; rm early/checkpoint-*; " RESUME "-o early --steps 6"), 1);
    assert_has(tool_err, "early: its training has finished and kept no checkpoint to continue from");
    assert_int_equal(tool("sed -i 's/\"finished\": 4/\"finished\": 0/' early/training.json; " RESUME
                          "-o early --steps 6 && cmp early/model.safetensors whole/model.safetensors"),
                     0);
    assert_has(tool_err, "early has no checkpoint yet: the training starts again from step 1\n");
}

/* Only one checkpoint is kept. */
static void a_finished_training_keeps_one_checkpoint(void **state)
{
    (void)state;
    assert_int_equal(tool("ls whole; ls half | grep checkpoint"), 0);
    assert_string_equal(tool_out,
                        "checkpoint-0000000006.safetensors\nconfig.json\ngeneration_config.json\nlog.jsonl\n"
                        "model.safetensors\nsource.spm\ntarget.spm\ntokenizer_config.json\ntraining.json\nvocab.json\n"
                        "checkpoint-0000000002.safetensors\ncheckpoint-0000000004.safetensors\n");
    assert_int_equal(tool(TRAIN "--steps 4 --keep 0 -o none; ls none | grep -c checkpoint"), 1);
    assert_null(strstr(tool_err, "checkpoint"));
    assert_refused(RESUME "-o none --steps 6", 1,
                   "none: its training has finished and kept no checkpoint to continue from");
    assert_int_equal(tool("cp -r half keep; " RESUME "-o keep --keep 1; ls keep | grep checkpoint"), 0);
    assert_string_equal(tool_out, "checkpoint-0000000004.safetensors\n");
    assert_has(tool_err,
               " MB are checkpoints, which only --resume needs; to delete them: rm keep/checkpoint-*.safetensors\n");
    assert_int_equal(tool("cmp keep/model.safetensors half/model.safetensors"), 0); /* a mean of two, still */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_all_that_is_needed),
        cmocka_unit_test(options_that_are_the_same_may_be_typed_again),
        cmocka_unit_test(options_that_change_the_result_are_refused_as_typed),
        cmocka_unit_test(a_training_that_is_past_its_steps_is_refused_as_it_is),
        cmocka_unit_test(a_start_that_was_killed_at_once_begins_again),
        cmocka_unit_test(texts_may_move_but_not_change),
        cmocka_unit_test(a_pipe_is_asked_for_again),
        cmocka_unit_test(a_folder_of_an_older_version_says_what_it_needs),
        cmocka_unit_test(stored_options_that_are_damaged_are_refused),
        cmocka_unit_test(a_killed_training_says_how_to_go_on),
        cmocka_unit_test(a_finished_training_keeps_one_checkpoint),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
