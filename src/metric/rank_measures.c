/* Measures of the ranks of correct items. */
#include "attend_metric.h"

#include "attend_util.h"

#include <math.h>

typedef struct ranking {
    const int32_t *ranks; /* [n, draws] */
    int64_t n, draws, k;
} ranking;

static double hit(double rank) { return rank > 0; }
static double gain(double rank) { return rank > 0 ? 1 / log2(1 + rank) : 0; }
static double reciprocal(double rank) { return rank > 0 ? 1 / rank : 0; }

/* Returns the mean over the draws of a case; ranks after k count as not found. */
static double mean_of_case(const ranking *r, int64_t i, double measure(double rank))
{
    double sum = 0;
    for (int64_t d = 0; d < r->draws; d++) {
        const int32_t rank = r->ranks[i * r->draws + d];
        sum += measure(rank <= r->k ? rank : 0);
    }
    return sum / (double)r->draws;
}

static att_interval estimate(const ranking *r, double measure(double rank))
{
    const double n = (double)r->n;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < r->n; i++)
        sum += mean_of_case(r, i, measure);
    const double mean = sum / n;
    for (int64_t i = 0; i < r->n; i++) {
        const double d = mean_of_case(r, i, measure) - mean;
        squares += d * d;
    }
    const double half = n > 1 ? 1.96 * sqrt(squares / (n - 1) / n) : 1;
    return (att_interval){mean, fmax(mean - half, 0), fmin(mean + half, 1)};
}

static att_interval share_of_hits(const ranking *r)
{
    att_interval share = {0};
    int64_t hits = 0;
    for (int64_t i = 0; i < r->n; i++)
        hits += r->ranks[i] > 0 && r->ranks[i] <= r->k;
    att_share_interval(hits, r->n, &share); /* no error: hits are at most n */
    return share;
}

static att_status check(const ranking *r)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"n", r->n}, {"draws", r->draws}, {"k", r->k}};
    for (int i = 0; i < 3; i++)
        if (sizes[i].value < 1 || sizes[i].value > INT32_MAX)
            return att_fail(NULL, ATT_ERR_ARGUMENT, "att_measure_ranks: %s is %lld, but must be 1 to %d", sizes[i].name,
                            (long long)sizes[i].value, INT32_MAX);
    for (int64_t i = 0; i < r->n * r->draws; i++)
        if (r->ranks[i] < 0)
            return att_fail(NULL, ATT_ERR_ARGUMENT,
                            "att_measure_ranks: ranks[%lld] is %d, but must be 1 or more, or 0: "
                            "none",
                            (long long)i, (int)r->ranks[i]);
    return ATT_OK;
}

att_status att_measure_ranks(const int32_t *ranks, int64_t n, int64_t draws, int64_t k, att_rank_measures *out)
{
    const ranking r = {ranks, n, draws, k};
    if (att_require(__func__, ATT_NAMED({"ranks", ranks}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status s = check(&r);
    if (s)
        return s;
    const att_rank_measures found = {.hr = draws == 1 ? share_of_hits(&r) : estimate(&r, hit),
                                     .ndcg = estimate(&r, gain),
                                     .mrr = estimate(&r, reciprocal)};
    return att_info_write(out, &found, sizeof found, "att_rank_measures");
}
