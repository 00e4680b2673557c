/* Opens the tokenizer of llama.cpp's files, which have the vocabulary, merges or scores, and the kinds of tokens. */
#include "text/gguf_tokenizer.h"
#include "text/gguf_words.h"

#include <math.h>
#include <string.h>

#include "text/utf8.h"

#define KEY "tokenizer.ggml."

typedef struct reader {
    att_ctx *ctx;
    att_gguf *g;
    att_token_list *list; /* without unused tokens */
    int64_t n;            /* ids */
    att_byte_view *text;  /* [n] */
    double *kind, *score; /* [n] */
} reader;

static att_status out_of_memory(const reader *r)
{
    return att_fail(r->ctx, ATT_ERR_MEMORY, "%s: out of memory", att_gguf_label(r->g));
}

/* ---- vocabulary */

/* Returns the id in a value of the file; -1: none. */
static int64_t token_id(att_gguf *g, const char *key)
{
    const int64_t n = att_gguf_texts(g, KEY "tokens");
    return att_gguf_has(g, key) && n > 0 ? att_gguf_int(g, key, 0, n - 1) : -1;
}

static double *numbers(reader *r, const char *key, double otherwise)
{
    double *x = att_alloc(r->ctx, (size_t)r->n, sizeof *x);
    for (int64_t i = 0; x && i < r->n; i++)
        x[i] = otherwise;
    const int64_t n = att_gguf_numbers(r->g, key);
    if (n != 0 && n != r->n)
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "\"%s\" has %lld numbers, but there are %lld tokens", key, (long long)n,
                      (long long)r->n);
    if (x)
        att_gguf_get_numbers(r->g, key, x, r->n);
    return x;
}

static att_status check_texts(const reader *r)
{
    for (int64_t i = 0; i < r->n && !att_gguf_error(r->g); i++) {
        const att_byte_view *t = &r->text[i];
        if (r->kind[i] != ATT_GGUF_UNUSED && (t->bytes == 0 || !att_utf8_valid(t->data, t->bytes)))
            att_gguf_fail(r->g, ATT_ERR_FORMAT, "token %lld is empty, or not text in UTF-8", (long long)i);
        if (isnan(r->score[i]))
            att_gguf_fail(r->g, ATT_ERR_FORMAT, "the score of token %lld is not a number", (long long)i);
    }
    return att_gguf_error(r->g);
}

static att_status read_vocabulary(reader *r)
{
    r->n = att_gguf_texts(r->g, KEY "tokens");
    if (!att_gguf_error(r->g) && (r->n < 1 || r->n > ATT_MAX_VOCABULARY))
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "\"" KEY "tokens\" has %lld tokens, not 1 to %d", (long long)r->n,
                      ATT_MAX_VOCABULARY);
    if (att_gguf_error(r->g))
        return att_gguf_error(r->g);
    r->text = att_alloc(r->ctx, (size_t)r->n, sizeof *r->text);
    r->kind = numbers(r, KEY "token_type", ATT_GGUF_NORMAL);
    r->score = numbers(r, KEY "scores", 0);
    if (!r->text || !r->kind || !r->score)
        return ATT_ERR_MEMORY;
    att_gguf_get_texts(r->g, KEY "tokens", r->text, r->n);
    att_status s = check_texts(r);
    for (int64_t i = 0; !s && i < r->n; i++)
        if (r->kind[i] != ATT_GGUF_UNUSED)
            s = att_token_list_add(r->list, (att_trie_entry){r->text[i].data, r->text[i].bytes, (int32_t)i});
    return s;
}

static json_t *text_of(const reader *r, int64_t id) { return json_stringn(r->text[id].data, r->text[id].bytes); }

/* Makes the tokens that are found in a text before it is split: those with a meaning, which are special, and the
 * user's. */
static json_t *added_tokens(const reader *r)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < r->n; i++)
        if (r->kind[i] == ATT_GGUF_UNKNOWN || r->kind[i] == ATT_GGUF_CONTROL || r->kind[i] == ATT_GGUF_USER_DEFINED)
            json_array_append_new(list, json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i, "content",
                                                  text_of(r, i), "single_word", 0, "lstrip", 0, "rstrip", 0,
                                                  "normalized", 0, "special", r->kind[i] != ATT_GGUF_USER_DEFINED));
    return list;
}

