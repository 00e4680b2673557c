/* The losses of sentence embeddings, as sentence-transformers defines them. */
#ifndef ATT_SENTENCE_SENTENCE_LOSS_H
#define ATT_SENTENCE_SENTENCE_LOSS_H

#include "attend_sentence.h"
#include "attend_nn.h"

/* The embeddings of a batch of n examples: first texts, then second ones, ... */
typedef struct att_sentence_batch {
    att_var *x; /* [columns n, dim] */
    int64_t n, columns;
    const float *negative_score; /* [n] -score, for the cosine loss */
    const int32_t *labels;       /* [n], for the softmax loss */
    const int32_t *counting;     /* [n]: 0, 1, 2 ..., for the ranking loss */
} att_sentence_batch;

typedef struct att_sentence_loss_config {
    att_sentence_loss loss;
    att_sentence_distance distance;
    float scale, margin;
    const att_nn_linear *classifier; /* of the softmax loss: [classes, 3 dim] */
} att_sentence_loss_config;

/* Returns whether the loss compares embeddings by cosines, so that their norms must be 1. */
bool att_sentence_loss_is_cosine(const att_sentence_loss_config *c);
/* Returns the loss, summed over the examples: [1]. c and the arrays of b must be valid until the tape's reset. */
att_var *att_sentence_loss_apply(att_tape *t, const att_sentence_loss_config *c, const att_sentence_batch *b);

#endif
