/* Decodes one segment of keys: the queries of all heads that share keys and values process a block of them together, so
 * that it is read once. Blocks and chains of operations are those of tiles.c, and so are the bits. */
#include "attn/block/block.h"
#include "attn/call/scratch.h"
#include "attn/forward/decode.h"

#include <math.h>
#include <string.h>

/* The mask tiles of a block: one for each head, or without masks only for the first; and one for all columns, where bit
 * i of a key is column i. */
typedef struct mask_tiles {
    att_mask_tile head[ATT_DECODE_QUERIES], merged;
    const att_mask_tile *all; /* merged, or the first head's if there are no others */
} mask_tiles;

/* Returns whether the score is a dot product, which is computed from rows. Other scores, functions of products, and
 * modifiers except a sink work on tiles. */
static bool is_dot(const att_plan *plan) { return plan->builtin->is_dot; }
static bool uses_tiles(const att_plan *plan)
{
    return plan->modifiers.n > (plan->modifiers.sink >= 0) || !is_dot(plan) || att_score_changes_products(plan);
}
static bool reads_keys(const att_plan *plan) { return !is_dot(plan) || plan->score.term; }

/* ---- memory */

size_t att_decode_lay_out(const att_call *call, int columns, float *p, att_decode_scratch *w)
{
    const att_plan *plan = call->plan;
    const att_attention_spec *s = &plan->spec;
    const int64_t panel = plan->kernels->q_tile, tiles = uses_tiles(plan), converted = s->dtype != ATT_F32;
    const int64_t copied = converted || call->args.cache, terms = plan->score.term != NULL;
    const att_scratch_part parts[] = {
        {&w->q, columns * plan->q_dim},
        {&w->s, columns * ATT_KEY_BLOCK},
        {&w->rescale, ATT_MAX_Q_TILE},
        {&w->tile, tiles * ATT_KEY_BLOCK * panel},
        {&w->packed_q, !(is_dot(plan) || att_score_reads_query_rows(plan)) * plan->q_dim * panel},
        {&w->keys, reads_keys(plan) * copied * ATT_KEY_BLOCK * plan->k_dim},
        {&w->terms, terms * (panel + ATT_KEY_BLOCK)},
        {&w->values, converted * ATT_KEY_BLOCK * s->value_dim},
        {&w->rows, converted * columns * (plan->q_dim > s->value_dim ? plan->q_dim : s->value_dim)},
        {&w->groups, 2 * sizeof(att_decode_group) / sizeof(float)},
        {&w->masks, sizeof(mask_tiles) / sizeof(float)}};
    return att_scratch_lay_out(p, sizeof parts / sizeof parts[0], parts);
}

/* ---- a block of keys */

static const att_mask_tile *mask_of(const att_decode_group *g, const mask_tiles *c, int head)
{
    return &c->head[g->plan->masks.n ? head : 0];
}

/* Merges the heads' masks into `all`: bit i of a key states that column i attends to it. */
static void merge_masks(const att_decode_group *g, int keys, const att_mask_tile *head, att_mask_tile *all)
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

static void make_masks(const att_decode_group *g, int64_t k0, int keys, mask_tiles *c)
{
    const bool one = g->heads == 1 || g->plan->masks.n == 0;
    for (int h = 0; h < (one ? 1 : g->heads); h++)
        att_mask_tile_make(g->plan, &g->head[h], 0, g->tq, k0, keys, &c->head[h]);
    if (!one)
        merge_masks(g, keys, c->head, &c->merged);
    c->all = one ? &c->head[0] : &c->merged;
}

/* Applies stages that work on tiles: packs each head's rows of products into a tile, or computes its scores there, and
 * unpacks them. */
