/* Opens chat templates: finds their text. */
#include "attend_util.h"
#include "io/file_source.h"
#include "io/gguf.h"
#include "io/settings.h"
#include "language/chat.h"
#include "language/chat_builtin.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TEMPLATE = 1 << 20 }; /* bytes; published ones have up to 20,000 */

const char *const att_chat_token_names[ATT_CHAT_TOKENS] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                           "pad_token", "cls_token", "mask_token"};

/* ---- making one */

static void set_text(att_bytes *to, const char *text, size_t bytes)
{
    if (bytes > 0)
        att_bytes_add(to, text, bytes);
}

att_status att_chat_template_from(att_ctx *ctx, const att_chat_source *source, att_chat_template **out)
{
    *out = NULL;
    const size_t bytes = source->text.bytes > source->with_tools.bytes ? source->text.bytes : source->with_tools.bytes;
    if (bytes > MAX_TEMPLATE)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: the chat template has %zu bytes, more than %d", source->path, bytes,
                        MAX_TEMPLATE);
    att_chat_template *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->ctx = t->name.ctx = t->end.ctx = ctx;
    set_text(&t->name, source->name, strlen(source->name) + 1);
    att_status s = t->name.status;
    for (int i = 0; i < ATT_CHAT_TOKENS; i++) {
        t->token[i].ctx = ctx;
        set_text(&t->token[i], source->token[i].data, source->token[i].bytes);
        s = s ? s : t->token[i].status;
    }
    s = s ? s : att_jinja_open(ctx, source->path, source->text.data, source->text.bytes, &t->program);
    if (!s && source->with_tools.data)
        s = att_jinja_open(ctx, source->path, source->with_tools.data, source->with_tools.bytes, &t->with_tools);
    s = s ? s : att_chat_find_end(t);
    if (s)
        att_chat_template_free(t);
    else
        *out = t;
    return s;
}

void att_chat_template_free(att_chat_template *t)
{
    if (!t)
        return;
    for (int i = 0; i < ATT_CHAT_TOKENS; i++)
        att_bytes_free(&t->token[i]);
    att_bytes_free(&t->name);
    att_bytes_free(&t->end);
    att_jinja_free(t->program);
    att_jinja_free(t->with_tools);
    att_free(t->ctx, t);
}

const char *att_chat_template_name(const att_chat_template *t) { return t ? t->name.data : NULL; }

const char *att_chat_template_end(const att_chat_template *t) { return t && t->end.count ? t->end.data : NULL; }

/* ---- templates of attend */

/* Takes the template of attend with this name. source->path: the model's, for errors. */
static att_status choose_builtin(att_ctx *ctx, att_chat_source *source, const char *name)
{
    char names[400];
    size_t n = 0;
    for (const att_chat_builtin *b = att_chat_builtins; b->name; b++) {
        n += (size_t)snprintf(names + n, n < sizeof names ? sizeof names - n : 0, "%s%s", n ? ", " : "", b->name);
        if (!name || strcmp(b->name, name) != 0)
            continue;
        source->path = source->name = name;
        source->text = (att_byte_view){b->text, strlen(b->text)};
        return ATT_OK;
    }
    if (name)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "\"%s\" is not a chat template of %s, or one that comes with attend, which are: %s", name,
                        source->path, names);
    return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                    "%s: the model has no chat template, as models that were not trained for chat; --template NAME "
                    "chooses one: %s; --template FILE.jinja reads one",
                    source->path, names);
}

/* Makes the template that the caller has given, or that was found in the model, or one of attend. */
static att_status make(att_ctx *ctx, att_chat_source *source, const att_text_file *given, const char *name,
                       att_chat_template **out)
{
    att_status s = ATT_OK;
    if (given->text) {
        source->path = source->name = given->path;
        source->text = (att_byte_view){given->text, given->bytes};
        source->with_tools = (att_byte_view){0};
    } else if (!source->text.data) {
        s = choose_builtin(ctx, source, name);
    }
    return s ? s : att_chat_template_from(ctx, source, out);
}

/* ---- folders */

/* Reads "bos_token": "<s>", or {"content": "<s>"}. */
static void read_token(const json_t *settings, const char *key, att_byte_view *token)
{
    const json_t *value = json_object_get(settings, key);
    if (json_is_object(value))
        value = json_object_get(value, "content");
    if (json_is_string(value))
        *token = (att_byte_view){json_string_value(value), json_string_length(value)};
}

const json_t *att_chat_template_text(const json_t *settings, const char *wanted)
{
    const json_t *value = json_object_get(settings, "chat_template"), *found = NULL;
    if (!json_is_array(value))
        return json_is_string(value) && strcmp(wanted, "default") == 0 ? value : NULL;
    for (size_t i = 0; !found && i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, wanted) == 0)
            found = json_object_get(item, "template");
    }
    return json_is_string(found) ? found : NULL;
}

att_status att_chat_template_read(att_ctx *ctx, const char *folder, const char *name, att_text_file *file)
{
    char path[ATT_MAX_PATH];
    *file = (att_text_file){.ctx = ctx};
    if (name && strchr(name, '/'))
        return ATT_OK;
    if (name && snprintf(path, sizeof path, "additional_chat_templates/%s.jinja", name) >= (int)sizeof path)
        return ATT_OK;
    return att_text_file_read(file, ctx, folder, name ? path : "chat_template.jinja", false);
}

