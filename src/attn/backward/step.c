/* Attention backward, one step: a task's keys by some tiles of queries (see backward.c for the formulas). */
#include "attn/backward/backward.h"
#include "base/math.h"

#include <math.h>

enum {
    Q_TILES = ATT_BACKWARD_Q_TILES,
    DECODE_QUERIES = 4 /* with at most this number of queries in a tile, dP has keys as its lanes */
};

/* ---- queries */

/* Returns whether a query attends to any key. If not, it has no gradient, whatever its output's gradient is. */
static bool attends(const att_head_view *at, int64_t q) { return at->lse[q * at->lse_stride] != -INFINITY; }

/* Clears row i [dim] of y [panels of dim][ATT_BACKWARD_Q_TILES * panel][panel]. */
static void clear_row(int64_t panel, int i, int64_t dim, float *y)
{
    for (int64_t d = 0; d < dim; d++)
        y[(d / panel * Q_TILES * panel + i) * panel + d % panel] = 0;
}

/* Clears the step's values of query i, which attends to no key, so that it adds nothing to any gradient. */
static void clear_query(const att_backward_work *x, int i)
{
    const int64_t panel = x->plan->kernels->q_tile, value_dim = x->plan->spec.value_dim;
    for (int64_t d = 0; d < value_dim; d++)
        x->w.q.dout_packed[i / panel * value_dim * panel + d * panel + i % panel] = 0;
    clear_row(panel, i, value_dim, x->w.q.dout_rows);
    if (att_score_is_dot(x->plan))
        clear_row(panel, i, x->plan->q_dim, x->w.q.q_rows);
    x->w.q.origin[i] = x->w.q.lse[i] = x->w.q.delta[i] = 0;
}

/* Returns the log-sum-exp of query q, with an origin other than 0 if it is large. */
static att_split_lse split_lse(const att_backward_work *x, int64_t q)
{
    const float lse = x->head.view.lse[q * x->head.view.lse_stride];
    return x->job->split && att_lse_is_large(lse) ? *att_split_lse_at(x->job, &x->head.view, q)
                                                  : (att_split_lse){0, lse};
}

/* Computes delta and log-sum-exp of query q0 + i. */
static void prepare_row(const att_backward_work *x, int64_t q0, int i)
{
    const att_head_view *at = &x->head.view;
    const att_kernels *k = x->plan->kernels;
    const int64_t dim = x->plan->spec.value_dim;
    const float *dout = x->dout_rows.at + i * x->dout_rows.stride;
    const float *out = att_rows_read(k, &at->out, q0 + i, 1, dim, x->w.row).at;
    const float dlse = x->head.dlse.at ? ((const float *)x->head.dlse.at)[(q0 + i) * x->head.dlse.stride] : 0;
    const att_split_lse lse = split_lse(x, q0 + i);
    x->w.q.origin[i] = lse.origin;
    x->w.q.lse[i] = (float)(lse.rest * ATT_LOG2_E);
    x->w.q.delta[i] = k->vector.dot(dim, dout, out) - dlse;
}

/* Packs rows into y in pairs of bf16, transposed tile by tile. */
static void pack_pairs(const att_backward_work *x, const att_rows *rows, int64_t q0, int queries, int64_t dim,
                       float *pairs, float *y)
{
    const att_kernels *k = x->plan->kernels;
    const att_floats from = att_bf16_pack_rows(k, rows, q0, queries, dim, pairs);
    for (int i = 0; i < queries; i += k->q_tile)
        k->bf16.pack(queries - i < k->q_tile ? queries - i : k->q_tile, att_bf16_pairs_in(dim),
                     from.at + i * from.stride, from.stride, y + i * dim);
}

