/* Attention forward: softmax(S) V in one pass over the keys, without S.
 *
 * For a block of queries, block after block of keys: scores, then softmax with a running maximum and sum, and the
 * output so far is rescaled when the maximum grows (Milakov, Gimelshein 2018; Dao et al. 2022). A segment of keys has
 * a partial result of its own, merged with the one before it by their log-sum-exp. */
#include "attn/call/transform.h"
#include "attn/call/scratch.h"
#include "attn/forward/forward.h"
#include "base/math.h"

#include <math.h>
#include <string.h>

/* Softmax and output so far of one panel of queries: [panel], [panel], [value_dim][panel]. */
typedef struct partial {
    float *max, *sum, *o;
    bool touched;
} partial;

/* A panel of queries on its way. */
typedef struct q_tile {
    int64_t q0;
    int queries;
    bool done;                     /* its output is written */
    float *q;                      /* [q_dim][panel], packed_q */
    float *rows;                   /* [panel, q_dim or value_dim], where they are not f32 */
    att_floats query;              /* [queries, q_dim] */
    partial total, segment, *into; /* into: what this segment's keys go to, total where it is the first */
} q_tile;

/* What one thread works in. */
typedef struct forward_scratch {
    float *s, *rescale;   /* [keys of a block][panel], [panel] */
    float *keys, *values; /* [ATT_KEY_BLOCK][k_dim] and [value_dim], where they are copied */
    float *packed_values,
        *packed_weights;   /* [ATT_KEY_BLOCK / 2][value_dim] and [panel], where bf16 is multiplied in pairs */
    att_prefetch prefetch; /* what the next items need */
    att_block block;       /* what all blocks have in common; of an item: site and its parameters */
    bool single_block;     /* the keys of its queries are a single block */
    q_tile q_tile[ATT_MAX_Q_TILES];
} forward_scratch;

typedef struct forward_job {
    const att_call *call;
    float *memory;
    size_t scratch_count; /* floats of one thread */
    int group;            /* panels of queries in an item */
    int64_t items, tasks; /* groups of queries of all heads and sequences, and the tasks they are dealt to */
    int64_t *first;       /* [sequences + 1] each sequence's first item */
} forward_job;

/* ---- memory */

/* Panels of queries that share a block of keys, at most: many where it is copied, or where the keys and values of a
 * head do not stay in the second cache, as long as these panels do; and for scores that are no dot products, whose
 * memory is the same for any number of keys. */
static int max_q_tiles(const att_plan *plan, bool copies, int64_t tk)
{
    const int64_t cached = plan->ctx->cached, numbers = plan->k_dim + plan->spec.value_dim;
    const bool shared = copies || !plan->builtin->is_dot || tk * numbers > cached / 2;
    const int64_t fit = cached / (plan->kernels->panel * (plan->q_dim + plan->spec.value_dim));
    return !shared || fit < 1 ? 1 : fit < ATT_MAX_Q_TILES ? (int)fit : ATT_MAX_Q_TILES;
}

/* Does the first cache hold a line of each key that a tile of scores reads side by side, wherever keys lie? */
static bool l1_holds_key_rows(const att_plan *plan) { return plan->ctx->ways > plan->kernels->rows; }

