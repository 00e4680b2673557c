/* Attention forward: softmax(S) V in one pass over the keys, without S.
 *
 * For a block of queries, block after block of keys: scores, then softmax with a running maximum and sum, and the
 * output so far is rescaled when the maximum grows (Milakov, Gimelshein 2018; Dao et al. 2022). A segment of keys has
 * a partial result of its own, merged with the one before it by their log-sum-exp. */
#include "attn/prologue.h"
#include "base/math.h"

#include <math.h>
#include <string.h>

/* Softmax and output so far of one panel of queries: [panel], [panel], [value_dim][panel]. */
typedef struct partial {
    float *max, *sum, *o;
    bool touched;
} partial;

/* A panel of queries on its way. */
typedef struct strip {
    int64_t q0;
    int queries;
    bool done;                     /* its output is written */
    float *q;                      /* [q_dim][panel], turned */
    float *rows;                   /* [panel, q_dim or value_dim], where they are not f32 */
    att_floats query;              /* [queries, q_dim] */
    partial total, segment, *into; /* into: what this segment's keys go to, total where it is the first */
} strip;

/* What one thread works in. */
typedef struct scratch {
    float *s, *rescale;   /* [keys of a block][panel], [panel] */
    float *keys, *values; /* [ATT_KEY_BLOCK][k_dim] and [value_dim], where they are copied */
    float *value_words,
        *weight_words;     /* [ATT_KEY_BLOCK / 2][value_dim] and [panel], where bf16 is multiplied in pairs */
    att_prefetch prefetch; /* what the next items need */
    att_block block;       /* what all blocks have in common; of an item: site and its parameters */
    bool once;             /* the keys of its queries are a single block */
    strip strip[ATT_MAX_GROUP];
} scratch;

typedef struct job {
    const att_call *call;
    float *memory;
    size_t scratch_count; /* floats of one thread */
    int group;            /* panels of queries in an item */
    int64_t items, tasks; /* groups of queries of all heads and sequences, and the tasks they are dealt to */
    int64_t *first;       /* [sequences + 1] each sequence's first item */
} job;

/* ---- memory */

/* Panels of queries that share a block of keys, at most: many where it is copied, or where the keys and values of a
 * head do not stay in the second cache, as long as these panels do; and for scores that are no dot products, whose
 * memory is the same for any number of keys. */
static int most_in_group(const att_plan *plan, bool copies, int64_t tk)
{
    const int64_t cached = plan->ctx->cached, numbers = plan->k_dim + plan->spec.value_dim;
    const bool shared = copies || !(plan->score->flags & ATT_DOT) || tk * numbers > cached / 2;
    const int64_t fit = cached / (plan->kernels->panel * (plan->q_dim + plan->spec.value_dim));
    return !shared || fit < 1 ? 1 : fit < ATT_MAX_GROUP ? (int)fit : ATT_MAX_GROUP;
}

/* Does the first cache hold a line of each key that a tile of scores reads side by side, wherever keys lie? */
static bool keys_stay(const att_plan *plan) { return plan->ctx->ways > plan->kernels->rows; }

/* Lays scratch memory out from p on and returns how many floats that takes. */
static size_t lay_out(const att_plan *plan, bool copies, int64_t tk, float *p, scratch *w)
{
    const att_attention_spec *s = &plan->spec;
    const int64_t panel = plan->kernels->panel, longest = plan->q_dim > s->value_dim ? plan->q_dim : s->value_dim;
    const int64_t converted = s->dtype == ATT_F32 ? 0 : 1;
    const att_part shared[] = {{&w->s, ATT_KEY_BLOCK * panel},
                               {&w->rescale, panel},
                               {&w->keys, copies * ATT_KEY_BLOCK * plan->k_dim},
                               {&w->values, copies * ATT_KEY_BLOCK * s->value_dim},
                               {&w->value_words, plan->words * ATT_KEY_BLOCK / 2 * s->value_dim},
                               {&w->weight_words, plan->words * ATT_KEY_BLOCK / 2 * panel}};
    att_part parts[sizeof shared / sizeof *shared + 8 * ATT_MAX_GROUP]; /* few are used, and clearing all takes time */
    int n = sizeof shared / sizeof *shared;
    memcpy(parts, shared, sizeof shared);
    const strip *end = w->strip + most_in_group(plan, copies, tk);
    for (strip *t = w->strip; t < end; t++) {
        parts[n].at = &t->q, parts[n++].count = !att_takes_rows(plan) * plan->q_dim * panel;
        parts[n].at = &t->rows, parts[n++].count = converted * longest * panel;
        for (int i = 0; i < 2; i++) {
            partial *of = i ? &t->segment : &t->total;
            parts[n].at = &of->max, parts[n++].count = panel;
            parts[n].at = &of->sum, parts[n++].count = panel;
            parts[n].at = &of->o, parts[n++].count = s->value_dim * panel;
        }
    }
    return att_lay_out(p, n, parts);
}

