/* Computes the ranks of held-out items among all items or a sample. */
#include "io/progress.h"
#include "recommend/ranking_samples.h"
#include "util/best.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

enum { REFUSED = -1 };
/* BATCH is large because a model with content computes the vectors of all items in each call. */
enum { K = 10, NEGATIVES = 100, DRAWS = 5, BATCH = 1024 };
static const int64_t max_scores = (int64_t)1 << 24; /* of a batch, 64 MiB, as of the lists of the best */

typedef struct ranking {
    const att_holdout *h;
    const att_scorer *scorer;
    att_ranking_options o;
    att_sampler sampler;
    int64_t items, k, draws; /* k: of lists, at most items */
    int64_t *counted;        /* [n]: the cases that are counted */
    int64_t n, first, rows;  /* n: the number of counted cases; the batch is counted[first, first + rows) */
    int64_t room;            /* for items of a batch's histories */
    int32_t *histories;      /* [room] */
    int64_t *offsets;        /* [batch + 1] */
    float *scores;           /* [batch, items]; finally NaN for items that are not candidates */
    int32_t *lists;          /* [batch, k]: the best items; -1: there are no more */
    att_top_column *best;    /* [batch, k]: scratch */
    int32_t *samples;        /* [batch, negatives] */
    uint64_t *marked;        /* [batch, words], empty sets of items */
    int32_t *ranks;          /* [n, draws]; REFUSED: a score is NaN */
    bool *listed;            /* [items]: whether an item is in a list */
    double popularity;       /* sums over lists */
    int64_t in_lists;
} ranking;

static const att_case *case_of(const ranking *r, int64_t row)
{
    return &r->h->cases[r->o.part][r->counted[r->first + row]];
}

/* ---- one case */

/* Returns the rank of the target: 1 + the number of candidates before it. */
static int32_t rank_of_all(const float *scores, int64_t items, int64_t target)
{
    const float score = scores[target];
    int32_t n = 1;
    for (int64_t i = 0; i < target; i++)
        n += scores[i] >= score;
    for (int64_t i = target + 1; i < items; i++)
        n += scores[i] > score;
    return n;
}

static int32_t rank_of_sample(const float *scores, const int32_t *sample, int64_t negatives, int64_t target)
{
    int32_t n = 1;
    for (int64_t i = 0; i < negatives; i++)
        n += att_is_better((att_top_column){sample[i], scores[sample[i]]}, (att_top_column){target, scores[target]});
    return n;
}

/* Finds the k best items in order; best [k]. */
static void best_items(const float *scores, int64_t items, int64_t k, att_top_column *best, int32_t *list)
{
    static const att_top_column none = {.column = INT32_MAX, .value = -INFINITY}; /* after items of -inf */
    for (int64_t i = 0; i < k; i++)
        best[i] = none;
    for (int64_t i = 0; i < items; i++)
        att_best_add(best, k, (att_top_column){.column = i, .value = scores[i]});
    att_best_sort(best, k);
    for (int64_t i = 0; i < k; i++)
        list[i] = best[i].column == none.column ? -1 : (int32_t)best[i].column;
}

static bool has_nan(const float *scores, int64_t n)
{
    bool found = false;
    for (int64_t i = 0; i < n; i++)
        found |= isnan(scores[i]);
    return found;
}

static int32_t rank_of(const ranking *r, int row, int64_t draw, const float *scores, int32_t target)
{
    if (r->o.candidates == ATT_CANDIDATES_ALL)
        return rank_of_all(scores, r->items, target);
    int32_t *sample = r->samples + row * r->o.negatives;
    att_sampler_draw(&r->sampler, case_of(r, row), draw, r->marked + (size_t)row * att_item_set_words(r->items),
                     sample);
    return rank_of_sample(scores, sample, r->o.negatives, target);
}

static void rank_row(void *arg, int i)
{
    ranking *r = arg;
    const att_case *c = case_of(r, i);
    const int32_t target = r->h->log->item[c->position];
    float *scores = r->scores + i * r->items;
    int32_t *ranks = r->ranks + (r->first + i) * r->draws;
    ranks[0] = REFUSED;
    if (has_nan(scores, r->items))
        return;
    const att_history seen = att_case_history(r->h, c);
    for (int64_t s = 0; r->o.exclude_seen && s < seen.count; s++)
        scores[seen.items[s]] = NAN;
    best_items(scores, r->items, r->k, r->best + i * r->k, r->lists + i * r->k);
    for (int64_t d = 0; d < r->draws; d++)
        ranks[d] = isnan(scores[target]) ? 0 : rank_of(r, i, d, scores, target);
}

