/* One head of one sequence of a call: its rows and its parameters. */
#include "attn/call/params.h"

#include <math.h>

/* ---- parameters */

int64_t att_param_count(const att_tensor *t)
{
    int64_t n = t->rank ? 1 : 0;
    for (int i = 1; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

int64_t att_pairs_start(const att_tensor *t, const att_head *at, int64_t stride[2])
{
    stride[0] = t->dim[2] == 1 ? 0 : t->stride[2];
    stride[1] = t->dim[3] == 1 ? 0 : t->stride[3];
    return (t->dim[0] == 1 ? 0 : at->sequence * t->stride[0]) + (t->dim[1] == 1 ? 0 : at->head * t->stride[1]);
}

/* Returns where the numbers of one sequence's time steps begin. */
static int64_t steps_start(const att_call *c, const att_tensor *t, int64_t sequence, bool of_keys)
{
    const int64_t *offsets = of_keys && c->args.k_offsets ? c->args.k_offsets : c->args.q_offsets;
    if (att_call_is_ragged(c, of_keys))
        return offsets[sequence] * t->stride[0];
    return t->dim[0] == 1 ? 0 : sequence * t->stride[0];
}

static void set_data(const att_tensor *t, int64_t first, att_param_view *o)
{
    if (t->dtype == ATT_I32)
        o->i32 = (const int32_t *)t->data + first;
    else if (t->dtype == ATT_BOOL)
        o->boolean = (const uint8_t *)t->data + first;
    else
        o->data = (const float *)t->data + first;
}

static void view_param(const att_call *c, int i, const att_head *at, att_param_view *o)
{
    const att_tensor *t = &c->param[i];
    const att_param_kind kind = c->plan->params.list[i].shape->kind;
    *o = (att_param_view){0};
    if (!att_given(t))
        return;
    if (kind == ATT_PARAM_PER_PAIR) {
        set_data(t, att_pairs_start(t, at, o->stride), o);
    } else if (kind == ATT_PARAM_PER_HEAD) {
        o->count = att_param_count(t);
        set_data(t, t->dim[0] == 1 ? 0 : at->head * t->stride[0], o);
    } else {
        const bool of_keys = kind == ATT_PARAM_PER_KEY;
        o->stride[of_keys] = t->stride[att_call_is_ragged(c, of_keys) ? 0 : 1];
        set_data(t, steps_start(c, t, at->sequence, of_keys), o);
    }
}

/* Sets the parameters of the view's head. */
static void view_params(const att_call *c, att_head_view *view)
{
    for (int i = 0; i < c->plan->params.n; i++)
        view_param(c, i, &view->head, &view->param[i]);
}

/* ---- rows */

static att_dropout_mask dropout_of(const att_call *c, int64_t sequence, int64_t head)
{
    return (att_dropout_mask){.seed = c->args.dropout_seed,
                              .sequence = c->args.sequence_ids ? c->args.sequence_ids[sequence] : 0,
                              .head = (uint32_t)head,
                              .threshold = att_dropout_threshold(c->plan->spec.dropout)};
}

/* Sets the rows of one head. The stride of a single row may be any number, as may the offset of an empty sequence: no
 * address is computed from them. Rows are written to the view directly, because copying what was just written would
 * wait until all earlier writes, such as the previous queries' output, have reached the cache. */
static void set_rows(const att_call *c, const att_tensor *t, int64_t sequence, int64_t head, bool of_keys,
                     att_rows *rows)
{
    const att_attention_args *a = &c->args;
    const att_axes x = att_call_axes(c);
    const int64_t *offsets = of_keys && a->k_offsets ? a->k_offsets : a->q_offsets;
    *rows = (att_rows){.dtype = t->dtype};
    if (!t->data)
        return;
    const int64_t first = !c->ragged ? sequence : offsets[sequence] < t->dim[0] ? offsets[sequence] : 0;
    const int64_t start = first * t->stride[0] + head * t->stride[x.head];
    rows->at = (char *)t->data + start * (int64_t)att_dtype_size(t->dtype);
    rows->stride = t->dim[x.time] > 1 ? t->stride[x.time] : 0;
}

att_rows att_call_rows(const att_call *c, const att_tensor *t, int64_t sequence, int64_t head, bool of_keys)
{
    att_rows rows;
    set_rows(c, t, sequence, head, of_keys, &rows);
    return rows;
}

bool att_call_copies(const att_call *c)
{
    enum { MANY_QUERIES = 512 };
    const att_attention_spec *s = &c->plan->spec;
    const int time = att_call_axes(c).time;
    const bool given = !c->plan->transforms || c->plan->transforms->k.kind == ATT_TRANSFORM_NONE;
    const bool keys_apart = given && c->args.k.stride[time] != s->key_dim;
    const bool values_apart = c->args.v.stride[time] != s->value_dim;
    return s->dtype != ATT_F32 || c->args.cache || (c->max_tq >= MANY_QUERIES && (keys_apart || values_apart));
}

static int64_t position_of(const att_call *c, int64_t sequence, int64_t tq, int64_t tk)
{
    switch (c->plan->spec.align) {
    case ATT_ALIGN_BOTTOM_RIGHT:
        return tk - tq;
    case ATT_ALIGN_STARTS:
        return c->args.q_starts[sequence];
    default:
        return 0;
    }
}

void att_call_head(const att_call *c, int64_t b, int64_t h, att_head_view *view)
{
    static const att_tensor none;
    const att_attention_args *a = &c->args;
    const att_tensor *v = c->outputs ? &a->v : &none, *out = c->outputs ? &a->out : &none;
    const att_attention_spec *s = &c->plan->spec;
    const int64_t *k_offsets = a->k_offsets ? a->k_offsets : a->q_offsets;
    const int64_t q_first = c->ragged ? a->q_offsets[b] : 0, k_first = c->ragged ? k_offsets[b] : 0;
    const int64_t kv_head = h / (s->heads / s->kv_heads);
    att_head *at = &view->head;
    *at = (att_head){.sequence = b, .head = h};
    view->rows = c->ragged ? a->q_offsets[b + 1] - q_first : a->q.dim[2];
    at->tq = a->q_lengths ? a->q_lengths[b] : view->rows;
    set_rows(c, &c->q_rows, b, h, false, &view->q_row);
    if (a->cache) {
        att_cache_view(a->cache, b, kv_head, view);
    } else {
        view->k_rows = c->ragged ? k_offsets[b + 1] - k_first : c->max_tk;
        set_rows(c, v, b, kv_head, true, &view->v);
        set_rows(c, &c->k_rows, b, c->keys_per_head && c->k_rows.data != a->k.data ? h : kv_head, true, &view->k_row);
        view->k_row.copy = view->v.copy = att_call_copies(c);
    }
    at->tk = a->k_lengths ? a->k_lengths[b] : view->k_rows;
    at->position = position_of(c, b, at->tq, at->tk);
    set_rows(c, out, b, h, false, &view->out);
    att_rows lse;
    set_rows(c, c->outputs ? &a->lse : &none, b, h, false, &lse);
    view->lse = lse.at;
    view->lse_stride = lse.stride;
    view->dropout = dropout_of(c, b, h);
    view->inspected = c->inspected;
    view_params(c, view);
}

att_status att_call_find_head(const att_call *c, int64_t sequence, int64_t head, att_head_view *view)
{
    att_ctx *ctx = c->plan->ctx;
    if (sequence < 0 || sequence >= c->sequences)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "sequence is %lld, but there are %lld", (long long)sequence,
                        (long long)c->sequences);
    if (head < 0 || head >= c->plan->spec.heads)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "head is %lld, but there are %lld", (long long)head,
                        (long long)c->plan->spec.heads);
    att_call_head(c, sequence, head, view);
    return ATT_OK;
}

void att_head_clear(const att_plan *plan, const att_head_view *at, int64_t first, int64_t last)
{
    att_rows_clear(&at->out, first, last, plan->spec.value_dim);
    for (int64_t i = first; at->lse && i < last; i++)
        at->lse[i * at->lse_stride] = -INFINITY;
}
