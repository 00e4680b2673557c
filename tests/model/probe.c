/* Classifiers on vectors: the linear probe has scikit-learn's coefficients (tests/golden/probe.txt), nearest neighbors
 * vote as by definition, and both have the same bits for any number of threads. */
#include "attend_probe.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"

#define GOLDEN "tests/golden/probe.txt"
enum { N = 61, DIM = 6, CLASSES = 4 };

static float vectors[N * DIM];
static int32_t four[N], two[N];

static int read_data(void **state)
{
    (void)state;
    static double x[N * DIM];
    assert_int_equal(golden_line(GOLDEN, "vectors", x, N * DIM), N * DIM);
    for (int i = 0; i < N * DIM; i++)
        vectors[i] = (float)x[i];
    assert_int_equal(golden_line(GOLDEN, "labels", x, N), N);
    for (int i = 0; i < N; i++) {
        four[i] = (int32_t)x[i];
        two[i] = x[i] > 0;
    }
    return 0;
}

static void near(double is, double expected, double tolerance)
{
    if (!(fabs(is - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g, with a tolerance of %g", is, expected, tolerance);
}

static att_probe_data data_of(const int32_t *labels, int64_t n, int64_t classes)
{
    return (att_probe_data){
        .size = sizeof(att_probe_data), .n = n, .dim = DIM, .classes = classes, .vectors = vectors, .labels = labels};
}

static att_probe *fit(att_ctx *ctx, const att_probe_data *d, const att_probe_options *o)
{
    att_probe *p;
    if (att_probe_fit(ctx, d, NULL, o, &p))
        fail_msg("%s", att_error(ctx));
    return p;
}

/* ---- the linear probe */

/* The mean loss is convex, and regularization makes it strongly convex in W, by at least 1 / (c n). So W is at most
 * |gradient| c n from the minimum: with derivatives of at most 1e-12, of 28 numbers, 5.3e-12 * 30 * 61 = 1e-8. W and b
 * are rounded to floats: numbers below 8 by 2^-22. The difference of two classes has both errors twice. */
static const double most = 2 * (1e-8 + 0x1p-22);

static void compare(att_ctx *ctx, const char *name, int64_t classes, const att_probe_options *options)
{
    const att_probe_data d = data_of(classes == 2 ? two : four, N, classes);
    att_probe_options o = *options;
    att_probe_info info = {.size = sizeof info};
    att_tensor w, b;
    char line[64];
    double coef[CLASSES * DIM], intercept[CLASSES];
    const int rows = classes == 2 ? 1 : CLASSES;
    o.tolerance = 1e-12;
    att_probe *p = fit(ctx, &d, &o);
    assert_int_equal(att_probe_describe(p, &info), ATT_OK);
    assert_true(info.converged && info.gradient <= 1e-12 && info.iterations > 3);
    assert_int_equal(att_probe_weights(p, &w, &b), ATT_OK);
    snprintf(line, sizeof line, "%s-coef", name);
    assert_int_equal(golden_line(GOLDEN, line, coef, CLASSES * DIM), rows * DIM);
    snprintf(line, sizeof line, "%s-intercept", name);
    assert_int_equal(golden_line(GOLDEN, line, intercept, CLASSES), rows);
    const float *x = w.data, *y = b.data;
    for (int i = 0; i < rows * DIM; i++)
        near(classes == 2 ? (double)x[DIM + i] - (double)x[i] : (double)x[i], coef[i], most);
    for (int i = 0; i < rows; i++)
        near(classes == 2 ? (double)y[1] - (double)y[0] : (double)y[i], intercept[i], 4 * most);
    att_probe_free(p);
}

static void a_linear_probe_has_the_coefficients_of_scikit_learn(void **state)
{
    (void)state;
    static const struct {
        const char *four, *two;
        double c;
    } cases[] = {{"four-0.01", "two-0.01", 0.01}, {"four-1", "two-1", 1}, {"four-30", "two-30", 30}};
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < 3; i++) {
        const att_probe_options o = {.size = sizeof o, .c = cases[i].c};
        compare(ctx, cases[i].four, 4, &o);
        compare(ctx, cases[i].two, 2, &o);
    }
    const att_probe_options balanced = {.size = sizeof balanced, .c = 1, .balanced = true};
    compare(ctx, "balanced", 4, &balanced);
    compare(ctx, "balanced-two", 2, &balanced);
    att_close(ctx);
}

static void class_weights_are_those_of_balanced(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    double weights[CLASSES] = {0};
    for (int i = 0; i < N; i++)
        weights[four[i]]++;
    for (int k = 0; k < CLASSES; k++)
        weights[k] = N / (CLASSES * weights[k]);
    const att_probe_options o = {.size = sizeof o, .c = 1, .class_weights = weights};
    compare(ctx, "balanced", 4, &o);
    att_close(ctx);
}

/* The mean cross entropy of a probe. */
static double loss_of(const att_probe *p, const att_probe_data *d)
{
    static float scores[N * CLASSES];
    double loss = 0;
    assert_int_equal(att_probe_scores(p, d->n, d->vectors, scores), ATT_OK);
    for (int64_t i = 0; i < d->n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < d->classes; k++)
            sum += exp((double)scores[i * d->classes + k]);
        loss += log(sum) - (double)scores[i * d->classes + d->labels[i]];
    }
    return loss / (double)d->n;
}

static void validation_chooses_the_c_with_the_lowest_loss(void **state)
{
    (void)state;
    enum { TRAIN = 40 };
    att_ctx *ctx = check_open(NULL, 2);
    const att_probe_data train = data_of(four, TRAIN, 4);
    att_probe_data valid = data_of(four + TRAIN, N - TRAIN, 4);
    valid.vectors = vectors + TRAIN * DIM;
    att_probe *p;
    att_probe_info info = {.size = sizeof info};
    assert_int_equal(att_probe_fit(ctx, &train, &valid, NULL, &p), ATT_OK);
    assert_int_equal(att_probe_describe(p, &info), ATT_OK);
    const double best = loss_of(p, &valid);
    assert_true(info.converged && best < log(4));
    for (int side = -1; side <= 1; side += 2) {
        const att_probe_options o = {.size = sizeof o, .c = info.c * pow(10, side / 2.0)};
        att_probe *other = fit(ctx, &train, &o);
        assert_true(loss_of(other, &valid) > best);
        att_probe_free(other);
    }
    att_probe_free(p);
    att_close(ctx);
}

/* ---- nearest neighbors */

static double cosine(const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int k = 0; k < DIM; k++) {
        ab += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return ab / sqrt(aa * bb);
}

/* The votes of the k nearest by definition: sorts all by repeated choice of the nearest. Vectors are rounded to floats
 * of norm 1, so a cosine is off by at most 2^-23, and a vote by exp(2^-23 / 0.07) - 1 = 1.8e-6 of itself; the logarithm
 * of its share by twice that, and the rounding of floats below 16, 2^-20. */
static void nearest_neighbors_vote_as_by_definition(void **state)
{
    (void)state;
    static float scores[N * CLASSES];
    att_ctx *ctx = check_open(NULL, 2);
    static const int ks[] = {1, 5, 20, N};
    for (int c = 0; c < 4; c++) {
        const int k = ks[c];
        const att_probe_data d = data_of(four, N, 4);
        const att_probe_options o = {.size = sizeof o, .kind = ATT_PROBE_KIND_NEIGHBORS, .neighbors = k == 20 ? 0 : k};
        att_probe *p = fit(ctx, &d, &o);
        assert_int_equal(att_probe_scores(p, N, vectors, scores), ATT_OK);
        for (int i = 0; i < N; i++) {
            double vote[CLASSES] = {0}, sum = 0;
            bool taken[N] = {false};
            for (int j = 0; j < k; j++) {
                int best = -1;
                for (int m = 0; m < N; m++)
                    if (!taken[m] && (best < 0 || cosine(vectors + i * DIM, vectors + m * DIM) >
                                                      cosine(vectors + i * DIM, vectors + best * DIM)))
                        best = m;
                taken[best] = true;
                const double weight = exp(cosine(vectors + i * DIM, vectors + best * DIM) / 0.07);
                vote[four[best]] += weight;
                sum += weight;
            }
            for (int m = 0; m < CLASSES; m++)
                near((double)scores[i * CLASSES + m], vote[m] > 0 ? log(vote[m] / sum) : -80, 2 * 1.8e-6 + 0x1p-20);
        }
        att_probe_free(p);
    }
    att_close(ctx);
}

/* ---- both */

static void probes_have_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    enum { MANY = 1500 }; /* more blocks than chunks */
    static float scores[2][MANY * CLASSES];
    float *many = check_numbers(MANY * DIM, 3);
    int32_t *labels = malloc(MANY * sizeof *labels);
    for (int i = 0; i < MANY; i++)
        labels[i] = (many[i * DIM] > 0) + 2 * (many[i * DIM + 1] > 0);
    for (int kind = 0; kind < 2; kind++) {
        for (int threads = 1; threads <= 2; threads++) {
            att_ctx *ctx = check_open(NULL, threads == 1 ? 1 : 3);
            att_probe_data d = data_of(labels, MANY, 4);
            d.vectors = many;
            const att_probe_options o = {.size = sizeof o, .kind = (att_probe_kind)kind, .c = 1};
            att_probe *p = fit(ctx, &d, &o);
            int64_t correct;
            assert_int_equal(att_probe_scores(p, MANY, many, scores[threads - 1]), ATT_OK);
            assert_int_equal(att_probe_correct(p, &d, &correct), ATT_OK);
            assert_true(correct > MANY * 9 / 10);
            att_probe_free(p);
            att_close(ctx);
        }
        assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
    }
    free(labels);
    free(many);
}

