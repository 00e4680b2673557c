/* --shard I/N: the outputs of seven processes, one after the other, are that of one; and --resume computes no part
 * twice, whatever ended the process that wrote it. */
#include "fixtures/captioner.h"
#include "fixtures/recommender_tool.h"
#include "fixtures/tiny_text_classifier.h"
#include "fixtures/translator_tool.h"
#include "fixtures/vision_tool.h"

static int set_up(void **state)
{
    const int code = translator_setup(state) || open_context(state);
    vision_setup();
    shop_setup();
    const test_folder captioner = captioner_folder(CAPTIONER_GRU, false);
    const test_folder classifier = tiny_text_classifier(2);
    setenv("C", captioner.path, 1);
    setenv("K", classifier.path, 1);
    return code || tool("mv $C captioner; mv $K kinds; mkdir bert photos; cp *.json vocab.txt model.safetensors bert; "
                        "cp -r 1_Pooling bert; for i in 1 2 3; do cp dot.png photos/$i.png; cp $G/gray.png "
                        "photos/g$i.png; done; printf 'a b\\nb c\\n\\nthe dog\\nc\\na c\\nin\\nb b\\na\\nb' >in; "
                        "sed 's/$/\\tc/' in >pairs; printf 'apple,pear\\nfig\\nplum,kiwi,fig\\n' >histories");
}

/* Commands that write to $O, and into how many parts they are split */
static const struct {
    int parts;
    const char *command;
} commands[] = {
    {7, "$A embed -m bert -o $O in"},
    {2, "$A embed -m bert -o $O --format tsv --dims 4 in in"},
    {2, "$A embed -m bert -o $O --format tsv <in"},
    {2, "$A embed -m bert -o $O --text a --text b --text c"},
    {2, "$A embed -m $V -o $O photos"},
    {7, "$A classify -m $V -o $O photos/* photos"},
    {2, "$A classify -m kinds -o $O in in"},
    {2, "$A classify -m kinds -o $O --pairs pairs"},
    {2, "$A classify -m kinds --json -o $O --text a --text b --pair c --pair d"},
    {7, "$A caption -m captioner -o $O photos"},
    {7, "$A translate -m $T -o $O --json -b 2 -n 2 in"},
    {2, "$A translate -m $T -o $O -b 1 -f in"},
    {7, "$A recommend -m shop -d log.tsv --all-users -k 3 -o $O"},
    {2, "$A recommend -m shop -d log.tsv --all-users --vectors $O --vector-format tsv"},
    {2, "$A recommend -m shop --vectors $O --vector-format tsv"},
    {2, "$A recommend -m shop --all-items -o $O"},
    {2, "$A recommend -m shop --similar apple --similar fig -o $O"},
    {2, "$A recommend -m shop --history apple --history fig --json -o $O"},
    {2, "$A recommend -m shop -o $O <histories"},
};

static void shards_are_one_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const char *command = commands[i].command;
        const int parts = commands[i].parts;
        char line[512];
        snprintf(line, sizeof line,
                 "rm -f part* one; O=one; %s || exit 1; O='part-{shard}'; for i in $(seq %d); do %s --shard $i/%d || "
                 "exit 2; done; ls part-?-of-%d | wc -l; cat part-* | cmp - one",
                 command, parts, command, parts, parts);
        if (tool(line) || atoi(tool_out) != parts)
            fail_msg("%s: %s%s", command, tool_out, tool_err);
    }
}

static void matrices_are_joined_behind_their_heads(void **state)
{
    (void)state;
    /* the head of the whole, then the rows of each part; empty parts are valid files with 0 rows */
    assert_int_equal(
        tool(
            "E=\"$A embed -m bert --format\"; $E npy -o one in && $E fbin -o two in && for i in $(seq -w "
            "12); do $E npy --shard $i/12 -o npy-$i in && $E fbin --shard $i/12 -o fbin-$i in || exit 1; "
            "done; { head -c 128 one; tail -qc +129 npy-*; } | cmp - one && { head -c 8 two; "
            "tail -qc +9 fbin-*; } | cmp - two && head -c 128 npy-12 | tail -c +11 && wc -c <npy-12 && wc -c <fbin-12"),
        0);
    assert_has(tool_out, "'shape': (0, ");
    assert_has(tool_out, "\n128\n8\n");
}

