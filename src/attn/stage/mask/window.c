/* A query attends to the keys around its own position: value[0] before it, value[1] after it. */
#include "attn/stage/stage.h"

static const double MAX_REACH = 0x1p48;

static att_status check(att_ctx *ctx, const double *value, const att_tensor *param)
{
    (void)param;
    for (int i = 0; i < 2; i++)
        if (!(value[i] >= -1 && value[i] <= MAX_REACH) || value[i] != (double)(int64_t)value[i])
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "value[%d] of att_mask_window is %g, expected -1 (unbounded) or a count of keys", i,
                            value[i]);
    return ATT_OK;
}

/* Returns the number of keys to the left (0) or right (1); an unbounded side is larger than any position. */
static int64_t reach(const att_mask_block *b, int side)
{
    return b->value[side] < 0 ? INT64_C(1) << 60 : (int64_t)b->value[side];
}

static bool keep(const att_mask_block *b)
{
    const int64_t distance = b->k - b->head->position - b->q;
    return -distance <= reach(b, 0) && distance <= reach(b, 1);
}

/* Sets the first key of the first query, and one past the last key of the last one. */
static void span(const att_mask_block *b, int64_t *first, int64_t *last)
{
    *first = b->head->position + b->q - reach(b, 0);
    *last = b->head->position + b->q + b->queries + reach(b, 1);
}

static att_cover cover(const att_mask_block *b)
{
    int64_t first, last;
    span(b, &first, &last);
    if (b->k + b->keys <= first || b->k >= last)
        return ATT_COVER_EMPTY;
    return b->k >= first + b->queries - 1 && b->k + b->keys <= last - b->queries + 1 ? ATT_COVER_FULL
                                                                                     : ATT_COVER_PARTIAL;
}

/* Sets bits of queries from value[1] before the key to value[0] after it. */
static void bits(const att_mask_block *b, uint64_t *bits)
{
    const int64_t left = reach(b, 0), right = reach(b, 1);
    for (int64_t j = 0; j < b->keys; j++) {
        const int64_t here = b->k + j - b->head->position - b->q;
        bits[j] = att_low_bits(here + left + 1) & ~att_low_bits(here - right);
    }
}

static const att_mask mask = {.size = sizeof mask,
                              .name = "window",
                              .flags = ATT_STAGE_NEEDS_ALIGN | ATT_STAGE_HAS_VALUE,
                              .check = check,
                              .keep = keep,
                              .span = span,
                              .cover = cover,
                              .bits = bits};
const att_mask *const att_mask_window = &mask;
