/* Targets and options of a cross entropy: of logits (cross_entropy.c), or of a linear layer that computes them block by
 * block (linear_cross_entropy.c). */
#ifndef ATT_CROSS_ENTROPY_H
#define ATT_CROSS_ENTROPY_H

#include "tape/tape.h"

/* Saved for backward. */
typedef struct att_cross_entropy_saved {
    const int32_t *targets;       /* [rows], negative: ignored */
    float *lse;                   /* [rows] log-sum-exp */
    int64_t all, classes;         /* all columns; columns that take part */
    float label_smoothing, share; /* share: s / classes */
    int64_t divisor;              /* of the sum of losses: 1, or the number of targets */
} att_cross_entropy_saved;

/* Checks targets and options for logits [rows, all], saves them, writes options->count and allocates lse. False: the
 * tape has failed. */
bool att_tape_save_cross_entropy(att_tape *t, const char *op, const int64_t dim[2], const int32_t *targets,
                                 const att_cross_entropy_options *options, att_cross_entropy_saved *saved);

#endif
