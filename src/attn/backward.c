/* Attention backward, without S: for each block of keys and of queries the weights are made again from q, k and the
 * log-sum-exp (Dao et al. 2022, appendix B).
 *
 *   P = exp(S - lse)    dV = P^T dO    dP = dO V^T    dS = P (dP - delta), delta = rowsum(dO O) - dlse
 *   dQ = scale dS K     dK = scale dS^T Q                                     (where the score is a dot product)
 *
 * A task is a block of keys of one key head, which owns its dK and dV: they gather over the queries of all the query
 * heads that share it. dQ is summed over blocks of keys in ascending order, whoever computes them: see in_turn. */
#include "attn/params.h"
#include "attn/prologue.h"
#include "tensor/tensor.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    PANELS = 4, /* of queries at a time: sums over queries are chains of so many panels */
    FEW = 4     /* queries in a panel for which dP has keys as its lanes */
};

typedef struct scratch {
    float *lse, *delta;            /* [PANELS * panel], lse in units of log2 */
    float *q_turned, *dout_turned; /* [PANELS][dim][panel] */
    float *q_rows, *dout_rows;     /* [panels of dim][PANELS * panel][panel] */
    float *p, *ds;                 /* [ATT_KEY_BLOCK][PANELS * panel] */
    float *saved[ATT_MAX_STAGES];  /* the same, of modifiers that are not additive */
    float *dk, *dv;                /* [ATT_KEY_BLOCK][dim, whole panels] */
    float *dq_rows;                /* [panel][q_dim] */
    float *query, *dout;           /* [PANELS * panel][dim], where they are not f32 */
    float *key, *value;            /* [ATT_KEY_BLOCK][dim], where they are copied */
    float *ready;                  /* [ATT_KEY_BLOCK][att_ready_count] */
    float *row;                    /* [the longest of the dims] */
    double *pair;
} scratch;

typedef struct job {
    const att_call *call;
    const att_attention_grads *grads;
    att_row_grads rows;
    att_tasks tasks;
    float *memory; /* a scratch for each thread; with it all that follows */
    size_t scratch_count;
    float *dq; /* [tasks.slots][heads of a group][whole panels of max_tq][q_dim]: panel by panel, turned or not */
    int64_t dq_count; /* numbers of one head */
    float *params;    /* [tasks][params_count]: their part of the parameters' gradients */
    int64_t params_count;
    double *sums; /* [att_params_sums] */
} job;

/* The task's rows of dK or dV, those of one head of the tensor: where they are gathered, and whether to add them to
 * what is there. */
typedef struct gathered {
    att_rows to;
    int64_t dim, stride;
    float *from;
    bool add;
    bool begun; /* from has numbers */
} gathered;

/* One query head against a block of keys, in one task. */
typedef struct work {
    const job *job;
    const att_plan *plan;
    const att_task *task;
    att_site site;
    att_rows dout, dq, dlse;
    att_floats key, value;       /* of the block */
    att_floats query, dout_rows; /* of the step */
    gathered dk, dv;
    scratch w;
    float *dq_sum; /* [panels][q_dim][panel] */
    int64_t step;  /* of the task: blocks of queries of all its heads, counted */
    att_operand score_param[ATT_MAX_PARAMS], modifier_param[ATT_MAX_STAGES];
} work;

static bool is_dot(const att_plan *plan) { return plan->score->flags & ATT_DOT; }

/* ---- memory */

