/* Content: vectors of items from another source. The items' own vectors begin with them, or they are projected and
 * added to these. */
#include "recommend/recommender.h"

#include <math.h>
#include <string.h>

att_status att_item_content_read(att_ctx *ctx, const att_item_content *content, int64_t n, att_item_content *out)
{
    const att_status e = att_options_read(out, sizeof *out, content, "att_item_content");
    if (e || !content)
        return e;
    if (out->width < 1 || out->width > 1 << 16)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "content.width is %lld, expected 1 to 65536", (long long)out->width);
    if (!out->vectors && n > 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "content.vectors is NULL");
    for (int64_t i = 0; i < n * out->width; i++)
        if (!isfinite(out->vectors[i]))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "content.vectors has %g for item %lld at %lld",
                            (double)out->vectors[i], (long long)(i / out->width), (long long)(i % out->width));
    return ATT_OK;
}

bool att_recommender_is_zero(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] < 0 || x[i] > 0)
            return false;
    return true;
}

/* Multiplies vectors [n, width] by a random matrix, which preserves lengths and angles on average (Johnson,
 * Lindenstrauss 1984) and is always the same: y [n, hidden]. */
static att_status project(const att_recommender *m, int64_t n, const att_item_content *c, float *y)
{
    att_ctx *ctx = m->model.ctx;
    const int64_t hidden = m->config.info.hidden;
    const att_init normal = {.size = sizeof normal, .kind = ATT_INIT_NORMAL, .value = 1 / sqrt((double)hidden)};
    att_tensor a, b, out;
    float *matrix = att_alloc(ctx, (size_t)(hidden * c->width), sizeof *matrix);
    if (!matrix)
        return ATT_ERR_MEMORY;
    att_wrap(&a, (void *)(uintptr_t)c->vectors, ATT_F32, 2, (const int64_t[]){n, c->width}, NULL);
    att_wrap(&b, matrix, ATT_F32, 2, (const int64_t[]){hidden, c->width}, NULL);
    att_wrap(&out, y, ATT_F32, 2, (const int64_t[]){n, hidden}, NULL);
    att_status e = att_initialize(ctx, &b, &normal, 0, "content");
    e = e ? e : att_tensor_matmul(ctx, &a, &b, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &out);
    att_free(ctx, matrix);
    return e;
}

/* Initializes items' own vectors with content. Those without content are not changed. */
static att_status begin_with(att_recommender *m, int64_t first, int64_t n, const att_item_content *c)
{
    const int64_t hidden = m->config.info.hidden;
    float *y = att_alloc(m->model.ctx, (size_t)(n * hidden), sizeof *y);
    if (!y)
        return ATT_ERR_MEMORY;
    att_status e = ATT_OK;
    if (c->width == hidden)
        memcpy(y, c->vectors, (size_t)(n * hidden) * sizeof *y);
    else
        e = project(m, n, c, y);
    float *own = (float *)att_param_value(m->item)->data + first * hidden;
    for (int64_t i = 0; !e && i < n; i++)
        if (!att_recommender_is_zero(c->vectors + i * c->width, c->width))
            memcpy(own + i * hidden, y + i * hidden, (size_t)hidden * sizeof *y);
    att_param_invalidate(m->item);
    m->config.content_start = true;
    att_free(m->model.ctx, y);
    return e;
}

att_status att_recommender_set_content(att_recommender *m, int64_t first, int64_t n, const att_item_content *c)
{
    if (!c->vectors || n == 0)
        return ATT_OK;
    if (!m->content)
        return begin_with(m, first, n, c);
    memcpy((float *)att_param_value(m->content)->data + first * c->width, c->vectors,
           (size_t)(n * c->width) * sizeof(float));
    att_param_invalidate(m->content);
    return ATT_OK;
}
