/* Applies tokenizer_config.json to tokenizer.json, as the classes of tokenizers in `transformers` do: writes its
 * changes into the settings of tokenizer.json, which are then read as usual. */
#include "text/tokenizer_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct change {
    att_settings config;        /* tokenizer_config.json; has the first error */
    att_settings map;           /* special_tokens_map.json */
    json_t *root;               /* tokenizer.json without model.vocab */
    const att_token_list *list; /* model.vocab; Unigram's is in root */
    att_trie_entry *added;      /* [n_added], sorted; id: the index in added_tokens */
    size_t n_added;
    att_trie_entry *word; /* [words], sorted: tokens of the vocabulary, without id once they are added tokens; NULL: not
                           * needed yet */
    size_t words;
    int32_t next; /* the id of the next token that tokenizer.json lacks */
} change;

static void check_made(change *c, bool made)
{
    if (!made)
        att_settings_fail(&c->config, ATT_ERR_MEMORY, "out of memory");
}

static json_t *added_tokens(const change *c) { return json_object_get(c->root, "added_tokens"); }

static const char *content_of(const json_t *token) { return json_string_value(json_object_get(token, "content")); }

/* ---- tokens of tokenizer.json */

static att_trie_entry *find(const att_trie_entry *entries, size_t n, const char *text)
{
    const att_trie_entry wanted = {text, strlen(text), 0};
    return n ? bsearch(&wanted, entries, n, sizeof wanted, att_trie_order) : NULL;
}

static void index_added(change *c)
{
    const size_t n = json_array_size(added_tokens(c));
    att_free(c->config.ctx, c->added);
    c->n_added = 0;
    c->added = att_alloc(c->config.ctx, n + 1, sizeof *c->added);
    check_made(c, c->added);
    for (size_t i = 0; c->added && i < n; i++) {
        const json_t *text = json_object_get(json_array_get(added_tokens(c), i), "content");
        if (json_is_string(text))
            c->added[c->n_added++] = (att_trie_entry){json_string_value(text), json_string_length(text), (int32_t)i};
    }
    if (c->n_added)
        qsort(c->added, c->n_added, sizeof *c->added, att_trie_order);
}

/* Sorts the words and finds the next id: the size of the vocabulary, or the id after the last added token if that is
 * larger. */
static void index_words(change *c)
{
    const json_t *pieces = json_object_get(json_object_get(c->root, "model"), "vocab"), *item;
    size_t i;
    if (c->word)
        return;
    c->word = att_alloc(c->config.ctx, c->list->count + json_array_size(pieces) + 1, sizeof *c->word);
    check_made(c, c->word);
    if (!c->word)
        return;
    for (i = 0; i < c->list->count; i++)
        c->word[c->words++] = c->list->entry[i];
    json_array_foreach(pieces, i, item)
    {
        const json_t *text = json_array_get(item, 0);
        if (json_is_string(text))
            c->word[c->words++] = (att_trie_entry){json_string_value(text), json_string_length(text), (int32_t)i};
    }
    c->next = (int32_t)c->words;
    json_array_foreach(added_tokens(c), i, item)
    {
        const double id = json_number_value(json_object_get(item, "id"));
        if (id >= c->next && id < ATT_MAX_VOCABULARY)
            c->next = (int32_t)id + 1;
    }
    if (c->words)
        qsort(c->word, c->words, sizeof *c->word, att_trie_order);
}

/* ---- added tokens */

/* Returns whether a flag of a token is set. If the flag is missing, a special token is not normalized. */
static bool flag_of(const json_t *token, const char *flag, bool special)
{
    const json_t *value = json_object_get(token, flag);
    return !strcmp(flag, "special") ? special : value ? json_is_true(value) : !strcmp(flag, "normalized") && !special;
}

static const char *const flags[] = {"special", "normalized", "single_word", "lstrip", "rstrip"};
enum { N_FLAGS = sizeof flags / sizeof flags[0] };

static void set_flags(change *c, json_t *token, const json_t *from, bool special)
{
    for (int i = 0; i < N_FLAGS; i++)
        check_made(c, json_object_set_new(token, flags[i], json_boolean(flag_of(from, flags[i], special))) == 0);
}

/* Adds a token that tokenizer.json does not have as an added one: `word` of the vocabulary, or NULL, a new one. `from`
 * has its flags, or NULL. */
static void add_token(change *c, const char *content, att_trie_entry *word, const json_t *from, bool special)
{
    const int32_t id = word ? word->id : c->next++;
    json_t *token = json_pack("{s:f, s:s}", "id", (double)id, "content", content);
    if (word)
        word->id = ATT_NO_ID;
    if (token)
        set_flags(c, token, from, special);
    check_made(c, json_array_append_new(added_tokens(c), token) == 0);
}

/* An item of "added_tokens_decoder", such as "49152": {"content": "<new>", "lstrip": false, ...} */
typedef struct decoder_item {
    int64_t id;
    const char *content;
    const json_t *flags;
} decoder_item;

