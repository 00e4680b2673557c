/* attend train: what it says at the start and while it runs, and that a start that is refused leaves nothing. */
// labels: long trains
#include "fixtures/check.h"
#include "fixtures/tool.h"
#include "fixtures/toy_texts.h"

#include <sys/ioctl.h>
#include <termios.h>

#define SMALL "--config small.json --tokenizer pieces.spm --batch-tokens 150 --threads 1 "
#define FILES "--src train.de --tgt train.en "
#define VALID "--valid-src train.de --valid-tgt train.en "
#define TRAIN "$A train translate " SMALL FILES

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    tool_model = tiny_sentence();
    toy_write(&tool_model, "train.de", "train.en", 1, 60);
    assert_int_equal(tool(SMALL_TRANSLATOR
                          "; "
                          "printf 'a b\\tb c\\t1\\nc d\\td\\t4\\n' >pairs.tsv; head -5 train.en >short.en; "
                          "$A vocab --size 70 -n identity -o pieces.spm train.de train.en"),
                     0);
    return 0;
}

static void a_start_that_is_refused_leaves_nothing(void **state)
{
    (void)state;
    static const char *const starts[] = {
        TRAIN "--src none.de -o no/thing",
        TRAIN "--tgt short.en -o no/thing",
        TRAIN "--valid-src train.de --valid-tgt short.en -o no/thing",
        TRAIN "--valid-src none.de --valid-tgt train.en -o no/thing",
        TRAIN "--tokenizer train.de -o no/thing",
        TRAIN "--tokenizer . -o no/thing",
        TRAIN "--tokenizer none -o no/thing",
        TRAIN "--config none -o no/thing",
        TRAIN "--config train.de -o no/thing",
        TRAIN "-p tiny -o no/thing",
        TRAIN "--schedule linear -o no/thing",
        TRAIN "--resume -o no/thing",
        "echo >empty; " TRAIN "--src empty --tgt empty -o no/thing",
        "echo >empty; $A train translate --src empty --tgt empty -p tiny -o no/thing",
        "$A train translate --src train.de --tgt train.en -p tiny --vocabulary 20000 --byte-fallback "
        "--character-coverage 2 -o no/thing",
        "$A train embed -m none --pairs pairs.tsv -o no/thing",
        "$A train embed -m . --pairs none.tsv -o no/thing",
        "$A train embed -m . --pairs pairs.tsv --valid none.tsv -o no/thing",
        "$A train embed -m . --pairs pairs.tsv --rate 20 -o no/thing",
        "rm no/thing; cp train.de precious; " TRAIN "-o precious",
        "rm no/thing; " TRAIN "-o precious/below",
        "mkdir mine; echo mine >mine/config.json; " TRAIN "--tgt short.en -o mine",
    };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const int code = tool(starts[i]);
        if ((code != 1 && code != 2) || !strstr(tool_err, "attend: "))
            fail_msg("%s: exit code %d: %s", starts[i], code, tool_err);
        if (strstr(tool_err, "att_") || strstr(tool_err, "options."))
            fail_msg("%s: a name of C: %s", starts[i], tool_err);
        if (tool("ls -d no") != 2)
            fail_msg("%s leaves no", starts[i]);
    }
    assert_int_equal(tool("cmp precious train.de && ls -A mine && cat mine/config.json"), 0);
    assert_string_equal(tool_out, "config.json\nmine\n");
    assert_refused(TRAIN "-o precious", 1, "precious is a file, not a folder");
}

static void options_that_lack_or_contradict_others_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *options, *says;
        int code;
    } cases[] = {
        {"--patience 2", "--patience 2 needs --valid-src and --valid-tgt\n", 2},
        {"--vocabulary 8000", "--vocabulary does not go with --tokenizer", 2},
        {"--character-coverage 1", "--character-coverage does not go with --tokenizer", 2},
        {"--byte-fallback", "--byte-fallback does not go with --tokenizer", 2},
        {"--rate 0", "--rate: \"0\" is not a number greater than 0, up to 10\n", 2},
        {"--output ''", "--output is empty\n", 2},
        {"--tokenizer none", "--tokenizer: none: No such file or directory\n", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line, TRAIN "-o no %s", cases[i].options);
        assert_refused(line, cases[i].code, cases[i].says);
    }
    assert_refused("$A train embed -m . --pairs pairs.tsv --rate 0 -o no", 2,
                   "--rate: \"0\" is not a number greater than 0, up to 10\n");
    assert_int_equal(tool("ls -d no"), 2);
}

