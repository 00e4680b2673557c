/* Captions of a batch of images, as numbers. */
#ifndef ATT_CAPTION_CAPTION_BATCHES_H
#define ATT_CAPTION_CAPTION_BATCHES_H

#include "caption/captioner.h"
#include "caption/words.h"
#include "attend_caption.h"

typedef struct att_caption_source {
    const att_caption_set *set;
    const char *name; /* of the option that has the set, for errors */
    const att_words *words;
    int64_t max_positions; /* words of a caption, with <end> */
    int64_t presence;      /* the number of predicted words, which are the most frequent content words */
    int64_t max;           /* images of a batch */
    int64_t per_image;     /* captions of an image in a batch, at random; 0: all */
    uint64_t seed;         /* of the choice of captions */
} att_caption_source;

/* Captions of the images of a batch. */
typedef struct att_caption_examples {
    att_caption_batch captions; /* without the members that come from options of a training, such as dropout */
    int64_t targets;            /* words except <unk> */
    const float *present;       /* [images, presence]: 1 if a word is in a caption of the image, otherwise 0 */
} att_caption_examples;

typedef struct att_caption_batches att_caption_batches;
/* Encodes all captions. Errors: a caption is not normalized, or too long. */
att_status att_caption_batches_new(att_ctx *ctx, const att_caption_source *source, att_caption_batches **out);
void att_caption_batches_free(att_caption_batches *b);
uint64_t att_caption_batches_sum(const att_caption_batches *b); /* a checksum of all captions and names of images */
/* Returns the captions of images [n]. They are valid until the next call. */
att_caption_examples att_caption_batches_get(att_caption_batches *b, int64_t epoch, const uint32_t *images, int64_t n);

#endif
