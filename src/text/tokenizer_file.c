/* Reads a tokenizer. tokenizer.json says everything; of the older layout the same is made first (vocab_txt.c), so the
 * settings are read in one place. */
#include "text/tokenizer_file.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

typedef struct reader {
    att_ctx *ctx;
    const char *file;
    const att_token_list *list; /* model.vocab */
    const json_t *root;         /* everything else */
    att_tokenizer *t;
} reader;

static att_status get(const reader *r, const char *where, const json_t *object, const char *key, json_type type,
                      bool required, json_t **out)
{
    return att_json_get(r->ctx, r->file, where, object, key, type, required, out);
}

static att_status unsupported(const reader *r, const char *where, const char *key, const json_t *value,
                              const char *supported)
{
    return att_fail(r->ctx, ATT_ERR_UNSUPPORTED, "%s: %s.%s is %s, which is not supported; %s is", r->file, where, key,
                    att_json_show(value).text, supported);
}

/* root[name] must be an object whose type is this. */
static att_status section(const reader *r, const char *name, const char *type, json_t **out)
{
    json_t *of_type;
    att_status s = get(r, "the file", r->root, name, JSON_OBJECT, true, out);
    if (s == ATT_OK)
        s = get(r, name, *out, "type", JSON_STRING, true, &of_type);
    if (s == ATT_OK && strcmp(json_string_value(of_type), type) != 0)
        s = unsupported(r, name, "type", of_type, type);
    return s;
}

static att_status get_bool(const reader *r, const char *where, const json_t *object, const char *key, bool *value)
{
    json_t *v;
    att_status s = get(r, where, object, key, JSON_TRUE, true, &v);
    if (s == ATT_OK)
        *value = json_is_true(v);
    return s;
}

/* ---- normalizer and pre_tokenizer */

static att_status read_settings(const reader *r)
{
    att_bert_settings *b = &r->t->settings;
    json_t *normalizer, *pre_tokenizer, *strip;
    att_status s;
    if ((s = section(r, "normalizer", "BertNormalizer", &normalizer)) ||
        (s = get_bool(r, "normalizer", normalizer, "clean_text", &b->clean_text)) ||
        (s = get_bool(r, "normalizer", normalizer, "handle_chinese_chars", &b->handle_chinese_chars)) ||
        (s = get_bool(r, "normalizer", normalizer, "lowercase", &b->lowercase)) ||
        (s = get(r, "normalizer", normalizer, "strip_accents", JSON_TRUE, false, &strip)) ||
        (s = section(r, "pre_tokenizer", "BertPreTokenizer", &pre_tokenizer)))
        return s;
    b->strip_accents = strip ? json_is_true(strip) : b->lowercase;
    return ATT_OK;
}

/* ---- model and added_tokens */

static att_status read_model_settings(const reader *r, const json_t *model)
{
    att_vocabulary *v = &r->t->vocabulary;
    json_t *unknown, *prefix, *longest;
    att_status s;
    if ((s = get(r, "model", model, "unk_token", JSON_STRING, true, &unknown)) ||
        (s = get(r, "model", model, "continuing_subword_prefix", JSON_STRING, true, &prefix)) ||
        (s = get(r, "model", model, "max_input_chars_per_word", JSON_REAL, true, &longest)))
        return s;
    v->unknown = att_vocabulary_find(v, json_string_value(unknown), json_string_length(unknown));
    if (v->unknown == ATT_NO_TOKEN)
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s: the unknown token %s is not in the vocabulary", r->file,
                        att_json_show(unknown).text);
    v->prefix_bytes = json_string_length(prefix);
    if (v->prefix_bytes >= ATT_MAX_PREFIX)
        return unsupported(r, "model", "continuing_subword_prefix", prefix, "a shorter one, as \"##\",");
    memcpy(v->prefix, json_string_value(prefix), v->prefix_bytes);
    r->t->settings.max_word = att_json_id(longest);
    if (r->t->settings.max_word < 1 || r->t->settings.max_word > ATT_MAX_WORD)
        return unsupported(r, "model", "max_input_chars_per_word", longest, "a whole number in [1, 1000]");
    return ATT_OK;
}

static att_status bad_id(const reader *r, const char *where, const char *token, const json_t *id)
{
    return att_fail(r->ctx, ATT_ERR_FORMAT, "%s: %s: the id of token \"%.80s\" is %s, not a whole number in [0, %d)",
                    r->file, where, token, att_json_show(id).text, ATT_MAX_VOCABULARY);
}

