/* Opens chat templates: finds their text and its format. */
#include "io/file_source.h"
#include "io/gguf.h"
#include "io/settings.h"
#include "attend_util.h"
#include "language/chat.h"
#include "language/chat_jinja.h"
#include "language/chat_program.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_TEMPLATE = 1 << 20 }; /* bytes; published ones have up to 20,000 */

/* ---- which format */

static void set_text(att_bytes *to, att_byte_view text)
{
    to->count = 0;
    if (text.bytes > 0)
        att_bytes_add(to, text.data, text.bytes);
}

/* Sets the date in the template's text: today's date, such as "26 Jul 2024", or the date that the text has. */
static void set_date(att_chat_template *t, att_byte_view normal)
{
    static const char month[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static const char set[] = "{%setdate_string='", clock[] = "strftime_now";
    const char *fixed = normal.bytes > 0 ? memmem(normal.data, normal.bytes, set, sizeof set - 1) : NULL;
    if (fixed && !memmem(normal.data, normal.bytes, clock, sizeof clock - 1)) {
        fixed += sizeof set - 1;
        const char *end = memchr(fixed, '\'', normal.bytes - (size_t)(fixed - normal.data));
        set_text(&t->text[ATT_CHAT_DATE], (att_byte_view){fixed, end ? (size_t)(end - fixed) : 0});
        return;
    }
    struct tm day;
    const time_t now = time(NULL);
    char text[32];
    if (!localtime_r(&now, &day))
        return;
    const int n = snprintf(text, sizeof text, "%02d %s %d", day.tm_mday, month[day.tm_mon % 12], day.tm_year + 1900);
    set_text(&t->text[ATT_CHAT_DATE], (att_byte_view){text, (size_t)n});
}

/* Sets the token after an answer: the text that the format writes after it, without white space. */
static void set_end(att_chat_template *t)
{
    const char *after = t->format->part[ATT_CHAT_ASSISTANT].after;
    after += strspn(after, " ");
    att_byte_view token = {after, strcspn(after, " \n")};
    if (strncmp(after, "{eos}", token.bytes) == 0)
        token = (att_byte_view){t->text[ATT_CHAT_EOS].data, t->text[ATT_CHAT_EOS].count};
    set_text(&t->end, token);
    if (token.bytes > 0)
        att_bytes_add(&t->end, "", 1);
}

/* Removes `word` from the start of the text. Returns false if the text begins otherwise. */
static bool skip(att_byte_view *text, const char *word)
{
    const size_t n = strlen(word);
    if (n > text->bytes || memcmp(text->data, word, n) != 0)
        return false;
    *text = (att_byte_view){text->data + n, text->bytes - n};
    return true;
}

/* Returns whether the format matches the normal form, or, with `any`, whether the start of the format does. If so,
 * reads values from it. */
static bool match(att_chat_template *t, const att_chat_format *f, att_byte_view normal)
{
    att_byte_view rest = normal, found = {0};
    skip(&rest, "{%ifnotadd_generation_promptisdefined%}{%setadd_generation_prompt=false%}{%endif%}");
    for (int bos = 0; bos < 2; bos++) {
        if (bos && !skip(&rest, "{{bos_token}}"))
            break;
        for (const char *const *p = f->patterns; *p; p++) {
            if (!att_jinja_match(*p, rest.data, rest.bytes, &found))
                continue;
            t->format = f;
            t->bos = bos || (f->bos && strstr(*p, "bos_token"));
            t->has_default = found.data && f->system == ATT_SYSTEM_ANYWHERE;
            att_bytes *to = t->has_default ? &t->system : &t->text[ATT_CHAT_CUTOFF];
            to->count = 0;
            if (found.data)
                att_jinja_unescape(found, to);
            return true;
        }
    }
    return false;
}

static void list_names(char *list, size_t size)
{
    size_t n = 0;
    for (const att_chat_format *f = att_chat_formats; f->name; f++)
        if (f == att_chat_formats || strcmp(f->name, f[-1].name) != 0)
            n += (size_t)snprintf(list + n, n < size ? size - n : 0, "%s%s", n ? ", " : "", f->name);
}

/* Finds the format with this name that matches the text, otherwise the first with this name. */
static att_status choose_named(att_chat_template *t, const char *name, att_byte_view normal)
{
    char names[400];
    for (const att_chat_format *f = att_chat_formats; f->name; f++) {
        if (strcmp(f->name, name) != 0)
            continue;
        if (!t->format) {
            t->format = f;
            t->bos = f->bos;
        }
        if (normal.bytes > 0 && match(t, f, normal))
            break;
    }
    if (t->format)
        return ATT_OK;
    list_names(names, sizeof names);
    return att_fail(t->ctx, ATT_ERR_ARGUMENT, "\"%s\" is not a chat template that attend knows; it knows: %s", name,
                    names);
}

/* Finds the format that matches the text. If there is none, the text is run as a program. */
static att_status choose(att_chat_template *t, const att_chat_source *source, att_byte_view normal)
{
    char names[400];
    for (const att_chat_format *f = att_chat_formats; !t->format && f->name; f++)
        if (normal.bytes > 0)
            match(t, f, normal);
    if (t->format)
        return ATT_OK;
    if (source->bytes > 0)
        return att_jinja_open(t->ctx, source->path, source->text, source->bytes, &t->program);
    list_names(names, sizeof names);
    return att_fail(t->ctx, ATT_ERR_UNSUPPORTED,
                    "%s: the model has no chat template, as models that were not trained for chat; --template NAME "
                    "chooses one: %s; --template FILE.jinja reads one",
                    source->path, names);
}

att_status att_chat_template_from(att_ctx *ctx, const att_chat_source *source, const char *name,
                                  att_chat_template **out)
{
    att_bytes normal = {.ctx = ctx};
    *out = NULL;
    if (source->bytes > MAX_TEMPLATE)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: the chat template has %zu bytes, more than %d", source->path,
                        source->bytes, MAX_TEMPLATE);
    att_chat_template *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->ctx = t->system.ctx = t->end.ctx = ctx;
    for (int i = 0; i < ATT_CHAT_TEXTS; i++)
        t->text[i].ctx = ctx;
    if (source->text && !att_jinja_normal_form(source->text, source->bytes, &normal))
        normal.count = 0;
    const att_byte_view view = {normal.data, normal.count};
    att_status s = normal.status;
    set_text(&t->text[ATT_CHAT_CUTOFF], (att_byte_view){"December 2023", 13});
    if (!s)
        s = name ? choose_named(t, name, view) : choose(t, source, view);
    if (!s) {
        set_date(t, view);
        for (int i = 0; i < 2; i++)
            set_text(&t->text[ATT_CHAT_BOS + i], source->token[i]);
        if (t->program)
            s = att_chat_program_end(t);
        else
            set_end(t);
        for (int i = 0; !s && i < ATT_CHAT_TEXTS; i++)
            s = t->text[i].status;
        s = s ? s : t->system.status ? t->system.status : t->end.status;
    }
    att_bytes_free(&normal);
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
    for (int i = 0; i < ATT_CHAT_TEXTS; i++)
        att_bytes_free(&t->text[i]);
    att_bytes_free(&t->system);
    att_bytes_free(&t->end);
    att_jinja_free(t->program);
    att_free(t->ctx, t);
}

