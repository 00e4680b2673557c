/* attend rerank, search --rerank and classify of texts: what they print, and what they refuse. */
#include "fixtures/tiny_text_classifier.h"
#include "fixtures/tool.h"

#include <math.h>

static test_folder one, three; /* text classifiers of one label and of three: $R and $C */

static int set_up(void **state)
{
    one = tiny_text_classifier(1);
    three = tiny_text_classifier(3);
    setenv("R", one.path, 1);
    setenv("C", three.path, 1);
    const int failed = tool_setup(state);
    return failed ? failed
                  : tool("printf 'a b c\\nx y z\\nk l m n o p q r s t u v w x y\\n\\nq\\n' >docs.txt; "
                         "printf 'a b\\tc d\\nx\\ty z\\n' >pairs.tsv; : >empty");
}

static int tear_down(void **state)
{
    folder_remove(&one);
    folder_remove(&three);
    return tool_teardown(state);
}

/* ---- rerank */

/* Line i of a query's results */
typedef struct result {
    int line;
    double score;
} result;

static int read_results(result *r)
{
    json_t *j = line_json(0), *list = json_object_get(j, "results");
    const int n = (int)json_array_size(list);
    for (int i = 0; i < n; i++)
        r[i] = (result){(int)number(json_array_get(list, (size_t)i), "line"),
                        number(json_array_get(list, (size_t)i), "score")};
    json_decref(j);
    return n;
}

static void documents_are_printed_best_first(void **state)
{
    (void)state;
    result all[8], some[8];
    assert_int_equal(tool("$A rerank -m $R -c docs.txt --json 'b c'"), 0);
    assert_has(tool_err, "attend: 1 of 5 pairs of query and document are longer than 14 tokens and were truncated");
    assert_int_equal(read_results(all), 5);
    int lines = 0;
    for (int i = 0; i < 5; i++) {
        lines |= 1 << all[i].line;
        assert_true(i == 0 || all[i - 1].score >= all[i].score);
        assert_true(all[i].score > 0 && all[i].score < 1); /* a sigmoid */
    }
    assert_int_equal(lines, 62);
    assert_int_equal(tool("$A rerank -m $R -c docs.txt --json -k 2 --activation identity 'b c'"), 0);
    assert_int_equal(read_results(some), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(some[i].line, all[i].line);
        assert_true(fabs(1 / (1 + exp(-some[i].score)) - all[i].score) < 1e-6);
    }
    assert_int_equal(tool("printf 'b c\\nq\\n' | $A rerank -m $R -c docs.txt -k 1 --max-tokens 8"), 0);
    assert_int_equal(count(tool_out, "\n"), 5); /* two queries, an empty line between them */
    assert_has(tool_err, "longer than 8 tokens");
    /* the texts of JSON Lines, as embed writes them */
    assert_int_equal(tool("$A embed -m $D docs.txt >docs.jsonl && $A rerank -m $R -c docs.jsonl 'b c' >x && "
                          "$A rerank -m $R -c docs.txt 'b c' | cmp - x"),
                     0);
}

static void pairs_have_the_scores_of_documents(void **state)
{
    (void)state;
    result one_document[1];
    assert_int_equal(tool("echo 'c d' >d; $A rerank -m $R -c d --json 'a b'"), 0);
    assert_int_equal(read_results(one_document), 1);
    assert_int_equal(tool("$A rerank -m $R --pairs pairs.tsv"), 0);
    assert_true(fabs(strtod(tool_out, NULL) - one_document[0].score) < 1e-6);
    assert_int_equal(count(tool_out, "\n"), 2);
    assert_int_equal(tool("(echo query,passage; echo '\"a b\",c d') | $A rerank -m $R --format csv --json -p -"), 0);
    json_t *j = line_json(0);
    assert_string_equal(json_string_value(json_object_get(j, "b")), "c d");
    assert_true(fabs(number(j, "score") - one_document[0].score) < 1e-6);
    json_decref(j);
}

