#include "text/ids.h"
#include "util/util.h"
#include "text/not_utf8.h"
#include "text/utf8.h"

#include <string.h>

/* Maximum probes. Ids that were not made to collide need about 100 at most, because half of the slots are free. */
enum { MAX_PROBES = 1024 };

void att_ids_init(att_ids *ids, att_ctx *ctx) { *ids = (att_ids){.ctx = ctx, .names.text.ctx = ctx, .table.ctx = ctx}; }

void att_ids_free(att_ids *ids)
{
    att_names_free(&ids->names);
    att_hash_free(&ids->table);
}

const char *att_ids_at(const att_ids *ids, int64_t i)
{
    return i >= 0 && i < att_ids_count(ids) ? att_names_at(&ids->names, i) : NULL;
}

static bool is_id(const char *name, att_byte_view id)
{
    return strlen(name) == id.bytes && !memcmp(name, id.data, id.bytes);
}

/* Returns the slot of an id, or the free one where it would be; NULL: too many collide. */
static att_hash_slot *find_slot(const att_ids *ids, att_byte_view id, uint32_t hash)
{
    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        att_hash_slot *slot = att_hash_slot_at(&ids->table, hash, i);
        if (slot->item == ATT_NO_ITEM)
            return slot;
        if (slot->hash == hash && is_id(att_names_at(&ids->names, slot->item), id))
            return slot;
    }
    return NULL;
}

static uint32_t hash_of(att_byte_view id) { return att_fnv32_bytes(ATT_FNV32_OFFSET, id.data, id.bytes); }

int64_t att_ids_find(const att_ids *ids, att_byte_view id)
{
    if (!ids->table.slots)
        return -1;
    const att_hash_slot *slot = find_slot(ids, id, hash_of(id));
    return slot ? slot->item : -1;
}

att_status att_id_check(att_byte_view id, const att_where *where, const char *what)
{
    if (id.bytes == 0)
        return att_fail_at(where, ATT_ERR_FORMAT, "%s is empty", what);
    if (id.bytes > ATT_MAX_ID)
        return att_fail_at(where, ATT_ERR_UNSUPPORTED, "%s has %zu bytes, more than %d: %.32s...", what, id.bytes,
                           ATT_MAX_ID, id.data);
    if (memchr(id.data, 0, id.bytes))
        return att_fail_at(where, ATT_ERR_FORMAT, "%s has a zero byte, which ids must not have", what);
    if (!att_utf8_valid(id.data, id.bytes))
        return att_fail_not_utf8(where, what, id);
    return ATT_OK;
}

att_status att_ids_add(att_ids *ids, att_byte_view id, const att_where *where, const char *what, int32_t *out)
{
    const uint32_t hash = hash_of(id);
    att_status e = att_hash_reserve(&ids->table, ids->table.count + 1);
    if (e)
        return e;
    att_hash_slot *slot = find_slot(ids, id, hash);
    if (!slot)
        return att_fail_at(where, ATT_ERR_UNSUPPORTED, "%s collides with %d other ids, as if on purpose", what,
                           MAX_PROBES);
    if (slot->item == ATT_NO_ITEM) { /* an id that is present has been checked */
        e = att_id_check(id, where, what);
        e = e ? e : att_names_add_bytes(&ids->names, id.data, id.bytes);
        if (e)
            return e;
        att_hash_insert(&ids->table, slot, hash, (int32_t)(att_ids_count(ids) - 1));
    }
    *out = slot->item;
    return ATT_OK;
}

/* Removes the last id. Its slot can be emptied, because no later id was added after it in a probe sequence. */
void att_ids_remove_last(att_ids *ids)
{
    const char *name = att_names_at(&ids->names, att_ids_count(ids) - 1);
    const att_byte_view id = {name, strlen(name)};
    find_slot(ids, id, hash_of(id))->item = ATT_NO_ITEM;
    ids->table.count--;
    ids->names.text.count = ids->names.start[--ids->names.n];
}