static void a_start_that_is_interrupted_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(tool("yes \"$(cat train.de)\" | head -c 40000000 >big; { while [ ! -e learns/lock ]; do :; done; "
                          "kill -TERM $$; } & exec $A train translate --src big --tgt big -p tiny -o learns"),
                     143);
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("rm big; ls -d learns"), 2);
}

static void the_start_says_what_there_is(void **state)
{
    (void)state;
    assert_int_equal(tool("{ cat train.de; echo; } >odd.de; { cat train.en; echo one; } >odd.en; " TRAIN
                          "--src odd.de --tgt odd.en --steps 3 -o said"),
                     0);
    assert_has(tool_err,
               "60 sentence pairs; left out: 1 with an empty side, 0 that are not UTF-8, 0 that are too long\n"
               "vocabulary of ");
    assert_has(tool_err, " parameters; 1 thread; 3 steps\n");
    assert_int_equal(tool("grep -c '\":' said/vocab.json"), 0);
    char line[64];
    snprintf(line, sizeof line, "vocabulary of %ld, ", strtol(tool_out, NULL, 10));
    assert_int_equal(tool("$A train translate --resume -o said --steps 5"), 0);
    assert_has(tool_err, line);
    assert_has(tool_err, " parameters; 1 thread; continues after step 3, 5 steps in all\n");
    assert_int_equal(tool(TRAIN "--minutes 0.001 -o brief"), 0);
    assert_has(tool_err, "; 0.001 minutes\n");
    assert_int_equal(tool(TRAIN "--minutes 1 --steps 1 -o single"), 0);
    assert_has(tool_err, "; 1 step or 1 minute\n");
    assert_int_equal(tool(TRAIN "--minutes 60 --steps 2 -o either"), 0);
    assert_has(tool_err, "; 2 steps or 60 minutes\n");
    assert_int_equal(tool("$A train embed -m . --pairs pairs.tsv --threads 2 -o pairs"), 0);
    assert_has(tool_err, "vocabulary of 40, 3088 parameters; 2 threads; 2 steps\n");
}

/* Returns the last number of the log that is called so. */
static double seconds_of(const char *folder)
{
    char line[128];
    snprintf(line, sizeof line, "tail -n 1 %s/log.jsonl", folder);
    assert_int_equal(tool(line), 0);
    json_t *v = line_json(0);
    const double seconds = number(v, "seconds");
    json_decref(v);
    return seconds;
}

/* Those of a process that is continued count, those between two do not. */
static void the_log_has_the_time_of_learning(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--minutes 0.02 --validate-every 1000000 -o timed"), 0);
    const double first = seconds_of("timed");
    assert_true(first >= 1.2);
    assert_int_equal(tool("sleep 1; $A train translate --resume -o timed"), 0); /* its time is over */
    assert_has(tool_err, "timed is a model that has finished its training, and stays as it is\n");
    assert_true(seconds_of("timed") == first);
    assert_int_equal(tool("$A train translate --resume -o timed --minutes 0.03"), 0);
    const double second = seconds_of("timed");
    assert_true(second >= 1.8 && second < first + 60);
}

/* ---- on a terminal */