/* ---- batches */

static att_status fill_histories(ranking *r)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->rows; i++) {
        const att_history x = att_case_history(r->h, case_of(r, i));
        r->offsets[i] = n;
        n += x.count;
    }
    r->offsets[r->rows] = n;
    if (n > r->room) {
        att_free(r->h->ctx, r->histories);
        r->histories = att_alloc(r->h->ctx, (size_t)n, sizeof *r->histories);
        r->room = r->histories ? n : 0;
        if (!r->histories)
            return ATT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < r->rows; i++) {
        const att_history x = att_case_history(r->h, case_of(r, i));
        memcpy(r->histories + r->offsets[i], x.items, (size_t)x.count * sizeof *x.items);
    }
    return ATT_OK;
}

static void count_lists(ranking *r)
{
    for (int64_t i = 0; i < r->rows * r->k; i++) {
        const int32_t item = r->lists[i];
        if (item < 0)
            continue;
        r->listed[item] = true;
        r->popularity += (double)r->h->counts[item];
        r->in_lists++;
    }
}

static att_status rank_batch(ranking *r)
{
    att_ctx *ctx = r->h->ctx;
    att_status e = fill_histories(r);
    if (!e)
        e = r->scorer->score(r->scorer->user, r->histories, r->offsets, r->rows, r->items, r->scores);
    if (e)
        return e;
    att_parallel_for(ctx, (int)r->rows, rank_row, r);
    for (int64_t i = 0; i < r->rows; i++)
        if (r->ranks[(r->first + i) * r->draws] == REFUSED)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "a score for the user %.80s is not a number",
                            att_interactions_user(r->h->log, case_of(r, i)->user));
    count_lists(r);
    return ATT_OK;
}

static att_status rank_all(ranking *r)
{
    att_progress p = {.ctx = r->h->ctx, .call = "att_rank", .report = r->o.progress, .user = r->o.user, .all = r->n};
    att_status e = ATT_OK;
    for (r->first = 0; !e && r->first < r->n; r->first += r->rows) {
        r->rows = att_min(r->o.batch, r->n - r->first);
        e = rank_batch(r);
        e = e ? e : att_progress_add(&p, r->rows);
    }
    return e;
}

/* ---- results */

static att_status summarize(const ranking *r, att_ranking *out)
{
    att_rank_measures of_ranks = {.size = sizeof of_ranks};
    const att_status e = att_measure_ranks(r->ranks, r->n, r->draws, r->o.k, &of_ranks);
    const bool sampled = r->o.candidates != ATT_CANDIDATES_ALL;
    int64_t covered = 0;
    *out = (att_ranking){.cases = r->n,
                         .unseen = r->h->info.unseen[r->o.part],
                         .k = r->o.k,
                         .candidates = sampled ? r->o.negatives + 1 : r->items,
                         .hr = of_ranks.hr,
                         .ndcg = of_ranks.ndcg,
                         .mrr = of_ranks.mrr};
    for (int64_t i = 0; i < r->n; i++)
        out->repeats += att_case_is_repeat(r->h, &r->h->cases[r->o.part][r->counted[i]]);
    for (int64_t i = 0; i < r->items; i++)
        covered += r->listed[i];
    out->coverage = (double)covered / (double)r->items;
    out->popularity = r->in_lists ? r->popularity / (double)r->in_lists : 0;
    return e;
}

/* Copies the ranks to the caller's array, which has those of all cases. */
static void copy_ranks(const ranking *r)
{
    const int64_t cases = r->h->info.cases[r->o.part];
    for (int64_t i = 0; i < cases * r->draws; i++)
        r->o.ranks[i] = 0;
    for (int64_t i = 0; i < r->n; i++)
        memcpy(r->o.ranks + r->counted[i] * r->draws, r->ranks + i * r->draws, (size_t)r->draws * sizeof *r->ranks);
}

/* ---- the call */

static att_status positive(att_ctx *ctx, const char *name, int64_t *x, int64_t otherwise)
{
    *x = *x == 0 ? otherwise : *x;
    if (*x > 0 && *x <= INT32_MAX)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s is %lld, expected 1 to %d, or 0: %lld", name, (long long)*x, INT32_MAX,
                    (long long)otherwise);
}

