/* Attention backward, without S: for each block of keys and of queries the weights are recomputed from q, k and the
 * log-sum-exp (Dao et al. 2022, appendix B).
 *
 *   P = exp(S - lse)    dV = P^T dO    dP = dO V^T    dS = P (dP - delta), delta = rowsum(dO O) - dlse
 *   dQ = scale dS K     dK = scale dS^T Q                                     (where the score is a dot product)
 *
 * A task is some blocks of keys of one key head, and owns their dK and dV: these accumulate over the queries of all the
 * query heads that share them. dQ is summed over blocks of keys in ascending order, whoever computes them: see
 * add_in_order.
 */
#include "attn/backward/backward.h"
#include "tensor/tensor.h"

#include <limits.h>
#include <string.h>

enum { Q_TILES = ATT_BACKWARD_Q_TILES };

/* ---- memory */

/* Lays scratch memory out from p on and returns how many floats that takes. */
static size_t lay_out(const att_call *c, int64_t blocks, float *p, att_backward_scratch *w)
{
    const att_plan *plan = c->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t panel = plan->kernels->q_tile, tile = ATT_KEY_BLOCK * Q_TILES * panel, keys = blocks * ATT_KEY_BLOCK;
    const int64_t converted = s->dtype == ATT_F32 ? 0 : 1, copies = att_call_copies(c) ? 1 : 0;
    const int64_t dims = plan->q_dim + plan->k_dim + s->value_dim, terms = plan->score.term != NULL;
    float *pair = NULL;
    const int64_t dk_stride = att_round_up(plan->k_dim, panel), dv_stride = att_round_up(s->value_dim, panel);
    *w = (att_backward_scratch){0};
    const att_scratch_part parts[] = {
        {&w->q.origin, Q_TILES * panel},
        {&w->q.lse, Q_TILES * panel},
        {&w->q.delta, Q_TILES * panel},
        {&w->q.q_packed, !att_score_reads_query_rows(plan) * Q_TILES * plan->q_dim * panel},
        {&w->q.dout_packed, Q_TILES * s->value_dim * panel},
        {&w->q.q_rows, att_score_is_dot(plan) * Q_TILES * panel * att_round_up(plan->q_dim, panel)},
        {&w->q.dout_rows, Q_TILES * panel * dv_stride},
        {&w->q.terms, terms * Q_TILES * panel},
        {&w->p, tile},
        {&w->ds, tile},
        {&w->products, att_score_changes_products(plan) * tile},
        {&w->dk, keys * dk_stride},
        {&w->dv, keys * dv_stride},
        {&w->dq_rows, panel * plan->q_dim},
        {&w->q.query, converted * Q_TILES * panel * plan->q_dim},
        {&w->q.dout, converted * Q_TILES * panel * s->value_dim},
        {&w->key, copies * keys * plan->k_dim},
        {&w->value, copies * keys * s->value_dim},
        {&w->q.pairs[0], plan->bf16_pairs * Q_TILES * panel * att_bf16_pairs_in(plan->q_dim)},
        {&w->q.pairs[1], plan->bf16_pairs * Q_TILES * panel * att_bf16_pairs_in(s->value_dim)},
        {&w->packed_keys, plan->bf16_pairs * keys * att_bf16_pairs_in(plan->k_dim)},
        {&w->dterm, terms * keys},
        {&w->precomputed, keys * att_precomputed_count(plan)},
        {&w->row, dims},
        {&pair, att_round_up((int64_t)(att_pair_scratch(c) * sizeof(double) / sizeof(float)), 16)}};
    size_t count = att_scratch_lay_out(p, sizeof parts / sizeof parts[0], parts);
    w->pair = (void *)pair;
    att_scratch_part saved[ATT_MAX_STAGES];
    int n = 0;
    for (int i = 0; i < plan->modifiers.n; i++)
        if (!(plan->modifiers.list[i].stage.flags & (ATT_STAGE_ADDITIVE | ATT_STAGE_SINK)))
            saved[n++] = (att_scratch_part){&w->saved[i], tile};
    count += att_scratch_lay_out(p ? p + count : NULL, n, saved);
    return count;
}

/* ---- one task */

/* Sets where this task's part of the gradients of one head's parameters goes. */
static void point_params(att_backward_work *x, int64_t head_in_group)
{
    const att_backward_job *j = x->job;
    float *part = j->params + x->task->index * j->params_count;
    memcpy(x->head.param, x->head.view.param, (size_t)x->plan->params.n * sizeof *x->head.param);
    att_params_back_view(j->call, j->grads, &x->head.view.head, head_in_group, part, x->head.param);
}

