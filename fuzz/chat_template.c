/* The input is a chat template, after a byte that states how many messages a conversation has. A template that is known
 * writes each conversation, others may fail, and so does the format of a name with it. */
#include "fuzz.h"

#include "language/chat.h"

#include <string.h>

static void write_conversation(const att_chat_template *t, int n)
{
    static const att_chat_message messages[] = {{sizeof *messages, "user", "a", 1},
                                                {sizeof *messages, "assistant", " b\n", 3},
                                                {sizeof *messages, "user", "", 0}};
    att_text text;
    const att_status s = att_chat_render(t, messages, n, ATT_OPTIONS(att_chat_options, .reply = true), &text);
    fuzz_check(!s || !strcmp(att_chat_template_name(t), "jinja"), "a conversation that every format has is refused");
    att_text_free(fuzz_context(), &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const names[] = {NULL, "chatml", "llama3.1"};
    if (bytes == 0)
        return 0;
    for (int i = 0; i < 3; i++) {
        const att_chat_source source = {.path = "input", .text = (const char *)data + 1, .bytes = bytes - 1};
        att_chat_template *t;
        const att_status s = att_chat_template_from(fuzz_context(), &source, names[i], &t);
        fuzz_check(!s == (t != NULL), "refused, but with a template, or the other way round");
        fuzz_check(!s || !names[i] || bytes > 1 << 20, "a name is refused");
        if (t)
            write_conversation(t, 1 + data[0] % 3);
        att_chat_template_free(t);
    }
    return 0;
}
