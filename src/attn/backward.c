/* Attention backward, without S: for each block of keys and of queries the weights are made again from q, k and the
 * log-sum-exp (Dao et al. 2022, appendix B).
 *
 *   P = exp(S - lse)    dV = P^T dO    dP = dO V^T    dS = P (dP - delta), delta = rowsum(dO O)
 *   dQ = scale dS K     dK = scale dS^T Q
 *
 * One task is a key head of one sequence, so that every sum has one owner: dK and dV of a block of keys gather over
 * the queries of all its query heads, dQ over the blocks of keys in ascending order. */
#include "attn/attn.h"
#include "tensor/tensor.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { PANELS = 4 }; /* of queries at a time: sums over queries are chains of so many panels */

typedef struct scratch {
    float *lse, *delta;            /* [queries], lse in units of log2 */
    float *dq;                     /* [panels of queries][head_dim][panel] */
    float *q_turned, *dout_turned; /* [PANELS][dim][panel] */
    float *q_rows, *dout_rows;     /* [panels of dim][PANELS * panel][panel] */
    float *p, *ds;                 /* [ATT_KEY_BLOCK][PANELS * panel] */
    float *dk, *dv;                /* [ATT_KEY_BLOCK][dim, whole panels] */
    int64_t dk_stride, dv_stride;
} scratch;

typedef struct job {
    const att_call *call;
    const att_attention_grads *grads;
    float *memory;
    size_t scratch_count;
} job;

/* A gradient's rows of one head of one sequence. */
typedef struct rows {
    float *at; /* NULL: not wanted */
    int64_t stride;
} rows;

static int64_t whole(int64_t n, int64_t panel) { return (n + panel - 1) / panel * panel; }

/* Lays scratch memory out from p on and returns how many floats that takes. */
static size_t lay_out(const att_call *c, float *p, scratch *w)
{
    const att_attention_spec *s = &c->plan->spec;
    const int64_t panel = c->plan->kernels->panel, queries = whole(c->max_tq, PANELS * panel);
    const int64_t dim = s->head_dim, value_dim = s->value_dim;
    w->dk_stride = whole(dim, panel);
    w->dv_stride = whole(value_dim, panel);
    const struct {
        float **at;
        int64_t count;
    } parts[] = {{&w->lse, queries},
                 {&w->delta, queries},
                 {&w->dq, queries * dim},
                 {&w->q_turned, PANELS * dim * panel},
                 {&w->dout_turned, PANELS * value_dim * panel},
                 {&w->q_rows, PANELS * panel * w->dk_stride},
                 {&w->dout_rows, PANELS * panel * w->dv_stride},
                 {&w->p, ATT_KEY_BLOCK * PANELS * panel},
                 {&w->ds, ATT_KEY_BLOCK * PANELS * panel},
                 {&w->dk, ATT_KEY_BLOCK * w->dk_stride},
                 {&w->dv, ATT_KEY_BLOCK * w->dv_stride}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].at = p ? p + count : NULL;
        count += (size_t)parts[i].count;
    }
    return count;
}

/* A row with nothing to attend has no gradient, whatever its output's is. */
static bool attends(const att_site *at, int64_t q) { return at->lse[q * at->lse_stride] != -INFINITY; }

/* delta and log-sum-exp of all queries of a head. */
static void prepare_rows(const att_plan *plan, const att_site *at, rows dout, const scratch *w)
{
    for (int64_t i = 0; i < at->tq; i++) {
        const float lse = at->lse[i * at->lse_stride];
        w->lse[i] = isinf(lse) ? 0 : (float)(lse * ATT_LOG2_E);
        w->delta[i] = plan->kernels->dot(plan->spec.value_dim, dout.at + i * dout.stride, at->out + i * at->out_stride);
    }
}

