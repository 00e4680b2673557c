#include "http.h"

#include "cli/base/progress.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    STACK = 1 << 20,         /* of a connection's thread: JSON of the depth that its parser allows fits */
    OVER_LIMIT = 64,         /* connections that are told that there are too many */
    HEADER_BYTES = 64 << 10, /* of one connection, for its headers and its buffers */
    IDLE_SECONDS = 120,      /* without a request */
    FIRST_ROOM = 4096,
    STREAM_BYTES = 16 << 10 /* of a body that is made while it is sent: of one chunk */
};

/* ---- connections ---- */

typedef enum connection_phase { READING, ANSWERING, IDLE } connection_phase;

typedef struct connection {
    int socket;
    connection_phase phase;
    double since;
    struct connection *previous, *next;
} connection;

struct http_server {
    struct MHD_Daemon *daemon;
    http_options o;
    atomic_llong memory, active, answered, open;
    atomic_bool draining;
    pthread_mutex_t lock; /* of the list */
    connection *connections;
};

static void set_phase(http_server *h, connection *c, connection_phase phase)
{
    pthread_mutex_lock(&h->lock);
    c->phase = phase;
    c->since = cli_seconds();
    pthread_mutex_unlock(&h->lock);
}

static void notify_connection(void *user, struct MHD_Connection *m, void **context,
                              enum MHD_ConnectionNotificationCode code)
{
    http_server *h = user;
    connection *c = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        c = calloc(1, sizeof *c);
        if (!c)
            return; /* its requests are refused */
        *c = (connection){.socket = MHD_get_connection_info(m, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                          .since = cli_seconds()};
        pthread_mutex_lock(&h->lock);
        c->next = h->connections;
        if (c->next)
            c->next->previous = c;
        h->connections = c;
        pthread_mutex_unlock(&h->lock);
        atomic_fetch_add(&h->open, 1);
        *context = c;
    } else if (c) {
        pthread_mutex_lock(&h->lock);
        *(c->previous ? &c->previous->next : &h->connections) = c->next;
        if (c->next)
            c->next->previous = c->previous;
        pthread_mutex_unlock(&h->lock);
        atomic_fetch_sub(&h->open, 1);
        free(c);
    }
}

