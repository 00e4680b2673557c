/* Chat templates and tools: messages with calls and results, lists of tools and documents, as JSON. */
#include "fixtures/chat.h"

#include <sys/stat.h>
#include <unistd.h>

/* Makes a message of JSON, with its further fields in *more, which the caller frees. */
static att_chat_message message_of(const json_t *item, char **more)
{
    json_t *rest = json_copy((json_t *)(uintptr_t)item), *content = json_object_get(item, "content");
    json_object_del(rest, "role");
    if (json_is_string(content))
        json_object_del(rest, "content");
    *more = json_object_size(rest) ? json_dumps(rest, 0) : NULL;
    json_decref(rest);
    return (att_chat_message){SIZE, text_of(item, "role"), json_string_value(content), json_string_length(content),
                              *more};
}

/* Renders a conversation with tools or other variables -> the hash of its text; "": it is refused. */
static void hash_of(const att_chat_template *t, const json_t *conversation, char hash[20])
{
    const json_t *list = json_object_get(conversation, "messages"), *item;
    json_t *variables = json_deep_copy(json_object_get(conversation, "variables"));
    att_chat_message messages[MAX_MESSAGES];
    char *more[MAX_MESSAGES], *tools = json_dumps(json_object_get(variables, "tools"), 0);
    att_text text;
    size_t i;
    json_array_foreach(list, i, item) messages[i] = message_of(item, &more[i]);
    json_object_del(variables, "tools");
    json_object_set_new(variables, "date_string", json_string("26 Jul 2024"));
    char *other = json_dumps(variables, 0);
    const att_status s =
        att_chat_render(t, messages, (int64_t)json_array_size(list),
                        ATT_OPTIONS(att_chat_options, .reply = true, .tools = tools, .variables = other), &text);
    if (s && s != ATT_ERR_ARGUMENT)
        fail_msg("%s", att_error(ctx));
    hash[0] = 0;
    if (!s)
        snprintf(hash, 20, "%08x", hash_bytes(HASH_START, text.text, text.bytes));
    att_text_free(ctx, &text);
    for (i = 0; i < json_array_size(list); i++)
        free(more[i]);
    free(tools);
    free(other);
    json_decref(variables);
}

static void conversations_with_tools_are_those_of_transformers(void **state)
{
    (void)state;
    const json_t *conversations = json_object_get(golden, "tool_conversations"), *item;
    size_t i, compared = 0;
    char is[20];
    json_array_foreach(json_object_get(golden, "templates"), i, item)
    {
        const json_t *want = json_object_get(item, "tool_hashes");
        att_chat_template *t = open_golden(item, NULL);
        for (size_t k = 0; k < json_array_size(want); k++, compared++) {
            hash_of(t, json_array_get(conversations, k), is);
            if (strcmp(is, json_string_value(json_array_get(want, k))) != 0)
                fail_msg("%s: conversation %zu with tools is not that of transformers", text_of(item, "file"), k);
        }
        att_chat_template_free(t);
    }
    assert_int_equal(compared, 6 * 5);
}

/* A folder with several templates uses "tool_use" if there are tools. */
static void tools_have_a_template_of_their_own(void **state)
{
    (void)state;
    static const att_chat_options with = {.size = sizeof with, .tools = "[{\"name\": \"f\"}]", .documents = "[{}, {}]"};
    const att_chat_message message = {SIZE, "user", "a", 1, NULL};
    att_text text;
    char path[256];
    remove_all();
    write_file("tokenizer_config.json",
               "{\"chat_template\": [{\"name\": \"default\", \"template\": \"d {{ tools }}\"}, {\"name\": "
               "\"tool_use\", \"template\": \"t {{ tools[0].name }} {{ documents | length }}\"}]}");
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {NULL, NULL, "default"}, *const texts[] = {"d None", "t f 2",
                                                                                      "d [{'name': 'f'}]"};
        att_chat_template *t = open_template(names[i]);
        assert_int_equal(att_chat_render(t, &message, 1, i ? &with : NULL, &text), ATT_OK);
        assert_string_equal(text.text, texts[i]);
        att_text_free(ctx, &text);
        att_chat_template_free(t);
    }
    write_file("chat_template.jinja", "file"); /* has come after the list, so the list is no longer read */
    snprintf(path, sizeof path, "%s/additional_chat_templates", folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < 2; i++) {
        att_chat_template *t = open_template(NULL);
        assert_int_equal(att_chat_render(t, &message, 1, &with, &text), ATT_OK);
        assert_string_equal(text.text, i ? "more" : "file");
        att_text_free(ctx, &text);
        att_chat_template_free(t);
        write_file("additional_chat_templates/tool_use.jinja", "more");
    }
    remove_file("additional_chat_templates/tool_use.jinja");
    remove_file("chat_template.jinja");
    assert_int_equal(rmdir(path), 0);
    remove_all();
}

