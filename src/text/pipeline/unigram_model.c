/* The most probable segmentation of a piece (Kudo 2018), by the Viterbi algorithm (1967), as in the `tokenizers`
 * package: scores are summed in double, and of equal paths the first is kept. */
#include <math.h>
#include <string.h>

#include "text/pipeline/pipeline.h"
#include "text/utf8.h"

enum { UNKNOWN_PENALTY = 10 };

/* The best path to a position. */
typedef struct path_node {
    double score;
    uint32_t from; /* start of its last token */
    int32_t id;    /* of that token */
    bool there;
} path_node;

/* Reads an item of "vocab": ["token", score]. */
static void read_item(att_settings *s, att_pipeline *t, int32_t id, const json_t *item)
{
    const json_t *score = json_array_get(item, 1);
    const att_unigram *u = &t->unigram;
    if (json_array_size(item) == 2 && json_is_string(json_array_get(item, 0)) && json_is_real(score))
        u->score[id] = (size_t)id < u->n_written ? u->written[id] : json_real_value(score);
    else
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%svocab\" has %s, not a token and its score", s->within,
                          att_json_show(item).text);
}

static void read_unigram(att_settings *s, att_pipeline *t)
{
    att_unigram *u = &t->unigram;
    const json_t *vocab = att_settings_list(s, "vocab", true);
    const size_t n = json_array_size(vocab);
    att_token_list list = {.ctx = s->ctx};
    double min = INFINITY;
    u->score = att_calloc(s->ctx, n, sizeof *u->score);
    if (!u->score && !s->status)
        s->status = ATT_ERR_MEMORY;
    for (size_t i = 0; !s->status && i < n; i++) {
        read_item(s, t, (int32_t)i, json_array_get(vocab, i));
        if (s->status)
            break;
        min = u->score[i] < min ? u->score[i] : min;
        const att_byte_view text = att_vocabulary_view(&t->vocabulary, (int64_t)i);
        if (text.data)
            s->status = att_token_list_add(&list, (att_trie_entry){text.data, text.bytes, (int32_t)i});
    }
    u->unknown_score = min - UNKNOWN_PENALTY;
    if (att_settings_has(s, "unk_id"))
        t->vocabulary.unknown = (int32_t)att_settings_int(s, "unk_id", 0, (int64_t)n - 1);
    u->byte_fallback = att_settings_bool(s, "byte_fallback", false);
    att_find_byte_tokens(&t->vocabulary, u->byte);
    if (!s->status)
        s->status = att_token_list_trie(&list, &u->trie);
    att_token_list_free(&list);
}

static void update(path_node *w, double score, size_t from, int32_t id)
{
    if (!w->there || score > w->score)
        *w = (path_node){score, (uint32_t)from, id, true};
}

/* Updates the paths to the ends of all tokens that begin at `from`; returns the bytes of the character there. */
static size_t extend(const att_pipeline *t, const char *s, size_t bytes, size_t from, path_node *w)
{
    uint32_t c, node = 0;
    const size_t one = att_utf8_decode(s + from, bytes - from, &c);
    bool has_one = false;
    for (size_t end = from; end < bytes && (node = att_trie_step(&t->unigram.trie, node, s[end])) != 0;) {
        const int32_t id = t->unigram.trie.node[node].id;
        const size_t length = ++end - from;
        if (id == ATT_NO_ID)
            continue;
        update(&w[end], t->unigram.score[id] + w[from].score, from, id);
        has_one |= length == one;
    }
    if (!has_one)
        update(&w[from + one], t->unigram.unknown_score + w[from].score, from, ATT_NO_TOKEN);
    return one;
}

/* Reverses the best path: w[i].from becomes the end of the token that begins at i. */
static void reverse(path_node *w, size_t bytes)
{
    path_node next = w[bytes];
    for (size_t at = bytes; at > 0;) {
        const size_t from = next.from;
        const path_node before = w[from];
        w[from] = (path_node){0, (uint32_t)at, next.id, true};
        next = before;
        at = from;
    }
}

/* Adds bytes [begin, end) that no token has: as bytes, or as the unknown token. */
static void add_unknown(att_encoding *e, const char *s, size_t begin, size_t end)
{
    const att_unigram *u = &e->t->unigram;
    const int32_t literal = att_vocabulary_find(&e->t->vocabulary, s + begin, end - begin); /* "<unk>" itself */
    bool bytes = u->byte_fallback && literal == ATT_NO_TOKEN;
    for (size_t i = begin; i < end; i++)
        bytes = bytes && u->byte[(unsigned char)s[i]] != ATT_NO_TOKEN;
    for (size_t i = begin; bytes && i < end; i++)
        att_encoding_add(e, u->byte[(unsigned char)s[i]], begin, end);
    if (bytes)
        return;
    att_encoding_unknown(e, begin, end);
    if (literal != ATT_NO_TOKEN)
        att_encoding_add(e, literal, begin, end);
    else if (e->t->vocabulary.unknown != ATT_NO_TOKEN)
        att_encoding_add(e, e->t->vocabulary.unknown, begin, end);
    else
        att_token_sink_fail(e->sink, att_fail(e->t->base.ctx, ATT_ERR_FORMAT,
                                              "\"%.*s\" is not in the vocabulary, which has no unknown token",
                                              (int)(end - begin < 40 ? end - begin : 40), s + begin));
}

static void segment(att_encoding *e, const char *s, size_t bytes)
{
    const att_pipeline *t = e->t;
    e->a.count = 0;
    if (!att_bytes_reserve(&e->a, (bytes + 1) * sizeof(path_node)))
        return;
    path_node *w = (path_node *)(void *)e->a.data;
    memset(w, 0, (bytes + 1) * sizeof *w);
    for (size_t at = 0; at < bytes;)
        at += extend(t, s, bytes, at, w);
    reverse(w, bytes);
    for (size_t at = 0, end; at < bytes; at = end) {
        const int32_t id = w[at].id;
        const bool unknown = id == ATT_NO_TOKEN || id == t->vocabulary.unknown;
        end = w[at].from;
        if (!unknown) {
            att_encoding_add(e, id, at, end);
            continue;
        }
        while (end < bytes && (w[end].id == ATT_NO_TOKEN || w[end].id == t->vocabulary.unknown))
            end = w[end].from; /* adjacent unknown tokens are combined */
        add_unknown(e, s, at, end);
    }
}

const att_subword_model att_unigram_model = {"Unigram", read_unigram, segment};