/* Returns whether no query before q0 attends to the task's keys. */
static bool is_done(const att_backward_work *x, int64_t q0)
{
    int64_t first, last;
    att_span(x->plan, &x->head.view, 0, q0 < x->head.view.head.tq ? q0 : x->head.view.head.tq, &first, &last);
    return x->task->k0 + x->task->keys <= first || x->task->k0 >= last;
}

/* Reads the block's keys and values of the current query head, in pairs of bf16 if these are multiplied. */
static void read_keys(const att_backward_work *x, int i, att_kv_block *b)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const int64_t first = (int64_t)i * ATT_KEY_BLOCK, dim = plan->spec.value_dim;
    float *value = x->w.value + first * dim;
    b->key = att_rows_read(k, &x->head.view.k_row, b->k0, b->keys, plan->k_dim, x->w.key + first * plan->k_dim);
    if (plan->bf16_pairs) {
        float *pairs = x->w.packed_keys + first * att_bf16_pairs_in(plan->k_dim);
        b->packed_keys = att_bf16_pack_rows(k, &x->head.view.k_row, b->k0, b->keys, plan->k_dim, pairs);
        b->value = att_bf16_pack_rows(k, &x->head.view.v, b->k0, b->keys, dim, value);
    } else {
        b->value = att_rows_read(k, &x->head.view.v, b->k0, b->keys, dim, value);
    }
}

static void backward_head(att_backward_work *x, int64_t head_in_group, int64_t group)
{
    const att_backward_job *j = x->job;
    const att_call *c = j->call;
    const int panel = x->plan->kernels->q_tile;
    const int64_t sequence = x->task->sequence, head = x->task->kv_head * group + head_in_group;
    att_call_head(c, sequence, head, &x->head.view);
    x->head.dout = att_call_rows(c, &j->grads->dout, sequence, head, false);
    x->head.dlse = att_call_rows(c, &j->grads->dlse, sequence, head, false);
    x->head.dq = att_call_rows(c, &j->rows.dq, sequence, head, false);
    x->head.dq_sum = j->dq + (x->task->slot * group + head_in_group) * j->dq_count;
    x->head.dterm = x->plan->score.term ? x->head.dq_sum + j->dterms_at : NULL;
    for (int i = 0; i < x->n_blocks; i++) {
        read_keys(x, i, &x->blocks[i]);
        if (head_in_group == 0 || c->keys_per_head)
            att_precompute(x->plan, x->blocks[i].key, x->blocks[i].keys, x->blocks[i].precomputed);
    }
    point_params(x, head_in_group);
    att_backward_begin(x);
    /* Steps run from the last queries to the first: with causal attention the last ones attend to every block of keys,
     * so the next task, which follows one step later, can begin at once. */
    for (int64_t q0 = att_round_up(x->head.view.head.tq, Q_TILES * panel); q0 > 0; q0 -= Q_TILES * panel) {
        if (head_in_group == group - 1 && is_done(x, q0) && att_ticket_leave(&x->job->tasks, x->task, x->step))
            break;
        att_backward_step(x, q0 - Q_TILES * panel);
    }
    if (x->task->last && !j->rows.add_dq)
        att_rows_clear(&x->head.dq, x->head.view.head.tq, x->head.view.rows, x->plan->q_dim);
}

/* Chooses where dK or dV is accumulated: in the caller's tensor if its rows are whole panels of f32 and contiguous, or
 * if there is only one step; otherwise in scratch memory. */
static att_grad_block begin_grad_block(const att_backward_work *x, const att_kv_block *b, const att_tensor *to,
                                       int64_t head, int64_t dim, bool add, float *room)
{
    const int64_t panel = x->plan->kernels->q_tile;
    att_grad_block g = {.to = att_call_rows(x->job->call, to, x->task->sequence, head, true),
                        .dim = dim,
                        .padded = att_round_up(dim, panel),
                        .stride = att_round_up(dim, panel),
                        .add = add};
    const bool single_step = x->job->call->max_tq <= Q_TILES * panel;
    const bool fits = g.to.stride == dim || (single_step && g.to.stride > dim);
    g.from = room + (b->k0 - x->task->k0) * g.stride;
    if (g.to.at && g.to.dtype == ATT_F32 && fits && g.padded == dim && !add) {
        g.from = att_row_at(&g.to, b->k0);
        g.stride = g.to.stride;
    }
    return g;
}

/* Begins dV, and dK of a query head or of all heads that share the keys. Scores that are not dot products add to dK
 * themselves. */