static void codes_need_ranges_that_all_parts_share(void **state)
{
    (void)state;
    assert_refused("$A embed -m bert --precision int8 --shard 1/2 in", 2, "needs --ranges or --calibration");
    assert_int_equal(
        tool("E=\"$A embed -m bert --precision int8 --format tsv\"; $E -o all in; for i in 1 2 3; do $E "
             "--ranges all.ranges.npy --shard $i/3 -o r-$i.tsv in || exit 1; done; cat r-?.tsv | cmp - all"),
        0);
}

static void tables_of_sql_are_made_once(void **state)
{
    (void)state;
    assert_int_equal(tool("$A embed -m bert --format pgvector --shard 2/5 in"), 0);
    assert_has(tool_out, "CREATE TABLE IF NOT EXISTS embeddings ");
    assert_has(tool_out, "\n3\t\t[");
    assert_has(tool_out, "\n4\tthe dog\t[");
    assert_int_equal(tool("$A embed -m bert --format sqlite-vec --shard 1/5 in"), 0);
    assert_has(tool_out, "CREATE VIRTUAL TABLE IF NOT EXISTS embeddings ");
}

static void lines_have_the_numbers_of_the_whole_input(void **state)
{
    (void)state;
    assert_int_equal(tool("{ cat in; echo; echo The snow is in the table. A Hund is running in China.; } >long"), 0);
    assert_refused("$A translate -m $T --shard 3/3 -o last long", 1, "attend: line 11 has ");
    assert_refused("$A translate -m $T --shard 3/3 --resume -o last long", 1,
                   "attend: line 11 has "); /* not finished */
    assert_int_equal(tool("$A translate -m $T --shard 1/3 long"), 0);
    assert_int_equal(tool("{ cat in; echo; printf 'a\\377\\n'; } >damaged; $A embed -m bert --shard 1/2 damaged"), 0);
    assert_refused("$A embed -m bert --shard 2/2 damaged", 1, "damaged: line 11");
}

static void wrong_parts_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"0/7 in", "--shard 0/7: parts are counted from 1/7 to 7/7; add 1 to an index from 0"},
        {"8/7 in", "--shard 8/7: parts are counted from 1/7 to 7/7"},
        {"1/0 in", "not 0"},
        {"3 in", "--shard: \"3\" is not I/N, such as 1/7"},
        {"1/7x in", "is not I/N"},
        {"-1/7 in", "is not I/N"},
        {"99999999999999999999/7 in", "is not I/N"},
        {"1/2 --resume in", "--resume needs an output file: -o FILE"},
        {"1/2 -o - --resume in", "--resume needs an output file: -o FILE"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[256];
        snprintf(line, sizeof line, "$A embed -m bert --shard %s", wrong[i][0]);
        assert_refused(line, 2, wrong[i][1]);
    }
    assert_refused("$A embed -m bert -o 'x-{shard}' in", 2, "--output x-{shard}: {shard} needs --shard I/N");
    assert_refused("cat in | $A embed -m bert --shard 1/2", 1,
                   "standard input is not a file: --shard reads its input twice");
    assert_refused("cat in | $A embed -m bert --resume -o x", 1, "standard input is not a file");
    assert_refused("$A classify -m $V --shard 1/2 --resume -o . photos", 1, "--output . is not a file, which");
    assert_refused("$A embed -m bert --resume -o /dev/null in", 1, "--output /dev/null is not a file, which --resume");
}

/* ---- --resume -------------------------------------------------------------------- */

#define RESUME "$A embed -m bert --format tsv --shard 2/3 --resume -o 'r-{shard}' "

