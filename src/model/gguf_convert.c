/* A folder is written beside its final name, FOLDER.unfinished, and then renamed: it appears completely or not at all.
 * The lock on it ends with the process, so what a killed one has left is removed by the next; if FOLDER.unfinished has
 * files of other names, it is the user's, and the conversion is refused. */
#include "attend_language.h"
#include "io/gguf.h"
#include "io/replace.h"
#include "model/gguf_model.h"
#include "text/gguf_tokenizer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder */

typedef struct new_folder {
    att_ctx *ctx;
    char target[ATT_MAX_PATH], path[ATT_MAX_PATH];
    int fd; /* of path, locked; -1: none */
} new_folder;

/* Is it the name of a file that a conversion writes, or of a temporary one of att_replace? */
static bool is_written(const char *name)
{
    static const char *const names[] = {"config.json",           "generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json", "chat_template.jinja",    "model.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t n = strlen(names[i]), m = strlen(ATT_UNFINISHED);
        if (strncmp(name, names[i], n) != 0)
            continue;
        if (!name[n] || (!strncmp(name + n, ATT_UNFINISHED, m) && !name[n + m + strspn(name + n + m, "0123456789")]))
            return true;
    }
    return false;
}

static bool is_folder_itself(const char *name) { return !strcmp(name, ".") || !strcmp(name, ".."); }

static DIR *open_list(int fd)
{
    const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (copy >= 0 && !d)
        close(copy);
    return d;
}

/* Removes the files of a conversion; others, which are the user's, stay. */
static void remove_files(int fd)
{
    DIR *d = open_list(fd);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (is_written(e->d_name))
            unlinkat(fd, e->d_name, 0);
    if (d)
        closedir(d);
}