static int by_id(const void *a, const void *b)
{
    const decoder_item *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Applies an item: its flags take precedence, and tokens that tokenizer.json lacks are added in the order of their
 * ids. */
static void apply_item(change *c, const decoder_item *item)
{
    att_settings *s = &c->config;
    const bool special = json_is_true(json_object_get(item->flags, "special"));
    const att_trie_entry *known = find(c->added, c->n_added, item->content);
    json_t *token = known ? json_array_get(added_tokens(c), (size_t)known->id) : NULL;
    if (token) {
        set_flags(c, token, item->flags, special);
        return;
    }
    index_words(c);
    att_trie_entry *word = s->status ? NULL : find(c->word, c->words, item->content);
    const int32_t is = word ? word->id : c->next;
    if (!s->status && item->id != is)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"added_tokens_decoder\" has \"%.40s\" with id %lld, but in tokenizer.json it %s %d",
                          item->content, (long long)item->id, word ? "has" : "is missing, and the next free id is",
                          (int)is);
    if (!s->status)
        add_token(c, item->content, word, item->flags, special);
}

static decoder_item read_item(att_settings *s, const char *key, const json_t *value)
{
    char *end;
    const decoder_item item = {strtoll(key, &end, 10), content_of(value), value};
    if (!item.content || !*item.content || *end || end == key)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"added_tokens_decoder\" has \"%.20s\": %s, not an id and a token", key,
                          att_json_show(value).text);
    return item;
}

static void read_decoder(change *c)
{
    const char *key;
    json_t *value;
    att_settings *s = &c->config;
    const json_t *all = att_settings_get(s, "added_tokens_decoder");
    decoder_item *items = att_alloc(s->ctx, json_object_size(all) + 1, sizeof *items);
    size_t n = 0;
    check_made(c, items);
    if (all && !json_is_object(all))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"added_tokens_decoder\" is %s, not an object", att_json_show(all).text);
    json_object_foreach((json_t *)all, key, value) if (!s->status) items[n++] = read_item(s, key, value);
    if (n)
        qsort(items, n, sizeof *items, by_id);
    for (size_t i = 0; !s->status && i < n; i++)
        apply_item(c, &items[i]);
    att_free(s->ctx, items);
}

/* Reads a token that the settings name, a text or an object: it becomes a special token in the text, too. A token that
 * no vocabulary has is left out, because the model has no embedding of it. */
static void read_named(change *c, const char *key, const json_t *value)
{
    const char *content = value && !c->config.status ? att_token_content(&c->config, key, value) : "";
    if (!*content || find(c->added, c->n_added, content))
        return;
    index_words(c);
    att_trie_entry *word = c->config.status ? NULL : find(c->word, c->words, content);
    if (word && word->id != ATT_NO_ID)
        add_token(c, content, word, json_is_object(value) ? value : NULL, true);
}

static void read_all_named(change *c)
{
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
    const att_settings *from[] = {&c->config, &c->map};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        read_named(c, keys[i], att_special_token_value(&c->config, &c->map, keys[i]));
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
            size_t n;
            const char *name;
            json_t *item;
            const json_t *list = att_settings_get(from[k], lists[i]);
            if (list && !json_is_array(list) && !json_is_object(list))
                att_settings_fail(&c->config, ATT_ERR_FORMAT, "\"%s\" is %s, not a list of tokens", lists[i],
                                  att_json_show(list).text);
            json_array_foreach(list, n, item) read_named(c, lists[i], item);
            json_object_foreach((json_t *)list, name, item) read_named(c, lists[i], item);
        }
}

/* ---- a space before the text */

/* Returns a normalizer or pre-tokenizer that sets a prefix space; NULL: none. */
static json_t *find_prefix(json_t *step)
{
    static const char *const types[] = {"ByteLevel", "Metaspace", "Prepend"};
    static const char *const lists[] = {"normalizers", "pretokenizers"};
    const char *type = json_string_value(json_object_get(step, "type"));
    json_t *found = NULL, *item;
    size_t n;
    for (size_t i = 0; type && i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(type, types[i]))
            return step;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        json_array_foreach(json_object_get(step, lists[i]), n,
                           item) if (!found && json_is_object(item) && !json_object_get(item, lists[i])) found =
            find_prefix(item);
    return found;
}

static bool has_prefix(const json_t *step)
{
    const char *type = json_string_value(json_object_get(step, "type"));
    const char *scheme = json_string_value(json_object_get(step, "prepend_scheme"));
    if (scheme)
        return strcmp(scheme, "never") != 0;
    return !strcmp(type, "Prepend") || json_is_true(json_object_get(step, "add_prefix_space"));
}

/* The classes that read "add_prefix_space". For those of byte-level BPE a missing key means false. */
static const struct {
    const char *class;
    bool bytes, in_sequence;
} prefix_classes[] = {{"GPT2Tokenizer", true, false},
                      {"RobertaTokenizer", true, false},
                      {"Qwen2Tokenizer", true, true},
                      {"LlamaTokenizer", false, false}};

/* Returns whether a class is `name`, with or without "Fast". */
static bool is_class(const char *class, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(class, name, n) && (!class[n] || !strcmp(class + n, "Fast"));
}

