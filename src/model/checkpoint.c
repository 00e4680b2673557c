#include "model/checkpoint.h"
#include "io/safetensors.h"
#include "io/settings.h"
#include "util/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = ATT_CHECKPOINT_NAME };

/* ---- names */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const att_checkpoint_entry *)a)->name, ((const att_checkpoint_entry *)b)->name);
}

/* Returns the tensor with a name of the file; -1: none. */
static int64_t find(const att_checkpoint *c, const char *theirs)
{
    const att_checkpoint_entry wanted = {.name = theirs};
    const att_checkpoint_entry *e =
        c->count ? bsearch(&wanted, c->entry, (size_t)c->count, sizeof wanted, by_name) : NULL;
    return e ? e - c->entry : -1;
}

/* Finds the tensor for our `name` by a table; -1: none, and `theirs` is the first name that was tried. */
static int64_t find_by(const att_checkpoint *c, const att_checkpoint_name *names, const char *name,
                       char theirs[NAME_SIZE])
{
    const char *const prefixes[] = {"", c->prefix};
    int64_t found = -1;
    for (const att_checkpoint_name *row = names; row && row->ours && found < 0; row++)
        for (int i = 0; i < 2 && found < 0; i++) {
            char candidate[NAME_SIZE];
            if (!att_checkpoint_translate_row(row, prefixes[i], name, candidate))
                break;
            found = find(c, candidate);
            if (found >= 0 || !theirs[0])
                memcpy(theirs, candidate, NAME_SIZE);
        }
    return found;
}

/* The one among c and those that were added that has the parameter, whose name becomes the one that it has there. */
static att_checkpoint *having(const att_checkpoint *c, const char **name)
{
    const att_checkpoint *added = c->next;
    while (added && strncmp(*name, added->ours, strlen(added->ours)) != 0)
        added = added->next;
    *name += added ? strlen(added->ours) : 0;
    return (att_checkpoint *)(added ? added : c); /* whoever loads has them writable */
}

const char *att_checkpoint_path(const att_checkpoint *c, const char *name) { return having(c, &name)->path; }

/* Finds it by all tables. */
static int64_t find_ours(const att_checkpoint *c, const char *name, char theirs[NAME_SIZE])
{
    theirs[0] = 0;
    if (!c->names) {
        snprintf(theirs, NAME_SIZE, "%s", name);
        return find(c, theirs);
    }
    const int64_t found = find_by(c, c->names, name, theirs);
    return found < 0 ? find_by(c, c->more_names, name, theirs) : found;
}

/* ---- loading */

att_status att_checkpoint_get(const att_checkpoint *c, int64_t i, att_tensor *out)
{
    const att_checkpoint_entry *e = &c->entry[i];
    if (e->file)
        return att_safetensors_get(e->file->data, e->name, out);
    *out = *e->value;
    return ATT_OK;
}

att_status att_checkpoint_load(void *checkpoint, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    char theirs[NAME_SIZE];
    att_checkpoint *c = having(checkpoint, &name);
    const int64_t i = find_ours(c, name, theirs);
    if (i < 0) {
        char in_gguf[NAME_SIZE];
        const bool renamed =
            c->gguf && att_gguf_weight_name(att_gguf_text(c->gguf, "general.architecture", ""), theirs, in_gguf);
        return att_fail(c->ctx, ATT_ERR_FORMAT, "%s: there is no tensor \"%s\"", c->path, renamed ? in_gguf : theirs);
    }
    const char *path = c->entry[i].file ? c->entry[i].file->path : c->path;
    att_tensor value;
    const att_status status = att_checkpoint_get(c, i, &value);
    if (status)
        return status;
    for (; value.rank > rank && value.dim[0] == 1; value.rank--) /* [1, n] is accepted as [n] */
        for (int d = 0; d + 1 < value.rank; d++)
            value.dim[d] = value.dim[d + 1], value.stride[d] = value.stride[d + 1];
    if (value.rank != rank || memcmp(value.dim, dim, (size_t)rank * sizeof *dim) != 0)
        return att_fail(c->ctx, ATT_ERR_SHAPE, "%s: tensor \"%s\" is %s but by config.json it is %s", path, theirs,
                        att_shape_of(&value).text, att_shape_show(rank, dim).text);
    if (value.dtype == ATT_I32 || value.dtype == ATT_I64 || value.dtype == ATT_BOOL || value.dtype == ATT_I8)
        return att_fail(c->ctx, ATT_ERR_DTYPE, "%s: tensor \"%s\" is %s, not f32, f16 or bf16", path, theirs,
                        att_dtype_name(value.dtype));
    c->used[i] = true;
    *out = value;
    return ATT_OK;
}