/* ---- merges */

static att_status read_merges(reader *r, json_t *merges)
{
    const int64_t n = att_gguf_texts(r->g, KEY "merges");
    att_byte_view *text = att_alloc(r->ctx, (size_t)n, sizeof *text);
    att_status s = text ? att_gguf_error(r->g) : ATT_ERR_MEMORY;
    if (!s)
        att_gguf_get_texts(r->g, KEY "merges", text, n);
    for (int64_t i = 0; !s && i < n; i++) {
        if (!att_utf8_valid(text[i].data, text[i].bytes))
            att_gguf_fail(r->g, ATT_ERR_FORMAT, "merge %lld is not a text in UTF-8", (long long)i);
        s = att_gguf_error(r->g);
        if (!s && json_array_append_new(merges, json_stringn(text[i].data, text[i].bytes)))
            s = out_of_memory(r);
    }
    att_free(r->ctx, text);
    return s;
}

/* Makes merges of normal tokens only: in SentencePiece, no merge results in a token of another type. */
static att_status make_merges(reader *r, json_t *merges)
{
    att_token_list normal = {.ctx = r->ctx};
    att_status s = ATT_OK;
    if (att_gguf_numbers(r->g, KEY "scores") == 0)
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "there are neither \"" KEY "merges\" nor \"" KEY "scores\"");
    s = att_gguf_error(r->g);
    for (size_t i = 0; !s && i < r->list->count; i++)
        if (r->kind[r->list->entry[i].id] == ATT_GGUF_NORMAL)
            s = att_token_list_add(&normal, r->list->entry[i]);
    s = s ? s : att_gguf_merges(r->g, &(att_gguf_pieces){&normal, r->score}, merges);
    att_token_list_free(&normal);
    return s;
}

/* ---- tokenizer.json */

/* Adds begin (if it is a token), the text, and end to a template. */
static void add_text(const reader *r, json_t *list, int64_t begin, int64_t end, bool second)
{
    if (begin >= 0)
        json_array_append_new(list,
                              json_pack("{s:{s:o, s:i}}", "SpecialToken", "id", text_of(r, begin), "type_id", second));
    json_array_append_new(list, json_pack("{s:{s:s, s:i}}", "Sequence", "id", second ? "B" : "A", "type_id", second));
    if (end >= 0)
        json_array_append_new(list,
                              json_pack("{s:{s:o, s:i}}", "SpecialToken", "id", text_of(r, end), "type_id", second));
}

/* Makes a post-processor; begin, end: tokens that are added to a text; -1: none. */
static json_t *post_processor(const reader *r, int64_t begin, int64_t end)
{
    const int64_t ids[] = {begin, end};
    if (begin < 0 && end < 0)
        return json_null();
    json_t *single = json_array(), *pair = json_array(), *special = json_object();
    add_text(r, single, begin, end, false);
    add_text(r, pair, begin, end, false);
    add_text(r, pair, begin, end, true);
    for (int i = 0; i < 2; i++) {
        if (ids[i] < 0)
            continue;
        const att_byte_view *t = &r->text[ids[i]];
        json_t *one = json_pack("{s%:{s:o, s:[I], s:[o]}}", t->data, t->bytes, "id", text_of(r, ids[i]), "ids",
                                (json_int_t)ids[i], "tokens", text_of(r, ids[i]));
        json_object_update(special, one);
        json_decref(one);
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair", pair,
                     "special_tokens", special);
}

/* Returns the id of a token of the settings that is in use; -1: none. */
static int64_t used_id(reader *r, const char *key)
{
    const int64_t id = token_id(r->g, key);
    if (id >= 0 && r->kind[id] == ATT_GGUF_UNUSED)
        att_gguf_fail(r->g, ATT_ERR_FORMAT, "\"%s\" is %lld, a token that is not used", key, (long long)id);
    return att_gguf_error(r->g) ? -1 : id;
}