static void begin_dv(const att_backward_work *x, att_kv_block *b)
{
    const att_backward_job *j = x->job;
    b->dv =
        begin_grad_block(x, b, &j->grads->dv, x->task->kv_head, x->plan->spec.value_dim, j->grads->accumulate, x->w.dv);
}

static void begin_dk(const att_backward_work *x, int64_t head, att_kv_block *b)
{
    b->dk = begin_grad_block(x, b, &x->job->rows.dk, head, x->plan->k_dim, x->job->rows.add_dk, x->w.dk);
    const bool adds = !att_score_is_dot(x->plan);
    if (adds)
        att_grad_block_clear(&b->dk, 0, b->keys);
    b->dk.begun = adds;
}

static void end_grad_block(const att_backward_work *x, const att_kv_block *b, att_grad_block *g)
{
    att_grad_block_clear(g, 0, b->keys);
    if (g->to.at && g->from != att_row_at(&g->to, b->k0))
        att_rows_write(x->plan->kernels, (att_floats){g->from, g->stride}, &g->to, b->k0, b->keys, g->dim, g->add,
                       x->w.row);
    if (x->task->last && b == &x->blocks[x->n_blocks - 1] && !g->add)
        att_rows_clear(&g->to, b->k0 + b->keys, x->task->k_rows, g->dim);
}

/* Completes dK of a block: adds the gradients of its keys' terms. */
static void end_dk(const att_backward_work *x, att_kv_block *b)
{
    att_grad_block_clear(&b->dk, 0, b->keys);
    b->dk.begun = true;
    att_row_terms_back(x->plan, b->key, b->keys, b->dterm, b->dk.from, b->dk.stride);
    end_grad_block(x, b, &b->dk);
}

/* Divides the task's keys into blocks; without keys there is one empty block. */
static void begin_blocks(att_backward_work *x)
{
    const att_backward_task *t = x->task;
    do {
        const int64_t done = x->n_blocks * ATT_KEY_BLOCK, left = t->keys - done;
        att_kv_block *b = &x->blocks[x->n_blocks++];
        b->k0 = t->k0 + done;
        b->keys = (int)(left < ATT_KEY_BLOCK ? left : ATT_KEY_BLOCK);
        b->precomputed = x->w.precomputed + done * att_precomputed_count(x->plan);
        b->dterm = x->w.dterm + done;
        for (int i = 0; x->plan->score.term && i < b->keys; i++)
            b->dterm[i] = 0;
        begin_dv(x, b);
    } while (x->n_blocks * ATT_KEY_BLOCK < t->keys);
}

static void run_task(void *arg, int i, int thread)
{
    const att_backward_job *j = arg;
    const att_call *c = j->call;
    const att_plan *plan = c->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t group = s->heads / s->kv_heads;
    att_backward_work x = {.job = j, .plan = plan, .task = att_backward_tasks_begin(&j->tasks, i)};
    const att_backward_task *t = x.task;
    lay_out(c, j->tasks.blocks, j->memory + (size_t)thread * j->scratch_count, &x.w);
    att_call_head(c, t->sequence, t->kv_head * group, &x.head.view);
    const int64_t head = c->keys_per_head ? t->kv_head * group : t->kv_head;
    begin_blocks(&x);
    for (int b = 0; b < x.n_blocks; b++)
        begin_dk(&x, head, &x.blocks[b]);
    memset(j->params + t->index * j->params_count, 0, (size_t)j->params_count * sizeof *j->params);
    att_amx_begin(plan);
    for (int64_t g = 0; g < group && !att_cancelled(plan->ctx); g++) {
        for (int b = 0; b < x.n_blocks && g > 0 && c->keys_per_head; b++) {
            end_dk(&x, &x.blocks[b]);
            begin_dk(&x, head + g, &x.blocks[b]);
        }
        backward_head(&x, g, group);
    }
    att_amx_end(plan);
    att_ticket_end(&j->tasks, t);
    for (int b = 0; b < x.n_blocks; b++) {
        end_dk(&x, &x.blocks[b]);
        end_grad_block(&x, &x.blocks[b], &x.blocks[b].dv);
    }
}

static void split_head(void *arg, int64_t i, int thread)
{
    const att_backward_job *j = arg;
    const att_plan *plan = j->call->plan;
    att_backward_work x = {.job = j, .plan = plan};
    lay_out(j->call, j->tasks.blocks, j->memory + (size_t)thread * j->scratch_count, &x.w);
    att_call_head(j->call, i / plan->spec.heads, i % plan->spec.heads, &x.head.view);
    att_amx_begin(plan);
    att_backward_split_head(&x);
    att_amx_end(plan);
}

