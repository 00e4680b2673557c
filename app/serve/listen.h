/* The socket that a server listens on. */
#ifndef SERVE_LISTEN_H
#define SERVE_LISTEN_H

#include "cli/base/command.h"

typedef struct serve_listener {
    int socket;
    bool loopback;  /* or a socket of this machine alone, with a path */
    bool activated; /* systemd has opened it */
    char url[128];  /* "http://127.0.0.1:8080", "unix:/run/attend.sock" */
} serve_listener;

/* Listens at a host's first address and a port, 0: any that is free; or takes the socket that systemd has opened
 * ($LISTEN_FDS). Returns a code. */
int serve_listen(const char *host, int64_t port, serve_listener *out);
/* Raises the limit of descriptors to `n`, as far as the system allows. Returns the limit. */
int64_t serve_raise_descriptors(int64_t n);

#endif
