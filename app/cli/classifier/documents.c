#include "documents.h"

#include "cli/base/grow.h"
#include "cli/base/lines.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

static int add(cli_documents *d, const char *text, size_t bytes)
{
    const cli_array rows[] = {
        {&d->begin, sizeof *d->begin}, {&d->bytes, sizeof *d->bytes}, {&d->text, sizeof *d->text}};
    if (!cli_reserve(&d->room, (size_t)d->n + 1, rows, 3) ||
        !cli_reserve(&d->capacity, d->used + bytes + 1, &(cli_array){&d->data, 1}, 1))
        return cli_fail_memory();
    memcpy(d->data + d->used, text, bytes);
    d->data[d->used + bytes] = 0;
    d->begin[d->n] = d->used;
    d->bytes[d->n++] = bytes;
    d->used += bytes + 1;
    return CLI_DONE;
}

/* Adds the "text" of a line of JSON Lines. */
static int add_json(cli_documents *d, const char *path, const char *line, size_t bytes)
{
    json_error_t error;
    json_t *root = json_loadb(line, bytes, JSON_ALLOW_NUL, &error);
    const json_t *text = json_object_get(root, "text");
    const int code = !root ? cli_fail("%s: line %lld is not JSON: %s", path, (long long)d->n + 1, error.text)
                     : json_is_string(text)
                         ? add(d, json_string_value(text), json_string_length(text))
                         : cli_fail("%s: line %lld is not an object with a \"text\"", path, (long long)d->n + 1);
    json_decref(root);
    return code;
}

int cli_documents_read(cli_documents *d, const char *path)
{
    const bool json = cli_has_extension(path, ".jsonl");
    cli_lines in;
    *d = (cli_documents){0};
    int code = cli_lines_open(&in, 1, (char *const *)&path);
    do {
        code = code ? code : cli_lines_next(&in, BLOCK);
        for (int64_t i = 0; !code && i < in.count; i++)
            code = json ? add_json(d, path, in.text[i], in.bytes[i]) : add(d, in.text[i], in.bytes[i]);
    } while (!code && in.count > 0);
    cli_lines_close(&in);
    for (int64_t i = 0; i < d->n; i++)
        d->text[i] = d->data + d->begin[i];
    return !code && d->n == 0 ? cli_fail("%s: has no documents to rank", path) : code;
}

void cli_documents_free(cli_documents *d)
{
    free(d->text);
    free(d->bytes);
    free(d->data);
    free(d->begin);
    *d = (cli_documents){0};
}
