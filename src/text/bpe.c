/* Applies byte-pair encoding (Sennrich et al. 2016): of all adjacent parts that form a piece, the pair with the best
 * score is merged, leftmost first, until none is left. Candidates are in a heap; a candidate whose parts have changed
 * has another length and is skipped. */
#include "text/sentencepiece.h"

/* A part of the text; initially a character. */
typedef struct part {
    int32_t begin, bytes;  /* bytes 0: merged into the part before */
    int32_t before, after; /* parts, or -1 */
    uint32_t node;         /* of the trie, for its text; 0: no piece begins so */
    bool fixed;            /* user-defined: never merged */
} part;

typedef struct candidate {
    float score;
    int32_t left, right; /* parts */
    int32_t bytes;       /* of both parts */
    uint32_t node;
} candidate;

typedef struct merger {
    const att_sentencepiece *m;
    const char *s;
    part *part;      /* [bytes] */
    candidate *heap; /* [3 bytes]: each merge adds two, and there are fewer merges than parts */
    size_t n_heap;
} merger;

static bool better(const candidate *a, const candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void push(merger *g, candidate c)
{
    size_t at = g->n_heap++;
    for (; at > 0 && better(&c, &g->heap[(at - 1) / 2]); at = (at - 1) / 2)
        g->heap[at] = g->heap[(at - 1) / 2];
    g->heap[at] = c;
}

static candidate pop(merger *g)
{
    const candidate top = g->heap[0], last = g->heap[--g->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < g->n_heap; at = child) {
        if (child + 1 < g->n_heap && better(&g->heap[child + 1], &g->heap[child]))
            child++;
        if (!better(&g->heap[child], &last))
            break;
        g->heap[at] = g->heap[child];
    }
    g->heap[at] = last;
    return top;
}

static void consider(merger *g, int32_t left, int32_t right)
{
    if (left < 0 || right < 0 || g->part[left].fixed || g->part[right].fixed || g->part[left].node == 0)
        return;
    const att_trie *trie = &g->m->trie;
    const part r = g->part[right];
    const uint32_t node = att_trie_walk(trie, g->part[left].node, g->s + r.begin, (size_t)r.bytes);
    if (node && trie->node[node].id != ATT_NO_ID)
        push(g, (candidate){g->m->piece[trie->node[node].id].score, left, right, g->part[left].bytes + r.bytes, node});
}

/* Splits into characters and user-defined pieces; returns their number. */
static int32_t split(merger *g, const char *s, size_t bytes)
{
    int32_t n = 0;
    for (size_t at = 0; at < bytes; n++) {
        const size_t user = att_piece_user(g->m, s + at, bytes - at);
        const size_t length = user ? user : att_piece_char(s + at, bytes - at);
        const uint32_t node = att_trie_walk(&g->m->trie, 0, s + at, length);
        g->part[n] = (part){(int32_t)at, (int32_t)length, n - 1, n + 1, node, user > 0};
        at += length;
    }
    g->part[n - 1].after = -1;
    return n;
}

static void merge(merger *g, candidate c)
{
    part *left = &g->part[c.left], *right = &g->part[c.right];
    if (right->bytes == 0 || left->bytes == 0 || left->bytes + right->bytes != c.bytes)
        return;
    left->bytes = c.bytes;
    left->node = c.node;
    left->after = right->after;
    if (right->after >= 0)
        g->part[right->after].before = c.left;
    right->bytes = 0;
    consider(g, left->before, c.left);
    consider(g, c.left, left->after);
}

/* Merges the parts of s [bytes], which is not empty. */
static void merge_all(merger *g, const char *s, size_t bytes, att_piece_sink *sink)
{
    g->s = s;
    g->n_heap = 0;
    const int32_t n = split(g, s, bytes);
    for (int32_t i = 1; i < n; i++)
        consider(g, i - 1, i);
    while (g->n_heap > 0)
        merge(g, pop(g));
    for (int32_t i = 0; i >= 0 && !sink->full; i = g->part[i].after) {
        const part *p = &g->part[i];
        att_piece_emit_node(g->m, sink, p->node, s + p->begin, (size_t)p->bytes);
    }
}

att_status att_split_bpe(const att_sentencepiece *m, const char *s, size_t bytes, att_piece_sink *sink)
{
    size_t max = m->words_apart ? 0 : bytes;
    for (size_t at = 0, n; m->words_apart && at < bytes; at += n) {
        n = att_piece_word(s + at, bytes - at);
        max = n > max ? n : max;
    }
    if (max > INT32_MAX)
        return att_fail(m->ctx, ATT_ERR_UNSUPPORTED, "a text of %zu bytes cannot be merged: more than %d", max,
                        INT32_MAX);
    merger g = {.m = m};
    g.part = att_alloc(m->ctx, max, sizeof *g.part);
    g.heap = att_alloc(m->ctx, 3 * max, sizeof *g.heap);
    for (size_t at = 0, n; g.part && g.heap && at < bytes && !sink->full; at += n) {
        n = m->words_apart ? att_piece_word(s + at, bytes - at) : bytes;
        merge_all(&g, s + at, n, sink);
    }
    const bool done = g.part && g.heap;
    att_free(m->ctx, g.part);
    att_free(m->ctx, g.heap);
    return done ? ATT_OK : ATT_ERR_MEMORY;
}
