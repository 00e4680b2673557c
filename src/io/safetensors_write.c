/* Writing .safetensors: the header, then all tensors without gaps, larger types first, so that each is aligned to its
 * element size. */
#include "io/atomic_write.h"
#include "io/safetensors.h"
#include "attend_util.h"
#include "io/settings.h"
#include "io/tensor_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *name;
    const att_tensor *tensor;
    att_dtype dtype; /* in the file */
    int64_t bytes;
} entry;

typedef struct writer {
    const char *call; /* the function's name, for errors */
    att_ctx *ctx;
    const char *path;
    bool follow;            /* a symbolic link */
    const char *source;     /* of att_safetensors_convert; or NULL */
    att_progress *progress; /* of att_safetensors_convert; or NULL */
    entry *entry;           /* [n], in file order */
    int64_t n;
    att_bytes header;
    att_replace file;
} writer;

static att_status bad(const writer *w, att_status s, const char *name, const char *what)
{
    return att_fail(w->ctx, s, "%s cannot be written: tensor \"%.80s\" %s", w->path, name, what);
}

/* ---- entries */

/* Returns the type of a tensor in the file. */
static att_dtype type_of(const writer *w, const att_tensor *t, att_dtype dtype)
{
    const bool quantized = att_dtype_block(t->dtype) > 1, half = t->dtype == ATT_F16 || t->dtype == ATT_BF16;
    return t->dtype == ATT_F32 || quantized || (w->source && half) ? dtype : t->dtype;
}

static att_status set_entry(const writer *w, entry *e, const char *name, const att_tensor *t, att_dtype dtype)
{
    if (!name)
        return att_fail(w->ctx, ATT_ERR_ARGUMENT, "%s cannot be written: the name of a tensor is NULL", w->path);
    if (!strcmp(name, "__metadata__"))
        return bad(w, ATT_ERR_ARGUMENT, name, "has a name that the format reserves");
    if (!att_safetensors_type(type_of(w, t, dtype)))
        return bad(w, ATT_ERR_DTYPE, name, "has an unknown type");
    if (t->rank < 0 || t->rank > ATT_MAX_RANK)
        return bad(w, ATT_ERR_SHAPE, name, "has too many dimensions, or fewer than 0");
    *e = (entry){name, t, type_of(w, t, dtype), 0};
    e->bytes = (int64_t)att_dtype_size(e->dtype);
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 0 || __builtin_mul_overflow(e->bytes, t->dim[i], &e->bytes))
            return bad(w, ATT_ERR_SHAPE, name, "has impossible dimensions");
    return e->bytes && !t->data ? bad(w, ATT_ERR_ARGUMENT, name, "has no memory: its data is NULL") : ATT_OK;
}

static int larger_types_first(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const size_t x_size = att_dtype_size(x->dtype), y_size = att_dtype_size(y->dtype);
    return x_size != y_size ? (x_size > y_size ? -1 : 1) : strcmp(x->name, y->name);
}

static att_status set_entries(writer *w, const char *const *names, const att_tensor *tensors, att_dtype dtype)
{
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < w->n; i++)
        s = set_entry(w, &w->entry[i], names[i], &tensors[i], dtype);
    if (!s)
        qsort(w->entry, (size_t)w->n, sizeof *w->entry, larger_types_first);
    return s;
}

/* ---- the header */

/* Sets to[key] and takes ownership of value. `what` is for errors. */
static att_status add_key(const writer *w, json_t *to, const char *what, const char *key, json_t *value)
{
    if (json_object_get(to, key)) {
        json_decref(value);
        return att_fail(w->ctx, ATT_ERR_ARGUMENT, "%s cannot be written: \"%.80s\" occurs twice among its %s", w->path,
                        key, what);
    }
    if (!value || json_object_set_new(to, key, value))
        return errno == ENOMEM ? att_fail(w->ctx, ATT_ERR_MEMORY, "%s cannot be written: out of memory", w->path)
                               : att_fail(w->ctx, ATT_ERR_ARGUMENT, "%s cannot be written: one of its %s is not UTF-8",
                                          w->path, what);
    return ATT_OK;
}

