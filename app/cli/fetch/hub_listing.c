#include "hub_listing.h"
#include "cli/base/command.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 1024, MAX_PART = 255 };
static const int64_t max_bytes = (int64_t)1 << 42; /* of a file, so that no sum of sizes overflows */

bool hub_is_path(const char *name)
{
    const size_t all = strlen(name);
    for (const char *p = name, *end = name + all; p <= end;) {
        const size_t n = strcspn(p, "/");
        if (n == 0 || n > MAX_PART || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n + 1;
    }
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    return all <= MAX_NAME;
}

/* Copies a hash of this many hexadecimal digits; false: the value is not one. */
static bool copy_hash(const json_t *value, size_t digits, char *to)
{
    const char *text = json_string_value(value);
    const bool is = text && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
    if (is)
        memcpy(to, text, digits + 1);
    return is;
}

/* Reads {"rfilename": "a/b", "size": 7, "blobId": SHA-1, "lfs": {"sha256": SHA-256, "size": 7}}. */
static int read_file(const json_t *entry, const char *host, hub_file *out)
{
    const json_t *lfs = json_object_get(entry, "lfs"),
                 *size = json_object_get(json_is_object(lfs) ? lfs : entry, "size");
    out->name = json_string_value(json_object_get(entry, "rfilename"));
    out->bytes = json_integer_value(size);
    if (!out->name || json_string_length(json_object_get(entry, "rfilename")) != strlen(out->name) ||
        !hub_is_path(out->name))
        return cli_fail("%s lists the file \"%.200s\", which is not a path within a model", host,
                        out->name ? out->name : "");
    if (!json_is_integer(size) || out->bytes < 0 || out->bytes > max_bytes)
        return cli_fail("%s lists %.200s without a size, or with one that no file has", host, out->name);
    if (!(json_is_object(lfs) ? copy_hash(json_object_get(lfs, "sha256"), 64, out->hash)
                              : copy_hash(json_object_get(entry, "blobId"), 40, out->hash)))
        return cli_fail("%s lists %.200s without its hash, by which it is checked", host, out->name);
    return CLI_DONE;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hub_file *)a)->name, ((const hub_file *)b)->name);
}

static int read_files(hub_listing *l, const char *host)
{
    const json_t *files = json_object_get(l->root, "siblings");
    if (!copy_hash(json_object_get(l->root, "sha"), HUB_COMMIT - 1, l->commit) || !json_is_array(files))
        return cli_fail("%s has not listed a commit and files of the model", host);
    const size_t n = json_array_size(files);
    l->file = calloc(n + 1, sizeof *l->file);
    if (!l->file)
        return cli_fail_memory();
    int code = CLI_DONE;
    for (; !code && l->n < n; l->n++)
        code = read_file(json_array_get(files, l->n), host, &l->file[l->n]);
    if (!code)
        qsort(l->file, l->n, sizeof *l->file, by_name);
    return code;
}

int hub_listing_read(hub_listing *l, const char *text, size_t bytes, const char *host)
{
    json_error_t error;
    *l = (hub_listing){.root = json_loadb(text, bytes, 0, &error)};
    if (l->root)
        return read_files(l, host);
    const size_t blanks = bytes ? strspn(text, " \t\r\n") : 0;
    if (blanks < bytes && text[blanks] == '<')
        return cli_fail(
            "%s answers with a page for a browser instead of JSON: does HF_ENDPOINT name a hub, and does this "
            "network ask for a login?",
            host);
    return cli_fail("%s answers with what is not JSON: %s", host, error.text);
}

void hub_listing_close(hub_listing *l)
{
    free(l->file);
    json_decref(l->root);
    *l = (hub_listing){0};
}

const hub_file *hub_listing_find(const hub_listing *l, const char *name)
{
    const hub_file wanted = {.name = name};
    return l->n ? bsearch(&wanted, l->file, l->n, sizeof *l->file, by_name) : NULL;
}
