/* Attention forward: softmax(S) V in one pass over the keys, without S.
 *
 * For a block of queries, block after block of keys: scores, then softmax with a running maximum and sum, and the
 * output so far is rescaled when the maximum grows (Milakov, Gimelshein 2018; Dao et al. 2022). A segment of keys has
 * a partial result of its own, merged with the one before it by their log-sum-exp. */
#include "attn/attn.h"

#include <math.h>

/* Softmax and output so far of one block of queries: [panel], [panel], [value_dim][panel]. */
typedef struct partial {
    float *max, *sum, *o;
    bool touched;
} partial;

/* What one thread works in. */
typedef struct scratch {
    float *q, *s, *rescale; /* [head_dim][panel], [keys of a block][panel], [panel] */
    partial total, segment;
} scratch;

typedef struct job {
    const att_call *call;
    float *memory;
    size_t scratch_count; /* floats of one thread */
    int64_t items, tasks; /* blocks of queries of all heads and sequences, and the tasks they are dealt to */
    int64_t *first;       /* [sequences + 1] each sequence's first item */
} job;

static size_t round_up(size_t n) { return (n + 15) / 16 * 16; }

size_t att_plan_scratch(const att_plan *plan)
{
    const size_t panel = (size_t)plan->kernels->panel;
    return panel * round_up((size_t)(plan->spec.head_dim + 2 * plan->spec.value_dim + ATT_KEY_BLOCK + 5));
}

static scratch scratch_of(const job *j, int thread)
{
    const att_attention_spec *s = &j->call->plan->spec;
    const int64_t panel = j->call->plan->kernels->panel;
    float *p = j->memory + (size_t)thread * j->scratch_count;
    scratch w;
    w.q = p;
    w.s = w.q + s->head_dim * panel;
    w.total.o = w.s + ATT_KEY_BLOCK * panel;
    w.segment.o = w.total.o + s->value_dim * panel;
    w.total.max = w.segment.o + s->value_dim * panel;
    w.total.sum = w.total.max + panel;
    w.segment.max = w.total.sum + panel;
    w.segment.sum = w.segment.max + panel;
    w.rescale = w.segment.sum + panel;
    return w;
}

/* Its o is written when the first keys are. */
static void clear(partial *p, int panel)
{
    for (int i = 0; i < panel; i++) {
        p->max[i] = -INFINITY;
        p->sum[i] = 0;
    }
    p->touched = false;
}

/* Keys [first, last) into a partial result. */
static void attend_keys(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t first, int64_t last,
                        const scratch *w, partial *p)
{
    const att_kernels *kernels = plan->kernels;
    att_cut cut;
    att_clean clean;
    uint64_t keep[ATT_KEY_BLOCK];
    att_block b = {.plan = plan,
                   .site = at,
                   .cut = &cut,
                   .q0 = q0,
                   .queries = queries,
                   .q = w->q,
                   .s = w->s,
                   .stride = kernels->panel,
                   .score_param = at->score_param,
                   .modifier_param = at->modifier_param};
    for (int64_t k0 = first; k0 < last; k0 += ATT_KEY_BLOCK) {
        const int keys = (int)(last - k0 < ATT_KEY_BLOCK ? last - k0 : ATT_KEY_BLOCK);
        att_cut_block(plan, at, q0, queries, k0, keys, &cut);
        if (cut.n_runs == 0)
            continue;
        b.k0 = k0;
        att_score_block(&b);
        kernels->soften(queries, cut.partial || plan->n_modifiers, cut.n_runs, cut.run, w->s, p->max, p->sum,
                        w->rescale);
        att_keep_block(&b, keep);
        att_drop_block(&b, keep, w->s);
        const float *v = at->v + k0 * at->v_stride;
        att_cut_clean(plan, &cut, queries, v, at->v_stride, plan->spec.value_dim, &clean);
        kernels->weigh(queries, clean.n_runs, clean.run, plan->spec.value_dim, v, at->v_stride, w->s,
                       p->touched ? w->rescale : NULL, p->o);
        att_add_unclean(plan, &cut, &clean, queries, v, at->v_stride, plan->spec.value_dim, w->s, kernels->panel, p->o);
        p->touched = true;
    }
}

/* o / sum, and the log-sum-exp; a row that attended to nothing gets 0 and -inf. */
static void finish(const att_plan *plan, const att_site *at, int64_t q0, int queries, const scratch *w)
{
    const partial *p = &w->total;
    for (int i = 0; i < plan->kernels->panel; i++)
        w->rescale[i] = p->sum[i] == 0 ? 0 : 1 / p->sum[i];
    plan->kernels->turn_out(queries, plan->spec.value_dim, p->o, w->rescale, at->out + q0 * at->out_stride,
                            at->out_stride);
    for (int i = 0; at->lse && i < queries; i++)
        at->lse[(q0 + i) * at->lse_stride] =
            p->sum[i] == 0 ? -INFINITY : (float)((p->max[i] + log2(p->sum[i])) / ATT_LOG2_E);
}

/* Rows that attend to nothing. */
static void clear_rows(const att_plan *plan, const att_site *at, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        for (int64_t d = 0; d < plan->spec.value_dim; d++)
            at->out[i * at->out_stride + d] = 0;
        if (at->lse)
            at->lse[i * at->lse_stride] = -INFINITY;
    }
}

