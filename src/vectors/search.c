/* Searches among vectors or their codes: finds candidates by their codes, and rescores them. */
#include "vectors.h"

#include "attend_util.h"
#include "base/base.h"
#include "kernel/kernel.h"
#include "util/best.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>

enum {
    QUERIES = 64,       /* at a time */
    ROWS = 1 << 14,     /* whose scores are computed at a time, 4 MiB for all queries */
    TASK_ROWS = 1 << 9, /* of them by one task */
    SMALL = 8,          /* queries of float32 that are multiplied one by one */
    K = 10,
    MULTIPLIER = 2
};

typedef struct search {
    att_ctx *ctx;
    att_vector_corpus corpus;
    att_vector_search_options options;
    int64_t bytes;      /* of a row's codes */
    int64_t candidates; /* of a query */
    const float *queries;
    int64_t n;             /* queries at this time, at most QUERIES */
    uint8_t *codes;        /* [QUERIES, bytes] of the queries; NULL: float32 */
    float *scores;         /* [QUERIES, ROWS] */
    int32_t *whole;        /* [QUERIES, ROWS] scores of codes */
    att_top_column *best;  /* [QUERIES, candidates] */
    att_vector_hit *found; /* [QUERIES, candidates]: the rescored candidates */
    att_vector_hit *hits;  /* [n, k] of these queries */
    int64_t first, rows;   /* rows of the corpus at this time */
} search;

static const uint8_t *row_of(const search *s, int64_t row) { return (const uint8_t *)s->corpus.codes + row * s->bytes; }

/* ---- scores of codes */

static bool has_bits(const search *s)
{
    return s->corpus.precision == ATT_PRECISION_BINARY || s->corpus.precision == ATT_PRECISION_UBINARY;
}

/* A task has TASK_ROWS rows, which all queries are compared with while they are in the cache. */
static void score_codes(void *arg, int task)
{
    const search *s = arg;
    const att_codes_kernels *k = &att_kernels_of(s->ctx->isa)->codes;
    const int64_t from = (int64_t)task * TASK_ROWS, n = att_min(TASK_ROWS, s->rows - from);
    const att_codes_args args = {.queries = s->n,
                                 .rows = n,
                                 .bytes = s->bytes,
                                 .q = (const int8_t *)s->codes,
                                 .codes = row_of(s, s->first + from),
                                 .is_signed = s->corpus.precision == ATT_PRECISION_INT8,
                                 .out = s->whole + from,
                                 .stride = ROWS};
    (has_bits(s) ? k->hamming : k->products)(&args);
    for (int64_t q = 0; q < s->n; q++)
        for (int64_t i = q * ROWS + from; i < q * ROWS + from + n; i++)
            s->scores[i] = (float)(has_bits(s) ? -s->whole[i] : s->whole[i]);
}

/* Scores a task's rows by few queries, whose product by att_tensor_matmul would take longer to begin than to compute.
 */
static void score_small(void *arg, int task)
{
    const search *s = arg;
    const att_vector_kernels *k = &att_kernels_of(s->ctx->isa)->vector;
    const int64_t from = (int64_t)task * TASK_ROWS, n = att_min(TASK_ROWS, s->rows - from), dim = s->corpus.dim;
    const float *rows = (const float *)row_of(s, s->first + from);
    for (int64_t q = 0; q < s->n; q++)
        for (int64_t i = 0; i < n; i++) {
            const float *query = s->queries + q * dim, *row = rows + i * dim;
            const float product = k->dot(dim, query, row);
            const float length = s->options.cosine ? sqrtf(k->dot(dim, row, row)) : 1;
            s->scores[q * ROWS + from + i] = length > 0 ? product / length : product;
        }
}

static att_status score_many(const search *s)
{
    att_tensor q, x, y;
    att_wrap(&q, (void *)s->queries, ATT_F32, ATT_DIMS(s->n, s->corpus.dim), NULL);
    att_wrap(&x, (void *)row_of(s, s->first), ATT_F32, ATT_DIMS(s->rows, s->corpus.dim), NULL);
    att_wrap(&y, s->scores, ATT_F32, 2, (const int64_t[]){s->n, s->rows}, (const int64_t[]){ROWS, 1});
    return s->options.cosine
               ? att_tensor_cosine(s->ctx, &q, &x, &y)
               : att_tensor_matmul(s->ctx, &q, &x, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &y);
}

