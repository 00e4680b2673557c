/* attend train translate: from two files to a model that translates, killed on the way or not. */
// labels: long trains
#include "fixtures/stopped.h"
#include "fixtures/toy_texts.h"

#define TRAIN                                                                                                          \
    "$A train translate --src train.de --tgt train.en $MODEL --batch-tokens 150 --steps $((3 * ROUND)) "               \
    "--save-every 3 --warmup 10 --threads 2 "

static int steps(void) { return check_step(3) > 1 ? 9 : 30; } /* of TRAIN */

static int set_up(void **state)
{
    (void)state;
    const bool less = check_step(3) > 1;
    setenv("A", ATTEND_TOOL, 1);
    setenv("ROUND", less ? "3" : "10", 1); /* a third of them */
    tool_model = folder_new();
    toy_write(&tool_model, "train.de", "train.en", 1, 200);
    toy_write(&tool_model, "valid.de", "valid.en", 1000, 20);
    /* Under the thread sanitizer pieces take 5 s to learn, and a step of the preset 3 s. */
    setenv("MODEL", less ? "--config small.json --tokenizer pieces.spm" : "-p tiny --vocabulary 70", 1);
    assert_int_equal(tool("echo '{\"d_model\": 32, \"encoder_layers\": 1, \"decoder_layers\": 1, "
                          "\"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, "
                          "\"encoder_ffn_dim\": 64, \"decoder_ffn_dim\": 64}' >small.json && "
                          "$A vocab --size 70 -n identity -o pieces.spm train.de train.en"),
                     0);
    return 0;
}

static void a_training_makes_a_model_and_a_log(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--valid-src valid.de --valid-tgt valid.en --validate-every $ROUND -o whole"), 0);
    char last[32];
    snprintf(last, sizeof last, "step %d,", steps());
    assert_has(tool_err, last);
    assert_has(tool_err, "BLEU");
    assert_int_equal(tool("wc -l < whole/log.jsonl; ls whole"), 0);
    assert_has(tool_out, "3\n");
    assert_has(tool_out, "model.safetensors");
    assert_int_equal(tool("$A plot whole/log.jsonl -o whole.svg"), 0);
}

static void pieces_that_there_are_are_taken(void **state)
{
    (void)state;
    assert_int_equal(
        tool("$A train translate --src train.de --tgt train.en --tokenizer pieces.spm -p tiny --steps 1 -o own && "
             "$A train translate --src train.de --tgt train.en --tokenizer own -p tiny --steps 1 -o again && "
             "cmp pieces.spm own/source.spm && cmp pieces.spm own/target.spm && cmp own/vocab.json again/vocab.json"),
        0);
}

/* After warm-up: rate * sqrt(warmup / step), or the rate itself, or half a cosine down to 0. */
static void rare_characters_are_in_the_vocabulary_but_those_that_are_hardly_there(void **state)
{
    (void)state;
    /* 4, 5 and ! are three times in 24,000 characters, 9 is there twice. */
    assert_int_equal(tool("for i in 1 2 3 4 5 6; do cat train.de; done >rare.de; "
                          "for i in 1 2 3 4 5 6; do cat train.en; done >rare.en; "
                          "for i in 1 2 3; do echo '45!' | tee -a rare.de >>rare.en; done; "
                          "echo 9 | tee -a rare.de >>rare.en; $A train translate --src rare.de --tgt rare.en "
                          "-p tiny --vocabulary 70 --batch-tokens 150 --steps 1 -o rare && echo '4 54! 9' | "
                          "$A tokenize -m rare"),
                     0);
    assert_string_equal(tool_out, "\xE2\x96\x81 4 \xE2\x96\x81 5 4 ! \xE2\x96\x81 <unk> </s>\n");
    assert_has(tool_err, "attend: 1 line has characters that the model does not know: 9\n");
    assert_int_equal(tool("$A train translate --src rare.de --tgt rare.en --character-coverage 0.999 --byte-fallback "
                          "-p tiny --vocabulary 320 --batch-tokens 150 --steps 1 -o bytes && echo '!9' | "
                          "$A tokenize -m bytes"),
                     0);
    assert_string_equal(tool_out, "\xE2\x96\x81 <0x21> <0x39> </s>\n");
    assert_refused("$A train translate --src rare.de --tgt rare.en --byte-fallback --tokenizer pieces.spm -o no", 2,
                   "--byte-fallback does not go with --tokenizer");
}

static void rates_fall_where_that_is_asked_for(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--steps 8 --schedule inverse-sqrt --rate 0.01 --warmup 2 -o falling && "
                                "head -1 falling/log.jsonl && " TRAIN
                                "--steps 8 --rate 0.01 --warmup 2 -o level && head -1 level/log.jsonl"),
                     0);
    assert_has(tool_out, "\"rate\": 0.005}\n");
    assert_has(tool_out, "\"rate\": 0.01}\n");
    assert_int_equal(tool(TRAIN "--steps 8 --validate-every 4 --schedule cosine --rate 0.01 --warmup 0 -o cosine && "
                                "cat cosine/log.jsonl"),
                     0);
    assert_has(tool_out, "\"rate\": 0.005}\n");
    assert_has(tool_out, "\"rate\": 0}\n");
    assert_refused(TRAIN "--steps 0 --schedule linear -o linear", 2, "--schedule linear needs --steps");
    assert_refused(TRAIN "--steps 0 --schedule cosine -o linear", 2, "--schedule cosine needs --steps");
}

