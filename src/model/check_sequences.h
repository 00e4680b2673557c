/* Checks of sequences that callers pass to a model. */
#ifndef ATT_MODEL_CHECK_SEQUENCES_H
#define ATT_MODEL_CHECK_SEQUENCES_H

#include "attend_learn.h"
#include "attend_util.h"

/* Checks ids [offsets[n]] and offsets [n + 1] (ascending from 0, at most max_positions tokens each). On failure the
 * tape fails with a message that names the sequences `what`. */
bool att_sequences_fit(att_tape *t, const char *what, const int32_t *ids, const int64_t *offsets, int64_t n,
                       int64_t max_positions);

#endif
