/* Attention of few queries over many keys: as fast as memory gives the keys and values.
 *
 * All queries of all heads that share keys and values meet a block of them together, so it is read once. The keys are
 * dealt out in segments, so that threads share even one head; partial results are merged in ascending order. Blocks,
 * segments and chains are those of the forward pass: so are the bits. */
#include "attn/attn.h"

#include <math.h>
#include <string.h>

/* One segment of keys for all columns. */
typedef struct group {
    const att_plan *plan;
    int heads, tq, columns;
    att_site site[ATT_FEW]; /* of each head */
} group;

/* What masks leave of a block: for each head, without masks only for the first; and for all columns, where bit i of a
 * key is column i, the head's own cut or one that is merged. */
typedef struct cuts {
    att_cut head[ATT_FEW], merged;
    const att_cut *all;
} cuts;

/* What one thread works in: columns are the queries of a head, head after head. */
typedef struct scratch {
    float *q;             /* [columns][q_dim], scaled */
    float *s;             /* [columns][ATT_KEY_BLOCK] */
    float *rescale;       /* [columns] */
    float *tile, *turned; /* stages on tiles: [ATT_KEY_BLOCK][panel], [q_dim][panel] */
    float *keys, *values; /* [ATT_KEY_BLOCK][dim], converted */
    float *rows;          /* [tq, q_dim], converted */
    float *group, *cuts;  /* two of the one, one of the other: too large for small stacks */
    att_prefetch prefetch;
} scratch;

typedef struct job {
    const att_call *call;
    float *memory; /* scratch of all threads, then the partial results */
    size_t scratch_count, partial_count;
    float *partials;        /* [items]: max [columns], sum [columns], o [columns][o_stride] */
    int64_t *first;         /* [sequences + 1] each sequence's first item: (head of keys, segment) */
    atomic_int *unfinished; /* [sequences * kv_heads] segments */
    int64_t items, tasks, o_stride;
    int columns; /* at most */
} job;

typedef struct partial {
    float *max, *sum, *o;
} partial;

bool att_decode_suits(const att_call *call)
{
    return call->max_tq * (call->plan->spec.heads / call->plan->spec.kv_heads) <= ATT_FEW;
}

/* Products of rows are made as they lie, other scores and modifiers work on tiles, but for a sink. */
static bool is_dot(const att_plan *plan) { return plan->score->flags & ATT_DOT; }
static bool uses_tiles(const att_plan *plan) { return plan->n_modifiers > (plan->sink >= 0) || !is_dot(plan); }

/* ---- memory */

/* Lays scratch memory out from p on and returns how many floats that takes. */
static size_t lay_out(const att_call *call, int columns, float *p, scratch *w)
{
    const att_plan *plan = call->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t panel = plan->kernels->panel, tiles = uses_tiles(plan), converted = s->dtype != ATT_F32;
    const int64_t copied = converted || call->args.cache;
    const att_part parts[] = {
        {&w->q, columns * plan->q_dim},
        {&w->s, columns * ATT_KEY_BLOCK},
        {&w->rescale, ATT_MAX_PANEL},
        {&w->tile, tiles * ATT_KEY_BLOCK * panel},
        {&w->turned, !(is_dot(plan) || att_takes_rows(plan)) * plan->q_dim * panel},
        {&w->keys, !is_dot(plan) * copied * ATT_KEY_BLOCK * plan->k_dim},
        {&w->values, converted * ATT_KEY_BLOCK * s->value_dim},
        {&w->rows, converted * columns * (plan->q_dim > s->value_dim ? plan->q_dim : s->value_dim)},
        {&w->group, 2 * sizeof(group) / sizeof(float)},
        {&w->cuts, sizeof(cuts) / sizeof(float)}};
    return att_lay_out(p, sizeof parts / sizeof parts[0], parts);
}

static partial partial_of(const job *j, int64_t item)
{
    float *p = j->partials + (size_t)item * j->partial_count;
    return (partial){p, p + ATT_FEW, p + 2 * ATT_FEW};
}

/* ---- a block of keys */

static const att_cut *cut_of(const group *g, const cuts *c, int head) { return &c->head[g->plan->n_masks ? head : 0]; }

