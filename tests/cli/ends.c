/* How the tool ends before its work is done: at the first signal wherever it is, when a mapped file is cut short, when
 * standard input, output or error are closed. */
// labels: long slow
#include "fixtures/captioner.h"
#include "fixtures/check.h"
#include "fixtures/toy_texts.h"
#include "fixtures/translator_tool.h"
#include "fixtures/recommender_tool.h"
#include "fixtures/vision_tool.h"

/* Files for all tests here. */
static int set_up(void **state)
{
    const int code = translator_setup(state) || open_context(state);
    vision_setup();
    const test_folder captioner = captioner_folder(CAPTIONER_GRU, false);
    setenv("M", captioner.path, 1);
    shop_setup();
    toy_write(&tool_model, "toy.de", "toy.en", 1, 200);
    return code ||
           tool("mv $M captioner; mkfifo fifo full; printf 'a b\\nc d e\\n' >in; yes a b c d | head -n 20000 >many; "
                "printf 'a\\tb\\n' >pairs; echo '{\"step\": 1, \"loss\": 2}' >log; "
                "mkdir m; cp -r *.json vocab.txt 1_Pooling model.safetensors m; "
                "$A embed -m $D --format npy -o v.npy in; $A vocab -s 30 -o v.spm in");
}

/* Each command has half a second to live, $K, then the signal $S; one that continues is killed. env: sh ignores SIGINT
 * in what it runs beside itself. */
static void assert_all_end(const char *const *commands, size_t n)
{
    static const struct {
        const char *name;
        int code;
    } signals[] = {{"TERM", 143}, {"INT", 130}, {"HUP", 129}};
    char line[4096];
    for (size_t i = 0; i < n; i += (size_t)check_step(3)) {
        int used = 0;
        for (size_t s = 0; s < 3; s++)
            used += snprintf(line + used, sizeof line - (size_t)used,
                             "(S=%s; K=\"timeout --preserve-status -k 20 -s $S 0.5 env --default-signal=$S\"; %s; "
                             "echo $S $? >code.$S) & ",
                             signals[s].name, commands[i]);
        snprintf(line + used, sizeof line - (size_t)used, "wait; cat code.*; ls -A | grep -c unfinished");
        tool(line);
        for (size_t s = 0; s < 3; s++) {
            char expected[32];
            snprintf(expected, sizeof expected, "%s %d\n", signals[s].name, signals[s].code);
            if (!strstr(tool_out, expected))
                fail_msg("%s: %s%s", commands[i], tool_out, tool_err);
        }
        assert_string_equal(tool_err, "");
        assert_has(tool_out, "\n0\n"); /* files that were begun */
    }
}

static void the_first_signal_ends_a_command_that_waits_for_input(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "$K $A embed -m $D fifo -o half.$S",
        "exec 3<>fifo; $K $A embed -m $D <fifo",
        "$K $A tokenize -m $D fifo",
        "$K $A search -m $D -c fifo a",
        "exec 3<>fifo; $K $A classify -m $V - <fifo",
        "$K $A search -m $V -c fifo dot.png",
        "exec 3<>fifo; $K $A search -m $D -c in <fifo",
        "$K $A similarity -m $D --pairs fifo",
        "$K $A vocab -s 30 -o half.$S fifo",
        "$K $A bleu fifo in",
        "$K $A bleu in fifo",
        "$K $A translate -m $T fifo -a half.$S",
        "$K $A plot fifo",
        "$K $A explain softmax --input fifo",
        "$K $A bench attention --shapes fifo",
        "$K $A train embed -m $D --pairs fifo -o half.$S",
        "$K $A train translate --src toy.de --tgt toy.en --valid-src fifo --valid-tgt toy.en -o half.$S",
    };
    assert_all_end(commands, sizeof commands / sizeof *commands);
    assert_int_equal(tool("ls -d half*"), 2);
}