static att_status add_metadata(const writer *w, json_t *header, const att_safetensors_options *o)
{
    json_t *metadata = json_object();
    att_status s =
        o->n_metadata > 0 ? add_key(w, header, "tensor names", "__metadata__", json_incref(metadata)) : ATT_OK;
    for (int64_t i = 0; !s && i < o->n_metadata; i++) {
        const char *key = o->metadata[2 * i], *text = o->metadata[2 * i + 1];
        s = key && text ? add_key(w, metadata, "metadata", key, json_string(text))
                        : att_fail(w->ctx, ATT_ERR_ARGUMENT, "%s cannot be written: options.metadata[%lld] is NULL",
                                   w->path, (long long)(2 * i + (key != NULL)));
    }
    json_decref(metadata);
    return s;
}

/* Describes a tensor in the header; NULL: out of memory. */
static json_t *describe(const entry *e, int64_t begin)
{
    json_t *shape = json_array();
    int failed = 0;
    for (int i = 0; i < e->tensor->rank; i++)
        failed |= json_array_append_new(shape, json_integer(e->tensor->dim[i]));
    json_t *o = json_pack("{s:s, s:o, s:[I, I]}", "dtype", att_safetensors_type(e->dtype), "shape", shape,
                          "data_offsets", (json_int_t)begin, (json_int_t)(begin + e->bytes));
    if (!failed)
        return o;
    json_decref(o);
    return NULL;
}

static att_status fill_header(writer *w, json_t *header, const att_safetensors_options *o)
{
    int64_t begin = 0;
    att_status s = add_metadata(w, header, o);
    for (int64_t i = 0; !s && i < w->n; i++) {
        const entry *e = &w->entry[i];
        int64_t end;
        if (__builtin_add_overflow(begin, e->bytes, &end))
            return bad(w, ATT_ERR_SHAPE, e->name, "is too large");
        s = add_key(w, header, "tensor names", e->name, describe(e, begin));
        begin = end;
    }
    if (s)
        return s;
    att_json_add(&w->header, header, JSON_COMPACT);
    while (!w->header.status && w->header.count % 8) /* aligns the data to 8 bytes */
        att_bytes_add(&w->header, " ", 1);
    if (!w->header.status && (w->header.count > ATT_MAX_SAFETENSORS_HEADER ||
                              att_json_values(w->header.data, w->header.count) > ATT_MAX_JSON_VALUES))
        return att_fail(w->ctx, ATT_ERR_UNSUPPORTED, "%s cannot be written: its header would be too large, %zu bytes",
                        w->path, w->header.count);
    return w->header.status;
}

static att_status make_header(writer *w, const att_safetensors_options *o)
{
    errno = 0; /* distinguishes invalid UTF-8 from out of memory in jansson */
    json_t *header = json_object();
    if (!header)
        return att_fail(w->ctx, ATT_ERR_MEMORY, "%s cannot be written: out of memory", w->path);
    const att_status s = fill_header(w, header, o);
    json_decref(header);
    return s;
}

/* ---- data */

static att_status write_all(writer *w)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)w->header.count >> (8 * i));
    att_replace_open(&w->file, w->ctx, w->path, w->follow);
    att_replace_write(&w->file, length, sizeof length);
    att_replace_write(&w->file, w->header.data, w->header.count);
    att_tensor_writer t;
    const att_status s = att_tensor_writer_init(&t, &w->file, w->source, w->progress);
    w->file.status = w->file.status ? w->file.status : s;
    for (int64_t i = 0; i < w->n; i++)
        att_tensor_writer_put(&t, w->entry[i].name, w->entry[i].tensor, w->entry[i].dtype);
    att_tensor_writer_free(&t);
    return att_replace_commit(&w->file);
}