static json_t *template_of(reader *r, bool bos)
{
    int64_t begin = -1, end = -1;
    if (att_gguf_bool(r->g, KEY "add_bos_token", bos))
        begin = used_id(r, KEY "bos_token_id");
    if (att_gguf_bool(r->g, KEY "add_eos_token", false))
        end = used_id(r, KEY "eos_token_id");
    return post_processor(r, begin, end);
}

/* Makes a tokenizer of byte level, as GPT-2's. */
static json_t *make_byte_level(reader *r, json_t *merges)
{
    const att_gguf_words *w = att_gguf_words_of(r->g);
    return json_pack("{s:o, s:o, s:o, s:o, s:{s:s, s:n, s:b, s:b, s:b, s:O}}", "normalizer",
                     w->nfc ? json_pack("{s:s}", "type", "NFC") : json_null(), "pre_tokenizer",
                     att_gguf_pre_tokenizer(w), "post_processor", template_of(r, w->bos), "decoder",
                     att_gguf_byte_level(true), "model", "type", "BPE", "unk_token", "fuse_unk", 0, "byte_fallback", 0,
                     "ignore_merges", w->ignore_merges, "merges", merges);
}

static json_t *replace(const char *what, const char *with)
{
    return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", what, "content", with);
}

/* Makes a tokenizer like SentencePiece's: a space is U+2581, with one before each text, and unknown characters become
 * bytes. */
static json_t *make_sentencepiece(reader *r, json_t *merges)
{
    static const char space[] = "\xE2\x96\x81";
    const bool prefix = att_gguf_bool(r->g, KEY "add_space_prefix", true);
    const int64_t unknown = used_id(r, KEY "unknown_token_id");
    json_t *normalizers = json_array();
    json_t *decoders = json_pack("[o, {s:s}, {s:s}]", replace(space, " "), "type", "ByteFallback", "type", "Fuse");
    if (prefix) {
        json_array_append_new(normalizers, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", space));
        json_array_append_new(
            decoders, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start", 1, "stop", 0));
    }
    json_array_append_new(normalizers, replace(" ", space));
    return json_pack("{s:{s:s, s:o}, s:n, s:o, s:{s:s, s:o}, s:{s:s, s:o, s:b, s:b, s:b, s:O}}", "normalizer", "type",
                     "Sequence", "normalizers", normalizers, "pre_tokenizer", "post_processor", template_of(r, true),
                     "decoder", "type", "Sequence", "decoders", decoders, "model", "type", "BPE", "unk_token",
                     unknown >= 0 ? text_of(r, unknown) : json_null(), "fuse_unk", 1, "byte_fallback", 1,
                     "ignore_merges", 0, "merges", merges);
}

static att_status read_all(reader *r, json_t **root)
{
    const char *model = att_gguf_text(r->g, KEY "model", NULL);
    const bool bytes = strcmp(model, "gpt2") == 0;
    json_t *merges = json_array();
    if (!bytes && strcmp(model, "llama") != 0)
        att_gguf_fail(r->g, ATT_ERR_UNSUPPORTED,
                      "\"" KEY "model\" is \"%.80s\", a kind of tokenizer that is not supported; gpt2 and llama are",
                      model);
    att_status s = read_vocabulary(r);
    if (!s)
        s = bytes || att_gguf_texts(r->g, KEY "merges") > 0 ? read_merges(r, merges) : make_merges(r, merges);
    json_t *made = s ? NULL : bytes ? make_byte_level(r, merges) : make_sentencepiece(r, merges);
    json_decref(merges);
    s = s ? s : att_gguf_error(r->g);
    if (!s && (!made || json_object_set_new(made, "added_tokens", added_tokens(r))))
        s = out_of_memory(r);
    if (s)
        json_decref(made);
    else
        *root = made;
    return s;
}

att_status att_gguf_tokenizer(att_gguf *g, att_token_list *list, json_t **root)
{
    reader r = {.ctx = list->ctx, .g = g, .list = list};
    *root = NULL;
    const att_status s = read_all(&r, root);
    att_free(r.ctx, r.text);
    att_free(r.ctx, r.kind);
    att_free(r.ctx, r.score);
    return s;
}

static const struct {
    att_token token;
    const char *key;
} special[] = {{ATT_TOKEN_BOS, KEY "bos_token_id"},
               {ATT_TOKEN_EOS, KEY "eos_token_id"},
               {ATT_TOKEN_UNK, KEY "unknown_token_id"},
               {ATT_TOKEN_PAD, KEY "padding_token_id"}};
enum { N_SPECIAL = sizeof special / sizeof special[0] };

/* Adds the template of a key, if it has one. */
static void add_template(att_gguf *g, const char *key, const char *name, json_t *list)
{
    const char *text = att_gguf_text(g, key, "");
    if (!att_utf8_valid(text, strlen(text)))
        att_gguf_fail(g, ATT_ERR_FORMAT, "\"%.80s\" is not a text in UTF-8", key);
    else if (*text)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "template", text));
}