/* Standard error of the line on a terminal with this number of columns, in tool_err. */
static void on_terminal(const char *line, int columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
    const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(end >= 0 && ioctl(end, TIOCSWINSZ, &size) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (dup2(end, 2) < 0 || chdir(tool_model.path))
            _exit(126);
        close(terminal);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(end);
    size_t used = 0;
    for (ssize_t n; used < sizeof tool_err - 1 &&
                    (n = read(terminal, tool_err + used, sizeof tool_err - 1 - used)) > 0;) /* an error at its end */
        used += (size_t)n;
    tool_err[used] = '\0';
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(terminal);
    if (status)
        fail_msg("status %d: %s", status, tool_err);
}

/* Returns the widest line in columns: characters, but not those of escape sequences. */
static int widest(const char *text)
{
    int most = 0, n = 0;
    for (const char *p = text; *p; p++) {
        if (!strncmp(p, "\033[K", 3))
            p += 2;
        else if (*p == '\n' || *p == '\r')
            n = 0;
        else
            n += (*p & 0xC0) != 0x80;
        most = n > most ? n : most;
    }
    return most;
}

static void step_and_loss_are_on_the_screen_from_the_start(void **state)
{
    (void)state;
    on_terminal(TRAIN "--minutes 0.02 --validate-every 1000000 -o shown", 80);
    assert_has(tool_err, "0.02 minutes\r\n\r\033[Kstep 0"); /* before the first step, which may take long */
    const char *line = strstr(tool_err, ", loss ");
    assert_non_null(line);
    assert_has(line, " tokens/s  [");
    assert_has(line, ":00:0");
    char *validated = strstr(tool_err, ", epoch ");
    assert_true(validated && line < validated);
    *validated = '\0';
    assert_true(widest(tool_err) <= 78); /* a line that wraps is not cleared */
}

static void the_line_stays_after_a_validation(void **state)
{
    (void)state;
    on_terminal(TRAIN "--minutes 0.02 --validate-every 20 -o stays", 80);
    const char *validated = strstr(tool_err, ", epoch ");
    assert_non_null(validated);
    assert_has(validated, "\r\033[Kstep ");
}

static void samples_are_cut_at_a_line(void **state)
{
    (void)state;
    const char *line = "yes 'eins zwei' | head -40 | tr '\\n' ' ' >long.de; cp long.de long.en; " TRAIN
                       "--valid-src long.de --valid-tgt long.en --steps 2 -o cut 2>err; "
                       "sed '/^  /!d' err >&2";
    assert_int_equal(tool(line), 0);
    assert_int_equal(widest(tool_err), 78);
    assert_has(tool_err, "\xE2\x80\xA6\n");
    on_terminal("rm -rf cut; " TRAIN "--valid-src long.de --valid-tgt long.en --steps 2 -o cut", 50);
    char *begin = strstr(tool_err, "  eins zwei"), *end = begin ? strstr(begin, "step 2,") : NULL;
    assert_non_null(end);
    *end = '\0';
    assert_int_equal(widest(begin), 50);
    assert_has(begin, "\xE2\x80\xA6\r\n");
}

/* ---- its log as a picture */

static void a_folder_is_plotted_and_the_losses_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *options, *says;
    } cases[] = {{"", "with dropout and label smoothing\n"},
                 {"--dropout 0", "with label smoothing\n"},
                 {"--smoothing 0", "with dropout\n"},
                 {"--dropout 0 --smoothing 0", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "rm -rf run.1; " TRAIN VALID "--steps 4 --validate-every 2 %s -o run.1 && $A plot run.1",
                 cases[i].options);
        assert_int_equal(tool(line), 0);
        if (cases[i].says)
            assert_has(tool_out, cases[i].says);
        assert_int_equal(count(tool_out, "valid_loss may be lower than loss, which is "), cases[i].says != NULL);
    }
    assert_int_equal(tool("$A plot run.1/log.jsonl; cd run.1; $A plot log.jsonl"), 0);
    assert_int_equal(count(tool_out, "may be lower"), 0);
    assert_int_equal(tool("rm -rf run.1; " TRAIN VALID "--steps 4 --validate-every 2 -o run.1 && $A plot run.1/ -o -"),
                     0);
    assert_has(tool_out, ">valid_loss may be lower than loss, which is with dropout and label smoothing</text>");
    assert_int_equal(tool("$A plot run.1/log.jsonl; cd run.1; $A plot log.jsonl"), 0);
    assert_int_equal(count(tool_out, "may be lower"), 2);
    assert_int_equal(tool("cp -r run.1 run.2; $A plot run.1/ run.2 -o -"), 0);
    assert_has(tool_out, ">run.1: loss</text>");
    assert_has(tool_out, ">run.2: loss</text>");
    assert_int_equal(tool("$A plot -y loss run.1"), 0); /* one loss alone needs no explanation */
    assert_int_equal(count(tool_out, "may be lower"), 0);
    assert_refused("$A plot elsewhere run.1", 1, "elsewhere: No such file");
    assert_refused("mkdir bare; $A plot bare", 1, "bare/log.jsonl: No such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_that_is_refused_leaves_nothing),
        cmocka_unit_test(options_that_lack_or_contradict_others_are_named),
        cmocka_unit_test(a_start_that_is_interrupted_leaves_nothing),
        cmocka_unit_test(the_start_says_what_there_is),
        cmocka_unit_test(the_log_has_the_time_of_learning),
        cmocka_unit_test(step_and_loss_are_on_the_screen_from_the_start),
        cmocka_unit_test(the_line_stays_after_a_validation),
        cmocka_unit_test(samples_are_cut_at_a_line),
        cmocka_unit_test(a_folder_is_plotted_and_the_losses_are_explained),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
