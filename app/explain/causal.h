/* The parts of chapter causal. */
#ifndef EXPLAIN_CAUSAL_H
#define EXPLAIN_CAUSAL_H

#include "layer.h"

enum { CAUSAL_OUT = 2 }; /* numbers in a query, key or value */

/* Shows a step: detaching weights [n, n] loses gradients; contexts [n, CAUSAL_OUT] are the correct ones. */
void causal_gradient(page *p, const layer *of, const att_tensor *weights, const float *contexts);

#endif