/* The output gradient of query i of the panels counts as 0. */
static void forget_query(const att_plan *plan, int i, const scratch *w)
{
    const int64_t panel = plan->kernels->panel, value_dim = plan->spec.value_dim;
    for (int64_t d = 0; d < value_dim; d++) {
        w->dout_turned[i / panel * value_dim * panel + d * panel + i % panel] = 0;
        w->dout_rows[(d / panel * PANELS * panel + i) * panel + d % panel] = 0;
    }
}

/* Queries [q0, q0 + queries) and their output gradients, in both layouts. */
static void prepare_queries(const att_plan *plan, const att_site *at, rows dout, int64_t q0, int queries,
                            const scratch *w)
{
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->spec.head_dim, value_dim = plan->spec.value_dim;
    const float *q = at->q + q0 * at->q_stride, *d = dout.at + q0 * dout.stride;
    for (int i = 0; i < queries; i += k->panel) {
        const int n = queries - i < k->panel ? queries - i : k->panel;
        k->turn_in(n, dim, q + i * at->q_stride, at->q_stride, (float)(plan->spec.scale * ATT_LOG2_E),
                   w->q_turned + i * dim);
        k->turn_in(n, value_dim, d + i * dout.stride, dout.stride, 1, w->dout_turned + i * value_dim);
    }
    k->panel_rows(queries, PANELS * k->panel, dim, q, at->q_stride, w->q_rows);
    k->panel_rows(queries, PANELS * k->panel, value_dim, d, dout.stride, w->dout_rows);
    for (int i = 0; i < queries; i++)
        if (!attends(at, q0 + i))
            forget_query(plan, i, w);
}

/* One panel of queries by a block of keys: P and dS into w, dQ gathered. cut is for it. */
static void one_panel(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k0, int panel_number,
                      const att_cut *cut, const scratch *w)
{
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->spec.head_dim, value_dim = plan->spec.value_dim, stride = PANELS * k->panel;
    float *p = w->p + panel_number * k->panel, *ds = w->ds + panel_number * k->panel;
    att_score_block(plan, at, q0, queries, k0, cut, w->q_turned + panel_number * dim * k->panel, p, stride);
    for (int r = 0; r < cut->n_runs; r++) {
        const int64_t first = cut->run[r].first, keys = cut->run[r].last - first;
        k->over_columns(keys, value_dim, at->v + (k0 + first) * at->v_stride, at->v_stride,
                        w->dout_turned + panel_number * value_dim * k->panel, ds + first * stride, stride);
        k->soften_back(keys, p + first * stride, ds + first * stride, stride, w->lse + q0, w->delta + q0);
    }
    const float *key = at->k + k0 * at->k_stride;
    float *dq = w->dq + q0 * dim;
    att_clean clean;
    att_cut_clean(plan, cut, queries, key, at->k_stride, dim, &clean);
    for (int r = 0; r < clean.n_runs; r++)
        k->over_keys(dim, clean.run[r].last - clean.run[r].first, key + clean.run[r].first * at->k_stride, at->k_stride,
                     ds + clean.run[r].first * stride, stride, dq);
    att_add_unclean(plan, cut, &clean, queries, key, at->k_stride, dim, ds, stride, dq);
}

/* Bit p: does panel p attend to anything in the sub-tile of keys that begins at `key`? */
static unsigned panels_of(const att_cut *cut, int n_panels, int key)
{
    unsigned panels = 0;
    for (int p = 0; p < n_panels; p++)
        for (int r = 0; r < cut[p].n_runs; r++)
            if (cut[p].run[r].first <= key && key < cut[p].run[r].last)
                panels |= 1u << p;
    return panels;
}

/* dV += P^T dO and dK += dS^T Q for keys [first, last), over panels [begin, end) of queries. */
static void gather(const att_plan *plan, int queries, int first, int last, int begin, int end, const scratch *w)
{
    const att_kernels *k = plan->kernels;
    const int64_t stride = PANELS * k->panel, q = begin * k->panel;
    const int64_t count = (end * k->panel < queries ? end * k->panel : queries) - q;
    k->over_queries(last - first, count, w->p + first * stride + q, stride, w->dout_rows + q * k->panel, stride,
                    plan->spec.value_dim, w->dv + first * w->dv_stride, w->dv_stride);
    k->over_queries(last - first, count, w->ds + first * stride + q, stride, w->q_rows + q * k->panel, stride,
                    plan->spec.head_dim, w->dk + first * w->dk_stride, w->dk_stride);
}