/* Lays scratch memory out from p on and returns how many floats that takes. */
static size_t lay_out(const att_plan *plan, bool copies, int64_t tk, float *p, forward_scratch *w)
{
    const att_attention_spec *s = &plan->spec;
    const int64_t panel = plan->kernels->panel, longest = plan->q_dim > s->value_dim ? plan->q_dim : s->value_dim;
    const int64_t converted = s->dtype == ATT_F32 ? 0 : 1;
    const att_scratch_part shared[] = {{&w->s, ATT_KEY_BLOCK * panel},
                                       {&w->rescale, panel},
                                       {&w->keys, copies * ATT_KEY_BLOCK * plan->k_dim},
                                       {&w->values, copies * ATT_KEY_BLOCK * s->value_dim},
                                       {&w->packed_values, plan->words * ATT_KEY_BLOCK / 2 * s->value_dim},
                                       {&w->packed_weights, plan->words * ATT_KEY_BLOCK / 2 * panel}};
    att_scratch_part
        parts[sizeof shared / sizeof *shared + 8 * ATT_MAX_Q_TILES]; /* few are used, and clearing all takes time */
    int n = sizeof shared / sizeof *shared;
    memcpy(parts, shared, sizeof shared);
    const q_tile *end = w->q_tile + max_q_tiles(plan, copies, tk);
    for (q_tile *t = w->q_tile; t < end; t++) {
        parts[n].at = &t->q, parts[n++].count = !att_score_reads_query_rows(plan) * plan->q_dim * panel;
        parts[n].at = &t->rows, parts[n++].count = converted * longest * panel;
        for (int i = 0; i < 2; i++) {
            partial *of = i ? &t->segment : &t->total;
            parts[n].at = &of->max, parts[n++].count = panel;
            parts[n].at = &of->sum, parts[n++].count = panel;
            parts[n].at = &of->o, parts[n++].count = s->value_dim * panel;
        }
    }
    return att_scratch_lay_out(p, n, parts);
}

size_t att_forward_scratch(const att_plan *plan, bool copies, int64_t tk)
{
    forward_scratch w;
    return lay_out(plan, copies, tk, NULL, &w);
}

/* ---- one query tile of queries */

/* Its o is written when the first keys are. */
static void clear(partial *p, int panel)
{
    for (int i = 0; i < panel; i++)
        p->max[i] = -INFINITY;
    memset(p->sum, 0, (size_t)panel * sizeof *p->sum);
    p->touched = false;
}

static void begin(const att_plan *plan, const att_head_view *at, q_tile *t)
{
    if (plan->words) {
        t->query = att_bf16_pack_rows(plan->kernels, &at->q_row, t->q0, t->queries, plan->q_dim, t->rows);
        plan->kernels->turn_words(t->queries, att_bf16_pairs_in(plan->q_dim), t->query.at, t->query.stride, t->q);
    } else {
        t->query = att_rows_read(plan->kernels, &at->q_row, t->q0, t->queries, plan->q_dim, t->rows);
        att_pack_queries(plan, t->query, t->queries, t->q);
    }
    clear(&t->total, plan->kernels->panel);
}

static void begin_segment(q_tile *t, int panel)
{
    t->segment.touched = false;
    t->into = t->total.touched ? &t->segment : &t->total;
    if (t->into == &t->segment)
        clear(&t->segment, panel);
}

/* A block of keys and values, from k0 on, as it is K/V block by several strips. */
typedef struct kv_block {
    int64_t k0;
    int keys;
    att_floats key, value;
    att_finite_ranges nonfinite; /* of values in words */
} kv_block;

static void load_kv_block(const att_plan *plan, const att_head_view *at, const forward_scratch *w, kv_block *m)
{
    const att_kernels *kernels = plan->kernels;
    const int64_t value_dim = plan->spec.value_dim;
    if (plan->words) {
        m->key = att_bf16_pack_rows(kernels, &at->k_row, m->k0, m->keys, plan->k_dim, w->keys);
        att_bf16_pack_values(plan, &at->v, m->k0, m->keys, w->packed_values, &m->nonfinite);
        if (m->nonfinite.n_nonfinite)
            m->value = att_rows_read(kernels, &at->v, m->k0, m->keys, value_dim, w->values);
    } else {
        m->key = att_rows_read(kernels, &at->k_row, m->k0, m->keys, plan->k_dim, w->keys);
        m->value = att_rows_read(kernels, &at->v, m->k0, m->keys, value_dim, w->values);
    }
}

