/* Writes conversations as a chat template does, and tokenizes them. */
#include "language/chat.h"

#include "attend_util.h"
#include "text/tokenizer.h"

#include <string.h>

/* The text of a conversation. */
typedef struct chat_text {
    att_bytes text, literal; /* literal: att_literal[], the parts of the text that are from messages */
} chat_text;

/* ---- checks */

static att_status check_message(const att_chat_template *t, const att_chat_message *m, int64_t i)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const long long at = (long long)i;
    if (!m->role || (!m->text && m->bytes > 0))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "messages[%lld]: %s is NULL", at, m->role ? "text" : "role");
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
        if (strcmp(roles[k], m->role) == 0)
            return ATT_OK;
    return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                    "messages[%lld]: the role is \"%.40s\"; system, user and assistant are supported", at, m->role);
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

static att_status write_all(const att_chat_template *t, const att_chat_message *messages, int64_t n,
                            const att_chat_options *options, chat_text *out)
{
    att_ctx *ctx = t->ctx;
    *out = (chat_text){{.ctx = ctx}, {.ctx = ctx}};
    att_chat_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_chat_options");
    if (!s && n < 1)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "n is %lld; a conversation has at least one message", (long long)n);
    att_chat_message *m = s ? NULL : att_alloc(ctx, (size_t)n, sizeof *m);
    s = s || m ? s : ATT_ERR_MEMORY;
    s = s ? s : read_messages(t, messages, n, m);
    for (int64_t i = 0; !s && i < n; i++)
        s = check_message(t, &m[i], i);
    s = s ? s : att_chat_write(t, m, n, o.reply, &out->text, &out->literal);
    if (!s) {
        att_bytes_add(&out->text, "", 1);
        s = out->text.status ? out->text.status : out->literal.status;
    }
    att_free(ctx, m);
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
