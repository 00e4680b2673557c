/* Whichever allocation fails, of the tool's own, its libraries' or jansson's: one sentence and exit code 1, or the
 * result is as it is always. Never a crash, no part of a result for all of it, and no
 * temporary file that is left. */
// labels: long
#include "fixtures/captioner.h"
#include "fixtures/check.h"
#include "fixtures/recommender_tool.h"
#include "fixtures/tiny_gguf.h"
#include "fixtures/translator_tool.h"
#include "fixtures/vision_tool.h"

#include <dirent.h>

#ifdef FAIL_MALLOC /* tests/preload/fail_malloc.c, built; not with a sanitizer, which has its own malloc */
#define PRELOAD "LD_PRELOAD=" FAIL_MALLOC " FAIL_MALLOC_HIT=hit FAIL_MALLOC_AT=%ld "
#else
#define PRELOAD "%ld"
#endif

static int set_up(void **state)
{
    char language[4096];
    if (!realpath("tests/golden/tiny_llama", language))
        return 1;
    setenv("L", language, 1);
    const int code = translator_setup(state);
    vision_setup();
    shop_setup();
    return code ||
           tool("printf 'a b\\nc d e\\n\\nf\\n' >in; printf 'a\\tb c\\t1\\nd e\\tf\\t2\\na\\te\\t0.5\\n' >pairs; "
                "printf 'Ein Hund\\nthe table\\n' >lines; printf 'sea 1 0\\nlake 0.8 0.1\\nstone 0 1\\n' >words; "
                "{ echo a; yes 'b c'; } | head -n 100 >hundred; "
                "$A embed -m $D --precision int8 --format npy -o i8.npy hundred; "
                "$A embed -m $D --format npy -o i.npy in; i=0; while [ $i -lt 8 ]; do "
                "echo '{\"step\": '$i', \"loss\": 1.23456789012345678901234, \"a_long_name_for_a_number\": \"x\"}'; "
                "i=$((i+1)); done >log");
}

/* Returns the path of a file in the tool's folder. */
static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", tool_model.path, name);
    return path;
}

/* Runs `command`, which may write a file `o`, with its n-th allocation failing; *hit: it had as many. */
static int run_failing(const char *command, long n, bool *hit)
{
    char line[512];
    unlink(path_of("hit"));
    unlink(path_of("o"));
    snprintf(line, sizeof line, PRELOAD "%s", n, command);
    const int code = tool(line);
    if (access(path_of("o"), F_OK) == 0)
        tool_bytes = tool_read(path_of("o"), tool_out, sizeof tool_out);
    *hit = access(path_of("hit"), F_OK) == 0;
    return code;
}

