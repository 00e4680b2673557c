/* Writes the model of a .gguf file, or of another folder, as a folder that `transformers` opens. */
#include "attend_language.h"
#include "io/gguf.h"
#include "io/json_scan.h"
#include "io/atomic_write.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"
#include "model/gguf_model.h"
#include "io/new_folder.h"
#include "text/gguf_tokenizer.h"
#include "util/shape.h"

#include <string.h>

/* ---- both */

static const char *dtype_name(att_dtype dtype)
{
    return dtype == ATT_F32 ? "float32" : dtype == ATT_F16 ? "float16" : "bfloat16";
}

typedef struct conversion {
    att_dtype dtype;
    att_progress progress; /* in values, and 1 for the check at the end */
} conversion;

/* Writes the weights tensors [n] with names [n], which are those of the file `source`. */
static att_status write_weights(const att_new_folder *f, int64_t n, const char *const *names, const att_tensor *tensors,
                                conversion *c, const char *source)
{
    static const char *const metadata[] = {"format", "pt"};
    const att_safetensors_options o = {.size = sizeof o, .dtype = c->dtype, .metadata = metadata, .n_metadata = 1};
    char path[ATT_MAX_PATH];
    const att_status s = att_join_path(f->ctx, f->path, "model.safetensors", path);
    c->progress.all = 1;
    for (int64_t i = 0; i < n; i++)
        c->progress.all += att_elements(&tensors[i]);
    return s ? s : att_safetensors_convert(f->ctx, path, n, names, tensors, &o, source, &c->progress);
}

/* ---- the files of a .gguf file */

