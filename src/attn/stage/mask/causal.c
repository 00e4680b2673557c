/* A query attends to the keys up to its own position. */
#include "attn/stage/stage.h"

static bool keep(const att_head *at, const void *user, int64_t q, int64_t k)
{
    (void)user;
    return k <= at->position + q;
}

static void span(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t *first, int64_t *last)
{
    (void)user;
    *first = 0;
    *last = at->position + q + queries;
}

static att_cover cover(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys)
{
    (void)user;
    if (k > at->position + q + queries - 1)
        return ATT_EMPTY;
    return k + keys - 1 <= at->position + q ? ATT_FULL : ATT_PARTIAL;
}

/* Queries from the key's position on. */
static void bits(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys,
                 uint64_t *bits)
{
    (void)user, (void)queries;
    for (int64_t j = 0; j < keys; j++)
        bits[j] = ~att_low_bits(k + j - at->position - q);
}

const att_mask att_mask_causal = {
    .name = "causal", .flags = ATT_NEEDS_ALIGN, .keep = keep, .span = span, .cover = cover, .bits = bits};
