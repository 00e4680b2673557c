#include "text/bert_tokenizer.h"
#include "text/sentencepiece.h"

typedef struct encoder {
    const att_bert_tokenizer *t;
    att_token_sink *sink;
    att_bert_normalizer words;
} encoder;

static void add(encoder *e, const int32_t *ids, int64_t n)
{
    att_token_sink_add(e->sink, ids, n);
    e->words.full = e->sink->full;
    e->words.truncated |= e->sink->truncated;
}

/* Reports characters of a word that are in no token, or the whole word if all are. */
static void report_unknown(const encoder *e, const char *word, size_t bytes)
{
    bool all_known = true;
    for (size_t i = 0, n; i < bytes; i += n) {
        n = att_piece_char(word + i, bytes - i);
        if (att_wordpiece_has(&e->t->vocabulary, word + i, n))
            continue;
        att_token_sink_unknown(e->sink, word + i, n, false);
        all_known = false;
    }
    if (all_known)
        att_token_sink_unknown(e->sink, word, bytes, false);
}

static void on_word(void *user, const char *word, size_t bytes, bool too_long)
{
    encoder *e = user;
    int32_t ids[4 * ATT_MAX_WORD];
    int n = 1;
    if (too_long)
        ids[0] = e->t->vocabulary.unknown;
    else
        n = att_wordpiece(&e->t->vocabulary, word, bytes, ids);
    if (n == 1 && ids[0] == e->t->vocabulary.unknown)
        report_unknown(e, word, bytes);
    add(e, ids, n);
}

static void encode(att_token_sink *sink, const char *text, size_t bytes)
{
    encoder e; /* not zeroed: its buffers are large */
    e.t = (const att_bert_tokenizer *)sink->t;
    e.sink = sink;
    att_bert_normalizer *w = &e.words;
    att_bert_normalizer_init(w, &e.t->settings, on_word, &e);
    w->full = sink->full;
    const unsigned char *s = (const unsigned char *)text;
    const bool plain = sink->options->split_special;
    size_t i = 0;
    while (!w->truncated && (i += att_bert_normalizer_run(w, s + i, bytes - i, e.t->begins[plain])) < bytes &&
           !w->truncated) {
        size_t length;
        const int32_t id = att_trie_longest(&e.t->added[plain], text + i, bytes - i, &length);
        if (id == ATT_NO_ID) {
            i += att_bert_normalizer_step(w, s + i, bytes - i);
            continue;
        }
        att_bert_normalizer_end(w);
        if (!w->truncated)
            add(&e, &id, 1);
        i += length;
    }
    if (!w->truncated)
        att_bert_normalizer_end(w);
    sink->truncated |= w->truncated; /* there was another word, even if it has no token */
}

static const char *token(const att_tokenizer *base, int32_t id)
{
    return att_vocabulary_get(&((const att_bert_tokenizer *)base)->vocabulary, id);
}

static void free_all(att_tokenizer *base)
{
    att_bert_tokenizer *t = (att_bert_tokenizer *)base;
    att_vocabulary_free(&t->vocabulary);
    att_trie_free(&t->added[0]);
    att_trie_free(&t->added[1]);
    att_free(base->ctx, t);
}

att_bert_tokenizer *att_bert_tokenizer_new(att_ctx *ctx)
{
    static const att_tokenizer_kind kind = {encode, NULL, token, free_all, false, false};
    att_bert_tokenizer *t = att_alloc(ctx, 1, sizeof *t);
    if (t)
        *t = (att_bert_tokenizer){
            .base = {.ctx = ctx, .kind = &kind}, .vocabulary.ctx = ctx, .added = {{.ctx = ctx}, {.ctx = ctx}}};
    return t;
}
