#include "recommend/item_ids.h"
#include "io/check_texts.h"
#include "text/utf8.h"

#include <string.h>

static att_status add(att_ids *ids, const char *id)
{
    const int64_t n = att_ids_count(ids);
    const size_t bytes = strlen(id);
    const att_where where = {.ctx = ids->ctx, .number = n, .of = "item"};
    int32_t number = 0;
    if (bytes == 0 || bytes > ATT_MAX_ID)
        return att_fail(ids->ctx, ATT_ERR_ARGUMENT, "the id of item %lld has %zu bytes, expected 1 to %d", (long long)n,
                        bytes, ATT_MAX_ID);
    if (!att_utf8_valid(id, bytes))
        return att_fail(ids->ctx, ATT_ERR_ARGUMENT, "the id of item %lld is not UTF-8", (long long)n);
    const att_status e = att_ids_add(ids, (att_byte_view){id, bytes}, &where, "its id", &number);
    if (!e && number < n)
        return att_fail(ids->ctx, ATT_ERR_ARGUMENT, "items %d and %lld have the same id \"%.80s\"", number,
                        (long long)n, id);
    return e;
}

att_status att_item_ids_add(att_ids *ids, const char *const *items, int64_t n)
{
    const int64_t had = att_ids_count(ids);
    att_status e = att_check_texts(ids->ctx, "items", items, n);
    if (!e && (n < 0 || n > ATT_MAX_ITEMS - had))
        e = att_fail(ids->ctx, ATT_ERR_ARGUMENT, "%lld items and %lld more: at most %d are supported", (long long)had,
                     (long long)n, ATT_MAX_ITEMS);
    for (int64_t i = 0; !e && i < n; i++)
        e = add(ids, items[i]);
    return e;
}

att_status att_item_ids_copy(att_ids *ids, const att_ids *from)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < att_ids_count(from); i++)
        e = add(ids, att_ids_at(from, i));
    return e;
}

/* ---- the file */

static const char file_name[] = "items.json";

att_status att_item_ids_read(att_ids *ids, const char *folder, int64_t n)
{
    att_settings s;
    att_settings_read_list(&s, ids->ctx, folder, file_name);
    const int64_t size = s.status ? 0 : (int64_t)json_array_size(s.root);
    if (!s.status && size != n)
        att_settings_fail(&s, ATT_ERR_FORMAT, "has %lld items, but by config.json there are %lld", (long long)size,
                          (long long)n);
    for (int64_t i = 0; !s.status && i < n; i++) {
        const json_t *id = json_array_get(s.root, (size_t)i);
        if (!json_is_string(id)) {
            att_settings_fail(&s, ATT_ERR_FORMAT, "item %lld is %s, not a text", (long long)i, att_json_show(id).text);
            continue;
        }
        const att_status e = add(ids, json_string_value(id));
        if (e)
            att_settings_fail(&s, e == ATT_ERR_MEMORY ? e : ATT_ERR_FORMAT, "%s", att_error(ids->ctx));
    }
    att_settings_close(&s);
    return s.status;
}

att_status att_item_ids_write(const att_ids *ids, const char *folder)
{
    json_t *list = json_array();
    int failed = !list;
    for (int64_t i = 0; !failed && i < att_ids_count(ids); i++)
        failed = json_array_append_new(list, json_string(att_ids_at(ids, i)));
    if (failed) {
        json_decref(list);
        list = NULL;
    }
    return att_settings_write(ids->ctx, folder, file_name, list);
}