/* Prepares queries [q0, q0 + queries) and their output gradients, in both layouts. */
static void prepare_queries(att_backward_work *x, int64_t q0, int queries)
{
    const att_plan *plan = x->plan;
    const att_head_view *at = &x->head.view;
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->q_dim, value_dim = plan->spec.value_dim;
    const att_floats q = att_rows_read(k, &at->q_row, q0, queries, dim, x->w.q.query);
    const att_floats d = att_rows_read(k, &x->head.dout, q0, queries, value_dim, x->w.q.dout);
    x->query = q;
    x->dout_rows = d;
    if (plan->bf16_pairs) {
        pack_pairs(x, &at->q_row, q0, queries, dim, x->w.q.pairs[0], x->w.q.q_packed);
        pack_pairs(x, &x->head.dout, q0, queries, value_dim, x->w.q.pairs[1], x->w.q.dout_packed);
    }
    for (int i = 0; !plan->bf16_pairs && i < queries; i += k->q_tile) {
        const int n = queries - i < k->q_tile ? queries - i : k->q_tile;
        if (!att_score_reads_query_rows(plan))
            att_pack_queries(plan, (att_floats){q.at + i * q.stride, q.stride}, n, x->w.q.q_packed + i * dim);
        if (n > DECODE_QUERIES)
            k->attend.pack(n, value_dim, d.at + i * d.stride, d.stride, 1, x->w.q.dout_packed + i * value_dim);
    }
    att_row_terms(plan, q, queries, x->w.q.terms);
    if (att_score_is_dot(plan))
        k->backward.pack_rows(queries, Q_TILES * k->q_tile, dim, q.at, q.stride, att_query_scale(plan), x->w.q.q_rows);
    k->backward.pack_rows(queries, Q_TILES * k->q_tile, value_dim, d.at, d.stride, 1, x->w.q.dout_rows);
    for (int i = 0; i < queries; i++) {
        if (attends(at, q0 + i))
            prepare_row(x, q0, i);
        else
            clear_query(x, i);
    }
}

/* Adds the gradient of the sink: dsink = sum of -p delta, where p = exp(sink - lse) is the sink's own weight. */
static void sink_back(const att_backward_work *x, int queries)
{
    const att_param_view *sink = att_sink_of(x->plan, x->head.param);
    double sum = 0;
    for (int i = 0; i < queries; i++) {
        const double score = (double)sink->data[0] - (double)x->w.q.origin[i];
        sum -= att_f64_exp2(score * ATT_LOG2_E - (double)x->w.q.lse[i]) * (double)x->w.q.delta[i];
    }
    sink->grad[0] += (float)sum;
}

/* ---- a block of keys by some tiles of queries */

void att_backward_begin(att_backward_work *x)
{
    const att_plan *plan = x->plan;
    x->block = (att_block){.plan = plan,
                           .head = &x->head.view,
                           .stride = Q_TILES * plan->kernels->q_tile,
                           .back.pair = x->w.pair,
                           .param = x->head.param};
}

/* Makes `keys` the current block. */
static void set_kv_block(att_backward_work *x, att_kv_block *keys)
{
    att_block *b = &x->block;
    x->keys = keys;
    b->k0 = keys->k0;
    b->key = keys->key;
    b->precomputed = att_precomputed_count(x->plan) ? keys->precomputed : NULL;
    b->back.dk = keys->dk.from;
    b->back.dk_stride = keys->dk.stride;
    b->back.dkey_term = keys->dterm;
}

/* Returns the block of keys with one tile of queries. There is one att_block, which the next call changes. */
static att_block *block_of(att_backward_work *x, int64_t q0, int queries, int tile, const att_mask_tile *mask_tile)
{
    const att_plan *plan = x->plan;
    const int64_t first = tile * plan->kernels->q_tile;
    att_block *b = &x->block;
    b->mask_tile = mask_tile;
    b->q0 = q0;
    b->queries = queries;
    b->query = (att_floats){x->query.at + first * x->query.stride, x->query.stride};
    b->q = att_score_reads_query_rows(plan) ? NULL : x->w.q.q_packed + first * plan->q_dim;
    b->s = x->w.p + first;
    b->back.ds = x->w.ds + first;
    b->back.dq = x->head.dq_sum + q0 * plan->q_dim;
    b->back.products = x->w.products + first;
    if (plan->score.term) {
        b->query_term = x->w.q.terms + first;
        b->back.dquery_term = x->head.dterm + q0;
    }
    for (int i = 0; i < plan->modifiers.n; i++)
        b->back.saved[i] = x->w.saved[i] ? x->w.saved[i] + first : NULL;
    return b;
}

