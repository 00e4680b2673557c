/* Clients of a server on this machine, in as many threads: one JSON line.
 *
 *   bench_serve_load PORT PATH CLIENTS < BODIES
 *
 * Each line of BODIES is the body of a request. Each client has a connection that stays open, and sends the next line
 * as soon as it has its answer. The seconds of the processor that the clients themselves need are printed, so that they
 * can be subtracted where they share the machine with the server. */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 1024, HEAD = 4096 };

typedef struct load {
    int port;
    const char *path;
    char **body; /* [n] */
    long n;
    atomic_long next, failed, bytes;
    double *latency; /* [n] */
} load;

static int connect_to(int port)
{
    const struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof a) ? -1 : fd;
}

static bool send_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        text += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Reads an answer with a Content-Length. Returns its status, 0 if there is none. */
static int receive(int fd, long *bytes)
{
    char head[HEAD + 1], rest[1 << 16], *end = NULL;
    size_t n = 0;
    while (!end && n < HEAD) {
        const ssize_t k = recv(fd, head + n, HEAD - n, 0);
        if (k <= 0)
            return 0;
        n += (size_t)k;
        head[n] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    const char *length = end ? strcasestr(head, "\r\nContent-Length: ") : NULL;
    if (!length)
        return 0;
    *bytes = atol(length + strlen("\r\nContent-Length: "));
    for (long left = *bytes - (long)(head + n - (end + 4)); left > 0;) {
        const ssize_t k = recv(fd, rest, sizeof rest, 0);
        if (k <= 0)
            return 0;
        left -= k;
    }
    return atoi(head + strlen("HTTP/1.1 "));
}

static bool ask(int fd, const load *l, const char *body, long *bytes)
{
    char head[512];
    const int n = snprintf(head, sizeof head,
                           "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           "Content-Length: %zu\r\n\r\n",
                           l->path, strlen(body));
    return send_all(fd, head, (size_t)n) && send_all(fd, body, strlen(body)) && receive(fd, bytes) == 200;
}

static void *run_client(void *user)
{
    load *l = user;
    const int fd = connect_to(l->port);
    for (long i; (i = atomic_fetch_add(&l->next, 1)) < l->n;) {
        long bytes = 0;
        const double begun = seconds();
        if (fd < 0 || !ask(fd, l, l->body[i], &bytes))
            atomic_fetch_add(&l->failed, 1);
        atomic_fetch_add(&l->bytes, bytes);
        l->latency[i] = seconds() - begun;
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* Reads the lines of standard input. */
static bool read_bodies(load *l)
{
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        char **more = realloc(l->body, (size_t)(l->n + 1) * sizeof *more);
        if (!more)
            return false;
        l->body = more;
        line[n - (line[n - 1] == '\n')] = '\0';
        if (!(l->body[l->n++] = strdup(line)))
            return false;
    }
    free(line);
    l->latency = calloc((size_t)l->n + 1, sizeof *l->latency);
    return l->latency && l->n > 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double processor_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    static pthread_t thread[CLIENTS];
    load l = {.port = argc > 1 ? atoi(argv[1]) : 0, .path = argc > 2 ? argv[2] : ""};
    const int clients = argc == 4 ? atoi(argv[3]) : 0;
    if (clients < 1 || clients > CLIENTS || !read_bodies(&l))
        return fprintf(stderr, "usage: bench_serve_load PORT PATH CLIENTS < BODIES\n"), 2;
    const double begun = seconds(), used = processor_seconds();
    for (int i = 0; i < clients; i++)
        if (pthread_create(&thread[i], NULL, run_client, &l))
            return fprintf(stderr, "bench_serve_load: no more threads\n"), 1;
    for (int i = 0; i < clients; i++)
        pthread_join(thread[i], NULL);
    const double taken = seconds() - begun, own = processor_seconds() - used;
    qsort(l.latency, (size_t)l.n, sizeof *l.latency, by_size);
    printf("{\"requests\": %ld, \"failed\": %ld, \"seconds\": %.6f, \"own_processor_seconds\": %.6f, \"bytes\": %ld, "
           "\"median_ms\": %.4f, \"p99_ms\": %.4f}\n",
           l.n, atomic_load(&l.failed), taken, own, atomic_load(&l.bytes), 1000 * l.latency[l.n / 2],
           1000 * l.latency[l.n * 99 / 100]);
    for (long i = 0; i < l.n; i++)
        free(l.body[i]);
    free(l.body);
    free(l.latency);
    return atomic_load(&l.failed) > 0;
}