/* From maxima and sums: what o is multiplied with, into rescale, and the log-sum-exp. */
static void normalizer(const att_plan *plan, const att_head_view *at, const q_tile *t, const forward_scratch *w)
{
    const partial *p = &t->total;
    float lse[ATT_MAX_Q_TILE], left[ATT_MAX_Q_TILE];
    if (plan->sink >= 0)
        att_add_sink(plan, at, t->queries, p->max, p->sum, left);
    plan->kernels->close_rows(p->max, p->sum, w->rescale, at->lse ? lse : NULL);
    for (int i = 0; plan->sink >= 0 && i < t->queries; i++)
        w->rescale[i] *= left[i];
    for (int i = 0; at->lse && i < t->queries; i++)
        at->lse[(t->q0 + i) * at->lse_stride] = lse[i];
}

/* Where a single run of keys is all that there is, the output is computed in its rows: values are read by whole panels,
 * and nothing is left to turn. */
static bool suits_rows(const att_plan *plan, const att_rows *out, const att_finite_ranges *clean, const kv_block *m,
                       const forward_scratch *w)
{
    const bool padded = plan->spec.value_dim % plan->kernels->panel == 0 && m->value.stride != 0;
    const bool single = w->single_block && clean->n_ranges == 1 && clean->n_nonfinite == 0;
    return plan->kernels->weigh_rows && single && padded && out->dtype == ATT_F32;
}

/* o += V'P' in words; nonfinite: values that counted as 0 there. */
static void weigh_words(const att_plan *plan, const q_tile *t, const att_mask_tile *mask_tile, const kv_block *m,
                        bool rounded, const forward_scratch *w, att_finite_ranges *nonfinite)
{
    plan->kernels->word_weigh(mask_tile->n_ranges, mask_tile->run, plan->spec.value_dim, w->packed_values,
                              rounded ? NULL : w->s, w->packed_weights, t->into->touched ? w->rescale : NULL,
                              t->into->o);
    nonfinite->n_nonfinite = 0;
    for (int i = 0; i < m->nonfinite.n_nonfinite; i++)
        for (int r = 0; r < mask_tile->n_ranges; r++)
            if (mask_tile->run[r].first <= m->nonfinite.nonfinite[i] &&
                m->nonfinite.nonfinite[i] < mask_tile->run[r].last)
                nonfinite->nonfinite[nonfinite->n_nonfinite++] = m->nonfinite.nonfinite[i];
}

/* o += V'P', where 0 x NaN must not count. */
static void weigh(const att_plan *plan, const att_head_view *at, q_tile *t, const att_mask_tile *mask_tile,
                  const kv_block *m, bool rounded, forward_scratch *w)
{
    const att_kernels *kernels = plan->kernels;
    const int64_t dim = plan->spec.value_dim;
    const att_floats v = m->value;
    att_finite_ranges clean;
    if (plan->words) {
        weigh_words(plan, t, mask_tile, m, rounded, w, &clean);
    } else {
        att_finite_ranges_of(plan, mask_tile, t->queries, v.at, v.stride, dim, &clean);
        t->done = suits_rows(plan, &at->out, &clean, m, w);
        if (t->done) {
            normalizer(plan, at, t, w);
            kernels->weigh_rows(t->queries, clean.run[0], dim, v.at, v.stride, w->s, w->rescale,
                                att_row_at(&at->out, t->q0), at->out.stride, &w->prefetch);
            return;
        }
        kernels->weigh(t->queries, clean.n_ranges, clean.run, dim, v.at, v.stride, w->s,
                       t->into->touched ? w->rescale : NULL, t->into->o, &w->prefetch);
    }
    att_add_nonfinite(plan, mask_tile, &clean, t->queries, v.at, v.stride, dim, w->s, kernels->panel, t->into->o);
}