/* Computes dP of a range of keys and a few queries by the decode kernel, whose lanes are keys: a tile would be almost
 * empty. The chains of operations are the same. */
static void decode_dp(const att_backward_work *x, const att_block *b, int tile, int64_t first, int64_t keys)
{
    const att_plan *plan = x->plan;
    const int64_t dim = plan->spec.value_dim;
    const float *v = x->keys->value.at + first * x->keys->value.stride;
    const att_floats d = x->dout_rows;
    float s[DECODE_QUERIES * ATT_KEY_BLOCK];
    plan->kernels->decode.scores(&(const att_decode_scores){.type = ATT_F32,
                                                            .queries = b->queries,
                                                            .keys = keys,
                                                            .dim = dim,
                                                            .k = v,
                                                            .k_stride = x->keys->value.stride,
                                                            .q = d.at + tile * plan->kernels->q_tile * d.stride,
                                                            .q_stride = d.stride,
                                                            .s = s,
                                                            .s_stride = ATT_KEY_BLOCK});
    for (int i = 0; i < b->queries; i++)
        for (int64_t k = 0; k < keys; k++)
            b->back.ds[(first + k) * b->stride + i] = attends(&x->head.view, b->q0 + i) ? s[i * ATT_KEY_BLOCK + k] : 0;
}

/* Computes dP of range r: dP^T = V dO^T. */
static void dp_of_range(const att_backward_work *x, const att_block *b, int tile, int r)
{
    const att_kernels *k = x->plan->kernels;
    const int64_t dim = x->plan->spec.value_dim, stride = x->keys->value.stride;
    const int64_t first = b->mask_tile->range[r].first, keys = b->mask_tile->range[r].last - first;
    const float *v = x->keys->value.at + first * stride, *dout = x->w.q.dout_packed + tile * dim * k->q_tile;
    float *to = b->back.ds + first * b->stride;
    if (x->plan->bf16_pairs)
        k->bf16.scores(keys, b->queries, att_bf16_pairs_in(dim), v, stride, dout, to, b->stride);
    else if (b->queries <= DECODE_QUERIES)
        decode_dp(x, b, tile, first, keys);
    else
        k->backward.dp(&(const att_product){
            .n = b->queries, .m = keys, .k = dim, .a = v, .lda = stride, .b = dout, .c = to, .ldc = b->stride});
}

/* Replaces scores s of `keys` keys and a tile of queries by (scale s - origin) / scale, where the origin is not 0. */
static void shift(const att_block *b, int64_t keys, double scale, const float *origin, float *s)
{
    for (int i = 0; i < b->queries; i++)
        for (int64_t k = 0; k < keys && origin[i] != 0; k++)
            s[k * b->stride + i] = (float)(((double)s[k * b->stride + i] * scale - (double)origin[i]) / scale);
}

/* Computes P and dS of one tile, before the backward of the stages. */
static void p_and_ds(const att_backward_work *x, att_block *b, int tile)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const float scale = plan->scale.in_softmax ? plan->spec.scale : 1;
    uint64_t keep[ATT_KEY_BLOCK];
    b->bf16_pairs = plan->bf16_pairs; /* only for scores */
    b->key = plan->bf16_pairs ? x->keys->packed_keys : x->keys->key;
    att_score_block(b);
    b->bf16_pairs = false;
    b->key = x->keys->key;
    for (int r = 0; r < b->mask_tile->n_ranges; r++)
        dp_of_range(x, b, tile, r);
    att_dropout_mask_block(b, keep);
    att_dropout_apply_block(b, keep, b->back.ds);
    for (int r = 0; r < b->mask_tile->n_ranges; r++) {
        const int64_t first = b->mask_tile->range[r].first, keys = b->mask_tile->range[r].last - first;
        float *s = b->s + first * b->stride;
        if (x->job->split)
            shift(b, keys, (double)scale, x->w.q.origin + tile * k->q_tile, s);
        k->backward.softmax(keys, scale, s, b->back.ds + first * b->stride, b->stride, x->w.q.lse + tile * k->q_tile,
                            x->w.q.delta + tile * k->q_tile);
    }
    att_dropout_apply_block(b, keep, b->s);
}

