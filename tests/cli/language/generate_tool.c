/* attend generate: prompts from everywhere, sampling options, JSON, ends. */
#include "fixtures/tool.h"

#include <math.h>

/* Makes the tiny language model as $L: its tokens are the letters a to t; it has 32 positions. */
static int set_up(void **state)
{
    char path[4096];
    if (!realpath("tests/golden/tiny_llama", path))
        return 1;
    setenv("L", path, 1);
    unsetenv("ATTEND_LANGUAGE_MODEL");
    return tool_setup(state);
}

static void assert_prints(const char *line, const char *text)
{
    const int code = tool(line);
    if (code || strcmp(tool_out, text) != 0)
        fail_msg("%s: exit code %d, \"%s\", not \"%s\": %s", line, code, tool_out, text, tool_err);
}

static void the_prompt_is_an_argument_a_file_or_standard_input(void **state)
{
    (void)state;
    assert_prints("$A generate -m $L -n 6 bdcab", "oeqegs\n");
    assert_string_equal(tool_err, "");
    assert_prints("printf 'bdcab\\n' >p; $A generate -m $L -n 6 -f p", "oeqegs\n");
    assert_prints("gzip -c p >p.gz; $A generate -m $L -n 6 -f p.gz", "oeqegs\n");
    assert_prints("printf 'bdcab\\r\\n' | $A generate -m $L -n 6", "oeqegs\n");
    assert_prints("printf bdcab | $A generate -m $L -n 6 -f - --stream", "oeqegs\n");
    assert_int_equal(tool("$A generate -m $L -n 6 --stream bdcab >/dev/full"), 1);
    assert_has(tool_err, "standard output: No space left");
    assert_prints("ATTEND_LANGUAGE_MODEL=$L $A generate -n 6 bdcab", "oeqegs\n");
    assert_prints("printf 'bdcab\\nt\\n' | $A generate -m $L -n 6 --lines", "oeqegs\nceqeje\n");
    assert_prints("yes bdcab | head -n 150 | $A generate -m $L -n 6 --lines | sort | uniq -c | sed 's/^ *//'",
                  "150 oeqegs\n");
}

static void a_first_token_that_is_typed_again_is_noted(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir b; cp $L/* b; "
                          "echo '{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3}, "
                          "\"merges\": []}, \"added_tokens\": [{\"id\": 4, \"content\": \"<s>\", \"special\": true}], "
                          "\"decoder\": {\"type\": \"Fuse\"}, \"post_processor\": {\"type\": \"TemplateProcessing\", "
                          "\"single\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, "
                          "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], "
                          "\"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [4], \"tokens\": [\"<s>\"]}}}}' "
                          ">b/tokenizer.json; $A generate -m b -n 2 '<s>abc'"),
                     0);
    assert_has(tool_err, "the prompt begins with \"<s>\", which the model puts before it, too: leave it out");
    assert_int_equal(tool("printf 'abc\n<s>b\n' | $A generate -m b -n 2 --lines"), 0);
    assert_has(tool_err, "line 2 begins with \"<s>\"");
    assert_int_equal(tool("$A generate -m b -n 2 'a<s><s>'"), 0);
    assert_string_equal(tool_err, "");
}

static void a_text_ends_where_the_options_say(void **state)
{
    (void)state;
    assert_prints("$A generate -m $L --stop gs --stop zz bdcab", "oeqe\n");
    assert_prints("$A generate -m $L --stop gs --stream bdcab", "oeqe\n");
    assert_prints("$A generate -m $L -n 0 bdcab", "oeqegslaegslaegslaegslaegsl\n");
    assert_has(tool_err, "the text ends where it has the model's 32 positions");
    assert_prints("mkdir e; cp $L/* e; echo '{\"eos_token_id\": 6}' >e/generation_config.json; "
                  "$A generate -m e bdcab; $A generate -m e -n 6 --ignore-eos bdcab",
                  "oeqe\noeqegs\n");
    assert_prints("$A generate -m $L -n 24 --lookup 5 bdcab", "oeqegslaegslaegslaegslae\n");
}

static void sampling_is_asked_for_and_said(void **state)
{
    (void)state;
    assert_prints("$A generate -m $L -n 6 --temperature 0 --top-k 5 bdcab", "oeqegs\n");
    assert_string_equal(tool_err, "");
    assert_prints("$A generate -m $L -n 24 --repetition-penalty 1.3 bdcab", "oeqslaegslaegslaejegslae\n");
    assert_string_equal(tool_err, "");
    assert_prints("$A generate -m $L -n 6 --top-k 1 bdcab", "oeqegs\n");
    assert_has(tool_err, "sampling with --temperature 1 --top-k 1 --top-p 1 --min-p 0 --repetition-penalty 1 --seed ");
    assert_int_equal(tool("$A generate -m $L --temperature 2 --seed 5 -n 20 bdcab >1; "
                          "$A generate -m $L --temperature 2 --seed 5 -n 20 -t 1 bdcab >2; "
                          "$A generate -m $L --temperature 2 --seed 6 -n 20 bdcab >3; cmp 1 2 && ! cmp -s 1 3"),
                     0);
    assert_int_equal(tool("printf 'bdcab\\nt\\n' | $A generate -m $L --sample --seed 5 -n 20 --lines | head -n 1 >1; "
                          "$A generate -m $L --sample --seed 5 -n 20 bdcab | cmp 1 -"),
                     0);
    assert_int_equal(tool("mkdir s; cp $L/* s; echo '{\"do_sample\": true, \"temperature\": 0.5, \"top_k\": 7}' "
                          ">s/generation_config.json; $A generate -m s -n 6 bdcab"),
                     0);
    assert_string_equal(tool_out, "oeqegs\n"); /* greedy, as nothing asks for sampling */
    assert_int_equal(tool("$A generate -m s -n 6 --min-p 0.25 bdcab"), 0);
    assert_has(tool_err, "--temperature 0.5 --top-k 7 --top-p 1 --min-p 0.25");
}

