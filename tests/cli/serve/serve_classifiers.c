/* attend serve: reranking and classification, by the scores of the library. */
// labels: threads
#include "fixtures/serve.h"
#include "fixtures/tiny_text_classifier.h"

#include <attend_text_classifier.h>

#include <math.h>

static test_server server;
static test_folder one, three; /* text classifiers of one label, "one", and of three */

static int set_up(void **state)
{
    char options[1024];
    if (tool_setup(state))
        return -1;
    one = tiny_text_classifier(1);
    three = tiny_text_classifier(3);
    snprintf(options, sizeof options, "-m %s -m %s --alias one=%s --alias three=%s", one.path, three.path,
             strrchr(one.path, '/') + 1, strrchr(three.path, '/') + 1);
    server = serve_start(options);
    return 0;
}

static int tear_down(void **state)
{
    serve_stop(&server);
    folder_remove(&one);
    folder_remove(&three);
    return tool_teardown(state);
}

/* ---- the library's scores ---- */

enum { TEXTS = 4 };
static const char *const query = "b c", *const texts[TEXTS] = {"a b c", "x y z", "k l m n o p q r s t u v w x y", "q"};
#define LIST "[\"a b c\", \"x y z\", \"k l m n o p q r s t u v w x y\", \"q\"]"

static void classify(const test_folder *f, bool pairs, att_text_activation activation, float *out)
{
    att_ctx *ctx;
    att_text_classifier *m;
    const char *const queries[TEXTS] = {query, query, query, query};
    assert_int_equal(att_open(&ctx, NULL), ATT_OK);
    assert_int_equal(att_text_classifier_open(ctx, f->path, NULL, &m), ATT_OK);
    assert_int_equal(att_text_classify(m, TEXTS, pairs ? queries : texts, NULL,
                                       ATT_OPTIONS(att_text_classify_options, .pairs = pairs ? texts : NULL,
                                                   .activation = activation),
                                       out),
                     ATT_OK);
    att_text_classifier_free(m);
    att_close(ctx);
}

/* Checks a list of documents: all of them, by descending scores, which are those of the library. */
static void assert_ranks(const json_t *list, const char *key, const float *expected, size_t n)
{
    unsigned seen = 0;
    double last = INFINITY;
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *r = json_array_get(list, i);
        const size_t index = (size_t)number(r, "index");
        const double score = number(r, key);
        assert_true(index < TEXTS && (float)score == expected[index] && score <= last);
        seen |= 1u << index;
        last = score;
    }
    assert_int_equal(__builtin_popcount(seen), n);
}

/* ---- tests ---- */

static void documents_are_ranked_by_the_library_s_scores(void **state)
{
    (void)state;
    static const char *const paths[] = {"/v1/rerank", "/v2/rerank", "/rerank"};
    float expected[TEXTS];
    serve_need(&server);
    classify(&one, true, ATT_TEXT_ACTIVATION_SIGMOID, expected);
    for (size_t i = 0; i < 3; i++) {
        test_answer a =
            serve_post(&server, paths[i],
                       "{\"model\": \"one\", \"query\": \"b c\", \"documents\": [\"a b c\", {\"text\": \"x y "
                       "z\"}, \"k l m n o p q r s t u v w x y\", \"q\"], \"max_tokens_per_doc\": 4096}");
        assert_int_equal(a.status, 200);
        assert_ranks(json_object_get(a.json, "results"), "relevance_score", expected, TEXTS);
        assert_has(a.head, "X-Attend-Truncated: 1\r\n");
        answer_free(&a);
    }
}

static void the_best_documents_are_returned_with_their_texts(void **state)
{
    (void)state;
    float expected[TEXTS];
    serve_need(&server);
    classify(&one, true, ATT_TEXT_ACTIVATION_IDENTITY, expected);
    test_answer a =
        serve_post(&server, "/v1/rerank",
                   "{\"query\": \"b c\", \"documents\": " LIST ", \"top_n\": 2, \"return_documents\": true, "
                   "\"raw_scores\": true}");
    const json_t *results = json_object_get(a.json, "results");
    assert_ranks(results, "relevance_score", expected, 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *r = json_array_get(results, i);
        assert_string_equal(json_string_value(json_object_get(json_object_get(r, "document"), "text")),
                            texts[(size_t)number(r, "index")]);
    }
    answer_free(&a);
}

static void texts_give_the_list_of_tei(void **state)
{
    (void)state;
    float expected[TEXTS];
    serve_need(&server);
    classify(&one, true, ATT_TEXT_ACTIVATION_SIGMOID, expected);
    test_answer a = serve_post(&server, "/rerank", "{\"query\": \"b c\", \"texts\": " LIST ", \"return_text\": true}");
    assert_int_equal(a.status, 200);
    assert_ranks(a.json, "score", expected, TEXTS);
    assert_true(json_is_string(json_object_get(json_array_get(a.json, 0), "text")));
    answer_free(&a);
}

/* Checks a list of labels: all of them, by descending probability. */
static void assert_labels(const json_t *list, const float *expected)
{
    double last = INFINITY;
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *r = json_array_get(list, i);
        const char *label = json_string_value(json_object_get(r, "label"));
        const double score = number(r, "score");
        int found = 0;
        assert_true(label && score <= last);
        for (int k = 0; k < 3; k++)
            found += (float)score == expected[k];
        assert_true(found >= 1);
        last = score;
    }
}

