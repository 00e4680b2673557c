/* Search among vectors of fewer bits: how many of the nearest rows it finds, and how long it takes. One JSON line for
 * each precision and multiplier.
 *
 *   attend embed -m MODEL --format fbin -o corpus.fbin CORPUS
 *   attend embed -m MODEL --format fbin -o queries.fbin QUERIES
 *   bench_vectors corpus.fbin queries.fbin [THREADS] [K]
 *
 * recall: the share of the K nearest rows by float32 that are among the K hits. one_ms: of a query alone, the median
 * over the queries; all_ms: of all queries in one call, each; of the best of 5 passes, which take turns. */
#include "bench.h"
#include "attend_vectors.h"

#include <math.h>

enum { PASSES = 5, CASES = 14, MAX_QUERIES = 1000 };

typedef struct matrix {
    int32_t n, dim;
    float *x; /* [n, dim] */
} matrix;

static matrix read_matrix(const char *path)
{
    matrix m = {0};
    FILE *f = fopen(path, "rb");
    if (!f || fread(&m.n, sizeof m.n, 1, f) != 1 || fread(&m.dim, sizeof m.dim, 1, f) != 1 || m.n < 1 || m.dim < 1 ||
        !(m.x = calloc((size_t)m.n, (size_t)m.dim * sizeof *m.x)) ||
        fread(m.x, (size_t)m.dim * sizeof *m.x, (size_t)m.n, f) != (size_t)m.n) {
        fprintf(stderr, "bench_vectors: %s cannot be read as .fbin\n", path);
        exit(1);
    }
    fclose(f);
    return m;
}

typedef struct search_case {
    att_vector_corpus corpus;
    att_vector_search_options options;
    att_vector_hit *hits; /* [queries, k] */
    double all, one;      /* seconds */
} search_case;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pass(att_ctx *ctx, search_case *c, const matrix *queries)
{
    static double one[MAX_QUERIES];
    double start = seconds();
    check(ctx, att_vectors_search(ctx, &c->corpus, queries->x, queries->n, &c->options, c->hits));
    c->all = fmin(c->all, (seconds() - start) / queries->n);
    for (int i = 0; i < queries->n; i++) {
        att_vector_hit *hits = c->hits + i * c->options.k;
        start = seconds();
        check(ctx, att_vectors_search(ctx, &c->corpus, queries->x + (int64_t)i * queries->dim, 1, &c->options, hits));
        one[i] = seconds() - start;
    }
    qsort(one, (size_t)queries->n, sizeof *one, ascending);
    c->one = fmin(c->one, one[queries->n / 2]);
}

static double recall(const search_case *c, const search_case *exact, int64_t queries)
{
    const int64_t k = c->options.k;
    int64_t found = 0;
    for (int64_t q = 0; q < queries; q++)
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < k; j++)
                found += c->hits[q * k + i].row == exact->hits[q * k + j].row;
    return (double)found / (double)(queries * k);
}

int main(int argc, char **argv)
{
    static const att_precision precisions[] = {ATT_PRECISION_FLOAT32, ATT_PRECISION_INT8, ATT_PRECISION_UBINARY};
    static const int64_t multipliers[] = {0, 1, 2, 4, 10};
    if (argc < 3) {
        fprintf(stderr, "bench_vectors: CORPUS.fbin QUERIES.fbin [THREADS] [K]\n");
        return 2;
    }
    const matrix corpus = read_matrix(argv[1]), queries = read_matrix(argv[2]);
    const int64_t k = argc > 4 ? atoi(argv[4]) : 10;
    if (queries.n > MAX_QUERIES || queries.dim != corpus.dim) {
        fprintf(stderr, "bench_vectors: more than %d queries, or of another dimension\n", MAX_QUERIES);
        return 1;
    }
    att_ctx *ctx;
    check(NULL, att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = argc > 3 ? atoi(argv[3]) : 1)));
    float *ranges = calloc(2 * (size_t)corpus.dim, sizeof *ranges);
    check(ctx, att_ranges_begin(corpus.dim, ranges));
    check(ctx, att_ranges_add(ctx, corpus.x, corpus.n, corpus.dim, ranges));
    search_case cases[CASES] = {0};
    int n = 0;
    for (int p = 0; p < 3; p++) {
        void *codes = calloc((size_t)corpus.n, (size_t)att_precision_bytes(precisions[p], corpus.dim));
        check(ctx, att_vectors_quantize(ctx, precisions[p], corpus.x, corpus.n, corpus.dim, ranges, codes));
        for (int i = 0; i < (p ? 5 : 1); i++, n++) {
            search_case *c = &cases[n];
            c->corpus = (att_vector_corpus){.size = sizeof c->corpus,
                                            .n = corpus.n,
                                            .dim = corpus.dim,
                                            .precision = precisions[p],
                                            .codes = codes,
                                            .ranges = ranges};
            c->options = (att_vector_search_options){.size = sizeof c->options,
                                                     .k = k,
                                                     .multiplier = p ? multipliers[i] : 1,
                                                     .by_codes = p && multipliers[i] == 0};
            c->hits = calloc((size_t)(queries.n * k), sizeof *c->hits);
            c->all = c->one = INFINITY;
        }
    }
    for (int i = 0; i < PASSES; i++)
        for (int j = 0; j < n; j++)
            pass(ctx, &cases[j], &queries);
    for (int j = 0; j < n; j++) {
        const search_case *c = &cases[j];
        printf(
            "{\"precision\":\"%s\",\"bytes\":%lld,\"multiplier\":%lld,\"recall\":%.4f,\"one_ms\":%.4f,\"all_ms\":%.4f,"
            "\"one_speed\":%.2f,\"all_speed\":%.2f}\n",
            att_precision_name(c->corpus.precision), (long long)att_precision_bytes(c->corpus.precision, corpus.dim),
            (long long)(c->options.by_codes ? 0 : c->options.multiplier), recall(c, &cases[0], queries.n), 1e3 * c->one,
            1e3 * c->all, cases[0].one / c->one, cases[0].all / c->all);
    }
    att_close(ctx);
    return 0;
}
