#include "transfer.h"
#include "cli/base/command.h"
#include "cli/base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 64 << 20, MAX_URL = 6144 };

/* ---- answers that refuse */

/* Reports that a token is needed, or that another one is. */
static int refuse_token(const hub_transfer *t, const http_answer *a)
{
    const char *host = http_host(t->http), *at = t->environment->endpoint;
    const bool has = *t->environment->token;
    if (!strcmp(a->error_code, "GatedRepo"))
        return cli_fail("%s is gated: accept its license at %s/%s, logged in, and %s%s", t->name, at, t->name,
                        has ? "see that the token may read gated models: it is that of "
                            : "set HF_TOKEN to a token of yours",
                        has ? t->environment->token_from : "");
    if (has && a->status == 401)
        return cli_fail("%s refuses the token of %s: make another one at %s/settings/tokens", host,
                        t->environment->token_from, at);
    if (has)
        return cli_fail("%s does not let the token of %s read %s%s%s", host, t->environment->token_from, t->name,
                        *a->error_message ? ": " : "", a->error_message);
    return cli_fail(
        "%s has no model %s, or only for those who may read it: check the name, or set HF_TOKEN to a token of "
        "yours",
        host, t->name);
}

/* Reports an answer that is not what was asked for. what: a file, or NULL: the model. */
static int refuse(const hub_transfer *t, const http_answer *a, const char *what)
{
    const char *host = http_host(t->http);
    if (*a->why)
        return cli_fail("%s", a->why);
    if (a->status == 401 || a->status == 403)
        return refuse_token(t, a);
    if (!strcmp(a->error_code, "RevisionNotFound"))
        return cli_fail("%s has no revision \"%s\" at %s", t->name, t->revision, host);
    if (a->status == 404)
        return cli_fail("%s has no %s%s%s%s", host, what ? "file " : "model ", what ? what : t->name,
                        what ? " of " : "", what ? t->name : "");
    return cli_fail("%s: %s answers with status %ld%s%s", what ? what : t->name, host, a->status,
                    *a->error_message ? ": " : "", a->error_message);
}

/* ---- the list */

typedef struct text {
    char *data; /* [n], zero-terminated */
    size_t n, room;
} text;

static int put_text(void *user, const void *data, size_t n)
{
    text *t = user;
    if (t->n + n > MAX_TEXT)
        return cli_fail("the list of files of the model is longer than %d MB", MAX_TEXT >> 20);
    if (!cli_reserve(&t->room, t->n + n + 1, &(cli_array){&t->data, 1}, 1))
        return cli_fail_memory();
    memcpy(t->data + t->n, data, n);
    t->n += n;
    t->data[t->n] = '\0';
    return CLI_DONE;
}

static int restart_text(void *user)
{
    ((text *)user)->n = 0;
    return CLI_DONE;
}

static int request_list(hub_transfer *t, http_answer *answer)
{
    char url[MAX_URL] = "/api/models/";
    text all = {0};
    http_request r = {.url = url, .what = t->name, .bytes = -1, .put = put_text, .restart = restart_text, .user = &all};
    http_add_path(url, sizeof url, t->name, true); /* names and revisions are short */
    strcat(url, "/revision/");
    http_add_path(url, sizeof url, t->revision, false);
    strcat(url, "?blobs=true");
    int code = http_get(t->http, &r, answer);
    if (!code && !answer->status)
        code = CLI_FAILED;
    else if (!code && answer->status != 200)
        code = refuse(t, answer, NULL);
    if (!code)
        code = hub_listing_read(&t->listing, all.data ? all.data : "", all.n, http_host(t->http));
    free(all.data);
    return code;
}

int hub_transfer_list(hub_transfer *t, http_answer *answer)
{
    const hub_environment *e = t->environment;
    int code = http_open(&t->http, e->endpoint, *e->token ? e->token : NULL);
    *answer = (http_answer){.status = -1};
    if (!code)
        code = request_list(t, answer);
    return code ? code : hub_snapshot_find(&t->snapshot, t->name, t->listing.commit);
}

/* ---- files */

/* A blob that is being received */
typedef struct receiving {
    hub_transfer *transfer;
    hub_blob blob;
} receiving;

static int put_blob(void *user, const void *data, size_t n)
{
    receiving *r = user;
    r->transfer->received += (int64_t)n;
    return hub_blob_put(&r->blob, data, n);
}

static int restart_blob(void *user)
{
    receiving *r = user;
    return hub_blob_restart(&r->blob);
}

static void report(void *user, int64_t at)
{
    hub_transfer *t = ((receiving *)user)->transfer;
    if (t->all > 0)
        cli_progress_show(&t->line, t->received / 1000000, "MB", (double)(t->done + at) / (double)t->all);
}

/* Requests what is missing of a blob. */
static int request_blob(receiving *r)
{
    hub_transfer *t = r->transfer;
    const hub_file *f = r->blob.file;
    char url[MAX_URL] = "/";
    http_answer answer;
    http_request request = {.url = url,
                            .what = f->name,
                            .bytes = f->bytes,
                            .at = r->blob.at,
                            .put = put_blob,
                            .restart = restart_blob,
                            .report = report,
                            .user = r};
    bool fits = http_add_path(url, sizeof url, t->name, true);
    strcat(url, "/resolve/");
    strcat(url, t->listing.commit);
    strcat(url, "/");
    fits = fits && http_add_path(url, sizeof url, f->name, true);
    if (!fits)
        return cli_fail("%s: the name is too long", f->name);
    const int code = http_get(t->http, &request, &answer);
    return code || answer.status == 200 || answer.status == 206 ? code : refuse(t, &answer, f->name);
}

/* Receives a blob and checks it. If what an earlier process has left is not its beginning, receives it anew. */
static int receive(receiving *r)
{
    const hub_file *f = r->blob.file;
    char found[HUB_HASH];
    bool good = false, resumed;
    int code;
    do {
        resumed = r->blob.resumed;
        code = r->blob.at < f->bytes ? request_blob(r) : CLI_DONE;
        resumed = resumed && r->blob.resumed;
        if (!code)
            code = hub_blob_finish(&r->blob, &good, found);
    } while (!code && !good && resumed);
    if (code || good)
        return code;
    return cli_fail("%s is damaged: %s has sent what has the hash %s, but has listed %s; nothing was installed",
                    f->name, http_host(r->transfer->http), found, f->hash);
}

int hub_transfer_get(hub_transfer *t, const hub_file *f)
{
    receiving r = {.transfer = t};
    int code = hub_blob_open(&r.blob, &t->snapshot, f);
    if (!code && r.blob.fd >= 0)
        code = receive(&r);
    hub_blob_close(&r.blob);
    t->done += f->bytes;
    return code;
}

int hub_transfer_read(void *transfer, const hub_file *f, json_t **out)
{
    hub_transfer *t = transfer;
    char path[sizeof t->snapshot.root + 80];
    json_error_t error;
    *out = NULL;
    if (f->bytes > MAX_TEXT)
        return cli_fail("%s is longer than %d MB", f->name, MAX_TEXT >> 20);
    const int code = hub_transfer_get(t, f);
    if (code)
        return code;
    t->done -= f->bytes; /* it is counted again, with all the files */
    snprintf(path, sizeof path, "%s/blobs/%s", t->snapshot.root.text, f->hash);
    *out = json_load_file(path, 0, &error);
    return *out ? CLI_DONE : cli_fail("%s of %s is not JSON: %s", f->name, t->name, error.text);
}

void hub_transfer_close(hub_transfer *t)
{
    cli_progress_end(&t->line);
    http_close(t->http);
    hub_listing_close(&t->listing);
}
