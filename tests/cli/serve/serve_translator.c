/* attend serve: translation by the interface of LibreTranslate, also as a form, with keys. */
// labels: threads
#include "fixtures/serve.h"

#include <attend_translate.h>

static test_server server; /* of the translator that comes with attend, with the key "secret" */

static int set_up(void **state)
{
    if (tool_setup(state))
        return -1;
    setenv("ATTEND_API_KEY", "secret", 1);
    if (tool("printf '# a comment\\n\\nother key\\n' >keys"))
        return -1;
    server = serve_start("-m tatoeba-de-en --api-key-file keys --cors-origin https://pages.example");
    unsetenv("ATTEND_API_KEY");
    return 0;
}

static int tear_down(void **state)
{
    serve_stop(&server);
    return tool_teardown(state);
}

static const char bearer[] = "Authorization: Bearer secret\r\n";

/* ---- translation ---- */

/* Translates a line by the library -> text. */
static void translate(const char *line, int64_t n_best, int64_t k, char text[256])
{
    att_ctx *ctx;
    att_translator *m;
    att_model_path path;
    att_translation out[4];
    assert_int_equal(att_model_find("models/tatoeba-de-en", &path), ATT_OK);
    assert_int_equal(att_open(&ctx, NULL), ATT_OK);
    assert_int_equal(att_translator_open(ctx, path.text, NULL, &m), ATT_OK);
    assert_int_equal(att_translate(m, 1, &line, NULL, ATT_OPTIONS(att_translate_options, .n_best = n_best), out),
                     ATT_OK);
    snprintf(text, 256, "%s", out[k].text.text);
    for (int64_t i = 0; i < n_best; i++)
        att_translation_free(ctx, &out[i]);
    att_translator_free(m);
    att_close(ctx);
}

static const char *text_of(const test_answer *a, const char *key)
{
    const char *text = json_string_value(json_object_get(a->json, key));
    if (a->status != 200 || !text)
        fail_msg("%d: %s", a->status, a->body);
    return text;
}

static void a_text_is_translated(void **state)
{
    (void)state;
    char expected[256];
    serve_need(&server);
    translate("Ich lese ein Buch.", 1, 0, expected);
    test_answer a =
        serve_once(&server, "POST /translate", bearer,
                   "{\"q\": \"Ich lese ein Buch.\", \"source\": \"de\", \"target\": \"en\", \"format\": \"text\"}");
    assert_string_equal(text_of(&a, "translatedText"), expected);
    assert_null(json_object_get(a.json, "detectedLanguage"));
    answer_free(&a);
}

static void lines_stay_where_they_are(void **state)
{
    (void)state;
    char one[256], two[256], expected[600];
    serve_need(&server);
    translate("Ich lese ein Buch.", 1, 0, one);
    translate("Guten Morgen!", 1, 0, two);
    snprintf(expected, sizeof expected, "%s\n\n  \n%s\n", one, two);
    test_answer a =
        serve_once(&server, "POST /translate", bearer,
                   "{\"q\": [\"Ich lese ein Buch.\\n\\n  \\nGuten Morgen!\\n\", \"\"], \"source\": \"auto\", "
                   "\"target\": \"en\"}");
    assert_int_equal(a.status, 200);
    const json_t *texts = json_object_get(a.json, "translatedText"),
                 *detected = json_array_get(json_object_get(a.json, "detectedLanguage"), 0);
    assert_int_equal(json_array_size(texts), 2);
    assert_string_equal(json_string_value(json_array_get(texts, 0)), expected);
    assert_string_equal(json_string_value(json_array_get(texts, 1)), "");
    assert_string_equal(json_string_value(json_object_get(detected, "language")), "de");
    assert_true(json_is_null(json_object_get(detected, "confidence")));
    answer_free(&a);
}

static void alternatives_are_the_next_best(void **state)
{
    (void)state;
    char expected[256];
    serve_need(&server);
    test_answer a =
        serve_once(&server, "POST /translate", bearer,
                   "{\"q\": \"Guten Morgen!\", \"source\": \"de\", \"target\": \"en\", \"alternatives\": 2}");
    const json_t *list = json_object_get(a.json, "alternatives");
    assert_int_equal(json_array_size(list), 2);
    for (int64_t k = 0; k < 3; k++) {
        translate("Guten Morgen!", 3, k, expected);
        assert_string_equal(k ? json_string_value(json_array_get(list, (size_t)k - 1)) : text_of(&a, "translatedText"),
                            expected);
    }
    answer_free(&a);
}

