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

enum { UNK, CLS, SEP, PAD, MASK, N_SPECIAL };
static const char *const keys[N_SPECIAL] = {"unk_token", "cls_token", "sep_token", "pad_token", "mask_token"};

/* A class that reads vocab.txt. */
typedef struct vocab_class {
    const char *name;
    const char *token[N_SPECIAL]; /* the default special tokens */
    bool roberta; /* a pair has two separators between its texts, and the mask includes the space before it */
} vocab_class;
static const vocab_class classes[] = {
    {"BertTokenizer", {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"}, false},
    {"DistilBertTokenizer", {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"}, false},
    {"MPNetTokenizer", {"[UNK]", "<s>", "</s>", "<pad>", "<mask>"}, true},
};

typedef struct layout {
    const vocab_class *class;
    const att_token_list *list; /* sorted */
    att_settings config;        /* tokenizer_config.json; has the first error */
    att_settings map;           /* special_tokens_map.json */
    json_t *root;               /* the result: tokenizer.json without model.vocab */
} layout;

/* Finds the class of the tokenizer, otherwise that of the model, otherwise BERT's. */
static const vocab_class *find_class(att_settings *config, const char *folder)
{
    const att_class_name name = att_tokenizer_class(config, folder);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (!strcmp(name.text, classes[i].name))
            return &classes[i];
    if (*name.text)
        att_settings_fail(config, ATT_ERR_UNSUPPORTED,
                          "\"tokenizer_class\" is \"%.60s\", which is not supported with vocab.txt; BertTokenizer and "
                          "MPNetTokenizer are",
                          name.text);
    return &classes[0];
}

/* Unsupported settings that would change ids. */
static void refuse_others(att_settings *config)
{
    att_settings_only_bool(config, "do_basic_tokenize", true);
    att_settings_only_empty(config, "never_split");
}

static void check_made(layout *l, bool made)
{
    if (!made)
        att_settings_fail(&l->config, ATT_ERR_MEMORY, "out of memory");
}

/* Adds a special token, which must be in the vocabulary, to root.added_tokens; returns its id. */
static int32_t add_token(layout *l, const char *content, bool lstrip)
{
    const att_trie_entry wanted = {content, strlen(content), 0};
    const size_t n = l->list->count;
    const att_trie_entry *found = n ? bsearch(&wanted, l->list->entry, n, sizeof wanted, att_trie_order) : NULL;
    const int32_t id = found ? found->id : ATT_NO_TOKEN;
    if (id == ATT_NO_TOKEN)
        att_settings_fail(&l->config, ATT_ERR_FORMAT, "the special token \"%.80s\" is not in vocab.txt", content);
    json_t *entry =
        json_pack("{s:f, s:s, s:b, s:b}", "id", (double)id, "content", content, "special", 1, "lstrip", lstrip);
    check_made(l, json_array_append_new(json_object_get(l->root, "added_tokens"), entry) == 0);
    return id;
}

static const char *token_of(layout *l, const char *key, const char *otherwise)
{
    return att_special_token_write(&l->config, &l->map, l->root, key, otherwise);
}

static void read_special_tokens(layout *l)
{
    const bool roberta = l->class->roberta;
    const char *content[N_SPECIAL];
    int32_t id[N_SPECIAL];
    att_config_copy(l->root, &l->config, &l->map);
    for (int i = 0; i < N_SPECIAL; i++) {
        content[i] = token_of(l, keys[i], l->class->token[i]);
        id[i] = add_token(l, content[i], roberta && i == MASK);
    }
    if (roberta) {
        token_of(l, "bos_token", content[CLS]);
        token_of(l, "eos_token", content[SEP]);
    }
    json_t *post = json_pack("{s:s, s:[s, f], s:[s, f], s:b, s:b}", "type",
                             roberta ? "RobertaProcessing" : "BertProcessing", "cls", content[CLS], (double)id[CLS],
                             "sep", content[SEP], (double)id[SEP], "trim_offsets", 1, "add_prefix_space", 0);
    json_t *model = json_object_get(l->root, "model");
    check_made(l, json_object_set_new(l->root, "post_processor", post) == 0 &&
                      json_object_set_new(model, "unk_token", json_string(content[UNK])) == 0);
    const json_t *more = att_settings_list(&l->config, "additional_special_tokens", false);
    for (size_t i = 0; i < json_array_size(more); i++)
        add_token(l, att_token_content(&l->config, "additional_special_tokens", json_array_get(more, i)), false);
}

/* Makes the arguments of the constructor of BertTokenizer, with its defaults. */
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
    l.class = find_class(&l.config, folder);
    refuse_others(&l.config);
    make_root(&l);
    read_special_tokens(&l);
    att_settings_init(settings, f->ctx, f->path, l.root);
    settings->status = l.config.status;
    att_settings_close(&l.config);
    att_settings_close(&l.map);
    return settings->status;
}
