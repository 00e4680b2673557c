/* A conversation and a template: for tests/null_fixtures.h, whose give() they use. */
#ifndef CHAT_FIXTURES_H
#define CHAT_FIXTURES_H

#include "attend_language.h"
#include "folder.h"

static void give(const char *of, const void *value);
static void need(att_status s);

static void give_chat(att_ctx *context, const test_folder *folder, const att_tokenizer *tokenizer)
{
    static att_chat_template *t;
    static const att_chat_message hello = {"user", "a b", 3};
    static att_text text;
    folder_write(folder, "chat_template.jinja",
                 "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
                 "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
                 "{% endif %}");
    need(att_chat_template_open(context, folder->path, "chatml", &t));
    need(att_chat_render(t, &hello, 1, true, &text));
    give("att_chat_encode.tokenizer", tokenizer);
    give("att_chat_template_open.folder", folder->path);
    give("att_chat_template_open.name", "chatml");
    give("att_chat_text_free.text", &text);
    give("const att_chat_message *", &hello);
    give("const att_chat_template *", t);
    give("att_chat_template *", t);
}

#endif
