#include "recommend/counting.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* ---- scores */

enum { PARTS = 16 };

typedef struct scoring {
    const att_recommender *m;
    int64_t n;
    const int32_t *items;
    const int64_t *offsets;
    int64_t stride;
    float *scores;
    float *rows; /* [PARTS, items] */
} scoring;

static void score_part(void *arg, int part)
{
    const scoring *s = arg;
    float *row = s->rows + part * s->m->config.info.items;
    for (int64_t b = part; b < s->n; b += PARTS)
        s->m->architecture->counting->score(s->m, s->items + s->offsets[b], s->offsets[b + 1] - s->offsets[b],
                                            s->scores + b * s->stride, row);
}

att_status att_counting_scores(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                               int64_t stride, float *scores)
{
    scoring s = {m, n, items, offsets, stride, scores, NULL};
    s.rows = att_alloc(m->model.ctx, PARTS * (size_t)m->config.info.items, sizeof *s.rows);
    if (!s.rows)
        return ATT_ERR_MEMORY;
    att_parallel_for(m->model.ctx, PARTS, score_part, &s);
    att_free(m->model.ctx, s.rows);
    return ATT_OK;
}

att_status att_counting_similar(const att_recommender *m, int64_t n, const int32_t *items, float *scores)
{
    const att_counting_kind *k = m->architecture->counting;
    const int64_t all = m->config.info.items;
    if (!k->similar)
        return att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED, "%s has no similar items: it compares no items",
                        m->config.info.type);
    float *row = att_alloc(m->model.ctx, (size_t)all, sizeof *row);
    for (int64_t b = 0; row && b < n; b++) {
        float *x = scores + b * all;
        if (m->counts[items[b]] > 0)
            k->similar(m, items[b], x, row);
        for (int64_t i = 0; m->counts[items[b]] == 0 && i < all; i++)
            x[i] = -INFINITY;
    }
    att_free(m->model.ctx, row);
    return row ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_counting_refuse(const att_recommender *m, const char *function, const char *what)
{
    return m->architecture->counting
               ? att_fail(m->model.ctx, ATT_ERR_UNSUPPORTED, "%s: %s has no %s: it counts the actions of a log",
                          function, m->config.info.type, what)
               : ATT_OK;
}

/* ---- popularity */

static void score_by_count(const att_recommender *m, const int32_t *items, int64_t n, float *scores, float *row)
{
    (void)items, (void)n, (void)row;
    for (int64_t i = 0; i < m->config.info.items; i++)
        scores[i] = (float)m->counts[i];
}

static const char *const no_settings[] = {"model_type", "num_items", NULL};
static const att_counting_kind popularity = {.name = "popularity", .settings = no_settings, .score = score_by_count};
const att_recommender_architecture att_popularity = {.counting = &popularity};

/* ---- making a model */

static att_status count(att_recommender *m, const att_holdout *h, att_progress *p)
{
    const att_counting_kind *k = m->architecture->counting;
    att_item_users x;
    att_status e = att_recommender_set_counts(m, h->counts);
    if (e || !k->count)
        return e;
    e = att_item_users_find(h, &x);
    e = e ? e : k->count(m, &x, p);
    att_item_users_free(&x);
    return e;
}

static att_status add_items(att_recommender *m, const att_interactions *log)
{
    return att_item_ids_copy(&m->ids, &log->items);
}

att_status att_recommender_fit(const att_holdout *data, const char *settings, const att_call_options *options,
                               att_recommender **out)
{
    att_progress p;
    att_recommender *m = NULL;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"data", data}, {"settings", settings}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_progress_of(&p, data->ctx, __func__, options, 0);
    e = e ? e : att_recommender_make(data->ctx, settings, data->log->info.items, 0, 0, &m);
    if (!e && !m->architecture->counting)
        e = att_fail(data->ctx, ATT_ERR_ARGUMENT, "%s is trained, not counted: att_recommender_training_open",
                     m->config.info.type);
    e = e ? e : add_items(m, data->log);
    e = e ? e : count(m, data, &p);
    e = e ? e : att_progress_end(&p);
    if (e)
        att_recommender_free(m);
    else
        *out = m;
    return e;
}
