/* attend bench: what it prints, the shapes that it reads, and what it says of those it cannot. */
// labels: long slow
#include "fixtures/check.h"
#include "fixtures/tool.h"

#include <math.h>

/* Each line prints one object of numbers that can be, verified unless that was not wanted. */
static void assert_measures(const char *line)
{
    static const char *const key[] = {"ms", "median_ms", "gflops", "peak_gflops", "peak_share", "repeat", "threads"};
    assert_int_equal(tool(line), 0);
    assert_int_equal(count(tool_out, "\n"), 1);
    json_t *v = line_json(0);
    for (size_t k = 0; k < sizeof key / sizeof *key; k++)
        if (!(number(v, key[k]) > 0))
            fail_msg("%s: %s is %g", line, key[k], number(v, key[k]));
    assert_true(number(v, "ms") <= number(v, "median_ms"));
    assert_true(json_is_true(json_object_get(v, "verified")) == !strstr(line, "no-verify"));
    json_decref(v);
}

static void bench_prints_one_object_a_line(void **state)
{
    (void)state;
    assert_measures("$A bench gemm --m 7 --n 33 --k 65 -r 3 -t 1 --json");
    assert_int_equal(tool("$A bench peak -r 1 --json"), 0);
    assert_int_equal(count(tool_out, "\n"), 1);
    assert_int_equal(tool("$A bench peak -r 1"), 0);
    assert_int_equal(count(tool_out, "\n"), 6); /* each unit has its rate, or why it was not measured */
    assert_int_equal(count(tool_out, "best ") + count(tool_out, "not measured: "), 5);
    if (check_step(2) > 1)
        return; /* many times what caches hold takes two minutes to read under the thread sanitizer */
    assert_int_equal(tool("$A bench bandwidth -r 1 --json"), 0);
    assert_int_equal(count(tool_out, "\n"), 1);
}

static void each_pass_is_verified_with_each_mask_modifier_and_layout(void **state)
{
    (void)state;
    static const char *const masks[] = {"''",
                                        "causal",
                                        "bool --causal bottom-right",
                                        "lengths=0.5",
                                        "lengths=9:0:40",
                                        "bool",
                                        "bool=0",
                                        "causal,bool=0.5",
                                        "window=9",
                                        "causal,window=12",
                                        "bool,lengths=0.9",
                                        "window=3:20,documents=14",
                                        "documents=10,causal,lengths=0.8"};
    static const char *const others[] = {"",
                                         "--modifier bias",
                                         "--layout bthd --vdim 24 --modifier scale=0.5,softcap=2",
                                         "--kv-heads 2 -t 2 --dropout 0.3 --score dot --modifier alibi",
                                         "--dtype f16 --modifier relative=20,sink",
                                         "--dtype bf16 --layout bthd --modifier softcap=3,relative_causal=30,bias",
                                         "--score general --kdim 20 --modifier softcap=4",
                                         "--score additive --kv-heads 1",
                                         "--score cosine --dtype bf16",
                                         "--score additive --score-dim 10 --kdim 7"};
    enum { MASKS = sizeof masks / sizeof *masks, OTHERS = sizeof others / sizeof *others };
    for (int i = 0; i < 2 * MASKS; i += check_step(3)) {
        const int mask = i / 2, other = (i + i / OTHERS) % OTHERS; /* each of the others with other masks each time */
        char line[256];
        snprintf(line, sizeof line,
                 "$A bench attention --batch 3 --heads 4 --tq 33 --tk 40 --dim 16 -r 1 -t 1 --mask %s %s "
                 "--pass %s --align %s --json",
                 masks[mask], others[other], i & 1 ? "bwd" : "fwd", i & 2 ? "top-left" : "bottom-right");
        assert_int_equal(tool(line), 0);
        assert_has(tool_out, "\"verified\": true");
    }
}

