/* The tokenizer of Marian models, like the class MarianTokenizer: source.spm splits source texts, target.spm target
 * texts, and vocab.json maps pieces, by their text, to tokens. Special tokens in the text are matched first; the text
 * between them is split separately, and ">>de<<" at its start is one token. */
#include "text/sentencepiece.h"
#include "text/tokenizer_file.h"
#include "text/tokenizer.h"
#include "text/unicode_v8.h"
#include "text/utf8.h"

#include <stdio.h>
#include <string.h>

enum { SKIPPED = -2 }; /* instead of a piece: a special token, which decoding skips */

typedef struct side {
    att_sentencepiece model;
    int32_t *token_of; /* [model.size]: token of each piece, or ATT_NO_TOKEN */
} side;

typedef struct marian_tokenizer {
    att_tokenizer base;
    side source, target;
    att_vocabulary vocabulary;
    att_trie special;  /* their texts are in the vocabulary, too */
    int32_t *piece_of; /* [vocabulary.size]: piece of the target model, ATT_NO_ID or SKIPPED */
} marian_tokenizer;

static const marian_tokenizer *marian(const att_tokenizer *t) { return (const marian_tokenizer *)t; }

/* ---- text to ids */

typedef struct encoder {
    const marian_tokenizer *t;
    const side *side;
    att_token_sink *sink;
    att_piece_sink pieces;
    size_t start; /* start, in the text, of the part that is split into pieces */
} encoder;

/* Adds a token for bytes [begin, end) of the text. */
static void add(encoder *e, int32_t token, size_t begin, size_t end)
{
    att_token_sink_add_at(e->sink, token == ATT_NO_TOKEN ? e->t->vocabulary.unknown : token, (int64_t)begin,
                          (int64_t)end);
    e->pieces.full = e->sink->truncated;
}

/* Adds a piece. If this model does not know it, the vocabulary may have it from the other language. */
static void emit(void *user, int32_t id, const char *text, size_t bytes)
{
    encoder *e = user;
    const bool unknown = id == e->side->model.unknown;
    const int32_t token = unknown ? att_vocabulary_find(&e->t->vocabulary, text, bytes) : e->side->token_of[id];
    if (token == ATT_NO_TOKEN)
        att_token_sink_unknown(e->sink, text, bytes, unknown && e->side->model.model != ATT_PIECES_WORD);
    add(e, token, e->start + e->pieces.begin, e->start + e->pieces.end);
}

/* Returns the length of a language code at the start of the text: ">>de<<". */
static size_t code_length(const char *s, size_t bytes)
{
    const char *end = bytes >= 4 && memcmp(s, ">>", 2) == 0 ? memmem(s + 2, bytes - 2, "<<", 2) : NULL;
    return end ? (size_t)(end + 2 - s) : 0;
}

/* Encodes bytes [begin, end) of the text, which have no special tokens. */
static void encode_plain(encoder *e, const char *text, size_t begin, size_t end)
{
    const size_t code = code_length(text + begin, end - begin);
    if (code > 0)
        add(e, att_vocabulary_find(&e->t->vocabulary, text + begin, code), begin, begin + code);
    e->start = begin + code;
    if (e->start == end || e->sink->truncated)
        return;
    const att_status status = att_sentencepiece_split(&e->side->model, text + e->start, end - e->start, &e->pieces);
    if (status)
        att_token_sink_fail(e->sink, status);
}

static void encode(att_token_sink *sink, const char *text, size_t bytes)
{
    const marian_tokenizer *t = marian(sink->t);
    encoder e = {.t = t, .side = sink->options->target ? &t->target : &t->source, .sink = sink};
    e.pieces = (att_piece_sink){.emit = emit, .user = &e, .aligned = sink->options->offsets};
    size_t plain = 0; /* start of the text that is not encoded yet */
    for (size_t i = 0; i < bytes && !sink->truncated && !sink->options->split_special;) {
        size_t length;
        const int32_t token = att_trie_longest(&t->special, text + i, bytes - i, &length);
        if (token == ATT_NO_ID) {
            i++;
            continue;
        }
        encode_plain(&e, text, plain, i);
        if (!sink->truncated)
            add(&e, token, i, i + length);
        plain = i += length;
    }
    if (!sink->truncated)
        encode_plain(&e, text, plain, bytes);
}

/* ---- ids to text */

/* Returns whether Python's str.strip() removes a character. */
static bool is_space(uint32_t c) { return att_char_class(c) & ATT_CHAR_SPACE || (c >= 0x1C && c <= 0x1F); }

