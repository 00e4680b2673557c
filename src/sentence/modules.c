#include "sentence/modules.h"
#include "sentence/static_model.h"
#include "io/atomic_write.h"

#include <stdio.h>
#include <string.h>

/* ---- types */

static const att_module_type *const types[] = {&att_module_pooling, &att_module_dense, &att_module_layer_norm,
                                               &att_module_normalize, &att_module_dropout};

/* Returns the type of a class in modules.json, whose last component is `name`; NULL: none. */
static const att_module_type *type_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i]->name, name))
            return types[i];
    return NULL;
}

void att_module_read_names(att_settings *s, att_module *m)
{
    static const char *const names[] = {"sentence_embedding", "token_embeddings"};
    if (att_settings_has(s, "module_input_name"))
        m->of_tokens = att_settings_choice(s, "module_input_name", names, 2,
                                           "one of sentence_embedding and token_embeddings") == 1;
    att_settings_only_text(s, "module_output_name", names[m->of_tokens]);
}

/* ---- reading */

/* Returns FOLDER or FOLDER/PATH in new memory; NULL: error set. */
static char *join(att_ctx *ctx, const char *folder, const char *path)
{
    const size_t bytes = strlen(folder) + strlen(path) + 2;
    char *joined = att_alloc(ctx, bytes, 1);
    if (joined)
        snprintf(joined, bytes, "%s%s%s", folder, *path ? "/" : "", path);
    return joined;
}

/* Returns whether the path stays inside its folder. */
static bool stays_inside(const char *path)
{
    size_t part = 0;
    for (const char *p = path; *p; p += part + (p[part] == '/')) {
        part = strcspn(p, "/");
        if ((part == 0 && p == path) || (part == 2 && memcmp(p, "..", 2) == 0))
            return false;
    }
    return true;
}

/* Reads the settings of the backbone in FOLDER/PATH. */
static att_status read_backbone(att_ctx *ctx, const char *module, const char *path, att_modules *m, att_pooling *plain)
{
    m->path = join(ctx, path, "");
    m->backbone = join(ctx, m->folder, path);
    if (!m->path || !m->backbone)
        return ATT_ERR_MEMORY;
    const att_status s = att_backbone_find(ctx, m->backbone, module, &m->kind, plain);
    return s || !m->kind->configure ? s : m->kind->configure(ctx, m->backbone, m->plain, &m->settings);
}

static att_status read_settings(att_ctx *ctx, const char *folder, att_module *m)
{
    att_settings s;
    char *joined = join(ctx, folder, m->path);
    if (!joined)
        return ATT_ERR_MEMORY;
    att_settings_read(&s, ctx, joined, "config.json", !m->type->optional_settings);
    if (!s.status)
        m->type->read(&s, m);
    att_settings_close(&s);
    att_free(ctx, joined);
    return s.status;
}

/* Returns whether the path is that of the backbone or of another module. */
static bool is_shared(const att_modules *m, const char *path)
{
    bool is = m->path && !strcmp(m->path, path);
    for (int i = 0; i < m->n; i++)
        is |= !strcmp(m->module[i].path, path);
    return is;
}

static att_status add_module(att_ctx *ctx, const att_module_type *type, const char *path, att_modules *m)
{
    if (type->build && is_shared(m, path))
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s/modules.json: the path of module %d is \"%.100s\", that of another one, whose weights it "
                        "would share",
                        m->folder, m->n + 1, path);
    att_module *added = &m->module[m->n++];
    *added = (att_module){.type = type, .path = join(ctx, path, "")};
    snprintf(added->name, sizeof added->name, ATT_MODULES_NAMES "%d", m->n);
    return added->path ? read_settings(ctx, m->folder, added) : ATT_ERR_MEMORY;
}

