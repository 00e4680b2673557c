/* The .safetensors format: 8 bytes with the length of the header, a JSON header, the data.
 *
 * {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"format": "pt"}}
 *
 * Offsets count from the end of the header, and may be any. The content is untrusted until all of this has been
 * checked. */
#include "io/safetensors.h"
#include "io/content.h"
#include "io/settings.h"
#include "util/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

typedef struct entry {
    const char *name; /* in the header */
    const struct number_type *type;
    int rank; /* above ATT_MAX_RANK: valid, but att_safetensors_get refuses it */
    int64_t dim[ATT_MAX_RANK];
    int64_t begin, end;        /* bytes, from the end of the header */
    const unsigned char *data; /* in the file, or in `copies` */
} entry;

struct att_safetensors {
    att_ctx *ctx;
    const unsigned char *bytes; /* [size]: in `file`, or the caller's */
    size_t size;
    att_file_data file;
    const unsigned char *data; /* after the header */
    int64_t data_bytes;
    unsigned char *copies; /* of tensors that are not aligned to their type */
    json_t *header;
    const json_t *metadata; /* in the header: an object of strings, null, or NULL */
    const char **key;       /* [keys] of the metadata */
    int64_t keys;
    int64_t count;
    entry *entry;          /* [count], sorted by offset */
    const entry **by_name; /* [count] */
    char label[];          /* the path, for errors */
};

/* Types of the format; those without an att_dtype are accepted in a file, but att_safetensors_get refuses them. */
typedef struct number_type {
    const char *name;
    int64_t bits;
    bool supported;
    att_dtype dtype;
} number_type;
static const number_type number_types[] = {
    {"F32", 32, true, ATT_F32},   {"F16", 16, true, ATT_F16}, {"BF16", 16, true, ATT_BF16},
    {"I32", 32, true, ATT_I32},   {"I64", 64, true, ATT_I64}, {"BOOL", 8, true, ATT_BOOL},
    {"F64", 64, false, 0},        {"I8", 8, true, ATT_I8},    {"U8", 8, false, 0},
    {"I16", 16, false, 0},        {"U16", 16, false, 0},      {"U32", 32, false, 0},
    {"U64", 64, false, 0},        {"F8_E4M3", 8, false, 0},   {"F8_E5M2", 8, false, 0},
    {"F8_E8M0", 8, false, 0},     {"C64", 64, false, 0},      {"F4", 4, false, 0},
    {"F6_E2M3", 6, false, 0},     {"F6_E3M2", 6, false, 0},   {"F8_E4M3FNUZ", 8, false, 0},
    {"F8_E5M2FNUZ", 8, false, 0},
};

const char *att_safetensors_type(att_dtype t)
{
    for (size_t i = 0; i < sizeof number_types / sizeof number_types[0]; i++)
        if (number_types[i].supported && number_types[i].dtype == t)
            return number_types[i].name;
    return NULL;
}

static att_status bad(const att_safetensors *f, const char *name, const char *what)
{
    return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: tensor \"%.80s\" %s", f->label, name, what);
}

/* ---- one entry of the header */

static att_status read_type(const att_safetensors *f, entry *e, const json_t *value)
{
    for (size_t i = 0; json_is_string(value) && i < sizeof number_types / sizeof number_types[0]; i++)
        if (!strcmp(number_types[i].name, json_string_value(value)))
            e->type = &number_types[i];
    if (e->type)
        return ATT_OK;
    return att_fail(f->ctx, ATT_ERR_FORMAT,
                    "%s: tensor \"%.80s\" has the dtype \"%.40s\", which the format does not know", f->label, e->name,
                    json_is_string(value) ? json_string_value(value) : "(no text)");
}

/* Reads a shape, and computes the bytes of a tensor of this shape. */
static att_status read_shape(const att_safetensors *f, entry *e, const json_t *value, int64_t *bytes)
{
    if (!json_is_array(value))
        return bad(f, e->name, "has no \"shape\" list");
    int64_t bits = e->type->bits;
    e->rank = (int)json_array_size(value);
    for (int i = 0; i < e->rank; i++) {
        const json_t *item = json_array_get(value, (size_t)i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return bad(f, e->name, "has a dimension that is not a whole number from 0 on");
        const int64_t dim = json_integer_value(item);
        if (i < ATT_MAX_RANK)
            e->dim[i] = dim;
        if (__builtin_mul_overflow(bits, dim, &bits))
            return bad(f, e->name, "has dimensions whose product overflows");
    }
    *bytes = bits / 8;
    return bits % 8 ? bad(f, e->name, "has numbers of less than a byte that do not fill whole bytes") : ATT_OK;
}

static att_status read_offsets(const att_safetensors *f, entry *e, const json_t *value, int64_t bytes)
{
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return bad(f, e->name, "has no \"data_offsets\" of two whole numbers");
    e->begin = json_integer_value(begin);
    e->end = json_integer_value(end);
    if (e->begin < 0 || e->end < e->begin || e->end > f->data_bytes)
        return att_fail(f->ctx, ATT_ERR_FORMAT,
                        "%s: tensor \"%.80s\" lies at bytes [%lld, %lld) but the file has %lld after its header",
                        f->label, e->name, (long long)e->begin, (long long)e->end, (long long)f->data_bytes);
    if (e->end - e->begin != bytes)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: tensor \"%.80s\" has %lld bytes but its shape needs %lld",
                        f->label, e->name, (long long)(e->end - e->begin), (long long)bytes);
    return ATT_OK;
}

