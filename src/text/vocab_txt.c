/* The older layout: vocab.txt for the tokens, tokenizer_config.json and special_tokens_map.json for the settings. */
#include <string.h>

#include "text/tokenizer_file.h"
#include "text/utf8.h"
#include "text/wordpiece.h"

att_status att_token_list_add(att_token_list *list, att_token_entry entry)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 1 << 15;
        att_token_entry *grown = att_alloc(list->ctx, capacity, sizeof *grown);
        if (!grown)
            return ATT_ERR_MEMORY;
        if (list->count > 0)
            memcpy(grown, list->entry, list->count * sizeof *grown);
        att_free(list->ctx, list->entry);
        list->entry = grown;
        list->capacity = capacity;
    }
    list->entry[list->count++] = entry;
    return ATT_OK;
}

void att_token_list_free(att_token_list *list)
{
    att_free(list->ctx, list->entry);
    list->entry = NULL;
}

att_status att_read_vocab_txt(att_text_file *f, att_token_list *list)
{
    const char *line = f->text, *end = f->text + f->bytes;
    for (int number = 0; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;
        size_t bytes = (size_t)(line_end - line);
        if (bytes > 0 && line[bytes - 1] == '\r')
            bytes--;
        if (number >= ATT_MAX_VOCABULARY)
            return att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s: has more than %d lines", f->path, ATT_MAX_VOCABULARY);
        if (bytes == 0)
            return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: line %d is empty", f->path, number + 1);
        if (!att_utf8_valid(line, bytes) || memchr(line, 0, bytes))
            return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: line %d is not text in UTF-8", f->path, number + 1);
        att_status s = att_token_list_add(list, (att_token_entry){line, bytes, number});
        if (s != ATT_OK)
            return s;
        line = newline ? newline + 1 : end;
    }
    return ATT_OK;
}

/* ---- settings */

typedef struct settings {
    att_ctx *ctx;
    const att_token_list *list;
    const char *path;  /* of tokenizer_config.json */
    json_t *config;    /* tokenizer_config.json */
    const json_t *map; /* special_tokens_map.json, or NULL */
    json_t *root;      /* what is made: tokenizer.json without model.vocab */
} settings;

static att_status no_memory(const settings *f)
{
    return att_fail(f->ctx, ATT_ERR_MEMORY, "%s: out of memory", f->path);
}

/* Settings that change the ids and that nobody uses. */
static att_status refuse_others(const settings *f)
{
    static const char *const classes[] = {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer",
                                          "DistilBertTokenizerFast"};
    const json_t *class = json_object_get(f->config, "tokenizer_class");
    const json_t *basic = json_object_get(f->config, "do_basic_tokenize");
    const json_t *never = json_object_get(f->config, "never_split");
    bool known = !class;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        known |= json_is_string(class) && strcmp(json_string_value(class), classes[i]) == 0;
    const char *key = !known                          ? "tokenizer_class"
                      : basic && !json_is_true(basic) ? "do_basic_tokenize"
                      : never && !json_is_null(never) && !(json_is_array(never) && json_array_size(never) == 0)
                          ? "never_split"
                          : NULL;
    return !key ? ATT_OK
                : att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s: %s is %s, which is not supported beside vocab.txt",
                           f->path, key, att_json_show(json_object_get(f->config, key)).text);
}

/* A token that is written as a text or as an object with a content. */
static att_status content_of(const settings *f, const char *key, const json_t *value, const char **content)
{
    const json_t *text = json_is_object(value) ? json_object_get(value, "content") : value;
    if (!json_is_string(text) || json_string_length(text) == 0)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: \"%s\" has %s, not a token", f->path, key,
                        att_json_show(value).text);
    *content = json_string_value(text);
    return ATT_OK;
}

/* Adds a special token, which the vocabulary must have, to root.added_tokens. */
static att_status add_token(const settings *f, const char *content, int32_t *id)
{
    *id = ATT_NO_TOKEN;
    for (size_t i = 0; i < f->list->count && *id == ATT_NO_TOKEN; i++) {
        const att_token_entry *e = &f->list->entry[i];
        if (e->bytes == strlen(content) && memcmp(e->text, content, e->bytes) == 0)
            *id = e->id;
    }
    if (*id == ATT_NO_TOKEN)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the special token \"%s\" is not in vocab.txt", f->path, content);
    json_t *entry = json_pack("{s:f, s:s, s:b}", "id", (double)*id, "content", content, "special", 1);
    return json_array_append_new(json_object_get(f->root, "added_tokens"), entry) == 0 ? ATT_OK : no_memory(f);
}

