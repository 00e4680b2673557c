#include "text/tokenizer_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "text/wordpiece.h"

/* ---- reading */

/* All of an open file; text grows by doubling, since the size of what is opened may not be known. */
static att_status read_all(att_text_file *f, FILE *file)
{
    size_t capacity = 0;
    while (!feof(file)) {
        if (capacity - f->bytes < 2) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            char *text = att_alloc(f->ctx, capacity, 1);
            if (!text)
                return ATT_ERR_MEMORY;
            if (f->bytes > 0)
                memcpy(text, f->text, f->bytes);
            att_free(f->ctx, f->text);
            f->text = text;
        }
        f->bytes += fread(f->text + f->bytes, 1, capacity - f->bytes - 1, file);
        if (ferror(file))
            return att_fail(f->ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    }
    f->text[f->bytes] = 0;
    return ATT_OK;
}

att_status att_text_file_read(att_text_file *f, att_ctx *ctx, const char *folder, const char *name, bool required)
{
    f->ctx = ctx;
    f->text = NULL;
    f->bytes = 0;
    if (snprintf(f->path, sizeof f->path, "%s/%s", folder, name) >= (int)sizeof f->path)
        return att_fail(ctx, ATT_ERR_IO, "the path of %s is longer than %zu bytes", name, sizeof f->path - 1);
    FILE *file = fopen(f->path, "rb");
    if (!file && !required && (errno == ENOENT || errno == ENOTDIR))
        return ATT_OK;
    if (!file && errno == ENOMEM)
        return att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", f->path);
    if (!file)
        return att_fail(ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    att_status s = read_all(f, file);
    fclose(file);
    if (s != ATT_OK)
        att_text_file_free(f);
    return s;
}

void att_text_file_free(att_text_file *f)
{
    att_free(f->ctx, f->text);
    f->text = NULL;
}

/* ---- JSON */

typedef struct parts {
    struct part {
        const char *text;
        size_t bytes;
    } part[3];
    int next;
} parts;

static size_t next_part(void *buffer, size_t bytes, void *data)
{
    parts *p = data;
    while (p->next < 3 && p->part[p->next].bytes == 0)
        p->next++;
    if (p->next == 3)
        return 0;
    struct part *part = &p->part[p->next];
    size_t n = part->bytes < bytes ? part->bytes : bytes;
    memcpy(buffer, part->text, n);
    part->text += n;
    part->bytes -= n;
    return n;
}

att_status att_text_file_json(const att_text_file *f, size_t begin, size_t end, json_t **out)
{
    parts p = {{{f->text, begin}, {"{}", end > begin ? 2 : 0}, {f->text + end, f->bytes - end}}, 0};
    json_error_t e;
    errno = 0; /* where memory runs out, jansson may blame the text, or leave characters out of a name and go on */
    json_t *root = json_load_callback(next_part, &p, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &e);
    *out = NULL;
    if (errno == ENOMEM || (!root && json_error_code(&e) == json_error_out_of_memory)) {
        json_decref(root);
        return att_fail(f->ctx, ATT_ERR_MEMORY, "%s: out of memory", f->path);
    }
    if (!root)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: line %d: %s", f->path, e.line, e.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: is not a JSON object", f->path);
    }
    *out = root;
    return ATT_OK;
}

att_json_text att_json_show(const json_t *value)
{
    att_json_text shown = {"missing"};
    if (!value)
        return shown;
    const size_t n = json_dumpb(value, shown.text, sizeof shown.text - 1,
                                JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
    if (n >= sizeof shown.text)
        memcpy(shown.text + sizeof shown.text - 4, "...", 4);
    else
        shown.text[n] = 0;
    char *zero = json_is_real(value) ? strstr(shown.text, ".0") : NULL;
    if (zero && zero[2] == 0) /* a whole number, read as a real one */
        *zero = 0;
    return shown;
}

int32_t att_json_id(const json_t *value)
{
    double x = json_is_real(value) ? json_real_value(value) : -1;
    return x >= 0 && x < ATT_MAX_VOCABULARY && x == (int32_t)x ? (int32_t)x : ATT_NO_TOKEN;
}

static const char *type_name(json_type type)
{
    return type == JSON_OBJECT   ? "an object"
           : type == JSON_ARRAY  ? "a list"
           : type == JSON_STRING ? "a text"
           : type == JSON_REAL   ? "a number"
                                 : "true or false";
}

att_status att_json_get(att_ctx *ctx, const char *path, const char *where, const json_t *object, const char *key,
                        json_type type, bool required, json_t **out)
{
    json_t *value = json_object_get(object, key);
    *out = NULL;
    if (!value || json_is_null(value)) {
        return !required ? ATT_OK
                         : att_fail(ctx, ATT_ERR_FORMAT, "%s: %s has no \"%s\", which must be %s", path, where, key,
                                    type_name(type));
    }
    if (json_typeof(value) != type && !(type == JSON_TRUE && json_is_false(value)))
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: \"%s\" of %s is %s, not %s", path, key, where,
                        att_json_show(value).text, type_name(type));
    *out = value;
    return ATT_OK;
}
