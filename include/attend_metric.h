/* attend_metric.h - metrics of translations, captions, classifiers and recommendations.
 *
 * Chapters: 1 Intervals, 2 Translations, 3 Captions, 4 Classes, 5 Ranks.
 *
 * attend.h states how arguments that may be NULL are marked. */
#ifndef ATTEND_METRIC_H
#define ATTEND_METRIC_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Intervals -------------------------------------------------------- */

/* A mean and its 95 % confidence interval. */
typedef struct att_interval {
    double mean, low, high;
} att_interval;

/* Computes the share of successes among n trials, with the interval of Wilson (1927), which is in [0, 1] and has a
 * width even without any success. Errors: n below 1; successes not in [0, n]. */
ATT_API att_status att_share_interval(int64_t successes, int64_t n, att_interval *out);
/* Computes the mean of the shares of several classes, right [classes] of n [classes]: the balanced accuracy, if they
 * are recalls. Classes with n 0 do not count. Its interval has the distances to the ends of the classes' intervals
 * (Wilson 1927) as independent errors, as Zou and Donner (2008) combine them; of one class it is that of
 * att_share_interval. Errors: those of att_share_interval; no class counts. */
ATT_API att_status att_balanced_accuracy(const int64_t *right, const int64_t *n, int64_t classes, att_interval *out);

/* ---- 2 Translations ------------------------------------------------------- */

/* BLEU (Papineni et al. 2002) and chrF (Popovic 2015) with sacreBLEU's defaults (Post 2018): its tokenizers,
 * exponential smoothing, chrF2 of characters without spaces, case-sensitive. */

typedef enum att_bleu_tokenizer {
    ATT_BLEU_TOKENIZER_13A = 0,  /* mteval-v13a: splits off punctuation, decodes entities such as "&quot;" */
    ATT_BLEU_TOKENIZER_CHAR = 1, /* each character except white space: for languages without spaces between words */
    ATT_BLEU_TOKENIZER_NONE = 2  /* split at white space */
} att_bleu_tokenizer;

enum { ATT_BLEU_ORDER = 4, ATT_CHRF_ORDER = 6 };

/* N-gram statistics of a translation and its references; those of several sentences can be added. Arrays are indexed by
 * order - 1. A match is an n-gram that is also in a reference. With several references, reference_tokens is the length
 * nearest to the translation's, and the character statistics come from the reference with the best chrF. */
typedef struct att_bleu_counts {
    int64_t tokens, reference_tokens;
    int64_t token_ngrams[ATT_BLEU_ORDER], token_matches[ATT_BLEU_ORDER];
    int64_t character_ngrams[ATT_CHRF_ORDER], reference_character_ngrams[ATT_CHRF_ORDER],
        character_matches[ATT_CHRF_ORDER];
} att_bleu_counts;

/* Computes the statistics of one sentence: text [bytes] and its references [n] with reference_bytes [n] or NULL
 * (zero-terminated). Any bytes are accepted: each maximal invalid subpart of UTF-8 is read as one U+FFFD. Time is O(k
 * log k) for k tokens or characters. n 0: counts only the text's own tokens. Errors: more than 2^31 - 1 bytes in all;
 * out of memory. */
ATT_API att_status att_bleu_count(att_ctx *ctx, att_bleu_tokenizer tokenizer, const char *text, size_t bytes,
                                  const char *const *references, const size_t *reference_bytes, int64_t n,
                                  att_bleu_counts *out);
/* Adds c to *sum. */
ATT_API void att_bleu_add(att_bleu_counts *sum, const att_bleu_counts *c);

typedef struct att_bleu_info {
    size_t size;
    double bleu, chrf;                /* in [0, 100] */
    double precision[ATT_BLEU_ORDER]; /* in percent, with exponential smoothing: the k-th order without a match counts
                                       * as 2^-k matches */
    double brevity; /* brevity penalty, in [0, 1]: less than 1 if translations are shorter than references */
    double bleu_of[ATT_BLEU_ORDER]; /* BLEU-1 to BLEU-4, with n-grams up to this order; BLEU-4 is `bleu` */
} att_bleu_info;

typedef struct att_bleu_options {
    size_t size;
    bool effective_order; /* ignore orders for which all sentences are too short, as is usual for single sentences;
                           * false: BLEU is then 0 */
} att_bleu_options;
/* Computes scores from statistics. options or NULL: defaults. */
ATT_API att_status att_bleu_describe(const att_bleu_counts *c, const att_bleu_options *options, att_bleu_info *info);

typedef struct att_bleu_resampling {
    size_t size;
    int64_t resamples; /* 0: 1,000 */
    uint64_t seed;
    bool effective_order;
} att_bleu_resampling;

