/* What a pass results in, as numbers that can be compared. */
#ifndef CLI_ATTENTION_RESULT_H
#define CLI_ATTENTION_RESULT_H

#include "attended.h"

/* Row `row` of what the model makes of a layer's hidden states (-1: of the last) -> out [info.outputs]: probabilities;
 * of a target log probabilities; of vectors and scores what they are. */
int attention_result_row(const attended *a, const att_trace *t, int64_t layer, int64_t row, float *out);
/* The indexes of the largest of x [n] -> out [max], the first of equal ones first; the number of them: those without
 * -inf. */
int64_t attention_largest(const float *x, int64_t n, int64_t max, int64_t *out);
/* The row that is asked about: that of --from, which is checked, or the last. */
int attention_result_at(const attended *a, int64_t *row);

#endif
