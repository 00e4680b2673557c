/* A query attends to the keys up to its own position. */
#include "attn/stage.h"

static bool keep(const att_site *site, int64_t q, int64_t k) { return k <= site->position + q; }

static att_cover cover(const att_site *site, int64_t q0, int64_t queries, int64_t k0, int64_t keys)
{
    if (k0 > site->position + q0 + queries - 1)
        return ATT_EMPTY;
    return k0 + keys - 1 <= site->position + q0 ? ATT_FULL : ATT_PARTIAL;
}

/* Queries from k - position on. */
static uint64_t bits(const att_site *site, int64_t q0, int64_t queries, int64_t k)
{
    const int64_t first = k - site->position - q0;
    if (first >= queries)
        return 0;
    return first <= 0 ? ~UINT64_C(0) : ~UINT64_C(0) << first;
}

const att_mask att_mask_causal = {"causal", ATT_NEEDS_ALIGN, keep, cover, bits};