/* Writes tokenizer.json, without members that have no meaning. */
static att_status write_tokenizer(att_gguf *g, const att_new_folder *f)
{
    att_token_list list = {.ctx = f->ctx};
    json_t *root = NULL, *vocab = json_object();
    att_status s = att_gguf_tokenizer(g, &list, &root);
    for (size_t i = 0; !s && i < list.count; i++) {
        json_t *one = json_pack("{s%:I}", list.entry[i].text, list.entry[i].bytes, (json_int_t)list.entry[i].id);
        if (json_object_update(vocab, one) || json_object_size(vocab) != i + 1)
            s = att_fail(f->ctx, ATT_ERR_FORMAT, "%s: token \"%.*s\" occurs twice", att_gguf_label(g),
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

/* Writes tokenizer_config.json, and the chat template, which has a separate file in `transformers`. */
static att_status write_tokenizer_config(att_gguf *g, const att_new_folder *f)
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

static att_status write_config(att_gguf *g, const att_new_folder *f, att_dtype dtype)
{
    json_t *root;
    att_status s = att_gguf_config(g, &root);
    const json_t *rope = s ? NULL : json_object_get(root, "rope_parameters");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    if (type && strcmp(type, "factors") == 0)
        s = att_fail(f->ctx, ATT_ERR_UNSUPPORTED,
                     "%s: the factors in rope_freqs.weight are not those of Llama 3, and config.json cannot express "
                     "them",
                     att_gguf_label(g));
    if (!s && json_object_set_new(root, "dtype", json_string(dtype_name(dtype))))
        s = att_fail(f->ctx, ATT_ERR_MEMORY, "out of memory");
    if (!s)
        return att_settings_write(f->ctx, f->path, "config.json", root);
    json_decref(root);
    return s;
}

static att_status write_generation_config(att_gguf *g, const att_new_folder *f)
{
    json_t *root;
    const att_status s = att_gguf_generation_config(g, &root);
    return s ? s : att_settings_write(f->ctx, f->path, "generation_config.json", root);
}

/* Transposes the matrices of the layers of GPT-2, which are [in, out] in a folder. Quantized ones become f32 in
 * memory [w->count], which the caller frees. */
static att_status transpose_gpt2(att_gguf *g, att_gguf_weights *w, float **memory)
{
    att_status s = ATT_OK;
    if (strcmp(att_gguf_text(g, "general.architecture", ""), "gpt2") != 0)
        return s;
    for (int64_t i = 0; !s && i < w->count; i++) {
        att_tensor *t = &w->tensor[i], floats = *t;
        if (t->rank != 2 || !strstr(w->name[i], ".h."))
            continue;
        if (att_dtype_size(t->dtype) == 0) {
            memory[i] = att_alloc(w->ctx, (size_t)att_elements(t), sizeof **memory);
            s = memory[i] ? att_wrap(&floats, memory[i], ATT_F32, 2, t->dim, NULL) : ATT_ERR_MEMORY;
            s = s ? s : att_tensor_convert(w->ctx, t, &floats);
            *t = floats;
        }
        *t = (att_tensor){t->data, t->dtype, 2, {t->dim[1], t->dim[0]}, {t->stride[1], t->stride[0]}};
    }
    return s;
}

static att_status write_gguf(const att_new_folder *f, const char *path, conversion *c)
{
    att_gguf *g;
    att_gguf_weights w = {.ctx = f->ctx};
    float **memory = NULL;
    att_status s = att_gguf_open(f->ctx, path, &g);
    s = s ? s : write_config(g, f, c->dtype);
    s = s ? s : write_generation_config(g, f);
    s = s ? s : write_tokenizer(g, f);
    s = s ? s : write_tokenizer_config(g, f);
    s = s ? s : att_gguf_weights_read(f->ctx, g, &w);
    memory = s ? NULL : att_calloc(f->ctx, (size_t)w.count + 1, sizeof *memory);
    s = s || memory ? s : ATT_ERR_MEMORY;
    s = s ? s : transpose_gpt2(g, &w, memory);
    s = s ? s : write_weights(f, w.count, w.name, w.tensor, c, path);
    for (int64_t i = 0; memory && i < w.count; i++)
        att_free(f->ctx, memory[i]);
    att_free(f->ctx, memory);
    att_gguf_weights_free(&w);
    att_gguf_free(g);
    return s;
}

/* ---- the files of a folder */

/* Adds the text of config.json with another dtype, as the value of `key`. first: `key` is added as the first member.
 * Returns false if it has no such key. */
static bool add_config(const att_text_file *file, const char *key, att_dtype dtype, bool first, att_bytes *to)
{
    char text[64];
    att_json_scan c = {file->text, file->text + file->bytes};
    att_json_accept(&c, '{');
    const size_t begin = (size_t)(c.at - file->text);
    const bool found = att_json_find_key(&c, key);
    if (!found && !first)
        return false;
    const size_t at = found ? (size_t)(c.at - file->text) : begin;
    if (found)
        att_json_skip_value(&c);
    size_t rest = found ? (size_t)(c.at - file->text) : begin;
    while (found && strchr(" \t\r\n", file->text[rest - 1])) /* white space was skipped, too */
        rest--;
    const int n = found ? snprintf(text, sizeof text, "\"%s\"", dtype_name(dtype))
                        : snprintf(text, sizeof text, "\n  \"%s\": \"%s\",", key, dtype_name(dtype));
    att_bytes_add(to, file->text, at);
    att_bytes_add(to, text, (size_t)n);
    att_bytes_add(to, file->text + rest, file->bytes - rest);
    return true;
}

/* Sets the dtype in place; see add_config. */
static bool set_dtype(att_text_file *file, const char *key, att_dtype dtype, bool first, att_status *s)
{
    att_bytes text = {.ctx = file->ctx};
    const bool set = !*s && add_config(file, key, dtype, first, &text);
    *s = *s ? *s : text.status;
    if (!set || *s) {
        att_bytes_free(&text);
        return set;
    }
    att_free(file->ctx, file->text);
    file->text = text.data;
    file->bytes = text.count;
    return true;
}

/* Copies config.json, unchanged except the dtype. Its name is "torch_dtype" in older files; some have both. */
static att_status copy_config(const att_new_folder *f, const char *folder, att_dtype dtype)
{
    char path[ATT_MAX_PATH];
    att_text_file file;
    att_status s = att_text_file_read(&file, f->ctx, folder, "config.json", true);
    const bool newer = set_dtype(&file, "dtype", dtype, false, &s),
               older = set_dtype(&file, "torch_dtype", dtype, false, &s);
    if (!newer && !older)
        set_dtype(&file, "dtype", dtype, true, &s);
    s = s ? s : att_join_path(f->ctx, f->path, "config.json", path);
    s = s ? s : att_write_file(f->ctx, path, file.text, file.bytes);
    att_text_file_free(&file);
    return s;
}

static att_status copy_weights(const att_new_folder *f, const char *folder, conversion *to)
{
    att_checkpoint *c;
    att_status s = att_checkpoint_open(f->ctx, folder, NULL, "", &c);
    if (s)
        return s;
    const char **name = att_alloc(f->ctx, (size_t)c->count, sizeof *name);
    att_tensor *tensor = att_alloc(f->ctx, (size_t)c->count, sizeof *tensor);
    s = name && tensor ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < c->count; i++) {
        name[i] = c->entry[i].name;
        s = att_checkpoint_get(c, i, &tensor[i]);
    }
    s = s ? s : write_weights(f, c->count, name, tensor, to, c->path);
    att_free(f->ctx, name);
    att_free(f->ctx, tensor);
    att_checkpoint_close(c);
    return s;
}

static att_status copy_folder(const att_new_folder *f, const char *folder, conversion *c)
{
    att_status s = copy_config(f, folder, c->dtype);
    s = s ? s : att_copy_files(f->ctx, folder, f->path, att_new_folder_copied, 0);
    return s ? s : copy_weights(f, folder, c);
}

/* ---- all */

/* Opens a model, to check that its settings, weights and tokenizer fit together. */
static att_status check(att_ctx *ctx, const char *model)
{
    att_language_model *m = NULL;
    att_tokenizer *t = NULL;
    att_status s = att_language_model_open(ctx, model, NULL, &m);
    s = s ? s : att_tokenizer_open(ctx, model, &t);
    att_tokenizer_free(t);
    att_language_model_free(m);
    return s;
}

/* Writes the model of `gguf`, or of the folder `model` if `gguf` is "". */
static att_status write_folder(att_ctx *ctx, const char *gguf, const char *model, const char *folder, conversion *c)
{
    att_new_folder f;
    att_status s = *gguf ? ATT_OK : check(ctx, model);
    s = s ? s : att_new_folder_begin(&f, ctx, folder);
    if (s)
        return s;
    s = *gguf ? write_gguf(&f, gguf, c) : copy_folder(&f, model, c);
    s = s ? s : check(ctx, f.path);
    s = s ? s : att_progress_add(&c->progress, 1);
    return att_new_folder_end(&f, s);
}

att_status att_gguf_convert(att_ctx *ctx, const char *model, const char *folder, const att_gguf_options *options)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"model", model}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    att_gguf_options o;
    if (att_options_read(&o, sizeof o, options, "att_gguf_options"))
        return ATT_ERR_ARGUMENT;
    if (o.dtype != ATT_F32 && o.dtype != ATT_F16 && o.dtype != ATT_BF16)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_gguf_convert: dtype is %s, not f32, f16 or bf16",
                        att_dtype_name(o.dtype));
    char gguf[ATT_MAX_PATH];
    const att_status s = att_gguf_path(ctx, model, "config.json", gguf);
    conversion c = {o.dtype, {.ctx = ctx, .call = __func__, .report = o.progress, .user = o.user}};
    return s ? s : write_folder(ctx, gguf, model, folder, &c);
}
