/* Computes scores by popularity and by neighbors, as the models that count do, and by the content of items. */
#include "io/progress.h"
#include "recommend/holdout.h"
#include "recommend/counting.h"
#include "recommend/histories.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct att_baseline {
    att_ctx *ctx;
    const att_holdout *h;
    att_baseline_kind kind;
    att_recommender *model; /* of a kind that counts; or NULL */
    double decay;           /* of weights of the history's items, from its end */
    float *vectors;         /* [items, width], of length 1 or 0; or NULL */
    int64_t width;
};

/* ---- content */

typedef struct scoring {
    const att_baseline *b;
    const int32_t *items; /* [offsets[n]] */
    const int64_t *offsets;
    int64_t n_items;
    float *scores; /* [n, n_items] */
    float *means;  /* [n, width] */
} scoring;

/* Returns the score of an item that has no other score. */
static float by_popularity(const att_baseline *b, int64_t item) { return att_score_by_popularity(b->h->counts[item]); }

static double squared_length(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

/* Sums the vectors of the history's items, weighted by their distance from the end. */
static void mean_row(void *arg, int row)
{
    const scoring *s = arg;
    const att_baseline *b = s->b;
    float *mean = s->means + row * b->width;
    double weight = 1;
    memset(mean, 0, (size_t)b->width * sizeof *mean);
    for (int64_t i = s->offsets[row + 1] - 1; i >= s->offsets[row]; i--, weight *= b->decay)
        for (int64_t d = 0; d < b->width; d++)
            mean[d] += (float)weight * b->vectors[s->items[i] * b->width + d];
}

/* Replaces missing cosines: items without a vector come last, and a history without vectors gets scores by popularity.
 */
static void finish_content_row(void *arg, int row)
{
    const scoring *s = arg;
    const att_baseline *b = s->b;
    float *scores = s->scores + row * s->n_items;
    if (squared_length(s->means + row * b->width, b->width) == 0) {
        for (int64_t i = 0; i < s->n_items; i++)
            scores[i] = by_popularity(b, i);
        return;
    }
    for (int64_t i = 0; i < s->n_items; i++)
        if (squared_length(b->vectors + i * b->width, b->width) == 0)
            scores[i] = -2 + by_popularity(b, i);
}

static att_status score_content(scoring *s, int n)
{
    const att_baseline *b = s->b;
    s->means = att_alloc(b->ctx, (size_t)n, (size_t)b->width * sizeof *s->means);
    if (!s->means)
        return ATT_ERR_MEMORY;
    att_parallel_for(b->ctx, n, mean_row, s);
    att_tensor means, vectors, scores;
    att_wrap(&means, s->means, ATT_F32, ATT_DIMS(n, b->width), NULL);
    att_wrap(&vectors, b->vectors, ATT_F32, ATT_DIMS(s->n_items, b->width), NULL);
    att_wrap(&scores, s->scores, ATT_F32, ATT_DIMS(n, s->n_items), NULL);
    const att_status e = att_tensor_cosine(b->ctx, &means, &vectors, &scores);
    if (!e)
        att_parallel_for(b->ctx, n, finish_content_row, s);
    att_free(b->ctx, s->means);
    return e;
}

/* ---- the scorer */

static att_status score(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                        float *scores)
{
    const att_baseline *b = user;
    scoring s = {b, items, offsets, n_items, scores, NULL};
    if (n_items != b->h->log->info.items)
        return att_fail(b->ctx, ATT_ERR_ARGUMENT, "scores of %lld items, but the baseline's log has %lld",
                        (long long)n_items, (long long)b->h->log->info.items);
    const att_status e = att_histories_check(b->ctx, "the log", n_items, n, items, offsets);
    if (e || n == 0)
        return e;
    if (b->kind == ATT_BASELINE_CONTENT)
        return score_content(&s, (int)n);
    const att_scorer counted = att_recommender_scorer(b->model);
    return counted.score(counted.user, items, offsets, n, n_items, scores);
}

/* ---- the object */

/* Copies the vectors, scaled to length 1. */
static att_status copy_vectors(att_baseline *b, const float *vectors)
{
    const int64_t items = b->h->log->info.items;
    b->vectors = att_alloc(b->ctx, (size_t)items, (size_t)b->width * sizeof *b->vectors);
    if (!b->vectors)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < items; i++) {
        const float *from = vectors + i * b->width;
        const double length = sqrt(squared_length(from, b->width));
        if (!isfinite(length))
            return att_fail(b->ctx, ATT_ERR_ARGUMENT, "the vector of item %.80s has numbers that are not finite",
                            att_interactions_item(b->h->log, i));
        for (int64_t d = 0; d < b->width; d++)
            b->vectors[i * b->width + d] = length > 0 ? (float)(from[d] / length) : 0;
    }
    return ATT_OK;
}

