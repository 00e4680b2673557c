#include "model/item_ids.h"
#include "io/texts.h"
#include "io/util.h"
#include "text/utf8.h"

#include <string.h>

static uint32_t hash_of(const char *id) { return att_fnv32_bytes(ATT_FNV32_OFFSET, id, strlen(id)); }

/* The slot of an id, or the free one where it belongs */
static att_hash_slot *slot_of(const att_item_ids *ids, const char *id, uint32_t hash)
{
    att_hash_slot *slot;
    for (uint32_t k = 0; (slot = att_hash_slot_at(&ids->table, hash, k))->item != ATT_NO_ITEM; k++)
        if (slot->hash == hash && !strcmp(att_item_ids_get(ids, slot->item), id))
            break;
    return slot;
}

const char *att_item_ids_get(const att_item_ids *ids, int64_t i)
{
    return i >= 0 && i < ids->n ? ids->text.data + ids->start[i] : NULL;
}

int64_t att_item_ids_find(const att_item_ids *ids, const char *id)
{
    return ids->n && id ? slot_of(ids, id, hash_of(id))->item : ATT_NO_ITEM;
}

static att_status check(const att_item_ids *ids, const char *id, int64_t i)
{
    const size_t bytes = strlen(id);
    if (bytes == 0 || bytes > ATT_MAX_ITEM_ID)
        return att_fail(ids->ctx, ATT_ERR_ARGUMENT, "the id of item %lld has %zu bytes, expected 1 to %d", (long long)i,
                        bytes, ATT_MAX_ITEM_ID);
    if (!att_utf8_valid(id, bytes))
        return att_fail(ids->ctx, ATT_ERR_ARGUMENT, "the id of item %lld is not UTF-8", (long long)i);
    return ATT_OK;
}

static att_status add(att_item_ids *ids, const char *id)
{
    const uint32_t hash = hash_of(id);
    att_status e = check(ids, id, ids->n);
    e = e ? e : att_hash_reserve(&ids->table, (uint32_t)ids->n + 1);
    if (e)
        return e;
    att_hash_slot *slot = slot_of(ids, id, hash);
    if (slot->item != ATT_NO_ITEM)
        return att_fail(ids->ctx, ATT_ERR_ARGUMENT, "items %d and %lld have the same id \"%.80s\"", slot->item,
                        (long long)ids->n, id);
    e = att_grow(ids->ctx, &ids->start, sizeof *ids->start, (size_t)ids->n, 1, &ids->start_room);
    if (e)
        return e;
    ids->start[ids->n] = ids->text.count;
    att_bytes_add(&ids->text, id, strlen(id) + 1);
    if (!ids->text.status)
        att_hash_insert(&ids->table, slot, hash, (int32_t)ids->n++);
    return ids->text.status;
}

att_status att_item_ids_add(att_item_ids *ids, const char *const *items, int64_t n)
{
    att_status e = att_check_texts(ids->ctx, "items", items, n);
    if (!e && (n < 0 || n > ATT_MAX_ITEMS - ids->n))
        e = att_fail(ids->ctx, ATT_ERR_ARGUMENT, "%lld items and %lld more: at most %d are supported",
                     (long long)ids->n, (long long)n, ATT_MAX_ITEMS);
    for (int64_t i = 0; !e && i < n; i++)
        e = add(ids, items[i]);
    return e;
}

att_status att_item_ids_copy(att_item_ids *ids, const att_item_ids *from)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < from->n; i++)
        e = add(ids, att_item_ids_get(from, i));
    return e;
}

void att_item_ids_free(att_item_ids *ids)
{
    att_free(ids->ctx, ids->start);
    att_bytes_free(&ids->text);
    att_hash_free(&ids->table);
}

/* ---- the file */

static const char file_name[] = "items.json";

att_status att_item_ids_read(att_item_ids *ids, const char *folder, int64_t n)
{
    att_settings s;
    att_settings_read_list(&s, ids->ctx, folder, file_name);
    const int64_t size = s.status ? 0 : (int64_t)json_array_size(s.root);
    if (!s.status && size != n)
        att_settings_fail(&s, ATT_ERR_FORMAT, "has %lld items, but by config.json there are %lld", (long long)size,
                          (long long)n);
    for (int64_t i = 0; !s.status && i < n; i++) {
        const json_t *id = json_array_get(s.root, (size_t)i);
        if (!json_is_string(id))
            att_settings_fail(&s, ATT_ERR_FORMAT, "item %lld is %s, not a text", (long long)i, att_json_show(id).text);
        else if (add(ids, json_string_value(id)))
            att_settings_fail(&s, ATT_ERR_FORMAT, "%s", att_error(ids->ctx));
    }
    att_settings_close(&s);
    return s.status;
}

att_status att_item_ids_write(const att_item_ids *ids, const char *folder)
{
    json_t *list = json_array();
    int failed = !list;
    for (int64_t i = 0; !failed && i < ids->n; i++)
        failed = json_array_append_new(list, json_string(att_item_ids_get(ids, i)));
    if (failed) {
        json_decref(list);
        list = NULL;
    }
    return att_settings_write(ids->ctx, folder, file_name, list);
}
