/* attend translate: a line for each line, what it says of it, and what is wrong. */
// labels: long
#include "fixtures/check.h"
#include "fixtures/translator_tool.h"

#include <math.h>

static void each_line_becomes_a_line_in_its_place(void **state)
{
    (void)state;
    static const char *const one[] = {"Ein Hund", "the table", "in China"};
    char expected[1024] = "", line[128];
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "echo '%s' | $A translate -m $T", one[i]);
        assert_int_equal(tool(line), 0);
        assert_int_equal(count(tool_out, "\n"), 1);
        assert_true(tool_bytes > 1);
        strcat(expected, tool_out);
        strcat(expected, i == 1 ? "\n" : "");
    }
    assert_int_equal(tool("printf 'Ein Hund\\nthe table\\r\\n\\nin China' | $A translate -m $T"), 0);
    assert_string_equal(tool_out, expected);
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("printf 'Ein Hund\\nthe table\\n' >1; printf '\\nin China\\n' | $A translate -m $T -t 1 1 -"),
                     0);
    assert_string_equal(tool_out, expected);
    assert_int_equal(
        tool("$A translate -m $T --text 'Ein Hund' --text 'the table' --text '' --text 'in China' -o o; cat o"), 0);
    assert_string_equal(tool_out, expected);
    assert_int_equal(tool("$A translate -m $T -f 1 >2 && $A translate -m $T 1 | cmp - 2"), 0);
    assert_refused("$A translate -m $T -f 1 --text a", 2, "--text does not go with --file");
    assert_int_equal(tool("ATTEND_MODELS=. $A translate -m de-en </dev/null"), 0);
    assert_int_equal(tool_bytes, 0);
}

static void blocks_are_translated_as_they_come_and_keep_their_order(void **state)
{
    (void)state;
    assert_int_equal(tool("i=0; while [ $i -lt 600 ]; do echo a $((i % 7)) table; i=$((i+1)); done >many; "
                          "$A translate -m $T -b 1 --max-length 3 many >1; head -7 many | "
                          "$A translate -m $T -b 1 --max-length 3 >2; i=0; "
                          "while [ $i -lt 86 ]; do cat 2; i=$((i+1)); done | head -600 | cmp - 1"),
                     0);
    /* the first line is there before the second has come */
    assert_int_equal(tool("{ echo a; await 'test -s out' && echo yes >&2; echo b; } | $A translate -m $T -b 1 >out"),
                     0);
    assert_string_equal(tool_err, "yes\n");
}

static void the_best_come_with_their_scores(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'Ein Hund\\n\\n' | $A translate -m $T --nbest 3 --beam 3 --scores"), 0);
    double score[3];
    char *at = tool_out;
    for (int i = 0; i < 3; i++) {
        score[i] = strtod(at, &at);
        assert_true(*at == '\t' && at[1] != '\n');
        at = strchr(at, '\n') + 1;
    }
    assert_true(score[0] >= score[1] && score[1] >= score[2]);
    assert_string_equal(at, "\n\n\n"); /* of nothing, nothing: three lines all the same */
    assert_int_equal(tool("printf 'Ein Hund\\n\\n' | $A translate -m $T -n 3 -b 3 --json"), 0);
    json_t *v = line_json(0), *list = json_object_get(v, "translations");
    assert_string_equal(json_string_value(json_object_get(v, "text")), "Ein Hund");
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(fabs(number(json_array_get(list, i), "score") - score[i]) < 1e-4);
    assert_true(json_is_string(json_array_get(json_object_get(json_array_get(list, 0), "tokens"), 0)));
    json_decref(v);
    v = line_json(1);
    list = json_object_get(v, "translations");
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "text")), "");
    json_decref(v);
}

static int tokens_of_first(void)
{
    json_t *v = line_json(0), *t = json_array_get(json_object_get(v, "translations"), 0);
    const int n = (int)json_array_size(json_object_get(t, "tokens"));
    json_decref(v);
    return n;
}