static void read_prefix_space(change *c)
{
    static const char key[] = "add_prefix_space";
    const char *class = att_settings_text(&c->config, "tokenizer_class", "");
    json_t *normalizer = find_prefix(json_object_get(c->root, "normalizer"));
    json_t *pre = json_object_get(c->root, "pre_tokenizer"), *step = normalizer ? normalizer : find_prefix(pre);
    for (size_t i = 0; step && i < sizeof prefix_classes / sizeof prefix_classes[0]; i++) {
        const bool bytes = !strcmp(json_string_value(json_object_get(step, "type")), "ByteLevel");
        if (!is_class(class, prefix_classes[i].class) || bytes != prefix_classes[i].bytes)
            continue;
        const bool is = has_prefix(step), wanted = att_settings_bool(&c->config, key, !bytes && is);
        if (is != wanted && bytes && (step == pre || prefix_classes[i].in_sequence))
            check_made(c, json_object_set_new(step, key, json_boolean(wanted)) == 0);
        else if (is != wanted)
            att_settings_fail(&c->config, ATT_ERR_UNSUPPORTED,
                              "\"%s\" is %s, but tokenizer.json has the opposite, which is not supported", key,
                              att_json_show(att_settings_get(&c->config, key)).text);
    }
}

/* ---- classes that make their steps themselves, whatever tokenizer.json has */

/* The first charsmap in a normalizer; NULL: none. */
static json_t *find_charsmap(json_t *step)
{
    const char *type = json_string_value(json_object_get(step, "type"));
    json_t *found = type && !strcmp(type, "Precompiled") ? step : NULL, *item;
    size_t n;
    json_array_foreach(json_object_get(step, "normalizers"), n, item) found = found ? found : find_charsmap(item);
    return found;
}

/* XLM-R's and CamemBERT's: a charsmap; words, each after a U+2581 */
static void make_own_steps(change *c)
{
    static const char mark[] = "\xE2\x96\x81";
    json_t *charsmap = find_charsmap(json_object_get(c->root, "normalizer"));
    const char *scheme = att_settings_bool(&c->config, "add_prefix_space", true) ? "always" : "never";
    json_t *pre =
        json_pack("{s:s, s:[{s:s}, {s:s, s:s, s:s, s:b}]}", "type", "Sequence", "pretokenizers", "type",
                  "WhitespaceSplit", "type", "Metaspace", "replacement", mark, "prepend_scheme", scheme, "split", 1);
    json_t *decoder = json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement", mark, "prepend_scheme",
                                scheme, "split", 1);
    check_made(c, json_object_set_new(c->root, "normalizer", charsmap ? json_incref(charsmap) : json_null()) == 0 &&
                      json_object_set_new(c->root, "pre_tokenizer", pre) == 0 &&
                      json_object_set_new(c->root, "decoder", decoder) == 0);
}

static void read_own_steps(change *c, const char *folder)
{
    static const char *const classes[] = {"XLMRobertaTokenizer", "CamembertTokenizer"};
    const json_t *type = json_object_get(json_object_get(c->root, "model"), "type");
    if (!json_is_string(type) || strcmp(json_string_value(type), "Unigram") != 0)
        return;
    const att_class_name class = att_tokenizer_class(&c->config, folder);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (!strcmp(class.text, classes[i]))
            make_own_steps(c);
}

/* ---- all */

att_status att_tokenizer_config_apply(att_ctx *ctx, const char *folder, const att_token_list *list, json_t *root)
{
    change c = {.root = root, .list = list};
    att_settings_read(&c.config, ctx, folder, "tokenizer_config.json", false);
    att_special_tokens_map_read(&c.config, folder, &c.map);
    if (!added_tokens(&c) || json_is_null(added_tokens(&c)))
        check_made(&c, json_object_set_new(root, "added_tokens", json_array()) == 0);
    if (!c.config.status && json_is_array(added_tokens(&c))) {
        att_settings_only_bool(&c.config, "split_special_tokens", false);
        index_added(&c);
        read_decoder(&c);
        index_added(&c);
        read_all_named(&c);
        read_prefix_space(&c);
        read_own_steps(&c, folder);
        att_config_copy(root, &c.config, &c.map);
    }
    att_free(ctx, c.added);
    att_free(ctx, c.word);
    att_settings_close(&c.config);
    att_settings_close(&c.map);
    return c.config.status;
}

att_status att_truncation_side(att_ctx *ctx, const char *folder, const json_t *root, bool *left)
{
    static const char key[] = "truncation_side";
    static const char *const sides[] = {"right", "left"};
    const char *direction = json_string_value(json_object_get(json_object_get(root, "truncation"), "direction"));
    att_settings s;
    att_settings_read(&s, ctx, folder, "tokenizer_config.json", false);
    *left = direction && !strcmp(direction, "Left");
    if (!s.status && s.root && att_settings_has(&s, key))
        *left = att_settings_choice(&s, key, sides, 2, "left or right") == 1;
    att_settings_close(&s);
    return s.status;
}
