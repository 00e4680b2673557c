/* Each subcommand has its documented effect: on a tiny model, and on the real one if it is installed. */
// labels: long
#include "fixtures/tool.h"
#include "attend.h"

#include <math.h>

static void embed_gives_a_vector_for_each_line(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'ab c\\r\\n\\nd\\0e\\n\\357\\277\\275\"\\\\last' | $A embed -m $D"), 0);
    static const struct {
        const char *text;
        size_t bytes;
    } line[] = {{"ab c", 4}, {"", 0}, {"d\0e", 3}, {"\xEF\xBF\xBD\"\\last", 9}};
    assert_int_equal(count(tool_out, "\n"), 4);
    for (int i = 0; i < 4; i++) {
        json_t *v = line_json(i), *text = json_object_get(v, "text"), *row = json_object_get(v, "embedding");
        assert_int_equal(json_string_length(text), line[i].bytes);
        assert_memory_equal(json_string_value(text), line[i].text, line[i].bytes);
        assert_int_equal(json_array_size(row), TINY_HIDDEN);
        double length = 0;
        for (size_t k = 0; k < TINY_HIDDEN; k++)
            length += pow(json_number_value(json_array_get(row, k)), 2);
        assert_true(fabs(length - 1) < 1e-5);
        json_decref(v);
    }
    assert_string_equal(tool_err, "attend: 1 line has characters that the model does not know: \" \\ last\n");
}

static void formats_of_embed_hold_the_same_floats(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a b\\nc d e\\nf\\n' >in; $A embed -m $D --format npy in -o v.npy && cat v.npy"), 0);
    assert_int_equal(tool_bytes, 128 + 3 * TINY_HIDDEN * sizeof(float));
    assert_has(tool_out + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 12), }");
    float v[3 * TINY_HIDDEN];
    memcpy(v, tool_out + 128, sizeof v);
    assert_int_equal(tool("$A embed -m $D --format tsv - <in"), 0);
    char *p = tool_out;
    for (int i = 0; i < 3 * TINY_HIDDEN; i++, p++)
        assert_true(strtof(p, &p) == v[i]);
    assert_int_equal(tool("$A embed -m $D --format npy in >w.npy && cmp v.npy w.npy"),
                     0); /* a file as standard output */
    assert_int_equal(tool("$A embed -m $D <in >1; $A embed -m $D -t 1 in >2; cmp 1 2"), 0);
}

static void search_gives_the_same_with_an_index(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a b\\nc d e\\nf\\nb a\\n' >in; $A embed -m $D --format npy in -o v.npy"), 0);
    assert_int_equal(tool("$A search -m $D -c in -k 2 --json 'c d e' >1 && echo 'c d e' | "
                          "$A search -m $D -c in -i v.npy -k 2 --json >2 && cmp 1 2 && cat 2"),
                     0);
    json_t *v = line_json(0), *results = json_object_get(v, "results");
    assert_int_equal(json_array_size(results), 2);
    assert_int_equal((int)number(json_array_get(results, 0), "line"), 2);
    assert_true(fabs(number(json_array_get(results, 0), "score") - 1) < 1e-5);
    json_decref(v);
    assert_int_equal(tool("$A search -m $D -c in -k 100 a b"), 0);
    assert_int_equal(count(tool_out, "\n"), 2 * 5 + 1);
}

