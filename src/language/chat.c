/* Writes conversations as a chat template does, and tokenizes them. */
#include "language/chat.h"

#include "attend_util.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

/* The text of a conversation. */
typedef struct chat_text {
    att_bytes text, literal; /* literal: att_literal[], the parts of the text that are from messages */
} chat_text;

/* ---- checks */

static att_status check_message(const att_chat_template *t, const att_chat_message *m, int64_t i)
{
    static const char *const roles[] = {"system",        "user",        "assistant", "tool",
                                        "developer",     "function",    "ipython",   "tool_results",
                                        "tool_response", "observation", "context"};
    const long long at = (long long)i;
    if (!m->role || (!m->text && m->bytes > 0))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "messages[%lld]: %s is NULL", at, m->role ? "text" : "role");
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
        if (strcmp(roles[k], m->role) == 0)
            return ATT_OK;
    return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                    "messages[%lld]: the role is \"%.40s\", not system, user, assistant, tool or another of templates",
                    at, m->role);
}

/* Copies messages [n] of the caller's size, that of the first, to out [n]. */
static att_status read_messages(const att_chat_template *t, const att_chat_message *messages, int64_t n,
                                att_chat_message *out)
{
    const size_t step = messages->size;
    const char *m = (const char *)messages;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < n; i++, m += step) {
        size_t size;
        memcpy(&size, m, sizeof size);
        s = att_options_read(&out[i], sizeof *out, m, "att_chat_message");
        if (!s && size != step)
            s = att_fail(t->ctx, ATT_ERR_ARGUMENT, "messages[%lld].size is %zu, but messages[0].size is %zu",
                         (long long)i, size, step);
    }
    return s;
}

/* Parses JSON text, or leaves *out NULL if text is NULL. */
static att_status parse(att_ctx *ctx, const char *name, json_type type, const char *text, json_t **out)
{
    json_error_t e;
    *out = text ? json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e) : NULL;
    if (!text || (*out && json_typeof(*out) == type))
        return ATT_OK;
    if (*out)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is not a JSON %s", name, type == JSON_ARRAY ? "list" : "object");
    if (json_error_code(&e) == json_error_out_of_memory)
        return att_fail(ctx, ATT_ERR_MEMORY, "out of memory");
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is not JSON: line %d: %s", name, e.line, e.text);
}

/* What is read of the arguments of a call. */
typedef struct arguments {
    att_chat_message *m; /* [n] */
    json_t **more;       /* [n] */
    json_t *tools, *documents, *variables;
} arguments;

static att_status read_more(att_ctx *ctx, arguments *a, int64_t n)
{
    att_status s = ATT_OK;
    char name[48];
    for (int64_t i = 0; !s && i < n; i++) {
        snprintf(name, sizeof name, "messages[%lld].more", (long long)i);
        s = parse(ctx, name, JSON_OBJECT, a->m[i].more, &a->more[i]);
        if (!s && json_object_get(a->more[i], "role"))
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s has a \"role\", which the message has itself", name);
    }
    return s;
}

static att_status read_arguments(const att_chat_template *t, arguments *a, const att_chat_message *messages, int64_t n,
                                 const att_chat_options *o)
{
    att_ctx *ctx = t->ctx;
    if (n < 1)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "n is %lld; a conversation has at least one message", (long long)n);
    a->m = att_alloc(ctx, (size_t)n, sizeof *a->m);
    a->more = att_calloc(ctx, (size_t)n, sizeof *a->more);
    att_status s = a->m && a->more ? read_messages(t, messages, n, a->m) : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < n; i++)
        s = check_message(t, &a->m[i], i);
    s = s ? s : read_more(ctx, a, n);
    s = s ? s : parse(ctx, "options.tools", JSON_ARRAY, o->tools, &a->tools);
    s = s ? s : parse(ctx, "options.documents", JSON_ARRAY, o->documents, &a->documents);
    return s ? s : parse(ctx, "options.variables", JSON_OBJECT, o->variables, &a->variables);
}

static void free_arguments(att_ctx *ctx, arguments *a, int64_t n)
{
    for (int64_t i = 0; a->more && i < n; i++)
        json_decref(a->more[i]);
    json_decref(a->tools);
    json_decref(a->documents);
    json_decref(a->variables);
    att_free(ctx, a->more);
    att_free(ctx, a->m);
}

static att_status write_all(const att_chat_template *t, const att_chat_message *messages, int64_t n,
                            const att_chat_options *options, chat_text *out)
{
    att_ctx *ctx = t->ctx;
    *out = (chat_text){{.ctx = ctx}, {.ctx = ctx}};
    arguments a = {0};
    att_chat_options o = {0};
    att_status s = att_options_read(&o, sizeof o, options, "att_chat_options");
    s = s ? s : read_arguments(t, &a, messages, n, &o);
    const att_chat_conversation c = {n, a.m, a.more, a.tools, a.documents, a.variables, o.reply};
    s = s ? s : att_chat_write(t, &c, &out->text, &out->literal);
    if (!s) {
        att_bytes_add(&out->text, "", 1);
        s = out->text.status ? out->text.status : out->literal.status;
    }
    free_arguments(ctx, &a, n);
    return s;
}

att_status att_chat_render(const att_chat_template *t, const att_chat_message *messages, int64_t n,
                           const att_chat_options *options, att_text *out)
{
    if (out)
        *out = (att_text){0};
    if (att_require(__func__, ATT_NAMED({"t", t}, {"messages", messages}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    chat_text w;
    const att_status s = write_all(t, messages, n, options, &w);
    att_bytes_free(&w.literal);
    if (s)
        att_bytes_free(&w.text);
    else
        *out = (att_text){w.text.data, w.text.count - 1};
    return s;
}

att_status att_chat_tokenize(const att_chat_template *t, const att_tokenizer *tokenizer,
                             const att_chat_message *messages, int64_t n, const att_chat_options *options,
                             att_tokens *out)
{
    if (out)
        *out = (att_tokens){0};
    if (att_require(__func__, ATT_NAMED({"t", t}, {"tokenizer", tokenizer}, {"messages", messages}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    chat_text w;
    att_status s = write_all(t, messages, n, options, &w);
    const att_literals literal = {(const att_literal *)(const void *)w.literal.data,
                                  w.literal.count / sizeof(att_literal)};
    if (!s)
        s = att_encode_literals(tokenizer, w.text.data, w.text.count - 1, &literal, out);
    att_bytes_free(&w.text);
    att_bytes_free(&w.literal);
    return s;
}
