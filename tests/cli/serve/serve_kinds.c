/* attend serve: captions and classes of images, and recommendations, as the tool's commands print them. */
// labels: threads
#include "fixtures/recommender_tool.h"
#include "fixtures/serve.h"

static test_server server; /* of a captioner, a classifier of images and a recommender */

#define PHOTO "models/flickr8k-captions/examples/astronaut.png"
#define SHOE "models/fashion-mnist/examples/sneaker.png"

static int set_up(void **state)
{
    char line[1024], here[300];
    if (tool_setup(state) || !getcwd(here, sizeof here))
        return -1;
    shop_setup();
    snprintf(line, sizeof line, "cp %s/%s photo.png && cp %s/%s shoe.png", here, PHOTO, here, SHOE);
    if (tool(line))
        return -1;
    server = serve_start("-m flickr8k-captions -m fashion-mnist -m shop --max-body 2");
    return 0;
}

static int tear_down(void **state)
{
    serve_stop(&server);
    return tool_teardown(state);
}

/* Reads a file of the folder. */
static char *read_file(const char *name, size_t *bytes)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", tool_model.path, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *data = malloc(1 << 20);
    *bytes = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

/* Returns {"KEY": base64 of a file, REST}, malloc'd; the base64 program makes it. */
static char *request_of(const char *file, const char *rest)
{
    char line[128], *body = malloc(1 << 21);
    size_t bytes;
    snprintf(line, sizeof line, "base64 -w 64 %s | sed 's/$/\\\\n/' | tr -d '\\n' >file.base64", file);
    assert_int_equal(tool(line), 0);
    char *text = read_file("file.base64", &bytes);
    snprintf(body, 1 << 21, "{\"image\": \"data:image/png;base64,%.*s\"%s}", (int)bytes, text, rest);
    free(text);
    return body;
}

/* Sends a file as the part "image" of a form, after another field. */
static test_answer send_form(const char *what, const char *file, const char *field, const char *value)
{
    static const char end[] = "\r\n--xyz--\r\n";
    char head[512], headers[256];
    size_t bytes;
    char *data = read_file(file, &bytes);
    const int n = snprintf(head, sizeof head,
                           "--xyz\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n--xyz\r\n"
                           "Content-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n"
                           "Content-Type: image/png\r\n\r\n",
                           field, value);
    snprintf(headers, sizeof headers, "Content-Type: multipart/form-data; boundary=xyz\r\nContent-Length: %zu\r\n",
             (size_t)n + bytes + sizeof end - 1);
    const int fd = serve_connect(&server);
    serve_ask(fd, what, headers, NULL);
    serve_send(fd, head, (size_t)n);
    serve_send(fd, data, bytes);
    serve_send(fd, end, sizeof end - 1);
    const test_answer a = serve_read(fd);
    free(data);
    close(fd);
    return a;
}

/* ---- captions ---- */

static void assert_captions(const test_answer *a, size_t n)
{
    if (a->status != 200)
        fail_msg("%d: %s", a->status, a->body);
    const json_t *found = json_object_get(json_array_get(json_object_get(a->json, "data"), 0), "captions");
    json_t *line = line_json(0), *expected = json_object_get(line, "captions");
    assert_int_equal(json_array_size(found), n);
    assert_int_equal(json_array_size(expected), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(found, i), *y = json_array_get(expected, i);
        assert_true(json_equal(json_object_get(x, "text"), json_object_get(y, "text")));
        assert_true(number(x, "score") == number(y, "score"));
    }
    json_decref(line);
}

static void captions_are_those_of_the_tool(void **state)
{
    (void)state;
    serve_need(&server);
    char *body = request_of("photo.png", ", \"n\": 2");
    assert_int_equal(tool("$A caption --json --nbest 2 photo.png"), 0);
    test_answer a = serve_post(&server, "/caption", body);
    assert_captions(&a, 2);
    answer_free(&a);
    a = send_form("POST /caption", "photo.png", "n", "2");
    assert_captions(&a, 2);
    answer_free(&a);
    free(body);
}

/* ---- classes ---- */

static void assert_classes(const test_answer *a, size_t n)
{
    if (a->status != 200)
        fail_msg("%d: %s", a->status, a->body);
    const json_t *found = json_array_get(json_object_get(a->json, "data"), 0);
    json_t *line = line_json(0), *expected = json_object_get(line, "classes");
    assert_int_equal(json_array_size(found), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(found, i), *y = json_array_get(expected, i);
        assert_true(json_equal(json_object_get(x, "label"), json_object_get(y, "label")));
        assert_true(number(x, "score") == number(y, "probability"));
    }
    json_decref(line);
}

