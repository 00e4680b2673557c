#include "text/pipeline/pipeline.h"

#include <string.h>

#include "util/util.h"
#include "text/pipeline/unicode_v16.h"
#include "text/utf8.h"

static const att_pipeline *pipeline(const att_tokenizer *t) { return (const att_pipeline *)t; }

/* ---- text to ids */

static bool is_byte_space(uint32_t c) { return c == att_byte_char(' ') || att_char_is_space(c); }

/* Returns the number of spaces at the start or the end of a token of byte level. */
static int64_t count_spaces(const char *s, size_t bytes, bool at_end)
{
    int64_t n = 0;
    for (size_t i = 0; i < bytes;) {
        uint32_t c;
        i += att_utf8_decode(s + i, bytes - i, &c);
        if (is_byte_space(c))
            n++;
        else if (at_end)
            n = 0;
        else
            break;
    }
    return n;
}

/* Returns the byte of the original text n characters after `at`, or `end`. */
static int64_t chars_after(const char *s, int64_t at, int64_t n, int64_t end)
{
    uint32_t c;
    for (; n > 0 && at < end; n--)
        at += (int64_t)att_utf8_decode(s + at, (size_t)(end - at), &c);
    return att_min(at, end);
}

/* Returns the byte of the original text n characters before `at`; -1: there are fewer. Only a first byte begins a
 * character of several bytes, or a part of one. */
static int64_t chars_before(const char *s, int64_t at, int64_t n)
{
    uint32_t c;
    for (; n > 0 && at > 0; n--) {
        size_t bytes = (size_t)att_min(at, 4);
        while (bytes > 1 && att_utf8_decode(s + at - bytes, bytes, &c) != bytes)
            bytes--;
        at -= (int64_t)bytes;
    }
    return n > 0 ? -1 : at;
}

/* Trims the spaces of a token from its offsets as the post-processor ByteLevel does: by as many characters of the text,
 * whichever they are. */
static void trim(const att_encoding *e, const char *token, size_t bytes, int64_t *begin, int64_t *end)
{
    const char *s = e->original;
    int64_t leading = count_spaces(token, bytes, false);
    const int64_t trailing = count_spaces(token, bytes, true);
    if ((e->first || *begin == 0) && e->t->post.add_prefix_space && leading == 1)
        leading = 0; /* the space that was put before the text */
    *begin = chars_after(s, *begin, leading, *end);
    const int64_t before = trailing > 0 ? chars_before(s, *end, trailing) : -1;
    if (before >= 0)
        *end = att_max(before, *begin);
}

void att_encoding_add(att_encoding *e, int32_t id, size_t begin, size_t end)
{
    const att_span *origin = att_origin(&e->p.text) + e->piece.begin;
    int64_t from = begin < end ? origin[begin].begin : e->piece.start, to = begin < end ? origin[end - 1].end : from;
    if (e->sink->truncated)
        return;
    const att_byte_view token = att_vocabulary_view(&e->t->vocabulary, id);
    if (e->t->post.trim_offsets && e->sink->options->offsets) {
        if (e->piece.id != ATT_NO_TOKEN) /* with the spaces that it includes */
            trim(e, e->p.text.text.data + e->piece.begin, end - begin, &from, &to);
        else if (token.data)
            trim(e, token.data, token.bytes, &from, &to);
    }
    att_token_sink_add_at(e->sink, id, from, to);
    e->first = false;
}

void att_encoding_unknown(att_encoding *e, size_t begin, size_t end)
{
    att_token_sink_unknown(e->sink, e->p.text.text.data + e->piece.begin + begin, end - begin, false);
}

static void segment_pieces(att_encoding *e)
{
    for (size_t i = 0; i < e->p.list.count && !e->sink->truncated; i++) {
        e->piece = e->p.list.piece[i];
        const size_t bytes = e->piece.end - e->piece.begin;
        if (e->piece.id != ATT_NO_TOKEN)
            att_encoding_add(e, e->piece.id, 0, bytes);
        else
            e->t->model->segment(e, e->p.text.text.data + e->piece.begin, bytes);
        const att_status s = e->a.status ? e->a.status : e->b.status;
        if (s)
            att_token_sink_fail(e->sink, s);
    }
}

