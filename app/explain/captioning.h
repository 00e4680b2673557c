/* Shared by the files of the chapter on captions. */
#ifndef EXPLAIN_CAPTIONING_H
#define EXPLAIN_CAPTIONING_H

#include "captioning_parts.h"
#include "page.h"

typedef struct captioning_lesson {
    captioning_parts m;
    att_tape *tape;
    att_image opened, image; /* the file's picture; as the model sees it */
    att_image_caption caption;
    float *x;    /* features of the places [places, features] */
    float *h;    /* the grid [places, hidden] */
    float *mean; /* of the grid [hidden] */
    captioning_record record;
    int64_t shown; /* the word with the narrowest weights: its numbers are printed */
    float *q, *k;  /* its query [hidden], and the keys [places, hidden] */
    float *e, *a;  /* its scores and weights [places] */
    float *c;      /* its context, not gated [hidden] */
} captioning_lesson;

const char *captioning_word(const page *p, const captioning_lesson *l, int64_t i); /* word i of the caption */
/* The index of the largest of a [n]. */
int64_t captioning_largest(const float *a, int64_t n);
/* Prints a number for each place of the grid, a [places]. */
void captioning_print_grid(page *p, const captioning_lesson *l, const float *a, float scale, int decimals);
/* a [places, width] with left and right of the grid exchanged -> out */
void captioning_mirror(const captioning_lesson *l, const float *a, int64_t width, float *out);

/* All words: their maps, and the check with the model itself. */
void captioning_show_words(page *p, captioning_lesson *l);
/* What attention does not say: the order of the places, and how much each gets. */
void captioning_show_limits(page *p, captioning_lesson *l);
/* The errata of the source, computed on the model. */
void captioning_show_errata(page *p, captioning_lesson *l);

#endif