static att_status check_options(att_ctx *ctx, att_ranking_options *o)
{
    if ((unsigned)o->part > ATT_HOLDOUT_PART_TEST)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "part is %d, not an att_holdout_part", (int)o->part);
    if ((unsigned)o->candidates > ATT_CANDIDATES_BY_POPULARITY)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "candidates is %d, not an att_candidates", (int)o->candidates);
    if (o->candidates == ATT_CANDIDATES_ALL && (o->negatives || o->draws))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "negatives and draws are for samples, but candidates are all items");
    att_status e = positive(ctx, "k", &o->k, K);
    e = e ? e : positive(ctx, "negatives", &o->negatives, NEGATIVES);
    e = e ? e : positive(ctx, "draws", &o->draws, DRAWS);
    return e ? e : positive(ctx, "batch", &o->batch, BATCH);
}

/* Finds the cases that are counted. */
static att_status count_cases(ranking *r)
{
    const int64_t cases = r->h->info.cases[r->o.part];
    r->counted = att_alloc(r->h->ctx, (size_t)cases, sizeof *r->counted);
    if (!r->counted)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < cases; i++)
        if (!r->o.leave_out_unseen || r->h->counts[r->h->log->item[r->h->cases[r->o.part][i].position]] > 0)
            r->counted[r->n++] = i;
    if (r->n > 0)
        return ATT_OK;
    return att_fail(r->h->ctx, ATT_ERR_ARGUMENT, "there is no case for %s: %lld users%s",
                    r->o.part == ATT_HOLDOUT_PART_TEST ? "the test" : "validation", (long long)cases,
                    cases ? ", whose held-out items do not occur in training" : " have enough actions");
}

static att_status allocate(ranking *r)
{
    att_ctx *ctx = r->h->ctx;
    const bool sampled = r->o.candidates != ATT_CANDIDATES_ALL;
    r->o.batch = att_max(1, att_min(att_min(r->o.batch, r->n), max_scores / att_max(r->items, 4 * r->k)));
    const size_t rows = (size_t)r->o.batch;
    r->scores = att_alloc(ctx, rows * (size_t)r->items, sizeof *r->scores);
    r->offsets = att_alloc(ctx, rows + 1, sizeof *r->offsets);
    r->lists = att_alloc(ctx, rows * (size_t)r->k, sizeof *r->lists);
    r->best = att_alloc(ctx, rows * (size_t)r->k, sizeof *r->best);
    r->ranks = att_alloc(ctx, (size_t)r->n, (size_t)r->draws * sizeof *r->ranks);
    r->listed = att_calloc(ctx, (size_t)r->items, sizeof *r->listed);
    if (!r->scores || !r->offsets || !r->lists || !r->best || !r->ranks || !r->listed)
        return ATT_ERR_MEMORY;
    if (!sampled)
        return ATT_OK;
    r->samples = att_alloc(ctx, rows, (size_t)r->o.negatives * sizeof *r->samples);
    r->marked = att_calloc(ctx, rows * att_item_set_words(r->items), sizeof *r->marked);
    if (!r->samples || !r->marked)
        return ATT_ERR_MEMORY;
    att_status e = att_sampler_init(&r->sampler, r->h, &r->o);
    for (int64_t i = 0; !e && i < r->n; i++)
        e = att_sampler_check(&r->sampler, &r->h->cases[r->o.part][r->counted[i]], r->marked);
    return e;
}

static void free_ranking(ranking *r)
{
    void *const arrays[] = {r->counted, r->histories, r->offsets, r->scores, r->lists,
                            r->best,    r->samples,   r->marked,  r->ranks,  r->listed};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        att_free(r->h->ctx, arrays[i]);
    att_sampler_free(&r->sampler);
}

att_status att_rank(const att_holdout *h, const att_scorer *scorer, const att_ranking_options *options,
                    att_ranking *out)
{
    ranking r = {.h = h, .scorer = scorer};
    att_ranking result;
    if (att_require(__func__, ATT_NAMED({"h", h}, {"scorer", scorer}, {"out", out})) ||
        att_require(__func__, ATT_NAMED({"scorer.score", scorer->score ? "" : NULL})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&r.o, sizeof r.o, options, "att_ranking_options");
    e = e ? e : check_options(h->ctx, &r.o);
    e = e ? e : att_info_write(out, &(att_ranking){0}, sizeof result, "att_ranking");
    if (e)
        return e;
    r.items = h->log->info.items;
    r.k = att_min(r.o.k, r.items);
    r.draws = r.o.candidates ? r.o.draws : 1;
    e = count_cases(&r);
    e = e ? e : allocate(&r);
    e = e ? e : rank_all(&r);
    e = e ? e : summarize(&r, &result);
    e = e ? e : att_info_write(out, &result, sizeof result, "att_ranking");
    if (!e && r.o.ranks)
        copy_ranks(&r);
    free_ranking(&r);
    return e;
}
