/* attend train --refit: validation finds the number of epochs, and a second training is on all data for as many; killed
 * or interrupted anywhere, it ends with the same bits. */
// labels: trains
#include "fixtures/five_trainings.h"

#include <math.h>

#ifdef FAIL_CALL /* tests/preload/fail_call.c, built; not with a sanitizer, which must be the first of all libraries   \
                  */
#define PRELOAD "LD_PRELOAD=" FAIL_CALL " FAIL_CALL_HIT=hit "
static void need_preload(void) {}
#else
#define PRELOAD ""
static void need_preload(void) { skip(); }
#endif

#define SMALL TRAIN_RECOMMEND "--rate 0.02 --epochs 4 --patience 2 "

static void the_second_training_is_on_all_for_the_epochs_that_were_best(void **state)
{
    (void)state;
    assert_int_equal(tool(SMALL "--json -o alone 2>/dev/null"), 0);
    json_t *v = line_json(0);
    const double best = number(v, "step"), score = number(v, "ndcg");
    json_decref(v);
    assert_true(best > 0);
    assert_int_equal(tool(SMALL "--refit --json -o both"), 0);
    json_t *first = line_json(0), *second = line_json(1);
    assert_string_equal(json_string_value(json_object_get(first, "model")), "both/validated");
    assert_string_equal(json_string_value(json_object_get(second, "model")), "both");
    assert_true(fabs(number(first, "step") - best) < 0.5 && fabs(number(first, "ndcg") - score) < 1e-9);
    assert_true(json_is_null(json_object_get(second, "ndcg")));
    json_decref(first);
    json_decref(second);
    assert_has(tool_err, "attend: both/validated has validated; the second training, in both, is on all data for the ");
    assert_has(tool_err, "split none: ");
    /* the number of epochs as the options of the second training have it */
    assert_int_equal(
        tool("cmp alone/model.safetensors both/validated/model.safetensors && e=$(sed -n "
             "'s/.*\"epochs\": \"\\(.*\\)\",/\\1/p' both/training.json) && test -n \"$e\" && " TRAIN_RECOMMEND
             "--rate 0.02 --epochs $e --split none -o by-hand && cmp by-hand/model.safetensors "
             "both/model.safetensors && ! cmp -s both/model.safetensors alone/model.safetensors"),
        0);
    assert_int_equal(tool("$A recommend -m both --history i1,i2 && $A train recommend --resume -o both"), 0);
    assert_has(tool_err, "has finished its training, and stays as it is");
}

/* Killed at each 47th call that changes a file. */
static void kills_in_either_training_change_nothing(void **state)
{
    (void)state;
    char line[1024];
    int resumed = 0;
    need_preload();
    assert_int_equal(tool("rm -rf calm; " SMALL "--refit -o calm"), 0);
    for (int n = 1, code = 137; code == 137; n += 47) {
        snprintf(line, sizeof line,
                 "rm -rf hit shop; env " PRELOAD "FAIL_CALL_IN=shop FAIL_CALL_AT=%d " SMALL "--refit -o shop", n);
        code = tool(line);
        if (code != 0 && code != 137)
            fail_msg("change %d: exit code %d: %s", n, code, tool_err);
        const bool has_options = !tool("ls shop/training.json shop/validated/training.json 2>/dev/null | grep -q .");
        const int again = tool(has_options ? "$A train recommend --resume -o shop" : SMALL "--refit -o shop");
        if (again || tool("cmp calm/model.safetensors shop/model.safetensors && cmp calm/validated/model.safetensors "
                          "shop/validated/model.safetensors && ls -AR calm | sed 1d >1 && ls -AR shop | sed 1d | "
                          "sed s/shop/calm/ | diff 1 - && " SAME_LOG("calm/log.jsonl", "shop/log.jsonl")))
            fail_msg("killed at change %d: %s%s", n, tool_out, tool_err);
        resumed += has_options;
    }
    assert_true(resumed > 4);
}

static void an_interrupted_one_says_how_to_go_on(void **state)
{
    (void)state;
    assert_int_equal(tool("rm -rf calm; " SMALL "--epochs 40 --patience 0 --refit -o calm"), 0);
    for (int second = 0; second < 2; second++) {
        char line[512];
        snprintf(line, sizeof line,
                 "rm -rf stopped; { await 'ls stopped/%scheckpoint-*'; kill -TERM $$; } & exec " SMALL
                 "--epochs 40 --patience 0 --refit -o stopped",
                 second ? "" : "validated/");
        const int code = tool(line);
        if (code != 143 && code != 0) /* it may be done before the signal */
            fail_msg("exit code %d: %s", code, tool_err);
        if (code == 143)
            assert_has(tool_err, "; attend train recommend --resume -o stopped continues, attend recommend -m stopped");
        assert_int_equal(tool("$A train recommend --resume -o stopped && cmp calm/model.safetensors "
                              "stopped/model.safetensors"),
                         0);
    }
}

static void what_cannot_be_refitted_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {TRAIN_RECOMMEND "--refit --split none -o x", 2, "--refit needs a validation: --split leave-one-out or time"},
        {SMALL "--refit --average 2 -o x", 2, "--average does not go with --refit"},
        {SMALL "--refit --keep 0 -o x", 2, "--keep 0 does not go with --refit"},
        {SMALL "--refit --schedule cosine -o x", 2, "--schedule does not go with --refit: its learning rates depend"},
        {SMALL "--refit --warmup 0.1 -o x", 2, "--warmup, a share, does not go with --refit"},
        {SMALL "--refit -o both", 1, "both: has a training already: attend train recommend --resume -o both"},
        {"sed s/u/v/ log.txt >others; $A train recommend --refit --resume --data others -o both", 2,
         "--refit does not go with --resume and another log"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].line, cases[i].code, cases[i].says);
    assert_int_equal(tool("test ! -e x"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_training_is_on_all_for_the_epochs_that_were_best),
        cmocka_unit_test(kills_in_either_training_change_nothing),
        cmocka_unit_test(an_interrupted_one_says_how_to_go_on),
        cmocka_unit_test(what_cannot_be_refitted_is_named),
    };
    return cmocka_run_group_tests(tests, five_trainings_setup, tool_teardown);
}
