/* attend plot draws what logs say, and says what is wrong with them. */
#include "fixtures/check.h"
#include "fixtures/tool.h"

static const char make_logs[] = "{ echo '{\"event\": \"begin\", \"seed\": 1}'; i=1; while [ $i -le 50 ]; do "
                                "echo '{\"step\": '$i', \"loss\": '$((90 - i))', \"lr\": 0.'$i'}'; i=$((i+1)); done; "
                                "echo; echo '{\"step\": 50, \"valid_loss\": 45, \"bleu\": 12.5}'; "
                                "echo '{\"step\": 51, \"loss\": null}'; } >a.jsonl; "
                                "sed 's/loss/bleu/; s/bleu\": 12/loss\": 12/' a.jsonl >b.jsonl";

static void a_picture_has_a_panel_for_each_quantity(void **state)
{
    (void)state;
    assert_int_equal(tool(make_logs), 0);
    assert_int_equal(tool("$A plot a.jsonl -o a.svg && cat a.svg"), 0);
    assert_has(tool_out, "<title>loss, bleu by step</title>");
    assert_has(tool_out, ">valid_loss</text>");
    assert_has(tool_out, "<title>valid_loss, step 50: loss 45</title>");
    assert_null(strstr(tool_out, "lr"));
    assert_int_equal(count(tool_out, "<polyline "), 3 + 2 /* in the legend */);
    assert_int_equal(tool("$A plot a.jsonl b.jsonl --title 'T & t' -o - >ab.svg; cat ab.svg"), 0);
    assert_has(tool_out, "<title>T &amp; t</title>");
    assert_has(tool_out, ">b: loss</text>");
    assert_has(tool_out, ">b</text>"); /* the panel has bleu alone */
    assert_int_equal(
        tool("mkdir c; cp a.jsonl c; $A plot -y lr c/a.jsonl a.jsonl -o - && ls -A | grep -c .unfinished-"), 1);
    assert_has(tool_out, ">c/a</text>");
    assert_has(tool_out, ">a</text>");
    assert_has(tool_out, "\n0\n");
}

static void a_sketch_is_printed_where_no_file_is_named(void **state)
{
    (void)state;
    assert_int_equal(tool("$A plot -y loss a.jsonl"), 0);
    assert_int_equal(count(tool_out, "\n"), 1 + 12 + 2);
    assert_has(tool_out, "\n        80 |");
    assert_has(tool_out, "  step\n");
    assert_int_equal(tool("cat a.jsonl | $A plot -x lr -y step,loss,bleu -"), 0);
    assert_int_equal(count(tool_out, "|"), 3 * 12 - 12); /* bleu has no lr */
}

/* Samples of 30 lines that are not all equal. */
static void intervals_of_bleu_are_drawn(void **state)
{
    (void)state;
    assert_int_equal(tool("i=0; while [ $i -lt 30 ]; do echo a b c d e $((i / 3)) f g; i=$((i+1)); done >r; "
                          "sed 's/1 f/x f/' r >h; $A bleu --by-length --confidence --json h r | "
                          "$A plot -x length -y bleu,chrf - -o -"),
                     0);
    assert_has(tool_out, " to 100)</title>");
    assert_has(tool_out, "<title>bleu, chrf by length</title>");
}

static void lines_that_are_no_numbers_are_told(void **state)
{
    (void)state;
    assert_refused("printf '\\n[1]\\n' >x; $A plot x", 1, "x: line 2 is not a JSON object");
    assert_refused("echo nothing >x; $A plot x", 1, "x: line 1 is not a JSON object");
    assert_refused("printf '{\"a\": 1}\\nno' >x; $A plot x", 1, "x: no line has the number \"step\"");
    assert_refused("$A plot /dev/null", 1, "/dev/null: no line has the number \"step\" (--x); the numbers there: none");
    assert_refused("$A plot -x epoch a.jsonl", 1,
                   "no line has the number \"epoch\" (--x); the numbers there: \"seed\", ");
    assert_refused("$A plot -y los a.jsonl", 1,
                   "has a number of los (--y); the numbers there: \"seed\", \"step\", \"loss\"");
    assert_refused("echo '{\"step\": 1, \"loss\": 1e200}' >x; $A plot x", 1, "x: line 1: a number is 1e+100 or more");
    assert_refused("$A plot missing", 1, "missing: No such file");
    assert_refused("$A plot a.jsonl -o none/a.svg", 1, "none/a.svg: No such file");
    assert_refused("$A plot a.jsonl >/dev/full", 1, "standard output: No space left");
    assert_refused("$A plot", 2, "FOLDER|FILE... is needed");
    assert_refused("$A plot -y loss,, a.jsonl", 2, "--y: \"loss,,\" has a name of no letters");
    assert_refused("$A plot -y a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a a.jsonl", 2, "--y: more than 16 names");
}

