/* One block of queries by one block of keys: its mask, its scores, and the backward from their gradient. */
#include "attn/block/block.h"

#include <math.h>
#include <string.h>

/* ---- masks */

/* Returns the cover of a block by all masks, without testing pairs. */
static att_cover cover(const att_plan *plan, const att_head_view *at, int64_t q0, int queries, int64_t k0, int keys)
{
    att_cover all = ATT_COVER_FULL;
    for (int i = 0; all != ATT_COVER_EMPTY && i < plan->masks.n; i++) {
        const att_mask *m = &plan->masks.list[i].stage;
        const att_mask_block b =
            att_mask_block_of(plan, i, at, (att_range){q0, q0 + queries}, (att_range){k0, k0 + keys});
        const att_cover c = m->cover ? m->cover(&b) : ATT_COVER_PARTIAL;
        all = c == ATT_COVER_FULL ? all : c;
    }
    return all;
}

static void bits_of(const att_mask *m, const att_mask_block *b, uint64_t *bits)
{
    if (m->bits) {
        m->bits(b, bits);
        return;
    }
    att_mask_block pair = *b;
    for (int64_t j = 0; j < b->keys; j++) {
        bits[j] = 0;
        pair.k = b->k + j;
        for (int64_t i = 0; i < b->queries; i++) {
            pair.q = b->q + i;
            bits[j] |= (uint64_t)m->keep(&pair) << i;
        }
    }
}

/* Returns the cover of a small block, by testing all pairs if cover() does not decide it. Sets bits if the result is
 * ATT_COVER_PARTIAL. */
static att_cover probe(const att_plan *plan, const att_head_view *at, int64_t q0, int queries, int64_t k0, int keys,
                       uint64_t *bits)
{
    const uint64_t all = att_low_bits(queries);
    const att_cover c = cover(plan, at, q0, queries, k0, keys);
    uint64_t some = 0, every = all, of_mask[ATT_SUB_TILE];
    if (c != ATT_COVER_PARTIAL)
        return c;
    for (int j = 0; j < keys; j++)
        bits[j] = ~UINT64_C(0);
    for (int i = 0; i < plan->masks.n; i++) {
        const att_mask_block b =
            att_mask_block_of(plan, i, at, (att_range){q0, q0 + queries}, (att_range){k0, k0 + keys});
        bits_of(&plan->masks.list[i].stage, &b, of_mask);
        for (int j = 0; j < keys; j++)
            bits[j] &= of_mask[j];
    }
    for (int j = 0; j < keys; j++) {
        some |= bits[j] & all;
        every &= bits[j];
    }
    return !some ? ATT_COVER_EMPTY : every == all ? ATT_COVER_FULL : ATT_COVER_PARTIAL;
}

void att_span(const att_plan *plan, const att_head_view *at, int64_t q0, int64_t queries, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = at->head.tk;
    for (int i = 0; i < plan->masks.n; i++) {
        int64_t from = 0, to = at->head.tk;
        const att_mask_block b =
            att_mask_block_of(plan, i, at, (att_range){q0, q0 + queries}, (att_range){0, at->head.tk});
        if (plan->masks.list[i].stage.span)
            plan->masks.list[i].stage.span(&b, &from, &to);
        *first = att_max(from, *first);
        *last = att_min(to, *last);
    }
    *first = *first / ATT_KEY_BLOCK * ATT_KEY_BLOCK;
    *last = att_min((*last + ATT_KEY_BLOCK - 1) / ATT_KEY_BLOCK * ATT_KEY_BLOCK, at->head.tk);
}

void att_mask_tile_add(att_mask_tile *mask_tile, int64_t first, int64_t last, bool partial)
{
    if (partial)
        mask_tile->partial = (att_range){att_mask_tile_is_partial(mask_tile) ? mask_tile->partial.first : first, last};
    if (mask_tile->n_ranges && mask_tile->range[mask_tile->n_ranges - 1].last == first)
        mask_tile->range[mask_tile->n_ranges - 1].last = last;
    else
        mask_tile->range[mask_tile->n_ranges++] = (att_range){first, last};
}

