/* Attention backward, one step: a block of keys by some panels of queries (see backward.c for the formulas). */
#include "attn/backward.h"

#include <math.h>

enum {
    PANELS = ATT_BACK_PANELS,
    FEW = 4 /* queries in a panel for which dP has keys as its lanes */
};

/* ---- queries */

/* A row with nothing to attend has no gradient, whatever its output's is. */
static bool attends(const att_site *at, int64_t q) { return at->lse[q * at->lse_stride] != -INFINITY; }

/* The output gradient of query i of the panels counts as 0. */
static void forget_query(const att_back_work *x, int i)
{
    const int64_t panel = x->plan->kernels->panel, value_dim = x->plan->spec.value_dim;
    for (int64_t d = 0; d < value_dim; d++) {
        x->w.dout_turned[i / panel * value_dim * panel + d * panel + i % panel] = 0;
        x->w.dout_rows[(d / panel * PANELS * panel + i) * panel + d % panel] = 0;
    }
    x->w.lse[i] = x->w.delta[i] = 0;
}

/* delta and log-sum-exp of query q0 + i. */
static void prepare_row(const att_back_work *x, int64_t q0, int i)
{
    const att_site *at = &x->site;
    const att_kernels *k = x->plan->kernels;
    const int64_t dim = x->plan->spec.value_dim;
    const float *dout = x->dout_rows.at + i * x->dout_rows.stride;
    const float *out = att_rows_read(k, &at->out, q0 + i, 1, dim, x->w.row).at;
    const float dlse = x->dlse.at ? ((const float *)x->dlse.at)[(q0 + i) * x->dlse.stride] : 0;
    x->w.lse[i] = (float)(at->lse[(q0 + i) * at->lse_stride] * ATT_LOG2_E);
    x->w.delta[i] = k->dot(dim, dout, out) - dlse;
}

/* Rows of words, turned panel by panel. */
static void turn_words(const att_back_work *x, const att_rows *rows, int64_t q0, int queries, int64_t dim, float *words,
                       float *y)
{
    const att_kernels *k = x->plan->kernels;
    const att_floats from = att_words_of_rows(k, rows, q0, queries, dim, words);
    for (int i = 0; i < queries; i += k->panel)
        k->turn_words(queries - i < k->panel ? queries - i : k->panel, att_words_in(dim), from.at + i * from.stride,
                      from.stride, y + i * dim);
}

/* Queries [q0, q0 + queries) and their output gradients, in both layouts. */
static void prepare_queries(att_back_work *x, int64_t q0, int queries)
{
    const att_plan *plan = x->plan;
    const att_site *at = &x->site;
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->q_dim, value_dim = plan->spec.value_dim;
    const att_floats q = att_rows_read(k, &at->q_row, q0, queries, dim, x->w.query);
    const att_floats d = att_rows_read(k, &x->dout, q0, queries, value_dim, x->w.dout);
    x->query = q;
    x->dout_rows = d;
    if (plan->words) {
        turn_words(x, &at->q_row, q0, queries, dim, x->w.words[0], x->w.q_turned);
        turn_words(x, &x->dout, q0, queries, value_dim, x->w.words[1], x->w.dout_turned);
    }
    for (int i = 0; !plan->words && i < queries; i += k->panel) {
        const int n = queries - i < k->panel ? queries - i : k->panel;
        if (!att_takes_rows(plan))
            att_turn_queries(plan, (att_floats){q.at + i * q.stride, q.stride}, n, x->w.q_turned + i * dim);
        if (n > FEW)
            k->turn_in(n, value_dim, d.at + i * d.stride, d.stride, 1, x->w.dout_turned + i * value_dim);
    }
    if (att_back_is_dot(plan))
        k->panel_rows(queries, PANELS * k->panel, dim, q.at, q.stride, att_query_scale(plan), x->w.q_rows);
    k->panel_rows(queries, PANELS * k->panel, value_dim, d.at, d.stride, 1, x->w.dout_rows);
    for (int i = 0; i < queries; i++) {
        if (attends(at, q0 + i))
            prepare_row(x, q0, i);
        else
            forget_query(x, i);
    }
}

