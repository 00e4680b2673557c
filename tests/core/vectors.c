/* Quantization of vectors, with the bytes of sentence-transformers (tests/golden/vectors.txt), and search among codes:
 * the same hits as by the definition, whatever threads and instruction set. */
#include "attend_vectors.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"

#include <stdlib.h>

#define GOLDEN "tests/golden/vectors.txt"
enum { MOST = 4096 };
static const att_precision all[] = {ATT_PRECISION_INT8, ATT_PRECISION_UINT8, ATT_PRECISION_BINARY,
                                    ATT_PRECISION_UBINARY};

/* Vectors of a case, x [n, dim], as tests/golden/make_vectors.py makes them: column 1 is constant, the steps of column
 * 2 are too small for a float, column 3 is large. */
static float *vectors_of(int64_t n, int64_t dim, uint64_t seed)
{
    float *x = check_numbers(n * dim, seed);
    for (int64_t i = 0; i < n; i++) {
        x[i * dim + 1] = 0.25f;
        x[i * dim + 2] *= 1e-44f;
        x[i * dim + 3] *= 3e37f;
    }
    x[4] = -0.0f;
    return x;
}

static void codes_have_the_bytes_of_the_package(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{3, 5}, {7, 16}, {5, 23}, {110, 12}};
    att_ctx *ctx = check_open(NULL, 2);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t p = 0; p < sizeof all / sizeof *all; p++)
            for (int calibrated = 0; calibrated < 2; calibrated++) {
                static double expected[MOST];
                static uint8_t codes[MOST];
                char name[64];
                const int64_t n = shapes[s][0], dim = shapes[s][1], bytes = att_precision_bytes(all[p], dim);
                const bool is_signed = all[p] == ATT_PRECISION_INT8 || all[p] == ATT_PRECISION_BINARY;
                float ranges[2 * 32], *x = vectors_of(n, dim, 1), *calibration = vectors_of(9, dim, 2);
                snprintf(name, sizeof name, "%s.%d.%d.%s", att_precision_name(all[p]), (int)n, (int)dim,
                         calibrated ? "calibrated" : "own");
                assert_int_equal(att_ranges_begin(dim, ranges), ATT_OK);
                assert_int_equal(att_ranges_add(ctx, calibrated ? calibration : x, calibrated ? 9 : n, dim, ranges),
                                 ATT_OK);
                assert_int_equal(att_vectors_quantize(ctx, all[p], x, n, dim, ranges, codes), ATT_OK);
                assert_int_equal(golden_line(GOLDEN, name, expected, MOST), n * bytes);
                for (int64_t i = 0; i < n * bytes; i++)
                    if ((is_signed ? (int8_t)codes[i] : codes[i]) != (int)expected[i])
                        fail_msg("%s: byte %d is %d, not %g", name, (int)i, codes[i], expected[i]);
                free(x);
                free(calibration);
            }
    att_close(ctx);
}

static void numbers_without_a_code_are_refused_and_bits_have_them_as_zero(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const float x[8] = {NAN, INFINITY, -INFINITY, 1, -1, 0, -0.0f, 1e-45f};
    float ranges[16], far[8] = {1, INFINITY, -INFINITY};
    uint8_t codes[8], bits;
    double expected[1];
    assert_int_equal(att_vectors_quantize(ctx, ATT_PRECISION_UBINARY, x, 1, 8, NULL, &bits), ATT_OK);
    assert_int_equal(golden_line(GOLDEN, "ubinary.special", expected, 1), 1);
    assert_int_equal(bits, (int)expected[0]);
    for (int d = 0; d < 8; d++) {
        ranges[d] = -1;
        ranges[8 + d] = 1;
    }
    assert_int_equal(att_vectors_quantize(ctx, ATT_PRECISION_INT8, x, 1, 8, ranges, codes), ATT_ERR_ARGUMENT);
    check_message(ctx, "x[0, 0] is NaN, which has no code");
    assert_int_equal(att_vectors_quantize(ctx, ATT_PRECISION_INT8, far, 1, 8, ranges, codes), ATT_OK);
    assert_int_equal((int8_t)codes[1], 127);
    assert_int_equal((int8_t)codes[2], -128);
    assert_int_equal(att_ranges_add(ctx, x, 1, 8, ranges), ATT_ERR_ARGUMENT);
    check_message(ctx, "x[0, 0] is not finite");
    att_close(ctx);
}