static void a_log_that_is_being_written_is_drawn(void **state)
{
    (void)state;
    assert_int_equal(tool("head -c 400 a.jsonl >cut; $A plot cut -o cut.svg && grep -q '<svg' cut.svg"), 0);
    assert_has(tool_err, "attend: cut: line 12, the last, is cut short and left out\n");
}

/* A disk that was full, a process that was killed in the middle of a line, a program that writes NaN. */
static void lines_that_are_broken_are_left_out_and_told_once(void **state)
{
    (void)state;
    static const char *const broken[] = {"{\"step\": 3, \"lo",
                                         "0}",
                                         "[3]",
                                         "NaN",
                                         "{\"step\": 3, \"loss\": NaN}",
                                         "\\377",
                                         "{\"step\": 3, \"loss\": 1e999}"};
    char line[512];
    assert_int_equal(tool("$A plot a.jsonl -o calm.svg"), 0);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        snprintf(line, sizeof line,
                 "{ head -n 9 a.jsonl; printf '%s\\n'; tail -n +10 a.jsonl; } >x; "
                 "$A plot x -o x.svg && cmp x.svg calm.svg",
                 broken[i]);
        assert_int_equal(tool(line), 0);
        assert_string_equal(tool_err, "attend: x: line 10 is not a JSON object and is left out\n");
    }
    assert_int_equal(tool("{ echo '{'; cat a.jsonl; echo 1; echo '{'; } >x; $A plot x a.jsonl -o x.svg"), 0);
    assert_string_equal(tool_err, "attend: x: 3 lines are not JSON objects and are left out, the first is line 1\n");
}

/* ---- numbers of any size */

static const char *const extremes[] = {"5e-324",
                                       "1e-323",
                                       "-5e-324",
                                       "2.2250738585072014e-308",
                                       "1e-300",
                                       "1e-101",
                                       "1e-100",
                                       "-1e-100",
                                       "1e99",
                                       "-1e99",
                                       "9.99e99",
                                       "-9.99e99",
                                       "0",
                                       "-0.0",
                                       "1e-9",
                                       "1",
                                       "1.0000000001",
                                       "9007199254740993",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "1e-50",
                                       "3e50",
                                       "123456789.123",
                                       "1E+5",
                                       "1e-400"};
enum { EXTREMES = sizeof extremes / sizeof *extremes };

static const char *extreme(uint64_t seed, int i) { return extremes[check_bits(seed, (uint64_t)i) % EXTREMES]; }

/* 200 logs of some such numbers, as a sketch and as a picture: all are drawn, within a second each, in numbers. */
static void numbers_of_any_size_are_drawn(void **state)
{
    (void)state;
    static const int lengths[] = {1, 2, 3, 5, 50};
    char command[256];
    for (int log = 0; log < 200; log += check_step(10)) {
        const int n = lengths[log % 5];
        FILE *f = folder_open(&tool_model, "extreme.jsonl");
        for (int i = 0; i < n; i++)
            fprintf(f, "{\"step\": %s, \"loss\": %s, \"loss_low\": %s, \"loss_high\": %s}\n",
                    extreme((uint64_t)log, 4 * i), extreme((uint64_t)log, 4 * i + 1), extreme((uint64_t)log, 4 * i + 2),
                    extreme((uint64_t)log, 4 * i + 3));
        fclose(f);
        snprintf(command, sizeof command, "timeout -s KILL 20 $A plot extreme.jsonl %s", log % 2 ? "-o -" : "");
        const int code = tool(command);
        if (code || strstr(tool_out, "nan") || strstr(tool_out, "inf"))
            fail_msg("log %d: exit code %d: %s", log, code, tool_err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_has_a_panel_for_each_quantity),
        cmocka_unit_test(a_sketch_is_printed_where_no_file_is_named),
        cmocka_unit_test(intervals_of_bleu_are_drawn),
        cmocka_unit_test(lines_that_are_no_numbers_are_told),
        cmocka_unit_test(a_log_that_is_being_written_is_drawn),
        cmocka_unit_test(lines_that_are_broken_are_left_out_and_told_once),
        cmocka_unit_test(numbers_of_any_size_are_drawn),
    };
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
