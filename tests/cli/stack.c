/* The tool with a stack limit that is smaller than what its work takes: results and ends are the same. */
#include "fixtures/captioner.h"
#include "fixtures/recommender_tool.h"
#include "fixtures/tiny_gguf.h"
#include "fixtures/translator_tool.h"
#include "fixtures/vision_tool.h"

/* KiB; sanitizers themselves need some before main. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMALL "1000"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SMALL "1000"
#endif
#endif
#ifndef SMALL
#define SMALL "64"
#endif

static int set_up(void **state)
{
    const int code = translator_setup(state) || open_context(state);
    vision_setup();
    shop_setup();
    const test_folder captioner = captioner_folder(CAPTIONER_GRU, false);
    const test_folder language = tiny_llama_folder(&tiny_llamas[0], NULL);
    tiny_gguf_write(&language, "m.gguf", &tiny_llamas[0], NULL);
    setenv("C", captioner.path, 1);
    setenv("L", language.path, 1);
    setenv("S", SMALL, 1);
    return code ||
           tool("mv $C captioner; mv $L/m.gguf .; rm -r $L; printf 'a b\\nb c\\n' >in; mkfifo fifo; mkdir photos; "
                "for i in 1 2 3 4; do cp dot.png photos/$i.png; printf \"$i.png\\ta dot\\n\"; done >captions");
}

static void results_are_the_same(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "caption -m captioner dot.png",
        "tokenize -m $D in",
        "tokenize -m m.gguf in",
        "convert m.gguf -o new && rm -r new",
        "convert m.gguf -o new.gguf && rm new.gguf",
        "search -m $D -c in a",
        "translate -m $T in",
        "generate -m m.gguf -n 3 ab",
        "evaluate language -m m.gguf in | head -n 3",
        "evaluate classify -m $V -d kinds | head -n 1",
        "recommend -m shop -d log.tsv --user ann",
        "evaluate recommend -m shop -d log.tsv",
        ("train caption -d captions -i photos --min-count 1 --epochs 1 --hidden 8 --channels 8 --image-size 8 -o t && "
         "rm -r t"),
        "explain block",
    };
    assert_int_equal(tool("mkdir -p kinds; for k in LABEL_0 LABEL_1; do cp -r photos kinds/$k; done"), 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[400];
        snprintf(line, sizeof line, "{ $A %s; } >calm; c=$?; (ulimit -s $S; $A %s) >small || exit; exit $c",
                 commands[i], commands[i]);
        if (tool(line))
            fail_msg("%s: %s", commands[i], tool_err);
        if (!strstr(commands[i], "train") && tool("cmp calm small"))
            fail_msg("%s: other results", commands[i]);
    }
}

static void signals_end_it_as_always(void **state)
{
    (void)state;
    assert_int_equal(
        tool("ulimit -s $S; timeout --preserve-status -s INT 0.3 env --default-signal=INT $A embed -m $D fifo"), 130);
    assert_int_equal(
        tool("ulimit -s $S; exec 3<>fifo; timeout --preserve-status -s TERM 0.3 $A embed -m $D -o half <fifo"), 143);
    assert_int_equal(tool("ls | grep -c half"), 1);
    assert_int_equal(tool("ulimit -s $S; yes a | head -n 100000 >many; $A tokenize -m $D many | head -n 1"), 0);
    assert_int_equal(
        tool("ulimit -s $S; printf 'a\\tb\\nc\\td\\n' >few; $A train embed -m $D --pairs few --epochs 1000000 "
             "--save-every 1 -o t & await 'ls t/checkpoint-*'; kill -TERM $!; wait $!"),
        143);
    assert_has(tool_err, "--resume");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_the_same),
        cmocka_unit_test(signals_end_it_as_always),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
