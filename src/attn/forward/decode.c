/* Attention of few queries over many keys: decoding. Its time is that of reading the keys and values.
 *
 * The queries of all heads that share keys and values go through a block of them together, so it is read once. The keys
 * of a head are split into segments, which threads share; the segments' accumulators are merged in ascending order.
 * Blocks, segments and chains of operations are those of forward.c, and so are the bits. */
#include "attn/call/scratch.h"
#include "attn/forward/forward.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* The query heads that share a key head. A column is one query of one of them: queries of head 0, of head 1 ... */
typedef struct head_group {
    const att_plan *plan;
    int heads, tq, columns;
    att_head_view head[ATT_DECODE_QUERIES];
} head_group;

/* What masks leave of a block: for each head, or without masks for the first alone; and for all columns, bit i of a key
 * being column i. */
typedef struct mask_tiles {
    att_mask_tile head[ATT_DECODE_QUERIES], merged;
    const att_mask_tile *all; /* merged, or the first head's where that is all */
} mask_tiles;

/* Scratch memory of one thread. */
typedef struct decode_scratch {
    float *q;               /* [columns][q_dim], scaled */
    float *s;               /* [columns][ATT_KEY_BLOCK] scores, then weights */
    float *rescale;         /* [columns] */
    float *tile, *packed_q; /* where stages work on tiles: [ATT_KEY_BLOCK][q_tile], [q_dim][q_tile] */
    float *keys, *values;   /* [ATT_KEY_BLOCK][dim], converted */
    float *numbers;         /* [q_tile + ATT_KEY_BLOCK], where the score has one of each row, queries before keys */
    float *rows;            /* [tq, q_dim], converted */
    float *groups, *masks;  /* two head_group, one mask_tiles: too large for small stacks */
    att_prefetch prefetch;
} decode_scratch;

typedef struct decode_job {
    const att_call *call;
    float *memory; /* scratch of all threads, then the accumulators */
    size_t scratch_count, accumulator_count;
    float *accumulators;    /* [items]: max [columns], sum [columns], o [columns][o_stride] */
    int64_t *first;         /* [sequences + 1] the first item of each sequence */
    atomic_int *unfinished; /* [sequences * kv_heads] segments */
    int64_t items, tasks, o_stride;
    int columns; /* at most */
} decode_job;

bool att_decode_suits(const att_call *call)
{
    const int64_t group = call->plan->spec.heads / call->plan->spec.kv_heads;
    return group <= ATT_DECODE_QUERIES && call->max_tq * group <= ATT_DECODE_QUERIES; /* max_tq may be 0 */
}

/* Dot products are computed from rows; other scores, what changes products, and modifiers but a sink, work on tiles. */
static bool is_dot(const att_plan *plan) { return plan->builtin->is_dot; }
static bool uses_tiles(const att_plan *plan)
{
    return plan->modifiers.n > (plan->modifiers.sink >= 0) || !is_dot(plan) || att_score_changes_products(plan);
}
static bool reads_keys(const att_plan *plan) { return !is_dot(plan) || plan->score.number; }

/* ---- memory */

/* Lays scratch memory out from p on and returns how many floats that takes. */
static size_t lay_out(const att_call *call, int columns, float *p, decode_scratch *w)
{
    const att_plan *plan = call->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t panel = plan->kernels->q_tile, tiles = uses_tiles(plan), converted = s->dtype != ATT_F32;
    const int64_t copied = converted || call->args.cache, numbers = plan->score.number != NULL;
    const att_scratch_part parts[] = {
        {&w->q, columns * plan->q_dim},
        {&w->s, columns * ATT_KEY_BLOCK},
        {&w->rescale, ATT_MAX_Q_TILE},
        {&w->tile, tiles * ATT_KEY_BLOCK * panel},
        {&w->packed_q, !(is_dot(plan) || att_score_reads_query_rows(plan)) * plan->q_dim * panel},
        {&w->keys, reads_keys(plan) * copied * ATT_KEY_BLOCK * plan->k_dim},
        {&w->numbers, numbers * (panel + ATT_KEY_BLOCK)},
        {&w->values, converted * ATT_KEY_BLOCK * s->value_dim},
        {&w->rows, converted * columns * (plan->q_dim > s->value_dim ? plan->q_dim : s->value_dim)},
        {&w->groups, 2 * sizeof(head_group) / sizeof(float)},
        {&w->masks, sizeof(mask_tiles) / sizeof(float)}};
    return att_scratch_lay_out(p, sizeof parts / sizeof parts[0], parts);
}

