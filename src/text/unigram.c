/* The most probable pieces of a text (Kudo 2018): the best way to each place is the best way to some place before it
 * and one piece from there (Viterbi 1967). Sums are rounded to float, and of equal ways the one that comes first stays,
 * as in the `sentencepiece` package. */
#include "text/sentencepiece.h"

enum { UNKNOWN_PENALTY = 10 };

/* The best way to a place in the text. */
typedef struct way {
    size_t from; /* where its last piece begins */
    float score;
    int32_t id; /* of that piece, or ATT_NO_ID: there is no way yet */
} way;

static void offer(way *w, size_t from, float score, int32_t id)
{
    if (w->id == ATT_NO_ID || score > w->score)
        *w = (way){from, score, id};
}

/* A piece of the user's is taken rather than others: it scores where they cost, and the more the longer it is. */
static float score_of(const att_piece *p)
{
    return p->type == ATT_PIECE_USER ? (float)(0.1 * (double)p->bytes - 0.1) : p->score;
}

/* Offers each piece that begins here to the place where it ends; w [bytes + 1]. */
static void offer_pieces(const att_sentencepiece *m, const char *s, size_t bytes, size_t from, way *w)
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
        offer(&w[end], from, score_of(&m->piece[id]) + before, id);
        has_one |= length == one;
    }
    if (!has_one) {
        const float unknown = m->min - UNKNOWN_PENALTY;
        offer(&w[from + one], from, unknown + before, m->unknown);
    }
}

/* Makes w[end].from, of the places of the best way, where the piece that begins there ends: it is walked forwards. */
static void turn(way *w, size_t bytes)
{
    way next = w[bytes];
    for (size_t at = bytes; at > 0;) {
        const size_t from = next.from;
        const way before = w[from];
        w[from] = (way){at, 0, next.id};
        next = before;
        at = from;
    }
}

att_status att_cut_unigram(const att_sentencepiece *m, const char *s, size_t bytes, att_piece_taker *taker)
{
    way *w = att_alloc(m->ctx, bytes + 1, sizeof *w);
    if (!w)
        return ATT_ERR_MEMORY;
    for (size_t i = 0; i <= bytes; i++)
        w[i] = (way){.id = ATT_NO_ID};
    for (size_t at = 0; at < bytes; at += att_piece_char(s + at, bytes - at))
        offer_pieces(m, s, bytes, at, w);
    turn(w, bytes);
    for (size_t at = 0; at < bytes && !taker->enough; at = w[at].from)
        att_piece_give(m, taker, w[at].id, s + at, w[at].from - at);
    att_free(m->ctx, w);
    return ATT_OK;
}