static att_status read_special_tokens(const settings *f)
{
    static const char *const names[][2] = {{"unk_token", "[UNK]"},
                                           {"cls_token", "[CLS]"},
                                           {"sep_token", "[SEP]"},
                                           {"pad_token", "[PAD]"},
                                           {"mask_token", "[MASK]"}};
    enum { UNK, CLS, SEP, N = sizeof names / sizeof names[0] };
    const char *content[N];
    int32_t id[N];
    att_status s;
    for (int i = 0; i < N; i++) {
        const json_t *value = json_object_get(f->config, names[i][0]);
        if (!value || json_is_null(value))
            value = json_object_get(f->map, names[i][0]);
        content[i] = names[i][1];
        if (value && !json_is_null(value) && (s = content_of(f, names[i][0], value, &content[i])))
            return s;
        if ((s = add_token(f, content[i], &id[i])))
            return s;
    }
    json_t *post = json_pack("{s:s, s:[s, f], s:[s, f]}", "type", "BertProcessing", "cls", content[CLS],
                             (double)id[CLS], "sep", content[SEP], (double)id[SEP]);
    json_t *model = json_object_get(f->root, "model");
    return json_object_set_new(f->root, "post_processor", post) == 0 &&
                   json_object_set_new(model, "unk_token", json_string(content[UNK])) == 0
               ? ATT_OK
               : no_memory(f);
}

static att_status read_more_tokens(const settings *f)
{
    static const char *const key = "additional_special_tokens";
    json_t *more, *value;
    size_t i;
    att_status s = att_json_get(f->ctx, f->path, "the file", f->config, key, JSON_ARRAY, false, &more);
    json_array_foreach(more, i, value)
    {
        const char *content;
        int32_t id;
        if ((s = content_of(f, key, value, &content)) || (s = add_token(f, content, &id)))
            break;
    }
    return s;
}

/* The constructor arguments of the class BertTokenizer and their defaults. */
static att_status make_root(settings *f)
{
    json_t *lower, *cjk, *strip;
    att_status s;
    if ((s = att_json_get(f->ctx, f->path, "the file", f->config, "do_lower_case", JSON_TRUE, false, &lower)) ||
        (s = att_json_get(f->ctx, f->path, "the file", f->config, "tokenize_chinese_chars", JSON_TRUE, false, &cjk)) ||
        (s = att_json_get(f->ctx, f->path, "the file", f->config, "strip_accents", JSON_TRUE, false, &strip)))
        return s;
    f->root = json_pack("{s:[], s:{s:s, s:b, s:b, s:b, s:O?}, s:{s:s}, s:{s:s, s:s, s:f, s:{}}}", "added_tokens",
                        "normalizer", "type", "BertNormalizer", "clean_text", 1, "handle_chinese_chars",
                        !json_is_false(cjk), "lowercase", !json_is_false(lower), "strip_accents", strip,
                        "pre_tokenizer", "type", "BertPreTokenizer", "model", "type", "WordPiece",
                        "continuing_subword_prefix", "##", "max_input_chars_per_word", 100.0, "vocab");
    return f->root ? ATT_OK : no_memory(f);
}

att_status att_read_tokenizer_config(att_ctx *ctx, const char *folder, const att_token_list *list, json_t **out)
{
    att_text_file config = {.ctx = ctx}, map = {.ctx = ctx};
    json_t *map_json = NULL;
    settings f = {ctx, list, config.path, NULL, NULL, NULL};
    *out = NULL;
    att_status s;
    if ((s = att_text_file_read(&config, ctx, folder, "tokenizer_config.json", true)) == ATT_OK &&
        (s = att_text_file_read(&map, ctx, folder, "special_tokens_map.json", false)) == ATT_OK &&
        (s = att_text_file_json(&config, 0, 0, &f.config)) == ATT_OK && map.text)
        s = att_text_file_json(&map, 0, 0, &map_json);
    f.map = map_json;
    if (s == ATT_OK && (s = refuse_others(&f)) == ATT_OK && (s = make_root(&f)) == ATT_OK &&
        (s = read_special_tokens(&f)) == ATT_OK)
        s = read_more_tokens(&f);
    if (s == ATT_OK)
        *out = f.root;
    else
        json_decref(f.root);
    json_decref(f.config);
    json_decref(map_json);
    att_text_file_free(&config);
    att_text_file_free(&map);
    return s;
}