/* Adds dS K of one tile to dQ, which the first block of keys overwrites. */
static void add_dq(att_backward_work *x, const att_block *b)
{
    const att_plan *plan = x->plan;
    const int64_t dim = plan->q_dim;
    const att_floats key = b->key;
    att_finite_ranges clean;
    att_finite_ranges_of(plan, b->mask_tile, b->queries, key, dim, &clean);
    for (int r = 0; r < clean.n_ranges; r++)
        plan->kernels->backward.gemm_tn(&(const att_product){.add = b->k0 > 0 || r > 0,
                                                             .m = dim,
                                                             .k = clean.range[r].last - clean.range[r].first,
                                                             .a = key.at + clean.range[r].first * key.stride,
                                                             .lda = key.stride,
                                                             .b = b->back.ds + clean.range[r].first * b->stride,
                                                             .ldb = b->stride,
                                                             .c = b->back.dq,
                                                             .prefetch = &x->prefetch});
    att_add_nonfinite(plan, b->mask_tile, &clean, b->queries, key, dim, (att_floats){b->back.ds, b->stride},
                      b->back.dq);
}

/* Returns bits of tiles: bit p states whether tile p attends to any of the ATT_SUB_TILE keys from `key` on. */
static unsigned tiles_of(const att_mask_tile *mask_tile, int n_q_tiles, int key)
{
    unsigned tiles = 0;
    for (int p = 0; p < n_q_tiles; p++)
        for (int r = 0; r < mask_tile[p].n_ranges; r++)
            if (mask_tile[p].range[r].first <= key && key < mask_tile[p].range[r].last)
                tiles |= 1u << p;
    return tiles;
}

/* Adds P^T dO to dV and dS^T Q to dK, for keys [first, last) and tiles [begin, end) of queries. The first sum of a
 * block overwrites dV and dK, unless `again`. */
static void accumulate(const att_backward_work *x, int queries, int first, int last, int begin, int end, bool again)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const att_backward_scratch *w = &x->w;
    const att_grad_block *dk = &x->keys->dk, *dv = &x->keys->dv;
    const int64_t stride = Q_TILES * k->q_tile, q = begin * k->q_tile;
    const int64_t count = att_min(end * k->q_tile, queries) - q;
    att_product product = {.add = dv->begun || again,
                           .m = last - first,
                           .n = dv->dim,
                           .k = count,
                           .a = w->p + first * stride + q,
                           .lda = stride,
                           .b = w->q.dout_rows + q * k->q_tile,
                           .ldb = stride,
                           .c = dv->from + first * dv->stride,
                           .ldc = dv->stride};
    k->backward.gemm_nn(&product);
    if (!att_score_is_dot(plan))
        return;
    product.add = dk->begun || again;
    product.n = dk->dim;
    product.a = w->ds + first * stride + q;
    product.b = w->q.q_rows + q * k->q_tile;
    product.c = dk->from + first * dk->stride;
    product.ldc = dk->stride;
    k->backward.gemm_nn(&product);
}

/* Accumulates dK and dV of the parts of the block that are not empty: keys to which the same queries attend share a
 * product. */
