/* attend explain three-uses: what it says of a tiny translator, and what it refuses. */
#include "fixtures/translator_tool.h"

#include <math.h>

/* Returns how often a line of the chapter has this text in it, white space aside. */
static int lines(const char *part)
{
    char line[512];
    snprintf(line, sizeof line, "tr -s ' \\n' ' ' <page | grep -cF -- '%s'", part);
    tool(line);
    return atoi(tool_out);
}

static void what_it_says_is_what_was_computed(void **state)
{
    (void)state;
    char part[96];
    int source, target;
    assert_int_equal(tool("$A explain three-uses -m $T --text 'Ein Hund' >page"), 0);
    assert_int_equal(tool("sed -nE 's/.*Q = target, X = source .*\\[([0-9]+), ([0-9]+)\\].*/\\1 \\2/p' page"), 0);
    assert_int_equal(sscanf(tool_out, "%d %d", &target, &source), 2);
    snprintf(part, sizeof part, "Q = source, X = source %d x %d x [%d, %d]", MARIAN_ENCODER_LAYERS,
             MARIAN_ENCODER_HEADS, source, source);
    assert_int_equal(lines(part), 1);
    snprintf(part, sizeof part, "Q = target, X = target, causal %d x %d x [%d, %d]", MARIAN_DECODER_LAYERS,
             MARIAN_DECODER_HEADS, target, target);
    assert_int_equal(lines(part), 1);
    snprintf(part, sizeof part, "Q = target, X = source %d x %d x [%d, %d]", MARIAN_DECODER_LAYERS,
             MARIAN_DECODER_HEADS, target, source);
    assert_int_equal(lines(part), 1);
    assert_int_equal(lines("The largest weight on a later token, of all heads, is 0."), 1);
    assert_int_equal(lines("before it stay the same, to the last bit"), 1);
    assert_int_equal(lines("0 % of all weight of all heads lies"), 0); /* the encoder has no causal mask */
}

/* The source token with the largest weight, as in attend translate. */
static void the_alignment_is_that_of_translations(void **state)
{
    (void)state;
    assert_int_equal(tool("$A explain three-uses -m $T --text 'Ein Hund' >page; "
                          "echo 'Ein Hund' | $A translate -m $T -b 1 --alignment a.json >/dev/null && cat a.json"),
                     0);
    json_t *v = line_json(0), *source = json_object_get(v, "source"), *target = json_object_get(v, "target");
    for (size_t i = 0; i < json_array_size(target); i++) {
        const json_t *row = json_array_get(json_object_get(v, "weights"), i);
        size_t best = 0;
        for (size_t j = 1; j < json_array_size(row); j++)
            if (json_number_value(json_array_get(row, j)) > json_number_value(json_array_get(row, best)))
                best = j;
        char part[256];
        snprintf(part, sizeof part, "%.2f %s → %s", json_number_value(json_array_get(row, best)),
                 json_string_value(json_array_get(target, i)), json_string_value(json_array_get(source, best)));
        if (lines(part) != 1)
            fail_msg("the page has no line: %s", part);
    }
    json_decref(v);
}

static void it_is_told_in_japanese_and_no_line_is_too_long(void **state)
{
    (void)state;
    assert_int_equal(tool("$A explain three-uses -m $T --text 'Ein Hund' --lang ja >page"), 0);
    assert_int_equal(lines("最後のビットまで変わりません"), 1);
    assert_int_equal(tool("$A explain three-uses -m $T --text 'Ein Hund' >>page; "
                          "LC_ALL=C awk '{ gsub(/[\\200-\\277]/, \"\") } length > 80' page"),
                     0);
    assert_string_equal(tool_out, "");
}

static void the_translator_that_comes_along_is_the_default(void **state)
{
    (void)state;
    if (tool("$A info | grep -q tatoeba-de-en"))
        skip(); /* not in this tree */
    assert_int_equal(tool("$A explain three-uses >page"), 0);
    assert_int_equal(lines("Kannst du mir helfen, diesen Satz zu"), 1);
    assert_int_equal(lines("▁help → ▁helfen"), 1);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_refused("$A explain three-uses -m nix", 1, "\"nix\" is neither a folder nor a model in ");
    assert_refused("$A explain three-uses -m $D", 1, " is a sentence model: attend embed");
    assert_refused("$A explain three-uses -m $T --text a --input vectors", 2, "three-uses is on a sentence");
    assert_refused("$A explain three-uses -m $T --query 1", 2, "three-uses is on a sentence");
    assert_refused("$A explain softmax --text a", 2, "softmax is on vectors");
    assert_refused("$A explain softmax -m $T", 2, "softmax is on vectors");
    assert_int_equal(tool("$A explain three-uses -m $T --text ''"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says_is_what_was_computed),
        cmocka_unit_test(the_alignment_is_that_of_translations),
        cmocka_unit_test(it_is_told_in_japanese_and_no_line_is_too_long),
        cmocka_unit_test(the_translator_that_comes_along_is_the_default),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, translator_setup, tool_teardown);
}
