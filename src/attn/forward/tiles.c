/* Attention forward: computes softmax(S) V in one pass over the keys, without storing S.
 *
 * A tile of queries processes the keys block by block: scores, online softmax, and the output is rescaled when the
 * running maximum grows (Milakov, Gimelshein 2018; Dao et al. 2022). Each segment of keys has its own accumulator,
 * which is merged with that of the segments before it by their log-sum-exp. decode.c splits the keys of a head into the
 * same segments, so both compute the same bits. */
#include "attn/block/block.h"
#include "attn/call/scratch.h"
#include "attn/call/transform.h"
#include "attn/forward/accumulator.h"
#include "attn/forward/forward.h"

#include <math.h>
#include <string.h>

typedef struct q_tile {
    int64_t q0;
    int queries;
    bool written;                          /* its output is in out */
    float *packed;                         /* [q_dim][q_tile] */
    float *terms;                          /* [q_tile], if the score has a term of each row */
    float *rows;                           /* [q_tile, q_dim or value_dim] q, later out, converted; unused for f32 */
    att_floats query;                      /* [queries, q_dim] */
    att_accumulator total, segment, *into; /* into: the accumulator of this segment; `total` if it is the first */
} q_tile;

/* Scratch memory of one thread. */
typedef struct forward_scratch {
    float *s;              /* [ATT_KEY_BLOCK][q_tile] scores, then weights */
    float *rescale;        /* [q_tile] */
    float *keys, *values;  /* [ATT_KEY_BLOCK][k_dim] and [value_dim], if they are copied */
    float *key_terms;      /* [ATT_KEY_BLOCK], if the score has a term of each row */
    float *packed_values;  /* bf16 in pairs: [ATT_KEY_BLOCK / 2][value_dim] */
    float *packed_weights; /* bf16 in pairs: [ATT_KEY_BLOCK / 2][q_tile] */
    att_prefetch prefetch;
    att_block block;   /* what all blocks of a work item have in common */
    bool single_block; /* the item's queries attend to one block of keys */
    q_tile tile[ATT_MAX_Q_TILES];
} forward_scratch;

typedef struct forward_job {
    const att_call *call;
    float *memory;
    size_t scratch_count; /* floats of one thread */
    int group;            /* query tiles of a work item */
    int64_t items, tasks; /* work items, and the tasks that they are partitioned into */
    int64_t *first;       /* [sequences + 1] the first item of each sequence */
} forward_job;

/* ---- memory */

/* Returns how many query tiles may share a loaded block of keys. It is one unless loading is costly: if blocks are
 * copied, if the keys and values of a head do not fit into the second-level cache, or if the score is not a dot product
 * and its scratch memory is large. The tiles must fit into that cache, too. */
static int max_q_tiles(const att_plan *plan, bool copies, int64_t tk)
{
    const int64_t cached = plan->ctx->cached, numbers = plan->k_dim + plan->spec.value_dim;
    const bool shared = copies || !plan->builtin->is_dot || tk * numbers > cached / 2;
    const int64_t fit = cached / (plan->kernels->q_tile * (plan->q_dim + plan->spec.value_dim));
    return shared ? (int)att_max(1, att_min(fit, ATT_MAX_Q_TILES)) : 1;
}

/* Returns whether the first-level cache has enough ways for one line of every key row of a score tile, whatever the
 * rows' stride is. */
static bool l1_holds_key_rows(const att_plan *plan) { return plan->ctx->ways > plan->kernels->mr; }

