/* The caller's own table: true = attend. */
#include "attn/stage.h"

static bool keep(const att_site *site, int64_t q, int64_t k)
{
    return site->mask[q * site->mask_q + k * site->mask_k] != 0;
}

static uint64_t bits(const att_site *site, int64_t q0, int64_t queries, int64_t k)
{
    uint64_t b = 0;
    for (int64_t i = 0; i < queries; i++)
        b |= (uint64_t)keep(site, q0 + i, k) << i;
    return b;
}

/* Looks at every pair of a small tile, and leaves as soon as both answers were seen. */
static att_cover cover(const att_site *site, int64_t q0, int64_t queries, int64_t k0, int64_t keys)
{
    if (keys > ATT_SUB_TILE)
        return ATT_PARTIAL;
    const uint64_t all = queries < 64 ? (UINT64_C(1) << queries) - 1 : ~UINT64_C(0);
    bool some = false, every = true;
    for (int64_t k = k0; k < k0 + keys && !(some && !every); k++) {
        const uint64_t b = bits(site, q0, queries, k);
        some = some || b != 0;
        every = every && b == all;
    }
    return !some ? ATT_EMPTY : every ? ATT_FULL : ATT_PARTIAL;
}

const att_mask att_mask_boolean = {"boolean", ATT_NEEDS_MASK, keep, cover, bits};
