/* The most probable segmentation of a text (Kudo 2018), by the Viterbi algorithm (1967): the best path to each position
 * is the best path to an earlier one plus a piece. Sums are rounded to float and of equal paths the first is kept, as
 * in the `sentencepiece` package. */
#include "text/sentencepiece.h"

enum { UNKNOWN_PENALTY = 10 };

/* The best path to a position in the text. */
typedef struct path_node {
    size_t from; /* start of its last piece */
    float score;
    int32_t id; /* of its last piece; ATT_NO_ID: no path yet */
} path_node;

static void update(path_node *w, size_t from, float score, int32_t id)
{
    if (w->id == ATT_NO_ID || score > w->score)
        *w = (path_node){from, score, id};
}

/* Returns a piece's score. User-defined pieces win over others: their score is positive and grows with their length. */
static float score_of(const att_piece *p)
{
    return p->type == ATT_PIECE_USER ? (float)(0.1 * (double)p->bytes - 0.1) : p->score;
}

/* Updates the paths to the ends of all pieces that begin at `from`; w [bytes + 1]. */
static void extend_paths(const att_sentencepiece *m, const char *s, size_t bytes, size_t from, path_node *w)
{
    const size_t one = att_piece_char(s + from, bytes - from);
    const float before = w[from].score;
    bool has_one = false;
    uint32_t node = 0;
    for (size_t end = from; end < bytes && (node = att_trie_step(&m->trie, node, s[end])) != 0;) {
        const int32_t id = m->trie.node[node].id;
        const size_t length = ++end - from;
        if (id == ATT_NO_ID)
            continue;
        update(&w[end], from, score_of(&m->piece[id]) + before, id);
        has_one |= length == one;
    }
    if (!has_one)
        update(&w[from + one], from, m->min - UNKNOWN_PENALTY + before, m->unknown);
}

/* Reverses the best path: w[i].from becomes the end of the piece that begins at i. */
static void reverse(path_node *w, size_t bytes)
{
    path_node next = w[bytes];
    for (size_t at = bytes; at > 0;) {
        const size_t from = next.from;
        const path_node before = w[from];
        w[from] = (path_node){at, 0, next.id};
        next = before;
        at = from;
    }
}

att_status att_split_unigram(const att_sentencepiece *m, const char *s, size_t bytes, att_piece_sink *sink)
{
    path_node *w = att_alloc(m->ctx, bytes + 1, sizeof *w);
    if (!w)
        return ATT_ERR_MEMORY;
    for (size_t i = 0; i <= bytes; i++)
        w[i] = (path_node){.id = ATT_NO_ID};
    for (size_t at = 0; at < bytes; at += att_piece_char(s + at, bytes - at))
        extend_paths(m, s, bytes, at, w);
    reverse(w, bytes);
    for (size_t at = 0; at < bytes && !sink->full; at = w[at].from)
        att_piece_emit(m, sink, w[at].id, s + at, w[at].from - at);
    att_free(m->ctx, w);
    return ATT_OK;
}