static att_status score_floats(search *s)
{
    att_status e = ATT_OK;
    if (s->n <= SMALL)
        att_parallel_for(s->ctx, (int)att_ceil_div(s->rows, TASK_ROWS), score_small, s);
    else
        e = score_many(s);
    for (int64_t i = 0; !e && i < s->n * s->rows; i++)
        if (!isfinite(s->scores[i / s->rows * ROWS + i % s->rows]))
            e = att_fail(s->ctx, ATT_ERR_ARGUMENT, "att_vectors_search: the score of row %lld is not finite",
                         (long long)(s->first + i % s->rows));
    return e;
}

/* ---- the best */

static void add_scores(void *arg, int query)
{
    const search *s = arg;
    const float *scores = s->scores + (int64_t)query * ROWS;
    const bool *hidden = s->corpus.hidden ? s->corpus.hidden + s->first : NULL;
    att_top_column *best = s->best + query * s->candidates;
    for (int64_t i = 0; i < s->rows; i++)
        if (!hidden || !hidden[i])
            att_best_add(best, s->candidates, (att_top_column){.column = s->first + i, .value = scores[i]});
}

/* Returns the score of a query [dim] and a row, in double. */
static double rescore(const search *s, const float *query, int64_t row)
{
    const att_vector_corpus *c = &s->corpus;
    double product = 0, of_query = 0, of_row = 0;
    for (int64_t d = 0; d < c->dim; d++) {
        const double x = (double)query[d], y = att_dequantized(c->precision, row_of(s, row), c->dim, c->ranges, d);
        product += x * y;
        of_query += x * x;
        of_row += y * y;
    }
    if (!s->options.cosine || has_bits(s))
        return product;
    return of_query > 0 && of_row > 0 ? product / sqrt(of_query * of_row) : 0;
}

