/* Scores of a caller's own on the matrix product (ATT_PRODUCT): Gaussian, polynomial, cosine. */
#ifndef PRODUCT_SCORES_H
#define PRODUCT_SCORES_H

#include "attend_extend.h"

#include <math.h>

static inline double dot_of(int64_t n, const float *a, const float *b)
{
    double s = 0;
    for (int64_t d = 0; d < n; d++)
        s += (double)a[d] * b[d];
    return s;
}

/* ---- -w |q - k|^2 / 2 = w (q . k - |q|^2 / 2 - |k|^2 / 2), a width w of each head */

static inline double gaussian(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim; d++)
        s -= 0.5 * pow((double)p->query[d] - p->key[d], 2);
    return p->param[0].data[0] * s;
}
static inline void gaussian_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    const double w = p->param[0].data[0];
    for (int64_t d = 0; d < p->dim; d++) {
        const double x = (double)p->query[d] - p->key[d];
        dq[d] -= ds * w * x;
        dk[d] += ds * w * x;
        if (dparam[0])
            dparam[0][0] -= ds * 0.5 * x * x;
    }
}
static inline void gaussian_tile(const att_score_tile *t)
{
    const float w = t->param[0].data[0];
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++)
            t->s[j * t->stride + i] = w * (t->s[j * t->stride + i] - t->query_number[i] - t->key_number[j]);
}
static inline void gaussian_tile_back(const att_score_tile *t)
{
    const float w = t->param[0].data[0];
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride, *ds = t->ds + j * t->stride;
        for (int64_t i = 0; i < t->columns; i++)
            s[i] -= t->query_number[i] + t->key_number[j];
        if (t->param[0].grad)
            *t->param[0].grad += t->vectors->dot(t->queries, ds, s);
        t->vectors->scale(t->columns, w, ds, ds);
        t->vectors->sub(t->columns, t->dquery_number, ds, t->dquery_number);
        t->dkey_number[j] -= t->vectors->sum(t->queries, ds);
    }
}
static inline float half_square(const att_score_row *r) { return 0.5f * r->vectors->dot(r->dim, r->x, r->x); }
static inline void half_square_back(const att_score_row *r, float dnumber, float *dx)
{
    for (int64_t d = 0; d < r->dim; d++)
        dx[d] += dnumber * r->x[d];
}
static const att_param_shape width = {.name = "width"};
static const att_score gaussian_score = {.size = sizeof(att_score),
                                         .name = "gaussian",
                                         .flags = ATT_PRODUCT,
                                         .param = &width,
                                         .n_params = 1,
                                         .formula = gaussian,
                                         .derivative = gaussian_derivative,
                                         .tile = gaussian_tile,
                                         .tile_back = gaussian_tile_back,
                                         .number = half_square,
                                         .number_back = half_square_back};

/* ---- (q . k + 1)^2, no number */

static inline double polynomial(const att_pair *p) { return pow(dot_of(p->dim, p->query, p->key) + 1, 2); }
static inline void polynomial_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    const double slope = 2 * ds * (dot_of(p->dim, p->query, p->key) + 1);
    (void)dparam;
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] += slope * p->key[d];
        dk[d] += slope * p->query[d];
    }
}
static inline void polynomial_tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++) {
            float *s = &t->s[j * t->stride + i];
            *s = (*s + 1) * (*s + 1);
        }
}
static inline void polynomial_tile_back(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++)
            t->ds[j * t->stride + i] *= 2 * (t->s[j * t->stride + i] + 1);
}
static const att_score polynomial_score = {.size = sizeof(att_score),
                                           .name = "polynomial",
                                           .flags = ATT_PRODUCT,
                                           .formula = polynomial,
                                           .derivative = polynomial_derivative,
                                           .tile = polynomial_tile,
                                           .tile_back = polynomial_tile_back};

/* ---- q . k / |q| |k|, 0 where either is 0 */

static inline double inverse(double x) { return x > 0 ? 1 / x : 0; }
static inline double cosine(const att_pair *p)
{
    const double q = inverse(sqrt(dot_of(p->dim, p->query, p->query)));
    return q * inverse(sqrt(dot_of(p->dim, p->key, p->key))) * dot_of(p->dim, p->query, p->key);
}
static inline void cosine_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    const double q = inverse(sqrt(dot_of(p->dim, p->query, p->query)));
    const double k = inverse(sqrt(dot_of(p->dim, p->key, p->key))), s = q * k * dot_of(p->dim, p->query, p->key);
    (void)dparam;
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] += ds * (q * k * p->key[d] - s * q * q * p->query[d]);
        dk[d] += ds * (q * k * p->query[d] - s * k * k * p->key[d]);
    }
}
static inline void cosine_tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++)
            t->s[j * t->stride + i] *= t->query_number[i] * t->key_number[j];
}
static inline void cosine_tile_back(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride, *ds = t->ds + j * t->stride;
        const float k = t->key_number[j];
        for (int64_t i = 0; i < t->columns; i++) {
            s[i] *= ds[i];
            t->dquery_number[i] += s[i] * k;
            ds[i] *= k * t->query_number[i];
        }
        t->dkey_number[j] += t->vectors->dot(t->queries, s, t->query_number);
    }
}
static inline float inverse_length(const att_score_row *r)
{
    return (float)inverse(sqrt((double)r->vectors->dot(r->dim, r->x, r->x)));
}
/* d (1 / |x|) = -x / |x|^3 */
static inline void inverse_length_back(const att_score_row *r, float dnumber, float *dx)
{
    const float n = inverse_length(r), slope = -dnumber * n * n * n;
    for (int64_t d = 0; d < r->dim; d++)
        dx[d] += slope * r->x[d];
}
static const att_score cosine_score = {.size = sizeof(att_score),
                                       .name = "own cosine",
                                       .flags = ATT_PRODUCT,
                                       .formula = cosine,
                                       .derivative = cosine_derivative,
                                       .tile = cosine_tile,
                                       .tile_back = cosine_tile_back,
                                       .number = inverse_length,
                                       .number_back = inverse_length_back};

#endif
