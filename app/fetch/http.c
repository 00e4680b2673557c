#include "http.h"
#include "cli/base/command.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TRIES = 5, MAX_REDIRECTS = 10, MAX_WAIT = 300, MAX_URL = 8192, BUFFER = 1 << 18 };

struct http {
    CURL *curl;
    char endpoint[1024], host[300];
    char why[CURL_ERROR_SIZE];
    long seconds; /* of silence, after which a connection is given up */
};

/* ---- opening */

const char *http_host(const http *h) { return h->host; }

/* Sets which hub it is, from the parts of an address, and which protocols redirects may lead to. */
static void set_host(http *h, const char *endpoint, const char *scheme, const char *host, const char *port)
{
    snprintf(h->host, sizeof h->host, "%s%s%s", host, port ? ":" : "", port ? port : "");
    snprintf(h->endpoint, sizeof h->endpoint, "%s", endpoint);
    for (size_t n = strlen(h->endpoint); n > 0 && h->endpoint[n - 1] == '/';)
        h->endpoint[--n] = '\0';
    curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h->curl, CURLOPT_REDIR_PROTOCOLS_STR, strcmp(scheme, "https") ? "http,https" : "https");
}

/* Takes the endpoint apart, which has a scheme and a host, perhaps a port and a path, and no name, password or query.
 */
static int set_endpoint(http *h, const char *endpoint)
{
    enum { SCHEME, HOST, PORT, USER, QUERY, PARTS };
    static const struct {
        CURLUPart part;
        CURLUcode missing; /* what curl_url_get returns where the address does not have it */
    } parts[PARTS] = {[SCHEME] = {CURLUPART_SCHEME, CURLUE_NO_SCHEME},
                      [HOST] = {CURLUPART_HOST, CURLUE_NO_HOST},
                      [PORT] = {CURLUPART_PORT, CURLUE_NO_PORT},
                      [USER] = {CURLUPART_USER, CURLUE_NO_USER},
                      [QUERY] = {CURLUPART_QUERY, CURLUE_NO_QUERY}};
    char *text[PARTS] = {NULL};
    CURLU *url = curl_url();
    CURLUcode found = url ? curl_url_set(url, CURLUPART_URL, endpoint, 0) : CURLUE_OUT_OF_MEMORY;
    for (int i = 0; !found && i < PARTS; i++) {
        found = curl_url_get(url, parts[i].part, &text[i], 0);
        found = found == parts[i].missing ? CURLUE_OK : found;
    }
    const bool is = !found && text[SCHEME] && text[HOST] && !text[USER] && !text[QUERY] &&
                    strlen(endpoint) < sizeof h->endpoint &&
                    (!strcmp(text[SCHEME], "https") || !strcmp(text[SCHEME], "http"));
    if (is)
        set_host(h, endpoint, text[SCHEME], text[HOST], text[PORT]);
    for (int i = 0; i < PARTS; i++)
        curl_free(text[i]);
    curl_url_cleanup(url);
    if (found == CURLUE_OUT_OF_MEMORY)
        return cli_fail_memory();
    return is ? CLI_DONE
              : cli_fail("HF_ENDPOINT is \"%.200s\", which is not an address such as https://huggingface.co", endpoint);
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)user, (void)a, (void)b, (void)c, (void)d;
    return cli_signal != 0;
}

/* libcurl sends the token to the endpoint's host and port alone, not where a redirect leads elsewhere. */
static void set_options(http *h, const char *token)
{
    const char *silence = getenv("HF_HUB_DOWNLOAD_TIMEOUT"), *certificates = getenv("SSL_CERT_FILE");
    char agent[64];
    snprintf(agent, sizeof agent, "attend/%s", att_version());
    h->seconds = silence && atol(silence) > 0 ? atol(silence) : 30;
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->why);
    curl_easy_setopt(h->curl, CURLOPT_BUFFERSIZE, (long)BUFFER);
    curl_easy_setopt(h->curl, CURLOPT_USERAGENT, agent);
    curl_easy_setopt(h->curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(h->curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT, h->seconds);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, h->seconds);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_LIMIT, 100L); /* bytes a second */
    curl_easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
    if (certificates && *certificates)
        curl_easy_setopt(h->curl, CURLOPT_CAINFO, certificates);
    if (token) {
        curl_easy_setopt(h->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(h->curl, CURLOPT_XOAUTH2_BEARER, token);
    }
}

