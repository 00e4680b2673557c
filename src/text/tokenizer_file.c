/* Reads the files of a WordPiece tokenizer. tokenizer.json is complete; the older layout is first converted to it
 * (vocab_txt.c), so that settings are checked in one place. */
#include "text/tokenizer_file.h"

#include <stdlib.h>
#include <string.h>

#include "text/bert_tokenizer.h"

typedef struct reader {
    att_settings *settings;     /* has the first error */
    const att_token_list *list; /* model.vocab */
    att_token_list added;       /* added_tokens */
    att_bert_tokenizer *t;
} reader;

/* Enters an object whose "type" must be `type`. */
static att_settings_scope enter_type(att_settings *s, const char *name, const char *type)
{
    const att_settings_scope before = att_settings_enter(s, name);
    att_settings_need(s, "type");
    att_settings_only_text(s, "type", type);
    return before;
}

static bool need_bool(att_settings *s, const char *key)
{
    att_settings_need(s, key);
    return att_settings_bool(s, key, false);
}

/* An id in [0, ATT_MAX_VOCABULARY); ATT_NO_TOKEN after an error. */
static int32_t read_id(att_settings *s, const char *where, const char *token, const json_t *value)
{
    const double x = json_is_real(value) ? json_real_value(value) : -1;
    if (x >= 0 && x < ATT_MAX_VOCABULARY && x == (int32_t)x)
        return (int32_t)x;
    att_settings_fail(s, ATT_ERR_FORMAT, "%s: the id of token \"%.80s\" is %s, not a whole number in [0, %d)", where,
                      token, att_json_show(value).text, ATT_MAX_VOCABULARY);
    return ATT_NO_TOKEN;
}

/* ---- normalizer and pre_tokenizer */

static void read_normalizer(reader *r)
{
    att_settings *s = r->settings;
    att_bert_settings *b = &r->t->settings;
    const att_settings_scope file = enter_type(s, "normalizer", "BertNormalizer");
    b->clean_text = need_bool(s, "clean_text");
    b->handle_chinese_chars = need_bool(s, "handle_chinese_chars");
    b->lowercase = need_bool(s, "lowercase");
    b->strip_accents = att_settings_bool(s, "strip_accents", b->lowercase);
    att_settings_leave(s, file);
    enter_type(s, "pre_tokenizer", "BertPreTokenizer");
    att_settings_leave(s, file);
}

/* ---- model and added_tokens */

/* An item of added_tokens; its text belongs to the JSON value. Options that change matching are refused, except lstrip
 * and rstrip: they remove adjacent white space, which has no effect here. */
static att_trie_entry read_added(att_settings *s, const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "content"));
    const att_settings_scope file = att_settings_enter_item(s, name ? name : "added_tokens", item);
    att_trie_entry a = {.text = att_settings_text(s, "content", NULL)};
    a.bytes = strlen(a.text);
    if (a.bytes == 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "an added token is empty");
    a.id = read_id(s, "added_tokens", a.text, att_settings_get(s, "id"));
    att_settings_only_bool(s, "single_word", false);
    att_settings_only_bool(s, "normalized", false);
    att_settings_leave(s, file);
    return a;
}

/* Reads the vocabulary, with space for added tokens, whose ids may be larger. */
static void read_vocabulary(reader *r, const json_t *added)
{
    att_settings *s = r->settings;
    for (size_t i = 0; !s->status && i < json_array_size(added); i++) {
        const att_trie_entry a = read_added(s, json_array_get(added, i));
        if (!s->status)
            s->status = att_token_list_add(&r->added, a);
    }
    att_token_list_fill(r->list, &r->added, s, &r->t->vocabulary);
}

static void read_model_settings(reader *r)
{
    att_settings *s = r->settings;
    att_vocabulary *v = &r->t->vocabulary;
    const char *unknown = att_settings_text(s, "unk_token", NULL);
    const char *prefix = att_settings_text(s, "continuing_subword_prefix", NULL);
    r->t->settings.max_word = (int)att_settings_int(s, "max_input_chars_per_word", 1, INT32_MAX);
    if (s->status)
        return;
    v->unknown = att_vocabulary_find(v, unknown, strlen(unknown));
    if (v->unknown == ATT_NO_TOKEN)
        att_settings_fail(s, ATT_ERR_FORMAT, "the unknown token \"%.80s\" is not in the vocabulary", unknown);
    v->prefix_bytes = strlen(prefix);
    if (v->prefix_bytes < ATT_MAX_PREFIX)
        memcpy(v->prefix, prefix, v->prefix_bytes);
    else
        att_settings_unsupported(s, "continuing_subword_prefix", "a shorter one, as \"##\",");
    if (r->t->settings.max_word > ATT_MAX_WORD)
        att_settings_unsupported(s, "max_input_chars_per_word", "a whole number in [1, 1000]");
}