const char *att_chat_template_name(const att_chat_template *t)
{
    return !t ? NULL : t->format ? t->format->name : "jinja";
}

const char *att_chat_template_end(const att_chat_template *t) { return t && t->end.count ? t->end.data : NULL; }

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

/* Reads a folder's template: `given`, or else one of its own that is named `name`, or its default one. */
static att_status open_folder(att_ctx *ctx, const char *folder, const char *name, const att_text_file *given,
                              att_chat_template **out)
{
    att_settings config, tokens;
    att_text_file file;
    att_settings_read(&config, ctx, folder, "tokenizer_config.json", false);
    att_settings_read(&tokens, ctx, folder, "special_tokens_map.json", false);
    att_status s = att_text_file_read(&file, ctx, folder, "chat_template.jinja", false);
    s = s ? s : config.status ? config.status : tokens.status;
    if (!s) {
        const json_t *named = name ? att_chat_template_text(config.root, name) : NULL;
        const json_t *text = named ? named : att_chat_template_text(config.root, "default");
        const bool from_file = given->text || (file.text && !named);
        const att_text_file *f = given->text ? given : &file;
        att_chat_source source = {.path = given->text          ? given->path
                                          : from_file || !text ? folder
                                                               : config.path,
                                  .text = from_file ? f->text : NULL,
                                  .bytes = from_file ? f->bytes : 0};
        if (!from_file && text) {
            source.text = json_string_value(text);
            source.bytes = json_string_length(text);
        }
        const json_t *const from[] = {tokens.root, config.root};
        for (int i = 0; i < 2; i++) {
            read_token(from[i], "bos_token", &source.token[0]);
            read_token(from[i], "eos_token", &source.token[1]);
        }
        s = att_chat_template_from(ctx, &source, named ? NULL : name, out);
    }
    att_text_file_free(&file);
    att_settings_close(&config);
    att_settings_close(&tokens);
    return s;
}

/* ---- GGUF */

static void read_gguf_token(att_gguf *g, const char *key, const att_byte_view *token, int64_t n, att_byte_view *to)
{
    if (att_gguf_has(g, key) && n > 0)
        *to = token[att_gguf_int(g, key, 0, n - 1)];
}

static att_status open_gguf(att_ctx *ctx, const char *path, const char *name, const att_text_file *given,
                            att_chat_template **out)
{
    static const char list[] = "tokenizer.ggml.tokens";
    char key[128];
    att_gguf *g;
    att_status s = att_gguf_open(ctx, path, &g);
    if (s)
        return s;
    const int64_t n = att_gguf_texts(g, list);
    att_byte_view *token = att_calloc(ctx, (size_t)n + 1, sizeof *token);
    if (token) {
        att_gguf_get_texts(g, list, token, n);
        snprintf(key, sizeof key, "tokenizer.chat_template.%s", name ? name : "");
        const bool named = name && att_gguf_has(g, key);
        const char *text = given->text ? given->text : att_gguf_text(g, named ? key : "tokenizer.chat_template", "");
        att_chat_source source = {.path = given->text ? given->path : path,
                                  .text = text && *text ? text : NULL,
                                  .bytes = given->text ? given->bytes
                                           : text      ? strlen(text)
                                                       : 0};
        read_gguf_token(g, "tokenizer.ggml.bos_token_id", token, n, &source.token[0]);
        read_gguf_token(g, "tokenizer.ggml.eos_token_id", token, n, &source.token[1]);
        s = att_gguf_error(g);
        if (!s)
            s = att_chat_template_from(ctx, &source, named ? NULL : name, out);
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
