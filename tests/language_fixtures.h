/* Language models and chat templates: for tests/null_fixtures.h, whose give() they use. */
#ifndef LANGUAGE_FIXTURES_H
#define LANGUAGE_FIXTURES_H

#include "attend_language.h"
#include "tiny_gguf.h"
#include "tiny_llama.h"

static void give(const char *of, const void *value);
static void need(att_status s);

static void give_chat(att_ctx *c, const test_folder *folder, const att_tokenizer *tokenizer)
{
    static att_chat_template *t;
    static const att_chat_message hello = {"user", "a b", 3};
    static att_text text;
    folder_write(folder, "chat_template.jinja",
                 "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
                 "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
                 "{% endif %}");
    need(att_chat_template_open(c, folder->path, "chatml", &t));
    need(att_chat_render(t, &hello, 1, true, &text));
    give("att_chat_encode.tokenizer", tokenizer);
    give("att_chat_template_open.folder", folder->path);
    give("att_chat_template_open.name", "chatml");
    give("att_chat_text_free.text", &text);
    give("const att_chat_message *", &hello);
    give("const att_chat_template *", t);
    give("att_chat_template *", t);
}

static void give_language_model(att_ctx *c)
{
    static test_folder folder;
    folder = tiny_llama_folder(&tiny_llamas[0], NULL);
    att_language_model *m;
    att_language_state *s;
    att_tape *t;
    need(att_language_model_open(c, folder.path, &m));
    need(att_language_state_new(m, 1, 0, &s));
    need(att_tape_new(c, NULL, &t));
    give("att_language_model_apply.t", t);
    give("att_language_model_loss.t", t);
    static const att_perplexity_options windows = {.size = sizeof windows};
    static att_perplexity perplexity = {.size = sizeof perplexity};
    static const int32_t two[] = {0, 1};
    give("const att_perplexity_options *", &windows);
    give("att_perplexity *", &perplexity);
    give("att_language_perplexity.ids", two);
    static const int64_t count = 2;
    give("att_language_perplexity.n", &count);
    give("att_language_model_open.folder", folder.path);
    give("att_language_model_open_with.folder", folder.path);
    tiny_gguf_write(&folder, "m.gguf", &tiny_llamas[0], NULL);
    static char gguf[128];
    snprintf(gguf, sizeof gguf, "%s/m.gguf", folder.path);
    give("att_gguf_convert.model", gguf);
    give("att_gguf_write.model", gguf);
    give("const att_language_model *", m);
    give("att_language_model *", m);
    att_text_generator *g;
    static const char *const letters =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}}";
    folder_write(&folder, "tokenizer.json", letters);
    need(att_text_generator_open(c, folder.path, &g));
    give("att_text_generator_open.folder", folder.path);
    give("att_text_generator_open_with.folder", folder.path);
    give("const att_text_generator *", g);
    give("att_text_generator *", g);
    give("const att_language_state *", s);
    give("att_language_state *", s);
    give_chat(c, &folder, att_text_generator_tokenizer(g));
}

#endif