/* Lays scratch memory out from p on and returns how many floats that takes. */
static size_t lay_out(const att_call *c, float *p, scratch *w)
{
    const att_plan *plan = c->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t panel = plan->kernels->panel, tile = ATT_KEY_BLOCK * PANELS * panel;
    const int64_t converted = s->dtype == ATT_F32 ? 0 : 1, copies = att_call_copies(c) ? 1 : 0;
    const int64_t dims = plan->q_dim + plan->k_dim + s->value_dim;
    float *pair = NULL;
    const int64_t dk_stride = att_whole(plan->k_dim, panel), dv_stride = att_whole(s->value_dim, panel);
    *w = (scratch){0};
    const att_part parts[] = {{&w->lse, PANELS * panel},
                              {&w->delta, PANELS * panel},
                              {&w->q_turned, !att_takes_rows(plan) * PANELS * plan->q_dim * panel},
                              {&w->dout_turned, PANELS * s->value_dim * panel},
                              {&w->q_rows, is_dot(plan) * PANELS * panel * att_whole(plan->q_dim, panel)},
                              {&w->dout_rows, PANELS * panel * dv_stride},
                              {&w->p, tile},
                              {&w->ds, tile},
                              {&w->dk, ATT_KEY_BLOCK * dk_stride},
                              {&w->dv, ATT_KEY_BLOCK * dv_stride},
                              {&w->dq_rows, panel * plan->q_dim},
                              {&w->query, converted * PANELS * panel * plan->q_dim},
                              {&w->dout, converted * PANELS * panel * s->value_dim},
                              {&w->key, copies * ATT_KEY_BLOCK * plan->k_dim},
                              {&w->value, copies * ATT_KEY_BLOCK * s->value_dim},
                              {&w->ready, ATT_KEY_BLOCK * att_ready_count(plan)},
                              {&w->row, dims},
                              {&pair, att_whole((int64_t)(att_pair_scratch(c) * sizeof(double) / sizeof(float)), 16)}};
    size_t count = att_lay_out(p, sizeof parts / sizeof parts[0], parts);
    w->pair = (void *)pair;
    for (int i = 0; i < plan->n_modifiers; i++)
        if (!(plan->modifier[i]->flags & (ATT_ADDITIVE | ATT_SINK))) {
            w->saved[i] = p ? p + count : NULL;
            count += (size_t)tile;
        }
    return count;
}

/* ---- queries */

/* A row with nothing to attend has no gradient, whatever its output's is. */
static bool attends(const att_site *at, int64_t q) { return at->lse[q * at->lse_stride] != -INFINITY; }

/* The output gradient of query i of the panels counts as 0. */
static void forget_query(const work *x, int i)
{
    const int64_t panel = x->plan->kernels->panel, value_dim = x->plan->spec.value_dim;
    for (int64_t d = 0; d < value_dim; d++) {
        x->w.dout_turned[i / panel * value_dim * panel + d * panel + i % panel] = 0;
        x->w.dout_rows[(d / panel * PANELS * panel + i) * panel + d % panel] = 0;
    }
    x->w.lse[i] = x->w.delta[i] = 0;
}

/* delta and log-sum-exp of query q0 + i. */
static void prepare_row(const work *x, int64_t q0, int i)
{
    const att_site *at = &x->site;
    const att_kernels *k = x->plan->kernels;
    const int64_t dim = x->plan->spec.value_dim;
    const float *dout = x->dout_rows.at + i * x->dout_rows.stride;
    const float *out = att_rows_read(k, &at->out, q0 + i, 1, dim, x->w.row).at;
    const float dlse = x->dlse.at ? ((const float *)x->dlse.at)[(q0 + i) * x->dlse.stride] : 0;
    x->w.lse[i] = (float)(at->lse[(q0 + i) * at->lse_stride] * ATT_LOG2_E);
    x->w.delta[i] = k->dot(dim, dout, out) - dlse;
}