/* Reads module i of modules.json: {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling", ...}. */
static void read_module(att_settings *s, size_t i, att_modules *out)
{
    att_settings_enter_item(s, "", json_array_get(s->root, i));
    const char *class = att_settings_text(s, "type", NULL), *dot = strrchr(class, '.');
    const char *path = att_settings_text(s, "path", "");
    att_settings_only_empty(s, "kwargs");
    if (s->status)
        return;
    const char *name = dot && !strncmp(class, "sentence_transformers.", 22) ? dot + 1 : "";
    const bool backbone = att_backbone_is_module(name);
    const att_module_type *type = type_of(name);
    att_pooling plain;
    if (!stays_inside(path))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"path\" of module %d is \"%.100s\", which is not in the model's folder",
                          (int)i, path);
    else if (!backbone && !type)
        att_settings_fail(
            s, ATT_ERR_UNSUPPORTED,
            "module %d is \"%.100s\", which is not supported; Transformer, then Pooling, Dense, LayerNorm, "
            "Normalize and Dropout are",
            (int)i, class);
    else if (backbone != (i == 0))
        att_settings_fail(s, ATT_ERR_FORMAT, "module %d is \"%.100s\", but %s", (int)i, class,
                          backbone ? "only module 0 reads texts" : "a model begins with a module that reads texts");
    else
        s->status = backbone ? read_backbone(s->ctx, name, path, out, &plain) : add_module(s->ctx, type, path, out);
}

/* Reads modules.json and the files that it names. */
static att_status read_modules(att_ctx *ctx, att_modules *m)
{
    att_settings s;
    att_settings_read_list(&s, ctx, m->folder, "modules.json");
    const size_t n = json_array_size(s.root);
    if (!s.status && (n < 1 || n > ATT_MAX_MODULES))
        att_settings_fail(&s, ATT_ERR_FORMAT, "is a list of %zu modules, expected 1 to %d", n, ATT_MAX_MODULES);
    for (size_t i = 0; !s.status && i < n; i++)
        read_module(&s, i, m);
    att_settings_close(&s);
    return s.status;
}

/* Without modules.json: static embeddings of model2vec, or, as sentence-transformers does, a Pooling of hidden states,
 * and no settings of its own */
static att_status read_plain(att_ctx *ctx, att_modules *m)
{
    att_pooling pooling = ATT_POOLING_MEAN;
    bool model2vec;
    att_status s = att_static_find(ctx, m->folder, &model2vec);
    if (s || model2vec)
        return s ? s : read_backbone(ctx, "StaticEmbedding", "", m, &pooling);
    s = read_backbone(ctx, "Transformer", "", m, &pooling);
    m->module[m->n++] =
        (att_module){.type = &att_module_pooling, .pooling = {pooling}, .poolings = 1, .in_key = "hidden_size"};
    return s;
}

/* Sets *plain: whether the folder has a config.json, but no modules.json. Error: it has neither. */
static att_status find_plain(att_ctx *ctx, const char *folder, bool *plain)
{
    char modules[ATT_MAX_PATH], config[ATT_MAX_PATH];
    att_status s = att_join_path(ctx, folder, "modules.json", modules);
    s = s ? s : att_join_path(ctx, folder, "config.json", config);
    if (s)
        return s;
    const bool has_modules = att_is_file(modules), has_config = att_is_file(config);
    *plain = !has_modules && has_config;
    if (has_modules || has_config)
        return ATT_OK;
    s = att_refuse_adapter(ctx, folder);
    return s ? s
             : att_fail(ctx, ATT_ERR_IO,
                        "%s: is not the folder of a sentence model: there is neither modules.json nor config.json",
                        folder);
}

att_status att_modules_read(att_ctx *ctx, const char *folder, att_modules *out)
{
    *out = (att_modules){.folder = join(ctx, folder, "")};
    att_status s = out->folder ? find_plain(ctx, folder, &out->plain) : ATT_ERR_MEMORY;
    s = s ? s : (out->plain ? read_plain : read_modules)(ctx, out);
    if (s)
        att_modules_free(ctx, out);
    return s;
}

void att_modules_free(att_ctx *ctx, att_modules *m)
{
    att_free(ctx, m->folder);
    att_free(ctx, m->path);
    att_free(ctx, m->backbone);
    for (int i = 0; i < m->n; i++)
        att_free(ctx, m->module[i].path);
    *m = (att_modules){0};
}

/* ---- do they fit? */

/* The features to which a module is applied: their number, 0 if there are none, and the module that made them, -1: the
 * backbone. */
typedef struct features {
    int64_t n;
    int by;
} features;

typedef struct file_name {
    char text[600];
} file_name;

static file_name file_of(const att_modules *m, int i)
{
    file_name f;
    const char *path = i < 0 ? m->path : m->module[i].path;
    snprintf(f.text, sizeof f.text, "%s%s%s/%s", m->folder, path && *path ? "/" : "", path ? path : "",
             i < 0 ? m->kind->source : "config.json");
    return f;
}

