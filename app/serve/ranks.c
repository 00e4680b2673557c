#include "ranks.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const serve_rank *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->index > y->index) - (x->index < y->index);
}

serve_rank *serve_ranks(const float *scores, int64_t n)
{
    serve_rank *r = malloc((size_t)(n + 1) * sizeof *r);
    for (int64_t i = 0; r && i < n; i++)
        r[i] = (serve_rank){i, scores[i]};
    if (r)
        qsort(r, (size_t)n, sizeof *r, compare);
    return r;
}