static void a_heading_of_pairs_is_said_and_is_no_pair(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* says or NULL: no heading */
    } cases[] = {
        {"sentence1,sentence2,score\\na,b,1\\nc,c,5\\n", "line 1 was read as a heading: sentence1, sentence2"},
        {"\\357\\273\\277Text1;Text2;Label\\r\\na;b;1\\r\\n\\r\\nc;c;5\\r\\n", "as a heading: Text1, Text2"},
        {"anchor\\tpositive\\tScore\\na\\tb\\t1\\nc\\tc\\t5\\n", "as a heading: anchor, positive"},
        {"left side,right side,how near\\na,b,1\\nc,c,5\\n", "as a heading: left side, right side"},
        {"a,b,1\\nc,c,5\\n", NULL},
        {"a;b;-1,25\\nc;c;3,5\\n", NULL},
        {",sentence1,sentence2,score\\n0,a,b,1\\n1,c,c,5\\n", "as a heading: sentence1, sentence2 ..."},
        {"id,Question1,Question2,is_duplicate\\n7,a,b,0\\n8,c,c,1\\n", "as a heading: Question1, Question2 ..."},
        {"gold_label\tpairID\tsentence_A\tsentence_B\\n1\tx\ta\tb\\n5\tx\tc\tc\\n", "sentence_A, sentence_B ..."},
        {"source1\tsource2\tsentence1\tsentence2\trated\\nx\tx\ta\tb\t1\\nx\tx\tc\tc\t5\\n", "sentence1, sentence2"},
        {"src,tgt,score\\na,b,1\\nsrc,tgt,score\\nc,c,5\\n", "line 1 was read as a heading: src, tgt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        snprintf(line, sizeof line, "printf '%s' >h.csv; $A similarity -m $D --pairs h.csv --gold --json",
                 cases[i].text);
        assert_int_equal(tool(line), 0);
        json_t *v = line_json(2);
        assert_true(number(v, "pairs") == 2 && number(v, "spearman") == 100);
        json_decref(v);
        assert_has(tool_err, cases[i].says ? cases[i].says : "");
        assert_int_equal(count(tool_err, "heading"), cases[i].says != NULL);
    }
}

static void columns_that_no_heading_names_are_noted(void **state)
{
    (void)state;
    assert_int_equal(tool("printf '7,a,b\\n8,c,c\\n' >h.csv; $A similarity -m $D --pairs h.csv"), 0);
    assert_has(tool_err, "h.csv: the columns 1 and 2 of 3 are compared");
    assert_int_equal(tool("printf 'id,sent1,sent2\\n7,a,b\\n8,c\\n' >h.csv; $A similarity -m $D --pairs h.csv"), 1);
    assert_has(tool_err, "line 3: 2 columns, but the heading has 3");
    assert_int_equal(tool("$A similarity -m $D --pairs h.csv --skip-bad-lines 1"), 0);
    assert_has(tool_err, "a malformed line was left out");
}

static void similarity_reads_quoted_pairs(void **state)
{
    (void)state;
    assert_int_equal(tool("printf '\"a, \"\"b\"\"\\nc\",\"a, \"\"b\"\"\\nc\",3\\r\\na,b,1\\n' >p.csv; "
                          "$A similarity -m $D --pairs p.csv --gold --json"),
                     0);
    json_t *v = line_json(0);
    assert_string_equal(json_string_value(json_object_get(v, "a")), "a, \"b\"\nc");
    assert_true(fabs(number(v, "score") - 1) < 1e-6 && number(v, "gold") == 3);
    json_decref(v);
    v = line_json(2);
    assert_true(number(v, "pairs") == 2 && number(v, "spearman") == 100);
    json_decref(v);
    assert_int_equal(tool("printf 'a\\tb\\na\\ta\\n' | $A similarity -m $D --pairs -"), 0);
    assert_has(tool_out, "\n1.000000\n");
    assert_int_equal(tool("$A similarity -m $D --json a b"), 0);
    v = line_json(0);
    assert_int_equal(json_array_size(json_object_get(v, "similarity")), 2);
    json_decref(v);
}

