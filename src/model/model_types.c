#include "model/model.h"

#include <stdio.h>
#include <string.h>

const char *att_model_type_at(const att_model_types *types, int64_t i)
{
    const char *type = NULL;
    if (i >= 0 && i < types->n)
        memcpy(&type, (const char *)types->rows + (size_t)i * types->row_bytes, sizeof type);
    return type;
}

const void *att_model_type_find(const att_model_types *types, const char *type)
{
    for (int64_t i = 0; i < types->n; i++)
        if (!strcmp(att_model_type_at(types, i), type))
            return (const char *)types->rows + (size_t)i * types->row_bytes;
    return NULL;
}

/* A list of types: "one of bert, marian and vit", or a single type in quotes. */
typedef struct type_names {
    char text[300]; /* as many as fit */
} type_names;

static type_names name_all(const att_model_types *const *lists)
{
    type_names names = {""};
    int64_t n = 0, all = 0;
    size_t at = 0;
    for (const att_model_types *const *l = lists; *l; l++)
        all += (*l)->n;
    for (const att_model_types *const *l = lists; *l; l++)
        for (int64_t i = 0; i < (*l)->n && at < sizeof names.text; i++, n++) {
            const char *before = all == 1 ? "\"" : n == 0 ? "one of " : n == all - 1 ? " and " : ", ";
            at += (size_t)snprintf(names.text + at, sizeof names.text - at, "%s%s%s", before, att_model_type_at(*l, i),
                                   all == 1 ? "\"" : "");
        }
    return names;
}

int att_model_type_choose(att_settings *s, const att_model_types *const *lists, const char *purpose)
{
    const char *type = att_settings_text(s, "model_type", NULL);
    for (int k = 0; !s->status && lists[k]; k++)
        if (att_model_type_find(lists[k], type))
            return k;
    att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"model_type\" is %s, which is not supported%s; %s is",
                      att_json_show(att_settings_get(s, "model_type")).text, purpose, name_all(lists).text);
    return -1;
}

const att_model_kind *att_model_kind_of(att_settings *s, const att_model_kind *const *kinds, const char *purpose)
{
    size_t n = 0;
    while (kinds[n])
        n++;
    const att_model_types **lists = att_alloc(s->ctx, n + 1, sizeof *lists);
    if (!lists) {
        s->status = s->status ? s->status : ATT_ERR_MEMORY;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        lists[i] = kinds[i]->types;
    lists[n] = NULL;
    const int chosen = att_model_type_choose(s, lists, purpose);
    att_free(s->ctx, lists);
    return chosen < 0 ? NULL : kinds[chosen];
}
