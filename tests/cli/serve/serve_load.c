/* attend serve under load: many clients, slow ones, those that end in the middle, and a server that is killed. With
 * ATTEND_LOAD=10000 (./dev load) there are as many requests, and memory is compared; by default a few hundred. */
// labels: threads
#include "fixtures/check.h"
#include "fixtures/serve_load.h"
#include "fixtures/tiny_text_classifier.h"

static test_server server;
static test_folder one; /* a text classifier of one label */
static load_expected expected;
static long requests;
static bool large;

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool sanitized = true; /* which keeps memory that was freed */
#else
static const bool sanitized = false;
#endif

#define MODELS "-m embed -m one -m chat -m text -m tatoeba-de-en --max-cache 64 "

static int set_up(void **state)
{
    char path[4096];
    const char *n = getenv("ATTEND_LOAD");
    requests = n ? atol(n) : 200 / check_step(4);
    large = requests >= 10000;
    if (tool_setup(state) || !realpath("tests/golden/tiny_llama", path))
        return -1;
    setenv("T", path, 1);
    if (!realpath("tests/golden/chat", path))
        return -1;
    setenv("J", path, 1);
    one = tiny_text_classifier(1);
    setenv("O", one.path, 1);
    unsetenv("ATTEND_API_KEY");
    if (tool("mkdir embed chat text && ln -s $O one && cp -r $(ls | grep -v embed) embed && cp $T/* chat && cp $T/* "
             "text && "
             "cp $J/mistral-nemo.jinja chat/chat_template.jinja && "
             "echo '{\"eos_token\": \"</>\"}' >chat/tokenizer_config.json && "
             "sed -i 's/\"max_position_embeddings\": 32/\"max_position_embeddings\": 100000/' text/config.json"))
        return -1;
    server = serve_start(MODELS "--max-connections 1024 --timeout 60");
    if (!server.missing)
        load_expect(&server, &expected);
    return 0;
}

static int tear_down(void **state)
{
    serve_stop(&server);
    load_expected_free(&expected);
    folder_remove(&one);
    return tool_teardown(state);
}

static load make_load(int clients, long n)
{
    return (load){.s = &server, .expected = &expected, .clients = clients, .requests = n};
}

/* Returns a number of /proc/PID/status of the server, such as "RssAnon:", in KiB. */
static long status_of(const char *name)
{
    char path[64], line[256];
    long n = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)server.pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            n = atol(line + strlen(name));
    fclose(f);
    return n;
}

/* Returns the KiB of anonymous memory of the server, after it has returned what it does not use to the system. */
static long resident(void)
{
    if (large)
        sleep(3);
    return status_of("RssAnon:");
}

/* Waits until nothing is computed, and no connection has a thread beyond the `threads` that there were. */
static void wait_until_idle(long threads)
{
    for (int i = 0; i < 6000; i++) {
        if (status_of("Threads:") <= threads && serve_metric(&server, "attend_waiting_tokens") == 0)
            return;
        usleep(10000);
    }
    fail_msg("%ld threads, but there were %ld; %g tokens wait", status_of("Threads:"), threads,
             serve_metric(&server, "attend_waiting_tokens"));
}

static void assert_all_answered(const load *l)
{
    assert_int_equal(l->answered, l->requests);
    assert_int_equal(l->different, 0);
}

/* ---- many clients ---- */

static void answers_of_many_clients_are_those_of_a_quiet_one(void **state)
{
    (void)state;
    serve_need(&server);
    load first = make_load(LOAD_CLIENTS, requests / 10), more = make_load(LOAD_CLIENTS, requests - requests / 10);
    load_run(&first);
    const long before = resident();
    load_run(&more);
    const long after = resident();
    print_message("           RssAnon: %ld KiB after %ld requests, %ld KiB after %ld\n", before, first.requests, after,
                  requests);
    assert_all_answered(&first);
    assert_all_answered(&more);
    if (large && !sanitized) /* 1 %, and the arenas of malloc: two for each processor, which keep 256 KiB each */
        assert_true(after <= before + before / 100 + 512 * sysconf(_SC_NPROCESSORS_ONLN));
}

