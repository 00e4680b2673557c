/* BLEU and chrF from counts, and bootstrap confidence intervals. */
#include "metric/bootstrap.h"

#include <math.h>

/* Adds b [n] to a [n]. */
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

/* Computes BLEU, bleu_of [ATT_BLEU_ORDER] with n-grams up to each order, and precision [ATT_BLEU_ORDER] in percent.
 * Exponential smoothing: the k-th order without a match counts as 2^-k matches (Chen, Cherry 2014, method 3); BLEU is 0
 * without any match. */
static double bleu(const att_bleu_counts *c, bool effective_order, double *bleu_of, double *precision)
{
    double match = 1, logs = 0;
    int orders = 0;
    for (int i = 0; i < ATT_BLEU_ORDER; i++)
        bleu_of[i] = precision[i] = 0;
    if (c->token_matches[0] == 0)
        return 0;
    for (; orders < ATT_BLEU_ORDER && c->token_ngrams[orders] > 0; orders++) {
        if (c->token_matches[orders] == 0)
            match /= 2;
        const double shared = c->token_matches[orders] > 0 ? (double)c->token_matches[orders] : match;
        precision[orders] = 100 * shared / (double)c->token_ngrams[orders];
        logs += log(precision[orders]);
        bleu_of[orders] = brevity(c) * exp(logs / (orders + 1));
    }
    for (int i = orders; effective_order && i < ATT_BLEU_ORDER; i++)
        bleu_of[i] = bleu_of[i - 1];
    return bleu_of[ATT_BLEU_ORDER - 1];
}

/* Computes F2 of precision and recall, each averaged over the orders for which neither side is too short. */
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
    const double f = (1 + beta_squared) * precision * recall / (beta_squared * precision + recall);
    return 100 * f; /* in this order, as sacrebleu: the same last digit */
}

att_status att_bleu_describe(const att_bleu_counts *c, const att_bleu_options *options, att_bleu_info *info)
{
    att_bleu_options o;
    if (att_require(__func__, ATT_NAMED({"c", c}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_status s = att_options_read(&o, sizeof o, options, "att_bleu_options");
    if (s)
        return s;
    att_bleu_info all = {.chrf = chrf(c), .brevity = brevity(c)};
    all.bleu = bleu(c, o.effective_order, all.bleu_of, all.precision);
    return att_info_write(info, &all, sizeof all, "att_bleu_info");
}

/* ---- bootstrap resampling */

/* Counts of two systems' texts; b NULL: of one system. */
typedef struct compared {
    const att_bleu_counts *a, *b; /* [n] */
} compared;

static void score_resample(const void *of, att_resample *r, const att_bleu_resampling *options, double *score)
{
    const compared *c = of;
    att_bleu_counts a = {0}, b = {0};
    double bleu_of[ATT_BLEU_ORDER], precision[ATT_BLEU_ORDER];
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t drawn = att_resample_draw(r, i);
        att_bleu_add(&a, &c->a[drawn]);
        if (c->b)
            att_bleu_add(&b, &c->b[drawn]);
    }
    score[0] = bleu(&a, options->effective_order, bleu_of, precision);
    score[1] = chrf(&a);
    if (!c->b)
        return;
    score[0] -= bleu(&b, options->effective_order, bleu_of, precision);
    score[1] -= chrf(&b);
}

att_status att_bleu_intervals(att_ctx *ctx, const att_bleu_counts *c, int64_t n, const att_bleu_resampling *opt,
                              att_interval *bleu, att_interval *chrf)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"c", c}, {"bleu", bleu}, {"chrf", chrf})))
        return ATT_ERR_ARGUMENT;
    const compared one = {.a = c};
    return att_bootstrap_intervals(ctx, &(const att_bootstrap){__func__, score_resample, &one, 2}, n, opt,
                                   (att_interval *const[]){bleu, chrf});
}

att_status att_bleu_differences(att_ctx *ctx, const att_bleu_counts *a, const att_bleu_counts *b, int64_t n,
                                const att_bleu_resampling *opt, att_interval *bleu, att_interval *chrf)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"a", a}, {"b", b}, {"bleu", bleu}, {"chrf", chrf})))
        return ATT_ERR_ARGUMENT;
    const compared both = {a, b};
    return att_bootstrap_intervals(ctx, &(const att_bootstrap){__func__, score_resample, &both, 2}, n, opt,
                                   (att_interval *const[]){bleu, chrf});
}