static void penalties_and_biases_change_the_text(void **state)
{
    (void)state;
    assert_prints("$A generate -m $L -n 24 --presence-penalty 2 --lookup 5 bdcab; "
                  "$A generate -m $L -n 24 --presence-penalty=2 bdcab",
                  "oeqslarhpcbgmifaejegslae\noeqslarhpcbgmifaejegslae\n");
    assert_string_equal(tool_err, "");
    assert_prints("$A generate -m $L -n 24 --frequency-penalty 0.5 bdcab", "oeqegslaifaegslaegslarqs\n");
    assert_prints("$A generate -m $L -n 6 --logit-bias 4=-inf --logit-bias 16=-100 bdcab", "orhosl\n");
    assert_prints("$A generate -m $L -n 6 --logit-bias 7=100 bdcab", "hhhhhh\n");
    assert_string_equal(tool_err, "");
    assert_prints("$A generate -m $L -n 6 --logit-bias 7=100 --sample --seed 3 --frequency-penalty -1 bdcab",
                  "hhhhhh\n");
    assert_has(tool_err, "--repetition-penalty 1 --presence-penalty 0 --frequency-penalty -1 --logit-bias as given "
                         "--seed 3");
}

static void json_has_tokens_and_log_probabilities(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'bdcab\\nt\\n' | $A generate -m $L -n 3 --lines --json --stop q"), 0);
    json_t *v = line_json(0), *token = json_array_get(json_object_get(v, "tokens"), 0);
    assert_string_equal(json_string_value(json_object_get(v, "prompt")), "bdcab");
    assert_string_equal(json_string_value(json_object_get(v, "text")), "oe");
    assert_string_equal(json_string_value(json_object_get(v, "end")), "stop");
    assert_int_equal(json_array_size(json_object_get(v, "tokens")), 3);
    assert_int_equal(number(token, "id"), 14);
    assert_string_equal(json_string_value(json_object_get(token, "token")), "o");
    assert_true(fabs(number(token, "log_probability") + 1.2378945) < 1e-5);
    json_decref(v);
    v = line_json(1);
    assert_string_equal(json_string_value(json_object_get(v, "text")), "ce");
    json_decref(v);
    assert_int_equal(tool("$A generate -m $L -n 3 --json --stream bdcab"), 0);
    assert_int_equal(count(tool_out, "\n"), 3);
    v = line_json(2);
    assert_int_equal(number(v, "prompt"), 0);
    assert_int_equal(number(v, "position"), 7);
    assert_string_equal(json_string_value(json_object_get(v, "text")), "q");
    assert_true(json_is_true(json_object_get(v, "last")));
    json_decref(v);
}