static void ranges_that_cannot_be_are_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    static const float bad[][2] = {{1, 0}, {NAN, 1}, {0, NAN}, {0, INFINITY}, {-3e38f, 3e38f}};
    const float x[1] = {0};
    uint8_t code;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(att_vectors_quantize(ctx, ATT_PRECISION_UINT8, x, 1, 1, bad[i], &code), ATT_ERR_ARGUMENT);
        check_message(ctx, "ranges of dimension 0 are");
    }
    assert_int_equal(att_vectors_quantize(ctx, ATT_PRECISION_UINT8, x, 1, 1, NULL, &code), ATT_ERR_ARGUMENT);
    check_message(ctx, "ranges are NULL, but uint8 needs them");
    assert_int_equal(att_vectors_quantize(ctx, (att_precision)5, x, 1, 1, NULL, &code), ATT_ERR_ARGUMENT);
    check_message(ctx, "5 is not a precision");
    assert_int_equal(att_ranges_begin(0, (float[2]){0}), ATT_ERR_ARGUMENT);
    assert_null(att_precision_name((att_precision)-1));
    assert_int_equal(att_precision_bytes(ATT_PRECISION_FLOAT32, INT64_MAX / 4), 0);
    assert_int_equal(att_precision_bytes(ATT_PRECISION_BINARY, INT64_MAX), 0);
    att_close(ctx);
}

/* A step of int8 that is dequantized is the lowest number of the step: at most a step below x. */
static void dequantized_vectors_are_within_a_step(void **state)
{
    (void)state;
    enum { N = 600, DIM = 19 };
    att_ctx *ctx = check_open(NULL, 2);
    float *x = check_numbers(N * DIM, 5), *y = check_numbers(N * DIM, 6), ranges[2 * DIM];
    uint8_t *codes = malloc(N * DIM * sizeof(float));
    assert_non_null(codes);
    assert_int_equal(att_ranges_begin(DIM, ranges), ATT_OK);
    assert_int_equal(att_ranges_add(ctx, x, N, DIM, ranges), ATT_OK);
    for (int p = ATT_PRECISION_FLOAT32; p <= ATT_PRECISION_UBINARY; p++) {
        assert_int_equal(att_vectors_quantize(ctx, (att_precision)p, x, N, DIM, ranges, codes), ATT_OK);
        assert_int_equal(att_vectors_dequantize(ctx, (att_precision)p, codes, N, DIM, ranges, y), ATT_OK);
        for (int i = 0; i < N * DIM; i++) {
            const int d = i % DIM;
            const double step = ((double)ranges[DIM + d] - (double)ranges[d]) / 255, off = (double)x[i] - (double)y[i];
            if (p == ATT_PRECISION_FLOAT32)
                assert_true(x[i] == y[i]);
            else if (p >= ATT_PRECISION_BINARY)
                assert_true(y[i] == (float)(x[i] > 0));
            else if (!(off >= -1e-6 && off <= step + 1e-6))
                fail_msg("%g became %g, with steps of %g", (double)x[i], (double)y[i], step);
        }
    }
    free(x);
    free(y);
    free(codes);
    att_close(ctx);
}

/* ---- search */

enum { ROWS = 300, DIM = 72, QUERIES = 70, K = 5 };

/* A corpus of each precision, and queries */
typedef struct corpus_case {
    float *x, *queries; /* [ROWS, DIM], [QUERIES, DIM] */
    float ranges[2 * DIM];
    uint8_t codes[ROWS * DIM * sizeof(float)], query_codes[QUERIES * DIM * sizeof(float)];
    att_vector_corpus corpus;
} corpus_case;