static void wrong_data_and_options_are_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const att_probe_data good = data_of(four, N, 4), other = data_of(two, N, 2);
    const double weights[] = {1, 1, 0, 1};
    static float infinite[N * DIM];
    int32_t missing[N];
    memcpy(infinite, vectors, sizeof infinite);
    infinite[DIM + 2] = INFINITY;
    for (int i = 0; i < N; i++)
        missing[i] = four[i] == 3 ? 0 : four[i];
    att_probe_data of_infinity = good, of_three = good, of_none = good, of_one = good;
    of_infinity.vectors = infinite;
    of_three.labels = missing;
    of_none.n = 0;
    of_one.classes = 3; /* labels go to 3 */
    const struct {
        const att_probe_data *train, *valid;
        att_probe_options options;
        const char *message;
    } cases[] = {
        {&good, NULL, {.c = 0}, "options.c is 0 and valid NULL: nothing chooses c"},
        {&good, NULL, {.c = -1}, "options.c is -1, expected 0 to 1e18"},
        {&good, NULL, {.kind = (att_probe_kind)7}, "options.kind is 7"},
        {&good, NULL, {.c = 1, .class_weights = weights}, "options.class_weights[2] is 0, expected above 0"},
        {&good, NULL, {.c = 1, .class_weights = weights, .balanced = true}, "are given, not one of them"},
        {&good, &other, {.c = 0}, "train has 6 numbers and 4 classes, but valid 6 and 2"},
        {&of_infinity, NULL, {.c = 1}, "number 2 of vector 1 is not finite"},
        {&of_three, NULL, {.c = 1}, "class 3 has no example"},
        {&of_three, NULL, {.kind = ATT_PROBE_KIND_NEIGHBORS}, "class 3 has no example"},
        {&of_none, NULL, {.c = 1}, "train.n is 0, expected 1 to 2147483647"},
        {&of_one, NULL, {.c = 1}, "is 3, but there are 3 classes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_probe *p;
        att_probe_options o = cases[i].options;
        o.size = sizeof o;
        assert_int_equal(att_probe_fit(ctx, cases[i].train, cases[i].valid, &o, &p), ATT_ERR_ARGUMENT);
        assert_null(p);
        if (!strstr(att_error(ctx), cases[i].message))
            fail_msg("\"%s\" without \"%s\"", att_error(ctx), cases[i].message);
    }
    att_close(ctx);
}

