/* attend_metric.h - how good results are: of translations, captions, classifiers and recommendations.
 *
 * Chapters: 1 Intervals, 2 Translations, 3 Captions, 4 Classes, 5 Ranks.
 *
 * Arguments that may be NULL are marked as in attend.h. */
#ifndef ATTEND_METRIC_H
#define ATTEND_METRIC_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Intervals -------------------------------------------------------- */

/* A mean and its 95 % interval */
typedef struct att_interval {
    double mean, low, high;
} att_interval;

/* The share of successes among n trials, with the interval of Wilson (1927): it has a width for no successes, too, and
 * stays in [0, 1]. Errors: n below 1; successes not in [0, n]. */
ATT_API att_status att_share_interval(int64_t successes, int64_t n, att_interval *out);

/* ---- 2 Translations ------------------------------------------------------- */

/* BLEU (Papineni et al. 2002) and chrF (Popovic 2015) with sacreBLEU's defaults (Post 2018): its tokenizers,
 * exponential smoothing, chrF2 of characters without spaces, case-sensitive. */

typedef enum att_bleu_tokenizer {
    ATT_BLEU_TOKENIZER_13A = 0,  /* mteval-v13a: splits off punctuation, decodes entities such as "&quot;" */
    ATT_BLEU_TOKENIZER_CHAR = 1, /* each character except white space: for languages without spaces between words */
    ATT_BLEU_TOKENIZER_NONE = 2  /* split at white space */
} att_bleu_tokenizer;

enum { ATT_BLEU_ORDER = 4, ATT_CHRF_ORDER = 6 };

/* N-gram statistics of a translation and its references; statistics of several sentences are added up. Arrays are
 * indexed by order - 1. A match is an n-gram that is in a reference as well. With several references, reference_tokens
 * is the length nearest to the translation's, and the character statistics are from the reference with the best
 * chrF. */
typedef struct att_bleu_counts {
    int64_t tokens, reference_tokens;
    int64_t token_ngrams[ATT_BLEU_ORDER], token_matches[ATT_BLEU_ORDER];
    int64_t character_ngrams[ATT_CHRF_ORDER], reference_character_ngrams[ATT_CHRF_ORDER],
        character_matches[ATT_CHRF_ORDER];
} att_bleu_counts;

/* Statistics of one sentence: text [bytes] and its references [n] with reference_bytes [n] or NULL (zero-terminated).
 * Any bytes are accepted: each maximal invalid subpart of UTF-8 is read as one U+FFFD. Time O(k log k) for k tokens or
 * characters. n 0: only its own tokens. Errors: more than 2^31 - 1 bytes in all; memory. */
ATT_API att_status att_bleu_count(att_ctx *ctx, att_bleu_tokenizer tokenizer, const char *text, size_t bytes,
                                  const char *const *references, const size_t *reference_bytes, int64_t n,
                                  att_bleu_counts *out);
/* sum += c */
ATT_API void att_bleu_add(att_bleu_counts *sum, const att_bleu_counts *c);

typedef struct att_bleu_info {
    size_t size;
    double bleu, chrf;                /* in [0, 100] */
    double precision[ATT_BLEU_ORDER]; /* percent; exponential smoothing: the k-th order without a match counts as 2^-k
                                       * matches */
    double brevity; /* brevity penalty, in [0, 1]: below 1 if translations are shorter than references */
    double bleu_of[ATT_BLEU_ORDER]; /* BLEU-1 to BLEU-4: with n-grams up to this order; the last one is bleu */
} att_bleu_info;

typedef struct att_bleu_options {
    size_t size;
    bool effective_order; /* ignore orders for which all sentences are too short, as usual for single sentences; else
                           * BLEU is 0 */
} att_bleu_options;
/* options or NULL: defaults. */
ATT_API att_status att_bleu_describe(const att_bleu_counts *c, const att_bleu_options *options, att_bleu_info *info);

typedef struct att_bleu_resampling {
    size_t size;
    int64_t resamples; /* 0: 1,000 */
    uint64_t seed;
    bool effective_order;
} att_bleu_resampling;

/* Bootstrap confidence intervals (Koehn 2004): scores of resamples of c [n], n sentences drawn with replacement.
 * Resample r draws sentence i by word i % 4 of att_random(seed, {i / 4, r}), times n, divided by 2^32. opt or NULL:
 * defaults. Errors: n or resamples not in [1, 2^31); memory; cancelled. */
