/* A conversation in a file: [{"role": "user", "content": "..."}] */
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/read_file.h"
#include "conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void save_message(cli_json *j, const att_chat_message *m)
{
    json_t *more = m->more ? json_loads(m->more, JSON_ALLOW_NUL, NULL) : NULL, *value;
    const char *key;
    cli_json_string(j, "role", m->role);
    if (!json_object_get(more, "content"))
        cli_json_bytes(j, "content", m->text, m->bytes);
    json_object_foreach(more, key, value) cli_json_value(j, key, value, 0);
    cli_json_end(j);
    json_decref(more);
}

int cli_conversation_save(const cli_conversation *c, const char *path)
{
    cli_output out = {0};
    const int code = cli_output_open(&out, path);
    if (code)
        return code;
    cli_json j = {.file = out.file, .first = "\n  ", .between = ",\n  ", .last = "\n"};
    cli_json_array(&j, NULL);
    for (size_t i = 0; i < c->count; i++) {
        cli_json_object(&j, NULL);
        save_message(&j, &c->message[i]);
    }
    cli_json_end(&j);
    return cli_output_close(&out, code);
}

/* Returns the role of a message as a constant; NULL: there is no such role. */
static const char *find_role(const json_t *message)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i]))
            return roles[i];
    return NULL;
}

/* Replaces a content of parts, [{"type": "text", "text": "..."}], by their texts, a line each. */
static int join_parts(const char *path, size_t i, json_t *message)
{
    const json_t *parts = json_object_get(message, "content"), *part;
    char *text = NULL;
    size_t k, bytes = 0;
    if (!json_is_array(parts))
        return CLI_DONE;
    FILE *f = open_memstream(&text, &bytes);
    int code = f ? CLI_DONE : cli_fail_memory();
    json_array_foreach(parts, k, part)
    {
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *line = json_object_get(part, "text");
        if (!code && (!type || strcmp(type, "text") != 0))
            code = cli_fail("%s: message %zu has a part of type \"%s\", which is not supported; \"text\" is", path,
                            i + 1, type ? type : "");
        else if (!code && !json_is_string(line))
            code = cli_fail("%s: a part of message %zu has no \"text\"", path, i + 1);
        else if (!code)
            fprintf(f, "%s%.*s", k ? "\n" : "", (int)json_string_length(line), json_string_value(line));
    }
    if (f && (fclose(f) || json_object_set_new(message, "content", json_stringn(text, bytes))) && !code)
        code = cli_fail_memory();
    free(text);
    return code;
}

/* Parses the arguments of calls that are JSON in a text, as OpenAI's interface has them; templates write objects. */
static void parse_arguments(const json_t *message)
{
    const json_t *call;
    size_t i;
    json_array_foreach(json_object_get(message, "tool_calls"), i, call)
    {
        json_t *function = json_object_get(call, "function");
        const json_t *text = json_object_get(function, "arguments");
        json_t *arguments = json_is_string(text) ? json_loadb(json_string_value(text), json_string_length(text),
                                                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL)
                                                 : NULL;
        if (json_is_object(arguments))
            json_object_set(function, "arguments", arguments);
        json_decref(arguments);
    }
}

static int add(cli_conversation *c, const char *path, size_t i, json_t *message)
{
    const char *role = find_role(message);
    if (!role)
        return cli_fail("%s: the \"role\" of message %zu is not system, developer, user, assistant or tool", path,
                        i + 1);
    int code = join_parts(path, i, message);
    if (code)
        return code;
    parse_arguments(message);
    const json_t *content = json_object_get(message, "content");
    const bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
    if (!json_is_string(content) && !(calls && (!content || json_is_null(content))))
        return cli_fail("%s: the \"content\" of message %zu is not a text", path, i + 1);
    json_t *more = json_copy(message);
    json_object_del(more, "role");
    if (json_is_string(content))
        json_object_del(more, "content");
    else
        json_object_set(more, "content", json_null());
    char *text = json_object_size(more) ? json_dumps(more, JSON_COMPACT) : NULL;
    if (!more || (json_object_size(more) && !text))
        code = cli_fail_memory();
    else
        code = cli_conversation_insert(c, c->count,
                                       &(att_chat_message){sizeof *c->message, role, json_string_value(content),
                                                           json_string_length(content), text});
    free(text);
    json_decref(more);
    return code;
}

/* Checks that the template can write the conversation. */
static int check(const cli_conversation *c)
{
    att_chat_options o = c->options;
    att_text text = {0};
    o.reply = strcmp(c->message[c->count - 1].role, "assistant") != 0;
    int code = cli_status(c->m->base.ctx, att_chat_render(c->template, c->message, (int64_t)c->count, &o, &text));
    if (!code && !strcmp(c->message->role, "system") && c->message->bytes > 0)
        code = cli_conversation_check_system(c, c->message->text, c->message->bytes);
    att_text_free(c->m->base.ctx, &text);
    return code;
}

static int read_messages(cli_conversation *c, const char *path, json_t *root)
{
    json_t *list = json_is_object(root) ? json_object_get(root, "messages") : root, *message;
    size_t i;
    int code = CLI_DONE;
    if (json_array_size(list) == 0)
        return cli_fail("%s: this is not a list of messages, [{\"role\": \"user\", \"content\": \"...\"}]", path);
    json_array_foreach(list, i, message) { code = code ? code : add(c, path, i, message); }
    return code ? code : check(c);
}

int cli_conversation_load(cli_conversation *c, const char *path)
{
    cli_whole_text text = {0};
    cli_conversation loaded = {.m = c->m, .template = c->template, .options = c->options};
    json_error_t error;
    int code = cli_whole_text_read(path, &text);
    json_t *root = code ? NULL : json_loadb(text.text, text.bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!code && !root)
        code = cli_fail("%s:%d: %s", path, error.line, error.text);
    if (!code)
        code = read_messages(&loaded, path, root);
    json_decref(root);
    cli_whole_text_free(&text);
    if (!code) {
        const cli_conversation old = *c;
        c->message = loaded.message, c->count = loaded.count, c->room = loaded.room, c->full = false;
        loaded.message = old.message, loaded.count = old.count;
    }
    cli_conversation_truncate(&loaded, 0);
    free(loaded.message);
    return code;
}
