/* The chapters are a program of their own, attend-explain, which `attend explain` becomes. */
#include "fixtures/check.h"
#include "fixtures/tool.h"

/* $B, in the folder bare, is the tool without that program; $S, in the folder scripted, has a script in its place. */
static int set_up(void **state)
{
    const int code = tool_setup(state);
    char path[256];
    snprintf(path, sizeof path, "%s/bare/attend", tool_model.path);
    setenv("B", path, 1);
    snprintf(path, sizeof path, "%s/scripted/attend", tool_model.path);
    setenv("S", path, 1);
    return code || tool("mkdir bare scripted && cp $A bare && cp $A scripted && cat >scripted/attend-explain <<'END'\n"
                        "#!/bin/sh\n"
                        "ls /proc/self/fd && grep SigBlk /proc/self/status || exit\n"
                        "echo \"$0\" \"$*\" >&2\n"
                        "exit 42\n"
                        "END\n"
                        "chmod +x scripted/attend-explain");
}

static void without_it_everything_else_is_there(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof path,
             "attend: \"attend explain\" is the program attend-explain, which is neither %s-explain nor ", getenv("B"));
    assert_refused("$B explain softmax", 1, path);
    assert_has(tool_err, "; install attend again, with all its programs");
    assert_refused("$B explain", 1, path);
    assert_refused("$B explain --langs en", 2, "there is no option \"--langs\"; did you mean \"--lang\"?");
    assert_refused("$B explain softmax --svg o/p.svg", 1, "there is no folder o");
    assert_int_equal(
        tool("says() { $1 help explain && $1 explain --help && $1 help --completion bash && $1 help "
             "--completion fish && mkdir man && $1 help --man-folder man && cat man/attend-explain.1 && rm "
             "-r man; }; says $A >whole && says $B >alone && cmp whole alone"),
        0);
    assert_int_equal(tool("$B help --completion bash | grep -q ' general-layer '"), 0);
    assert_int_equal(tool("$B info"), 0);
}

static void it_is_beside_the_file_of_the_tool_and_not_where_names_point(void **state)
{
    (void)state;
    assert_refused("cd scripted; PATH=$PWD:.:$PATH $B explain", 1, "which is neither ");
    assert_refused("bash -c 'exec -a $S $B explain'", 1, "which is neither ");
    assert_refused("cd scripted; ln -s $B link; ./link explain", 1, "which is neither ");
    assert_int_equal(tool("cd bare; ln -s ../scripted/attend link; ./link explain"), 42);
    assert_int_equal(tool("cd bare; PATH=../scripted:$PATH; attend explain"), 42);
    assert_int_equal(tool("cd bare; bash -c 'exec -a $B $S explain'"), 42);
    assert_int_equal(tool("cd bare; ln -s $A real; ./real explain simplified"), 0);
    assert_has(tool_out, "\n3  ");
    assert_refused("chmod -x scripted/attend-explain; $S explain; c=$?; chmod +x scripted/attend-explain; exit $c", 1,
                   "scripted/attend-explain: Permission denied");
}

/* Descriptors and blocked signals are those that a command has which the shell starts itself. */
static void it_starts_as_if_the_shell_had_started_it(void **state)
{
    (void)state;
    char calm[sizeof tool_err], call[512];
    static const char *const wraps[] = {"%s", "%s <&-", "ulimit -s 256; %s", "trap '' INT; %s </dev/null"};
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++) {
        snprintf(call, sizeof call, wraps[i], "scripted/attend-explain");
        assert_int_equal(tool(call), 42);
        strcpy(calm, tool_out);
        snprintf(call, sizeof call, wraps[i], "$S explain softmax --lang ja -- '--two words'");
        if (i == 0)
            assert_refused(call, 2, "\"--two words\" is one argument too many");
        snprintf(call, sizeof call, wraps[i], "$S explain 'two words' --lang ja --query 1");
        assert_int_equal(tool(call), 42);
        if (strcmp(calm, tool_out) != 0 && !strstr(wraps[i], "<&-"))
            fail_msg("%s: %s, but the shell starts it with %s", call, tool_out, calm);
        snprintf(call, sizeof call, "%s-explain --lang ja --query 1 two words\n", getenv("S"));
        assert_string_equal(tool_err, call);
    }
}

/* A process that waits for the tool waits for the program, because there is no second process. */
static void it_is_the_same_process(void **state)
{
    (void)state;
    assert_int_equal(tool("printf '#!/bin/sh\\necho $$\\n' >scripted/attend-explain; sh -c 'echo $$; exec $S explain' "
                          ">ids; [ $(sort -u ids | wc -l) = 1 ] && [ $(wc -l <ids) = 2 ]"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_it_everything_else_is_there),
        cmocka_unit_test(it_is_beside_the_file_of_the_tool_and_not_where_names_point),
        cmocka_unit_test(it_starts_as_if_the_shell_had_started_it),
        cmocka_unit_test(it_is_the_same_process),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
