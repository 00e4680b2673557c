/* Attention of few queries over many keys: decoding, whose time is that of reading keys and values.
 *
 * The queries of all heads that share keys and values process a block of them together, so it is read once. The keys of
 * a head are split into segments, which threads share; the segments' accumulators are merged in ascending order.
 * Blocks, segments and chains of operations are those of tiles.c, and so are the bits. */
#include "attn/block/block.h"
#include "attn/call/scratch.h"
#include "attn/forward/decode.h"

#include <stdatomic.h>

typedef struct decode_job {
    const att_call *call;
    float *memory; /* scratch of all threads, then the accumulators */
    size_t scratch_count, accumulator_count;
    float *accumulators;    /* [items]: max [columns], sum [columns], o [columns][o_stride] */
    int64_t *first;         /* [sequences + 1] the first item of each sequence */
    atomic_int *unfinished; /* [sequences * kv_heads] segments */
    int64_t items, tasks;
    int columns; /* maximum number of columns */
} decode_job;

bool att_decode_suits(const att_call *call)
{
    const int64_t group = call->plan->spec.heads / call->plan->spec.kv_heads;
    return group <= ATT_DECODE_QUERIES && call->max_tq * group <= ATT_DECODE_QUERIES; /* max_tq may be 0 */
}

static att_accumulator accumulator_of(const decode_job *j, int64_t item)
{
    float *p = j->accumulators + (size_t)item * j->accumulator_count;
    return (att_accumulator){.max = p, .sum = p + ATT_DECODE_QUERIES, .o = p + 2 * ATT_DECODE_QUERIES};
}

/* Merges the segments of a key head in ascending order, and writes out and log-sum-exp. */
static void finish(const decode_job *j, const att_decode_group *g, int64_t first, int64_t segments,
                   const att_decode_scratch *w)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->spec.value_dim, o_stride = att_decode_o_stride(g->plan);
    const att_accumulator total = accumulator_of(j, first);
    float max[ATT_MAX_Q_TILE] = {0}, sum[ATT_MAX_Q_TILE] = {0}, lse[ATT_MAX_Q_TILE], left[ATT_MAX_Q_TILE];
    for (int i = 0; i < g->columns; i++) {
        for (int64_t s = 1; s < segments; s++) {
            const att_accumulator p = accumulator_of(j, first + s);
            kernels->decode.merge(dim, &total.max[i], &total.sum[i], total.o + i * o_stride, p.max[i], p.sum[i],
                                  p.o + i * o_stride);
        }
        max[i] = total.max[i];
        sum[i] = total.sum[i];
    }
    for (int i = 0; i < g->columns; i++)
        left[i] = 1;
    for (int h = 0; g->plan->modifiers.sink >= 0 && h < g->heads; h++)
        att_add_sink(g->plan, &g->head[h], g->tq, max + h * g->tq, sum + h * g->tq, left + h * g->tq);
    kernels->attend.normalizer(max, sum, w->rescale, lse);
    for (int i = 0; i < g->columns; i++) {
        const att_head_view *at = &g->head[i / g->tq];
        const int64_t q = i % g->tq;
        kernels->decode.normalize(dim, w->rescale[i] * left[i], total.o + i * o_stride);
        att_rows_write(kernels, (att_floats){total.o + i * o_stride, dim}, &at->out, q, 1, dim, false, NULL);
        if (at->lse)
            at->lse[q * at->lse_stride] = lse[i];
    }
    for (int h = 0; h < g->heads; h++)
        att_head_clear(g->plan, &g->head[h], g->tq, g->head[h].rows);
}

/* A work item: a segment of a key head of a sequence. */
typedef struct work_item {
    int64_t sequence, kv_head, segment, segments;
} work_item;

static work_item work_item_of(const decode_job *j, int64_t item)
{
    const int64_t sequence = att_find_range(j->first, j->call->sequences, item), local = item - j->first[sequence];
    const int64_t segments = (j->first[sequence + 1] - j->first[sequence]) / j->call->plan->spec.kv_heads;
    return (work_item){sequence, local / segments, local % segments, segments};
}

/* Loads the query heads of an item's key head. */
static void load_group(const att_call *call, work_item at, att_decode_group *g)
{
    const att_attention_spec *s = &call->plan->spec;
    g->plan = call->plan;
    g->heads = (int)(s->heads / s->kv_heads);
    for (int h = 0; h < g->heads; h++)
        att_call_head(call, at.sequence, at.kv_head * g->heads + h, &g->head[h]);
    g->tq = (int)g->head[0].head.tq;
    g->columns = g->heads * g->tq;
}

/* Returns the block in which the item's first key is; INT64_MAX without queries. */
static int64_t begin_of(const att_decode_group *g, work_item at)
{
    int64_t first, last;
    if (g->tq == 0)
        return INT64_MAX;
    att_span(g->plan, &g->head[0], 0, g->tq, &first, &last);
    return att_max(first, at.segment * ATT_KEY_SEGMENT);
}