static void what_cannot_be_ranked_is_named(void **state)
{
    (void)state;
    assert_refused("$A rerank -m $R -c empty a", 1, "empty: has no documents to rank");
    assert_refused("$A rerank -m $R -c none a", 1, "none: No such file or directory");
    assert_refused("echo '{}' >x.jsonl; $A rerank -m $R -c x.jsonl a", 1, "line 1 is not an object with a \"text\"");
    assert_refused("echo 'a' >x.jsonl; $A rerank -m $R -c x.jsonl a", 1, "x.jsonl: line 1 is not JSON");
    assert_refused("$A rerank -m $C -c docs.txt a", 1, "has 3 labels (contradiction, entailment, ...), not one score");
    assert_refused("$A rerank -m $D -c docs.txt a", 1, "is a sentence model, which has no classifier");
    assert_refused("$A rerank -m fashion-mnist -c docs.txt a", 1, "fashion-mnist is a vision model: attend classify");
    assert_refused("$A embed -m $R --text a", 1, "is a text classifier: attend rerank, attend classify");
    assert_refused("$A rerank -m $R a", 2, "--corpus FILE is needed, of documents, or --pairs FILE");
    assert_refused("$A rerank -m $R -c docs.txt -p pairs.tsv", 2, "--pairs does not go with --corpus");
    assert_refused("$A rerank -m $R -p pairs.tsv a", 2, "--pairs does not go with queries as arguments");
    assert_refused("$A rerank -m $R -c docs.txt -f x a", 2, "--file does not go with queries as arguments");
    assert_refused("$A rerank -m $R -c - </dev/null", 2, "standard input cannot be both the corpus and the queries");
    assert_refused("$A rerank -m $R -p empty", 1, "empty: has no pairs");
    assert_refused("$A rerank -m $R -c docs.txt --max-tokens 15 a", 2, "takes at most 14");
    assert_refused("ATTEND_MODELS=. $A rerank -c docs.txt a", 2,
                   "--model MODEL is needed, as no text classifier is in");
}

/* ---- search --rerank */

static void a_search_is_reranked(void **state)
{
    (void)state;
    result all[8], some[8];
    assert_int_equal(tool("$A search -m $D -c docs.txt --rerank $R --json -k 5 'b c'"), 0);
    assert_int_equal(read_results(all), 5);
    json_t *j = line_json(0);
    number(json_array_get(json_object_get(j, "results"), 0), "similarity");
    json_decref(j);
    assert_int_equal(tool("$A rerank -m $R -c docs.txt --json 'b c'"), 0);
    assert_int_equal(read_results(some), 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(all[i].line, some[i].line);
        assert_true(fabs(all[i].score - some[i].score) < 1e-6);
    }
    /* of two candidates, both are those of the search */
    assert_int_equal(tool("$A search -m $D -c docs.txt --json -k 2 'b c'"), 0);
    assert_int_equal(read_results(all), 2);
    assert_int_equal(tool("$A search -m $D -c docs.txt --rerank $R --candidates 2 --json -k 2 'b c'"), 0);
    assert_int_equal(read_results(some), 2);
    assert_int_equal(1 << all[0].line | 1 << all[1].line, 1 << some[0].line | 1 << some[1].line);
    assert_true(some[0].score >= some[1].score);
    assert_refused("$A search -m $D -c docs.txt --candidates 2 a", 2, "--candidates needs --rerank MODEL");
    assert_refused("$A search -m $D -c docs.txt --rerank $R --candidates 2 -k 3 a", 2,
                   "--candidates is 2, fewer than --top, 3");
    assert_refused("$A search -m $D -c docs.txt --rerank $D a", 1, "is a sentence model, which has no classifier");
}

/* ---- classify */