static void accumulate_block(att_backward_work *x, int queries, const att_mask_tile *mask_tile, int n_q_tiles)
{
    const int keys = x->keys->keys;
    for (int first = 0, last; first < keys; first = last) {
        const unsigned tiles = tiles_of(mask_tile, n_q_tiles, first);
        bool again = false;
        for (last = first; last < keys && tiles_of(mask_tile, n_q_tiles, last) == tiles;)
            last = last + ATT_SUB_TILE < keys ? last + ATT_SUB_TILE : keys;
        for (int begin = 0, end; begin < n_q_tiles; begin = end + 1) {
            for (end = begin; end < n_q_tiles && (tiles >> end & 1); end++)
                ;
            if (end > begin)
                accumulate(x, queries, first, last, begin, end, again);
            again = again || end > begin;
        }
        if (!again) {
            att_grad_block_clear(&x->keys->dk, first, last);
            att_grad_block_clear(&x->keys->dv, first, last);
        }
    }
    x->keys->dk.begun = x->keys->dv.begun = true;
}

/* ---- one step: some tiles of queries */

/* Returns how many of the queries are in tile p. */
static int queries_in_tile(int queries, int p, int panel)
{
    const int left = queries - p * panel;
    return left < panel ? left : panel;
}

/* Adds the gradients of the rows' terms to rows of dQ in dq_rows. */
static void add_dq_of_terms(const att_backward_work *x, int64_t q0, int n)
{
    const int64_t dim = x->plan->q_dim;
    if (!x->plan->score.term)
        return;
    const att_floats q = att_rows_read(x->plan->kernels, &x->head.view.q_row, q0, n, dim, x->w.q.query);
    att_row_terms_back(x->plan, q, n, x->head.dterm + q0, x->w.dq_rows, dim);
}

/* Writes dQ of these queries, which is complete, to its rows. */
static void write_dq(const att_backward_work *x, int64_t q0, int queries)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->q_dim;
    float scale[ATT_MAX_Q_TILE];
    if (att_score_reads_query_rows(plan)) {
        att_rows_write(k, (att_floats){x->head.dq_sum + q0 * dim, dim}, &x->head.dq, q0, queries, dim,
                       x->job->rows.add_dq, x->w.row);
        return;
    }
    for (int i = 0; i < k->q_tile; i++)
        scale[i] = att_query_scale(plan);
    for (int i = 0; x->head.dq.at && i < queries; i += k->q_tile) {
        const int n = queries - i < k->q_tile ? queries - i : k->q_tile;
        const float *from = x->head.dq_sum + (q0 + i) * dim;
        if (x->head.dq.dtype == ATT_F32 && !x->job->rows.add_dq && !plan->score.term) {
            k->attend.unpack(n, dim, from, scale, att_row_at(&x->head.dq, q0 + i), x->head.dq.stride);
        } else {
            k->attend.unpack(n, dim, from, scale, x->w.dq_rows, dim);
            add_dq_of_terms(x, q0 + i, n);
            att_rows_write(k, (att_floats){x->w.dq_rows, dim}, &x->head.dq, q0 + i, n, dim, x->job->rows.add_dq,
                           x->w.row);
        }
    }
}

/* Adds to gradients that several tasks share, once all earlier tasks have added: the backward of the stages, and dQ. */
static void add_in_order(att_backward_work *x, int64_t q0, int queries, const att_mask_tile *mask_tile, int n_q_tiles)
{
    const int64_t panel = x->plan->kernels->q_tile, dim = x->plan->q_dim;
    const bool dot = att_score_is_dot(x->plan);
    for (int i = 0; i < n_q_tiles; i++) {
        const int64_t rows = att_score_reads_query_rows(x->plan) ? queries_in_tile(queries, i, (int)panel) : panel;
        if (x->keys->k0 == 0 && (!dot || mask_tile[i].n_ranges == 0))
            memset(x->head.dq_sum + (q0 + i * panel) * dim, 0, (size_t)(rows * dim) * sizeof *x->head.dq_sum);
        if (x->keys->k0 == 0 && x->plan->score.term)
            memset(x->head.dterm + q0 + i * panel, 0, (size_t)panel * sizeof *x->head.dterm);
        if (mask_tile[i].n_ranges == 0)
            continue;
        const att_block *b = block_of(x, q0 + i * panel, queries_in_tile(queries, i, (int)panel), i, &mask_tile[i]);
        att_score_block_back(b);
        if (dot)
            add_dq(x, b);
    }
}

