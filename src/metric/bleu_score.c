/* BLEU and chrF from counts, and bootstrap confidence intervals. */
#include "attend_model.h"
#include "attend_util.h"

#include <math.h>
#include <stdlib.h>

/* a [n] += b [n] */
static void add(int64_t *a, const int64_t *b, int n)
{
    for (int i = 0; i < n; i++)
        a[i] += b[i];
}

void att_bleu_add(att_bleu_counts *sum, const att_bleu_counts *c)
{
    if (!sum || !c)
        return;
    sum->tokens += c->tokens;
    sum->reference_tokens += c->reference_tokens;
    add(sum->token_ngrams, c->token_ngrams, ATT_BLEU_ORDER);
    add(sum->token_matches, c->token_matches, ATT_BLEU_ORDER);
    add(sum->character_ngrams, c->character_ngrams, ATT_CHRF_ORDER);
    add(sum->reference_character_ngrams, c->reference_character_ngrams, ATT_CHRF_ORDER);
    add(sum->character_matches, c->character_matches, ATT_CHRF_ORDER);
}

static double brevity(const att_bleu_counts *c)
{
    if (c->tokens >= c->reference_tokens)
        return 1;
    return c->tokens > 0 ? exp(1 - (double)c->reference_tokens / (double)c->tokens) : 0;
}

/* BLEU, and precision [ATT_BLEU_ORDER] in percent. Exponential smoothing: the k-th order without a match counts as 2^-k
 * matches (Chen, Cherry 2014, method 3); BLEU is 0 without any match. */
static double bleu(const att_bleu_counts *c, bool effective_order, double *precision)
{
    double match = 1, logs = 0;
    int orders = 0;
    for (int i = 0; i < ATT_BLEU_ORDER; i++)
        precision[i] = 0;
    if (c->token_matches[0] == 0)
        return 0;
    for (; orders < ATT_BLEU_ORDER && c->token_ngrams[orders] > 0; orders++) {
        if (c->token_matches[orders] == 0)
            match /= 2;
        const double shared = c->token_matches[orders] > 0 ? (double)c->token_matches[orders] : match;
        precision[orders] = 100 * shared / (double)c->token_ngrams[orders];
        logs += log(precision[orders]);
    }
    if (orders < ATT_BLEU_ORDER && !effective_order)
        return 0;
    return brevity(c) * exp(logs / orders);
}

/* F2 of precision and recall, each averaged over the orders for which neither side is too short. */
static double chrf(const att_bleu_counts *c)
{
    const double beta_squared = 4;
    double precision = 0, recall = 0;
    int orders = 0;
    for (int i = 0; i < ATT_CHRF_ORDER; i++) {
        if (c->character_ngrams[i] == 0 || c->reference_character_ngrams[i] == 0)
            continue;
        precision += (double)c->character_matches[i] / (double)c->character_ngrams[i];
        recall += (double)c->character_matches[i] / (double)c->reference_character_ngrams[i];
        orders++;
    }
    if (precision + recall == 0)
        return 0;
    precision /= orders;
    recall /= orders;
    return 100 * (1 + beta_squared) * precision * recall / (beta_squared * precision + recall);
}

att_status att_bleu_describe(const att_bleu_counts *c, bool effective_order, att_bleu_info *info)
{
    if (att_require(__func__, ATT_NAMED({"c", c}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    att_bleu_info all = {.chrf = chrf(c), .brevity = brevity(c)};
    all.bleu = bleu(c, effective_order, all.precision);
    return att_give_info(info, &all, sizeof all, "att_bleu_info");
}

/* ---- bootstrap resampling */

typedef struct resampling {
    const att_bleu_counts *c; /* [n] */
    int64_t n;
    const att_bleu_resampling *options;
    double *bleu, *chrf; /* [resamples] */
} resampling;

static void resample(void *arg, int r)
{
    const resampling *d = arg;
    att_bleu_counts sum = {0};
    uint32_t words[4];
    for (int64_t i = 0; i < d->n; i++) {
        if (i % 4 == 0)
            att_random(d->options->seed, (const uint32_t[]){(uint32_t)(i / 4), (uint32_t)r, 0, 0}, words);
        att_bleu_add(&sum, &d->c[(uint64_t)words[i % 4] * (uint64_t)d->n >> 32]);
    }
    double precision[ATT_BLEU_ORDER];
    d->bleu[r] = bleu(&sum, d->options->effective_order, precision);
    d->chrf[r] = chrf(&sum);
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The 95 % interval of score [n], which is sorted: a 40th of the resamples is cut off on each side. */
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

att_status att_bleu_intervals(att_ctx *ctx, const att_bleu_counts *c, int64_t n, const att_bleu_resampling *opt,
                              att_interval *bleu, att_interval *chrf)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"c", c}, {"bleu", bleu}, {"chrf", chrf})))
        return ATT_ERR_ARGUMENT;
    att_bleu_resampling o;
    const att_status s = att_take_options(&o, sizeof o, opt, "att_bleu_resampling");
    if (s)
        return s;
    if (o.resamples == 0)
        o.resamples = 1000;
    if (n < 1 || n > INT32_MAX || o.resamples < 1 || o.resamples > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_bleu_intervals: n is %lld and resamples is %lld, but both must be 1 to %d", (long long)n,
                        (long long)o.resamples, INT32_MAX);
    const size_t count = (size_t)o.resamples;
    double *scores = att_alloc(ctx, 2 * count, sizeof *scores);
    if (!scores)
        return ATT_ERR_MEMORY;
    resampling d = {.c = c, .n = n, .options = &o, .bleu = scores, .chrf = scores + count};
    att_parallel_for(ctx, (int)count, resample, &d);
    const bool cancelled = att_cancelled(ctx);
    if (!cancelled) {
        *bleu = interval(d.bleu, o.resamples);
        *chrf = interval(d.chrf, o.resamples);
    }
    att_free(ctx, scores);
    return cancelled ? att_fail(ctx, ATT_ERR_CANCELLED, "att_bleu_intervals was cancelled") : ATT_OK;
}