/* `fifo` is not open for reading; `full` is open, but never read. */
static void the_first_signal_ends_a_command_that_waits_for_a_reader(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "$K $A embed -m $D -o fifo in",
        "$K $A plot log -o fifo",
        "exec 3<>full; $K $A embed -m $D many >full",
        "exec 3<>full; $K $A tokenize -m $D many >full",
        "exec 3<>full; $K $A vocab -s 4000 -b -o - many >full",
    };
    assert_all_end(commands, sizeof commands / sizeof *commands);
}

static void the_first_signal_ends_a_command_that_computes(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "yes a b c | $K $A embed -m $D -o half.$S",   "yes a b c | $K $A vocab -s 30 -o half.$S",
        "yes a b c | $K $A search -m $D -c -  a",     "yes | tr -d '\\n' | $K $A plot -",
        "$K $A bench gemm --repeat 100000 >half.out", "$K $A bench attention --repeat 100000 >half.out",
    };
    assert_all_end(commands, sizeof commands / sizeof *commands);
    assert_int_equal(tool("rm half.out; ls -d half*"), 2);
}

/* What is asked of a signal before a parent that ignores it: nohup. */
static void ignored_signals_stay_ignored(void **state)
{
    (void)state;
    assert_int_equal(
        tool("trap '' HUP; exec 3<>fifo; $A embed -m $D <fifo -o hup 3<&- & p=$!; await 'ls hup.unfinished*'; "
             "kill -HUP $p; echo a >&3; exec 3>&-; wait $p"),
        0);
    assert_int_equal(tool("wc -l <hup"), 0);
    assert_string_equal(tool_out, "1\n");
}

/* ---- closed descriptors */

static const struct {
    const char *command;
    const char *file; /* that it writes; NULL: standard output */
} writers[] = {
    {"$A embed -m $D in", NULL},
    {"$A embed -m $D --format npy -o o in", "o"},
    {"$A search -m $D -c in -i v.npy a", NULL},
    {"$A similarity -m $D a b", NULL},
    {"$A similarity -m $D --pairs pairs --json", NULL},
    {"$A tokenize -m $D in", NULL},
    {"$A attention -m $D a", NULL},
    {"$A attention -m $D --svg o --json a >/dev/null", "o"},
    {"$A classify -m $V dot.png", NULL},
    {"$A classify -m $V -a o dot.png >/dev/null", "o"},
    {"$A attention -m $V --json dot.png", NULL},
    {"$A caption -m captioner dot.png", NULL},
    {"$A caption -m captioner -a o dot.png >/dev/null", "o"},
    {"$A recommend -m $R --history apple", NULL},
    {"$A recommend -m $R -d log.tsv --all-users -o o 2>/dev/null", "o"},
    {"$A recommend -m $R --vectors o", "o"},
    {"$A evaluate recommend -m $R -d log.tsv --json", NULL},
    {"$A vocab -s 40 -o o in", "o"}, /* says that it has fewer pieces */
    {"$A bleu in in", NULL},
    {"$A translate -m $T in", NULL},
    {"$A translate -m $T -a o in >/dev/null", "o"},
    {"$A plot log", NULL},
    {"$A plot -o o log", "o"},
    {"$A explain softmax", NULL},
    {"$A explain softmax --svg o >/dev/null", "o"},
    {"$A info", NULL},
    {"$A help", NULL},
    {"$A --version", NULL},
    {"$A bench gemm --m 8 --n 8 --k 8 --repeat 1 >/dev/null", "/dev/null"},
};

