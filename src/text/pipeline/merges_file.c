/* Converts vocab.json and merges.txt, the older files of byte-level BPE, to the settings of tokenizer.json, by the
 * class in tokenizer_config.json. */
#include <stdlib.h>
#include <string.h>

#include "text/pipeline/pipeline.h"
#include "text/utf8.h"

typedef struct layout {
    att_settings config, map;
    const att_token_list *list; /* sorted by text */
    json_t *root;
} layout;

static void check_made(layout *l, bool made)
{
    if (!made && !l->config.status)
        l->config.status = att_fail(l->config.ctx, ATT_ERR_MEMORY, "%s: out of memory", l->config.path);
}

static json_t *added_tokens(const layout *l) { return json_object_get(l->root, "added_tokens"); }

/* Returns the entry of a token in root.added_tokens; NULL: none. */
static json_t *find_added(const layout *l, const char *token)
{
    size_t i;
    json_t *entry;
    json_array_foreach(added_tokens(l), i, entry)
    {
        const char *content = json_string_value(json_object_get(entry, "content"));
        if (content && strcmp(content, token) == 0)
            return entry;
    }
    return NULL;
}

static int32_t id_of(const layout *l, const char *token)
{
    const att_trie_entry wanted = {token, strlen(token), 0};
    const size_t n = l->list->count;
    const att_trie_entry *found = n ? bsearch(&wanted, l->list->entry, n, sizeof wanted, att_trie_order) : NULL;
    const json_t *added = find_added(l, token);
    return found ? found->id : added ? (int32_t)json_number_value(json_object_get(added, "id")) : ATT_NO_TOKEN;
}

/* Makes a token special, which must be in the vocabulary or among the added ones. */
static void add_special(layout *l, const char *token, bool lstrip)
{
    const int32_t id = id_of(l, token);
    if (id == ATT_NO_TOKEN)
        att_settings_fail(&l->config, ATT_ERR_FORMAT, "the special token \"%.80s\" is not in vocab.json", token);
    json_t *entry = find_added(l, token);
    if (entry)
        check_made(l, json_object_set_new(entry, "special", json_true()) == 0 &&
                          json_object_set_new(entry, "normalized", json_false()) == 0);
    else
        check_made(l,
                   json_array_append_new(added_tokens(l), json_pack("{s:f, s:s, s:b, s:b}", "id", (double)id, "content",
                                                                    token, "special", 1, "lstrip", lstrip)) == 0);
}

/* ---- added tokens that the class does not know of */

/* Reads added_tokens.json: {"<|user|>": 50257}. */
static void read_added_file(layout *l, const char *folder)
{
    att_settings s;
    const char *token;
    json_t *id;
    att_settings_read(&s, l->config.ctx, folder, "added_tokens.json", false);
    json_object_foreach(s.root, token, id)
    {
        json_t *entry = json_pack("{s:O, s:s, s:b}", "id", id, "content", token, "special", 0);
        check_made(l, json_array_append_new(added_tokens(l), entry) == 0);
    }
    if (s.status && !l->config.status)
        l->config.status = s.status;
    att_settings_close(&s);
}

/* Reads {"50257": {"content": "<|user|>", "lstrip": false, ...}}. */
static void read_added_decoder(layout *l)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)att_settings_get(&l->config, "added_tokens_decoder"), key, item)
    {
        const char *content = json_string_value(json_object_get(item, "content"));
        if (!json_is_object(item) || !content || find_added(l, content))
            continue;
        json_t *entry = json_copy(item);
        const bool numbered = json_object_set_new(entry, "id", json_real(strtod(key, NULL))) == 0;
        check_made(l, numbered && json_array_append_new(added_tokens(l), entry) == 0);
        if (!numbered)
            json_decref(entry);
    }
}