size_t att_plan_scratch(const att_plan *plan, bool copies, int64_t tk)
{
    scratch w;
    return lay_out(plan, copies, tk, NULL, &w);
}

/* ---- one strip of queries */

/* Its o is written when the first keys are. */
static void clear(partial *p, int panel)
{
    for (int i = 0; i < panel; i++)
        p->max[i] = -INFINITY;
    memset(p->sum, 0, (size_t)panel * sizeof *p->sum);
    p->touched = false;
}

static void begin(const att_plan *plan, const att_site *at, strip *t)
{
    if (plan->words) {
        t->query = att_words_of_rows(plan->kernels, &at->q_row, t->q0, t->queries, plan->q_dim, t->rows);
        plan->kernels->turn_words(t->queries, att_words_in(plan->q_dim), t->query.at, t->query.stride, t->q);
    } else {
        t->query = att_rows_read(plan->kernels, &at->q_row, t->q0, t->queries, plan->q_dim, t->rows);
        att_turn_queries(plan, t->query, t->queries, t->q);
    }
    clear(&t->total, plan->kernels->panel);
}

static void open_segment(strip *t, int panel)
{
    t->segment.touched = false;
    t->into = t->total.touched ? &t->segment : &t->total;
    if (t->into == &t->segment)
        clear(&t->segment, panel);
}

/* A block of keys and values, from k0 on, as it is met by several strips. */
typedef struct met {
    int64_t k0;
    int keys;
    att_floats key, value;
    att_clean unclean; /* of values in words */
} met;

static void meet(const att_plan *plan, const att_site *at, const scratch *w, met *m)
{
    const att_kernels *kernels = plan->kernels;
    const int64_t value_dim = plan->spec.value_dim;
    if (plan->words) {
        m->key = att_words_of_rows(kernels, &at->k_row, m->k0, m->keys, plan->k_dim, w->keys);
        att_words_of_values(plan, &at->v, m->k0, m->keys, w->value_words, &m->unclean);
        if (m->unclean.n_unclean)
            m->value = att_rows_read(kernels, &at->v, m->k0, m->keys, value_dim, w->values);
    } else {
        m->key = att_rows_read(kernels, &at->k_row, m->k0, m->keys, plan->k_dim, w->keys);
        m->value = att_rows_read(kernels, &at->v, m->k0, m->keys, value_dim, w->values);
    }
}

