/* A vocabulary from a list of tokens and ids. */
#include <stdlib.h>
#include <string.h>

#include "util/util.h"
#include "text/tokenizer_file.h"
#include "util/array.h"

att_status att_token_list_add(att_token_list *list, att_trie_entry entry)
{
    const att_status s = att_grow(list->ctx, &list->entry, sizeof entry, list->count, 1, &list->capacity);
    if (!s)
        list->entry[list->count++] = entry;
    return s;
}

void att_token_list_free(att_token_list *list)
{
    att_free(list->ctx, list->entry);
    att_free(list->ctx, list->score);
    list->entry = NULL;
    list->score = NULL;
}

/* Adds the bytes of the tokens to *bytes, and raises *size above their ids. */
static void measure(const att_token_list *list, int64_t *size, size_t *bytes)
{
    for (size_t i = 0; i < list->count; i++) {
        *size = att_max(*size, list->entry[i].id + 1);
        *bytes += list->entry[i].bytes;
    }
}

/* Checks that an id is unused. */
static bool is_free(att_settings *s, const att_vocabulary *v, int32_t id, const char *token, size_t bytes)
{
    const char *other = att_vocabulary_get(v, id);
    if (other)
        att_settings_fail(s, ATT_ERR_FORMAT, "tokens \"%.80s\" and \"%.*s\" have the same id %d", other,
                          bytes < 80 ? (int)bytes : 80, token, id);
    return !other;
}

void att_token_list_fill(const att_token_list *list, const att_token_list *more, att_settings *s, att_vocabulary *v)
{
    int64_t size = 0;
    size_t bytes = 0;
    measure(list, &size, &bytes);
    measure(more, &size, &bytes);
    if (size == 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "the vocabulary is empty");
    if (bytes > UINT32_MAX / 2)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "the tokens have %zu bytes, more than %u", bytes, UINT32_MAX / 2);
    if (!s->status)
        s->status = att_vocabulary_init(v, s->ctx, size, bytes);
    for (size_t i = 0; !s->status && i < list->count; i++) {
        const att_trie_entry *e = &list->entry[i];
        const int32_t other = att_vocabulary_find(v, e->text, e->bytes);
        if (other != ATT_NO_TOKEN)
            att_settings_fail(s, ATT_ERR_FORMAT, "token \"%.80s\" occurs twice, with ids %d and %d",
                              att_vocabulary_get(v, other), other < e->id ? other : e->id,
                              other < e->id ? e->id : other);
        else if (is_free(s, v, e->id, e->text, e->bytes) && !att_vocabulary_add(v, e->id, e->text, e->bytes))
            att_settings_fail(s, ATT_ERR_UNSUPPORTED, "more than %d tokens collide, as if on purpose", ATT_MAX_PROBES);
    }
}

void att_token_list_set_added(const att_token_list *added, att_settings *s, att_vocabulary *v)
{
    for (size_t i = 0; !s->status && i < added->count; i++) {
        const att_trie_entry *a = &added->entry[i];
        const int32_t id = att_vocabulary_find(v, a->text, a->bytes);
        if (id == ATT_NO_TOKEN && is_free(s, v, a->id, a->text, a->bytes))
            att_vocabulary_set(v, a->id, a->text, a->bytes);
        else if (id != ATT_NO_TOKEN && id != a->id)
            att_settings_fail(s, ATT_ERR_FORMAT, "token \"%.80s\" has id %d in added_tokens but %d in the vocabulary",
                              a->text, a->id, id);
    }
}

att_status att_token_list_trie(const att_token_list *list, att_trie *out)
{
    if (list->count > 0)
        qsort(list->entry, list->count, sizeof *list->entry, att_trie_order);
    return att_trie_init(out, list->ctx, list->entry, list->count);
}

const char *att_token_content(att_settings *s, const char *key, const json_t *value)
{
    const json_t *text = json_is_object(value) ? json_object_get(value, "content") : value;
    if (json_string_length(text) > 0)
        return json_string_value(text);
    att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" has %s, not a token", key, att_json_show(value).text);
    return "";
}

void att_special_tokens_map_read(att_settings *config, const char *folder, att_settings *map)
{
    *map = (att_settings){0};
    if (config->status || att_settings_has(config, "added_tokens_decoder"))
        return;
    att_settings_read(map, config->ctx, folder, "special_tokens_map.json", false);
    config->status = map->status;
}

const json_t *att_special_token_value(const att_settings *config, const att_settings *map, const char *key)
{
    const json_t *value = att_settings_get(map, key);
    return value ? value : att_settings_get(config, key);
}

const char *att_special_token(att_settings *config, const att_settings *map, const char *key, const char *otherwise)
{
    const json_t *value = att_special_token_value(config, map, key);
    return value ? att_token_content(config, key, value) : otherwise;
}

/* ---- what tokenizer_config.json states */

const char *const att_special_keys[ATT_TOKENS] = {
    [ATT_TOKEN_PAD] = "pad_token",  [ATT_TOKEN_UNK] = "unk_token", [ATT_TOKEN_BOS] = "bos_token",
    [ATT_TOKEN_EOS] = "eos_token",  [ATT_TOKEN_CLS] = "cls_token", [ATT_TOKEN_SEP] = "sep_token",
    [ATT_TOKEN_MASK] = "mask_token"};

/* Writes the special token of a key, a text; false: out of memory. */
static bool write_config(json_t *root, const char *key, const json_t *value)
{
    json_t *config = json_object_get(root, ATT_CONFIG_KEY);
    if (!json_is_object(config))
        config =
            json_object_set_new(root, ATT_CONFIG_KEY, json_object()) ? NULL : json_object_get(root, ATT_CONFIG_KEY);
    return config && json_object_set(config, key, (json_t *)(uintptr_t)value) == 0;
}

const char *att_special_token_write(att_settings *config, const att_settings *map, json_t *root, const char *key,
                                    const char *otherwise)
{
    const char *token = att_special_token(config, map, key, otherwise);
    json_t *text = json_string(token);
    if (!write_config(root, key, text))
        att_settings_fail(config, ATT_ERR_MEMORY, "out of memory");
    json_decref(text);
    return token;
}

void att_config_copy(json_t *root, att_settings *config, const att_settings *map)
{
    static const char clean_up[] = "clean_up_tokenization_spaces";
    const char *model = json_string_value(json_object_get(json_object_get(root, "model"), "type"));
    bool written = json_object_set_new(root, ATT_CONFIG_KEY, json_object()) == 0;
    for (int i = 0; i < ATT_TOKENS; i++) {
        const json_t *value = att_special_token_value(config, map, att_special_keys[i]);
        if (value && *att_token_content(config, att_special_keys[i], value))
            written &= write_config(root, att_special_keys[i],
                                    json_is_object(value) ? json_object_get(value, "content") : value);
    }
    if (model && !strcmp(model, "WordPiece") && att_settings_bool(config, clean_up, false))
        written &= write_config(root, clean_up, json_true());
    if (!written)
        att_settings_fail(config, ATT_ERR_MEMORY, "out of memory");
}