/* Queries [q0, q0 + queries) and their output gradients, in both layouts. */
static void prepare_queries(work *x, int64_t q0, int queries)
{
    const att_plan *plan = x->plan;
    const att_site *at = &x->site;
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->q_dim, value_dim = plan->spec.value_dim;
    const att_floats q = att_rows_read(k, &at->q_row, q0, queries, dim, x->w.query);
    const att_floats d = att_rows_read(k, &x->dout, q0, queries, value_dim, x->w.dout);
    x->query = q;
    x->dout_rows = d;
    for (int i = 0; i < queries; i += k->panel) {
        const int n = queries - i < k->panel ? queries - i : k->panel;
        if (!att_takes_rows(plan))
            att_turn_queries(plan, (att_floats){q.at + i * q.stride, q.stride}, n, x->w.q_turned + i * dim);
        if (n > FEW)
            k->turn_in(n, value_dim, d.at + i * d.stride, d.stride, 1, x->w.dout_turned + i * value_dim);
    }
    if (is_dot(plan))
        k->panel_rows(queries, PANELS * k->panel, dim, q.at, q.stride, att_query_scale(plan), x->w.q_rows);
    k->panel_rows(queries, PANELS * k->panel, value_dim, d.at, d.stride, 1, x->w.dout_rows);
    for (int i = 0; i < queries; i++)
        if (attends(at, q0 + i))
            prepare_row(x, q0, i);
        else
            forget_query(x, i);
}

/* dsink = sum of -p delta, p = exp(sink - lse) being the sink's own weight. */
static void sink_back(const work *x, int queries)
{
    const att_operand *sink = &x->modifier_param[x->plan->sink];
    double sum = 0;
    for (int i = 0; i < queries; i++)
        sum -= exp2(sink->data[0] * ATT_LOG2_E - (double)x->w.lse[i]) * (double)x->w.delta[i];
    sink->grad[0] += (float)sum;
}

/* ---- a block of keys by some panels of queries */

static att_block block_of(const work *x, int64_t q0, int queries, int panel_number, const att_cut *cut)
{
    const att_plan *plan = x->plan;
    const int64_t panel = plan->kernels->panel, dim = plan->q_dim;
    att_block b = {.plan = plan,
                   .site = &x->site,
                   .cut = cut,
                   .q0 = q0,
                   .k0 = x->task->k0,
                   .queries = queries,
                   .query = {x->query.at + panel_number * panel * x->query.stride, x->query.stride},
                   .key = x->key,
                   .q = att_takes_rows(plan) ? NULL : x->w.q_turned + panel_number * dim * panel,
                   .ready = att_ready_count(plan) ? x->w.ready : NULL,
                   .s = x->w.p + panel_number * panel,
                   .ds = x->w.ds + panel_number * panel,
                   .stride = PANELS * panel,
                   .dq = x->dq_sum + q0 * dim,
                   .dk = x->dk.from,
                   .dk_stride = x->dk.stride,
                   .pair = x->w.pair,
                   .score_param = x->score_param,
                   .modifier_param = x->modifier_param};
    for (int i = 0; i < plan->n_modifiers; i++)
        b.saved[i] = x->w.saved[i] ? x->w.saved[i] + panel_number * panel : NULL;
    return b;
}

/* dP of a run of keys and a few queries, whose lanes are keys: the same chains, and no panel that is almost empty. */
static void few_over_columns(const work *x, const att_block *b, int panel_number, int64_t first, int64_t keys)
{
    const att_plan *plan = x->plan;
    const int64_t dim = plan->spec.value_dim;
    const float *v = x->value.at + first * x->value.stride;
    const att_floats d = x->dout_rows;
    float s[FEW * ATT_KEY_BLOCK];
    plan->kernels->few_scores(ATT_F32, b->queries, false, keys, dim, v, x->value.stride,
                              d.at + panel_number * plan->kernels->panel * d.stride, d.stride, s, ATT_KEY_BLOCK,
                              x->key.at);
    for (int i = 0; i < b->queries; i++)
        for (int64_t k = 0; k < keys; k++)
            b->ds[(first + k) * b->stride + i] = attends(&x->site, b->q0 + i) ? s[i * ATT_KEY_BLOCK + k] : 0;
}

