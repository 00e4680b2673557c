/* Writes the chat templates of a folder as values of a .gguf file: the default one, others under their names, and a
 * list of these, as the package gguf does. */
#include "io/settings.h"
#include "language/chat.h"
#include "util/array.h"

#include <stdio.h>
#include <string.h>

#define KEY "tokenizer.chat_template"

typedef struct named_templates {
    att_gguf_writer *w;
    att_byte_view *names; /* [n] */
    int64_t n;
} named_templates;

/* Writes a template that is not the default one. A name with other characters than a key may have is left out. */
static void put_named(named_templates *t, const char *name, const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    char key[128];
    const size_t bytes = name ? strlen(name) : 0;
    if (!text || bytes == 0 || bytes > 64 || strspn(name, allowed) != bytes || strcmp(name, "default") == 0)
        return;
    snprintf(key, sizeof key, KEY ".%s", name);
    att_gguf_put_text(t->w, key, text);
    t->names[t->n++] = (att_byte_view){name, bytes};
}

/* Writes the templates of the files or, if there is none, those of tokenizer_config.json. */
static void put_all(named_templates *t, const json_t *config, const att_text_file *file, const att_text_file *tools)
{
    const json_t *text = att_chat_template_text(config, "default"), *list = json_object_get(config, "chat_template"),
                 *item;
    size_t i;
    if (file->text || text)
        att_gguf_put_text(t->w, KEY, file->text ? file->text : json_string_value(text));
    if (tools->text)
        put_named(t, ATT_CHAT_TOOL_USE, tools->text);
    json_array_foreach(file->text || tools->text ? NULL : list, i, item) put_named(
        t, json_string_value(json_object_get(item, "name")), json_string_value(json_object_get(item, "template")));
    if (t->n > 0)
        att_gguf_put_texts(t->w, KEY "s", t->names, t->n);
}

att_status att_chat_put_gguf(att_ctx *ctx, const char *folder, att_gguf_writer *w)
{
    att_settings config;
    att_text_file file, tools = {.ctx = ctx};
    named_templates t = {.w = w};
    att_settings_read(&config, ctx, folder, "tokenizer_config.json", false);
    att_status s = att_chat_template_read(ctx, folder, NULL, &file);
    s = s ? s : att_chat_template_read(ctx, folder, ATT_CHAT_TOOL_USE, &tools);
    s = s ? s : config.status;
    if (!s) {
        t.names = att_alloc(ctx, json_array_size(json_object_get(config.root, "chat_template")) + 1, sizeof *t.names);
        s = t.names ? ATT_OK : ATT_ERR_MEMORY;
    }
    if (!s)
        put_all(&t, config.root, &file, &tools);
    att_free(ctx, t.names);
    att_text_file_free(&file);
    att_text_file_free(&tools);
    att_settings_close(&config);
    return s;
}
