#include "model/checksum.h"
#include "util/shape.h"
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

/* Returns sum continued over n numbers, `stride` apart, as f32. */
static uint64_t sum_numbers(uint64_t sum, att_ctx *ctx, const att_tensor *x, int64_t at, int64_t n, int64_t stride)
{
    enum { SOME = 1024 }; /* whole blocks of a quantized type */
    float floats[SOME];
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t some = att_min(SOME, n - i);
        att_tensor from = *x, to;
        from.rank = 1;
        from.dim[0] = some;
        from.stride[0] = stride;
        from.data = (char *)x->data + att_dtype_bytes(x->dtype, at + i * stride);
        att_wrap(&to, floats, ATT_F32, 1, &some, NULL);
        if (!att_tensor_convert(ctx, &from, &to))
            sum = att_fnv64_words(sum, floats, some);
    }
    return sum;
}

uint64_t att_param_checksum(uint64_t sum, att_ctx *ctx, const att_param *p)
{
    const att_tensor *w = att_param_value(p);
    const int64_t all = att_elements(w);
    const bool dense = w->stride[w->rank - 1] == 1 && w->dim[0] * w->stride[0] == all;
    if (dense && w->dtype == ATT_F32)
        return att_fnv64_words(sum, w->data, all);
    if (dense || w->rank != 2)
        return sum_numbers(sum, ctx, w, 0, all, 1);
    for (int64_t i = 0; i < w->dim[0]; i++)
        sum = sum_numbers(sum, ctx, w, i * w->stride[0], w->dim[1], w->stride[1]);
    return sum;
}

uint64_t att_model_checksum(uint64_t sum, const att_model *m)
{
    const att_param *p;
    for (int64_t i = 0; (p = att_nn_params_at(att_model_params(m), i, NULL)); i++)
        sum = att_param_checksum(sum, m->ctx, p);
    return sum;
}
