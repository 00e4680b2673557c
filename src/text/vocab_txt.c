/* The older layout: tokens in vocab.txt, settings in tokenizer_config.json and special_tokens_map.json. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_file.h"
#include "text/utf8.h"
#include "text/wordpiece.h"

static att_status read_lines(const att_text_file *f, att_token_list *list)
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
        const att_status s = att_token_list_add(list, (att_trie_entry){line, bytes, number});
        if (s)
            return s;
        line = newline ? newline + 1 : end;
    }
    return ATT_OK;
}

/* ---- settings */

typedef struct layout {
    const att_token_list *list; /* sorted */
    att_settings config;        /* tokenizer_config.json; has the first error */
    att_settings map;           /* special_tokens_map.json */
    json_t *root;               /* the result: tokenizer.json without model.vocab */
} layout;

/* Unsupported settings that would change ids. */
static void refuse_others(att_settings *config)
{
    static const char *const classes[] = {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer",
                                          "DistilBertTokenizerFast"};
    const char *class = att_settings_text(config, "tokenizer_class", classes[0]);
    bool known = false;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        known |= !strcmp(class, classes[i]);
    if (!known)
        att_settings_unsupported(config, "tokenizer_class", "BertTokenizer");
    att_settings_only_bool(config, "do_basic_tokenize", true);
    att_settings_only_empty(config, "never_split");
}

static void check_made(layout *l, bool made)
{
    if (!made)
        att_settings_fail(&l->config, ATT_ERR_MEMORY, "out of memory");
}

/* Adds a special token, which must be in the vocabulary, to root.added_tokens; returns its id. */
static int32_t add_token(layout *l, const char *content)
{
    const att_trie_entry wanted = {content, strlen(content), 0};
    const size_t n = l->list->count;
    const att_trie_entry *found = n ? bsearch(&wanted, l->list->entry, n, sizeof wanted, att_trie_order) : NULL;
    const int32_t id = found ? found->id : ATT_NO_TOKEN;
    if (id == ATT_NO_TOKEN)
        att_settings_fail(&l->config, ATT_ERR_FORMAT, "the special token \"%.80s\" is not in vocab.txt", content);
    json_t *entry = json_pack("{s:f, s:s, s:b}", "id", (double)id, "content", content, "special", 1);
    check_made(l, json_array_append_new(json_object_get(l->root, "added_tokens"), entry) == 0);
    return id;
}

static void read_special_tokens(layout *l)
{
    static const char *const names[][2] = {{"unk_token", "[UNK]"},
                                           {"cls_token", "[CLS]"},
                                           {"sep_token", "[SEP]"},
                                           {"pad_token", "[PAD]"},
                                           {"mask_token", "[MASK]"}};
    enum { UNK, CLS, SEP, N = sizeof names / sizeof names[0] };
    const char *content[N];
    int32_t id[N];
    att_config_copy(l->root, &l->config, &l->map);
    for (int i = 0; i < N; i++) {
        content[i] = att_special_token(&l->config, &l->map, names[i][0], names[i][1]);
        id[i] = add_token(l, content[i]);
        json_t *text = json_string(content[i]);
        check_made(l, att_config_write(l->root, names[i][0], text));
        json_decref(text);
    }
    json_t *post = json_pack("{s:s, s:[s, f], s:[s, f]}", "type", "BertProcessing", "cls", content[CLS],
                             (double)id[CLS], "sep", content[SEP], (double)id[SEP]);
    json_t *model = json_object_get(l->root, "model");
    check_made(l, json_object_set_new(l->root, "post_processor", post) == 0 &&
                      json_object_set_new(model, "unk_token", json_string(content[UNK])) == 0);
    const json_t *more = att_settings_list(&l->config, "additional_special_tokens", false);
    for (size_t i = 0; i < json_array_size(more); i++)
        add_token(l, att_token_content(&l->config, "additional_special_tokens", json_array_get(more, i)));
}

/* The arguments of the constructor of BertTokenizer, with its defaults. */
static void make_root(layout *l)
{
    const bool lower = att_settings_bool(&l->config, "do_lower_case", true);
    const bool ideographs = att_settings_bool(&l->config, "tokenize_chinese_chars", true);
    const bool strip = att_settings_bool(&l->config, "strip_accents", lower);
    l->root =
        json_pack("{s:[], s:{s:s, s:b, s:b, s:b, s:b}, s:{s:s}, s:{s:s, s:s, s:b}, s:{s:s, s:s, s:f, s:{}}}",
                  "added_tokens", "normalizer", "type", "BertNormalizer", "clean_text", 1, "handle_chinese_chars",
                  ideographs, "lowercase", lower, "strip_accents", strip, "pre_tokenizer", "type", "BertPreTokenizer",
                  "decoder", "type", "WordPiece", "prefix", "##", "cleanup", 1, "model", "type", "WordPiece",
                  "continuing_subword_prefix", "##", "max_input_chars_per_word", 100.0, "vocab");
    check_made(l, l->root);
}

att_status att_read_vocab_txt(const att_text_file *f, const char *folder, att_token_list *list, att_settings *settings)
{
    layout l = {.list = list};
    const att_status s = read_lines(f, list);
    if (s)
        return s;
    if (list->count > 0)
        qsort(list->entry, list->count, sizeof *list->entry, att_trie_order);
    att_settings_read(&l.config, f->ctx, folder, "tokenizer_config.json", true);
    att_special_tokens_map_read(&l.config, folder, &l.map);
    refuse_others(&l.config);
    make_root(&l);
    read_special_tokens(&l);
    att_settings_init(settings, f->ctx, f->path, l.root);
    settings->status = l.config.status;
    att_settings_close(&l.config);
    att_settings_close(&l.map);
    return settings->status;
}