/* Are all files of f->path those of a conversion? */
static att_status check_unfinished(const new_folder *f)
{
    DIR *d = open_list(f->fd);
    att_status s = d ? ATT_OK : att_fail(f->ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    for (const struct dirent *e; !s && (e = readdir(d));)
        if (!is_folder_itself(e->d_name) && !is_written(e->d_name))
            s = att_fail(f->ctx, ATT_ERR_ARGUMENT,
                         "%s, where %s is written first, has \"%s\", which is no file of a conversion; remove it, or "
                         "give another folder",
                         f->path, f->target, e->d_name);
    if (d)
        closedir(d);
    return s;
}

/* Is it missing, or a folder without files? A folder cannot replace a symbolic link. */
static att_status check_target(const new_folder *f)
{
    struct stat is;
    if (!lstat(f->target, &is) && S_ISLNK(is.st_mode))
        return att_fail(f->ctx, ATT_ERR_ARGUMENT,
                        "%s is a symbolic link, which no folder can replace; give the folder it leads to, or another",
                        f->target);
    errno = 0;
    DIR *d = opendir(f->target);
    if (!d && errno == ENOENT)
        return ATT_OK;
    if (!d)
        return att_fail(f->ctx, ATT_ERR_IO, "%s: %s", f->target, strerror(errno));
    bool empty = true;
    for (const struct dirent *e; empty && (e = readdir(d));)
        empty = is_folder_itself(e->d_name);
    closedir(d);
    return empty ? ATT_OK
                 : att_fail(f->ctx, ATT_ERR_ARGUMENT, "%s is not empty; remove it first, or give another folder",
                            f->target);
}

static att_status begin(new_folder *f, att_ctx *ctx, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    *f = (new_folder){.ctx = ctx, .fd = -1};
    if (n == 0 || (size_t)snprintf(f->target, sizeof f->target, "%.*s", (int)n, folder) >= sizeof f->target ||
        (size_t)snprintf(f->path, sizeof f->path, "%.*s.unfinished", (int)n, folder) >= sizeof f->path)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "the folder's path is empty, or has more than %d bytes", ATT_MAX_PATH);
    att_status s = check_target(f);
    s = s ? s : att_make_folder(ctx, f->path);
    if (s)
        return s;
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0)
        return att_fail(ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    const bool busy = flock(f->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (busy || !att_file_has_name(f->fd, f->path)) { /* or it is complete since it was opened */
        close(f->fd);
        f->fd = -1;
        return att_fail(ctx, ATT_ERR_IO, "%s is being written by another process", f->target);
    }
    s = check_unfinished(f);
    if (!s) {
        remove_files(f->fd);
        return ATT_OK;
    }
    close(f->fd);
    f->fd = -1;
    return s;
}

/* After an error nothing of the conversion is left. */
static att_status end(new_folder *f, att_status s)
{
    if (f->fd < 0)
        return s;
    if (!s && (syncfs(f->fd) || rename(f->path, f->target)))
        s = att_fail(f->ctx, ATT_ERR_IO, "%s cannot be written: %s", f->target, strerror(errno));
    if (s) {
        remove_files(f->fd);
        rmdir(f->path);
    }
    close(f->fd);
    return s;
}

/* ---- its files */

/* tokenizer.json, which has some members that say nothing */
static att_status write_tokenizer(att_gguf *g, const new_folder *f)
{
    att_token_list list = {.ctx = f->ctx};
    json_t *root = NULL, *vocab = json_object();
    att_status s = att_gguf_tokenizer(g, &list, &root);
    for (size_t i = 0; !s && i < list.count; i++) {
        json_t *one = json_pack("{s%:I}", list.entry[i].text, list.entry[i].bytes, (json_int_t)list.entry[i].id);
        if (json_object_update(vocab, one) || json_object_size(vocab) != i + 1)
            s = att_fail(f->ctx, ATT_ERR_FORMAT, "%s: token \"%.*s\" is there twice", att_gguf_label(g),
                         (int)(list.entry[i].bytes < 80 ? list.entry[i].bytes : 80), list.entry[i].text);
        json_decref(one);
    }
    json_t *model = json_object_get(root, "model");
    if (!s && (json_object_set(model, "vocab", vocab) ||
               json_object_update_new(
                   model, json_pack("{s:n, s:n, s:n}", "dropout", "continuing_subword_prefix", "end_of_word_suffix")) ||
               json_object_update_new(root, json_pack("{s:s, s:n, s:n}", "version", "1.0", "truncation", "padding"))))
        s = att_fail(f->ctx, ATT_ERR_MEMORY, "out of memory");
    json_decref(vocab);
    if (!s)
        s = att_settings_write(f->ctx, f->path, "tokenizer.json", root);
    else
        json_decref(root);
    att_token_list_free(&list);
    return s;
}

/* tokenizer_config.json, and the chat template, which `transformers` has in a file of its own */
static att_status write_tokenizer_config(att_gguf *g, const new_folder *f)
{
    char path[ATT_MAX_PATH];
    json_t *root;
    att_status s = att_gguf_tokenizer_config(g, &root);
    const char *text = s ? NULL : json_string_value(json_object_get(root, "chat_template"));
    if (text) {
        s = att_join_path(f->ctx, f->path, "chat_template.jinja", path);
        s = s ? s : att_write_file(f->ctx, path, text, strlen(text));
        json_object_del(root, "chat_template");
    }
    if (!s)
        return att_settings_write(f->ctx, f->path, "tokenizer_config.json", root);
    json_decref(root);
    return s;
}

static att_status write_config(att_gguf *g, const new_folder *f, att_dtype dtype)
{
    static const char *const names[] = {[ATT_F32] = "float32", [ATT_F16] = "float16", [ATT_BF16] = "bfloat16"};
    json_t *root;
    att_status s = att_gguf_config(g, &root);
    const json_t *rope = s ? NULL : json_object_get(root, "rope_parameters");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    if (type && strcmp(type, "factors") == 0)
        s = att_fail(f->ctx, ATT_ERR_UNSUPPORTED,
                     "%s: the factors in rope_freqs.weight are not those of Llama 3, and config.json has no way to say "
                     "them",
                     att_gguf_label(g));
    if (!s && json_object_set_new(root, "dtype", json_string(names[dtype])))
        s = att_fail(f->ctx, ATT_ERR_MEMORY, "out of memory");
    if (!s)
        return att_settings_write(f->ctx, f->path, "config.json", root);
    json_decref(root);
    return s;
}

static att_status write_generation_config(att_gguf *g, const new_folder *f)
{
    json_t *root;
    const att_status s = att_gguf_generation_config(g, &root);
    return s ? s : att_settings_write(f->ctx, f->path, "generation_config.json", root);
}

/* Are all finite numbers finite in f16, too? Its largest is 65504, and what rounds to 65536 becomes infinite. */
static att_status check_range(att_gguf *g, const new_folder *f, const att_gguf_weights *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        const float *x = w->tensor[i].data;
        int64_t n = 1;
        for (int d = 0; d < w->tensor[i].rank; d++)
            n *= w->tensor[i].dim[d];
        for (int64_t k = 0; k < n; k++)
            if (isfinite(x[k]) && fabsf(x[k]) >= 65520)
                return att_fail(
                    f->ctx, ATT_ERR_UNSUPPORTED,
                    "%s: tensor \"%s\" has %.9g, but the largest number of f16 is 65504; convert to bf16 or "
                    "f32",
                    att_gguf_label(g), w->name[i], (double)x[k]);
    }
    return ATT_OK;
}