/* One panel: P and dS, before the stages are walked back. */
static void weights_and_slopes(const work *x, const att_block *b, int panel_number)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const int64_t value_dim = plan->spec.value_dim;
    uint64_t keep[ATT_KEY_BLOCK];
    att_score_block(b);
    for (int r = 0; r < b->cut->n_runs; r++) {
        const int64_t first = b->cut->run[r].first, keys = b->cut->run[r].last - first;
        if (b->queries <= FEW)
            few_over_columns(x, b, panel_number, first, keys);
        else
            k->over_columns(b->queries, keys, value_dim, x->value.at + first * x->value.stride, x->value.stride,
                            x->w.dout_turned + panel_number * value_dim * k->panel, b->ds + first * b->stride,
                            b->stride);
    }
    att_keep_block(b, keep);
    att_drop_block(b, keep, b->ds);
    for (int r = 0; r < b->cut->n_runs; r++) {
        const int64_t first = b->cut->run[r].first, keys = b->cut->run[r].last - first;
        k->soften_back(keys, b->s + first * b->stride, b->ds + first * b->stride, b->stride,
                       x->w.lse + panel_number * k->panel, x->w.delta + panel_number * k->panel);
    }
    att_drop_block(b, keep, b->s);
}

/* dQ += dS K of one panel. */
static void over_keys(const work *x, const att_block *b)
{
    const att_plan *plan = x->plan;
    const int64_t dim = plan->q_dim;
    const att_floats key = b->key;
    att_clean clean;
    att_cut_clean(plan, b->cut, b->queries, key.at, key.stride, dim, &clean);
    for (int r = 0; r < clean.n_runs; r++)
        plan->kernels->over_keys(dim, clean.run[r].last - clean.run[r].first, key.at + clean.run[r].first * key.stride,
                                 key.stride, b->ds + clean.run[r].first * b->stride, b->stride, b->dq);
    att_add_unclean(plan, b->cut, &clean, b->queries, key.at, key.stride, dim, b->ds, b->stride, b->dq);
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

/* dV += P^T dO and dK += dS^T Q for keys [first, last), over panels [begin, end) of queries; or begins them, unless
 * they are met again. */
static void gather(const work *x, int queries, int first, int last, int begin, int end, bool again)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const scratch *w = &x->w;
    const gathered *dk = &x->dk, *dv = &x->dv;
    const int64_t stride = PANELS * k->panel, q = begin * k->panel;
    const int64_t count = (end * k->panel < queries ? end * k->panel : queries) - q;
    k->over_queries(dv->begun || again, last - first, count, w->p + first * stride + q, stride,
                    w->dout_rows + q * k->panel, stride, dv->dim, dv->from + first * dv->stride, dv->stride);
    if (is_dot(plan))
        k->over_queries(dk->begun || again, last - first, count, w->ds + first * stride + q, stride,
                        w->q_rows + q * k->panel, stride, dk->dim, dk->from + first * dk->stride, dk->stride);
}

/* Keys [first, last) of the block have no part in what is begun. */
static void begin_empty(gathered *g, int first, int last)
{
    if (!g->begun)
        memset(g->from + first * g->stride, 0, (size_t)((last - first) * g->stride) * sizeof *g->from);
}

/* The same for the whole block, where it is not empty: keys that the same panels attend to go together. */
static void gather_block(work *x, int queries, const att_cut *cut, int n_panels)
{
    const int keys = x->task->keys;
    for (int first = 0, last; first < keys; first = last) {
        const unsigned panels = panels_of(cut, n_panels, first);
        bool again = false;
        for (last = first; last < keys && panels_of(cut, n_panels, last) == panels;)
            last = last + ATT_SUB_TILE < keys ? last + ATT_SUB_TILE : keys;
        for (int begin = 0, end; begin < n_panels; begin = end + 1) {
            for (end = begin; end < n_panels && (panels >> end & 1); end++)
                ;
            if (end > begin)
                gather(x, queries, first, last, begin, end, again);
            again = again || end > begin;
        }
        if (!again) {
            begin_empty(&x->dk, first, last);
            begin_empty(&x->dv, first, last);
        }
    }
    x->dk.begun = x->dv.begun = true;
}

/* ---- one step: some panels of queries */

/* How many of the queries are in panel p. */
static int in_panel(int queries, int p, int panel)
{
    const int left = queries - p * panel;
    return left < panel ? left : panel;
}

