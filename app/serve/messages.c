#include "messages.h"

#include <stdlib.h>
#include <string.h>

/* What the messages of a list may have. */
typedef struct message_form {
    const char *const *parts; /* types of a content's parts, up to NULL */
    const char *const *keys;  /* up to NULL; null, and for others an empty list, ask for nothing */
    const char *part;         /* an example */
} message_form;

#define TEXTS(...)                                                                                                     \
    (const char *const[]) { __VA_ARGS__, NULL }
static const message_form form_of_messages = {.parts = TEXTS("text"),
                                              .keys = TEXTS("role", "content", "name", "refusal", "annotations"),
                                              .part = "{\"type\": \"text\", \"text\": \"...\"}"},
                          form_of_items = {.parts = TEXTS("input_text", "output_text"),
                                           .keys = TEXTS("role", "content", "type", "id", "status", "phase"),
                                           .part = "{\"type\": \"input_text\", \"text\": \"...\"}"};

typedef struct conversation {
    serve_call *c;
    const char *field;
    const message_form *form;
    att_chat_message *message; /* [n] */
    char **owned;              /* [n]: texts that were put together; NULL: the request's */
    int64_t n;
} conversation;

static bool is_one_of(const char *word, const char *const *words)
{
    while (word && *words && strcmp(*words, word))
        words++;
    return word && *words;
}

static bool refuse(conversation *v, int64_t i, const char *what)
{
    serve_refuse(v->c, 400, v->field, "%s[%lld]: %s", v->field, (long long)i, what);
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

/* Puts the parts of a content together. i: of the list. */
static bool join_parts(conversation *v, int64_t i, const json_t *parts)
{
    char what[128];
    att_chat_message *m = &v->message[v->n];
    FILE *f = open_memstream(&v->owned[v->n], &m->bytes);
    bool good = f;
    for (size_t k = 0; good && k < json_array_size(parts); k++) {
        const json_t *part = json_array_get(parts, k), *text = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));
        good = json_is_string(text) && is_one_of(type, v->form->parts);
        snprintf(what, sizeof what, "a part of its content is not %s", v->form->part);
        if (good)
            fwrite(json_string_value(text), 1, json_string_length(text), f);
        else
            refuse(v, i, what);
    }
    if (!f || fclose(f)) {
        serve_refuse(v->c, 503, NULL, "out of memory");
        return false;
    }
    m->text = v->owned[v->n];
    return good;
}

static bool check_keys(conversation *v, int64_t i, const json_t *message)
{
    const char *key;
    char what[160];
    json_t *value;
    json_object_foreach((json_t *)message, key, value)
    {
        if (json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
            is_one_of(key, v->form->keys))
            continue;
        snprintf(what, sizeof what,
                 "\"%.40s\" is not supported: a message has role and content, and models answer with text alone", key);
        return refuse(v, i, what);
    }
    return true;
}

/* Reads the message after those that there are: element i of the list. */
static bool read_message(conversation *v, int64_t i, const json_t *message)
{
    att_chat_message *m = &v->message[v->n];
    const json_t *content = json_object_get(message, "content");
    const char *type = json_string_value(json_object_get(message, "type"));
    *m = (att_chat_message){.size = sizeof *m, .role = role_of(message), .text = ""};
    if (v->form == &form_of_items && type && strcmp(type, "message"))
        return refuse(v, i, "is not of the type \"message\": models answer with text alone");
    if (!check_keys(v, i, message))
        return false;
    if (!json_is_object(message) || !m->role)
        return refuse(v, i, "is not an object with the role system, developer, user or assistant");
    if (json_is_array(content))
        return join_parts(v, i, content);
    if (json_is_string(content)) {
        m->text = json_string_value(content);
        m->bytes = json_string_length(content);
    } else if ((content && !json_is_null(content)) || strcmp(m->role, "assistant")) { /* which may have said nothing */
        return refuse(v, i, "its content is not a text, or a list of parts");
    }
    return true;
}

static void add_text(conversation *v, const char *role, serve_text t)
{
    if (t.text)
        v->message[v->n++] =
            (att_chat_message){.size = sizeof *v->message, .role = role, .text = t.text, .bytes = t.bytes};
}

static void conversation_free(conversation *v)
{
    for (int64_t i = 0; v->owned && i <= v->n; i++) /* also of the message that was refused */
        free(v->owned[i]);
    free(v->owned);
    free(v->message);
}

static bool conversation_read(conversation *v, serve_call *c, const serve_messages *from)
{
    const size_t n = json_array_size(from->list);
    *v = (conversation){.c = c, .field = from->field, .form = from->items ? &form_of_items : &form_of_messages};
    if (!from->user.text && (n == 0 || (int64_t)n > c->shared->settings->max_inputs)) {
        serve_refuse(c, 400, v->field, "%s: is not a list of 1 to %lld messages", v->field,
                     (long long)c->shared->settings->max_inputs);
        return false;
    }
    v->message = calloc(n + 3, sizeof *v->message);
    v->owned = calloc(n + 3, sizeof *v->owned);
    if (!v->message || !v->owned) {
        serve_refuse(c, 503, NULL, "out of memory");
        return false;
    }
    add_text(v, "system", from->system);
    for (size_t i = 0; i < n; i++, v->n++)
        if (!read_message(v, (int64_t)i, json_array_get(from->list, i)))
            return false;
    add_text(v, "user", from->user);
    return true;
}

static bool tokenize(serve_call *c, const serve_model *m, const serve_messages *from, serve_prompts *out)
{
    conversation v;
    att_tokens tokens = {0};
    bool good = conversation_read(&v, c, from);
    if (good) {
        const att_status s = att_chat_tokenize(m->template, m->tokenizer, v.message, v.n,
                                               ATT_OPTIONS(att_chat_options, .reply = true), &tokens);
        good = !s && serve_prompts_add(out, tokens.ids, tokens.count);
        if (!good)
            serve_refuse(c, !s || s == ATT_ERR_MEMORY ? 503 : 400, v.field, "%s: %s", v.field,
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

bool serve_messages_prompt(serve_call *c, const serve_model *m, const serve_messages *messages, serve_sampling *s,
                           serve_prompts *out)
{
    if (!m->template) {
        serve_refuse(c, 400, "model", "%s does not hold conversations: %s; /v1/completions continues texts", m->id,
                     m->no_template);
        return false;
    }
    return tokenize(c, m, messages, out) && add_end(c, m, s);
}