static void a_finished_part_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(tool("cp in text; " RESUME "text && ls -A | grep of-3; cp -p r-2-of-3 copy; touch -d 1999-01-01 "
                          "r-2-of-3"),
                     0);
    assert_string_equal(tool_out, ".r-2-of-3.finished\nr-2-of-3\n");
    assert_int_equal(tool(RESUME "-t 1 text && [ r-2-of-3 -ot text ] && cmp r-2-of-3 copy"), 0);
    assert_string_equal(tool_err, "attend: r-2-of-3 is finished\n");
    /* removed: it is computed again; its record, too; another folder of the same model is the same */
    assert_int_equal(tool("rm r-2-of-3; " RESUME "text && cmp r-2-of-3 copy && rm .r-2-* && " RESUME
                          "text && cmp r-2-of-3 copy && cp -r bert moved && cp text text2 && mv text2 text"),
                     0);
    assert_int_equal(tool("$A embed -m moved --format tsv --shard 2/3 --resume -o r-2-of-3 text"), 0);
    assert_string_equal(tool_err, "attend: r-2-of-3 is finished\n");
}

static void a_part_of_something_else_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(tool("cp in text; rm -f r-* .r-*; " RESUME "text"), 0);
    assert_refused(RESUME "--dims 4 text", 1,
                   "r-2-of-3 is finished, but of --dims 0, not 4; remove it, or name another");
    assert_refused(RESUME "--prompt x text", 1, "of --prompt none, not \"x\"");
    assert_refused(RESUME "text text", 1, "of arguments none, not {");
    assert_refused("cp text twin; " RESUME "twin", 1, "\"text\"}, not {");
    assert_refused("echo more >>text; " RESUME "text", 1, "of arguments {");
    assert_refused("cp in text; $A embed -m bert --format tsv --shard 2/4 --resume -o r-2-of-3 text", 1,
                   "of --shard \"2/3\", not \"2/4\"");
    assert_refused("cp -r bert other; echo >>other/vocab.txt; $A embed -m other --format tsv --shard 2/3 --resume -o "
                   "r-2-of-3 text",
                   1, "of model {");
    assert_refused("echo >>r-2-of-3; " RESUME "text", 1, "r-2-of-3 has changed since it was finished");
    assert_refused("echo x >.r-2-of-3.finished; " RESUME "text", 1,
                   ".r-2-of-3.finished: is not the record of a finished output");
    assert_int_equal(tool("rm r-2-of-3; " RESUME "text"), 0);
}

static void a_signal_leaves_nothing_half_written(void **state)
{
    (void)state;
    static const char *const signals[] = {"TERM", "KILL"};
    static const int codes[] = {143, 137};
    assert_int_equal(tool("i=0; while [ $i -lt 3000 ]; do echo a b c $i; i=$((i+1)); done >many; "
                          "$A embed -m bert -t 1 -o whole many"),
                     0);
    for (int i = 0; i < 2; i++) {
        char line[512];
        snprintf(
            line, sizeof line,
            "rm -f s .s*; mkfifo hold; exec 3<>hold; { head -1500 many; await 'test -e stop'; } >hold & "
            "exec $A embed -m bert --format tsv -o s hold & pid=$!; await 'test -s s.unfinished-0'; kill -%s $pid; "
            "wait $pid; code=$?; touch stop; wait; rm stop hold; ls -A | grep -c '^[.]*s' ; exit $code",
            signals[i]);
        assert_int_equal(tool(line), codes[i]);
        assert_has(tool_out, i < 1 ? "2\n" : "3\n"); /* shop, sentence_bert_config.json; and what SIGKILL leaves */
    }
    assert_int_equal(tool("$A embed -m bert -t 1 --resume -o s many && cmp s whole && ls -A | grep -c unfinished"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_one_process),
        cmocka_unit_test(matrices_are_joined_behind_their_heads),
        cmocka_unit_test(codes_need_ranges_that_all_parts_share),
        cmocka_unit_test(tables_of_sql_are_made_once),
        cmocka_unit_test(lines_have_the_numbers_of_the_whole_input),
        cmocka_unit_test(wrong_parts_are_refused),
        cmocka_unit_test(a_finished_part_is_left_alone),
        cmocka_unit_test(a_part_of_something_else_is_an_error),
        cmocka_unit_test(a_signal_leaves_nothing_half_written),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