static void sentences_come_from_files_options_arguments_and_standard_input(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a b\\nc d e\\n' >in; $A similarity -m $D --json 'a b' 'c d e' >1; "
                          "for i in '-f in' '--file -' - ''; do $A similarity -m $D --json $i <in | cmp - 1; done"),
                     0);
    assert_string_equal(tool_out, "");
    assert_int_equal(tool("$A embed -m $D in >1; $A embed -m $D -f in --json | cmp - 1; "
                          "$A embed -m $D --text 'a b' --text 'c d e' | cmp - 1"),
                     0);
    assert_string_equal(tool_out, "");
    assert_int_equal(tool("$A search -m $D -c in 'a b' 'c d e' >1; $A search -m $D -c in -f in | cmp - 1; "
                          "$A search -m $D -c in - <in | cmp - 1; $A search -m $D -c in <in | cmp - 1"),
                     0);
    assert_string_equal(tool_out, "");
    assert_int_equal(tool("printf 'c\\n' >one; printf 'a\\0b\\nc\\n' >zero; yes ab | head -n 1001 >many"), 0);
    assert_refused("$A similarity -m $D -f one", 1, "one: one line, but two sentences are needed");
    assert_refused("$A similarity -m $D -f zero", 1, "zero: line 1 has a zero byte");
    assert_refused("$A similarity -m $D -f many", 1, "many: has more than 1000 lines; \"attend search\"");
    assert_refused("$A similarity -m $D -f in a b", 2, "--file does not go with sentences as arguments");
    assert_refused("$A similarity -m $D -f in -p in", 2, "--pairs does not go with --file");
    assert_refused("$A embed -m $D -f in in", 2, "--file does not go with files as arguments");
    assert_refused("$A embed -m $D -f in --text a", 2, "--text does not go with --file");
    assert_refused("$A embed -m $D 'a b'", 1, "a b: No such file or directory; a sentence is given by --text");
    assert_refused("$A embed -m $D -f npy", 2, "--file: there is no file \"npy\"; did you mean --format npy?");
    assert_refused("$A embed -m $D --json --format tsv in", 2, "--json does not go with --format tsv");
    assert_refused("$A search -m $D -c in -f in a", 2, "--file does not go with queries as arguments");
    assert_refused("$A search -m $D -c - -f -", 2, "standard input cannot be both the corpus and the queries");
    assert_refused("$A embed -m $D $(yes -- --text=a | head -n 257)", 2, "--text is given more than 256 times");
}

static void tokenize_cuts_where_the_model_does(void **state)
{
    (void)state;
    assert_int_equal(tool("echo 'ab c' | $A tokenize -m $D"), 0);
    assert_string_equal(tool_out, "[CLS] a ##b c [SEP]\n");
    assert_int_equal(tool("printf 'a\\n\\n' | $A tokenize -m $D --json"), 0);
    assert_string_equal(tool_out, "[2, 5, 3]\n[2, 3]\n");
    assert_int_equal(tool("echo a b c d e f g h i j k l m | $A tokenize -m $D"), 0);
    assert_int_equal(count(tool_out, " "), 12 - 1);
    assert_int_equal(tool("echo a b c d e f g h i j k l m | $A tokenize -m $D --no-truncate"), 0);
    assert_int_equal(count(tool_out, " "), 15 - 1);
}

static void tokens_have_their_offsets(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir -p gpt2 && cp $GPT2 gpt2/tokenizer.json"), 0);
    assert_int_equal(tool("printf 'a\xC3\xAF ve\n\n' | $A tokenize -m gpt2 --offsets"), 0);
    assert_string_equal(tool_out,
                        "{\"ids\": [64, 127, 107, 220, 332], \"tokens\": [\"a\", \"Ã\", \"¯\", \"Ġ\", \"ve\"], "
                        "\"special\": [false, false, false, false, false], "
                        "\"offsets\": [[0, 1], [1, 3], [1, 3], [3, 4], [4, 6]]}\n"
                        "{\"ids\": [], \"tokens\": [], \"special\": [], \"offsets\": []}\n");
    assert_int_equal(tool("echo 'A caf\xC3\xA9s' | $A tokenize -m $D --offsets"), 0);
    assert_has(tool_out, "\"special\": [true, false, ");
    assert_has(tool_out, "\"offsets\": [[0, 0], [0, 1], ");
}

static void ids_are_decoded(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir -p gpt2 && cp $GPT2 gpt2/tokenizer.json"), 0);
    assert_int_equal(tool("printf 'a\xC3\xAF ve\n\n' | $A tokenize -m gpt2 --json | $A tokenize -m gpt2 --decode"), 0);
    assert_string_equal(tool_out, "a\xC3\xAF ve\n\n");
    assert_int_equal(tool("printf '64\t127 107\n' | $A tokenize -m gpt2 --decode --json"), 0);
    assert_string_equal(tool_out, "\"a\xC3\xAF\"\n");
    assert_refused("printf '1\n2 b\n' | $A tokenize -m gpt2 --decode", 1, "line 2: \"2 b\" is not a list of ids");
    assert_refused("echo 99999999999999 | $A tokenize -m gpt2 --decode", 1,
                   "line 1: att_detokenize: ids[0] is -1, not in");
    assert_refused("echo 1 | $A tokenize -m gpt2 --decode --target", 2, "--decode makes texts of ids");
}

