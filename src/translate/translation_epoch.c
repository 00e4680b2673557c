/* Makes the order of pairs in an epoch, and its batches. */
#include "util/util.h"
#include "train/shuffle.h"
#include "translate/parallel_corpus.h"

#include <stdlib.h>

enum { WINDOW = 100 }; /* batches; pairs are sorted by length within a window */

static int by_length(const void *a, const void *b, void *corpus)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const att_text_pair *x = att_pair_at(corpus, i), *y = att_pair_at(corpus, k);
    for (int side = 1; side >= 0; side--)
        if (x->tokens[side] != y->tokens[side])
            return x->tokens[side] < y->tokens[side] ? -1 : 1;
    return i < k ? -1 : i > k;
}

/* Splits the window order[begin, end) into batches, appended to e->first. */
static void split_batches(const att_parallel_corpus *s, att_epoch *e, int64_t begin, int64_t end, int64_t batch_tokens)
{
    int64_t tokens = 0;
    for (int64_t i = begin; i < end; i++) {
        const int64_t length = att_pair_at(s, e->order[i])->tokens[1];
        tokens += length;
        if (i == begin || tokens > batch_tokens) {
            e->first[e->n++] = (uint32_t)i;
            tokens = length;
        }
    }
}

/* Returns the number of pairs in a window; all if there are fewer. */
static int64_t window_of(const att_parallel_corpus *s, int64_t batch_tokens)
{
    const int64_t mean = s->target_tokens / s->n + 1, pairs = batch_tokens / mean;
    return pairs < s->n / WINDOW ? WINDOW * (pairs + 1) : s->n;
}

att_status att_epoch_make(const att_parallel_corpus *s, uint64_t seed, int64_t number, int64_t batch_tokens,
                          att_epoch *out)
{
    att_epoch e = {.ctx = s->ctx,
                   .order = att_alloc(s->ctx, (size_t)s->n, sizeof *e.order),
                   .first = att_alloc(s->ctx, (size_t)s->n + 1, sizeof *e.first)};
    if (e.order && e.first) {
        const int64_t window = window_of(s, batch_tokens);
        att_permutation(seed, 0, number, s->n, e.order);
        for (int64_t begin = 0, end; begin < s->n; begin = end) {
            end = att_min(begin + window, s->n);
            qsort_r(e.order + begin, (size_t)(end - begin), sizeof *e.order, by_length, (void *)s);
            split_batches(s, &e, begin, end, batch_tokens);
        }
        e.first[e.n] = (uint32_t)s->n;
        e.group = att_alloc(s->ctx, (size_t)e.n, sizeof *e.group); /* until now batches are ordered by length */
    }
    if (e.group)
        att_permutation(seed, 1, number, e.n, e.group);
    else
        att_epoch_free(&e);
    *out = e;
    return e.group ? ATT_OK : ATT_ERR_MEMORY;
}

void att_epoch_free(att_epoch *e)
{
    if (!e->ctx)
        return;
    att_free(e->ctx, e->order);
    att_free(e->ctx, e->first);
    att_free(e->ctx, e->group);
    *e = (att_epoch){0};
}
