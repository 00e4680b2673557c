/* attend serve: what it answers about embeddings, what it refuses, and how it ends. */
// labels: threads
#include "fixtures/serve.h"

#include <attend_sentence.h>

#include <pthread.h>

static test_server server; /* with the tiny model, whose name is "tiny" */

static int set_up(void **state)
{
    char options[512];
    if (tool_setup(state))
        return -1;
    unsetenv("ATTEND_API_KEY");
    snprintf(options, sizeof options, "-m \"$D\" --alias tiny=%s --max-body 1 --max-inputs 2048",
             strrchr(tool_model.path, '/') + 1);
    server = serve_start(options);
    return 0;
}

static int tear_down(void **state)
{
    serve_stop(&server);
    return tool_teardown(state);
}

/* ---- embeddings ---- */

enum { DIM = 12, TEXTS = 5 };
static const char *const texts[TEXTS] = {"a b c", "x", "hello world", "", "k l m n o p q r s t u v"};

/* Embeds texts by the library: out [n, DIM]. */
static void embed(const char *const *text, int64_t n, float *out)
{
    att_ctx *ctx;
    att_sentence *m;
    assert_int_equal(att_open(&ctx, NULL), ATT_OK);
    assert_int_equal(att_sentence_open(ctx, tool_model.path, NULL, &m), ATT_OK);
    assert_int_equal(att_sentence_embed(m, n, text, NULL, NULL, out), ATT_OK);
    att_sentence_free(m);
    att_close(ctx);
}

static void assert_vector(const json_t *vector, const float *expected)
{
    assert_int_equal(json_array_size(vector), DIM);
    for (int i = 0; i < DIM; i++)
        assert_true((float)json_number_value(json_array_get(vector, (size_t)i)) == expected[i]);
}

static void vectors_are_those_of_the_library(void **state)
{
    (void)state;
    float expected[TEXTS * DIM];
    serve_need(&server);
    embed(texts, TEXTS, expected);
    test_answer a =
        serve_post(&server, "/v1/embeddings",
                   "{\"model\": \"tiny\", \"input\": [\"a b c\", \"x\", \"hello world\", \"\", \"k l m n o p q "
                   "r s t u v\"], \"user\": \"me\"}");
    assert_int_equal(a.status, 200);
    const json_t *data = json_object_get(a.json, "data"), *usage = json_object_get(a.json, "usage");
    assert_int_equal(json_array_size(data), TEXTS);
    for (size_t i = 0; i < TEXTS; i++) {
        assert_int_equal(number(json_array_get(data, i), "index"), i);
        assert_vector(json_object_get(json_array_get(data, i), "embedding"), expected + i * DIM);
    }
    assert_int_equal(number(usage, "prompt_tokens"), 5 + 3 + 4 + 2 + 12);
    assert_has(a.head, "X-Attend-Truncated: 1\r\n");
    answer_free(&a);
}

static void a_list_of_one_is_tei_s_and_ollama_s_too(void **state)
{
    (void)state;
    float expected[DIM];
    serve_need(&server);
    embed(texts, 1, expected);
    test_answer a = serve_post(&server, "/embed", "{\"inputs\": \"a b c\"}");
    assert_int_equal(a.status, 200);
    assert_int_equal(json_array_size(a.json), 1);
    assert_vector(json_array_get(a.json, 0), expected);
    answer_free(&a);
    a = serve_post(&server, "/api/embed", "{\"model\": \"tiny\", \"input\": \"a b c\"}");
    assert_int_equal(a.status, 200);
    assert_vector(json_array_get(json_object_get(a.json, "embeddings"), 0), expected);
    assert_int_equal(number(a.json, "prompt_eval_count"), 5);
    answer_free(&a);
}

