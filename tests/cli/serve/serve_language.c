/* attend serve: texts of language models, in conversations and without, whole and as streams of events. */
// labels: threads
#include "fixtures/serve_text.h"

#include <pthread.h>

static test_server server; /* of the models of serve_text.h */

static int set_up(void **state)
{
    if (tool_setup(state) || serve_make_texts())
        return 1;
    unsetenv("ATTEND_API_KEY");
    server = serve_start("-m chat -m long --max-cache 40 --max-waiting 100");
    return 0;
}

static int tear_down(void **state)
{
    serve_stop(&server);
    return tool_teardown(state);
}

#define CHAT "/v1/chat/completions"
#define TEXT "/v1/completions"

static const json_t *choice_of(const json_t *answer, size_t i)
{
    return json_array_get(json_object_get(answer, "choices"), i);
}

static const char *text_of(const json_t *choice)
{
    const json_t *message = json_object_get(choice, "message");
    return json_string_value(message ? json_object_get(message, "content") : json_object_get(choice, "text"));
}

static const char *reason_of(const json_t *choice)
{
    return json_string_value(json_object_get(choice, "finish_reason"));
}

/* ---- streams ---- */

/* What the events of a stream have together. */
typedef struct events {
    char text[4096], reason[16];
    int n, tokens;
    bool role, done;
    double usage; /* completion_tokens; -1: there was none */
} events;

static void add_event(events *e, const char *data)
{
    if (!strcmp(data, "[DONE]")) {
        e->done = true;
        return;
    }
    json_t *v = json_loads(data, 0, NULL);
    const json_t *choice = choice_of(v, 0), *delta = json_object_get(choice, "delta");
    const char *text = json_string_value(delta ? json_object_get(delta, "content") : json_object_get(choice, "text"));
    if (!v || e->done)
        fail_msg("an event is \"%s\"", data);
    e->role |= json_is_string(json_object_get(delta, "role"));
    e->tokens += (int)json_array_size(json_object_get(json_object_get(choice, "logprobs"), "content"));
    if (text && strlen(e->text) + strlen(text) < sizeof e->text)
        strcat(e->text, text);
    if (reason_of(choice))
        snprintf(e->reason, sizeof e->reason, "%s", reason_of(choice));
    if (json_is_object(json_object_get(v, "usage")))
        e->usage = number(json_object_get(v, "usage"), "completion_tokens");
    e->n++;
    json_decref(v);
}

/* Reads a stream to its end, after its headers. */
static events read_events(int fd)
{
    events e = {.usage = -1};
    char *part, *all = calloc(1, 1 << 20), *next = all;
    ssize_t n;
    while ((n = serve_read_chunk(fd, &part)) > 0) {
        assert_true(strlen(all) + (size_t)n < 1 << 20);
        strcat(all, part);
        free(part);
    }
    free(part);
    assert_int_equal(n, 0);
    for (char *event; (event = next) && *event;) {
        next = strstr(event, "\n\n");
        assert_non_null(next);
        *next = '\0';
        next += 2;
        assert_true(!strncmp(event, "data: ", 6));
        add_event(&e, event + 6);
    }
    free(all);
    return e;
}

static events stream(const char *what, const char *body)
{
    const int fd = serve_begin_stream(&server, what, body);
    const events e = read_events(fd);
    close(fd);
    return e;
}

/* ---- texts ---- */

static void assert_text(const char *path, const char *body, const char *text, const char *reason)
{
    test_answer a = serve_post(&server, path, body);
    const json_t *c = choice_of(a.json, 0);
    if (a.status != 200 || !text_of(c) || strcmp(text_of(c), text) || strcmp(reason_of(c), reason))
        fail_msg("%s: %d, not \"%s\", %s: %s", body, a.status, text, reason, a.body);
    answer_free(&a);
}