/* dsink = sum of -p delta, p = exp(sink - lse) being the sink's own weight. */
static void sink_back(const att_back_work *x, int queries)
{
    const att_operand *sink = &x->modifier_param[x->plan->sink];
    double sum = 0;
    for (int i = 0; i < queries; i++)
        sum -= exp2(sink->data[0] * ATT_LOG2_E - (double)x->w.lse[i]) * (double)x->w.delta[i];
    sink->grad[0] += (float)sum;
}

/* ---- a block of keys by some panels of queries */

void att_back_begin(att_back_work *x)
{
    const att_plan *plan = x->plan;
    x->block = (att_block){.plan = plan,
                           .site = &x->site,
                           .k0 = x->task->k0,
                           .key = x->key,
                           .ready = att_ready_count(plan) && !x->keeps ? x->w.ready : NULL,
                           .kept = x->keeps ? x->w.ready : NULL,
                           .stride = PANELS * plan->kernels->panel,
                           .dk = x->dk.from,
                           .dk_stride = x->dk.stride,
                           .pair = x->w.pair,
                           .score_param = x->score_param,
                           .modifier_param = x->modifier_param};
}

/* The block as a panel of queries meets it; one at a time. */
static att_block *block_of(att_back_work *x, int64_t q0, int queries, int panel_number, const att_cut *cut)
{
    const att_plan *plan = x->plan;
    const int64_t first = panel_number * plan->kernels->panel;
    att_block *b = &x->block;
    b->cut = cut;
    b->q0 = q0;
    b->queries = queries;
    b->query = (att_floats){x->query.at + first * x->query.stride, x->query.stride};
    b->q = att_takes_rows(plan) ? NULL : x->w.q_turned + first * plan->q_dim;
    b->s = x->w.p + first;
    b->ds = x->w.ds + first;
    b->dq = x->dq_sum + q0 * plan->q_dim;
    for (int i = 0; i < plan->n_modifiers; i++)
        b->saved[i] = x->w.saved[i] ? x->w.saved[i] + first : NULL;
    return b;
}

/* dP of a run of keys and a few queries, whose lanes are keys: the same chains, and no panel that is almost empty. */
static void few_over_columns(const att_back_work *x, const att_block *b, int panel_number, int64_t first, int64_t keys)
{
    const att_plan *plan = x->plan;
    const int64_t dim = plan->spec.value_dim;
    const float *v = x->value.at + first * x->value.stride;
    const att_floats d = x->dout_rows;
    float s[FEW * ATT_KEY_BLOCK];
    plan->kernels->few_scores(ATT_F32, b->queries, false, keys, dim, v, x->value.stride,
                              d.at + panel_number * plan->kernels->panel * d.stride, d.stride, s, ATT_KEY_BLOCK,
                              x->key.at);
    for (int i = 0; i < b->queries; i++)
        for (int64_t k = 0; k < keys; k++)
            b->ds[(first + k) * b->stride + i] = attends(&x->site, b->q0 + i) ? s[i * ATT_KEY_BLOCK + k] : 0;
}

/* dP of a run of keys: dP^T = V dO^T. */
static void slopes(const att_back_work *x, const att_block *b, int panel_number, int64_t first, int64_t keys)
{
    const att_kernels *k = x->plan->kernels;
    const int64_t dim = x->plan->spec.value_dim, stride = x->value.stride;
    const float *v = x->value.at + first * stride, *dout = x->w.dout_turned + panel_number * dim * k->panel;
    float *to = b->ds + first * b->stride;
    if (x->plan->words)
        k->word_scores(keys, b->queries, att_words_in(dim), v, stride, dout, to, b->stride);
    else if (b->queries <= FEW)
        few_over_columns(x, b, panel_number, first, keys);
    else
        k->over_columns(b->queries, keys, dim, v, stride, dout, to, b->stride);
}

/* One panel: P and dS, before the stages are walked back. */
static void weights_and_slopes(const att_back_work *x, att_block *b, int panel_number)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    uint64_t keep[ATT_KEY_BLOCK];
    b->words = plan->words; /* for scores alone */
    b->key = plan->words ? x->key_words : x->key;
    att_score_block(b);
    b->words = false;
    b->key = x->key;
    for (int r = 0; r < b->cut->n_runs; r++)
        slopes(x, b, panel_number, b->cut->run[r].first, b->cut->run[r].last - b->cut->run[r].first);
    att_keep_block(b, keep);
    att_drop_block(b, keep, b->ds);
    for (int r = 0; r < b->cut->n_runs; r++) {
        const int64_t first = b->cut->run[r].first, keys = b->cut->run[r].last - first;
        k->soften_back(keys, plan->late ? plan->spec.scale : 1, b->s + first * b->stride, b->ds + first * b->stride,
                       b->stride, x->w.lse + panel_number * k->panel, x->w.delta + panel_number * k->panel);
    }
    att_drop_block(b, keep, b->s);
}

