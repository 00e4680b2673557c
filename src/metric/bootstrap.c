#include "metric/bootstrap.h"

#include <stdlib.h>

typedef struct bootstrap_job {
    const att_bootstrap *b;
    int64_t n;
    const att_bleu_resampling *options;
    double *score; /* [scores, resamples] */
} bootstrap_job;

static void resample(void *arg, int number)
{
    const bootstrap_job *job = arg;
    att_resample r = {.seed = job->options->seed, .n = job->n, .number = (uint32_t)number};
    double score[ATT_BOOTSTRAP_SCORES];
    job->b->score(job->b->of, &r, job->options, score);
    for (int i = 0; i < job->b->scores; i++)
        job->score[i * job->options->resamples + number] = score[i];
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Returns the 95 % interval of score [n], which is sorted: a 40th of the resamples is cut off on each side. */
static att_interval interval(double *score, int64_t n)
{
    att_interval found = {0};
    qsort(score, (size_t)n, sizeof *score, by_value);
    for (int64_t i = 0; i < n; i++)
        found.mean += score[i] / (double)n;
    found.low = score[n / 40];
    found.high = score[n - n / 40 - 1];
    return found;
}

att_status att_bootstrap_intervals(att_ctx *ctx, const att_bootstrap *b, int64_t n, const att_bleu_resampling *opt,
                                   att_interval *const *out)
{
    att_bleu_resampling o;
    const att_status s = att_options_read(&o, sizeof o, opt, "att_bleu_resampling");
    if (s)
        return s;
    if (o.resamples == 0)
        o.resamples = 1000;
    if (n < 1 || n > INT32_MAX || o.resamples < 1 || o.resamples > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: n is %lld and resamples is %lld, but both must be 1 to %d",
                        b->function, (long long)n, (long long)o.resamples, INT32_MAX);
    double *scores = att_alloc(ctx, (size_t)b->scores * (size_t)o.resamples, sizeof *scores);
    if (!scores)
        return ATT_ERR_MEMORY;
    bootstrap_job job = {b, n, &o, scores};
    att_parallel_for(ctx, (int)o.resamples, resample, &job);
    const bool cancelled = att_cancelled(ctx);
    for (int i = 0; !cancelled && i < b->scores; i++)
        *out[i] = interval(scores + i * o.resamples, o.resamples);
    att_free(ctx, scores);
    return cancelled ? att_fail(ctx, ATT_ERR_CANCELLED, "%s was cancelled", b->function) : ATT_OK;
}
