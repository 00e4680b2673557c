/* One block of queries by one block of keys: what masks leave of it, its scores, and back from their gradient. */
#include "attn/block/block.h"

#include <math.h>
#include <string.h>

/* ---- masks */

/* What masks say of a block without a look at its pairs. */
static att_cover cover(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k0, int keys)
{
    att_cover all = ATT_FULL;
    for (int i = 0; all != ATT_EMPTY && i < plan->n_masks; i++) {
        const att_mask *m = plan->mask[i];
        const att_cover c = m->cover ? m->cover(&at->place, m->user, q0, queries, k0, keys) : ATT_PARTIAL;
        all = c == ATT_FULL ? all : c;
    }
    return all;
}

static void bits_of(const att_mask *m, const att_place *at, int64_t q0, int queries, int64_t k0, int keys,
                    uint64_t *bits)
{
    if (m->bits) {
        m->bits(at, m->user, q0, queries, k0, keys, bits);
        return;
    }
    for (int j = 0; j < keys; j++) {
        bits[j] = 0;
        for (int i = 0; i < queries; i++)
            bits[j] |= (uint64_t)m->keep(at, m->user, q0 + i, k0 + j) << i;
    }
}

/* The same of a small block with a look at its pairs, where that is not decided: bits are set if the answer is
 * ATT_PARTIAL. */
static att_cover look(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k0, int keys,
                      uint64_t *bits)
{
    const uint64_t all = att_low_bits(queries);
    const att_cover c = cover(plan, at, q0, queries, k0, keys);
    uint64_t some = 0, every = all, of_mask[ATT_SUB_TILE];
    if (c != ATT_PARTIAL)
        return c;
    for (int j = 0; j < keys; j++)
        bits[j] = ~UINT64_C(0);
    for (int i = 0; i < plan->n_masks; i++) {
        bits_of(plan->mask[i], &at->place, q0, queries, k0, keys, of_mask);
        for (int j = 0; j < keys; j++)
            bits[j] &= of_mask[j];
    }
    for (int j = 0; j < keys; j++) {
        some |= bits[j] & all;
        every &= bits[j];
    }
    return !some ? ATT_EMPTY : every == all ? ATT_FULL : ATT_PARTIAL;
}

void att_span(const att_plan *plan, const att_site *at, int64_t q0, int64_t queries, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = at->place.tk;
    for (int i = 0; i < plan->n_masks; i++) {
        int64_t from = 0, to = at->place.tk;
        if (plan->mask[i]->span)
            plan->mask[i]->span(&at->place, plan->mask[i]->user, q0, queries, &from, &to);
        *first = from > *first ? from : *first;
        *last = to < *last ? to : *last;
    }
    const int64_t end = (*last + ATT_KEY_BLOCK - 1) / ATT_KEY_BLOCK * ATT_KEY_BLOCK;
    *first = *first / ATT_KEY_BLOCK * ATT_KEY_BLOCK;
    *last = end < at->place.tk ? end : at->place.tk;
}

void att_cut_add(att_cut *cut, int64_t first, int64_t last, bool partial)
{
    if (partial)
        cut->holes = (att_run){att_cut_partial(cut) ? cut->holes.first : first, last};
    if (cut->n_runs && cut->run[cut->n_runs - 1].last == first)
        cut->run[cut->n_runs - 1].last = last;
    else
        cut->run[cut->n_runs++] = (att_run){first, last};
}

/* In steps of half a sub-tile. */
static int find_second(const att_plan *plan, const att_cut *cut, int queries)
{
    enum { STEP = ATT_SUB_TILE / 2 };
    const att_run run = cut->run[cut->n_runs - 1], holes = cut->holes;
    const int64_t begin = run.first > holes.first ? run.first : holes.first, half = plan->kernels->panel / 2;
    int64_t second = run.last;
    if (holes.last != run.last || queries <= half)
        return (int)second;
    while (second > begin && !(cut->bits[second - 1] & att_low_bits((int)half)))
        second--;
    second = att_round_up(second, STEP);
    return (int)(second < run.last ? second : run.last);
}

