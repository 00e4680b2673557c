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
static const att_counting_kind popularity = {.settings = no_settings, .score = score_by_count};
const att_recommender_architecture att_popularity = {.counting = &popularity};
