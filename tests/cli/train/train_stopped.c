/* A training that is stopped, killed, or out of disk continues to the same bits, of the model and of the log. */
// labels: long trains
#include "fixtures/check.h"
#include "fixtures/tool.h"
#include "fixtures/toy_texts.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

#define MODEL                                                                                                          \
    "$A train translate --src train.de --tgt train.en --config small.json --tokenizer pieces.spm --batch-tokens 150 "  \
    "--threads 1 "
#define TRAIN MODEL "--steps 5 --save-every 2 --validate-every 1 --average 2 "
#define SELDOM MODEL "--steps 7 --save-every 3 --validate-every 2 --average 3 "

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    tool_model = folder_new();
    toy_write(&tool_model, "train.de", "train.en", 1, 20);
    assert_int_equal(tool(SMALL_TRANSLATOR " && "
                                           "$A vocab --size 70 -n identity -o pieces.spm train.de train.en && " TRAIN
                                           "-o calm && " SELDOM "-o seldom"),
                     0);
    return 0;
}

/* ---- killed at a call */

/* Returns whether the call changes files. Messages do not count; of many consecutive writes to one file each 20th
 * counts. */
static bool changes_files(const struct __ptrace_syscall_info *call)
{
    static int writes;
    static const long calls[] = {
#ifdef SYS_rename
        SYS_rename,   SYS_unlink,    SYS_mkdir,
#endif
        SYS_pwrite64, SYS_renameat2, SYS_renameat, SYS_unlinkat, SYS_mkdirat, SYS_ftruncate};
    const long nr = (long)call->entry.nr;
    if (nr == SYS_write)
        return call->entry.args[0] > 2 && writes++ % 20 == 0;
    bool is = nr == SYS_openat && (call->entry.args[2] & (O_CREAT | O_TRUNC));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        is |= nr == calls[i];
    writes = is ? 0 : writes;
    return is;
}

/* Runs the line, which becomes one process, and sends it the signal before its n-th call that changes files. Returns
 * how many there were, up to that; 0: such calls cannot be seen here. */
static int run_until(const char *line, int n, int signal)
{
    int status, calls = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        if (chdir(tool_model.path) || ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(126);
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* which it does not do where it is watched */
        raise(SIGSTOP);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSTOPPED(status) || ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
        return 0;
    for (int given = 0; ptrace(calls < n ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, given) == 0;) {
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFSTOPPED(status))
            break;
        const bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
        given = is_call || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        struct __ptrace_syscall_info call;
        if (!is_call || ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof call, &call) <= 0 ||
            call.op != PTRACE_SYSCALL_INFO_ENTRY || !changes_files(&call) || ++calls < n)
            continue;
        kill(pid, signal);
        if (signal == SIGKILL) {
            assert_int_equal(waitpid(pid, &status, 0), pid);
            break;
        }
    }
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code != (calls == n ? 128 + signal : 0))
        fail_msg("before change %d of files: exit code %d", n, code);
    return calls;
}

/* At each step-th such call; then it continues, or starts again, and has what `calm` has. */
static void stop_and_go_on(const char *train, const char *calm, int signal, int step)
{
    char line[1024];
    snprintf(line, sizeof line, "exec %s -o traced", train);
    const int all = run_until(line, INT32_MAX, 0);
    if (all == 0)
        skip();
    assert_in_range(all, 20, 1000);
    for (int n = 1; n <= all; n += step) {
        snprintf(line, sizeof line, "rm -rf stopped; exec %s -o stopped", train);
        assert_int_equal(run_until(line, n, signal), n);
        snprintf(line, sizeof line,
                 "r=; ls stopped/checkpoint-*.safetensors >/dev/null 2>&1 && r=--resume; %s -o stopped $r", train);
        const int code = tool(line);
        if (code)
            fail_msg("stopped before change %d of %d: exit code %d: %s", n, all, code, tool_err);
        snprintf(line, sizeof line,
                 "cmp %s/model.safetensors stopped/model.safetensors && " SAME_LOG(
                     "%s/log.jsonl", "stopped/log.jsonl") "&& "
                                                          "ls -A %s >1 && ls -A stopped | diff 1 -",
                 calm, calm, calm);
        if (tool(line))
            fail_msg("stopped before change %d of %d: %s%s", n, all, tool_out, tool_err);
    }
    assert_int_equal(tool("rm -rf stopped traced"), 0);
}