/* Returns whether there is a file or folder with a temporary name. */
static bool has_leftovers(void)
{
    bool found = false;
    DIR *d = opendir(tool_model.path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        found = found || strstr(e->d_name, "unfinished");
    closedir(d);
    return found;
}

/* As a calm run: the same output. Else a sentence that says why, and no file o: `out` and `code` are those of a calm
 * run. */
static void check(const char *command, long n, int code, int calm_code, const char *out)
{
    const bool same = code == calm_code && strcmp(tool_out, out) == 0;
    const bool told = code == 1 && strncmp(tool_err, "attend: ", 8) == 0 && count(tool_err, "\n") == 1 &&
                      (strstr(tool_err, "memory") || strstr(tool_err, "the system gave only"));
    if (!same && (!told || access(path_of("o"), F_OK) == 0))
        fail_msg("%s, allocation %ld: exit code %d, \"%s\", %zu bytes of output", command, n, code, tool_err,
                 tool_bytes);
    if (has_leftovers())
        fail_msg("%s, allocation %ld: an unfinished file or folder is left", command, n);
}

/* Each allocation by other callers than those before, and some of those in a loop: see tests/preload/fail_malloc.c. */
static void check_all(const char *command)
{
#ifndef FAIL_MALLOC
    skip();
#endif
    static char calm[sizeof tool_out];
    bool hit;
    setenv("FAIL_MALLOC_LIST", "places", 1);
    const int code = run_failing(command, 0, &hit);
    unsetenv("FAIL_MALLOC_LIST");
    assert_false(hit);
    strcpy(calm, tool_out);
    FILE *places = fopen(path_of("places"), "r");
    assert_non_null(places);
    long n, hits = 0;
    for (; fscanf(places, "%ld", &n) == 1; hits += hit)
        check(command, n, run_failing(command, n, &hit), code, calm);
    fclose(places);
    assert_true(hits > 4); /* the preloaded library counts: the shortest command has some nine, by machine */
}

static void a_model_is_opened_or_not(void **state)
{
    (void)state;
    check_all("$A embed -m $D -t 1 in");
    check_all("$A translate -m $T -t 1 -b 2 --json -a o lines");
}

static void work_on_a_model_is_done_or_not(void **state)
{
    (void)state;
    check_all("$A embed -m $D -t 1 --format npy -o o in");
    check_all("$A search -m $D -t 1 -c in -k 2 a");
    check_all("$A search -m $D -t 1 -c in -i i.npy --json a");
    check_all("$A embed -m $D -t 1 --precision int8 --format sqlite-vec -o o hundred");
    check_all("$A search -m $D -t 1 -c hundred -i i8.npy --json a");
    check_all("$A search -m $D -t 1 -c hundred --precision ubinary -k 1 a");
    check_all("$A similarity -m $D -t 1 a 'b c'");
    check_all("$A similarity -m $D -t 1 -p pairs --gold --json");
    check_all("$A tokenize -m $D in");
    check_all("$A attention -m $D -t 1 --svg o 'a b'");
    check_all("$A attention -m $L -t 1 --heads --svg o bdcab");
    check_all("$A attention -m $L -t 1 --hide 1,2 --zero 0.1 --logit-lens bdcab");
    check_all("$A attention -m $T -t 1 --target a --hide 0 --json a");
    check_all("$A generate -m $L -t 1 -n 2 --json --stop q --lookup 2 bdcab");
    assert_int_equal(tool("echo t >say; echo '[{\"role\": \"user\", \"content\": \"b\"}, {\"role\": \"assistant\", "
                          "\"content\": \"d\"}]' >said"),
                     0);
    check_all("$A chat -m $L -t 1 -n 8 --template mistral-tekken --load said --stop a --json <say");
}

static void images_are_read_or_not(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir photos; cp dot.png photos/a.png; cp $G/gray.jpg photos/b.jpg"), 0);
    check_all("$A classify -m $V -t 1 --json dot.png");
    check_all("$A classify -m $V -t 1 --attention o $G/gray.jpg");
    check_all("$A attention -m $V -t 1 --layer 1 --svg o dot.png");
    check_all("$A embed -m $V -t 1 -o o photos");
    check_all("$A search -m $V -t 1 -c photos dot.png");
    check_all("$A info -m $V -t 1");
    assert_int_equal(tool("mkdir scans scans/2020; cp $G/planes.tif $G/cmyk.jpg scans; cp $G/jpeg.tif scans/2020"), 0);
    check_all("$A classify -m $V -t 1 --top 1 scans");
}

static void captions_are_written_or_not(void **state)
{
    assert_int_equal(open_context(state), 0);
    const test_folder captioner = captioner_folder(CAPTIONER_GRU, false);
    setenv("C", captioner.path, 1);
    assert_int_equal(tool("mkdir two; cp dot.png two/a.png; cp $G/gray.jpg two/b.png; "
                          "printf 'a.png\\ta red square\\nb.png\\ta green one\\n' >captions; "
                          "printf 'a.png\\nb.png\\n' >list"),
                     0);
    check_all("$A caption -m $C -t 1 -n 2 --json two");
    check_all("$A caption -m $C -t 1 --attention o dot.png >/dev/null");
    check_all("$A attention -m $C -t 1 --target 'red square' --svg o dot.png");
    check_all("$A evaluate caption -m $C -t 1 -d captions -i two -r --train-list list >/dev/null");
    folder_remove(&captioner);
    close_context(state);
}

static void items_are_recommended_or_not(void **state)
{
    (void)state;
    char kinds[512] = "";
    for (int i = 0; i < SHOP_ITEMS; i++)
        snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s\tkind %d\n", shop_ids[i], i % 3);
    folder_write(&tool_model, "kinds", kinds);
    assert_int_equal(tool("printf 'apple\\tA red apple\\nfig\\tFresh figs\\n' >titles; printf 'pear\\nfig\\n' >some"),
                     0);
    check_all("$A recommend -m $R -t 1 --json --item-texts titles --history fig,pear");
    check_all("$A recommend -m $R -t 1 -d log.tsv --user ann --allow some --attention o >/dev/null");
    check_all("$A recommend -m $R -t 1 --similar fig");
    check_all("$A recommend -m $R -t 1 --all-items -k 2 -o o");
    check_all("$A recommend -m $R -t 1 --history fig,pear --diversity 0.5 --new-share 0.5 --max-per-category 1 "
              "--categories kinds");
    check_all("$A recommend -m $R -t 1 --vectors o");
    check_all("$A recommend -m $R -t 1 -d log.tsv --user ann --vectors o --vector-format tsv");
    check_all("$A evaluate recommend -m $R -t 1 -d log.tsv --json");
    check_all("$A info -m $R -t 1");
}

/* After a command that failed; what one that did not has written is removed for the next. */
#define AND_NOTHING_IS_LEFT                                                                                            \
    "; c=$?; case $c$(echo new*) in 0* | *'new*') ;; *) echo left >&2 ;; esac; rm -rf new*; exit $c"

static void a_model_is_converted_or_not(void **state)
{
    (void)state;
    const test_folder weights = tiny_llama_folder(&tiny_llamas[0], NULL);
    tiny_gguf_write(&weights, "m.gguf", &tiny_llamas[0], NULL);
    setenv("W", weights.path, 1);
    assert_int_equal(tool("mv $W/m.gguf ."), 0);
    folder_remove(&weights);
    check_all("$A convert m.gguf -t 1 -o new" AND_NOTHING_IS_LEFT);
    check_all("$A convert m.gguf -t 1 -o new.gguf" AND_NOTHING_IS_LEFT);
}

static void a_probe_is_trained_or_not(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir -p two/a two/b; cp dot.png two/a; cp $G/gray.jpg two/b; "
                          "$A train classify --head knn -m $V -t 1 --data two --valid-share 0 -o probe"),
                     0);
    check_all("$A train classify --head linear --c 1 -m $V -t 1 --data two --valid-share 0 -o new 2>told; c=$?; "
              "grep -e memory -e 'gave only' told >&2; (exit $c)" AND_NOTHING_IS_LEFT);
    check_all("$A classify -m probe -t 1 --json dot.png");
}

static void work_without_a_model_is_done_or_not(void **state)
{
    (void)state;
    check_all("$A vocab -s 30 -o o --symbols x,y in");
    check_all("$A bleu --by-length --json in in");
    check_all("$A plot log");
    check_all("$A plot log -o o");
    check_all("$A explain softmax --input words");
    check_all("$A info -t 1 --json");
    check_all("$A embed -m nix");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_opened_or_not),     cmocka_unit_test(work_on_a_model_is_done_or_not),
        cmocka_unit_test(images_are_read_or_not),       cmocka_unit_test(captions_are_written_or_not),
        cmocka_unit_test(items_are_recommended_or_not), cmocka_unit_test(a_model_is_converted_or_not),
        cmocka_unit_test(a_probe_is_trained_or_not),    cmocka_unit_test(work_without_a_model_is_done_or_not),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
