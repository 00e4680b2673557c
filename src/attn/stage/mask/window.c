/* A query attends to the keys around its own position: spec.window_left before it, spec.window_right behind it. */
#include "attn/stage/stage.h"

/* What is unbounded is further than any position. */
static int64_t reach(int64_t window) { return window < 0 ? INT64_C(1) << 60 : window; }

static bool keep(const att_head *at, const void *user, int64_t q, int64_t k)
{
    (void)user;
    const int64_t distance = k - at->position - q;
    return -distance <= reach(at->window[0]) && distance <= reach(at->window[1]);
}

/* The first key of the first query, and one past the last key of the last one. */
static void span(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t *first, int64_t *last)
{
    (void)user;
    *first = at->position + q - reach(at->window[0]);
    *last = at->position + q + queries + reach(at->window[1]);
}

static att_cover cover(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys)
{
    int64_t first, last;
    span(at, user, q, queries, &first, &last);
    if (k + keys <= first || k >= last)
        return ATT_EMPTY;
    return k >= first + queries - 1 && k + keys <= last - queries + 1 ? ATT_FULL : ATT_PARTIAL;
}

/* Queries from `right` before the key to `left` behind it. */
static void bits(const att_head *at, const void *user, int64_t q, int64_t queries, int64_t k, int64_t keys,
                 uint64_t *bits)
{
    (void)user, (void)queries;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t here = k + j - at->position - q;
        bits[j] = att_low_bits(here + reach(at->window[0]) + 1) & ~att_low_bits(here - reach(at->window[1]));
    }
}

const att_mask att_mask_window = {
    .name = "window", .flags = ATT_NEEDS_ALIGN, .keep = keep, .span = span, .cover = cover, .bits = bits};