static void attend_block(const att_plan *plan, const att_head_view *at, q_tile *t, const att_mask_tile *mask_tile,
                         const kv_block *m, forward_scratch *w)
{
    partial *p = t->into;
    const att_kernels *kernels = plan->kernels;
    att_block *b = &w->block;
    b->mask_tile = mask_tile;
    b->q0 = t->q0;
    b->k0 = m->k0;
    b->queries = t->queries;
    b->query = t->query;
    b->key = m->key;
    b->q = t->q;
    const float scale = plan->scale_in_softmax ? plan->spec.scale : 1;
    const bool rounded = plan->words && !at->dropout.threshold && !m->nonfinite.n_nonfinite; /* nobody needs floats */
    uint64_t keep[ATT_KEY_BLOCK];
    att_score_block(b);
    if (rounded)
        kernels->word_soften(t->queries, scale, mask_tile->n_ranges, mask_tile->run, w->s, p->max, p->sum, w->rescale,
                             w->packed_weights);
    else
        kernels->soften(t->queries, scale, mask_tile->n_ranges, mask_tile->run, w->s, p->max, p->sum, w->rescale);
    att_dropout_mask_block(b, keep);
    att_dropout_apply_block(b, keep, w->s);
    weigh(plan, at, t, mask_tile, m, rounded, w);
    p->touched = true;
}

void att_add_sink(const att_plan *plan, const att_head_view *at, int rows, float *max, float *sum, float *left)
{
    for (int i = 0; i < rows; i++) {
        left[i] = 1;
        if (sum[i] == 0)
            continue;
        const double sink = (double)att_sink_of(plan, at->param)->data[0] * ATT_LOG2_E;
        const double before = max[i], after = att_fmax(before, sink);
        left[i] = (float)att_exp2(before - after);
        sum[i] = sum[i] * left[i] + (float)att_exp2(sink - after);
        max[i] = (float)after;
    }
}

/* o / sum, and the log-sum-exp; a row that attended to nothing gets 0 and -inf. */
static void finish(const att_plan *plan, const att_head_view *at, const q_tile *t, const forward_scratch *w)
{
    const att_kernels *kernels = plan->kernels;
    const partial *p = &t->total;
    const int64_t value_dim = plan->spec.value_dim;
    if (t->done)
        return;
    if (!p->touched) {
        att_head_clear(plan, at, t->q0, t->q0 + t->queries);
        return;
    }
    normalizer(plan, at, t, w);
    if (at->out.dtype == ATT_F32) {
        kernels->turn_out(t->queries, value_dim, p->o, w->rescale, att_row_at(&at->out, t->q0), at->out.stride);
    } else {
        kernels->turn_out(t->queries, value_dim, p->o, w->rescale, t->rows, value_dim);
        att_rows_write(kernels, t->rows, value_dim, &at->out, t->q0, t->queries, value_dim, false, NULL);
    }
}

/* ---- a group of strips, which meets each block of keys together */

/* Keys [first, last), a segment. */
static void attend_segment(const att_plan *plan, const att_head_view *at, int n_q_tiles, int64_t first, int64_t last,
                           forward_scratch *w)
{
    kv_block m;
    for (m.k0 = first; m.k0 < last; m.k0 += ATT_KEY_BLOCK) {
        bool is_loaded = false;
        m.keys = (int)(last - m.k0 < ATT_KEY_BLOCK ? last - m.k0 : ATT_KEY_BLOCK);
        for (int i = 0; i < n_q_tiles; i++) {
            q_tile *t = &w->q_tile[i];
            att_mask_tile mask_tile;
            att_mask_tile_make(plan, at, t->q0, t->queries, m.k0, m.keys, &mask_tile);
            if (mask_tile.n_ranges == 0)
                continue;
            if (!is_loaded)
                load_kv_block(plan, at, w, &m);
            is_loaded = true;
            attend_block(plan, at, t, &mask_tile, &m, w);
        }
    }
}