static att_status read_entry(const att_safetensors *f, entry *e, const json_t *value)
{
    if (!json_is_object(value))
        return bad(f, e->name, "is not an object");
    int64_t bytes = 0;
    att_status s = read_type(f, e, json_object_get(value, "dtype"));
    s = s ? s : read_shape(f, e, json_object_get(value, "shape"), &bytes);
    return s ? s : read_offsets(f, e, json_object_get(value, "data_offsets"), bytes);
}

/* ---- all entries */

static int by_offset(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* empty tensors first */
}

/* Returns whether a tensor is aligned, which arithmetic requires and the format does not. */
static bool is_aligned(const att_safetensors *f, const entry *e)
{
    const uintptr_t bytes = e->type->bits < 8 ? 1 : (uintptr_t)e->type->bits / 8;
    return (uintptr_t)(f->data + e->begin) % bytes == 0;
}

/* Copies the entry's n bytes to `to`, and releases the pages of a mapped file. */
static const unsigned char *copy_entry(const att_safetensors *f, const entry *e, unsigned char *to, int64_t n)
{
    att_tensor from;
    memcpy(to, e->data, (size_t)n);
    if (f->file.mapped && !att_wrap(&from, (void *)(uintptr_t)e->data, ATT_BOOL, 1, &n, NULL))
        att_release_mapped(&from);
    return to;
}

/* Sets e->data; tensors that are not aligned to their type are copied. */
static att_status align_tensors(att_safetensors *f)
{
    enum { ALIGN = 64 };
    int64_t bytes = 0;
    for (int64_t i = 0; i < f->count; i++)
        if (!is_aligned(f, &f->entry[i]))
            bytes += att_round_up(f->entry[i].end - f->entry[i].begin, ALIGN);
    f->copies = bytes ? att_alloc(f->ctx, (size_t)bytes, 1) : NULL;
    if (bytes && !f->copies)
        return ATT_ERR_MEMORY;
    unsigned char *to = f->copies;
    for (int64_t i = 0; i < f->count; i++) {
        entry *e = &f->entry[i];
        const int64_t n = e->end - e->begin;
        e->data = f->data + e->begin;
        if (is_aligned(f, e))
            continue;
        if (n > 0)
            e->data = copy_entry(f, e, to, n);
        to += att_round_up(n, ALIGN);
    }
    return ATT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const entry *const *)a)->name, (*(const entry *const *)b)->name);
}

static int name_order(const void *name, const void *e) { return strcmp(name, (*(const entry *const *)e)->name); }

/* Checks that each byte after the header belongs to exactly one tensor. */
static att_status check_cover(const att_safetensors *f)
{
    int64_t end = 0;
    const char *before = "(the header)";
    for (int64_t i = 0; i < f->count; i++) {
        const entry *e = &f->entry[i];
        if (e->begin != end)
            return att_fail(f->ctx, ATT_ERR_FORMAT,
                            "%s: tensor \"%.80s\" begins at byte %lld, %s the end of \"%.80s\" at %lld", f->label,
                            e->name, (long long)e->begin, e->begin < end ? "before" : "with a gap after", before,
                            (long long)end);
        end = e->end;
        before = e->name;
    }
    if (end == f->data_bytes)
        return ATT_OK;
    return att_fail(f->ctx, ATT_ERR_FORMAT,
                    "%s: the last tensor ends at byte %lld but the file has %lld after its header", f->label,
                    (long long)end, (long long)f->data_bytes);
}

static att_status read_metadata(att_safetensors *f)
{
    const char *key;
    json_t *value;
    f->metadata = json_object_get(f->header, "__metadata__");
    f->key = att_alloc(f->ctx, json_object_size(f->metadata) + 1, sizeof *f->key);
    if (!f->key)
        return ATT_ERR_MEMORY;
    bool sound = !f->metadata || json_is_null(f->metadata) || json_is_object(f->metadata);
    json_object_foreach((json_t *)f->metadata, key, value)
    {
        sound = sound && json_is_string(value);
        f->key[f->keys++] = key;
    }
    return sound ? ATT_OK
                 : att_fail(f->ctx, ATT_ERR_FORMAT, "%s: \"__metadata__\" is not an object of texts", f->label);
}