static att_accumulator accumulator_of(const decode_job *j, int64_t item)
{
    float *p = j->accumulators + (size_t)item * j->accumulator_count;
    return (att_accumulator){.max = p, .sum = p + ATT_DECODE_QUERIES, .o = p + 2 * ATT_DECODE_QUERIES};
}

/* ---- a block of keys */

static const att_mask_tile *mask_of(const head_group *g, const mask_tiles *c, int head)
{
    return &c->head[g->plan->masks.n ? head : 0];
}

/* Bit i of a key in `all`: column i attends to it. */
static void merge_masks(const head_group *g, int keys, const att_mask_tile *head, att_mask_tile *all)
{
    uint64_t *bits = all->bits;
    const uint64_t one = att_low_bits(g->tq), every = att_low_bits(g->columns);
    memset(bits, 0, sizeof all->bits);
    for (int h = 0; h < g->heads; h++)
        for (int r = 0; r < head[h].n_ranges; r++)
            for (int64_t k = head[h].range[r].first; k < head[h].range[r].last; k++)
                bits[k] |= (att_mask_tile_bits(&head[h], k) & one) << (h * g->tq);
    all->n_ranges = 0;
    all->partial = (att_range){0, 0};
    for (int first = 0; first < keys; first += ATT_SUB_TILE) {
        const int last = keys - first < ATT_SUB_TILE ? keys : first + ATT_SUB_TILE;
        uint64_t some = 0, common = every;
        for (int k = first; k < last; k++) {
            some |= bits[k];
            common &= bits[k];
        }
        if (some)
            att_mask_tile_add(all, first, last, common != every);
    }
}

static void make_masks(const head_group *g, int64_t k0, int keys, mask_tiles *c)
{
    const bool one = g->heads == 1 || g->plan->masks.n == 0;
    for (int h = 0; h < (one ? 1 : g->heads); h++)
        att_mask_tile_make(g->plan, &g->head[h], 0, g->tq, k0, keys, &c->head[h]);
    if (!one)
        merge_masks(g, keys, c->head, &c->merged);
    c->all = one ? &c->head[0] : &c->merged;
}

/* Stages that work on tiles: each head's rows of products are packed into a tile, or its scores computed there, and
 * unpacked. */
static void apply_stages(const head_group *g, const mask_tiles *c, int64_t k0, int keys, const decode_scratch *w)
{
    const att_plan *plan = g->plan;
    const att_kernels *kernels = plan->kernels;
    const int64_t last = c->all->range[c->all->n_ranges - 1].last;
    float ones[ATT_MAX_Q_TILE];
    att_floats key = {w->keys, 0}; /* not read by modifiers */
    for (int i = 0; i < ATT_MAX_Q_TILE; i++)
        ones[i] = 1;
    for (int h = 0; h < g->heads; h++) {
        const att_head_view *at = &g->head[h];
        if (reads_keys(plan) && (h == 0 || at->k_row.at != g->head[0].k_row.at)) {
            key = att_rows_read(kernels, &at->k_row, k0, keys, plan->k_dim, w->keys);
            att_row_terms(plan, key, keys, w->numbers + kernels->q_tile);
        }
        float *s = w->s + (int64_t)h * g->tq * ATT_KEY_BLOCK;
        att_block b = {.plan = plan,
                       .head = at,
                       .mask_tile = mask_of(g, c, h),
                       .k0 = k0,
                       .queries = g->tq,
                       .key = key,
                       .q = w->packed_q,
                       .query_term = w->numbers,
                       .precomputed = plan->score.number ? w->numbers + kernels->q_tile : NULL,
                       .s = w->tile,
                       .stride = kernels->q_tile,
                       .param = at->param};
        if (reads_keys(plan))
            b.query = att_rows_read(kernels, &at->q_row, 0, g->tq, plan->q_dim, w->rows);
        att_row_terms(plan, b.query, g->tq, w->numbers);
        if (is_dot(plan)) {
            kernels->attend.pack(g->tq, last, s, ATT_KEY_BLOCK, 1, w->tile);
            att_products_block(&b);
        } else {
            att_pack_queries(plan, b.query, g->tq, w->packed_q);
            att_score_block(&b);
        }
        kernels->attend.unpack(g->tq, last, w->tile, ones, s, ATT_KEY_BLOCK);
    }
}

