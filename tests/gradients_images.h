/* Gradients of batch normalisation: part of gradients.c. */
#ifndef GRADIENTS_IMAGES_H
#define GRADIENTS_IMAGES_H

#include "gradients.h"

/* ---- batch_norm: by the statistics of x, or by running ones */

typedef struct batch_norm_case {
    att_batch_norm_options o;
    float *mean, *variance; /* running, [channels] */
} batch_norm_case;

static inline att_var *batch_norm(att_tape *t, const problem *p)
{
    const batch_norm_case *c = p->options;
    const leaf *l = &p->leaf[0];
    const att_tensor mean = view(c->mean, ATT_F32, ATT_DIMS(l->dim[l->rank - 1])),
                     variance = view(c->variance, ATT_F32, ATT_DIMS(l->dim[l->rank - 1]));
    return att_batch_norm(t, p->var[0], p->weight[1], p->weight[2], &mean, &variance, &c->o);
}

static inline void batch_norm_reference(const problem *p, double *y)
{
    const batch_norm_case *of = p->options;
    const leaf *l = p->leaf;
    const int64_t channels = l[0].dim[l[0].rank - 1], rows = count_of(&l[0]) / channels;
    for (int64_t c = 0; c < channels; c++) {
        double mean = 0, variance = 0;
        for (int64_t i = c; i < rows * channels; i += channels)
            mean += (double)l[0].x[i] / (double)rows;
        for (int64_t i = c; i < rows * channels; i += channels)
            variance += ((double)l[0].x[i] - mean) * ((double)l[0].x[i] - mean) / (double)rows;
        if (!of->o.training)
            mean = (double)of->mean[c], variance = (double)of->variance[c];
        for (int64_t i = c; i < rows * channels; i += channels)
            y[i] = ((double)l[0].x[i] - mean) / sqrt(variance + of->o.eps) * (double)l[1].x[c] + (double)l[2].x[c];
    }
}

static inline void gradients_of_batch_norm(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{2, 3, 5, 7}, {1, 1, 2, 1}, {1, 1, 1000, 3}, {1, 1, 9, 70}};
    float mean[70], variance[70];
    for (int i = 0; i < 70; i++)
        mean[i] = (float)i / 100, variance[i] = 0.5f + (float)i / 50;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int training = 0; training < 2; training++) {
            float running_mean[70], running_variance[70]; /* which training changes */
            memcpy(running_mean, mean, sizeof mean);
            memcpy(running_variance, variance, sizeof variance);
            const batch_norm_case c = {
                {.size = sizeof c.o, .training = training, .eps = 0.01}, running_mean, running_variance};
            const int64_t *d = shapes[s], rows = d[0] * d[1] * d[2];
            problem p = {.build = batch_norm,
                         .reference = batch_norm_reference,
                         .leaf = {{.rank = 4, .dim = {d[0], d[1], d[2], d[3]}},
                                  {.rank = 1, .dim = {d[3]}, .param = true},
                                  {.rank = 1, .dim = {d[3]}, .param = true}},
                         /* dx: 1 / sqrt(eps) = 10 at most, rounded once; dgamma, dbeta: sums of rows of numbers of
                          * order 1, rounded once */
                         .tolerance = 10 * FLT_EPSILON + (double)rows * FLT_EPSILON / 4,
                         .y_tolerance = 8 * FLT_EPSILON,
                         .options = &c};
            if (rows == 9)
                p.leaf[0] = (leaf){.rank = 2, .dim = {9, 70}};
            check_problem(p, training ? "batch_norm in training" : "batch_norm");
        }
}

#endif
