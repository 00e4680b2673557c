/* A query attends to the keys around its own position: spec.window_left before it, spec.window_right behind it. */
#include "attn/stage.h"

/* What is unbounded is further than any position. */
static int64_t reach(int64_t window) { return window < 0 ? INT64_C(1) << 60 : window; }

static bool keep(const att_place *at, const void *user, int64_t q, int64_t k)
{
    (void)user;
    const int64_t distance = k - at->position - q;
    return -distance <= reach(at->window[0]) && distance <= reach(at->window[1]);
}

/* The first key of the first query, and one past the last key of the last one. */
static void span(const att_place *at, const void *user, int64_t q, int64_t queries, int64_t *first, int64_t *last)
{
    (void)user;
    *first = at->position + q - reach(at->window[0]);
    *last = at->position + q + queries + reach(at->window[1]);
}

static att_cover cover(const att_place *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys)
{
    int64_t first, last;
    span(at, user, q, queries, &first, &last);
    if (k + keys <= first || k >= last)
        return ATT_EMPTY;
    return k >= first + queries - 1 && k + keys <= last - queries + 1 ? ATT_FULL : ATT_PARTIAL;
}

/* The low n bits, whatever n is. */
static uint64_t low_bits(int64_t n) { return n <= 0 ? 0 : n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1; }

/* Queries from `right` before the key to `left` behind it. */
static uint64_t bits(const att_place *at, const void *user, int64_t q, int64_t queries, int64_t k)
{
    (void)user, (void)queries;
    const int64_t here = k - at->position - q;
    return low_bits(here + reach(at->window[0]) + 1) & ~low_bits(here - reach(at->window[1]));
}

const att_mask att_mask_window = {
    .name = "window", .flags = ATT_NEEDS_ALIGN, .keep = keep, .span = span, .cover = cover, .bits = bits};
