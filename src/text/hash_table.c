#include "text/hash_table.h"

att_status att_hash_reserve(att_hash_table *t, uint32_t items)
{
    uint32_t n = t->slots ? t->mask + 1 : 16;
    if (t->slots && items <= n / 2)
        return ATT_OK;
    if (items > UINT32_C(1) << 30)
        return att_fail(t->ctx, ATT_ERR_MEMORY, "a hash table of %u items is too large", items);
    while (n / 2 < items)
        n *= 2;
    att_hash_table grown = {.ctx = t->ctx, .slots = att_alloc(t->ctx, n, sizeof *t->slots), .mask = n - 1};
    if (!grown.slots)
        return ATT_ERR_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        grown.slots[i].item = ATT_NO_ITEM;
    for (uint32_t i = 0; t->slots && i <= t->mask; i++) {
        const att_hash_slot *was = &t->slots[i];
        att_hash_slot *slot;
        uint32_t k = 0;
        if (was->item == ATT_NO_ITEM)
            continue;
        while ((slot = att_hash_slot_at(&grown, was->hash, k++))->item != ATT_NO_ITEM)
            ;
        att_hash_insert(&grown, slot, was->hash, was->item);
    }
    att_hash_free(t);
    *t = grown;
    return ATT_OK;
}

void att_hash_free(att_hash_table *t)
{
    att_free(t->ctx, t->slots);
    *t = (att_hash_table){.ctx = t->ctx};
}
