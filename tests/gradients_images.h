/* Gradients of batch normalisation and resampling: part of gradients.c. */
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

/* ---- resize: one output after the other, as a sum over all inputs */

static inline double resize_weight(const att_resize_options *o, double x)
{
    const double a = o->antialias ? -0.5 : -0.75;
    x = fabs(x);
    if (o->mode == ATT_RESIZE_BILINEAR)
        return fmax(0, 1 - x);
    return x < 1 ? (a + 2) * x * x * x - (a + 3) * x * x + 1 : x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

/* The weight of input `in` of n for output `out`. */
static inline double resize_share(const att_resize_options *o, int axis, int64_t n, int64_t out, int64_t in)
{
    const double scale = o->out[axis] ? (double)n / (double)o->out[axis] : 1 / o->factor[axis];
    const double center = scale * ((double)out + 0.5), wide = o->antialias ? fmax(scale, 1) : 1;
    double sum = 0, share = 0;
    for (int64_t p = o->antialias ? 0 : -9; p < (o->antialias ? n : n + 9); p++) {
        const double weight = resize_weight(o, ((double)p + 0.5 - center) / wide);
        sum += weight;
        share += (p < 0 ? 0 : p < n ? p : n - 1) == in ? weight : 0;
    }
    return share / sum;
}

static inline int64_t resize_size(const att_resize_options *o, int axis, int64_t n)
{
    return o->out[axis] ? o->out[axis] : (int64_t)floor((double)n * o->factor[axis]);
}

static inline att_var *resize(att_tape *t, const problem *p) { return att_resize(t, p->var[0], p->options); }

static inline void resize_reference(const problem *p, double *y)
{
    enum { MOST_IN = 8, MOST_OUT = 12 };
    const att_resize_options *o = p->options;
    const int64_t *x = p->leaf[0].dim, out[] = {resize_size(o, 0, x[1]), resize_size(o, 1, x[2])};
    double share[2][MOST_OUT][MOST_IN];
    for (int axis = 0; axis < 2; axis++)
        for (int64_t i = 0; i < out[axis]; i++)
            for (int64_t k = 0; k < x[1 + axis]; k++)
                share[axis][i][k] = resize_share(o, axis, x[1 + axis], i, k);
    for (int64_t i = 0; i < x[0] * out[0] * out[1] * x[3]; i++) {
        const int64_t c = i % x[3], column = i / x[3] % out[1], line = i / x[3] / out[1] % out[0];
        y[i] = 0;
        for (int64_t iy = 0; iy < x[1]; iy++)
            for (int64_t ix = 0; ix < x[2]; ix++)
                y[i] += share[0][line][iy] * share[1][column][ix] *
                        (double)p->leaf[0].x[((i / x[3] / out[1] / out[0] * x[1] + iy) * x[2] + ix) * x[3] + c];
    }
}

static inline void gradients_of_resize(void **state)
{
    (void)state;
    static const att_resize_options sizes[] = {
        {.out = {4, 9}}, {.out = {1, 5}}, {.factor = {0.6, 2.3}}, {.out = {3, 0}, .factor = {0, 1.1}}};
    for (int i = 0; i < 16; i++) {
        att_resize_options o = sizes[i / 4];
        o.size = sizeof o, o.mode = i & 1 ? ATT_RESIZE_BICUBIC : ATT_RESIZE_BILINEAR, o.antialias = i & 2;
        const problem p = {.build = resize,
                           .reference = resize_reference,
                           .leaf = {{.rank = 4, .dim = {2, 7, 5, 3}}},
                           .tolerance = 16 * FLT_EPSILON, /* sums of up to 9 by 9 of weights with sum 1 or 2 */
                           .y_tolerance = 8 * FLT_EPSILON,
                           .options = &o};
        check_problem(p, "resize");
    }
}

#endif