/* Lays scratch memory out from p on and returns how many floats it takes. */
static size_t lay_out(const att_plan *plan, bool copies, int64_t tk, float *p, forward_scratch *w)
{
    const att_attention_spec *s = &plan->spec;
    const int64_t q = plan->kernels->q_tile, pairs = plan->bf16_pairs * ATT_KEY_BLOCK / 2;
    const int64_t converted = s->dtype != ATT_F32, terms = plan->score.term != NULL;
    const att_scratch_part shared[] = {{&w->s, ATT_KEY_BLOCK * q},
                                       {&w->rescale, q},
                                       {&w->keys, copies * ATT_KEY_BLOCK * plan->k_dim},
                                       {&w->values, copies * ATT_KEY_BLOCK * s->value_dim},
                                       {&w->key_terms, terms * ATT_KEY_BLOCK},
                                       {&w->packed_values, pairs * s->value_dim},
                                       {&w->packed_weights, pairs * q}};
    enum { SHARED = sizeof shared / sizeof *shared };
    att_scratch_part parts[SHARED + 9 * ATT_MAX_Q_TILES]; /* not initialized: most of it is unused */
    int n = SHARED;
    memcpy(parts, shared, sizeof shared);
    for (q_tile *t = w->tile, *end = t + max_q_tiles(plan, copies, tk); t < end; t++) {
        parts[n].at = &t->packed, parts[n++].count = !att_score_reads_query_rows(plan) * plan->q_dim * q;
        parts[n].at = &t->terms, parts[n++].count = terms * q;
        parts[n].at = &t->rows, parts[n++].count = converted * att_max(plan->q_dim, s->value_dim) * q;
        for (int i = 0; i < 2; i++) {
            att_accumulator *a = i ? &t->segment : &t->total;
            parts[n].at = &a->max, parts[n++].count = q;
            parts[n].at = &a->sum, parts[n++].count = q;
            parts[n].at = &a->o, parts[n++].count = s->value_dim * q;
        }
    }
    return att_scratch_lay_out(p, n, parts);
}

size_t att_tiles_scratch(const att_plan *plan, bool copies, int64_t tk)
{
    forward_scratch w;
    return lay_out(plan, copies, tk, NULL, &w);
}

/* ---- one query tile */

/* Clears an accumulator, except o, which the first block of keys overwrites. */
static void clear(att_accumulator *a, int n)
{
    for (int i = 0; i < n; i++)
        a->max[i] = -INFINITY;
    memset(a->sum, 0, (size_t)n * sizeof *a->sum);
    a->begun = false;
}

/* Reads and packs the tile's queries. */
static void begin(const att_plan *plan, const att_head_view *at, q_tile *t)
{
    const att_kernels *k = plan->kernels;
    t->written = false;
    if (plan->bf16_pairs) {
        t->query = att_bf16_pack_rows(k, &at->q_row, t->q0, t->queries, plan->q_dim, t->rows);
        k->bf16.pack(t->queries, att_bf16_pairs_in(plan->q_dim), t->query.at, t->query.stride, t->packed);
    } else {
        t->query = att_rows_read(k, &at->q_row, t->q0, t->queries, plan->q_dim, t->rows);
        att_pack_queries(plan, t->query, t->queries, t->packed);
        att_row_terms(plan, t->query, t->queries, t->terms);
    }
    clear(&t->total, k->q_tile);
}

static void begin_segment(const att_plan *plan, q_tile *t)
{
    t->segment.begun = false;
    t->into = t->total.begun ? &t->segment : &t->total;
    if (t->into == &t->segment)
        clear(&t->segment, plan->kernels->q_tile);
}

static void end_segment(const att_plan *plan, q_tile *t)
{
    const att_accumulator *a = &t->total, *b = &t->segment;
    if (b->begun)
        plan->kernels->attend.merge(plan->spec.value_dim, a->max, a->sum, a->o, b->max, b->sum, b->o);
}

/* A loaded block of keys and values. */
typedef struct kv_block {
    int64_t k0;
    int keys;
    att_floats key, value;
    att_finite_ranges nonfinite; /* bf16 in pairs: values that are not finite */
} kv_block;

static void load_kv_block(const att_plan *plan, const att_head_view *at, const forward_scratch *w, kv_block *b)
{
    const att_kernels *k = plan->kernels;
    const int64_t value_dim = plan->spec.value_dim;
    if (plan->bf16_pairs) {
        b->key = att_bf16_pack_rows(k, &at->k_row, b->k0, b->keys, plan->k_dim, w->keys);
        att_bf16_pack_values(plan, &at->v, b->k0, b->keys, w->packed_values, &b->nonfinite);
        if (b->nonfinite.n_nonfinite)
            b->value = att_rows_read(k, &at->v, b->k0, b->keys, value_dim, w->values);
    } else {
        b->key = att_rows_read(k, &at->k_row, b->k0, b->keys, plan->k_dim, w->keys);
        att_row_terms(plan, b->key, b->keys, w->key_terms);
        b->value = att_rows_read(k, &at->v, b->k0, b->keys, value_dim, w->values);
    }
}