/* Sets the added tokens that the vocabulary does not have. */
static void set_added_tokens(reader *r)
{
    att_settings *s = r->settings;
    att_bert_tokenizer *t = r->t;
    att_vocabulary *v = &t->vocabulary;
    for (size_t i = 0; !s->status && i < r->added.count; i++) {
        const att_trie_entry *a = &r->added.entry[i];
        const int32_t model_id = att_vocabulary_find(v, a->text, a->bytes);
        if (model_id == ATT_NO_TOKEN && att_token_id_is_free(s, v, a->id, a->text, a->bytes))
            att_vocabulary_set(v, a->id, a->text, a->bytes);
        else if (model_id != ATT_NO_TOKEN && model_id != a->id)
            att_settings_fail(s, ATT_ERR_FORMAT, "token \"%.80s\" has id %d in added_tokens but %d in the vocabulary",
                              a->text, a->id, model_id);
        t->begins[(unsigned char)a->text[0]] = true;
    }
    if (!s->status)
        s->status = att_token_list_trie(&r->added, &t->added);
}

static void read_model(reader *r)
{
    att_settings *s = r->settings;
    const json_t *added = att_settings_list(s, "added_tokens", false);
    const att_settings_scope file = enter_type(s, "model", "WordPiece");
    att_settings_leave(s, att_settings_enter(s, "vocab")); /* was replaced by {}, but must be an object */
    att_settings_leave(s, file);
    read_vocabulary(r, added); /* first, since settings refer to tokens */
    att_settings_enter(s, "model");
    read_model_settings(r);
    att_settings_leave(s, file);
    set_added_tokens(r);
}

/* ---- post_processor */

static void add_special(reader *r, const json_t *id_value, const char *whose, bool after)
{
    att_settings *s = r->settings;
    att_tokenizer *t = &r->t->base;
    const int32_t id = read_id(s, "post_processor", whose, id_value);
    if (!att_vocabulary_get(&r->t->vocabulary, id))
        att_settings_fail(s, ATT_ERR_FORMAT, "post_processor has token \"%.80s\" with id %d, which no token has", whose,
                          id);
    if (t->n_before + t->n_after == ATT_MAX_SPECIAL)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "post_processor adds more than %d tokens", ATT_MAX_SPECIAL);
    if (s->status)
        return;
    t->special[t->n_before + t->n_after] = id;
    *(after ? &t->n_after : &t->n_before) += 1;
}

/* {"type": "BertProcessing", "cls": ["[CLS]", 101], "sep": ["[SEP]", 102]} */
static void read_bert_processing(reader *r)
{
    static const char *const keys[] = {"cls", "sep"};
    att_settings *s = r->settings;
    for (int i = 0; i < 2; i++) {
        const json_t *pair = att_settings_list(s, keys[i], true);
        const char *token = json_string_value(json_array_get(pair, 0));
        if (!token)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%s%s\" is %s, not a token and its id", s->within, keys[i],
                              att_json_show(pair).text);
        add_special(r, json_array_get(pair, 1), token, i > 0);
    }
}

/* A special token, which may stand for several ids: {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens": ["[CLS]"]}} */
static void read_special(reader *r, const char *name, bool after)
{
    att_settings *s = r->settings;
    const att_settings_scope post = att_settings_enter(s, "special_tokens");
    att_settings_enter(s, name);
    const json_t *ids = att_settings_list(s, "ids", true);
    for (size_t i = 0; i < json_array_size(ids); i++)
        add_special(r, json_array_get(ids, i), name, after);
    att_settings_leave(s, post);
}

