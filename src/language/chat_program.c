/* Runs the program of a chat template on a conversation. */
#include "language/chat.h"

#include <string.h>

typedef struct run {
    const att_chat_template *t;
    const att_chat_conversation *c;
} run;

static att_jinja_value trusted(att_jinja_state *s, const char *text)
{
    return att_jinja_text(s, text, strlen(text), false);
}

/* Makes a message; more or NULL: its other fields, where "content" takes the place of the text. */
static att_jinja_value make_message(att_jinja_state *s, const att_chat_message *m, const json_t *more)
{
    const att_jinja_value message = att_jinja_dict_new(s, ATT_JINJA_DICT);
    att_jinja_put_named(s, message, "role", trusted(s, m->role)); /* which is one of a list */
    att_jinja_put_named(s, message, "content", att_jinja_text(s, m->text, m->bytes, true));
    const att_jinja_value fields = att_jinja_json(s, more, true);
    for (size_t i = 0; more && i < fields.dict->n; i++)
        att_jinja_put(s, message, fields.dict->key[i], fields.dict->value[i]);
    return message;
}

/* Sets the variables that apply_chat_template of `transformers` sets. */
static void set_variables(att_jinja_state *s, void *user)
{
    const run *r = user;
    const att_chat_conversation *c = r->c;
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    const char *name;
    json_t *value;
    for (int i = 0; i < ATT_CHAT_TOKENS; i++) {
        const att_bytes *token = &r->t->token[i];
        if (token->count > 0)
            att_jinja_set(s, att_chat_token_names[i], att_jinja_text(s, token->data, token->count, false));
    }
    json_object_foreach((json_t *)(uintptr_t)c->variables, name, value)
        att_jinja_set(s, name, att_jinja_json(s, value, true));
    for (int64_t i = 0; i < c->n; i++)
        att_jinja_push(s, list, make_message(s, &c->messages[i], c->more ? c->more[i] : NULL));
    att_jinja_set(s, "messages", list);
    att_jinja_set(s, "tools", att_jinja_json(s, c->tools, true));
    att_jinja_set(s, "documents", att_jinja_json(s, c->documents, true));
    att_jinja_set(s, "add_generation_prompt", att_jinja_bool(c->reply));
}

att_status att_chat_write(const att_chat_template *t, const att_chat_conversation *c, att_bytes *text,
                          att_bytes *literal)
{
    run r = {t, c};
    return att_jinja_run(c->tools && t->with_tools ? t->with_tools : t->program, set_variables, &r, text, literal);
}

/* Appends the text that the template writes after an answer, up to white space, and a zero byte; no text if it refuses
 * such a conversation. Error: out of memory. */
static att_status add_after_answer(const att_chat_template *t, bool reply, att_bytes *out)
{
    static const char answer[] = "answer";
    static const att_chat_message messages[] = {{sizeof *messages, "user", "question", 8, NULL},
                                                {sizeof *messages, "assistant", answer, sizeof answer - 1, NULL}};
    att_bytes text = {.ctx = t->ctx}, literal = {.ctx = t->ctx};
    att_status s =
        att_chat_write(t, &(att_chat_conversation){.n = 2, .messages = messages, .reply = reply}, &text, &literal);
    const size_t n = literal.count / sizeof(att_literal);
    att_bytes_add(&text, "", 1);
    if (!s && !text.status && n > 0) {
        const char *after = text.data + ((const att_literal *)(const void *)literal.data)[n - 1].end;
        after += strspn(after, " \n");
        att_bytes_add(out, after, strcspn(after, " \n"));
    }
    att_bytes_add(out, "", 1);
    s = text.status ? text.status : out->status ? out->status : s;
    att_bytes_free(&text);
    att_bytes_free(&literal);
    return s == ATT_ERR_MEMORY ? s : ATT_OK;
}

att_status att_chat_find_end(att_chat_template *t)
{
    att_bytes last = {.ctx = t->ctx}, more = {.ctx = t->ctx};
    const att_bytes *eos = &t->token[ATT_CHAT_EOS];
    size_t n = 0;
    att_status s = add_after_answer(t, false, &last);
    s = s ? s : add_after_answer(t, true, &more);
    if (!s) {
        while (last.data[n] && last.data[n] == more.data[n])
            n++;
        const bool same = last.data[n] == more.data[n];
        while (!same && n > 0 && last.data[n - 1] != '>') /* the first of several tokens, not a part of one */
            n--;
        att_bytes_add(&t->end, n ? last.data : eos->data, n ? n : eos->count);
        if (t->end.count > 0)
            att_bytes_add(&t->end, "", 1);
        s = t->end.status;
    }
    att_bytes_free(&last);
    att_bytes_free(&more);
    return s;
}