static void apply_mask(const head_group *g, const att_mask_tile *mask, float *s)
{
    for (int r = 0; r < mask->n_ranges; r++) {
        const att_range partial = att_mask_tile_partial(mask, r);
        for (int64_t k = partial.first; k < partial.last; k++)
            for (int i = 0; i < g->columns; i++)
                if (!(mask->bits[k] >> i & 1))
                    s[i * ATT_KEY_BLOCK + k] = -INFINITY;
    }
}

/* Weights that are dropped become 0, the others are scaled. */
static void apply_dropout(const head_group *g, const att_mask_tile *mask, int64_t k0, float *s)
{
    const float scale = att_dropout_scale(g->plan);
    for (int h = 0; h < g->heads && g->head[h].dropout.threshold; h++) {
        uint64_t keep[ATT_KEY_BLOCK];
        att_dropout_mask_block(
            &(att_block){.plan = g->plan, .head = &g->head[h], .mask_tile = mask, .k0 = k0, .queries = g->tq}, keep);
        for (int i = 0; i < g->tq; i++, s += ATT_KEY_BLOCK)
            for (int r = 0; r < mask->n_ranges; r++)
                for (int64_t k = mask->range[r].first; k < mask->range[r].last; k++)
                    s[k] = keep[k] >> i & 1 ? scale * s[k] : 0;
    }
}

/* The values that att_finite_ranges_of has left out, for the columns that attend to them. */
static void add_nonfinite(const head_group *g, const att_mask_tile *mask, const att_finite_ranges *finite,
                          att_floats value, const float *p, float *o, int64_t o_stride)
{
    for (int n = 0; n < finite->n_nonfinite; n++) {
        const int64_t key = finite->nonfinite[n];
        for (int i = 0; i < g->columns; i++)
            for (int64_t d = 0; (mask->bits[key] >> i & 1) && d < g->plan->spec.value_dim; d++)
                o[i * o_stride + d] += p[i * ATT_KEY_BLOCK + key] * value.at[key * value.stride + d];
    }
}

/* o = rescale o + P V. Where only some columns attend to a key, NaN or Inf in its value must not reach the others. */
static void accumulate(const decode_job *j, const head_group *g, const att_mask_tile *mask, int64_t k0, int keys,
                       decode_scratch *w, att_accumulator *to)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->spec.value_dim;
    const att_rows v = att_rows_block(&g->head[0].v, k0);
    att_pv pv = {.type = (int)v.dtype,
                 .columns = g->columns,
                 .n_ranges = mask->n_ranges,
                 .range = mask->range,
                 .dim = dim,
                 .v = v.at,
                 .v_stride = v.stride,
                 .p = w->s,
                 .p_stride = ATT_KEY_BLOCK,
                 .rescale = to->begun ? w->rescale : NULL,
                 .o = to->o,
                 .o_stride = j->o_stride,
                 .prefetch = &w->prefetch};
    to->begun = true;
    if (!att_mask_tile_is_partial(mask)) {
        kernels->decode.accumulate_pv(&pv);
        return;
    }
    const att_floats value = att_rows_read(kernels, &v, 0, keys, dim, w->values);
    att_finite_ranges finite;
    att_finite_ranges_of(g->plan, mask, g->columns, value, dim, &finite);
    pv.type = ATT_F32;
    pv.n_ranges = finite.n_ranges;
    pv.range = finite.range;
    pv.v = value.at;
    pv.v_stride = value.stride;
    kernels->decode.accumulate_pv(&pv);
    add_nonfinite(g, mask, &finite, value, w->s, to->o, j->o_stride);
}

/* Scores of keys [first, last) of a block; first begins a panel. */
static void score_keys(const head_group *g, const att_rows *k, bool packed, int64_t first, int64_t last,
                       decode_scratch *w)
{
    g->plan->kernels->decode.scores(&(const att_decode_scores){.type = (int)k->dtype,
                                                               .queries = g->columns,
                                                               .packed = packed,
                                                               .keys = last - first,
                                                               .dim = g->plan->q_dim,
                                                               .k = att_row_at(k, first),
                                                               .k_stride = packed ? 0 : k->stride,
                                                               .q = w->q,
                                                               .q_stride = g->plan->q_dim,
                                                               .s = w->s + first,
                                                               .s_stride = ATT_KEY_BLOCK,
                                                               .prefetch = &w->prefetch});
}

