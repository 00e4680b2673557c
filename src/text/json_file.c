#include "text/tokenizer_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

att_status att_join_path(att_ctx *ctx, const char *folder, const char *name, char path[ATT_MAX_PATH])
{
    if (snprintf(path, ATT_MAX_PATH, "%s/%s", folder, name) >= ATT_MAX_PATH)
        return att_fail(ctx, ATT_ERR_IO, "the path of %s has more than %d bytes", name, ATT_MAX_PATH - 1);
    return ATT_OK;
}

att_status att_read_json(att_ctx *ctx, const char *path, json_t **out)
{
    json_error_t error;
    *out = NULL;
    FILE *f = fopen(path, "rb");
    if (!f)
        return att_fail(ctx, ATT_ERR_IO, "%s: %s", path, strerror(errno));
    json_t *root = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
    bool unreadable = ferror(f);
    fclose(f);
    if (root && json_is_object(root)) {
        *out = root;
        return ATT_OK;
    }
    json_decref(root);
    if (unreadable)
        return att_fail(ctx, ATT_ERR_IO, "%s: cannot be read", path);
    if (root)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: is not a JSON object", path);
    if (json_error_code(&error) == json_error_out_of_memory)
        return att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", path);
    return att_fail(ctx, ATT_ERR_FORMAT, "%s: line %d, column %d: %s", path, error.line, error.column, error.text);
}

att_json_text att_json_show(const json_t *value)
{
    att_json_text shown = {"missing"};
    if (!value)
        return shown;
    size_t n = json_dumpb(value, shown.text, sizeof shown.text - 1, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    if (n == 0)
        snprintf(shown.text, sizeof shown.text, "a value that cannot be shown");
    else if (n < sizeof shown.text)
        shown.text[n] = 0;
    else
        memcpy(shown.text + sizeof shown.text - 4, "...", 4);
    return shown;
}

static const char *type_name(json_type type)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",       [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a whole number", [JSON_REAL] = "a number", [JSON_TRUE] = "true or false"};
    return names[type];
}

att_status att_json_get(att_ctx *ctx, const char *file, const char *where, const json_t *object, const char *key,
                        json_type type, bool required, json_t **out)
{
    json_t *value = json_object_get(object, key);
    *out = NULL;
    if (!value || json_is_null(value)) {
        return !required ? ATT_OK
                         : att_fail(ctx, ATT_ERR_FORMAT, "%s: %s has no \"%s\", which must be %s", file, where, key,
                                    type_name(type));
    }
    if (json_typeof(value) != type && !(type == JSON_TRUE && json_is_false(value)))
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: %s: \"%s\" is %s, not %s", file, where, key,
                        att_json_show(value).text, type_name(type));
    *out = value;
    return ATT_OK;
}