static void encode(att_token_sink *sink, const char *text, size_t bytes)
{
    const att_pipeline *t = pipeline(sink->t);
    if (t->one_pass && !sink->options->offsets && sink->literal.count == 0) {
        att_encode_bert_words(sink, text, bytes);
        return;
    }
    static const att_literal whole = {0, INT64_MAX};
    const att_literals all = {&whole, 1}, *literal = sink->options->split_special ? &all : &sink->literal;
    att_encoding e = {
        .t = t, .sink = sink, .original = text, .first = true, .a.ctx = t->base.ctx, .b.ctx = t->base.ctx};
    att_pieces_init(&e.p, t->base.ctx, text, bytes);
    att_added_tokens_find(&t->added, false, literal, &e.p);
    att_steps_apply(&t->normalizers, &e.p);
    att_added_tokens_find(&t->added, true, literal, &e.p);
    att_steps_apply(&t->pre_tokenizers, &e.p);
    if (e.p.status)
        att_token_sink_fail(sink, e.p.status);
    else
        segment_pieces(&e);
    att_pieces_free(&e.p);
    att_bytes_free(&e.a);
    att_bytes_free(&e.b);
}

/* ---- ids to text */

static void decode(const att_tokenizer *base, const int32_t *ids, int64_t n, att_bytes *text)
{
    const att_pipeline *t = pipeline(base);
    att_decoded d = {{.ctx = base->ctx}, {.ctx = base->ctx}, {.ctx = base->ctx}, {.ctx = base->ctx}};
    bool first = true;
    for (int64_t i = 0; i < n; i++) {
        const att_added_token *added = att_added_token_get(&t->added, ids[i]);
        const att_byte_view token =
            added ? (att_byte_view){added->text, added->bytes} : att_vocabulary_view(&t->vocabulary, ids[i]);
        if (!token.data || (added && added->left_out))
            continue;
        if (t->decoders.count == 0 && !first)
            att_decoded_put(&d, " ", 1);
        att_decoded_put(&d, token.data, token.bytes);
        att_decoded_end_token(&d);
        first = false;
    }
    att_decoded_swap(&d);
    for (size_t i = 0; i < t->decoders.count; i++) {
        t->decoders.step[i].decode(&t->decoders.step[i], &d);
        att_decoded_swap(&d);
    }
    if (t->clean_up)
        att_decoded_clean_up(&d);
    att_bytes_add(text, d.text.data, d.text.count);
    const att_bytes *all[] = {&d.text, &d.ends, &d.text_to, &d.ends_to};
    for (int i = 0; i < 4; i++)
        if (all[i]->status)
            text->status = all[i]->status;
    att_decoded_free(&d);
}

/* ---- the tokenizer */

static const char *token(const att_tokenizer *t, int32_t id)
{
    return att_vocabulary_get(&pipeline(t)->vocabulary, id);
}

/* Finds a token by its text, first among the added tokens, which the model may not have. */
static int32_t find(const att_tokenizer *base, const char *text, size_t bytes)
{
    const att_pipeline *t = pipeline(base);
    int32_t id = att_vocabulary_find(&t->vocabulary, text, bytes);
    for (size_t i = 0; id == ATT_NO_TOKEN && i < t->added.count; i++) {
        const att_byte_view token = att_vocabulary_view(&t->vocabulary, t->added.token[i].id);
        if (token.bytes == bytes && memcmp(token.data, text, bytes) == 0)
            id = t->added.token[i].id;
    }
    return id;
}

static bool is_special(const att_tokenizer *t, int32_t id)
{
    const att_added_token *added = att_added_token_get(&pipeline(t)->added, id);
    return added && added->special;
}

static void free_all(att_tokenizer *base)
{
    att_pipeline *t = (att_pipeline *)base;
    att_ctx *ctx = base->ctx;
    att_vocabulary_free(&t->vocabulary);
    att_added_tokens_free(&t->added);
    att_steps_free(ctx, &t->normalizers);
    att_steps_free(ctx, &t->pre_tokenizers);
    att_steps_free(ctx, &t->decoders);
    att_free(ctx, t->bpe.merge);
    att_hash_free(&t->bpe.pairs);
    att_trie_free(&t->unigram.trie);
    att_free(ctx, t->unigram.score);
    att_free(ctx, t);
}

const att_bert_settings *att_pipeline_bert(const att_tokenizer *t)
{
    return pipeline(t)->one_pass ? &pipeline(t)->bert : NULL;
}

att_status att_pipeline_read(att_settings *s, const att_token_list *list, att_tokenizer **out)
{
    static const att_tokenizer_kind kind = {encode, decode, token, free_all, true, find, is_special};
    att_ctx *ctx = s->ctx;
    att_pipeline *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->base = att_tokenizer_empty(ctx, &kind);
    t->vocabulary.ctx = t->added.ctx = t->bpe.pairs.ctx = t->unigram.trie.ctx = ctx;
    t->added.trie[0].ctx = t->added.trie[1].ctx = ctx;
    t->vocabulary.unknown = ATT_NO_TOKEN;
    att_pipeline_read_settings(s, list, t);
    if (s->status)
        free_all(&t->base);
    else
        *out = &t->base;
    return s->status;
}
