/* Chat templates that are not among the known formats: their programs are run. */
#include "fixtures/chat.h"
#include "fixtures/fail_alloc.h"

static void programs_write_the_texts_and_ids_of_known_formats(void **state)
{
    (void)state;
    const json_t *conversations = json_object_get(golden, "conversations"), *item;
    size_t i;
    json_array_foreach(json_object_get(golden, "templates"), i, item)
    {
        att_chat_template *known = open_golden(item), *t = open_program(item);
        att_tokenizer *tokenizer = tokenizer_of(item);
        const char *end = att_chat_template_end(known), *file = text_of(item, "file");
        if (end)
            assert_string_equal(att_chat_template_end(t), end);
        for (size_t k = 0; k < 20; k++) {
            const char *want = json_string_value(json_array_get(json_object_get(item, "hashes"), k));
            if (*want || strcmp(file, "phi3-128k") != 0) /* that one leaves system messages out */
                check_conversation(file, k, t, tokenizer, json_array_get(conversations, k), want);
        }
        att_chat_template_free(known);
        att_chat_template_free(t);
        att_tokenizer_free(tokenizer);
    }
}

static void other_templates_are_run(void **state)
{
    (void)state;
    static const struct {
        const char *template, *text;
    } cases[] = {
        {"{{ messages }}", "[{'role': 'user', 'content': 'a'}]"},
        {"{% for message in messages %}" IM " {% endfor %}", "<|im_start|>user\na<|im_end|>\n "},
        {"{% for message in messages %}" IM "{% endfor %}", "<|im_start|>user\na<|im_end|>\n"},
        {"{% for message in messages %}{{ 'x' }}" IM IM_END, "x<|im_start|>user\na<|im_end|>\n"},
        {"{% raw %}{{ x }}{% endraw %}{{ '\\x41' }}", "{{ x }}A"},
        {"{{ bos_token }}{{ eos_token is defined }}{{ tools }}{{ add_generation_prompt }}", "<s>FalseNoneFalse"},
    };
    remove_all();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_config("<s>", NULL, cases[i].template);
        att_chat_template *t = open_template(NULL);
        assert_string_equal(att_chat_template_name(t), "jinja");
        assert_string_equal(rendered(t, "user", "a"), cases[i].text);
        att_chat_template_free(t);
    }
}

static void templates_are_found_by_name_and_by_file(void **state)
{
    (void)state;
    char path[256];
    remove_all();
    write_file("tokenizer_config.json", "{\"eos_token\": \"</e>\", \"chat_template\": [{\"name\": \"tool_use\", "
                                        "\"template\": \"tools {{ messages[0].content }}\"}, {\"name\": \"default\", "
                                        "\"template\": \"{{ messages[0].content }}{{ eos_token }} \"}]}");
    snprintf(path, sizeof path, "%s/other.jinja", folder.path);
    FILE *f = folder_open(&folder, "other.jinja");
    fputs("other {{ messages[0].content }}{{ eos_token }}", f);
    assert_int_equal(fclose(f), 0);
    const char *const names[] = {NULL, "tool_use", path}, *const texts[] = {"a</e> ", "tools a", "other a</e>"};
    for (int i = 0; i < 3; i++) {
        att_chat_template *t = open_template(names[i]);
        assert_string_equal(rendered(t, "user", "a"), texts[i]);
        assert_string_equal(att_chat_template_end(t), "</e>");
        att_chat_template_free(t);
    }
    remove_file("other.jinja");
    check_refused(path, ATT_ERR_IO, "other.jinja");
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    char text[(1 << 16) + 64];
    snprintf(text, sizeof text, "%s{%% set never_read = 1 %%}", read_all("tests/golden/chat/qwen3.jinja"));
    const att_chat_source source = {.path = "qwen3", .text = text, .bytes = strlen(text)};
    const att_chat_message message = {SIZE, "user", "a", 1};
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc a = {.fail_at = at};
        att_ctx *c = NULL;
        att_chat_template *t = NULL;
        att_text out = {0};
        s = att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)));
        s = s ? s : att_chat_template_from(c, &source, NULL, &t);
        s = s ? s : att_chat_render(t, &message, 1, &with_reply, &out);
        att_text_free(c, &out);
        att_chat_template_free(t);
        att_close(c);
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
        assert_int_equal(a.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_write_the_texts_and_ids_of_known_formats),
        cmocka_unit_test(other_templates_are_run),
        cmocka_unit_test(templates_are_found_by_name_and_by_file),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up_golden, tear_down_golden);
}