/* Writes the tile's log-sum-exp, and into rescale the factors that normalize o: 1 / sum, times the sink's share. */
static void normalizer(const att_plan *plan, const att_head_view *at, const q_tile *t, const forward_scratch *w)
{
    const att_accumulator *a = &t->total;
    float lse[ATT_MAX_Q_TILE], left[ATT_MAX_Q_TILE];
    if (plan->modifiers.sink >= 0)
        att_add_sink(plan, at, t->queries, a->max, a->sum, left);
    plan->kernels->attend.normalizer(a->max, a->sum, w->rescale, at->lse ? lse : NULL);
    for (int i = 0; plan->modifiers.sink >= 0 && i < t->queries; i++)
        w->rescale[i] *= left[i];
    for (int i = 0; at->lse && i < t->queries; i++)
        at->lse[(t->q0 + i) * at->lse_stride] = lse[i];
}

/* Returns whether the output can be computed in rows directly (the kernel pv_rows): only if the queries attend to one
 * range of one block, and rows are whole panels. */
static bool suits_rows(const att_plan *plan, const att_rows *out, const att_finite_ranges *finite, att_floats value,
                       const forward_scratch *w)
{
    const bool panels = plan->spec.value_dim % plan->kernels->nr == 0 && value.stride != 0;
    const bool single = w->single_block && finite->n_ranges == 1 && finite->n_nonfinite == 0;
    return plan->kernels->attend.pv_rows && single && panels && out->dtype == ATT_F32;
}

/* Adds V^T P of bf16 pairs to o, where values that are not finite count as 0; `rounded`: the weights are already
 * packed. Lists those values that are not finite and to which the tile attends. */
static void accumulate_pairs(const att_plan *plan, const q_tile *t, const att_mask_tile *mask, const kv_block *b,
                             bool rounded, const forward_scratch *w, att_finite_ranges *finite)
{
    const att_finite_ranges *all = &b->nonfinite;
    plan->kernels->bf16.accumulate_pv(mask->n_ranges, mask->range, plan->spec.value_dim, w->packed_values,
                                      rounded ? NULL : w->s, w->packed_weights, t->into->begun ? w->rescale : NULL,
                                      t->into->o);
    finite->n_nonfinite = 0;
    for (int i = 0; i < all->n_nonfinite; i++)
        for (int r = 0; r < mask->n_ranges; r++)
            if (mask->range[r].first <= all->nonfinite[i] && all->nonfinite[i] < mask->range[r].last)
                finite->nonfinite[finite->n_nonfinite++] = all->nonfinite[i];
}

/* Accumulates P V of floats without values that are not finite. It may write the tile's whole output directly. */
static void accumulate_floats(const att_plan *plan, const att_head_view *at, q_tile *t, const kv_block *b,
                              const att_finite_ranges *finite, forward_scratch *w)
{
    att_pv pv = {.columns = t->queries,
                 .n_ranges = finite->n_ranges,
                 .range = finite->range,
                 .dim = plan->spec.value_dim,
                 .v = b->value.at,
                 .v_stride = b->value.stride,
                 .p = w->s,
                 .prefetch = &w->prefetch};
    t->written = suits_rows(plan, &at->out, finite, b->value, w);
    if (t->written) {
        normalizer(plan, at, t, w);
        pv.rescale = w->rescale;
        pv.o = att_row_at(&at->out, t->q0);
        pv.o_stride = at->out.stride;
        plan->kernels->attend.pv_rows(&pv);
    } else {
        pv.rescale = t->into->begun ? w->rescale : NULL;
        pv.o = t->into->o;
        plan->kernels->attend.accumulate_pv(&pv);
    }
}