static corpus_case *corpus_new(att_ctx *ctx, att_precision p)
{
    corpus_case *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->x = check_numbers((int64_t)ROWS * DIM, 7);
    c->queries = check_numbers((int64_t)QUERIES * DIM, 8);
    assert_int_equal(att_ranges_begin(DIM, c->ranges), ATT_OK);
    assert_int_equal(att_ranges_add(ctx, c->x, ROWS, DIM, c->ranges), ATT_OK);
    assert_int_equal(att_vectors_quantize(ctx, p, c->x, ROWS, DIM, c->ranges, c->codes), ATT_OK);
    assert_int_equal(att_vectors_quantize(ctx, p, c->queries, QUERIES, DIM, c->ranges, c->query_codes), ATT_OK);
    c->corpus = (att_vector_corpus){
        .size = sizeof c->corpus, .n = ROWS, .dim = DIM, .precision = p, .codes = c->codes, .ranges = c->ranges};
    return c;
}

static void corpus_free(corpus_case *c)
{
    free(c->x);
    free(c->queries);
    free(c);
}

/* Number d of row i, dequantized */
static double number_of(const corpus_case *c, int64_t i, int64_t d)
{
    const att_precision p = c->corpus.precision;
    if (p == ATT_PRECISION_FLOAT32)
        return (double)c->x[i * DIM + d];
    if (p >= ATT_PRECISION_BINARY)
        return c->x[i * DIM + d] > 0;
    const float step = (c->ranges[DIM + d] - c->ranges[d]) / 255;
    const int code = p == ATT_PRECISION_INT8 ? (int8_t)c->codes[i * DIM + d] + 128 : c->codes[i * DIM + d];
    return code * (double)step + (double)c->ranges[d];
}

/* The score of codes of query q and row i, by the definition */
static double codes_score(const corpus_case *c, int64_t q, int64_t i)
{
    double sum = 0;
    for (int64_t d = 0; d < DIM; d++) {
        const bool x = c->x[i * DIM + d] > 0, y = c->queries[q * DIM + d] > 0;
        const uint8_t a = c->codes[i * DIM + d], b = c->query_codes[q * DIM + d];
        switch (c->corpus.precision) {
        case ATT_PRECISION_INT8:
            sum += (double)(int8_t)a * (int8_t)b;
            break;
        case ATT_PRECISION_UINT8:
            sum += (double)a * b;
            break;
        default:
            sum -= x != y;
        }
    }
    return sum;
}

static double exact_score(const corpus_case *c, int64_t q, int64_t i, bool cosine)
{
    double sum = 0, xx = 0, yy = 0;
    for (int64_t d = 0; d < DIM; d++) {
        const double x = number_of(c, i, d), y = (double)c->queries[q * DIM + d];
        sum += x * y;
        xx += x * x;
        yy += y * y;
    }
    return cosine && c->corpus.precision < ATT_PRECISION_BINARY ? sum / sqrt(xx * yy) : sum;
}

