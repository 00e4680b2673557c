/* The order of an epoch, and its batches. */
#include "train/pairs.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 100 }; /* batches within which pairs are sorted by length */

void att_shuffle(uint64_t seed, uint32_t stream, int64_t number, int64_t n, int64_t *x)
{
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t words[4];
        att_random(seed, (const uint32_t[]){(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)number, stream}, words);
        const uint64_t wide = (uint64_t)words[0] << 32 | words[1];
        const int64_t k = (int64_t)(wide % (uint64_t)(i + 1)), other = x[k];
        x[k] = x[i];
        x[i] = other;
    }
}

static int64_t target_length(const att_pair_set *s, int64_t pair)
{
    return s->target_offsets[pair + 1] - s->target_offsets[pair];
}

static int by_length(const void *a, const void *b, void *set)
{
    const att_pair_set *s = set;
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    const int64_t x = target_length(s, i), y = target_length(s, k);
    const int64_t u = s->source_offsets[i + 1] - s->source_offsets[i],
                  v = s->source_offsets[k + 1] - s->source_offsets[k];
    return x != y ? (x < y ? -1 : 1) : u != v ? (u < v ? -1 : 1) : i < k ? -1 : i > k;
}

/* Batches of the window order[begin, end), from first[e->n] on. */
static void cut(const att_pair_set *s, att_epoch *e, int64_t begin, int64_t end, int64_t batch_tokens)
{
    int64_t tokens = 0;
    for (int64_t i = begin; i < end; i++) {
        tokens += target_length(s, e->order[i]);
        if (i == begin || tokens > batch_tokens) {
            e->first[e->n++] = i;
            tokens = target_length(s, e->order[i]);
        }
    }
}

/* Batches in an order by chance: they have come out sorted by length. */
static att_status mix(att_epoch *e, uint64_t seed, int64_t number, int64_t pairs)
{
    int64_t *which = att_alloc(e->ctx, (size_t)e->n, sizeof *which);
    int64_t *order = att_alloc(e->ctx, (size_t)pairs, sizeof *order);
    int64_t *first = att_alloc(e->ctx, (size_t)e->n + 1, sizeof *first);
    const bool memory = which && order && first;
    if (memory) {
        for (int64_t b = 0; b < e->n; b++)
            which[b] = b;
        att_shuffle(seed, 1, number, e->n, which);
        first[0] = 0;
        for (int64_t b = 0; b < e->n; b++) {
            const int64_t from = e->first[which[b]], count = e->first[which[b] + 1] - from;
            memcpy(order + first[b], e->order + from, (size_t)count * sizeof *order);
            first[b + 1] = first[b] + count;
        }
        att_free(e->ctx, e->order);
        att_free(e->ctx, e->first);
        e->order = order;
        e->first = first;
    } else {
        att_free(e->ctx, order);
        att_free(e->ctx, first);
    }
    att_free(e->ctx, which);
    return memory ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_epoch_make(const att_pair_set *s, uint64_t seed, int64_t number, int64_t batch_tokens, att_epoch *out)
{
    att_epoch e = {.ctx = s->ctx,
                   .order = att_alloc(s->ctx, (size_t)s->n, sizeof *e.order),
                   .first = att_alloc(s->ctx, (size_t)s->n + 1, sizeof *e.first)};
    att_status status = e.order && e.first ? ATT_OK : ATT_ERR_MEMORY;
    if (!status) {
        for (int64_t i = 0; i < s->n; i++)
            e.order[i] = i;
        att_shuffle(seed, 0, number, s->n, e.order);
        const int64_t mean = s->target_offsets[s->n] / s->n + 1, window = WINDOW * (batch_tokens / mean + 1);
        for (int64_t begin = 0, end; begin < s->n; begin = end) {
            end = s->n - begin < window ? s->n : begin + window;
            qsort_r(e.order + begin, (size_t)(end - begin), sizeof *e.order, by_length, (void *)s);
            cut(s, &e, begin, end, batch_tokens);
        }
        e.first[e.n] = s->n;
        status = mix(&e, seed, number, s->n);
    }
    if (status)
        att_epoch_free(&e);
    *out = e;
    return status;
}

void att_epoch_free(att_epoch *e)
{
    if (!e->ctx)
        return;
    att_free(e->ctx, e->order);
    att_free(e->ctx, e->first);
    *e = (att_epoch){0};
}

/* ---- a batch */

/* One side of the pairs order[first, first + n). */
static void copy_side(const int64_t *pairs, int64_t n, const int32_t *ids, const int64_t *offsets, int32_t *to,
                      int64_t *to_offsets)
{
    to_offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = offsets[pairs[i]], count = offsets[pairs[i] + 1] - from;
        memcpy(to + to_offsets[i], ids + from, (size_t)count * sizeof *to);
        to_offsets[i + 1] = to_offsets[i] + count;
    }
}

att_status att_batch_take(const att_pair_set *s, const att_epoch *e, int64_t i, att_batch *out)
{
    const int64_t *pairs = e->order + e->first[i], n = e->first[i + 1] - e->first[i];
    size_t tokens[2] = {0, 0};
    for (int64_t k = 0; k < n; k++) {
        tokens[0] += (size_t)(s->source_offsets[pairs[k] + 1] - s->source_offsets[pairs[k]]);
        tokens[1] += (size_t)target_length(s, pairs[k]);
    }
    const size_t offsets = (size_t)n + 1;
    char *memory = att_alloc(s->ctx, 2 * offsets * sizeof(int64_t) + (tokens[0] + tokens[1] + offsets) * 4, 1);
    *out = (att_batch){.memory = memory};
    if (!memory)
        return ATT_ERR_MEMORY;
    int64_t *source_offsets = (int64_t *)(void *)memory, *target_offsets = source_offsets + offsets;
    int32_t *source = (int32_t *)(void *)(target_offsets + offsets), *target = source + tokens[0];
    out->ids = (uint32_t *)(void *)(target + tokens[1]);
    copy_side(pairs, n, s->source, s->source_offsets, source, source_offsets);
    copy_side(pairs, n, s->target, s->target_offsets, target, target_offsets);
    for (int64_t k = 0; k < n; k++)
        out->ids[k] = (uint32_t)pairs[k];
    out->pairs = (att_pairs){n, source, source_offsets, target, target_offsets};
    return ATT_OK;
}

void att_batch_free(att_ctx *ctx, att_batch *b)
{
    att_free(ctx, b->memory);
    *b = (att_batch){0};
}