/* Token ids of "a b c" are those of the letters, after five special ones: [CLS] a b c [SEP]. */
static void ids_are_texts(void **state)
{
    (void)state;
    float expected[DIM];
    serve_need(&server);
    embed(texts, 1, expected);
    test_answer a = serve_post(&server, "/v1/embeddings", "{\"input\": [2, 5, 6, 7, 3]}"),
                b = serve_post(&server, "/embeddings", "{\"input\": [[2, 30, 3], [2, 5, 6, 7, 3]]}");
    assert_int_equal(a.status, 200);
    assert_int_equal(b.status, 200);
    const json_t *one = json_object_get(a.json, "data"), *two = json_object_get(b.json, "data");
    assert_vector(json_object_get(json_array_get(one, 0), "embedding"), expected);
    assert_int_equal(json_array_size(two), 2);
    assert_vector(json_object_get(json_array_get(two, 1), "embedding"), expected);
    answer_free(&a);
    answer_free(&b);
}

static void base64_has_the_same_bits(void **state)
{
    (void)state;
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    float expected[DIM];
    unsigned char bytes[DIM * 4 + 3];
    serve_need(&server);
    embed(texts, 1, expected);
    test_answer a = serve_post(&server, "/v1/embeddings", "{\"input\": \"a b c\", \"encoding_format\": \"base64\"}");
    const char *text =
        json_string_value(json_object_get(json_array_get(json_object_get(a.json, "data"), 0), "embedding"));
    assert_non_null(text);
    assert_int_equal(strlen(text), DIM * 4 / 3 * 4);
    for (size_t i = 0; i < strlen(text); i += 4) {
        unsigned x = 0;
        for (size_t k = 0; k < 4; k++)
            x = x << 6 | (unsigned)(strchr(letters, text[i + k]) - letters);
        for (size_t k = 0; k < 3; k++)
            bytes[i / 4 * 3 + k] = (unsigned char)(x >> (16 - 8 * k));
    }
    assert_memory_equal(bytes, expected, sizeof expected);
    answer_free(&a);
}

static void similarities_are_cosines(void **state)
{
    (void)state;
    float v[3 * DIM];
    serve_need(&server);
    embed(texts, 3, v);
    test_answer a =
        serve_post(&server, "/similarity",
                   "{\"inputs\": {\"source_sentence\": \"a b c\", \"sentences\": [\"x\", \"hello world\"]}}");
    assert_int_equal(json_array_size(a.json), 2);
    for (size_t i = 0; i < 2; i++) {
        double cosine = 0; /* the vectors have norm 1 */
        for (size_t k = 0; k < DIM; k++)
            cosine += (double)v[k] * (double)v[(i + 1) * DIM + k];
        assert_float_equal(json_number_value(json_array_get(a.json, i)), cosine, 1e-6); /* DIM products of 24 bits */
    }
    answer_free(&a);
}

static void dimensions_truncate_vectors(void **state)
{
    (void)state;
    serve_need(&server);
    test_answer a = serve_post(&server, "/v1/embeddings", "{\"input\": \"a b c\", \"dimensions\": 3}");
    const json_t *v = json_object_get(json_array_get(json_object_get(a.json, "data"), 0), "embedding");
    double square = 0;
    assert_int_equal(json_array_size(v), 3);
    for (size_t i = 0; i < 3; i++)
        square += json_number_value(json_array_get(v, i)) * json_number_value(json_array_get(v, i));
    assert_float_equal(square, 1, 1e-6); /* three numbers of 24 bits */
    answer_free(&a);
}

/* ---- tokens ---- */

static void tokens_have_offsets_and_are_decoded(void **state)
{
    (void)state;
    serve_need(&server);
    test_answer a = serve_post(&server, "/tokenize", "{\"inputs\": [\"ab x\"], \"model\": \"tiny\"}");
    assert_int_equal(a.status, 200);
    const json_t *list = json_array_get(a.json, 0), *first = json_array_get(list, 0), *last = json_array_get(list, 3);
    assert_int_equal(json_array_size(list), 5); /* [CLS] a ##b x [SEP] */
    assert_int_equal(number(first, "id"), 2);
    assert_true(json_is_true(json_object_get(first, "special")));
    assert_int_equal(number(last, "start"), 3);
    assert_int_equal(number(last, "stop"), 4);
    assert_string_equal(json_string_value(json_object_get(last, "text")), "x");
    answer_free(&a);
    a = serve_post(&server, "/tokenize", "{\"inputs\": \"ab x\", \"add_special_tokens\": false}");
    assert_int_equal(json_array_size(json_array_get(a.json, 0)), 3);
    answer_free(&a);
    a = serve_post(&server, "/decode", "{\"ids\": [[2, 5, 32, 28, 3], [6]], \"skip_special_tokens\": true}");
    assert_string_equal(json_string_value(json_array_get(a.json, 0)), "ab x");
    assert_string_equal(json_string_value(json_array_get(a.json, 1)), "b");
    answer_free(&a);
}