att_status att_checkpoint_load_part(att_checkpoint *c, const char *name, int rank, const int64_t *dim,
                                    att_checkpoint_part part, att_tensor *out)
{
    const bool transposed = part.transposed && rank == 2;
    const int64_t whole[] = {transposed ? dim[1] : part.whole, transposed ? part.whole : dim[rank - 1]};
    const att_status s = att_checkpoint_load(c, name, rank, whole, out);
    if (s)
        return s;
    if (transposed) {
        const int64_t stride = out->stride[0];
        out->stride[0] = out->stride[1];
        out->stride[1] = stride;
        out->dim[1] = dim[1];
    }
    out->dim[0] = dim[0];
    out->data = (char *)out->data + att_dtype_bytes(out->dtype, part.first * out->stride[0]);
    return ATT_OK;
}

/* ---- open and close */

/* Returns whether a file exists, even as a link to nothing, which opening it then reports. */
static bool exists(const char *folder, const char *name)
{
    char path[ATT_MAX_PATH];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && att_exists(path);
}

/* Returns an error that tells which other weight files are in a folder without model.safetensors. */
static att_status explain_missing(att_ctx *ctx, const char *folder)
{
    static const char resaved[] = "save the model again, with transformers: from_pretrained() and save_pretrained()";
    static const char *const others[][2] = {
        {"pytorch_model.bin.index.json", resaved},
        {"tf_model.h5", "save the model again, with transformers: from_pretrained(..., from_tf=True) and "
                        "save_pretrained()"},
        {"flax_model.msgpack", "save the model again, with transformers: from_pretrained(..., from_flax=True) and "
                               "save_pretrained()"},
        {"consolidated.safetensors", "whose tensors have other names; take the files of transformers"},
        {"consolidated.00.pth", "whose tensors have other names; take the files of transformers"}};
    if (exists(folder, "pytorch_model.bin"))
        return att_fail(
            ctx, ATT_ERR_UNSUPPORTED,
            "%s: has pytorch_model.bin but no model.safetensors; convert it there with: python3 -c \"import "
            "torch, safetensors.torch as s; s.save_file({k: v.contiguous().clone() for k, v in torch.load("
            "'pytorch_model.bin', weights_only=True).items()}, 'model.safetensors')\"",
            folder);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (exists(folder, others[i][0]))
            return att_fail(ctx, ATT_ERR_UNSUPPORTED, "%s: has %s but no model.safetensors; %s", folder, others[i][0],
                            others[i][1]);
    const att_status s = att_refuse_adapter(ctx, folder);
    return s ? s : att_fail(ctx, ATT_ERR_IO, "%s: there is no model.safetensors", folder);
}

