/* A conversation in a file: [{"role": "user", "content": "..."}] */
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/read_file.h"
#include "conversation.h"

#include <string.h>

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
        cli_json_string(&j, "role", c->message[i].role);
        cli_json_bytes(&j, "content", c->message[i].text, c->message[i].bytes);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    return cli_output_close(&out, code);
}

/* Returns the role of a message as a constant; NULL: there is no such role. */
static const char *find_role(const json_t *message)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i]))
            return roles[i];
    return NULL;
}

static int add(cli_conversation *c, const char *path, size_t i, const json_t *message)
{
    const char *role = find_role(message);
    const json_t *content = json_object_get(message, "content");
    if (!role)
        return cli_fail("%s: the \"role\" of message %zu is not \"system\", \"user\" or \"assistant\"", path, i + 1);
    if (!json_is_string(content))
        return cli_fail("%s: the \"content\" of message %zu is not a text", path, i + 1);
    return cli_conversation_insert(c, c->count, role, json_string_value(content), json_string_length(content));
}

/* Checks that the template can write the conversation. */
static int check(const cli_conversation *c)
{
    const bool reply = !strcmp(c->message[c->count - 1].role, "user");
    att_text text = {0};
    int code = cli_status(c->m->base.ctx, att_chat_render(c->template, c->message, (int64_t)c->count,
                                                          ATT_OPTIONS(att_chat_options, .reply = reply), &text));
    if (!code && !strcmp(c->message->role, "system") && c->message->bytes > 0)
        code = cli_conversation_check_system(c, c->message->text, c->message->bytes);
    att_text_free(c->m->base.ctx, &text);
    return code;
}

static int read_messages(cli_conversation *c, const char *path, json_t *root)
{
    const json_t *list = json_is_object(root) ? json_object_get(root, "messages") : root, *message;
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
    cli_conversation loaded = {.m = c->m, .template = c->template};
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