/* dQ of these queries is complete: turned back, where it is turned, and stored. */
static void store_queries(const work *x, int64_t q0, int queries)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->q_dim;
    float scale[ATT_MAX_PANEL];
    if (att_takes_rows(plan)) {
        att_rows_write(k, x->dq_sum + q0 * dim, dim, &x->dq, q0, queries, dim, x->job->rows.add_dq, x->w.row);
        return;
    }
    for (int i = 0; i < k->panel; i++)
        scale[i] = att_query_scale(plan);
    for (int i = 0; x->dq.at && i < queries; i += k->panel) {
        const int n = queries - i < k->panel ? queries - i : k->panel;
        k->turn_out(n, dim, x->dq_sum + (q0 + i) * dim, scale, x->w.dq_rows, dim);
        att_rows_write(k, x->w.dq_rows, dim, &x->dq, q0 + i, n, dim, x->job->rows.add_dq, x->w.row);
    }
}

/* Its turn has come: all that earlier tasks add to what is shared by several is there. */
static void in_turn(const work *x, int64_t q0, int queries, const att_cut *cut, int n_panels)
{
    const int64_t panel = x->plan->kernels->panel, dim = x->plan->q_dim;
    if (x->task->k0 == 0)
        memset(x->dq_sum + q0 * dim, 0, (size_t)(n_panels * panel * dim) * sizeof *x->dq_sum);
    for (int i = 0; i < n_panels; i++) {
        if (cut[i].n_runs == 0)
            continue;
        const att_block b = block_of(x, q0 + i * panel, in_panel(queries, i, (int)panel), i, &cut[i]);
        att_score_block_back(&b);
        if (is_dot(x->plan))
            over_keys(x, &b);
    }
    if (x->task->last)
        store_queries(x, q0, queries);
}

static void one_step(work *x, int64_t q0)
{
    const att_plan *plan = x->plan;
    const int panel = plan->kernels->panel;
    const int64_t left = x->site.place.tq - q0;
    const int queries = (int)(left < PANELS * panel ? left : PANELS * panel), n_panels = (queries + panel - 1) / panel;
    const bool has_sink = plan->sink >= 0 && x->modifier_param[plan->sink].grad && x->task->k0 == 0;
    const int64_t k0 = x->task->k0;
    int64_t first, last;
    att_cut cut[PANELS];
    int any = 0;
    att_span(plan, &x->site, q0, queries, &first, &last);
    for (int i = 0; i < n_panels; i++) {
        if (first <= k0 && k0 < last)
            att_cut_block(plan, &x->site, q0 + i * panel, in_panel(queries, i, panel), k0, x->task->keys, &cut[i]);
        else
            cut[i].n_runs = 0;
        any += cut[i].n_runs;
    }
    if (any || has_sink)
        prepare_queries(x, q0, queries);
    if (has_sink)
        sink_back(x, queries);
    for (int i = 0; any && i < n_panels; i++) {
        const att_block b = block_of(x, q0 + i * panel, in_panel(queries, i, panel), i, &cut[i]);
        weights_and_slopes(x, &b, i);
    }
    att_tasks_await(&x->job->tasks, x->task, x->step);
    in_turn(x, q0, queries, cut, n_panels);
    att_tasks_pass(&x->job->tasks, x->task, ++x->step);
    if (any)
        gather_block(x, queries, cut, n_panels);
}

/* ---- one task */

/* Where this task's part of the gradients of one head's parameters goes. */
static void point_params(work *x, int64_t head_in_group)
{
    const job *j = x->job;
    float *part = j->params + x->task->index * j->params_count;
    memcpy(x->score_param, x->site.score_param, sizeof x->score_param);
    memcpy(x->modifier_param, x->site.modifier_param, sizeof x->modifier_param);
    att_params_point(j->call, j->grads, &x->site.place, head_in_group, part, x->score_param, x->modifier_param);
}

/* Does the block have no key for queries before q0? */
static bool is_done(const work *x, int64_t q0)
{
    int64_t first, last;
    att_span(x->plan, &x->site, 0, q0 < x->site.place.tq ? q0 : x->site.place.tq, &first, &last);
    return x->task->k0 < first || x->task->k0 >= last;
}

