#include "correlation.h"
#include "cli/base/command.h"

#include <math.h>
#include <stdlib.h>

double cli_cosine(const float *a, const float *b, int64_t dim)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < dim; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa == 0 || bb == 0 ? 0 : ab / sqrt(aa * bb);
}

double cli_similar(att_similarity measure, const float *a, const float *b, int64_t dim)
{
    double sum = 0;
    if (measure == ATT_SIMILARITY_COSINE)
        return cli_cosine(a, b, dim);
    for (int64_t i = 0; i < dim; i++) {
        const double x = (double)a[i], y = (double)b[i];
        sum += measure == ATT_SIMILARITY_DOT         ? x * y
               : measure == ATT_SIMILARITY_MANHATTAN ? fabs(x - y)
                                                     : (x - y) * (x - y);
    }
    return measure == ATT_SIMILARITY_DOT ? sum : 0 - (measure == ATT_SIMILARITY_MANHATTAN ? sum : sqrt(sum));
}

float cli_clamp_cosine(float x) { return x > 1 ? 1 : x < -1 ? -1 : x; }

double cli_pearson(const double *a, const double *b, int64_t n)
{
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        mean_a += a[i] / (double)n;
        mean_b += b[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

static int by_value(const void *x, const void *y)
{
    const double a = **(const double *const *)x, b = **(const double *const *)y;
    return (a > b) - (a < b);
}

/* Computes rank[i] of a[i] in ascending order. Equal values share their mean rank. order [n] is scratch. */
static void rank_all(const double *a, int64_t n, double *rank, const double **order)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = a + i;
    qsort(order, (size_t)n, sizeof *order, by_value);
    for (int64_t first = 0, next; first < n; first = next) {
        for (next = first + 1; next < n && *order[next] == *order[first]; next++) {
        }
        for (int64_t i = first; i < next; i++)
            rank[order[i] - a] = 0.5 * (double)(first + next - 1);
    }
}

int cli_spearman(const double *a, const double *b, int64_t n, double *correlation)
{
    double *rank = malloc(2 * (size_t)n * sizeof *rank + 1);
    const double **order = malloc((size_t)n * sizeof *order + 1);
    const int code = rank && order ? CLI_DONE : cli_fail_memory();
    if (!code) {
        rank_all(a, n, rank, order);
        rank_all(b, n, rank + n, order);
        *correlation = cli_pearson(rank, rank + n, n);
        for (int64_t i = 0; i < n; i++)
            if (isnan(a[i]) || isnan(b[i])) /* which has no rank */
                *correlation = NAN;
    }
    free(rank);
    free(order);
    return code;
}
