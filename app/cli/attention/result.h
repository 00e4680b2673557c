/* The result of a pass, as numbers that can be compared. */
#ifndef CLI_ATTENTION_RESULT_H
#define CLI_ATTENTION_RESULT_H

#include "attended.h"

/* Computes row `row` of the result from a layer's hidden states (-1: the last layer): out [info.outputs]. These are
 * probabilities, or log probabilities if there is a target; vectors and scores are not changed. */
int attention_result_row(const attended *a, const att_trace *t, int64_t layer, int64_t row, float *out);
/* Writes the indexes of the largest of x [n] to out [max]. Of equal ones, the lower index comes first. Returns their
 * number, without those of -inf. */
int64_t attention_largest(const float *x, int64_t n, int64_t max, int64_t *out);
/* Finds the row to show: that of --from, which is checked, or the last. */
int attention_result_at(const attended *a, int64_t *row);

#endif