/* ---- the call */

/* Splits the log-sum-exps that are large. False: out of memory. */
static bool split(att_backward_job *j)
{
    const att_plan *plan = j->call->plan;
    const int64_t heads = j->call->sequences * plan->spec.heads;
    if (!att_backward_any_large(j->call))
        return true;
    j->split = att_alloc(plan->ctx, att_size_mul((size_t)heads, (size_t)j->call->max_tq), sizeof *j->split);
    if (j->split)
        att_parallel_partition(plan->ctx, heads, split_head, j);
    return j->split != NULL;
}

/* Lays out the scratch memory of the call from p on; returns its size in floats. */
static size_t lay_out_job(att_backward_job *j, float *p)
{
    const att_plan *plan = j->call->plan;
    att_backward_scratch w;
    j->scratch_count = lay_out(j->call, j->tasks.blocks, NULL, &w);
    const int64_t queries = att_round_up(j->call->max_tq, plan->kernels->q_tile);
    j->dterms_at = queries * plan->q_dim;
    j->dq_count = j->dterms_at + (plan->score.term ? queries : 0);
    const att_scratch_part parts[] = {
        {&j->memory, att_scratch_count(j->scratch_count, plan->ctx->n_threads)},
        {&j->dq, att_scratch_count((size_t)j->dq_count, j->tasks.slots * plan->spec.heads / plan->spec.kv_heads)},
        {&j->params, att_scratch_count((size_t)j->params_count, j->tasks.count)},
    };
    return att_scratch_lay_out(p, sizeof parts / sizeof parts[0], parts);
}

static bool allocate(att_backward_job *j)
{
    float *p = att_scratch_acquire(j->call->plan, lay_out_job(j, NULL));
    lay_out_job(j, p);
    j->sums = att_alloc(j->call->plan->ctx, (size_t)att_params_back_sums(j->call, j->grads), sizeof *j->sums);
    return p && j->sums;
}

size_t att_backward_workspace(const att_call *c)
{
    att_backward_job j = {.call = c,
                          .tasks = {.blocks = att_backward_tasks_blocks(c), .slots = att_backward_tasks_slots(c)}};
    return lay_out_job(&j, NULL) * sizeof(float) + att_backward_tasks_bytes(c);
}

/* Adds the tasks' partial gradients of parameters to their sums. */
static void sum_params(void *arg, int task)
{
    const att_backward_job *j = arg;
    (void)task;
    att_params_back_sum(j->call, j->grads, &j->tasks, j->params, j->params_count, j->sums);
}

att_status att_backward(const att_plan *plan, const att_attention_args *args, const att_attention_grads *grads)
{
    if (att_require(__func__, ATT_NAMED({"plan", plan})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = plan->ctx;
    att_call call;
    att_attention_grads g;
    att_tensor dparam[ATT_MAX_PARAMS];
    att_status e = att_call_check(plan, args, true, &call);
    e = e ? e : att_backward_check(&call, grads, &g, dparam);
    if (e)
        return e;
    att_backward_job j = {.call = &call, .grads = &g};
    e = att_transform_begin(&call);
    if (e)
        return e;
    e = att_transform_back_begin(&call, &g, &j.rows);
    const att_add_order order = att_params_back_order(&call, &g);
    enum { LINE = 16 }; /* tasks that add to one cache line slow each other down */
    j.params_count = att_round_up(att_params_back_count(&call, &g), LINE);
    const int64_t blocks =
        order || j.params_count ? 1 : att_backward_tasks_blocks(&call); /* otherwise bits would depend on it */
    e = e ? e : att_backward_tasks_make(&call, order, blocks, &j.tasks);
    if (!e && !(allocate(&j) && split(&j)))
        e = ATT_ERR_MEMORY;
    if (!e) {
        att_params_back_clear(&call, &g);
        att_parallel(ctx, (int)j.tasks.count, run_task, &j);
        att_parallel_for(ctx, 1, sum_params, &j); /* rounded as in the tasks, whatever the host has set */
        att_transform_back(&call, &g, &j.rows);
    }
    att_free(ctx, j.split);
    att_free(ctx, j.sums);
    att_scratch_release(plan, j.memory);
    att_backward_tasks_free(ctx, &j.tasks);
    att_transform_back_end(&call, &j.rows);
    att_transform_end(&call);
    if (e)
        return e;
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "attention was cancelled") : ATT_OK;
}