/* ---- many at once ---- */

enum { CLIENTS = 8, REQUESTS = 12 };

/* Writes a request of a client: a number of texts that depends on both. */
static void write_request(char *body, int client, int request)
{
    char *at = body + sprintf(body, "{\"input\": [\"");
    const int n = 1 + (client * 5 + request * 3) % 17;
    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s%c %c", i ? "\", \"" : "", 'a' + (client + i) % 26, 'a' + (request * 7 + i) % 26);
    strcpy(at, "\"]}");
}

typedef struct client {
    int number;
    char *answer[REQUESTS];
} client;

static void *ask_all(void *user)
{
    client *c = user;
    char body[1024];
    const int fd = serve_connect(&server); /* requests follow one another on it */
    for (int i = 0; i < REQUESTS; i++) {
        write_request(body, c->number, i);
        serve_ask(fd, "POST /v1/embeddings", "", body);
        test_answer a = serve_read(fd);
        c->answer[i] = a.status == 200 ? strdup(a.body) : NULL;
        answer_free(&a);
    }
    close(fd);
    return NULL;
}

static void bits_do_not_depend_on_who_else_asks(void **state)
{
    (void)state;
    client together[CLIENTS], alone = {0};
    pthread_t thread[CLIENTS];
    serve_need(&server);
    for (int i = 0; i < CLIENTS; i++) {
        together[i].number = i;
        assert_int_equal(pthread_create(&thread[i], NULL, ask_all, &together[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < CLIENTS; i++) {
        alone.number = i;
        ask_all(&alone);
        for (int k = 0; k < REQUESTS; k++) {
            assert_non_null(alone.answer[k]);
            assert_non_null(together[i].answer[k]);
            assert_string_equal(alone.answer[k], together[i].answer[k]);
            free(alone.answer[k]);
            free(together[i].answer[k]);
        }
    }
}

/* ---- what is refused ---- */

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    static const char *const post = "POST /v1/embeddings";
    static const refused_request list[] = {
        {post, NULL, "", 400, "the body is not JSON"},
        {post, NULL, "[1]", 400, "the body is not a JSON object"},
        {post, NULL, "{\"input\": \"a\", \"input\": \"b\"}", 400, "the body is not JSON"},
        {post, NULL, "{\"model\": \"tiny\"}", 400, "input: is needed"},
        {post, NULL, "{\"input\": []}", 400, "input: is an empty list"},
        {post, NULL, "{\"input\": [\"a\", 1]}", 400, "input: element 1 is not a string"},
        {post, NULL, "{\"input\": 1}", 400, "input: is not a string, a list of strings, or token ids"},
        {post, NULL, "{\"input\": [1, \"a\"]}", 400, "the id of a token is not a number"},
        {post, NULL, "{\"input\": [[1], []]}", 400, "a list of lists of token ids has something else"},
        {post, NULL, "{\"input\": [40]}", 400, "input[0] has the token 40, but"},
        {post, NULL, "{\"input\": [5,5,5,5,5,5,5,5,5,5,5,5,5]}", 400, "input[0] has 13 tokens, but"},
        {post, NULL, "{\"input\": \"a\", \"dimensions\": 0}", 400, "dimensions: 0 is not from 1 to"},
        {post, NULL, "{\"input\": \"a\", \"dimensions\": 13}", 400, "dimensions: 13 is not from 1 to 12"},
        {post, NULL, "{\"input\": \"a\", \"dimensions\": 1.5}", 400, "dimensions: is not an integer"},
        {post, NULL, "{\"input\": \"a\", \"encoding_format\": \"hex\"}", 400, "is not one of the words float|base64"},
        {post, NULL, "{\"input\": \"a\", \"prompt_name\": \"x\"}", 400,
         "has no prompt \\\"x\\\"; there are: \\\"query"},
        {post, NULL, "{\"input\": \"a\", \"modell\": \"x\"}", 400, "did you mean \\\"model\\\"?"},
        {post, NULL, "{\"input\": \"a\", \"model\": \"x\"}", 404, "there is no model \\\"x\\\"; there are: "},
        {post, NULL, "{\"input\": \"a\", \"model\": \"x:latest\"}", 404, "there is no model \\\"x:latest\\\""},
        {post, NULL, "{\"input\": \"a\", \"model\": \":latest\"}", 404, "there is no model \\\":latest\\\""},
        {post, NULL, "{\"input\": \"k l m n o p q r s t u v\", \"truncate\": false}", 400,
         "input[0] has 14 tokens, but"},
        {"POST /embed", NULL, "{\"inputs\": \"a\", \"truncation_direction\": \"Left\"}", 400, "truncation_direction"},
        {"POST /embed", NULL, "{\"inputs\": \"a\", \"normalize\": false}", 400, "itself normalizes"},
        {"POST /decode", NULL, "{\"ids\": [40]}", 400, "ids: is not a list of ids from 0 to 39"},
        {"POST /decode", NULL, "{\"ids\": \"a\"}", 400, "ids: is not a list of ids"},
        {"POST /decode", NULL, "{\"ids\": [5], \"skip_special_tokens\": false}", 400, "skip_special_tokens"},
        {"POST /tokenize", NULL, "{\"inputs\": \"a\", \"prompt_name\": \"x\"}", 400,
         "has no prompt \\\"x\\\"; there are: \\\"query"},
        {"POST /tokenize", NULL, "{\"inputs\": \"a\", \"model\": \"x\"}", 404, "no model"},
        {"POST /similarity", NULL, "{\"inputs\": \"a\"}", 400, "inputs: is not an object"},
        {"POST /similarity", NULL,
         "{\"inputs\": {\"source_sentence\": \"a\", \"sentences\": [\"a\"]}, \"parameters\": {\"x\": 1}}", 400,
         "parameters: there is no field \\\"x\\\""},
        {"POST /similarity", NULL, "{\"inputs\": {\"sentences\": [\"a\"]}}", 400, "source_sentence: is needed"},
        {"GET /v1/embeddings", NULL, NULL, 405, "another method"},
        {"GET /nothing", NULL, NULL, 404, "no such path"},
        {"GET /v1/models/none", NULL, NULL, 404, "no model \\\"none\\\""},
        {"GET /health", "Host: evil.example\r\n", NULL, 403, "--allow-host"},
        {"GET /health", "Origin: http://evil.example\r\n", NULL, 403, "--cors-origin"},
        {"POST /embed", "Content-Length: 3\r\n", "{}", 400, "more than one Content-Length"},
        {"POST /embed", "Transfer-Encoding: chunked\r\n", "{}", 400, "more than one Content-Length"},
        {"POST /embed", "Transfer-Encoding: gzip\r\n\r\n", NULL, 400, "chunked"},
        {"POST /embed", "Content-Length: 99999999\r\n", NULL, 413, "--max-body"},
    };
    serve_need(&server);
    assert_refused_all(&server, list, sizeof list / sizeof *list);
}

static void what_is_sent_in_chunks_is_counted(void **state)
{
    (void)state;
    enum { PARTS = 40, PART = 1 << 15 }; /* more than the 1 MB of --max-body */
    static char part[PART];
    char head[16];
    serve_need(&server);
    int fd = serve_connect(&server);
    serve_ask(fd, "POST /embed", "Transfer-Encoding: chunked\r\n", NULL);
    static const char whole[] = "b\r\n{\"inputs\": \r\n4\r\n\"a\"}\r\n0\r\n\r\n";
    serve_send(fd, whole, sizeof whole - 1);
    test_answer a = serve_read(fd);
    assert_int_equal(a.status, 200);
    answer_free(&a);
    serve_ask(fd, "POST /embed", "Transfer-Encoding: chunked\r\n", NULL);
    memset(part, ' ', sizeof part);
    snprintf(head, sizeof head, "%x\r\n", PART);
    for (int i = 0; i < PARTS; i++) {
        serve_send(fd, head, strlen(head));
        serve_send(fd, part, sizeof part);
        serve_send(fd, "\r\n", 2);
    }
    serve_send(fd, "0\r\n\r\n", 5);
    a = serve_read(fd);
    assert_int_equal(a.status, 413);
    answer_free(&a);
    close(fd);
}

/* ---- about the server ---- */

static void the_server_describes_itself(void **state)
{
    (void)state;
    static const char *const open[] = {"/health", "/livez", "/readyz", "/info", "/v1/models", "/v1/models/tiny"};
    char what[64];
    serve_need(&server);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        snprintf(what, sizeof what, "GET %s", open[i]);
        test_answer a = serve_once(&server, what, "", NULL);
        assert_int_equal(a.status, 200);
        assert_true(json_is_object(a.json));
        answer_free(&a);
    }
    test_answer a = serve_once(&server, "GET /v1/models/tiny", "", NULL);
    const json_t *types = json_object_get(a.json, "attend");
    assert_string_equal(json_string_value(json_object_get(types, "dtype")), "f32");
    assert_string_equal(json_string_value(json_object_get(types, "compute")), "f32");
    answer_free(&a);
    test_answer page = serve_once(&server, "GET /", "", NULL);
    assert_int_equal(page.status, 200);
    assert_has(page.head, "Content-Type: text/html");
    assert_has(page.body, "'sentence model': [");
    answer_free(&page);
    assert_true(serve_metric(&server, "attend_requests_total{route=\"/livez\",code=\"200\"}") >= 1);
    assert_true(serve_metric(&server, "attend_tokens_total") > 0);
    assert_true(serve_metric(&server, "attend_waiting_tokens") == 0);
}

/* Returns the fields that a route of the description reads; NULL: none. */
static const json_t *fields_of(const json_t *route)
{
    static const char *const way[] = {"post", "requestBody", "content", "application/json", "schema", "properties"};
    for (size_t i = 0; i < sizeof way / sizeof *way; i++)
        route = json_object_get(route, way[i]);
    return route;
}

/* Checks that the document has a word in backquotes. */
static void assert_documented(const char *document, const char *format, const char *word)
{
    char text[128];
    snprintf(text, sizeof text, format, word);
    text[strcspn(text, "{")] = '\0'; /* NAME in place of {id} */
    if (!strstr(document, text))
        fail_msg("docs/SERVE.md does not have %s", text);
}

static void the_document_has_all_routes_and_fields(void **state)
{
    (void)state;
    static char document[1 << 16];
    const char *path, *name;
    json_t *route, *field;
    serve_need(&server);
    tool_read("docs/SERVE.md", document, sizeof document);
    test_answer a = serve_once(&server, "GET /openapi.json", "", NULL);
    assert_int_equal(a.status, 200);
    assert_non_null(json_object_get(fields_of(json_object_get(json_object_get(a.json, "paths"), "/embed")), "inputs"));
    json_object_foreach(json_object_get(a.json, "paths"), path, route)
    {
        assert_documented(document, "%s", path);
        json_object_foreach((json_t *)fields_of(route), name, field) assert_documented(document, "`%s`", name);
    }
    answer_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_those_of_the_library),
        cmocka_unit_test(a_list_of_one_is_tei_s_and_ollama_s_too),
        cmocka_unit_test(ids_are_texts),
        cmocka_unit_test(base64_has_the_same_bits),
        cmocka_unit_test(dimensions_truncate_vectors),
        cmocka_unit_test(similarities_are_cosines),
        cmocka_unit_test(tokens_have_offsets_and_are_decoded),
        cmocka_unit_test(bits_do_not_depend_on_who_else_asks),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(what_is_sent_in_chunks_is_counted),
        cmocka_unit_test(the_server_describes_itself),
        cmocka_unit_test(the_document_has_all_routes_and_fields),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
