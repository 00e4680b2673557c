/* Scores captions of a set's images against their references, and controls and constant captions for comparison. */
#ifndef CLI_CAPTION_CAPTION_SCORES_H
#define CLI_CAPTION_CAPTION_SCORES_H

#include "captioner.h"

#include <attend_metric.h>

/* The references of images of a set */
typedef struct caption_references {
    att_ctx *ctx;
    const att_caption_set *set;
    int64_t n, all;    /* images; those of the set, among which they are evenly spaced */
    const char **text; /* [offset[n]] */
    int64_t *offset;   /* [n + 1] */
} caption_references;
/* Opens the references of all images of the set, or of n of them if it has more. */
int caption_references_open(caption_references *r, att_ctx *ctx, const att_caption_set *set, int64_t n);
int64_t caption_references_image(const caption_references *r, int64_t i); /* of the set */
void caption_references_free(caption_references *r);

typedef struct caption_scores {
    att_bleu_counts *count; /* [n] */
    double *cider;          /* [n] */
    att_bleu_info bleu;
    double mean; /* of cider */
} caption_scores;
/* Scores a caption of each image, texts [n]; free *s after an error, too. */
int caption_scores_make(caption_scores *s, const caption_references *r, const char *const *texts);
void caption_scores_free(caption_scores *s);

/* 95 % intervals, by resampling the images; `mean` is of the images themselves */
typedef struct caption_intervals {
    att_interval bleu4, cider;
} caption_intervals;
int caption_scores_intervals(const caption_scores *s, const caption_references *r, uint64_t seed,
                             caption_intervals *out);
/* Computes the intervals of a minus b, for the same images. */
int caption_scores_differences(const caption_scores *a, const caption_scores *b, const caption_references *r,
                               uint64_t seed, caption_intervals *out);

/* Gives each image another image's caption: to[i] is texts[from], and from is never i. Both [n], n > 1. */
int caption_shuffle(const att_ctx *ctx, const char *const *texts, int64_t n, uint64_t seed, const char **to);

/* Sorts distinct texts, the most frequent first, into out [n]. Returns their number; -1: out of memory. */
int64_t caption_distinct(const char *const *texts, int64_t n, const char **out);

#endif
