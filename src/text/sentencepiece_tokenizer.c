/* A SentencePiece model as a tokenizer: ids are piece numbers; no special tokens are added. */
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

#include <string.h>

typedef struct sentencepiece_tokenizer {
    att_tokenizer base;
    att_sentencepiece model;
} sentencepiece_tokenizer;

static const att_sentencepiece *model_of(const att_tokenizer *t)
{
    return &((const sentencepiece_tokenizer *)t)->model;
}

typedef struct encoder {
    att_token_sink *sink;
    att_piece_sink pieces;
} encoder;

static void emit(void *user, int32_t id, const char *text, size_t bytes)
{
    encoder *e = user;
    const att_sentencepiece *m = model_of(e->sink->t);
    if (id == m->unknown)
        att_token_sink_unknown(e->sink, text, bytes, m->model != ATT_PIECES_WORD);
    att_token_sink_add_at(e->sink, id, (int64_t)e->pieces.begin, (int64_t)e->pieces.end);
    e->pieces.full = e->sink->truncated;
}

static void encode(att_token_sink *sink, const char *text, size_t bytes)
{
    encoder e = {.sink = sink};
    e.pieces = (att_piece_sink){.emit = emit, .user = &e, .aligned = sink->options->offsets};
    const att_status s = att_sentencepiece_split(model_of(sink->t), text, bytes, &e.pieces);
    if (s)
        att_token_sink_fail(sink, s);
}

static void decode(const att_tokenizer *t, const int32_t *ids, int64_t n, att_bytes *text)
{
    att_piece_decoder j = att_piece_decode(model_of(t), text);
    for (int64_t i = 0; i < n; i++)
        att_piece_decode_next(&j, ids[i]);
    att_piece_decode_end(&j);
}

static const char *token(const att_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->size ? model_of(t)->piece[id].text : NULL;
}

/* Finds a piece by its text, which is unique. The trie does not have special pieces and bytes. */
static int32_t find(const att_tokenizer *t, const char *text, size_t bytes)
{
    const att_sentencepiece *m = model_of(t);
    for (int32_t i = 0; i < m->size; i++)
        if (m->piece[i].bytes == bytes && memcmp(m->piece[i].text, text, bytes) == 0)
            return i;
    return ATT_NO_ID;
}

static bool is_special(const att_tokenizer *t, int32_t id)
{
    const int32_t type = model_of(t)->piece[id].type;
    return type == ATT_PIECE_CONTROL || type == ATT_PIECE_UNKNOWN;
}

static void read_special(att_tokenizer *t, const att_sentencepiece *m)
{
    t->special[ATT_TOKEN_UNK] = m->unknown;
    t->special[ATT_TOKEN_BOS] = m->begin;
    t->special[ATT_TOKEN_EOS] = m->end;
    t->special[ATT_TOKEN_PAD] = m->padding;
}

static void free_all(att_tokenizer *t)
{
    att_sentencepiece_free(&((sentencepiece_tokenizer *)t)->model);
    att_free(t->ctx, t);
}

att_status att_sentencepiece_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out)
{
    static const att_tokenizer_kind kind = {encode, decode, token, free_all, false, find, is_special};
    *out = NULL;
    sentencepiece_tokenizer *t = att_alloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->base = att_tokenizer_empty(ctx, &kind);
    const att_status s = att_sentencepiece_open(&t->model, ctx, path);
    if (s) {
        att_free(ctx, t);
        return s;
    }
    t->base.size = t->model.size;
    read_special(&t->base, &t->model);
    *out = &t->base;
    return ATT_OK;
}