static void keys_and_values_are_measured_from_a_cache(void **state)
{
    (void)state;
    static const char *const lines[] = {"-q 1 -k 300 -H 4 --kv-heads 2 --batch 2 --align bottom-right --mask causal",
                                        "-q 3 -k 300 --dtype f16 --mask lengths=250:30 --batch 2 --layout bthd -t 2",
                                        "-q 2 -k 90 --dtype bf16 --modifier bias --mask bool,lengths=0.5 --vdim 9",
                                        "-q 70 -k 90 --mask documents=20,lengths=0.7 --modifier softcap=3",
                                        "-q 70 -k 90 --score general --kdim 20 --modifier sink"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[256];
        snprintf(line, sizeof line, "$A bench attention --cache -r 1 %s --json", lines[i]);
        assert_int_equal(tool(line), 0);
        assert_has(tool_out, "\"verified\": true");
        assert_has(tool_out, "\"cache\": true");
        assert_has(tool_out, " cache");
    }
    assert_int_equal(tool("$A bench attention --cache -q 1 -k 300 -r 2 --json"), 0);
    assert_has(tool_out, "\"bandwidth_share\": ");
    assert_int_equal(tool("$A bench attention --cache -q 1 -k 300 -r 2"), 0);
    assert_has(tool_out, "GB/s at which memory is");
    assert_int_equal(tool("echo '{\"cache\": true}' | $A bench attention --shapes - -q 7 -r 1"), 0);
    assert_has(tool_out, "D64, f32, cache, ");
    assert_null(strstr(tool_out, "GB/s"));
    assert_refused("$A bench attention --cache --pass bwd -q 7", 1, "there is no backward through args.cache");
    assert_refused("$A bench attention --cache --score cosine -q 7", 1, "\"cosine\" prepares keys");
}