/* An item of a template: the text itself, after which *after is true, or a special token. */
static void read_piece(reader *r, const json_t *piece, bool *after)
{
    att_settings *s = r->settings;
    const att_settings_scope post = att_settings_enter_item(s, "single", piece);
    const bool is_text = att_settings_has(s, "Sequence");
    att_settings_enter(s, is_text ? "Sequence" : "SpecialToken");
    const char *id = att_settings_text(s, "id", NULL);
    if (att_settings_int(s, "type_id", 0, INT32_MAX) != 0)
        att_settings_unsupported(s, "type_id", "0");
    if (is_text && (*after || strcmp(id, "A") != 0))
        att_settings_unsupported(s, "id", "\"A\" once");
    att_settings_leave(s, post);
    if (is_text)
        *after = true;
    else
        read_special(r, id, *after);
}

static void read_template(reader *r)
{
    att_settings *s = r->settings;
    const json_t *single = att_settings_list(s, "single", true);
    bool after = false;
    for (size_t i = 0; i < json_array_size(single); i++)
        read_piece(r, json_array_get(single, i), &after);
    if (!after)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"post_processor.single\" has no Sequence \"A\"");
}

static void read_post_processor(reader *r)
{
    att_settings *s = r->settings;
    if (!att_settings_has(s, "post_processor"))
        return;
    const att_settings_scope file = att_settings_enter(s, "post_processor");
    const char *type = att_settings_text(s, "type", NULL);
    if (strcmp(type, "TemplateProcessing") == 0)
        read_template(r);
    else if (strcmp(type, "BertProcessing") == 0)
        read_bert_processing(r);
    else
        att_settings_unsupported(s, "type", "TemplateProcessing or BertProcessing");
    att_settings_leave(s, file);
}

/* ---- opening; truncation, padding and decoder are not used */

/* tokenizer_config.json repeats some settings, and programs differ in which file they read: both must agree. */
static att_status check_config(att_ctx *ctx, const char *folder, const att_bert_settings *b)
{
    const struct {
        const char *key;
        bool value;
    } repeated[] = {{"do_lower_case", b->lowercase},
                    {"strip_accents", b->strip_accents},
                    {"tokenize_chinese_chars", b->handle_chinese_chars}};
    att_settings s;
    att_settings_read(&s, ctx, folder, "tokenizer_config.json", false);
    for (size_t i = 0; i < sizeof repeated / sizeof repeated[0]; i++)
        if (att_settings_bool(&s, repeated[i].key, repeated[i].value) != repeated[i].value)
            att_settings_fail(&s, ATT_ERR_UNSUPPORTED,
                              "\"%s\" is %s, but the normalizer in tokenizer.json has the opposite", repeated[i].key,
                              repeated[i].value ? "false" : "true");
    att_settings_close(&s);
    return s.status;
}

static att_status read_tokenizer(att_settings *settings, const att_token_list *list, att_bert_tokenizer **out)
{
    att_bert_tokenizer *t = att_bert_tokenizer_new(settings->ctx);
    if (!t)
        return ATT_ERR_MEMORY;
    reader r = {settings, list, {.ctx = settings->ctx}, t};
    read_model(&r);
    read_normalizer(&r);
    read_post_processor(&r);
    att_token_list_free(&r.added);
    t->base.size = t->vocabulary.size;
    if (settings->status)
        att_tokenizer_free(&t->base);
    else
        *out = t;
    return settings->status;
}

/* Reads tokens and settings in either layout. */
static att_status read_files(att_text_file *f, att_ctx *ctx, const char *folder, att_token_list *list,
                             att_settings *settings)
{
    att_status s = att_text_file_read(f, ctx, folder, "tokenizer.json", false);
    if (s || f->text)
        return s ? s : att_read_vocab_json(f, list, settings);
    s = att_text_file_read(f, ctx, folder, "vocab.txt", false);
    if (s || f->text)
        return s ? s : att_read_vocab_txt(f, folder, list, settings);
    return att_fail(ctx, ATT_ERR_IO, "%s: there is neither tokenizer.json nor vocab.txt", folder);
}

att_status att_bert_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out)
{
    att_text_file f;
    att_token_list list = {.ctx = ctx};
    att_settings settings = {.ctx = ctx};
    att_bert_tokenizer *t = NULL;
    att_status s = read_files(&f, ctx, folder, &list, &settings);
    s = s ? s : read_tokenizer(&settings, &list, &t);
    s = s ? s : check_config(ctx, folder, &t->settings);
    if (!s)
        *out = &t->base;
    else if (t)
        att_tokenizer_free(&t->base);
    att_settings_close(&settings);
    att_token_list_free(&list);
    att_text_file_free(&f);
    return s;
}