static void a_training_that_is_killed_before_any_change_of_a_file_has_the_same_result(void **state)
{
    (void)state;
    stop_and_go_on(TRAIN, "calm", SIGKILL, check_step(9));
}

/* The checkpoint of the pause is not one of those that are averaged. */
static void a_training_that_is_told_to_stop_at_any_step_has_the_same_result(void **state)
{
    (void)state;
    stop_and_go_on(SELDOM, "seldom", SIGTERM, check_step(2) * 8);
}

/* One that a limit has stopped, too. */
static void a_training_that_goes_on_beyond_its_limit_has_the_same_result(void **state)
{
    (void)state;
    assert_int_equal(tool(SELDOM "--steps 4 --keep 3 -o longer && ls longer"), 0);
    assert_has(tool_out, "checkpoint-0000000004-pause.safetensors\n");
    assert_int_equal(
        tool(SELDOM "-o longer --keep 1 --resume && cmp seldom/model.safetensors longer/model.safetensors && " SAME_LOG(
            "seldom/log.jsonl", "longer/log.jsonl") "&& ls -A seldom >1 && ls -A longer | diff 1 -"),
        0);
}

static void patience_ends_where_it_would_have_without_a_pause(void **state)
{
    (void)state;
#define PATIENT                                                                                                        \
    MODEL "--valid-src train.de --valid-tgt train.en --rate 2 --warmup 0 --validate-every 1 --save-every 1 "           \
          "--patience 3 "
    assert_int_equal(tool(PATIENT "--steps 40 -o patient && tail -1 patient/log.jsonl"), 0);
    const int last = (int)strtol(tool_out + strlen("{\"step\": "), NULL, 10);
    assert_in_range(last, 4, 39);
    char line[1024];
    snprintf(line, sizeof line,
             PATIENT "--steps %d -o paused && " PATIENT "--steps 40 --resume -o paused && " PATIENT
                     "--steps 40 --resume -o paused && " SAME_LOG("patient/log.jsonl", "paused/log.jsonl"),
             last - 1);
    assert_int_equal(tool(line), 0);
#undef PATIENT
}

/* ---- the log */

/* Lines after the checkpoint are written again, and an incomplete line is cut off. */
static void a_log_that_was_cut_or_is_ahead_has_whole_lines_again(void **state)
{
    (void)state;
    static const char *const spoilt[] = {
        "printf '{\"step\": 5, \"epo' >>torn/log.jsonl",
        "printf '{\"step\": 4' >>torn/log.jsonl",
        "printf '{\"step\": 5}\\n{\"step\": 6}\\n{\"st' >>torn/log.jsonl",
        "head -c 5000 /dev/zero >>torn/log.jsonl",
        "printf '{\"step\": 99999999999999999999}\\n' >>torn/log.jsonl",
    };
    assert_int_equal(tool(TRAIN "--steps 4 -o whole"), 0);
    for (size_t i = 0; i < sizeof spoilt / sizeof spoilt[0]; i++) {
        char line[1024];
        snprintf(line, sizeof line,
                 "rm -rf torn; cp -r whole torn; %s; " TRAIN
                 "--resume -o torn && " SAME_LOG("calm/log.jsonl", "torn/log.jsonl") "&& cmp calm/model.safetensors "
                                                                                     "torn/model.safetensors",
                 spoilt[i]);
        if (tool(line))
            fail_msg("%s: %s%s", spoilt[i], tool_out, tool_err);
    }
}