static void texts_are_those_of_the_command(void **state)
{
    (void)state;
    serve_need(&server);
    assert_int_equal(tool("$A generate -m chat -n 6 bdcab"), 0);
    assert_string_equal(tool_out, "oeqegs\n");
    assert_text(TEXT, "{\"prompt\": \"bdcab\", \"max_tokens\": 6}", "oeqegs", "length");
    assert_text(TEXT, "{\"prompt\": [1, 3, 2, 0, 1], \"max_tokens\": 6}", "oeqegs", "length");
    assert_text(TEXT, "{\"prompt\": \"bdcab\", \"max_tokens\": 6, \"echo\": true}", "bdcaboeqegs", "length");
    assert_text(CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"bdcab\"}], \"max_tokens\": 6}", "oeqegs",
                "length");
    assert_text(CHAT,
                "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"bd\"}, {\"type\": "
                "\"text\", \"text\": \"cab\"}]}, {\"role\": \"assistant\", \"content\": \"oeqegs\", \"tool_calls\": "
                "[]}, {\"role\": \"user\", \"content\": \"t\", \"name\": \"Ann\"}], \"max_tokens\": 100, "
                "\"max_completion_tokens\": 6, \"tools\": [], \"response_format\": {\"type\": \"text\"}}",
                "ihoegs", "length");
    assert_text(CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"bdcab\"}], \"stop\": \"eg\"}", "oeq",
                "stop");
}

static void seeds_penalties_and_biases_are_those_of_the_command(void **state)
{
    (void)state;
    static const struct {
        const char *options, *fields;
    } list[] = {
        {"--temperature 2 --seed 5", "\"temperature\": 2, \"seed\": 5"},
        {"--temperature 2 --seed 6 --top-k 3", "\"temperature\": 2, \"seed\": 6, \"top_k\": 3"},
        {"--top-p 0.9 --seed 7", "\"top_p\": 0.9, \"seed\": 7"},
        {"--temperature 3 --min-p 0.2 --seed 8", "\"temperature\": 3, \"min_p\": 0.2, \"seed\": 8"},
        {"--temperature 0", "\"temperature\": 0, \"top_p\": 0.5, \"seed\": 9"},
        {"--presence-penalty 2", "\"presence_penalty\": 2"},
        {"--frequency-penalty 1.5", "\"frequency_penalty\": 1.5"},
        {"--temperature 0 --repetition-penalty 2", "\"repetition_penalty\": 2"},
        {"--logit-bias 4=-100 --logit-bias 6=1.5", "\"logit_bias\": {\"4\": -100, \"6\": 1.5}"},
        {"--stop sl --stop qq", "\"stop\": [\"sl\", \"qq\"]"},
    };
    char line[256], body[512];
    serve_need(&server);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        snprintf(line, sizeof line, "$A generate -m chat -n 20 --quiet %s bdcab", list[i].options);
        assert_int_equal(tool(line), 0);
        tool_out[strcspn(tool_out, "\n")] = '\0';
        snprintf(body, sizeof body, "{\"prompt\": \"bdcab\", \"max_tokens\": 20, %s}", list[i].fields);
        assert_text(TEXT, body, tool_out, i + 1 == sizeof list / sizeof *list ? "stop" : "length");
    }
}

static void texts_of_many_prompts_are_in_order(void **state)
{
    (void)state;
    serve_need(&server);
    test_answer a = serve_post(&server, TEXT,
                               "{\"prompt\": [\"bdcab\", \"t\"], \"max_tokens\": 8, \"n\": 2, \"temperature\": 2, "
                               "\"seed\": 5}");
    const json_t *usage = json_object_get(a.json, "usage");
    assert_int_equal(json_array_size(json_object_get(a.json, "choices")), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(number(choice_of(a.json, i), "index"), i);
    assert_string_not_equal(text_of(choice_of(a.json, 0)), text_of(choice_of(a.json, 1)));
    assert_int_equal(number(usage, "prompt_tokens"), 6);
    assert_int_equal(number(usage, "completion_tokens"), 32);
    assert_int_equal(tool("$A generate -m chat -n 8 --quiet --temperature 2 --seed 5 t"), 0);
    tool_out[strcspn(tool_out, "\n")] = '\0';
    assert_string_equal(text_of(choice_of(a.json, 2)), tool_out);
    answer_free(&a);
}

/* Checks the tokens of a chat, with their log probabilities, against those of the command: its line of JSON. */
static void assert_tokens(const json_t *content, const json_t *tokens)
{
    assert_int_equal(json_array_size(content), json_array_size(tokens));
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *is = json_array_get(content, i), *want = json_array_get(tokens, i);
        const json_t *top = json_array_get(json_object_get(is, "top_logprobs"), 1),
                     *second = json_array_get(json_object_get(want, "top_logprobs"), 1);
        assert_true(number(is, "logprob") == number(want, "log_probability"));
        assert_true(number(top, "logprob") == number(second, "log_probability"));
        assert_string_equal(json_string_value(json_object_get(is, "token")),
                            json_string_value(json_object_get(want, "token")));
        assert_int_equal(json_integer_value(json_array_get(json_object_get(is, "bytes"), 0)),
                         *json_string_value(json_object_get(want, "token")));
    }
}

