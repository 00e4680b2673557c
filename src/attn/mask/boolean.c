/* The caller's own table: true = attend. */
#include "attn/stage.h"

static bool keep(const att_place *at, const void *user, int64_t q, int64_t k)
{
    (void)user;
    return at->mask[q * at->mask_stride[0] + k * at->mask_stride[1]] != 0;
}

const att_mask att_mask_boolean = {.name = "boolean", .keep = keep};