static att_status write_weights(att_gguf *g, const new_folder *f, att_dtype dtype)
{
    static const char *const metadata[] = {"format", "pt"};
    const att_safetensors_options o = {
        .size = sizeof o, .dtype = dtype == ATT_F32 ? 0 : dtype, .metadata = metadata, .n_metadata = 1};
    char path[ATT_MAX_PATH];
    att_gguf_weights w;
    att_status s = att_gguf_weights_read(f->ctx, g, false, &w);
    if (!s && dtype == ATT_F16)
        s = check_range(g, f, &w);
    s = s ? s : att_join_path(f->ctx, f->path, "model.safetensors", path);
    s = s ? s : att_safetensors_write(f->ctx, path, w.count, w.name, w.tensor, &o);
    att_gguf_weights_free(&w);
    return s;
}

/* Opens what was written: the settings, the weights and the tokenizer fit together. */
static att_status check(const new_folder *f)
{
    att_language_model *m = NULL;
    att_tokenizer *t = NULL;
    att_status s = att_language_model_open(f->ctx, f->path, &m);
    s = s ? s : att_tokenizer_open(f->ctx, f->path, &t);
    att_tokenizer_free(t);
    att_language_model_free(m);
    return s;
}

static att_status write_folder(att_ctx *ctx, att_gguf *g, const char *folder, att_dtype dtype)
{
    new_folder f;
    att_status s = begin(&f, ctx, folder);
    if (s)
        return s;
    s = write_config(g, &f, dtype);
    s = s ? s : write_generation_config(g, &f);
    s = s ? s : write_tokenizer(g, &f);
    s = s ? s : write_tokenizer_config(g, &f);
    s = s ? s : write_weights(g, &f, dtype);
    s = s ? s : check(&f);
    return end(&f, s);
}

att_status att_gguf_convert(att_ctx *ctx, const char *file, const char *folder, const att_gguf_options *options)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"file", file}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    att_gguf_options o;
    if (att_take_options(&o, sizeof o, options, "att_gguf_options"))
        return ATT_ERR_ARGUMENT;
    const att_dtype dtype = o.dtype ? o.dtype : ATT_F32;
    if (dtype != ATT_F32 && dtype != ATT_F16 && dtype != ATT_BF16)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_gguf_convert: dtype is %s, not f32, f16 or bf16",
                        att_dtype_name(dtype));
    char path[ATT_MAX_PATH];
    att_gguf *g = NULL;
    att_status s = att_gguf_path(ctx, file, "config.json", path);
    if (!s && !*path)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s is no .gguf file, and no folder that has one and no config.json", file);
    s = s ? s : att_gguf_open(ctx, path, &g);
    s = s ? s : write_folder(ctx, g, folder, dtype);
    att_gguf_free(g);
    return s;
}