/* Computes o = rescale o + V^T P, where a weight of 0 times NaN or Inf counts as 0. */
static void accumulate(const att_plan *plan, const att_head_view *at, q_tile *t, const att_mask_tile *mask,
                       const kv_block *b, bool rounded, forward_scratch *w)
{
    const int64_t dim = plan->spec.value_dim;
    att_finite_ranges finite;
    if (plan->bf16_pairs) {
        accumulate_pairs(plan, t, mask, b, rounded, w, &finite);
    } else {
        att_finite_ranges_of(plan, mask, t->queries, b->value, dim, &finite);
        accumulate_floats(plan, at, t, b, &finite, w);
    }
    att_add_nonfinite(plan, mask, &finite, t->queries, b->value, dim, (att_floats){w->s, plan->kernels->q_tile},
                      t->into->o);
}

static void attend_block(const att_plan *plan, const att_head_view *at, q_tile *t, const att_mask_tile *mask,
                         const kv_block *kv, forward_scratch *w)
{
    att_block *b = &w->block;
    b->mask_tile = mask;
    b->q0 = t->q0;
    b->k0 = kv->k0;
    b->queries = t->queries;
    b->query = t->query;
    b->key = kv->key;
    b->q = t->packed;
    b->query_term = t->terms;
    const bool rounded = plan->bf16_pairs && !at->dropout.threshold && !kv->nonfinite.n_nonfinite;
    const att_softmax_step step = {.columns = t->queries,
                                   .scale = plan->scale.in_softmax ? plan->spec.scale : 1,
                                   .n_ranges = mask->n_ranges,
                                   .range = mask->range,
                                   .s = w->s,
                                   .max = t->into->max,
                                   .sum = t->into->sum,
                                   .rescale = w->rescale,
                                   .pairs = w->packed_weights};
    uint64_t keep[ATT_KEY_BLOCK];
    att_score_block(b);
    if (rounded)
        plan->kernels->bf16.softmax_step(&step);
    else
        plan->kernels->attend.softmax_step(&step);
    att_dropout_mask_block(b, keep);
    att_dropout_apply_block(b, keep, w->s);
    accumulate(plan, at, t, mask, kv, rounded, w);
    t->into->begun = true;
}

/* Writes out = o / sum, and the log-sum-exp; a row that attends to nothing gets 0 and -inf. */
static void finish(const att_plan *plan, const att_head_view *at, const q_tile *t, const forward_scratch *w)
{
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->spec.value_dim;
    if (t->written)
        return;
    if (!t->total.begun) {
        att_head_clear(plan, at, t->q0, t->q0 + t->queries);
        return;
    }
    normalizer(plan, at, t, w);
    if (at->out.dtype == ATT_F32) {
        k->attend.unpack(t->queries, dim, t->total.o, w->rescale, att_row_at(&at->out, t->q0), at->out.stride);
    } else {
        k->attend.unpack(t->queries, dim, t->total.o, w->rescale, t->rows, dim);
        att_rows_write(k, (att_floats){t->rows, dim}, &at->out, t->q0, t->queries, dim, false, NULL);
    }
}

/* ---- a group of query tiles, which share each loaded block of keys */

/* Processes keys [first, last), a segment. */
static void attend_segment(const att_plan *plan, const att_head_view *at, int n_tiles, int64_t first, int64_t last,
                           forward_scratch *w)
{
    kv_block b;
    for (int i = 0; i < n_tiles; i++)
        begin_segment(plan, &w->tile[i]);
    for (b.k0 = first; b.k0 < last; b.k0 += ATT_KEY_BLOCK) {
        bool loaded = false;
        b.keys = (int)att_min(last - b.k0, ATT_KEY_BLOCK);
        for (int i = 0; i < n_tiles; i++) {
            q_tile *t = &w->tile[i];
            att_mask_tile mask;
            att_mask_tile_make(plan, at, t->q0, t->queries, b.k0, b.keys, &mask);
            if (mask.n_ranges == 0)
                continue;
            if (!loaded)
                load_kv_block(plan, at, w, &b);
            loaded = true;
            attend_block(plan, at, t, &mask, &b, w);
        }
    }
    for (int i = 0; i < n_tiles; i++)
        end_segment(plan, &w->tile[i]);
}