static void texts_are_classified(void **state)
{
    (void)state;
    float expected[3 * TEXTS], pairs[3 * TEXTS];
    serve_need(&server);
    classify(&three, false, ATT_TEXT_ACTIVATION_SOFTMAX, expected);
    classify(&three, true, ATT_TEXT_ACTIVATION_SOFTMAX, pairs);
    test_answer a = serve_post(&server, "/classify", "{\"model\": \"three\", \"input\": " LIST "}");
    assert_int_equal(a.status, 200);
    for (size_t i = 0; i < TEXTS; i++)
        assert_labels(json_array_get(json_object_get(a.json, "data"), i), expected + 3 * i);
    answer_free(&a);
    a = serve_post(&server, "/predict", "{\"model\": \"three\", \"inputs\": \"a b c\"}");
    assert_labels(a.json, expected);
    answer_free(&a);
    a = serve_post(&server, "/predict", "{\"model\": \"three\", \"inputs\": [\"b c\", \"a b c\"]}");
    assert_labels(a.json, pairs);
    answer_free(&a);
    a = serve_post(&server, "/predict", "{\"model\": \"three\", \"inputs\": [[\"a b c\"], [\"x y z\"]]}");
    assert_labels(json_array_get(a.json, 1), expected + 3);
    answer_free(&a);
}

static void memory_is_limited(void **state)
{
    (void)state;
    enum { DOCUMENTS = 2000 }; /* scores and documents of 150 bytes in the answer */
    char options[256], *body = malloc(DOCUMENTS * 170), *at = body;
    serve_need(&server);
    snprintf(options, sizeof options, "-m %s --max-memory 1", one.path);
    const test_server s = serve_start(options);
    at += sprintf(at, "{\"return_documents\": true, \"query\": \"a\", \"documents\": [\"a\"");
    for (int i = 1; i < DOCUMENTS; i++)
        at += sprintf(at, ", \"%0150d\"", i);
    strcpy(at, "]}");
    test_answer a = serve_post(&s, "/v1/rerank", body);
    assert_int_equal(a.status, 503);
    assert_has(a.body, "--max-memory");
    answer_free(&a);
    free(body);
    a = serve_post(&s, "/v1/rerank", "{\"query\": \"a\", \"documents\": [\"a\"]}");
    assert_int_equal(a.status, 200);
    answer_free(&a);
    serve_stop(&s);
}

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    static const char *const post = "POST /v1/rerank", *const predict = "POST /predict";
    static const refused_request list[] = {
        {post, NULL, "{\"documents\": [\"a\"]}", 400, "query: is needed"},
        {post, NULL, "{\"query\": \"a\"}", 400, "documents: is needed"},
        {post, NULL, "{\"query\": \"a\", \"documents\": \"a\"}", 400, "documents: is not a list"},
        {post, NULL, "{\"query\": \"a\", \"documents\": [{\"title\": \"a\"}]}", 400, "documents: element 0"},
        {post, NULL, "{\"query\": \"a\", \"documents\": [\"a\"], \"model\": \"three\"}", 400, "3 labels"},
        {post, NULL, "{\"query\": \"a\", \"documents\": [\"a\"], \"top_n\": 0}", 400, "top_n: 0 is not from 1"},
        {post, NULL, "{\"query\": \"a\", \"documents\": [\"a\"], \"max_tokens_per_doc\": 2}", 400, "not supported"},
        {post, NULL,
         "{\"query\": \"a\", \"documents\": ["
         "\"k l m n o p q r s t u v w x y\"], \"truncate\": false}",
         400, "documents[0] has 19 tokens, but"},
        {"POST /rerank", NULL, "{\"query\": \"a\"}", 400, "one of documents and texts is needed"},
        {"POST /rerank", NULL, "{\"query\": \"a\", \"texts\": [\"a\"], \"documents\": [\"a\"]}", 400,
         "one of documents"},
        {predict, NULL, "{\"inputs\": []}", 400, "inputs: is not a text"},
        {predict, NULL, "{\"inputs\": [\"a\", \"b\", \"c\"]}", 400, "inputs: is not a text"},
        {predict, NULL, "{\"inputs\": [[\"a\"], [\"b\", \"c\"]]}", 400, "texts and pairs of texts are in one list"},
        {predict, NULL, "{\"inputs\": 3}", 400, "inputs: is not a text"},
        {"POST /v1/embeddings", NULL, "{\"input\": \"a\"}", 404, "needs a sentence model, and none is served"},
        {"POST /v1/embeddings", NULL, "{\"input\": \"a\", \"model\": \"one\"}", 400, "is a text classifier, but"},
    };
    serve_need(&server);
    assert_refused_all(&server, list, sizeof list / sizeof *list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_ranked_by_the_library_s_scores),
        cmocka_unit_test(the_best_documents_are_returned_with_their_texts),
        cmocka_unit_test(texts_give_the_list_of_tei),
        cmocka_unit_test(texts_are_classified),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(wrong_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
