/* Computes vectors and scores of histories and items. */
#include "util/util.h"
#include "recommend/recommend_score.h"
#include "io/progress.h"
#include "recommend/counting.h"
#include "recommend/histories.h"

#include <math.h>
#include <string.h>

/* ---- the vectors of all items */

/* Makes the table of item vectors. It is computed if the model has content; otherwise it is the first rows of the
 * items' own vectors. */
static att_status make_table(const att_recommender *m, att_param **param, float **data)
{
    const int64_t count = m->config.info.items * m->config.info.hidden;
    att_ctx *ctx = m->model.ctx;
    att_tensor v = *att_param_value(m->item);
    v.dim[0] = m->config.info.items;
    *data = NULL;
    if (!m->content)
        return att_param_new(ctx, &v, param);
    att_tape *t;
    att_status e = att_model_tape(&m->model, &t);
    if (e)
        return e;
    e = att_var_value(t, att_recommender_table(t, m), &v);
    *data = e ? NULL : att_alloc(ctx, (size_t)count, sizeof **data);
    if (*data)
        memcpy(*data, v.data, (size_t)count * sizeof **data);
    v.data = *data;
    e = *data ? att_param_new(ctx, &v, param) : e ? e : ATT_ERR_MEMORY;
    att_tape_free(t);
    return e;
}

/* Finds the rows of a table that are zeros. Without content there are none. */
static att_status find_without(const att_recommender *m, const float *table, att_items_without *out)
{
    const int64_t items = m->config.info.items, hidden = m->config.info.hidden;
    *out = (att_items_without){0};
    if (!m->content)
        return ATT_OK;
    for (int pass = 0; pass < 2; pass++) {
        out->items = pass && out->n ? att_alloc(m->model.ctx, (size_t)out->n, sizeof *out->items) : NULL;
        if (pass && out->n && !out->items)
            return ATT_ERR_MEMORY;
        out->n = 0;
        for (int64_t i = 0; i < items; i++)
            if (att_recommender_is_zero(table + i * hidden, hidden)) {
                if (out->items)
                    out->items[out->n] = (int32_t)i;
                out->n++;
            }
    }
    return ATT_OK;
}

static bool has_own_table(const att_recommender *m) { return m->content || m->architecture->mask; }

att_status att_recommender_make_table(att_recommender *m)
{
    if (!has_own_table(m))
        return ATT_OK;
    const att_status e = make_table(m, &m->table, &m->table_data);
    if (!e)
        att_model_set_mapped(&m->model, m->table);
    return e ? e : find_without(m, m->table_data, &m->without);
}

att_status att_recommender_prepare(att_recommender *m)
{
    att_tape *t;
    att_top_column best;
    if (!m->model.options.prepare || m->architecture->counting)
        return ATT_OK;
    att_status e = att_model_tape(&m->model, &t);
    if (e)
        return e;
    att_var *x = att_histories_apply(t, m, 1, (const int32_t[]){0}, (const int64_t[]){0, 1});
    e = att_linear_topk(t, x, m->table ? m->table : m->item, NULL, NULL, 1, &best, NULL);
    att_tape_free(t);
    return e;
}

att_status att_item_table_open(const att_recommender *m, att_item_table *out)
{
    *out = (att_item_table){.param = m->table ? m->table : m->item, .without = m->without};
    if (m->table || !has_own_table(m))
        return ATT_OK;
    att_status e = make_table(m, &out->own, &out->data);
    e = e ? e : find_without(m, out->data, &out->without);
    out->param = out->own;
    if (e)
        att_item_table_close(m, out);
    return e;
}

void att_item_table_close(const att_recommender *m, att_item_table *table)
{
    att_param_free(table->own);
    att_free(m->model.ctx, table->data);
    if (!m->table)
        att_free(m->model.ctx, table->without.items);
    *table = (att_item_table){0};
}