/* Scores of a block, while its values are prefetched. */
static void score_block(const head_group *g, const att_mask_tile *mask, int64_t k0, decode_scratch *w)
{
    const att_rows k = att_rows_block(&g->head[0].k_row, k0), v = att_rows_block(&g->head[0].v, k0);
    const int64_t from = mask->range[0].first, end = mask->range[mask->n_ranges - 1].last;
    att_prefetch_clear(&w->prefetch);
    att_rows_prefetch(&w->prefetch, &v, from, end - from, g->plan->spec.value_dim);
    for (int r = 0; r < mask->n_ranges; r++) {
        const int64_t first = mask->range[r].first, last = mask->range[r].last, packed = att_rows_packed(&k, last);
        const int64_t loose = first > packed ? first : packed;
        if (first < packed)
            score_keys(g, &k, true, first, packed, w);
        if (loose < last)
            score_keys(g, &k, false, loose, last, w);
    }
}

static void softmax_step(const head_group *g, const att_mask_tile *mask, const decode_scratch *w,
                         const att_accumulator *p)
{
    g->plan->kernels->decode.softmax_step(&(const att_softmax_step){.columns = g->columns,
                                                                    .n_ranges = mask->n_ranges,
                                                                    .range = mask->range,
                                                                    .s = w->s,
                                                                    .stride = ATT_KEY_BLOCK,
                                                                    .max = p->max,
                                                                    .sum = p->sum,
                                                                    .rescale = w->rescale});
}

/* Lists the keys of the block from k0 on, which are read next. */
static void prefetch_keys(const head_group *g, int64_t k0, att_prefetch *list)
{
    const int64_t left = g->head[0].head.tk - k0, keys = left < ATT_KEY_BLOCK ? left : ATT_KEY_BLOCK;
    att_prefetch_clear(list);
    if (keys <= 0)
        return;
    const att_rows k = att_rows_block(&g->head[0].k_row, k0);
    const int64_t packed = att_rows_packed(&k, keys), size = (int64_t)att_dtype_size(k.dtype);
    att_prefetch_add(list, k.at, packed * g->plan->q_dim * size, 0, 1);
    if (packed < keys)
        att_rows_prefetch(list, &k, packed, keys - packed, g->plan->q_dim);
}

/* ---- a segment of keys */

/* Dot products: the queries, times the scale where it belongs there. */
static void read_queries(const head_group *g, const decode_scratch *w)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->q_dim;
    for (int i = 0; is_dot(g->plan) && i < g->columns; i++) {
        const att_floats q = att_rows_read(kernels, &g->head[i / g->tq].q_row, i % g->tq, 1, dim, w->rows);
        kernels->vector.scale(dim, att_query_scale(g->plan), q.at, w->q + i * dim);
    }
}

/* Narrows [*first, *last) to blocks that masks leave to any head. */
static void intersect_span(const head_group *g, int64_t *first, int64_t *last)
{
    int64_t from = *last, to = *first;
    for (int h = 0; h < g->heads; h++) {
        int64_t a, b;
        att_span(g->plan, &g->head[h], 0, g->tq, &a, &b);
        from = att_min(a, from);
        to = att_max(b, to);
    }
    *first = att_max(from, *first);
    *last = att_min(to, *last);
}

/* Keys [first, last), a segment, into an accumulator: maximum -inf and sum 0 where no key attends. next: the group
 * whose keys are read after these, from next_key on. */
static void attend_segment(const decode_job *j, const head_group *g, int64_t first, int64_t last, decode_scratch *w,
                           att_accumulator to, const head_group *next, int64_t next_key)
{
    mask_tiles *masks = (mask_tiles *)w->masks;
    for (int i = 0; i < g->columns; i++) {
        to.max[i] = -INFINITY;
        to.sum[i] = 0;
    }
    intersect_span(g, &first, &last);
    for (int64_t k0 = first; k0 < last; k0 += ATT_KEY_BLOCK) {
        const int keys = (int)att_min(last - k0, ATT_KEY_BLOCK);
        make_masks(g, k0, keys, masks);
        const att_mask_tile *mask = masks->all;
        if (mask->n_ranges == 0)
            continue;
        if (is_dot(g->plan))
            score_block(g, mask, k0, w);
        if (uses_tiles(g->plan))
            apply_stages(g, masks, k0, keys, w);
        apply_mask(g, mask, w->s);
        softmax_step(g, mask, w, &to);
        apply_dropout(g, mask, k0, w->s);
        const bool more = k0 + keys < last;
        prefetch_keys(more ? g : next, more ? k0 + keys : next_key, &w->prefetch);
        accumulate(j, g, mask, k0, keys, w, &to);
    }
    if (!to.begun)
        memset(to.o, 0, (size_t)(g->columns * j->o_stride) * sizeof *to.o);
}