static int by_score(const void *x, const void *y)
{
    const att_vector_hit *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* The rows of a query by the definition: [ROWS], the first K are its hits. */
static void expect(const corpus_case *c, const att_vector_search_options *o, int64_t q, att_vector_hit *hits)
{
    const int64_t candidates = o->by_codes ? K : K * (o->multiplier ? o->multiplier : 2);
    int64_t n = 0;
    for (int64_t i = 0; i < ROWS; i++)
        if (!c->corpus.hidden || !c->corpus.hidden[i])
            hits[n++] =
                (att_vector_hit){i, c->corpus.precision == ATT_PRECISION_FLOAT32 ? exact_score(c, q, i, o->cosine)
                                                                                 : codes_score(c, q, i)};
    qsort(hits, (size_t)n, sizeof *hits, by_score);
    for (int64_t i = 0; !o->by_codes && i < candidates; i++)
        hits[i].score = exact_score(c, q, hits[i].row, o->cosine);
    if (!o->by_codes)
        qsort(hits, (size_t)candidates, sizeof *hits, by_score);
}

static void check_search(att_ctx *ctx, const corpus_case *c, const att_vector_search_options *o)
{
    static att_vector_hit hits[QUERIES * K], expected[ROWS];
    assert_int_equal(att_vectors_search(ctx, &c->corpus, c->queries, QUERIES, o, hits), ATT_OK);
    for (int64_t q = 0; q < QUERIES; q++) {
        expect(c, o, q, expected);
        for (int64_t i = 0; i < K; i++) {
            const att_vector_hit h = hits[q * K + i], e = expected[i];
            if (h.row != e.row || !(fabs(h.score - e.score) <= 1e-5 * fabs(e.score)))
                fail_msg("%s: hit %d of query %d is row %d with %.9g, not %d with %.9g",
                         att_precision_name(c->corpus.precision), (int)i, (int)q, (int)h.row, h.score, (int)e.row,
                         e.score);
        }
    }
}

static void hits_are_those_of_the_definition_on_each_instruction_set(void **state)
{
    (void)state;
    static bool hidden[ROWS];
    for (int i = 0; i < ROWS; i += 3)
        hidden[i] = true;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 3);)
        for (int p = ATT_PRECISION_FLOAT32; p <= ATT_PRECISION_UBINARY; p++) {
            corpus_case *c = corpus_new(ctx, (att_precision)p);
            check_search(ctx, c, ATT_OPTIONS(att_vector_search_options, .k = K));
            check_search(ctx, c, ATT_OPTIONS(att_vector_search_options, .k = K, .multiplier = 8, .cosine = true));
            check_search(ctx, c, ATT_OPTIONS(att_vector_search_options, .k = K, .by_codes = true));
            c->corpus.hidden = hidden;
            check_search(ctx, c, ATT_OPTIONS(att_vector_search_options, .k = K, .multiplier = 1));
            corpus_free(c);
        }
}

/* Those of semantic_search_faiss and semantic_search_usearch, in the golden file. */
static void hits_are_those_of_the_package(void **state)
{
    (void)state;
    enum { SOME = 3 };
    double chosen[SOME];
    att_ctx *ctx = check_open(NULL, 1);
    assert_int_equal(golden_line(GOLDEN, "queries", chosen, SOME), SOME);
    for (size_t p = 0; p < sizeof all / sizeof *all; p++) {
        corpus_case *c = corpus_new(ctx, all[p]);
        double rows[SOME * K], scores[SOME * K];
        char name[64];
        snprintf(name, sizeof name, "%s.rows", att_precision_name(all[p]));
        assert_int_equal(golden_line(GOLDEN, name, rows, SOME * K), SOME * K);
        snprintf(name, sizeof name, "%s.scores", att_precision_name(all[p]));
        assert_int_equal(golden_line(GOLDEN, name, scores, SOME * K), SOME * K);
        for (int q = 0; q < SOME; q++) {
            att_vector_hit hits[K];
            assert_int_equal(att_vectors_search(ctx, &c->corpus, c->queries + (int)chosen[q] * DIM, 1,
                                                ATT_OPTIONS(att_vector_search_options, .k = K, .multiplier = 2), hits),
                             ATT_OK);
            for (int i = 0; i < K; i++) {
                assert_int_equal(hits[i].row, (int64_t)rows[q * K + i]);
                assert_true(fabs(hits[i].score - scores[q * K + i]) <= 1e-6 * fabs(scores[q * K + i]));
            }
        }
        corpus_free(c);
    }
    att_close(ctx);
}

static void fewer_rows_than_hits_leave_hits_empty(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int p = ATT_PRECISION_FLOAT32; p <= ATT_PRECISION_UBINARY; p++) {
        corpus_case *c = corpus_new(ctx, (att_precision)p);
        static const bool hidden[] = {false, true, false};
        att_vector_hit hits[10]; /* the default of k */
        c->corpus.n = 3;
        c->corpus.hidden = hidden;
        assert_int_equal(att_vectors_search(ctx, &c->corpus, c->queries, 1, NULL, hits), ATT_OK);
        assert_int_equal(hits[0].row + hits[1].row, 2);
        for (int i = 2; i < 10; i++) {
            assert_int_equal(hits[i].row, -1);
            assert_true(hits[i].score == -INFINITY);
        }
        c->corpus.n = 0;
        c->corpus.codes = NULL;
        assert_int_equal(att_vectors_search(ctx, &c->corpus, c->queries, 1, NULL, hits), ATT_OK);
        assert_int_equal(hits[0].row, -1);
        assert_int_equal(att_vectors_search(ctx, &c->corpus, NULL, 0, NULL, NULL), ATT_OK);
        corpus_free(c);
    }
    att_close(ctx);
}