/* dQ += dS K of one panel. */
static void over_keys(att_back_work *x, const att_block *b)
{
    const att_plan *plan = x->plan;
    const int64_t dim = plan->q_dim;
    const att_floats key = b->key;
    att_clean clean;
    att_cut_clean(plan, b->cut, b->queries, key.at, key.stride, dim, &clean);
    for (int r = 0; r < clean.n_runs; r++)
        plan->kernels->over_keys(dim, clean.run[r].last - clean.run[r].first, key.at + clean.run[r].first * key.stride,
                                 key.stride, b->ds + clean.run[r].first * b->stride, b->stride, b->dq, &x->next_soon);
    att_add_unclean(plan, b->cut, &clean, b->queries, key.at, key.stride, dim, b->ds, b->stride, b->dq);
}

/* Bit p: does panel p attend to anything in the sub-tile of keys that begins at `key`? */
static unsigned panels_of(const att_cut *cut, int n_panels, int key)
{
    unsigned panels = 0;
    for (int p = 0; p < n_panels; p++)
        for (int r = 0; r < cut[p].n_runs; r++)
            if (cut[p].run[r].first <= key && key < cut[p].run[r].last)
                panels |= 1u << p;
    return panels;
}

/* dV += P^T dO and dK += dS^T Q for keys [first, last), over panels [begin, end) of queries; or begins them, unless
 * they are met again. */
static void gather(const att_back_work *x, int queries, int first, int last, int begin, int end, bool again)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const att_back_scratch *w = &x->w;
    const att_gathered *dk = &x->dk, *dv = &x->dv;
    const int64_t stride = PANELS * k->panel, q = begin * k->panel;
    const int64_t count = (end * k->panel < queries ? end * k->panel : queries) - q;
    k->over_queries(dv->begun || again, last - first, count, w->p + first * stride + q, stride,
                    w->dout_rows + q * k->panel, stride, dv->dim, dv->from + first * dv->stride, dv->stride);
    if (att_back_is_dot(plan))
        k->over_queries(dk->begun || again, last - first, count, w->ds + first * stride + q, stride,
                        w->q_rows + q * k->panel, stride, dk->dim, dk->from + first * dk->stride, dk->stride);
}

/* The same for the whole block, where it is not empty: keys that the same panels attend to go together. */
static void gather_block(att_back_work *x, int queries, const att_cut *cut, int n_panels)
{
    const int keys = x->task->keys;
    for (int first = 0, last; first < keys; first = last) {
        const unsigned panels = panels_of(cut, n_panels, first);
        bool again = false;
        for (last = first; last < keys && panels_of(cut, n_panels, last) == panels;)
            last = last + ATT_SUB_TILE < keys ? last + ATT_SUB_TILE : keys;
        for (int begin = 0, end; begin < n_panels; begin = end + 1) {
            for (end = begin; end < n_panels && (panels >> end & 1); end++)
                ;
            if (end > begin)
                gather(x, queries, first, last, begin, end, again);
            again = again || end > begin;
        }
        if (!again) {
            att_begin_empty(&x->dk, first, last);
            att_begin_empty(&x->dv, first, last);
        }
    }
    x->dk.begun = x->dv.begun = true;
}

/* ---- one step: some panels of queries */

/* How many of the queries are in panel p. */
static int in_panel(int queries, int p, int panel)
{
    const int left = queries - p * panel;
    return left < panel ? left : panel;
}