static void merge_cuts(const group *g, int keys, const att_cut *head, att_cut *all)
{
    uint64_t *bits = all->bits;
    const uint64_t one = att_low_bits(g->tq), every = att_low_bits(g->columns);
    memset(bits, 0, sizeof all->bits);
    for (int h = 0; h < g->heads; h++)
        for (int r = 0; r < head[h].n_runs; r++)
            for (int64_t k = head[h].run[r].first; k < head[h].run[r].last; k++)
                bits[k] |= (att_cut_bits(&head[h], k) & one) << (h * g->tq);
    all->n_runs = 0;
    all->holes = (att_run){0, 0};
    for (int first = 0; first < keys; first += ATT_SUB_TILE) {
        const int last = keys - first < ATT_SUB_TILE ? keys : first + ATT_SUB_TILE;
        uint64_t some = 0, common = every;
        for (int k = first; k < last; k++) {
            some |= bits[k];
            common &= bits[k];
        }
        if (some)
            att_cut_add(all, first, last, common != every);
    }
}

static void cut_columns(const group *g, int64_t k0, int keys, cuts *c)
{
    const bool one = g->heads == 1 || g->plan->n_masks == 0;
    for (int h = 0; h < (one ? 1 : g->heads); h++)
        att_cut_block(g->plan, &g->site[h], 0, g->tq, k0, keys, &c->head[h]);
    if (!one)
        merge_cuts(g, keys, c->head, &c->merged);
    c->all = one ? &c->head[0] : &c->merged;
}

/* Stages on tiles: each head's rows of scores are turned to one, or made there, and turned back. */
static void pass_tiles(const group *g, const cuts *c, int64_t k0, int keys, const scratch *w)
{
    const att_plan *plan = g->plan;
    const att_kernels *kernels = plan->kernels;
    const int64_t last = c->all->run[c->all->n_runs - 1].last;
    float ones[ATT_MAX_PANEL];
    att_floats key = {w->keys, 0}; /* modifiers see none, and no query */
    for (int i = 0; i < ATT_MAX_PANEL; i++)
        ones[i] = 1;
    for (int h = 0; h < g->heads; h++) {
        const att_site *at = &g->site[h];
        if (!is_dot(plan) && (h == 0 || at->k_row.at != g->site[0].k_row.at))
            key = att_rows_read(kernels, &at->k_row, k0, keys, plan->k_dim, w->keys);
        float *s = w->s + (int64_t)h * g->tq * ATT_KEY_BLOCK;
        att_block b = {.plan = plan,
                       .site = at,
                       .cut = cut_of(g, c, h),
                       .k0 = k0,
                       .queries = g->tq,
                       .key = key,
                       .q = w->turned,
                       .s = w->tile,
                       .stride = kernels->panel,
                       .score_param = at->score_param,
                       .modifier_param = at->modifier_param};
        if (is_dot(plan)) {
            kernels->turn_in(g->tq, last, s, ATT_KEY_BLOCK, 1, w->tile);
            att_modify_block(&b);
        } else {
            b.query = att_rows_read(kernels, &at->q_row, 0, g->tq, plan->q_dim, w->rows);
            att_turn_queries(plan, b.query, g->tq, w->turned);
            att_score_block(&b);
        }
        kernels->turn_out(g->tq, last, w->tile, ones, s, ATT_KEY_BLOCK);
    }
}

static void forbid(const group *g, const att_cut *cut, float *s)
{
    for (int r = 0; r < cut->n_runs; r++) {
        const att_run holes = att_cut_holes(cut, r);
        for (int64_t k = holes.first; k < holes.last; k++)
            for (int i = 0; i < g->columns; i++)
                if (!(cut->bits[k] >> i & 1))
                    s[i * ATT_KEY_BLOCK + k] = -INFINITY;
    }
}

/* Weights that are dropped become 0, the others more. */
static void drop(const group *g, const att_cut *cut, int64_t k0, float *s)
{
    const float scale = att_keep_scale(g->plan);
    for (int h = 0; h < g->heads && g->site[h].dropout.threshold; h++) {
        uint64_t keep[ATT_KEY_BLOCK];
        att_keep_block(&(att_block){.plan = g->plan, .site = &g->site[h], .cut = cut, .k0 = k0, .queries = g->tq},
                       keep);
        for (int i = 0; i < g->tq; i++, s += ATT_KEY_BLOCK)
            for (int r = 0; r < cut->n_runs; r++)
                for (int64_t k = cut->run[r].first; k < cut->run[r].last; k++)
                    s[k] = keep[k] >> i & 1 ? scale * s[k] : 0;
    }
}

static void add_unclean(const group *g, const att_cut *cut, const att_clean *clean, att_floats value, const float *p,
                        float *o, int64_t o_stride)
{
    for (int n = 0; n < clean->n_unclean; n++) {
        const int64_t key = clean->unclean[n];
        for (int i = 0; i < g->columns; i++)
            for (int64_t d = 0; (cut->bits[key] >> i & 1) && d < g->plan->spec.value_dim; d++)
                o[i * o_stride + d] += p[i * ATT_KEY_BLOCK + key] * value.at[key * value.stride + d];
    }
}