/* How many ids and how many bytes all tokens need; checks added_tokens, from which more ids may come. */
static att_status measure(const reader *r, const json_t *added, int64_t *size, size_t *bytes)
{
    size_t i;
    *size = 0;
    *bytes = 0;
    for (i = 0; i < r->list->count; i++) {
        const att_token_entry *e = &r->list->entry[i];
        *size = e->id >= *size ? e->id + 1 : *size;
        *bytes += e->bytes;
    }
    json_t *entry;
    json_array_foreach(added, i, entry)
    {
        json_t *content;
        att_status s = get(r, "added_tokens", entry, "content", JSON_STRING, true, &content);
        if (s != ATT_OK)
            return s;
        int32_t id = att_json_id(json_object_get(entry, "id"));
        if (json_string_length(content) == 0)
            return att_fail(r->ctx, ATT_ERR_FORMAT, "%s: an added token is empty", r->file);
        if (id == ATT_NO_TOKEN)
            return bad_id(r, "added_tokens", json_string_value(content), json_object_get(entry, "id"));
        *size = id >= *size ? id + 1 : *size;
        *bytes += json_string_length(content);
    }
    if (*size == 0)
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s: the vocabulary is empty", r->file);
    if (*bytes > UINT32_MAX / 2)
        return att_fail(r->ctx, ATT_ERR_UNSUPPORTED, "%s: the tokens have %zu bytes, more than %u", r->file, *bytes,
                        UINT32_MAX / 2);
    return ATT_OK;
}

static att_status id_is_free(const reader *r, int32_t id, const char *token, size_t bytes)
{
    const char *other = att_vocabulary_get(&r->t->vocabulary, id);
    return !other ? ATT_OK
                  : att_fail(r->ctx, ATT_ERR_FORMAT, "%s: tokens \"%.80s\" and \"%.*s\" have the same id %d", r->file,
                             other, bytes < 80 ? (int)bytes : 80, token, id);
}

/* The model's vocabulary, with room for the added tokens. */
static att_status read_vocabulary(const reader *r, const json_t *added)
{
    att_vocabulary *v = &r->t->vocabulary;
    int64_t size;
    size_t bytes;
    att_status s;
    if ((s = measure(r, added, &size, &bytes)) || (s = att_vocabulary_init(v, r->ctx, size, bytes)))
        return s;
    for (size_t i = 0; i < r->list->count; i++) {
        const att_token_entry *e = &r->list->entry[i];
        int32_t other = att_vocabulary_find(v, e->text, e->bytes);
        if (other != ATT_NO_TOKEN)
            return att_fail(r->ctx, ATT_ERR_FORMAT, "%s: token \"%.80s\" is there twice, with ids %d and %d", r->file,
                            att_vocabulary_get(v, other), other, e->id);
        if ((s = id_is_free(r, e->id, e->text, e->bytes)))
            return s;
        att_vocabulary_add(v, e->id, e->text, e->bytes);
    }
    return ATT_OK;
}

/* What changes how a token is found: lstrip and rstrip take white space beside it, which is dropped anyway. */
static att_status check_added(const reader *r, const json_t *entry)
{
    static const char *const switches[] = {"single_word", "normalized"};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        json_t *value;
        att_status s = get(r, "added_tokens", entry, switches[i], JSON_TRUE, false, &value);
        if (s != ATT_OK)
            return s;
        if (json_is_true(value))
            return att_fail(r->ctx, ATT_ERR_UNSUPPORTED,
                            "%s: added token %s has \"%s\": true, which is not supported; false is", r->file,
                            att_json_show(json_object_get(entry, "content")).text, switches[i]);
    }
    return ATT_OK;
}

