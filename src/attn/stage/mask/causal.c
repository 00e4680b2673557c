/* A query attends to the keys up to its own position. */
#include "attn/stage/stage.h"

static bool keep(const att_mask_block *b) { return b->k <= b->head->position + b->q; }

static void span(const att_mask_block *b, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = b->head->position + b->q + b->queries;
}

static att_cover cover(const att_mask_block *b)
{
    const int64_t position = b->head->position + b->q;
    if (b->k > position + b->queries - 1)
        return ATT_COVER_EMPTY;
    return b->k + b->keys - 1 <= position ? ATT_COVER_FULL : ATT_COVER_PARTIAL;
}

/* Sets bits of queries from the key's position on. */
static void bits(const att_mask_block *b, uint64_t *bits)
{
    for (int64_t j = 0; j < b->keys; j++)
        bits[j] = ~att_low_bits(b->k + j - b->head->position - b->q);
}

static const att_mask mask = {.size = sizeof mask,
                              .name = "causal",
                              .flags = ATT_STAGE_NEEDS_ALIGN,
                              .keep = keep,
                              .span = span,
                              .cover = cover,
                              .bits = bits};
const att_mask *const att_mask_causal = &mask;