/* Computes queries [q0, q0 + queries) against all keys. */
static void attend_queries(const att_plan *plan, const att_head_view *at, int64_t q0, int queries, forward_scratch *w)
{
    const int size = plan->kernels->q_tile, n_tiles = (int)att_ceil_div(queries, size);
    int64_t first, last;
    for (int i = 0; i < n_tiles; i++) {
        w->tile[i].q0 = q0 + i * size;
        w->tile[i].queries = (int)att_min(queries - i * size, size);
        begin(plan, at, &w->tile[i]);
    }
    att_span(plan, at, q0, queries, &first, &last);
    w->single_block = last - first <= ATT_KEY_BLOCK && first / ATT_KEY_SEGMENT == (last - 1) / ATT_KEY_SEGMENT;
    for (int64_t k = first, end; k < last; k = end) {
        end = att_min(last, k / ATT_KEY_SEGMENT * ATT_KEY_SEGMENT + ATT_KEY_SEGMENT);
        attend_segment(plan, at, n_tiles, k, end, w);
    }
    for (int i = 0; i < n_tiles; i++)
        finish(plan, at, &w->tile[i], w);
}

/* ---- the call */

/* A work item: some queries of a head of a sequence. */
typedef struct work_item {
    int64_t sequence, head, q0;
    int64_t part, parts; /* it is the part-th of the head's parts */
} work_item;

static work_item work_item_of(const forward_job *j, int64_t item)
{
    work_item p = {.sequence = att_find_range(j->first, j->call->sequences, item)};
    const int64_t local = item - j->first[p.sequence];
    p.parts = (j->first[p.sequence + 1] - j->first[p.sequence]) / j->call->plan->spec.heads;
    p.head = p.parts == 1 ? local : local / p.parts; /* a division takes as long as a key of a short sequence */
    p.part = local - p.head * p.parts;
    p.q0 = p.part * j->call->plan->kernels->q_tile * j->group;
    return p;
}

/* Lists what is prefetched while an item is computed: its own output, the queries of the next item, and a share of the
 * keys and values of the next head, which is the preceding one, because tasks run from the last to the first. Does
 * nothing for short sequences, for which the list costs more than it saves. */
static void prefetch_next(const forward_job *j, int64_t item, int64_t next, const work_item *p, const att_head_view *at,
                          forward_scratch *w)
{
    const att_plan *plan = j->call->plan;
    const int64_t each = plan->kernels->q_tile * j->group, head_begin = item - p->part;
    att_head_view other;
    att_prefetch_clear(&w->prefetch);
    if (plan->bf16_pairs || at->head.tk < ATT_KEY_BLOCK / 2)
        return;
    att_rows_prefetch(&w->prefetch, &at->out, p->q0, att_min(each, at->rows - p->q0), plan->spec.value_dim);
    if (next >= 0) {
        const work_item of = work_item_of(j, next);
        att_call_head(j->call, of.sequence, of.head, &other);
        att_rows_prefetch(&w->prefetch, &other.q_row, of.q0, att_min(each, other.rows - of.q0), plan->q_dim);
    }
    if (head_begin == 0 || 2 * at->head.tk * (plan->k_dim + plan->spec.value_dim) > plan->ctx->cached)
        return;
    const work_item of = work_item_of(j, head_begin - 1);
    att_call_head(j->call, of.sequence, of.head, &other);
    if (other.k_row.at == at->k_row.at)
        return;
    const int64_t from = other.head.tk * p->part / p->parts, n = other.head.tk * (p->part + 1) / p->parts - from;
    att_rows_prefetch(&w->prefetch, &other.k_row, from, n, plan->k_dim);
    att_rows_prefetch(&w->prefetch, &other.v, from, n, plan->spec.value_dim);
}