static void what_was_measured_is_said(void **state)
{
    (void)state;
    assert_measures("$A bench attention --name x --batch 2 --heads 4 --kv-heads 2 --tq 600 --dim 24 --vdim 40 "
                    "--mask causal --pass bwd -t 2 --repeat 3 --json");
    json_t *v = line_json(0);
    static const struct {
        const char *key;
        double value;
    } numbers[] = {{"batch", 2}, {"heads", 4}, {"kv_heads", 2}, {"tq", 600},  {"tk", 600},
                   {"dim", 24},  {"vdim", 40}, {"threads", 2},  {"repeat", 3}};
    static const char *const words[][2] = {{"name", "x"},        {"bench", "attention"}, {"mask", "causal"},
                                           {"pass", "bwd"},      {"dtype", "f32"},       {"layout", "bhtd"},
                                           {"align", "top-left"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(number(v, numbers[i].key) == numbers[i].value);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_string_equal(json_string_value(json_object_get(v, words[i][0])), words[i][1]);
    assert_true(number(v, "workspace_bytes") > 0 && number(v, "q_block") > 0 && number(v, "k_block") > 0);
    assert_true(number(v, "skipped") > 0 && number(v, "skipped") < 0.5);
    assert_string_equal(json_string_value(json_object_get(v, "kernel")), "flash-backward");
    assert_has(json_string_value(json_object_get(v, "why")), "dot in tiles");
    /* half of the pairs, the five products of the backward pass */
    double flops = 0.5 * 2 * 4 * 600 * 600 * 2 * (3 * 24 + 2 * 40);
    assert_true(fabs(number(v, "gflops") * number(v, "ms") * 1e6 / flops - 1) < 1e-5);
    /* q, dq; k, dk; v, dv; out, dout; lse */
    assert_true(number(v, "tensor_bytes") == 4 * 2 * 600 * (2 * 4 * 24 + 2 * 2 * 24 + 2 * 2 * 40 + 2 * 4 * 40 + 4));
    assert_true(number(v, "process_peak_bytes") > number(v, "tensor_bytes"));
    json_decref(v);
    assert_int_equal(tool("$A bench attention --tq 20 --mask causal --pass bwd -r 1"), 0);
    assert_has(tool_out, "attention backward, B1 H12 20x20 D64, mask causal, f32, ");
    assert_has(tool_out, "  verified: ");
    assert_has(tool_out, "% of them skipped, workspace ");
}

/* Few queries have a kernel of their own, but only forward. */
static void each_pass_names_the_kernel_that_ran(void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        {"-q 9", "  flash-forward, tiles of "},
        {"-q 9 --pass bwd", "  flash-backward, tiles of "},
        {"-q 1 -k 40", "  decode, tiles of "},
        {"-q 1 -k 40 --pass bwd", "  flash-backward, tiles of "},
        {"-q 9 --dtype f16 --pass bwd", "; converted to f32 block by block"},
        {"-q 9 --score additive --pass bwd", "\n  additive in tiles; "},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A bench attention -r 1 %s", lines[i][0]);
        assert_int_equal(tool(line), 0);
        assert_has(tool_out, lines[i][1]);
    }
}

static void shapes_are_measured_line_by_line(void **state)
{
    (void)state;
    assert_int_equal(tool("printf '%s\\n' '{\"name\": \"a\", \"tq\": 20}' '' "
                          "'{\"tq\": 21, \"tk\": 30, \"pass\": \"bwd\", \"no_verify\": true}' '{}' >shapes; "
                          "$A bench attention --shapes shapes --heads 2 --tq 7 -r 2 --json"),
                     0);
    static const double q[] = {20, 21, 7}, k[] = {20, 30, 7};
    static const char *const name[] = {"a", NULL, NULL};
    assert_int_equal(count(tool_out, "\n"), 3);
    for (int i = 0; i < 3; i++) {
        json_t *v = line_json(i);
        assert_true(number(v, "tq") == q[i] && number(v, "tk") == k[i] && number(v, "heads") == 2);
        assert_true(json_is_true(json_object_get(v, "verified")) == (i != 1));
        assert_string_equal(json_string_value(json_object_get(v, "pass")), i == 1 ? "bwd" : "fwd");
        assert_true(name[i] ? strcmp(json_string_value(json_object_get(v, "name")), name[i]) == 0
                            : !json_object_get(v, "name"));
        json_decref(v);
    }
    assert_int_equal(tool("echo '{\"heads\": 1}' | $A bench attention --shapes - -q 7 -r 1"), 0);
    assert_has(tool_out, "attention forward, B1 H1 7x7 D64");
}

static void what_a_line_says_is_an_input_of_the_next(void **state)
{
    (void)state;
    assert_int_equal(tool("$A bench attention -q 40 -r 1 --mask lengths=0.5 --json >first && "
                          "grep -o '\"tq.*\"layout\": \"[a-z]*\"' first | sed 's/.*/{&}/' >again && "
                          "$A bench attention --shapes again -r 1 --json"),
                     0);
    json_t *v = line_json(0);
    assert_true(number(v, "tq") == 40);
    assert_string_equal(json_string_value(json_object_get(v, "mask")), "lengths=0.5");
    json_decref(v);
}

static void a_bad_line_is_named_with_its_field(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"{\"kv_heds\": 3}", "shapes: line 2: there is no field \"kv_heds\"; did you mean \"kv_heads\"?"},
        {"{\"kv-heads\": 3}", "shapes: line 2: there is no field \"kv-heads\"; did you mean \"kv_heads\"?"},
        {"{\"shapes\": \"x\"}", "shapes: line 2: there is no field \"shapes\""},
        {"{\"json\": true}", "shapes: line 2: there is no field \"json\""},
        {"[]", "shapes: line 2: is not a JSON object"},
        {"{\"heads\": 1", "shapes: line 2: column "},
        {"{\"heads\": 1, \"heads\": 2}", "shapes: line 2: column "},
        {"{\"heads\": 0}", "shapes: line 2: heads: \"0\" is not a whole number from 1 to 1000000"},
        {"{\"heads\": 1.5}", "shapes: line 2: heads: \"1.5\" is not a whole number"},
        {"{\"heads\": null}", "shapes: line 2: heads: is not a number"},
        {"{\"mask\": 3}", "shapes: line 2: mask: is not a string"},
        {"{\"no_verify\": 1}", "shapes: line 2: no_verify: is not a boolean"},
        {"{\"dtype\": \"f17\"}", "shapes: line 2: dtype: \"f17\" is not one of f32|f16|bf16; did you mean \"f16\"?"},
        {"{\"mask\": \"bol\"}", "shapes: line 2: mask: there is no \"bol\"; did you mean \"bool\"?"},
        {"{\"heads\": 3, \"kv_heads\": 2}", "shapes: line 2: kv-heads: 2 does not divide the 3 heads"},
        {"{\"dim\": 100000}", "shapes: line 2: --dim is 100000"},
        {"{\"tk\": 8, \"mask\": \"causal\"}", "shapes: line 2: --align is not given"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[256];
        snprintf(line, sizeof line, "printf '\\n%%s\\n' '%s' >shapes; $A bench attention -q 4 --shapes shapes",
                 bad[i][0]);
        assert_refused(line, 1, bad[i][1]);
    }
    assert_refused("$A bench attention --shapes missing", 1, "missing: No such file");
}