static void lengths_and_penalties_are_followed(void **state)
{
    (void)state;
    assert_int_equal(tool("echo Ein Hund | $A translate -m $T --max-length 4 --json"), 0);
    assert_in_range(tokens_of_first(), 1, 3);
    assert_int_equal(tool("echo Ein Hund | $A translate -m $T --min-length 11 --json"), 0);
    assert_in_range(tokens_of_first(), 10, 11);
    assert_int_equal(tool("echo Ein Hund | $A translate -m $T -s --length-penalty 0 | cut -f1"), 0);
    const double sum = atof(tool_out);
    assert_int_equal(tool("echo Ein Hund | $A translate -m $T -s --length-penalty 0.0001 | cut -f1"), 0);
    assert_true(fabs(atof(tool_out) - sum) < 0.01 && sum < -1);
}

static void alignments_are_written_as_they_are_asked_for(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'Ein Hund\\n\\nin China\\n' | $A translate -m $T --max-length 5 --alignment a.json "
                          ">/dev/null && cat a.json"),
                     0);
    assert_int_equal(count(tool_out, "\n"), 2);
    for (int i = 0; i < 2; i++) {
        json_t *v = line_json(i), *rows = json_object_get(v, "weights");
        const size_t columns = json_array_size(json_object_get(v, "source"));
        assert_true(number(v, "layer") == MARIAN_DECODER_LAYERS - 1 && !json_object_get(v, "head"));
        assert_int_equal(json_array_size(rows), json_array_size(json_object_get(v, "target")));
        double sum = 0;
        for (size_t k = 0; k < columns; k++)
            sum += json_number_value(json_array_get(json_array_get(rows, 0), k));
        assert_true(fabs(sum - 1) < 1e-5);
        assert_int_equal(json_array_size(json_array_get(rows, 0)), columns);
        json_decref(v);
    }
    assert_int_equal(tool("echo Ein Hund | $A translate -m $T -a h.json -l 1 -H 3 >/dev/null && cat h.json"), 0);
    assert_has(tool_out, "{\"layer\": 1, \"head\": 3, \"source\": [");
    assert_int_equal(tool("echo Ein Hund | $A translate -m $T -a h.svg >/dev/null && cat h.svg"), 0);
    assert_has(tool_out, "Layer 2, mean of 4 heads: Ein Hund");
    assert_has(tool_out, "translation (row)");
    assert_int_equal(tool("printf 'a\\nb\\n' | $A translate -m $T -a h.svg -H 0 2>err >/dev/null && cat err h.svg"), 0);
    assert_has(tool_out, "h.svg shows the first of 2 texts");
    assert_has(tool_out, "Layer 2, head 0: a");
    assert_int_equal(tool("echo Ein Hund | $A translate -m $T --max-length 4 -a -"), 0);
    assert_has(tool_out, "\n\nt↓ s→ ");
    assert_has(tool_out, "  </s>");
}

static void long_lines_are_refused_or_split(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a\\nThe snow is in the table. A Hund is running in China.\\n' >long"), 0);
    assert_refused("$A translate -m $T long", 1, "line 2 has ");
    assert_has(tool_err, " tokens but the model has 16 positions; with --split it is translated in parts\n");
    assert_int_equal(tool("{ cat long; echo a; } | $A translate -m $T >some; echo $?; $A translate -m $T --text a"), 0);
    const char *one = strchr(tool_out, '\n') + 1;
    char expected[256];
    snprintf(expected, sizeof expected, "%s\n%s", one, one); /* the others are translated */
    assert_int_equal(strncmp(tool_out, "1\n", 2), 0);
    assert_int_equal(tool("cat some"), 0);
    assert_string_equal(tool_out, expected);
    assert_int_equal(tool("{ cat long; echo a; } | $A translate -m $T -o file; [ $? = 1 ] && cat file"), 0);
    assert_string_equal(tool_out, expected); /* as complete as on standard output */
    assert_int_equal(tool("$A translate -m $T --json long; [ $? = 1 ]"), 0);
    assert_has(tool_out, "China.\", \"translations\": []}\n");
    assert_int_equal(tool("$A translate -m $T --split long"), 0);
    assert_int_equal(count(tool_out, "\n"), 2);
    /* a line of a megabyte, and one of characters that are not known */
    setenv("BYTES", check_step(20) > 1 ? "50000" : "1000000", 1);
    assert_int_equal(tool("{ yes 'a b.' | head -c $BYTES | tr '\\n' ' '; printf '\\n\\342\\230\\203 x\\n'; } | "
                          "timeout 300 $A translate -m $T --split -b 1 --max-length 2"),
                     0);
    assert_int_equal(count(tool_out, "\n"), 2);
}