/* Sends a form, and returns its translation. */
static void assert_form(const char *type, const char *body, const char *expected)
{
    char headers[256];
    const int fd = serve_connect(&server);
    snprintf(headers, sizeof headers, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, strlen(body));
    serve_ask(fd, "POST /translate", headers, NULL);
    serve_send(fd, body, strlen(body));
    test_answer a = serve_read(fd);
    assert_string_equal(text_of(&a, "translatedText"), expected);
    answer_free(&a);
    close(fd);
}

static void forms_are_read(void **state)
{
    (void)state;
    char expected[256];
    serve_need(&server);
    translate("Ich heiße Ann & lese.", 1, 0, expected);
    assert_form("application/x-www-form-urlencoded; charset=utf-8",
                "q=Ich+hei%c3%9fe+Ann+%26+lese.&source=de&target=en&alternatives=0&api_key=other+key", expected);
    assert_form("multipart/form-data; boundary=\"a b\"",
                "--a b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nIch heiße Ann & lese.\r\n"
                "--a b\r\nContent-Disposition: form-data; filename=\"no\"; name=\"source\"\r\n\r\nde\r\n"
                "--a b\r\nContent-Disposition: form-data; name=\"target\"\r\n\r\nen\r\n"
                "--a b\r\nContent-Disposition: form-data; name=\"api_key\"\r\n\r\nsecret\r\n--a b--\r\n",
                expected);
}

static void languages_are_those_of_the_model(void **state)
{
    (void)state;
    serve_need(&server);
    test_answer a = serve_once(&server, "GET /languages", "", NULL);
    const json_t *l = json_array_get(a.json, 0);
    assert_int_equal(json_array_size(a.json), 1);
    assert_string_equal(json_string_value(json_object_get(l, "code")), "de");
    assert_string_equal(json_string_value(json_object_get(l, "name")), "German");
    assert_string_equal(json_string_value(json_array_get(json_object_get(l, "targets"), 0)), "en");
    answer_free(&a);
    a = serve_once(&server, "POST /detect", bearer, "{\"q\": \"Hallo\"}");
    assert_string_equal(json_string_value(json_object_get(json_array_get(a.json, 0), "language")), "de");
    answer_free(&a);
}

/* ---- refusals and keys ---- */

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    static const char *const post = "POST /translate";
    static const refused_request list[] = {
        {post, NULL, "{\"q\": \"a\", \"source\": \"de\", \"target\": \"en\"}", 401, "a key is needed"},
        {post, NULL, "{\"q\": \"a\", \"source\": \"de\", \"target\": \"en\", \"api_key\": \"secre\"}", 401, "a key is"},
        {post, NULL, "{\"q\": \"a\", \"source\": \"de\", \"target\": \"en\", \"api_key\": \"secrets\"}", 401,
         "a key is"},
        {post, NULL, "{\"q\": \"a\", \"source\": \"de\", \"target\": \"en\", \"api_key\": \"\"}", 401, "a key is"},
        {post, bearer, "{\"source\": \"de\", \"target\": \"en\"}", 400, "q: is needed"},
        {post, bearer, "{\"q\": \"a\", \"source\": \"fr\", \"target\": \"en\"}", 400,
         "no model translates from fr to en"},
        {post, bearer, "{\"q\": \"a\", \"source\": \"auto\", \"target\": \"fr\"}", 400, "there are: de-en"},
        {post, bearer, "{\"model\": \"tatoeba-de-en\", \"q\": \"a\", \"source\": \"fr\", \"target\": \"en\"}", 400,
         "tatoeba-de-en translates from de to en, not from fr to en"},
        {post, bearer, "{\"model\": \"tatoeba-de-en\", \"q\": \"a\", \"source\": \"auto\", \"target\": \"de\"}", 400,
         "tatoeba-de-en translates from de to en, not from auto to de"},
        {post, bearer, "{\"q\": \"a\", \"source\": \"de\", \"target\": \"en\", \"format\": \"html\"}", 400, "format"},
        {post, bearer, "{\"q\": \"a\", \"source\": \"de\", \"target\": \"en\", \"alternatives\": 17}", 400,
         "from 0 to 16"},
        {"GET /v1/models", NULL, NULL, 401, "a key is needed"},
        {"GET /v1/models", "X-Api-Key: other\r\n", NULL, 401, "a key is needed"},
        {"GET /metrics", NULL, NULL, 401, "a key is needed"},
        {"POST /v1/embeddings", NULL, "{\"input\": \"a\"}", 401, "a key is needed"},
    };
    serve_need(&server);
    assert_refused_all(&server, list, sizeof list / sizeof *list);
}