static att_status read_tensors(att_safetensors *f)
{
    att_status s = read_metadata(f);
    if (s)
        return s;
    const size_t count = json_object_size(f->header) - (f->metadata ? 1 : 0);
    f->entry = att_alloc(f->ctx, count + 1, sizeof *f->entry);
    f->by_name = att_alloc(f->ctx, count + 1, sizeof *f->by_name);
    if (!f->entry || !f->by_name)
        return ATT_ERR_MEMORY;
    const char *name;
    json_t *value;
    json_object_foreach(f->header, name, value)
    {
        if (value == f->metadata)
            continue;
        entry *e = &f->entry[f->count++];
        *e = (entry){.name = name};
        s = read_entry(f, e, value);
        if (s)
            return s;
    }
    qsort(f->entry, count, sizeof *f->entry, by_offset);
    for (size_t i = 0; i < count; i++)
        f->by_name[i] = &f->entry[i];
    qsort(f->by_name, count, sizeof *f->by_name, by_name);
    s = check_cover(f);
    return s ? s : align_tensors(f);
}

static att_status parse(att_safetensors *f, const char *text, size_t bytes)
{
    const int64_t values = att_json_values(text, bytes);
    if (values > ATT_MAX_JSON_VALUES)
        return att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s: the header has %lld values, the maximum is %d", f->label,
                        (long long)values, ATT_MAX_JSON_VALUES);
    json_error_t error = {.line = 0};
    errno = 0; /* when out of memory, jansson may report a syntax error, or drop characters of a name */
    f->header = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (errno == ENOMEM || (!f->header && json_error_code(&error) == json_error_out_of_memory))
        return att_fail(f->ctx, ATT_ERR_MEMORY, "%s: out of memory", f->label);
    if (!f->header)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the header is not a JSON object: %s (byte %d)", f->label,
                        error.text, error.position);
    return json_is_object(f->header)
               ? read_tensors(f)
               : att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the header is not a JSON object", f->label);
}

/* Copies the first bytes of a text file -> text [41]; false: not all are printable characters and line ends. */
static bool begin_of_text(const att_safetensors *f, char text[41])
{
    size_t n = 0;
    for (; n < 40 && n < f->size; n++)
        if (f->bytes[n] >= ' ' && f->bytes[n] <= '~')
            text[n] = (char)f->bytes[n];
        else if (f->bytes[n] == '\n' || f->bytes[n] == '\r' || f->bytes[n] == '\t')
            text[n] = ' ';
        else
            return false;
    text[n] = 0;
    return true;
}

/* Returns the error of a file whose first bytes are not the length of a header. */
static att_status no_header(const att_safetensors *f, uint64_t length)
{
    const att_content content = att_content_of(f->bytes, f->size);
    if (*content.text)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s is not a safetensors file: it is %s", f->label, content.text);
    char text[41];
    if (begin_of_text(f, text))
        return att_fail(
            f->ctx, ATT_ERR_FORMAT,
            "%s is not a safetensors file: it is a text that begins with \"%s\", perhaps a server's answer; "
            "download it anew",
            f->label, text);
    if (length > ATT_MAX_SAFETENSORS_HEADER)
        return att_fail(
            f->ctx, ATT_ERR_FORMAT,
            "%s is not a safetensors file: by its first bytes the header should have %llu bytes, but %d is the maximum",
            f->label, (unsigned long long)length, ATT_MAX_SAFETENSORS_HEADER);
    return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the header should have %llu bytes, but the file has %zu", f->label,
                    (unsigned long long)length, f->size);
}

static att_status read_header(att_safetensors *f)
{
    if (f->size < LENGTH_BYTES)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s has %zu bytes, too few for a safetensors file", f->label, f->size);
    const uint64_t length = att_read_number(f->bytes, LENGTH_BYTES);
    if (length > ATT_MAX_SAFETENSORS_HEADER || length > f->size - LENGTH_BYTES)
        return no_header(f, length);
    f->data = f->bytes + LENGTH_BYTES + length;
    f->data_bytes = (int64_t)(f->size - LENGTH_BYTES - length);
    return parse(f, (const char *)f->bytes + LENGTH_BYTES, length);
}

/* ---- opening */