static void log_probabilities_are_those_of_the_command(void **state)
{
    (void)state;
    serve_need(&server);
    assert_int_equal(tool("echo bdcab | $A chat -m chat -n 6 --json --top-logprobs 3"), 0);
    json_t *v = line_json(0);
    test_answer a = serve_post(&server, CHAT,
                               "{\"messages\": [{\"role\": \"user\", \"content\": \"bdcab\"}], \"max_tokens\": 6, "
                               "\"logprobs\": true, \"top_logprobs\": 3}");
    assert_tokens(json_object_get(json_object_get(choice_of(a.json, 0), "logprobs"), "content"),
                  json_object_get(v, "tokens"));
    answer_free(&a);
    a = serve_post(&server, TEXT, "{\"prompt\": \"bdcab\", \"max_tokens\": 6, \"logprobs\": 2}");
    const json_t *l = json_object_get(choice_of(a.json, 0), "logprobs");
    assert_int_equal(json_array_size(json_object_get(l, "tokens")), 6);
    assert_int_equal(json_array_size(json_object_get(l, "token_logprobs")), 6);
    assert_int_equal(json_object_size(json_array_get(json_object_get(l, "top_logprobs"), 5)), 2);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(l, "text_offset"), 5)), 5);
    answer_free(&a);
    json_decref(v);
}

static void streams_have_the_same_texts(void **state)
{
    (void)state;
    serve_need(&server);
    events e = stream("POST " CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"bdcab\"}], \"max_tokens\": 6, "
                                    "\"stream\": true, \"logprobs\": true, \"stream_options\": {\"include_usage\": "
                                    "true}}");
    assert_string_equal(e.text, "oeqegs");
    assert_string_equal(e.reason, "length");
    assert_true(e.role && e.done);
    assert_int_equal(e.tokens, 6);
    assert_int_equal(e.usage, 6);
    e = stream("POST " TEXT,
               "{\"prompt\": \"bdcab\", \"max_tokens\": 6, \"stream\": true, \"stop\": [\"gsx\", \"sl\"]}");
    assert_string_equal(e.text, "oeqegs"); /* the end could begin a stop string until the text ends */
    assert_true(e.done && e.usage == -1);
    e = stream("POST " TEXT,
               "{\"prompt\": \"bdcab\", \"max_tokens\": 9, \"stream\": true, \"stop\": \"egs\", \"echo\": "
               "true}");
    assert_string_equal(e.text, "bdcaboeq");
    assert_string_equal(e.reason, "stop");
}

/* ---- as Ollama's ---- */