void att_mask_tile_make(const att_plan *plan, const att_head_view *at, int64_t q0, int queries, int64_t k0, int keys,
                        att_mask_tile *mask_tile)
{
    mask_tile->n_ranges = 0;
    mask_tile->partial = (att_range){0, 0};
    const att_cover whole = cover(plan, at, q0, queries, k0, keys);
    if (whole == ATT_COVER_FULL)
        att_mask_tile_add(mask_tile, 0, keys, false);
    for (int first = 0; whole == ATT_COVER_PARTIAL && first < keys; first += ATT_SUB_TILE) {
        const int n = keys - first < ATT_SUB_TILE ? keys - first : ATT_SUB_TILE;
        const att_cover c = probe(plan, at, q0, queries, k0 + first, n, mask_tile->bits + first);
        if (c == ATT_COVER_FULL && att_mask_tile_is_partial(mask_tile)) /* it may lie between partial ones */
            memset(mask_tile->bits + first, 0xff, (size_t)n * sizeof *mask_tile->bits);
        if (c != ATT_COVER_EMPTY)
            att_mask_tile_add(mask_tile, first, first + n, c == ATT_COVER_PARTIAL);
    }
}

att_range att_mask_tile_partial(const att_mask_tile *mask_tile, int r)
{
    const att_range range = mask_tile->range[r], partial = mask_tile->partial;
    if (partial.first >= range.last || partial.last <= range.first)
        return (att_range){range.first, range.first};
    return (att_range){range.first > partial.first ? range.first : partial.first,
                       range.last < partial.last ? range.last : partial.last};
}

/* ---- stages */

void att_pack_queries(const att_plan *plan, att_floats query, int queries, float *q)
{
    if (!att_score_reads_query_rows(plan))
        plan->kernels->attend.pack(queries, plan->q_dim, query.at, query.stride, att_query_scale(plan), q);
}

static att_score_row row_of(const att_plan *plan, att_floats rows, int i)
{
    return (att_score_row){.size = sizeof(att_score_row),
                           .user = plan->score.user,
                           .x = rows.at + i * rows.stride,
                           .dim = plan->q_dim,
                           .vectors = &plan->vectors};
}

void att_row_terms(const att_plan *plan, att_floats rows, int n, float *y)
{
    for (int i = 0; plan->score.term && i < n; i++) {
        const att_score_row row = row_of(plan, rows, i);
        y[i] = plan->score.term(&row);
    }
}

/* Adds nothing where dterm is 0, because the row may then be NaN. */
void att_row_terms_back(const att_plan *plan, att_floats rows, int n, const float *dterm, float *dx, int64_t stride)
{
    for (int i = 0; plan->score.term && i < n; i++) {
        if (dterm[i] == 0)
            continue;
        const att_score_row row = row_of(plan, rows, i);
        plan->score.term_back(&row, dterm[i], dx + i * stride);
    }
}

void att_precompute(const att_plan *plan, att_floats key, int n, float *y)
{
    const int64_t count = att_precomputed_count(plan);
    att_row_terms(plan, key, n, y);
    for (int j = 0; count && !plan->score.term && j < n; j++)
        plan->builtin->transforms->precompute(plan->k_dim, key.at + j * key.stride, y + j * count);
}

/* Returns range r of the block's keys, as stages see it. */
static att_builtin_tile tile_of(const att_block *b, int r)
{
    const att_plan *plan = b->plan;
    const int64_t first = b->mask_tile->range[r].first, count = b->precomputed ? att_precomputed_count(plan) : 0;
    const bool rows = att_score_reads_query_rows(plan), has_term = plan->score.term != NULL;
    return (att_builtin_tile){.tile.size = sizeof(att_score_tile),
                              .tile.head = &b->head->head,
                              .tile.user = plan->score.user,
                              .tile.q = b->q0,
                              .tile.k = b->k0 + first,
                              .tile.queries = b->queries,
                              .tile.keys = (int)(b->mask_tile->range[r].last - first),
                              .tile.columns = plan->kernels->q_tile,
                              .tile.query = rows ? b->query.at : b->q,
                              .tile.dim = plan->q_dim,
                              .tile.key = b->key.at + first * b->key.stride,
                              .tile.key_dim = plan->k_dim,
                              .tile.key_stride = b->key.stride,
                              .tile.param = b->param,
                              .tile.s = b->s + first * b->stride,
                              .tile.ds = b->back.ds ? b->back.ds + first * b->stride : NULL,
                              .tile.stride = b->stride,
                              .tile.dquery = plan->builtin->is_dot ? NULL : b->back.dq,
                              .tile.dkey =
                                  b->back.dk && !plan->builtin->is_dot ? b->back.dk + first * b->back.dk_stride : NULL,
                              .tile.dkey_stride = b->back.dk_stride,
                              .tile.vectors = &plan->vectors,
                              .tile.query_term = has_term ? b->query_term : NULL,
                              .tile.key_term = has_term ? b->precomputed + first : NULL,
                              .tile.dquery_term = has_term ? b->back.dquery_term : NULL,
                              .tile.dkey_term = has_term && b->back.dkey_term ? b->back.dkey_term + first : NULL,
                              .query_stride = rows ? b->query.stride : 0,
                              .dquery_stride = rows ? plan->q_dim : 0,
                              .precomputed = b->precomputed ? b->precomputed + first * count : NULL,
                              .precomputed_stride = count};
}

