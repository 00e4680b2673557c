#include "vision/image_order.h"
#include "train/shuffle.h"
#include "util/util.h"

#include "attend_util.h"

#include <string.h>

/* The stream of att_permutation of the first class. Smaller numbers are those of other random numbers of a training. */
enum { CLASS_STREAM = 16 };

att_status att_image_order_make(att_ctx *ctx, int64_t images, int64_t size, uint64_t seed, att_image_order *out)
{
    *out = (att_image_order){.ctx = ctx, .seed = seed, .images = images, .size = size};
    out->order = att_alloc(ctx, (size_t)images, sizeof *out->order);
    return out->order ? ATT_OK : ATT_ERR_MEMORY;
}

void att_image_order_free(att_image_order *o)
{
    if (!o->order)
        return;
    att_free(o->ctx, o->order);
    att_free(o->ctx, o->first);
    att_free(o->ctx, o->member);
    att_free(o->ctx, o->scratch);
    *o = (att_image_order){.ctx = o->ctx};
}

/* Sorts images by class: a counting sort. first [classes + 1] is 0. */
static void sort_by_class(att_image_order *o, const int32_t *class, int64_t classes)
{
    for (int64_t i = 0; i < o->images; i++)
        o->first[class[i] + 1]++;
    for (int64_t c = 0; c < classes; c++)
        o->first[c + 1] += o->first[c];
    for (int64_t i = o->images; i-- > 0;) /* first[class + 1] moves down to the first image of the class */
        o->member[--o->first[class[i] + 1]] = (uint32_t)i;
    for (int64_t c = 0; c < classes; c++)
        o->first[c] = o->first[c + 1];
    o->first[classes] = o->images;
}

att_status att_image_order_balance(att_image_order *o, const int32_t *class, int64_t classes)
{
    o->first = att_calloc(o->ctx, (size_t)classes + 1, sizeof *o->first);
    o->member = att_alloc(o->ctx, (size_t)o->images, sizeof *o->member);
    o->scratch = att_alloc(o->ctx, 2 * (size_t)o->images, sizeof *o->scratch);
    if (!o->first || !o->member || !o->scratch)
        return ATT_ERR_MEMORY;
    sort_by_class(o, class, classes);
    for (int64_t c = 0; c < classes; c++) /* leaves out classes without images */
        if (o->first[c] < o->first[c + 1])
            o->first[o->classes++] = o->first[c];
    o->first[o->classes] = o->images;
    return ATT_OK;
}

/* Sets the images of an epoch that are of one class: every classes-th one of `drawn` [images]. The draws of all epochs
 * are one sequence; those of this class go through its images again and again, each time in another order. */
static void draw_class(const att_image_order *o, int64_t epoch, int64_t c, uint32_t *drawn)
{
    const int64_t before = epoch * o->images, n = o->first[c + 1] - o->first[c];
    int64_t shuffled = -1;
    for (int64_t k = (o->classes + c - before % o->classes) % o->classes; k < o->images; k += o->classes) {
        const int64_t draw = (before + k) / o->classes, round = draw / n;
        if (round != shuffled)
            att_permutation(o->seed, (uint32_t)(CLASS_STREAM + c), round, n, o->scratch);
        shuffled = round;
        drawn[k] = o->member[o->first[c] + o->scratch[draw % n]];
    }
}

int64_t att_image_order_begin(att_image_order *o, int64_t epoch)
{
    att_permutation(o->seed, 0, epoch, o->images, o->order);
    o->epoch = epoch;
    if (o->classes > 0) {
        uint32_t *drawn = o->scratch + o->images;
        for (int64_t c = 0; c < o->classes; c++)
            draw_class(o, epoch, c, drawn);
        for (int64_t i = 0; i < o->images; i++)
            o->order[i] = drawn[o->order[i]];
    }
    return att_ceil_div(o->images, o->size);
}

att_image_choice att_image_order_batch(const att_image_order *o, int64_t batch, int64_t first, int64_t last)
{
    const int64_t begin = att_min(batch * o->size, o->images), n = att_min(o->size, o->images - begin);
    return (att_image_choice){.epoch = o->epoch,
                              .batch = batch,
                              .images = o->order + begin,
                              .n = n,
                              .first = att_min(first, n),
                              .last = att_min(last, n)};
}