static void conversations_are_those_of_ollama_too(void **state)
{
    (void)state;
    char head[4096], text[64] = "", *part;
    ssize_t n;
    serve_need(&server);
    test_answer a =
        serve_post(&server, "/api/chat",
                   "{\"model\": \"chat:latest\", \"messages\": [{\"role\": \"user\", \"content\": \"bdcab\", "
                   "\"images\": []}], \"stream\": false, \"options\": {\"num_predict\": 6, \"seed\": 1}}");
    assert_int_equal(a.status, 200);
    assert_string_equal(text_of(a.json), "oeqegs");
    assert_string_equal(json_string_value(json_object_get(a.json, "done_reason")), "length");
    assert_int_equal(number(a.json, "prompt_eval_count"), 5);
    assert_int_equal(number(a.json, "eval_count"), 6);
    answer_free(&a);
    const int fd = serve_connect(&server);
    serve_ask(fd, "POST /api/chat", "",
              "{\"messages\": [{\"role\": \"user\", \"content\": \"bdcab\"}], \"options\": {\"stop\": \"gs\"}}");
    assert_true(serve_read_head(fd, head, sizeof head));
    assert_has(head, "Content-Type: application/x-ndjson");
    bool done = false;
    while ((n = serve_read_chunk(fd, &part)) > 0) {
        for (char *line = strtok(part, "\n"); line; line = strtok(NULL, "\n")) {
            json_t *v = json_loads(line, 0, NULL);
            assert_non_null(v);
            strcat(text, text_of(v));
            done = json_is_true(json_object_get(v, "done"));
            json_decref(v);
        }
        free(part);
    }
    free(part);
    assert_int_equal(n, 0);
    assert_string_equal(text, "oeqe");
    assert_true(done);
    close(fd);
    a = serve_once(&server, "GET /api/tags", "", NULL);
    assert_int_equal(json_array_size(json_object_get(a.json, "models")), 2);
    answer_free(&a);
}

/* ---- many at once ---- */

enum { CLIENTS = 8 };
typedef struct client {
    int number;
    char *answer;
} client;

static void *ask(void *user)
{
    client *c = user;
    char body[512], prompt[64];
    const int n = 1 + c->number * 3;
    for (int i = 0; i < n; i++)
        prompt[i] = (char)('a' + (7 * i * i + c->number) % 20);
    prompt[n] = '\0';
    snprintf(body, sizeof body,
             "{\"model\": \"long\", \"prompt\": \"%s\", \"max_tokens\": %d, \"temperature\": %s, \"seed\": %d, "
             "\"logprobs\": 2, \"n\": 2}",
             prompt, 40 + 20 * c->number, c->number % 2 ? "1.5" : "0", c->number);
    test_answer a = serve_post(&server, TEXT, body);
    c->answer = a.status == 200 ? json_dumps(json_object_get(a.json, "choices"), 0) : NULL;
    answer_free(&a);
    return NULL;
}

static void bits_do_not_depend_on_who_else_asks(void **state)
{
    (void)state;
    client together[CLIENTS], alone;
    pthread_t thread[CLIENTS];
    serve_need(&server);
    for (int i = 0; i < CLIENTS; i++) {
        together[i].number = i;
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &together[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < CLIENTS; i++) {
        alone.number = i;
        ask(&alone);
        assert_non_null(alone.answer);
        assert_non_null(together[i].answer);
        assert_string_equal(alone.answer, together[i].answer);
        free(alone.answer);
        free(together[i].answer);
    }
}

/* ---- clients that leave, that wait, and that do not read ---- */

/* Texts that take much longer than a test; --max-cache has room for one of them and for short ones: 40 MB for tokens of
 * 2 layers, 2 heads, 8 numbers of 4 bytes as key and as value, without a fifth for beginnings that are kept. */
#define ENDLESS "{\"model\": \"long\", \"prompt\": \"bdcab\", \"max_tokens\": 90000, \"stream\": true}"
#define WAITS                                                                                                          \
    "{\"model\": \"long\", \"prompt\": \"bdcabtttttttttttttttttttttttttttttttttttttttttttttttttttttttttt\", "          \
    "\"max_tokens\": 80000, \"stop\": [\"e\", \"g\"]}"

static bool answers_within(int fd, int milliseconds)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, milliseconds) == 1;
}

static void a_client_that_leaves_gives_its_room_to_one_that_waits(void **state)
{
    (void)state;
    serve_need(&server);
    const double left = serve_metric(&server, "attend_rejected_total{why=\"left\"}");
    const int endless = serve_begin_stream(&server, "POST " TEXT, ENDLESS), waits = serve_connect(&server);
    serve_ask(waits, "POST " TEXT, "", WAITS);
    assert_false(answers_within(waits, 200));
    test_answer a = serve_post(&server, TEXT, WAITS); /* with the other one's more than --max-waiting */
    assert_int_equal(a.status, 429);
    assert_has(a.head, "Retry-After: ");
    answer_free(&a);
    close(endless);
    assert_true(answers_within(waits, 10000));
    a = serve_read(waits);
    assert_string_equal(reason_of(choice_of(a.json, 0)), "stop");
    answer_free(&a);
    close(waits);
    for (int i = 0; serve_metric(&server, "attend_rejected_total{why=\"left\"}") < left + 1; i++) {
        assert_true(i < 500); /* its connection's thread counts it a moment later */
        poll(NULL, 0, 10);
    }
    assert_true(serve_metric(&server, "attend_waiting_tokens") == 0);
}

