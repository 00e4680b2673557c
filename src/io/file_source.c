#include "io/file_source.h"

#include "io/file.h"
#include "io/gguf.h"

#include <string.h>

static _Thread_local const att_file_source *current; /* source of the model that this thread is opening, or NULL */

att_status att_file_source_begin(att_file_source *s, const char *model, const att_model_options *options)
{
    *s = (att_file_source){.model = model};
    const att_status e = att_options_read(&s->options, sizeof s->options, options, "att_model_options");
    s->begun = !e && !current;
    if (s->begun)
        current = s;
    return e;
}

void att_file_source_end(const att_file_source *s)
{
    if (s->begun)
        current = NULL;
}

bool att_file_source_copies(void) { return current && current->options.copy; }

bool att_file_source_given(void) { return current && current->options.read; }

/* Returns the length of a part of a path, up to a '/' or the end; empty parts and "." do not count. */
static size_t part_length(const char *path, bool *counts)
{
    const size_t n = strcspn(path, "/");
    *counts = n > 0 && !(n == 1 && *path == '.');
    return n;
}

/* Finds the name of the file at `path`, relative to the model: "1_Pooling/config.json"; false: it is not inside the
 * model. */
static bool find_name(const char *model, const char *path, char name[ATT_MAX_PATH])
{
    size_t n = strlen(model), at = 0;
    const bool is_file = att_is_gguf_name(model), begins = strncmp(path, model, n) == 0,
               inside = begins && (!path[n] || path[n] == '/' || n == 0 || model[n - 1] == '/');
    /* A .gguf file is the whole model, or one of its parts; a folder is not a file. */
    if (!(inside && is_file == !path[n]) && !att_gguf_is_part_of_same(model, path))
        return false;
    const char *last = strrchr(path, '/');
    for (const char *p = !is_file ? path + n : last ? last + 1 : path; *p;) {
        bool counts;
        const size_t length = part_length(p, &counts);
        if (counts && at + length + 2 > ATT_MAX_PATH)
            return false;
        if (counts) {
            name[at] = '/';
            memcpy(name + at + (at > 0), p, length);
            at += length + (at > 0);
        }
        p += length + (p[length] == '/');
    }
    name[at] = 0;
    return at > 0;
}

/* Calls the caller's function. Files that this function opens are not part of this model. */
static att_status call(const att_file_source *s, const char *name, const void **data, size_t *bytes)
{
    current = NULL;
    att_fail(NULL, ATT_OK, "%s", ""); /* so that an error sentence after the call is the caller's */
    const att_status e = s->options.read(s->options.read_user, name, data, bytes);
    current = s;
    return e;
}

att_status att_file_source_read(att_ctx *ctx, const char *path, const void **data, size_t *bytes)
{
    char name[ATT_MAX_PATH];
    *data = NULL;
    *bytes = 0;
    if (!find_name(current->model, path, name))
        return ATT_OK;
    const att_status s = call(current, name, data, bytes);
    const char *sentence = att_error(ctx);
    if (s)
        *data = NULL;
    return s ? att_fail(ctx, s, "%s: read: %s", path, *sentence ? sentence : att_status_text(s)) : ATT_OK;
}