static void attend_queries(const att_plan *plan, const att_site *at, int64_t q0, int queries, scratch *w)
{
    const att_kernels *kernels = plan->kernels;
    const int64_t value_dim = plan->spec.value_dim;
    att_turn_queries(plan, at, q0, queries, w->q);
    clear(&w->total, kernels->panel);
    for (int i = 0; plan->sink >= 0 && i < kernels->panel; i++) {
        w->total.max[i] = (float)(at->modifier_param[plan->sink].data[0] * ATT_LOG2_E);
        w->total.sum[i] = 1;
    }
    for (int64_t k = 0; k < at->place.tk; k += ATT_KEY_SEGMENT) {
        const int64_t last = at->place.tk - k < ATT_KEY_SEGMENT ? at->place.tk : k + ATT_KEY_SEGMENT;
        clear(&w->segment, kernels->panel);
        attend_keys(plan, at, q0, queries, k, last, w, w->total.touched ? &w->segment : &w->total);
        if (w->segment.touched)
            kernels->merge(value_dim, w->total.max, w->total.sum, w->total.o, w->segment.max, w->segment.sum,
                           w->segment.o);
    }
    if (w->total.touched)
        finish(plan, at, q0, queries, w);
    else
        clear_rows(plan, at, q0, q0 + queries);
}

static void run_item(const job *j, int64_t item, scratch *w)
{
    const att_call *call = j->call;
    const int panel = call->plan->kernels->panel;
    int64_t low = 0, high = call->sequences; /* first[low] <= item < first[high] */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(j->first[middle] <= item ? &low : &high) = middle;
    }
    const int64_t blocks = (j->first[low + 1] - j->first[low]) / call->plan->spec.heads;
    const int64_t local = item - j->first[low], q0 = local % blocks * panel;
    att_site at;
    att_call_site(call, low, local / blocks, &at);
    const int64_t last = at.rows - q0 < panel ? at.rows : q0 + panel;
    const int64_t used = at.place.tq < q0 ? q0 : at.place.tq < last ? at.place.tq : last;
    if (used > q0)
        attend_queries(call->plan, &at, q0, (int)(used - q0), w);
    clear_rows(call->plan, &at, used, last);
}

static void run_task(void *arg, int i, int thread)
{
    const job *j = arg;
    scratch w = scratch_of(j, thread);
    const int64_t last = j->items * (i + 1) / j->tasks;
    for (int64_t item = j->items * i / j->tasks; item < last && !att_cancelled(j->call->plan->ctx); item++)
        run_item(j, item, &w);
}

/* Deals blocks of queries to tasks: enough of them to share the work evenly, large enough to be worth waking for. */
static void deal(job *j)
{
    enum { TASKS_PER_THREAD = 32, TASK_FLOPS = 200000 };
    const att_call *call = j->call;
    const att_attention_spec *s = &call->plan->spec;
    const int64_t panel = call->plan->kernels->panel;
    double flops = 0;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_site at;
        att_call_site(call, b, 0, &at);
        j->first[b] = j->items;
        j->items += (at.rows + panel - 1) / panel * s->heads;
        flops +=
            2.0 * (double)at.place.tq * (double)at.place.tk * (double)(s->head_dim + s->value_dim) * (double)s->heads;
    }
    j->first[call->sequences] = j->items;
    const double worth = flops / TASK_FLOPS + 1, most = (double)att_threads(call->plan->ctx) * TASKS_PER_THREAD;
    j->tasks = (int64_t)(worth < most ? worth : most);
    if (j->tasks > j->items)
        j->tasks = j->items;
}

/* ---- scratch memory: only this changes in a plan, atomically */

static float *take_scratch(const att_plan *plan)
{
    for (int i = 0; i < ATT_MAX_SPARES; i++) {
        float *p = atomic_exchange(&((att_plan *)plan)->spare[i], NULL);
        if (p)
            return p;
    }
    return att_alloc(plan->ctx, att_plan_scratch(plan) * (size_t)att_threads(plan->ctx), sizeof(float));
}

static void give_scratch(const att_plan *plan, float *p)
{
    for (int i = 0; p && i < ATT_MAX_SPARES; i++)
        p = atomic_exchange(&((att_plan *)plan)->spare[i], p);
    att_free(plan->ctx, p);
}

att_status att_forward(const att_plan *plan, const att_attention_args *args)
{
    att_call call;
    const att_status e = att_call_check(plan, args, true, &call);
    if (e)
        return e;
    att_ctx *ctx = plan->ctx;
    job j = {.call = &call, .scratch_count = att_plan_scratch(plan)};
    j.first = att_alloc(ctx, (size_t)call.sequences + 1, sizeof *j.first);
    j.memory = take_scratch(plan);
    const bool memory = j.first && j.memory;
    if (memory) {
        deal(&j);
        if (j.tasks > 0)
            att_parallel(ctx, (int)j.tasks, run_task, &j);
    }
    att_free(ctx, j.first);
    give_scratch(plan, j.memory);
    if (!memory)
        return ATT_ERR_MEMORY;
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "attention was cancelled") : ATT_OK;
}
