/* Requests by HTTP, with libcurl: redirects, repeated attempts, and the token, which only the hub itself gets. */
#ifndef FETCH_HTTP_H
#define FETCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct http http;

/* Opens a connection to a hub. endpoint: "https://HOST" or "http://HOST", perhaps with a path behind it. token or NULL.
 * Returns 0, or a code after a message. */
int http_open(http **out, const char *endpoint, const char *token);
void http_close(http *h);
/* The hub's name and port, for messages */
const char *http_host(const http *h);

/* Appends a part of a path to an address, with %-escapes; slashes stay if `slashes` is set. */
bool http_add_path(char *url, size_t size, const char *part, bool slashes);

typedef struct http_request {
    const char *url;  /* below the endpoint: "/api/..." */
    const char *what; /* for messages */
    int64_t bytes;    /* of the whole answer; -1: unknown */
    int64_t at;       /* bytes that there are already, so that only the rest is requested */
    /* Take data [n]; and drop all that there is, for an answer that begins at 0. Return a code. */
    int (*put)(void *user, const void *data, size_t n);
    int (*restart)(void *user);
    void (*report)(void *user, int64_t at); /* is called several times a second */
    void *user;
} http_request;

/* What the hub has answered at last */
typedef struct http_answer {
    long status;             /* 200 or 206: all was put; else nothing; 0: no answer */
    char error_code[64];     /* X-Error-Code: "GatedRepo", "RevisionNotFound" ...; "": none */
    char error_message[200]; /* X-Error-Message; "": none */
    char why[800];           /* why there is no answer, or why the hub was not asked again; "": it was not tried */
} http_answer;

/* Requests with GET. Repeats that, a bounded number of times without progress, after a lost connection, silence, or an
 * answer that says to try later. Returns 0, or a code after a message, of `put` or of an answer that cannot be right.
 */
int http_get(http *h, http_request *r, http_answer *a);

#endif