/* o += p v; where only some columns attend to a key, what is not finite in its value must not reach the others. */
static void weigh(const group *g, const att_cut *cut, int64_t k0, int keys, bool touched, scratch *w, float *o,
                  int64_t o_stride)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->spec.value_dim;
    const att_rows v = att_rows_block(&g->site[0].v, k0);
    const float *rescale = touched ? w->rescale : NULL;
    if (!att_cut_partial(cut)) {
        kernels->few_weigh((int)v.dtype, g->columns, cut->n_runs, cut->run, dim, v.at, v.stride, w->s, ATT_KEY_BLOCK,
                           rescale, o, o_stride, &w->prefetch);
        return;
    }
    const att_floats value = att_rows_read(kernels, &v, 0, keys, dim, w->values);
    att_clean clean;
    att_cut_clean(g->plan, cut, g->columns, value.at, value.stride, dim, &clean);
    kernels->few_weigh(ATT_F32, g->columns, clean.n_runs, clean.run, dim, value.at, value.stride, w->s, ATT_KEY_BLOCK,
                       rescale, o, o_stride, &w->prefetch);
    add_unclean(g, cut, &clean, value, w->s, o, o_stride);
}

/* Of keys [first, last) of a block, which begin a panel. */
static void score(const group *g, const att_rows *k, bool packed, int64_t first, int64_t last, scratch *w)
{
    g->plan->kernels->few_scores((int)k->dtype, g->columns, packed, last - first, g->plan->q_dim, att_row_at(k, first),
                                 packed ? 0 : k->stride, w->q, g->plan->q_dim, w->s + first, ATT_KEY_BLOCK,
                                 &w->prefetch);
}

/* Scores of a block, while its values are prefetched. */
static void multiply(const group *g, const att_cut *cut, int64_t k0, scratch *w)
{
    const att_rows k = att_rows_block(&g->site[0].k_row, k0), v = att_rows_block(&g->site[0].v, k0);
    const int64_t from = cut->run[0].first, end = cut->run[cut->n_runs - 1].last;
    att_prefetch_clear(&w->prefetch);
    att_rows_prefetch(&w->prefetch, &v, from, end - from, g->plan->spec.value_dim);
    for (int r = 0; r < cut->n_runs; r++) {
        const int64_t first = cut->run[r].first, last = cut->run[r].last, packed = att_rows_packed(&k, last);
        const int64_t loose = first > packed ? first : packed;
        if (first < packed)
            score(g, &k, true, first, packed, w);
        if (loose < last)
            score(g, &k, false, loose, last, w);
    }
}

static void soften(const group *g, const att_cut *cut, const scratch *w, const partial *p)
{
    g->plan->kernels->few_soften(g->columns, cut->n_runs, cut->run, w->s, ATT_KEY_BLOCK, p->max, p->sum, w->rescale);
}

/* The keys that are read next: a block of k0 on, of the group's heads. */
static void prefetch_keys(const group *g, int64_t k0, att_prefetch *list)
{
    const int64_t left = g->site[0].place.tk - k0, keys = left < ATT_KEY_BLOCK ? left : ATT_KEY_BLOCK;
    att_prefetch_clear(list);
    if (keys <= 0)
        return;
    const att_rows k = att_rows_block(&g->site[0].k_row, k0);
    const int64_t packed = att_rows_packed(&k, keys), size = (int64_t)att_dtype_size(k.dtype);
    att_prefetch_add(list, k.at, packed * g->plan->q_dim * size, 0, 1);
    if (packed < keys)
        att_rows_prefetch(list, &k, packed, keys - packed, g->plan->q_dim);
}

/* ---- a segment of keys */

/* Queries times the scale, for products. */
static void read_queries(const group *g, const scratch *w)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->q_dim;
    for (int i = 0; is_dot(g->plan) && i < g->columns; i++) {
        const att_floats q = att_rows_read(kernels, &g->site[i / g->tq].q_row, i % g->tq, 1, dim, w->rows);
        kernels->scale(dim, g->plan->spec.scale, q.at, w->q + i * dim);
    }
}