static void a_vocabulary_is_trained_and_cuts_texts(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'low lower lowest\\nnew newer<sep>newest\\n' >in; "
                          "$A vocab -s 40 -c 1 --symbols '<sep>' --control '<pad>,<x>' -o v.spm in in"),
                     0);
    assert_has(tool_err, "the vocabulary has 29 pieces, not 40: no other two are neighbors twice");
    assert_int_equal(tool("echo 'lowest<sep>newest' | $A tokenize -m v.spm"), 0);
    assert_string_equal(tool_out, "\xE2\x96\x81lowest <sep> newest\n");
    assert_int_equal(tool("$A vocab -s 40 -c 1 --symbols '<sep>' --control '<pad>,<x>' -o - - in <in | cmp - v.spm"),
                     0);
    assert_int_equal(tool("$A vocab -s 300 -n identity -b -o b.spm in && echo '\xC3\xBC' | $A tokenize -m b.spm"), 0);
    assert_string_equal(tool_out, "\xE2\x96\x81 <0xC3> <0xBC>\n");
}

static void attention_weights_of_a_row_add_up_to_one(void **state)
{
    (void)state;
    assert_int_equal(tool("$A attention -m $D --layer 0 --head 2 --json --svg h.svg 'a b' && grep -q '<svg' h.svg"), 0);
    json_t *v = line_json(0), *weights = json_object_get(v, "weights");
    assert_int_equal(json_array_size(weights), 4);
    for (size_t i = 0; i < 4; i++) {
        double sum = 0;
        for (size_t k = 0; k < 4; k++)
            sum += json_number_value(json_array_get(json_array_get(weights, i), k));
        assert_true(fabs(sum - 1) < 1e-5);
    }
    json_decref(v);
    assert_int_equal(tool("$A attention -m $D 'a b'"), 0);
    assert_has(tool_out, "Layer 1 of 0 to 1, head 0 of 0 to 2.");
    assert_int_equal(tool("$A attention -m $D --layer 0 --head 2 --svg i.svg 'a b' | sleep 0; cmp h.svg i.svg"), 0);
}

static void help_and_info_come_from_the_tables(void **state)
{
    (void)state;
    assert_int_equal(tool("$A --version"), 0);
    assert_string_equal(tool_out, "attend " ATT_VERSION "\n");
    assert_int_equal(tool("$A help embed >1 && $A embed --help >2 && cmp 1 2 && cat 1"), 0);
    assert_has(tool_out, "--format jsonl|npy|tsv");
    assert_int_equal(tool("$A help bench gemm && $A help --completion zsh && $A help --completion fish"), 0);
    assert_int_equal(tool("$A help --man bench gemm"), 0);
    assert_has(tool_out, ".SH NAME\nattend\\-bench\\-gemm \\- measure");
    assert_int_equal(tool("$A help --completion bash >c && bash -n c"), 0);
    assert_int_equal(tool("bash -c '. ./c; COMP_WORDS=(attend embed --format n); COMP_CWORD=3; _attend; "
                          "echo ${COMPREPLY[*]}; COMP_WORDS=(attend bench g); COMP_CWORD=2; _attend; "
                          "echo ${COMPREPLY[*]}'"),
                     0);
    assert_string_equal(tool_out, "npy\ngemm\n");
    assert_int_equal(tool("mkdir models; ln -s .. models/tiny; ATTEND_MODELS=models $A info --json | tr -d '\\n'"), 0);
    json_t *v = line_json(0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(v, "models"), 0)), "tiny");
    assert_string_equal(json_string_value(json_array_get(json_object_get(v, "isas"), 0)), "scalar");
    json_decref(v);
    assert_int_equal(tool("echo a | ATTEND_MODELS=models ATTEND_MODEL=tiny ATTEND_THREADS=1 $A embed"), 0);
}

