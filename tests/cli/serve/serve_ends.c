/* attend serve: limits, clients that leave or are slow, and how a server ends. */
// labels: threads
#include "fixtures/check.h"
#include "fixtures/serve.h"

#include <sys/stat.h>
#include <sys/un.h>

/* One text is a step: thousands of them take a second or more. */
#define SLOWLY "-m \"$D\" --step-tokens 1 --max-inputs 1000000 "
enum { FEW = 1000, MANY = 60000 };

static bool missing;

static int set_up(void **state)
{
    if (tool_setup(state))
        return -1;
    unsetenv("ATTEND_API_KEY");
    missing = tool("$A serve --port 0 -m nothing-there") == 1 && strstr(tool_err, "libmicrohttpd");
    return 0;
}

static test_server start(const char *options)
{
    if (missing)
        skip();
    return serve_start(options);
}

/* Sends a request of n texts on a connection of its own. Returns the connection. */
static int ask_for(const test_server *s, int n)
{
    char *body = malloc((size_t)n * 4 + 32), *at = body + sprintf(body, "{\"inputs\": [");
    const int fd = serve_connect(s);
    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s\"%c\"", i ? "," : "", 'a' + i % 26);
    strcpy(at, "]}");
    serve_ask(fd, "POST /embed", "", body);
    free(body);
    return fd;
}

/* Waits until a metric is at least x, for a minute; returns its value. */
static double wait_for(const test_server *s, const char *name, double x)
{
    for (int i = 0; i < 6000; i++) {
        const double value = serve_metric(s, name);
        if (value >= x)
            return value;
        usleep(10000);
    }
    fail_msg("%s is never %g", name, x);
    return 0;
}

static void wait_until_idle(const test_server *s)
{
    for (int i = 0; i < 6000 && serve_metric(s, "attend_waiting_tokens") > 0; i++)
        usleep(10000);
    assert_true(serve_metric(s, "attend_waiting_tokens") == 0);
}

static void a_client_that_leaves_is_not_computed_for(void **state)
{
    (void)state;
    const test_server s = start(SLOWLY);
    const int fd = ask_for(&s, MANY);
    wait_for(&s, "attend_texts_total", 1);
    close(fd);
    wait_for(&s, "attend_rejected_total{why=\"left\"}", 1);
    wait_until_idle(&s);
    assert_true(serve_metric(&s, "attend_texts_total") < MANY);
    serve_stop(&s);
}

static void a_client_that_still_reads_gets_its_answer(void **state)
{
    (void)state;
    const test_server s = start(SLOWLY);
    const int fd = ask_for(&s, FEW);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    test_answer a = serve_read(fd);
    assert_int_equal(a.status, 200);
    assert_int_equal(json_array_size(a.json), FEW);
    assert_true(serve_metric(&s, "attend_rejected_total{why=\"left\"}") == 0);
    answer_free(&a);
    close(fd);
    serve_stop(&s);
}

static void one_text_does_not_wait_for_many(void **state)
{
    (void)state;
    const test_server s = start(SLOWLY);
    const int fd = ask_for(&s, MANY);
    wait_for(&s, "attend_texts_total", 1);
    test_answer a = serve_post(&s, "/embed", "{\"inputs\": \"a\"}");
    assert_int_equal(a.status, 200);
    assert_true(serve_metric(&s, "attend_waiting_tokens") > 0); /* of the others */
    answer_free(&a);
    close(fd);
    serve_stop(&s);
}

static void what_waits_is_limited(void **state)
{
    (void)state;
    const test_server s = start(SLOWLY "--max-waiting 10");
    const int fd = ask_for(&s, MANY); /* a request is computed if nothing waits */
    wait_for(&s, "attend_texts_total", 1);
    test_answer a = serve_post(&s, "/v1/embeddings", "{\"input\": \"a\"}");
    assert_int_equal(a.status, 429);
    assert_has(a.head, "\r\nRetry-After: ");
    assert_has(a.body, "--max-waiting allows 10");
    answer_free(&a);
    close(fd);
    wait_until_idle(&s);
    a = serve_post(&s, "/v1/embeddings", "{\"input\": \"a\"}");
    assert_int_equal(a.status, 200);
    answer_free(&a);
    serve_stop(&s);
}

