/* The losses of text classifiers, as sentence-transformers' CrossEncoder defines them. */
#ifndef ATT_CLASSIFIER_CLASSIFIER_LOSS_H
#define ATT_CLASSIFIER_CLASSIFIER_LOSS_H

#include "attend_text_classifier.h"

/* What the logits of a batch are compared with */
typedef struct att_text_classifier_target {
    att_text_classifier_loss loss;
    att_text_activation activation; /* of the ranking loss and the squared error */
    float scale;                    /* of the ranking loss */
    int64_t n, candidates;          /* rows; of the ranking loss, pairs of each, whose first one is right */
    const float *scores;            /* [n] */
    const int32_t *labels;          /* [n]; of the ranking loss 0 */
} att_text_classifier_target;

/* The loss, summed over the rows: logits [n, labels], of the ranking loss [n candidates, 1] -> [1]. The arrays of the
 * target must stay until the tape's reset. */
att_var *att_text_classifier_loss_apply(att_tape *t, att_var *logits, const att_text_classifier_target *target);

#endif