/* From maxima and sums: what o is multiplied with, into rescale, and the log-sum-exp. */
static void close_strip(const att_plan *plan, const att_site *at, const strip *t, const scratch *w)
{
    const partial *p = &t->total;
    float lse[ATT_MAX_PANEL], left[ATT_MAX_PANEL];
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
static bool suits_rows(const att_plan *plan, const att_rows *out, const att_clean *clean, const met *m,
                       const scratch *w)
{
    const bool whole = plan->spec.value_dim % plan->kernels->panel == 0 && m->value.stride != 0;
    const bool single = w->once && clean->n_runs == 1 && clean->n_unclean == 0;
    return plan->kernels->weigh_rows && single && whole && out->dtype == ATT_F32;
}

/* o += V'P' in words; unclean: values that counted as 0 there. */
static void weigh_words(const att_plan *plan, const strip *t, const att_cut *cut, const met *m, bool rounded,
                        const scratch *w, att_clean *unclean)
{
    plan->kernels->word_weigh(cut->n_runs, cut->run, plan->spec.value_dim, w->value_words, rounded ? NULL : w->s,
                              w->weight_words, t->into->touched ? w->rescale : NULL, t->into->o);
    unclean->n_unclean = 0;
    for (int i = 0; i < m->unclean.n_unclean; i++)
        for (int r = 0; r < cut->n_runs; r++)
            if (cut->run[r].first <= m->unclean.unclean[i] && m->unclean.unclean[i] < cut->run[r].last)
                unclean->unclean[unclean->n_unclean++] = m->unclean.unclean[i];
}

/* o += V'P', where 0 x NaN must not count. */
static void weigh(const att_plan *plan, const att_site *at, strip *t, const att_cut *cut, const met *m, bool rounded,
                  scratch *w)
{
    const att_kernels *kernels = plan->kernels;
    const int64_t dim = plan->spec.value_dim;
    const att_floats v = m->value;
    att_clean clean;
    if (plan->words) {
        weigh_words(plan, t, cut, m, rounded, w, &clean);
    } else {
        att_cut_clean(plan, cut, t->queries, v.at, v.stride, dim, &clean);
        t->done = suits_rows(plan, &at->out, &clean, m, w);
        if (t->done) {
            close_strip(plan, at, t, w);
            kernels->weigh_rows(t->queries, clean.run[0], dim, v.at, v.stride, w->s, w->rescale,
                                att_row_at(&at->out, t->q0), at->out.stride, &w->prefetch);
            return;
        }
        kernels->weigh(t->queries, clean.n_runs, clean.run, dim, v.at, v.stride, w->s,
                       t->into->touched ? w->rescale : NULL, t->into->o, &w->prefetch);
    }
    att_add_unclean(plan, cut, &clean, t->queries, v.at, v.stride, dim, w->s, kernels->panel, t->into->o);
}

static void attend_block(const att_plan *plan, const att_site *at, strip *t, const att_cut *cut, const met *m,
                         scratch *w)
{
    partial *p = t->into;
    const att_kernels *kernels = plan->kernels;
    att_block *b = &w->block;
    b->cut = cut;
    b->q0 = t->q0;
    b->k0 = m->k0;
    b->queries = t->queries;
    b->query = t->query;
    b->key = m->key;
    b->q = t->q;
    const float scale = plan->late ? plan->spec.scale : 1;
    const bool rounded = plan->words && !at->dropout.threshold && !m->unclean.n_unclean; /* nobody needs floats */
    uint64_t keep[ATT_KEY_BLOCK];
    att_score_block(b);
    if (rounded)
        kernels->word_soften(t->queries, scale, cut->n_runs, cut->run, w->s, p->max, p->sum, w->rescale,
                             w->weight_words);
    else
        kernels->soften(t->queries, scale, cut->n_runs, cut->run, w->s, p->max, p->sum, w->rescale);
    att_keep_block(b, keep);
    att_drop_block(b, keep, w->s);
    weigh(plan, at, t, cut, m, rounded, w);
    p->touched = true;
}

void att_site_clear(const att_plan *plan, const att_site *at, int64_t first, int64_t last)
{
    att_rows_clear(&at->out, first, last, plan->spec.value_dim);
    for (int64_t i = first; at->lse && i < last; i++)
        at->lse[i * at->lse_stride] = -INFINITY;
}

void att_add_sink(const att_plan *plan, const att_site *at, int rows, float *max, float *sum, float *left)
{
    for (int i = 0; i < rows; i++) {
        left[i] = 1;
        if (sum[i] == 0)
            continue;
        const double sink = (double)at->modifier_param[plan->sink].data[0] * ATT_LOG2_E;
        const double before = max[i], after = att_fmax(before, sink);
        left[i] = (float)att_exp2(before - after);
        sum[i] = sum[i] * left[i] + (float)att_exp2(sink - after);
        max[i] = (float)after;
    }
}

/* o / sum, and the log-sum-exp; a row that attended to nothing gets 0 and -inf. */
static void finish(const att_plan *plan, const att_site *at, const strip *t, const scratch *w)
{
    const att_kernels *kernels = plan->kernels;
    const partial *p = &t->total;
    const int64_t value_dim = plan->spec.value_dim;
    if (t->done)
        return;
    if (!p->touched) {
        att_site_clear(plan, at, t->q0, t->q0 + t->queries);
        return;
    }
    close_strip(plan, at, t, w);
    if (at->out.dtype == ATT_F32) {
        kernels->turn_out(t->queries, value_dim, p->o, w->rescale, att_row_at(&at->out, t->q0), at->out.stride);
    } else {
        kernels->turn_out(t->queries, value_dim, p->o, w->rescale, t->rows, value_dim);
        att_rows_write(kernels, t->rows, value_dim, &at->out, t->q0, t->queries, value_dim, false, NULL);
    }
}

/* ---- a group of strips, which meets each block of keys together */

/* Keys [first, last), a segment. */
static void attend_segment(const att_plan *plan, const att_site *at, int n_strips, int64_t first, int64_t last,
                           scratch *w)
{
    met m;
    for (m.k0 = first; m.k0 < last; m.k0 += ATT_KEY_BLOCK) {
        bool is_met = false;
        m.keys = (int)(last - m.k0 < ATT_KEY_BLOCK ? last - m.k0 : ATT_KEY_BLOCK);
        for (int i = 0; i < n_strips; i++) {
            strip *t = &w->strip[i];
            att_cut cut;
            att_cut_block(plan, at, t->q0, t->queries, m.k0, m.keys, &cut);
            if (cut.n_runs == 0)
                continue;
            if (!is_met)
                meet(plan, at, w, &m);
            is_met = true;
            attend_block(plan, at, t, &cut, &m, w);
        }
    }
}

/* Queries [q0, q0 + queries) against all keys. */
static void attend_queries(const att_plan *plan, const att_site *at, int64_t q0, int queries, scratch *w)
{
    const att_kernels *kernels = plan->kernels;
    int n_strips = 0;
    for (int done = 0; done < queries; done += kernels->panel, n_strips++) {
        strip *t = &w->strip[n_strips];
        t->q0 = q0 + done;
        t->done = false;
        t->queries = queries - done < kernels->panel ? queries - done : kernels->panel;
        begin(plan, at, t);
    }
    int64_t first, last;
    att_span(plan, at, q0, queries, &first, &last);
    w->once = last - first <= ATT_KEY_BLOCK && first / ATT_KEY_SEGMENT == (last - 1) / ATT_KEY_SEGMENT;
    for (int64_t k = first, end; k < last; k = end) {
        end = k / ATT_KEY_SEGMENT * ATT_KEY_SEGMENT + ATT_KEY_SEGMENT;
        for (int i = 0; i < n_strips; i++)
            open_segment(&w->strip[i], kernels->panel);
        attend_segment(plan, at, n_strips, k, end < last ? end : last, w);
        for (int i = 0; i < n_strips; i++) {
            strip *t = &w->strip[i];
            if (t->segment.touched)
                kernels->merge(plan->spec.value_dim, t->total.max, t->total.sum, t->total.o, t->segment.max,
                               t->segment.sum, t->segment.o);
        }
    }
    for (int i = 0; i < n_strips; i++)
        finish(plan, at, &w->strip[i], w);
}

/* ---- the call */

/* Where an item of a job is: some queries of a head of a sequence. */
typedef struct place {
    int64_t sequence, head, q0, part, parts; /* the part of so many that make up a head */
} place;

static place place_of(const job *j, int64_t item)
{
    place p = {.sequence = att_find(j->first, j->call->sequences, item)};
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
static void look_ahead(const job *j, int64_t item, int64_t next, const place *p, const att_site *at, scratch *w)
{
    const att_plan *plan = j->call->plan;
    const int64_t each = plan->kernels->panel * j->group, head_begin = item - p->part;
    att_site other;
    att_prefetch_clear(&w->prefetch);
    if (plan->words || at->place.tk < ATT_KEY_BLOCK / 2)
        return;
    att_rows_prefetch(&w->prefetch, &at->out, p->q0, att_min(each, at->rows - p->q0), plan->spec.value_dim);
    if (next >= 0) {
        const place of = place_of(j, next);
        att_call_site(j->call, of.sequence, of.head, &other);
        att_rows_prefetch(&w->prefetch, &other.q_row, of.q0, att_min(each, other.rows - of.q0), plan->q_dim);
    }
    if (head_begin == 0 || 2 * at->place.tk * (plan->k_dim + plan->spec.value_dim) > plan->ctx->cached)
        return;
    const place of = place_of(j, head_begin - 1);
    att_call_site(j->call, of.sequence, of.head, &other);
    if (other.k_row.at == at->k_row.at)
        return;
    const int64_t from = other.place.tk * p->part / p->parts, n = other.place.tk * (p->part + 1) / p->parts - from;
    att_rows_prefetch(&w->prefetch, &other.k_row, from, n, plan->k_dim);
    att_rows_prefetch(&w->prefetch, &other.v, from, n, plan->spec.value_dim);
}

static void run_item(const job *j, int64_t item, int64_t next, scratch *w)
{
    const att_call *call = j->call;
    const int each = call->plan->kernels->panel * j->group;
    const place p = place_of(j, item);
    att_site at;
    att_call_site(call, p.sequence, p.head, &at);
    at.k_row.copy = at.k_row.copy && !keys_stay(call->plan);
    const int64_t last = at.rows - p.q0 < each ? at.rows : p.q0 + each;
    const int64_t used = at.place.tq < p.q0 ? p.q0 : at.place.tq < last ? at.place.tq : last;
    w->block.site = &at;
    w->block.score_param = at.score_param;
    w->block.modifier_param = at.modifier_param;
    look_ahead(j, item, next, &p, &at, w);
    if (used > p.q0)
        attend_queries(call->plan, &at, p.q0, (int)(used - p.q0), w);
    att_site_clear(call->plan, &at, used, last);
}

static void run_task(void *arg, int64_t i, int thread)
{
    const job *j = arg;
    scratch w;
    lay_out(j->call->plan, att_call_copies(j->call), j->call->max_tk, j->memory + (size_t)thread * j->scratch_count,
            &w);
    /* the last queries of causal attention have the most keys, and what takes long should not begin last */
    const int64_t task = j->tasks - 1 - i, last = j->items * (task + 1) / j->tasks;
    const int64_t before = task > 0 ? j->items * (task - 1) / j->tasks : -1;
    const att_plan *plan = j->call->plan;
    w.block = (att_block){.plan = plan, .words = plan->words, .s = w.s, .stride = plan->kernels->panel};
    att_tiles_begin(plan);
    for (int64_t item = j->items * task / j->tasks; item < last && !att_cancelled(plan->ctx); item++)
        run_item(j, item, item + 1 < last ? item + 1 : before, &w);
    att_tiles_end(plan);
}

/* Deals blocks of queries to tasks. */
static void deal(job *j)
{
    enum { TASKS_PER_THREAD = 32, TASK_FLOPS = 200000, GROUPS_PER_THREAD = 8 };
    const att_call *call = j->call;
    const att_attention_spec *s = &call->plan->spec;
    const int threads = att_threads(call->plan->ctx);
    double flops = 0;
    const int64_t panels = call->max_tq * call->sequences * s->heads / call->plan->kernels->panel;
    const int64_t group = panels / ((int64_t)GROUPS_PER_THREAD * threads);
    const int most = most_in_group(call->plan, att_call_copies(call), call->max_tk);
    j->group = group < 1 ? 1 : group < most ? (int)group : most;
    const int64_t each = (int64_t)j->group * call->plan->kernels->panel;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_site at;
        att_call_site(call, b, 0, &at);
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
    job j = {.call = call, .scratch_count = att_plan_scratch(plan, att_call_copies(call), call->max_tk)};
    j.first = att_alloc(ctx, (size_t)call->sequences + 1, sizeof *j.first);
    j.memory = att_scratch_take(plan, att_size_mul(j.scratch_count, (size_t)att_threads(ctx)));
    const bool memory = j.first && j.memory;
    if (memory) {
        deal(&j);
        if (j.tasks > 0)
            att_parallel_partition(ctx, j.tasks, run_task, &j);
    }
    att_free(ctx, j.first);
    att_scratch_give(plan, j.memory);
    return memory ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_forward(const att_plan *plan, const att_attention_args *args)
{
    att_call call;
    att_status e = att_call_check(plan, args, true, &call);
    e = e ? e : att_prologue_begin(&call);
    if (e)
        return e;
    e = att_decode_suits(&call) ? att_decode(&call) : attend(&call);
    att_prologue_end(&call);
    if (!e && att_cancelled(plan->ctx))
        e = att_fail(plan->ctx, ATT_ERR_CANCELLED, "attention was cancelled");
    return e;
}
