#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int64_t serve_raise_descriptors(int64_t n)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return n;
    if (limit.rlim_cur < (rlim_t)n) {
        limit.rlim_cur = limit.rlim_max < (rlim_t)n ? limit.rlim_max : (rlim_t)n;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
}

/* Finds the socket that systemd has opened for this process, the descriptor 3 -> *socket; -1: none. */
static int find_activated(int *socket)
{
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    *socket = -1;
    if (!pid || !n || strtol(pid, NULL, 10) != (long)getpid())
        return CLI_DONE;
    if (strcmp(n, "1"))
        return cli_fail("$LISTEN_FDS: systemd has opened %s sockets, but the server listens on one: its .socket unit "
                        "must have one ListenStream",
                        n);
    *socket = STDERR_FILENO + 1;
    return CLI_DONE;
}

/* Describes the address of the socket. */
static int describe(serve_listener *l)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
        struct sockaddr_storage room;
    } a;
    socklen_t size = sizeof a;
    char text[INET6_ADDRSTRLEN] = "";
    if (getsockname(l->socket, &a.any, &size))
        return cli_fail("the socket to listen on: %s", strerror(errno));
    if (a.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof text);
        l->loopback = ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
        snprintf(l->url, sizeof l->url, "http://%s:%u", text, ntohs(a.v4.sin_port));
    } else if (a.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof text);
        l->loopback = IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
        snprintf(l->url, sizeof l->url, "http://[%s]:%u", text, ntohs(a.v6.sin6_port));
    } else if (a.any.sa_family == AF_UNIX) {
        l->loopback = true;
        snprintf(l->url, sizeof l->url, "unix:%.*s", (int)(size - offsetof(struct sockaddr_un, sun_path)),
                 a.local.sun_path);
    } else {
        return cli_fail("the socket to listen on has neither an IPv4 nor an IPv6 address, nor a path");
    }
    return CLI_DONE;
}

static int open_address(const struct addrinfo *a)
{
    const int one = 1, s = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (s < 0)
        return -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!bind(s, a->ai_addr, a->ai_addrlen) && !listen(s, SOMAXCONN))
        return s;
    const int why = errno;
    close(s);
    errno = why;
    return -1;
}

/* Finds the addresses of a host; brackets around an IPv6 address are left out, as URLs have them. */
static int find_addresses(const char *host, const char *service, struct addrinfo **list)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const size_t n = strlen(host);
    const bool bracketed = n > 2 && host[0] == '[' && host[n - 1] == ']';
    char *name = strndup(host + bracketed, n - 2 * bracketed);
    const int failed = name ? getaddrinfo(name, service, &hints, list) : EAI_MEMORY;
    free(name);
    return failed ? cli_fail("--host %s: %s", host, gai_strerror(failed)) : CLI_DONE;
}

int serve_listen(const char *host, int64_t port, serve_listener *out)
{
    struct addrinfo *list = NULL;
    char service[16];
    *out = (serve_listener){.socket = -1};
    int code = find_activated(&out->socket);
    out->activated = out->socket >= 0;
    if (code || out->activated)
        return code ? code : describe(out);
    snprintf(service, sizeof service, "%lld", (long long)port);
    code = find_addresses(host, service, &list);
    if (code)
        return code;
    out->socket = open_address(list);
    const int why = errno;
    freeaddrinfo(list);
    if (out->socket < 0)
        return cli_fail("--host %s --port %lld: %s%s", host, (long long)port, strerror(why),
                        why == EADDRINUSE ? "; give another --port, or 0 for any that is free" : "");
    return describe(out);
}