static void a_prefix_begins_each_translation(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a\\n\\nEin Hund\\n' | $A translate -m $T --prefix 'in the'"), 0);
    assert_int_equal(strncmp(tool_out, "in the", 6), 0);
    assert_has(tool_out, "\n\nin the");
    assert_refused("echo a | $A translate -m $T --max-length 2 --prefix 'in the snow'", 2, "--prefix has ");
    assert_has(tool_err, " tokens, and a translation at most 2, the end token included\n");
}

static void what_the_model_cannot_read_is_said_once(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a\\n\\342\\230\\203 Ein Hund\\n\\342\\230\\204\\342\\230\\203\\n' >snow; "
                          "$A translate -m $T -b 1 --max-length 3 snow"),
                     0);
    assert_int_equal(count(tool_out, "\n"), 3);
    assert_string_equal(tool_err, "attend: 2 lines have characters that the model does not know: \xE2\x98\x83 "
                                  "\xE2\x98\x84\n");
    assert_int_equal(tool("$A tokenize -m $T snow >/dev/null; $A tokenize -m $T snow --json >/dev/null"), 0);
    assert_int_equal(count(tool_err, "2 lines have characters that the model does not know: \xE2\x98\x83 "), 2);
    assert_int_equal(tool("$A embed -m $D snow | wc -l"), 0);
    assert_string_equal(tool_out, "3\n");
    assert_has(tool_err, "2 lines have characters that the model does not know: \xE2\x98\x83");
    /* more than can be shown, and what does not show */
    FILE *f = folder_open(&tool_model, "many");
    for (int i = 0; i < 30; i++)
        fprintf(f, "\xE2\x98%c\n", 0x80 + i);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(tool("$A translate -m $T -b 1 --max-length 3 many"), 0);
    assert_has(tool_err, "attend: 30 lines have characters that the model does not know: \xE2\x98\x80 ");
    assert_has(tool_err, " and others\n");
    assert_int_equal(tool("printf 'a\\342\\200\\213b\\000\\n' | $A tokenize -m $T"), 0);
    assert_has(tool_err, "1 line has characters that the model does not know: U+");
}

static void wrong_usage_is_named(void **state)
{
    (void)state;
    assert_refused("$A translate -m $T --beam 2 --nbest 3", 2, "--nbest 3 is more than --beam 2");
    assert_refused("echo a | $A translate -m $T --nbest 5", 2,
                   "--nbest 5 is more than the model's beam size, 4: --beam 5 is needed");
    assert_refused("$A translate -m $T --min-length 9 --max-length 8", 2, "--min-length 9 is more than --max-length 8");
    assert_refused("$A translate -m $T --max-length 17", 2, "--max-length: the model has 16 positions, not 17");
    assert_refused("$A translate -m $T --min-length 17", 2, "--min-length: the model has 16 positions, not 17");
    assert_refused("$A translate -m $T --layer 1", 2, "--layer is for --alignment");
    assert_refused("$A translate -m $T --head 1", 2, "--head is for --alignment");
    assert_refused("$A translate -m $T -a x.svg --layer 3", 2, "--layer: the decoder has the layers 0 to 2, not 3");
    assert_refused("$A translate -m $T -a x.svg --head 4", 2, "--head: the decoder has the heads 0 to 3, not 4");
    assert_refused("$A translate -m $T -a x.svg --split", 2, "--alignment does not go with --split");
    assert_refused("$A translate -m $T -a - --json", 2, "--alignment - does not go with --json");
    assert_refused("$A translate -m $T --length-penalty x", 2, "\"x\" is not a number");
}