static void json_has_the_most_probable_tokens_and_those_of_the_prompt(void **state)
{
    (void)state;
    assert_int_equal(tool("$A generate -m $L -n 3 --json --top-logprobs 4 --prompt-logprobs bdcab"), 0);
    json_t *v = line_json(0), *tokens = json_object_get(v, "tokens"), *prompt = json_object_get(v, "prompt_logprobs");
    assert_int_equal(json_array_size(tokens), 3);
    for (size_t i = 0; i < 3; i++) { /* the text is greedy */
        json_t *token = json_array_get(tokens, i), *top = json_object_get(token, "top_logprobs");
        assert_int_equal(json_array_size(top), 4);
        assert_true(number(json_array_get(top, 0), "id") == number(token, "id"));
        assert_true(number(json_array_get(top, 0), "log_probability") == number(token, "log_probability"));
        for (size_t k = 1; k < 4; k++)
            assert_true(number(json_array_get(top, k), "log_probability") <=
                        number(json_array_get(top, k - 1), "log_probability"));
    }
    assert_int_equal(json_array_size(prompt), 5);
    assert_int_equal(number(json_array_get(prompt, 4), "id"), 1);
    assert_true(json_is_null(json_object_get(json_array_get(prompt, 0), "log_probability")));
    assert_int_equal(json_array_size(json_object_get(json_array_get(prompt, 0), "top_logprobs")), 0);
    assert_int_equal(json_array_size(json_object_get(json_array_get(prompt, 4), "top_logprobs")), 4);
    const double last = number(json_array_get(prompt, 4), "log_probability");
    json_decref(v);
    assert_int_equal(tool("$A generate -m $L -n 1 --json bdca --logit-bias 1=100"), 0);
    v = line_json(0);
    assert_true(number(json_array_get(json_object_get(v, "tokens"), 0), "log_probability") == last);
    assert_null(json_object_get(json_array_get(json_object_get(v, "tokens"), 0), "top_logprobs"));
    json_decref(v);
    assert_int_equal(tool("$A generate -m $L -n 1 --json --stream --top-logprobs 2 bdcab"), 0);
    v = line_json(0);
    assert_int_equal(json_array_size(json_object_get(v, "top_logprobs")), 2);
    json_decref(v);
}

static void a_closed_pipe_and_an_interrupt_end_it(void **state)
{
    (void)state;
    assert_prints("(yes bdcab | $A generate -m $L -n 6 --lines; echo $? >code) | head -n 1", "oeqegs\n");
    assert_string_equal(tool_err, "");
    assert_prints("cat code", "141\n");
    assert_refused("$A generate -m $L -n 6 bdcab >/dev/full", 1, "standard output: No space left");
}

static void wrong_usage_is_refused(void **state)
{
    (void)state;
    assert_refused("$A generate -m $L ''", 1, "the prompt is empty, and this model continues at least one token");
    assert_refused("$A generate -m $L abcdefghijklmnopabcdefghijklmnop", 1,
                   "the prompt has 32 tokens but the model has 32 positions, for prompt and text");
    assert_refused("$A generate -m $L -f p bdcab", 2, "--file p does not go with a prompt as an argument");
    assert_refused("$A generate -m $L --lines bdcab", 2, "--lines is for a file or standard input");
    assert_refused("$A generate -m $L --lines --stream <p", 2, "--stream does not go with --lines");
    assert_refused("$A generate -m $L --stop '' a", 2, "--stop is empty");
    assert_refused("$A generate -m $L --seed 3 a", 2,
                   "--seed 3 is for random tokens: --sample or --temperature is needed");
    assert_refused("$A generate -m $L --temperature -1 a", 2, "--temperature: \"-1\" is not a number from 0 to");
    assert_refused("$A generate -m $L --temperature 1e-9 a", 2,
                   "--temperature: \"1e-09\" is neither 0 nor a number from 1e-6");
    assert_refused("$A generate -m $L --top-p 0 a", 2, "--top-p: \"0\" is not a number greater than 0, up to 1");
    assert_refused("$A generate -m $L --top-k -1 a", 2, "--top-k: \"-1\" is not a whole number from 0");
    assert_refused("$A generate -m $L --min-p 2 a", 2, "--min-p: \"2\" is not a number from 0 to 1");
    assert_refused("$A generate -m $L --repetition-penalty 0 a", 2, "--repetition-penalty: \"0\" is not a number from");
    assert_refused("$A generate -m $L --presence-penalty 3 a", 2,
                   "--presence-penalty: \"3\" is not a number from -2 to 2");
    assert_refused("$A generate -m $L --logit-bias 3 a", 2, "--logit-bias: \"3\" is not ID=X, such as 42=-1.5");
    assert_refused("$A generate -m $L --logit-bias 3=x a", 2, "\"3=x\" is not ID=X");
    assert_refused("$A generate -m $L --logit-bias -1=2 a", 2, "\"-1=2\" is not ID=X");
    assert_refused("$A generate -m $L --logit-bias 3=101 a", 2,
                   "--logit-bias: 101 in \"3=101\" is neither a number from -100 to 100 nor -inf");
    assert_refused("$A generate -m $L --logit-bias 3=nan a", 2, "nan in \"3=nan\" is neither");
    assert_refused("$A generate -m $L --logit-bias 20=1 a", 2,
                   "--logit-bias: \"20=1\" is for token 20, but the model's are 0 to 19");
    assert_refused("$A generate -m $L --top-logprobs 3 a", 2, "--top-logprobs is for --json");
    assert_refused("$A generate -m $L --prompt-logprobs a", 2, "--prompt-logprobs is for --json");
    assert_refused("$A generate -m $L --json --top-logprobs 21 a", 2, "--top-logprobs 21: the model has 20 tokens");
    assert_refused("$A generate -m $L --json --stream --prompt-logprobs a", 2,
                   "--prompt-logprobs does not go with --stream");
    assert_refused("$A generate -m $L --lookup 65 a", 2, "--lookup: \"65\" is not a whole number from 0 to 64");
    assert_refused("$A generate -m $D a", 1, "sentence model");
    assert_refused("$A generate -m $L -f missing", 1, "missing: No such file");
    assert_refused("mkdir bad; cp $L/* bad; echo '{\"num_beams\": 4}' >bad/generation_config.json; "
                   "$A generate -m bad a",
                   1, "\"num_beams\" is 4, which is not supported");
}

