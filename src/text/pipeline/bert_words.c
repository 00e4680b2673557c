/* BERT's text to ids in one pass, without offsets: its normalizer, its pre-tokenizer and WordPiece on one word after
 * the other. The steps of the pipeline give the same ids. */
#include "text/pipeline/pipeline.h"
#include "text/sentencepiece.h"

typedef struct encoder {
    const att_pipeline *t;
    att_token_sink *sink;
    att_bert_normalizer words;
} encoder;

static void add(encoder *e, const int32_t *ids, int64_t n)
{
    att_token_sink_add(e->sink, ids, n);
    e->words.full = e->sink->full;
    e->words.truncated |= e->sink->truncated;
}

void att_wordpiece_report_unknown(const att_vocabulary *v, att_token_sink *sink, const char *word, size_t bytes)
{
    bool all_known = true;
    for (size_t i = 0, n; i < bytes; i += n) {
        n = att_piece_char(word + i, bytes - i);
        if (att_wordpiece_has(v, word + i, n))
            continue;
        att_token_sink_unknown(sink, word + i, n, false);
        all_known = false;
    }
    if (all_known)
        att_token_sink_unknown(sink, word, bytes, false);
}

static void on_word(void *user, const char *word, size_t bytes, bool too_long)
{
    encoder *e = user;
    const att_vocabulary *v = &e->t->vocabulary;
    int32_t ids[4 * ATT_MAX_WORD];
    int n = 1;
    if (too_long)
        ids[0] = v->unknown;
    else
        n = att_wordpiece(v, word, bytes, ids);
    if (n == 1 && ids[0] == v->unknown)
        att_wordpiece_report_unknown(v, e->sink, word, bytes);
    add(e, ids, n);
}

/* Returns the added token at s [bytes], where one may be; NULL: none. */
static const att_added_token *token_at(const att_added_tokens *a, const char *s, size_t bytes, size_t *length)
{
    const int32_t i = att_trie_longest(&a->trie[0], s, bytes, length);
    return i == ATT_NO_ID ? NULL : &a->token[i];
}

void att_encode_bert_words(att_token_sink *sink, const char *text, size_t bytes)
{
    encoder e; /* not zeroed: its buffers are large */
    e.t = (const att_pipeline *)sink->t;
    e.sink = sink;
    const att_added_tokens *added = &e.t->added;
    att_bert_normalizer *w = &e.words;
    att_bert_normalizer_init(w, &e.t->bert, on_word, &e);
    w->full = sink->full;
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0, literal = 0; /* up to `literal` special tokens are plain text */
    while (!w->truncated && (i += att_bert_normalizer_run(w, s + i, bytes - i, added->begins[0])) < bytes &&
           !w->truncated) {
        size_t length;
        const att_added_token *token = i < literal ? NULL : token_at(added, text + i, bytes - i, &length);
        if (token && token->special && sink->options->split_special) {
            literal = i + length;
            token = NULL;
        }
        if (!token) {
            i += att_bert_normalizer_step(w, s + i, bytes - i);
            continue;
        }
        att_bert_normalizer_end(w);
        if (!w->truncated)
            add(&e, &token->id, 1);
        i += length;
    }
    if (!w->truncated)
        att_bert_normalizer_end(w);
    sink->truncated |= w->truncated; /* another word followed, even if it has no token */
}
