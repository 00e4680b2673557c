#include "model/checksum.h"
#include "util/util.h"

#include <stdlib.h>

att_status att_settings_checksum(att_ctx *ctx, json_t *settings, uint64_t *sum)
{
    char *text = settings ? json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(settings);
    if (!text)
        return att_fail(ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
    *sum = att_fnv64_text(ATT_FNV64_OFFSET, text);
    free(text);
    return ATT_OK;
}

uint64_t att_model_checksum(uint64_t sum, const att_model *m)
{
    const att_param *p;
    for (int64_t i = 0; (p = att_nn_params_at(att_model_params(m), i, NULL)); i++) {
        const att_tensor *w = att_param_value(p);
        sum = att_fnv64_words(sum, w->data, w->dim[0] * w->stride[0]);
    }
    return sum;
}
