#include "sentence/backbone.h"
#include "model/model_types.h"

#include <string.h>

const att_backbone_kind *const att_backbone_kinds[] = {&att_backbone_encoder, &att_backbone_language,
                                                       &att_backbone_static, NULL};

bool att_backbone_is_module(const char *module)
{
    const att_backbone_kind *const *k = att_backbone_kinds;
    while (*k && strcmp((*k)->module, module) != 0)
        k++;
    return *k;
}

enum { MAX_TYPES = 24 };

/* Finds the kind with this module that has the type of config.json. */
static const att_backbone_kind *by_type(att_settings *config, const char *module)
{
    const att_backbone_kind *of[MAX_TYPES] = {NULL};
    const att_model_types *lists[MAX_TYPES + 1] = {NULL};
    int n = 0;
    for (const att_backbone_kind *const *k = att_backbone_kinds; *k; k++)
        for (const att_model_kind *const *type = (*k)->types; type && *type && n < MAX_TYPES; type++)
            if (!strcmp((*k)->module, module)) {
                of[n] = *k;
                lists[n++] = (*type)->types;
            }
    const int chosen = att_model_type_choose(config, lists, " for embeddings of sentences");
    return chosen < 0 ? NULL : of[chosen];
}

att_status att_backbone_find(att_ctx *ctx, const char *folder, const char *module, const att_backbone_kind **kind,
                             att_pooling *plain)
{
    *plain = ATT_POOLING_MEAN;
    for (const att_backbone_kind *const *k = att_backbone_kinds; *k; k++)
        if (!(*k)->types && !strcmp((*k)->module, module)) {
            *kind = *k;
            return ATT_OK;
        }
    att_settings config;
    att_settings_read(&config, ctx, folder, "config.json", true);
    *kind = by_type(&config, module);
    if (*kind && (*kind)->plain)
        *plain = (*kind)->plain(&config);
    att_settings_close(&config);
    return config.status;
}

void att_backbone_free(att_backbone *b)
{
    if (!b)
        return;
    att_model_free(b->model);
    att_tokenizer_free(b->tokenizer);
    *b = (att_backbone){0};
}
