/* Attention weights of a trace, by rows, from its queries and keys */
#include "io/cancelled.h"
#include "io/parallel_status.h"
#include "model/model.h"
#include "model/trace.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 }; /* rows of weights that are in memory at once, if not all are wanted */

static const char weights_of[] = "the attention weights of token"; /* for errors */

att_status att_trace_ready(const char *caller, const att_trace *t)
{
    if (att_require(caller, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    return t->describe_only ? att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                                       "%s: the trace has no numbers, because options.describe_only was true", caller)
                            : ATT_OK;
}

att_status att_trace_check_rows(const char *caller, const att_trace *t, int64_t first, int64_t count, int64_t rows,
                                const void *out)
{
    if (first < 0 || count < 0 || count > rows || first > rows - count)
        return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: rows from %lld, %lld of them, but there are %lld", caller,
                        (long long)first, (long long)count, (long long)rows);
    return count > 0 ? att_require(caller, ATT_NAMED({"out", out})) : ATT_OK;
}

/* Checks that attention i has numbers, and that head is -1 or one of its heads. */
static att_status check_head(const char *caller, const att_trace *t, int64_t i, int64_t head)
{
    if (att_trace_check_attention(caller, t, i))
        return ATT_ERR_ARGUMENT;
    const att_trace_layer *l = &t->layer[i];
    if (head < -1 || head >= l->part->heads)
        return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: head is %lld, but the heads are 0 to %lld", caller,
                        (long long)head, (long long)l->part->heads - 1);
    if (!l->saved)
        return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: layer %lld is not among options.layers", caller,
                        (long long)l->layer);
    return ATT_OK;
}

/* Returns the arguments of the model's call, with all queries. offsets [4]. */
static att_attention_args args_of(const att_trace_layer *l, int64_t *offsets)
{
    const att_trace_part *p = l->part;
    att_attention_args a = {.size = sizeof a, .n_sequences = 1, .n_params = l->n_params};
    offsets[0] = offsets[2] = 0;
    offsets[1] = p->queries;
    offsets[3] = p->keys;
    a.q_offsets = offsets;
    a.k_offsets = offsets + 2;
    a.param = l->n_params ? l->param : NULL;
    att_wrap(&a.q, l->q, ATT_F32, 3, (const int64_t[]){p->queries, p->heads, p->head_dim}, NULL);
    att_wrap(&a.k, l->k, ATT_F32, 3, (const int64_t[]){p->keys, p->kv_heads, p->key_dim}, NULL);
    return a;
}

/* Computes weights; scratch [count, keys] for the mean, otherwise NULL. */
static att_status weights(const att_trace_layer *l, int64_t head, int64_t first, int64_t count, float *scratch,
                          float *out)
{
    int64_t offsets[4];
    const att_attention_args a = args_of(l, offsets);
    const int64_t heads = l->part->heads, n = count * l->part->keys;
    if (count == 0)
        return ATT_OK;
    if (head >= 0)
        return att_weights(l->plan, &a, 0, head, first, count, out);
    att_status s = ATT_OK;
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t h = 0; !s && h < heads; h++) {
        s = att_weights(l->plan, &a, 0, h, first, count, scratch);
        for (int64_t j = 0; !s && j < n; j++)
            out[j] += scratch[j] / (float)heads;
    }
    return s;
}

/* Rows of a head, which the context's threads compute. */
typedef struct rows_job {
    const att_trace *t;
    const att_trace_layer *layer;
    int64_t head, first, count;
    float *out; /* [count, keys] */
    /* For thumbnails: */
    int64_t rows, columns;
    float *max; /* [rows, columns], at first 0 */
} rows_job;

/* Reads rows [first, first + count), at most BLOCK -> out [count, keys]. scratch [count, keys] is for the mean. */
static att_status read_block(const rows_job *j, int64_t first, int64_t count, float *scratch, float *out)
{
    att_ctx *ctx = j->t->pass.ctx;
    att_status s = att_check_cancelled(ctx, j->t->pass.caller);
    s = s ? s : weights(j->layer, j->head, first, count, scratch, out);
    return s ? s : att_check_finite_from(ctx, weights_of, first, count, j->layer->part->keys, out);
}

