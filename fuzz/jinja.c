/* The input is a template of the interpreter of chat templates, which runs with a conversation: it ends with a text,
 * whose ranges of messages are in order, or with an error. */
#include "fuzz.h"

#include "jinja/jinja.h"

static void set_variables(att_jinja_state *s, void *user)
{
    static const char *const contents[] = {"be short", " a\n<|end|> \xC3\xA9", "", "x = {'y': 1}"};
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    (void)user;
    for (int i = 0; i < 4; i++) {
        const att_jinja_value message = att_jinja_dict_new(s, ATT_JINJA_DICT);
        const char *role = i == 0 ? "system" : i % 2 ? "user" : "assistant";
        att_jinja_put_named(s, message, "role", att_jinja_text(s, role, strlen(role), false));
        att_jinja_put_named(s, message, "content", att_jinja_text(s, contents[i], strlen(contents[i]), true));
        att_jinja_push(s, list, message);
    }
    att_jinja_set(s, "messages", list);
    att_jinja_set(s, "tools", att_jinja_none());
    att_jinja_set(s, "add_generation_prompt", att_jinja_bool(true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    att_jinja *t;
    att_bytes text = {.ctx = fuzz_context()}, literal = {.ctx = fuzz_context()};
    const att_status s = att_jinja_open(fuzz_context(), "input", (const char *)data, bytes, &t);
    fuzz_check(!s == (t != NULL), "refused, but with a template, or the other way round");
    if (!s && !att_jinja_run(t, set_variables, NULL, &text, &literal)) {
        const att_literal *range = (const att_literal *)(const void *)literal.data;
        int64_t last = 0;
        for (size_t i = 0; i < literal.count / sizeof *range; i++) {
            fuzz_check(range[i].begin >= last && range[i].begin < range[i].end, "ranges of messages are not in order");
            last = range[i].end;
        }
        fuzz_check(last <= (int64_t)text.count, "a range of a message ends after the text");
    }
    att_bytes_free(&text);
    att_bytes_free(&literal);
    att_jinja_free(t);
    return 0;
}