static void texts_are_classified_by_labels(void **state)
{
    (void)state;
    assert_int_equal(tool("$A classify -m $C --json --text 'a b' --pair 'c d'"), 0);
    json_t *j = line_json(0), *classes = json_object_get(j, "classes");
    double sum = 0, last = 1;
    assert_string_equal(json_string_value(json_object_get(j, "text")), "a b");
    assert_string_equal(json_string_value(json_object_get(j, "pair")), "c d");
    assert_int_equal(json_array_size(classes), 3);
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"contradiction", "entailment", "neutral"};
        const json_t *c = json_array_get(classes, i);
        const double p = number(c, "probability");
        assert_string_equal(json_string_value(json_object_get(c, "label")), names[(int)number(c, "class")]);
        assert_true(p <= last);
        sum += last = p;
    }
    assert_true(fabs(sum - 1) < 1e-6);
    json_decref(j);
    assert_int_equal(tool("$A classify -m $C --text 'a b' --pair 'c d' >x && $A classify -m $C --pairs pairs.tsv | "
                          "head -1 | cmp - x"),
                     0);
    assert_int_equal(tool("$A classify -m $C -k 1 docs.txt >x && $A classify -m $C -k 1 <docs.txt | cmp - x && "
                          "$A classify -m $C -k 1 -f docs.txt | cmp - x && cat x"),
                     0);
    assert_int_equal(count(tool_out, "\n"), 5);
    assert_has(tool_err, "1 of 5 texts are longer than 14 tokens and were truncated");
    assert_int_equal(tool("$A classify -m $R --text 'a b'"), 0); /* one label has a sigmoid */
    assert_has(tool_out, "a b\tLABEL_0\t0.");
}

static void options_of_texts_and_of_images_are_told_apart(void **state)
{
    (void)state;
    assert_refused("$A classify -m $C --text a --attention x.svg", 2, "--attention is of images, but");
    assert_refused("$A classify -m $C --text a --layer 1", 2, "--layer is of images, but");
    assert_refused("$A classify --text a", 2, "--text is of texts, but fashion-mnist is not a text classifier");
    assert_refused("$A classify", 2, "IMAGE... is needed");
    assert_refused("$A classify -m $C --text a --pair b --pair c", 2, "--pair is given 2 times, but --text 1 times");
    assert_refused("$A classify -m $C --pair b", 2, "--pair is given 1 times, but --text 0 times");
    assert_refused("$A classify -m $C --pairs pairs.tsv --text a", 2, "--pairs does not go with --text");
    assert_refused("$A classify -m $C --pairs pairs.tsv docs.txt", 2, "--pairs does not go with files as arguments");
    assert_refused("$A classify -m $C none.txt", 1, "none.txt: No such file or directory");
    assert_refused("$A classify -m $D --text a", 1, "is a sentence model, which has no classifier");
    assert_refused("$A classify -m none --text a", 1, "\"none\" is neither a folder nor a model");
}

static void info_and_attention_know_text_classifiers(void **state)
{
    (void)state;
    assert_int_equal(tool("$A info -m $C"), 0);
    assert_has(tool_out, "text classifier");
    assert_has(tool_out, "contradiction, entailment, neutral");
    assert_has(tool_out, "softmax");
    assert_int_equal(tool("$A attention -m $C \"$(printf 'a b\\tc')\""), 0);
    assert_int_equal(count(tool_out, "[SEP]"), 4);
    assert_int_equal(tool("$A attention -m $C --hide 1 'a b'"), 0);
    assert_has(tool_out, "probabilities of classes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_printed_best_first),
        cmocka_unit_test(pairs_have_the_scores_of_documents),
        cmocka_unit_test(what_cannot_be_ranked_is_named),
        cmocka_unit_test(a_search_is_reranked),
        cmocka_unit_test(texts_are_classified_by_labels),
        cmocka_unit_test(options_of_texts_and_of_images_are_told_apart),
        cmocka_unit_test(info_and_attention_know_text_classifiers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
