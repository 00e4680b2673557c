/* Differences between a model and baselines, with intervals over users. */
#include "evaluation.h"

#include <math.h>
#include <stdlib.h>

/* The measures of each case, one system minus another. */
enum { HR, NDCG, MRR, MEASURES };
typedef struct differences {
    int64_t n;
    double *x[MEASURES]; /* [n] */
} differences;

/* Marks the items that occur in training: seen [items]. */
static void find_seen(const evaluation *e, bool *seen)
{
    for (int64_t u = 0; u < e->log.info.users; u++) {
        const att_history h = att_holdout_train(e->log.holdout, u);
        for (int64_t i = 0; i < h.count; i++)
            seen[h.items[i]] = true;
    }
}

static double mean(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* Computes the mean of x [n] with the 95 % interval of the normal distribution. */
static att_interval normal_interval(const double *x, int64_t n)
{
    const double m = mean(x, n);
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - m) * (x[i] - m);
    const double half = 1.959963984540054 * sqrt(squares) / (double)n;
    return (att_interval){.mean = m, .low = m - half, .high = m + half};
}

static void add_case(differences *d, const int32_t *a, const int32_t *b, int64_t draws, int64_t k)
{
    att_rank_measures of_a = {.size = sizeof of_a}, of_b = {.size = sizeof of_b};
    att_measure_ranks(a, 1, draws, k, &of_a); /* of ranks that att_rank has made */
    att_measure_ranks(b, 1, draws, k, &of_b);
    d->x[HR][d->n] = of_a.hr.mean - of_b.hr.mean;
    d->x[NDCG][d->n] = of_a.ndcg.mean - of_b.ndcg.mean;
    d->x[MRR][d->n] = of_a.mrr.mean - of_b.mrr.mean;
    d->n++;
}

/* Computes the differences at cutoff k of all cases that are counted. seen [items]: those that occur in training. */
static int compare(const evaluation *e, const evaluated *a, const evaluated *b, int64_t k, const bool *seen,
                   differences *d, att_rank_measures *out)
{
    const int64_t draws = evaluation_draws(e);
    const att_holdout_part part = (att_holdout_part)e->protocol->part;
    const att_bleu_resampling o = {.size = sizeof o, .seed = (uint64_t)e->protocol->seed};
    att_interval *const intervals[] = {&out->hr, &out->ndcg, &out->mrr};
    att_holdout_case c;
    d->n = 0;
    for (int64_t i = 0; i < e->log.held.cases[part]; i++)
        if (!e->protocol->leave_out_unseen || (!att_holdout_get(e->log.holdout, part, i, &c) && seen[c.target]))
            add_case(d, a->ranks + i * draws, b->ranks + i * draws, draws, k);
    int code = CLI_DONE;
    for (int m = 0; !code && m < MEASURES; m++) {
        *intervals[m] = normal_interval(d->x[m], d->n);
        const double of_all = intervals[m]->mean; /* not that of the resamples */
        if (evaluation_resamples(e))
            code = cli_status(e->ctx, att_mean_interval(e->ctx, d->x[m], d->n, &o, intervals[m]));
        intervals[m]->mean = of_all;
    }
    return code;
}

int evaluation_compare(evaluation *e)
{
    const size_t cases = (size_t)e->log.held.cases[e->protocol->part];
    const evaluated *model = &e->system[e->n - 1];
    differences d = {0};
    bool *seen = calloc((size_t)e->log.info.items, sizeof *seen), all = seen != NULL;
    for (int m = 0; m < MEASURES; m++) {
        d.x[m] = malloc(cases * sizeof *d.x[m]);
        all = all && d.x[m];
    }
    int code = all ? CLI_DONE : cli_fail_memory();
    if (!code)
        find_seen(e, seen);
    for (evaluated *s = e->system; !code && s < model; s++)
        for (int i = 0; !code && i < e->n_cutoffs; i++)
            code = compare(e, model, s, e->cutoff[i], seen, &d, &s->minus[i]);
    for (int m = 0; m < MEASURES; m++)
        free(d.x[m]);
    free(seen);
    return code;
}
