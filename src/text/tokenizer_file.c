/* Reads the files of a tokenizer. tokenizer.json is complete; the older layout is first converted to it
 * (vocab_txt.c, pipeline/merges_file.c), so that settings are checked in one place. */
#include "text/tokenizer_file.h"

#include <stdlib.h>
#include <string.h>

#include "text/bert_tokenizer.h"
#include "text/post_processor.h"

typedef struct reader {
    att_settings *settings;     /* has the first error */
    const att_token_list *list; /* model.vocab */
    att_token_list added;       /* added_tokens */
    att_token_list ordinary;    /* those that are not special */
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
    const att_byte_view content = att_settings_bytes(s, "content");
    att_trie_entry a = {.text = content.data, .bytes = content.bytes};
    if (a.bytes == 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "an added token is empty");
    a.id = att_read_token_id(s, "added_tokens", a.text, att_settings_get(s, "id"));
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
        const json_t *item = json_array_get(added, i);
        const att_trie_entry a = read_added(s, item);
        if (!s->status)
            s->status = att_token_list_add(&r->added, a);
        if (!s->status && !json_is_true(json_object_get(item, "special")))
            s->status = att_token_list_add(&r->ordinary, a);
    }
    att_token_list_fill(r->list, &r->added, s, &r->t->vocabulary);
}

void att_wordpiece_read(att_settings *s, att_vocabulary *v, int *max_word)
{
    const char *unknown = att_settings_text(s, "unk_token", NULL);
    const char *prefix = att_settings_text(s, "continuing_subword_prefix", NULL);
    *max_word = (int)att_settings_int(s, "max_input_chars_per_word", 1, INT32_MAX);
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
    if (*max_word > ATT_MAX_WORD)
        att_settings_unsupported(s, "max_input_chars_per_word", "a whole number in [1, 1000]");
}

/* Makes the tries of the added tokens. */
static void set_added_tokens(reader *r)
{
    att_settings *s = r->settings;
    att_bert_tokenizer *t = r->t;
    const att_token_list *lists[] = {&r->added, &r->ordinary};
    att_token_list_set_added(&r->added, s, &t->vocabulary);
    for (int k = 0; !s->status && k < 2; k++) {
        for (size_t i = 0; i < lists[k]->count; i++)
            t->begins[k][(unsigned char)lists[k]->entry[i].text[0]] = true;
        s->status = att_token_list_trie(lists[k], &t->added[k]);
    }
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
    att_wordpiece_read(s, &r->t->vocabulary, &r->t->settings.max_word);
    att_settings_leave(s, file);
    set_added_tokens(r);
}

/* ---- opening; truncation, padding and decoder are not used */

/* Is the tokenizer's class one of BERT's? Where no class is named, the model's type states it. */
static bool is_bert_class(att_settings *s, const char *folder)
{
    static const char *const names[] = {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer",
                                        "DistilBertTokenizerFast"};
    att_settings model;
    const char *class = att_settings_text(s, "tokenizer_class", "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i], class))
            return true;
    if (*class)
        return false;
    att_settings_read(&model, s->ctx, folder, "config.json", false);
    const char *type = json_string_value(att_settings_get(&model, "model_type"));
    const bool bert = type && !strcmp(type, "bert");
    if (!s->status)
        s->status = model.status;
    att_settings_close(&model);
    return bert;
}

/* tokenizer_config.json repeats some settings, and programs differ in which file they read: both must agree. A class of
 * BERT's has its own value where a key is missing; PreTrainedTokenizerFast does not read them. */
static att_status check_config(att_ctx *ctx, const char *folder, const att_bert_settings *b)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "tokenizer_config.json", false);
    const bool bert = is_bert_class(&s, folder);
    const bool lower = att_settings_bool(&s, "do_lower_case", bert || b->lowercase);
    const struct {
        const char *key;
        bool value, missing;
    } repeated[] = {{"do_lower_case", b->lowercase, bert || b->lowercase},
                    {"strip_accents", b->strip_accents, bert ? lower : b->strip_accents},
                    {"tokenize_chinese_chars", b->handle_chinese_chars, bert || b->handle_chinese_chars}};
    const bool read = strcmp(att_settings_text(&s, "tokenizer_class", ""), "PreTrainedTokenizerFast") != 0;
    for (size_t i = 0; read && i < sizeof repeated / sizeof repeated[0]; i++)
        if (att_settings_bool(&s, repeated[i].key, repeated[i].missing) != repeated[i].value)
            att_settings_fail(&s, ATT_ERR_UNSUPPORTED,
                              "\"%s\" is %s%s, but the normalizer in tokenizer.json has the opposite", repeated[i].key,
                              att_settings_has(&s, repeated[i].key) ? "" : "missing, which for BertTokenizer is ",
                              repeated[i].value ? "false" : "true");
    att_settings_close(&s);
    return s.status;
}