static void closed_descriptors_harm_no_file_and_lose_nothing_quietly(void **state)
{
    (void)state;
    static const char *const closed[] = {"0<&-", "2>&-", "0<&- 2>&-", "1>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        const char *command = writers[i].command, *file = writers[i].file;
        char line[512];
        snprintf(line, sizeof line, "rm -f o; { %s; } >calm; test -e o && cp o calm; test -s calm", command);
        if (tool(line) && !file)
            fail_msg("%s: %s", line, tool_err);
        for (size_t k = 0; k < sizeof closed / sizeof *closed; k++) {
            const bool output = strstr(closed[k], "1>&-"), lost = output && !file;
            snprintf(line, sizeof line, "rm -f o; { %s; echo $? >code; } %s%s", command, output ? "" : ">out ",
                     closed[k]);
            tool(line);
            if (lost && !strstr(closed[k], "2>&-"))
                assert_has(tool_err, "attend: standard output: ");
            snprintf(line, sizeof line, "test $(cat code) = %d && %s", lost,
                     file && strcmp(file, "o") == 0 ? "cmp o calm"
                     : lost || file                 ? "true"
                                                    : "cmp out calm");
            if (tool(line))
                fail_msg("%s %s: %s", command, closed[k], tool_out);
        }
    }
}

static void closed_standard_input_is_no_empty_text(void **state)
{
    (void)state;
    assert_refused("$A embed -m $D <&-", 1, "standard input: Bad file descriptor");
    assert_refused("$A similarity -m $D --pairs - <&-", 1, "standard input: Bad file descriptor");
    assert_refused("$A explain softmax --input - <&-", 1, "standard input: Bad file descriptor");
}

/* Samples of translations and what a training says of itself are not lines of its log. */
static void a_training_whose_output_is_closed_writes_a_clean_log(void **state)
{
    (void)state;
    assert_int_equal(
        tool("echo '{\"d_model\": 32, \"encoder_layers\": 1, \"decoder_layers\": 1, "
             "\"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, "
             "\"encoder_ffn_dim\": 64, \"decoder_ffn_dim\": 64}' >small.json; "
             "$A vocab --size 70 -n identity -o pieces.spm toy.de toy.en; "
             "$A train translate --src toy.de --tgt toy.en --valid-src toy.de --valid-tgt toy.en "
             "--config small.json --tokenizer pieces.spm --steps 2 --validate-every 1 --threads 1 -o closed "
             "0<&- 1>&- 2>&-; code=$?; grep -vc '^{.*}$' closed/log.jsonl; exit $code"),
        0);
    assert_string_equal(tool_out, "0\n");
}

/* ---- mapped files */

/* The tool has answered once and waits; then the file is cut. */
static void a_mapped_file_that_is_cut_short_is_named(void **state)
{
    (void)state;
    assert_int_equal(tool("head -n 1000 many >some; $A embed -m $D --format npy -o some.npy some"), 0);
    assert_int_equal(tool("rm -f out; { echo a; await 'test -s out'; truncate -s 0 some.npy; echo b; } | "
                          "$A search -m $D -c some -i some.npy -k 1 >out"),
                     1);
    assert_has(tool_err, "attend: ");
    assert_has(tool_err, "/some.npy: was cut short while it was in use");
    assert_int_equal(count(tool_err, "\n"), 1);
    assert_int_equal(tool("rm out; { echo a; await 'test -s out'; truncate -s 0 m/model.safetensors; "
                          "cat many; } | $A embed -m m >out"),
                     1);
    assert_has(tool_err, "/m/model.safetensors: was cut short while it was in use");
    assert_int_equal(count(tool_err, "\n"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_signal_ends_a_command_that_waits_for_input),
        cmocka_unit_test(the_first_signal_ends_a_command_that_waits_for_a_reader),
        cmocka_unit_test(the_first_signal_ends_a_command_that_computes),
        cmocka_unit_test(ignored_signals_stay_ignored),
        cmocka_unit_test(closed_descriptors_harm_no_file_and_lose_nothing_quietly),
        cmocka_unit_test(closed_standard_input_is_no_empty_text),
        cmocka_unit_test(a_training_whose_output_is_closed_writes_a_clean_log),
        cmocka_unit_test(a_mapped_file_that_is_cut_short_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
