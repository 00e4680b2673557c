#include "caption_ridge.h"
#include "cli/base/command.h"

#include <attend_util.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every fifth image is held out while a strength is tried. */
enum { FIFTH = 5 };
static const double strengths[] = {1e-3, 1e-2, 1e-1, 1, 10};

typedef struct learning {
    caption_ridge *r;
    int64_t n;
    double *x;      /* [n, width], of mean 0 and variance 1 */
    const float *y; /* [kinds, n] */
    /* Sums over images; [0]: those that are held out while a strength is tried, [1]: the others */
    double *products[2]; /* [width, width]: of features, up to the diagonal */
    double *targets[2];  /* [width, kinds]: of a feature and y - bias */
    double *factor;      /* [width, width] */
} learning;

/* ---- Features of mean 0 and variance 1, and sums of their products ---------- */

static void standardize(void *arg, int f)
{
    const learning *l = arg;
    caption_ridge *r = l->r;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < l->n; i++)
        sum += l->x[i * r->width + f];
    r->mean[f] = sum / (double)l->n;
    for (int64_t i = 0; i < l->n; i++) {
        double *x = &l->x[i * r->width + f];
        *x -= r->mean[f];
        squares += *x * *x;
    }
    r->scale[f] = squares > 0 ? 1 / sqrt(squares / (double)l->n) : 0;
    for (int64_t i = 0; i < l->n; i++)
        l->x[i * r->width + f] *= r->scale[f];
}

static void sum_products(void *arg, int f)
{
    const learning *l = arg;
    const int64_t width = l->r->width, kinds = l->r->kinds;
    for (int64_t i = 0; i < l->n; i++) {
        const double *x = l->x + i * width;
        double *products = l->products[i % FIFTH != 0] + f * width, *targets = l->targets[i % FIFTH != 0] + f * kinds;
        for (int64_t g = 0; g <= f; g++)
            products[g] += x[f] * x[g];
        for (int64_t k = 0; k < kinds; k++)
            targets[k] += x[f] * ((double)l->y[k * l->n + i] - l->r->bias[k]);
    }
}

/* ---- Weights ---------------------------------------------------------------- */

/* Computes the lower factor of products / n + strength, which is positive definite (Cholesky); all: of all images,
 * n. */
static void factorize(const learning *l, bool all, int64_t n, double strength)
{
    const int64_t width = l->r->width;
    const double share = 1 / (double)(n > 0 ? n : 1);
    for (int64_t f = 0; f < width; f++)
        for (int64_t g = 0; g <= f; g++) {
            const int64_t at = f * width + g;
            const double *a = l->factor + f * width, *b = l->factor + g * width;
            double sum = (l->products[1][at] + (all ? l->products[0][at] : 0)) * share + (f == g ? strength : 0);
            for (int64_t k = 0; k < g; k++)
                sum -= a[k] * b[k];
            l->factor[at] = f == g ? sqrt(sum) : sum / b[g];
        }
}

static void solve(const learning *l, bool all, double strength)
{
    const int64_t width = l->r->width, kinds = l->r->kinds, n = all ? l->n : l->n - (l->n + FIFTH - 1) / FIFTH;
    factorize(l, all, n, strength);
    for (int64_t k = 0; k < kinds; k++) {
        double *w = l->r->weight + k * width;
        for (int64_t f = 0; f < width; f++) {
            const double target = l->targets[1][f * kinds + k] + (all ? l->targets[0][f * kinds + k] : 0);
            w[f] = target / (double)(n > 0 ? n : 1);
            for (int64_t g = 0; g < f; g++)
                w[f] -= l->factor[f * width + g] * w[g];
            w[f] /= l->factor[f * width + f];
        }
        for (int64_t f = width - 1; f >= 0; f--) {
            for (int64_t g = f + 1; g < width; g++)
                w[f] -= l->factor[g * width + f] * w[g];
            w[f] /= l->factor[f * width + f];
        }
    }
    l->r->strength = strength;
}

/* Returns the kind with the largest prediction for features of mean 0 and variance 1; of equal ones the first. */
static int64_t choose(const caption_ridge *r, const double *x)
{
    int64_t best = 0;
    double largest = -INFINITY;
    for (int64_t k = 0; k < r->kinds; k++) {
        double y = r->bias[k];
        for (int64_t f = 0; f < r->width; f++)
            y += r->weight[k * r->width + f] * x[f];
        if (y > largest) {
            largest = y;
            best = k;
        }
    }
    return best;
}

/* Returns the sum of the scores that the weights choose for the held-out images. */
static double held_out(const learning *l)
{
    double sum = 0;
    for (int64_t i = 0; i < l->n; i += FIFTH)
        sum += (double)l->y[choose(l->r, l->x + i * l->r->width) * l->n + i];
    return sum;
}

static void learn(att_ctx *ctx, learning *l)
{
    caption_ridge *r = l->r;
    double best = strengths[0], largest = -INFINITY;
    att_parallel_for(ctx, (int)r->width, standardize, l);
    for (int64_t k = 0; k < r->kinds; k++) {
        double sum = 0;
        for (int64_t i = 0; i < l->n; i++)
            sum += (double)l->y[k * l->n + i];
        r->bias[k] = sum / (double)l->n;
    }
    att_parallel_for(ctx, (int)r->width, sum_products, l);
    for (size_t i = 0; i < sizeof strengths / sizeof *strengths; i++) {
        solve(l, false, strengths[i]);
        const double reached = held_out(l);
        if (reached > largest) {
            largest = reached;
            best = strengths[i];
        }
    }
    solve(l, true, best);
}

int caption_ridge_learn(caption_ridge *r, att_ctx *ctx, double *x, int64_t n, int64_t width, const float *y,
                        int64_t kinds)
{
    const size_t w = (size_t)width, k = (size_t)kinds;
    learning l = {.r = r, .n = n, .x = x, .y = y};
    *r = (caption_ridge){.width = width, .kinds = kinds};
    double **const arrays[] = {&r->mean,       &r->scale,     &r->bias,      &r->weight, &l.products[0],
                               &l.products[1], &l.targets[0], &l.targets[1], &l.factor};
    const size_t sizes[] = {w, w, k, k * w, w * w, w * w, w * k, w * k, w * w};
    int code = CLI_DONE;
    for (int i = 0; i < 9; i++) {
        *arrays[i] = calloc(sizes[i], sizeof **arrays[i]);
        if (!code && !*arrays[i])
            code = cli_fail_memory();
    }
    if (!code)
        learn(ctx, &l);
    for (int i = 4; i < 9; i++)
        free(*arrays[i]);
    return code;
}

int64_t caption_ridge_choose(const caption_ridge *r, double *x)
{
    for (int64_t f = 0; f < r->width; f++)
        x[f] = (x[f] - r->mean[f]) * r->scale[f];
    return choose(r, x);
}

void caption_ridge_free(caption_ridge *r)
{
    free(r->mean);
    free(r->scale);
    free(r->bias);
    free(r->weight);
}