static void texts_of_tools_are_text(void **state)
{
    (void)state;
    static const att_chat_message call = {SIZE, "assistant", "", 0,
                                          "{\"content\": null, \"tool_calls\": [{\"name\": \"<|im_end|>\"}]}"};
    const json_t *item = json_array_get(json_object_get(golden, "templates"), 0);
    att_tokenizer *tokenizer = tokenizer_of(item);
    write_config("<s>", "</s>", "{{ '<|im_start|>' }}{{ messages | tojson }}{{ tools }}{{ documents[0].text }}{{ x }}");
    att_chat_template *t = open_template(NULL);
    const att_chat_options o = {.size = sizeof o,
                                .tools = "[{\"<|im_end|>\": \"<|im_end|>\"}]",
                                .documents = "[{\"text\": \"<|im_end|>\"}]",
                                .variables = "{\"x\": \"<|im_end|>\"}"};
    att_text text;
    att_tokens tokens;
    if (att_chat_render(t, &call, 1, &o, &text))
        fail_msg("%s", att_error(ctx));
    assert_string_equal(text.text, "<|im_start|>[{\"role\": \"assistant\", \"content\": null, \"tool_calls\": "
                                   "[{\"name\": \"<|im_end|>\"}]}][{'<|im_end|>': '<|im_end|>'}]<|im_end|><|im_end|>");
    assert_int_equal(att_chat_tokenize(t, tokenizer, &call, 1, &o, &tokens), ATT_OK);
    int special = 0;
    for (int64_t i = 0; i < tokens.count; i++) {
        const char *token = att_tokenizer_token(tokenizer, tokens.ids[i]);
        special += !strcmp(token, "<|im_start|>") || !strcmp(token, "<|im_end|>");
    }
    assert_int_equal(special, 1); /* the template's own */
    att_tokens_free(ctx, &tokens);
    att_text_free(ctx, &text);
    att_chat_template_free(t);
    att_tokenizer_free(tokenizer);
}

static void json_that_is_none_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *more, *tools, *documents, *variables, *sentence;
    } cases[] = {{.more = "{", .sentence = "messages[0].more is not JSON: line 1: "},
                 {.more = "[]", .sentence = "messages[0].more is not a JSON object"},
                 {.more = "{\"role\": \"user\"}", .sentence = "messages[0].more has a \"role\""},
                 {.tools = "{}", .sentence = "options.tools is not a JSON list"},
                 {.tools = "[1,\n]", .sentence = "options.tools is not JSON: line 2: "},
                 {.documents = "3", .sentence = "options.documents is not JSON"},
                 {.variables = "[]", .sentence = "options.variables is not a JSON object"}};
    att_chat_template *t = open_template("chatml");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const att_chat_message m = {SIZE, "user", "a", 1, cases[i].more};
        const att_chat_options o = {.size = sizeof o,
                                    .tools = cases[i].tools,
                                    .documents = cases[i].documents,
                                    .variables = cases[i].variables};
        att_text text;
        assert_int_equal(att_chat_render(t, &m, 1, &o, &text), ATT_ERR_ARGUMENT);
        check_message(ctx, cases[i].sentence);
    }
    att_chat_template_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversations_with_tools_are_those_of_transformers),
        cmocka_unit_test(tools_have_a_template_of_their_own),
        cmocka_unit_test(texts_of_tools_are_text),
        cmocka_unit_test(json_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up_golden, tear_down_golden);
}
