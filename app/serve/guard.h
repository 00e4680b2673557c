/* Who may ask: keys, the Host header against DNS rebinding, and the origins of web pages. */
#ifndef SERVE_GUARD_H
#define SERVE_GUARD_H

#include "http.h"
#include "cli/serve.h"

enum { SERVE_KEYS = 256 };
typedef struct serve_guard {
    const serve_settings *settings;
    bool loopback; /* the server listens there alone */
    char *key[SERVE_KEYS];
    int keys;
} serve_guard;

/* Reads the keys. Beyond loopback there must be one, unless --insecure is given. Returns a code. */
int serve_guard_open(serve_guard *g, const serve_settings *s, bool loopback);
void serve_guard_close(serve_guard *g);
/* Checks Host and Origin. Returns NULL, or the sentence of a refusal by 403. */
const char *serve_guard_refuses_host(const serve_guard *g, const http_request *r);
/* Returns whether a request has one of the keys, or none is needed. The time does not depend on how much of a key is
 * right. */
bool serve_guard_has_key(const serve_guard *g, const http_request *r);
/* Returns whether this is one of the keys, or none is needed. */
bool serve_guard_knows(const serve_guard *g, const char *key);
/* Returns the request's origin if it is one of --cors-origin; NULL: it is none. */
const char *serve_guard_origin(const serve_guard *g, const http_request *r);

#endif