static att_status read_task(void *arg, int i)
{
    const rows_job *j = arg;
    const int64_t keys = j->layer->part->keys, done = (int64_t)i * BLOCK, count = att_min(BLOCK, j->count - done);
    float *scratch = j->head < 0 ? att_alloc(j->t->pass.ctx, (size_t)count, (size_t)keys * sizeof *scratch) : NULL;
    att_status s = scratch || j->head >= 0 ? ATT_OK : ATT_ERR_MEMORY;
    s = s ? s : read_block(j, j->first + done, count, scratch, j->out + done * keys);
    att_free(j->t->pass.ctx, scratch);
    return s;
}

static att_status read_rows(const att_trace *t, int64_t i, int64_t head, int64_t first, int64_t count, float *out)
{
    rows_job j = {.t = t, .layer = &t->layer[i], .head = head, .first = first, .count = count, .out = out};
    return att_parallel_all(t->pass.ctx, (int)att_ceil_div(count, BLOCK), read_task, &j);
}

att_status att_trace_weights(const att_trace *t, int64_t i, int64_t head, int64_t first, int64_t count, float *out)
{
    att_status s = att_trace_ready(__func__, t);
    s = s ? s : check_head(__func__, t, i, head);
    s = s ? s : att_trace_check_rows(__func__, t, first, count, t->layer[i].part->queries, out);
    return s ? s : read_rows(t, i, head, first, count, out);
}

/* ---- a pair of tokens */

static att_status describe_pair(const att_trace_layer *l, int64_t head, int64_t q, int64_t k, att_pair_info *info)
{
    int64_t offsets[4];
    const att_attention_args a = args_of(l, offsets);
    return att_pair_describe(l->plan, &a, 0, head, q, k, info);
}

static void fill_in_pair(const att_trace_layer *l, int64_t head, int64_t q, int64_t k, const att_pair_info *p,
                         att_trace_pair *out)
{
    const att_trace_part *part = l->part;
    const int64_t kv_head = head / (part->heads / part->kv_heads), row = k * part->kv_heads + kv_head;
    *out = (att_trace_pair){.query = l->q + (q * part->heads + head) * part->head_dim,
                            .key = l->k + row * part->key_dim,
                            .dim = part->head_dim,
                            .key_dim = part->key_dim,
                            .score = p->score,
                            .n_stages = p->n_stages,
                            .masked_by = p->masked_by,
                            .weight = p->weight,
                            .log_sum_exp = p->log_sum_exp,
                            .value_length = l->value_length[row]};
    memcpy(out->stage, p->stage, sizeof p->stage);
    memcpy(out->after, p->after, sizeof p->after);
}

att_status att_trace_pair_of(const att_trace *t, int64_t i, int64_t head, int64_t q, int64_t k, att_trace_pair *out)
{
    att_status s = att_trace_ready(__func__, t);
    s = s ? s : check_head(__func__, t, i, head);
    s = s ? s : att_require(__func__, ATT_NAMED({"out", out}));
    if (s)
        return s;
    const att_trace_layer *l = &t->layer[i];
    const att_trace_part *p = l->part;
    if (head < 0 || q < 0 || q >= p->queries || k < 0 || k >= p->keys)
        return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: head %lld, query %lld, key %lld, of %lld, %lld and %lld",
                        __func__, (long long)head, (long long)q, (long long)k, (long long)p->heads,
                        (long long)p->queries, (long long)p->keys);
    att_pair_info info = {.size = sizeof info};
    att_trace_pair pair;
    s = describe_pair(l, head, q, k, &info);
    s = s ? s : att_check_finite_from(t->pass.ctx, weights_of, q, 1, 1, (const float[]){(float)info.weight});
    if (s)
        return s;
    fill_in_pair(l, head, q, k, &info, &pair);
    return att_info_write(out, &pair, sizeof pair, "att_trace_pair");
}

/* ---- thumbnails */

/* Keeps the largest of each cell of a row of the grid and of weights [count, keys] -> max [columns], at first 0. */
static void pool(const float *weights, int64_t count, int64_t keys, int64_t columns, float *max)
{
    for (int64_t i = 0; i < count; i++, weights += keys)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t k = c * keys / columns; k < (c + 1) * keys / columns; k++)
                max[c] = weights[k] > max[c] ? weights[k] : max[c];
}