/* ---- clients that are slow ---- */

enum { SLOW_MAX = 500 };

/* Sends `bytes` bytes of a request on each connection, one a second, or faster in the small test. */
static void trickle(const int *fd, int n, const char *request, int bytes)
{
    for (int k = 0; k < bytes; k++) {
        for (int i = 0; i < n; i++)
            serve_send(fd[i], request + k, 1);
        usleep(large ? 1000000 : 50000);
    }
}

static void slow_clients_delay_no_others(void **state)
{
    (void)state;
    static const char request[] = "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n",
                      unread[] = "{\"model\": \"text\", \"prompt\": \"bdcab\", \"max_tokens\": 600, \"stream\": true}";
    const int n = large ? SLOW_MAX : 40, half = n / 2;
    static int fd[SLOW_MAX];
    serve_need(&server);
    const long threads = status_of("Threads:");
    for (int i = 0; i < n; i++) {
        fd[i] = serve_connect(&server);
        assert_true(fd[i] >= 0);
        if (i < half)
            continue;
        setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int)); /* of streams that no client reads */
        serve_ask(fd[i], "POST /v1/completions", "", unread);
    }
    load l = make_load(8, requests / 10);
    trickle(fd, half, request, 5);
    load_run(&l);
    trickle(fd, half, request + 5, 5);
    assert_all_answered(&l);
    for (int i = 0; i < n; i++)
        close(fd[i]);
    wait_until_idle(threads);
}

/* ---- clients that end in the middle ---- */

/* Ends a connection by a reset. */
static void reset(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
}

static void clients_may_end_in_the_middle(void **state)
{
    (void)state;
    char text[2 * LOAD_BODY];
    load_connection *c = malloc(sizeof *c);
    load_answer *a = malloc(sizeof *a);
    serve_need(&server);
    const long threads = status_of("Threads:");
    int served = 0;
    for (int i = 0; i < requests; i++) {
        const int r = i % LOAD_REQUESTS;
        const size_t n = (size_t)(load_write(text, r) - text);
        assert_true(load_open(c, &server));
        switch (i % 4) {
        case 0: /* a reset within the request */
            serve_send(c->fd, text, 1 + (size_t)(i * 7) % (n - 1));
            reset(c->fd);
            continue;
        case 1: /* a reset while it is computed, or the answer is sent */
            serve_send(c->fd, text, n);
            usleep(i % 8 * 100);
            reset(c->fd);
            continue;
        case 2: /* its own side ends within the request */
            serve_send(c->fd, text, 1 + (size_t)(i * 7) % (n - 1));
            shutdown(c->fd, SHUT_WR);
            load_read(c, a);
            break;
        default: /* or after it */
            serve_send(c->fd, text, n);
            shutdown(c->fd, SHUT_WR);
            if (load_read(c, a) != LOAD_ANSWERED || a->status != expected.status[r] ||
                strcmp(a->body, expected.body[r]))
                fail_msg("a client that only reads gets %d: %s", a->status, a->body);
            served++;
        }
        close(c->fd);
    }
    assert_true(served == requests / 4);
    free(c);
    free(a);
    wait_until_idle(threads);
}

static void clients_may_be_killed(void **state)
{
    (void)state;
    serve_need(&server);
    const long threads = status_of("Threads:");
    const pid_t pid = fork();
    if (pid == 0) {
        load l = make_load(LOAD_CLIENTS, 1000000);
        load_run(&l);
        _exit(0);
    }
    usleep(large ? 2000000 : 100000);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    wait_until_idle(threads);
    load l = make_load(8, requests / 10);
    load_run(&l);
    assert_all_answered(&l);
}

/* ---- what is too large ---- */