static int longer_first(const void *a, const void *b)
{
    const att_added_token *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static att_status read_added(const reader *r, const json_t *added)
{
    att_tokenizer *t = r->t;
    att_vocabulary *v = &t->vocabulary;
    if (json_array_size(added) == 0)
        return ATT_OK;
    if (!(t->added = att_alloc(r->ctx, json_array_size(added), sizeof *t->added)))
        return ATT_ERR_MEMORY;
    size_t i;
    json_t *entry;
    json_array_foreach(added, i, entry)
    {
        const json_t *content = json_object_get(entry, "content");
        const char *text = json_string_value(content);
        size_t bytes = json_string_length(content);
        int32_t id = att_json_id(json_object_get(entry, "id"));
        int32_t model_id = att_vocabulary_find(v, text, bytes);
        att_status s = check_added(r, entry);
        if (s == ATT_OK && model_id == ATT_NO_TOKEN && (s = id_is_free(r, id, text, bytes)) == ATT_OK)
            att_vocabulary_set(v, id, text, bytes);
        else if (s == ATT_OK && model_id != ATT_NO_TOKEN && model_id != id)
            s = att_fail(r->ctx, ATT_ERR_FORMAT, "%s: token %s has id %d in added_tokens but %d in the vocabulary",
                         r->file, att_json_show(content).text, id, model_id);
        if (s != ATT_OK)
            return s;
        t->added[t->n_added++] = (att_added_token){att_vocabulary_get(v, id), bytes, id};
        t->begins_added[(unsigned char)text[0]] = true;
    }
    qsort(t->added, (size_t)t->n_added, sizeof *t->added, longer_first);
    return ATT_OK;
}

static att_status read_model(const reader *r)
{
    json_t *model, *vocab, *added;
    att_status s;
    if ((s = section(r, "model", "WordPiece", &model)) ||
        (s = get(r, "model", model, "vocab", JSON_OBJECT, true, &vocab)) ||
        (s = get(r, "the file", r->root, "added_tokens", JSON_ARRAY, false, &added)) ||
        (s = read_vocabulary(r, added)) || (s = read_model_settings(r, model)))
        return s;
    return read_added(r, added);
}

/* ---- post_processor */

static att_status add_special(const reader *r, const json_t *id_value, const char *whose, bool after)
{
    att_tokenizer *t = r->t;
    int32_t id = att_json_id(id_value);
    if (id == ATT_NO_TOKEN)
        return bad_id(r, "post_processor", whose, id_value);
    if (!att_vocabulary_get(&t->vocabulary, id))
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s: post_processor has token \"%.80s\" with id %d, which no token has",
                        r->file, whose, id);
    if (t->n_before + t->n_after == ATT_MAX_SPECIAL)
        return att_fail(r->ctx, ATT_ERR_UNSUPPORTED, "%s: post_processor adds more than %d tokens", r->file,
                        ATT_MAX_SPECIAL);
    t->special[t->n_before + t->n_after] = id;
    *(after ? &t->n_after : &t->n_before) += 1;
    return ATT_OK;
}

/* {"type": "BertProcessing", "cls": ["[CLS]", 101], "sep": ["[SEP]", 102]} */
static att_status read_bert_processing(const reader *r, const json_t *post)
{
    static const char *const keys[] = {"cls", "sep"};
    for (int i = 0; i < 2; i++) {
        json_t *pair;
        att_status s = get(r, "post_processor", post, keys[i], JSON_ARRAY, true, &pair);
        if (s == ATT_OK && !json_is_string(json_array_get(pair, 0)))
            s = att_fail(r->ctx, ATT_ERR_FORMAT, "%s: post_processor.%s is %s, not a token and its id", r->file,
                         keys[i], att_json_show(pair).text);
        if (s == ATT_OK)
            s = add_special(r, json_array_get(pair, 1), json_string_value(json_array_get(pair, 0)), i > 0);
        if (s != ATT_OK)
            return s;
    }
    return ATT_OK;
}

/* One step of a template: the text itself, or a special token, which may stand for several. */
static att_status read_piece(const reader *r, const json_t *piece, const json_t *specials, bool *after)
{
    json_t *body, *id, *type, *special, *ids, *value;
    const char *kind = json_object_get(piece, "Sequence") ? "Sequence" : "SpecialToken";
    att_status s;
    if ((s = get(r, "post_processor.single", piece, kind, JSON_OBJECT, true, &body)) ||
        (s = get(r, kind, body, "id", JSON_STRING, true, &id)) ||
        (s = get(r, kind, body, "type_id", JSON_REAL, true, &type)))
        return s;
    if (json_real_value(type) != 0)
        return unsupported(r, "post_processor.single", "type_id", type, "0");
    const char *name = json_string_value(id);
    if (strcmp(kind, "Sequence") == 0) {
        if (*after || strcmp(name, "A") != 0)
            return unsupported(r, "post_processor.single", "Sequence", id, "\"A\" once");
        *after = true;
        return ATT_OK;
    }
    if ((s = get(r, "post_processor.special_tokens", specials, name, JSON_OBJECT, true, &special)) ||
        (s = get(r, name, special, "ids", JSON_ARRAY, true, &ids)))
        return s;
    size_t i;
    json_array_foreach(ids, i, value)
    {
        if ((s = add_special(r, value, name, *after)))
            return s;
    }
    return ATT_OK;
}