static att_status pool_task(void *arg, int i)
{
    const rows_job *j = arg;
    const att_trace_part *p = j->layer->part;
    const int64_t first = i * p->queries / j->rows, last = (i + 1) * p->queries / j->rows;
    float *block = att_alloc(j->t->pass.ctx, (size_t)p->keys, 2 * BLOCK * sizeof *block);
    att_status s = block ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t q = first; !s && q < last; q += BLOCK) {
        const int64_t count = att_min(BLOCK, last - q);
        s = read_block(j, q, count, block + BLOCK * p->keys, block);
        if (!s)
            pool(block, count, p->keys, j->columns, j->max + i * j->columns);
    }
    att_free(j->t->pass.ctx, block);
    return s;
}

static float to_bytes(const float *max, int64_t n, uint8_t *out)
{
    float scale = 0;
    for (int64_t i = 0; i < n; i++)
        scale = max[i] > scale ? max[i] : scale;
    for (int64_t i = 0; i < n; i++)
        out[i] = scale > 0 ? (uint8_t)lrintf(255 * (max[i] / scale)) : 0;
    return scale;
}

att_status att_trace_pooled(const att_trace *t, int64_t i, int64_t head, int64_t rows, int64_t columns, uint8_t *out,
                            float *scale)
{
    att_status s = att_trace_ready(__func__, t);
    s = s ? s : check_head(__func__, t, i, head);
    s = s ? s : att_require(__func__, ATT_NAMED({"out", out}, {"scale", scale}));
    if (s)
        return s;
    const att_trace_part *p = t->layer[i].part;
    if (rows < 1 || rows > p->queries || columns < 1 || columns > p->keys)
        return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: a grid of %lld x %lld of %lld queries and %lld keys",
                        __func__, (long long)rows, (long long)columns, (long long)p->queries, (long long)p->keys);
    rows_job j = {.t = t, .layer = &t->layer[i], .head = head, .rows = rows, .columns = columns};
    j.max = att_calloc(t->pass.ctx, (size_t)rows, (size_t)columns * sizeof *j.max);
    s = j.max ? att_parallel_all(t->pass.ctx, (int)rows, pool_task, &j) : ATT_ERR_MEMORY;
    if (!s)
        *scale = to_bytes(j.max, rows * columns, out);
    att_free(t->pass.ctx, j.max);
    return s;
}

/* ---- rollout */

/* Computes out = (0.5 A + 0.5 I) out, where A [n, n] is the mean of a layer's heads; for the first layer the factor
 * itself. scratch [2, n, n]. */
static att_status roll(const att_trace *t, int64_t i, bool first, int64_t n, float *scratch, float *out)
{
    const int64_t shape[] = {n, n};
    float *factor = first ? out : scratch, *product = scratch + n * n;
    att_tensor a, b, c;
    att_status s = read_rows(t, i, -1, 0, n, factor);
    for (int64_t j = 0; !s && j < n * n; j++)
        factor[j] = 0.5f * factor[j] + (j % (n + 1) ? 0 : 0.5f);
    if (s || first)
        return s;
    s = att_wrap(&a, factor, ATT_F32, 2, shape, NULL);
    s = s ? s : att_wrap(&b, out, ATT_F32, 2, shape, NULL);
    s = s ? s : att_wrap(&c, product, ATT_F32, 2, shape, NULL);
    s = s ? s : att_tensor_matmul(t->pass.ctx, &a, &b, NULL, &c);
    if (!s)
        memcpy(out, product, (size_t)(n * n) * sizeof *out);
    return s;
}

att_status att_trace_rollout(const att_trace *t, float *out)
{
    att_status s = att_trace_ready(__func__, t);
    s = s ? s : att_require(__func__, ATT_NAMED({"out", out}));
    if (s)
        return s;
    const int64_t layers = t->info.layers[ATT_TRACE_SIDE_ENCODER], n = t->info.source;
    if (layers == 0)
        return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: the model has no encoder's side", __func__);
    float *scratch = att_alloc(t->pass.ctx, (size_t)n, 2 * (size_t)n * sizeof *scratch);
    s = scratch ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t l = 0; !s && l < layers; l++) {
        const int64_t i = att_trace_index(t, ATT_TRACE_SIDE_ENCODER, l);
        s = check_head(__func__, t, i, -1);
        s = s ? s : roll(t, i, l == 0, n, scratch, out);
    }
    att_free(t->pass.ctx, scratch);
    return s;
}