static void strip(att_bytes *text)
{
    size_t begin = 0, end = 0; /* end: after the last character that is not a space */
    bool started = false;
    for (size_t i = 0, n; i < text->count; i += n) {
        uint32_t c;
        n = att_utf8_decode(text->data + i, text->count - i, &c);
        if (is_space(c))
            continue;
        begin = started ? begin : i;
        end = i + n;
        started = true;
    }
    if (end > begin)
        memmove(text->data, text->data + begin, end - begin);
    text->count = end - begin;
}

static void decode(const att_tokenizer *base, const int32_t *ids, int64_t n, att_bytes *text)
{
    const marian_tokenizer *t = marian(base);
    att_piece_decoder j = att_piece_decode(&t->target.model, text);
    for (int64_t i = 0; i < n; i++) {
        const int32_t piece = t->piece_of[ids[i]];
        const char *token = att_vocabulary_get(&t->vocabulary, ids[i]);
        if (piece >= 0)
            att_piece_decode_next(&j, piece);
        else if (piece != SKIPPED && token)
            att_piece_decode_other(&j, token);
    }
    att_piece_decode_end(&j);
    strip(text);
}

static const char *token(const att_tokenizer *t, int32_t id) { return att_vocabulary_get(&marian(t)->vocabulary, id); }

static int32_t find(const att_tokenizer *t, const char *text, size_t bytes)
{
    return att_vocabulary_find(&marian(t)->vocabulary, text, bytes);
}

static bool is_special(const att_tokenizer *t, int32_t id) { return marian(t)->piece_of[id] == SKIPPED; }

static void free_all(att_tokenizer *base)
{
    marian_tokenizer *t = (marian_tokenizer *)base;
    att_ctx *ctx = base->ctx;
    att_sentencepiece_free(&t->source.model);
    att_sentencepiece_free(&t->target.model);
    att_free(ctx, t->source.token_of);
    att_free(ctx, t->target.token_of);
    att_free(ctx, t->piece_of);
    att_trie_free(&t->special);
    att_vocabulary_free(&t->vocabulary);
    att_free(ctx, t);
}

/* ---- opening */

static att_status read_vocabulary(marian_tokenizer *t, att_ctx *ctx, const char *folder)
{
    att_text_file f;
    att_settings s; /* for errors */
    att_token_list list = {.ctx = ctx};
    att_status status = att_text_file_read(&f, ctx, folder, "vocab.json", true);
    status = status ? status : att_read_token_map(&f, &list);
    if (!status) {
        att_settings_init(&s, ctx, f.path, NULL);
        att_token_list_fill(&list, &(att_token_list){0}, &s, &t->vocabulary);
        status = s.status;
    }
    t->base.size = t->vocabulary.size;
    att_token_list_free(&list);
    att_text_file_free(&f);
    return status;
}

/* Adds a special token, which must be in the vocabulary, to the list; returns its id. */
static int32_t add_special(const att_vocabulary *v, att_settings *s, const char *text, att_token_list *special)
{
    const att_trie_entry e = {text, strlen(text), att_vocabulary_find(v, text, strlen(text))};
    if (e.id == ATT_NO_TOKEN)
        att_settings_fail(s, ATT_ERR_FORMAT, "the special token \"%.80s\" is not in vocab.json", text);
    if (!s->status)
        s->status = att_token_list_add(special, e);
    return e.id;
}

/* Adds special tokens of {"0": {"content": "</s>", "lstrip": false, ...}, ...}. */
static void add_listed(const att_vocabulary *v, att_settings *s, const json_t *tokens, att_token_list *special)
{
    const char *key;
    json_t *item;
    if (tokens && !json_is_object(tokens))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"added_tokens_decoder\" is %s, not an object",
                          att_json_show(tokens).text);
    json_object_foreach((json_t *)tokens, key, item)
    {
        const att_settings_scope before = att_settings_enter_item(s, "added_tokens_decoder", item);
        add_special(v, s, att_settings_text(s, "content", NULL), special);
        att_settings_only_bool(s, "lstrip", false);
        att_settings_only_bool(s, "rstrip", false);
        att_settings_only_bool(s, "single_word", false);
        att_settings_only_bool(s, "special", true);
        att_settings_leave(s, before);
    }
}

