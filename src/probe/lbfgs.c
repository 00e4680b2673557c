#include "probe/lbfgs.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { PAIRS = 10, TRIALS = 40 };

typedef struct lbfgs {
    att_objective f;
    void *user;
    int64_t n;
    double *x, *gradient, *direction, *trial, *trial_gradient; /* [n] */
    double *change[PAIRS], *difference[PAIRS];                 /* [n]: of x, and of the gradient, in recent steps */
    double rho[PAIRS];                                         /* 1 / (change . difference) */
    int64_t pairs, first;                                      /* number of them; the oldest, in a ring */
    double value;
} lbfgs;

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(double *to, double factor, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * x[i];
}

static double largest(const double *x, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, fabs(x[i]));
    return max;
}

/* Sets the direction to minus the product of the approximate inverse Hessian with the gradient (algorithm 7.4). */
static void find_direction(lbfgs *b)
{
    double alpha[PAIRS];
    double *d = b->direction;
    for (int64_t i = 0; i < b->n; i++)
        d[i] = -b->gradient[i];
    for (int64_t j = b->pairs - 1; j >= 0; j--) {
        const int64_t at = (b->first + j) % PAIRS;
        alpha[at] = b->rho[at] * dot(b->change[at], d, b->n);
        add(d, -alpha[at], b->difference[at], b->n);
    }
    if (b->pairs) {
        const int64_t at = (b->first + b->pairs - 1) % PAIRS;
        const double scale = 1 / (b->rho[at] * dot(b->difference[at], b->difference[at], b->n));
        for (int64_t i = 0; i < b->n; i++)
            d[i] *= scale;
    }
    for (int64_t j = 0; j < b->pairs; j++) {
        const int64_t at = (b->first + j) % PAIRS;
        add(d, alpha[at] - b->rho[at] * dot(b->difference[at], d, b->n), b->change[at], b->n);
    }
}

/* Finds a step along the direction that meets the weak conditions of Wolfe, by bisection (Lewis, Overton 2013). The
 * value may grow by what rounding can cause. *found: trial and trial_gradient have the point. */
static att_status search(lbfgs *b, double *value, bool *found)
{
    const double slope = dot(b->gradient, b->direction, b->n), noise = 8 * DBL_EPSILON * fabs(b->value);
    double low = 0, high = INFINITY, step = b->pairs ? 1 : 1 / sqrt(dot(b->gradient, b->gradient, b->n));
    *found = false;
    for (int i = 0; slope < 0 && i < TRIALS; i++) {
        memcpy(b->trial, b->x, (size_t)b->n * sizeof *b->trial);
        add(b->trial, step, b->direction, b->n);
        const att_status s = b->f(b->user, b->trial, value, b->trial_gradient);
        if (s)
            return s;
        const bool lower = *value <= b->value + 1e-4 * step * slope + noise;
        if (lower && dot(b->trial_gradient, b->direction, b->n) >= 0.9 * slope) {
            *found = true;
            return ATT_OK;
        }
        if (lower)
            low = step;
        else
            high = step;
        step = isfinite(high) ? (low + high) / 2 : 2 * low;
    }
    return ATT_OK;
}

static void swap(double **a, double **b)
{
    double *const was = *a;
    *a = *b;
    *b = was;
}

/* Moves to the trial point, and keeps the pair of this step, in place of the oldest if there are PAIRS. */
static void move(lbfgs *b, double value)
{
    double curvature = 0, square = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const double difference = b->trial_gradient[i] - b->gradient[i];
        curvature += (b->trial[i] - b->x[i]) * difference;
        square += difference * difference;
    }
    if (curvature > DBL_EPSILON * square) {
        const int64_t at = (b->first + b->pairs) % PAIRS;
        for (int64_t i = 0; i < b->n; i++) {
            b->change[at][i] = b->trial[i] - b->x[i];
            b->difference[at][i] = b->trial_gradient[i] - b->gradient[i];
        }
        b->rho[at] = 1 / curvature;
        b->first = (b->first + (b->pairs == PAIRS)) % PAIRS;
        b->pairs += b->pairs < PAIRS;
    }
    memcpy(b->x, b->trial, (size_t)b->n * sizeof *b->x);
    swap(&b->gradient, &b->trial_gradient);
    b->value = value;
}

static att_status run(lbfgs *b, att_minimum *m)
{
    double value;
    bool found = true;
    att_status s = b->f(b->user, b->x, &b->value, b->gradient);
    while (!s && found && m->steps < m->iterations && largest(b->gradient, b->n) > m->tolerance) {
        find_direction(b);
        s = search(b, &value, &found);
        if (!s && found) {
            move(b, value);
            m->steps++;
        }
    }
    m->value = b->value;
    m->gradient = s ? NAN : largest(b->gradient, b->n);
    return s;
}

att_status att_lbfgs(att_ctx *ctx, att_objective f, void *user, att_minimum *m)
{
    enum { ARRAYS = 4 + 2 * PAIRS };
    lbfgs b = {.f = f, .user = user, .n = m->n, .x = m->x};
    double *memory = att_calloc(ctx, (size_t)m->n, ARRAYS * sizeof *memory), *next = memory;
    double **const own[] = {&b.gradient, &b.direction, &b.trial, &b.trial_gradient};
    if (!memory)
        return ATT_ERR_MEMORY;
    for (int i = 0; i < 4; i++, next += m->n)
        *own[i] = next;
    for (int i = 0; i < PAIRS; i++, next += 2 * m->n) {
        b.change[i] = next;
        b.difference[i] = next + m->n;
    }
    m->steps = 0;
    const att_status s = run(&b, m);
    att_free(ctx, memory);
    return s;
}
