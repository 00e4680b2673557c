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

/* Word i of the caption */
static inline const char *captioning_word(const page *p, const captioning_lesson *l, int64_t i)
{
    return att_caption_model_word(p->captioner->model, l->caption.ids[i]);
}

/* All words: their maps, and the check with the model itself. */
void captioning_show_words(page *p, captioning_lesson *l);
/* What attention does not say: the order of the places, and how much each gets. */
void captioning_show_limits(page *p, captioning_lesson *l);
/* The errata of the source, computed on the model. */
void captioning_show_errata(page *p, captioning_lesson *l);

#endif
