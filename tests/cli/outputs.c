/* Outputs replace no file that the same command reads, however its path is spelled; all else they replace. */
#include "fixtures/captioner.h"
#include "fixtures/recommender_tool.h"
#include "fixtures/translator_tool.h"
#include "fixtures/vision_tool.h"

#include "cli/base/in_use.h"

#include <unistd.h>

static int set_up(void **state)
{
    const int code = translator_setup(state) || open_context(state);
    char path[4096];
    vision_setup();
    shop_setup();
    const test_folder captioner = captioner_folder(CAPTIONER_GRU, false);
    setenv("C", captioner.path, 1);
    unsetenv("ATTEND_LANGUAGE_MODEL");
    assert_non_null(realpath("tests/golden/tiny_llama", path));
    setenv("L", path, 1);
    return code ||
           tool("mv $C captioner; cp -r $L llama; mkdir bert photos sub; cp -r *.json vocab.txt 1_Pooling "
                "model.safetensors bert; cp dot.png photos; mkdir -p kinds/a kinds/b; for i in 1 2 3 4; do cp dot.png "
                "kinds/a/$i.png; cp dot.png kinds/b/$i.png; done; printf 'a b\\nb c\\n' >in; cp in gone.unfinished-0; "
                "printf 'a\\tb\\t1\\n' "
                ">pairs; "
                "echo '{\"step\": 1, \"loss\": 2}' >curve; mkdir trained; cp curve trained/log.jsonl; "
                "printf 'x 1 2\\ny 3 4\\n' >vectors; cp dot.png dot2.png; echo apple >list; printf 'pear\\tPear\\n' "
                ">texts; "
                "ln -s in soft; ln in hard; ln -s ../in sub/in; ln -s bert model; for u in 1 2 3; do printf "
                "\"$u\\tapple\\t1\\n$u\\tpear\\t2\\n"
                "$u\\tfig\\t3\\n$u\\tplum\\t4\\n\"; done >acts; ln llama/config.json config.link");
}

/* Commands that must be refused before they write anything; what the message names. */
static const struct {
    const char *command, *output, *input;
} refused[] = {
    {"$A embed -m bert -o in in", "--output in", "in, which"},
    {"$A embed -m bert -o gone gone.unfinished-0", "--output gone", "gone.unfinished-0, which"},
    {"$A embed -m bert -o ./in in", "--output ./in", "replace in,"},
    {"$A embed -m bert -o soft in", "--output soft", "in, which"},
    {"$A embed -m bert -o hard in", "--output hard", "in, which"},
    {"$A embed -m bert -o in soft", "--output in", "soft, which"},
    {"$A embed -m bert -o $D/in sub/in", "/in would", "sub/in, which"},
    {"$A embed -m bert -o in <in", "--output in", "standard input"},
    {"$A embed -m bert -o in - <hard", "--output in", "standard input"},
    {"$A embed -m bert -o in pairs in", "--output in", "in, which"},
    {"$A embed -m bert -o /proc/self/fd/3 in 3<in", "--output /proc/self/fd/3", "in, which"},
    {"$A tokenize -m bert in >>in", "standard output would", "in, which"},
    {"$A tokenize -m bert <in >>hard", "standard output would", "standard input"},
    {"$A embed -m bert --format npy -o bert/model.safetensors in", "--output bert/model.safetensors", "model bert"},
    {"$A embed -m model --format npy -o bert/vocab.txt in", "--output bert/vocab.txt", "model model"},
    {"$A embed -m bert -o bert/1_Pooling/config.json in", "1_Pooling/config.json", "model bert"},
    {"cd bert && $A embed -m . -o modules.json ../in", "--output modules.json", "model ."},
    {"ATTEND_MODEL=bert $A embed -o bert/config.json in", "--output bert/config.json", "model bert"},
    {"ATTEND_MODELS=$D $A embed -m bert -o bert/config.json in", "--output bert/config.json", "model bert"},
    {"$A classify -m $V -a vit/config.json dot.png", "--attention vit/config.json", "model "},
    {"$A classify -m $V -a dot.png dot.png", "--attention dot.png", "replace dot.png,"},
    {"$A classify -m $V -a photos/dot.png photos", "--attention photos/dot.png", "a file of photos,"},
    {"$A classify -m $V -a photos/dot.png <photos/dot.png -", "--attention photos/dot.png", "standard input"},
    {"$A caption -m captioner -a captioner/words.json dot.png", "--attention captioner/words.json", "model captioner"},
    {"$A attention -m bert --svg bert/config.json a", "--svg bert/config.json", "model bert"},
    {"$A attention -m $V --svg dot2.png dot2.png", "--svg dot2.png", "dot2.png, which"},
    {"$A recommend -m shop --vectors shop/model.safetensors", "--vectors shop/model.safetensors", "model shop"},
    {"$A recommend -m shop --history apple -o shop/items.json", "--output shop/items.json", "model shop"},
    {"$A recommend -m shop --history apple -a shop/config.json", "--attention shop/config.json", "model shop"},
    {"$A recommend -m shop -d log.tsv --all-users -o log.tsv", "--output log.tsv", "--data log.tsv"},
    {"$A recommend -m shop --history apple --item-texts texts -o texts", "--output texts", "--item-texts texts"},
    {"$A recommend -m shop --history apple --allow list -o list", "--output list", "--allow list"},
    {"$A recommend -m shop --history apple --deny ./list -a list", "--attention list", "--deny ./list"},
    {"$A recommend -m shop --history apple -o new --vectors new", "--output new",
     "--vectors new and --output new are one file"},
    {"$A evaluate classify -m $V -d photos --confusion photos/dot.png", "--confusion photos/dot.png", "--data photos"},
    {"$A translate -m $T -a in in", "--alignment in", "in, which"},
    {"$A translate -m $T -a de-en/config.json in", "--alignment de-en/config.json", "model "},
    {"$A vocab -s 30 -o in in", "--output in", "in, which"},
    {"$A plot -o curve curve", "--output curve", "curve, which"},
    {"$A plot -o trained/log.jsonl trained", "--output trained/log.jsonl", "trained, which"},
    {"$A explain softmax --input vectors --svg vectors", "--svg vectors", "--input vectors"},
    {"ln config.link x.gguf; $A convert llama -o x.gguf", "--output x.gguf", "llama, which"},
    {"$A train embed -m bert --pairs pairs -o bert", "bert: is the model's own folder", ""},
    {"$A train embed -m bert --pairs pairs -o model", "model: is the model's own folder", ""},
    {"$A train recommend -m shop -d acts -o ./shop", "shop: is the model's own folder", ""},
    {"$A train classify -m $V -d kinds -o vit", "vit: is the model's own folder", ""},
    {"$A train classify -d photos -o photos", "--output photos", "--data photos"},
    {"$A train translate --src in --tgt in --config de-en/config.json -o de-en", "--output de-en",
     "--config de-en/config.json"},
};