/* Computes bootstrap confidence intervals (Koehn 2004): the scores of resamples of c [n], each of n sentences drawn
 * with replacement. Resample r draws sentence i by word i % 4 of att_random(seed, {i / 4, r}), times n, divided by
 * 2^32. opt or NULL: defaults. Errors: n or resamples not in [1, 2^31); out of memory; cancelled. */
ATT_API att_status att_bleu_intervals(att_ctx *ctx, const att_bleu_counts *c, int64_t n, const att_bleu_resampling *opt,
                                      att_interval *bleu, att_interval *chrf);
/* Computes paired bootstrap intervals of the difference between two systems, a [n] minus b [n], which translated the
 * same sentences: each resample has the same sentences of both. If the interval is above 0, a is better by more than
 * the choice of sentences explains. opt or NULL, and the errors, are as for att_bleu_intervals. */
ATT_API att_status att_bleu_differences(att_ctx *ctx, const att_bleu_counts *a, const att_bleu_counts *b, int64_t n,
                                        const att_bleu_resampling *opt, att_interval *bleu, att_interval *chrf);

/* ---- 3 Captions ---------------------------------------------------------- */

/* Computes CIDEr-D (Vedantam, Zitnick, Parikh 2015) of texts [n], captions of images, each against the references of
 * its image, references[offsets[i]] to references[offsets[i + 1] - 1], one or more. Texts are zero-terminated, and
 * words are separated by white space. To compare with published figures, pass lower case without punctuation, like
 * captions of an att_caption_set. Scores are those of pycocoevalcap's class Cider, in [0, 10]:
 *   10 / 4 times the sum over n = 1 to 4, averaged over references, of the cosine of vectors of n-grams, each with its
 *   count in the text times log(N / images whose references have it), N = n; in the product a text's element is clipped
 *   to the reference's; times exp(-d^2 / (2 * 6^2)), where d is the difference of the numbers of bigrams.
 * Rare n-grams count more, so scores depend on the set: those of few images are not comparable with those of many, and
 * with a single image all are 0. scores [n] or NULL. mean or NULL: receives the mean of the scores. Time is linear in
 * the number of words. Errors: n not in [1, 2^31); offsets that do not begin with 0 or do not increase (a text without
 * a reference); more than 2^30 n-grams; out of memory. */
ATT_API att_status att_cider(att_ctx *ctx, const char *const *texts, int64_t n, const char *const *references,
                             const int64_t *offsets, double *scores, double *mean);
/* Computes the bootstrap interval of the mean of scores x [n], such as att_cider's. If x has the differences between
 * the scores of two systems, it is the paired interval of their difference. opt or NULL, and the errors, are as for
 * att_bleu_intervals; effective_order is not used. */
ATT_API att_status att_mean_interval(att_ctx *ctx, const double *x, int64_t n, const att_bleu_resampling *opt,
                                     att_interval *out);
/* Writes to x [n] a random permutation of 0 to n - 1 that is one cycle (Sattolo 1986), so x[i] is not i if n > 1. It
 * serves as a control: the score of captions of other images is what a model reaches without seeing its image. Error: n
 * not in [1, 2^31). */
ATT_API att_status att_cyclic_permutation(uint64_t seed, int64_t n, int64_t *x);

/* ---- 4 Classes ----------------------------------------------------------- */

/* Computes the expected calibration error of n answers (Guo et al. 2017). confidence [n], in [0, 1], is the probability
 * of each answer, and right [n] whether it is correct. The range [0, 1] is divided into `bins` equal parts, each with
 * its lower end, the last one also with 1: *error = sum over bins of (answers in the bin) / n * |share of these that
 * are correct - their mean confidence|. Errors: n or bins not in [1, 2^31); a confidence that is not in [0, 1]; out of
 * memory. */
ATT_API att_status att_calibration_error(att_ctx *ctx, const float *confidence, const bool *right, int64_t n,
                                         int64_t bins, double *error);

/* ---- 5 Ranks ------------------------------------------------------------- */

/* Each measure is a mean over cases; low and high are 1.96 standard errors away, limited to the range of the measure.
 * The interval of a hit rate with one draw is that of att_share_interval. */
typedef struct att_rank_measures {
    size_t size;
    att_interval hr;   /* hit rate at k: the share of ranks <= k; with one correct item it is recall at k */
    att_interval ndcg; /* 1 / log2(1 + rank) if rank <= k, otherwise 0 */
    att_interval mrr;  /* 1 / rank if rank <= k, otherwise 0 */
} att_rank_measures;
/* Measures the ranks of the correct item in lists: ranks [n, draws], from 1; 0: the item is not in the list. If a case
 * has several draws of its list, their mean counts. Errors: n, draws or k not in [1, 2^31); a rank below 0. */
ATT_API att_status att_measure_ranks(const int32_t *ranks, int64_t n, int64_t draws, int64_t k, att_rank_measures *out);

#ifdef __cplusplus
}
#endif
#endif