static void wrong_lists_are_refused(void **state)
{
    (void)state;
    assert_refused("$A bench attention --mask causl", 2, "--mask: there is no \"causl\"; did you mean \"causal\"?");
    assert_refused("$A bench attention --mask causal,", 2, "--mask: there is no \"\"");
    assert_refused("$A bench attention --mask causal=1", 2, "--mask: causal takes no value");
    assert_refused("$A bench attention --mask bool=2", 2, "--mask: bool=2 is not a number from 0 to 1");
    assert_refused("$A bench attention --mask bool=nan", 2, "--mask: bool=nan is not a number");
    static const char *const lengths[] = {"lengths", "lengths=", "lengths=x", "lengths=9", "lengths=-1", "lengths=3x"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A bench attention -q 8 --mask %s", lengths[i]);
        assert_refused(line, 2, "--mask: lengths needs a share of the keys");
    }
    static const char *const windows[] = {"window", "window=", "window=x", "window=3:", "window=-1", "window=3:-1"};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A bench attention -q 8 --mask %s", windows[i]);
        assert_refused(line, 2, "--mask: window needs a number of keys");
    }
    assert_refused("$A bench attention --mask documents", 2, "--mask: documents needs their length");
    assert_refused("$A bench attention --mask documents=0", 2, "--mask: documents=0 is not a number from 1");
    assert_refused("$A bench attention --mask causal,bool,causal", 2, "--mask: causal occurs twice");
    assert_refused("$A bench attention --modifier softcap", 2, "--modifier: softcap needs a value");
    assert_refused("$A bench attention --modifier softcap=0", 2, "--modifier: softcap=0: the value must not be 0");
    assert_refused("$A bench attention --modifier alibi=2", 2, "--modifier: alibi takes no value");
    assert_refused("$A bench attention --modifier bais", 2, "--modifier: there is no \"bais\"; did you mean \"bias\"?");
    assert_refused("$A bench attention --modifier bias=1", 2, "--modifier: bias takes no value");
    assert_refused("$A bench attention --score dott", 2, "--score: there is no \"dott\"; did you mean \"dot\"?");
    assert_refused("$A bench attention --dropout 1", 2, "--dropout: \"1\" is not a number from 0 to 0.999");
    assert_refused("$A bench attention --pass backward", 2, "--pass: \"backward\" is not one of fwd|bwd");
    assert_refused("$A bench attention --heads 3 --kv-heads 2", 2, "--kv-heads: 2 does not divide the 3 heads");
    assert_refused("$A bench attention --tq 4 --tk 8 --mask causal", 1,
                   "--align is not given, but \"causal\" depends on where the queries stand among the keys: top-left "
                   "or bottom-right\n");
    assert_refused("$A bench attention -d 7 --kdim 8", 1, "--kdim = 8 but --dim = 7: dot needs them equal\n");
    assert_refused("$A bench attention --score-dim 4", 1, "--score-dim is 4, but");
    assert_refused("$A bench attention --causal top-left --align bottom-right", 2, "--causal: align contradicts it");
    assert_refused("$A bench attention --causal top-left --mask causal", 2, "--mask: causal occurs twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_prints_one_object_a_line),
        cmocka_unit_test(each_pass_is_verified_with_each_mask_modifier_and_layout),
        cmocka_unit_test(keys_and_values_are_measured_from_a_cache),
        cmocka_unit_test(what_was_measured_is_said),
        cmocka_unit_test(each_pass_names_the_kernel_that_ran),
        cmocka_unit_test(shapes_are_measured_line_by_line),
        cmocka_unit_test(what_a_line_says_is_an_input_of_the_next),
        cmocka_unit_test(a_bad_line_is_named_with_its_field),
        cmocka_unit_test(wrong_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