static att_status check_module(att_ctx *ctx, att_modules *m, int i, features *tokens, features *texts)
{
    att_module *x = &m->module[i];
    const bool reads_tokens = x->poolings > 0 || x->of_tokens;
    const features in = reads_tokens ? *tokens : *texts;
    features *out = x->of_tokens ? tokens : texts;
    x->idle = in.n == 0 && x->type == &att_module_normalize; /* sentence-transformers also leaves it out */
    if (x->idle)
        return ATT_OK;
    if (in.n == 0)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: %s is applied to %s, which no module before it makes",
                        file_of(m, i).text, x->type->name, reads_tokens ? "token_embeddings" : "sentence_embedding");
    if (x->in != 0 && x->in != in.n)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: \"%s\" is %lld, but by %s it is applied to %lld features",
                        file_of(m, i).text, x->in_key, (long long)x->in, file_of(m, in.by).text, (long long)in.n);
    *out = (features){x->poolings ? x->poolings * in.n : x->out ? x->out : in.n, i};
    if (!x->of_tokens && x->type != &att_module_dropout) /* which training alone applies */
        m->normalized = x->type == &att_module_normalize;
    return ATT_OK;
}

att_status att_modules_check(att_ctx *ctx, att_modules *m, int64_t hidden)
{
    features tokens = {m->kind->vectors ? 0 : hidden, -1}, texts = {m->kind->vectors ? hidden : 0, -1};
    for (int i = 0; i < m->n; i++)
        if (check_module(ctx, m, i, &tokens, &texts))
            return ATT_ERR_FORMAT;
    if (texts.n == 0)
        return att_fail(ctx, ATT_ERR_FORMAT,
                        "%s/modules.json: there is no Pooling, which makes a vector of the hidden states of a text",
                        m->folder);
    m->dim = texts.n;
    m->token_dim = m->kind->vectors ? hidden : tokens.n;
    return ATT_OK;
}

/* ---- layers */

att_status att_modules_build(att_model *model, void *modules)
{
    att_modules *m = modules;
    att_status s = att_modules_check(model->ctx, m, m->kind->features(model));
    for (int i = 0; !s && i < m->n; i++) {
        att_module *x = &m->module[i];
        if (!x->type->build)
            continue;
        char *folder = join(model->ctx, m->folder, x->path);
        s = folder ? att_model_add_folder(model, att_nn_join(x->name, "").text, folder) : ATT_ERR_MEMORY;
        if (!s)
            x->type->build(model->params, x);
        att_free(model->ctx, folder);
    }
    return s;
}

/* ---- applying */

att_var *att_modules_apply(att_tape *t, const att_modules *m, const att_texts *texts, att_var *tokens, att_var *vectors)
{
    for (int i = 0; i < m->n; i++) {
        const att_module *x = &m->module[i];
        if (x->idle)
            continue;
        att_var *y = x->type->apply(t, x, texts, x->poolings || x->of_tokens ? tokens : vectors);
        *(x->of_tokens ? &tokens : &vectors) = y;
    }
    return vectors;
}

att_var *att_modules_apply_to_tokens(att_tape *t, const att_modules *m, const att_texts *texts, att_var *tokens)
{
    for (int i = 0; i < m->n; i++)
        if (m->module[i].of_tokens && !m->module[i].idle)
            tokens = m->module[i].type->apply(t, &m->module[i], texts, tokens);
    return tokens;
}

/* ---- copying */

static att_status copy_folder(att_ctx *ctx, const att_modules *m, const char *path, const char *folder,
                              const char *const *files)
{
    char from[ATT_MAX_PATH], to[ATT_MAX_PATH];
    att_status s = att_join_path(ctx, m->folder, path, from);
    s = s ? s : att_join_path(ctx, folder, path, to);
    return s ? s : att_copy_files(ctx, from, to, files, 0);
}

att_status att_modules_copy(att_ctx *ctx, const att_modules *m, const char *folder)
{
    static const char *const of_all[] = {"modules.json", "config_sentence_transformers.json", NULL};
    static const char *const of_module[] = {"config.json", NULL};
    att_status s = att_copy_files(ctx, m->folder, folder, of_all, m->plain ? 0 : 1);
    for (int i = m->n - 1; !s && !m->plain && i >= 0; i--)
        s = copy_folder(ctx, m, m->module[i].path, folder, of_module);
    return s ? s : copy_folder(ctx, m, m->path, folder, m->kind->files);
}
