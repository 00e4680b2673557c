#include "model/attention_recorder.h"
#include "attend_util.h"
#include "model/model.h"

#include <string.h>

static att_status one_head(const att_attention_recorder *r, const att_tape_event *e, int64_t head, float *out)
{
    return att_weights(e->plan, e->args, 0, head, 0, r->count, out);
}

/* The mean of all heads -> out [count, count] */
static att_status mean_of_heads(const att_attention_recorder *r, const att_tape_event *e, float *one, float *out)
{
    const int64_t all = r->count * r->count;
    att_plan_info info = {.size = sizeof info};
    att_status s = att_plan_describe(e->plan, NULL, &info);
    memset(out, 0, (size_t)all * sizeof *out);
    for (int64_t h = 0; !s && h < info.heads; h++) {
        s = one_head(r, e, h, one);
        for (int64_t i = 0; !s && i < all; i++)
            out[i] += one[i] / (float)info.heads;
    }
    return s;
}

/* weights = (0.5 A + 0.5 I) weights, where A is the mean of this layer's heads */
static att_status roll(const att_attention_recorder *r, const att_tape_event *e)
{
    const int64_t n = r->count, shape[] = {n, n};
    float *product = r->scratch, *mean = r->scratch + n * n;
    att_tensor a, b, c;
    att_status s = mean_of_heads(r, e, product, mean);
    for (int64_t i = 0; i < n * n; i++)
        mean[i] = 0.5f * mean[i] + (i % (n + 1) ? 0 : 0.5f);
    if (!s && r->seen > 0) {
        s = att_wrap(&a, mean, ATT_F32, 2, shape, NULL);
        s = s ? s : att_wrap(&b, r->weights, ATT_F32, 2, shape, NULL);
        s = s ? s : att_wrap(&c, product, ATT_F32, 2, shape, NULL);
        s = s ? s : att_tensor_matmul(r->ctx, &a, &b, NULL, &c);
    }
    memcpy(r->weights, r->seen > 0 ? product : mean, (size_t)(n * n) * sizeof *mean);
    return s;
}

void att_attention_record(void *recorder, const att_tape_event *event)
{
    att_attention_recorder *r = recorder;
    if (!event->plan || r->status)
        return;
    if (r->layer < 0)
        r->status = roll(r, event);
    else if (r->layer == r->seen)
        r->status =
            r->head < 0 ? mean_of_heads(r, event, r->scratch, r->weights) : one_head(r, event, r->head, r->weights);
    if (!r->status && (r->layer < 0 || r->layer == r->seen))
        r->status = att_check_finite(r->ctx, "the attention weights of token", r->count, r->count, r->weights);
    r->seen++;
}

att_status att_attention_check(att_ctx *ctx, const char *what, int64_t index, int64_t min, int64_t count)
{
    return index >= min && index < count ? ATT_OK
                                         : att_fail(ctx, ATT_ERR_ARGUMENT, "%s %lld, but the model's are 0 to %lld",
                                                    what, (long long)index, (long long)count - 1);
}

void att_source_record(void *recorder, const att_tape_event *event)
{
    att_source_recorder *l = recorder;
    if (!event->plan || strcmp(event->scope, l->scope) != 0)
        return;
    const int64_t rows = event->args->q.dim[0];
    float *mean = l->weights + l->rows * l->columns;
    for (int64_t h = 0; !l->status && h < l->heads; h++) {
        l->status = att_weights(event->plan, event->args, 0, l->first_head + h, 0, rows, l->head);
        for (int64_t i = 0; !l->status && i < rows * l->columns; i++)
            mean[i] += l->head[i] / (float)l->heads;
    }
    l->rows += rows;
}