/* Saves the input of a stage in `saved`, laid out as s, for its backward; does nothing if saved is NULL. */
static void save(const att_block *b, int r, const att_score_tile *t, float *saved)
{
    for (int j = 0; saved && j < t->keys; j++)
        memcpy(saved + (b->mask_tile->range[r].first + j) * b->stride, t->s + j * t->stride,
               (size_t)t->columns * sizeof *t->s);
}

/* Turns products into scores, and scales them unless the queries were scaled. */
static void scale_products(const att_block *b, int r, const att_score_tile *t)
{
    const att_plan *plan = b->plan;
    if (att_score_changes_products(plan)) {
        save(b, r, t, b->back.products);
        plan->score.tile(t);
    }
    if (!(b->bf16_pairs ? plan->scale.in_softmax : plan->scale.in_queries) && plan->spec.scale != 1)
        plan->kernels->attend.scale_scores(t->keys, plan->spec.scale, t->s, t->stride);
}

static void score(const att_block *b, int r, const att_score_tile *t)
{
    const att_plan *plan = b->plan;
    if (b->bf16_pairs)
        plan->kernels->bf16.scores(t->keys, t->queries, att_bf16_pairs_in(t->dim), t->key, t->key_stride, t->query,
                                   t->s, t->stride);
    else if (plan->builtin->is_dot)
        plan->builtin->score.tile(t);
    else if (plan->score.tile)
        plan->score.tile(t);
    else
        att_score_pairs(b, t);
    scale_products(b, r, t);
}

/* Returns the tile as modifier i sees it: scores and positions, but no queries and keys. */
static att_modifier_tile seen_by(const att_block *b, int i, const att_score_tile *t)
{
    const att_plan_modifier *m = &b->plan->modifiers.list[i];
    return att_modifier_tile_of(t, &m->stage, m->value, b->param + m->param,
                                b->back.ds ? b->back.ds + (t->k - b->k0) * b->stride : NULL);
}

static void modify(const att_block *b, int r, int i, const att_score_tile *tile)
{
    const att_modifier *m = &b->plan->modifiers.list[i].stage;
    const att_modifier_tile t = seen_by(b, i, tile);
    save(b, r, tile, b->back.saved[i]);
    if (m->tile)
        m->tile(&t);
    else if (m->formula)
        att_modifier_pairs(b, m, &t);
}

static void modify_all(const att_block *b, int r, const att_score_tile *t)
{
    for (int i = 0; i < b->plan->modifiers.n; i++)
        modify(b, r, i, t);
}

/* Sets x (s or ds of range r) to `value` where a pair does not attend. */
static void apply_mask(const att_block *b, int r, float value, float *x, int64_t stride)
{
    const att_range partial = att_mask_tile_partial(b->mask_tile, r);
    b->plan->kernels->attend.apply_mask(partial.last - partial.first, b->mask_tile->bits + partial.first, value,
                                        x + (partial.first - b->mask_tile->range[r].first) * stride, stride);
}

void att_score_block(const att_block *b)
{
    for (int r = 0; r < b->mask_tile->n_ranges; r++) {
        const att_builtin_tile t = tile_of(b, r);
        score(b, r, &t.tile);
        modify_all(b, r, &t.tile);
        apply_mask(b, r, -INFINITY, t.tile.s, t.tile.stride);
    }
}

void att_products_block(const att_block *b)
{
    for (int r = 0; r < b->mask_tile->n_ranges; r++) {
        const att_builtin_tile t = tile_of(b, r);
        scale_products(b, r, &t.tile);
        modify_all(b, r, &t.tile);
    }
}