/* Leaves the blocks of which masks leave anything, of any head. */
static void narrow(const group *g, int64_t *first, int64_t *last)
{
    int64_t from = *last, to = *first;
    for (int h = 0; h < g->heads; h++) {
        int64_t a, b;
        att_span(g->plan, &g->site[h], 0, g->tq, &a, &b);
        from = a < from ? a : from;
        to = b > to ? b : to;
    }
    *first = from > *first ? from : *first;
    *last = to < *last ? to : *last;
}

/* Keys [first, last) into a partial result; a maximum of -inf and a sum of 0 where none attends. next: the group whose
 * keys, from next_key on, are read after them. */
static void attend_segment(const job *j, const group *g, int64_t first, int64_t last, scratch *w, partial p,
                           const group *next, int64_t next_key)
{
    bool touched = false;
    cuts *c = (cuts *)w->cuts;
    for (int i = 0; i < g->columns; i++) {
        p.max[i] = -INFINITY;
        p.sum[i] = 0;
    }
    narrow(g, &first, &last);
    for (int64_t k0 = first; k0 < last; k0 += ATT_KEY_BLOCK) {
        const int keys = (int)(last - k0 < ATT_KEY_BLOCK ? last - k0 : ATT_KEY_BLOCK);
        cut_columns(g, k0, keys, c);
        if (c->all->n_runs == 0)
            continue;
        if (is_dot(g->plan))
            multiply(g, c->all, k0, w);
        if (uses_tiles(g->plan))
            pass_tiles(g, c, k0, keys, w);
        forbid(g, c->all, w->s);
        soften(g, c->all, w, &p);
        drop(g, c->all, k0, w->s);
        const bool more = k0 + keys < last;
        prefetch_keys(more ? g : next, more ? k0 + keys : next_key, &w->prefetch);
        weigh(g, c->all, k0, keys, touched, w, p.o, j->o_stride);
        touched = true;
    }
    if (!touched)
        memset(p.o, 0, (size_t)(g->columns * j->o_stride) * sizeof *p.o);
}

/* All segments of a head of keys, in ascending order, and out and log-sum-exp. */
static void finish(const job *j, const group *g, int64_t first, int64_t segments, const scratch *w)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->spec.value_dim;
    const partial total = partial_of(j, first);
    float max[ATT_MAX_PANEL] = {0}, sum[ATT_MAX_PANEL] = {0}, lse[ATT_MAX_PANEL], left[ATT_MAX_PANEL];
    for (int i = 0; i < g->columns; i++) {
        for (int64_t s = 1; s < segments; s++) {
            const partial p = partial_of(j, first + s);
            kernels->few_merge(dim, &total.max[i], &total.sum[i], total.o + i * j->o_stride, p.max[i], p.sum[i],
                               p.o + i * j->o_stride);
        }
        max[i] = total.max[i];
        sum[i] = total.sum[i];
    }
    for (int i = 0; i < g->columns; i++)
        left[i] = 1;
    for (int h = 0; g->plan->sink >= 0 && h < g->heads; h++)
        att_add_sink(g->plan, &g->site[h], g->tq, max + h * g->tq, sum + h * g->tq, left + h * g->tq);
    kernels->close_rows(max, sum, w->rescale, lse);
    for (int i = 0; i < g->columns; i++) {
        const att_site *at = &g->site[i / g->tq];
        const int64_t q = i % g->tq;
        kernels->few_close(dim, w->rescale[i] * left[i], total.o + i * j->o_stride);
        att_rows_write(kernels, total.o + i * j->o_stride, dim, &at->out, q, 1, dim, false, NULL);
        if (at->lse)
            at->lse[q * at->lse_stride] = lse[i];
    }
    for (int h = 0; h < g->heads; h++)
        att_site_clear(g->plan, &g->site[h], g->tq, g->site[h].rows);
}

/* Where an item lies: a segment of a head of keys. */
typedef struct spot {
    int64_t sequence, kv_head, segment, segments;
} spot;

static spot find(const job *j, int64_t item)
{
    const int64_t sequence = att_find(j->first, j->call->sequences, item), local = item - j->first[sequence];
    const int64_t segments = (j->first[sequence + 1] - j->first[sequence]) / j->call->plan->spec.kv_heads;
    return (spot){sequence, local / segments, local % segments, segments};
}

/* The heads that share keys and values. */
static void take_group(const att_call *call, spot at, group *g)
{
    const att_attention_spec *s = &call->plan->spec;
    g->plan = call->plan;
    g->heads = (int)(s->heads / s->kv_heads);
    for (int h = 0; h < g->heads; h++)
        att_call_site(call, at.sequence, at.kv_head * g->heads + h, &g->site[h]);
    g->tq = (int)g->site[0].place.tq;
    g->columns = g->heads * g->tq;
}