att_status att_bert_tokenizer_read(att_settings *settings, const att_token_list *list, att_tokenizer **out)
{
    att_bert_tokenizer *t = att_bert_tokenizer_new(settings->ctx);
    if (!t)
        return ATT_ERR_MEMORY;
    reader r = {settings, list, {.ctx = settings->ctx}, {.ctx = settings->ctx}, t};
    att_post_processor post;
    read_model(&r);
    read_normalizer(&r);
    att_post_processor_read(settings, &t->vocabulary, &post);
    att_token_list_free(&r.added);
    att_token_list_free(&r.ordinary);
    t->base.single = post.single;
    t->base.pair = post.pair;
    t->base.plain_pair = post.plain_pair;
    t->base.size = t->vocabulary.size;
    if (settings->status)
        att_tokenizer_free(&t->base);
    else
        *out = &t->base;
    return settings->status;
}

/* Is the "type" of this object `type`? */
static bool has_type(const att_settings *s, const char *key, const char *type)
{
    const char *is = json_string_value(json_object_get(att_settings_get(s, key), "type"));
    return is && strcmp(is, type) == 0;
}

static bool is_bert(const att_settings *s)
{
    static const char *const options[] = {"normalized", "single_word"};
    const json_t *added = att_settings_get(s, "added_tokens");
    for (size_t i = 0; i < 2 * json_array_size(added); i++)
        if (json_is_true(json_object_get(json_array_get(added, i / 2), options[i % 2])))
            return false;
    return has_type(s, "model", "WordPiece") && has_type(s, "normalizer", "BertNormalizer") &&
           has_type(s, "pre_tokenizer", "BertPreTokenizer");
}

att_status att_tokenizer_files_read(att_text_file *f, att_ctx *ctx, const char *folder, att_token_list *list,
                                    att_settings *settings)
{
    char merges[ATT_MAX_PATH];
    att_status s = att_text_file_read(f, ctx, folder, "tokenizer.json", false);
    if (!s && f->text) {
        s = att_read_vocab_json(f, list, settings);
        return s ? s : att_tokenizer_config_apply(ctx, folder, list, settings->root);
    }
    if (s)
        return s;
    s = att_text_file_read(f, ctx, folder, "vocab.txt", false);
    if (s || f->text)
        return s ? s : att_read_vocab_txt(f, folder, list, settings);
    s = att_join_path(ctx, folder, "merges.txt", merges);
    if (!s && att_is_file(merges))
        s = att_text_file_read(f, ctx, folder, "vocab.json", true);
    if (s || f->text)
        return s ? s : att_read_merges(f, folder, list, settings);
    return att_fail(ctx, ATT_ERR_IO, "%s: there is neither tokenizer.json nor vocab.txt, merges.txt or source.spm",
                    folder);
}

att_status att_json_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out)
{
    att_text_file f;
    att_token_list list = {.ctx = ctx};
    att_settings settings = {.ctx = ctx};
    att_tokenizer *t = NULL;
    att_status s = att_tokenizer_files_read(&f, ctx, folder, &list, &settings);
    if (!s && is_bert(&settings)) {
        s = att_bert_tokenizer_read(&settings, &list, &t);
        s = s ? s : check_config(ctx, folder, &((att_bert_tokenizer *)t)->settings);
    } else if (!s) {
        s = att_pipeline_read(&settings, &list, &t);
    }
    s = s ? s : att_truncation_side(ctx, folder, settings.root, &t->truncate_left);
    if (!s)
        *out = t;
    else
        att_tokenizer_free(t);
    att_settings_close(&settings);
    att_token_list_free(&list);
    att_text_file_free(&f);
    return s;
}