static void a_training_that_is_done_takes_no_more_steps(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-o done && cp done/model.safetensors before && " TRAIN "--resume -o done && "
                                "cmp before done/model.safetensors && ls done"),
                     0);
    char last[32], more[32];
    snprintf(last, sizeof last, "checkpoint-%010d", steps());
    snprintf(more, sizeof more, "checkpoint-%010d", steps() + 1);
    assert_has(tool_out, last);
    assert_null(strstr(tool_out, more));
}

/* A recurrent translator: it trains, resumes with the same bits, translates, and shows alignments, or cannot. */
static void recurrent_layers_learn_too(void **state)
{
    (void)state;
#define TRAIN_RNN                                                                                                      \
    "$A train translate --src train.de --tgt train.en --tokenizer pieces.spm --batch-tokens 150 --threads 2 "
    assert_int_equal(tool("echo '{\"embedding_size\": 16, \"hidden_size\": 16}' > sizes.json; " TRAIN_RNN
                          "--arch rnn --config sizes.json --steps 8 --save-every 4 --dtype f16 -o rnn"),
                     0);
    assert_int_equal(tool(TRAIN_RNN
                          "--arch rnn --config sizes.json --steps 4 --save-every 4 --average 0 -o paused && " TRAIN_RNN
                          "--arch rnn --config sizes.json --steps 8 --save-every 4 --average 5 --dtype f16 "
                          "--resume -o paused && cmp rnn/model.safetensors paused/model.safetensors"),
                     0);
    assert_int_equal(tool("echo 'eins rot Haus' | $A translate -m rnn --beam 2 --nbest 2 --alignment -"), 0);
    assert_int_equal(tool("echo 'eins rot Haus' | $A translate -m rnn --alignment a.svg && cat a.svg"), 0);
    assert_has(tool_out, "Attention: eins rot Haus");
    assert_int_equal(tool(TRAIN_RNN "-p tiny --steps 12 --resume -o rnn"), 2);
    assert_has(tool_err, "--preset is not set in rnn but tiny here");
    assert_int_equal(tool(TRAIN_RNN "--arch rnn --attention none -p tiny --steps 2 -o fixed"), 0);
    assert_int_equal(tool("echo 'eins rot Haus' | $A translate -m fixed && "
                          "echo 'eins rot Haus' | $A translate -m fixed --alignment -"),
                     1);
    assert_has(tool_err, "--alignment: the model has no attention");
#undef TRAIN_RNN
}

static void a_training_that_is_killed_again_and_again_has_the_same_result(void **state)
{
    (void)state;
    assert_kills_change_nothing(TRAIN, 2 * check_step(3), 9, 20, 400);
}

static void a_training_that_is_interrupted_is_a_model(void **state)
{
    (void)state;
    assert_interrupt_leaves_a_model("$A train translate --src train.de --tgt train.en --config small.json --tokenizer "
                                    "pieces.spm --threads 2 --save-every 1",
                                    "translate", "echo 'a b c' |", "");
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
        int code;
    } cases[] = {
        {"$A train translate --src train.de --tgt none.en -o x", "none.en", 1},
        {"head -3 train.en > short.en; $A train translate --src train.de --tgt short.en -o x --vocabulary 70",
         "train.de has 200 lines but short.en has 3", 1},
        {"$A train translate --src train.de --tgt train.en --valid-src valid.de -o x", "--valid-tgt is missing", 2},
        {"$A train translate --src train.de --tgt train.en --resume -o y",
         "y: there is no training to continue: start it without --resume", 1},
        {"$A train translate --src train.de --tgt train.en -o x --attention dot", "--attention is for --arch rnn", 2},
        {"$A train translate --src train.de --tgt train.en -o x -p tiny --config c", "--preset does not go with", 2},
        {"echo '{\"d_modell\": 1}' > c; $A train translate --src train.de --tgt train.en -o x --vocabulary 70 --config "
         "c",
         "c: \"d_modell\" is not a setting", 1},
        {": >no.de; $A train translate --src no.de --tgt no.de -o x --config c", /* before a vocabulary is trained */
         "c: \"d_modell\" is not a setting", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int code = tool(cases[i].line);
        if (code != cases[i].code)
            fail_msg("%s: exit code %d: %s", cases[i].line, code, tool_err);
        assert_has(tool_err, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_makes_a_model_and_a_log),
        cmocka_unit_test(pieces_that_there_are_are_taken),
        cmocka_unit_test(rare_characters_are_in_the_vocabulary_but_those_that_are_hardly_there),
        cmocka_unit_test(rates_fall_where_that_is_asked_for),
        cmocka_unit_test(a_training_that_is_done_takes_no_more_steps),
        cmocka_unit_test(recurrent_layers_learn_too),
        cmocka_unit_test(a_training_that_is_killed_again_and_again_has_the_same_result),
        cmocka_unit_test(a_training_that_is_interrupted_is_a_model),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