static att_safetensors *new_file(att_ctx *ctx, const char *label)
{
    const size_t length = strlen(label) + 1;
    att_safetensors *f = att_alloc(ctx, sizeof *f + length, 1);
    if (!f)
        return NULL;
    *f = (att_safetensors){.ctx = ctx, .file.ctx = ctx};
    memcpy(f->label, label, length);
    return f;
}

static att_status open_file(att_safetensors *f)
{
    const att_status s = att_file_data_open(&f->file, f->ctx, f->label);
    f->bytes = f->file.bytes;
    f->size = f->file.size;
    return s;
}

static att_status finish(att_safetensors *f, att_status s, att_safetensors **out)
{
    s = s ? s : read_header(f);
    if (s)
        att_safetensors_free(f);
    else
        *out = f;
    return s;
}

att_status att_safetensors_open(att_ctx *ctx, const char *path, att_safetensors **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_safetensors *f = new_file(ctx, path);
    return f ? finish(f, open_file(f), out) : ATT_ERR_MEMORY;
}

att_status att_safetensors_from_memory(att_ctx *ctx, const char *label, const void *data, size_t bytes,
                                       att_safetensors **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"label", label}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (!data && bytes > 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_safetensors_from_memory: data is NULL, but bytes is %zu", bytes);
    att_safetensors *f = new_file(ctx, label);
    if (!f)
        return ATT_ERR_MEMORY;
    f->bytes = data;
    f->size = bytes;
    return finish(f, ATT_OK, out);
}

void att_safetensors_free(att_safetensors *f)
{
    if (!f)
        return;
    att_free(f->ctx, f->key);
    att_free(f->ctx, f->entry);
    att_free(f->ctx, f->by_name);
    att_free(f->ctx, f->copies);
    json_decref(f->header);
    att_file_data_close(&f->file);
    att_free(f->ctx, f);
}

att_memory att_safetensors_memory(const att_safetensors *f, const void *p) { return att_file_data_memory(&f->file, p); }

/* ---- access */

int64_t att_safetensors_count(const att_safetensors *f) { return f ? f->count : 0; }

const char *att_safetensors_name(const att_safetensors *f, int64_t i)
{
    return f && i >= 0 && i < f->count ? f->entry[i].name : NULL;
}

const char *att_safetensors_metadata(const att_safetensors *f, const char *key)
{
    return f && key ? json_string_value(json_object_get(f->metadata, key)) : NULL;
}

const char *att_safetensors_metadata_key(const att_safetensors *f, int64_t i)
{
    return f && i >= 0 && i < f->keys ? f->key[i] : NULL;
}

static const entry *find(const att_safetensors *f, const char *name)
{
    const entry *const *found = bsearch(name, f->by_name, (size_t)f->count, sizeof *f->by_name, name_order);
    return found ? *found : NULL;
}

int64_t att_safetensors_find(const att_safetensors *f, const char *name)
{
    const entry *e = f && name ? find(f, name) : NULL;
    return e ? e - f->entry : -1;
}

/* The tensor of this name, whose dimensions fit into an att_tensor */
static att_status get_entry(const att_safetensors *f, const char *name, const entry **out)
{
    const entry *e = *out = find(f, name);
    if (!e)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: there is no tensor \"%.80s\" among its %lld", f->label, name,
                        (long long)f->count);
    if (e->rank > ATT_MAX_RANK)
        return att_fail(f->ctx, ATT_ERR_SHAPE, "%s: tensor \"%.80s\" has %d dimensions, the maximum is %d", f->label,
                        name, e->rank, ATT_MAX_RANK);
    return ATT_OK;
}

att_status att_safetensors_get(const att_safetensors *f, const char *name, att_tensor *out)
{
    if (att_require(__func__, ATT_NAMED({"f", f}, {"name", name}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const entry *e;
    const att_status s = get_entry(f, name, &e);
    if (s)
        return s;
    if (!e->type->supported)
        return att_fail(f->ctx, ATT_ERR_DTYPE, "%s: tensor \"%.80s\" is %s, which cannot be used here", f->label, name,
                        e->type->name);
    return att_wrap(out, (void *)(uintptr_t)e->data, e->type->dtype, e->rank, e->dim, NULL);
}

att_status att_safetensors_get_data(const att_safetensors *f, const char *name, att_safetensors_data *out)
{
    if (att_require(__func__, ATT_NAMED({"f", f}, {"name", name}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const entry *e;
    const att_status s = get_entry(f, name, &e);
    if (s)
        return s;
    att_safetensors_data data = {
        .size = sizeof data, .type = e->type->name, .bits = (int)e->type->bits, .rank = e->rank, .bytes = e->data};
    memcpy(data.dim, e->dim, sizeof data.dim);
    return att_info_write(out, &data, sizeof data, "att_safetensors_data");
}