static void a_client_that_does_not_read_delays_no_other(void **state)
{
    (void)state;
    serve_need(&server);
    const int endless = serve_begin_stream(&server, "POST " TEXT, ENDLESS);
    assert_text(TEXT, "{\"model\": \"long\", \"prompt\": \"bdcab\", \"max_tokens\": 6}", "oeqegs", "length");
    poll(NULL, 0, 300); /* while its socket fills */
    assert_text(TEXT, "{\"model\": \"long\", \"prompt\": \"bdcab\", \"max_tokens\": 6}", "oeqegs", "length");
    close(endless);
}

static void a_client_that_only_reads_gets_all(void **state)
{
    (void)state;
    serve_need(&server);
    const int fd = serve_connect(&server);
    serve_ask(fd, "POST " TEXT, "",
              "{\"model\": \"long\", \"prompt\": \"bdcab\", \"max_tokens\": 2000, \"stream\": true}");
    shutdown(fd, SHUT_WR);
    char head[4096];
    do
        assert_true(serve_read_head(fd, head, sizeof head));
    while (strstr(head, " 100 "));
    const events e = read_events(fd);
    assert_true(e.done);
    assert_int_equal(strlen(e.text), 2000);
    close(fd);
}

/* ---- what is refused ---- */

#define MESSAGES "\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]"

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    static const char *const chat = "POST " CHAT, *const text = "POST " TEXT;
    static const refused_request list[] = {
        {chat, NULL, "{}", 400, "messages: is needed"},
        {chat, NULL, "{\"messages\": []}", 400, "messages: is not a list of 1 to"},
        {chat, NULL, "{\"messages\": [{\"role\": \"tool\", \"content\": \"a\"}]}", 400, "with the role system, dev"},
        {chat, NULL, "{\"messages\": [{\"role\": \"user\", \"content\": 1}]}", 400, "its content is not a text"},
        {chat, NULL, "{\"messages\": [{\"role\": \"user\"}]}", 400, "its content is not a text"},
        {chat, NULL, "{\"messages\": [{\"role\": \"system\", \"content\": null}]}", 400, "its content is not a text"},
        {chat, NULL, "{\"messages\": [{\"role\": \"user\", \"contents\": \"a\"}]}", 400, "has role and content"},
        {chat, NULL, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}", 400, "a part"},
        {chat, NULL, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"audio\": {}}]}", 400, "audio"},
        {chat, NULL, "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}", 400,
         "the chat template refuses the conversation"},
        {chat, NULL,
         "{\"messages\": [{\"role\": \"user\", \"content\": \"abcdefghijklmnopqrstabcdefghijklmnopqrst\"}]}", 400,
         "messages: has 40 tokens, but in chat prompt and text have at most 32"},
        {chat, NULL, "{" MESSAGES ", \"model\": \"long\"}", 400, "long does not hold conversations"},
        {chat, NULL, "{" MESSAGES ", \"model\": \"gpt-4\"}", 404, "there are: chat, long"},
        {chat, NULL, "{" MESSAGES ", \"tools\": [{\"type\": \"function\"}]}", 400, "tools: is not supported"},
        {chat, NULL, "{" MESSAGES ", \"response_format\": {\"type\": \"json_object\"}}", 400,
         "response_format: is not"},
        {chat, NULL, "{" MESSAGES ", \"top_logprobs\": 2}", 400, "needs logprobs"},
        {chat, NULL, "{" MESSAGES ", \"logprobs\": true, \"top_logprobs\": 21}", 400, "21 is not from 0 to 20"},
        {chat, NULL, "{" MESSAGES ", \"max_tokens\": 0}", 400, "max_tokens: 0 is not from 1"},
        {chat, NULL, "{" MESSAGES ", \"temperature\": -1}", 400, "temperature: -1 is not from 0"},
        {chat, NULL, "{" MESSAGES ", \"temperature\": 1e-9}", 400, "is neither 0 nor from 1e-6"},
        {chat, NULL, "{" MESSAGES ", \"n\": 65}", 400, "n: 65 is not from 1 to 64"},
        {chat, NULL, "{" MESSAGES ", \"stop\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}", 400, "stop: has 5 strings"},
        {chat, NULL, "{" MESSAGES ", \"stop\": \"\"}", 400, "stop: is not a string, or a list"},
        {chat, NULL, "{" MESSAGES ", \"stop\": [1]}", 400, "stop: is not a string, or a list"},
        {chat, NULL, "{" MESSAGES ", \"logit_bias\": {\"20\": 1}}", 400,
         "is not the id of a token of chat, from 0 to 19"},
        {chat, NULL, "{" MESSAGES ", \"logit_bias\": {\"x\": 1}}", 400, "is not the id of a token"},
        {chat, NULL, "{" MESSAGES ", \"logit_bias\": {\"2\": 101}}", 400, "is not a number from -100 to 100"},
        {chat, NULL, "{" MESSAGES ", \"logit_bias\": [1]}", 400, "logit_bias: is not an object"},
        {chat, NULL, "{" MESSAGES ", \"stream_options\": {\"include_usage\": 1}}", 400, "stream_options: is not"},
        {chat, NULL, "{" MESSAGES ", \"max_token\": 1}", 400, "did you mean \\\"max_tokens\\\"?"},
        {text, NULL, "{\"prompt\": \"\"}", 400, "prompt: is empty, and chat continues at least one token"},
        {text, NULL, "{\"prompt\": [\"a\", \"abcdefghijklmnopqrstabcdefghijklmnopqrst\"]}", 400, "prompt[1]: has 40"},
        {text, NULL, "{\"prompt\": [20]}", 400, "prompt: has the token 20"},
        {text, NULL, "{\"prompt\": \"a\", \"best_of\": 2}", 400, "best_of: is not supported"},
        {text, NULL, "{\"prompt\": \"a\", \"suffix\": \"b\"}", 400, "suffix: is not supported"},
        {text, NULL, "{\"prompt\": \"a\", \"echo\": true, \"logprobs\": 1}", 400, "echo: the log probabilities"},
        {text, NULL, "{\"prompt\": [1], \"echo\": true}", 400, "echo: the prompt is token ids"},
        {"POST /api/chat", NULL, "{" MESSAGES ", \"format\": \"json\"}", 400, "format: is not supported"},
        {"POST /api/chat", NULL, "{" MESSAGES ", \"options\": {\"top_p\": 2}}", 400, "options: top_p: 2 is not from 0"},
        {"POST /api/chat", NULL, "{" MESSAGES ", \"options\": {\"mirostat\": 1}}", 400, "options: there is no field"},
        {"POST /api/chat", NULL, "{" MESSAGES ", \"options\": 1}", 400, "options: is not an object"},
        {"POST /api/embed", NULL, "{\"input\": \"a\"}", 404, "needs a sentence model, and none is served"},
        {"GET " CHAT, NULL, NULL, 405, "another method"},
    };
    serve_need(&server);
    assert_refused_all(&server, list, sizeof list / sizeof *list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_the_command),
        cmocka_unit_test(seeds_penalties_and_biases_are_those_of_the_command),
        cmocka_unit_test(texts_of_many_prompts_are_in_order),
        cmocka_unit_test(log_probabilities_are_those_of_the_command),
        cmocka_unit_test(streams_have_the_same_texts),
        cmocka_unit_test(conversations_are_those_of_ollama_too),
        cmocka_unit_test(bits_do_not_depend_on_who_else_asks),
        cmocka_unit_test(a_client_that_leaves_gives_its_room_to_one_that_waits),
        cmocka_unit_test(a_client_that_does_not_read_delays_no_other),
        cmocka_unit_test(a_client_that_only_reads_gets_all),
        cmocka_unit_test(wrong_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
