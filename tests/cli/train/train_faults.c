/* attend train, where a call of the operating system fails once, or the process is killed at it: what follows has the
 * bits of a run without the fault. */
// labels: trains
#include "fixtures/five_trainings.h"

#include <errno.h>

#ifdef FAIL_CALL /* tests/preload/fail_call.c, built; not with a sanitizer, which must be the first of all libraries   \
                  */
#define PRELOAD "LD_PRELOAD=" FAIL_CALL " FAIL_CALL_HIT=hit "
static void need_preload(void) {}
#else
#define PRELOAD ""
static void need_preload(void) { skip(); }
#endif

/* ---- a checkpoint that cannot be written ------------------------------------------------- */

#define TRANSLATE TRAIN_TRANSLATE "--steps 4 --save-every 2 "
#define EMBED TRAIN_EMBED "--epochs 2 --save-every 2 "
#define CLASSIFY TRAIN_CLASSIFY "--epochs 2 --save-every 2 "
#define CAPTION TRAIN_CAPTION "--valid-list valid.txt --presence-epochs 1 --epochs 2 --save-every 2 "
#define RECOMMEND TRAIN_RECOMMEND "--epochs 2 --save-every 2 "

/* One call that writes the second step's checkpoint fails. In the first training each call fails in turn. */
static void a_checkpoint_that_could_not_be_written_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *train;
        bool all;
    } cases[] = {
        {TRANSLATE "--average 2 --validate-every 1", true},
        {TRANSLATE "--average 3 --validate-every 3 --valid-src train.de --valid-tgt train.en", false},
        {TRANSLATE "--validate-every 2", false},
        {EMBED "--validate-every 2 --valid pairs.tsv", false},
        {EMBED "--validate-every 3", false},
        {CLASSIFY "--average 2 --validate-every 2", false},
        {CLASSIFY "--average 2 --validate-every 3", false},
        {CAPTION "--validate-every 2", false},
        {CAPTION "--validate-every 1", false},
        {RECOMMEND "--validate-every 2", false},
        {RECOMMEND "--validate-every 3", false},
    };
    char line[2048];
    need_preload();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(line, sizeof line, "rm -rf calm; %s -o calm", cases[i].train);
        assert_int_equal(tool(line), 0);
        bool hit = true;
        for (int n = cases[i].all ? 1 : 3; hit && n < 100; n += cases[i].all ? 1 : 100) {
            snprintf(line, sizeof line,
                     "rm -rf hit failed; env " PRELOAD "FAIL_CALL_IN=checkpoint-0000000002 FAIL_CALL_AT=%d "
                     "FAIL_CALL_ERROR=%d %s -o failed",
                     n, n % 2 ? ENOSPC : EIO, cases[i].train);
            const int code = tool(line);
            hit = tool("test -e hit") == 0;
            if (code != hit)
                fail_msg("call %d: exit code %d: %s: %s", n, code, line, tool_err);
            snprintf(line, sizeof line, "set -- %s; $A train $3 --resume -o failed", cases[i].train);
            if (tool(line))
                fail_msg("call %d: %s: %s", n, line, tool_err);
            if (tool("cmp calm/model.safetensors failed/model.safetensors && ls -A calm >1 && ls -A failed | diff 1 -"
                     " && " SAME_LOG("calm/log.jsonl", "failed/log.jsonl")))
                fail_msg("call %d: %s: %s", n, cases[i].train, tool_out);
        }
    }
}

/* ---- a disk that is full at the start ------------------------------------------------------- */

/* Whichever file of the start cannot be written, nothing is left; the folder above may be new, too. */
static void a_start_on_a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    static const char *const trainings[] = {TRANSLATE, EMBED, CLASSIFY, CAPTION, RECOMMEND};
    static const char *const files[] = {"/training.json", "/log.jsonl", "/source.spm"};
    need_preload();
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++)
        for (size_t k = 0; k < 2 + (i == 0); k++) {
            char line[1024];
            snprintf(line, sizeof line,
                     "rm -rf hit no; env " PRELOAD "FAIL_CALL_IN=%s FAIL_CALL_AT=1 FAIL_CALL_ERROR=%d %s -o no/thing; "
                     "code=$?; test ! -e no || ls -R no; exit $code",
                     files[k], ENOSPC, trainings[i]);
            const int code = tool(line);
            if (code != 1 || *tool_out || !strstr(tool_err, "No space left on device"))
                fail_msg("%s: exit code %d: %s%s", line, code, tool_out, tool_err);
        }
}

/* ---- the limit of a shell (ulimit -f), whose signal ends programs without a word ------------ */

static void a_limit_of_files_is_a_sentence(void **state)
{
    (void)state;
    static const char *const lines[] = {"$A embed -m . --format npy -o o many", "$A embed -m . many >o",
                                        "$A vocab --size 70 -o o train.de train.en", "$A plot many.jsonl -o o.svg"};
    assert_int_equal(tool("yes a b | head -n 999 >many; i=0; while [ $i -lt 99 ]; do i=$((i + 1)); echo '{\"step\": "
                          "'$i', \"loss\": 2}'; done "
                          ">many.jsonl"),
                     0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[256];
        snprintf(line, sizeof line, "ulimit -f 4; %s", lines[i]);
        const int code = tool(line);
        if (code != 1 || !strstr(tool_err, "attend: ") ||
            (!strstr(tool_err, "File too large") && !strstr(tool_err, "not everything could be written")))
            fail_msg("%s: exit code %d: %s", line, code, tool_err);
    }
    assert_int_equal(
        tool("rm -f o; " TRANSLATE "--average 2 -o small && (ulimit -f 30; " TRANSLATE "--average 2 -o large)"), 1);
    assert_has(tool_err, "cannot be written: File too large\n");
    assert_int_equal(tool("$A train translate --resume -o large && cmp small/model.safetensors "
                          "large/model.safetensors"),
                     0);
}

