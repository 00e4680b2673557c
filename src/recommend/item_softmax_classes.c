#include "recommend/item_softmax_classes.h"

#include <math.h>

static att_status list(const att_recommender *m, const int64_t *counts, att_item_softmax_classes *l)
{
    att_ctx *ctx = m->model.ctx;
    const int64_t items = m->config.info.items, rows = att_recommender_rows(m);
    att_tensor v;
    l->items = att_alloc(ctx, (size_t)l->n, sizeof *l->items);
    l->index = att_calloc(ctx, (size_t)items, sizeof *l->index);
    l->bias_data = att_calloc(ctx, (size_t)rows, sizeof *l->bias_data);
    if (!l->items || !l->index || !l->bias_data)
        return ATT_ERR_MEMORY;
    l->n = 0;
    for (int64_t i = 0; i < items; i++)
        if (counts[i] > 0) {
            l->index[i] = (int32_t)l->n;
            l->items[l->n++] = (int32_t)i;
        } else {
            l->bias_data[i] = -INFINITY;
        }
    att_wrap(&v, l->bias_data, ATT_F32, 1, &rows, NULL);
    return att_param_new(ctx, &v, &l->bias);
}

att_status att_item_softmax_classes_find(const att_recommender *m, const int64_t *counts, att_item_softmax_classes *out)
{
    const int64_t items = m->config.info.items;
    int64_t used = 0;
    *out = (att_item_softmax_classes){.n = items};
    for (int64_t i = 0; i < items; i++)
        used += counts[i] > 0;
    if (used == items || !(m->content || m->config.content_start))
        return ATT_OK;
    out->n = used;
    return list(m, counts, out);
}

void att_item_softmax_classes_free(att_ctx *ctx, att_item_softmax_classes *classes)
{
    att_param_free(classes->bias);
    att_free(ctx, classes->bias_data);
    att_free(ctx, classes->items);
    att_free(ctx, classes->index);
}