static att_status open_file(att_checkpoint *c, const char *folder)
{
    att_status s = att_join_path(c->ctx, folder, "model.safetensors", c->path);
    if (s)
        return s;
    c->file = att_calloc(c->ctx, 1, sizeof *c->file);
    if (!c->file)
        return ATT_ERR_MEMORY;
    att_checkpoint_file *f = c->file;
    memcpy(f->path, c->path, sizeof f->path);
    s = att_safetensors_open(c->ctx, c->path, &f->data);
    if (s)
        return s;
    c->files = 1;
    c->count = att_safetensors_count(f->data);
    c->entry = att_calloc(c->ctx, (size_t)c->count, sizeof *c->entry);
    for (int64_t i = 0; c->entry && i < c->count; i++)
        c->entry[i] = (att_checkpoint_entry){.name = att_safetensors_name(f->data, i), .file = f};
    return c->entry ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status open_folder(att_checkpoint *c, const char *folder)
{
    if (exists(folder, "model.safetensors"))
        return open_file(c, folder);
    if (exists(folder, "model.safetensors.index.json"))
        return att_checkpoint_open_shards(c, folder);
    return explain_missing(c->ctx, folder);
}

static att_status open_gguf(att_checkpoint *c, att_gguf *g)
{
    snprintf(c->path, sizeof c->path, "%s", att_gguf_label(g));
    const att_status s = att_gguf_weights_read(c->ctx, g, &c->weights);
    if (s)
        return s;
    c->count = c->weights.count;
    c->entry = att_calloc(c->ctx, (size_t)c->count, sizeof *c->entry);
    for (int64_t i = 0; c->entry && i < c->count; i++)
        c->entry[i] = (att_checkpoint_entry){.name = c->weights.name[i], .value = &c->weights.tensor[i]};
    return c->entry ? ATT_OK : ATT_ERR_MEMORY;
}

/* Opens a checkpoint; g NULL: the files of the folder. */
static att_status open_any(att_ctx *ctx, const char *folder, att_gguf *g, const att_checkpoint_name *names,
                           const char *prefix, att_checkpoint **out)
{
    *out = NULL;
    att_checkpoint *c = att_alloc(ctx, 1, sizeof *c);
    if (!c) {
        att_gguf_free(g);
        return ATT_ERR_MEMORY;
    }
    *c = (att_checkpoint){.ctx = ctx, .names = names, .prefix = prefix, .gguf = g, .weights.ctx = ctx};
    att_status s = g ? open_gguf(c, g) : open_folder(c, folder);
    if (!s) {
        c->used = att_calloc(ctx, (size_t)c->count, sizeof *c->used);
        s = c->used ? ATT_OK : ATT_ERR_MEMORY;
    }
    if (!s && c->count > 0)
        qsort(c->entry, (size_t)c->count, sizeof *c->entry, by_name);
    if (s)
        att_checkpoint_close(c);
    else
        *out = c;
    return s;
}

att_status att_checkpoint_open(att_ctx *ctx, const char *folder, const att_checkpoint_name *names, const char *prefix,
                               att_checkpoint **out)
{
    return open_any(ctx, folder, NULL, names, prefix, out);
}

att_status att_checkpoint_open_gguf(att_ctx *ctx, att_gguf *g, const att_checkpoint_name *names, const char *prefix,
                                    att_checkpoint **out)
{
    return open_any(ctx, NULL, g, names, prefix, out);
}

att_status att_checkpoint_add(att_checkpoint *c, const char *ours, const char *folder)
{
    att_checkpoint *added;
    const att_status s = att_checkpoint_open(c->ctx, folder, NULL, "", &added);
    if (s)
        return s;
    snprintf(added->ours, sizeof added->ours, "%s", ours);
    added->next = c->next;
    c->next = added;
    return ATT_OK;
}

static void close_one(att_checkpoint *c)
{
    for (int64_t i = 0; i < c->files; i++)
        att_safetensors_free(c->file[i].data);
    att_gguf_weights_free(&c->weights);
    att_gguf_free(c->gguf);
    att_free(c->ctx, c->file);
    att_free(c->ctx, c->entry);
    att_free(c->ctx, c->used);
    att_free(c->ctx, c);
}

void att_checkpoint_close(att_checkpoint *c)
{
    while (c) {
        att_checkpoint *next = c->next;
        close_one(c);
        c = next;
    }
}

int64_t att_checkpoint_numbers(const att_checkpoint *c)
{
    int64_t sum = 0;
    att_tensor t;
    for (; c; c = c->next)
        for (int64_t i = 0; i < c->count; i++)
            sum += att_checkpoint_get(c, i, &t) ? 0 : att_elements(&t);
    return sum;
}

att_memory att_checkpoint_memory(const att_checkpoint *c, const void *p)
{
    att_memory m = c->gguf ? att_gguf_memory(c->gguf, p) : ATT_MEMORY_OTHER;
    for (; !m && c; c = c->next)
        for (int64_t i = 0; !m && i < c->files; i++)
            m = att_safetensors_memory(c->file[i].data, p);
    return m;
}

bool att_checkpoint_has(const att_checkpoint *c, const char *name)
{
    char theirs[NAME_SIZE];
    const att_checkpoint *of = having(c, &name);
    return find_ours(of, name, theirs) >= 0;
}

att_status att_checkpoint_check_tied(const att_checkpoint *c)
{
    char table_name[NAME_SIZE], head_name[NAME_SIZE];
    const int64_t i = find_ours(c, "embedding.weight", table_name), k = find_ours(c, "head.weight", head_name);
    att_tensor table, head;
    if (i < 0 || k < 0)
        return ATT_OK;
    att_status s = att_checkpoint_get(c, i, &table);
    s = s ? s : att_checkpoint_get(c, k, &head);
    const bool comparable = !s && table.rank == 2 && head.rank == 2 && table.dtype == head.dtype &&
                            !memcmp(table.dim, head.dim, 2 * sizeof *table.dim);
    const size_t bytes = comparable ? (size_t)(table.dim[0] * table.dim[1]) * att_dtype_size(table.dtype) : 0;
    const bool same = comparable && !memcmp(table.data, head.data, bytes);
    if (same && att_checkpoint_memory(c, head.data) == ATT_MEMORY_MAPPED) /* nothing else reads it */
        att_release_mapped(&head);
    if (s || same)
        return s;
    return att_fail(c->ctx, ATT_ERR_FORMAT,
                    "%s: tensor \"%s\" differs from \"%s\", but by config.json \"tie_word_embeddings\" is true, so one "
                    "would stand for both; set it to false",
                    c->path, head_name, table_name);
}

/* Returns whether the name begins with `with`, in which '*' stands for a number. */
static bool begins(const char *name, const char *with)
{
    for (; *with; with++)
        if (*with == '*') {
            const size_t digits = strspn(name, "0123456789");
            if (!digits)
                return false;
            name += digits;
        } else if (*name++ != *with)
            return false;
    return true;
}

/* Returns whether the name, without the prefix, is that of a tensor that such files have but such models do not
 * need. */
static bool is_expected(const att_checkpoint *c, const char *name, const char *const *unused)
{
    const size_t prefix = strlen(c->prefix);
    const char *bare = strncmp(name, c->prefix, prefix) ? name : name + prefix;
    bool is = false;
    for (const char *const *u = unused; *u && !is; u++)
        is = begins(bare, *u);
    return is;
}

static att_status all_used(const att_checkpoint *c, const char *const *unused)
{
    char names[512] = "";
    size_t n = 0;
    int64_t count = 0, named = 0;
    for (int64_t i = 0; i < c->count; i++) {
        const char *name = c->entry[i].name;
        if (c->used[i] || is_expected(c, name, unused))
            continue;
        if (c->gguf)
            return att_fail(c->ctx, ATT_ERR_UNSUPPORTED, "%s: tensor \"%s\" has no place in the model of config.json",
                            c->path, name);
        count++;
        if (count != named + 1 || n + 80 + sizeof ", \"\"" > sizeof names)
            continue;
        n += (size_t)snprintf(names + n, sizeof names - n, "%s\"%.80s\"", named ? ", " : "", name);
        named++;
    }
    if (count > 0)
        att_note(c->ctx, "%s: left out, as the model of config.json does not have %s: %s%s", c->path,
                 count > 1 ? "these tensors" : "this tensor", names, named < count ? " and others" : "");
    return ATT_OK;
}

att_status att_checkpoint_all_used(const att_checkpoint *c, const char *const *unused)
{
    static const char *const none[] = {NULL};
    att_status s = all_used(c, unused);
    while (!s && (c = c->next))
        s = all_used(c, none);
    return s;
}
