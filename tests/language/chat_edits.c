/* Chat templates that are not quite those that attend knows: what a pattern skips may change no conversation. */
#include "attend_language.h"
#include "fixtures/check.h"
#include "fixtures/tokenizer.h"

#include <jansson.h>

static char *read_template(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "tests/golden/chat/%s.jinja", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 16);
    assert_in_range(fread(text, 1, 1 << 16, f), 1, (1 << 16) - 1);
    fclose(f);
    return text;
}

/* Is the template with `insert` before the first `before` recognized? */
static bool is_known(const char *name, const char *before, const char *insert)
{
    char *text = read_template(name), *at = strstr(text, before);
    if (!at)
        fail_msg("%s has no %s", name, before);
    json_t *root = json_object();
    char path[200], *edited = calloc(1, strlen(text) + strlen(insert) + 1);
    memcpy(edited, text, (size_t)(at - text));
    strcat(strcat(edited, insert), at);
    json_object_set_new(root, "chat_template", json_string(edited));
    json_object_set_new(root, "bos_token", json_string("<s>"));
    json_object_set_new(root, "eos_token", json_string("</s>"));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder.path);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    free(edited);
    free(text);
    att_chat_template *t = NULL;
    const att_status s = att_chat_template_open(ctx, folder.path, NULL, NULL, &t);
    const bool known = t && strcmp(att_chat_template_name(t), "jinja") != 0;
    att_chat_template_free(t);
    assert_true(s == ATT_OK || s == ATT_ERR_FORMAT);
    return known;
}

static void an_edit_that_changes_a_conversation_is_run_as_a_program(void **state)
{
    (void)state;
    static const struct {
        const char *name, *before, *insert;
    } edits[] = {
        {"qwen3", "{%- if message.content is string %}", "{{ \"EXTRA\" }}"},
        {"qwen3", "{%- set ns = namespace", "{%- set messages = messages[1:] %}"},
        {"qwen3", "{%- set ns.multi_step_tool = false %}", "{%- set ns.last_query_index = 0 %}"},
        {"qwen3", "{%- set reasoning_content = '' %}", "{{ 'x' }}"},
        {"qwen3", "{%- if message.tool_calls %}", "{{ content }}"},
        {"qwen3", "{%- if message.tool_calls %}", "{%- if true %}{{ content }}{%- endif %}"},
        {"qwen2.5", "{%- for tool in tools %}", "{%- endif %}{{ 'x' }}{%- if tools %}"},
        {"qwen2.5", "{%- for tool in tools %}", "{%- else %}{{ 'x' }}"},
        {"mistral-nemo", "{%- set ns.index", "x"},
        {"mistral-nemo", "{%- set user_messages", "{%- set bos_token = '' %}"},
        {"mistral-nemo", "{%- if tools is not none and", "{{- message.content }}"},
        {"llama3.2", "{%- if not tools is defined %}", "{%- set tools = [1] %}"},
        {"llama3.2", "{%- if messages[0]['role']", "{{ date_string }}"},
        {"llama3.2", "{%- if tools is not none %}", "and so on "},
        {"gemma3", "{%- elif message['content'] is iterable", "{{ message['content'] }}"},
        {"phi4-mini", "{% if message['role'] == 'system' and", "{% if true %}x{% endif %}"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        if (!is_known(edits[i].name, edits[i].before, ""))
            fail_msg("%s is not known", edits[i].name);
        if (is_known(edits[i].name, edits[i].before, edits[i].insert))
            fail_msg("%s with %s before %s is taken for the original", edits[i].name, edits[i].insert, edits[i].before);
    }
}

static void an_edit_of_what_tools_get_or_of_a_comment_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *name, *before, *insert;
    } edits[] = {
        {"qwen3", "{%- for tool in tools %}",
         "{{ 'x' }}{%- if a %}{%- for b in c %}{{ b }}{%- endfor %}{%- else %}y{% endif %}"},
        {"qwen2.5", "{%- for tool_call in message.tool_calls %}", "{{ 'x' }}{# a comment #}"},
        {"mistral-nemo", "{{- \"[AVAILABLE_TOOLS]", "{{- ' %} }} ' }}"},
        {"llama3.2", "{{- \"Environment: ipython", "x"},
        {"llama3.2", "{%- if not tools_in_user_message is defined %}", "{#- nothing #}"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
        if (!is_known(edits[i].name, edits[i].before, edits[i].insert))
            fail_msg("%s with %s before %s is not known", edits[i].name, edits[i].insert, edits[i].before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_that_changes_a_conversation_is_run_as_a_program),
        cmocka_unit_test(an_edit_of_what_tools_get_or_of_a_comment_is_none),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