void att_cut_block(const att_plan *plan, const att_site *at, int64_t q0, int queries, int64_t k0, int keys,
                   att_cut *cut)
{
    cut->n_runs = 0;
    cut->holes = (att_run){0, 0};
    cut->second = keys;
    const att_cover whole = cover(plan, at, q0, queries, k0, keys);
    if (whole == ATT_FULL)
        att_cut_add(cut, 0, keys, false);
    for (int first = 0; whole == ATT_PARTIAL && first < keys; first += ATT_SUB_TILE) {
        const int n = keys - first < ATT_SUB_TILE ? keys - first : ATT_SUB_TILE;
        const att_cover c = look(plan, at, q0, queries, k0 + first, n, cut->bits + first);
        if (c == ATT_FULL && att_cut_partial(cut)) /* perhaps between holes */
            memset(cut->bits + first, 0xff, (size_t)n * sizeof *cut->bits);
        if (c != ATT_EMPTY)
            att_cut_add(cut, first, first + n, c == ATT_PARTIAL);
    }
    if (whole == ATT_PARTIAL && cut->n_runs)
        cut->second = find_second(plan, cut, queries);
}

att_run att_cut_holes(const att_cut *cut, int r)
{
    const att_run run = cut->run[r], holes = cut->holes;
    if (holes.first >= run.last || holes.last <= run.first)
        return (att_run){run.first, run.first};
    return (att_run){run.first > holes.first ? run.first : holes.first, run.last < holes.last ? run.last : holes.last};
}

/* ---- stages */

void att_turn_queries(const att_plan *plan, att_floats query, int queries, float *q)
{
    if (!att_takes_rows(plan))
        plan->kernels->turn_in(queries, plan->q_dim, query.at, query.stride, att_query_scale(plan), q);
}

/* Run r of the block's keys, as stages see it. */
static att_tile tile_of(const att_block *b, int r)
{
    const int64_t first = b->cut->run[r].first, ready_count = b->ready ? att_ready_count(b->plan) : 0;
    const bool rows = att_takes_rows(b->plan);
    return (att_tile){.at = &b->site->place,
                      .q = b->q0,
                      .k = b->k0 + first,
                      .queries = b->queries,
                      .keys = (int)(b->cut->run[r].last - first),
                      .columns = b->plan->kernels->panel,
                      .query = rows ? b->query.at : b->q,
                      .query_stride = rows ? b->query.stride : 0,
                      .dim = b->plan->q_dim,
                      .key = b->key.at + first * b->key.stride,
                      .key_dim = b->plan->k_dim,
                      .key_stride = b->key.stride,
                      .s = b->s + first * b->stride,
                      .ds = b->ds ? b->ds + first * b->stride : NULL,
                      .stride = b->stride,
                      .dquery = b->dq,
                      .dquery_stride = rows ? b->plan->q_dim : 0,
                      .ready = b->ready ? b->ready + first * ready_count : NULL,
                      .ready_stride = ready_count,
                      .dkey = b->dk ? b->dk + first * b->dk_stride : NULL,
                      .dkey_stride = b->dk_stride,
                      .vectors = &b->plan->vectors};
}

/* Dot products of run r of keys; the first half of the queries has none with the last ones. */
static void dot(const att_block *b, int r, att_tile *t)
{
    const int keys = t->keys, half = t->columns / 2, both = (int)(att_cut_second(b->cut, r) - b->cut->run[r].first);
    t->keys = both;
    b->plan->score->tile(t);
    t->keys = keys;
    if (both == keys)
        return;
    att_tile rest = *t;
    rest.keys = keys - both;
    rest.key += both * t->key_stride;
    rest.s += both * t->stride + half;
    rest.query += half;
    rest.queries -= half;
    b->plan->score->tile(&rest);
}

static void score(const att_block *b, int r, att_tile *t)
{
    const att_plan *plan = b->plan;
    t->user = plan->score->user;
    t->param = b->score_param;
    if (b->words)
        plan->kernels->word_scores(t->keys, t->queries, att_words_in(t->dim), t->key, t->key_stride, t->query, t->s,
                                   t->stride);
    else if ((plan->score->flags & ATT_DOT) && att_cut_partial(b->cut))
        dot(b, r, t);
    else if (plan->score->tile)
        plan->score->tile(t);
    else
        att_score_pairs(b, t);
    if (!(b->words ? plan->late : plan->fold) && plan->spec.scale != 1)
        plan->kernels->rescale_tile(t->keys, plan->spec.scale, t->s, t->stride);
}

/* The tile as modifier i sees it: scores and positions, but no queries and keys. */
static att_tile seen_by(const att_block *b, int i, const att_tile *t)
{
    att_tile seen = *t;
    seen.user = b->plan->modifier[i]->user;
    seen.value = b->plan->spec.modifier_value[i];
    seen.param = &b->modifier_param[i];
    seen.query = seen.key = NULL;
    seen.dim = seen.key_dim = 0;
    return seen;
}