/* Reads the special tokens that the settings name. */
static void read_named(layout *l)
{
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                       "cls_token", "sep_token", "mask_token"};
    const att_settings *both[] = {&l->config, &l->map};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *token = att_special_token(&l->config, &l->map, keys[i], "");
        if (*token)
            add_special(l, token, false);
    }
    for (int k = 0; k < 2; k++) {
        const json_t *more = att_settings_get(both[k], "additional_special_tokens");
        for (size_t i = 0; i < json_array_size(more); i++)
            add_special(l, att_token_content(&l->config, "additional_special_tokens", json_array_get(more, i)), false);
    }
}

/* ---- classes; each sets normalizer, pre_tokenizer, decoder and post_processor, and returns the end of words */

static const char *token_of(layout *l, const char *key, const char *otherwise)
{
    return att_special_token_write(&l->config, &l->map, l->root, key, otherwise);
}

static json_t *byte_level(layout *l)
{
    const bool prefix = att_settings_bool(&l->config, "add_prefix_space", false);
    return json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", prefix, "trim_offsets", 1);
}

static void make_gpt2(layout *l)
{
    static const char end[] = "<|endoftext|>";
    add_special(l, token_of(l, "unk_token", end), false);
    token_of(l, "bos_token", end);
    token_of(l, "eos_token", end);
    check_made(l, json_object_set_new(l->root, "pre_tokenizer", byte_level(l)) == 0 &&
                      json_object_set_new(l->root, "decoder", byte_level(l)) == 0);
}

static void make_roberta(layout *l)
{
    const char *cls = token_of(l, "cls_token", "<s>"), *sep = token_of(l, "sep_token", "</s>");
    const char *others[] = {cls, sep, token_of(l, "unk_token", "<unk>"), token_of(l, "pad_token", "<pad>")};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        add_special(l, others[i], false);
    const json_t *mask = att_special_token_value(&l->config, &l->map, "mask_token");
    add_special(l, token_of(l, "mask_token", "<mask>"), json_is_true(json_object_get(mask, "lstrip")));
    token_of(l, "bos_token", cls);
    token_of(l, "eos_token", sep);
    json_t *post = json_pack("{s:s, s:[s, f], s:[s, f], s:b, s:b}", "type", "RobertaProcessing", "cls", cls,
                             (double)id_of(l, cls), "sep", sep, (double)id_of(l, sep), "trim_offsets", 1,
                             "add_prefix_space", att_settings_bool(&l->config, "add_prefix_space", false));
    check_made(l, json_object_set_new(l->root, "pre_tokenizer", byte_level(l)) == 0 &&
                      json_object_set_new(l->root, "decoder", byte_level(l)) == 0 &&
                      json_object_set_new(l->root, "post_processor", post) == 0);
}

static void make_clip(layout *l)
{
    static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";
    const char *begin = token_of(l, "bos_token", "<|startoftext|>"), *end = token_of(l, "eos_token", "<|endoftext|>");
    add_special(l, begin, false);
    add_special(l, end, false);
    token_of(l, "unk_token", end);
    token_of(l, "pad_token", end);
    json_t *normalizer =
        json_pack("{s:s, s:[{s:s}, {s:s, s:{s:s}, s:s}, {s:s}]}", "type", "Sequence", "normalizers", "type", "NFC",
                  "type", "Replace", "pattern", "Regex", "\\s+", "content", " ", "type", "Lowercase");
    json_t *pre = json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, {s:s, s:b, s:b}]}", "type", "Sequence", "pretokenizers",
                            "type", "Split", "pattern", "Regex", pattern, "behavior", "Removed", "invert", 1, "type",
                            "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1);
    json_t *post =
        json_pack("{s:s, s:[s, f], s:[s, f], s:b, s:b}", "type", "RobertaProcessing", "cls", begin,
                  (double)id_of(l, begin), "sep", end, (double)id_of(l, end), "trim_offsets", 0, "add_prefix_space", 0);
    /* As in the class, the end of a word becomes a space, except at the end of the text. */
    json_t *decoder = json_pack("{s:s, s:[{s:s, s:b, s:b}, {s:s, s:{s:s}, s:s}, {s:s, s:s, s:f, s:f}]}", "type",
                                "Sequence", "decoders", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                                "type", "Replace", "pattern", "String", "</w>", "content", " ", "type", "Strip",
                                "content", " ", "start", (double)INT32_MAX, "stop", (double)INT32_MAX);
    json_t *model = json_object_get(l->root, "model");
    check_made(l, json_object_set_new(l->root, "normalizer", normalizer) == 0 &&
                      json_object_set_new(l->root, "pre_tokenizer", pre) == 0 &&
                      json_object_set_new(l->root, "decoder", decoder) == 0 &&
                      json_object_set_new(l->root, "post_processor", post) == 0 &&
                      json_object_set_new(model, "end_of_word_suffix", json_string("</w>")) == 0 &&
                      json_object_set_new(model, "unk_token", json_string(end)) == 0);
}