static void read_special(marian_tokenizer *t, att_settings *s, const att_settings *map)
{
    static const struct {
        att_token token;
        const char *key, *otherwise;
    } names[] = {{ATT_TOKEN_UNK, "unk_token", "<unk>"},
                 {ATT_TOKEN_EOS, "eos_token", "</s>"},
                 {ATT_TOKEN_PAD, "pad_token", "<pad>"}};
    att_vocabulary *v = &t->vocabulary;
    att_token_list special = {.ctx = s->ctx};
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
    const json_t *listed = att_settings_get(s, "added_tokens_decoder");
    for (size_t i = 0; !s->status && i < sizeof names / sizeof names[0]; i++)
        t->base.special[names[i].token] =
            add_special(v, s, att_special_token(s, map, names[i].key, names[i].otherwise), &special);
    v->unknown = t->base.special[ATT_TOKEN_UNK];
    att_template *single = &t->base.single, *pair = &t->base.pair;
    const int32_t items[] = {ATT_TEXT_A, ATT_TEXT_B, t->base.special[ATT_TOKEN_EOS]};
    for (int i = 0; i < 3; i++) {
        if (i != 1)
            att_template_add(single, items[i], 0);
        att_template_add(pair, items[i], 0);
    }
    for (int k = 0; k < 2; k++) {
        const json_t *more = att_settings_list(s, lists[k], false);
        for (size_t i = 0; !s->status && i < json_array_size(more); i++)
            add_special(v, s, att_token_content(s, lists[k], json_array_get(more, i)), &special);
    }
    if (!s->status)
        add_listed(v, s, listed, &special);
    if (!s->status)
        s->status = att_token_list_trie(&special, &t->special);
    att_token_list_free(&special);
}

static att_status read_settings(marian_tokenizer *t, att_ctx *ctx, const char *folder)
{
    att_settings config, map;
    att_settings_read(&config, ctx, folder, "tokenizer_config.json", false);
    att_special_tokens_map_read(&config, folder, &map);
    att_settings_only_text(&config, "tokenizer_class", "MarianTokenizer");
    att_settings_only_bool(&config, "separate_vocabs", false);
    att_settings_only_bool(&config, "split_special_tokens", false);
    att_settings_only_empty(&config, "sp_model_kwargs");
    read_special(t, &config, &map);
    att_settings_close(&config);
    att_settings_close(&map);
    return config.status;
}

static att_status read_side(side *d, const marian_tokenizer *t, const char *folder, const char *name)
{
    char path[ATT_MAX_PATH];
    att_ctx *ctx = t->base.ctx;
    att_status s = att_join_path(ctx, folder, name, path);
    s = s ? s : att_sentencepiece_open(&d->model, ctx, path);
    if (s)
        return s;
    d->token_of = att_alloc(ctx, (size_t)d->model.size, sizeof *d->token_of);
    for (int64_t i = 0; d->token_of && i < d->model.size; i++)
        d->token_of[i] = att_vocabulary_find(&t->vocabulary, d->model.piece[i].text, d->model.piece[i].bytes);
    return d->token_of ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status invert_target(marian_tokenizer *t)
{
    t->piece_of = att_alloc(t->base.ctx, (size_t)t->base.size, sizeof *t->piece_of);
    if (!t->piece_of)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < t->base.size; i++)
        t->piece_of[i] = ATT_NO_ID;
    for (int32_t i = 0; i < t->target.model.size; i++)
        if (t->target.token_of[i] != ATT_NO_TOKEN)
            t->piece_of[t->target.token_of[i]] = i;
    for (uint32_t i = 0; i < t->special.size; i++)
        if (t->special.node[i].id != ATT_NO_ID)
            t->piece_of[t->special.node[i].id] = SKIPPED;
    return ATT_OK;
}

att_status att_marian_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out)
{
    static const att_tokenizer_kind kind = {encode, decode, token, free_all, false, find, is_special};
    *out = NULL;
    marian_tokenizer *t = att_alloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    *t = (marian_tokenizer){.base = att_tokenizer_empty(ctx, &kind)};
    t->vocabulary.ctx = t->special.ctx = ctx;
    t->source.model = t->target.model = att_sentencepiece_empty(ctx);
    att_status s = read_vocabulary(t, ctx, folder);
    s = s ? s : read_settings(t, ctx, folder);
    s = s ? s : att_truncation_side(ctx, folder, NULL, &t->base.truncate_left);
    s = s ? s : read_side(&t->source, t, folder, "source.spm");
    s = s ? s : read_side(&t->target, t, folder, "target.spm");
    s = s ? s : invert_target(t);
    if (s)
        free_all(&t->base);
    else
        *out = &t->base;
    return s;
}
