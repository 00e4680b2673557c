/* The images of each epoch, in random order: each once, or those of all classes equally often. */
#ifndef ATT_VISION_IMAGE_ORDER_H
#define ATT_VISION_IMAGE_ORDER_H

#include "attend.h"

/* The images of a batch. */
typedef struct att_image_choice {
    int64_t epoch, batch;   /* numbers, which determine the random changes */
    const uint32_t *images; /* [n]: the whole batch */
    int64_t n;
    int64_t first, last; /* rows of it that are made; none if they are equal */
} att_image_choice;

typedef struct att_image_order {
    att_ctx *ctx;
    uint64_t seed;
    int64_t images, size, epoch; /* size: images of a batch, or fewer in the last one */
    uint32_t *order;             /* [images] */
    /* Only if it is balanced: */
    int64_t classes;   /* that have images */
    int64_t *first;    /* [classes + 1]: of each class, in `member` */
    uint32_t *member;  /* [images]: by class */
    uint32_t *scratch; /* [2 images]: a permutation of a class; images before they are shuffled */
} att_image_order;
att_status att_image_order_make(att_ctx *ctx, int64_t images, int64_t size, uint64_t seed, att_image_order *out);
/* Balances the order by class [images], each in [0, classes): an epoch has as many images as before, but equally many
 * of each class that has any, give or take one. Over epochs, the images of a class take turns: each has been drawn
 * equally often, give or take one. */
att_status att_image_order_balance(att_image_order *o, const int32_t *class, int64_t classes);
void att_image_order_free(att_image_order *o);
/* Begins an epoch. Returns its number of batches. */
int64_t att_image_order_begin(att_image_order *o, int64_t epoch);
/* Returns rows [first, last) of a batch of the epoch. last INT64_MAX: to the end. n is 0 for a batch after the last
 * one. */
att_image_choice att_image_order_batch(const att_image_order *o, int64_t batch, int64_t first, int64_t last);

#endif
