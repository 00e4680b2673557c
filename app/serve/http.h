/* HTTP/1.1 by libmicrohttpd: connections, the bytes of requests and answers, and their limits. The only file that
 * includes that library's header is http.c. Each connection has a thread, which calls the functions of http_handlers.
 */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct http_request {
    const char *method, *path; /* the path without what follows a "?" */
    const char *type;          /* "Content-Type"; or NULL */
    char *body;                /* [bytes], followed by a zero byte */
    size_t bytes;
    int socket;
    bool is_1_0;  /* HTTP/1.0, whose clients know no answers of status 100 */
    double began; /* when its headers had arrived, by cli_seconds */
    void *connection;
} http_request;

/* Returns the first header of this name; NULL: there is none. */
const char *http_header(const http_request *r, const char *name);

/* A body that is made while it is sent. */
typedef struct http_stream {
    /* Returns the next bytes, after waiting for them: at most size; 0: it ends here; -1: the connection must be closed.
     */
    ssize_t (*read)(void *user, char *to, size_t size);
    void (*close)(void *user); /* when the answer was sent, or its connection has failed */
    void *user;
} http_stream;

enum { HTTP_HEADERS = 12 };
typedef struct http_answer {
    int status;
    const char *type;   /* "Content-Type": "application/json" if NULL */
    char *body;         /* [bytes], malloc'd; or NULL */
    http_stream stream; /* instead of a body, if it has `read` */
    size_t bytes;
    struct {
        const char *name;
        char value[224];
    } header[HTTP_HEADERS];
    int headers;
    size_t acquired; /* by http_acquire for this request, which is released when the answer was sent */
    bool close;      /* the connection, after this answer */
} http_answer;
/* Adds a header. What is too long for it is cut. */
void http_answer_header(http_answer *a, const char *name, const char *format, ...);

typedef struct http_handlers {
    /* Is called when the headers have arrived, before a body is read. Returns whether the request may continue;
     * otherwise it has filled the answer. */
    bool (*admit)(void *user, const http_request *r, http_answer *a);
    /* Answers a whole request. */
    void (*answer)(void *user, const http_request *r, http_answer *a);
    /* Fills the answer to what this file refuses: a status and a sentence. r->method and r->path may be NULL. */
    void (*refuse)(void *user, const http_request *r, http_answer *a, int status, const char *sentence);
    /* Is called when an answer was sent, or its connection failed. */
    void (*ended)(void *user, const http_request *r, const http_answer *a);
    void *user;
} http_handlers;

typedef struct http_options {
    int socket;          /* that listens; http_start owns it */
    int64_t connections; /* beyond these requests are answered 503, beyond 64 more they are closed */
    int64_t body;        /* bytes of one */
    int64_t memory;      /* bytes of all bodies together */
    double request_time; /* seconds in which headers and body must have arrived */
    http_handlers handler;
} http_options;

typedef struct http_server http_server;
/* Returns NULL, and why is in errno or by the library's message in `why` [size]. */
http_server *http_start(const http_options *o, char *why, size_t size);
/* Ends connections whose requests take too long to arrive. To be called about once a second. */
void http_watch(http_server *h);
/* Accepts no more connections, and closes each one after its next answer. */
void http_drain(http_server *h);
/* Returns the number of requests without a complete answer. */
int64_t http_active(http_server *h);
/* Returns the number of requests that had answers. */
int64_t http_answered(http_server *h);
/* Closes all connections, after the answers that handlers are making. */
void http_stop(http_server *h);
/* Acquires bytes of what bodies and answers may use together; false: there are not as many left. */
bool http_acquire(http_server *h, size_t bytes);
void http_release(http_server *h, size_t bytes);

/* Returns whether the client of this socket has gone. One that has only ended its own side, and still reads, has not:
 * it is sent "100 Continue", which a client ignores and a closed socket answers with a reset. *probed: whether that was
 * sent. */
bool http_has_left(int socket, short events, bool *probed);
/* The events to wait for by poll. */
extern const short http_leaving;

#endif