/* What tiles would make of each key, of a block that all queries meet. */
static void make_ready(const work *x)
{
    const att_plan *plan = x->plan;
    const int64_t count = att_ready_count(plan);
    for (int j = 0; count && j < x->task->keys; j++)
        plan->score->prologue->make_ready(plan->k_dim, x->key.at + j * x->key.stride, x->w.ready + j * count);
}

static void one_head(work *x, int64_t head_in_group, int64_t group)
{
    const job *j = x->job;
    const att_call *c = j->call;
    const int panel = x->plan->kernels->panel;
    const int64_t sequence = x->task->sequence, head = x->task->kv_head * group + head_in_group;
    att_call_site(c, sequence, head, &x->site);
    x->dout = att_call_rows(c, &j->grads->dout, sequence, head, false);
    x->dlse = att_call_rows(c, &j->grads->dlse, sequence, head, false);
    x->dq = att_call_rows(c, &j->rows.dq, sequence, head, false);
    x->dq_sum = j->dq + (x->task->slot * group + head_in_group) * j->dq_count;
    x->key = att_rows_read(x->plan->kernels, &x->site.k_row, x->task->k0, x->task->keys, x->plan->k_dim, x->w.key);
    x->value =
        att_rows_read(x->plan->kernels, &x->site.v, x->task->k0, x->task->keys, x->plan->spec.value_dim, x->w.value);
    if (head_in_group == 0 || c->keys_per_head)
        make_ready(x);
    point_params(x, head_in_group);
    /* From the last queries on: these have something to do with every block of keys where attention is causal, and the
     * next task, which follows a step behind, begins at once. */
    for (int64_t q0 = att_whole(x->site.place.tq, PANELS * panel); q0 > 0; q0 -= PANELS * panel) {
        if (head_in_group == group - 1 && is_done(x, q0) && att_tasks_leave(&x->job->tasks, x->task, x->step))
            break;
        one_step(x, q0 - PANELS * panel);
    }
    if (x->task->last && !j->rows.add_dq)
        att_rows_clear(&x->dq, x->site.place.tq, x->site.rows, x->plan->q_dim);
}

/* In place, where whole panels of floats side by side may be written there; else in scratch memory. */
static gathered begin_keys(const work *x, const att_tensor *to, int64_t head, int64_t dim, bool add, float *room)
{
    const int64_t panel = x->plan->kernels->panel;
    gathered g = {.to = att_call_rows(x->job->call, to, x->task->sequence, head, true),
                  .dim = dim,
                  .stride = att_whole(dim, panel),
                  .from = room,
                  .add = add};
    if (g.to.at && g.to.dtype == ATT_F32 && g.to.stride == dim && dim % panel == 0 && !add)
        g.from = att_row_at(&g.to, x->task->k0);
    return g;
}

/* dK of a query head, or of all that share the keys. Scores that are no dot products add to it themselves. */
static void begin_dk(work *x, int64_t head)
{
    x->dk = begin_keys(x, &x->job->rows.dk, head, x->plan->k_dim, x->job->rows.add_dk, x->w.dk);
    if (!is_dot(x->plan))
        begin_empty(&x->dk, 0, x->task->keys);
    x->dk.begun = !is_dot(x->plan);
}

static void end_keys(const work *x, gathered *g)
{
    const att_task *t = x->task;
    begin_empty(g, 0, t->keys);
    if (g->to.at && g->from != att_row_at(&g->to, t->k0))
        att_rows_write(x->plan->kernels, g->from, g->stride, &g->to, t->k0, t->keys, g->dim, g->add, x->w.row);
    if (t->last && !g->add)
        att_rows_clear(&g->to, t->k0 + t->keys, t->k_rows, g->dim);
}