att_status att_recommender_vectors(const att_recommender *m, float *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_tape *t;
    att_tensor v;
    att_status e = att_counting_refuse(m, __func__, "vectors of items");
    e = e ? e : att_model_tape(&m->model, &t);
    if (e)
        return e;
    e = att_var_value(t, att_recommender_table(t, m), &v);
    if (!e) {
        memcpy(out, v.data, (size_t)(v.dim[0] * v.dim[1]) * sizeof *out);
        e = att_check_finite(m->model.ctx, "the numbers of the vector of item", v.dim[0], v.dim[1], out);
    }
    att_tape_free(t);
    return e;
}

/* ---- the vectors of histories */

/* The model's input, and the last token of each history. */
typedef struct inputs {
    int32_t *items;
    int64_t *offsets;
    int32_t *last; /* [n] */
} inputs;

static void free_inputs(const att_recommender *m, inputs *in)
{
    att_free(m->model.ctx, in->items);
    att_free(m->model.ctx, in->offsets);
    att_free(m->model.ctx, in->last);
}

/* Lists the last items of each history, as many as there are positions, including the mask. */
static att_status make_inputs(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                              inputs *in)
{
    const bool mask = m->architecture->mask;
    const int64_t max = m->config.info.max_positions - mask;
    *in = (inputs){.items = att_alloc(m->model.ctx, (size_t)(att_min(offsets[n] - offsets[0], n * max) + n * mask),
                                      sizeof *in->items),
                   .offsets = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *in->offsets),
                   .last = att_alloc(m->model.ctx, (size_t)n, sizeof *in->last)};
    if (!in->items || !in->offsets || !in->last)
        return ATT_ERR_MEMORY;
    int64_t at = in->offsets[0] = 0;
    for (int64_t b = 0; b < n; b++) {
        const int64_t count = att_min(offsets[b + 1] - offsets[b], max);
        memcpy(in->items + at, items + offsets[b + 1] - count, (size_t)count * sizeof *items);
        at += count;
        if (mask)
            in->items[at++] = (int32_t)m->config.info.items;
        in->offsets[b + 1] = at;
        in->last[b] = (int32_t)at - 1;
    }
    return ATT_OK;
}

att_var *att_histories_apply(att_tape *t, const att_recommender *m, int64_t n, const int32_t *items,
                             const int64_t *offsets)
{
    inputs in;
    att_var *x = NULL;
    if (make_inputs(m, n, items, offsets, &in))
        att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    else
        x = att_gather(t, att_recommender_apply(t, m, in.items, in.offsets, n, NULL), in.last, n);
    free_inputs(m, &in);
    return x;
}

att_status att_recommender_embed(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                                 const att_call_options *options, float *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"offsets", offsets}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_tape *t;
    att_tensor v;
    att_status e = att_counting_refuse(m, __func__, "vectors of histories");
    e = e ? e : att_histories_check(m->model.ctx, "the model", m->config.info.items, n, items, offsets);
    for (int64_t b = 0; !e && b < n; b++)
        if (offsets[b] == offsets[b + 1])
            e = att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "history %lld has no item", (long long)b);
    att_progress p;
    e = e ? e : att_progress_of(&p, m->model.ctx, __func__, options, n);
    e = e ? e : att_model_tape(&m->model, &t);
    if (e)
        return e;
    for (int64_t first = 0; !e && first < n; first += ATT_HISTORIES) {
        const int64_t count = att_min(n - first, ATT_HISTORIES);
        e = att_var_value(t, att_histories_apply(t, m, count, items, offsets + first), &v);
        if (!e)
            memcpy(out + first * v.dim[1], v.data, (size_t)(count * v.dim[1]) * sizeof *out);
        att_tape_reset(t);
        e = e ? e : att_progress_add(&p, count);
    }
    att_tape_free(t);
    e = e ? e : att_progress_end(&p);
    return e ? e
             : att_check_finite(m->model.ctx, "the numbers of the vector of history", n, m->config.info.hidden, out);
}

/* ---- scores of all items */