int http_open(http **out, const char *endpoint, const char *token)
{
    http *h = *out = calloc(1, sizeof *h);
    if (!h)
        return cli_fail_memory();
    if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(h->curl = curl_easy_init()))
        return cli_fail("libcurl does not start");
    const int code = set_endpoint(h, endpoint);
    if (!code)
        set_options(h, token);
    return code;
}

void http_close(http *h)
{
    if (h) {
        curl_easy_cleanup(h->curl);
        curl_global_cleanup();
    }
    free(h);
}

bool http_add_path(char *url, size_t size, const char *part, bool slashes)
{
    size_t n = strlen(url);
    for (; *part; part++) {
        const unsigned char c = (unsigned char)*part;
        const bool plain = isalnum(c) || strchr("-._~", c) || (c == '/' && slashes);
        n += (size_t)snprintf(url + n, n < size ? size - n : 0, plain ? "%c" : "%%%02X", c);
        if (n >= size)
            return false;
    }
    return true;
}

/* ---- one attempt */

typedef struct attempt {
    http *h;
    http_request *r;
    bool begun;
    int code; /* of put, or of an answer that cannot be the right one */
} attempt;

static bool is_good(long status) { return status == 200 || status == 206; }

/* Checks the length that the answer announces, if it does. */
static int check_length(const attempt *a)
{
    curl_off_t length = -1;
    curl_easy_getinfo(a->h->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length < 0 || a->r->bytes < 0 || length == a->r->bytes - a->r->at)
        return CLI_DONE;
    return cli_fail("%s: %s sends %lld bytes, but has listed %lld", a->r->what, a->h->host,
                    (long long)(a->r->at + length), (long long)a->r->bytes);
}

static size_t on_data(char *data, size_t size, size_t n, void *user)
{
    attempt *a = user;
    http_request *r = a->r;
    long status = 0;
    n *= size;
    curl_easy_getinfo(a->h->curl, CURLINFO_RESPONSE_CODE, &status);
    if (!is_good(status))
        return n;
    if (!a->begun)
        a->code = check_length(a);
    a->begun = true;
    if (!a->code && r->bytes >= 0 && (int64_t)n > r->bytes - r->at)
        a->code = cli_fail("%s: %s sends more than the %lld bytes that it has listed", r->what, a->h->host,
                           (long long)r->bytes);
    if (!a->code)
        a->code = r->put(r->user, data, n);
    if (a->code)
        return 0; /* which ends the transfer */
    r->at += (int64_t)n;
    if (r->report)
        r->report(r->user, r->at);
    return n;
}

static void copy_header(CURL *curl, const char *name, char *to, size_t size)
{
    struct curl_header *header;
    const bool found = !curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &header);
    snprintf(to, size, "%s", found ? header->value : "");
}

static CURLcode try_once(attempt *a, http_answer *answer)
{
    CURL *curl = a->h->curl;
    char url[MAX_URL];
    snprintf(url, sizeof url, "%s%s", a->h->endpoint, a->r->url);
    a->begun = false;
    a->h->why[0] = '\0';
    *answer = (http_answer){0};
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)a->r->at);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
    const CURLcode found = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
    copy_header(curl, "X-Error-Code", answer->error_code, sizeof answer->error_code);
    copy_header(curl, "X-Error-Message", answer->error_message, sizeof answer->error_message);
    return found == CURLE_RANGE_ERROR && !is_good(answer->status) ? CURLE_OK : found; /* a refusal has no range */
}

/* ---- until it succeeds */

/* Returns the seconds that the hub asks to wait, in Retry-After or, as in "\"api\";r=0;t=55", in RateLimit; -1: none.
 */
static long requested_wait(CURL *curl)
{
    char text[128];
    curl_off_t seconds = 0;
    copy_header(curl, "Retry-After", text, sizeof text);
    if (*text && !curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds))
        return seconds < MAX_WAIT + 1 ? (long)seconds : MAX_WAIT + 1;
    copy_header(curl, "RateLimit", text, sizeof text);
    const char *at = strstr(text, ";t=");
    const long left = at ? atol(at + 3) : -1;
    return left < MAX_WAIT + 1 ? left : MAX_WAIT + 1;
}

/* Waits, or until a signal. */
static int wait_seconds(long seconds)
{
    const struct timespec part = {.tv_nsec = 100 * 1000 * 1000};
    for (long i = 0; !cli_signal && i < 10 * seconds; i++)
        nanosleep(&part, NULL);
    return cli_signal ? CLI_INTERRUPTED : CLI_DONE;
}