static void slow_requests_end(void **state)
{
    (void)state;
    static const char *const begun[] = {"POST /embed HTTP/1.1\r\nHost: loc",
                                        "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{\"in"};
    const test_server s = start(SLOWLY "--timeout 1");
    int slow[2];
    for (int i = 0; i < 2; i++) {
        slow[i] = serve_connect(&s);
        serve_send(slow[i], begun[i], strlen(begun[i]));
    }
    const int computed = ask_for(&s, 10 * MANY / check_step(10));
    for (int i = 0; i < 2; i++) {
        test_answer a = serve_read(slow[i]);
        assert_int_equal(a.status, 408);
        answer_free(&a);
        close(slow[i]);
    }
    test_answer a = serve_read(computed);
    assert_int_equal(a.status, 504);
    assert_has(a.body, "after the 1 seconds of --timeout");
    answer_free(&a);
    close(computed);
    assert_true(serve_metric(&s, "attend_waiting_tokens") == 0);
    serve_stop(&s);
}

static bool answers_livez(const test_server *s)
{
    test_answer a = serve_once(s, "GET /livez", "", NULL);
    const bool answers = a.status == 200;
    answer_free(&a);
    return answers;
}

static void connections_are_limited(void **state)
{
    (void)state;
    const test_server s = start("-m \"$D\" --max-connections 2");
    const int one = serve_connect(&s), two = serve_connect(&s);
    serve_ask(one, "GET /livez", "", NULL);
    serve_ask(two, "GET /livez", "", NULL);
    test_answer a = serve_read(one), b = serve_read(two), c = serve_once(&s, "GET /livez", "", NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(b.status, 200);
    assert_int_equal(c.status, 503);
    assert_has(c.body, "too many connections");
    answer_free(&a);
    answer_free(&b);
    answer_free(&c);
    enum { OVER = 64 }; /* of these requests are answered 503, further ones are closed */
    int over[OVER];
    for (int i = 0; i < OVER; i++)
        over[i] = serve_connect(&s);
    c = serve_once(&s, "GET /livez", "", NULL);
    assert_int_equal(c.status, 0);
    answer_free(&c);
    close(one);
    close(two);
    for (int i = 0; i < OVER; i++)
        close(over[i]);
    for (int i = 0; i < 500 && !answers_livez(&s); i++)
        usleep(10000);
    assert_true(answers_livez(&s));
    serve_stop(&s);
}

/* The soft limit of descriptors is raised; if the hard one is too low, a note states how many connections there can be.
 */
static void descriptors_are_raised_as_far_as_they_may_be(void **state)
{
    (void)state;
    if (missing)
        skip();
    folder_write(&tool_model, "limited",
                 "#!/bin/sh\nulimit $1\nshift\n\"$A\" serve --port 0 -m $D --max-connections 300 >said 2>notes &\n"
                 "until grep -q serving said; do kill -0 $! || break; sleep 0.02; done\n"
                 "grep open /proc/$!/limits\ncat notes >&2\nkill $!\nwait $!\n");
    assert_int_equal(tool("sh ./limited '-S -n 100'"), 0);
    assert_has(tool_out, "Max open files            428 ");
    assert_int_equal(tool("sh ./limited '-n 200'"), 0);
    assert_has(tool_err, "there can be 72 connections instead of the 300 of --max-connections");
    assert_refused("ulimit -n 100; $A serve --port 0 -m $D", 1, "may open only 100 files (ulimit -n)");
}

static void memory_is_limited(void **state)
{
    (void)state;
    const test_server s = start("-m \"$D\" --max-memory 1 --max-inputs 1000000");
    test_answer a = serve_once(&s, "POST /embed", "Content-Length: 2000000\r\n", NULL);
    assert_int_equal(a.status, 503); /* a body of 2 MB */
    assert_has(a.head, "\r\nRetry-After: ");
    answer_free(&a);
    const int fd = ask_for(&s, 10000); /* vectors of 12 numbers, 16 bytes each: 1.9 MB */
    a = serve_read(fd);
    assert_int_equal(a.status, 503);
    assert_has(a.body, "--max-memory");
    answer_free(&a);
    close(fd);
    static char many[1 << 15] = "{\"inputs\": \""; /* a text of 12,000 tokens, of more than 100 bytes in the answer */
    for (int i = 0; i < 12000; i++)
        strcpy(many + strlen("{\"inputs\": \"") + 2 * (size_t)i, "a ");
    strcat(many, "\"}");
    a = serve_post(&s, "/tokenize", many);
    assert_int_equal(a.status, 503);
    assert_has(a.body, "--max-memory");
    answer_free(&a);
    for (int i = 0; i < 3; i++) { /* what was refused is free */
        a = serve_post(&s, "/embed", "{\"inputs\": \"a\"}");
        assert_int_equal(a.status, 200);
        answer_free(&a);
    }
    assert_true(serve_metric(&s, "attend_rejected_total{why=\"memory\"}") == 3);
    serve_stop(&s);
}

/* HTTP/1.0 has no "100 Continue". */
static void an_old_client_gets_nothing_but_its_answer(void **state)
{
    (void)state;
    static const char request[] = "POST /embed HTTP/1.0\r\nContent-Length: 15\r\n\r\n{\"inputs\": \"a\"}";
    const test_server s = start(SLOWLY);
    const int busy = ask_for(&s, FEW), fd = serve_connect(&s);
    char head[512];
    serve_send(fd, request, sizeof request - 1);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_true(serve_read_head(fd, head, sizeof head));
    assert_has(head, " 200 OK\r\n");
    close(fd);
    close(busy);
    serve_stop(&s);
}

/* Waits until no connection is accepted any more. */
static void wait_for_refusal(const test_server *s)
{
    int fd = 0;
    for (int i = 0; fd >= 0 && i < 6000; i++) {
        fd = serve_connect(s);
        if (fd >= 0)
            close(fd);
        usleep(10000);
    }
    assert_true(fd < 0);
}

static void a_signal_lets_requests_end(void **state)
{
    (void)state;
    const test_server s = start(SLOWLY "--grace 600");
    const int n = MANY / 4 / check_step(4), fd = ask_for(&s, n), idle = serve_connect(&s);
    wait_for(&s, "attend_texts_total", 1);
    kill(s.pid, SIGTERM);
    wait_for_refusal(&s);
    test_answer a = serve_read(fd);
    assert_int_equal(a.status, 200);
    assert_int_equal(json_array_size(a.json), n);
    assert_has(a.head, "Connection: close\r\n");
    answer_free(&a);
    close(fd);
    int status;
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    assert_int_equal(status, 0);
    close(idle);
}

static void the_time_of_grace_ends_requests(void **state)
{
    (void)state;
    const test_server s = start(SLOWLY "--grace 0");
    const int fd = ask_for(&s, 10 * MANY / check_step(10));
    wait_for(&s, "attend_texts_total", 1);
    kill(s.pid, SIGINT);
    test_answer a = serve_read(fd);
    assert_int_equal(a.status, 503);
    assert_has(a.body, "the server ends");
    answer_free(&a);
    close(fd);
    int status;
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    assert_int_equal(status, 0);
}

/* systemd passes a socket that listens as descriptor 3. */
static void a_socket_may_be_passed(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    char line[128], program[300];
    assert_int_equal(bind(fd, (const struct sockaddr *)&a, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    snprintf(line, sizeof line, "-m \"$D\" 3<&%d", fd);
    folder_write(&tool_model, "activated", "#!/bin/sh\nLISTEN_PID=$$ LISTEN_FDS=1 exec \"$TOOL\" \"$@\"\n");
    snprintf(program, sizeof program, "%s/activated", tool_model.path);
    assert_int_equal(chmod(program, 0700), 0);
    setenv("TOOL", ATTEND_TOOL, 1);
    setenv("A", program, 1);
    const test_server s = start(line);
    setenv("A", ATTEND_TOOL, 1);
    assert_int_equal(s.port, ntohs(a.sin_port));
    test_answer b = serve_post(&s, "/embed", "{\"inputs\": \"a\"}");
    assert_int_equal(b.status, 200);
    answer_free(&b);
    serve_stop(&s);
    close(fd);
}

/* A socket with a path is as the loopback. */
static void a_socket_with_a_path_may_be_passed(void **state)
{
    (void)state;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char line[256];
    if (missing)
        skip();
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s/socket", tool_model.path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 16), 0);
    setenv("TOOL", ATTEND_TOOL, 1);
    snprintf(line, sizeof line,
             "./activated serve -m $D 3<&%d >said 2>said.err & echo $! >pid; await 'grep -q unix:$D/socket said'", fd);
    assert_int_equal(tool(line), 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&a, sizeof a), 0);
    serve_ask(client, "POST /embed", "", "{\"inputs\": \"a\"}");
    test_answer b = serve_read(client);
    assert_int_equal(b.status, 200);
    answer_free(&b);
    close(client);
    close(fd);
    assert_int_equal(tool("kill $(cat pid); await '! kill -0 $(cat pid)'"), 0);
    assert_refused("LISTEN_PID=$$ LISTEN_FDS=2 exec $A serve -m $D", 1, "systemd has opened 2 sockets");
}

static void logs_have_no_texts(void **state)
{
    (void)state;
    const test_server s = start("-m \"$D\"");
    test_answer a = serve_post(&s, "/embed", "{\"inputs\": \"secrettext\"}"),
                b = serve_once(&s, "GET /secretpath?secretquery", "X-Api-Key: secretkey\r\n", NULL);
    answer_free(&a);
    answer_free(&b);
    serve_stop(&s);
    assert_has(tool_err, "\"method\": \"POST\", \"route\": \"/embed\", \"status\": 200, ");
    assert_has(tool_err, "\"route\": \"-\", \"status\": 404, ");
    assert_null(strstr(tool_err, "secret"));
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    if (missing)
        skip();
    assert_refused("$A serve -m $D --port 0 --host 0.0.0.0", 2, "--api-key or --api-key-file is needed");
    assert_refused("$A serve -m $D --port 0 --host '[0.0.0.0]'", 2, "--api-key or --api-key-file is needed");
    assert_refused("$A serve -m $D --port 0 --host 256.0.0.1", 1, "--host 256.0.0.1: ");
    assert_refused("$A serve -m $D --port 0 --alias x", 2, "\"x\" is not NAME=MODEL");
    assert_refused("$A serve -m $D --port 0 --alias x=y", 2, "no model that is served is called \"y\"");
    assert_refused("$A serve -m $D -m $D --port 0", 2, "two models are called ");
    assert_refused("$A serve -m nothing-there --port 0", 1, "nothing-there");
    assert_refused(": >empty; $A serve -m $D --port 0 --api-key-file empty", 1, "empty: has no key");
    assert_refused("$A serve -m $D --port 65536", 2, "--port: \"65536\"");
    const test_server s = serve_start("-m \"$D\"");
    char line[128];
    snprintf(line, sizeof line, "$A serve -m $D --port %d", s.port);
    assert_refused(line, 1, "give another --port");
    serve_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_leaves_is_not_computed_for),
        cmocka_unit_test(a_client_that_still_reads_gets_its_answer),
        cmocka_unit_test(one_text_does_not_wait_for_many),
        cmocka_unit_test(what_waits_is_limited),
        cmocka_unit_test(slow_requests_end),
        cmocka_unit_test(connections_are_limited),
        cmocka_unit_test(descriptors_are_raised_as_far_as_they_may_be),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(an_old_client_gets_nothing_but_its_answer),
        cmocka_unit_test(a_signal_lets_requests_end),
        cmocka_unit_test(the_time_of_grace_ends_requests),
        cmocka_unit_test(a_socket_may_be_passed),
        cmocka_unit_test(a_socket_with_a_path_may_be_passed),
        cmocka_unit_test(logs_have_no_texts),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
