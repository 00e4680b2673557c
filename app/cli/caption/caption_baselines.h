/* Baselines for captioners: captions that depend on nothing, or only on the kind of an image, one of four. */
#ifndef CLI_CAPTION_CAPTION_BASELINES_H
#define CLI_CAPTION_CAPTION_BASELINES_H

#include "caption_scores.h"

/* Captions that are tried as constants */
typedef struct caption_candidates {
    const char **text;   /* [n] */
    int64_t n, distinct; /* `distinct`: captions that the model writes; not all are tried */
} caption_candidates;
/* At most CAPTION_TRIED of the captions that the model writes, texts [n], the most frequent first, and as many of those
 * of the training images, at random; train or NULL. Free them after an error, too. */
enum { CAPTION_TRIED = 1000 };
int caption_candidates_open(caption_candidates *c, att_ctx *ctx, const char *const *texts, int64_t n,
                            const att_caption_set *train, uint64_t seed);
void caption_candidates_free(caption_candidates *c);

/* Finds the candidate whose CIDEr-D is the largest if all images get it. */
int caption_best_constant(const caption_references *r, const caption_candidates *c, const char **best);

/* Four constants, chosen on training images one after the other: each raises CIDEr-D of the best of all that are chosen
 * by the most. An image gets the one for which a ridge regression on the encoder's features, trained on training
 * images, predicts the largest CIDEr-D. */
enum { CAPTION_KINDS = 4, CAPTION_CHOICE_IMAGES = 1000, CAPTION_RIDGE_IMAGES = 6000 };
typedef struct caption_kinds {
    const char *text[CAPTION_KINDS];
    int64_t kinds;                 /* fewer than four if no other candidate would raise anything */
    int64_t images[CAPTION_KINDS]; /* measured ones that get each */
    int64_t chosen_on, trained_on; /* training images */
    double strength;               /* of the ridge */
    const char **given, **best;    /* [n]: of each measured image; and the one that its references would choose */
} caption_kinds;
/* r: measured images, of paths [r->n]. Free *k after an error, too. */
int caption_kinds_make(caption_kinds *k, const cli_captioner *m, const caption_candidates *c,
                       const att_caption_set *train, const caption_references *r, const char *const *paths);
void caption_kinds_free(caption_kinds *k);

#endif
