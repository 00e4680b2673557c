/* attend serve: texts as OpenAI's Responses and as Ollama's /api/generate have them. */
// labels: threads
#include "fixtures/serve_text.h"

static test_server server; /* of the models of serve_text.h */

static int set_up(void **state)
{
    if (tool_setup(state) || serve_make_texts())
        return 1;
    unsetenv("ATTEND_API_KEY");
    server = serve_start("-m chat -m long");
    return 0;
}

static int tear_down(void **state)
{
    serve_stop(&server);
    return tool_teardown(state);
}

/* ---- as Ollama's ---- */

static void prompts_of_ollama_are_messages_or_continued(void **state)
{
    (void)state;
    serve_need(&server);
    static const struct {
        const char *body, *text, *reason;
    } list[] = {
        {"{\"prompt\": \"bdcab\", \"stream\": false, \"options\": {\"num_predict\": 6}}", "oeqegs", "length"},
        {"{\"prompt\": \"bdcab\", \"raw\": true, \"stream\": false, \"options\": {\"num_predict\": 6}}", "oeqegs",
         "length"},
        {"{\"model\": \"chat\", \"prompt\": \"\"}", "", "load"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        test_answer a = serve_post(&server, "/api/generate", list[i].body);
        assert_int_equal(a.status, 200);
        assert_string_equal(json_string_value(json_object_get(a.json, "response")), list[i].text);
        assert_string_equal(json_string_value(json_object_get(a.json, "done_reason")), list[i].reason);
        answer_free(&a);
    }
    test_answer a = serve_post(&server, "/api/generate", "{\"model\": \"long\", \"prompt\": \"a\", \"system\": \"b\"}");
    assert_int_equal(a.status, 400);
    answer_free(&a);
}

/* ---- as OpenAI's Responses ---- */

static const char *output_of(const json_t *response)
{
    const json_t *message = json_array_get(json_object_get(response, "output"), 0);
    return json_string_value(json_object_get(json_array_get(json_object_get(message, "content"), 0), "text"));
}

static void responses_are_conversations(void **state)
{
    (void)state;
    serve_need(&server);
    static const char *const bodies[] = {
        "{\"input\": \"bdcab\", \"max_output_tokens\": 6}",
        "{\"input\": [{\"role\": \"user\", \"content\": \"bdcab\"}], \"max_output_tokens\": 6, \"store\": false}",
        ("{\"input\": [{\"type\": \"message\", \"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": "
         "\"bd\"}, {\"type\": \"input_text\", \"text\": \"cab\"}]}], \"max_output_tokens\": 6}")};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        test_answer a = serve_post(&server, "/v1/responses", bodies[i]);
        assert_int_equal(a.status, 200);
        assert_string_equal(output_of(a.json), "oeqegs");
        assert_string_equal(json_string_value(json_object_get(a.json, "status")), "incomplete");
        assert_int_equal(number(json_object_get(a.json, "usage"), "input_tokens"), 5);
        assert_int_equal(number(json_object_get(a.json, "usage"), "output_tokens"), 6);
        answer_free(&a);
    }
}

/* Reads the events of a stream, which are numbered: -> *text is all that they added; returns the name of the last. */
static const char *read_response(int fd, char *text)
{
    static char all[1 << 16];
    const char *last = "";
    char *part;
    int events = 0;
    *text = *all = '\0';
    while (serve_read_chunk(fd, &part) > 0) {
        strcat(all, part);
        free(part);
    }
    free(part);
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n"))
        if (!strncmp(line, "event: ", 7)) {
            last = line + 7;
        } else {
            json_t *v = json_loads(line + strlen("data: "), 0, NULL);
            const char *delta = json_string_value(json_object_get(v, "delta"));
            assert_string_equal(json_string_value(json_object_get(v, "type")), last);
            assert_int_equal(number(v, "sequence_number"), events++);
            strcat(text, delta ? delta : "");
            json_decref(v);
        }
    return last;
}

static void events_of_responses_are_numbered_up_to_the_last(void **state)
{
    (void)state;
    char text[64];
    serve_need(&server);
    int fd = serve_begin_stream(&server, "POST /v1/responses",
                                "{\"input\": \"bdcab\", \"max_output_tokens\": 6, \"stream\": true}");
    assert_string_equal(read_response(fd, text), "response.incomplete");
    assert_string_equal(text, "oeqegs");
    close(fd);
}

static void what_responses_would_store_is_refused(void **state)
{
    (void)state;
    serve_need(&server);
    static const char *const fields[] = {"previous_response_id\": \"resp_1", "background\": true, \"user\": \"",
                                         "truncation\": \"auto", "metadata\": \"text"};
    char body[256];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        snprintf(body, sizeof body, "{\"input\": \"bdcab\", \"%s\"}", fields[i]);
        test_answer a = serve_post(&server, "/v1/responses", body);
        assert_int_equal(a.status, 400);
        assert_non_null(json_string_value(json_object_get(json_object_get(a.json, "error"), "param")));
        answer_free(&a);
    }
    test_answer a =
        serve_post(&server, "/v1/responses", "{\"input\": [{\"type\": \"function_call\", \"name\": \"f\"}]}");
    assert_int_equal(a.status, 400);
    assert_has(a.body, "input[0]");
    answer_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_of_ollama_are_messages_or_continued),
        cmocka_unit_test(responses_are_conversations),
        cmocka_unit_test(events_of_responses_are_numbered_up_to_the_last),
        cmocka_unit_test(what_responses_would_store_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