/* The same for a whole block, where it is not empty: keys that the same panels attend to go together. */
static void gather_block(const att_plan *plan, int queries, int keys, const att_cut *cut, int n_panels,
                         const scratch *w)
{
    for (int first = 0, last; first < keys; first = last) {
        const unsigned panels = panels_of(cut, n_panels, first);
        for (last = first; last < keys && panels_of(cut, n_panels, last) == panels;)
            last = last + ATT_SUB_TILE < keys ? last + ATT_SUB_TILE : keys;
        for (int begin = 0, end; begin < n_panels; begin = end + 1) {
            for (end = begin; end < n_panels && (panels >> end & 1); end++)
                ;
            if (end > begin)
                gather(plan, queries, first, last, begin, end, w);
        }
    }
}

/* y [n, dim] = or += scale x */
static void store(const att_kernels *k, int64_t n, int64_t dim, float scale, float *x, int64_t x_stride, rows y,
                  int64_t first, bool add)
{
    for (int64_t i = 0; y.at && i < n; i++) {
        float *from = x + i * x_stride, *to = y.at + (first + i) * y.stride;
        k->scale(dim, scale, from, from);
        if (add)
            k->add(dim, to, from, to);
        else
            memcpy(to, from, (size_t)dim * sizeof *to);
    }
}

/* How many of the queries are in panel p. */
static int in_panel(int queries, int p, int panel)
{
    const int left = queries - p * panel;
    return left < panel ? left : panel;
}

/* Keys [k0, k0 + keys) against all queries of one head. */
static void one_block(const att_plan *plan, const att_site *at, rows dout, int64_t k0, int keys, const scratch *w)
{
    const int panel = plan->kernels->panel;
    att_cut cut[PANELS];
    memset(w->dk, 0, (size_t)(keys * w->dk_stride) * sizeof *w->dk);
    memset(w->dv, 0, (size_t)(keys * w->dv_stride) * sizeof *w->dv);
    for (int64_t q0 = 0; q0 < at->tq; q0 += PANELS * panel) {
        const int queries = (int)(at->tq - q0 < PANELS * panel ? at->tq - q0 : PANELS * panel);
        const int n_panels = (int)((queries + panel - 1) / panel);
        int any = 0;
        for (int i = 0; i < n_panels; i++) {
            att_cut_block(plan, at, q0 + i * panel, in_panel(queries, i, panel), k0, keys, &cut[i]);
            any += cut[i].n_runs;
        }
        if (!any)
            continue;
        prepare_queries(plan, at, dout, q0, queries, w);
        for (int i = 0; i < n_panels; i++)
            one_panel(plan, at, q0 + i * panel, in_panel(queries, i, panel), k0, i, &cut[i], w);
        gather_block(plan, queries, keys, cut, n_panels, w);
    }
}

/* dQ, turned back and scaled. */
static void store_queries(const att_plan *plan, const att_site *at, rows dq, const scratch *w, bool add)
{
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->spec.head_dim;
    float scale[ATT_MAX_PANEL];
    for (int i = 0; i < k->panel; i++)
        scale[i] = plan->spec.scale;
    for (int64_t q0 = 0; dq.at && q0 < at->tq; q0 += k->panel) {
        const int64_t n = at->tq - q0 < k->panel ? at->tq - q0 : k->panel;
        k->turn_out(n, dim, w->dq + q0 * dim, scale, w->q_rows, dim); /* q_rows is free by now */
        store(k, n, dim, 1, w->q_rows, dim, dq, q0, add);
    }
}

/* Rows behind a sequence's length have no gradient. */
static void clear_rows(rows y, int64_t first, int64_t last, int64_t dim)
{
    for (int64_t i = first; y.at && i < last; i++)
        memset(y.at + i * y.stride, 0, (size_t)dim * sizeof *y.at);
}

