/* Gradients of convolution and pooling of images: part of gradients.c. */
#ifndef GRADIENTS_CONV_H
#define GRADIENTS_CONV_H

#include "gradients.h"

/* Outputs along one way of an image. */
static inline int64_t windows_of(int64_t size, int64_t kernel, int64_t stride, int64_t padding)
{
    return (size + 2 * padding - kernel) / stride + 1;
}

static inline att_var *conv2d(att_tape *t, const problem *p)
{
    return att_conv2d(t, p->var[0], p->weight[1], p->weight[2], p->options);
}

static inline void conv2d_reference(const problem *p, double *y)
{
    const att_conv_options *o = p->options;
    const int64_t *x = p->leaf[0].dim, *w = p->leaf[1].dim;
    const int64_t high = windows_of(x[1], w[2], o->stride[0], o->padding[0]);
    const int64_t wide = windows_of(x[2], w[3], o->stride[1], o->padding[1]);
    for (int64_t i = 0; i < x[0] * high * wide * w[0]; i++) {
        const int64_t out = i % w[0], column = i / w[0] % wide, line = i / w[0] / wide % high;
        double sum = p->leaf[2].rank ? (double)p->leaf[2].x[out] : 0;
        for (int64_t c = 0; c < w[1]; c++)
            for (int64_t ky = 0; ky < w[2]; ky++)
                for (int64_t kx = 0; kx < w[3]; kx++) {
                    const int64_t iy = line * o->stride[0] - o->padding[0] + ky;
                    const int64_t ix = column * o->stride[1] - o->padding[1] + kx;
                    if (iy >= 0 && iy < x[1] && ix >= 0 && ix < x[2])
                        sum += (double)p->leaf[0].x[((i / w[0] / wide / high * x[1] + iy) * x[2] + ix) * x[3] + c] *
                               (double)p->leaf[1].x[((out * w[1] + c) * w[2] + ky) * w[3] + kx];
                }
        y[i] = sum;
    }
}

static inline void gradients_of_conv2d(void **state)
{
    (void)state;
    static const struct {
        int64_t kernel[2];
        att_conv_options o;
    } cases[] = {{{3, 3}, {.stride = {1, 1}, .padding = {1, 1}}},
                 {{3, 2}, {.stride = {2, 3}, .padding = {0, 1}}},
                 {{1, 1}, {.stride = {1, 1}}},
                 {{5, 4}, {.stride = {1, 4}, .padding = {4, 0}}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int bias = 0; bias < 2; bias++) {
            att_conv_options o = cases[i].o;
            o.size = sizeof o;
            problem p = {.build = conv2d,
                         .reference = conv2d_reference,
                         .leaf = {{.rank = 4, .dim = {2, 7, 6, 3}},
                                  {.rank = 4, .dim = {5, 3, cases[i].kernel[0], cases[i].kernel[1]}, .param = true},
                                  {.rank = 1, .dim = {5}, .param = true}},
                         /* sums over the 110 places of two images at most, or 60 numbers of a patch, below 1 */
                         .tolerance = 110 * FLT_EPSILON,
                         .options = &o};
            if (!bias)
                p.leaf[2].rank = 0;
            check_problem(p, "conv2d");
        }
}

static inline att_var *pool2d(att_tape *t, const problem *p) { return att_pool2d(t, p->var[0], p->kind, p->options); }

static inline void pool2d_reference(const problem *p, double *y)
{
    const att_pool_options *o = p->options;
    const int64_t *x = p->leaf[0].dim;
    const int64_t high = windows_of(x[1], o->kernel[0], o->stride[0], o->padding[0]);
    const int64_t wide = windows_of(x[2], o->kernel[1], o->stride[1], o->padding[1]);
    for (int64_t i = 0; i < x[0] * high * wide * x[3]; i++) {
        const int64_t c = i % x[3], column = i / x[3] % wide, line = i / x[3] / wide % high;
        double sum = 0, top = -INFINITY, n = 0;
        for (int64_t k = 0; k < o->kernel[0] * o->kernel[1]; k++) {
            const int64_t iy = line * o->stride[0] - o->padding[0] + k / o->kernel[1];
            const int64_t ix = column * o->stride[1] - o->padding[1] + k % o->kernel[1];
            if (iy < 0 || iy >= x[1] || ix < 0 || ix >= x[2])
                continue;
            const double v = (double)p->leaf[0].x[((i / x[3] / wide / high * x[1] + iy) * x[2] + ix) * x[3] + c];
            sum += v, top = fmax(top, v), n++;
        }
        y[i] = p->kind == ATT_POOL_MAX ? top : sum / n;
    }
}

static inline void gradients_of_pool2d(void **state)
{
    (void)state;
    static const att_pool_options options[] = {
        {.size = sizeof options[0], .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}},
        {.size = sizeof options[0], .kernel = {2, 3}, .stride = {2, 3}}};
    for (int i = 0; i < 2; i++)
        for (int max = 0; max < 2; max++) {
            const problem p = {.build = pool2d,
                               .reference = pool2d_reference,
                               .leaf = {{.rank = 4, .dim = {2, 7, 6, 17}}},
                               .tolerance = 8 * FLT_EPSILON, /* sums of up to four shares of windows */
                               .kind = max ? ATT_POOL_MAX : ATT_POOL_MEAN,
                               .options = &options[i]};
            check_problem(p, "pool2d");
        }
}

#endif