static att_status check_arguments(const writer *w, const char *const *names, const att_tensor *tensors,
                                  const att_safetensors_options *o)
{
    const void *const none = ""; /* stands for an array without elements, which may be NULL */
    if (att_require(w->call, ATT_NAMED({"names", w->n > 0 ? names : none}, {"tensors", w->n > 0 ? tensors : none},
                                       {"options.metadata", o->n_metadata > 0 ? o->metadata : none})))
        return ATT_ERR_ARGUMENT;
    if (w->n < 0 || w->n > INT32_MAX)
        return att_fail(w->ctx, ATT_ERR_ARGUMENT, "%s: n is %lld", w->call, (long long)w->n);
    if (o->dtype != ATT_F32 && o->dtype != ATT_F16 && o->dtype != ATT_BF16)
        return att_fail(w->ctx, ATT_ERR_DTYPE, "%s: options.dtype is %s, not f32, f16 or bf16", w->call,
                        att_dtype_name(o->dtype));
    return ATT_OK;
}

static att_status write_file(writer w, const char *const *names, const att_tensor *tensors,
                             const att_safetensors_options *options)
{
    att_ctx *ctx = w.ctx;
    if (att_require(w.call, ATT_NAMED({"ctx", ctx}, {"path", w.path})))
        return ATT_ERR_ARGUMENT;
    att_safetensors_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_safetensors_options");
    s = s ? s : check_arguments(&w, names, tensors, &o);
    if (s)
        return s;
    w.header.ctx = ctx;
    w.entry = att_alloc(ctx, (size_t)w.n, sizeof *w.entry);
    s = w.entry ? ATT_OK : ATT_ERR_MEMORY;
    s = s ? s : set_entries(&w, names, tensors, o.dtype);
    s = s ? s : make_header(&w, &o);
    s = s ? s : write_all(&w);
    att_bytes_free(&w.header);
    att_free(ctx, w.entry);
    return s;
}

att_status att_safetensors_write(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                 const att_tensor *tensors, const att_safetensors_options *options)
{
    return write_file((writer){.call = __func__, .ctx = ctx, .path = path, .follow = true, .n = n}, names, tensors,
                      options);
}

att_status att_safetensors_write_in_folder(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                           const att_tensor *tensors, const att_safetensors_options *options)
{
    return write_file((writer){.call = __func__, .ctx = ctx, .path = path, .n = n}, names, tensors, options);
}

att_status att_safetensors_convert(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                   const att_tensor *tensors, const att_safetensors_options *options,
                                   const char *source, att_progress *progress)
{
    return write_file(
        (writer){.call = __func__, .ctx = ctx, .path = path, .n = n, .source = source, .progress = progress}, names,
        tensors, options);
}

/* ---- parameters by name */

att_status att_safetensors_load(void *file, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    (void)rank; /* checked by the caller, as dim is */
    if (att_require(__func__, ATT_NAMED({"file", file}, {"name", name}, {"dim", dim}, {"value", value})))
        return ATT_ERR_ARGUMENT;
    return att_safetensors_get(file, name, value);
}

att_status att_safetensors_write_params(att_ctx *ctx, const char *path, const att_nn_params *p,
                                        const att_safetensors_options *options)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"p", p})))
        return ATT_ERR_ARGUMENT;
    const int64_t n = att_nn_params_count(p);
    const char **name = att_alloc(ctx, (size_t)n, sizeof *name);
    att_tensor *tensor = att_alloc(ctx, (size_t)n, sizeof *tensor);
    for (int64_t i = 0; name && tensor && i < n; i++)
        tensor[i] = *att_param_value(att_nn_params_at(p, i, &name[i]));
    const att_status s = name && tensor ? att_safetensors_write(ctx, path, n, name, tensor, options) : ATT_ERR_MEMORY;
    att_free(ctx, tensor);
    att_free(ctx, name);
    return s;
}