static void a_log_that_cannot_be_written_ends_a_training_that_can_go_on(void **state)
{
    (void)state;
    for (int left = 0; left <= 10; left += 10) { /* bytes that fit: of a line, or of none */
        char line[1024];
        snprintf(line, sizeof line,
                 "rm -rf full; cp -r whole full; yes '{\"step\": 1}' | head -c $((4194304 - %d - $(wc -c "
                 "<whole/log.jsonl))) "
                 "| sed '$d' >more; { cat more; printf '%%*s\\n' $((4194304 - %d - 1 - $(wc -c <more) - "
                 "$(wc -c <whole/log.jsonl))) x; cat whole/log.jsonl; } >full/log.jsonl; cp full/log.jsonl before; "
                 "wc -c <before; ulimit -f 8192; trap '' XFSZ; " TRAIN "--resume -o full",
                 left, left);
        assert_int_equal(tool(line), 1);
        assert_int_equal(strtol(tool_out, NULL, 10), 4194304 - left);
        assert_has(tool_err, "attend: full/log.jsonl: File too large\n");
        assert_int_equal(count(tool_err, "attend: "), 1);
        assert_int_equal(tool("cmp before full/log.jsonl && ls full"), 0); /* whole lines */
        assert_has(tool_out, "checkpoint-0000000005-pause.safetensors\n");
        assert_int_equal(tool(TRAIN "--resume -o full && cmp calm/model.safetensors full/model.safetensors && "
                                    "tail -5 full/log.jsonl >tail && " SAME_LOG("calm/log.jsonl", "tail")),
                         0);
    }
}

/* ---- what others have put into the folder */

static void nothing_is_written_through_links_in_the_folder(void **state)
{
    (void)state;
    static const struct {
        const char *make, *says;
    } cases[] = {
        {"ln -s ../precious bad/lock", "bad: lock is a symbolic link, not a file that a training has made"},
        {"ln precious bad/lock", "bad: lock is something else, not a file that a training has made"},
        {"mkfifo bad/lock", "bad: lock is something else"},
        {"ln -s ../precious bad/log.jsonl", "bad/log.jsonl: is a symbolic link, not a file"},
        {"ln -s /dev/full bad/log.jsonl", "bad/log.jsonl: is a symbolic link, not a file"},
        {"ln precious bad/log.jsonl", "bad/log.jsonl: is a file with another name, too"},
        {"mkfifo bad/log.jsonl", "bad/log.jsonl: is something else, not a file"},
        {"mkdir bad/log.jsonl", "bad/log.jsonl: Is a directory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[1024];
        snprintf(line, sizeof line, "rm -rf bad; mkdir bad; echo precious >precious; %s; " TRAIN "-o bad",
                 cases[i].make);
        assert_refused(line, 1, cases[i].says);
        snprintf(line, sizeof line,
                 "rm -rf bad; cp -r whole bad; rm -f bad/lock bad/log.jsonl; %s; " TRAIN "--resume -o bad",
                 cases[i].make);
        assert_refused(line, 1, cases[i].says);
        assert_int_equal(tool("cat precious"), 0);
        assert_string_equal(tool_out, "precious\n");
    }
    assert_int_equal(tool("rm -rf bad; mkdir bad; for f in model.safetensors config.json source.spm vocab.json; do "
                          "ln -s ../precious bad/$f; done; ln -s bad there; " TRAIN "-o there && "
                          "cat precious; find bad -type l; cmp calm/model.safetensors bad/model.safetensors"),
                     0);
    assert_string_equal(tool_out, "precious\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_that_is_killed_before_any_change_of_a_file_has_the_same_result),
        cmocka_unit_test(a_training_that_is_told_to_stop_at_any_step_has_the_same_result),
        cmocka_unit_test(a_training_that_goes_on_beyond_its_limit_has_the_same_result),
        cmocka_unit_test(patience_ends_where_it_would_have_without_a_pause),
        cmocka_unit_test(a_log_that_was_cut_or_is_ahead_has_whole_lines_again),
        cmocka_unit_test(a_log_that_cannot_be_written_ends_a_training_that_can_go_on),
        cmocka_unit_test(nothing_is_written_through_links_in_the_folder),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