/* Returns the status for n blank lines and another line, with two translations of each, asked on a connection that
 * stays: only on the same one is what an earlier request had free before the next is read. */
static int status_of_lines(int fd, int n, const char *last)
{
    static char body[1 << 16];
    char *at = body + sprintf(body, "{\"source\": \"de\", \"target\": \"en\", \"alternatives\": 1, \"q\": \"");
    for (int i = 0; i < n; i++)
        at += sprintf(at, "\\n");
    sprintf(at, "%s\"}", last);
    serve_ask(fd, "POST /translate", "", body);
    test_answer a = serve_read(fd);
    if (a.status != 200) {
        assert_has(a.head, "\r\nRetry-After: ");
        assert_has(a.body, "--max-memory");
    }
    const int status = a.status;
    answer_free(&a);
    return status;
}

static void memory_is_limited(void **state)
{
    (void)state;
    static const char line[] = "Ich lese ein Buch und trinke dann mit den Freunden einen Kaffee im Garten.";
    char blank[sizeof line];
    int few = 0, many = 10000;
    serve_need(&server);
    memset(blank, ' ', sizeof blank - 1);
    blank[sizeof blank - 1] = '\0';
    const test_server s = serve_start("-m tatoeba-de-en --max-memory 1");
    const int fd = serve_connect(&s);
    assert_int_equal(status_of_lines(fd, few, line), 200);
    assert_int_equal(status_of_lines(fd, many, blank), 503); /* of the arrays */
    while (many - few > 1) {
        const int middle = (few + many) / 2;
        *(status_of_lines(fd, middle, blank) == 200 ? &few : &many) = middle;
    }
    assert_int_equal(status_of_lines(fd, few, line), 503); /* of its translations, which blank lines have none of */
    assert_int_equal(status_of_lines(fd, few, blank), 200);
    assert_int_equal(status_of_lines(fd, 0, line), 200); /* what was refused is free */
    close(fd);
    serve_stop(&s);
}

static void each_key_opens(void **state)
{
    (void)state;
    static const char *const headers[] = {bearer, "X-Api-Key: other key\r\n", "authorization: bearer other key\r\n"};
    serve_need(&server);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        test_answer a = serve_once(&server, "GET /v1/models", headers[i], NULL);
        assert_int_equal(a.status, 200);
        answer_free(&a);
    }
    test_answer a = serve_once(&server, "GET /readyz", "", NULL);
    assert_int_equal(a.status, 200);
    answer_free(&a);
}

static void pages_of_a_listed_origin_may_ask(void **state)
{
    (void)state;
    serve_need(&server);
    test_answer a = serve_once(&server, "OPTIONS /translate",
                               "Origin: https://pages.example\r\nAccess-Control-Request-Method: POST\r\n"
                               "Access-Control-Request-Headers: authorization, content-type, x-stainless-os\r\n",
                               NULL);
    assert_int_equal(a.status, 204);
    assert_has(a.head, "Access-Control-Allow-Origin: https://pages.example\r\n");
    assert_has(a.head, "Access-Control-Allow-Headers: authorization, content-type, x-stainless-os\r\n");
    answer_free(&a);
    a = serve_once(&server, "GET /languages", "Origin: https://pages.example\r\n", NULL);
    assert_int_equal(a.status, 200);
    assert_has(a.head, "Access-Control-Allow-Origin: https://pages.example\r\n");
    answer_free(&a);
    a = serve_once(&server, "OPTIONS /translate", "Origin: https://other.example\r\n", NULL);
    assert_int_equal(a.status, 403);
    answer_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_translated),
        cmocka_unit_test(lines_stay_where_they_are),
        cmocka_unit_test(alternatives_are_the_next_best),
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(languages_are_those_of_the_model),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(each_key_opens),
        cmocka_unit_test(pages_of_a_listed_origin_may_ask),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
