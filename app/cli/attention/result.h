/* What a pass results in, as numbers that can be compared. */
#ifndef CLI_ATTENTION_RESULT_H
#define CLI_ATTENTION_RESULT_H

#include "attended.h"

/* Computes row `row` of the result for a layer's hidden states (-1: the last layer) -> out [info.outputs]:
 * probabilities, for a target log probabilities, for vectors and scores the numbers themselves. */
int attention_result_row(const attended *a, const att_trace *t, int64_t layer, int64_t row, float *out);
/* Finds the indexes of the largest of x [n] -> out [max], the first of equal ones first; returns their number, without
 * those of -inf. */
int64_t attention_largest(const float *x, int64_t n, int64_t max, int64_t *out);
/* Finds the row to show: that of --from, which is checked, or the last. */
int attention_result_at(const attended *a, int64_t *row);

#endif
