/* Every reader of numbers takes the smallest and the largest ones, or refuses them with a sentence. */
#include "cli/base/command.h"
#include "fixtures/tool.h"

#include <math.h>

const cli_command *const cli_commands[] = {NULL}; /* help would list them */

static const char *const texts[] = {
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1",
    "-1",
    "1.5",
    "5e-324",
    "-5e-324",
    "2.2250738585072014e-308",
    "1e-400",
    "1e-45",
    "1e-7",
    "16777217",
    "9007199254740993",
    "1e15",
    "-1e15",
    "1.0000001e15",
    "1e38",
    "3.5e38",
    "1e100",
    "1e308",
    "-1e308",
    "1e309",
    "-1e309",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "1e99999999999",
    "1e-99999999999",
    ("0."
     "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "1"),
    "nan",
    "-nan",
    "NaN",
    "inf",
    "-inf",
    "infinity",
    "0x",
    "0x1p-1074",
    "0x1p1024",
    "+",
    "-",
    ".",
    "e5",
    "1e",
    "--1",
    "",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void options_take_what_is_in_their_range_and_refuse_the_rest(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0, 1024}, {1, 1000000}, {-100, 100},           {0.5, 1},      {0, 0.99},
                                       {0, 1e18}, {1e-9, 1e9},  {-INFINITY, INFINITY}, {0, INFINITY}, {-9e15, 9e15}};
    int taken = 0;
    const int kept = dup(STDERR_FILENO), quiet = open("/dev/null", O_WRONLY);
    assert_int_equal(dup2(quiet, STDERR_FILENO), STDERR_FILENO); /* it says a thousand sentences */
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        for (int i = 0; i < TEXTS; i++) {
            int64_t whole = 7;
            double real = 7;
            const cli_option of[] = {
                {"whole", 0, "N", .integer = &whole, .min = ranges[r][0], .max = ranges[r][1]},
                {"real", 0, "X", .number = &real, .min = ranges[r][0], .max = ranges[r][1]},
            };
            const int code[] = {cli_option_set(&of[0], "--whole", texts[i]),
                                cli_option_set(&of[1], "--real", texts[i])};
            assert_true(code[0] == CLI_DONE ? (double)whole >= of[0].min && (double)whole <= of[0].max : whole == 7);
            assert_true(code[1] == CLI_DONE ? real >= of[1].min && real <= of[1].max && isfinite(real) : real == 7);
            assert_true((code[0] == CLI_DONE || code[0] == CLI_MISUSE) &&
                        (code[1] == CLI_DONE || code[1] == CLI_MISUSE));
            taken += (code[0] == CLI_DONE) + (code[1] == CLI_DONE);
        }
    dup2(kept, STDERR_FILENO);
    close(kept), close(quiet);
    assert_true(taken > 100);
}

/* One sentence where it fails, and nothing that is not a number where it does not. */
static void assert_done_or_told(const char *line, bool json)
{
    const int code = tool(line);
    if (code == 0 && json && (strstr(tool_out, "nan") || strstr(tool_out, "inf")))
        fail_msg("%s: %s", line, tool_out);
    const int notes = count(tool_err, "was read as a heading"); /* before the error of another line */
    if (code == 0 || (code < 3 && strncmp(tool_err, "attend: ", 8) == 0 && count(tool_err, "\n") == 1 + notes))
        return;
    fail_msg("%s: exit code %d: %s", line, code, tool_err);
}

static void vectors_of_any_size_are_explained_or_refused(void **state)
{
    (void)state;
    static const char *const chapters[] = {"simplified", "softmax",   "causal",        "dropout",
                                           "multi-head", "positions", "general-layer", "scores"};
    for (int i = 0; i < TEXTS; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "printf 'sea %s 0\\nlake %s %s\\nstone 0 -1\\n' >v; timeout -s KILL 60 $A explain %s --input v",
                 texts[i], texts[(i + 7) % TEXTS], texts[i], chapters[i % 8]);
        assert_done_or_told(line, false);
    }
}

static void scores_of_any_size_are_correlated_or_refused(void **state)
{
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        char line[640];
        snprintf(line, sizeof line,
                 "printf 'a\\tb\\t%s\\nc\\td\\t%s\\ne\\tf\\t1\\n' >p; $A similarity -m $D --pairs p --gold --json",
                 texts[i], texts[(i + 3) % TEXTS]);
        assert_done_or_told(line, true);
        for (int k = 0; tool_err[0] == '\0' && k < 4; k++)
            json_decref(line_json(k));
    }
}

static void shapes_of_any_size_are_measured_or_refused(void **state)
{
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "echo '{\"tq\": %s, \"dim\": 4, \"repeat\": 1, \"dropout\": %s}' | "
                 "timeout -s KILL 60 $A bench attention --shapes - --threads 1 --seconds 0 --no-verify --json",
                 strlen(texts[i]) && strlen(texts[i]) < 3 ? texts[i] : "3", texts[i]);
        assert_done_or_told(line, true);
        snprintf(line, sizeof line,
                 "printf '\\223NUMPY\\1\\0\\166\\0%%-117s\\n' \"{'descr': '<f4', 'fortran_order': False, "
                 "'shape': (%s, %s), }\" >n.npy; printf 'abcdabcdabcd' >>n.npy; echo a >in; $A search -m $D -c in -i "
                 "n.npy a",
                 texts[i], texts[(i + 1) % TEXTS]);
        assert_refused(line, 1, "n.npy: ");
    }
}

static void terminals_of_any_width_are_written_to(void **state)
{
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        char line[256];
        snprintf(line, sizeof line, "COLUMNS=%s $A attention -m $D 'a b c'", texts[i]);
        assert_int_equal(tool(line), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_take_what_is_in_their_range_and_refuse_the_rest),
        cmocka_unit_test(vectors_of_any_size_are_explained_or_refused),
        cmocka_unit_test(scores_of_any_size_are_correlated_or_refused),
        cmocka_unit_test(shapes_of_any_size_are_measured_or_refused),
        cmocka_unit_test(terminals_of_any_width_are_written_to),
    };
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