/* Merges the segments of a key head in ascending order, and writes out and log-sum-exp. */
static void finish(const decode_job *j, const head_group *g, int64_t first, int64_t segments, const decode_scratch *w)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->spec.value_dim;
    const att_accumulator total = accumulator_of(j, first);
    float max[ATT_MAX_Q_TILE] = {0}, sum[ATT_MAX_Q_TILE] = {0}, lse[ATT_MAX_Q_TILE], left[ATT_MAX_Q_TILE];
    for (int i = 0; i < g->columns; i++) {
        for (int64_t s = 1; s < segments; s++) {
            const att_accumulator p = accumulator_of(j, first + s);
            kernels->decode.merge(dim, &total.max[i], &total.sum[i], total.o + i * j->o_stride, p.max[i], p.sum[i],
                                  p.o + i * j->o_stride);
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
        kernels->decode.normalize(dim, w->rescale[i] * left[i], total.o + i * j->o_stride);
        att_rows_write(kernels, (att_floats){total.o + i * j->o_stride, dim}, &at->out, q, 1, dim, false, NULL);
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

/* The query heads of an item's key head. */
static void load_group(const att_call *call, work_item at, head_group *g)
{
    const att_attention_spec *s = &call->plan->spec;
    g->plan = call->plan;
    g->heads = (int)(s->heads / s->kv_heads);
    for (int h = 0; h < g->heads; h++)
        att_call_head(call, at.sequence, at.kv_head * g->heads + h, &g->head[h]);
    g->tq = (int)g->head[0].head.tq;
    g->columns = g->heads * g->tq;
}

/* The block in which the item's first key is; INT64_MAX without queries. */
static int64_t begin_of(const head_group *g, work_item at)
{
    int64_t first, last;
    if (g->tq == 0)
        return INT64_MAX;
    att_span(g->plan, &g->head[0], 0, g->tq, &first, &last);
    return att_max(first, at.segment * ATT_KEY_SEGMENT);
}

static void run_item(decode_job *j, int64_t item, work_item at, const head_group *g, decode_scratch *w,
                     const head_group *next, int64_t next_key)
{
    const int64_t first = at.segment * ATT_KEY_SEGMENT, tk = g->head[0].head.tk;
    read_queries(g, w);
    if (g->columns > 0)
        attend_segment(j, g, first, att_min(tk, first + ATT_KEY_SEGMENT), w, accumulator_of(j, item), next, next_key);
    if (atomic_fetch_sub(&j->unfinished[at.sequence * g->plan->spec.kv_heads + at.kv_head], 1) == 1)
        finish(j, g, item - at.segment, at.segments, w);
}

static void run_task(void *arg, int64_t i, int thread)
{
    decode_job *j = arg;
    const att_plan *plan = j->call->plan;
    decode_scratch w;
    lay_out(j->call, j->columns, j->memory + (size_t)thread * j->scratch_count, &w);
    int64_t item = j->items * i / j->tasks;
    const int64_t last = j->items * (i + 1) / j->tasks;
    head_group *now = (head_group *)w.groups, *next = now + 1;
    work_item at = work_item_of(j, item);
    load_group(j->call, at, now);
    for (; item < last && !att_cancelled(plan->ctx); item++) {
        const bool more = item + 1 < last;
        const work_item then = more ? work_item_of(j, item + 1) : at;
        if (more)
            load_group(j->call, then, next);
        run_item(j, item, at, now, &w, more ? next : now, more ? begin_of(next, then) : INT64_MAX);
        head_group *const done = now;
        now = next, next = done, at = then;
    }
}

/* 0: the sequence is not part of the call */
static int64_t segments_of(const att_call *call, const att_head_view *at)
{
    return att_forward_supports(call, at) ? att_max(1, att_ceil_div(at->head.tk, ATT_KEY_SEGMENT)) : 0;
}

/* The sizes of a job, before its memory and tasks. */
static decode_job job_of(const att_call *call)
{
    const att_attention_spec *s = &call->plan->spec;
    decode_scratch w;
    decode_job j = {.call = call, .columns = (int)(call->max_tq * (s->heads / s->kv_heads))};
    j.o_stride = att_round_up(s->value_dim, 16);
    j.scratch_count = lay_out(call, j.columns, NULL, &w);
    j.accumulator_count = (size_t)(2 * ATT_DECODE_QUERIES + j.columns * j.o_stride);
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
    return (j.scratch_count * (size_t)att_threads(call->plan->ctx) + items * j.accumulator_count) * sizeof(float);
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
        const size_t fixed = j.scratch_count * (size_t)att_threads(ctx);
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