static void run_item(const forward_job *j, int64_t item, int64_t next, forward_scratch *w)
{
    const att_call *call = j->call;
    const int64_t each = call->plan->kernels->q_tile * j->group;
    const work_item p = work_item_of(j, item);
    att_head_view at;
    att_call_head(call, p.sequence, p.head, &at);
    at.k_row.copy = at.k_row.copy && !l1_holds_key_rows(call->plan);
    const int64_t last = att_min(at.rows, p.q0 + each), used = att_max(p.q0, att_min(at.head.tq, last));
    w->block.head = &at;
    w->block.param = at.param;
    prefetch_next(j, item, next, &p, &at, w);
    if (used > p.q0)
        attend_queries(call->plan, &at, p.q0, (int)(used - p.q0), w);
    att_head_clear(call->plan, &at, used, last);
}

/* Runs a task. Tasks run from the last to the first: with a causal mask the last queries attend to the most keys, and a
 * long task must not begin last. */
static void run_task(void *arg, int64_t i, int thread)
{
    const forward_job *j = arg;
    const att_plan *plan = j->call->plan;
    float *memory = j->memory + (size_t)thread * j->scratch_count;
    forward_scratch w;
    lay_out(plan, att_call_copies(j->call), j->call->max_tk, memory, &w);
    const int64_t task = j->tasks - 1 - i, last = j->items * (task + 1) / j->tasks;
    const int64_t before = task > 0 ? j->items * (task - 1) / j->tasks : -1;
    w.block = (att_block){.plan = plan,
                          .precomputed = plan->score.term ? w.key_terms : NULL,
                          .bf16_pairs = plan->bf16_pairs,
                          .s = w.s,
                          .stride = plan->kernels->q_tile};
    att_amx_begin(plan);
    for (int64_t item = j->items * task / j->tasks; item < last && !att_cancelled(plan->ctx); item++)
        run_item(j, item, item + 1 < last ? item + 1 : before, &w);
    att_amx_end(plan);
}

/* Partitions the query tiles into work items, and these into tasks. */
static void partition(forward_job *j)
{
    enum { TASKS_PER_THREAD = 32, TASK_FLOPS = 200000, GROUPS_PER_THREAD = 8 };
    const att_call *call = j->call;
    const att_plan *plan = call->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t tiles = call->max_tq * call->sequences * s->heads / plan->kernels->q_tile;
    const int64_t group = tiles / ((int64_t)GROUPS_PER_THREAD * att_threads(plan->ctx));
    j->group = (int)att_max(1, att_min(group, max_q_tiles(plan, att_call_copies(call), call->max_tk)));
    const int64_t each = (int64_t)j->group * plan->kernels->q_tile;
    double flops = 0;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_head_view at;
        att_call_head(call, b, 0, &at);
        j->first[b] = j->items;
        if (!att_forward_supports(call, &at))
            continue;
        j->items += att_ceil_div(at.rows, each) * s->heads;
        flops +=
            2.0 * (double)at.head.tq * (double)at.head.tk * (double)(s->head_dim + s->value_dim) * (double)s->heads;
    }
    j->first[call->sequences] = j->items;
    j->tasks = att_task_count(plan->ctx, j->items, flops, TASK_FLOPS, TASKS_PER_THREAD);
}

att_status att_attend_tiles(const att_call *call)
{
    const att_plan *plan = call->plan;
    att_ctx *ctx = plan->ctx;
    forward_job j = {.call = call, .scratch_count = att_tiles_scratch(plan, att_call_copies(call), call->max_tk)};
    j.first = att_alloc(ctx, (size_t)call->sequences + 1, sizeof *j.first);
    j.memory = att_scratch_acquire(plan, att_size_mul(j.scratch_count, (size_t)ctx->n_threads));
    const bool memory = j.first && j.memory;
    if (memory) {
        partition(&j);
        if (j.tasks > 0)
            att_parallel_partition(ctx, j.tasks, run_task, &j);
    }
    att_free(ctx, j.first);
    att_scratch_release(plan, j.memory);
    return memory ? ATT_OK : ATT_ERR_MEMORY;
}
