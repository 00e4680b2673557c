/* Shared by the files of the chapter on captions. */
#ifndef EXPLAIN_CAPTIONING_H
#define EXPLAIN_CAPTIONING_H

#include "captioning_parts.h"
#include "page.h"

typedef struct captioning_chapter {
    captioning_parts m;
    att_tape *tape;
    att_image opened, image; /* the file's picture; as the model sees it */
    att_image_caption caption;
    float *x;    /* features of the locations [locations, features] */
    float *h;    /* the grid [locations, hidden] */
    float *mean; /* of the grid [hidden] */
    captioning_record record;
    int64_t shown; /* the word with the narrowest weights: its numbers are printed */
    float *q, *k;  /* its query [hidden], and the keys [locations, hidden] */
    float *e, *a;  /* its scores and weights [locations] */
    float *c;      /* its context, not gated [hidden] */
} captioning_chapter;

/* Returns word i of the caption. */
static inline const char *captioning_word(const page *p, const captioning_chapter *l, int64_t i)
{
    return att_caption_model_word(p->captioner->model, l->caption.ids[i]);
}

/* Shows all words: their maps, and the check with the model itself. */
void captioning_show_words(page *p, captioning_chapter *l);
/* Shows limits of attention: it ignores the order of the locations, and need not treat all of them equally. */
void captioning_show_limits(page *p, captioning_chapter *l);
/* Shows the errata of the source, computed on the model. */
void captioning_show_errata(page *p, captioning_chapter *l);

#endif