static void modify_back(const att_block *b, int r, int i, const att_score_tile *tile)
{
    const att_modifier *m = &b->plan->modifiers.list[i].stage;
    att_modifier_tile t = seen_by(b, i, tile);
    t.s = b->back.saved[i] ? b->back.saved[i] + b->mask_tile->range[r].first * b->stride : NULL;
    if (m->tile_back)
        m->tile_back(&t);
    else if (m->derivative)
        att_modifier_pairs_back(b, m, &t);
    if (b->back.saved[i]) /* 0 times the derivative at NaN */
        apply_mask(b, r, 0, t.ds, t.stride);
}

/* Copies x to y [n], with 0 for what is not finite; NULL if x is NULL. */
static const float *finite_terms(int64_t n, const float *x, float *y)
{
    for (int64_t i = 0; x && i < n; i++)
        y[i] = isfinite(x[i]) ? x[i] : 0;
    return x ? y : NULL;
}

/* Replaces ds of the scores by that of the products, and adds the gradients of rows' terms. If a pair does not attend,
 * everything that its gradient of 0 is multiplied with is finite. */
static void products_back(const att_block *b, int r, const att_score_tile *t)
{
    float query_term[ATT_MAX_Q_TILE] = {0}, key_term[ATT_KEY_BLOCK];
    att_score_tile products = *t;
    products.s = b->back.products + b->mask_tile->range[r].first * b->stride;
    products.query_term = finite_terms(t->queries, t->query_term, query_term);
    products.key_term = finite_terms(t->keys, t->key_term, key_term);
    apply_mask(b, r, 0, products.s, t->stride);
    b->plan->score.tile_back(&products);
    apply_mask(b, r, 0, t->ds, t->stride); /* 0 times an infinite derivative at 0 */
}

static void score_back(const att_block *b, int r, const att_score_tile *t)
{
    const att_plan *plan = b->plan;
    if (!plan->scale.in_queries && plan->spec.scale != 1)
        plan->kernels->attend.scale_scores(t->keys, plan->spec.scale,
                                           b->back.ds + b->mask_tile->range[r].first * b->stride, b->stride);
    if (att_score_changes_products(plan))
        products_back(b, r, t);
    else if (!plan->builtin->is_dot && plan->score.tile_back)
        plan->score.tile_back(t);
    else if (!plan->builtin->is_dot)
        att_score_pairs_back(b, t);
}

void att_score_block_back(const att_block *b)
{
    for (int r = 0; r < b->mask_tile->n_ranges; r++) {
        const att_builtin_tile t = tile_of(b, r);
        for (int i = b->plan->modifiers.n - 1; i >= 0; i--)
            modify_back(b, r, i, &t.tile);
        score_back(b, r, &t.tile);
    }
}

/* ---- what is not finite */

void att_finite_ranges_of(const att_plan *plan, const att_mask_tile *mask_tile, int queries, att_floats x, int64_t dim,
                          att_finite_ranges *clean)
{
    const uint64_t all = att_low_bits(queries);
    clean->n_ranges = clean->n_nonfinite = 0;
    for (int r = 0; r < mask_tile->n_ranges; r++) {
        const att_range partial = att_mask_tile_partial(mask_tile, r);
        clean->range[clean->n_ranges++] = mask_tile->range[r];
        if (x.stride == dim &&
            plan->kernels->vector.all_finite((partial.last - partial.first) * dim, x.at + partial.first * x.stride))
            continue;
        for (int64_t key = partial.first; key < partial.last; key++) {
            if (!(~mask_tile->bits[key] & all) || plan->kernels->vector.all_finite(dim, x.at + key * x.stride))
                continue;
            clean->nonfinite[clean->n_nonfinite++] = key;
            clean->range[clean->n_ranges - 1].last = key;
            clean->range[clean->n_ranges++] = (att_range){key + 1, mask_tile->range[r].last};
        }
    }
}

void att_add_nonfinite(const att_plan *plan, const att_mask_tile *mask_tile, const att_finite_ranges *clean,
                       int queries, att_floats x, int64_t dim, att_floats w, float *o)
{
    for (int n = 0; n < clean->n_nonfinite; n++) {
        const int64_t key = clean->nonfinite[n];
        for (int i = 0; i < queries; i++)
            for (int64_t d = 0; (att_mask_tile_bits(mask_tile, key) >> i & 1) && d < dim; d++)
                o[d * plan->kernels->q_tile + i] += w.at[key * w.stride + i] * x.at[key * x.stride + d];
    }
}