static att_byte_view view_of(const json_t *text)
{
    return text ? (att_byte_view){json_string_value(text), json_string_length(text)} : (att_byte_view){0};
}

/* Sets the text of a folder's source. The files come before the list of tokenizer_config.json. */
static void set_folder_text(att_chat_source *source, const char *name, const att_settings *config,
                            const att_text_file *file, const att_text_file *tools)
{
    const json_t *text = att_chat_template_text(config->root, name ? name : "default");
    if (file->text) {
        source->path = file->path;
        source->name = name ? name : "chat_template.jinja";
        source->text = (att_byte_view){file->text, file->bytes};
    } else if (text) {
        source->path = config->path;
        source->name = name ? name : "tokenizer_config.json";
        source->text = view_of(text);
    }
    if (tools->text)
        source->with_tools = (att_byte_view){tools->text, tools->bytes};
    else if (!name && !file->text)
        source->with_tools = view_of(att_chat_template_text(config->root, ATT_CHAT_TOOL_USE));
}

static att_status open_folder(att_ctx *ctx, const char *folder, const char *name, const att_text_file *given,
                              att_chat_template **out)
{
    att_settings config, tokens;
    att_text_file file, tools = {.ctx = ctx};
    att_settings_read(&config, ctx, folder, "tokenizer_config.json", false);
    att_settings_read(&tokens, ctx, folder, "special_tokens_map.json", false);
    att_status s = att_chat_template_read(ctx, folder, name, &file);
    if (!s && !name)
        s = att_chat_template_read(ctx, folder, ATT_CHAT_TOOL_USE, &tools);
    s = s ? s : config.status ? config.status : tokens.status;
    if (!s) {
        att_chat_source source = {.path = folder};
        set_folder_text(&source, name, &config, &file, &tools);
        for (int i = 0; i < ATT_CHAT_TOKENS; i++) {
            read_token(tokens.root, att_chat_token_names[i], &source.token[i]);
            read_token(config.root, att_chat_token_names[i], &source.token[i]);
        }
        s = make(ctx, &source, given, name, out);
    }
    att_text_file_free(&file);
    att_text_file_free(&tools);
    att_settings_close(&config);
    att_settings_close(&tokens);
    return s;
}

/* ---- GGUF */

static att_byte_view text_of(att_gguf *g, const char *key)
{
    const char *text = att_gguf_text(g, key, "");
    return text && *text ? (att_byte_view){text, strlen(text)} : (att_byte_view){0};
}

static att_status open_gguf(att_ctx *ctx, const char *path, const char *name, const att_text_file *given,
                            att_chat_template **out)
{
    static const char list[] = "tokenizer.ggml.tokens";
    static const char *const ids[ATT_CHAT_TOKENS] = {"bos", "eos", "unknown", "seperator", "padding", "cls", "mask"};
    char key[128];
    att_gguf *g;
    att_status s = att_gguf_open(ctx, path, &g);
    if (s)
        return s;
    const int64_t n = att_gguf_texts(g, list);
    att_byte_view *token = att_calloc(ctx, (size_t)n + 1, sizeof *token);
    if (token) {
        att_gguf_get_texts(g, list, token, n);
        att_chat_source source = {.path = path};
        for (int i = 0; i < ATT_CHAT_TOKENS; i++) {
            snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", ids[i]);
            if (att_gguf_has(g, key) && n > 0)
                source.token[i] = token[att_gguf_int(g, key, 0, n - 1)];
        }
        snprintf(key, sizeof key, "tokenizer.chat_template%s%s", name ? "." : "", name ? name : "");
        source.name = name ? name : key;
        source.text = text_of(g, key);
        if (!name)
            source.with_tools = text_of(g, "tokenizer.chat_template." ATT_CHAT_TOOL_USE);
        s = att_gguf_error(g);
        s = s ? s : make(ctx, &source, given, name, out);
    }
    att_free(ctx, token);
    att_gguf_free(g);
    return token ? s : ATT_ERR_MEMORY;
}

/* Returns whether a name is that of a file with a template. */
static bool is_file_name(const char *name)
{
    static const char end[] = ".jinja";
    const size_t n = name ? strlen(name) : 0;
    return n >= sizeof end - 1 && strcmp(name + n - (sizeof end - 1), end) == 0;
}

att_status att_chat_template_open(att_ctx *ctx, const char *folder, const char *name, const att_model_options *options,
                                  att_chat_template **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    char path[ATT_MAX_PATH];
    att_file_source files;
    att_text_file given = {.ctx = ctx};
    if (is_file_name(name)) {
        const att_status s = att_text_file_open(&given, ctx, name, true);
        if (s)
            return s;
        name = NULL;
    }
    att_status s = att_file_source_begin(&files, folder, options);
    s = s ? s : att_gguf_path(ctx, folder, "config.json", path);
    if (!s)
        s = *path ? open_gguf(ctx, path, name, &given, out) : open_folder(ctx, folder, name, &given, out);
    att_file_source_end(&files);
    att_text_file_free(&given);
    return s;
}