static int by_score(const void *x, const void *y)
{
    const att_vector_hit *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Sorts the candidates of a query, rescored or not, and writes the first k. */
static void finish_query(void *arg, int query)
{
    const search *s = arg;
    const int64_t k = s->options.k;
    const att_top_column *best = s->best + query * s->candidates;
    att_vector_hit *found = s->found + query * s->candidates;
    int64_t n = 0;
    for (int64_t i = 0; i < s->candidates; i++) {
        if (best[i].column < 0)
            continue;
        const double score = s->options.by_codes ? (double)best[i].value
                                                 : rescore(s, s->queries + query * s->corpus.dim, best[i].column);
        found[n++] = (att_vector_hit){.row = best[i].column, .score = score};
    }
    qsort(found, (size_t)n, sizeof *found, by_score);
    for (int64_t i = 0; i < k; i++)
        s->hits[query * k + i] = i < n ? found[i] : (att_vector_hit){.row = -1, .score = -INFINITY};
}

/* ---- the call */

/* Queries are codes of int8 for rows of uint8, too, as the kernel has them. */
static att_precision of_queries(att_precision p) { return p == ATT_PRECISION_UINT8 ? ATT_PRECISION_INT8 : p; }

static att_status search_some(search *s)
{
    att_status e = ATT_OK;
    for (int64_t q = 0; q < s->n; q++)
        att_best_begin(s->best + q * s->candidates, s->candidates);
    for (int64_t q = 0; s->codes && q < s->n; q++)
        att_quantize_vector(of_queries(s->corpus.precision), s->queries + q * s->corpus.dim, s->corpus.dim,
                            s->corpus.ranges, s->codes + q * s->bytes);
    for (s->first = 0; !e && s->candidates && s->first < s->corpus.n; s->first += s->rows) {
        s->rows = att_min(ROWS, s->corpus.n - s->first);
        if (att_cancelled(s->ctx))
            return att_fail(s->ctx, ATT_ERR_CANCELLED, "att_vectors_search was cancelled");
        if (s->codes)
            att_parallel_for(s->ctx, (int)att_ceil_div(s->rows, TASK_ROWS), score_codes, s);
        else
            e = score_floats(s);
        if (!e)
            att_parallel_for(s->ctx, (int)s->n, add_scores, s);
    }
    if (!e)
        att_parallel_for(s->ctx, (int)s->n, finish_query, s);
    return e;
}

static att_status search_all(search *s, const float *queries, int64_t n, att_vector_hit *hits)
{
    const bool floats = s->corpus.precision == ATT_PRECISION_FLOAT32;
    const size_t some = (size_t)att_min(n, QUERIES);
    const size_t candidates = (size_t)s->candidates + 1; /* qsort's array is never NULL */
    att_status e = ATT_ERR_MEMORY;
    s->codes = floats ? NULL : att_alloc(s->ctx, some, (size_t)s->bytes);
    s->whole = floats ? NULL : att_alloc(s->ctx, some * ROWS, sizeof *s->whole);
    s->scores = att_alloc(s->ctx, some * ROWS, sizeof *s->scores);
    s->best = att_alloc(s->ctx, candidates, some * sizeof *s->best);
    s->found = att_alloc(s->ctx, candidates, some * sizeof *s->found);
    if ((floats || (s->codes && s->whole)) && s->scores && s->best && s->found)
        e = ATT_OK;
    for (int64_t first = 0; !e && first < n; first += QUERIES) {
        s->queries = queries + first * s->corpus.dim;
        s->n = att_min(QUERIES, n - first);
        s->hits = hits + first * s->options.k;
        e = search_some(s);
    }
    void *const memory[] = {s->codes, s->whole, s->scores, s->best, s->found};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        att_free(s->ctx, memory[i]);
    return e;
}

/* Reads the options. The number of candidates is k * multiplier, but at most the rows of the corpus. */
static att_status read_options(search *s, const att_vector_search_options *options)
{
    att_vector_search_options *o = &s->options;
    const att_status e = att_options_read(o, sizeof *o, options, "att_vector_search_options");
    if (e)
        return e;
    if (o->k < 0 || o->multiplier < 0)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT,
                        "att_vectors_search: k is %lld and multiplier %lld, but must not be "
                        "below 0",
                        (long long)o->k, (long long)o->multiplier);
    o->k = o->k ? o->k : K;
    o->by_codes = o->by_codes && s->corpus.precision != ATT_PRECISION_FLOAT32;
    o->multiplier = o->by_codes ? 1 : o->multiplier ? o->multiplier : MULTIPLIER;
    s->candidates = o->k > s->corpus.n / o->multiplier ? s->corpus.n : o->k * o->multiplier;
    return ATT_OK;
}

static att_status check(const search *s, const float *queries, int64_t n)
{
    const att_vector_corpus *c = &s->corpus;
    att_status e = att_check_vectors(s->ctx, "att_vectors_search", c->precision, c->n, c->dim, c->ranges);
    if (!e)
        e = att_check_vectors(s->ctx, "att_vectors_search", ATT_PRECISION_FLOAT32, n, c->dim, NULL);
    if (e)
        return e;
    if (c->dim > ATT_MAX_CODES)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "att_vectors_search: dim is %lld, but must be at most %d",
                        (long long)c->dim, ATT_MAX_CODES);
    if (c->n > 0 && !c->codes)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "att_vectors_search: corpus.codes is NULL");
    for (int64_t i = 0; i < n * c->dim; i++)
        if (!isfinite(queries[i]))
            return att_fail(s->ctx, ATT_ERR_ARGUMENT, "att_vectors_search: number %lld of query %lld is not finite",
                            (long long)(i % c->dim), (long long)(i / c->dim));
    return ATT_OK;
}

att_status att_vectors_search(att_ctx *ctx, const att_vector_corpus *corpus, const float *queries, int64_t n,
                              const att_vector_search_options *options, att_vector_hit *nearest)
{
    search s = {.ctx = ctx};
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"corpus", corpus})) ||
        (n > 0 && att_require(__func__, ATT_NAMED({"queries", queries}, {"nearest", nearest}))))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&s.corpus, sizeof s.corpus, corpus, "att_vector_corpus");
    if (!e)
        e = check(&s, queries, n);
    if (!e)
        e = read_options(&s, options);
    if (e || n == 0)
        return e;
    s.bytes = att_precision_bytes(s.corpus.precision, s.corpus.dim);
    return search_all(&s, queries, n, nearest);
}