/* Answers a request that does not arrive, past the library, which has nothing to answer yet. */
static void end_slow(const connection *c)
{
    static const char body[] = "{\"error\": {\"message\": \"the request took too long to arrive\", \"type\": "
                               "\"invalid_request_error\", \"param\": null, \"code\": \"request_timeout\"}}\n";
    char text[512];
    const int n = snprintf(text, sizeof text,
                           "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                           "Connection: close\r\n\r\n%s",
                           sizeof body - 1, body);
    if (send(c->socket, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        /* it gets no answer */
    }
}

void http_watch(http_server *h)
{
    const double now = cli_seconds();
    pthread_mutex_lock(&h->lock);
    for (connection *c = h->connections; c; c = c->next) {
        const bool slow = c->phase == READING && now - c->since > h->o.request_time,
                   idle = c->phase == IDLE && (now - c->since > IDLE_SECONDS || atomic_load(&h->draining));
        if (slow)
            end_slow(c);
        if (slow || idle) {
            shutdown(c->socket, SHUT_RDWR); /* which wakes its thread; that closes it */
            c->phase = ANSWERING;
        }
    }
    pthread_mutex_unlock(&h->lock);
}

/* ---- clients that leave ---- */

const short http_leaving = POLLRDHUP;

bool http_has_left(int socket, short events, bool *probed)
{
    static const char probe[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (events & (POLLERR | POLLHUP | POLLNVAL))
        return true;
    if (!(events & POLLRDHUP) || *probed)
        return false;
    *probed = true;
    return send(socket, probe, sizeof probe - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN;
}

/* ---- one request ---- */

typedef struct exchange {
    http_request request;
    http_answer answer;
    char *method, *path;
    size_t room, taken;    /* bytes of the body's memory */
    const char *too_large; /* a sentence; NULL: it is not */
    int status;            /* with it */
    bool begun, answered;
} exchange;

const char *http_header(const http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

void http_answer_header(http_answer *a, const char *name, const char *format, ...)
{
    va_list list;
    if (a->headers == HTTP_HEADERS)
        return;
    va_start(list, format);
    vsnprintf(a->header[a->headers].value, sizeof a->header[0].value, format, list);
    va_end(list);
    a->header[a->headers++].name = name;
}

bool http_acquire(http_server *h, size_t bytes)
{
    if (atomic_fetch_add(&h->memory, (long long)bytes) + (long long)bytes <= h->o.memory)
        return true;
    http_release(h, bytes);
    return false;
}

void http_release(http_server *h, size_t bytes) { atomic_fetch_sub(&h->memory, (long long)bytes); }

static ssize_t read_stream(void *user, uint64_t at, char *to, size_t size)
{
    http_answer *a = user;
    (void)at;
    const ssize_t n = a->stream.read(a->stream.user, to, size);
    a->bytes += n > 0 ? (size_t)n : 0;
    return n > 0 ? n : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Sends the answer. */
static enum MHD_Result send_answer(http_server *h, struct MHD_Connection *m, exchange *x)
{
    http_answer *a = &x->answer;
    connection *c = MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct MHD_Response *r =
        a->stream.read ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BYTES, read_stream, a, NULL)
                       : MHD_create_response_from_buffer(a->bytes, a->body, MHD_RESPMEM_MUST_FREE);
    if (!r)
        return MHD_NO;
    a->body = NULL; /* it is the response's */
    x->answered = true;
    MHD_add_response_header(r, "Content-Type", a->type ? a->type : "application/json");
    for (int i = 0; i < a->headers; i++)
        MHD_add_response_header(r, a->header[i].name, a->header[i].value);
    if (a->close || atomic_load(&h->draining))
        MHD_add_response_header(r, "Connection", "close");
    if (c)
        set_phase(h, c, ANSWERING);
    const enum MHD_Result result = MHD_queue_response(m, (unsigned)a->status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result refuse(http_server *h, struct MHD_Connection *m, exchange *x, int status, const char *sentence)
{
    h->o.handler.refuse(h->o.handler.user, &x->request, &x->answer, status, sentence);
    x->answer.close = true;
    return send_answer(h, m, x);
}

/* What the headers state about the body. */
typedef struct framing {
    int lengths, encodings;
    const char *length, *encoding;
} framing;

static enum MHD_Result see_header(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
    framing *f = user;
    (void)kind;
    if (!strcasecmp(name, "Content-Length")) {
        f->lengths++;
        f->length = value;
    } else if (!strcasecmp(name, "Transfer-Encoding")) {
        f->encodings++;
        f->encoding = value;
    }
    return MHD_YES;
}

/* Returns why the body's limits are not certain, as in request smuggling; NULL: they are. */
static const char *wrong_framing(const framing *f)
{
    if (f->lengths > 1 || f->encodings > 1 || (f->lengths && f->encodings))
        return "the request has more than one Content-Length or Transfer-Encoding";
    if (f->encodings && (!f->encoding || strcasecmp(f->encoding, "chunked")))
        return "the only Transfer-Encoding that is read is \"chunked\"";
    if (f->lengths && (!f->length || !*f->length || f->length[strspn(f->length, "0123456789")]))
        return "Content-Length is not a number";
    return NULL;
}

/* Makes room for a body of that many bytes; false: it is too large, and why is in the exchange. */
static bool make_room(http_server *h, exchange *x, size_t bytes)
{
    if (bytes > (size_t)h->o.body) {
        x->status = 413;
        x->too_large = "the body is larger than --max-body allows";
        return false;
    }
    if (bytes < x->room)
        return true;
    const size_t room = bytes < FIRST_ROOM ? FIRST_ROOM : bytes + (x->room ? bytes / 2 : 0) + 1;
    char *body = http_acquire(h, room - x->taken) ? realloc(x->request.body, room) : NULL;
    if (!body) {
        x->status = 503;
        x->too_large = "the bodies of all requests together fill --max-memory; retry later";
        return false;
    }
    x->taken = x->room = room;
    x->request.body = body;
    return true;
}

/* Begins a request whose headers have arrived. */
static enum MHD_Result begin(http_server *h, struct MHD_Connection *m, exchange *x)
{
    framing f = {0};
    MHD_get_connection_values(m, MHD_HEADER_KIND, see_header, &f);
    const char *wrong = wrong_framing(&f);
    if (wrong)
        return refuse(h, m, x, 400, wrong);
    if (atomic_load(&h->open) > h->o.connections)
        return refuse(h, m, x, 503, "there are too many connections; retry later");
    if (!h->o.handler.admit(h->o.handler.user, &x->request, &x->answer)) {
        x->answer.close |= f.encodings || (f.length && strspn(f.length, "0") < strlen(f.length));
        return send_answer(h, m, x);
    }
    errno = 0;
    const unsigned long long bytes = f.length ? strtoull(f.length, NULL, 10) : 0;
    if (errno || !make_room(h, x, (size_t)bytes))
        return refuse(h, m, x, errno ? 413 : x->status, errno ? "Content-Length is too large" : x->too_large);
    return MHD_YES;
}

/* Keeps a part of the body. What is beyond the limit is read and forgotten: the library answers after the body only. */
static void add_part(http_server *h, exchange *x, const char *data, size_t bytes)
{
    if (x->too_large || !make_room(h, x, x->request.bytes + bytes))
        return;
    memcpy(x->request.body + x->request.bytes, data, bytes);
    x->request.bytes += bytes;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *m, const char *url, const char *method,
                              const char *version, const char *data, size_t *bytes, void **context)
{
    http_server *h = user;
    exchange *x = *context;
    if (!x)
        return MHD_NO; /* no memory was left when its first line arrived */
    if (!x->begun) {
        x->begun = true;
        x->method = strdup(method);
        x->path = strdup(url);
        if (!x->method || !x->path)
            return MHD_NO;
        x->request.method = x->method;
        x->request.path = x->path;
        x->request.connection = m;
        x->request.is_1_0 = !strcmp(version, "HTTP/1.0");
        x->request.socket = MHD_get_connection_info(m, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        x->request.began = cli_seconds();
        x->request.type = http_header(&x->request, "Content-Type");
        return begin(h, m, x);
    }
    if (*bytes > 0) {
        add_part(h, x, data, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    connection *c = MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (!c)
        return MHD_NO;
    set_phase(h, c, ANSWERING);
    if (x->too_large)
        return refuse(h, m, x, x->status, x->too_large);
    x->request.body[x->request.bytes] = '\0';
    h->o.handler.answer(h->o.handler.user, &x->request, &x->answer);
    return send_answer(h, m, x);
}

/* Begins with the first line of a request. The time of a connection's first one counts from its beginning. */
static void *see_first_line(void *user, const char *url, struct MHD_Connection *m)
{
    http_server *h = user;
    (void)url;
    connection *c = MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    pthread_mutex_lock(&h->lock);
    if (c && c->phase == IDLE) {
        c->phase = READING;
        c->since = cli_seconds();
    }
    pthread_mutex_unlock(&h->lock);
    atomic_fetch_add(&h->active, 1);
    return calloc(1, sizeof(exchange));
}

static void notify_completed(void *user, struct MHD_Connection *m, void **context, enum MHD_RequestTerminationCode code)
{
    http_server *h = user;
    exchange *x = *context;
    connection *c = MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    (void)code;
    if (c)
        set_phase(h, c, IDLE);
    atomic_fetch_sub(&h->active, 1);
    atomic_fetch_add(&h->answered, 1);
    if (!x)
        return;
    if (x->begun && x->request.method)
        h->o.handler.ended(h->o.handler.user, &x->request, &x->answer);
    if (x->answer.stream.close)
        x->answer.stream.close(x->answer.stream.user);
    http_release(h, x->taken + x->answer.acquired);
    free(x->request.body);
    free(x->answer.body);
    free(x->method);
    free(x->path);
    free(x);
    *context = NULL;
}

/* ---- the server ---- */

http_server *http_start(const http_options *o, char *why, size_t size)
{
    http_server *h = calloc(1, sizeof *h);
    snprintf(why, size, "%s", strerror(ENOMEM));
    if (!h) {
        close(o->socket);
        return NULL;
    }
    h->o = *o;
    pthread_mutex_init(&h->lock, NULL);
    errno = 0;
    h->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
        handle, h, MHD_OPTION_LISTEN_SOCKET, o->socket, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)o->connections + OVER_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(o->request_time + 2), MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_NOTIFY_COMPLETED,
        notify_completed, h, MHD_OPTION_NOTIFY_CONNECTION, notify_connection, h, MHD_OPTION_URI_LOG_CALLBACK,
        see_first_line, h, MHD_OPTION_END);
    if (h->daemon)
        return h;
    snprintf(why, size, "%s", errno ? strerror(errno) : "libmicrohttpd does not start");
    close(o->socket);
    pthread_mutex_destroy(&h->lock);
    free(h);
    return NULL;
}

void http_drain(http_server *h)
{
    atomic_store(&h->draining, true);
    const MHD_socket listening = MHD_quiesce_daemon(h->daemon);
    if (listening != MHD_INVALID_SOCKET)
        close(listening);
}

int64_t http_active(http_server *h) { return atomic_load(&h->active); }

int64_t http_answered(http_server *h) { return atomic_load(&h->answered); }

void http_stop(http_server *h)
{
    if (!h)
        return;
    MHD_stop_daemon(h->daemon);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