/* Sends the beginning of a request, then many times the filler, then the end of chunks. Returns the status of the
 * answer; 0: there is none. */
static int status_for(const char *text, const char *filler, size_t times)
{
    const int fd = serve_connect(&server);
    serve_send(fd, text, strlen(text));
    for (size_t i = 0; i < times; i++)
        serve_send(fd, filler, strlen(filler));
    serve_send(fd, "0\r\n\r\n", 5);
    test_answer a = serve_read(fd);
    const int status = a.status;
    answer_free(&a);
    close(fd);
    return status;
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    static char filler[1025], chunk[1100];
    memset(filler, 'a', sizeof filler - 1);
    snprintf(chunk, sizeof chunk, "400\r\n%s\r\n", filler);
#define BEGIN "POST /embed HTTP/1.1\r\nHost: localhost\r\n"
    static const struct {
        const char *text, *filler;
        size_t times;
        int status[2]; /* 0: reset while it sends */
    } list[] = {
        {BEGIN "Content-Length: 40000000\r\n\r\n", "", 0, {413, 413}},
        {BEGIN "Content-Length: 99999999999999999999999999\r\n\r\n", "", 0, {413, 400}},
        {BEGIN "Content-Length: -1\r\n\r\n", "", 0, {400, 413}},
        {BEGIN "Content-Length: 40000000\r\n\r\n", filler, 10000, {413, 0}},
        {BEGIN "Transfer-Encoding: chunked\r\n\r\n", chunk, 34000, {413, 413}},
        {BEGIN "X-Long: ", filler, 10000, {431, 0}},
        {BEGIN, "X-Many: 1\r\n", 10000, {431, 0}},
        {"GET /", filler, 10000, {414, 0}},
        {"", filler, 10000, {414, 0}},
    };
    serve_need(&server);
    const long threads = status_of("Threads:");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const int status = status_for(list[i].text, list[i].filler, list[i].times);
        if (status != list[i].status[0] && status != list[i].status[1])
            fail_msg("%s%.20s...: %d", list[i].text, list[i].filler, status);
    }
    wait_until_idle(threads);
}

/* ---- a server that ends ---- */

static void *run_load(void *user)
{
    load_run(user);
    return NULL;
}

/* Runs a load while the server gets a signal. */
static load load_with_signal(int number, int *status)
{
    load l = make_load(LOAD_CLIENTS, 1000000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_load, &l), 0);
    while (l.answered < requests / 10)
        usleep(1000);
    kill(server.pid, number);
    assert_int_equal(waitpid(server.pid, status, 0), server.pid);
    pthread_join(thread, NULL);
    return l;
}

static void restart(void)
{
    char line[512];
    const int port = server.port;
    snprintf(line, sizeof line, MODELS "--max-connections 1024 --port %d", port);
    server = serve_start(line);
    assert_int_equal(server.port, port);
}

static void a_server_may_be_killed(void **state)
{
    (void)state;
    int status;
    serve_need(&server);
    const load l = load_with_signal(SIGKILL, &status);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(l.different, 0);
    assert_true(l.closed + l.broken > 0);
    restart();
    load again = make_load(8, LOAD_REQUESTS / check_step(4)); /* 24 have all kinds */
    load_run(&again);
    assert_all_answered(&again);
}

static void a_server_that_ends_breaks_no_answer(void **state)
{
    (void)state;
    int status;
    serve_need(&server);
    const load l = load_with_signal(SIGTERM, &status);
    assert_int_equal(status, 0);
    assert_int_equal(l.different, 0);
    assert_int_equal(l.broken, 0);
    server.missing = true; /* nothing is left to stop */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_many_clients_are_those_of_a_quiet_one),
        cmocka_unit_test(slow_clients_delay_no_others),
        cmocka_unit_test(clients_may_end_in_the_middle),
        cmocka_unit_test(clients_may_be_killed),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(a_server_may_be_killed),
        cmocka_unit_test(a_server_that_ends_breaks_no_answer),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