static void searches_that_cannot_be_are_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    corpus_case *c = corpus_new(ctx, ATT_PRECISION_INT8);
    att_vector_hit hits[K];
    const struct {
        att_vector_corpus corpus;
        att_vector_search_options options;
        const char *message;
    } cases[] = {
        {{.n = ROWS, .dim = DIM, .precision = 7, .codes = c->codes}, {.k = K}, "7 is not a precision"},
        {{.n = ROWS, .dim = DIM, .precision = ATT_PRECISION_INT8, .codes = c->codes}, {.k = K}, "ranges are NULL"},
        {{.n = -1, .dim = DIM, .codes = c->codes}, {.k = K}, "n is -1 and dim 72"},
        {{.n = ROWS, .dim = 0, .codes = c->codes}, {.k = K}, "dim 0"},
        {{.n = ROWS, .dim = DIM}, {.k = K}, "corpus.codes is NULL"},
        {{.n = ROWS, .dim = DIM, .codes = c->codes}, {.k = -1}, "k is -1"},
        {{.n = ROWS, .dim = DIM, .codes = c->codes}, {.k = K, .multiplier = -2}, "multiplier -2"},
        {{.n = 0, .dim = 40000, .codes = c->codes}, {.k = K}, "dim is 40000, but must be at most 32768"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_vector_corpus corpus = cases[i].corpus;
        att_vector_search_options options = cases[i].options;
        corpus.size = sizeof corpus;
        options.size = sizeof options;
        const int64_t queries = corpus.dim == 40000 ? 0 : 1;
        assert_int_equal(att_vectors_search(ctx, &corpus, c->queries, queries, &options, hits), ATT_ERR_ARGUMENT);
        check_message(ctx, cases[i].message);
    }
    c->queries[DIM + 3] = NAN;
    assert_int_equal(att_vectors_search(ctx, &c->corpus, c->queries, 2, NULL, hits), ATT_ERR_ARGUMENT);
    check_message(ctx, "number 3 of query 1 is not finite");
    c->x[5 * DIM] = INFINITY;
    c->corpus.precision = ATT_PRECISION_FLOAT32;
    c->corpus.codes = c->x;
    assert_int_equal(att_vectors_search(ctx, &c->corpus, c->queries, 1, NULL, hits), ATT_ERR_ARGUMENT);
    check_message(ctx, "the score of row 5 is not finite");
    corpus_free(c);
    att_close(ctx);
}

static void memory_that_runs_out_is_an_error_and_nothing_is_lost(void **state)
{
    (void)state;
    for (int p = ATT_PRECISION_FLOAT32; p <= ATT_PRECISION_UBINARY; p++) {
        static att_vector_hit hits[QUERIES * 10];
        att_status s = ATT_ERR_MEMORY;
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        corpus_case *c = corpus_new(ctx, (att_precision)p);
        for (long n = 1; s == ATT_ERR_MEMORY; n++) {
            const long live = f.live;
            f.fail_at = f.calls + n;
            s = att_vectors_search(ctx, &c->corpus, c->queries, QUERIES, NULL, hits);
            assert_int_equal(f.live, live);
        }
        assert_int_equal(s, ATT_OK);
        corpus_free(c);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_the_bytes_of_the_package),
        cmocka_unit_test(numbers_without_a_code_are_refused_and_bits_have_them_as_zero),
        cmocka_unit_test(ranges_that_cannot_be_are_refused),
        cmocka_unit_test(dequantized_vectors_are_within_a_step),
        cmocka_unit_test(hits_are_those_of_the_definition_on_each_instruction_set),
        cmocka_unit_test(hits_are_those_of_the_package),
        cmocka_unit_test(fewer_rows_than_hits_leave_hits_empty),
        cmocka_unit_test(searches_that_cannot_be_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_an_error_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
