#include "messages.h"

#include <stdlib.h>
#include <string.h>

typedef struct conversation {
    serve_call *c;
    att_chat_message *message; /* [n] */
    char **owned;              /* [n]: texts that were put together; NULL: the request's */
    int64_t n;
} conversation;

static bool refuse(conversation *v, int64_t i, const char *what)
{
    serve_refuse(v->c, 400, "messages", "messages[%lld]: %s", (long long)i, what);
    return false;
}

/* Returns the role of a message as templates have it; NULL: there is no such role. */
static const char *role_of(const json_t *message)
{
    static const char *const roles[][2] = {
        {"system", "system"}, {"developer", "system"}, {"user", "user"}, {"assistant", "assistant"}};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i][0]))
            return roles[i][1];
    return NULL;
}

/* Puts the parts of a content together. */
static bool join_parts(conversation *v, int64_t i, const json_t *parts)
{
    att_chat_message *m = &v->message[i];
    FILE *f = open_memstream(&v->owned[i], &m->bytes);
    bool good = f;
    for (size_t k = 0; good && k < json_array_size(parts); k++) {
        const json_t *part = json_array_get(parts, k), *text = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));
        good = json_is_string(text) && type && !strcmp(type, "text");
        if (good)
            fwrite(json_string_value(text), 1, json_string_length(text), f);
        else
            refuse(v, i, "a part of its content is not {\"type\": \"text\", \"text\": \"...\"}");
    }
    if (!f || fclose(f)) {
        serve_refuse(v->c, 503, NULL, "out of memory");
        return false;
    }
    m->text = v->owned[i];
    return good;
}

/* The keys of a message that are not read; null, and for some an empty list, ask for nothing. */
static bool check_keys(conversation *v, int64_t i, const json_t *message)
{
    static const char *const read[] = {"role", "content", "name", "refusal", "annotations"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)message, key, value)
    {
        bool known = json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0);
        for (size_t k = 0; !known && k < sizeof read / sizeof *read; k++)
            known = !strcmp(key, read[k]);
        if (!known) {
            serve_refuse(v->c, 400, "messages",
                         "messages[%lld]: \"%.40s\" is not supported: models answer with text "
                         "alone",
                         (long long)i, key);
            return false;
        }
    }
    return true;
}

static bool read_message(conversation *v, int64_t i, const json_t *message)
{
    att_chat_message *m = &v->message[i];
    const json_t *content = json_object_get(message, "content");
    *m = (att_chat_message){.size = sizeof *m, .role = role_of(message), .text = ""};
    if (!json_is_object(message) || !m->role)
        return refuse(v, i, "is not an object with the role system, developer, user or assistant");
    if (!check_keys(v, i, message))
        return false;
    if (json_is_array(content))
        return join_parts(v, i, content);
    if (json_is_string(content)) {
        m->text = json_string_value(content);
        m->bytes = json_string_length(content);
    } else if (content && !json_is_null(content)) {
        return refuse(v, i, "its content is not a text, or a list of parts");
    }
    return true;
}

static void conversation_free(conversation *v)
{
    for (int64_t i = 0; v->owned && i < v->n; i++)
        free(v->owned[i]);
    free(v->owned);
    free(v->message);
}

static bool conversation_read(conversation *v, serve_call *c, const json_t *messages)
{
    *v = (conversation){.c = c, .n = (int64_t)json_array_size(messages)};
    if (v->n == 0 || v->n > c->shared->settings->max_inputs) {
        serve_refuse(c, 400, "messages", "messages: is not a list of 1 to %lld messages",
                     (long long)c->shared->settings->max_inputs);
        return false;
    }
    v->message = calloc((size_t)v->n, sizeof *v->message);
    v->owned = calloc((size_t)v->n, sizeof *v->owned);
    if (!v->message || !v->owned) {
        serve_refuse(c, 503, NULL, "out of memory");
        return false;
    }
    for (int64_t i = 0; i < v->n; i++)
        if (!read_message(v, i, json_array_get(messages, (size_t)i)))
            return false;
    return true;
}

static bool tokenize(serve_call *c, const serve_model *m, const json_t *messages, serve_prompts *out)
{
    conversation v;
    att_tokens tokens = {0};
    bool good = conversation_read(&v, c, messages);
    if (good) {
        const att_status s = att_chat_tokenize(m->template, m->tokenizer, v.message, v.n,
                                               ATT_OPTIONS(att_chat_options, .reply = true), &tokens);
        good = !s && serve_prompts_add(out, tokens.ids, tokens.count);
        if (!good)
            serve_refuse(c, !s || s == ATT_ERR_MEMORY ? 503 : 400, "messages", "messages: %s",
                         s ? att_error(m->ctx) : "out of memory");
    }
    att_tokens_free(m->ctx, &tokens);
    conversation_free(&v);
    return good;
}

static bool add_end(serve_call *c, const serve_model *m, serve_sampling *s)
{
    const char *end = att_chat_template_end(m->template);
    char *copy = end ? strdup(end) : NULL;
    if (copy)
        s->stop[s->options.n_stop++] = copy;
    else if (end)
        serve_refuse(c, 503, NULL, "out of memory");
    return !end || copy;
}

bool serve_messages_prompt(serve_call *c, const serve_model *m, const json_t *messages, serve_sampling *s,
                           serve_prompts *out)
{
    if (!m->template) {
        serve_refuse(c, 400, "model", "%s does not hold conversations: %s; /v1/completions continues texts", m->id,
                     m->no_template);
        return false;
    }
    return tokenize(c, m, messages, out) && add_end(c, m, s);
}
