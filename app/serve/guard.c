#include "guard.h"

#include "cli/base/read_file.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- keys ---- */

static int add_key(serve_guard *g, const char *key, size_t bytes)
{
    while (bytes > 0 && strchr(" \t\r", key[bytes - 1]))
        bytes--;
    if (bytes == 0 || *key == '#')
        return CLI_DONE;
    if (g->keys == SERVE_KEYS)
        return cli_misuse("there can be at most %d keys", SERVE_KEYS);
    g->key[g->keys] = strndup(key, bytes);
    return g->key[g->keys++] ? CLI_DONE : cli_fail_memory();
}

static int read_keys(serve_guard *g, const char *path)
{
    cli_whole_text t;
    int code = cli_whole_text_read(path, &t);
    for (size_t at = 0; !code && at < t.bytes;) {
        const size_t n = strcspn(t.text + at, "\n");
        code = add_key(g, t.text + at, n);
        at += n + 1;
    }
    cli_whole_text_free(&t);
    if (!code && g->keys == 0)
        code = cli_fail("%s: has no key", path);
    return code;
}

int serve_guard_open(serve_guard *g, const serve_settings *s, bool loopback)
{
    *g = (serve_guard){.settings = s, .loopback = loopback};
    int code = s->key_file ? read_keys(g, s->key_file) : CLI_DONE;
    for (int i = 0; !code && i < s->keys.n; i++)
        code = add_key(g, s->keys.text[i], strlen(s->keys.text[i]));
    if (!code && !loopback && g->keys == 0 && !s->insecure)
        code =
            cli_misuse("--host %s can be reached from other machines, so that --api-key or --api-key-file is needed; "
                       "keys and texts travel in clear unless a proxy with TLS is before it (docs/SERVE.md); "
                       "--insecure serves everybody",
                       s->host);
    return code;
}

void serve_guard_close(serve_guard *g)
{
    for (int i = 0; i < g->keys; i++)
        free(g->key[i]);
    g->keys = 0;
}

/* Compares all bytes, whatever the first ones are. */
static bool same_key(const char *key, const char *given, size_t bytes)
{
    const size_t n = strlen(key);
    unsigned differs = n != bytes;
    for (size_t i = 0; i < bytes; i++)
        differs |= (unsigned char)(key[n ? i % n : 0] ^ given[i]);
    return differs == 0;
}

bool serve_guard_knows(const serve_guard *g, const char *key)
{
    bool found = g->keys == 0;
    for (int i = 0; i < g->keys; i++)
        found |= same_key(g->key[i], key, strlen(key));
    return found;
}

bool serve_guard_has_key(const serve_guard *g, const http_request *r)
{
    const char *given = http_header(r, "Authorization");
    given = given && !strncasecmp(given, "Bearer ", 7) ? given + 7 : http_header(r, "X-Api-Key");
    return serve_guard_knows(g, given ? given : "");
}

/* ---- hosts and origins ---- */

static bool is_loopback_name(const char *host, size_t n)
{
    char text[64];
    struct in_addr v4;
    struct in6_addr v6;
    static const char local[] = ".localhost";
    const size_t l = sizeof local - 1;
    if (n == 0 || n >= sizeof text)
        return false;
    memcpy(text, host, n);
    text[n] = '\0';
    if (!strcasecmp(text, local + 1) || (n > l && !strcasecmp(text + n - l, local)))
        return true;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Finds the name in "name:port" or "[address]:port". */
static const char *host_name(const char *host, size_t *n)
{
    if (*host != '[') {
        *n = strcspn(host, ":");
        return host;
    }
    *n = strcspn(host + 1, "]");
    return host + 1;
}

static bool is_listed(const cli_texts *list, const char *text, size_t n)
{
    for (int i = 0; i < list->n; i++)
        if (strlen(list->text[i]) == n && !strncasecmp(list->text[i], text, n))
            return true;
    return false;
}

const char *serve_guard_origin(const serve_guard *g, const http_request *r)
{
    const char *origin = http_header(r, "Origin");
    const bool any = is_listed(&g->settings->origins, "*", 1);
    return origin && (any || is_listed(&g->settings->origins, origin, strlen(origin))) ? origin : NULL;
}

const char *serve_guard_refuses_host(const serve_guard *g, const http_request *r)
{
    const char *host = http_header(r, "Host"), *origin = http_header(r, "Origin");
    const cli_texts *hosts = &g->settings->hosts;
    size_t n = 0;
    if (host && (g->loopback || hosts->n > 0)) {
        const char *name = host_name(host, &n);
        if (!is_listed(hosts, name, n) && !(g->loopback && is_loopback_name(name, n)))
            return "the Host header is not a name of this machine's loopback: --allow-host allows another one";
    }
    if (!origin || serve_guard_origin(g, r))
        return NULL;
    const char *own = strstr(origin, "://");
    if (host && own && !strcasecmp(own + 3, host))
        return NULL; /* the server's own page */
    return "pages of another origin may not ask: --cors-origin allows one";
}
