/* The losses of text classifiers, as sentence-transformers' CrossEncoder defines them. */
#ifndef ATT_CLASSIFIER_CLASSIFIER_LOSS_H
#define ATT_CLASSIFIER_CLASSIFIER_LOSS_H

#include "attend_text_classifier.h"

/* The targets of the logits of a batch */
typedef struct att_text_classifier_target {
    att_text_classifier_loss loss;
    att_text_activation activation; /* for the ranking loss and the squared error */
    float scale;                    /* for the ranking loss */
    int64_t n, candidates;          /* rows; for the ranking loss, pairs of each, whose first one is correct */
    const float *scores;            /* [n] */
    const int32_t *labels;          /* [n]; for the ranking loss 0 */
} att_text_classifier_target;

/* Computes the loss, summed over the rows: logits [n, labels], for the ranking loss [n candidates, 1] -> [1]. The
 * arrays of the target must stay until the tape's reset. */
att_var *att_text_classifier_loss_apply(att_tape *t, att_var *logits, const att_text_classifier_target *target);

#endif