/* dQ of these queries is complete: turned back, where it is turned, and stored. */
static void store_queries(const att_back_work *x, int64_t q0, int queries)
{
    const att_plan *plan = x->plan;
    const att_kernels *k = plan->kernels;
    const int64_t dim = plan->q_dim;
    float scale[ATT_MAX_PANEL];
    if (att_takes_rows(plan)) {
        att_rows_write(k, x->dq_sum + q0 * dim, dim, &x->dq, q0, queries, dim, x->job->rows.add_dq, x->w.row);
        return;
    }
    for (int i = 0; i < k->panel; i++)
        scale[i] = att_query_scale(plan);
    for (int i = 0; x->dq.at && i < queries; i += k->panel) {
        const int n = queries - i < k->panel ? queries - i : k->panel;
        const float *from = x->dq_sum + (q0 + i) * dim;
        if (x->dq.dtype == ATT_F32 && !x->job->rows.add_dq) {
            k->turn_out(n, dim, from, scale, att_row_at(&x->dq, q0 + i), x->dq.stride);
        } else {
            k->turn_out(n, dim, from, scale, x->w.dq_rows, dim);
            att_rows_write(k, x->w.dq_rows, dim, &x->dq, q0 + i, n, dim, x->job->rows.add_dq, x->w.row);
        }
    }
}

/* Its turn has come: all that earlier tasks add to what is shared by several is there. */
static void in_turn(att_back_work *x, int64_t q0, int queries, const att_cut *cut, int n_panels)
{
    const int64_t panel = x->plan->kernels->panel, dim = x->plan->q_dim;
    const int64_t rows = att_takes_rows(x->plan) ? queries : n_panels * panel;
    if (x->task->k0 == 0)
        memset(x->dq_sum + q0 * dim, 0, (size_t)(rows * dim) * sizeof *x->dq_sum);
    for (int i = 0; i < n_panels; i++) {
        if (cut[i].n_runs == 0)
            continue;
        const att_block *b = block_of(x, q0 + i * panel, in_panel(queries, i, (int)panel), i, &cut[i]);
        att_score_block_back(b);
        if (att_back_is_dot(x->plan))
            over_keys(x, b);
    }
    if (x->task->last)
        store_queries(x, q0, queries);
}

/* Lists what is fetched while this step sums dQ: where dQ is stored, if it is then complete, and rows of queries of the
 * next step, those before q0. */
static void look_ahead(att_back_work *x, int64_t q0, int queries)
{
    const int64_t n = q0 > 0 ? PANELS * x->plan->kernels->panel : 0, value_dim = x->plan->spec.value_dim;
    x->soon[0].rows = 0;
    x->next_soon = x->soon;
    att_soon_add(x->soon, &x->dq, q0, x->task->last ? queries : 0, x->plan->q_dim);
    att_soon_add(x->soon, &x->site.q_row, q0 - n, n, x->plan->q_dim);
    att_soon_add(x->soon, &x->dout, q0 - n, n, value_dim);
    att_soon_add(x->soon, &x->site.out, q0 - n, n, value_dim);
}

void att_back_step(att_back_work *x, int64_t q0)
{
    const att_plan *plan = x->plan;
    const int panel = plan->kernels->panel;
    const int64_t left = x->site.place.tq - q0;
    const int queries = (int)(left < PANELS * panel ? left : PANELS * panel), n_panels = (queries + panel - 1) / panel;
    const bool has_sink = plan->sink >= 0 && x->modifier_param[plan->sink].grad && x->task->k0 == 0;
    const int64_t k0 = x->task->k0;
    int64_t first, last;
    att_cut cut[PANELS];
    int any = 0;
    att_span(plan, &x->site, q0, queries, &first, &last);
    for (int i = 0; i < n_panels; i++) {
        if (first <= k0 && k0 < last)
            att_cut_block(plan, &x->site, q0 + i * panel, in_panel(queries, i, panel), k0, x->task->keys, &cut[i]);
        else
            cut[i].n_runs = 0;
        any += cut[i].n_runs;
    }
    if (any || has_sink)
        prepare_queries(x, q0, queries);
    if (has_sink)
        sink_back(x, queries);
    for (int i = 0; any && i < n_panels; i++)
        weights_and_slopes(x, block_of(x, q0 + i * panel, in_panel(queries, i, panel), i, &cut[i]), i);
    look_ahead(x, q0, queries);
    att_tasks_await(&x->job->tasks, x->task, x->step);
    in_turn(x, q0, queries, cut, n_panels);
    att_tasks_pass(&x->job->tasks, x->task, ++x->step);
    if (any)
        gather_block(x, queries, cut, n_panels);
}