static void apply_stages(const att_decode_group *g, const mask_tiles *c, int64_t k0, int keys,
                         const att_decode_scratch *w)
{
    const att_plan *plan = g->plan;
    const att_kernels *kernels = plan->kernels;
    const int64_t last = c->all->range[c->all->n_ranges - 1].last;
    float ones[ATT_MAX_Q_TILE];
    att_floats key = {w->keys, 0}; /* modifiers do not read it */
    for (int i = 0; i < ATT_MAX_Q_TILE; i++)
        ones[i] = 1;
    for (int h = 0; h < g->heads; h++) {
        const att_head_view *at = &g->head[h];
        if (reads_keys(plan) && (h == 0 || at->k_row.at != g->head[0].k_row.at)) {
            key = att_rows_read(kernels, &at->k_row, k0, keys, plan->k_dim, w->keys);
            att_row_terms(plan, key, keys, w->terms + kernels->q_tile);
        }
        float *s = w->s + (int64_t)h * g->tq * ATT_KEY_BLOCK;
        att_block b = {.plan = plan,
                       .head = at,
                       .mask_tile = mask_of(g, c, h),
                       .k0 = k0,
                       .queries = g->tq,
                       .key = key,
                       .q = w->packed_q,
                       .query_term = w->terms,
                       .precomputed = plan->score.term ? w->terms + kernels->q_tile : NULL,
                       .s = w->tile,
                       .stride = kernels->q_tile,
                       .param = at->param};
        if (reads_keys(plan))
            b.query = att_rows_read(kernels, &at->q_row, 0, g->tq, plan->q_dim, w->rows);
        att_row_terms(plan, b.query, g->tq, w->terms);
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

static void apply_mask(const att_decode_group *g, const att_mask_tile *mask, float *s)
{
    for (int r = 0; r < mask->n_ranges; r++) {
        const att_range partial = att_mask_tile_partial(mask, r);
        for (int64_t k = partial.first; k < partial.last; k++)
            for (int i = 0; i < g->columns; i++)
                if (!(mask->bits[k] >> i & 1))
                    s[i * ATT_KEY_BLOCK + k] = -INFINITY;
    }
}

/* Sets dropped weights to 0 and scales the others. */
static void apply_dropout(const att_decode_group *g, const att_mask_tile *mask, int64_t k0, float *s)
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

/* Adds the values that att_finite_ranges_of has left out, for the columns that attend to them. */
static void add_nonfinite(const att_decode_group *g, const att_mask_tile *mask, const att_finite_ranges *finite,
                          att_floats value, const float *p, float *o, int64_t o_stride)
{
    for (int n = 0; n < finite->n_nonfinite; n++) {
        const int64_t key = finite->nonfinite[n];
        for (int i = 0; i < g->columns; i++)
            for (int64_t d = 0; (mask->bits[key] >> i & 1) && d < g->plan->spec.value_dim; d++)
                o[i * o_stride + d] += p[i * ATT_KEY_BLOCK + key] * value.at[key * value.stride + d];
    }
}

/* Computes o = rescale o + P V. If only some columns attend to a key, NaN or Inf in its value must not reach the
 * others. */
static void accumulate(const att_decode_group *g, const att_mask_tile *mask, int64_t k0, int keys,
                       att_decode_scratch *w, att_accumulator *to)
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
                 .o_stride = att_decode_o_stride(g->plan),
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
    add_nonfinite(g, mask, &finite, value, w->s, to->o, pv.o_stride);
}

/* Computes scores of keys [first, last) of a block; first begins a panel. */
static void score_keys(const att_decode_group *g, const att_rows *k, bool packed, int64_t first, int64_t last,
                       att_decode_scratch *w)
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

/* Computes scores of a block, while its values are prefetched. */
static void score_block(const att_decode_group *g, const att_mask_tile *mask, int64_t k0, att_decode_scratch *w)
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

static void softmax_step(const att_decode_group *g, const att_mask_tile *mask, const att_decode_scratch *w,
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
static void prefetch_keys(const att_decode_group *g, int64_t k0, att_prefetch *list)
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

/* Reads the queries for dot products, and scales them if the plan does so. */
static void read_queries(const att_decode_group *g, const att_decode_scratch *w)
{
    const att_kernels *kernels = g->plan->kernels;
    const int64_t dim = g->plan->q_dim;
    for (int i = 0; is_dot(g->plan) && i < g->columns; i++) {
        const att_floats q = att_rows_read(kernels, &g->head[i / g->tq].q_row, i % g->tq, 1, dim, w->rows);
        kernels->vector.scale(dim, att_query_scale(g->plan), q.at, w->q + i * dim);
    }
}

/* Narrows [*first, *last) to blocks of keys to which some head attends. */
static void intersect_span(const att_decode_group *g, int64_t *first, int64_t *last)
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

void att_decode_segment(const att_decode_group *g, int64_t first, int64_t last, att_decode_scratch *w,
                        att_accumulator to, const att_decode_group *next, int64_t next_key)
{
    mask_tiles *masks = (mask_tiles *)w->masks;
    for (int i = 0; i < g->columns; i++) {
        to.max[i] = -INFINITY;
        to.sum[i] = 0;
    }
    read_queries(g, w);
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
        accumulate(g, mask, k0, keys, w, &to);
    }
    if (!to.begun)
        memset(to.o, 0, (size_t)(g->columns * att_decode_o_stride(g->plan)) * sizeof *to.o);
}