/* The block in which the first key of an item is; of no queries there is none. */
static int64_t begin_of(const group *g, spot at)
{
    int64_t first, last;
    if (g->tq == 0)
        return INT64_MAX;
    att_span(g->plan, &g->site[0], 0, g->tq, &first, &last);
    return att_max(first, at.segment * ATT_KEY_SEGMENT);
}

static void run_item(job *j, int64_t item, spot at, const group *g, scratch *w, const group *next, int64_t next_key)
{
    const int64_t first = at.segment * ATT_KEY_SEGMENT, tk = g->site[0].place.tk;
    read_queries(g, w);
    if (g->columns > 0)
        attend_segment(j, g, first, tk - first < ATT_KEY_SEGMENT ? tk : first + ATT_KEY_SEGMENT, w, partial_of(j, item),
                       next, next_key);
    if (atomic_fetch_sub(&j->unfinished[at.sequence * g->plan->spec.kv_heads + at.kv_head], 1) == 1)
        finish(j, g, item - at.segment, at.segments, w);
}

static void run_task(void *arg, int64_t i, int thread)
{
    job *j = arg;
    const att_plan *plan = j->call->plan;
    scratch w;
    lay_out(j->call, j->columns, j->memory + (size_t)thread * j->scratch_count, &w);
    int64_t item = j->items * i / j->tasks;
    const int64_t last = j->items * (i + 1) / j->tasks;
    group *now = (group *)w.group, *next = now + 1;
    spot at = find(j, item);
    take_group(j->call, at, now);
    for (; item < last && !att_cancelled(plan->ctx); item++) {
        const bool more = item + 1 < last;
        const spot then = more ? find(j, item + 1) : at;
        if (more)
            take_group(j->call, then, next);
        run_item(j, item, at, now, &w, more ? next : now, more ? begin_of(next, then) : INT64_MAX);
        group *const done = now;
        now = next, next = done, at = then;
    }
}

static int64_t segments_of(int64_t tk) { return tk > 0 ? (tk + ATT_KEY_SEGMENT - 1) / ATT_KEY_SEGMENT : 1; }

/* Sizes that depend on neither threads nor memory. */
static job job_of(const att_call *call)
{
    const att_attention_spec *s = &call->plan->spec;
    scratch w;
    job j = {.call = call, .columns = (int)(call->max_tq * (s->heads / s->kv_heads))};
    j.o_stride = att_round_up(s->value_dim, 16);
    j.scratch_count = lay_out(call, j.columns, NULL, &w);
    j.partial_count = (size_t)(2 * ATT_FEW + j.columns * j.o_stride);
    return j;
}

/* Deals segments to tasks. */
static void deal(job *j)
{
    enum { TASKS_PER_THREAD = 64, TASK_NUMBERS = 50000 /* read */ };
    const att_call *call = j->call;
    const att_attention_spec *s = &call->plan->spec;
    double numbers = 0;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_site at;
        att_call_site(call, b, 0, &at);
        const int64_t tk = at.place.tk, segments = segments_of(tk);
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
    const job j = job_of(call);
    size_t items = 0;
    for (int64_t b = 0; b < call->sequences; b++) {
        att_site at;
        att_call_site(call, b, 0, &at);
        items += (size_t)(segments_of(at.place.tk) * call->plan->spec.kv_heads);
    }
    return (j.scratch_count * (size_t)att_threads(call->plan->ctx) + items * j.partial_count) * sizeof(float);
}

att_status att_decode(const att_call *call)
{
    const att_plan *plan = call->plan;
    att_ctx *ctx = plan->ctx;
    job j = job_of(call);
    j.first = att_alloc(ctx, (size_t)call->sequences + 1, sizeof *j.first);
    j.unfinished =
        att_alloc(ctx, att_size_mul((size_t)call->sequences, (size_t)plan->spec.kv_heads), sizeof *j.unfinished);
    att_status e = ATT_ERR_MEMORY;
    if (j.first && j.unfinished) {
        deal(&j);
        const size_t fixed = j.scratch_count * (size_t)att_threads(ctx);
        j.memory = att_scratch_take(plan, fixed + att_size_mul((size_t)j.items, j.partial_count));
        if (j.memory) {
            j.partials = j.memory + fixed;
            if (j.tasks > 0)
                att_parallel_partition(ctx, j.tasks, run_task, &j);
            e = ATT_OK;
        }
    }
    att_scratch_give(plan, j.memory);
    att_free(ctx, j.unfinished);
    att_free(ctx, j.first);
    return e;
}