static att_status read_template(const reader *r, const json_t *post)
{
    json_t *single, *specials, *piece;
    att_status s;
    if ((s = get(r, "post_processor", post, "single", JSON_ARRAY, true, &single)) ||
        (s = get(r, "post_processor", post, "special_tokens", JSON_OBJECT, true, &specials)))
        return s;
    bool after = false;
    size_t i;
    json_array_foreach(single, i, piece)
    {
        if ((s = read_piece(r, piece, specials, &after)))
            return s;
    }
    return after ? ATT_OK
                 : att_fail(r->ctx, ATT_ERR_FORMAT, "%s: post_processor.single has no Sequence \"A\"", r->file);
}

static att_status read_post_processor(const reader *r)
{
    json_t *post, *type;
    att_status s = get(r, "the file", r->root, "post_processor", JSON_OBJECT, false, &post);
    if (s != ATT_OK || !post)
        return s;
    if ((s = get(r, "post_processor", post, "type", JSON_STRING, true, &type)))
        return s;
    if (strcmp(json_string_value(type), "TemplateProcessing") == 0)
        return read_template(r, post);
    if (strcmp(json_string_value(type), "BertProcessing") == 0)
        return read_bert_processing(r, post);
    return unsupported(r, "post_processor", "type", type, "TemplateProcessing or BertProcessing");
}

/* ---- opening: truncation and padding are the caller's, decoder is for the way back */

/* tokenizer_config.json repeats some settings, and programs differ in which file they believe: both must agree. */
static att_status check_config(att_ctx *ctx, const char *folder, const att_bert_settings *b)
{
    const struct {
        const char *key;
        bool value;
    } repeated[] = {{"do_lower_case", b->lowercase},
                    {"strip_accents", b->strip_accents},
                    {"tokenize_chinese_chars", b->handle_chinese_chars}};
    att_text_file f;
    json_t *config = NULL, *value;
    att_status s = att_text_file_read(&f, ctx, folder, "tokenizer_config.json", false);
    if (s == ATT_OK && f.text)
        s = att_text_file_json(&f, 0, 0, &config);
    for (size_t i = 0; s == ATT_OK && i < sizeof repeated / sizeof repeated[0]; i++) {
        s = att_json_get(ctx, f.path, "the file", config, repeated[i].key, JSON_TRUE, false, &value);
        if (s == ATT_OK && value && json_is_true(value) != repeated[i].value)
            s = att_fail(ctx, ATT_ERR_UNSUPPORTED,
                         "%s: %s is %s, but the normalizer in tokenizer.json has the opposite", f.path, repeated[i].key,
                         att_json_show(value).text);
    }
    json_decref(config);
    att_text_file_free(&f);
    return s;
}

static att_status read_tokenizer(att_ctx *ctx, const char *file, const att_token_list *list, const json_t *root,
                                 att_tokenizer **out)
{
    att_tokenizer *t = att_alloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    *t = (att_tokenizer){.ctx = ctx, .vocabulary = {.ctx = ctx}};
    reader r = {ctx, file, list, root, t};
    att_status s;
    if ((s = read_model(&r)) || (s = read_settings(&r)) || (s = read_post_processor(&r))) {
        att_tokenizer_free(t);
        return s;
    }
    *out = t;
    return ATT_OK;
}

att_status att_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out)
{
    att_text_file f;
    att_token_list list = {.ctx = ctx};
    json_t *root = NULL;
    size_t begin, end;
    *out = NULL;
    att_status s = att_text_file_read(&f, ctx, folder, "tokenizer.json", false);
    if (s == ATT_OK && f.text) {
        if ((s = att_read_vocab_json(&f, &list, &begin, &end)) == ATT_OK)
            s = att_text_file_json(&f, begin, end, &root);
    } else if (s == ATT_OK && (s = att_text_file_read(&f, ctx, folder, "vocab.txt", false)) == ATT_OK) {
        if (!f.text)
            s = att_fail(ctx, ATT_ERR_IO, "%s: there is neither tokenizer.json nor vocab.txt", folder);
        else if ((s = att_read_vocab_txt(&f, &list)) == ATT_OK)
            s = att_read_tokenizer_config(ctx, folder, &list, &root);
    }
    if (s == ATT_OK)
        s = read_tokenizer(ctx, f.path, &list, root, out);
    if (s == ATT_OK && (s = check_config(ctx, folder, &(*out)->settings)) != ATT_OK) {
        att_tokenizer_free(*out);
        *out = NULL;
    }
    json_decref(root);
    att_token_list_free(&list);
    att_text_file_free(&f);
    return s;
}