static void quiet_commands_print_errors_only(void **state)
{
    (void)state;
    assert_int_equal(
        tool("for i in 1 2 3 4 5 6; do for k in 1 2 3 4; do echo u$i i$(((i + k) % 5)) $k; done; done >log; "
             "train='train recommend -d log --hidden 4 --layers 1 --epochs 2 -t 1'; $A $train -o loud 2>&1 "
             "| grep -c NDCG; $A $train --quiet -o still 2>&1; cmp loud/model.safetensors "
             "still/model.safetensors && $A recommend --quiet -m still --history i1,none -k 9 | wc -l"),
        0);
    assert_string_equal(tool_out, "3\n6\n"); /* two epochs and the best; the history and five items */
    assert_string_equal(tool_err, "");
    assert_refused("$A recommend --quiet -m still --similar none", 1, "--similar: still has no item \"none\"");
    assert_refused("$A train recommend --quiet -o x", 2, "--data FILE is needed");
    assert_refused("$A embed --quiet=1", 2, "--quiet takes no value");
    assert_refused("$A embed --quite", 2, "did you mean \"--quiet\"?");
    assert_int_equal(tool("$A embed --help | grep -c -e '--quiet  *print errors only'; $A help --man embed | grep -c "
                          "'quiet'; $A help --completion fish | grep -c -e 'from embed. -l quiet'"),
                     0);
    assert_string_equal(tool_out, "1\n1\n2\n");
}

static void the_real_model_finds_the_meaning(void **state)
{
    (void)state;
    need_model();
    assert_int_equal(
        tool("printf 'The stock market fell.\\nA kitten is napping on the couch.\\nRain is expected.\\n' >in; "
             "$A search -m $M -c in -k 1 --json 'The cat sleeps on the sofa.'"),
        0);
    json_t *v = line_json(0), *hit = json_array_get(json_object_get(v, "results"), 0);
    assert_true(number(hit, "line") == 2);
    assert_true(fabs(number(hit, "score") - 0.7413) < 0.5e-4); /* sentence-transformers: 0.7413 */
    json_decref(v);
    assert_int_equal(tool("echo 'unaffable naïve' | $A tokenize -m $M --json"), 0);
    assert_string_equal(tool_out, "[101, 14477, 20961, 3468, 15743, 102]\n");
}

static int set_up(void **state)
{
    char *path = realpath("tests/golden/pipeline/gpt2.json", NULL);
    assert_non_null(path);
    setenv("GPT2", path, 1);
    free(path);
    return tool_setup(state);
}

/* Once on standard error by commands that use the model, and listed by info. */
static void tensors_that_are_left_out_are_said_and_listed(void **state)
{
    (void)state;
    static const char says[] = "model.safetensors: left out, as the model of config.json does not have this tensor: "
                               "\"odd.weight\"";
    tiny_write_weights(&tool_model, &(const tiny_weights){.extra = "odd.weight"});
    assert_int_equal(tool("$A embed -m $D --text a"), 0);
    assert_has(tool_err, says);
    assert_int_equal(tool("$A info -m $D"), 0);
    assert_has(tool_out, says);
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("$A info --json -m $D"), 0);
    json_t *all = json_loads(tool_out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(all, "notes")), 1);
    json_decref(all);
    tiny_write_weights(&tool_model, NULL);
    assert_int_equal(tool("$A info --json -m $D"), 0);
    all = json_loads(tool_out, 0, NULL);
    assert_non_null(all);
    assert_null(json_object_get(all, "notes"));
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embed_gives_a_vector_for_each_line),
        cmocka_unit_test(formats_of_embed_hold_the_same_floats),
        cmocka_unit_test(search_gives_the_same_with_an_index),
        cmocka_unit_test(similarity_reads_quoted_pairs),
        cmocka_unit_test(a_heading_of_pairs_is_said_and_is_no_pair),
        cmocka_unit_test(columns_that_no_heading_names_are_noted),
        cmocka_unit_test(sentences_come_from_files_options_arguments_and_standard_input),
        cmocka_unit_test(tokenize_cuts_where_the_model_does),
        cmocka_unit_test(tokens_have_their_offsets),
        cmocka_unit_test(ids_are_decoded),
        cmocka_unit_test(a_vocabulary_is_trained_and_cuts_texts),
        cmocka_unit_test(attention_weights_of_a_row_add_up_to_one),
        cmocka_unit_test(tensors_that_are_left_out_are_said_and_listed),
        cmocka_unit_test(help_and_info_come_from_the_tables),
        cmocka_unit_test(quiet_commands_print_errors_only),
        cmocka_unit_test(the_real_model_finds_the_meaning),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