ATT_API att_status att_bleu_intervals(att_ctx *ctx, const att_bleu_counts *c, int64_t n, const att_bleu_resampling *opt,
                                      att_interval *bleu, att_interval *chrf);
/* The same of the difference of two systems, a [n] minus b [n], translations of the same sentences: each resample has
 * the same sentences of both (paired). Above 0, a is better by more than the choice of sentences explains. opt or NULL:
 * as above, and so are the errors. */
ATT_API att_status att_bleu_differences(att_ctx *ctx, const att_bleu_counts *a, const att_bleu_counts *b, int64_t n,
                                        const att_bleu_resampling *opt, att_interval *bleu, att_interval *chrf);

/* ---- 3 Captions ---------------------------------------------------------- */

/* CIDEr-D (Vedantam, Zitnick, Parikh 2015) of texts [n], captions of images, each against the references of its image:
 * references[offsets[i]] up to references[offsets[i + 1]], one or more. Zero-terminated; words are what is between
 * white space, as they are: to compare with published figures, lower case without punctuation, like references of
 * att_caption_set. Scores are those of pycocoevalcap's class Cider, in [0, 10]:
 *   10 / 4 times the sum over n = 1 to 4, averaged over references, of the cosine of vectors of n-grams, each with its
 *   count in the text times log(N / images whose references have it), N = n; in the product a text's element is clipped
 *   to the reference's; times exp(-d^2 / (2 * 6^2)), where d is the difference of the numbers of bigrams.
 * Rare n-grams count more, so figures depend on the set: those of few images are not comparable with those of many, and
 * with a single image all are 0.
 * scores [n] or NULL. mean or NULL: of the scores. Time is linear in the number of words. Errors: n not in [1, 2^31);
 * offsets that are not 0, or do not increase: a text without reference; more than 2^30 n-grams; memory. */
ATT_API att_status att_cider(att_ctx *ctx, const char *const *texts, int64_t n, const char *const *references,
                             const int64_t *offsets, double *scores, double *mean);
/* The bootstrap interval of the mean of scores x [n], such as att_cider's; of the differences of the scores of two
 * systems it is the paired one of their difference. opt or NULL: as in att_bleu_intervals, and so are the errors;
 * effective_order is not used. */
ATT_API att_status att_mean_interval(att_ctx *ctx, const double *x, int64_t n, const att_bleu_resampling *opt,
                                     att_interval *out);
/* A random permutation of 0 to n - 1 that is one cycle (Sattolo 1986), so x[i] is never i where n > 1: captions of
 * other images are a control, whose score is what a model reaches without seeing its image. x [n]. Error: n not in [1,
 * 2^31). */
ATT_API att_status att_cyclic_permutation(uint64_t seed, int64_t n, int64_t *x);

/* ---- 4 Classes ----------------------------------------------------------- */

/* The expected calibration error of n answers (Guo et al. 2017). confidence [n] in [0, 1]: the probability of the
 * answer; right [n]. The range of confidence is divided into `bins` equal parts, each with its lower end, the last one
 * with 1, too: *error = sum over bins of (answers in it) / n * |share of them that is right - their mean confidence|
 * Errors: n or bins not in [1, 2^31); a confidence that is not in [0, 1]; memory. */
ATT_API att_status att_calibration_error(att_ctx *ctx, const float *confidence, const bool *right, int64_t n,
                                         int64_t bins, double *error);

/* ---- 5 Ranks ------------------------------------------------------------- */

/* Each is a mean over cases, within the range of the measure: low and high are 1.96 standard errors away; of a hit rate
 * without draws as in att_share_interval. */
typedef struct att_rank_measures {
    size_t size;
    att_interval hr;   /* hit rate at k: rank <= k; with one right item it is recall at k */
    att_interval ndcg; /* 1 / log2(1 + rank) if rank <= k, otherwise 0 */
    att_interval mrr;  /* 1 / rank if rank <= k, otherwise 0 */
} att_rank_measures;
/* Of the rank of the right item in a list, ranks [n, draws] from 1, 0: it is not in the list. A case with several draws
 * of its list counts by their mean. Errors: n, draws or k not in [1, 2^31); a rank below 0. */
ATT_API att_status att_measure_ranks(const int32_t *ranks, int64_t n, int64_t draws, int64_t k, att_rank_measures *out);

#ifdef __cplusplus
}
#endif
#endif