/* Returns whether another attempt may end otherwise. */
static bool is_passing(CURLcode found, long status)
{
    static const CURLcode lost[] = {CURLE_PARTIAL_FILE,       CURLE_RECV_ERROR, CURLE_SEND_ERROR,  CURLE_GOT_NOTHING,
                                    CURLE_OPERATION_TIMEDOUT, CURLE_HTTP2,      CURLE_HTTP2_STREAM};
    static const long busy[] = {408, 429, 500, 502, 503, 504};
    bool is = false;
    for (size_t i = 0; found && i < sizeof lost / sizeof *lost; i++)
        is = is || found == lost[i];
    for (size_t i = 0; !found && i < sizeof busy / sizeof *busy; i++)
        is = is || status == busy[i];
    return is;
}

/* Writes why an attempt has failed. */
static void explain(const attempt *a, CURLcode found, long status, char *text, size_t size)
{
    long redirects = 0;
    curl_easy_getinfo(a->h->curl, CURLINFO_REDIRECT_COUNT, &redirects);
    if (!found && !is_good(status))
        snprintf(text, size, "%s answers with status %ld", a->h->host, status);
    else if (!found)
        snprintf(text, size, "%s ended after %lld of %lld bytes", a->h->host, (long long)a->r->at,
                 (long long)a->r->bytes);
    else if (found == CURLE_OPERATION_TIMEDOUT)
        snprintf(text, size, "%s sent nothing, or nearly so, for %ld s", a->h->host, a->h->seconds);
    else if (found == CURLE_UNSUPPORTED_PROTOCOL && redirects > 0)
        snprintf(text, size, "%s leads to an address that is not https, which is refused", a->h->host);
    else
        snprintf(text, size, "%s: %s", a->h->host, *a->h->why ? a->h->why : curl_easy_strerror(found));
}

/* Returns the seconds to wait before attempt `tries` (from 1): as many as the hub asks for, or 0, 1, 2, 4 and 8. */
static long pause_before(const attempt *a, int tries, bool answered)
{
    const long asked = answered ? requested_wait(a->h->curl) : -1;
    return asked >= 0 ? asked : tries == 1 ? 0 : 1L << (tries - 2);
}

/* Ends the attempts: an answer stays, and otherwise `why` says what was wrong. */
static int stop(http_answer *answer, bool answered, const char *what, const char *why, const char *more)
{
    if (!answered)
        answer->status = 0;
    snprintf(answer->why, sizeof answer->why, "%s: %s%s", what, why, more);
    return CLI_DONE;
}

int http_get(http *h, http_request *r, http_answer *answer)
{
    attempt a = {.h = h, .r = r};
    char why[CURL_ERROR_SIZE + 400];
    int64_t max = r->at; /* that any attempt has reached */
    for (int tries = 1;; tries++) {
        const int64_t before = r->at;
        const CURLcode found = try_once(&a, answer);
        if (a.code || cli_signal)
            return cli_signal ? CLI_INTERRUPTED : a.code;
        const bool good = is_good(answer->status), cut = !found && good && r->bytes >= 0 && r->at < r->bytes;
        const bool no_range = before > 0 && (found == CURLE_RANGE_ERROR || (!found && answer->status == 416));
        const bool passing = cut || no_range || is_passing(found, answer->status), answered = !found && !good;
        if (!found && !passing)
            return CLI_DONE;
        tries = r->bytes >= 0 && r->at > max ? 1 : tries;
        max = r->at > max ? r->at : max;
        explain(&a, found, answer->status, why, sizeof why);
        if (!passing || tries > MAX_TRIES)
            return stop(answer, answered, r->what, why, "");
        if (no_range || (r->bytes < 0 && r->at > 0)) { /* only the whole is sent, or makes sense */
            const int code = r->restart(r->user);
            r->at = 0;
            if (code)
                return code;
        }
        if (no_range)
            continue;
        const long seconds = pause_before(&a, tries, answered);
        if (seconds > MAX_WAIT)
            return stop(answer, answered, r->what, why, ", and asks to wait for more than five minutes");
        cli_note("%s: %s; trying again in %ld s", r->what, why, seconds);
        if (wait_seconds(seconds))
            return CLI_INTERRUPTED;
    }
}