/* Queries [q0, q0 + queries) against all keys. */
static void attend_queries(const att_plan *plan, const att_head_view *at, int64_t q0, int queries, forward_scratch *w)
{
    const att_kernels *kernels = plan->kernels;
    int n_q_tiles = 0;
    for (int done = 0; done < queries; done += kernels->panel, n_q_tiles++) {
        q_tile *t = &w->q_tile[n_q_tiles];
        t->q0 = q0 + done;
        t->done = false;
        t->queries = queries - done < kernels->panel ? queries - done : kernels->panel;
        begin(plan, at, t);
    }
    int64_t first, last;
    att_span(plan, at, q0, queries, &first, &last);
    w->single_block = last - first <= ATT_KEY_BLOCK && first / ATT_KEY_SEGMENT == (last - 1) / ATT_KEY_SEGMENT;
    for (int64_t k = first, end; k < last; k = end) {
        end = k / ATT_KEY_SEGMENT * ATT_KEY_SEGMENT + ATT_KEY_SEGMENT;
        for (int i = 0; i < n_q_tiles; i++)
            begin_segment(&w->q_tile[i], kernels->panel);
        attend_segment(plan, at, n_q_tiles, k, end < last ? end : last, w);
        for (int i = 0; i < n_q_tiles; i++) {
            q_tile *t = &w->q_tile[i];
            if (t->segment.touched)
                kernels->merge(plan->spec.value_dim, t->total.max, t->total.sum, t->total.o, t->segment.max,
                               t->segment.sum, t->segment.o);
        }
    }
    for (int i = 0; i < n_q_tiles; i++)
        finish(plan, at, &w->q_tile[i], w);
}

/* ---- the call */

/* Where an item of a job is: some queries of a head of a sequence. */
typedef struct place {
    int64_t sequence, head, q0, part, parts; /* the part of so many that make up a head */
} place;

static place work_item_of(const forward_job *j, int64_t item)
{
    place p = {.sequence = att_find_range(j->first, j->call->sequences, item)};
    const int64_t local = item - j->first[p.sequence];
    p.parts = (j->first[p.sequence + 1] - j->first[p.sequence]) / j->call->plan->spec.heads;
    p.head = p.parts == 1 ? local : local / p.parts; /* a division takes as long as some key of short sequences */
    p.part = local - p.head * p.parts;
    p.q0 = p.part * j->call->plan->kernels->panel * j->group;
    return p;
}

/* Lists what is fetched while an item is computed: its own output, the queries of the next item, and its share of the
 * keys and values of the next head, the one before it: tasks are taken from the last. Of short sequences nothing: the
 * list would take longer than it saves. */
static void prefetch_next(const forward_job *j, int64_t item, int64_t next, const place *p, const att_head_view *at,
                          forward_scratch *w)
{
    const att_plan *plan = j->call->plan;
    const int64_t each = plan->kernels->panel * j->group, head_begin = item - p->part;
    att_head_view other;
    att_prefetch_clear(&w->prefetch);
    if (plan->words || at->place.tk < ATT_KEY_BLOCK / 2)
        return;
    att_rows_prefetch(&w->prefetch, &at->out, p->q0, att_min(each, at->rows - p->q0), plan->spec.value_dim);
    if (next >= 0) {
        const place of = work_item_of(j, next);
        att_call_head(j->call, of.sequence, of.head, &other);
        att_rows_prefetch(&w->prefetch, &other.q_row, of.q0, att_min(each, other.rows - of.q0), plan->q_dim);
    }
    if (head_begin == 0 || 2 * at->place.tk * (plan->k_dim + plan->spec.value_dim) > plan->ctx->cached)
        return;
    const place of = work_item_of(j, head_begin - 1);
    att_call_head(j->call, of.sequence, of.head, &other);
    if (other.k_row.at == at->k_row.at)
        return;
    const int64_t from = other.place.tk * p->part / p->parts, n = other.place.tk * (p->part + 1) / p->parts - from;
    att_rows_prefetch(&w->prefetch, &other.k_row, from, n, plan->k_dim);
    att_rows_prefetch(&w->prefetch, &other.v, from, n, plan->spec.value_dim);
}

