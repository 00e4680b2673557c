#include "numbers.h"

#include <math.h>

int64_t numbers_largest(const float *a, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = a[i] > a[best] ? i : best;
    return best;
}

double numbers_entropy(const float *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum -= w[i] > 0 ? w[i] * log2(w[i]) : 0;
    return sum;
}