/* ---- */

static void read_merges(layout *l, const char *folder)
{
    att_text_file f;
    json_t *merges = json_object_get(json_object_get(l->root, "model"), "merges");
    const att_status s = att_text_file_read(&f, l->config.ctx, folder, "merges.txt", true);
    if (s && !l->config.status)
        l->config.status = s;
    int64_t number = 0;
    for (char *line = l->config.status ? NULL : f.text, *next; line && *line && !l->config.status; line = next) {
        const size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        const size_t bytes = length > 0 && line[length - 1] == '\r' ? length - 1 : length;
        number++;
        if (bytes == 0 || (number == 1 && strncmp(line, "#version", 8) == 0))
            continue;
        const char *space = memchr(line, ' ', bytes);
        if (!space || memchr(space + 1, ' ', (size_t)(line + bytes - space - 1)) || !att_utf8_valid(line, bytes))
            l->config.status = att_fail(l->config.ctx, ATT_ERR_FORMAT, "%s: line %lld is not two tokens and a space",
                                        f.path, (long long)number);
        else
            check_made(l, json_array_append_new(merges, json_stringn(line, bytes)) == 0);
    }
    att_text_file_free(&f);
}

static void make_root(layout *l, const char *folder)
{
    static const struct {
        const char *class;
        void (*make)(layout *l);
    } classes[] = {{"GPT2Tokenizer", make_gpt2},       {"GPT2TokenizerFast", make_gpt2},
                   {"RobertaTokenizer", make_roberta}, {"RobertaTokenizerFast", make_roberta},
                   {"CLIPTokenizer", make_clip},       {"CLIPTokenizerFast", make_clip}};
    const char *class = att_settings_text(&l->config, "tokenizer_class", "GPT2Tokenizer");
    l->root = json_pack("{s:[], s:{s:s, s:[], s:{}}}", "added_tokens", "model", "type", "BPE", "merges", "vocab");
    check_made(l, l->root);
    att_settings_only_bool(&l->config, "add_bos_token", false);
    att_settings_only_bool(&l->config, "add_eos_token", false);
    att_config_copy(l->root, &l->config, &l->map);
    read_added_file(l, folder);
    read_added_decoder(l);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(class, classes[i].class) == 0) {
            classes[i].make(l);
            read_named(l);
            return;
        }
    att_settings_unsupported(&l->config, "tokenizer_class", "GPT2Tokenizer, RobertaTokenizer or CLIPTokenizer");
}

att_status att_read_merges(att_text_file *f, const char *folder, att_token_list *list, att_settings *settings)
{
    layout l = {.list = list};
    const att_status s = att_read_token_map(f, list);
    if (s)
        return s;
    if (list->count > 0)
        qsort(list->entry, list->count, sizeof *list->entry, att_trie_order);
    att_settings_read(&l.config, f->ctx, folder, "tokenizer_config.json", false);
    att_settings_read(&l.map, f->ctx, folder, "special_tokens_map.json", false);
    if (l.map.status && !l.config.status)
        l.config.status = l.map.status;
    make_root(&l, folder);
    read_merges(&l, folder);
    att_settings_init(settings, f->ctx, f->path, l.root);
    settings->status = l.config.status;
    att_settings_close(&l.config);
    att_settings_close(&l.map);
    return settings->status;
}
