/* Chat templates: the texts and ids of transformers, what is recognised and refused, hostile templates. */
#include "attend_language.h"
#include "check.h"
#include "model/chat.h"
#include "model/chat_jinja.h"
#include "model/text_lines.h"
#include "tokenizer_help.h"

#include <jansson.h>
#include <time.h>

enum { MAX_MESSAGES = 8 };

static json_t *golden; /* tests/golden/chat.json */

/* ---- templates and tokenizers */

static char *read_all(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The Jinja text of a golden template; that of Llama 3.2 with a date of its own instead of today's. */
static const char *jinja_of(const json_t *item)
{
    char path[256];
    snprintf(path, sizeof path, "tests/golden/chat/%s.jinja", text_of(item, "file"));
    char *text = read_all(path), *clock = text;
    while ((clock = strstr(clock, "strftime_now")))
        memcpy(clock, "strftime_not", 12);
    return text;
}

/* Writes tokenizer_config.json with the tokens, and with `text` as template unless it is NULL. */
static void write_config(const char *bos, const char *eos, const char *text)
{
    char path[256];
    json_t *root = json_object();
    if (bos)
        json_object_set_new(root, "bos_token", json_string(bos));
    if (eos)
        json_object_set_new(root, "eos_token", json_pack("{s:s}", "content", eos));
    if (text)
        json_object_set_new(root, "chat_template", json_string(text));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder.path);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
}

static att_chat_template *open_template(const char *name)
{
    att_chat_template *t;
    if (att_chat_template_open(ctx, folder.path, name, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* A folder with this template. */
static att_chat_template *template_of(const char *text)
{
    remove_file("chat_template.jinja");
    write_config("<s>", "</s>", text);
    return open_template(NULL);
}

static att_chat_template *open_golden(const json_t *item)
{
    remove_file("chat_template.jinja");
    write_config(text_of(item, "bos"), text_of(item, "eos"), jinja_of(item));
    return open_template(NULL);
}

/* The tokenizer of a golden template: one of pipeline/, with special tokens. */
static att_tokenizer *tokenizer_of(const json_t *item)
{
    char path[256];
    snprintf(path, sizeof path, "tests/golden/pipeline/%s.json", text_of(item, "tokenizer"));
    json_t *root = json_load_file(path, 0, NULL), *added = json_object_get(root, "added_tokens"), *id;
    const char *token;
    json_object_foreach(json_object_get(item, "special"), token, id)
        json_array_append_new(added, json_pack("{s:O,s:s,s:b,s:b,s:b,s:b,s:b}", "id", id, "content", token, "special",
                                               strstr(token, "think>") == NULL, "normalized", 0, "single_word", 0,
                                               "lstrip", 0, "rstrip", json_is_true(json_object_get(item, "rstrip"))));
    snprintf(path, sizeof path, "%s/tokenizer.json", folder.path);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    att_tokenizer *t;
    if (att_tokenizer_open(ctx, folder.path, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* ---- against transformers */

static int64_t messages_of(const json_t *conversation, att_chat_message messages[MAX_MESSAGES])
{
    const json_t *list = json_object_get(conversation, "messages");
    const size_t n = json_array_size(list);
    assert_in_range(n, 1, MAX_MESSAGES);
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_array_get(json_array_get(list, i), 1);
        messages[i] = (att_chat_message){json_string_value(json_array_get(json_array_get(list, i), 0)),
                                         json_string_value(text), json_string_length(text)};
    }
    return (int64_t)n;
}

static void check_conversation(const char *file, size_t number, const att_chat_template *t,
                               const att_tokenizer *tokenizer, const json_t *conversation, const char *want)
{
    att_chat_message messages[MAX_MESSAGES];
    const int64_t n = messages_of(conversation, messages);
    const bool reply = json_is_true(json_object_get(conversation, "reply"));
    att_text text;
    att_tokens tokens;
    char is[20];
    const att_status s = att_chat_render(t, messages, n, reply, &text);
    assert_int_equal(att_chat_encode(t, tokenizer, messages, n, reply, &tokens), s);
    if (!*want && s == ATT_ERR_ARGUMENT)
        return;
    if (s || !*want)
        fail_msg("%s, conversation %zu: %s", file, number, s ? att_error(ctx) : "no error, but transformers has one");
    uint32_t h = HASH_START;
    for (int64_t i = 0; i < tokens.count; i++)
        h = hash_int(h, (uint32_t)tokens.ids[i]);
    snprintf(is, sizeof is, "%08x%08x", hash_bytes(HASH_START, text.text, text.bytes), h);
    if (strcmp(is, want) != 0)
        fail_msg("%s, conversation %zu: the %s not those of transformers:\n%s", file, number,
                 strncmp(is, want, 8) ? "text is, hence the ids are," : "ids are", text.text);
    att_chat_text_free(t, &text);
    att_tokens_free(tokenizer, &tokens);
}

static void texts_and_ids_are_those_of_transformers(void **state)
{
    (void)state;
    const json_t *conversations = json_object_get(golden, "conversations"), *item;
    size_t i;
    json_array_foreach(json_object_get(golden, "templates"), i, item)
    {
        att_chat_template *t = open_golden(item);
        att_tokenizer *tokenizer = tokenizer_of(item);
        assert_string_equal(att_chat_template_name(t), text_of(item, "name"));
        assert_int_equal(json_array_size(conversations), 20);
        for (size_t k = 0; k < 20; k++)
            check_conversation(text_of(item, "file"), k, t, tokenizer, json_array_get(conversations, k),
                               json_string_value(json_array_get(json_object_get(item, "hashes"), k)));
        att_chat_template_free(t);
        att_tokenizer_free(tokenizer);
    }
}

static int set_up_golden(void **state)
{
    golden = json_load_file("tests/golden/chat.json", 0, NULL);
    return golden ? set_up(state) : -1;
}

static int tear_down_golden(void **state)
{
    json_decref(golden);
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_and_ids_are_those_of_transformers),
    };
    return cmocka_run_group_tests(tests, set_up_golden, tear_down_golden);
}