/* ---- memory */

static void fit_and_score(att_ctx *ctx, att_status *s)
{
    static float scores[N * CLASSES];
    const att_probe_data d = data_of(four, N, 4);
    for (int kind = 0; kind < 2 && !*s; kind++) {
        att_probe *p;
        *s =
            att_probe_fit(ctx, &d, &d, &(const att_probe_options){.size = sizeof(att_probe_options), .kind = kind}, &p);
        *s = *s ? *s : att_probe_scores(p, N, vectors, scores);
        att_probe_free(p);
    }
}

static void where_memory_ends_a_fit_fails_and_leaks_nothing(void **state)
{
    (void)state;
    bool enough = false;
    for (long n = 1; !enough; n += 1 + n / 20) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        f.fail_at = f.calls + n;
        att_status s = ATT_OK;
        fit_and_score(ctx, &s);
        enough = f.calls < f.fail_at;
        assert_int_equal(s, enough ? ATT_OK : ATT_ERR_MEMORY);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_probe_has_the_coefficients_of_scikit_learn),
        cmocka_unit_test(class_weights_are_those_of_balanced),
        cmocka_unit_test(validation_chooses_the_c_with_the_lowest_loss),
        cmocka_unit_test(nearest_neighbors_vote_as_by_definition),
        cmocka_unit_test(probes_have_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(wrong_data_and_options_are_refused),
        cmocka_unit_test(where_memory_ends_a_fit_fails_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, read_data, NULL);
}