static void run_item(decode_job *j, int64_t item, work_item at, const att_decode_group *g, att_decode_scratch *w,
                     const att_decode_group *next, int64_t next_key)
{
    const int64_t first = at.segment * ATT_KEY_SEGMENT, tk = g->head[0].head.tk;
    if (g->columns > 0)
        att_decode_segment(g, first, att_min(tk, first + ATT_KEY_SEGMENT), w, accumulator_of(j, item), next, next_key);
    if (atomic_fetch_sub(&j->unfinished[at.sequence * g->plan->spec.kv_heads + at.kv_head], 1) == 1)
        finish(j, g, item - at.segment, at.segments, w);
}

static void run_task(void *arg, int64_t i, int thread)
{
    decode_job *j = arg;
    const att_plan *plan = j->call->plan;
    att_decode_scratch w;
    att_decode_lay_out(j->call, j->columns, j->memory + (size_t)thread * j->scratch_count, &w);
    int64_t item = j->items * i / j->tasks;
    const int64_t last = j->items * (i + 1) / j->tasks;
    att_decode_group *now = (att_decode_group *)w.groups, *next = now + 1;
    work_item at = work_item_of(j, item);
    load_group(j->call, at, now);
    for (; item < last && !att_cancelled(plan->ctx); item++) {
        const bool more = item + 1 < last;
        const work_item then = more ? work_item_of(j, item + 1) : at;
        if (more)
            load_group(j->call, then, next);
        run_item(j, item, at, now, &w, more ? next : now, more ? begin_of(next, then) : INT64_MAX);
        att_decode_group *const done = now;
        now = next, next = done, at = then;
    }
}

/* Returns the segments of a sequence; 0: the sequence is not part of the call. */
static int64_t segments_of(const att_call *call, const att_head_view *at)
{
    return att_forward_supports(call, at) ? att_max(1, att_ceil_div(at->head.tk, ATT_KEY_SEGMENT)) : 0;
}

/* Returns the sizes of a job, before its memory and tasks. */
static decode_job job_of(const att_call *call)
{
    const att_attention_spec *s = &call->plan->spec;
    att_decode_scratch w;
    decode_job j = {.call = call, .columns = (int)(call->max_tq * (s->heads / s->kv_heads))};
    j.scratch_count = att_decode_lay_out(call, j.columns, NULL, &w);
    j.accumulator_count = (size_t)(2 * ATT_DECODE_QUERIES + j.columns * att_decode_o_stride(call->plan));
    return j;
}

/* Partitions the segments into tasks. */
static void partition(decode_job *j)
{
    enum { TASKS_PER_THREAD = 64, TASK_NUMBERS = 50000 /* read */ };
    const att_call *call = j->call;
    const att_attention_spec *s = &call->plan->spec;
    double numbers = 0;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_head_view at;
        att_call_head(call, b, 0, &at);
        const int64_t segments = segments_of(call, &at), tk = segments ? at.head.tk : 0;
        j->first[b] = j->items;
        j->items += segments * s->kv_heads;
        for (int64_t h = 0; h < s->kv_heads; h++)
            atomic_init(&j->unfinished[b * s->kv_heads + h], (int)segments);
        numbers += (double)tk * (double)(call->plan->q_dim + s->value_dim) * (double)s->kv_heads;
    }
    j->first[call->sequences] = j->items;
    j->tasks = att_task_count(call->plan->ctx, j->items, numbers, TASK_NUMBERS, TASKS_PER_THREAD);
}

size_t att_decode_workspace(const att_call *call)
{
    const decode_job j = job_of(call);
    size_t items = 0;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_head_view at;
        att_call_head(call, b, 0, &at);
        items += (size_t)(segments_of(call, &at) * call->plan->spec.kv_heads);
    }
    return (j.scratch_count * (size_t)call->plan->ctx->n_threads + items * j.accumulator_count) * sizeof(float);
}

att_status att_decode(const att_call *call)
{
    const att_plan *plan = call->plan;
    att_ctx *ctx = plan->ctx;
    decode_job j = job_of(call);
    j.first = att_alloc(ctx, (size_t)call->sequences + 1, sizeof *j.first);
    j.unfinished =
        att_alloc(ctx, att_size_mul((size_t)call->sequences, (size_t)plan->spec.kv_heads), sizeof *j.unfinished);
    att_status e = ATT_ERR_MEMORY;
    if (j.first && j.unfinished) {
        partition(&j);
        const size_t fixed = j.scratch_count * (size_t)ctx->n_threads;
        j.memory = att_scratch_acquire(plan, fixed + att_size_mul((size_t)j.items, j.accumulator_count));
        if (j.memory) {
            j.accumulators = j.memory + fixed;
            if (j.tasks > 0)
                att_parallel_partition(ctx, j.tasks, run_task, &j);
            e = ATT_OK;
        }
    }
    att_scratch_release(plan, j.memory);
    att_free(ctx, j.unfinished);
    att_free(ctx, j.first);
    return e;
}