static att_status check_options(const att_holdout *h, att_baseline_kind kind, const att_baseline_options *o)
{
    const bool content = kind == ATT_BASELINE_CONTENT;
    if ((unsigned)kind > ATT_BASELINE_CONTENT)
        return att_fail(h->ctx, ATT_ERR_ARGUMENT, "kind is %d, not an att_baseline_kind", (int)kind);
    if (o->neighbors < 0 || !(o->decay >= 0 && o->decay <= 1))
        return att_fail(h->ctx, ATT_ERR_ARGUMENT, "neighbors is %lld and decay %g, expected 0 or more, and from 0 to 1",
                        (long long)o->neighbors, o->decay);
    if (content && (!o->vectors || o->width < 1))
        return att_fail(h->ctx, ATT_ERR_ARGUMENT, "ATT_BASELINE_CONTENT needs vectors, which are %s, of a width, %lld",
                        o->vectors ? "given" : "NULL", (long long)o->width);
    if (!content && (o->vectors || o->width))
        return att_fail(h->ctx, ATT_ERR_ARGUMENT, "vectors are for ATT_BASELINE_CONTENT only");
    return ATT_OK;
}

/* Makes the model of a kind that counts. */
static att_status fit(att_baseline *b, const att_baseline_options *o)
{
    const att_call_options call = {.size = sizeof call, .progress = o->progress, .user = o->user};
    const bool near = b->kind == ATT_BASELINE_NEIGHBORS;
    json_t *root = json_pack("{s:s}", "model_type", near ? "attend-neighbors" : "attend-popularity");
    if (near && o->neighbors > 0)
        json_object_set_new(root, "neighbors", json_integer(att_min(o->neighbors, b->h->log->info.items)));
    if (near && o->decay > 0)
        json_object_set_new(root, "decay", json_real(o->decay));
    char *settings = json_dumps(root, 0);
    const att_status e = settings ? att_recommender_fit(b->h, settings, &call, &b->model)
                                  : att_fail(b->ctx, ATT_ERR_MEMORY, "out of memory");
    free(settings);
    json_decref(root);
    return e;
}

/* Copies the vectors of items, which is one unit of progress. */
static att_status add_vectors(att_baseline *b, const att_baseline_options *o)
{
    att_progress p = {.ctx = b->ctx, .call = "att_baseline_new", .report = o->progress, .user = o->user};
    const att_status e = copy_vectors(b, o->vectors);
    return e ? e : att_progress_end(&p);
}

att_status att_baseline_new(const att_holdout *h, att_baseline_kind kind, const att_baseline_options *options,
                            att_baseline **out)
{
    att_baseline_options o;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"h", h}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&o, sizeof o, options, "att_baseline_options");
    e = e ? e : check_options(h, kind, &o);
    if (e)
        return e;
    att_baseline *b = att_calloc(h->ctx, 1, sizeof *b);
    if (!b)
        return ATT_ERR_MEMORY;
    *b = (att_baseline){.ctx = h->ctx, .h = h, .kind = kind, .width = o.width, .decay = o.decay > 0 ? o.decay : 1};
    e = kind == ATT_BASELINE_CONTENT ? add_vectors(b, &o) : fit(b, &o);
    if (e)
        att_baseline_free(b);
    else
        *out = b;
    return e;
}

void att_baseline_free(att_baseline *b)
{
    if (!b)
        return;
    att_recommender_free(b->model);
    att_free(b->ctx, b->vectors);
    att_free(b->ctx, b);
}

att_scorer att_baseline_scorer(const att_baseline *b) { return b ? (att_scorer){score, (void *)b} : (att_scorer){0}; }
