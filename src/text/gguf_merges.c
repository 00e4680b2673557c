/* Makes a list of merges from scores. SentencePiece's BPE joins the two neighbors whose joined piece has the highest
 * score; the list has all ways to make a piece of two others, sorted by the piece's score, as in `transformers`. */
#include <stdlib.h>
#include <string.h>

#include "attend_util.h"
#include "text/gguf_tokenizer.h"

enum { MAX_PIECE = 1024 /* bytes */ };

typedef struct merge {
    const att_trie_entry *piece, *left, *right;
    double score;
    int left_chars, right_chars;
} merge;

static int characters(const att_trie_entry *e)
{
    int n = 0;
    for (size_t i = 0; i < e->bytes; i++)
        n += ((unsigned char)e->text[i] & 0xC0) != 0x80;
    return n;
}

/* Sorts merges: the highest score first, then the longest left side, then the longest right side, then the file's
 * order. */
static int by_score(const void *a, const void *b)
{
    const merge *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_chars != y->left_chars)
        return y->left_chars - x->left_chars;
    if (x->right_chars != y->right_chars)
        return y->right_chars - x->right_chars;
    return (x->piece->id > y->piece->id) - (x->piece->id < y->piece->id);
}

static const att_trie_entry *find(const att_trie_entry *sorted, size_t n, const char *text, size_t bytes)
{
    const att_trie_entry wanted = {text, bytes, 0};
    return bsearch(&wanted, sorted, n, sizeof wanted, att_trie_order);
}

/* Adds the ways to make a piece of two others. */
static att_status add_merges(att_ctx *ctx, const att_gguf_pieces *p, const att_trie_entry *sorted,
                             const att_trie_entry *e, att_bytes *all)
{
    const size_t n = p->list->count;
    if (e->bytes > MAX_PIECE)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "token %d has %zu bytes, more than %d", e->id, e->bytes, MAX_PIECE);
    for (size_t i = 1; i < e->bytes; i++) {
        if (((unsigned char)e->text[i] & 0xC0) == 0x80)
            continue;
        merge m = {.piece = e, .score = p->score[e->id]};
        m.left = find(sorted, n, e->text, i);
        m.right = m.left ? find(sorted, n, e->text + i, e->bytes - i) : NULL;
        if (!m.right)
            continue;
        m.left_chars = characters(m.left);
        m.right_chars = characters(m.right);
        att_bytes_add(all, &m, sizeof m);
    }
    return all->status;
}

static json_t *pair(const merge *m)
{
    return json_pack("[s%, s%]", m->left->text, m->left->bytes, m->right->text, m->right->bytes);
}

att_status att_gguf_merges(att_gguf *g, const att_gguf_pieces *p, json_t *merges)
{
    att_ctx *ctx = p->list->ctx;
    const size_t n = p->list->count;
    att_bytes all = {.ctx = ctx};
    att_trie_entry *sorted = att_alloc(ctx, n, sizeof *sorted);
    att_status s = sorted ? ATT_OK : ATT_ERR_MEMORY;
    if (!s && n > 0) {
        memcpy(sorted, p->list->entry, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, att_trie_order);
    }
    for (size_t i = 0; !s && i < n; i++)
        s = add_merges(ctx, p, sorted, &p->list->entry[i], &all);
    merge *m = (merge *)(void *)all.data;
    const size_t count = all.count / sizeof *m;
    if (!s && count > 0)
        qsort(m, count, sizeof *m, by_score);
    for (size_t i = 0; !s && i < count; i++)
        if (json_array_append_new(merges, pair(&m[i])))
            s = att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", att_gguf_label(g));
    att_free(ctx, sorted);
    att_bytes_free(&all);
    return s;
}