static void modify(const att_block *b, int r, int i, const att_tile *tile)
{
    const att_modifier *m = b->plan->modifier[i];
    const att_tile t = seen_by(b, i, tile);
    for (int j = 0; b->saved[i] && j < t.keys; j++)
        memcpy(b->saved[i] + (b->cut->run[r].first + j) * b->stride, t.s + j * t.stride,
               (size_t)t.columns * sizeof *t.s);
    if (m->tile)
        m->tile(&t);
    else if (m->formula)
        att_modify_pairs(b, m, &t);
}

static void modify_all(const att_block *b, int r, const att_tile *t)
{
    for (int i = 0; i < b->plan->n_modifiers; i++)
        modify(b, r, i, t);
}

/* Sets tile x (s or ds of run r) where a pair does not attend. */
static void forbid(const att_block *b, int r, float value, float *x, int64_t stride)
{
    const att_run holes = att_cut_holes(b->cut, r);
    b->plan->kernels->forbid(holes.last - holes.first, b->cut->bits + holes.first, value,
                             x + (holes.first - b->cut->run[r].first) * stride, stride);
}

void att_score_block(const att_block *b)
{
    for (int r = 0; r < b->cut->n_runs; r++) {
        att_tile t = tile_of(b, r);
        score(b, r, &t);
        modify_all(b, r, &t);
        forbid(b, r, -INFINITY, t.s, t.stride);
    }
}

void att_modify_block(const att_block *b)
{
    for (int r = 0; r < b->cut->n_runs; r++) {
        const att_tile t = tile_of(b, r);
        modify_all(b, r, &t);
    }
}

static void modify_back(const att_block *b, int r, int i, const att_tile *tile)
{
    const att_modifier *m = b->plan->modifier[i];
    att_tile t = seen_by(b, i, tile);
    t.s = b->saved[i] ? b->saved[i] + b->cut->run[r].first * b->stride : NULL;
    if (m->tile_back)
        m->tile_back(&t);
    else if (m->derivative)
        att_modify_pairs_back(b, m, &t);
    if (b->saved[i]) /* 0 times the derivative at NaN */
        forbid(b, r, 0, t.ds, t.stride);
}

static void score_back(const att_block *b, att_tile *t)
{
    const att_plan *plan = b->plan;
    if (!plan->fold && plan->spec.scale != 1)
        plan->kernels->rescale_tile(t->keys, plan->spec.scale, t->ds, t->stride);
    t->user = plan->score->user;
    t->param = b->score_param;
    if (plan->score->flags & ATT_DOT)
        return;
    if (plan->score->tile_back)
        plan->score->tile_back(t);
    else
        att_score_pairs_back(b, t);
}

void att_score_block_back(const att_block *b)
{
    for (int r = 0; r < b->cut->n_runs; r++) {
        att_tile t = tile_of(b, r);
        for (int i = b->plan->n_modifiers - 1; i >= 0; i--)
            modify_back(b, r, i, &t);
        score_back(b, &t);
    }
}

/* ---- what is not finite */

void att_cut_clean(const att_plan *plan, const att_cut *cut, int queries, const float *x, int64_t stride, int64_t dim,
                   att_clean *clean)
{
    const uint64_t all = att_low_bits(queries);
    clean->n_runs = clean->n_unclean = 0;
    for (int r = 0; r < cut->n_runs; r++) {
        const att_run holes = att_cut_holes(cut, r);
        clean->run[clean->n_runs++] = cut->run[r];
        if (stride == dim && plan->kernels->all_finite((holes.last - holes.first) * dim, x + holes.first * stride))
            continue;
        for (int64_t key = holes.first; key < holes.last; key++) {
            if (!(~cut->bits[key] & all) || plan->kernels->all_finite(dim, x + key * stride))
                continue;
            clean->unclean[clean->n_unclean++] = key;
            clean->run[clean->n_runs - 1].last = key;
            clean->run[clean->n_runs++] = (att_run){key + 1, cut->run[r].last};
        }
    }
}

void att_add_unclean(const att_plan *plan, const att_cut *cut, const att_clean *clean, int queries, const float *x,
                     int64_t stride, int64_t dim, const float *w, int64_t w_stride, float *o)
{
    for (int n = 0; n < clean->n_unclean; n++) {
        const int64_t key = clean->unclean[n];
        for (int i = 0; i < queries; i++)
            for (int64_t d = 0; (att_cut_bits(cut, key) >> i & 1) && d < dim; d++)
                o[d * plan->kernels->panel + i] += w[key * w_stride + i] * x[key * stride + d];
    }
}