static void classes_are_those_of_the_tool(void **state)
{
    (void)state;
    serve_need(&server);
    char *body = request_of("shoe.png", ", \"top_k\": 3");
    assert_int_equal(tool("$A classify --json -k 3 shoe.png"), 0);
    test_answer a = serve_post(&server, "/classify", body);
    assert_classes(&a, 3);
    answer_free(&a);
    a = send_form("POST /classify", "shoe.png", "top_k", "3");
    assert_classes(&a, 3);
    answer_free(&a);
    free(body);
}

/* ---- recommendations ---- */

/* Recommends by the library -> ids and scores of the best three. */
static void assert_recommended(const json_t *items, const int32_t *history, int64_t n, bool exclude_seen)
{
    att_ctx *c;
    att_recommender *m;
    att_recommendation r;
    const int64_t offsets[] = {0, n};
    assert_int_equal(att_open(&c, NULL), ATT_OK);
    assert_int_equal(att_recommender_open(c, getenv("R"), NULL, &m), ATT_OK);
    assert_int_equal(att_recommend(m, 1, history, offsets,
                                   ATT_OPTIONS(att_recommend_options, .k = 3, .exclude_seen = exclude_seen), &r),
                     ATT_OK);
    assert_int_equal(json_array_size(items), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *x = json_array_get(items, i);
        assert_string_equal(json_string_value(json_object_get(x, "id")), shop_ids[r.items[i]]);
        assert_true((float)number(x, "score") == r.scores[i]);
    }
    att_recommendation_free(c, &r);
    att_recommender_free(m);
    att_close(c);
}

static void items_are_recommended(void **state)
{
    (void)state;
    serve_need(&server);
    test_answer a = serve_post(&server, "/recommend",
                               "{\"history\": [\"pear\", \"durian\", \"fig\"], \"k\": 3, \"exclude_seen\": true}");
    assert_int_equal(a.status, 200);
    assert_recommended(json_object_get(a.json, "items"), (const int32_t[]){1, 7}, 2, true);
    assert_true(json_is_false(json_object_get(a.json, "by_popular")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(a.json, "unknown"), 0)), "durian");
    answer_free(&a);
    a = serve_post(&server, "/recommend", "{\"history\": [], \"k\": 3}");
    assert_recommended(json_object_get(a.json, "items"), (const int32_t[]){0}, 0, false);
    assert_true(json_is_true(json_object_get(a.json, "by_popular")));
    answer_free(&a);
    a = serve_post(&server, "/recommend", "{\"history\": \"pear\", \"allow\": [\"nut\", \"oat\"], \"deny\": \"oat\"}");
    const json_t *items = json_object_get(a.json, "items");
    assert_int_equal(json_array_size(items), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(items, 0), "id")), "nut");
    answer_free(&a);
}

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    static const refused_request list[] = {
        {"POST /caption", NULL, "{\"image\": \"!\"}", 400, "image[0] is not base64"},
        {"POST /caption", NULL, "{\"image\": \"AAA\"}", 400, "image[0] is not base64"},
        {"POST /caption", NULL, "{\"image\": \"aGVsbG8=\"}", 400, "image[0]"},
        {"POST /caption", NULL, "{\"image\": \"aGVsbG8=\", \"n\": 65}", 400, "n: 65 is not from 1 to 64"},
        {"POST /caption", "Content-Type: multipart/form-data; boundary=x\r\n", "--x\r\n", 400, "the form has no field"},
        {"POST /classify", NULL, "{}", 400, "one of input and image is needed"},
        {"POST /classify", NULL, "{\"input\": \"a\"}", 404, "needs a text classifier, and none is served"},
        {"POST /classify", NULL, "{\"image\": \"aGVsbG8=\", \"model\": \"shop\"}", 400, "is a recommender, but"},
        {"POST /recommend", NULL, "{\"history\": [1]}", 400, "history: element 0 is not a string"},
        {"POST /recommend", NULL, "{\"history\": [], \"allow\": [\"durian\"]}", 400, "shop has none of these items"},
    };
    serve_need(&server);
    assert_refused_all(&server, list, sizeof list / sizeof *list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captions_are_those_of_the_tool),
        cmocka_unit_test(classes_are_those_of_the_tool),
        cmocka_unit_test(items_are_recommended),
        cmocka_unit_test(wrong_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
