/* Multinomial logistic regression in double, by L-BFGS. */
#ifndef ATT_PROBE_LOGISTIC_H
#define ATT_PROBE_LOGISTIC_H

#include "attend_probe.h"

/* A regression of examples. Its parameters are in panels of 4 classes: see logistic.c. */
typedef struct att_logistic att_logistic;

/* Prepares a regression; weights [classes]: factors of the loss of each class's examples. data and weights must stay
 * until att_logistic_free. Every class has an example. */
att_status att_logistic_new(att_ctx *ctx, const att_probe_data *data, const double *weights, att_logistic **out);
void att_logistic_free(att_logistic *r);
/* Returns the sum of the examples' weights, and the mean squared distance of a vector from the mean of all. */
double att_logistic_weight(const att_logistic *r);
double att_logistic_variance(const att_logistic *r);

typedef struct att_logistic_limits {
    int64_t iterations;
    double tolerance;
} att_logistic_limits;
/* Minimizes mean of weight * cross entropy + lambda / 2 * sum of W^2, beginning with the current parameters, which are
 * 0 at first. info: iterations, gradient and converged are set. Errors: out of memory; cancelled. */
att_status att_logistic_fit(att_logistic *r, double lambda, const att_logistic_limits *limits, att_probe_info *info);
/* Computes the mean of weight * cross entropy of other examples, with the weights of their classes. */
att_status att_logistic_loss(const att_logistic *r, const att_probe_data *data, double *loss);
/* Writes W [classes, dim] and b [classes]. */
void att_logistic_get(const att_logistic *r, float *w, float *b);

#endif
