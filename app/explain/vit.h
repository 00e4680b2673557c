/* Shared by the two files of the chapter on the Vision Transformer. */
#ifndef EXPLAIN_VIT_H
#define EXPLAIN_VIT_H

#include "page.h"
#include "vit_parts.h"

typedef struct vit_chapter {
    vit_parts m;
    att_tape *tape;
    att_image opened, image; /* the file's picture; as the model sees it */
    float *x;                /* its numbers [height, width, channels] */
    float *patches;          /* [patches, numbers] */
    int64_t shown;           /* the patch with the most contrast: its numbers are printed */
    int64_t head;            /* a head of the first layer: the one whose [CLS] attends most narrowly */
    float *z, *h;            /* the input of the first layer, and its norm [tokens, hidden] */
    float *q, *k, *v;        /* of the head [tokens, head_dim] */
    float *w;                /* weights of [CLS] in the head [tokens] */
    float *sa;               /* the head's result [tokens, head_dim] */
    float *probability;      /* [classes] */
} vit_chapter;

/* Prints the answer of the model, with the errata of the source in turn. */
void vit_show_errata(page *p, vit_chapter *l);

#endif