/* Keeps the items of a log's histories that the model knows. */
static att_status keep_known(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                             int32_t *known, int64_t *ends)
{
    int64_t at = ends[0] = 0;
    for (int64_t b = 0; b < n; b++) {
        for (int64_t i = offsets[b]; i < offsets[b + 1]; i++)
            if (items[i] < m->config.info.items)
                known[at++] = items[i];
        ends[b + 1] = at;
        if (at == ends[b] && !m->counts)
            return att_no_counts(m, b);
    }
    return ATT_OK;
}

att_status att_no_counts(const att_recommender *m, int64_t history)
{
    return att_fail(m->model.ctx, ATT_ERR_ARGUMENT,
                    "history %lld has no item that the model knows, and the model has no counts of its items "
                    "(att_recommender_set_counts)",
                    (long long)history);
}

/* Writes the scores of non-empty histories to their rows of scores [n, n_items]. Only the scores of the model's items
 * are written. */
static att_status score_rows(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                             int64_t n_items, float *scores)
{
    att_item_table table;
    att_tape *t = NULL;
    att_tensor v;
    const int64_t own = m->config.info.items;
    if (m->architecture->counting)
        return att_counting_scores(m, n, items, offsets, n_items, scores);
    att_status e = att_item_table_open(m, &table);
    e = e ? e : att_model_tape(&m->model, &t);
    for (int64_t first = 0; !e && first < n; first += ATT_HISTORIES) {
        const int64_t count = att_min(n - first, ATT_HISTORIES);
        att_var *x = att_histories_apply(t, m, count, items, offsets + first);
        e = att_var_value(t, att_linear(t, x, table.param, NULL, ATT_ACTIVATION_IDENTITY, NULL), &v);
        for (int64_t b = 0; !e && b < count; b++)
            memcpy(scores + (first + b) * n_items, (float *)v.data + b * own, (size_t)own * sizeof *scores);
        for (int64_t b = 0; !e && b < count; b++)
            for (int64_t i = 0; i < table.without.n; i++)
                scores[(first + b) * n_items + table.without.items[i]] = -INFINITY;
        att_tape_reset(t);
    }
    att_tape_free(t);
    att_item_table_close(m, &table);
    return e;
}

static void fill_rest(const att_recommender *m, int64_t n, const int64_t *ends, int64_t n_items, float *scores)
{
    const int64_t own = m->config.info.items;
    for (int64_t b = 0; b < n; b++) {
        float *row = scores + b * n_items;
        for (int64_t i = 0; ends[b] == ends[b + 1] && i < own; i++)
            row[i] = (float)m->counts[i];
        for (int64_t i = own; i < n_items; i++)
            row[i] = -INFINITY;
    }
}

static att_status score(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                        float *scores)
{
    const att_recommender *m = user;
    att_ctx *ctx = m->model.ctx;
    if (n_items < m->config.info.items)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "the log has %lld items, but the model has %lld", (long long)n_items,
                        (long long)m->config.info.items);
    int32_t *known = att_alloc(ctx, (size_t)(offsets[n] - offsets[0]), sizeof *known);
    int64_t *ends = att_alloc(ctx, (size_t)n + 1, sizeof *ends);
    att_status e = known && ends ? keep_known(m, n, items, offsets, known, ends) : ATT_ERR_MEMORY;
    for (int64_t b = 0, next; !e && b < n; b = next) { /* runs of histories with items */
        for (next = b; next < n && ends[next] < ends[next + 1]; next++)
            ;
        e = next > b ? score_rows(m, next - b, known, ends + b, n_items, scores + b * n_items) : ATT_OK;
        next += next == b;
    }
    if (!e)
        fill_rest(m, n, ends, n_items, scores);
    att_free(ctx, known);
    att_free(ctx, ends);
    return e;
}

att_scorer att_recommender_scorer(const att_recommender *m)
{
    return (att_scorer){.score = m ? score : NULL, .user = (void *)(uintptr_t)m};
}