/* Sets "chat_template": a text, or a list if the file has templates with names. */
static void set_templates(att_gguf *g, json_t *root)
{
    static const char key[] = "tokenizer.chat_template";
    const size_t n = sizeof key - 1;
    json_t *list = json_array();
    const char *other;
    att_byte_view raw;
    add_template(g, key, "default", list);
    const bool found = json_array_size(list) > 0;
    for (int64_t i = 0; (other = att_gguf_raw(g, i, &raw)); i++)
        if (strncmp(other, key, n) == 0 && other[n] == '.')
            add_template(g, other, other + n + 1, list);
    if (found && json_array_size(list) == 1)
        json_object_set(root, "chat_template", json_object_get(json_array_get(list, 0), "template"));
    else if (json_array_size(list) > 0)
        json_object_set(root, "chat_template", list);
    json_decref(list);
}

att_status att_gguf_tokenizer_config(att_gguf *g, json_t **root)
{
    const int64_t n = att_gguf_texts(g, KEY "tokens");
    *root = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "clean_up_tokenization_spaces", 0);
    for (int i = 0; i < N_SPECIAL; i++) {
        const int64_t id = token_id(g, special[i].key);
        att_byte_view text;
        if (id < 0 || id >= n)
            continue;
        att_gguf_get_text(g, KEY "tokens", id, &text);
        json_object_set_new(*root, att_special_keys[special[i].token], json_stringn(text.data, text.bytes));
    }
    set_templates(g, *root);
    if (att_gguf_error(g))
        json_decref(*root), *root = NULL;
    return att_gguf_error(g);
}

/* ---- opening */

/* Reads ids of special tokens. An id out of range stands for none, as in llama.cpp. */
static void read_special(att_gguf *g, att_tokenizer *t)
{
    for (int i = 0; i < N_SPECIAL; i++) {
        const double id = att_gguf_number(g, special[i].key, -1);
        if (id >= 0 && id < (double)t->size && att_tokenizer_token(t, (int32_t)id))
            t->special[special[i].token] = (int32_t)id;
    }
}

/* Makes the settings of tokenizer.json; merges are not written and read again, because there may be 300,000. */
static att_status make_settings(const reader *r, json_t *root, att_settings *settings)
{
    json_t *model = json_object_get(root, "model"), *merges = json_incref(json_object_get(model, "merges"));
    json_object_del(model, "merges");
    att_settings_from_json(settings, r->ctx, att_gguf_label(r->g), root);
    if (!settings->status && json_object_set(json_object_get(settings->root, "model"), "merges", merges))
        settings->status = out_of_memory(r);
    json_decref(merges);
    return settings->status;
}

att_status att_gguf_tokenizer_read(att_ctx *ctx, att_gguf *g, att_tokenizer **out)
{
    att_token_list list = {.ctx = ctx};
    att_settings settings = {.ctx = ctx};
    json_t *root = NULL;
    const reader r = {.ctx = ctx, .g = g};
    att_status s = att_gguf_tokenizer(g, &list, &root);
    s = s ? s : make_settings(&r, root, &settings);
    s = s ? s : att_pipeline_read(&settings, &list, out);
    if (!s)
        read_special(g, *out);
    att_settings_close(&settings);
    att_token_list_free(&list);
    return s;
}

att_status att_gguf_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out)
{
    att_gguf *g;
    att_status s = att_gguf_open(ctx, path, &g);
    s = s ? s : att_gguf_tokenizer_read(ctx, g, out);
    att_gguf_free(g);
    return s;
}