static rows rows_of(const att_call *c, const att_tensor *t, int64_t sequence, int64_t head, bool of_keys)
{
    rows r;
    r.at = att_call_rows(c, t, sequence, head, of_keys, &r.stride);
    return r;
}

/* One query head against all its keys; `add`: dK and dV have been begun by another head of the group. */
static void one_head(const job *j, int64_t sequence, int64_t head, const scratch *w, bool add)
{
    const att_call *c = j->call;
    const att_plan *plan = c->plan;
    const att_attention_spec *s = &plan->spec;
    const att_kernels *k = plan->kernels;
    const int64_t kv_head = head / (s->heads / s->kv_heads);
    att_site at;
    att_call_site(c, sequence, head, &at);
    const rows dout = rows_of(c, &j->grads->dout, sequence, head, false);
    const rows dq = rows_of(c, &j->grads->dq, sequence, head, false);
    const rows dk = rows_of(c, &j->grads->dk, sequence, kv_head, true);
    const rows dv = rows_of(c, &j->grads->dv, sequence, kv_head, true);
    prepare_rows(plan, &at, dout, w);
    memset(w->dq, 0, (size_t)(whole(at.tq, k->panel) * s->head_dim) * sizeof *w->dq);
    for (int64_t k0 = 0; k0 < at.tk; k0 += ATT_KEY_BLOCK) {
        const int keys = (int)(at.tk - k0 < ATT_KEY_BLOCK ? at.tk - k0 : ATT_KEY_BLOCK);
        one_block(plan, &at, dout, k0, keys, w);
        store(k, keys, s->head_dim, s->scale, w->dk, w->dk_stride, dk, k0, add);
        store(k, keys, s->value_dim, 1, w->dv, w->dv_stride, dv, k0, add);
    }
    store_queries(plan, &at, dq, w, j->grads->accumulate);
    if (!add) {
        clear_rows(dk, at.tk, at.k_rows, s->head_dim);
        clear_rows(dv, at.tk, at.k_rows, s->value_dim);
    }
    if (!j->grads->accumulate)
        clear_rows(dq, at.tq, at.rows, s->head_dim);
}

static void run_task(void *arg, int i, int thread)
{
    const job *j = arg;
    const att_attention_spec *s = &j->call->plan->spec;
    const int64_t sequence = i / s->kv_heads, kv_head = i % s->kv_heads, group = s->heads / s->kv_heads;
    scratch w;
    lay_out(j->call, j->memory + (size_t)thread * j->scratch_count, &w);
    for (int64_t g = 0; g < group && !att_cancelled(j->call->plan->ctx); g++)
        one_head(j, sequence, kv_head * group + g, &w, j->grads->accumulate || g > 0);
}

att_status att_backward(const att_plan *plan, const att_attention_args *args, const att_attention_grads *grads)
{
    att_ctx *ctx = plan->ctx;
    att_call call;
    att_attention_grads g;
    att_status e = att_call_check(plan, args, true, &call);
    e = e ? e : att_call_check_grads(&call, grads, &g);
    if (e)
        return e;
    const int64_t tasks = call.sequences * plan->spec.kv_heads;
    if (tasks > INT_MAX)
        return att_fail(ctx, ATT_ERR_SHAPE, "%lld sequences of %lld heads are more than %d", (long long)call.sequences,
                        (long long)plan->spec.kv_heads, INT_MAX);
    scratch w;
    job j = {.call = &call, .grads = &g, .scratch_count = lay_out(&call, NULL, &w)};
    j.memory = att_alloc(ctx, att_size_mul(j.scratch_count, (size_t)att_threads(ctx)), sizeof *j.memory);
    if (!j.memory)
        return ATT_ERR_MEMORY;
    att_parallel(ctx, (int)tasks, run_task, &j);
    att_free(ctx, j.memory);
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "attention was cancelled") : ATT_OK;
}