static void no_output_replaces_what_is_read(void **state)
{
    (void)state;
    assert_int_equal(tool("find . -type f | sort | xargs cksum >before"), 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_refused(refused[i].command, 1, refused[i].output);
        assert_has(tool_err, refused[i].input);
        if (tool("rm -f x.gguf; find . -type f ! -name before ! -name after | sort | xargs cksum >after; "
                 "grep -v before before >1; grep -v before after >2; diff 1 2; c=$?; rm 1 2 after; exit $c"))
            fail_msg("%s has changed: %s", refused[i].command, tool_out);
    }
}

static void other_files_are_replaced(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "$A embed -m bert -o bert/vectors.jsonl in",
        "$A embed -m bert -o out in",
        "$A classify -m $V -a vit/attention.svg dot.png",
        "$A plot -o trained/loss.svg trained",
        "$A recommend -m shop --history apple -o shop/list.tsv",
        "$A recommend -m shop --vectors shop/vectors.npy",
        "$A attention -m bert --svg in a",
        "$A embed -m bert -o out - <in",
        "$A help --man-folder sub",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[256];
        snprintf(line, sizeof line, "cp in saved; %s >/dev/null && %s >/dev/null; c=$?; cp saved in; exit $c",
                 commands[i], commands[i]);
        if (tool(line))
            fail_msg("%s: %s", commands[i], tool_err);
    }
}

/* A new command that forgets `writes` cannot replace a file: its output counts as read. */
static void an_output_that_no_table_marks_is_refused_when_it_exists(void **state)
{
    (void)state;
    char path[128];
    const char *given = path, *unset = NULL;
    const cli_option options[] = {{"picture", 0, "FILE", .text = &given}, {"other", 0, "FILE", .text = &unset}, {0}};
    const cli_command command = {.name = "new", .options = options};
    snprintf(path, sizeof path, "%s/forgotten", tool_model.path);
    assert_int_equal(cli_in_use_begin(&command, 0, NULL), CLI_DONE);
    assert_int_equal(cli_in_use_check(path), CLI_DONE); /* a new file */
    folder_write(&tool_model, "forgotten", "");
    assert_int_equal(cli_in_use_check(path), CLI_FAILED);
    unlink(path);
}

static void a_missing_folder_is_named_before_any_work(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "$A embed -m missing -o no/such/file in",
        "$A classify -m missing -a no/such/file.svg dot.png",
        "$A recommend -m missing --vectors no/such/file",
        "$A evaluate classify -d photos --confusion no/such/file.svg",
        "$A explain softmax --svg no/such/file.svg",
        "$A vocab -s 30 -o no/such/file missing",
        "$A plot -o no/such/file.svg missing",
        "$A convert missing -o no/such/file.GGUF",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_refused(commands[i], 1, ": No such file or directory; there is no folder no/such");
        assert_string_equal(tool_out, "");
    }
}

/* /save of a chat is not an option. */
static void what_a_chat_saves_replaces_no_file_of_the_model(void **state)
{
    (void)state;
    char path[4096];
    assert_non_null(realpath("tests/golden/chat", path));
    setenv("J", path, 1);
    assert_int_equal(tool("cp $J/mistral-nemo.jinja llama/chat_template.jinja; cp llama/config.json saved; "
                          "printf 'a\\n/save llama/config.json\\n/save llama/talk\\n/save llama/talk\\n' | "
                          "$A chat -m llama -n 2"),
                     1);
    assert_has(tool_err, "llama/config.json would replace a file of --model llama");
    assert_int_equal(count(tool_err, "replace"), 1);
    assert_int_equal(tool("cmp saved llama/config.json && test -s llama/talk"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_output_replaces_what_is_read),
        cmocka_unit_test(other_files_are_replaced),
        cmocka_unit_test(an_output_that_no_table_marks_is_refused_when_it_exists),
        cmocka_unit_test(a_missing_folder_is_named_before_any_work),
        cmocka_unit_test(what_a_chat_saves_replaces_no_file_of_the_model),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