static void a_line_that_cannot_be_continued_is_its_own_error(void **state)
{
    (void)state;
    static const char lines[] = "printf 'bdcab\\n\\nabcdefghijklmnopabcdefghijklmnopq\\nt\\n\\n' >refused; ";
    char command[256];
    snprintf(command, sizeof command, "%s$A generate -m $L -n 6 --lines -f refused", lines);
    assert_int_equal(tool(command), 1);
    assert_has(tool_err, "line 2 is empty, and this model continues at least one token");
    assert_has(tool_err, "line 3 has 33 tokens but the model has 32 positions, for prompt and text");
    assert_has(tool_err, "line 5 is empty");
    assert_string_equal(tool_out, "oeqegs\n\n\nceqeje\n\n");
    assert_int_equal(tool("$A generate -m $L -n 6 --lines --json -f refused"), 1);
    assert_has(tool_out, "{\"prompt\": \"\", \"text\": null, \"end\": \"error\"}\n");
    /* Random tokens of a line do not depend on whether others are refused. */
    assert_int_equal(tool("$A generate -m $L -n 6 --sample --seed 3 --lines -f refused >1; "
                          "sed 's/^$/a/; s/^abcd.*/a/' refused | $A generate -m $L -n 6 --sample --seed 3 --lines >2; "
                          "[ \"$(sed -n 4p 1)\" = \"$(sed -n 4p 2)\" ]"),
                     0);
}

static void the_speed_is_reported(void **state)
{
    (void)state;
    assert_prints("$A generate -m $L -n 6 --stats bdcab", "oeqegs\n");
    assert_has(tool_err, "prompt of 5 tokens, 0 of them cached; first token after ");
    assert_has(tool_err, ", then 5 at ");
    assert_int_equal(tool("printf 'bdcab\nt\n' | $A generate -m $L -n 6 --stats --lines"), 0);
    assert_has(tool_err, "prompt of 6 tokens, 0 of them cached; first token after ");
    assert_has(tool_err, ", then 11 at ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prompt_is_an_argument_a_file_or_standard_input),
        cmocka_unit_test(a_first_token_that_is_typed_again_is_noted),
        cmocka_unit_test(a_text_ends_where_the_options_say),
        cmocka_unit_test(sampling_is_asked_for_and_said),
        cmocka_unit_test(penalties_and_biases_change_the_text),
        cmocka_unit_test(json_has_tokens_and_log_probabilities),
        cmocka_unit_test(json_has_the_most_probable_tokens_and_those_of_the_prompt),
        cmocka_unit_test(a_closed_pipe_and_an_interrupt_end_it),
        cmocka_unit_test(wrong_usage_is_refused),
        cmocka_unit_test(a_line_that_cannot_be_continued_is_its_own_error),
        cmocka_unit_test(the_speed_is_reported),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