static void run_item(const forward_job *j, int64_t item, int64_t next, forward_scratch *w)
{
    const att_call *call = j->call;
    const int each = call->plan->kernels->panel * j->group;
    const place p = work_item_of(j, item);
    att_head_view at;
    att_call_head(call, p.sequence, p.head, &at);
    at.k_row.copy = at.k_row.copy && !l1_holds_key_rows(call->plan);
    const int64_t last = at.rows - p.q0 < each ? at.rows : p.q0 + each;
    const int64_t used = at.place.tq < p.q0 ? p.q0 : at.place.tq < last ? at.place.tq : last;
    w->block.site = &at;
    w->block.param = at.param;
    prefetch_next(j, item, next, &p, &at, w);
    if (used > p.q0)
        attend_queries(call->plan, &at, p.q0, (int)(used - p.q0), w);
    att_head_clear(call->plan, &at, used, last);
}

static void run_task(void *arg, int64_t i, int thread)
{
    const forward_job *j = arg;
    forward_scratch w;
    lay_out(j->call->plan, att_call_copies(j->call), j->call->max_tk, j->memory + (size_t)thread * j->scratch_count,
            &w);
    /* the last queries of causal attention have the most keys, and what takes long should not begin last */
    const int64_t task = j->tasks - 1 - i, last = j->items * (task + 1) / j->tasks;
    const int64_t before = task > 0 ? j->items * (task - 1) / j->tasks : -1;
    const att_plan *plan = j->call->plan;
    w.block = (att_block){.plan = plan, .words = plan->words, .s = w.s, .stride = plan->kernels->panel};
    att_amx_begin(plan);
    for (int64_t item = j->items * task / j->tasks; item < last && !att_cancelled(plan->ctx); item++)
        run_item(j, item, item + 1 < last ? item + 1 : before, &w);
    att_amx_end(plan);
}

/* Deals blocks of queries to tasks. */
static void deal(forward_job *j)
{
    enum { TASKS_PER_THREAD = 32, TASK_FLOPS = 200000, GROUPS_PER_THREAD = 8 };
    const att_call *call = j->call;
    const att_attention_spec *s = &call->plan->spec;
    const int threads = att_threads(call->plan->ctx);
    double flops = 0;
    const int64_t panels = call->max_tq * call->sequences * s->heads / call->plan->kernels->panel;
    const int64_t group = panels / ((int64_t)GROUPS_PER_THREAD * threads);
    const int most = max_q_tiles(call->plan, att_call_copies(call), call->max_tk);
    j->group = group < 1 ? 1 : group < most ? (int)group : most;
    const int64_t each = (int64_t)j->group * call->plan->kernels->panel;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_head_view at;
        att_call_head(call, b, 0, &at);
        j->first[b] = j->items;
        j->items += (at.rows + each - 1) / each * s->heads;
        flops +=
            2.0 * (double)at.place.tq * (double)at.place.tk * (double)(s->head_dim + s->value_dim) * (double)s->heads;
    }
    j->first[call->sequences] = j->items;
    j->tasks = att_task_count(call->plan->ctx, j->items, flops, TASK_FLOPS, TASKS_PER_THREAD);
}

static att_status attend(const att_call *call)
{
    const att_plan *plan = call->plan;
    att_ctx *ctx = plan->ctx;
    forward_job j = {.call = call, .scratch_count = att_forward_scratch(plan, att_call_copies(call), call->max_tk)};
    j.first = att_alloc(ctx, (size_t)call->sequences + 1, sizeof *j.first);
    j.memory = att_scratch_take(plan, att_size_mul(j.scratch_count, (size_t)att_threads(ctx)));
    const bool memory = j.first && j.memory;
    if (memory) {
        deal(&j);
        if (j.tasks > 0)
            att_parallel_shares(ctx, j.tasks, run_task, &j);
    }
    att_free(ctx, j.first);
    att_scratch_give(plan, j.memory);
    return memory ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_forward(const att_plan *plan, const att_attention_args *args)
{
    att_call call;
    att_status e = att_call_check(plan, args, true, &call);
    e = e ? e : att_transform_begin(&call);
    if (e)
        return e;
    e = att_decode_suits(&call) ? att_decode(&call) : attend(&call);
    att_transform_end(&call);
    if (!e && att_cancelled(plan->ctx))
        e = att_fail(plan->ctx, ATT_ERR_CANCELLED, "attention was cancelled");
    return e;
}
