/* attend bleu says what sacrebleu says, and what is wrong with files. */
#include "fixtures/tool.h"

#include <math.h>

static void scores_are_said_and_written(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a b c d e f\\nh i\\n' >r; printf 'a b c d e g\\r\\nh j\\r\\n' >h; $A bleu h r"), 0);
    /* precisions 6/8, 4/6, 3/4, 2/3 */
    assert_has(tool_out, "BLEU   70.71  75.0/66.7/75.0/66.7, brevity 1.000: 8 words, references 8\n");
    assert_has(tool_out, "\n2 lines, 1 reference, words by 13a\n");
    assert_int_equal(tool("$A bleu --json - r r <h"), 0);
    json_t *v = line_json(0);
    assert_true(fabs(number(v, "bleu") - 100 * sqrt(0.5)) < 1e-7);
    assert_true(number(v, "lines") == 2 && number(v, "references") == 2 && number(v, "brevity") == 1);
    assert_null(json_object_get(v, "bleu_low"));
    json_decref(v);
    assert_int_equal(tool("printf '\\n\\357\\277\\275\\n' >o; $A bleu o o"), 0); /* an empty line, and U+FFFD */
    assert_has(tool_out, "1 words, references 1\n");
}

static void short_texts_can_do_without_long_orders(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a b c\\n' >r; $A bleu r r"), 0);
    assert_has(tool_out, "BLEU    0.00  100.0/100.0/100.0/0.0, ");
    assert_int_equal(tool("$A bleu --effective-order r r"), 0);
    assert_has(tool_out, "BLEU  100.00  ");
    assert_int_equal(tool("$A bleu --tokenize char --effective-order r r"), 0);
    assert_has(tool_out, " 3 words, references 3\n");
    assert_int_equal(tool("echo 'a, b.' >r; $A bleu --tokenize none r r"), 0);
    assert_has(tool_out, " 2 words, references 2\n");
}

/* Rows of the table have all lines once, those of 5 words and fewer, of 6 to 10, ... */
static void a_table_has_a_row_for_each_length(void **state)
{
    (void)state;
    assert_int_equal(tool("for n in 1 5 6 7 12 200; do yes w | head -$n | tr '\\n' ' '; echo; done >r; "
                          "tac r >s; $A bleu --by-length --json r r"),
                     0);
    static const double rows[][4] = {{3, 0, 5, 2}, {6.5, 6, 10, 2}, {12, 11, 15, 1}, {200, 151, 0, 1}};
    assert_int_equal(count(tool_out, "\n"), 5);
    for (int i = 0; i < 4; i++) {
        json_t *v = line_json(1 + i);
        assert_true(number(v, "length") == rows[i][0] && number(v, "from") == rows[i][1]);
        assert_true(i == 3 ? !json_object_get(v, "to") : number(v, "to") == rows[i][2]);
        assert_true(number(v, "lines") == rows[i][3] && fabs(number(v, "bleu") - 100) < 1e-7);
        assert_true(number(v, "words") == rows[i][0] * rows[i][3] &&
                    number(v, "reference_words") == number(v, "words"));
        json_decref(v);
    }
    assert_int_equal(tool("$A bleu --source s r r | tail -4"), 0);
    assert_has(tool_out, "      0-5       2  100.00  100.00\n");
    assert_has(tool_out, "     151-       1    0.00  100.00\n"); /* of one word, which has no n-grams */
}

static void intervals_are_the_same_each_time(void **state)
{
    (void)state;
    assert_int_equal(tool("i=0; while [ $i -lt 40 ]; do echo a b c d e $((i / 3)) f g; i=$((i+1)); done >r; "
                          "sed 's/1 f/x f/' r >h; "
                          "$A bleu --confidence h r >1; $A bleu --confidence h r >2; cmp 1 2 && cat 1"),
                     0);
    assert_has(tool_out, " ± ");
    assert_int_equal(tool("$A bleu --confidence --by-length --json h r"), 0);
    json_t *all = line_json(0), *row = line_json(1);
    assert_true(number(all, "bleu_low") < number(all, "bleu") && number(all, "bleu") < number(all, "bleu_high"));
    assert_true(number(all, "chrf_low") < number(all, "chrf_mean"));
    assert_true(number(row, "bleu_low") == number(all, "bleu_low")); /* all lines are of one length */
    json_decref(all);
    json_decref(row);
    assert_int_equal(tool("head -1 h >1; $A bleu --confidence 1 1"), 0);
    assert_null(strstr(tool_out, "±")); /* of one line there is but one sample */
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    assert_refused("printf 'a\\nb\\n' >r; echo a >h; $A bleu h r", 1, "h has 1 lines, but r has 2");
    assert_refused("$A bleu r r h", 1, "h has 1 lines, but r has 2");
    assert_refused("$A bleu r r --source h", 1, "h has 1 lines, but r has 2");
    assert_refused("$A bleu /dev/null /dev/null", 1, "/dev/null: no lines");
    assert_refused("$A bleu missing r", 1, "missing: No such file");
    assert_refused("$A bleu h .", 1, ".: is a folder");
    assert_refused("$A bleu h", 2, "TRANSLATION REFERENCE... is needed");
    assert_refused("$A bleu - -", 2, "standard input can be one file only");
    assert_refused("$A bleu --tokenize 13 h r", 2, "\"13\" is not one of 13a|char|none; did you mean \"13a\"?");
    assert_refused("$A bleu h h >/dev/full", 1, "standard output: No space left");
}

/* The figures that tests/golden/make_bleu.py prints, rounded to ten digits there and here. */
static void figures_of_a_real_test_set_equal_the_reference(void **state)
{
    (void)state;
    const char *file = data_file("multi30k/test_2016_flickr.en.gz");
    char full[4096];
    if (!file) {
        print_message("skipped: multi30k/test_2016_flickr.en.gz does not exist\n");
        skip();
    }
    assert_non_null(realpath(file, full));
    setenv("P", full, 1);
    assert_int_equal(tool("gzip -dc $P >r; sed 's/ a / the /g;s/\\([a-z]*\\) \\([a-z]*\\)\\.$/\\2 \\1 ./;"
                          "s/^\\(A man\\) /One &/' r >h; "
                          "for t in 13a char none; do $A bleu --tokenize $t --json h r; done"),
                     0);
    static const double bleu[] = {60.001068376509, 84.483844246913, 56.936062502107}, chrf = 83.285211444164;
    for (int i = 0; i < 3; i++) {
        json_t *v = line_json(i);
        assert_true(number(v, "lines") == 1000);
        assert_true(fabs(number(v, "bleu") - bleu[i]) < 1e-8 && fabs(number(v, "chrf") - chrf) < 1e-8);
        json_decref(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_said_and_written),
        cmocka_unit_test(short_texts_can_do_without_long_orders),
        cmocka_unit_test(a_table_has_a_row_for_each_length),
        cmocka_unit_test(intervals_are_the_same_each_time),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(figures_of_a_real_test_set_equal_the_reference),
    };
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