static void run_task(void *arg, int i, int thread)
{
    const job *j = arg;
    const att_call *c = j->call;
    const att_plan *plan = c->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t group = s->heads / s->kv_heads;
    work x = {.job = j, .plan = plan, .task = att_tasks_begin(&j->tasks, i)};
    const att_task *t = x.task;
    lay_out(c, j->memory + (size_t)thread * j->scratch_count, &x.w);
    const int64_t head = c->keys_per_head ? t->kv_head * group : t->kv_head;
    x.dv = begin_keys(&x, &j->grads->dv, t->kv_head, s->value_dim, j->grads->accumulate, x.w.dv);
    begin_dk(&x, head);
    memset(j->params + t->index * j->params_count, 0, (size_t)j->params_count * sizeof *j->params);
    for (int64_t g = 0; g < group && !att_cancelled(plan->ctx); g++) {
        if (g > 0 && c->keys_per_head) {
            end_keys(&x, &x.dk);
            begin_dk(&x, head + g);
        }
        one_head(&x, g, group);
    }
    att_tasks_end(&j->tasks, t);
    end_keys(&x, &x.dk);
    end_keys(&x, &x.dv);
}

/* ---- the call */

/* a * b, or more than there can be. */
static int64_t product(size_t a, int64_t b)
{
    const size_t n = att_size_mul(a, (size_t)b);
    return n < INT64_MAX / 8 ? (int64_t)n : INT64_MAX / 8;
}

static bool allocate(job *j)
{
    const att_plan *plan = j->call->plan;
    const att_attention_spec *s = &plan->spec;
    scratch w;
    j->scratch_count = lay_out(j->call, NULL, &w);
    j->dq_count = att_whole(j->call->max_tq, plan->kernels->panel) * plan->q_dim;
    j->params_count = att_params_count(j->call, j->grads);
    const att_part parts[] = {
        {&j->memory, product(j->scratch_count, att_threads(plan->ctx))},
        {&j->dq, product((size_t)j->dq_count, j->tasks.slots * s->heads / s->kv_heads)},
        {&j->params, product((size_t)j->params_count, j->tasks.count)},
    };
    const int n = sizeof parts / sizeof parts[0];
    float *p = att_scratch_take(plan, att_lay_out(NULL, n, parts));
    att_lay_out(p, n, parts);
    j->sums = att_alloc(plan->ctx, (size_t)att_params_sums(j->call, j->grads), sizeof *j->sums);
    return p && j->sums;
}

size_t att_backward_workspace(const att_call *c)
{
    const att_attention_spec *s = &c->plan->spec;
    const int64_t panel = c->plan->kernels->panel;
    scratch w;
    const size_t dq =
        (size_t)(att_tasks_slots(c) * (s->heads / s->kv_heads) * att_whole(c->max_tq, panel)) * (size_t)c->plan->q_dim;
    return (lay_out(c, NULL, &w) * (size_t)att_threads(c->plan->ctx) + dq) * sizeof(float) + att_tasks_bytes(c);
}

/* Parts of parameters' gradients to their sum. */
static void sum_params(void *arg, int task)
{
    const job *j = arg;
    (void)task;
    att_params_sum(j->call, j->grads, &j->tasks, j->params, j->params_count, j->sums);
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
    job j = {.call = &call, .grads = &g};
    e = att_prologue_begin(&call);
    if (e)
        return e;
    e = att_prologue_begin_back(&call, &g, &j.rows);
    e = e ? e : att_tasks_make(&call, att_params_order(&call, &g), &j.tasks);
    if (!e && !allocate(&j))
        e = ATT_ERR_MEMORY;
    if (!e) {
        att_params_clear(&call, &g);
        att_parallel(ctx, (int)j.tasks.count, run_task, &j);
        att_parallel_for(ctx, 1, sum_params, &j); /* rounded as in the tasks, whatever the host has set */
        att_prologue_back(&call, &g, &j.rows);
    }
    att_free(ctx, j.sums);
    att_scratch_give(plan, j.memory);
    att_tasks_free(ctx, &j.tasks);
    att_prologue_end_back(&call, &j.rows);
    att_prologue_end(&call);
    if (e)
        return e;
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "attention was cancelled") : ATT_OK;
}