/* ---- killed while the files of a model are replaced ---------------------------------------- */

/* The calls at which it is killed: of all that change a file of the folder each 61st; of those on settings each fifth.
 */
static const struct {
    const char *in;
    int step;
} kills[] = {{"shop", 61}, {".json", 5}};

/* Kills `train`, which works on the folder shop, at its n-th call of a kind. Returns its exit code. */
static int kill_at(const char *before, const char *train, size_t kind, int n)
{
    char line[2048];
    snprintf(line, sizeof line,
             "rm -rf hit shop; cp -r %s shop; env " PRELOAD "FAIL_CALL_IN=%s FAIL_CALL_AT=%d %s -o shop", before,
             kills[kind].in, n, train);
    const int code = tool(line);
    if (code != 0 && code != 137)
        fail_msg("%s: exit code %d: %s", line, code, tool_err);
    return code;
}

typedef struct replacement {
    const char *old, *new, *use;
} replacement;

static void check_replacement(const replacement *r)
{
    static char output[2][4096];
    const char *const trains[] = {r->old, r->new}, *const names[] = {"old", "new"};
    char line[2048], use[256];
    int opened = 0;
    for (int k = 0; k < 2; k++) {
        snprintf(use, sizeof use, r->use, names[k]);
        snprintf(line, sizeof line, "rm -rf %s; %s -o %s 2>err && %s", names[k], trains[k], names[k], use);
        assert_int_equal(tool(line), 0);
        snprintf(output[k], sizeof output[k], "%.4000s", tool_out);
    }
    assert_string_not_equal(output[0], output[1]);
    snprintf(use, sizeof use, r->use, "shop");
    for (size_t kind = 0; kind < 2; kind++)
        for (int n = 1, code = 137; code == 137; n += kills[kind].step) {
            code = kill_at("old", r->new, kind, n);
            const int used = tool(use);
            const bool is_new = used == 0 && !strcmp(tool_out, output[1]), is_old = !strcmp(tool_out, output[0]),
                       none = used == 1 && strstr(tool_err, " --resume -o shop\n");
            if (!(is_new || (code && (is_old || none))))
                fail_msg("killed at change %d: %s: %s%s", n, r->new, tool_out, tool_err);
            opened += is_new || is_old;
        }
    assert_true(opened > 1);
}

/* A folder with a model gets another one, by a new training: what is opened is one of both, or none. */
static void a_model_is_the_old_one_or_the_new_one_or_none(void **state)
{
    (void)state;
    static const replacement cases[] = {
        {TRANSLATE "--keep 0", TRANSLATE "--tokenizer other.spm --seed 2", "head -n 3 train.de | $A translate -m %s"},
        {CLASSIFY "--labels rows,columns,diagonals --keep 0", CLASSIFY "--labels up,down,across --dtype f16",
         "$A classify -m %s images/1.png"},
        {EMBED "--keep 0", EMBED "--seed 2", "echo a b | $A embed -m %s"},
        {CAPTION "--valid-list train.txt --train-list valid.txt --keep 0", CAPTION "--min-count 5 --max-words 5",
         "$A caption -m %s images/1.png"},
    };
    need_preload();
    assert_int_equal(tool("sed s/eins/sieben/g train.de >other.de; "
                          "$A vocab --size 70 -n identity -o other.spm other.de train.en"),
                     0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_replacement(&cases[i]);
}

/* The model with the new items replaces the old one; until then, and while it does so, there is the old one. */
static void a_recommender_that_learns_on_is_there_at_any_time(void **state)
{
    (void)state;
    static const char learns[] = "$A train recommend --resume --data grown.txt --epochs 3 --rate 0.01 --threads 1 ";
    char line[2048];
    need_preload();
    assert_int_equal(tool("sed 's/^u/v/; s/i4/new/' log.txt | cat log.txt - >grown.txt; " RECOMMEND
                          "--epochs 1 -o before && rm -rf calm; cp -r before calm"),
                     0);
    snprintf(line, sizeof line, "%s -o calm && ! cmp -s before/items.json calm/items.json", learns);
    assert_int_equal(tool(line), 0); /* it was replaced */
    for (size_t kind = 0; kind < 2; kind++)
        for (int n = 1, code = 137; code == 137; n += kills[kind].step) {
            code = kill_at("before", learns, kind, n);
            if (tool("$A recommend -m shop --history i1,i2"))
                fail_msg("killed at change %d: %s", n, tool_err);
            if (tool("rm -rf plain; cp -r shop plain; $A train recommend --resume -o plain && ! ls -d plain/next "
                     "plain/lock plain/*unfinished*"))
                fail_msg("killed at change %d: plain --resume: %s%s", n, tool_out, tool_err);
            snprintf(line, sizeof line,
                     "%s -o shop && cmp shop/model.safetensors calm/model.safetensors && ls -A calm >1 && "
                     "ls -A shop | diff 1 -",
                     learns);
            if (tool(line))
                fail_msg("killed at change %d: %s%s", n, tool_out, tool_err);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_that_could_not_be_written_changes_nothing),
        cmocka_unit_test(a_start_on_a_full_disk_leaves_nothing),
        cmocka_unit_test(a_model_is_the_old_one_or_the_new_one_or_none),
        cmocka_unit_test(a_recommender_that_learns_on_is_there_at_any_time),
        cmocka_unit_test(a_limit_of_files_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, five_trainings_setup, tool_teardown);
}