/* Lists what is prefetched while this step sums dQ: the rows of dQ, if it is complete then, and the queries of the next
 * step, those before q0. */
static void prefetch_next(att_backward_work *x, int64_t q0, int queries)
{
    const int64_t n = q0 > 0 ? Q_TILES * x->plan->kernels->q_tile : 0, value_dim = x->plan->spec.value_dim;
    att_rows_prefetch(&x->prefetch, &x->head.dq, q0, x->task->last ? queries : 0, x->plan->q_dim);
    att_rows_prefetch(&x->prefetch, &x->head.view.q_row, q0 - n, n, x->plan->q_dim);
    att_rows_prefetch(&x->prefetch, &x->head.dout, q0 - n, n, value_dim);
    att_rows_prefetch(&x->prefetch, &x->head.view.out, q0 - n, n, value_dim);
}

/* Makes the masks of the block by each tile; empty outside of the keys `attended`. Returns the number of ranges. */
static int make_masks(const att_backward_work *x, int64_t q0, int queries, att_range attended, att_mask_tile *mask_tile)
{
    const att_plan *plan = x->plan;
    const int panel = plan->kernels->q_tile;
    const int64_t k0 = x->keys->k0;
    int ranges = 0;
    for (int i = 0; i * panel < queries; i++) {
        if (attended.first <= k0 && k0 < attended.last)
            att_mask_tile_make(plan, &x->head.view, q0 + i * panel, queries_in_tile(queries, i, panel), k0,
                               x->keys->keys, &mask_tile[i]);
        else
            mask_tile[i].n_ranges = 0;
        ranges += mask_tile[i].n_ranges;
    }
    return ranges;
}

/* Processes a block of the task's keys by the queries of the step, which are prepared if they are not yet. Returns
 * whether any query attends to it. */
static bool compute_block(att_backward_work *x, att_kv_block *keys, int64_t q0, int queries, att_range attended,
                          bool prepared)
{
    const int panel = x->plan->kernels->q_tile, n_q_tiles = (queries + panel - 1) / panel;
    const bool first = keys == x->blocks, last = keys == &x->blocks[x->n_blocks - 1];
    att_mask_tile mask_tile[Q_TILES];
    set_kv_block(x, keys);
    const bool any = make_masks(x, q0, queries, attended, mask_tile) > 0;
    if (any && !prepared)
        prepare_queries(x, q0, queries);
    for (int i = 0; any && i < n_q_tiles; i++)
        p_and_ds(x, block_of(x, q0 + i * panel, queries_in_tile(queries, i, panel), i, &mask_tile[i]), i);
    if (last)
        prefetch_next(x, q0, queries);
    if (first)
        att_ticket_wait(&x->job->tasks, x->task, x->step);
    add_in_order(x, q0, queries, mask_tile, n_q_tiles);
    if (last && x->task->last)
        write_dq(x, q0, queries);
    if (last)
        att_ticket_advance(&x->job->tasks, x->task, ++x->step);
    if (any)
        accumulate_block(x, queries, mask_tile, n_q_tiles);
    return any;
}

void att_backward_step(att_backward_work *x, int64_t q0)
{
    const int64_t max = Q_TILES * x->plan->kernels->q_tile, left = x->head.view.head.tq - q0;
    const int queries = (int)(att_min(left, max)), sink = x->plan->modifiers.sink;
    bool prepared = sink >= 0 && att_sink_of(x->plan, x->head.param)->grad && x->task->k0 == 0;
    att_range attended;
    att_span(x->plan, &x->head.view, q0, queries, &attended.first, &attended.last);
    att_prefetch_clear(&x->prefetch);
    if (prepared) {
        prepare_queries(x, q0, queries);
        sink_back(x, queries);
    }
    for (int n = 0; n < x->n_blocks; n++)
        prepared = compute_block(x, &x->blocks[n], q0, queries, attended, prepared) || prepared;
}