static void what_cannot_be_read_or_written_is_named(void **state)
{
    (void)state;
    assert_refused("$A translate -m $D </dev/null", 1, "is a sentence model: attend embed");
    assert_refused("$A translate -m nix", 1, "\"nix\" is neither a folder nor a model in ");
    assert_refused("$A translate -m $T missing", 1, "missing: No such file");
    assert_refused("echo a | $A translate -m $T >/dev/full", 1, "standard output: No space left");
    assert_refused("echo a | $A translate -m $T -a none/a.json >/dev/null", 1, "none/a.json: No such file");
    assert_refused("$A translate -m $T -a a.svg </dev/null", 1, "a.svg: there is no text to draw");
    assert_refused("echo a | $A translate -m $T -a /dev/full >/dev/null", 1, "/dev/full: No space left");
    assert_refused("cp -r $T broken; rm broken/target.spm; echo a | $A translate -m broken", 1, "target.spm");
}

static void an_interrupted_run_leaves_no_file(void **state)
{
    (void)state;
    assert_int_equal(tool("rm -f out; mkfifo half_way; env --default-signal=INT $A translate -m $T -b 1 -a half.json "
                          "<half_way >out & "
                          "{ echo a; await 'test -s out'; kill -INT $!; wait $!; } >half_way"),
                     130);
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("ls -A | grep -c -e half.json -e .unfinished-"), 1);
    assert_string_equal(tool_out, "0\n");
    assert_int_equal(tool("{ $A translate -m $T many; echo $? >code; } | head -1 >/dev/null; cat code"), 0);
}

/* A translation may have a line feed, where a model writes it as a byte: here what was the second token becomes one. */
static void a_translation_stays_on_its_line(void **state)
{
    (void)state;
    char path[96];
    assert_int_equal(tool("cp -r $T feed; echo Ein Hund | $A translate -m $T --json"), 0);
    json_t *v = line_json(0), *best = json_array_get(json_object_get(v, "translations"), 0);
    const char *second = json_string_value(json_array_get(json_object_get(best, "tokens"), 1));
    snprintf(path, sizeof path, "%s/feed/vocab.json", tool_model.path);
    json_t *tokens = json_load_file(path, 0, NULL);
    json_object_set(tokens, "<0x0A>", json_object_get(tokens, second));
    json_object_del(tokens, second);
    assert_int_equal(json_dump_file(tokens, path, 0), 0);
    json_decref(tokens);
    json_decref(v);
    assert_int_equal(tool("echo Ein Hund | $A translate -m feed --json"), 0);
    assert_has(tool_out, ", \"<0x0A>\", ");
    assert_int_equal(tool("echo Ein Hund | $A translate -m feed"), 0);
    assert_int_equal(count(tool_out, "\n"), 1);
}

static void the_model_that_comes_along_translates(void **state)
{
    (void)state;
    assert_int_equal(tool("echo 'Kannst du mir helfen, diesen Satz zu übersetzen?' | $A translate"), 0);
    assert_string_equal(tool_out, "Can you help me translate this sentence?\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_becomes_a_line_in_its_place),
        cmocka_unit_test(blocks_are_translated_as_they_come_and_keep_their_order),
        cmocka_unit_test(the_best_come_with_their_scores),
        cmocka_unit_test(lengths_and_penalties_are_followed),
        cmocka_unit_test(alignments_are_written_as_they_are_asked_for),
        cmocka_unit_test(long_lines_are_refused_or_split),
        cmocka_unit_test(a_prefix_begins_each_translation),
        cmocka_unit_test(what_the_model_cannot_read_is_said_once),
        cmocka_unit_test(wrong_usage_is_named),
        cmocka_unit_test(what_cannot_be_read_or_written_is_named),
        cmocka_unit_test(an_interrupted_run_leaves_no_file),
        cmocka_unit_test(a_translation_stays_on_its_line),
        cmocka_unit_test(the_model_that_comes_along_translates),
    };
    return cmocka_run_group_tests(tests, translator_setup, tool_teardown);
}
